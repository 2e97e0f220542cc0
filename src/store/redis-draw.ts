/** What the script of a draw is told, and how its answer is read (redis-script.ts). */
import type { Draw } from './counters.ts';
import { leaseMs, moneyGraceMs } from './lease.ts';
import { aboutDraw } from './redis-holds.ts';
import type { Answer } from './redis-run.ts';
import type { Reading } from './verdict.ts';

/** How long a budget's window is kept behind its end, for gateways whose clock is behind. */
const afterEndMs = 2 * 86_400_000;
/** For windows that never end: a touch renews it, and a new epoch reads the book. */
const everMs = 400 * 86_400_000;

export interface DrawnIn {
  readonly prefix: string;
  readonly epoch: string;
  /** Without asking whether it fits. */
  readonly force: boolean;
  /** Ms since the epoch, by the server. */
  readonly now: number;
}

export function drawArguments(
  wanted: Draw,
  { prefix, epoch, force, now }: DrawnIn,
): readonly (string | number)[] {
  const values: (string | number)[] = [prefix, epoch, wanted.callId];
  values.push(leaseMs, moneyGraceMs, force ? 1 : 0, aboutDraw(wanted));
  values.push(wanted.concurrent.length);
  for (const { counter, most } of wanted.concurrent) values.push(counter, most);
  values.push(wanted.requests.length);
  for (const { counter, perMinute } of wanted.requests) values.push(counter, perMinute);
  values.push(wanted.tokens.length);
  for (const { counter, perMinute, amount } of wanted.tokens) {
    values.push(counter, perMinute, amount);
  }
  values.push(wanted.budgets.length);
  for (const { counter, window, endsAt, nanodollars, amount } of wanted.budgets) {
    values.push(`${counter}|${window}`, nanodollars, amount, keepMs(endsAt, now));
  }
  return values;
}

/** How long a window's counter is kept. */
export function keepMs(endsAt: number | undefined, now: number): number {
  return endsAt === undefined ? everMs : Math.max(0, Math.ceil(endsAt - now)) + afterEndMs;
}

/** @param answer what became of it, the time, the readings */
export function readingOf(wanted: Draw, answer: Answer): Reading {
  let at = 2;
  const next = (): number => Number(answer[at++] ?? 0);
  return {
    concurrent: wanted.concurrent.map(next),
    requests: wanted.requests.map(next),
    tokens: wanted.tokens.map(next),
    budgets: wanted.budgets.map(({ window }) => ({ window, settled: next(), open: next() })),
  };
}
