/** A finished call as a ledger row and as a log line. */
import type { Usage } from '../core/generation.ts';
import type { LogFields } from '../core/runtime.ts';
import type { Call } from '../gateway/call.ts';
import type { Receipt } from '../gateway/receipt.ts';
import type { CallRow, CountedUsage } from '../store/store.ts';

/** The ledger row of a call that was served, successfully or not. */
export function callRow(call: Call, receipt: Receipt): CallRow {
  const { target } = receipt;
  return {
    id: call.id,
    startedAt: call.startedWall,
    keyId: call.caller.keyId,
    ...optional('team', call.caller.team),
    endpoint: call.dialect.id,
    model: call.head.model,
    ...(target === undefined ? {} : { provider: target.provider.id, upstreamModel: target.model }),
    ...optional('mode', receipt.mode),
    stream: call.head.stream,
    outcome: receipt.outcome,
    ...optional('status', receipt.status),
    ...optional('error', receipt.error),
    attempts: receipt.attempts,
    attemptRows: [],
    tags: [],
    budgets: [],
    ...(receipt.reported === undefined ? {} : { reported: counted(receipt.reported) }),
    charged: counted(receipt.charged),
    usageSource: receipt.usageSource,
    ...optional('firstEventMs', rounded(receipt.firstEventMs)),
    totalMs: rounded(receipt.totalMs) ?? 0,
    ...(receipt.notes.length === 0
      ? {}
      : {
          notes: receipt.notes.map((note) => `${note.path}: ${note.what}, ${note.why}`).join('; '),
        }),
  };
}

/** The log line of the same row: no prompt, no answer, no secret. */
export function callLogFields(row: CallRow): LogFields {
  return {
    id: row.id,
    key: row.keyId,
    endpoint: row.endpoint,
    model: row.model,
    target: row.provider === undefined ? undefined : `${row.provider}/${row.upstreamModel ?? ''}`,
    mode: row.mode,
    stream: row.stream,
    outcome: row.outcome,
    status: row.status,
    error: row.error,
    attempts: row.attempts,
    input_tokens: inputTokens(row.charged),
    output_tokens: row.charged.outputTokens,
    usage: row.usageSource,
    first_event_ms: row.firstEventMs,
    total_ms: row.totalMs,
    notes: row.notes,
  };
}

function inputTokens(usage: CountedUsage): number | undefined {
  const { freshInputTokens, cacheReadTokens, cacheWriteTokens } = usage;
  const known = [freshInputTokens, cacheReadTokens, cacheWriteTokens].filter(
    (n) => n !== undefined,
  );
  return known.length === 0 ? undefined : known.reduce((sum, n) => sum + n, 0);
}

function counted(usage: Usage): CountedUsage {
  return {
    ...optional('freshInputTokens', usage.freshInputTokens),
    ...optional('cacheReadTokens', usage.cacheReadTokens),
    ...optional('cacheWriteTokens', usage.cacheWriteTokens),
    ...optional('outputTokens', usage.outputTokens),
    ...optional('reasoningTokens', usage.reasoningTokens),
  };
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
