/** Admission, billing and counters as one gateway has them, without sockets and without a clock of their own. */
import {
  Admission,
  minOutputTokens,
  type AdmissionRequest,
} from '../../../src/access/admission.ts';
import { BudgetWatch, type BudgetEvent } from '../../../src/access/budget-watch.ts';
import { CallGrant } from '../../../src/access/call-grant.ts';
import { Overruns } from '../../../src/access/overruns.ts';
import { noPolicies, type HeldPolicy } from '../../../src/access/policies.ts';
import type { Principal } from '../../../src/access/keys/principal.ts';
import { Settlement, type SettledCall } from '../../../src/access/settle.ts';
import type { Receipt } from '../../../src/core/call.ts';
import type { Usage } from '../../../src/core/generation.ts';
import { modelNames } from '../../../src/core/model-names.ts';
import type { Budget, Policy, RateLimit } from '../../../src/core/policy.ts';
import type { Price } from '../../../src/core/money.ts';
import type { Target } from '../../../src/core/provider.ts';
import type { Counters } from '../../../src/store/counters/counters.ts';
import { MemoryCounters } from '../../../src/store/counters/memory-counters.ts';
import type { CallRow, Spent } from '../../../src/store/calls.ts';
import { createHttpProvider } from '../../../src/providers/http-provider.ts';
import { callRow } from '../store/call-rows.ts';
import { HeldClock } from './fakes.ts';

/** One and two dollars a million tokens: 1,000 and 2,000 nanodollars each. */
export const price: Price = {
  rates: { input: 1_000_000, output: 2_000_000 },
  tiers: [],
  source: 'test',
};

export function budgetOf(nanodollars: number, per: Budget['per'] = 'day'): Budget {
  return { nanodollars, per, timeZone: 'UTC' };
}

export function principalOf(
  policies: readonly HeldPolicy[],
  more: Partial<Principal> = {},
): Principal {
  return {
    keyId: 'k1',
    name: 'test',
    tags: [],
    strict: false,
    logsContent: false,
    shrink: true,
    anywhere: true,
    policies: () => policies,
    allowsModel: () => true,
    allowsEndpoint: () => true,
    allowsAddress: () => true,
    revoked: () => false,
    ...more,
  };
}

export function heldBy(
  name: string,
  policy: { readonly limits?: readonly RateLimit[]; readonly budgets?: readonly Budget[] },
): HeldPolicy {
  const whole: Policy = { limits: policy.limits ?? [], budgets: policy.budgets ?? [] };
  return { holder: { kind: 'key', name }, policy: whole };
}

export interface CallInput {
  readonly id: string;
  readonly principal: Principal;
  readonly prompt?: number;
  /** By the tokenizer; absent = there is none. */
  readonly exactly?: number;
  readonly maxOutputTokens?: number;
  readonly choices?: number;
  readonly modelLimit?: number;
}

export class LimitsRig {
  readonly clock = new HeldClock();
  readonly events: BudgetEvent[] = [];
  readonly counters: Counters;
  readonly admission: Admission;
  readonly settlement: Settlement<SettledCall>;
  /** What the clock of the counters is ahead of that of the gateway. */
  aheadMs = 0;
  /** How often the tokenizer was asked. */
  counted = 0;
  /** In [0, 1): the jitter of waits. */
  random = 0;
  /** What each request has that vendors bill and do not report. */
  images = 0;
  searches = 0;
  /** Requested. */
  serviceTier: string | undefined;
  /** Rows in the ledger. */
  readonly recorded: CallRow[] = [];
  /** Holder and kind of each limit that refused. */
  readonly refusals: string[] = [];

