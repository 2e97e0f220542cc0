/** Converts token counts between this dialect's inclusive sums and the canonical disjoint classes. */
import { totalInputTokens, type Usage } from '../../../core/generation.ts';
import { isObject, type Json, type JsonObject } from '../../../json/value.ts';
import { excludedParts, tokenCount as count } from '../../shared/usage-sums.ts';

/**
 * The usage and service tier of a response object. Undefined if there is none, or no plausible count.
 * @param searches `web_search_call` items that the answer showed, for upstreams that do not count them.
 */
export function readUsage(response: JsonObject, searches = 0): Usage | undefined {
  const raw = response['usage'];
  if (!isObject(raw)) return undefined;
  const input = count(raw['input_tokens']);
  const output = count(raw['output_tokens']);
  if (input === undefined && output === undefined) return undefined;
  const webSearches = countedSearches(response, raw) ?? searches;
  const serviceTier = response['service_tier'];
  return {
    ...readSums(raw, input, output),
    ...(webSearches === 0 ? {} : { webSearches }),
    ...(typeof serviceTier === 'string' ? { serviceTier } : {}),
    raw,
  };
}

/** Computes the disjoint classes from the sums. */
function readSums(raw: JsonObject, input: number | undefined, output: number | undefined): Usage {
  const read = countIn(raw['input_tokens_details'], 'cached_tokens');
  const write = countIn(raw['input_tokens_details'], 'cache_write_tokens');
  const thoughts = countIn(raw['output_tokens_details'], 'reasoning_tokens');
  const cached = (read ?? 0) + (write ?? 0);
  const reasoning = thoughts ?? 0;
  const total = count(raw['total_tokens']);
  const excluded = excludedParts({ input, cached, output, reasoning, total });
  const within = excluded.cached ? 0 : cached;
  const apart = excluded.reasoning ? reasoning : 0;
  return {
    ...(input === undefined ? {} : { freshInputTokens: input - within }),
    ...(read === undefined ? {} : { cacheReadTokens: read }),
    ...(write === undefined ? {} : { cacheWriteTokens: write }),
    ...(output === undefined ? {} : { outputTokens: output + apart }),
    ...(thoughts === undefined ? {} : { reasoningTokens: thoughts }),
  };
}

/** GitHub Copilot counts searches outside of the usage object, xAI inside of it. */
function countedSearches(response: JsonObject, raw: JsonObject): number | undefined {
  const tools = response['tool_usage'];
  const search = isObject(tools) ? tools['web_search'] : undefined;
  return countIn(search, 'num_requests') ?? count(raw['num_server_side_tools_used']);
}

function countIn(details: Json | undefined, name: string): number | undefined {
  return isObject(details) ? count(details[name]) : undefined;
}

/**
 * The usage object of a response. All counts are integers; an unknown one is 0. Codex retries if `total_tokens` is
 * missing.
 */
export function writeUsage(usage: Usage): JsonObject {
  const input = totalInputTokens(usage) ?? 0;
  const output = usage.outputTokens ?? 0;
  return {
    input_tokens: input,
    input_tokens_details: {
      cached_tokens: usage.cacheReadTokens ?? 0,
      cache_write_tokens: usage.cacheWriteTokens ?? 0,
    },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: usage.reasoningTokens ?? 0 },
    total_tokens: input + output,
  };
}

const tiers: ReadonlySet<string> = new Set([
  'auto',
  'default',
  'flex',
  'scale',
  'priority',
  'fast',
  'ultrafast',
]);

/** The service tier of a response object, in which the standard tier is `default`. */
export function writeServiceTier(usage: Usage | undefined): string {
  const tier = usage?.serviceTier;
  return tier !== undefined && tiers.has(tier) ? tier : 'default';
}
