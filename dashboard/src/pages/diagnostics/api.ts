/** The state of the gateway, asked again while the page is visible. */
import { useQuery } from '@tanstack/react-query';
import { get } from '../../api/client.ts';

export interface Diagnostics {
  /** ISO 8601, by the clock of the gateway. */
  readonly at: string;
  readonly version: string;
  readonly node: string;
  readonly platform: string;
  readonly pid: number;
  readonly workers: number;
  readonly started_at: string;
  readonly uptime_s: number;
  readonly url: string;
  readonly admin_url: string;
  readonly data: {
    readonly directory: string;
    readonly bytes: number | null;
    readonly free_bytes: number | null;
    readonly total_bytes: number | null;
  };
  readonly store: {
    readonly kind: string;
    readonly server: string | null;
    readonly schema: number;
    readonly up: boolean;
    readonly reason: string | null;
    readonly read_ms: number | null;
    readonly last_write_ms: number | null;
    readonly waiting_ms: number;
    readonly queued: number;
    readonly spooled: number;
    readonly saved: number;
    readonly failures: number;
    readonly refused: number;
  };
  readonly counters: {
    readonly kind: string;
    readonly server: string | null;
    readonly up: boolean;
  };
  readonly process: {
    readonly rss_bytes: number;
    readonly heap_bytes: number;
    readonly heap_limit_bytes: number;
    readonly memory_share: number;
    readonly loop_delay_ms: number;
    readonly pressure: number;
  };
  readonly calls: { readonly live: number; readonly streams: number };
  readonly engines: readonly {
    readonly model: string;
    readonly phase: string;
    readonly reason: string | null;
  }[];
  readonly certificates: readonly {
    readonly plane: string;
    readonly subject: string;
    readonly valid_to: string;
    readonly days_left: number;
  }[];
  readonly last_reload: {
    readonly at: string;
    readonly applied: boolean;
    readonly problems: readonly string[];
    readonly needs_restart: readonly string[];
  } | null;
  readonly tallies: { readonly [name: string]: number };
  readonly providers: readonly {
    readonly id: string;
    readonly address: string;
    readonly there: boolean;
    readonly health: string;
  }[];
  readonly warnings: readonly string[];
}

export interface Asked {
  readonly state: Diagnostics;
  /** Clock of the gateway minus that of this browser, ms. */
  readonly clockAheadMs: number;
  /** By the clock of this browser, ms since the epoch. */
  readonly askedAt: number;
}

const everyMs = 5_000;

export function useDiagnostics() {
  return useQuery({
    queryKey: ['diagnostics'],
    queryFn: async ({ signal }): Promise<Asked> => {
      const askedAt = Date.now();
      const state = await get<Diagnostics>('/api/diagnostics', { signal });
      // The answer was made somewhere in between.
      const clockAheadMs = Date.parse(state.at) - (askedAt + Date.now()) / 2;
      return { state, clockAheadMs, askedAt };
    },
    refetchInterval: everyMs,
  });
}