  constructor(
    prices: (model: string, provider: string) => Price | undefined = () => price,
    spent: readonly Spent[] = [],
  ) {
    const counters = new MemoryCounters({
      now: () => this.clock.now(),
      wall: () => this.clock.wall() + this.aheadMs,
    });
    counters.restore(spent);
    this.counters = counters;
    const watch = new BudgetWatch((event) => this.events.push(event));
    watch.restore(spent);
    const book = {
      find: (provider: string, model: string) => prices(model, provider),
      findAnswered: () => undefined,
      otherwise: undefined,
    };
    this.admission = new Admission({
      counters,
      clock: this.clock,
      policies: noPolicies,
      prices: () => book,
      random: () => this.random,
      overruns: new Overruns(this.clock),
      watch,
      refused: (kind, holder) => this.refusals.push(`${holder} ${kind}`),
    });
    this.settlement = new Settlement({
      prices: () => book,
      watch,
      pieces: {
        images: () => this.images,
        searches: () => this.searches,
        serviceTier: () => this.serviceTier,
      },
      ledger: { record: (row) => this.recorded.push(row), running: () => undefined },
      observe: () => undefined,
    });
  }

  asked(input: CallInput): AdmissionRequest & Required<Pick<AdmissionRequest, 'size'>> {
    const { id, principal, prompt = 10, exactly, choices = 1, modelLimit } = input;
    const target = { provider: 'p', model: 'm' };
    return {
      id,
      principal,
      tags: [],
      model: 'm',
      route: { name: 'm', targets: [], order: 'listed' },
      registry: { names: () => modelNames(['m', 'p/m']) },
      mayShrink: principal.shrink,
      minOutput: minOutputTokens,
      size: {
        targets: [modelLimit === undefined ? target : { ...target, maxOutputTokens: modelLimit }],
        maxOutputTokens: input.maxOutputTokens,
        choices,
        promptAtMost: () => prompt,
        promptExactly: async () => {
          this.counted += 1;
          return exactly;
        },
        cacheWrites: () => 'none',
        images: () => 0,
        searches: () => undefined,
        media: () => true,
        others: () => undefined,
        raised: () => undefined,
        serviceTier: () => undefined,
        expensiveBy: () => undefined,
      },
    };
  }

  async admit(input: CallInput): Promise<CallGrant | undefined> {
    return this.admission.admit(this.asked(input));
  }

  /** Ends a call. @returns its row. */
  settle(
    grant: CallGrant | undefined,
    charged: Usage,
    more: Partial<Receipt> = {},
    call: Partial<SettledCall> = {},
  ): CallRow {
    return this.settlement.settle(
      { ...this.#call(grant), ...call },
      {
        outcome: 'ok',
        status: 200,
        error: undefined,
        attempts: [],
        usageSource: 'reported',
        suspect: false,
        firstEventMs: undefined,
        notes: [],
        ...usedBy(charged),
        ...more,
      },
    );
  }

  /** The row of a call that still runs. */
  running(grant: CallGrant | undefined, charged: Usage): CallRow {
    return this.settlement.runningRow(this.#call(grant), { attempts: 1, ...usedBy(charged) });
  }

  #call(grant: CallGrant | undefined): SettledCall {
    return {
      id: 'settled',
      startedAt: 0,
      startedWall: this.clock.wall(),
      caller: principalOf([]),
      labels: { tags: [] },
      grant,
      dialect: { id: 'openai-chat' },
      head: { model: 'm', stream: false },
    };
  }
}

const ms = 1000;
const timeouts = { connectMs: ms, firstEventMs: ms, documentMs: ms, idleMs: ms, totalMs: ms };

export function targetOf(model: string, id = 'p'): Target {
  const options = { id, dialect: 'openai-chat', baseUrl: 'http://127.0.0.1:1/v1' } as const;
  return { provider: createHttpProvider(options), model, weight: 1, timeouts };
}

const target = targetOf('m');

function usedBy(charged: Usage) {
  return {
    target,
    mode: 'relay',
    reported: charged,
    charged,
    secondary: [],
    totalMs: 1,
  } as const;
}

/** The ledger row of a call that cost what another one did. */
export function billedRow(id: string, row: CallRow): CallRow {
  const { cost, price: paid, budgets, reservedNanodollars, overrun, charged } = row;
  return {
    ...callRow(id),
    charged,
    budgets,
    ...(cost === undefined ? {} : { cost }),
    ...(paid === undefined ? {} : { price: paid }),
    ...(reservedNanodollars === undefined ? {} : { reservedNanodollars }),
    ...(overrun === undefined ? {} : { overrun }),
  };
}
