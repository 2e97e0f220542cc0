/**
 * Bad requests about kept responses: each is refused in the words of `/v1/responses`, however the client names itself, no
 * upstream is asked, and what is kept stays.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { send, type Reply } from '../support/http.ts';
import { clientKey } from '../support/keys.ts';
import { upstreamConfig } from '../support/gateway.ts';
import { assertErrorBody } from '../support/legality.ts';
import { listAt, textAt } from '../support/reading.ts';
import { requestBody } from '../support/requests.ts';
import { ask, startRig, type Rig } from '../support/rig.ts';
import { chatChunk, chatFrame } from '../upstream/chat.ts';
import { replying } from '../upstream/reply.ts';

let rig: Rig;
let id = '';
let asked = 0;
before(async () => {
  rig = await startRig();
  const { model } = rig.play('chat', replying('chat', { text: 'Hello' }));
  const reply = await ask(rig, 'responses', requestBody('responses', { model, stream: false }));
  id = textAt(reply.json, 'id');
  asked = rig.upstreams.chat.all.length;
});
after(() => rig.stop());

interface Row {
  readonly name: string;
  readonly method?: string;
  /** Behind `/v1/responses`; `ID` is that of the kept response. */
  readonly path: string;
  readonly status: number;
  readonly param?: string;
}

const unknown = 'resp_unknown';
const rows: readonly Row[] = [
  { name: 'an unknown id', path: `/${unknown}`, status: 404 },
  { name: 'an unknown id, as a stream', path: `/${unknown}?stream=true`, status: 404 },
  { name: 'items of an unknown id', path: `/${unknown}/input_items`, status: 404 },
  { name: 'an unknown id to delete', method: 'DELETE', path: `/${unknown}`, status: 404 },
  { name: 'an unknown id to cancel', method: 'POST', path: `/${unknown}/cancel`, status: 404 },
  { name: 'an id of 129 characters', path: `/resp_${'a'.repeat(124)}`, status: 404 },
  { name: 'an id with an escape', path: '/resp_%2e%2e', status: 404 },
  { name: 'an id with a quote', path: "/resp_'OR'1'='1", status: 404 },
  { name: 'a slash at the end', path: '/ID/', status: 404 },
  { name: 'what no response has', path: '/ID/output_items', status: 404 },
  { name: 'limit 0', path: '/ID/input_items?limit=0', status: 400, param: 'limit' },
  { name: 'limit 101', path: '/ID/input_items?limit=101', status: 400, param: 'limit' },
  { name: 'limit −1', path: '/ID/input_items?limit=-1', status: 400, param: 'limit' },
  { name: 'limit 1.5', path: '/ID/input_items?limit=1.5', status: 400, param: 'limit' },
  { name: 'limit 1e1', path: '/ID/input_items?limit=1e1', status: 400, param: 'limit' },
  { name: 'an empty limit', path: '/ID/input_items?limit=', status: 400, param: 'limit' },
  { name: 'another order', path: '/ID/input_items?order=up', status: 400, param: 'order' },
  { name: 'an unknown item', path: '/ID/input_items?after=msg_x', status: 400, param: 'after' },
  {
    name: 'events after −1',
    path: '/ID?stream=true&starting_after=-1',
    status: 400,
    param: 'starting_after',
  },
  {
    name: 'events after a word',
    path: '/ID?stream=true&starting_after=all',
    status: 400,
    param: 'starting_after',
  },
  { name: 'a stream of another kind', path: '/ID?stream=sse', status: 400, param: 'stream' },
  { name: 'a finished response to cancel', method: 'POST', path: '/ID/cancel', status: 400 },
  { name: 'a response to change', method: 'PATCH', path: '/ID', status: 405 },
  { name: 'a response to write', method: 'POST', path: '/ID', status: 405 },
  { name: 'items to write', method: 'POST', path: '/ID/input_items', status: 405 },
  { name: 'a cancel to read', path: '/ID/cancel', status: 405 },
];

/** How clients show their key; some of it is the way of another dialect. */
const keys: { readonly [name: string]: { readonly [header: string]: string } } = {
  'as usual': { authorization: `Bearer ${clientKey}` },
  'as clients of messages do': { 'x-api-key': clientKey, 'anthropic-version': '2023-06-01' },
};

function request({ method = 'GET', path }: Row, headers: object, own = id): Promise<Reply> {
  const body = method === 'GET' || method === 'DELETE' ? undefined : '{}';
  const url = `${rig.gateway.url}/v1/responses${path.replace('ID', own)}`;
  return send(url, body, { method, anonymous: true, headers: { ...headers } });
}

for (const [name, headers] of Object.entries(keys)) {
  describe(`a key ${name}`, () => {
    for (const row of rows) {
      test(`R-28 R-34 R-35 ${row.name}: ${row.status}`, async () => {
        const reply = await request(row, headers);
        assert.equal(reply.status, row.status, reply.text);
        const error = assertErrorBody('responses', reply.json);
        if (row.param !== undefined) assert.equal(error['param'], row.param);
        assert.equal(rig.upstreams.chat.all.length, asked, 'no upstream is asked');
      });
    }

    test('E4 without a key all of it is refused alike', async () => {
      for (const row of rows.filter(({ status }) => status === 404 || status === 400)) {
        const reply = await request(row, { 'x-api-key': 'another-key-0123456789' });
        assert.ok(reply.status === 401 || reply.status === 404, reply.text);
        assert.ok(!reply.text.includes('Hello'));
      }
    });
  });
}

