/** Single recordings and forms of streams of the Responses API (wire/responses.md §6.5, §7.4). */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Part } from '../../../src/core/conversation.ts';
import { GatewayError } from '../../../src/core/errors.ts';
import { collect, type Generation, type GenerationEvent } from '../../../src/core/generation.ts';
import { NoteList } from '../../../src/core/notes.ts';
import { readResponse } from '../../../src/dialects/openai-responses/answer/response.ts';
import { ResponsesStreamReader } from '../../../src/dialects/openai-responses/answer/stream-read.ts';
import type { JsonObject } from '../../../src/json/value.ts';
import { framesOf, leftOut, read, readText, recordedStream, wire } from './recorded.ts';

function generationOf(events: readonly JsonObject[]): Generation {
  const generation = collect(read(events));
  assert.ok(generation !== undefined);
  return generation;
}

function errorOf(events: readonly GenerationEvent[]): GatewayError {
  const last = events.at(-1);
  assert.equal(last?.type, 'error');
  return last.error;
}

function ofType<T extends Part['type']>(
  { parts }: Generation,
  type: T,
): readonly Extract<Part, { readonly type: T }>[] {
  return parts.filter((part): part is Extract<Part, { readonly type: T }> => part.type === type);
}

describe('single recordings', { skip: leftOut }, () => {
  test('R-65 ids that change with every event: one reasoning, one text, no id', () => {
    const generation = generationOf(recordedStream('github-copilot-id-rotation.1').events);
    assert.deepEqual(
      generation.parts.map((part) => part.type),
      ['reasoning', 'text'],
    );
    assert.equal(ofType(generation, 'reasoning')[0]?.extras, undefined);
  });

  test('R-66 reasoning from reasoning_text, a call from its end without deltas', () => {
    const generation = generationOf(recordedStream('lmstudio-tool-call.1').events);
    const [reasoning] = ofType(generation, 'reasoning');
    const [call] = ofType(generation, 'tool-call');
    assert.notEqual(reasoning?.text, '');
    assert.equal(reasoning?.extras?.['openai-responses']?.['raw'], true);
    assert.equal(call?.name, 'weather');
    assert.match(call.argumentsJson, /^\{.*\}$/);
  });

  test('R-67 a search of the provider: text with citations, one opaque item, no call', () => {
    const generation = generationOf(recordedStream('xai-web-search-tool.1').events);
    assert.equal(ofType(generation, 'opaque').length, 1);
    assert.equal(ofType(generation, 'tool-call').length, 0);
    assert.equal(ofType(generation, 'text')[0]?.citations?.length, 5);
    assert.equal(generation.usage?.webSearches, 1);
    assert.equal(generation.finish.kind, 'stop');
  });

  test('R-68 a failure in the stream: one error, before any content', () => {
    const events = read(recordedStream('openai-error.1').events);
    assert.deepEqual(
      events.map(({ type }) => type),
      ['start', 'error'],
    );
    assert.equal(errorOf(events).code, 'upstream_auth');
    assert.match(errorOf(events).detail ?? '', /quota/);
  });

  test('R-69 phases stay with their texts, and an index that is omitted is no harm', () => {
    const generation = generationOf(recordedStream('openai-phase.1').events);
    assert.deepEqual(
      ofType(generation, 'text').map((part) => part.extras?.['openai-responses']?.['phase']),
      ['commentary', 'final_answer'],
    );
  });

  test('R-70 calls that are wrapped into one are split where all of them were offered', () => {
    const { events } = recordedStream('parallel-tool-call-wrapper.1');
    const offering = (...names: string[]): readonly JsonObject[] =>
      events.map((event) => {
        const { response } = event;
        if (typeof response !== 'object') return event;
        const tools = names.map((name) => ({ type: 'function', name }));
        return { ...event, response: { ...(response as JsonObject), tools } };
      });
    const split = ofType(generationOf(offering('weather', 'cityAttractions')), 'tool-call');
    assert.deepEqual(
      split.map(({ id, name, argumentsJson }) => [id, name, argumentsJson]),
      [
        ['call_parallel_0', 'weather', '{"location":"San Francisco"}'],
        ['call_parallel_1', 'cityAttractions', '{"city":"Rome"}'],
      ],
    );
    for (const names of [['weather'], ['weather', 'parallel'], []]) {
      const passed = ofType(generationOf(offering(...names)), 'tool-call');
      assert.deepEqual(
        passed.map(({ name }) => name),
        ['parallel'],
      );
    }
  });

  test('R-83 pieces of a text with the id of their item are plain frames, and nothing else is', () => {
    for (const [name, arePlain] of [
      ['xai-web-search-tool.1', true],
      ['github-copilot-id-rotation.1', false],
    ] as const) {
      const reader = new ResponsesStreamReader();
      const { events } = recordedStream(name);
      const plain = framesOf(Buffer.from(wire(events))).filter((frame) => {
        reader.read(frame);
        return reader.plain;
      });
      const deltas = events.filter(({ type }) => type === 'response.output_text.delta');
      assert.ok(deltas.length > 50);
      assert.equal(plain.length, arePlain ? deltas.length : 0, name);
    }
  });
});

