/** `Idempotency-Key` (reliability.md §6, E17): asked twice, answered once, paid once. */
import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { clientKey } from '../support/keys.ts';
import { ask, startRig, type Rig } from '../support/rig.ts';
import { assertErrorBody } from '../support/legality.ts';
import { allDialects, listAt, textAt, type AnyDialect } from '../support/reading.ts';
import { endpointOf, requestBody } from '../support/requests.ts';
import { send, type Reply } from '../support/http.ts';
import { errorIn, replying } from '../upstream/reply.ts';

const otherKey = 'another-key-0123456789';
let rig: Rig;
before(async () => {
  const digest = `sha256:${hash('sha256', otherKey)}`;
  rig = await startRig({ keys: { other: { digest, models: ['*'] } } });
});
after(() => rig.stop());

let made = 0;
function freshKey(): string {
  made += 1;
  return `test key ${made}`;
}

function post(dialect: AnyDialect, body: unknown, key: string, as = clientKey): Promise<Reply> {
  return ask(rig, dialect, body, {
    anonymous: true,
    headers: { authorization: `Bearer ${as}`, 'idempotency-key': key },
  });
}

for (const dialect of allDialects) {
  for (const upstream of allDialects) {
    describe(`${dialect}, ${upstream} upstream`, () => {
      for (const stream of [false, true]) {
        test(`E17 a ${stream ? 'stream' : 'document'} is replayed, byte for byte, at no charge`, async () => {
          const key = freshKey();
          const { model, script } = rig.play(upstream, replying(upstream, { text: 'Hello' }));
          const body = requestBody(dialect, { model, stream });
          const first = await post(dialect, body, key);
          const again = await post(dialect, body, key);
          assert.equal(first.status, 200, first.text);
          assert.equal(first.headers['idempotent-replayed'], undefined);
          assert.equal(again.status, 200);
          assert.equal(again.text, first.text);
          assert.equal(again.headers['idempotent-replayed'], 'true');
          assert.equal(again.headers['content-type'], first.headers['content-type']);
          assert.equal(again.headers['x-gateway-target'], first.headers['x-gateway-target']);
          assert.notEqual(again.headers['x-request-id'], first.headers['x-request-id']);
          assert.equal(script.requests.length, 1);
          const rows = await rig.gateway.callRows(model, 1);
          assert.equal(rows.length, 1, 'one call, paid once');
        });
      }

      test('E17 the same key with another body: 422; of another client: its own call', async () => {
        const key = freshKey();
        const { model, script } = rig.play(upstream, replying(upstream, { text: 'Hello' }));
        const body = requestBody(dialect, { model, stream: false });
        assert.equal((await post(dialect, body, key)).status, 200);
        const conflict = await post(dialect, requestBody(dialect, { model, stream: true }), key);
        assert.equal(conflict.status, 422, conflict.text);
        assert.equal(conflict.headers['x-should-retry'], 'false');
        const error = assertErrorBody(dialect, conflict.json);
        assert.equal(error['type'], 'invalid_request_error');
        if (dialect === 'chat') assert.equal(error['code'], 'idempotency_conflict');
        const other = await post(dialect, body, key, otherKey);
        assert.equal(other.status, 200, other.text);
        assert.equal(other.headers['idempotent-replayed'], undefined);
        assert.equal(script.requests.length, 2);
      });

      test('E17 while the first sending is answered: 409, and what to do', async () => {
        const key = freshKey();
        const going = Promise.withResolvers<void>();
        const { model, script } = rig.play(
          upstream,
          { body: [going.promise], ending: 'hang' },
          replying(upstream, { text: 'Hello' }),
        );
        const body = requestBody(dialect, { model, stream: true });
        const left = new AbortController();
        const first = ask(rig, dialect, body, {
          headers: { 'idempotency-key': key },
          signal: left.signal,
        }).catch((error: unknown) => error);
        await script.request(0);
        const second = await post(dialect, body, key);
        assert.equal(second.status, 409, second.text);
        assert.equal(second.headers['retry-after'], '1');
        if (dialect === 'chat') {
          assert.equal(assertErrorBody(dialect, second.json)['code'], 'idempotency_conflict');
        }
        // The first one leaves: nothing is kept, and the next sending is a call of its own.
        left.abort();
        await first;
        going.resolve();
        await rig.gateway.noneLeft();
        const third = await post(dialect, { ...body, stream: false }, key);
        assert.equal(third.status, 200, third.text);
        assert.equal(third.headers['idempotent-replayed'], undefined);
      });

      test('E17 a refusal of the upstream is kept, a failure is not', async () => {
        const refused = rig.play(upstream, errorIn(upstream, 400, 'no'));
        const key = freshKey();
        const body = requestBody(dialect, { model: refused.model, stream: false });
        const first = await post(dialect, body, key);
        const again = await post(dialect, body, key);
        assert.equal(first.status, 400, first.text);
        assert.equal(again.status, 400);
        assert.equal(again.headers['idempotent-replayed'], 'true');
        assert.equal(refused.script.requests.length, 1);

        const failing = rig.play(
          upstream,
          errorIn(upstream, 401, 'no'),
          replying(upstream, { text: 'x' }),
        );
        const other = requestBody(dialect, { model: failing.model, stream: false });
        const second = freshKey();
        const failed = await post(dialect, other, second);
        assert.equal(failed.status, 400, failed.text);
        const better = await post(dialect, other, second);
        assert.equal(better.headers['idempotent-replayed'], undefined);
        assert.equal(failing.script.requests.length, 2, better.text);
      });

      test('E17 an answer of more than 1 MiB is told to be gone', async () => {
        const key = freshKey();
        const text = 'x'.repeat(1024 * 1024);
        const { model, script } = rig.play(upstream, replying(upstream, { text }));
        const body = requestBody(dialect, { model, stream: false });
        assert.equal((await post(dialect, body, key)).status, 200);
        const again = await post(dialect, body, key);
        assert.equal(again.status, 409, again.text);
        assert.equal(again.headers['x-should-retry'], 'false');
        if (dialect === 'chat') {
          assert.equal(assertErrorBody(dialect, again.json)['code'], 'idempotency_expired_body');
        }
        assert.equal(script.requests.length, 1);
      });
    });
  }

  test(`E17 ${dialect}: what was refused before anybody was asked is not kept`, async () => {
    const key = freshKey();
    const { model, script } = rig.play('chat', replying('chat', { text: 'Hello' }));
    const unknown = await post(
      dialect,
      requestBody(dialect, { model: 'none/x', stream: false }),
      key,
    );
    assert.equal(unknown.status, 404);
    const bad = await post(
      dialect,
      requestBody(dialect, { model, stream: false, more: { messages: [{ role: 'none' }] } }),
      key,
    );
    assert.equal(bad.status, 400);
    const good = await post(dialect, requestBody(dialect, { model, stream: false }), key);
    assert.equal(good.status, 200, good.text);
    assert.equal(script.requests.length, 1);
  });
}

test('E17 the dialects do not take each other’s answers', async () => {
  const key = freshKey();
  const { model } = rig.play('chat', replying('chat', { text: 'Hello' }));
  const body = { ...requestBody('messages', { model, stream: false }) };
  assert.equal((await post('messages', body, key)).status, 200);
  const other = await send(`${rig.gateway.url}${endpointOf.chat}`, body, {
    headers: { 'idempotency-key': key },
  });
  assert.equal(other.status, 422, other.text);
  assert.ok(textAt(other.json, 'type') !== 'message' && listAt(other.json, 'choices').length === 0);
});