test('R-34 what is kept is as it was, and unknown members of a query do no harm', async () => {
  const headers = keys['as usual'] ?? {};
  const path = '/ID?include[]=reasoning.encrypted_content&brand_new=1';
  const told = await request({ name: '', path, status: 200 }, headers);
  assert.equal(told.status, 200, told.text);
  assert.equal(told.json['id'], id);
  const items = await request(
    { name: '', path: '/ID/input_items?brand_new=1', status: 200 },
    headers,
  );
  assert.equal(listAt(items.json, 'data').length, 1, items.text);
});

test('R-28 a refused call keeps nothing', async () => {
  const { model } = rig.play('chat', replying('chat', { text: 'Hello' }));
  const refused = requestBody('responses', {
    model,
    stream: false,
    more: { previous_response_id: id, temperature: 9 },
  });
  const reply = await ask(rig, 'responses', refused);
  assert.equal(reply.status, 400);
  const row = await rig.gateway.callRow(String(reply.headers['x-request-id']));
  assert.deepEqual([row['outcome'], row['cost_usd'], row['attempts']], ['failed', 0, 0]);
  await rig.gateway.noneLeft();
});

/** A stream whose end waits for `end`, and its id, which the first event names. */
async function streaming(): Promise<{
  readonly model: string;
  readonly id: string;
  readonly running: Promise<Reply>;
  readonly end: () => void;
}> {
  const end = Promise.withResolvers<void>();
  const last = [chatFrame(chatChunk({}, 'stop')), 'data: [DONE]\n\n'];
  const body = [chatFrame(chatChunk({ content: 'Hello' })), end.promise, ...last];
  const { model } = rig.play('chat', { body });
  const begun = Promise.withResolvers<string>();
  let received = '';
  const onData = (chunk: Buffer): void => {
    received += chunk;
    const found = /"id":"(resp_\w+)"[^]*Hello/.exec(received)?.[1];
    if (found !== undefined) begun.resolve(found);
  };
  const asked = requestBody('responses', { model, stream: true });
  const running = ask(rig, 'responses', asked, { onData });
  return { model, id: await begun.promise, running, end: () => end.resolve() };
}

test('R-34 R-35 a response that has not ended is not found yet, and is there at its end', async () => {
  const { model, id, running, end } = await streaming();
  const headers = keys['as usual'] ?? {};
  const at = (path: string, method?: string): Promise<Reply> =>
    request({ name: '', path, status: 0, ...(method && { method }) }, headers, id);
  for (const reply of [
    await at('/ID'),
    await at('/ID?stream=true&starting_after=1'),
    await at('/ID/input_items'),
    await at('/ID/cancel', 'POST'),
  ]) {
    assert.equal(reply.status, 404, reply.text);
    assert.match(reply.text, /not found\. .* or has not ended yet\./);
  }
  const further = { model, input: 'And?', previous_response_id: id };
  const early = await ask(rig, 'responses', further);
  assert.equal(early.status, 400);
  assert.match(early.text, /or has not ended yet\. Send all items in `input`/);
  end();
  assert.equal((await running).complete, true);
  assert.equal((await at('/ID')).status, 200);
  assert.equal((await at('/ID', 'DELETE')).status, 200);
});

test('R-34 a response that is deleted while it streams is not stored at its end, which says so', async () => {
  const { id, running, end } = await streaming();
  const headers = keys['as usual'] ?? {};
  const at = (method: string): Promise<Reply> =>
    request({ name: '', path: '/ID', status: 0, method }, headers, id);
  const deleted = await at('DELETE');
  assert.equal(deleted.status, 404, deleted.text);
  assert.match(deleted.text, /not found\. .* or has not ended yet\./);
  end();
  const { complete, text } = await running;
  assert.equal(complete, true);
  assert.match(text.slice(text.indexOf('response.completed')), /"store":false/);
  assert.equal((await at('GET')).status, 404);
});

test('R-23 R-28 where nothing is kept any more, errors say so and what to do, and what was kept is still there', async () => {
  const { model, script } = rig.play('chat', replying('chat', { text: 'Hello' }));
  const before = await ask(rig, 'responses', { model, input: 'First?' });
  const kept = textAt(before.json, 'id');
  const config = upstreamConfig((upstream) => rig.upstreams[upstream].port);
  await rig.gateway.reload({ ...config, responses: { store: 'off' } });
  const unkept = await ask(rig, 'responses', { model, input: 'Second?', store: true });
  assert.equal(unkept.json['store'], false);
  const headers = keys['as usual'] ?? {};
  const gone = textAt(unkept.json, 'id');
  const shown = await request({ name: '', path: '/ID', status: 404 }, headers, gone);
  assert.equal(shown.status, 404);
  assert.match(shown.text, /not found\. This gateway keeps no responses, whatever `store` says\./);
  const goOn = (id: string): Promise<Reply> =>
    ask(rig, 'responses', { model, input: 'Third?', previous_response_id: id });
  const refused = await goOn(gone);
  assert.equal(refused.status, 400);
  assert.equal(
    assertErrorBody('responses', refused.json)['message'],
    `Previous response with id '${gone}' not found. This gateway keeps no responses, whatever \`store\` says. Send all items in \`input\`, without \`previous_response_id\`.`,
  );
  const item = textAt(listAt(unkept.json, 'output')[0] ?? {}, 'id');
  const input = [{ type: 'item_reference', id: item }];
  const unknown = await ask(rig, 'responses', { model, input });
  assert.equal(unknown.status, 404);
  assert.doesNotMatch(unknown.text, /`store` set to true/);
  assert.match(unknown.text, /send the item itself instead of its id/);
  assert.equal(script.requests.length, 2);
  const further = await goOn(kept);
  assert.equal(further.status, 200, further.text);
  assert.equal(further.json['store'], false);
  await rig.gateway.reload(config);
});
