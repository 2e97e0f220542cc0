/** Why an answer ended, in both directions (wire/translation.md §7.3; B11–B13, F60). */
import type { Json, JsonObject } from '../../core/conversation.ts';
import type { FinishReason } from '../../core/generation.ts';
import { isObject } from '../../core/json.ts';
import type { Notes } from '../../core/notes.ts';

type Kind = FinishReason['kind'];

const kinds: ReadonlyMap<string, Kind> = new Map<string, Kind>([
  ['end_turn', 'stop'],
  ['stop_sequence', 'stop-sequence'],
  ['max_tokens', 'length'],
  ['tool_use', 'tool-calls'],
  ['pause_turn', 'pause'],
  ['refusal', 'content-filter'],
  ['model_context_window_exceeded', 'context-window'],
]);

/** Reads `stop_reason` and its companions; undefined while the reason is null. */
export function readStop(fields: JsonObject): FinishReason | undefined {
  const { stop_reason: raw, stop_sequence: sequence, stop_details: details } = fields;
  if (typeof raw !== 'string') return undefined;
  return {
    kind: kinds.get(raw) ?? 'other',
    raw,
    ...(typeof sequence === 'string' ? { sequence } : {}),
    ...(isObject(details) ? { details } : {}),
  };
}

/** What decides how an ending is shown. */
export interface Ending {
  readonly reason: FinishReason;
  /** The answer holds a call that the client is to run. */
  readonly hasToolCalls: boolean;
  /** The model's own words of refusal; `''` when there are none. */
  readonly refusal: string;
}

/** `stop_reason`, `stop_sequence` and `stop_details`, all present. */
export function writeStop(ending: Ending, notes: Notes): JsonObject {
  const { reason } = ending;
  const stopReason = writeReason(ending, notes);
  return {
    stop_reason: stopReason,
    stop_sequence: stopReason === 'stop_sequence' ? (reason.sequence ?? null) : null,
    stop_details: stopReason === 'refusal' ? writeDetails(ending) : null,
  };
}

function writeReason({ reason, hasToolCalls, refusal }: Ending, notes: Notes): string {
  const natural = hasToolCalls ? 'tool_use' : refusal === '' ? 'end_turn' : 'refusal';
  switch (reason.kind) {
    case 'stop':
    case 'tool-calls':
      return natural;
    case 'stop-sequence':
      return reason.sequence === undefined ? natural : 'stop_sequence';
    case 'length':
      return 'max_tokens';
    case 'context-window':
      return 'model_context_window_exceeded';
    case 'content-filter':
      return 'refusal';
    case 'pause':
      return 'pause_turn';
    case 'other':
      if (reason.raw === 'compaction') return reason.raw;
      notes.changed(['stop_reason'], unknownEnd(reason));
      return natural;
    default:
      return reason.kind satisfies never;
  }
}

function writeDetails({ reason, refusal }: Ending): Json {
  return (
    reason.details ?? {
      type: 'refusal',
      category: null,
      explanation: refusal === '' ? null : refusal,
    }
  );
}

function unknownEnd({ raw }: FinishReason): string {
  return raw === undefined
    ? 'the provider did not say why the answer ended'
    : `the provider ended the answer for a reason of its own (${raw.slice(0, 40)})`;
}
