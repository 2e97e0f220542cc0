/** Each rule of the stream validators, broken once: a judge that cannot say no is none. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { JsonObject } from '../../../src/json/value.ts';
import { assertFailedStream, assertLegalRelay, assertLegalStream } from '../../support/legality.ts';
import { chatDone, chatFrame } from '../../upstream/chat.ts';
import { messagesFrame } from '../../upstream/messages.ts';

const head = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'm' } as const;
const usage = { prompt_tokens: 9, completion_tokens: 5, total_tokens: 14 };

function chunk(delta: JsonObject, finish: string | null = null): JsonObject {
  const choices = [{ index: 0, delta, logprobs: null, finish_reason: finish }];
  return { ...head, choices, usage: null };
}

const first = (index: number, more: JsonObject = {}): JsonObject => ({
  index,
  id: `call_${index}`,
  type: 'function',
  function: { name: 'f', arguments: '' },
  ...more,
});
const call = (entry: JsonObject): JsonObject => chunk({ tool_calls: [entry] });
const role = chunk({ role: 'assistant', content: '', refusal: null });
const text = chunk({ content: 'Hi' });
const args = call({ index: 0, function: { arguments: '{}' } });
const stop = chunk({}, 'stop');
const report: JsonObject = { ...head, choices: [], usage };

const chatText = [role, text, stop, report];
const chatCall = [role, call(first(0)), args, chunk({}, 'tool_calls'), report];

function chatStream(chunks: readonly JsonObject[], end = chatDone): string {
  return chunks.map((each) => chatFrame(each)).join('') + end;
}

/** The rule, what its breach is told as, and the stream that breaks it. */
type Breach = readonly [rule: string, told: RegExp, stream: string];

const withUsage = (more: JsonObject): string =>
  chatStream([role, text, stop, { ...report, usage: { ...usage, ...more } }]);
const withDelta = (delta: JsonObject): string => chatStream([role, chunk(delta), stop, report]);

