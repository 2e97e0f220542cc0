/** What counters' readings mean for a reservation: the same for all kinds of counters. */
import type {
  Balance,
  BudgetItem,
  BudgetState,
  CounterState,
  ReserveRequest,
  Granted,
  Refused,
} from './counters.ts';

export interface BudgetReading extends Balance {
  /** The window that is counted: the reservation's, or a later one that calls already reserved from. */
  readonly window: string;
}

/** Where the counters of a reservation are, each list in the reservation's order. */
export interface Reading {
  /** Taken slots. */
  readonly concurrent: readonly number[];
  /** Units that are missing to a full bucket. */
  readonly requests: readonly number[];
  readonly tokens: readonly number[];
  readonly budgets: readonly BudgetReading[];
}

/** The limit that refuses, without the headers of the others. */
type Verdict = Omit<Refused, 'requests' | 'tokens'>;

/** Undefined when everything fits. `wall` is the counters' own clock. */
export function refusal(
  request: ReserveRequest,
  reading: Reading,
  wall: number,
): Refused | undefined {
  const refused =
    refusedPlace(request, reading) ??
    refusedRate(request, reading, wall) ??
    refusedBudget(request, reading, wall);
  if (refused === undefined) return undefined;
  const states = (kind: 'requests' | 'tokens'): readonly CounterState[] =>
    request[kind].map(({ counter, perMinute }, i) =>
      rateState(counter, perMinute, owed(reading[kind][i], perMinute, kind)),
    );
  return { ...refused, requests: states('requests'), tokens: states('tokens') };
}

/**
 * The states after a grant.
 * @param reading from before the reservation, or (`taken`) from after it.
 */
export function grant(
  request: ReserveRequest,
  reading: Reading,
  at: { wall: number; taken: boolean },
): Granted {
  const share = at.taken ? 0 : 1;
  return {
    granted: true,
    requests: request.requests.map(({ counter, perMinute }, i) =>
      rateState(counter, perMinute, (reading.requests[i] ?? 0) + share * unitsEach),
    ),
    tokens: request.tokens.map(({ counter, perMinute, amount }, i) =>
      rateState(counter, perMinute, (reading.tokens[i] ?? 0) + share * amount * unitsEach),
    ),
    budgets: request.budgets.map((wanted, i) =>
      budgetState(wanted, reading.budgets[i], {
        wall: at.wall,
        amount: share * wanted.amount,
      }),
    ),
  };
}

function refusedPlace(request: ReserveRequest, reading: Reading): Verdict | undefined {
  for (let index = 0; index < request.concurrent.length; index++) {
    const wanted = request.concurrent[index];
    if (wanted === undefined || (reading.concurrent[index] ?? 0) < wanted.most) continue;
    const state = { counter: wanted.counter, limit: wanted.most, remaining: 0, resetMs: 0 };
    return { granted: false, kind: 'concurrent', index, state, waitMs: undefined };
  }
  return undefined;
}

function refusedRate(request: ReserveRequest, reading: Reading, wall: number): Verdict | undefined {
  for (const kind of ['requests', 'tokens'] as const) {
    const list = request[kind];
    for (let index = 0; index < list.length; index++) {
      const wanted = list[index];
      if (wanted === undefined) continue;
      const missing = owed(reading[kind][index], wanted.perMinute, kind);
      const amount = 'amount' in wanted ? wanted.amount : 1;
      if (waitFor(missing, wanted.perMinute, amount) === 0) continue;
      const state = rateState(wanted.counter, wanted.perMinute, missing);
      return { granted: false, kind, index, state, waitMs: waitForAll(request, reading, wall) };
    }
  }
  return undefined;
}

function refusedBudget(
  request: ReserveRequest,
  reading: Reading,
  wall: number,
): Verdict | undefined {
  for (let index = 0; index < request.budgets.length; index++) {
    const wanted = request.budgets[index];
    if (wanted === undefined) continue;
    const { settled = 0, open = 0 } = reading.budgets[index] ?? {};
    if (settled + open + wanted.amount <= wanted.nanodollars) continue;
    const state = budgetState(wanted, reading.budgets[index], { wall, amount: 0 });
    const waitMs =
      settled + wanted.amount > wanted.nanodollars ? waitForAll(request, reading, wall) : undefined;
    return { granted: false, kind: 'budget', index, state, waitMs, open };
  }
  return undefined;
}

