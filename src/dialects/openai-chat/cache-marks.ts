/** Cache marks as clients of this dialect write them (wire/translation.md §8). */
import type { CacheMark, JsonObject } from '../../core/conversation.ts';
import { isObject } from '../../core/json.ts';

/** `cache_control` (Anthropic's spelling, an extension here) or `prompt_cache_breakpoint`. */
export function readCacheMark(carrier: JsonObject): CacheMark | undefined {
  const control = carrier['cache_control'];
  if (isObject(control)) {
    const { ttl } = control;
    return typeof ttl === 'string' ? { ttl } : {};
  }
  return isObject(carrier['prompt_cache_breakpoint']) ? {} : undefined;
}

/** The mark in Anthropic's spelling, for servers that understand it. */
export function writeCacheMark(mark: CacheMark): JsonObject {
  return {
    cache_control: { type: 'ephemeral', ...(mark.ttl === undefined ? {} : { ttl: mark.ttl }) },
  };
}