const chatBreaches: readonly Breach[] = [
  ['[DONE] is there', /\[DONE\] is last/, chatStream(chatText, '')],
  ['[DONE] comes once', /\[DONE\] is last/, chatStream(chatText) + chatDone],
  ['nothing behind [DONE]', /\[DONE\] is last/, chatStream(chatText) + chatFrame(text)],
  ['the last frame is whole', /cut within/, chatStream(chatText).slice(0, -1)],
  ['JSON only (E3)', /not a JSON object/, chatFrame(': PROCESSING') + chatStream(chatText)],
  ['no events without data', /without data/, `event: ping\n\n${chatStream(chatText)}`],
  ['no named events', /no name/, `event: x\n${chatStream(chatText)}`],
  ['fields of SSE only', /not a field/, `junk\n${chatStream(chatText)}`],
  ['no error within', /an error within/, chatFrame({ error: {} }) + chatStream(chatText)],
  ['the id is there', /lacks id/, chatStream([{ ...role, id: undefined }, text, stop, report])],
  ['the id is text', /id is no text/, chatStream([{ ...role, id: '' }, text, stop, report])],
  ['the id is constant', /constant/, chatStream([role, { ...text, id: 'x' }, stop, report])],
  ['created is constant', /constant/, chatStream([role, { ...text, created: 2 }, stop, report])],
  ['the model is constant', /constant/, chatStream([role, { ...text, model: 'x' }, stop, report])],
  ['the model is text', /model is no text/, chatStream([{ ...role, model: '' }, stop, report])],
  ['created is a number', /no count/, chatStream([{ ...role, created: 'x' }, stop, report])],
  ['the object', /chunk/, chatStream([{ ...role, object: 'x' }, stop, report])],
  ['known members', /has no zebra/, chatStream([{ ...role, zebra: 1 }, text, stop, report])],
  ['choices are there', /choices is a list/, chatStream([{ ...role, choices: null }, stop])],
  ['the role is first (B15)', /role comes first/, chatStream([text, stop, report])],
  ['the role comes once', /role comes once/, chatStream([role, role, stop, report])],
  ['members of a delta', /has no zebra/, withDelta({ zebra: 1 })],
  ['no empty text', /piece of text/, withDelta({ content: '' })],
  ['text is a string', /piece of text/, withDelta({ content: ['Hi'] })],
  ['a finish is there', /without a finish/, chatStream([role, text])],
  ['one finish', /after the finish/, chatStream([role, text, stop, stop, report])],
  ['nothing behind the finish', /after the finish/, chatStream([role, stop, text, report])],
  ['known finishes', /no finish of this/, chatStream([role, chunk({}, 'end_turn'), report])],
  ['an empty finish', /empty delta/, chatStream([role, chunk({ content: 'x' }, 'stop'), report])],
  ['B11 calls and stop', /B11/, chatStream([role, call(first(0)), args, stop, report])],
  ['B11 no call', /B11/, chatStream([role, text, chunk({}, 'tool_calls'), report])],
  ['usage is there (E6)', /exactly when/, chatStream([role, text, stop])],
  ['usage is last', /nothing follows the usage/, chatStream([role, text, stop, report, report])],
  ['usage in a chunk of its own', /without choices/, chatStream([role, { ...stop, usage }])],
  ['usage behind the finish', /behind the finish/, chatStream([role, report, stop])],
  [
    'usage is null before',
    /null before/,
    chatStream([{ ...role, usage: undefined }, stop, report]),
  ],
  ['the sum', /total = /, withUsage({ total_tokens: 15 })],
  ['the cache', /part of the prompt/, withUsage({ prompt_tokens_details: { cached_tokens: 10 } })],
  [
    'reasoning',
    /part of the completion/,
    withUsage({ completion_tokens_details: { reasoning_tokens: 6 } }),
  ],
  ['counts are whole', /no count/, withUsage({ prompt_tokens: 8.5 })],
  ['an index', /no count/, chatStream([role, call({ ...first(0), index: undefined })])],
  ['dense indexes', /dense/, chatStream([role, call(first(1)), ...chatCall.slice(2)])],
  ['the first id', /has the id/, chatStream([role, call(first(0, { id: undefined }))])],
  ['the first name', /has the name/, chatStream([role, call(first(0, { function: {} }))])],
  ['the first type', /type/, chatStream([role, call(first(0, { type: undefined }))])],
  ['B6 one id', /id comes once/, chatStream([role, call(first(0)), call(first(0))])],
  [
    'one name',
    /name comes once/,
    chatStream([
      role,
      call(first(0)),
      call({ index: 0, function: { name: 'f', arguments: '{}' } }),
    ]),
  ],
  [
    'no empty fragment',
    /holds arguments/,
    chatStream([role, call(first(0)), call({ index: 0, function: { arguments: '' } })]),
  ],
  [
    'some arguments',
    /without arguments/,
    chatStream([role, call(first(0)), chunk({}, 'tool_calls'), report]),
  ],
  ['no empty list of calls', /no empty list/, withDelta({ tool_calls: [] })],
  ['indexes of entries', /lacks an index/, withDelta({ reasoning_details: [{ text: 'x' }] })],
  [
    'constants of entries once',
    /comes once/,
    chatStream([
      role,
      chunk({ reasoning_details: [{ index: 0, id: 'a' }] }),
      chunk({ reasoning_details: [{ index: 0, id: 'a' }] }),
    ]),
  ],
];

