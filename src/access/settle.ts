/**
 * Settlement: from the receipt of a call to its row in the ledger. It computes the cost, settles what limits
 * and budgets held, and records the row. Two shapes only: `Usage` (what the path counted) and `CallRow` (what
 * is stored).
 */
import type {
  AttemptReceipt,
  Call,
  CallTrace,
  ChargedTry,
  Receipt,
  RunningCall,
} from '../core/call.ts';
import type { GatewayError } from '../core/errors.ts';
import { attemptFailureOf, failureOf, gatewayDied, type Failure } from '../core/faults.ts';
import { type Advice, totalInputTokens, type Usage } from '../core/generation.ts';
import type { Cost, Price } from '../core/money.ts';
import { noteText } from '../core/notes.ts';
import type { Target } from '../core/provider.ts';
import { tokenClasses, type CountedUsage } from '../core/token-classes.ts';
import { type AttemptRow, type BudgetWindow, type CallRow } from '../store/calls.ts';
import type { BudgetWatch } from './budget-watch.ts';
import { CallGrant } from './call-grant.ts';
import { addedCost, cacheSavingOf, costOf, noCost, servedPrice } from './cost.ts';
import type { Ledger } from './ledger.ts';
import type { PriceTable } from './prices.ts';
import type { Principal } from './keys/principal.ts';

/** The part of a call that settlement reads. */
export type SettledCall = Pick<
  Call,
  'id' | 'startedAt' | 'startedWall' | 'caller' | 'labels' | 'grant' | 'trace'
> & {
  readonly dialect: { readonly id: string };
  readonly head: { readonly model: string; readonly stream: boolean };
};

/** What upstreams do not report, read from the request; called only if it has a price. */
export interface RequestedItems<C> {
  /** Number of images in the prompt. */
  images(call: C): number;
  /** Web searches of the target, if it reports none. */
  searches(call: C, target: Target): number;
  /** The service tier that the target was asked for, in the request's own word; undefined = none. */
  serviceTier(call: C, target: Target): string | undefined;
}

export interface SettlementDeps<C> {
  /** The prices that held when a call began, monotonic ms: a reload replaces them. */
  readonly prices: (startedAt: number) => Pick<PriceTable, 'find' | 'findAnswered' | 'otherwise'>;
  readonly watch?: Pick<BudgetWatch, 'spent'>;
  readonly pieces: RequestedItems<C>;
  readonly ledger: Pick<Ledger, 'record' | 'running'>;
  /** Gets each row after the ledger: metrics, the log, traces. A refused call has no receipt. */
  readonly observe: (row: CallRow, call?: C, receipt?: Receipt) => void;
}

/**
 * A row under construction. Its members are assigned one by one, absent ones omitted: a spread for each of
 * them took three times the memory and twice the time.
 */
type Draft<T> = { -readonly [K in keyof T]: T[K] };

/** The usage of a call, so far or at its end. */
type Used = Pick<
  Receipt,
  'target' | 'answeredModel' | 'mode' | 'reported' | 'charged' | 'secondary' | 'totalMs'
>;

/** Of a call that was cut since its client did not read. */
const notRead: Failure = {
  fault: 'client',
  message: 'The client did not read the answer in time and was disconnected.',
};

const noBudgets: readonly BudgetWindow[] = [];

export class Settlement<C extends SettledCall> {
  readonly #deps: SettlementDeps<C>;

  constructor(deps: SettlementDeps<C>) {
    this.#deps = deps;
  }

  /** Settles a call: exactly once per call, never throws. @returns its row. */
  settle(call: C, receipt: Receipt): CallRow {
    const row = this.#rowOf(call, receipt, receipt.outcome);
    const { grant } = call;
    if (grant instanceof CallGrant) this.#end(grant, row, receipt);
    row.attempts = receipt.attempts.length;
    row.attemptRows = receipt.attempts.map((attempt) => attemptRow(call, attempt));
    row.usageSource = receipt.usageSource;
    if (receipt.status !== undefined) row.status = receipt.status;
    if (receipt.error !== undefined) row.error = receipt.error;
    if (receipt.outcome === 'failed') row.failure = callFailure(receipt);
    if (receipt.suspect) row.suspect = true;
    if (receipt.firstEventMs !== undefined) row.firstEventMs = rounded(receipt.firstEventMs);
    const notes = notesOf(receipt, row.price);
    if (notes !== undefined) row.notes = notes;
    if (call.trace !== undefined) addTrace(row, call.trace);
    this.record(row, call, receipt);
    return row;
  }

  /**
   * Records that a call runs, so that a crash does not lose it (F81). @param soFar is called when the record is
   * written.
   */
  running(call: C, soFar: () => RunningCall): void {
    this.#deps.ledger.running(call.id, () => this.runningRow(call, soFar()));
  }

  /** The row that a call gets if the gateway dies now. */
  runningRow(call: C, soFar: RunningCall): CallRow {
    const row = this.#rowOf(call, soFar, 'failed');
    row.attempts = soFar.attempts;
    row.error = 'interrupted';
    row.failure = gatewayDied;
    return row;
  }

