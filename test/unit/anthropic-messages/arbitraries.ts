/** Random answers and questions that this dialect can hold. */
import * as fc from 'fast-check';
import type {
  Conversation,
  Part,
  ReasoningPart,
  Tool,
  Turn,
} from '../../../src/core/conversation.ts';
import type { JsonObject } from '../../../src/json/value.ts';
import { replay, type Generation, type GenerationEvent } from '../../../src/core/generation.ts';

const character = fc.constantFrom(
  ...'abc XYZ 019 .,:;{}[]"\\/<>'.split(''),
  '\n',
  '\r',
  '\u2028',
  'é',
  '你',
  '🦀',
  '\u0000',
);

/** Text that is not white space alone. */
const text = fc.string({ unit: character, maxLength: 24 }).map((words) => `${words}.`);
const name = fc.stringMatching(/^[a-z][a-zA-Z0-9_-]{0,12}$/);
/**
 * Keys need no escapes in JSON: V8 13.6 (Node 24) takes an escaped key for another one when an object
 * of the same shape had a key that equals its escaped spelling, in texts beyond latin-1.
 */
const key = fc.string({ unit: fc.constantFrom(...'abc XYZ 019.{}[]:,é你🦀'), maxLength: 6 });
const object: fc.Arbitrary<JsonObject> = fc.dictionary(
  key,
  fc.oneof(
    fc.string({ unit: character, maxLength: 8 }),
    fc.integer(),
    fc.boolean(),
    fc.constant(null),
  ),
  { maxKeys: 4, noNullPrototype: true },
);
const argumentsJson = object.map((value) => JSON.stringify(value));

const proof = fc.base64String({ minLength: 4, maxLength: 24 });
const reasoning: fc.Arbitrary<ReasoningPart> = fc.oneof(
  fc.tuple(text, proof).map(([words, signature]): ReasoningPart => ({
    type: 'reasoning',
    text: words,
    signature,
  })),
  proof.map((signature): ReasoningPart => ({ type: 'reasoning', text: '', signature })),
  proof.map((encrypted): ReasoningPart => ({ type: 'reasoning', text: '', encrypted })),
);

const citation = object.map((value) => ({
  native: { dialect: 'anthropic-messages' as const, value: { ...value, type: 'char_location' } },
}));

const textPart: fc.Arbitrary<Part> = fc
  .record({ text, citations: fc.array(citation, { maxLength: 2 }) })
  .map(({ text: words, citations }) => ({
    type: 'text',
    text: words,
    ...(citations.length === 0 ? {} : { citations }),
  }));

const opaque: fc.Arbitrary<Part> = fc
  .oneof(
    object.map((input) => ({
      type: 'server_tool_use',
      id: 'srvtoolu_1',
      name: 'web_fetch',
      input,
    })),
    object.map((content) => ({ type: 'web_fetch_tool_result', tool_use_id: 's', content })),
    text.map((content) => ({ type: 'compaction', content })),
  )
  .map((value) => ({ type: 'opaque', dialect: 'anthropic-messages', value }));

function calls(name_: fc.Arbitrary<string>): fc.Arbitrary<Part> {
  return fc
    .record({ name: name_, argumentsJson })
    .map((call) => ({ type: 'tool-call', id: '', ...call }));
}

/** Ids are unique in an answer and in a conversation. */
function withIds(parts: readonly Part[], prefix: string): readonly Part[] {
  return parts.map((part, i) =>
    part.type === 'tool-call' ? { ...part, id: `${prefix}${i}` } : part,
  );
}

/** Parts of an answer, in any order. */
export const parts: fc.Arbitrary<readonly Part[]> = fc
  .array(fc.oneof(textPart, reasoning, calls(name), opaque), { maxLength: 5 })
  .map((all) => withIds(all, 'toolu_'));

const count = fc.nat({ max: 100_000 });