const startUsage = {
  input_tokens: 9,
  cache_creation_input_tokens: null,
  cache_read_input_tokens: null,
  output_tokens: 1,
  cache_creation: null,
  service_tier: 'standard',
  inference_geo: null,
};
const message = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'm',
  content: [],
  stop_reason: null,
  stop_sequence: null,
  stop_details: null,
  container: null,
  usage: startUsage,
};
const begin = (more: JsonObject = {}): JsonObject => ({
  type: 'message_start',
  message: { ...message, ...more },
});
const open = (index: number, block: JsonObject): JsonObject => ({
  type: 'content_block_start',
  index,
  content_block: block,
});
const delta = (index: number, value: JsonObject): JsonObject => ({
  type: 'content_block_delta',
  index,
  delta: value,
});
const shut = (index: number): JsonObject => ({ type: 'content_block_stop', index });
const textOpen = open(0, { type: 'text', text: '' });
const hi = delta(0, { type: 'text_delta', text: 'Hi' });
const thought = open(0, { type: 'thinking', thinking: '', signature: '' });
const think = delta(0, { type: 'thinking_delta', thinking: 'Hm' });
const sign = delta(0, { type: 'signature_delta', signature: 's' });
const toolOpen = (index: number, more: JsonObject = {}): JsonObject =>
  open(index, { type: 'tool_use', id: `toolu_${index}`, name: 'f', input: {}, ...more });
const inputDelta = (json: string): JsonObject =>
  delta(0, { type: 'input_json_delta', partial_json: json });
const finalUsage = {
  input_tokens: 9,
  cache_creation_input_tokens: null,
  cache_read_input_tokens: null,
  output_tokens: 5,
};
const last = (more: JsonObject = {}, counts: JsonObject = finalUsage): JsonObject => ({
  type: 'message_delta',
  delta: {
    stop_reason: 'end_turn',
    stop_sequence: null,
    stop_details: null,
    container: null,
    ...more,
  },
  usage: counts,
});
const over: JsonObject = { type: 'message_stop' };
const ping: JsonObject = { type: 'ping' };

function stream(events: readonly JsonObject[]): string {
  return events.map((event) => messagesFrame(event)).join('');
}

const said = [textOpen, hi, shut(0)];
const messagesText = [begin(), ping, ...said, last(), over];
const called = { stop_reason: 'tool_use' };
const messagesCall = [begin(), toolOpen(0), inputDelta('{}'), shut(0), last(called), over];
const inside = (...events: readonly JsonObject[]): string =>
  stream([begin(), ...events, last(), over]);
const withStart = (more: JsonObject): string =>
  stream([begin({ usage: { ...startUsage, ...more } }), ...said, last(), over]);
const ending = (more: JsonObject): string => stream([begin(), ...said, last(more), over]);

