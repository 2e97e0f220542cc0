/** Converts token counts between this dialect's inclusive sums and the canonical disjoint classes. */
import { type ErrorCode, GatewayError } from '../../../core/errors.ts';
import { type FinishReason, totalInputTokens, type Usage } from '../../../core/generation.ts';
import type { Notes } from '../../../core/notes.ts';
import type { UpstreamTraits } from '../../../core/traits.ts';
import {
  isArray,
  isObject,
  type Json,
  type JsonObject,
  type JsonMembers,
} from '../../../json/value.ts';
import { endNote } from '../../shared/answers.ts';
import { type ExcludedParts, excludedParts, tokenCount as count } from '../../shared/usage-sums.ts';

/**
 * The usage that a document or chunk carries: `usage`, else Groq's `x_groq.usage`, else Moonshot's in an only choice.
 * Undefined if there is none, or no plausible count.
 */
export function findUsage(answer: JsonObject, traits: UpstreamTraits): Usage | undefined {
  const { usage, x_groq: groq, choices, service_tier: tier } = answer;
  const raw = object(usage) ?? object(object(groq)?.['usage']) ?? choiceUsage(choices);
  return raw === undefined ? undefined : readUsage(raw, tier, traits);
}

/** Of choice 0 where it is the only one: that of one of several is not all of the usage. */
export function choiceUsage(choices: Json | undefined): JsonObject | undefined {
  if (!isArray(choices) || choices.length !== 1) return undefined;
  const [choice] = choices;
  if (!isObject(choice) || (choice['index'] ?? 0) !== 0) return undefined;
  return isObject(choice['usage']) ? choice['usage'] : undefined;
}

function readUsage(
  raw: JsonObject,
  serviceTier: Json | undefined,
  traits: UpstreamTraits,
): Usage | undefined {
  const prompt = count(raw['prompt_tokens']);
  const completion = count(raw['completion_tokens']);
  if (prompt === undefined && completion === undefined) return undefined;
  const cached = cachedCounts(raw);
  const excluded = excludedIn(raw, cached);
  const thoughts = uncountedThoughts(raw, excluded);
  const reasoning = thoughts > 0 ? thoughts : reasoningCount(raw);
  const outputTokens = readOutput(raw, excluded, traits);
  return {
    ...readInput(prompt, cached, excluded),
    ...(outputTokens === undefined ? {} : { outputTokens: outputTokens + thoughts }),
    ...(reasoning === undefined ? {} : { reasoningTokens: reasoning }),
    ...mediaCounts(raw),
    ...searchCount(raw),
    ...(typeof serviceTier === 'string' ? { serviceTier } : {}),
    raw,
  };
}

type CachedCounts = Pick<Usage, 'cacheReadTokens' | 'cacheWriteTokens'>;

function cachedCounts(raw: JsonObject): CachedCounts {
  const details = object(raw['prompt_tokens_details']);
  const read = firstCount(
    details?.['cached_tokens'],
    raw['prompt_cache_hit_tokens'],
    raw['cache_read_input_tokens'],
  );
  const write = firstCount(
    details?.['cache_write_tokens'],
    details?.['cache_creation_tokens'],
    raw['cache_creation_input_tokens'],
  );
  return {
    ...(read === undefined ? {} : { cacheReadTokens: read }),
    ...(write === undefined ? {} : { cacheWriteTokens: write }),
  };
}

function excludedIn(
  raw: JsonObject,
  { cacheReadTokens = 0, cacheWriteTokens = 0 }: CachedCounts,
): ExcludedParts {
  return excludedParts({
    input: count(raw['prompt_tokens']),
    cached: cacheReadTokens + cacheWriteTokens,
    output: count(raw['completion_tokens']),
    reasoning: reasoningCount(raw) ?? 0,
    total: count(raw['total_tokens']),
  });
}

/** Computes the three disjoint input classes from the sum. */
function readInput(
  prompt: number | undefined,
  cached: CachedCounts,
  excluded: ExcludedParts,
): Usage {
  if (prompt === undefined) return cached;
  const within = excluded.cached
    ? 0
    : (cached.cacheReadTokens ?? 0) + (cached.cacheWriteTokens ?? 0);
  return { freshInputTokens: prompt - within, ...cached };
}

/** `completion_tokens`, plus the reasoning tokens for upstreams that leave them out (xAI). */
function readOutput(
  raw: JsonObject,
  excluded: ExcludedParts,
  traits: UpstreamTraits,
): number | undefined {
  const completion = count(raw['completion_tokens']);
  if (completion === undefined) return undefined;
  const usualTotal = (count(raw['prompt_tokens']) ?? 0) + completion;
  if (count(raw['total_tokens']) === usualTotal) return completion;
  const leftOut = excluded.reasoning || traits.completionExcludesReasoning;
  return leftOut ? completion + (reasoningCount(raw) ?? 0) : completion;
}

/**
 * Thoughts that are only in the total: Gemini counts them neither as completion nor separately.
 * Not where the total may hold cached tokens that the prompt omits.
 */
function uncountedThoughts(raw: JsonObject, excluded: ExcludedParts): number {
  const total = count(raw['total_tokens']);
  const prompt = count(raw['prompt_tokens']);
  const completion = count(raw['completion_tokens']);
  if (total === undefined || prompt === undefined || completion === undefined) return 0;
  if ((reasoningCount(raw) ?? 0) > 0 || excluded.cached) return 0;
  return Math.max(0, total - prompt - completion);
}

type Counts = { -readonly [K in keyof Usage]: Usage[K] };