  record(row: CallRow, call?: C, receipt?: Receipt): void {
    this.#deps.ledger.record(row);
    this.#deps.observe(row, call, receipt);
  }

  #rowOf(call: C, used: Used, outcome: Receipt['outcome']): Draft<CallRow> {
    const { caller, labels, grant } = call;
    const { target, charged } = used;
    const nothing = isNothing(charged);
    const price =
      nothing || target === undefined
        ? undefined
        : this.#price(call, { target, charged }, used.answeredModel);
    const counts =
      target === undefined ? charged : this.#withPieces(call, { target, charged }, price);
    const own = nothing ? noCost : price && costOf(price, counts);
    const cost = this.#withOthers(own, call, used);
    const row: Draft<CallRow> = {
      id: call.id,
      startedAt: call.startedWall,
      keyId: caller.keyId,
      tags: labels.tags,
      endpoint: call.dialect.id,
      model: call.head.model,
      stream: call.head.stream,
      outcome,
      attempts: 0,
      attemptRows: [],
      charged: counted(counts),
      usageSource: 'estimated',
      budgets: noBudgets,
      totalMs: rounded(used.totalMs),
    };
    if (caller.team !== undefined) row.team = caller.team;
    if (labels.user !== undefined) row.user = labels.user;
    if (labels.metadata !== undefined) row.metadata = labels.metadata;
    addAnswered(row, used);
    if (cost !== undefined) row.cost = cost;
    if (cost !== undefined && price !== undefined) {
      row.price = price;
      const saved = cacheSavingOf(price, counts);
      if (saved !== undefined) row.cacheSaved = saved;
    }
    if (grant instanceof CallGrant) addReserved(row, grant);
    return row;
  }

  /** Each request at its own price; if one price is unknown, the sum is unknown. */
  #withOthers(
    own: Cost | undefined,
    call: C,
    { secondary, charged, target }: Used,
  ): Cost | undefined {
    let sum = own;
    for (const each of secondary) {
      const price = this.#price(call, each);
      sum = addedCost(sum, price && costOf(price, this.#withPieces(call, each, price)));
    }
    for (const { model, usage } of charged.advice ?? []) {
      const asked = target && { target: { ...target, model }, charged: usage };
      const price = asked && this.#price(call, asked, model);
      sum = addedCost(sum, price && costOf(price, usage));
    }
    return sum;
  }

  /** The counts plus billed pieces that were not reported; each request of the answer has them. */
  #withPieces(call: C, { target, charged }: ChargedTry, price: Price | undefined): Usage {
    if (price === undefined) return charged;
    const { pieces } = this.#deps;
    const requests = 1 + (charged.earlier?.length ?? 0);
    const images = price.perImage === undefined ? 0 : requests * pieces.images(call);
    const pictured = images === 0 ? charged : { ...charged, images };
    if (price.webSearch === undefined || charged.webSearches !== undefined) return pictured;
    const webSearches = requests * pieces.searches(call, target);
    return webSearches === 0 ? pictured : { ...pictured, webSearches };
  }

  /**
   * A price change while a call runs does not affect that call.
   * @param answered the model that answered: a name of the operator's own, or of a router, may say nothing of it
   */
  #price(call: C, { target, charged }: ChargedTry, answered = ''): Price | undefined {
    const { grant, startedAt, startedWall } = call;
    const { model } = target;
    const provider = target.provider.id;
    const own = grant instanceof CallGrant ? grant : undefined;
    const reserved = own?.priceOf({ provider, model });
    const prices = this.#deps.prices(startedAt);
    const listed = reserved ?? prices.find(provider, model, startedWall);
    const price =
      listed ??
      (answered === '' ? undefined : prices.findAnswered(provider, answered, startedWall));
    if (price?.service === undefined) return price;
    return servedPrice(price, charged.serviceTier ?? this.#deps.pieces.serviceTier(call, target));
  }

  /** Releases what the call held and did not use. */
  #end(grant: CallGrant, row: CallRow, { charged, secondary, target }: Receipt): void {
    let tokens = tokensOf(charged);
    for (const each of secondary) tokens += tokensOf(each.charged);
    for (const each of charged.advice ?? []) tokens += tokensOf(each.usage);
    grant.settle({ tokens, nanodollars: row.cost?.total });
    const nanodollars = row.cost?.total ?? 0;
    if (row.overrun === true && target !== undefined) {
      const overrun = nanodollars - (row.reservedNanodollars ?? 0);
      grant.overran({ provider: target.provider.id, model: target.model }, overrun);
    }
    const { watch } = this.#deps;
    if (nanodollars === 0 || watch === undefined) return;
    const { admittedAt: at, budgets } = grant;
    for (const [i, held] of grant.held.entries()) {
      const window = budgets[i] ?? held.window(at);
      watch.spent(held, { nanodollars, at, window });
    }
  }
}

