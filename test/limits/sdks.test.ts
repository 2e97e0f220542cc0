/** The official SDKs at a limit: the right error, no useless wait, a retry where one helps. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { sdks, type SdkClient } from '../support/sdks.ts';
import { replying } from '../upstream/reply.ts';
import { startLimitedRig, type LimitedRig } from './limited-rig.ts';

let rig: LimitedRig;
before(async () => {
  rig = await startLimitedRig();
});
after(() => rig.stop());

const used = (output: number): { text: string; usage: typeof usage } => ({
  text: 'Good day.',
  usage: { ...usage, output },
});
const usage = { fresh: 20, cacheRead: 0, cacheWrite: 0, output: 0, reasoning: 0 };

interface Thrown {
  readonly names: readonly string[];
  readonly status: unknown;
}

async function thrownBy(call: Promise<unknown>): Promise<Thrown> {
  try {
    await call;
  } catch (error) {
    assert.ok(error instanceof Error);
    const names: string[] = [];
    for (let at: unknown = error.constructor; typeof at === 'function';) {
      names.push(at.name);
      at = Object.getPrototypeOf(at);
    }
    return { names, status: Reflect.get(error, 'status') };
  }
  return assert.fail('the call succeeded');
}

for (const sdk of sdks) {
  describe(sdk.name, () => {
    const connect = async (limits: object): Promise<SdkClient> => {
      const { key } = await rig.key({ ...limits });
      return sdk.connect({ url: rig.gateway.url, key, maxRetries: 2 });
    };

    test('E8 a wait beyond a minute: RateLimitError at once, nothing is slept through', async () => {
      const { model, script } = rig.play(sdk.dialect, replying(sdk.dialect, used(5000)));
      const client = await connect({ tpm: 400 });
      const question = { model, text: 'Hi', maxTokens: 300 };
      await client.plain(question);
      const { names, status } = await thrownBy(client.plain(question));
      // Not even one retry: the SDK was told that none helps.
      assert.equal((await rig.gateway.callRows(model, 2)).length, 2);
      assert.equal(status, 429);
      assert.ok(names.includes('RateLimitError'), names.join(' '));
      await thrownBy(client.iterate(question));
      assert.equal(script.requests.length, 1);
    });

    test('E9 a spent budget: no retry', async () => {
      const { model } = rig.play(sdk.dialect, replying(sdk.dialect, used(5)));
      const client = await connect({ budget: 0, per: 'day' });
      const { names, status } = await thrownBy(client.plain({ model, text: 'Hi' }));
      assert.equal(status, sdk.dialect === 'chat' ? 429 : 402);
      assert.ok(names.includes(sdk.dialect === 'chat' ? 'RateLimitError' : 'APIError'));
      assert.equal((await rig.gateway.callRows(model, 1)).length, 1);
    });

    test('E8 a short wait is waited for, and the call succeeds', async () => {
      const { model } = rig.play(sdk.dialect, replying(sdk.dialect, used(60_000)));
      const client = await connect({ tpm: 60_000 });
      const question = { model, text: 'Hi', maxTokens: 300 };
      await client.plain(question);
      assert.equal((await client.plain(question)).text, 'Good day.');
    });
  });
}
