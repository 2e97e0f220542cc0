/** The log line of a ledger row: no prompt, no answer, no secret. */
import { hasCounts, totalInputTokens } from '../core/generation.ts';
import { dollarsNumber } from '../core/money.ts';
import type { LogFields } from '../core/runtime.ts';
import type { CallRow } from '../store/calls.ts';

export function callLogFields(row: CallRow): LogFields {
  return {
    id: row.id,
    trace_id: row.traceId,
    key: row.keyId,
    endpoint: row.endpoint,
    model: row.model,
    target: row.provider === undefined ? undefined : `${row.provider}/${row.upstreamModel ?? ''}`,
    mode: row.mode,
    stream: row.stream,
    outcome: row.outcome,
    status: row.status,
    error: row.error,
    fault: row.failure?.fault,
    reason: row.failure?.reason,
    limit: row.failure?.limit,
    message: row.failure?.message,
    attempts: row.attempts,
    input_tokens: totalInputTokens(row.charged),
    output_tokens: row.charged.outputTokens,
    // A call without counts has no estimate either.
    usage: hasCounts(row.charged) ? row.usageSource : undefined,
    suspect: row.suspect,
    // Null and not 0: the price is unknown.
    cost_usd: row.cost === undefined ? null : dollarsNumber(row.cost.total),
    overrun: row.overrun,
    first_event_ms: row.firstEventMs,
    total_ms: row.totalMs,
    notes: row.notes,
  };
}
