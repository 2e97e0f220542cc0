/** D3: a part of an answer that nothing knows, or that has no place in the client's API, is noted and never lost in silence. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { tryParseObject } from '../../src/json/parse.ts';
import { isArray, isObject, type JsonObject } from '../../src/json/value.ts';
import {
  collect,
  type Generation,
  type GenerationEvent,
  replay,
} from '../../src/core/generation.ts';
import { NoteList } from '../../src/core/notes.ts';
import { answerContext, halves, readEvents, upstreamHalves } from '../property/dialect-halves.ts';
import { framesIn } from '../property/frames.ts';
import { pairs, type UpstreamDialect } from '../support/dialects.ts';
import type { AnyDialect } from '../support/reading.ts';
import { chatDocument } from '../upstream/chat.ts';
import { converseDocument } from '../upstream/converse.ts';
import { responsesEvents, textItem } from '../upstream/responses.ts';

const picture = { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } };
const text = { type: 'text', text: 'Look:' };

function chatAnswer(message: JsonObject): JsonObject {
  const whole = chatDocument({ text: 'Look:' });
  return { ...whole, choices: [{ index: 0, message, finish_reason: 'stop' }] };
}

function geminiAnswer(part: JsonObject): JsonObject {
  const content = { role: 'model', parts: [{ text: 'Look:' }, part] };
  return { candidates: [{ index: 0, content, finishReason: 'STOP' }], modelVersion: 'm' };
}

function claudeAnswer(block: JsonObject): JsonObject {
  const own = { id: 'msg_1', type: 'message', role: 'assistant', model: 'm' };
  const usage = { input_tokens: 1, output_tokens: 1 };
  return { ...own, content: [text, block], stop_reason: 'end_turn', stop_sequence: null, usage };
}

function responsesAnswer(...output: readonly JsonObject[]): JsonObject {
  return { id: 'resp_1', object: 'response', status: 'completed', model: 'm', output };
}

const madeUp = { type: 'made_up', secret: 1 };
const item = textItem('Look:');
const mixed = {
  ...item,
  content: [{ type: 'output_text', text: 'Look:', annotations: [] }, madeUp],
};

const answers: { readonly [D in UpstreamDialect]: { readonly [name: string]: JsonObject } } = {
  chat: {
    'pictures beside the text': chatAnswer({
      role: 'assistant',
      content: 'Look:',
      images: [picture],
    }),
    'an address of a picture': chatAnswer({
      role: 'assistant',
      content: 'Look:',
      images: ['https://a.example/p.png', null, ''],
    }),
    'something else for pictures': chatAnswer({ role: 'assistant', content: 'Look:', images: 1 }),
    'a picture among the parts': chatAnswer({ role: 'assistant', content: [text, picture] }),
    'a part that nothing knows': chatAnswer({ role: 'assistant', content: [text, madeUp] }),
  },
  messages: {
    'a block that nothing knows': claudeAnswer(madeUp),
    'a picture': claudeAnswer({ type: 'image', source: { type: 'url', url: 'https://a.example' } }),
  },
  responses: {
    'an item that nothing knows': responsesAnswer(item, { ...madeUp, type: 'made_up_call' }),
    'a part that nothing knows': responsesAnswer(mixed),
  },
  gemini: {
    'a picture': geminiAnswer({ inlineData: { mimeType: 'image/png', data: 'AAAA' } }),
    'a file': geminiAnswer({ fileData: { mimeType: 'image/png', fileUri: 'gs://a/b' } }),
    'a part that nothing knows': geminiAnswer({ madeUp: {} }),
  },
  converse: {
    'a picture': converseDocument({
      content: [{ text: 'Look:' }, { image: { format: 'png', source: { bytes: 'AAAA' } } }],
    }),
    'a block that nothing knows': converseDocument({
      content: [{ text: 'Look:' }, { madeUp: {} }],
    }),
  },
};

for (const { client, upstream } of pairs.filter((pair) => pair.client !== pair.upstream)) {
  for (const [name, answer] of Object.entries(answers[upstream])) {
    test(`D3 ${upstream} to ${client}: ${name} is noted`, () => {
      const { upstream: half, traits } = upstreamHalves[upstream];
      const notes = new NoteList();
      const context = { ...answerContext(), notes };
      const written = halves[client].client.writeResponse(
        half.readResponse(answer, traits),
        context,
      );
      assert.match(JSON.stringify(written), /Look:/);
      assert.match(whys(notes), /only its provider|generated media/);
    });
  }
}

function whys(notes: NoteList): string {
  return notes.all.map(({ why }) => why).join();
}

function eventsOf(
  upstream: UpstreamDialect,
  chunks: readonly JsonObject[],
): readonly GenerationEvent[] {
  const bytes = chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join('');
  return readEvents(upstreamHalves[upstream], framesIn(Buffer.from(bytes), []));
}

/** What is noted of a stream whose text is complete. */
function notedOf(client: AnyDialect, events: readonly GenerationEvent[]): string {
  const text = collect(events)?.parts.find((part) => part.type === 'text');
  assert.equal(text?.text, 'Look:');
  const notes = new NoteList();
  const writer = halves[client].client.streamWriter({ ...answerContext(), notes });
  for (const event of events) writer.write(event);
  writer.end();
  return whys(notes);
}