const response = {
  id: 'resp_1',
  object: 'response',
  model: 'm',
  status: 'in_progress',
  output: [],
};
const created = { type: 'response.created', response };
const item = {
  type: 'message',
  id: 'msg_1',
  role: 'assistant',
  status: 'in_progress',
  content: [],
};
const added = { type: 'response.output_item.added', output_index: 0, item };
const text = (delta: string, index = 0): JsonObject => ({
  type: 'response.output_text.delta',
  output_index: index,
  content_index: 0,
  item_id: 'msg_1',
  delta,
});
const ended = (type: string, more: JsonObject = {}): JsonObject => ({
  type: `response.${type}`,
  response: { ...response, status: type, ...more },
});

test('§5.3 a reason for an incomplete answer that no other dialect has is noted', () => {
  const noted = (more: JsonObject): readonly string[] => {
    const notes = new NoteList();
    const last = ended('incomplete', more);
    const reader = new ResponsesStreamReader(notes);
    for (const frame of framesOf(Buffer.from(wire([created, added, text('a'), last]))))
      reader.read(frame);
    const ofStream = notes.all.map(({ path }) => path);
    const ofDocument = new NoteList();
    readResponse(last['response'] as JsonObject, ofDocument);
    assert.deepEqual(
      ofDocument.all.map(({ path }) => path),
      ofStream,
    );
    return ofStream;
  };
  for (const reason of ['max_output_tokens', 'content_filter', 'length']) {
    assert.deepEqual(noted({ incomplete_details: { reason } }), []);
  }
  for (const more of [{}, { incomplete_details: { reason: 'steered' } }]) {
    assert.deepEqual(noted(more), ['incomplete_details.reason']);
  }
});

test('F60 §5.3 the ending: by its event, and with the reason that it names', () => {
  const kinds = (last: JsonObject): string =>
    generationOf([created, added, text('a'), last]).finish.kind;
  assert.equal(kinds(ended('completed')), 'stop');
  const cut = (reason: string): JsonObject =>
    ended('incomplete', { incomplete_details: { reason } });
  assert.equal(kinds(cut('max_output_tokens')), 'length');
  assert.equal(kinds(cut('content_filter')), 'content-filter');
  assert.equal(kinds(ended('incomplete')), 'length');
  const odd = { ...ended('incomplete'), response: { ...response, status: 'completed' } };
  assert.equal(kinds(odd), 'length');
});

test('R-15 a call that is cut off keeps what came of it', () => {
  const call = { type: 'function_call', id: 'fc_1', call_id: 'c1', name: 'f', arguments: '' };
  const events = [
    created,
    { ...added, item: call },
    { type: 'response.function_call_arguments.delta', output_index: 0, delta: '{"a":' },
    ended('incomplete', {
      incomplete_details: { reason: 'max_output_tokens' },
      output: [{ ...call, arguments: '{"a":', status: 'incomplete' }],
    }),
  ];
  const generation = generationOf(events);
  assert.equal(generation.finish.kind, 'length');
  assert.equal(ofType(generation, 'tool-call')[0]?.argumentsJson, '{"a":');
});