export const generation: fc.Arbitrary<Generation> = fc
  .record({ parts, fresh: count, read: count, write: count, output: count, reasoned: count })
  .map(({ parts: all, fresh, read, write, output, reasoned }) => {
    const hasCall = all.some((part) => part.type === 'tool-call');
    return {
      id: 'msg_1',
      model: 'my-model',
      parts: all,
      finish: hasCall ? { kind: 'tool-calls', raw: 'tool_use' } : { kind: 'stop', raw: 'end_turn' },
      usage: {
        freshInputTokens: fresh,
        cacheReadTokens: read,
        cacheWriteTokens: write,
        outputTokens: output + reasoned,
        reasoningTokens: reasoned,
      },
    };
  });

/** The events of one part, in fragments of some characters. */
function partEvents(part: Part, index: number, size: number): readonly GenerationEvent[] {
  const deltas = (field: 'text' | 'arguments' | 'signature', value: string): GenerationEvent[] =>
    (value.match(new RegExp(`[^]{1,${size}}`, 'gu')) ?? []).map((delta) => ({
      type: 'part-delta',
      index,
      field,
      delta,
    }));
  const begin = (started: Part): GenerationEvent => ({ type: 'part-start', index, part: started });
  const end: GenerationEvent = { type: 'part-end', index };
  switch (part.type) {
    case 'text': {
      const { citations = [], ...plain } = part;
      const cited = citations.map((each): GenerationEvent => ({
        type: 'part-citation',
        index,
        citation: each,
      }));
      return [begin({ ...plain, text: '' }), ...cited, ...deltas('text', part.text), end];
    }
    case 'tool-call':
      return [
        begin({ ...part, argumentsJson: '' }),
        ...deltas('arguments', part.argumentsJson),
        end,
      ];
    case 'reasoning': {
      if (part.encrypted !== undefined) return [begin(part), end];
      const { signature = '', ...open } = part;
      const signed: GenerationEvent = {
        type: 'part-delta',
        index,
        field: 'signature',
        delta: signature,
      };
      return [begin({ ...open, text: '' }), ...deltas('text', part.text), signed, end];
    }
    default:
      return [begin(part), end];
  }
}

/** A generation as a stream whose parts are in fragments and mixed, as `picks` decides. */
export function interleaved(
  whole: Generation,
  size: number,
  picks: readonly number[],
): readonly GenerationEvent[] {
  const queues = whole.parts.map((part, index) => [...partEvents(part, index, size)]);
  const frame = replay({ ...whole, parts: [] });
  const mixed: GenerationEvent[] = [];
  let begun = 0;
  for (let step = 0; queues.some((queue) => queue.length > 0); step++) {
    // A part begins after the one before it has begun; otherwise any may speak.
    const open = queues
      .map((queue, index) => ({ queue, index }))
      .filter(({ queue, index }) => queue.length > 0 && index <= begun);
    const chosen = open[(picks[step % Math.max(1, picks.length)] ?? 0) % open.length];
    const event = chosen?.queue.shift();
    if (chosen === undefined || event === undefined) break;
    mixed.push(event);
    if (chosen.index === begun) begun += 1;
  }
  return [...frame.slice(0, 1), ...mixed, ...frame.slice(1)];
}

const image: fc.Arbitrary<Part> = fc
  // Image data must begin as an image does (B59).
  .record({
    base64: fc.base64String({ minLength: 4, maxLength: 16 }).map((data) => `iVBORw0KGgoA${data}`),
  })
  .map((source) => ({ type: 'media', kind: 'image', mediaType: 'image/png', source }));

const mark = fc.constantFrom(undefined, undefined, undefined, {}, { ttl: '1h' }, { ttl: '5m' });

function marked(part: fc.Arbitrary<Part>): fc.Arbitrary<Part> {
  return fc
    .tuple(part, mark)
    .map(([value, cacheUntilHere]) =>
      cacheUntilHere === undefined ? value : { ...value, cacheUntilHere },
    );
}

const userParts = fc.array(marked(fc.oneof(textPart, image)), { minLength: 1, maxLength: 3 });

