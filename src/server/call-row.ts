/** Calls as rows of the ledger. */
import type { Bill } from '../access/billing.ts';
import { noCost } from '../access/cost.ts';
import type { Principal } from '../access/principal.ts';
import type { GatewayError } from '../core/errors.ts';
import { totalInputTokens, type Usage } from '../core/generation.ts';
import type { CallTrace } from '../core/trace.ts';
import type { Call } from '../gateway/call.ts';
import type { AttemptReceipt, ChargedTry, Receipt, RunningCall } from '../gateway/receipt.ts';
import { pieces, type AttemptRow, type CallRow, type CountedUsage } from '../store/calls.ts';

/**
 * A row as it is written: what is absent is left out. Its members are put in one by one: with a spread for each
 * of them a row took three times the memory, and twice the time.
 */
type Draft<T> = { -readonly [K in keyof T]: T[K] };

/** The row of a call that was served, successfully or not. */
export function callRow(call: Call, receipt: Receipt, bill: Bill): CallRow {
  const { outcome, attempts, usageSource, status, error, firstEventMs } = receipt;
  const attemptRows = attempts.map((attempt) => attemptRow(call, attempt));
  const ending = { outcome, attempts: attempts.length, attemptRows, usageSource };
  const row = rowOf(call, receipt, { bill, ending });
  if (status !== undefined) row.status = status;
  if (error !== undefined) row.error = error;
  if (receipt.suspect) row.suspect = true;
  if (firstEventMs !== undefined) row.firstEventMs = rounded(firstEventMs);
  const notes = notesOf(receipt);
  if (notes !== undefined) row.notes = notes;
  if (call.trace !== undefined) addTrace(row, call.trace);
  return row;
}

/** The row that a call shall have if the gateway dies now (F81). */
export function runningRow(call: Call, soFar: RunningCall, bill: Bill): CallRow {
  const { attempts } = soFar;
  const ending = {
    outcome: 'failed',
    attempts,
    attemptRows: [],
    usageSource: 'estimated',
  } as const;
  const row = rowOf(call, soFar, { bill, ending });
  row.error = 'interrupted';
  return row;
}

interface Told {
  readonly bill: Bill;
  readonly ending: Pick<CallRow, 'outcome' | 'attempts' | 'attemptRows' | 'usageSource'>;
}

/** What every call has that was served, ended or not. */
function rowOf(
  call: Call,
  soFar: Pick<Receipt, 'target' | 'mode' | 'reported' | 'totalMs'>,
  { bill, ending }: Told,
): Draft<CallRow> {
  const row: Draft<CallRow> = {
    id: call.id,
    startedAt: call.startedWall,
    keyId: call.caller.keyId,
    tags: call.labels.tags,
    endpoint: call.dialect.id,
    model: call.head.model,
    stream: call.head.stream,
    outcome: ending.outcome,
    attempts: ending.attempts,
    attemptRows: ending.attemptRows,
    charged: counted(bill.charged),
    usageSource: ending.usageSource,
    budgets: bill.budgets,
    totalMs: rounded(soFar.totalMs),
  };
  addAsked(row, call);
  addAnswered(row, soFar);
  addBill(row, bill);
  return row;
}

function addAsked(row: Draft<CallRow>, { caller, labels }: Call): void {
  if (caller.team !== undefined) row.team = caller.team;
  if (labels.user !== undefined) row.user = labels.user;
  if (labels.metadata !== undefined) row.metadata = labels.metadata;
}

function addAnswered(
  row: Draft<CallRow>,
  { target, mode, reported }: Pick<Receipt, 'target' | 'mode' | 'reported'>,
): void {
  if (target !== undefined) {
    row.provider = target.provider.id;
    row.upstreamModel = target.model;
  }
  if (mode !== undefined) row.mode = mode;
  if (reported !== undefined) row.reported = counted(reported);
}

function addBill(row: Draft<CallRow>, bill: Bill): void {
  if (bill.cost !== undefined) row.cost = bill.cost;
  if (bill.price !== undefined) row.price = bill.price;
  if (bill.reservedNanodollars !== undefined) row.reservedNanodollars = bill.reservedNanodollars;
  if (bill.overrun !== undefined) row.overrun = bill.overrun;
}

/** A call that was refused before its path began, at whatever point (F8). */
export interface RefusedCall {
  readonly id: string;
  readonly startedWall: number;
  readonly principal: Principal;
  readonly trace: CallTrace | undefined;
  /** The client's tags, as far as they were read. */
  readonly tags: readonly string[];
  readonly endpoint: string;
  readonly model: string;
  readonly stream: boolean;
  readonly error: GatewayError;
  readonly status: number | undefined;
  readonly totalMs: number;
}

const maxNameLength = 256;

/** It cost nothing, and that is known. */
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
  if (trace !== undefined) addTrace(row, trace);
  return row;
}

function addTrace(row: Draft<CallRow>, { traceId, sampled }: CallTrace): void {
  row.traceId = traceId;
  if (sampled) row.sampled = true;
}

function attemptRow(call: Call, attempt: AttemptReceipt): AttemptRow {
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
  if (reported !== undefined) row.reported = counted(reported);
  if (attempt.maybeBilled) row.maybeBilled = true;
  return row;
}

function counted(usage: Usage): CountedUsage {
  const counts: Draft<CountedUsage> = {};
  for (const name of countNames) {
    const count = usage[name];
    if (count !== undefined) counts[name] = count;
  }
  return counts;
}

const countNames = [
  'freshInputTokens',
  'cacheReadTokens',
  'cacheWriteTokens',
  'cacheWriteLongTokens',
  'outputTokens',
  'reasoningTokens',
  ...pieces,
] as const;

function notesOf({ notes, beside }: Receipt): string | undefined {
  if (notes.length === 0 && beside.length === 0) return undefined;
  const told = [
    ...notes.map(({ path, what, why }) => `${path}: ${what}, ${why}`),
    ...beside.map(besideNote),
  ];
  return told.join('; ');
}

/** The counts of the row are those of the request that counts; its cost holds this one too. */
function besideNote({ target, charged }: ChargedTry): string {
  const input = totalInputTokens(charged) ?? 0;
  const { outputTokens = 0 } = charged;
  const name = `${target.provider.id}/${target.model}`;
  return `cost: holds ${name}, asked too and left after ${input} tokens in and ${outputTokens} out`;
}

function rounded(milliseconds: number): number {
  return Math.round(milliseconds * 10) / 10;
}