for (const [member, value] of [
  ['images', [picture]],
  ['images', ['https://a.example/p.png']],
  ['images', 1],
  ['content', [madeUp]],
] as const) {
  test(`D3 what a stream of chat completions has in ${member} is noted: ${JSON.stringify(value)}`, () => {
    const chunk = (delta: JsonObject, finish: string | null = null): JsonObject => ({
      id: 'chatcmpl-1',
      choices: [{ index: 0, delta, finish_reason: finish }],
    });
    const events = eventsOf('chat', [
      chunk({ role: 'assistant', content: 'Lo' }),
      chunk({ [member]: value }),
      chunk({ content: 'ok:' }),
      chunk({}, 'stop'),
    ]);
    for (const client of ['messages', 'responses'] as const) {
      assert.match(notedOf(client, events), /only its provider|generated media/);
    }
  });
}

test('D3 a part of a message that nothing knows is noted in a stream of responses, too', () => {
  const events = eventsOf('responses', responsesEvents([mixed]));
  for (const client of ['chat', 'messages'] as const) {
    assert.match(notedOf(client, events), /only its provider/);
  }
});

test('D3 pictures that are none fail no answer', () => {
  const { upstream, traits } = upstreamHalves.chat;
  for (const images of [null, [], {}, [null], '']) {
    const message = { role: 'assistant', content: 'Look:', images };
    const { parts } = upstream.readResponse(chatAnswer(message), traits);
    assert.deepEqual(parts, [{ type: 'text', text: 'Look:' }]);
  }
});

test('D3 the phase of a message is known where a part that nothing knows is its first', () => {
  const { upstream, traits } = upstreamHalves.responses;
  const [known] = mixed.content;
  assert.ok(known !== undefined);
  const { parts } = upstream.readResponse(
    responsesAnswer({ ...item, phase: 'commentary', content: [madeUp, known] }),
    traits,
  );
  const extras = { 'openai-responses': { phase: 'commentary' } };
  assert.deepEqual(
    parts.map((part) => [part.type, part.extras]),
    [
      ['opaque', extras],
      ['text', extras],
    ],
  );
});

