/**
 * Pages of a list that is too long to be loaded as a whole: each is found by the cursor in the one before it. Those
 * near the rows in sight are kept, others forgotten and fetched again when the table comes back to them.
 */
import { useQueries } from '@tanstack/react-query';
import { useCallback, useMemo, useState } from 'react';
import { fetchCalls, type Call, type CallFilter, type CallPage } from '../../api/calls.ts';

/** Calls of a request. */
export const pageSize = 100;
/** Rows beyond those in sight that are fetched before they are needed. */
const aheadRows = 60;
/** Pages without a row in a row, before the page asks whether to continue. */
const maxEmptyPages = 20;
const forgottenMs = 60_000;

interface KnownPage {
  /** Undefined: the first. */
  readonly after: string | undefined;
  /** Undefined: not fetched yet. */
  readonly rows: number | undefined;
}

export interface CallPages {
  readonly rows: number;
  readonly rowAt: (index: number) => Call | undefined;
  /** Index of a call; undefined: it is not among the pages at hand. */
  readonly indexOf: (id: string) => number | undefined;
  readonly onSight: (first: number, last: number) => void;
  /** A row that is examined elsewhere: its page and what is around it are fetched, too. */
  readonly onLook: (index: number) => void;
  /** There may be more than `rows`. */
  readonly hasMore: boolean;
  /** Many pages had no row that fits: `searchOn` examines older ones. */
  readonly isPaused: boolean;
  readonly searchOn: () => void;
  /** Where the look has come to, ISO 8601; undefined at the beginning. */
  readonly reached: string | undefined;
  readonly error: unknown;
  readonly retry: () => void;
}

/** @param filter stays the same for as long as the table is there. */
export function useCallPages(filter: CallFilter): CallPages {
  // Each table fetches for itself: it would not learn of pages that another one left in the cache.
  const [visit] = useState(() => Math.random());
  const [known, setKnown] = useState<readonly KnownPage[]>([{ after: undefined, rows: undefined }]);
  const [sight, setSight] = useState({ first: 0, last: 0 });
  const [look, setLook] = useState<number>();
  const [emptyAllowed, setEmptyAllowed] = useState(maxEmptyPages);
  const record = useCallback((index: number, { calls, next }: CallPage): void => {
    setKnown((pages) => {
      if (pages[index]?.rows !== undefined) return pages;
      const changed = pages.map((page, i) =>
        i === index ? { ...page, rows: calls.length } : page,
      );
      return next === null ? changed : [...changed, { after: next, rows: undefined }];
    });
  }, []);
  const starts = useMemo(() => startsOf(known), [known]);
  const rows = starts.at(-1) ?? 0;
  const empties = emptyAtEnd(known);
  const isPaused = empties >= emptyAllowed;
  const inSight = wantedPages(known, starts, sight);
  const lookedAt =
    look === undefined ? [] : wantedPages(known, starts, { first: look, last: look });
  const wanted = [...new Set([...inSight, ...lookedAt])].filter(
    (index) => !isPaused || known[index]?.rows !== undefined,
  );
  const results = useQueries({
    queries: wanted.map((index) => {
      const after = known[index]?.after;
      return {
        queryKey: ['calls', visit, after],
        queryFn: async ({ signal }: { signal: AbortSignal }) => {
          const page = await fetchCalls({ ...filter, limit: pageSize, after }, signal);
          record(index, page);
          return page;
        },
        staleTime: Infinity,
        gcTime: forgottenMs,
      };
    }),
  });
  const failed = results.find(({ isError }) => isError);
  return {
    rows,
    rowAt: (index) => {
      const page = pageAt(starts, index);
      return results[wanted.indexOf(page)]?.data?.calls[index - (starts[page] ?? 0)];
    },
    indexOf: (id) => {
      for (const [i, page] of wanted.entries()) {
        const at = results[i]?.data?.calls.findIndex((call) => call.id === id) ?? -1;
        if (at !== -1) return (starts[page] ?? 0) + at;
      }
      return undefined;
    },
    onSight: useCallback((first: number, last: number) => setSight({ first, last }), []),
    onLook: setLook,
    hasMore: known.at(-1)?.rows === undefined,
    isPaused,
    searchOn: () => setEmptyAllowed(empties + maxEmptyPages),
    reached: timeOf(known.at(-1)?.after),
    error: failed?.error,
    retry: () => void failed?.refetch(),
  };
}

/** Index of the first row of each page, and after the last known one. */
function startsOf(known: readonly KnownPage[]): readonly number[] {
  const starts = [0];
  for (const { rows } of known) if (rows !== undefined) starts.push((starts.at(-1) ?? 0) + rows);
  return starts;
}

function pageAt(starts: readonly number[], row: number): number {
  let low = 0;
  let high = starts.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if ((starts[middle] ?? 0) <= row) low = middle;
    else high = middle - 1;
  }
  return low;
}

function wantedPages(
  known: readonly KnownPage[],
  starts: readonly number[],
  { first, last }: { readonly first: number; readonly last: number },
): readonly number[] {
  const from = pageAt(starts, Math.max(0, first - aheadRows));
  const to = Math.min(known.length - 1, pageAt(starts, last + aheadRows));
  return Array.from({ length: to - from + 1 }, (_, i) => from + i);
}

function emptyAtEnd(known: readonly KnownPage[]): number {
  const fetched = known.filter(({ rows }) => rows !== undefined);
  const lastFull = fetched.findLastIndex(({ rows }) => rows !== 0);
  return fetched.length - 1 - lastFull;
}

/** A cursor begins with the time of a call. */
function timeOf(after: string | undefined): string | undefined {
  const ms = Number(after?.split('.', 1)[0]);
  return Number.isSafeInteger(ms) ? new Date(ms).toISOString() : undefined;
}