/** Parts of prompt and completion that are not text, as far as they are reported: a zero of the answer counts. */
function mediaCounts(raw: JsonObject): Usage {
  const prompt = object(raw['prompt_tokens_details']);
  const completion = object(raw['completion_tokens_details']);
  const found: Counts = {};
  if (prompt !== undefined) readHeard(prompt, found);
  if (completion === undefined) return found;
  const audio = count(completion['audio_tokens']);
  const image = count(completion['image_tokens']);
  if (audio !== undefined) found.audioOutputTokens = audio;
  if (image !== undefined) found.imageOutputTokens = image;
  return found;
}

function readHeard(prompt: JsonObject, found: Counts): void {
  const audio = count(prompt['audio_tokens']);
  const image = count(prompt['image_tokens']);
  const video = count(prompt['video_tokens']);
  if (audio) found.audioInputTokens = audio;
  if (image) found.imageInputTokens = image;
  if (video) found.videoInputTokens = video;
}

/** OpenRouter has two names for searches, Perplexity one. Other vendors report no searches here. */
function searchCount(raw: JsonObject): Usage {
  const webSearches = firstCount(
    object(raw['server_tool_use'])?.['web_search_requests'],
    object(raw['server_tool_use_details'])?.['web_search_requests'],
    raw['num_search_queries'],
  );
  return webSearches === undefined ? {} : { webSearches };
}

function reasoningCount(raw: JsonObject): number | undefined {
  return count(object(raw['completion_tokens_details'])?.['reasoning_tokens']);
}

function object(value: Json | undefined): JsonObject | undefined {
  return isObject(value) ? value : undefined;
}

function firstCount(...candidates: readonly (Json | undefined)[]): number | undefined {
  for (const candidate of candidates) {
    const known = count(candidate);
    if (known !== undefined) return known;
  }
  return undefined;
}

/** The usage object of an answer; details only where the numbers are known. */
export function writeUsage(usage: Usage): JsonObject {
  const prompt = totalInputTokens(usage) ?? 0;
  const completion = usage.outputTokens ?? 0;
  const written: JsonMembers = {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
  };
  const { cacheReadTokens, cacheWriteTokens, reasoningTokens } = usage;
  if (cacheReadTokens !== undefined || cacheWriteTokens !== undefined) {
    written['prompt_tokens_details'] = {
      cached_tokens: cacheReadTokens ?? 0,
      ...(cacheWriteTokens === undefined ? {} : { cache_write_tokens: cacheWriteTokens }),
    };
  }
  if (reasoningTokens !== undefined) {
    written['completion_tokens_details'] = { reasoning_tokens: reasoningTokens };
  }
  return written;
}

const tiers: ReadonlyMap<string, string> = new Map([
  ['standard', 'default'],
  ['batch', 'default'],
  ['priority', 'priority'],
  ['default', 'default'],
  ['auto', 'auto'],
  ['flex', 'flex'],
  ['scale', 'scale'],
]);

/** The service tier in this dialect's spelling. Undefined if it has none. */
export function writeServiceTier(usage: Usage | undefined): string | undefined {
  const tier = usage?.serviceTier;
  return tier === undefined ? undefined : tiers.get(tier);
}

// Reads and writes finish reasons.

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

/**
 * The reason in canonical words. Tool calls decide between `stop` and `tool-calls`, whatever the upstream says; a
 * cut-off answer stays cut off even if it holds calls: clients must not run a call whose arguments were cut.
 * @param choice whose `finish_reason`, null or missing in a complete answer, counts as a natural end.
 */
export function readFinish(choice: JsonObject, hasToolCalls: boolean): FinishReason {
  // vLLM names in `stop_reason` the stop sequence that matched, or a token id.
  const { finish_reason: raw, stop_reason: stopReason } = choice;
  const word = typeof raw === 'string' && raw !== '' ? raw : undefined;
  const named = (word === undefined ? undefined : kinds.get(word)) ?? 'other';
  const base = word === undefined ? {} : { raw: word };
  if (named === 'length') return { kind: named, ...base };
  if (named === 'content-filter') return { kind: named, ...base, ...filterDetails(choice) };
  if (hasToolCalls) return { kind: 'tool-calls', ...base };
  if (named === 'stop' && typeof stopReason === 'string') {
    return { kind: 'stop-sequence', sequence: stopReason, ...base };
  }
  // Without calls or without a reason, the end is a natural one.
  return { kind: named === 'tool-calls' ? 'other' : named, ...base };
}

/** The findings of Azure's filter, in the form of a refusal in the messages format. */
function filterDetails({ content_filter_results: results }: JsonObject): {
  readonly details?: JsonObject;
} {
  const found = Object.entries(isObject(results) ? results : {})
    .filter(([, category]) => isObject(category) && category['filtered'] === true)
    .map(([name]) => name);
  if (found.length === 0) return {};
  const explanation = `The provider's content filter stopped the answer: ${found.join(', ')}.`;
  return { details: { type: 'refusal', category: null, explanation } };
}

/** Whether the answer was cut off, so that its last call may be incomplete. */
export function isCut(raw: Json | undefined): boolean {
  const kind = kinds.get(String(raw));
  return kind === 'length' || kind === 'content-filter';
}

/** The error of a finish reason that is a failure. */
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
    case 'other': {
      const note = endNote(reason);
      if (note !== undefined) notes.changed(['finish_reason'], note);
      return hasToolCalls ? 'tool_calls' : 'stop';
    }
    default:
      return reason.kind satisfies never;
  }
}