const messagesBreaches: readonly Breach[] = [
  ['message_stop is there', /message_stop is last/, stream(messagesText.slice(0, -1))],
  ['nothing behind message_stop', /nothing follows/, stream([...messagesText, ping])],
  ['message_stop needs message_delta', /stands before/, stream([begin(), ...said, over])],
  ['names are repeated', /repeats/, stream(messagesText).replace('event: ping', 'event: pong')],
  ['names are there', /has its name/, stream(messagesText).replace('event: ping\n', '')],
  ['known events', /unexpected event/, stream([begin(), { type: 'news' }, ...messagesText])],
  ['no error within', /unexpected event/, stream([begin(), { type: 'error', error: {} }])],
  ['no ping before the start', /ping before/, stream([ping, ...messagesText])],
  ['one start', /one message_start/, stream([begin(), ...messagesText])],
  ['content before the start', /between start/, stream(said)],
  ['an empty message', /deep-equal/, stream([begin({ content: [{}] }), last(), over])],
  ['no stop reason at the start', /deep-equal/, stream([begin({ stop_reason: 'end_turn' })])],
  ['the id of a message', /msg_/, stream([begin({ id: 'chatcmpl-1' }), last(), over])],
  ['members of a message', /has no zebra/, stream([begin({ zebra: 1 })])],
  ['all members', /lacks container/, stream([begin({ container: undefined })])],
  ['usage at the start', /has usage/, stream([begin({ usage: null })])],
  ['usage keys at the start (F1)', /lacks service_tier/, withStart({ service_tier: undefined })],
  ['no other usage keys', /has no prompt_tokens/, withStart({ prompt_tokens: 1 })],
  ['never zero (F1)', /never zero/, withStart({ input_tokens: 0 })],
  ['dense indexes', /dense/, inside(open(1, { type: 'text', text: '' }))],
  ['C3 one open block', /one block open/, inside(textOpen, toolOpen(1))],
  ['blocks end', /all blocks are closed/, inside(textOpen, hi)],
  ['blocks start empty', /starts with its text/, inside(open(0, { type: 'text', text: 'Hi' }))],
  ['thinking starts whole', /starts with its/, inside(open(0, { type: 'thinking', thinking: '' }))],
  ['tools start empty', /starts with its input/, inside(toolOpen(0, { input: { a: 1 } }))],
  ['members of a block', /has no zebra/, inside(open(0, { type: 'text', text: '', zebra: 1 }))],
  ['typed blocks', /has a type/, inside(open(0, {}))],
  ['redacted data', /redacted data/, inside(open(0, { type: 'redacted_thinking', data: '' }))],
  ['B6 ids', /can be sent back/, inside(toolOpen(0, { id: 'a.b' }))],
  ['B6 unique ids', /ids are unique/, inside(toolOpen(0), shut(0), toolOpen(1, { id: 'toolu_0' }))],
  ['a name', /has a name/, inside(toolOpen(0, { name: '' }))],
  ['B1 a delta has a block', /has an open block/, inside(textOpen, hi, shut(0), hi)],
  ['B1 the block’s own index', /index of the open/, inside(textOpen, { ...hi, index: 1 })],
  ['C2 the delta fits', /C2: text_delta in tool_use/, inside(toolOpen(0), hi)],
  ['C2 the delta fits text', /C2: input_json_delta in text/, inside(textOpen, inputDelta('{}'))],
  [
    'no empty text',
    /no empty text_delta/,
    inside(textOpen, { ...hi, delta: { type: 'text_delta', text: '' } }),
  ],
  ['no empty input', /no empty input/, inside(toolOpen(0), inputDelta(''))],
  ['text is text', /holds text/, inside(textOpen, delta(0, { type: 'text_delta' }))],
  ['the signature is last', /follows the signature/, inside(thought, sign, think)],
  ['one signature', /follows the signature/, inside(thought, think, sign, sign)],
  [
    'a signature is something',
    /not empty/,
    inside(thought, delta(0, { type: 'signature_delta', signature: '' })),
  ],
  ['the open block is stopped', /open block is stopped/, inside(textOpen, hi, shut(1))],
  ['a stop has a block', /a block is open/, inside(shut(0))],
  ['B3 no empty text block', /B3/, inside(textOpen, shut(0))],
  [
    'arguments are an object',
    /no object/,
    stream([begin(), toolOpen(0), inputDelta('{"a'), shut(0), last(called), over]),
  ],
  ['one message_delta', /one message_delta/, stream([begin(), ...said, last(), last(), over])],
  ['no block behind message_delta', /between start/, stream([begin(), last(), ...said, over])],
  ['a stop reason', /no stop reason of/, ending({ stop_reason: 'stop' })],
  [
    'members of the stop',
    /lacks stop_details/,
    stream([
      begin(),
      { ...last(), delta: { stop_reason: 'end_turn', stop_sequence: null, container: null } },
      over,
    ]),
  ],
  ['the sequence goes with its reason', /matched sequence/, ending({ stop_sequence: 'x' })],
  ['details go with a refusal', /details of a refusal/, ending({ stop_details: {} })],
  ['B11 a call ends in tool_use', /B11/, stream([begin(), toolOpen(0), shut(0), last(), over])],
  ['B11 tool_use needs a call', /B11/, ending(called)],
  [
    'delta and usage',
    /has delta and usage/,
    stream([begin(), { type: 'message_delta', delta: {} }]),
  ],
  ['all counts', /lacks input_tokens/, stream([begin(), last({}, { output_tokens: 5 }), over])],
  ['whole counts', /no count/, stream([begin(), last({}, { ...finalUsage, output_tokens: -1 })])],
  ['no other counts', /has no total/, stream([begin(), last({}, { ...finalUsage, total: 1 })])],
];

/** The judge says no, and for the reason that the rule has. */
function assertTold(check: () => void, told: RegExp): void {
  assert.throws(check, (error) => {
    assert.ok(error instanceof assert.AssertionError, String(error));
    assert.match(error.message, told);
    return true;
  });
}