test('R-15 a free text at whose end the answer was cut has no end, in a stream and in a document', () => {
  const custom = (more: JsonObject): JsonObject => ({
    type: 'custom_tool_call',
    id: 'ctc_1',
    call_id: 'c1',
    name: 'patch',
    ...more,
  });
  const half = custom({ input: 'say "h', status: 'incomplete' });
  const begun = { ...added, item: custom({ input: '', status: 'in_progress' }) };
  const piece = {
    type: 'response.custom_tool_call_input.delta',
    output_index: 0,
    delta: 'say "h',
  };
  const done = { type: 'response.output_item.done', output_index: 0, item: half };
  const last = (type: string, item: JsonObject): JsonObject =>
    ended(type, {
      incomplete_details: type === 'completed' ? null : { reason: 'max_output_tokens' },
      output: [item],
    });
  const cut = last('incomplete', half);
  const { status: _status, ...unmarked } = half;
  const argumentsOf = (generation: Generation): string | undefined =>
    ofType(generation, 'tool-call')[0]?.argumentsJson;
  const streams = {
    'without its end': [begun, piece, cut],
    'with its end': [begun, piece, done, cut],
    'as its end alone': [done, cut],
    'in the last event alone': [cut],
    'without a status': [begun, piece, last('incomplete', unmarked)],
  };
  for (const [form, events] of Object.entries(streams)) {
    assert.equal(argumentsOf(generationOf([created, ...events])), '{"input":"say \\"h', form);
  }
  for (const item of [half, unmarked]) {
    const document = last('incomplete', item)['response'] as JsonObject;
    assert.equal(argumentsOf(readResponse(document)), '{"input":"say \\"h');
  }
  // What is called done before the cut is whole, and so is everything in an answer that is complete.
  const whole = { ...half, status: 'completed' };
  for (const events of [
    [begun, piece, { ...done, item: whole }, last('incomplete', whole)],
    [begun, piece, done, last('completed', half)],
  ]) {
    assert.equal(argumentsOf(generationOf([created, ...events])), '{"input":"say \\"h"}');
  }
});

test('R-26 a completed response that failed is an error', () => {
  const failed = ended('completed', { status: 'failed' });
  assert.equal(errorOf(read([created, failed])).code, 'upstream_unavailable');
  const error = { code: 'server_is_overloaded', message: 'Try later.' };
  assert.equal(errorOf(read([created, ended('completed', { error })])).code, 'overloaded');
});

test('§7.2 codes of failed responses are read as what they mean', () => {
  const codes: readonly (readonly [code: string, read: string])[] = [
    ['context_length_exceeded', 'context_overflow'],
    ['rate_limit_exceeded', 'rate_limited'],
    ['server_is_overloaded', 'overloaded'],
    ['slow_down', 'overloaded'],
    ['invalid_prompt', 'upstream_rejected'],
    ['failed_to_download_image', 'upstream_rejected'],
    ['server_error', 'upstream_unavailable'],
  ];
  for (const [code, expected] of codes) {
    const failed = ended('failed', { error: { code, message: 'No.' } });
    assert.equal(errorOf(read([created, failed])).code, expected, code);
    const nested = { type: 'error', error: { type: code, code, message: 'No.', param: null } };
    assert.equal(errorOf(read([created, nested, failed])).code, expected, code);
    const flat = { type: 'error', code, message: 'No.', param: null };
    assert.equal(errorOf(read([created, flat])).code, expected, code);
  }
});

test('R-73 the end mark of chat is no ending', () => {
  const seen = readText(`${wire([created, added, text('a')])}data: [DONE]\n\n`);
  assert.equal(errorOf(seen).code, 'stream_interrupted');
  assert.equal(errorOf(readText('')).code, 'upstream_invalid');
});

