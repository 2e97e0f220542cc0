/** What only the operator can mend, or must know, is a line of the log: F4 (TLS that is refused), F28 (redirects). */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import { createServer, type Server } from 'node:tls';
import { tryParseObject } from '../../src/core/json.ts';
import type { JsonObject } from '../../src/core/conversation.ts';
import { Instance } from '../cluster/instance.ts';
import { ScriptedUpstream } from '../upstream/scripted.ts';

const folder = join(import.meta.dirname, '../support/tls');
const pem = (name: string): Buffer => readFileSync(join(folder, `${name}.pem`));
const secret = 'signed-with-a-secret';

let upstream: ScriptedUpstream;
let elsewhere: ScriptedUpstream;
let expired: Server;
let instance: Instance;
before(async () => {
  upstream = await ScriptedUpstream.start();
  elsewhere = await ScriptedUpstream.start();
  expired = createServer({ key: pem('leaf-key'), cert: pem('expired') });
  expired.on('tlsClientError', () => undefined);
  expired.listen(0, '127.0.0.1');
  await once(expired, 'listening');
  const { port } = expired.address() as AddressInfo;
  const dialect = 'openai-chat';
  instance = await Instance.start({
    storage: 'sqlite',
    upstream: upstream.port,
    config: {
      providers: {
        up: { dialect, base_url: `http://127.0.0.1:${upstream.port}/v1`, api_key: 'k' },
        expired: {
          dialect,
          base_url: `https://127.0.0.1:${port}/v1`,
          api_key: 'k',
          ca: join(folder, 'ca.pem'),
        },
      },
    },
  });
});
after(async () => {
  instance.remove();
  expired.close();
  await upstream.close();
  await elsewhere.close();
});

function linesOf(event: string): readonly JsonObject[] {
  return instance.log
    .split('\n')
    .map((line) => tryParseObject(line))
    .filter((line) => line !== undefined)
    .filter((line) => line['event'] === event);
}

test('F4 F28 refused certificates are told once a minute, and redirects with where they point', async () => {
  const { key } = await instance.makeKey();
  for (const model of ['expired/a', 'expired/b', 'expired/a']) {
    assert.equal((await instance.chat(key, { model })).status, 502);
  }
  const place = `http://127.0.0.1:${elsewhere.port}/elsewhere`;
  upstream.script('moved', {
    status: 307,
    headers: { location: `${place}?sig=${secret}` },
    body: '',
  });
  const reply = await instance.chat(key, { model: 'up/moved' });
  assert.equal(reply.status, 502);
  assert.ok(!reply.text.includes('elsewhere'), reply.text);
  // The log is written out at the end.
  await instance.stop();

  const untrusted = linesOf('upstream not trusted');
  assert.equal(untrusted.length, 1, instance.log);
  assert.equal(untrusted[0]?.['level'], 'error');
  assert.equal(untrusted[0]['provider'], 'expired');
  assert.match(String(untrusted[0]['message']), /CERT_HAS_EXPIRED/);

  const moved = linesOf('attempt failed').filter(({ target }) => target === 'up/moved');
  assert.deepEqual(
    moved.map(({ location }) => location),
    [place],
  );
  // One line for the attempt that failed, and one for its call, under one id.
  const id = reply.headers['x-request-id'];
  assert.deepEqual([moved[0]?.['call'], moved[0]?.['level']], [id, 'warn']);
  const calls = linesOf('call');
  assert.equal(calls.length, 4);
  assert.equal(calls.filter((line) => line['id'] === id).length, 1);
  assert.ok(!instance.log.includes(secret));
  assert.equal(elsewhere.all.length, 0, 'never followed');
});
