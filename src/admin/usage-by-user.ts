/**
 * Sums by user. The ledger keeps no sums by user, since there may be as many users as calls. They are added up from the
 * calls, some thousand at a time, so that the ledger is written meanwhile.
 */
import type { UsageFilter } from '../store/calls.ts';
import { addSums, noSums, type Period, type Sums } from '../store/roll-up.ts';
import type { SeriesQuery, SeriesRow, Store, UsageRow } from '../store/store.ts';
import { AdminError } from './route.ts';

const hourMs = 3_600_000;
/** Calls that one question to the store adds up. */
const windowCalls = 10_000;
/** Calls of a period; more take many seconds. */
const maxCalls = 1_000_000;

interface Asked {
  readonly since: number;
  readonly until: number;
  readonly filter: UsageFilter;
}

/** By user, in the order of their names. */
export interface UserSums {
  readonly rows: readonly UsageRow[];
  /** Calls of the period that are not in the ledger any more: their users are not known. */
  readonly expired: number;
}

/** @throws AdminError 400 for a period with more than a million calls */
export async function usageByUser(store: Store, asked: Asked): Promise<UserSums> {
  const { filter } = asked;
  const { windows, calls } = await windowsOf(store, asked);
  const users = new Map<string, Sums>();
  let found = 0;
  for (const { from, to } of windows) {
    const query = { by: 'user', since: from, until: to, filter } as const;
    for (const { group, ...sums } of await store.calls.usage(query)) {
      const there = users.get(group) ?? noSums();
      users.set(group, there);
      addSums(there, sums);
      found += sums.calls;
    }
  }
  const rows = [...users].map(([group, sums]) => ({ group, ...sums }));
  return {
    rows: rows.toSorted((a, b) => (a.group < b.group ? -1 : 1)),
    expired: Math.max(0, calls - found),
  };
}

/**
 * In the steps of the store; a user may have several rows of one step.
 * @throws AdminError 400 for a period with more than a million calls
 */
export async function seriesByUser(
  store: Store,
  asked: Asked & Pick<SeriesQuery, 'step'>,
): Promise<readonly SeriesRow[]> {
  const { step, filter } = asked;
  const rows: SeriesRow[] = [];
  for (const { from, to } of (await windowsOf(store, asked)).windows) {
    const period = { since: from, until: to };
    const query = { step, by: 'user', ...period, filter, groups: maxCalls } as const;
    for (const row of await store.calls.series(query)) rows.push(row);
  }
  return rows;
}

/** Parts of the period with some thousand calls each, and how many calls the sums say there are. */
async function windowsOf(store: Store, { since, until, filter }: Asked) {
  const query = { step: 'hour', since, until, filter: {}, groups: 1 } as const;
  const hours = await store.calls.series(query);
  const all = hours.reduce((sum, { calls }) => sum + calls, 0);
  if (all > maxCalls) {
    throw new AdminError(
      400,
      `is too long ago: sums by user take ${maxCalls} calls at most, and this period has more`,
      'since',
    );
  }
  const windows: Period[] = [];
  let from = since;
  let calls = 0;
  for (const { at, calls: ofHour } of hours) {
    const begin = Math.max(from, at);
    if (calls + ofHour > windowCalls && begin > from) {
      windows.push({ from, to: begin });
      from = begin;
      calls = 0;
    }
    calls += ofHour;
    const parts = Math.floor(calls / windowCalls);
    // A busy hour is divided: its calls are spread over it.
    for (let part = 1; part <= parts; part++) {
      const to = Math.min(until, Math.round(at + (hourMs * part) / (parts + 1)));
      if (to > from) windows.push({ from, to });
      from = Math.max(from, to);
      calls = 0;
    }
  }
  if (from < until) windows.push({ from, to: until });
  const isFiltered = Object.keys(filter).length > 0;
  return { windows, calls: isFiltered ? await callsOf(store, { since, until, filter }) : all };
}

async function callsOf(store: Store, { since, until, filter }: Asked): Promise<number> {
  const rows = await store.calls.usage({ by: 'day', since, until, filter });
  return rows.reduce((sum, { calls }) => sum + calls, 0);
}
