/** Random generations and conversations that all dialects can hold. */
import * as fc from 'fast-check';
import type {
  Conversation,
  Part,
  ReasoningPart,
  Tool,
  ToolCallPart,
  Turn,
} from '../../src/core/conversation.ts';
import type { JsonObject } from '../../src/json/value.ts';
import type { FinishReason, Generation, Usage } from '../../src/core/generation.ts';
import { anyCharacter } from '../support/any-character.ts';

const characters = fc.constantFrom(
  ...'abc XYZ 019 .,:;{}[]"\\/'.split(''),
  '\n',
  '\t',
  'é',
  '你',
  '🦀',
  '\u202e',
  '\u0001',
);

/** Text with at least one character that is not white space. */
export const text = fc
  .tuple(
    fc.string({ unit: characters, maxLength: 30 }),
    fc.string({ unit: characters, maxLength: 10 }),
  )
  .map(([before, behind]) => `${before}x${behind}`);

const name = fc.stringMatching(/^[a-z][a-zA-Z0-9_-]{0,20}$/);

/** Values that JSON holds without loss. */
export const json = fc.jsonValue({ maxDepth: 3, stringUnit: anyCharacter });

const argumentsJson = fc
  .dictionary(fc.string({ unit: characters, maxLength: 8 }), json, { maxKeys: 4 })
  .map((value) => JSON.stringify(value));

const tokens = fc.nat({ max: 100_000 });

export const usage: fc.Arbitrary<Usage> = fc
  .record({ fresh: tokens, read: tokens, write: tokens, visible: tokens, reasoning: tokens })
  .map(({ fresh, read, write, visible, reasoning }) => ({
    freshInputTokens: fresh,
    cacheReadTokens: read,
    cacheWriteTokens: write,
    outputTokens: visible + reasoning,
    reasoningTokens: reasoning,
  }));

const reasoning: fc.Arbitrary<ReasoningPart> = fc
  .record({ text, signature: fc.base64String({ minLength: 8, maxLength: 40 }) })
  .map((part) => ({ type: 'reasoning', ...part }));

function callsNamed(count: number): fc.Arbitrary<readonly ToolCallPart[]> {
  return fc
    .array(fc.record({ name, argumentsJson }), { maxLength: count })
    .map((calls) =>
      calls.map((call, index) => ({ type: 'tool-call', id: `call_${index}`, ...call })),
    );
}

/** Reasoning, then one text, then calls: the order that chat can say. */
export const generation: fc.Arbitrary<Generation> = fc
  .record({
    reasoning: fc.option(reasoning, { nil: undefined }),
    text: fc.option(text, { nil: undefined }),
    calls: callsNamed(3),
    usage,
    cut: fc.boolean(),
  })
  .map(({ reasoning: thought, text: said, calls, usage: counts, cut }) => {
    const finish: FinishReason = {
      kind: cut ? 'length' : calls.length > 0 ? 'tool-calls' : 'stop',
    };
    return {
      id: 'id_1',
      model: 'model',
      parts: [
        ...(thought === undefined ? [] : [thought]),
        ...(said === undefined ? [] : [{ type: 'text', text: said } as const]),
        ...calls,
      ],
      finish,
      usage: counts,
    };
  });

const tool: fc.Arbitrary<Tool> = fc.record(
  {
    name,
    description: text,
    schema: fc.constantFrom<JsonObject>(
      { type: 'object', properties: {} },
      { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] },
      {
        type: 'object',
        properties: { $ref: { $ref: '#/$defs/b' } },
        $defs: { b: { type: 'null' } },
      },
    ),
  },
  { requiredKeys: ['name', 'schema'], noNullPrototype: true },
);

const textPart: fc.Arbitrary<Part> = text.map((said) => ({ type: 'text', text: said }));

const imagePart: fc.Arbitrary<Part> = fc
  .tuple(
    // Image data must begin as an image of its type does (B59, D4).
    fc.constantFrom(['image/png', 'iVBORw0KGgoA'] as const, ['image/jpeg', '/9j/'] as const),
    fc.base64String({ minLength: 16, maxLength: 40 }),
  )
  .map(([[mediaType, beginning], data]) => ({
    type: 'media',
    kind: 'image',
    mediaType,
    source: { base64: `${beginning}${data}` },
  }));

/** A user turn; several texts stay several parts. */
const userTurn: fc.Arbitrary<Turn> = fc
  .array(fc.oneof({ weight: 3, arbitrary: textPart }, imagePart), { minLength: 1, maxLength: 3 })
  .map((parts) => ({ role: 'user', parts }));

/** An exchange: the model speaks or calls, results follow their calls, the user goes on. */
const exchange: fc.Arbitrary<readonly Turn[]> = fc
  .record({
    said: fc.option(text, { nil: undefined }),
    calls: callsNamed(2),
    result: text,
    next: userTurn,
  })
  .map(({ said, calls, result, next }) => {
    const parts: Part[] = [];
    if (said !== undefined || calls.length === 0) parts.push({ type: 'text', text: said ?? 'ok' });
    parts.push(...calls);
    const results = calls.map((call): Part => ({
      type: 'tool-result',
      callId: call.id,
      parts: [{ type: 'text', text: `${result} of ${call.id}` }],
      failed: false,
    }));
    return [
      { role: 'assistant', parts },
      { role: 'user', parts: [...results, ...next.parts] },
    ];
  });

/** Call ids are unique in a conversation. */
function withUniqueIds(turns: readonly Turn[]): readonly Turn[] {
  return turns.map((turn, at) => ({
    ...turn,
    parts: turn.parts.map((part): Part => {
      if (part.type === 'tool-call') return { ...part, id: `${part.id}_${at}` };
      if (part.type === 'tool-result') return { ...part, callId: `${part.callId}_${at - 1}` };
      return part;
    }),
  }));
}

export const conversation: fc.Arbitrary<Conversation> = fc
  .record({
    system: fc.array(textPart, { maxLength: 2 }),
    first: userTurn,
    exchanges: fc.array(exchange, { maxLength: 3 }),
    tools: fc.uniqueArray(tool, { selector: (each) => each.name, maxLength: 3 }),
    sampling: fc.record(
      {
        temperature: fc.constantFrom(0, 0.5, 1),
        topP: fc.constantFrom(0.1, 1),
        stop: fc.array(name, { minLength: 1, maxLength: 4 }),
      },
      { requiredKeys: [], noNullPrototype: true },
    ),
    cap: fc.integer({ min: 1, max: 10_000 }),
    choice: fc.constantFrom('auto', 'none', 'required', undefined),
    parallel: fc.constantFrom(false, undefined),
    endUser: fc.option(name, { nil: undefined }),
  })
  .map(({ system, first, exchanges, tools, sampling, cap, choice, parallel, endUser }) => {
    const withTools = tools.length > 0;
    return {
      system,
      turns: withUniqueIds([first, ...exchanges.flat()]),
      tools,
      ...(withTools && choice !== undefined ? { toolChoice: { type: choice } } : {}),
      ...(withTools && parallel !== undefined ? { parallelTools: parallel } : {}),
      sampling: { ...sampling, maxOutputTokens: cap },
      output: { type: 'text' },
      ...(endUser === undefined ? {} : { endUser }),
      extras: {},
    };
  });