function addAnswered(row: Draft<CallRow>, { target, mode, reported }: Used): void {
  if (target !== undefined) {
    row.provider = target.provider.id;
    row.upstreamModel = target.model;
  }
  if (mode !== undefined) row.mode = mode;
  if (reported !== undefined) row.reported = counted(reported);
}

function addReserved(row: Draft<CallRow>, grant: CallGrant): void {
  const { reserved } = grant;
  if (reserved === undefined) return;
  row.budgets = grant.budgets;
  row.reservedNanodollars = reserved;
  if ((row.cost?.total ?? 0) > reserved) row.overrun = true;
}

function tokensOf(usage: Usage): number {
  return (totalInputTokens(usage) ?? 0) + (usage.outputTokens ?? 0);
}

function isNothing(charged: Usage): boolean {
  return totalInputTokens(charged) === undefined && charged.outputTokens === undefined;
}

/** A call that was refused before admission or during it. */
export interface RefusedCall {
  readonly id: string;
  readonly startedWall: number;
  readonly principal: Principal;
  readonly trace: CallTrace | undefined;
  /** The client's tags, if they were read already. */
  readonly tags: readonly string[];
  readonly endpoint: string;
  readonly model: string;
  readonly stream: boolean;
  readonly error: GatewayError;
  readonly status: number | undefined;
  readonly totalMs: number;
}

const maxNameLength = 256;

/** The cost is known to be zero. */
export function refusedRow(call: RefusedCall): CallRow {
  const { principal, error, status, trace } = call;
  const row: Draft<CallRow> = {
    id: call.id,
    startedAt: call.startedWall,
    keyId: principal.keyId,
    tags: [...principal.tags, ...call.tags],
    endpoint: call.endpoint,
    model: call.model.slice(0, maxNameLength),
    stream: call.stream,
    outcome: error.code === 'canceled' ? 'canceled' : 'failed',
    error: error.code,
    attempts: 0,
    attemptRows: [],
    budgets: [],
    cost: noCost,
    charged: {},
    usageSource: 'reported',
    totalMs: rounded(call.totalMs),
  };
  if (principal.team !== undefined) row.team = principal.team;
  if (status !== undefined) row.status = status;
  if (row.outcome === 'failed') row.failure = failureOf(error);
  if (trace !== undefined) addTrace(row, trace);
  return row;
}

function callFailure({ failure }: Receipt): Failure {
  return failure === undefined ? notRead : failureOf(failure);
}

function addTrace(row: Draft<CallRow>, { traceId, sampled }: CallTrace): void {
  row.traceId = traceId;
  if (sampled) row.sampled = true;
}

function attemptRow(call: SettledCall, attempt: AttemptReceipt): AttemptRow {
  const { target, startedAt, status, error, reported } = attempt;
  const row: Draft<AttemptRow> = {
    provider: target.provider.id,
    upstreamModel: target.model,
    startedAt: call.startedWall + Math.round(startedAt - call.startedAt),
    ms: rounded(attempt.ms),
    outcome: attempt.outcome,
  };
  if (target.credential !== undefined) row.credential = target.credential;
  if (status !== undefined) row.status = status;
  if (error !== undefined) row.error = error;
  if (attempt.failure !== undefined) row.failure = attemptFailureOf(attempt.failure);
  if (reported !== undefined) row.reported = counted(reported);
  if (attempt.maybeBilled) row.maybeBilled = true;
  return row;
}

function counted(usage: Usage): CountedUsage {
  const counts: Draft<CountedUsage> = {};
  for (const { member } of tokenClasses) {
    const count = usage[member];
    if (count !== undefined) counts[member] = count;
  }
  return counts;
}

/** @param price of the charged request */
function notesOf({ notes, secondary, charged }: Receipt, price?: Price): string | undefined {
  const { advice = [], fileSearches = 0 } = charged;
  const texts = [
    ...notes.map(noteText),
    ...secondary.map(secondaryNote),
    ...advice.map(adviceNote),
    ...(fileSearches === 0
      ? []
      : [
          `cost: ${price?.fileSearch === undefined ? 'without' : 'includes'} file searches of the provider: ${fileSearches}`,
        ]),
  ];
  return texts.length === 0 ? undefined : texts.join('; ');
}

function adviceNote({ model, usage }: Advice): string {
  const input = totalInputTokens(usage) ?? 0;
  const { outputTokens = 0 } = usage;
  return `cost: includes ${model}, which was asked for advice, with ${input} input and ${outputTokens} output tokens`;
}

/** The counts of the row are those of the charged request; its cost includes this one. */
function secondaryNote({ target, charged }: ChargedTry): string {
  const input = totalInputTokens(charged) ?? 0;
  const { outputTokens = 0 } = charged;
  const name = `${target.provider.id}/${target.model}`;
  return `cost: includes ${name}, a second request that was cancelled after ${input} input and ${outputTokens} output tokens`;
}

function rounded(milliseconds: number): number {
  return Math.round(milliseconds * 10) / 10;
}