test('R-77 another dialect at this address is named', () => {
  const chunk = { id: 'x', object: 'chat.completion.chunk', choices: [{ index: 0, delta: {} }] };
  const seen = readText(`data: ${JSON.stringify(chunk)}\n\n`);
  assert.match(errorOf(seen).message, /chat completions/);
  assert.throws(() => readResponse({ choices: [] }), /chat completions/);
  assert.throws(() => readResponse({ ...response, status: 'queued' }), /before it had finished/);
  assert.throws(() => readResponse({ ...response, status: 'failed' }), GatewayError);
  assert.throws(() => readResponse({}), /without an output/);
  assert.equal(errorOf(readText('<html>')).code, 'upstream_invalid');
});

test('F59 items may be open at once, and are distinguished by their index', () => {
  const call = (index: number, name: string): JsonObject => ({
    type: 'response.output_item.added',
    output_index: index,
    item: { type: 'function_call', call_id: `call_${name}`, name, arguments: '' },
  });
  const piece = (index: number, delta: string): JsonObject => ({
    type: 'response.function_call_arguments.delta',
    output_index: index,
    delta,
  });
  const generation = generationOf([
    created,
    call(0, 'a'),
    call(1, 'b'),
    piece(1, '{"b"'),
    piece(0, '{"a"'),
    piece(1, ':2}'),
    piece(0, ':1}'),
    ended('completed'),
  ]);
  assert.deepEqual(
    ofType(generation, 'tool-call').map(({ name, argumentsJson }) => [name, argumentsJson]),
    [
      ['a', '{"a":1}'],
      ['b', '{"b":2}'],
    ],
  );
  assert.equal(generation.finish.kind, 'tool-calls');
});

test('F61 another text at the end than was streamed is an error', () => {
  const done = { type: 'response.output_text.done', output_index: 0, content_index: 0, text: 'b' };
  assert.throws(() => read([created, added, text('a'), done]), GatewayError);
  const other = { ...created, response: { ...response, id: 'resp_2' } };
  assert.equal(errorOf(read([created, added, text('a'), other])).code, 'upstream_invalid');
});

test('R-71 a free text in pieces is one argument', () => {
  const call = { type: 'custom_tool_call', id: 'ctc_1', call_id: 'c', name: 'sql', input: '' };
  const piece = (delta: string): JsonObject => ({
    type: 'response.custom_tool_call_input.delta',
    output_index: 0,
    delta,
  });
  const generation = generationOf([
    created,
    { ...added, item: call },
    piece('a "quote"\n'),
    piece('\ud83d'),
    piece('\ude00'),
    {
      type: 'response.output_item.done',
      output_index: 0,
      item: { ...call, input: 'a "quote"\n😀' },
    },
    ended('completed'),
  ]);
  const [part] = ofType(generation, 'tool-call');
  assert.deepEqual(JSON.parse(part?.argumentsJson ?? ''), { input: 'a "quote"\n😀' });
});

test('F59 a call that never gets a name is an error', () => {
  const piece = { type: 'response.function_call_arguments.delta', output_index: 0, delta: '{}' };
  assert.throws(() => read([created, piece, ended('completed')]), /without a name/);
});

test('summaries in parts are one text, and raw reasoning beside them is not told twice', () => {
  const delta = (part: number, words: string): JsonObject => ({
    type: 'response.reasoning_summary_text.delta',
    output_index: 0,
    summary_index: part,
    delta: words,
  });
  const reasoning = { type: 'reasoning', id: 'rs_1', summary: [] };
  const raw = {
    type: 'response.reasoning_text.delta',
    output_index: 0,
    content_index: 0,
    delta: 'x',
  };
  const summary = ['one', 'two'].map((words) => ({ type: 'summary_text', text: words }));
  const done = { ...reasoning, summary, encrypted_content: 'blob' };
  const events = [
    created,
    { ...added, item: { ...reasoning, encrypted_content: 'unfinished' } },
    delta(0, 'one'),
    raw,
    delta(1, 'two'),
    { type: 'response.output_item.done', output_index: 0, item: done },
    ended('completed', { output: [done] }),
  ];
  const expected = readResponse({ ...response, status: 'completed', output: [done] });
  assert.deepEqual(generationOf(events), expected);
  assert.deepEqual(expected.parts, [
    {
      type: 'reasoning',
      text: 'one\n\ntwo',
      signature: 'blob',
      extras: { 'openai-responses': { id: 'rs_1' } },
    },
  ]);
});
