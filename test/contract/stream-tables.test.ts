/** The tables of translation.md §9.1 and §9.2, row by row: what each event of an upstream becomes. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { JsonObject } from '../../src/json/value.ts';
import { tryParseObject } from '../../src/json/parse.ts';
import { framesOf, listAt, objectAt, type Dialect } from '../support/reading.ts';
import { requestBody } from '../support/requests.ts';
import { ask, startRig, type Rig } from '../support/rig.ts';
import { chatChunk, chatDone, chatFrame, chatUsageChunk } from '../upstream/chat.ts';
import {
  blockDelta,
  blockStart,
  blockStop,
  messageDelta,
  messagesFrame,
  messageStart,
  messageStop,
  textBlock,
} from '../upstream/messages.ts';
import type { Piece } from '../upstream/scripted.ts';

let rig: Rig;
before(async () => {
  rig = await startRig();
});
after(() => rig.stop());

/** The data of the client's frames. */
async function play(client: Dialect, frames: readonly string[]): Promise<readonly JsonObject[]> {
  return playPieces(client, [frames.join('')]);
}

/** The same where the end of the frames is a failure: it comes once the client has the first content. */
async function playFailure(frames: readonly string[]): Promise<readonly JsonObject[]> {
  const began = Promise.withResolvers<void>();
  const [early, late] = [frames.slice(0, 2), frames.slice(2)].map((some) => some.join(''));
  return playPieces('messages', [early ?? '', began.promise, late ?? ''], began.resolve);
}

async function playPieces(
  client: Dialect,
  body: readonly Piece[],
  onData?: () => void,
): Promise<readonly JsonObject[]> {
  const { model } = rig.play(client === 'chat' ? 'messages' : 'chat', { body });
  const sending = onData === undefined ? {} : { onData };
  const reply = await ask(rig, client, requestBody(client, { model, stream: true }), sending);
  return framesOf(reply.text).map(({ data }) => tryParseObject(data) ?? { end: data });
}

const deltasOf = (chunks: readonly JsonObject[]): readonly JsonObject[] =>
  chunks
    .flatMap((chunk) => listAt(chunk, 'choices'))
    .map((choice) => objectAt(choice, 'delta'))
    .filter((delta) => Object.keys(delta).length > 0);

const onChat = async (...events: readonly JsonObject[]): Promise<readonly JsonObject[]> =>
  play(
    'chat',
    [messageStart(), ...events, messageDelta('end_turn'), messageStop].map((event) =>
      messagesFrame(event),
    ),
  );

const toolStart = (input: JsonObject): JsonObject =>
  blockStart(0, { type: 'tool_use', id: 'toolu_1', name: 'f', input });
const argumentsOf = (chunks: readonly JsonObject[]): string =>
  deltasOf(chunks)
    .flatMap((delta) => listAt(delta, 'tool_calls'))
    .map((call) => objectAt(call, 'function')['arguments'] ?? '')
    .join('');

