/** What the routes over the ledger have in common: which calls are meant. */
import { z } from 'zod';
import type { Clock } from '../core/runtime.ts';
import type { UsageFilter } from '../store/calls.ts';
import { readInput } from './admin-route.ts';
import { dateHint, readDate, readSpan, spanHint } from './period.ts';

const name = z.string().max(800);

/** Empty text: calls that have none. */
export const groupFilter = {
  key: name.optional().describe('Only of this key, by id.'),
  team: name.optional().describe('Only of this team; empty: without one. So for provider and tag.'),
  model: name.optional().describe('Only of this model, as clients called it.'),
  provider: name.optional(),
  tag: name.optional(),
};

export const inPeriod = {
  since: z.string().optional().describe('90m, 24h, 7d, 2w, or a date: 2026-01-31.'),
  until: z.string().optional().describe('The same; calls that began before. Default: now.'),
};

export function readFilter(wanted: { readonly [N in keyof UsageFilter]: unknown }): UsageFilter {
  const filter: { -readonly [N in keyof UsageFilter]: UsageFilter[N] } = {};
  for (const member of ['key', 'team', 'model', 'provider', 'tag'] as const) {
    const value = wanted[member];
    if (typeof value === 'string') filter[member] = value;
  }
  return filter;
}

export interface When {
  readonly since?: number;
  readonly until?: number;
}

/** @throws AdminError 400 with the name of a time that is none. */
export function readWhen(
  wanted: { readonly since?: string | undefined; readonly until?: string | undefined },
  clock: Clock,
): When {
  const form = z.number(`${spanHint}, or ${dateHint}`).optional();
  const { since, until } = readInput(z.strictObject({ since: form, until: form }), {
    since: read(wanted.since, clock),
    until: read(wanted.until, clock),
  });
  return {
    ...(since === undefined ? {} : { since }),
    ...(until === undefined ? {} : { until }),
  };
}

/** Null: a text that is no time. */
function read(text: string | undefined, clock: Clock): number | null | undefined {
  if (text === undefined) return undefined;
  const span = readSpan(text);
  return span === undefined ? (readDate(text) ?? null) : clock.wall() - span;
}
