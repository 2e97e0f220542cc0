/** Properties that hold for every kind of counters, whatever is done to them. */
import assert from 'node:assert/strict';
import * as fc from 'fast-check';
import { test } from 'node:test';
import type { ReserveRequest } from '../../src/store/counters/counters.ts';
import { History } from './history.ts';
import { Model } from './model.ts';
import { requestOf, fresh, type Rig } from './rig.ts';

const seed = Number(process.env['PROPERTY_SEED'] ?? '20261121');

type Step =
  | { readonly kind: 'reserve'; readonly shape: Shape }
  | { readonly kind: 'settle'; readonly which: number; readonly share: number }
  | { readonly kind: 'pass'; readonly ms: number };

interface Shape {
  readonly places: readonly number[];
  readonly requests: readonly number[];
  readonly tokens: readonly { readonly of: number; readonly amount: number }[];
  readonly budgets: readonly { readonly of: number; readonly amount: number }[];
}

/** Two counters of each kind, small enough that everything refuses now and then. */
const some = fc.uniqueArray(fc.integer({ min: 0, max: 1 }), { maxLength: 2 });
const amounts = (max: number): fc.Arbitrary<readonly { of: number; amount: number }[]> =>
  fc.uniqueArray(
    fc.record({ of: fc.integer({ min: 0, max: 1 }), amount: fc.integer({ min: 0, max }) }),
    { maxLength: 2, selector: ({ of }) => of },
  );
const shape: fc.Arbitrary<Shape> = fc.record({
  places: some,
  requests: some,
  tokens: amounts(700),
  budgets: amounts(600),
});
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('reserve' as const), shape }) },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('settle' as const),
      which: fc.nat(20),
      share: fc.integer({ min: 0, max: 300 }),
    }),
  },
  {
    weight: 2,
    // Shorter than a lease in all.
    arbitrary: fc.record({
      kind: fc.constant('pass' as const),
      ms: fc.integer({ min: 0, max: 900 }),
    }),
  },
);

function requestOfShape(names: string, wanted: Shape): ReserveRequest {
  return requestOf({
    concurrent: wanted.places.map((i) => ({ counter: `${names}c${i}`, most: 3 + i })),
    requests: wanted.requests.map((i) => ({ counter: `${names}r${i}`, perMinute: 7 + 60 * i })),
    tokens: wanted.tokens.map(({ of, amount }) => ({
      counter: `${names}t${of}`,
      perMinute: 1000 + of,
      amount,
    })),
    budgets: wanted.budgets.map(({ of, amount }) => ({
      counter: `${names}b${of}`,
      window: 'ever',
      endsAt: undefined,
      nanodollars: 1500,
      amount,
    })),
  });
}

export function properties(name: string, rigOf: () => Rig, runs: number): void {
  test(`${name}: any order of reservations, settlements and time decides as the model does`, async (t) => {
    t.diagnostic(`seed ${seed}`);
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 30 }), (steps) =>
        agree(rigOf(), steps),
      ),
      { seed, numRuns: runs },
    );
  });

  test(`${name}: Q1: every history of concurrent calls is one that some order explains`, async (t) => {
    t.diagnostic(`seed ${seed}`);
    const random = fc.sample(fc.integer({ min: 0, max: 1000 }), { seed, numRuns: 400 });
    const history = new History(1500);
    const budget = { counter: fresh('b'), window: 'ever', endsAt: undefined, nanodollars: 1500 };
    const rig = rigOf();
    let next = 0;
    const roll = (): number => random[next++ % random.length] ?? 0;
    const caller = async (): Promise<void> => {
      for (let i = 0; i < 12; i++) {
        const amount = roll();
        const request = requestOf({ budgets: [{ ...budget, amount }] });
        const end = history.requests(request.callId, amount);
        const { granted } = await rig.counters.reserve(request);
        end(granted);
        if (!granted) continue;
        if (roll() % 2 === 0) await rig.settled();
        // Little, so that others find something again.
        const nanodollars = roll() % 20 === 0 ? amount : Math.min(amount, roll() % 30);
        history.settles(request.callId, nanodollars);
        rig.counters.settle(request.callId, { tokens: 0, nanodollars });
      }
    };
    await Promise.all(Array.from({ length: 16 }, caller));
    await rig.settled();
    history.check();
    assert.deepEqual(await rig.counters.balance(budget.counter, 'ever'), {
      settled: history.settled,
      open: 0,
    });
  });

  test(`${name}: Q2: 1,000 calls with random outcomes: the counters are the sum of the ledger`, async () => {
    const rig = rigOf();
    const random = fc.sample(fc.integer({ min: 0, max: 999_999 }), { seed, numRuns: 1000 });
    const counter = fresh('b');
    const place = { counter: fresh('c'), most: 100_000 };
    let ledger = 0;
    const call = async (number: number): Promise<void> => {
      const budgets = [
        { counter, window: 'ever', endsAt: undefined, nanodollars: 1e12, amount: number },
      ];
      const request = requestOf({ concurrent: [place], budgets });
      const { granted } = await rig.counters.reserve(request);
      assert.ok(granted);
      // Ended early, failed without a cost, over the reservation, settled twice.
      const cost = [number, 0, number * 2, Math.floor(number / 3)][number % 4] ?? 0;
      ledger += cost;
      rig.counters.settle(request.callId, { tokens: 0, nanodollars: cost });
      if (number % 3 === 0) rig.counters.settle(request.callId, { tokens: 0, nanodollars: 5 });
    };
    // Not all at once: nobody waits for a connection for longer than two seconds.
    const left = random.values();
    const caller = async (): Promise<void> => {
      for (const number of left) await call(number);
    };
    await Promise.all(Array.from({ length: 40 }, caller));
    await rig.settled();
    assert.deepEqual(await rig.counters.balance(counter, 'ever'), { settled: ledger, open: 0 });
    const free = await rig.counters.reserve(requestOf({ concurrent: [{ ...place, most: 1 }] }));
    assert.ok(free.granted);
  });
}

async function agree(rig: Rig, steps: readonly Step[]): Promise<void> {
  const model = new Model();
  const names = fresh('n');
  const live: ReserveRequest[] = [];
  for (const each of steps) {
    if (each.kind === 'pass') {
      await rig.pass(each.ms);
      model.pass(each.ms);
    } else if (each.kind === 'settle') {
      const request = live.splice(each.which % Math.max(1, live.length), 1)[0];
      if (request === undefined) continue;
      const used = { tokens: each.share * 4, nanodollars: each.share };
      rig.counters.settle(request.callId, used);
      model.settle(request.callId, used);
      await rig.settled();
    } else {
      const request = requestOfShape(names, each.shape);
      const result = await rig.counters.reserve(request);
      assert.equal(
        result.granted ? 'granted' : `${result.kind} ${result.index}`,
        model.reserve(request),
      );
      if (result.granted) live.push(request);
    }
  }
  for (const place of [0, 1]) {
    const counter = `${names}b${place}`;
    assert.deepEqual(await rig.counters.balance(counter, 'ever'), model.balance(counter, 'ever'));
  }
  for (const request of live) rig.counters.settle(request.callId, { tokens: 0, nanodollars: 0 });
  await rig.settled();
}
