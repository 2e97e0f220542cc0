/** Calls as they end on the gateway, requested while the page is in sight. */
import { useQuery, type UseQueryResult } from '@tanstack/react-query';
import { useRef } from 'react';
import { fetchCalls, fetchTail, type Call, type CallFilter } from '../../api/calls.ts';

/** One draw each time, however many calls end. */
const everyMs = 500;
/** Rows of the table; older ones are in the list. */
export const maxLiveRows = 200;
/** Of the list, below the first that end. */
const earlierRows = 50;

export interface LiveCalls {
  /** The one that ended last first, then those of before. */
  readonly rows: readonly Call[];
  /** Calls of the filter that ended since `since`. */
  readonly ended: number;
  /** Calls that ended too fast to be kept for this page, whatever the filter. */
  readonly lost: number;
  /** Ms since the epoch. */
  readonly since: number;
  readonly next: string;
}

/** @param filter stays the same for as long as the table is there. */
export function useLiveCalls(filter: CallFilter, isPaused: boolean): UseQueryResult<LiveCalls> {
  const latest = useRef<LiveCalls>(undefined);
  return useQuery({
    queryKey: ['live-calls', filter],
    queryFn: async ({ signal }) => {
      const before = latest.current;
      const asked = { ...filter, limit: maxLiveRows, after: before?.next };
      const { continued, calls, ended, lost, next } = await fetchTail(asked, signal);
      if (before === undefined || !continued) {
        // Behind the look, so that no call ends between the two unseen.
        const list = await fetchCalls({ ...filter, limit: earlierRows }, signal);
        latest.current = { rows: list.calls, ended: 0, lost: 0, since: Date.now(), next };
      } else {
        latest.current = {
          rows: ended === 0 ? before.rows : withFirst(calls, before.rows),
          ended: before.ended + ended,
          lost: before.lost + lost,
          since: before.since,
          next,
        };
      }
      return latest.current;
    },
    enabled: !isPaused,
    refetchInterval: everyMs,
    staleTime: 0,
    gcTime: 0,
    // Compared member by member, two hundred calls cost more than their draw.
    structuralSharing: false,
  });
}

/** A call of the list may end between the look and the list: it comes again. */
function withFirst(calls: readonly Call[], before: readonly Call[]): readonly Call[] {
  const ids = new Set(calls.map(({ id }) => id));
  return [...calls, ...before.filter(({ id }) => !ids.has(id))].slice(0, maxLiveRows);
}
