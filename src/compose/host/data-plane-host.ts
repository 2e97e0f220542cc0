/** Part of the composition root: what serves the data plane of a gateway, this process or worker processes. */
import type { Settings } from '../../config/settings.ts';
import type { TargetHealth } from '../../gateway/targets/health.ts';
import type { Family } from '../../observe/metrics/family.ts';
import type { Plane } from '../plane.ts';

export interface DataPlaneHost {
  /** Resolves with the address, without `/v1`. @throws the system's error of listening */
  listen(): Promise<string>;
  /** Applies the settings to calls that begin afterwards. @throws Error that names a key which cannot be taken */
  apply(settings: Settings): Promise<void>;
  /** Refuses new work and waits for running calls (G14). */
  drain(how: { readonly announced: boolean }): Promise<void>;
  /** Replaces the processes that serve calls, one after another; absent where this one serves them. Never rejects. */
  renew?(): Promise<void>;
  /** Ends running calls now; `drain` then has nothing to wait for. */
  cut(): void;
  /** The metrics of all processes, summed. */
  families(): Promise<readonly Family[]>;
  /** The numbers of /api/status over all processes. */
  tallies(): Promise<Tallies>;
  /** The health of targets, from the process with the worst state. */
  health(): Promise<Pick<TargetHealth, 'describe' | 'ofProvider'>>;
  /** Writes the ledger rows and contents that wait. Never rejects for those of another process. @throws StoreError */
  flush(): Promise<void>;
}

export interface Tallies {
  readonly [name: string]: number;
}

/** Number of processes that are not ready, and number of processes whose rows the store does not take. */
export const unready = 'unready';
export const storeDown = 'store_down';

/** The numbers of one process. */
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

/** A host without workers. */
export function localHost(plane: Plane, flushLedger: () => Promise<void>): DataPlaneHost {
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
