/** One key that floods, and keys that are guessed (G2, G6, G8, B73, B74). */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { send, type Reply } from '../support/http.ts';
import { clientKey } from '../support/keys.ts';
import { assertErrorBody } from '../support/legality.ts';
import { clientDialects } from '../support/dialects.ts';
import { endpointOf, requestBody } from '../support/requests.ts';
import { replying } from '../upstream/reply.ts';
import { startOverloadRig, until, type OverloadRig } from './overload-rig.ts';

describe('G8 one key floods', { timeout: 500_000 }, () => {
  let rig: OverloadRig;
  before(async () => {
    rig = await startOverloadRig({ limits: { streams: 20 } });
  });
  after(() => rig.stop());

  test('the others are served, and it keeps its share', async () => {
    const other = await rig.key();
    const quick = rig.play('chat', replying('chat', { text: 'Hi' }));
    const quickBody = requestBody('chat', { model: quick.model, stream: false });
    assert.equal((await rig.call('chat', quickBody, { key: other })).status, 200);
    const held = rig.play('chat', { body: '', mute: true, ending: 'hang' });
    const heldBody = requestBody('chat', { model: held.model, stream: false });
    const leaving = new AbortController();
    const flood: Promise<Reply | undefined>[] = [];
    for (let i = 0; i < 100; i++) {
      const call = rig.call('chat', heldBody, { signal: leaving.signal });
      flood.push(call.catch(() => undefined));
    }
    await held.script.request(14);
    const served: number[] = [];
    for (let i = 0; i < 100; i++) {
      served.push((await rig.call('chat', quickBody, { key: other })).status);
    }
    assert.deepEqual(new Set(served), new Set([200]));
    leaving.abort();
    const answers = (await Promise.all(flood)).filter((reply) => reply !== undefined);
    assert.equal(answers.length, 85);
    for (const { status, headers } of answers) {
      assert.equal(status, 503);
      assert.match(String(headers['retry-after']), /^([1-9]|10)$/);
    }
    assert.equal(held.script.requests.length, 15);
    await until('all have ended', async () => (await rig.status())['calls_held'] === 0);
    // A flood gets some rows, and its size is logged.
    const rows = await rig.gateway.callRows('', 1);
    assert.ok(rows.length < 85, `${rows.length} rows`);
    assert.equal((await rig.status())['calls_shed'], 85);
  });

  test('G6 a late loop takes slots away, and what runs is not harmed', async () => {
    // Slots are never fewer than what is harmless: here all of them are.
    rig.press({ delayMs: 500 });
    const { model } = rig.play('chat', replying('chat', { text: 'Hi' }));
    const body = requestBody('chat', { model, stream: false });
    assert.equal((await rig.call('chat', body)).status, 200);
    assert.equal((await rig.status())['call_slots'], 20);
    rig.press({});
  });
});

/** One comes back every twelve seconds: not while they are made. */
const tries = 5;

describe('B73 B74 keys are guessed', { timeout: 500_000 }, () => {
  let rig: OverloadRig;
  before(async () => {
    rig = await startOverloadRig({
      limits: { bad_keys: tries },
      trusted_proxies: ['127.0.0.1/32'],
    });
  });
  after(() => rig.stop());

  const guess = (path: string, from: string, key = 'gw_guessed'): Promise<Reply> => {
    const headers = { authorization: `Bearer ${key}`, 'x-forwarded-for': from };
    const body = path === '/v1/models' ? undefined : {};
    return send(rig.gateway.url + path, body, { headers });
  };

  for (const [index, path] of [
    ...clientDialects.map((dialect) => endpointOf[dialect]),
    '/v1/messages/count_tokens',
    '/v1/models',
    '/v1/nothing',
  ].entries()) {
    test(`${path}: ${tries} a minute and address, then 429`, async () => {
      const from = `192.0.2.${index}`;
      for (let i = 0; i < tries; i++) assert.equal((await guess(path, from)).status, 401);
      const refused = await guess(path, from);
      assert.equal(refused.status, 429, refused.text);
      const dialect = path.startsWith('/v1/messages') ? 'messages' : 'chat';
      assert.equal(assertErrorBody(dialect, refused.json)['type'], 'rate_limit_error');
      assert.match(String(refused.headers['retry-after']), /^([1-9]|1[0-2])$/);
      // Other addresses, and clients with a key, are not affected.
      assert.equal((await guess(path, `198.51.100.${index}`)).status, 401);
      assert.notEqual((await guess(path, from, clientKey)).status, 429);
      assert.equal((await guess('/v1/models', from, clientKey)).status, 200);
    });
  }

  test('junk of all kinds counts alike', async () => {
    const from = '203.0.113.1';
    const junk = ['', "' OR 1=1--", 'x'.repeat(10_000), 'sk-ant-api03-abc', 'gw_00000000_'];
    for (let i = 0; i < tries; i++) {
      assert.equal((await guess('/v1/models', from, junk[i % junk.length])).status, 401);
    }
    for (const key of junk) assert.equal((await guess('/v1/models', from, key)).status, 429);
  });
});
