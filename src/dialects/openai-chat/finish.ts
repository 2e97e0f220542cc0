/** Why an answer ended, in both directions (wire/translation.md §7.3; B11–B13). */
import type { Json } from '../../core/conversation.ts';
import { type ErrorCode, GatewayError } from '../../core/errors.ts';
import type { FinishReason } from '../../core/generation.ts';
import type { Notes } from '../../core/notes.ts';

type Kind = FinishReason['kind'];

const kinds: ReadonlyMap<string, Kind> = new Map<string, Kind>([
  ['stop', 'stop'],
  ['eos', 'stop'],
  ['end_turn', 'stop'],
  ['length', 'length'],
  ['max_tokens', 'length'],
  ['model_length', 'length'],
  ['tool_calls', 'tool-calls'],
  ['function_call', 'tool-calls'],
  ['content_filter', 'content-filter'],
]);

/** Finish reasons that are failures. */
const failures: ReadonlyMap<string, ErrorCode> = new Map<string, ErrorCode>([
  ['insufficient_system_resource', 'overloaded'],
  ['error', 'upstream_unavailable'],
  ['abort', 'stream_interrupted'],
  ['cancelled', 'stream_interrupted'],
  ['canceled', 'stream_interrupted'],
]);

export interface SeenFinish {
  /** `finish_reason`; null or missing in a complete answer counts as a natural end. */
  readonly raw: Json | undefined;
  /** The choice's `stop_reason`: vLLM names the stop sequence that matched, or a token id. */
  readonly stopReason: Json | undefined;
  readonly hasToolCalls: boolean;
}

/**
 * The reason in canonical words. Tool calls decide between `stop` and `tool-calls`, whatever the
 * upstream says; a cut-off answer stays cut off even if it holds calls (B12).
 */
export function readFinish({ raw, stopReason, hasToolCalls }: SeenFinish): FinishReason {
  const word = typeof raw === 'string' && raw !== '' ? raw : undefined;
  const named = (word === undefined ? undefined : kinds.get(word)) ?? 'other';
  const base = word === undefined ? {} : { raw: word };
  if (named === 'length' || named === 'content-filter') return { kind: named, ...base };
  if (hasToolCalls) return { kind: 'tool-calls', ...base };
  if (named === 'stop' && typeof stopReason === 'string') {
    return { kind: 'stop-sequence', sequence: stopReason, ...base };
  }
  // Calls that are not there, or no reason at all: a natural end, as far as anybody can tell.
  return { kind: named === 'tool-calls' ? 'other' : named, ...base };
}

/** Whether the answer was cut off, so that its last call may be incomplete. */
export function isCut(raw: Json | undefined): boolean {
  const kind = kinds.get(String(raw));
  return kind === 'length' || kind === 'content-filter';
}

/** The error that a finish reason stands for, if it is one. */
export function readFailedFinish(raw: Json | undefined): GatewayError | undefined {
  const code = typeof raw === 'string' ? failures.get(raw) : undefined;
  if (code === undefined) return undefined;
  return new GatewayError(code, `The provider gave up on the answer (${String(raw)}).`);
}

/** @param hasToolCalls whether the answer holds a call that the client is to run. */
export function writeFinish(reason: FinishReason, hasToolCalls: boolean, notes: Notes): string {
  switch (reason.kind) {
    case 'length':
    case 'context-window':
    case 'pause':
      return 'length';
    case 'content-filter':
      return 'content_filter';
    case 'stop':
    case 'stop-sequence':
    case 'tool-calls':
      return hasToolCalls ? 'tool_calls' : 'stop';
    case 'other':
      // Compaction is a kind of its own, and its text is the answer.
      if (reason.raw !== 'compaction') notes.changed(['finish_reason'], unknownEnd(reason));
      return hasToolCalls ? 'tool_calls' : 'stop';
    default:
      return reason.kind satisfies never;
  }
}

function unknownEnd({ raw }: FinishReason): string {
  return raw === undefined
    ? 'the provider did not say why the answer ended'
    : `the provider ended the answer for a reason of its own (${raw.slice(0, 40)})`;
}