/** An assistant turn and the user turn behind it, with a result for each call. */
const exchange: fc.Arbitrary<readonly Turn[]> = fc
  .record({
    thought: fc.array(reasoning, { maxLength: 1 }),
    said: textPart,
    called: fc.array(calls(name), { maxLength: 2 }),
    results: fc.array(fc.array(fc.oneof(textPart, image), { maxLength: 2 }), {
      minLength: 2,
      maxLength: 2,
    }),
    failed: fc.boolean(),
    next: userParts,
    note: fc.option(text, { nil: undefined }),
  })
  .map(({ thought, said, called, results, failed, next, note }) => [
    { role: 'assistant', parts: [...thought, said, ...called] },
    {
      role: 'user',
      parts: [
        ...called.map((_, i): Part => ({
          type: 'tool-result',
          callId: String(i),
          parts: plainResult(results[i] ?? []),
          failed,
        })),
        ...next,
      ],
    },
    ...(note === undefined
      ? []
      : [{ role: 'system', parts: [{ type: 'text', text: note }] } as const]),
  ]);

/** Citations of results are the native service's own business. */
function plainResult(all: readonly Part[]): readonly Part[] {
  return all.map((part) => (part.type === 'text' ? { type: 'text', text: part.text } : part));
}

/** Gives the calls of a conversation ids of their own, and their results the same. */
function numbered(turns: readonly Turn[]): readonly Turn[] {
  let ids: readonly string[] = [];
  return turns.map((turn, at) => {
    const named = withIds(turn.parts, `c${at}_`);
    if (turn.role === 'assistant') {
      ids = named.flatMap((part) => (part.type === 'tool-call' ? [part.id] : []));
    }
    return {
      ...turn,
      parts: named.map((part) =>
        part.type === 'tool-result' ? { ...part, callId: ids[Number(part.callId)] ?? '' } : part,
      ),
    };
  });
}

const tool: fc.Arbitrary<Tool> = fc.record(
  {
    name,
    description: text,
    schema: object.map((extra): JsonObject => ({ ...extra, type: 'object', properties: {} })),
    cacheUntilHere: fc.constantFrom({}, { ttl: '1h' }),
    extras: fc.constant({ 'anthropic-messages': { eager_input_streaming: true } }),
  },
  { requiredKeys: ['name', 'schema'] },
);

/** A conversation in the form that the request reader gives. */
export const conversation: fc.Arbitrary<Conversation> = fc
  .record({
    system: fc.array(marked(text.map((words) => ({ type: 'text' as const, text: words }))), {
      maxLength: 3,
    }),
    first: userParts,
    exchanges: fc.array(exchange, { maxLength: 3 }),
    tools: fc.uniqueArray(tool, { selector: (each) => each.name, maxLength: 3 }),
    choice: fc.constantFrom('auto' as const, 'none' as const, 'required' as const),
    cap: fc.integer({ min: 1, max: 100_000 }),
    temperature: fc.constantFrom(undefined, 0, 0.5, 1),
    stop: fc.array(name, { maxLength: 3 }),
    reasoning: fc.constantFrom(
      undefined,
      { effort: 'none' as const },
      { adaptive: true },
      { adaptive: true, effort: 'low' as const, hidden: true },
    ),
    endUser: fc.option(name, { nil: undefined }),
    json: fc.boolean(),
  })
  .map((made) => ({
    system: made.system,
    turns: numbered([{ role: 'user', parts: made.first }, ...made.exchanges.flat()]),
    tools: made.tools,
    ...(made.tools.length === 0 ? {} : { toolChoice: { type: made.choice } }),
    sampling: {
      maxOutputTokens: made.cap,
      ...(made.temperature === undefined ? {} : { temperature: made.temperature }),
      ...(made.stop.length === 0 ? {} : { stop: made.stop }),
    },
    output: made.json
      ? { type: 'json', schema: { type: 'object', properties: {}, additionalProperties: false } }
      : { type: 'text' },
    ...(made.reasoning === undefined ? {} : { reasoning: made.reasoning }),
    ...(made.endUser === undefined ? {} : { endUser: made.endUser }),
    extras: { 'anthropic-messages': { service_tier: 'auto' } },
  }));
