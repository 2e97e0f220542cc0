/** Part of the composition root: who serves the data plane of a gateway. */
import type { Settings } from '../config/settings.ts';
import type { TargetHealth } from '../gateway/health.ts';
import type { Family } from '../observe/metrics/family.ts';
import type { Plane } from './plane.ts';

/** This process alone, or this one with workers. */
export interface Front {
  /** Resolves with the address, without `/v1`. @throws the system's error of listening */
  listen(): Promise<string>;
  /** Calls that begin from here on go by these. @throws Error that names a key which cannot be taken */
  apply(settings: Settings): Promise<void>;
  /** Refuses new work and waits for running calls (G14). */
  drain(how: { readonly announced: boolean }): Promise<void>;
  /** Replaces the processes that serve calls, one after another; absent where this one serves them. Never rejects. */
  renew?(): Promise<void>;
  /** Ends running calls at once; `drain` then has nothing to wait for. */
  cut(): void;
  /** What a scrape reads, of all processes together. */
  families(): Promise<readonly Family[]>;
  /** Numbers of /api/status, of all processes together. */
  tallies(): Promise<Tallies>;
  /** What is wrong with targets, by whoever knows the worst. */
  health(): Promise<Pick<TargetHealth, 'describe'>>;
  /** Writes the ledger rows and contents that wait. Never rejects for those of another process. @throws StoreError */
  flush(): Promise<void>;
}

export interface Tallies {
  readonly [name: string]: number;
}

/** How many processes say no on /readyz, and to how many the store takes no rows: statusJson makes one word of each. */
export const unready = 'unready';
export const storeDown = 'store_down';

/** Of one process. */
export function talliesOf(plane: Plane): Tallies {
  const { access, ready, sweeper, overload, idempotency, contents } = plane.facts();
  return {
    [unready]: ready ? 0 : 1,
    [storeDown]: access.storeFacts().store.up ? 0 : 1,
    live_calls: sweeper.size,
    ...overload.status(),
    ...idempotency.status(),
    ...contents.status(),
  };
}

/** This process serves alone. */
export function ownFront(plane: Plane, flushLedger: () => Promise<void>): Front {
  return {
    listen: () => plane.listen(),
    apply: (settings) => plane.apply(settings),
    drain: (how) => plane.drain(how),
    cut: () => plane.cut(),
    families: () => plane.metrics.families(),
    tallies: async () => talliesOf(plane),
    health: async () => plane.health,
    flush: async () => {
      await plane.flushContents();
      await flushLedger();
    },
  };
}
