/** What budgets tell, with admission and billing as one gateway has them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CallGrant } from '../../../src/access/call-grant.ts';
import { budgetOf, heldBy, LimitsRig, price, principalOf } from './limits-rig.ts';

test('budget events: once a window and threshold; a restart is no news; a refusal is the last', async () => {
  const rig = new LimitsRig();
  const principal = principalOf([heldBy('k1', { budgets: [budgetOf(1_000_000)] })], {
    shrink: false,
  });
  const use = async (id: string, output: number): Promise<void> => {
    const grant = await rig.admit({ id, principal, prompt: 0, maxOutputTokens: 100 });
    rig.settle(grant, { freshInputTokens: 0, outputTokens: output });
  };
  for (let i = 0; i < 6; i++) await use(`a${i}`, 50);
  assert.deepEqual(
    rig.events.map((event) => event.threshold),
    [50],
  );
  await use('b1', 100);
  await use('b2', 60);
  await assert.rejects(use('c', 1));
  await assert.rejects(use('d', 1));
  assert.deepEqual(
    rig.events.map(({ threshold, refused }) => [threshold, refused]),
    [
      [50, false],
      [80, false],
      [100, true],
    ],
  );
  const { window = '' } = rig.events[0] ?? {};
  const spent = [{ counter: 'key:k1:day', window, nanodollars: 900_000 }];
  const after = new LimitsRig(() => price, spent);
  const grant = await after.admit({ id: 'e', principal, prompt: 0, maxOutputTokens: 20 });
  after.settle(grant, { freshInputTokens: 0, outputTokens: 10 });
  assert.deepEqual(after.events, []);
});

test('issue 5 budget events tell of the window that paid, also where the next one has begun', async () => {
  const rig = new LimitsRig();
  const principal = principalOf([heldBy('k1', { budgets: [budgetOf(1_000_000)] })]);
  const admit = async (id: string, minute: number): Promise<CallGrant | undefined> => {
    rig.clock.time = minute * 60_000;
    return rig.admit({ id, principal, prompt: 0, maxOutputTokens: 450 });
  };
  const stream = await admit('stream', 24 * 60 - 1);
  await admit('next', 24 * 60);
  rig.clock.time += 60_000;
  rig.settle(stream, { freshInputTokens: 0, outputTokens: 450 });
  assert.deepEqual(
    rig.events.map(({ threshold, window, endsAt }) => [threshold, window, endsAt]),
    [[80, '2026-03-01', Date.UTC(2026, 2, 2)]],
  );
});

for (const refused of [false, true]) {
  const what = refused ? 'refused' : 'granted';
  test(`issue 5 a reservation that is ${what} when its day is over counts for the window that it named`, async () => {
    const rig = new LimitsRig();
    const principal = principalOf([heldBy('k1', { budgets: [budgetOf(1_000_000)] })], {
      shrink: false,
    });
    const answered = Promise.withResolvers<void>();
    const { counters } = rig;
    const reserve = counters.reserve.bind(counters);
    counters.reserve = async (asked) => {
      const result = await reserve(asked);
      if (asked.callId === 'late') await answered.promise;
      return result;
    };
    const late = rig.admit({ id: 'late', principal, maxOutputTokens: refused ? 900 : 400 });
    rig.clock.time += 86_400_000;
    await rig.admit({ id: 'next', principal, maxOutputTokens: 100 });
    answered.resolve();
    const window = { counter: 'key:k1:day', window: '2026-03-01', endsAt: Date.UTC(2026, 2, 2) };
    if (refused) {
      await assert.rejects(late);
      const told = rig.events.map((event) => [event.threshold, event.window, event.endsAt]);
      assert.deepEqual(told, [[100, window.window, window.endsAt]]);
    } else {
      const { budgets } = rig.settle(await late, { freshInputTokens: 0, outputTokens: 100 });
      assert.deepEqual(budgets, [window]);
    }
  });
}

test('issue 5 budget events of a budget that is raised, where the clock of the counters is ahead', async () => {
  const rig = new LimitsRig();
  rig.aheadMs = 3_600_000;
  const use = async (id: string, budget: number, output: number): Promise<void> => {
    const principal = principalOf([heldBy('k1', { budgets: [budgetOf(budget)] })], {
      shrink: false,
    });
    const grant = await rig.admit({ id, principal, prompt: 0, maxOutputTokens: output });
    rig.settle(grant, { freshInputTokens: 0, outputTokens: output });
  };
  await use('a', 1_000_000, 450);
  await assert.rejects(use('b', 1_000_000, 100));
  rig.clock.time += 1000;
  for (let i = 0; i < 8; i++) await use(`c${i}`, 2_000_000, 50);
  assert.deepEqual(
    rig.events.map(({ threshold, budgetNanodollars }) => [threshold, budgetNanodollars]),
    [
      [80, 1_000_000],
      [100, 1_000_000],
      [50, 2_000_000],
      [80, 2_000_000],
    ],
  );
});