test('D3 an empty text of a response gets no blank line in chat completions, and takes none from others', () => {
  const own = { extras: { 'openai-responses': { phase: 'final_answer' } } };
  const first = (text: string) => ({ type: 'text', text, ...own }) as const;
  const next = (text: string) => ({ type: 'text', text }) as const;
  for (const [parts, expected] of [
    [[first(''), first('B')], 'B'],
    [[first('A'), first(''), first('B')], 'A\n\nB'],
    [[first('A'), first(''), next('B')], 'A\n\nB'],
    [[first('A'), first('')], 'A'],
  ] as const) {
    const generation: Generation = { id: 'x', model: 'm', parts, finish: { kind: 'stop' } };
    const { writeResponse, streamWriter } = halves.chat.client;
    const whole = contentOf(writeResponse(generation, answerContext()), 'message');
    const writer = streamWriter(answerContext());
    const frames = framesIn(
      Buffer.from(
        replay(generation)
          .map((e) => writer.write(e))
          .join(''),
      ),
      [],
    );
    const pieces = frames.map(({ data }) => contentOf(tryParseObject(data ?? '') ?? {}, 'delta'));
    assert.deepEqual([whole, pieces.join('')], [expected, expected]);
    const turn = { role: 'assistant', parts } as const;
    const conversation = { ...emptyConversation, turns: [turn] };
    const { traits, upstream } = upstreamHalves.chat;
    const ask = { model: 'm', stream: false, traits, newId: (prefix: string) => prefix };
    const { messages } = upstream.writeRequest(conversation, ask, new NoteList());
    assert.deepEqual(messages, [{ role: 'assistant', content: expected }]);
  }
});

const emptyConversation = {
  system: [],
  tools: [],
  sampling: {},
  output: { type: 'text' },
  extras: {},
} as const;

/** Events of a document of Claude, each text in one piece. */
function claudeEvents(blocks: readonly JsonObject[]): readonly JsonObject[] {
  const message = { ...claudeAnswer(madeUp), content: [] };
  return [
    { type: 'message_start', message },
    ...blocks.flatMap((content_block, index) => [
      { type: 'content_block_start', index, content_block },
      { type: 'content_block_stop', index },
    ]),
    { type: 'message_delta', delta: { stop_reason: 'end_turn' } },
    { type: 'message_stop' },
  ];
}

test('D3 an unknown piece of a known block of Claude is noted once by its type, and no piece of an unknown block', () => {
  const notes = new NoteList();
  const { upstream, traits } = upstreamHalves.messages;
  const delta = (index: number) => ({
    type: 'content_block_delta',
    index,
    delta: { type: 'made_up_delta', words: 'lost' },
  });
  const [start = {}, first = {}, end = {}, second = {}, ...rest] = claudeEvents([text, madeUp]);
  const events = [start, first, delta(0), delta(0), end, second, delta(1), ...rest];
  const reader = upstream.streamReader(traits, notes);
  const bytes = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('');
  const read = framesIn(Buffer.from(bytes), []).flatMap((frame) => reader.read(frame));
  assert.equal(read.at(-1)?.type, 'finish');
  assert.deepEqual(notes.all, [
    {
      path: 'content_block_delta.delta.made_up_delta',
      what: 'lost',
      why: 'only its provider knows it',
    },
  ]);
});

test('D3 an upstream that makes up names cannot fill the notes, nor write into them', () => {
  const notes = new NoteList();
  const { upstream, traits } = upstreamHalves.chat;
  const reader = upstream.streamReader(traits, notes);
  for (let i = 0; i < 100; i += 1) {
    const name = `sk-${i}-a secret`;
    const data = JSON.stringify({ id: 'x', choices: [], [name]: 1 });
    reader.read({ bytes: Buffer.alloc(0), event: undefined, data });
  }
  assert.equal(notes.all.length, 20);
  assert.equal(notes.header(), '*: dropped, only its provider knows it');
});

/** The content of the only choice. */
function contentOf({ choices }: JsonObject, member: 'message' | 'delta'): string {
  const choice = isArray(choices) ? choices[0] : undefined;
  const holder = isObject(choice) ? choice[member] : undefined;
  const content = isObject(holder) ? holder['content'] : undefined;
  return typeof content === 'string' ? content : '';
}
