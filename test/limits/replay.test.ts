/** An answer that is given again takes nothing, and says nothing of limits that stood otherwise then (E17, §6). */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { clientDialects } from '../support/dialects.ts';
import { requestBody } from '../support/requests.ts';
import { replying } from '../upstream/reply.ts';
import { nanodollarsOfOutput, startLimitedRig, type LimitedRig } from './limited-rig.ts';

let rig: LimitedRig;
before(async () => {
  rig = await startLimitedRig();
});
after(() => rig.stop());

const usage = { fresh: 20, cacheRead: 0, cacheWrite: 0, output: 30, reasoning: 0 };

for (const dialect of clientDialects) {
  for (const stream of [false, true]) {
    test(`E17 a replay counts nowhere: ${dialect} ${stream ? 'stream' : 'document'}`, async () => {
      const { model, script } = rig.play(dialect, replying(dialect, { text: 'Good day.', usage }));
      const limits = [{ kind: 'requests', amount: 2 }];
      const key = await rig.key({ limits, budgets: [{ usd: 1, per: 'month' }] });
      const body = requestBody(dialect, { model, stream, more: { max_tokens: 100 } });
      const send = () => rig.call(key, dialect, body, { 'idempotency-key': 'once' });
      const limitHeaders = (headers: object): readonly string[] =>
        Object.keys(headers).filter((name) => name.includes('ratelimit'));
      const first = await send();
      assert.equal(first.status, 200, first.text);
      assert.notDeepEqual(limitHeaders(first.headers), []);
      await rig.gateway.callRows(model, 1);
      for (let i = 0; i < 4; i++) {
        const again = await send();
        assert.equal(again.status, 200, again.text);
        assert.equal(again.headers['idempotent-replayed'], 'true');
        assert.equal(again.text, first.text);
        assert.deepEqual(limitHeaders(again.headers), []);
      }
      assert.equal(script.requests.length, 1);
      assert.equal(await rig.spent(key), usage.output * nanodollarsOfOutput);
      assert.equal((await rig.call(key, dialect, body)).status, 200, 'one request is left');
      assert.equal((await rig.gateway.callRows(model, 2)).length, 2);
    });
  }
}
