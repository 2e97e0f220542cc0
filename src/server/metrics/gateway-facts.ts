/** What a scrape asks the parts of a gateway: all of it is there anyway, and nothing is counted for it. */
import type { BudgetReading } from '../../access/budget-watch.ts';
import type { HealthReading } from '../../gateway/health.ts';
import type { ContentTallies } from '../content/content-log.ts';
import type { IdempotencyTallies } from '../idempotent-answers.ts';
import type { ShedReason } from '../overload/overload.ts';

export interface GatewayFacts {
  readonly version: string;
  readonly ready: boolean;
  readonly calls: { readonly live: number; readonly streams: number };
  readonly overload: {
    readonly step: number;
    readonly memoryShare: number;
    readonly loopDelayMs: number;
    readonly slots: number;
    readonly slotsHeld: number;
    /** Bytes. */
    readonly bodyMemory: number;
    readonly shedBy: { readonly [R in ShedReason]: number };
  };
  readonly clientConnections: number;
  readonly upstreams: readonly {
    readonly origin: string;
    readonly open: number;
    readonly idle: number;
  }[];
  readonly store: {
    readonly up: boolean;
    /** Rows that it does not have yet. */
    readonly queued: number;
    /** Rows on the disk of this machine, because the book was away. */
    readonly spooled: number;
    readonly waitMs: number;
    readonly saved: number;
    readonly failures: number;
    readonly refused: number;
  };
  readonly countersUp: boolean;
  readonly log: { readonly dropped: number };
  /** Absent = no traces are configured. */
  readonly spans?: {
    readonly waiting: number;
    readonly sent: number;
    readonly dropped: number;
    readonly failed: number;
  };
  readonly webhooks: {
    readonly dropped: number;
    readonly delivered: number;
    readonly pending: number;
  };
  /** Calls with an `Idempotency-Key`. */
  readonly idempotency: {
    readonly tallies: Readonly<IdempotencyTallies>;
    /** Calls that are being answered, or wait to be kept. */
    readonly claims: number;
    /** Bytes of their answers. */
    readonly memory: number;
  };
  /** What calls said, of keys whose content is logged. */
  readonly contents: {
    readonly tallies: Readonly<ContentTallies>;
    /** Calls in whose words a key stood. */
    readonly redacted: number;
    readonly memory: number;
  };
  readonly health: readonly HealthReading[];
  /** `provider/model` of all targets that the config names. */
  readonly targets: readonly string[];
  readonly budgets: readonly BudgetReading[];
  readonly engines: readonly { readonly name: string; readonly phase: string }[];
}
