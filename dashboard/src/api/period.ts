/** Periods that the overview can show. */
import type { Search } from './search.ts';

export const ranges = [
  { value: '1h', label: '1 h' },
  { value: '24h', label: '24 h' },
  { value: '7d', label: '7 d' },
  { value: '30d', label: '30 d' },
  { value: '90d', label: '90 d' },
  { value: 'own', label: 'Dates…' },
] as const;

const standard = '24h';

export interface Period {
  /** One of `ranges`. */
  readonly range: string;
  readonly since: string;
  readonly until: string | undefined;
  /** It ends now, so it moves on. */
  readonly isOpen: boolean;
}

/** The period of an address. */
export function periodOf({ range, since, until }: Search): Period {
  if (since !== undefined) return { range: 'own', since, until, isOpen: until === undefined };
  const known = ranges.find(({ value }) => value === range && value !== 'own');
  const value = known?.value ?? standard;
  return { range: value, since: value, until: undefined, isOpen: true };
}

export const stepMs = {
  minute: 60_000,
  hour: 3_600_000,
  '6h': 21_600_000,
  day: 86_400_000,
} as const;

/** All steps of a period, those without a call, too; ms since the epoch. */
export function stepsOf(answer: {
  readonly since: string;
  readonly until: string;
  readonly step: keyof typeof stepMs;
}): readonly number[] {
  const size = stepMs[answer.step];
  const first = Math.floor(Date.parse(answer.since) / size) * size;
  const end = Date.parse(answer.until);
  const steps: number[] = [];
  for (let at = first; at < end; at += size) steps.push(at);
  return steps;
}

/** The period of the same length just before; undefined where the dates are none. */
export function periodBefore(
  { since, until }: Period,
  now: number,
): { readonly since: string; readonly until: string } | undefined {
  const [, amount, unit] = /^(\d+)([hd])$/.exec(since) ?? [];
  if (amount !== undefined && (unit === 'h' || unit === 'd')) {
    return { since: `${2 * Number(amount)}${unit}`, until: since };
  }
  const begin = Date.parse(since);
  const length = (until === undefined ? now : Date.parse(until)) - begin;
  if (Number.isNaN(length) || length <= 0) return undefined;
  return { since: new Date(begin - length).toISOString(), until: new Date(begin).toISOString() };
}