describe('chat', () => {
  test('legal streams pass', () => {
    assertLegalStream('chat', chatStream(chatText), true);
    assertLegalStream('chat', `: comment\n\n${chatStream(chatCall)}`, true);
    assertLegalRelay('chat', chatStream(chatCall), true);
    const free = chatText.slice(0, -1).map(({ usage: _none, ...rest }) => rest);
    assertLegalStream('chat', chatStream(free), false);
  });

  for (const [rule, told, broken] of chatBreaches) {
    test(rule, () => assertTold(() => assertLegalStream('chat', broken, true), told));
  }

  test('E6 usage that nobody asked for', () => {
    const asked = chatText.map(({ usage: each, ...rest }) =>
      each === null ? rest : { ...rest, usage },
    );
    assertTold(() => assertLegalStream('chat', chatStream(asked), false), /nobody asked/);
    assertTold(() => assertLegalRelay('chat', chatStream(asked), false), /nobody asked/);
  });

  const error = { message: 'Broken.', type: 'server_error', param: null, code: null };
  const failed = (...frames: readonly string[]): string =>
    [chatFrame(role), chatFrame(text), ...frames].join('');
  const frame = chatFrame({ error });

  test('a failed stream passes', () => assertFailedStream('chat', failed(frame)));

  for (const [rule, broken] of [
    ['the error is last', failed(frame, chatDone)],
    ['no finish before it', failed(chatFrame(stop), frame)],
    ['all four members', failed(chatFrame({ error: { ...error, param: undefined } }))],
    ['nothing beside it', failed(chatFrame({ ...text, error }))],
    ['a message', failed(chatFrame({ error: { ...error, message: '' } }))],
    ['a code that is text', failed(chatFrame({ error: { ...error, code: 500 } }))],
    ['a legal beginning', chatFrame(text) + frame],
    ['an error at all', ''],
  ] as const) {
    test(`failed: ${rule}`, () => {
      assert.throws(() => assertFailedStream('chat', broken), assert.AssertionError);
    });
  }
});

describe('messages', () => {
  test('legal streams pass', () => {
    assertLegalStream('messages', stream(messagesText), true);
    assertLegalStream('messages', stream(messagesCall), true);
    assertLegalStream('messages', inside(thought, think, sign, shut(0)), true);
    const cut = [begin(), toolOpen(0), inputDelta('{"a'), shut(0)];
    assertLegalStream(
      'messages',
      stream([...cut, last({ stop_reason: 'max_tokens' }), over]),
      true,
    );
    assertLegalRelay(
      'messages',
      stream([ping, begin(), { type: 'news' }, last(), last(), over]),
      true,
    );
  });

  for (const [rule, told, broken] of messagesBreaches) {
    test(rule, () => assertTold(() => assertLegalStream('messages', broken, true), told));
  }

  const error = { type: 'api_error', message: 'Broken.' };
  const frame: JsonObject = { type: 'error', error, request_id: 'req_1' };
  const failed = (...events: readonly JsonObject[]): string =>
    stream([begin(), textOpen, hi, ...events]);

  test('a failed stream passes', () => assertFailedStream('messages', failed(frame)));

  for (const [rule, broken] of [
    ['the error is last', failed(frame, shut(0))],
    ['no message_stop', stream([...messagesText, frame])],
    ['no stop reason', stream([begin(), ...said, last(), frame])],
    ['known types', failed({ ...frame, error: { ...error, type: 'server_error' } })],
    ['a request id', failed({ ...frame, request_id: null })],
    ['no code', failed({ ...frame, error: { ...error, code: 'x' } })],
    ['a message', failed({ ...frame, error: { ...error, message: '' } })],
    ['a legal beginning', stream([hi, frame])],
    ['an error at all', failed()],
  ] as const) {
    test(`failed: ${rule}`, () => {
      assert.throws(() => assertFailedStream('messages', broken), assert.AssertionError);
    });
  }
});
