/**
 * Top-level fields without a canonical slot. They are kept under this dialect's name, so that a
 * writer of another dialect maps them or says that they were dropped; hints that nobody misses and
 * values equal to the API's defaults are not kept (translation.md, principle 1).
 */
import type { Extras, Json, JsonObject } from '../../core/conversation.ts';
import { isObject } from '../../core/json.ts';
import { isArray, type JsonMembers } from './fields.ts';

/** Fields that the canonical conversation holds, or that are refused. */
const canonical: readonly string[] = [
  'model',
  'messages',
  'max_completion_tokens',
  'max_tokens',
  'temperature',
  'top_p',
  'top_k',
  'n',
  'stop',
  'seed',
  'stream',
  'stream_options',
  'tools',
  'tool_choice',
  'parallel_tool_calls',
  'functions',
  'function_call',
  'response_format',
  'reasoning_effort',
  'reasoning',
  'thinking',
  'user',
  'safety_identifier',
  'logprobs',
  'modalities',
  'web_search_options',
];

/** Hints about speed, place or caching whose loss nobody notices (IGNORE in translation.md §1.1). */
const hints: readonly string[] = [
  'prediction',
  'audio',
  'prompt_cache_key',
  'prompt_cache_options',
  'prompt_cache_retention',
  'cache_control',
];

const notKept: ReadonlySet<string> = new Set([...canonical, ...hints]);

const defaults: ReadonlyMap<string, Json> = new Map<string, Json>([
  ['frequency_penalty', 0],
  ['presence_penalty', 0],
  ['top_logprobs', 0],
  ['store', false],
  ['verbosity', 'medium'],
  ['service_tier', 'auto'],
]);

export function readExtras(body: JsonObject): Extras {
  const kept: JsonMembers = {};
  let any = false;
  for (const [key, value] of Object.entries(body)) {
    if (notKept.has(key) || isDefault(key, value)) continue;
    // Not an assignment: the key may be `__proto__` (B40).
    Object.defineProperty(kept, key, { value, enumerable: true, writable: true });
    any = true;
  }
  const { cache_control: mark } = body;
  return {
    ...(any ? { 'openai-chat': kept } : {}),
    // The messages dialect's own field, sent by clients that know where they are routed.
    ...(isObject(mark) ? { 'anthropic-messages': { cache_control: mark } } : {}),
  };
}

function isDefault(key: string, value: Json | undefined): boolean {
  if (value === null || value === undefined || value === defaults.get(key)) return true;
  // `logit_bias: {}`, `metadata: {}` and empty lists ask for nothing.
  if (isArray(value)) return value.length === 0;
  return typeof value === 'object' && Object.keys(value).length === 0;
}
