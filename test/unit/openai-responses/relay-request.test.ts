/** Same-dialect requests: what is changed in the client's bytes, and what is not (wire/responses.md §3.12). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseBody } from '../../../src/core/client-body.ts';
import type { Ask } from '../../../src/core/dialect.ts';
import { NoteList } from '../../../src/core/notes.ts';
import type { JsonObject } from '../../../src/json/value.ts';
import { responsesTraits, type UpstreamTraits } from '../../../src/core/traits.ts';
import { openaiResponsesUpstream } from '../../../src/dialects/openai-responses/upstream.ts';

const ask: Ask = {
  model: 'up',
  stream: false,
  traits: responsesTraits,
  newId: (prefix) => prefix,
};
const own = '"model":"up","store":false,"include":["reasoning.encrypted_content"]';

function relayed(body: string, changes: Partial<Ask> = {}): string {
  const source = parseBody(Buffer.from(body), new Set(['model', 'input', 'store']));
  return openaiResponsesUpstream.relayRequest(source, { ...ask, ...changes }).toString();
}

function withTraits(changes: Partial<UpstreamTraits>): Partial<Ask> {
  return { traits: { ...responsesTraits, ...changes } };
}

test('R-3 what fits keeps every byte', () => {
  const body = `{ "z":1.0, ${own},\n "input" : [ {"type":"message","role":"user","content":"Hi"} ] }`;
  assert.equal(relayed(body), body);
});

test('§3.12 nothing is kept at the provider, and encrypted reasoning is always asked for', () => {
  assert.equal(
    relayed(
      '{"model":"alias","store":true,"include":["x"],"previous_response_id":"r","input":"Hi"}',
    ),
    '{"model":"up","store":false,"include":["x","reasoning.encrypted_content"],"input":"Hi"}',
  );
  assert.deepEqual(JSON.parse(relayed('{"model":"up","input":"Hi"}')), {
    model: 'up',
    store: false,
    include: ['reasoning.encrypted_content'],
    input: 'Hi',
  });
  assert.deepEqual(JSON.parse(relayed(`{${own}}`, { stream: true, maxOutputTokens: 7 })), {
    model: 'up',
    store: false,
    include: ['reasoning.encrypted_content'],
    stream: true,
    max_output_tokens: 7,
  });
});

test('R-60 what a client asks to include is noted where the provider is known to refuse it', () => {
  const logprobs = 'message.output_text.logprobs';
  const encrypted = 'reasoning.encrypted_content';
  const sentOf = (include: readonly string[], refusedIncludes: readonly string[]) => {
    const body = Buffer.from(JSON.stringify({ include, input: 'Hi' }));
    const notes = new NoteList();
    const refused = { ...ask, ...withTraits({ refusedIncludes }) };
    const source = parseBody(body, new Set(['input']));
    const sent = openaiResponsesUpstream.relayRequest(source, refused, notes).toString();
    return [JSON.parse(sent).include, notes.all.map(({ path, what }) => [path, what])];
  };
  const lost = (index: number) => [[`include.${index}`, 'lost']];
  assert.deepEqual(sentOf([encrypted, logprobs], [encrypted, logprobs]), [undefined, lost(1)]);
  // All that Codex sends: the gateway asks for it by itself.
  assert.deepEqual(sentOf([encrypted], [encrypted]), [undefined, []]);
  // One value that is refused takes no other along.
  assert.deepEqual(sentOf([encrypted, logprobs], [encrypted]), [[logprobs], []]);
  assert.deepEqual(sentOf([encrypted, logprobs], [logprobs]), [[encrypted], lost(1)]);
  assert.deepEqual(sentOf([logprobs], [logprobs]), [[encrypted], lost(0)]);
});

test('R-82 what Codex sends about its session goes to OpenAI only', () => {
  const body = `{${own},"client_metadata":{"a":"b"},"input":[{"type":"message","role":"user","content":"x","internal_chat_message_metadata_passthrough":{}}]}`;
  assert.equal(relayed(body), `{${own},"input":[{"type":"message","role":"user","content":"x"}]}`);
  assert.equal(relayed(body, withTraits({ clientMetadata: true })), body);
});

test('R-61 ids that the service would refuse are omitted, and long call ids are shortened alike', () => {
  const long = 'c'.repeat(96);
  const body = `{${own},"input":[{"type":"function_call","id":"item_1","call_id":"${long}","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"${long}","output":"x"},{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"b"}]}`;
  const sent = JSON.parse(relayed(body, withTraits({ itemIdPrefixes: true })));
  assert.equal(sent.input[0].id, undefined);
  assert.equal(sent.input[2].id, 'rs_1');
  assert.ok(sent.input[0].call_id.length <= 64);
  assert.equal(sent.input[0].call_id, sent.input[1].call_id);
});

test('R-60 refused reasoning is omitted together with the ids of what it led to', () => {
  const body = `{${own},"input":[{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"b"},{"type":"message","id":"msg_1","role":"assistant","content":[]}]}`;
  assert.equal(
    relayed(body, withTraits({ historyReasoning: false })),
    `{${own},"input":[{"type":"message","role":"assistant","content":[]}]}`,
  );
});

test('R-15 a cut call takes the reasoning before it along, unless something kept follows in its turn', () => {
  const item = (type: string, id: string, more: JsonObject = {}): JsonObject => ({
    type,
    id: `${type}_${id}`,
    ...more,
  });
  const reasoning = (id: string): JsonObject => item('reasoning', id);
  const call = (id: string, status: string): JsonObject =>
    item('function_call', id, { call_id: id, name: 'f', arguments: '{}', status });
  const result = (id: string): JsonObject =>
    item('function_call_output', id, { call_id: id, output: 'x' });
  const said = (role: string): JsonObject => ({ type: 'message', role, content: 'Hi' });
  const cut = call('A', 'incomplete');
  const done = [call('B', 'completed'), result('B')];
  const rows: readonly (readonly [input: readonly JsonObject[], left: readonly JsonObject[]])[] = [
    [
      [reasoning('1'), cut, ...done],
      [reasoning('1'), ...done],
    ],
    [
      [reasoning('1'), ...done, reasoning('2'), cut],
      [reasoning('1'), ...done],
    ],
    [[reasoning('1'), reasoning('2'), cut], []],
    [[reasoning('1'), cut, reasoning('2'), call('C', 'incomplete')], []],
    [
      [reasoning('1'), cut, said('assistant')],
      [reasoning('1'), said('assistant')],
    ],
    [
      [reasoning('1'), cut, item('web_search_call', 'W')],
      [reasoning('1'), item('web_search_call', 'W')],
    ],
    [
      [reasoning('1'), said('assistant'), cut],
      [reasoning('1'), said('assistant')],
    ],
    [
      [reasoning('1'), cut, said('user'), reasoning('2'), ...done],
      [said('user'), reasoning('2'), ...done],
    ],
    [
      [reasoning('1'), cut, result('A')],
      [reasoning('1'), cut, result('A')],
    ],
  ];
  for (const [input, left] of rows) {
    const sent: unknown = JSON.parse(relayed(JSON.stringify({ model: 'up', input })));
    assert.ok(typeof sent === 'object' && sent !== null && 'input' in sent);
    assert.deepEqual(sent.input, left);
  }
});

test('§8.3 reasoning that the gateway sealed for another dialect is shown to no provider', () => {
  const body = `{${own},"input":[{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gw1.x"}]}`;
  assert.equal(relayed(body), `{${own},"input":[]}`);
});
