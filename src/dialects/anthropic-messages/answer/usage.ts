/** Reads and writes token counts and stop reasons. */
import { addUsage, type Advice, type FinishReason, type Usage } from '../../../core/generation.ts';
import type { Notes } from '../../../core/notes.ts';
import {
  isArray,
  isObject,
  type Json,
  type JsonObject,
  type JsonMembers,
  textOf,
} from '../../../json/value.ts';
import { endNote } from '../../shared/answers.ts';

/** The maximum plausible count. A larger number is a fault of the upstream. */
const maxCount = 1e12;

/**
 * The usage of an answer's usage object. Undefined if it has no counts. Its totals leave out what the upstream used to
 * compact the conversation before it answered, and what its advisors used. Both are billed, as requests of their own.
 */
export function readUsage(raw: Json | undefined): Usage | undefined {
  if (!isObject(raw)) return undefined;
  const totals = readTotals(raw);
  const { iterations } = raw;
  if (totals === undefined || !isArray(iterations)) return totals;
  const advice = iterations.flatMap((each) => (isObject(each) ? (readAdvice(each) ?? []) : []));
  const advised = advice.length === 0 ? totals : { ...totals, advice };
  const compactions = iterations.flatMap((each) =>
    isObject(each) && each['type'] === 'compaction' ? (readTotals(each) ?? []) : [],
  );
  if (compactions.length === 0) return advised;
  return {
    ...compactions.reduce((sum, each) => addUsage(each, sum) ?? sum, advised),
    earlier: compactions,
  };
}

/** The tier that was requested is that of the model that answers. */
function readAdvice(iteration: JsonObject): Advice | undefined {
  const { type, model } = iteration;
  const usage = type === 'advisor_message' ? readTotals(iteration) : undefined;
  return usage && { model: textOf(model), usage: { ...usage, serviceTier: 'standard' } };
}

function readTotals(raw: JsonObject): Usage | undefined {
  const { fresh, read, write, long, output } = readCounts(raw);
  const reasoning = countIn(raw['output_tokens_details'], 'thinking_tokens');
  const searches = countIn(raw['server_tool_use'], 'web_search_requests');
  const known = [fresh, read, write, output].some((value) => value !== undefined);
  if (!known) return undefined;
  return {
    ...(fresh === undefined ? {} : { freshInputTokens: fresh }),
    ...(read === undefined ? {} : { cacheReadTokens: read }),
    ...(write === undefined ? {} : { cacheWriteTokens: write }),
    ...(long === undefined || long === 0 ? {} : { cacheWriteLongTokens: long }),
    ...(output === undefined ? {} : { outputTokens: output }),
    ...(reasoning === undefined ? {} : { reasoningTokens: reasoning }),
    ...(searches ? { webSearches: searches } : {}),
    ...serviceTier(raw),
    raw,
  };
}

/** Fast mode has its own price, whatever the service tier is. */
function serviceTier({ speed, service_tier: tier }: JsonObject): { serviceTier?: string } {
  if (speed === 'fast') return { serviceTier: speed };
  return typeof tier === 'string' ? { serviceTier: tier } : {};
}

function countIn(details: Json | undefined, name: string): number | undefined {
  return isObject(details) ? count(details[name]) : undefined;
}

interface Counts {
  readonly fresh: number | undefined;
  readonly read: number | undefined;
  readonly write: number | undefined;
  readonly long: number | undefined;
  readonly output: number | undefined;
}

function readCounts(raw: JsonObject): Counts {
  const split = isObject(raw['cache_creation']) ? raw['cache_creation'] : undefined;
  const short = count(split?.['ephemeral_5m_input_tokens']);
  const long = count(split?.['ephemeral_1h_input_tokens']);
  const sum = short === undefined && long === undefined ? undefined : (short ?? 0) + (long ?? 0);
  return {
    fresh: count(raw['input_tokens']),
    read: count(raw['cache_read_input_tokens']),
    write: count(raw['cache_creation_input_tokens']) ?? sum,
    long,
    output: count(raw['output_tokens']),
  };
}

/** The usage object of a document or of `message_start`, all members present. */
export function writeUsage(usage: Usage): JsonObject {
  return {
    ...writeTotals(usage),
    cache_creation: writeCacheCreation(usage),
    service_tier: writeServiceTier(usage.serviceTier),
    inference_geo: null,
  };
}

/**
 * The cumulative usage of `message_delta`. An unknown cache count is null: this upstream has
 * no cache, or did not report it.
 */
export function writeTotals(usage: Usage): JsonObject {
  const { reasoningTokens } = usage;
  const written: JsonMembers = {
    input_tokens: usage.freshInputTokens ?? 0,
    cache_creation_input_tokens: usage.cacheWriteTokens ?? null,
    cache_read_input_tokens: usage.cacheReadTokens ?? null,
    output_tokens: usage.outputTokens ?? 0,
    output_tokens_details:
      reasoningTokens === undefined ? null : { thinking_tokens: reasoningTokens },
    // Only this dialect's own upstreams count server tools.
    server_tool_use: isObject(usage.raw?.['server_tool_use']) ? usage.raw['server_tool_use'] : null,
  };
  return written;
}

function writeCacheCreation(usage: Usage): Json {
  const { cacheWriteTokens, cacheWriteLongTokens: long = 0 } = usage;
  if (cacheWriteTokens === undefined) return null;
  return {
    ephemeral_5m_input_tokens: Math.max(0, cacheWriteTokens - long),
    ephemeral_1h_input_tokens: long,
  };
}

function writeServiceTier(tier: string | undefined): Json {
  if (tier === undefined) return null;
  return tier === 'priority' || tier === 'batch' ? tier : 'standard';
}

/** A plausible token count. Undefined for negative numbers, infinity and values that are no numbers. */
function count(value: Json | undefined): number | undefined {
  if (typeof value !== 'number' || !(value >= 0 && value <= maxCount)) return undefined;
  return Math.floor(value);
}

// Why an answer ended, in both directions.

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

/** The data that decides the stop reason. */
export interface Ending {
  readonly reason: FinishReason;
  /** The answer has a call that the client runs. */
  readonly hasToolCalls: boolean;
  /** The model's refusal text; `''` = none. */
  readonly refusal: string;
}

/** `stop_reason`, `stop_sequence` and `stop_details`, all present. */
export function writeStop(ending: Ending, notes: Notes): JsonObject {
  const { reason } = ending;
  const stopReason = writeReason(ending, notes);
  return {
    stop_reason: stopReason,
    stop_sequence: stopReason === 'stop_sequence' ? (reason.sequence ?? null) : null,
    stop_details:
      stopReason === 'refusal'
        ? (ending.reason.details ?? {
            type: 'refusal',
            category: null,
            explanation: ending.refusal === '' ? null : ending.refusal,
          })
        : null,
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
    case 'other': {
      const note = endNote(reason);
      if (note === undefined) return 'compaction';
      notes.changed(['stop_reason'], note);
      return natural;
    }
    default:
      return reason.kind satisfies never;
  }
}
