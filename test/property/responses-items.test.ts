/** what only the Responses format can say comes back as it was said, through its writer and its reader. */
import * as fc from 'fast-check';
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Conversation, Part, Tool } from '../../src/core/conversation.ts';
import { collect, replay, type Generation } from '../../src/core/generation.ts';
import { tryParse } from '../../src/json/parse.ts';
import { text, usage } from './arbitraries.ts';
import { check } from './checking.ts';
import { answerContext, halves, readEvents } from './dialect-halves.ts';
import { framesIn } from './frames.ts';

const dialect = 'openai-responses';
const both = halves.responses;
const blob = fc.base64String({ minLength: 8, maxLength: 40 });

function tool(name: string, extras: NonNullable<Tool['extras']>[typeof dialect]): Tool {
  return { name, schema: {}, ...(extras === undefined ? {} : { extras: { [dialect]: extras } }) };
}

/** A function, a free text, and one of each in a namespace. */
const tools: readonly Tool[] = [
  tool('plain', undefined),
  { ...tool('free', { kind: 'custom' }), freeText: true },
  tool('space__inner', { namespace: 'space', name: 'inner' }),
  { ...tool('space__text', { kind: 'custom', namespace: 'space', name: 'text' }), freeText: true },
];
const conversation: Conversation = {
  system: [],
  turns: [],
  tools,
  sampling: {},
  output: { type: 'text' },
  extras: {},
};

const citation = fc.webUrl().map((url) => ({
  url,
  title: 'T',
  native: { dialect: 'openai-chat' as const, value: {} },
}));
const said: fc.Arbitrary<Part> = fc.oneof(
  text.map((each): Part => ({ type: 'text', text: each })),
  fc
    .record({ text, citations: fc.array(citation, { minLength: 1, maxLength: 2 }) })
    .map((part): Part => ({ type: 'text', ...part })),
  text.map((each): Part => ({ type: 'refusal', text: each })),
);
const thought: fc.Arbitrary<Part> = fc.oneof(
  fc.record({ text, signature: blob }).map((part): Part => ({ type: 'reasoning', ...part })),
  blob.map((encrypted): Part => ({ type: 'reasoning', text: '', encrypted })),
);
const calls: fc.Arbitrary<readonly Part[]> = fc
  .array(fc.record({ tool: fc.constantFrom(...tools), value: text }), { maxLength: 4 })
  .map((made) =>
    made.map(({ tool: { name, freeText }, value }, i): Part => ({
      type: 'tool-call',
      id: `call_${i}`,
      name,
      argumentsJson: JSON.stringify(freeText === true ? { input: value } : { a: value }),
    })),
  );
const generations: fc.Arbitrary<Generation> = fc
  .record({
    thought: fc.option(thought, { nil: undefined }),
    said: fc.option(said, { nil: undefined }),
    calls,
    usage,
  })
  .map(({ thought: first, said: second, calls: rest, usage: counts }) => ({
    id: 'resp_1',
    model: 'model',
    parts: [
      ...(first === undefined ? [] : [first]),
      ...(second === undefined ? [] : [second]),
      ...rest,
    ],
    finish: { kind: rest.length > 0 ? 'tool-calls' : 'stop' },
    usage: counts,
  }));

/** By meaning: names as the client knows them; an encrypted thought is what vouches for an empty one. */
function meaning(part: Part): unknown {
  switch (part.type) {
    case 'text':
      return [part.type, part.text, (part.citations ?? []).map(({ url }) => url)];
    case 'refusal':
      return [part.type, part.text];
    case 'reasoning':
      return [part.type, part.text, part.signature ?? part.encrypted];
    case 'tool-call': {
      const known = tools.find(({ name }) => name === part.name)?.extras?.[dialect];
      const { kind, namespace, name = part.name } = { ...part.extras?.[dialect], ...known };
      return [
        part.type,
        part.id,
        kind ?? 'function',
        namespace,
        name,
        tryParse(part.argumentsJson),
      ];
    }
    default:
      return part;
  }
}

function meaningOf(generation: Generation | undefined): unknown {
  return generation && [generation.parts.map(meaning), generation.finish.kind];
}

test('R-78 collect(read(write(replay(g)))) = g with every kind of call, refusals, sources and sealed reasoning', (context) => {
  check(context, generations, (whole) => {
    const writer = both.client.streamWriter({ ...answerContext(), conversation });
    const written =
      replay(whole)
        .map((event) => writer.write(event))
        .join('') + writer.end();
    const events = readEvents(both, framesIn(Buffer.from(written), []));
    assert.deepEqual(meaningOf(collect(events)), meaningOf(whole), written);
  });
});

test('R-78 the same for a document', (context) => {
  check(context, generations, (whole) => {
    const body = both.client.writeResponse(whole, { ...answerContext(), conversation });
    assert.deepEqual(meaningOf(both.upstream.readResponse(body, both.traits)), meaningOf(whole));
  });
});
