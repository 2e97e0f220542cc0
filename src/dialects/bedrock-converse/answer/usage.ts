/** Token counts and stop reasons of Converse. Cached tokens are counted in addition to the input tokens. */
import type { FinishReason, Usage } from '../../../core/generation.ts';
import { isObject, type Json, type JsonObject, textOf } from '../../../json/value.ts';

/** The maximum plausible count. A larger number is a fault of the upstream (F57). */
const maxCount = 1e12;

/**
 * The usage; undefined without counts. `outputTokens` includes reasoning, which has no count of its own.
 * @param answer a document, or the `metadata` of a stream
 */
export function readUsage(answer: JsonObject): Usage | undefined {
  const raw = answer['usage'];
  if (!isObject(raw)) return undefined;
  const freshInputTokens = count(raw['inputTokens']);
  const outputTokens = count(raw['outputTokens']);
  if (freshInputTokens === undefined && outputTokens === undefined) return undefined;
  const long = longWrites(raw['cacheDetails']);
  const tier = answer['serviceTier'];
  const tierName = isObject(tier) ? textOf(tier['type']) : '';
  return {
    ...(freshInputTokens === undefined
      ? {}
      : {
          freshInputTokens,
          cacheReadTokens: count(raw['cacheReadInputTokens']) ?? 0,
          cacheWriteTokens: count(raw['cacheWriteInputTokens']) ?? 0,
        }),
    ...(long === undefined ? {} : { cacheWriteLongTokens: long }),
    ...(outputTokens === undefined ? {} : { outputTokens }),
    ...(tierName === '' ? {} : { serviceTier: tierName }),
    raw,
  };
}

/** Cache writes with a lifetime of one hour. Undefined if the list does not report them. */
function longWrites(details: Json | undefined): number | undefined {
  if (!Array.isArray(details)) return undefined;
  let tokens = 0;
  for (const entry of details) {
    if (isObject(entry) && entry['ttl'] === '1h') tokens += count(entry['inputTokens']) ?? 0;
  }
  return tokens;
}

/** A plausible token count. Undefined for negative numbers, infinity and values that are no numbers (F57). */
function count(value: Json | undefined): number | undefined {
  if (typeof value !== 'number' || !(value >= 0 && value <= maxCount)) return undefined;
  return Math.floor(value);
}

// Why an answer ended.

const kinds: ReadonlyMap<string, FinishReason['kind']> = new Map<string, FinishReason['kind']>([
  ['end_turn', 'stop'],
  ['tool_use', 'tool-calls'],
  ['max_tokens', 'length'],
  ['stop_sequence', 'stop-sequence'],
  ['guardrail_intervened', 'content-filter'],
  ['content_filtered', 'content-filter'],
  ['model_context_window_exceeded', 'context-window'],
  ['pause_turn', 'pause'],
  ['refusal', 'content-filter'],
]);

/** Stop reasons of output that the service could not parse. Without content such an answer is an error. */
export const malformed: ReadonlySet<string> = new Set([
  'malformed_model_output',
  'malformed_tool_use',
]);

/**
 * @param called the answer has calls: some models report `end_turn` although they called
 * @param more `additionalModelResponseFields`, which name the stop sequence
 */
export function readStop(raw: string, called: boolean, more: JsonObject | undefined): FinishReason {
  const said = kinds.get(raw) ?? 'other';
  const kind = calledOrNot(said, called);
  const sequence = kind === 'stop-sequence' ? sequenceIn(more) : '';
  const filtered = kind === 'content-filter';
  return {
    kind,
    raw,
    ...(sequence === '' ? {} : { sequence }),
    ...(filtered ? { details: { type: 'refusal', category: null, explanation: null } } : {}),
  };
}

function calledOrNot(kind: FinishReason['kind'], called: boolean): FinishReason['kind'] {
  if (kind === 'stop' && called) return 'tool-calls';
  return kind === 'tool-calls' && !called ? 'stop' : kind;
}

function sequenceIn(more: JsonObject | undefined): string {
  const delta = more?.['delta'];
  return textOf(isObject(delta) ? delta['stop_sequence'] : more?.['stop_sequence']);
}
