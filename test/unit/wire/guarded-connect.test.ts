/** S16 b: no connection goes to link-local addresses or cloud metadata, whatever name leads there. */
import assert from 'node:assert/strict';
import type { LookupAddress } from 'node:dns';
import type { LookupFunction } from 'node:net';
import { after, before, test } from 'node:test';
import { isForbiddenHost } from '../../../src/core/addresses.ts';
import type { GatewayError } from '../../../src/core/errors.ts';
import { Pieces } from '../../../src/json/pieces.ts';
import { HttpClient } from '../../../src/wire/http-client.ts';
import { ScriptedUpstream } from '../../upstream/scripted.ts';

let upstream: ScriptedUpstream;
before(async () => {
  upstream = await ScriptedUpstream.start();
});
after(() => upstream.close());

/** A name server that answers each question with the next list, the last one for ever. */
function answering(...lists: readonly (readonly string[])[]): LookupFunction {
  let asked = 0;
  return (_name, options, callback) => {
    const list = lists[Math.min(asked, lists.length - 1)] ?? [];
    asked += 1;
    const found = list.map((address): LookupAddress => ({
      address,
      family: address.includes(':') ? 6 : 4,
    }));
    const [first] = found;
    if (options.all === true) callback(null, found);
    else callback(null, first?.address ?? '', first?.family);
  };
}

/** Sends one request and closes; undefined when it was answered. */
async function send(host: string, lookup: LookupFunction): Promise<GatewayError | undefined> {
  const client = new HttpClient({ lookup });
  try {
    return await sendBy(client, host);
  } finally {
    await client.close();
  }
}

function sendBy(client: HttpClient, host: string): Promise<GatewayError | undefined> {
  const { promise, resolve } = Promise.withResolvers<GatewayError | undefined>();
  const origin = `http://${host}:${upstream.port}`;
  const body = Pieces.of(Buffer.from('{"model":"any"}'));
  client.send(
    {
      endpoint: { origin, path: '/x', headers: [] },
      method: 'POST',
      headers: [],
      body,
      connectMs: 2000,
    },
    {
      head: () => undefined,
      data: () => undefined,
      end: () => resolve(undefined),
      failed: resolve,
    },
  );
  return promise;
}

const forbidden = [
  '169.254.169.254',
  '169.254.0.1',
  '169.254.170.2',
  '[fe80::1]',
  '[febf::1]',
  '[fd00:ec2::254]',
  '[::ffff:169.254.169.254]',
  '[64:ff9b::169.254.169.254]',
  '[2002:a9fe:a9fe::1]',
  '100.100.100.200',
  // The same address as a number, in octal and in hexadecimal.
  '2852039166',
  '0251.0376.0251.0376',
  '0xa9fea9fe',
];

for (const host of forbidden) {
  test(`S16 ${host} is refused without a look-up`, async () => {
    const lookup: LookupFunction = () => assert.fail('looked up');
    const error = await send(host, lookup);
    assert.equal(error?.code, 'upstream_unavailable');
    assert.match(error.detail ?? '', /FORBIDDEN_ADDRESS/);
  });
}

test('S16 a name that leads to metadata is refused, also when it led elsewhere before', async () => {
  upstream.script('any', { body: '{}', headers: { connection: 'close' }, framing: 'length' });
  const client = new HttpClient({ lookup: answering(['127.0.0.1'], ['169.254.169.254']) });
  assert.equal(await sendBy(client, 'rebinding.test'), undefined);
  const error = await sendBy(client, 'rebinding.test');
  assert.match(error?.detail ?? '', /FORBIDDEN_ADDRESS/);
  await client.close();
  for (const list of [['fe80::1'], ['fd00:ec2::254'], ['169.254.1.1', 'fe80::2']]) {
    assert.match((await send('name.test', answering(list)))?.detail ?? '', /FORBIDDEN_ADDRESS/);
  }
});

test('S16 of several addresses the others are used; loopback and private ones are allowed', async () => {
  upstream.script('any', { body: '{}' });
  assert.equal(await send('name.test', answering(['169.254.169.254', '127.0.0.1'])), undefined);
  assert.equal(await send('127.0.0.1', answering([])), undefined);
  const allowed = ['10.1.2.3', '192.168.1.1', '172.16.0.1', '[fd12::1]', '100.64.0.1', 'ollama'];
  for (const host of allowed) assert.equal(isForbiddenHost(host), false, host);
});

test('S16 what the resolver says of a name that it does not know comes through', async () => {
  const unknown = Object.assign(new Error('no'), { code: 'ENOTFOUND' });
  const error = await send('name.test', (_name, _options, callback) => callback(unknown, ''));
  assert.match(error?.detail ?? '', /ENOTFOUND/);
});
