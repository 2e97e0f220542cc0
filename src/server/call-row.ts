/** Calls as rows of the ledger. */
import type { Bill } from '../access/billing.ts';
import { noCost } from '../access/cost.ts';
import type { Principal } from '../access/principal.ts';
import type { GatewayError } from '../core/errors.ts';
import { totalInputTokens, type Usage } from '../core/generation.ts';
import type { CallTrace } from '../core/trace.ts';
import type { Call } from '../gateway/call.ts';
import type { AttemptReceipt, ChargedTry, Receipt, RunningCall } from '../gateway/receipt.ts';
import {
  pieces,
  type AttemptRow,
  type CallRow,
  type CountedUsage,
  type PieceCounts,
} from '../store/calls.ts';

/** The row of a call that was served, successfully or not. */
export function callRow(call: Call, receipt: Receipt, bill: Bill): CallRow {
  return {
    ...beginning(call, receipt),
    outcome: receipt.outcome,
    ...optional('status', receipt.status),
    ...optional('error', receipt.error),
    attempts: receipt.attempts.length,
    attemptRows: receipt.attempts.map((attempt) => attemptRow(call, attempt)),
    ...billed(bill),
    ...usage(receipt, bill),
    usageSource: receipt.usageSource,
    ...(receipt.suspect ? { suspect: true } : {}),
    ...optional('firstEventMs', rounded(receipt.firstEventMs)),
    totalMs: rounded(receipt.totalMs) ?? 0,
    ...notesOf(receipt),
    ...traceOf(call.trace),
  };
}

/** The row that a call shall have if the gateway dies now (F81). */
export function runningRow(call: Call, soFar: RunningCall, bill: Bill): CallRow {
  return {
    ...beginning(call, soFar),
    outcome: 'failed',
    error: 'interrupted',
    attempts: soFar.attempts,
    attemptRows: [],
    ...billed(bill),
    ...usage(soFar, bill),
    usageSource: 'estimated',
    totalMs: rounded(soFar.totalMs) ?? 0,
  };
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
  const { principal, error } = call;
  return {
    id: call.id,
    startedAt: call.startedWall,
    keyId: principal.keyId,
    ...optional('team', principal.team),
    tags: [...principal.tags, ...call.tags],
    endpoint: call.endpoint,
    model: call.model.slice(0, maxNameLength),
    stream: call.stream,
    outcome: error.code === 'canceled' ? 'canceled' : 'failed',
    ...optional('status', call.status),
    error: error.code,
    attempts: 0,
    attemptRows: [],
    budgets: [],
    cost: noCost,
    charged: {},
    usageSource: 'reported',
    totalMs: rounded(call.totalMs) ?? 0,
    ...traceOf(call.trace),
  };
}

function traceOf(trace: CallTrace | undefined): Pick<CallRow, 'traceId' | 'sampled'> {
  if (trace === undefined) return {};
  return { traceId: trace.traceId, ...(trace.sampled ? { sampled: true } : {}) };
}

type Beginning = Pick<
  CallRow,
  'id' | 'startedAt' | 'keyId' | 'tags' | 'endpoint' | 'model' | 'stream'
>;

function beginning(call: Call, { target, mode }: Pick<Receipt, 'target' | 'mode'>): Beginning {
  const { caller, labels } = call;
  return {
    id: call.id,
    startedAt: call.startedWall,
    keyId: caller.keyId,
    ...optional('team', caller.team),
    ...labels,
    endpoint: call.dialect.id,
    model: call.head.model,
    ...(target === undefined ? {} : { provider: target.provider.id, upstreamModel: target.model }),
    ...optional('mode', mode),
    stream: call.head.stream,
  };
}

function attemptRow(call: Call, attempt: AttemptReceipt): AttemptRow {
  const { target, startedAt, reported } = attempt;
  return {
    provider: target.provider.id,
    upstreamModel: target.model,
    ...optional('credential', target.credential),
    startedAt: call.startedWall + Math.round(startedAt - call.startedAt),
    ms: rounded(attempt.ms) ?? 0,
    ...optional('status', attempt.status),
    outcome: attempt.outcome,
    ...optional('error', attempt.error),
    ...(reported === undefined ? {} : { reported: counted(reported) }),
    ...(attempt.maybeBilled ? { maybeBilled: true } : {}),
  };
}

function billed({ charged: _charged, ...members }: Bill): Omit<Bill, 'charged'> {
  return members;
}

function usage(
  { reported }: Pick<Receipt, 'reported'>,
  { charged }: Bill,
): Pick<CallRow, 'reported' | 'charged'> {
  return {
    ...(reported === undefined ? {} : { reported: counted(reported) }),
    charged: counted(charged),
  };
}

function counted(usage: Usage): CountedUsage {
  return {
    ...optional('freshInputTokens', usage.freshInputTokens),
    ...optional('cacheReadTokens', usage.cacheReadTokens),
    ...optional('cacheWriteTokens', usage.cacheWriteTokens),
    ...optional('cacheWriteLongTokens', usage.cacheWriteLongTokens),
    ...optional('outputTokens', usage.outputTokens),
    ...optional('reasoningTokens', usage.reasoningTokens),
    ...countedPieces(usage),
  };
}

function countedPieces(usage: Usage): Partial<PieceCounts> {
  const found: { -readonly [P in keyof PieceCounts]?: number } = {};
  for (const piece of pieces) {
    const count = usage[piece];
    if (count !== undefined) found[piece] = count;
  }
  return found;
}

function notesOf({ notes, beside }: Receipt): { notes?: string } {
  if (notes.length === 0 && beside.length === 0) return {};
  const told = [
    ...notes.map(({ path, what, why }) => `${path}: ${what}, ${why}`),
    ...beside.map(besideNote),
  ];
  return { notes: told.join('; ') };
}

/** The counts of the row are those of the request that counts; its cost holds this one too. */
function besideNote({ target, charged }: ChargedTry): string {
  const input = totalInputTokens(charged) ?? 0;
  const { outputTokens = 0 } = charged;
  const name = `${target.provider.id}/${target.model}`;
  return `cost: holds ${name}, asked too and left after ${input} tokens in and ${outputTokens} out`;
}

function rounded(milliseconds: number | undefined): number | undefined {
  return milliseconds === undefined ? undefined : Math.round(milliseconds * 10) / 10;
}

/** `{ [name]: value }`, or nothing when the value is absent: absent is not zero. */
function optional<N extends string, V>(name: N, value: V | undefined): { [K in N]?: V } {
  const member: { [K in N]?: V } = {};
  if (value !== undefined) member[name] = value;
  return member;
}
