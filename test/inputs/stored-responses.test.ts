/**
 * Bad requests about kept responses: each is refused in the words of `/v1/responses`, however the client names itself, no
 * upstream is asked, and what is kept stays.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { send, type Reply } from '../support/http.ts';
import { clientKey } from '../support/keys.ts';
import { assertErrorBody } from '../support/legality.ts';
import { listAt, textAt } from '../support/reading.ts';
import { requestBody } from '../support/requests.ts';
import { ask, startRig, type Rig } from '../support/rig.ts';
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
