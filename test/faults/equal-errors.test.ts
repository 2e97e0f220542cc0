/**
 * The error that a client gets does not depend on the upstream's dialect, nor on whether it is the first
 * to meet it: C3, C6, F-7, F-9.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { isInSample } from '../support/depth.ts';
import type { Reply } from '../support/http.ts';
import { clientDialects, upstreamDialects } from '../support/dialects.ts';
import { objectAt, textAt, type AnyDialect } from '../support/reading.ts';
import { requestBody } from '../support/requests.ts';
import { ask, startRig, type Rig } from '../support/rig.ts';
import { errorIn } from '../upstream/reply.ts';
import { errorTable, lookOf, type ErrorLooks } from './fault-row.ts';

let rig: Rig;
before(async () => {
  const targets = ['up-chat/one-refused', 'up-messages/one-refused'];
  rig = await startRig({ models: { 'one-refused': { targets } } }, { random: () => 0 });
});
after(() => rig.stop());

function call(model: string, dialect: AnyDialect, stream = false): Promise<Reply> {
  return ask(rig, dialect, requestBody(dialect, { model, stream }));
}

function messageOf(reply: Reply): string {
  return textAt(objectAt(reply.json, 'error'), 'message');
}

function assertLook(reply: Reply, dialect: AnyDialect, look: ErrorLooks): void {
  assert.equal(reply.status, lookOf(look, dialect).status, reply.text);
  const error = objectAt(reply.json, 'error');
  assert.equal(error['type'], lookOf(look, dialect).type);
  if (dialect !== 'messages') assert.equal(error['code'], lookOf(look, dialect).code);
}

/** What an upstream says of its own trouble. */
const trouble = 'Traceback at 10.1.2.3:8443 in /srv/vllm/engine.py, key sk-secret-abcdef';

// `npm test` plays each status with each client and each upstream, but a fifth of their pairs.
for (const [i, dialect] of clientDialects.entries()) {
  for (const [j, upstream] of upstreamDialects.entries()) {
    const now = <T>(values: readonly T[]): readonly T[] =>
      values.filter((_, k) => isInSample(i + j + k, 5));
    describe(`${dialect} client, ${upstream} upstream`, () => {
      for (const words of now([
        'Rate limit reached for tokens per min (TPM) with sk-proj-abcdefghijk: 30000.',
      ])) {
        test("C6 the vendor's own words for a limit reach the client, without keys", async () => {
          const { model } = rig.play(upstream, errorIn(upstream, 429, words));
          const reply = await call(model, dialect);
          assertLook(reply, dialect, errorTable.e8);
          assert.match(messageOf(reply), /tokens per min \(TPM\) with \[redacted\]: 30000\./);
        });
      }

      for (const status of now([408, 409, 418, 451, 499, 500, 502, 503, 504, 520, 529, 999])) {
        test(`F-7 ${status}: the words of an upstream in trouble stay here`, async () => {
          for (const stream of [false, true]) {
            const { model } = rig.play(upstream, errorIn(upstream, status, trouble));
            const reply = await call(model, dialect, stream);
            assert.ok(reply.status >= 500, reply.text);
            assert.doesNotMatch(reply.text, /Traceback|10\.1\.2\.3|vllm|secret/);
          }
        });
      }

      for (const status of now([401, 402, 403])) {
        test(`C3 E15 ${status}: the client hears that it need not try again`, async () => {
          const { model } = rig.play(upstream, errorIn(upstream, status, trouble));
          const reply = await call(model, dialect);
          assertLook(reply, dialect, errorTable.e15);
          assert.equal(reply.headers['x-should-retry'], 'false');
          assert.doesNotMatch(reply.text, /Traceback|10\.1\.2\.3|secret/);
        });
      }

      for (const status of now([600, 700, 999])) {
        test(`F-9 F30 status ${status} is no answer`, async () => {
          const { model } = rig.play(upstream, errorIn(upstream, status, 'odd'));
          const reply = await call(model, dialect);
          assertLook(reply, dialect, errorTable.e12);
        });
      }

      for (const wait of now(['30', '60', '61', '86400', '9'.repeat(30)])) {
        test(`F-9 a limit with retry-after ${wait} is reported alike while the target cools down`, async () => {
          const limited = errorIn(upstream, 429, 'slow down', { 'retry-after': wait });
          const { model, script } = rig.play(upstream, limited);
          const told = [];
          for (let i = 0; i < 3; i += 1) {
            const reply = await call(model, dialect);
            assertLook(reply, dialect, errorTable.e8);
            told.push(reply.headers);
          }
          assert.equal(script.requests.length, 1, 'the others found it cooling down');
          for (const headers of told) {
            if (Number(wait) > 60) {
              assert.equal(headers['x-should-retry'], 'false');
              assert.equal(headers['retry-after'], undefined);
            } else {
              assert.equal(headers['x-should-retry'], undefined);
              const seconds = Number(headers['retry-after']);
              assert.ok(seconds <= Number(wait) && seconds > Number(wait) - 20, String(seconds));
            }
          }
        });
      }
    });
  }

  if (!isInSample(i, 3)) continue;
  test(`C2 C3 ${dialect}: where one target may do it later, a refused credential of another is not the answer`, async () => {
    rig.upstreams.chat.script('one-refused', errorIn('chat', 503, 'full'));
    rig.upstreams.messages.script('one-refused', errorIn('messages', 403, 'no'));
    const reply = await call('one-refused', dialect);
    assertLook(reply, dialect, errorTable.e10);
    assert.notEqual(reply.headers['x-should-retry'], 'false');
  });
}
