/** What every kind of counters does (reliability.md §6). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { BudgetItem } from '../../src/store/counters/counters.ts';
import { requestOf, fresh, granted, refused, settle, tryReserve, type Rig } from './rig.ts';

const dayMs = 86_400_000;

export function suite(name: string, rigOf: () => Rig): void {
  const budget = (amount: number, more: Partial<BudgetItem> = {}): BudgetItem => ({
    counter: fresh('key:b'),
    window: '2026-11',
    endsAt: Math.floor(rigOf().counters.wall()) + dayMs,
    nanodollars: 1_000_000_000,
    amount,
    ...more,
  });

  test(`${name}: K1, Q1: a budget for 2 calls and 50 in parallel admits exactly 2`, async () => {
    const rig = rigOf();
    const pays = budget(500_000_000);
    const all = await Promise.all(
      Array.from({ length: 50 }, () => tryReserve(rig, { budgets: [pays] })),
    );
    assert.equal(all.filter(({ result }) => result.granted).length, 2);
    assert.deepEqual(await rig.counters.balance(pays.counter, pays.window), {
      settled: 0,
      open: 1_000_000_000,
    });
  });

  test(`${name}: Q1: what was not spent is there again, what was spent is not`, async () => {
    const rig = rigOf();
    const pays = budget(600_000_000);
    const first = await granted(rig, { budgets: [pays] });
    assert.equal(first.budgets[0]?.remaining, 400_000_000);
    const no = await refused(rig, { budgets: [pays] });
    assert.deepEqual([no.kind, no.index, no.waitMs], ['budget', 0, undefined]);
    assert.deepEqual([no.state.limit, no.state.remaining], [1_000_000_000, 400_000_000]);
    await settle(rig, first.callId, { nanodollars: 100_000_000 });
    await granted(rig, { budgets: [pays] });
    assert.deepEqual(await rig.counters.balance(pays.counter, pays.window), {
      settled: 100_000_000,
      open: 600_000_000,
    });
  });

  test(`${name}: Q1: a cost above the reservation is counted in full`, async () => {
    const rig = rigOf();
    const pays = budget(10);
    const { callId } = await granted(rig, { budgets: [pays] });
    await settle(rig, callId, { nanodollars: 1_500_000_000 });
    const no = await refused(rig, { budgets: [{ ...pays, amount: 0 }] });
    assert.equal(no.state.remaining, 0);
  });

  test(`${name}: Q3: a second settlement, or one of an unknown call, changes nothing`, async () => {
    const rig = rigOf();
    const pays = budget(100);
    const { callId } = await granted(rig, { budgets: [pays] });
    await settle(rig, callId, { nanodollars: 70 });
    await settle(rig, callId, { nanodollars: 70 });
    await settle(rig, 'call_nobody', { nanodollars: 70 });
    assert.deepEqual(await rig.counters.balance(pays.counter, pays.window), {
      settled: 70,
      open: 0,
    });
  });

  test(`${name}: a reservation that is sent again takes nothing twice`, async () => {
    const rig = rigOf();
    const request = requestOf({
      concurrent: [{ counter: fresh('c'), most: 1 }],
      requests: [{ counter: fresh('r'), perMinute: 2 }],
      tokens: [{ counter: fresh('t'), perMinute: 100, amount: 60 }],
      budgets: [budget(600_000_000)],
    });
    const first = await rig.counters.reserve(request);
    const second = await rig.counters.reserve(request);
    assert.ok(first.granted && second.granted);
    assert.deepEqual(second, first);
    assert.deepEqual(
      [first.requests[0]?.remaining, first.tokens[0]?.remaining, first.budgets[0]?.remaining],
      [1, 40, 400_000_000],
    );
  });

  test(`${name}: K7: budgets refuse at the limit, say when the window ends, and begin anew in the next`, async () => {
    const rig = rigOf();
    const pays = budget(400_000_000);
    const remaining: (number | undefined)[] = [];
    for (let i = 0; i < 2; i++) {
      const { callId, budgets } = await granted(rig, { budgets: [pays] });
      remaining.push(budgets[0]?.remaining);
      await settle(rig, callId, { nanodollars: 400_000_000 });
    }
    assert.deepEqual(remaining, [600_000_000, 200_000_000]);
    const no = await refused(rig, { budgets: [pays] });
    assert.ok(no.waitMs !== undefined && Math.abs(no.waitMs - dayMs) <= 1);
    assert.equal(no.waitMs, no.state.resetMs);
    const next = { ...pays, window: '2026-12', endsAt: (pays.endsAt ?? 0) + dayMs };
    const state = await granted(rig, { budgets: [next] });
    assert.deepEqual(
      [state.budgets[0]?.window, state.budgets[0]?.remaining],
      ['2026-12', 600_000_000],
    );
  });

  test(`${name}: G17: a spent window is spent for good, whatever the clock of who asks says`, async () => {
    const rig = rigOf();
    const spent = budget(1_000_000_000);
    const { callId } = await granted(rig, { budgets: [spent] });
    await settle(rig, callId, { nanodollars: 1_000_000_000 });
    const next = { ...spent, window: '2026-12', endsAt: (spent.endsAt ?? 0) + dayMs };
    await granted(rig, { budgets: [next] });
    assert.equal((await refused(rig, { budgets: [{ ...spent, amount: 1 }] })).kind, 'budget');
  });

  test(`${name}: what never fits says so, and a budget of 0 admits what is free`, async () => {
    const rig = rigOf();
    const big = await refused(rig, { budgets: [budget(2_000_000_000)] });
    assert.equal(big.waitMs, undefined);
    const tokens = [{ counter: fresh('t'), perMinute: 100, amount: 101 }];
    assert.equal((await refused(rig, { tokens })).waitMs, undefined);
    const none = { nanodollars: 0, window: 'ever', endsAt: undefined };
    const no = await refused(rig, { budgets: [budget(1, none)] });
    assert.deepEqual([no.waitMs, no.state.resetMs], [undefined, 0]);
    await granted(rig, { budgets: [budget(0, none)] });
  });

  test(`${name}: K6: a refusal by any of them changes none`, async () => {
    const rig = rigOf();
    const concurrent = [{ counter: fresh('c'), most: 3 }];
    const requests = [{ counter: fresh('r'), perMinute: 5 }];
    const tokens = [{ counter: fresh('t'), perMinute: 1000, amount: 100 }];
    const pays = budget(100);
    const good = { concurrent, requests, tokens, budgets: [pays] };
    const before = await granted(rig, good);
    const full = [{ counter: fresh('c'), most: 0 }];
    const bad = [
      { ...good, concurrent: [...concurrent, ...full] },
      { ...good, tokens: [...tokens, { counter: fresh('t'), perMinute: 10, amount: 11 }] },
      { ...good, budgets: [pays, budget(2_000_000_000)] },
    ];
    const kinds = [];
    for (const each of bad) {
      const { kind, index } = await refused(rig, each);
      kinds.push(`${kind} ${index}`);
    }
    assert.deepEqual(kinds, ['concurrent 1', 'tokens 1', 'budget 1']);
    const after = await granted(rig, good);
    assert.equal((before.requests[0]?.remaining ?? 0) - (after.requests[0]?.remaining ?? 0), 1);
    assert.equal((before.tokens[0]?.remaining ?? 0) - (after.tokens[0]?.remaining ?? 0), 100);
    assert.equal((before.budgets[0]?.remaining ?? 0) - (after.budgets[0]?.remaining ?? 0), 100);
    await granted(rig, good);
    assert.equal((await refused(rig, good)).kind, 'concurrent');
  });

  test(`${name}: the first of concurrency, requests, tokens and budget is named`, async () => {
    const rig = rigOf();
    const place = { counter: fresh('c'), most: 1 };
    const request = { counter: fresh('r'), perMinute: 1 };
    const token = { counter: fresh('t'), perMinute: 10, amount: 10 };
    const pays = budget(1_000_000_000);
    await granted(rig, {
      concurrent: [place],
      requests: [request],
      tokens: [token],
      budgets: [pays],
    });
    const kindOf = async (wanted: object): Promise<string> => (await refused(rig, wanted)).kind;
    const last = { budgets: [pays] };
    const third = { ...last, tokens: [token] };
    const second = { ...third, requests: [request] };
    assert.equal(await kindOf({ ...second, concurrent: [place] }), 'concurrent');
    assert.equal(await kindOf(second), 'requests');
    assert.equal(await kindOf(third), 'tokens');
    assert.equal(await kindOf(last), 'budget');
  });

  test(`${name}: concurrent calls hold their places until they end`, async () => {
    const rig = rigOf();
    const concurrent = [{ counter: fresh('c'), most: 2 }];
    const first = await granted(rig, { concurrent });
    await granted(rig, { concurrent });
    const no = await refused(rig, { concurrent });
    assert.deepEqual([no.kind, no.state.limit, no.waitMs], ['concurrent', 2, undefined]);
    await settle(rig, first.callId, {});
    await granted(rig, { concurrent });
    await refused(rig, { concurrent });
  });

  test(`${name}: F73: a call that runs on without its client gives its place back, and nothing else`, async () => {
    const rig = rigOf();
    const concurrent = [{ counter: fresh('c'), most: 1 }];
    const tokens = [{ counter: fresh('t'), perMinute: 100, amount: 60 }];
    const pays = budget(600_000_000);
    const { callId } = await granted(rig, { concurrent, tokens, budgets: [pays] });
    await refused(rig, { concurrent });
    rig.counters.releaseSlots(callId);
    rig.counters.releaseSlots('call_nobody');
    // It is on its way to counters that are elsewhere, over a connection that may have to be opened first.
    let next = await tryReserve(rig, { concurrent });
    for (let asked = 1; !next.result.granted && asked < 600; asked += 1) {
      await sleep(50);
      next = await tryReserve(rig, { concurrent });
    }
    assert.ok(next.result.granted);
    assert.equal((await refused(rig, { tokens })).kind, 'tokens');
    assert.equal((await refused(rig, { budgets: [pays] })).kind, 'budget');
    await settle(rig, callId, { tokens: 10, nanodollars: 70 });
    assert.equal(
      (await refused(rig, { concurrent })).kind,
      'concurrent',
      'no place is freed twice',
    );
    assert.deepEqual(await rig.counters.balance(pays.counter, pays.window), {
      settled: 70,
      open: 0,
    });
    await granted(rig, { tokens });
  });

  test(`${name}: H5: requests a minute: the burst, then one each second, and the exact wait`, async () => {
    const rig = rigOf();
    const requests = [{ counter: fresh('r'), perMinute: 60 }];
    for (let left = 59; left >= 0; left--) {
      const { requests: states } = await granted(rig, { requests });
      assert.equal(states[0]?.remaining, left);
      assert.equal(states[0]?.resetMs, (60 - left) * 1000);
    }
    const no = await refused(rig, { requests });
    assert.deepEqual([no.kind, no.waitMs, no.state.remaining], ['requests', 1000, 0]);
    await rig.pass(999);
    assert.equal((await refused(rig, { requests })).waitMs, 1);
    await rig.pass(1);
    await granted(rig, { requests });
    assert.equal((await refused(rig, { requests })).waitMs, 1000);
  });

  test(`${name}: K7: 60 requests a minute under steady pressure for 20 s: 20 and the burst`, async () => {
    const rig = rigOf();
    const requests = [{ counter: fresh('r'), perMinute: 60 }];
    let accepted = 0;
    for (let at = 0; at < 20_000; at += 250) {
      for (let i = 0; i < (at === 0 ? 70 : 2); i++) {
        const { callId, result } = await tryReserve(rig, { requests });
        if (!result.granted) continue;
        accepted += 1;
        rig.counters.settle(callId, { tokens: 0, nanodollars: 0 });
      }
      await rig.pass(250);
    }
    assert.equal(accepted, 60 + 19);
  });

  test(`${name}: tokens a minute: reserved, given back up to full, owed down to one minute`, async () => {
    const rig = rigOf();
    const counter = fresh('t');
    const request = (amount: number): object => ({
      tokens: [{ counter, perMinute: 6000, amount }],
    });
    const first = await granted(rig, request(6000));
    assert.equal(first.tokens[0]?.resetMs, 60_000);
    assert.equal((await refused(rig, request(100))).waitMs, 1000);
    await settle(rig, first.callId, { tokens: 1000 });
    const second = await granted(rig, request(5000));
    assert.equal(second.tokens[0]?.remaining, 0);
    await rig.pass(10_000);
    // 1,000 came back meanwhile; the refund of 5,000 fills it up and no further.
    await settle(rig, second.callId, { tokens: 0 });
    const third = await granted(rig, request(0));
    assert.equal(third.tokens[0]?.remaining, 6000);
    const fourth = await granted(rig, request(1000));
    await settle(rig, fourth.callId, { tokens: 1_000_000 });
    const no = await refused(rig, request(1));
    assert.deepEqual([no.state.remaining, no.waitMs], [0, 60_010]);
    await rig.pass(20_000);
    assert.equal((await refused(rig, request(1))).waitMs, 40_010);
  });

  test(`${name}: H5: the wait is that of the counter that takes longest`, async () => {
    const rig = rigOf();
    const requests = [{ counter: fresh('r'), perMinute: 1 }];
    const tokens = [{ counter: fresh('t'), perMinute: 60, amount: 60 }];
    await granted(rig, { requests });
    await granted(rig, { tokens });
    await rig.pass(1000);
    const no = await refused(rig, {
      requests,
      tokens: [{ counter: tokens[0]?.counter ?? '', perMinute: 60, amount: 10 }],
    });
    assert.deepEqual([no.kind, no.waitMs], ['requests', 59_000]);
    const both = await refused(rig, { requests: [], tokens });
    assert.equal(both.waitMs, 59_000);
  });

  test(`${name}: a limit that is changed holds at once`, async () => {
    const rig = rigOf();
    const counter = fresh('r');
    for (let i = 0; i < 10; i++) await granted(rig, { requests: [{ counter, perMinute: 10 }] });
    await granted(rig, { requests: [{ counter, perMinute: 20 }] });
    const no = await refused(rig, { requests: [{ counter, perMinute: 5 }] });
    assert.equal(no.state.limit, 5);
  });
}
