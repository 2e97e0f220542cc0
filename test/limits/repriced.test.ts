/** Prices that change while a call runs: a call goes by those that held when it began, whatever its key has. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { JsonObject } from '../../src/json/value.ts';
import { requestBody } from '../support/requests.ts';
import { chatChunk, chatDone, chatFrame, chatUsageChunk } from '../upstream/chat.ts';
import { providerAt } from '../support/gateway.ts';
import { nanodollarsOfOutput, startLimitedRig, type LimitedRig } from './limited-rig.ts';

const price = (output: number): JsonObject => ({ 'moved/*': { input: 0, output } });

let rig: LimitedRig;
before(async () => {
  rig = await startLimitedRig(({ chat }) => ({
    providers: { moved: providerAt('chat', chat.port) },
    prices: price(10),
  }));
});
after(() => rig.stop());

const limits: readonly (readonly [name: string, limits: JsonObject])[] = [
  ['without limits', {}],
  ['with a rate limit', { rpm: 100 }],
  ['with a budget', { budget: 1, per: 'day' }],
];
const changes: readonly (readonly [name: string, config: () => JsonObject])[] = [
  ['other prices', () => ({ prices: price(30) })],
  [
    'its provider is gone',
    () => ({ providers: { other: providerAt('chat', rig.upstreams.chat.port) } }),
  ],
];
for (const [change, config] of changes) {
  for (const [kind, own] of limits) {
    test(`F6 a price that changes does not change a running call: ${change}, key ${kind}`, async () => {
      const chat = { moved: providerAt('chat', rig.upstreams.chat.port) };
      await rig.gateway.reload({ prices: price(10), providers: chat });
      const said = Promise.withResolvers<void>();
      const name = `repriced-${change}-${kind}`.replaceAll(' ', '-');
      const usage = { prompt_tokens: 9, completion_tokens: 50, total_tokens: 59 };
      rig.upstreams.chat.script(name, {
        body: [
          chatFrame(chatChunk({ role: 'assistant', content: 'Good day to you. '.repeat(9) })),
          said.promise,
          chatFrame(chatChunk({}, 'stop')),
          chatFrame(chatUsageChunk(usage)),
          chatDone,
        ],
      });
      const model = `moved/${name}`;
      const key = await rig.key(own);
      const more = { max_tokens: 100 };
      const began = Promise.withResolvers<void>();
      const body = requestBody('chat', { model, stream: true, more });
      const running = rig.call(key, 'chat', body, {}, { onData: () => began.resolve() });
      await began.promise;
      await rig.gateway.reload({ providers: chat, ...config() });
      said.resolve();
      await running;
      const [row] = await rig.gateway.callRows(model, 1);
      assert.equal(Math.round(Number(row?.['cost_usd']) * 1e9), 50 * nanodollarsOfOutput);
    });
  }
}