describe('§9.1 messages events to chat chunks', () => {
  test('§9.1 message_start: the role, once, in the first chunk', async () => {
    const deltas = deltasOf(await onChat(...textBlock(0, 'Hi')));
    assert.equal(deltas[0]?.['role'], 'assistant');
    assert.equal(deltas.filter((delta) => delta['role'] !== undefined).length, 1);
  });

  test('§9.1 content_block_start with text', async () => {
    const chunks = await onChat(blockStart(0, { type: 'text', text: 'Hi' }), blockStop(0));
    assert.equal(
      deltasOf(chunks)
        .map((delta) => delta['content'] ?? '')
        .join(''),
      'Hi',
    );
  });

  test('§9.1 redacted_thinking: an entry of reasoning_details', async () => {
    const redacted = { type: 'redacted_thinking', data: 'c2VjcmV0' };
    const chunks = await onChat(blockStart(0, redacted), blockStop(0), ...textBlock(1, 'Hi'));
    const [detail] = deltasOf(chunks).flatMap((delta) => listAt(delta, 'reasoning_details'));
    assert.deepEqual([detail?.['type'], detail?.['data']], ['reasoning.encrypted', 'c2VjcmV0']);
  });

  test('§9.1 tool_use without arguments totals {}', async () => {
    assert.equal(argumentsOf(await onChat(toolStart({}), blockStop(0))), '{}');
    const empty = blockDelta(0, { type: 'input_json_delta', partial_json: '' });
    assert.equal(argumentsOf(await onChat(toolStart({}), empty, blockStop(0))), '{}');
  });

  test('§9.1 the input of a start holds where no delta comes', async () => {
    assert.equal(argumentsOf(await onChat(toolStart({ a: 1 }), blockStop(0))), '{"a":1}');
    const delta = blockDelta(0, { type: 'input_json_delta', partial_json: '{"a":2}' });
    assert.equal(argumentsOf(await onChat(toolStart({ a: 1 }), delta, blockStop(0))), '{"a":2}');
  });

  test('§9.1 server tools and their results are hidden', async () => {
    const call = { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: {} };
    const result = { type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1', content: [] };
    const chunks = await onChat(
      blockStart(0, call),
      blockDelta(0, { type: 'input_json_delta', partial_json: '{"query":"q"}' }),
      blockStop(0),
      blockStart(1, result),
      blockStop(1),
      ...textBlock(2, 'Hi'),
    );
    assert.ok(!JSON.stringify(chunks).includes('srvtoolu_1'));
    assert.ok(!deltasOf(chunks).some((delta) => 'tool_calls' in delta));
  });

  test('§9.1 several message_delta: counts are overwritten where they are not null', async () => {
    const nulls = { input_tokens: null, output_tokens: 7, cache_read_input_tokens: null };
    const chunks = await onChat(
      ...textBlock(0, 'Hi'),
      messageDelta(null, { input_tokens: 9, output_tokens: 3, cache_read_input_tokens: 4 }),
      { type: 'message_delta', delta: {}, usage: nulls },
      messageDelta('max_tokens', { output_tokens: 8 }),
    );
    const usage = objectAt(chunks.at(-2) ?? {}, 'usage');
    // The row's own message_delta, behind these, is complete and comes last.
    assert.equal(usage['completion_tokens'], 5);
    assert.equal(objectAt(usage, 'prompt_tokens_details')['cached_tokens'], 0);
    const finishes = chunks.flatMap((chunk) => listAt(chunk, 'choices'));
    assert.equal(
      finishes.findLast((choice) => choice['finish_reason'])?.['finish_reason'],
      'length',
    );
  });

  test('§9.1 a refusal reports its explanation before the finish', async () => {
    const details = { type: 'refusal', category: null, explanation: 'No.' };
    const chunks = await onChat(...textBlock(0, 'Hi'), {
      type: 'message_delta',
      delta: { stop_reason: 'refusal', stop_sequence: null, stop_details: details },
      usage: { output_tokens: 2 },
    });
    assert.equal(deltasOf(chunks).at(-1)?.['refusal'], 'No.');
  });

  test('§9.1 ping and unknown events say nothing', async () => {
    const plain = await onChat(...textBlock(0, 'Hi'));
    const odd = await onChat({ type: 'ping' }, ...textBlock(0, 'Hi'), { type: 'new_event', x: 1 });
    assert.equal(odd.length, plain.length);
  });

  test('§9.1 with usage asked for, every other chunk says null', async () => {
    const chunks = await onChat(...textBlock(0, 'Hi'));
    const told = chunks.filter((chunk) => chunk['usage'] !== null && 'usage' in chunk);
    assert.equal(told.length, 1);
    assert.deepEqual(told[0]?.['choices'], []);
    assert.deepEqual(chunks.at(-1), { end: '[DONE]' });
  });
});

const onMessages = async (...frames: readonly string[]): Promise<readonly JsonObject[]> =>
  play('messages', frames);
const role = chatFrame(chatChunk({ role: 'assistant', content: '' }));
const stop = chatFrame(chatChunk({}, 'stop'));
const types = (events: readonly JsonObject[]): readonly unknown[] =>
  events.map((event) => event['type']).filter((type) => type !== 'ping');
const say = (delta: JsonObject): string => chatFrame(chatChunk(delta));

describe('§9.2 chat chunks to messages events', () => {
  test('§9.2 a chunk without choices before the answer says nothing', async () => {
    const filter = chatFrame({
      id: '',
      object: '',
      model: '',
      choices: [],
      prompt_filter_results: [],
    });
    const events = await onMessages(filter, role, say({ content: 'Hi' }), stop, chatDone);
    assert.deepEqual(types(events), [
      'message_start',
      'content_block_start',
      'content_block_delta',
      'content_block_stop',
      'message_delta',
      'message_stop',
    ]);
    assert.notEqual(objectAt(objectAt(events[0] ?? {}, 'message'), 'usage')['input_tokens'], 0);
  });

  test('§9.2 leaving thinking: one signature, then the end of its block', async () => {
    const events = await onMessages(
      role,
      say({ reasoning_content: 'H' }),
      say({ reasoning_content: 'm' }),
      say({ content: 'Hi' }),
      stop,
      chatDone,
    );
    const deltas = events.map((event) => objectAt(event, 'delta')['type']);
    assert.equal(deltas.filter((type) => type === 'signature_delta').length, 1);
    assert.equal(events[deltas.indexOf('signature_delta') + 1]?.['type'], 'content_block_stop');
    assert.ok(deltas.indexOf('signature_delta') < deltas.indexOf('text_delta'));
  });

  test('§9.2 a refusal is text, and the reason', async () => {
    const events = await onMessages(role, say({ refusal: 'No.' }), stop, chatDone);
    assert.ok(events.some((event) => objectAt(event, 'delta')['text'] === 'No.'));
    const { stop_reason: reason, stop_details: details } = objectAt(events.at(-2) ?? {}, 'delta');
    assert.equal(reason, 'refusal');
    assert.deepEqual(details, { type: 'refusal', category: null, explanation: 'No.' });
  });

  test('§9.2 calls wait for their turn; blocks never overlap', async () => {
    const piece = (index: number, json: string, id?: string): string =>
      say({
        tool_calls: [
          {
            index,
            ...(id === undefined ? {} : { id, type: 'function' }),
            function: { ...(id === undefined ? {} : { name: `f${index}` }), arguments: json },
          },
        ],
      });
    const events = await onMessages(
      role,
      piece(0, '{"a":', 'call_a'),
      piece(1, '{"b":', 'call_b'),
      piece(0, '1}'),
      piece(1, '2}'),
      chatFrame(chatChunk({}, 'tool_calls')),
      chatDone,
    );
    const open = events.filter(({ type }) => type === 'content_block_start');
    assert.equal(open.length, 2);
    const order = events.map(({ type, index }) => `${String(type)} ${String(index)}`);
    assert.ok(order.indexOf('content_block_stop 0') < order.indexOf('content_block_start 1'));
    const inputs = [0, 1].map((index) =>
      events
        .filter((event) => event['index'] === index)
        .map((event) => objectAt(event, 'delta')['partial_json'] ?? '')
        .join(''),
    );
    assert.deepEqual(inputs, ['{"a":1}', '{"b":2}']);
  });

  test('§9.2 the finish waits for usage, wherever it comes; the last one counts', async () => {
    const early = { usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 } };
    const events = await onMessages(
      role,
      chatFrame(chatChunk({ content: 'Hi' }, null, early)),
      stop,
      chatFrame(chatUsageChunk({ prompt_tokens: 9, completion_tokens: 5, total_tokens: 14 })),
      chatDone,
    );
    const usage = objectAt(events.at(-2) ?? {}, 'usage');
    assert.deepEqual([usage['input_tokens'], usage['output_tokens']], [9, 5]);
  });

  const failures: readonly (readonly [name: string, frames: readonly string[]])[] = [
    ['the end without a finish', [role, say({ content: 'Hi' })]],
    ['[DONE] without a finish', [role, say({ content: 'Hi' }), chatDone]],
    ['an error in a chunk', [role, say({ content: 'Hi' }), chatFrame({ error: { message: 'x' } })]],
    [
      'an error event',
      [role, say({ content: 'Hi' }), 'event: error\ndata: {"error":{"message":"x"}}\n\n'],
    ],
    ['a chunk that cannot be read', [role, say({ content: 'Hi' }), 'data: {"choices":[\n\n', stop]],
  ];
  for (const [name, frames] of failures) {
    test(`§9.3 ${name}: an error, no message_stop`, async () => {
      const seen = types(await playFailure(frames));
      assert.equal(seen.at(-1), 'error');
      assert.ok(!seen.includes('message_stop') && !seen.includes('message_delta'));
    });
  }

  test('§9.2 an end without [DONE] behind a finish is an end', async () => {
    const seen = types(await onMessages(role, say({ content: 'Hi' }), stop));
    assert.equal(seen.at(-1), 'message_stop');
  });
});