/** The longest of all waits: a later counter may refuse what an earlier one would let through by then. */
function waitForAll(request: ReserveRequest, reading: Reading, wall: number): number | undefined {
  let longest = 0;
  const waits = [
    ...request.requests.map(({ perMinute }, i) =>
      waitFor(owed(reading.requests[i], perMinute, 'requests'), perMinute, 1),
    ),
    ...request.tokens.map(({ perMinute, amount }, i) =>
      waitFor(owed(reading.tokens[i], perMinute, 'tokens'), perMinute, amount),
    ),
    ...request.budgets.map((wanted, i) => waitForWindow(wanted, reading.budgets[i], wall)),
  ];
  for (const wait of waits) {
    if (wait === undefined) return undefined;
    longest = Math.max(longest, wait);
  }
  return longest;
}

/** What only running calls hold back may come free at any time: that is not waited for. */
function waitForWindow(
  wanted: BudgetItem,
  reading: BudgetReading | undefined,
  wall: number,
): number | undefined {
  if ((reading?.settled ?? 0) + wanted.amount <= wanted.nanodollars) return 0;
  if (wanted.endsAt === undefined || wanted.amount > wanted.nanodollars) return undefined;
  return Math.max(0, wanted.endsAt - wall);
}

/**
 * What is missing of a bucket that may have been larger at its last reservation: what a lowered limit
 * owes is no more than it could owe itself. It flows back at the old pace, which is quicker.
 */
function owed(missing: number | undefined, perMinute: number, kind: 'requests' | 'tokens'): number {
  const buckets = kind === 'requests' ? 1 : 2;
  return Math.min(missing ?? 0, buckets * perMinute * unitsEach);
}

function rateState(counter: string, perMinute: number, missing: number): CounterState {
  return {
    counter,
    limit: perMinute,
    remaining: remaining(missing, perMinute),
    resetMs: untilFull(missing, perMinute),
  };
}

function budgetState(
  wanted: BudgetItem,
  reading: BudgetReading | undefined,
  at: { wall: number; amount: number },
): BudgetState {
  const { counter, nanodollars, endsAt } = wanted;
  const { settled = 0, open = 0, window = wanted.window } = reading ?? {};
  return {
    counter,
    window,
    limit: nanodollars,
    remaining: Math.max(0, nanodollars - settled - open - at.amount),
    resetMs: endsAt === undefined ? 0 : Math.max(0, endsAt - at.wall),
  };
}

// The arithmetic of rates, shared by all counters. A bucket holds `perMinute` and refills evenly; what
// is missing from it is kept in units of a 60,000th, of which `perMinute` flow back each millisecond, so
// that everything is an integer below 2^53 for rates up to 75 thousand million a minute. For requests
// (amount 1) this is GCRA, with a burst of `perMinute`.

export const unitsEach = 60_000;

/** What is missing after this many ms. A clock that goes back gives nothing. */
export function missingAfter(missing: number, perMinute: number, elapsedMs: number): number {
  return elapsedMs <= 0 ? missing : Math.max(0, missing - elapsedMs * perMinute);
}

/** Ms until the amount fits; 0 = it fits now, undefined = it never does. */
function waitFor(missing: number, perMinute: number, amount: number): number | undefined {
  if (amount > perMinute) return undefined;
  const over = missing + (amount - perMinute) * unitsEach;
  return over <= 0 ? 0 : Math.ceil(over / perMinute);
}

/** Whole requests or tokens that could be reserved now. */
function remaining(missing: number, perMinute: number): number {
  return Math.max(0, Math.floor(perMinute - missing / unitsEach));
}

/** Ms until the bucket is full. */
function untilFull(missing: number, perMinute: number): number {
  return Math.ceil(missing / perMinute);
}

/**
 * What is missing once the used amount replaces the reserved one: no fuller than full, no
 * emptier than one bucket below empty.
 */
export function missingSettled(missing: number, perMinute: number, change: number): number {
  const most = 2 * perMinute * unitsEach;
  return Math.min(Math.max(0, missing + change * unitsEach), Math.max(missing, most));
}
