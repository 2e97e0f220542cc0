/** Token counts between this dialect's inclusive sums and the canonical disjoint classes. */
import { totalInputTokens, type Usage } from '../../core/generation.ts';
import { isObject, type Json, type JsonObject } from '../../json/value.ts';

/** No model counts beyond this; a larger number is a fault of the upstream (F57). */
const maxCount = 1e12;

/**
 * The usage that a response object reports, and its service tier. Undefined when there is none or nothing in it can be
 * believed.
 * @param searches `web_search_call` items that the answer showed, for upstreams that do not count them.
 */
export function readUsage(response: JsonObject, searches = 0): Usage | undefined {
  const raw = response['usage'];
  if (!isObject(raw)) return undefined;
  const input = count(raw['input_tokens']);
  const outputTokens = count(raw['output_tokens']);
  if (input === undefined && outputTokens === undefined) return undefined;
  const reasoningTokens = countIn(raw['output_tokens_details'], 'reasoning_tokens');
  const webSearches = countedSearches(response, raw) ?? searches;
  const serviceTier = response['service_tier'];
  return {
    ...readInput(raw, input),
    ...(outputTokens === undefined ? {} : { outputTokens }),
    ...(reasoningTokens === undefined ? {} : { reasoningTokens }),
    ...(webSearches === 0 ? {} : { webSearches }),
    ...(typeof serviceTier === 'string' ? { serviceTier } : {}),
    raw,
  };
}

/** The three disjoint input classes out of the inclusive sum. */
function readInput(raw: JsonObject, input: number | undefined): Usage {
  const details = raw['input_tokens_details'];
  const read = countIn(details, 'cached_tokens');
  const write = countIn(details, 'cache_write_tokens');
  const cached = (read ?? 0) + (write ?? 0);
  return {
    // More cached than sent: this upstream leaves cached tokens out of the input (seen at xAI).
    ...(input === undefined ? {} : { freshInputTokens: input >= cached ? input - cached : input }),
    ...(read === undefined ? {} : { cacheReadTokens: read }),
    ...(write === undefined ? {} : { cacheWriteTokens: write }),
  };
}

/** GitHub Copilot counts searches outside of the usage, xAI all that it ran inside of it. */
function countedSearches(response: JsonObject, raw: JsonObject): number | undefined {
  const tools = response['tool_usage'];
  const search = isObject(tools) ? tools['web_search'] : undefined;
  return countIn(search, 'num_requests') ?? count(raw['num_server_side_tools_used']);
}

function countIn(details: Json | undefined, name: string): number | undefined {
  return isObject(details) ? count(details[name]) : undefined;
}

/** A believable token count; undefined for what is negative, endless or no number (F57). */
function count(value: Json | undefined): number | undefined {
  if (typeof value !== 'number' || !(value >= 0 && value <= maxCount)) return undefined;
  return Math.floor(value);
}

/**
 * The usage object of a response: all counts are there as integers, an unknown one is 0. Codex asks again where
 * `total_tokens` is missing.
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

/** The service tier of a response object, whose word for the usual one is `default`. */
export function writeServiceTier(usage: Usage | undefined): string {
  const tier = usage?.serviceTier;
  return tier !== undefined && tiers.has(tier) ? tier : 'default';
}
