/** Cache marks: as clients of this dialect write them, and as its servers want them (translation.md §8). */
import type { CacheMark, JsonObject } from '../../core/conversation.ts';
import { isObject } from '../../core/json.ts';
import type { UpstreamTraits } from '../../core/traits.ts';
import { isArray, type JsonMembers } from './fields.ts';

const breakpoint = { prompt_cache_breakpoint: { mode: 'explicit' } };

/**
 * `cache_control` (Anthropic's spelling, an extension here) or `prompt_cache_breakpoint`, which lives
 * 30 minutes at least there and as long as marks usually do elsewhere.
 */
export function readCacheMark(carrier: JsonObject): CacheMark | undefined {
  const control = carrier['cache_control'];
  if (isObject(control)) {
    const { ttl } = control;
    return typeof ttl === 'string' ? { ttl } : {};
  }
  return isObject(carrier['prompt_cache_breakpoint']) ? {} : undefined;
}

/** The mark in Anthropic's spelling, for servers that understand it. */
export function writeCacheMark({ ttl }: CacheMark): JsonObject {
  return { cache_control: { type: 'ephemeral', ...(ttl === undefined ? {} : { ttl }) } };
}

/** The mark as a member of its part, in the spelling that the server understands; else nothing. */
export function writePartMark(mark: CacheMark | undefined, traits: UpstreamTraits): JsonObject {
  if (mark === undefined) return {};
  if (traits.cacheBreakpoints === true) return breakpoint;
  return traits.cacheMarks ? writeCacheMark(mark) : {};
}

/** Whether a part must stay a part, because a mark stands on it. */
export function isMarked(part: JsonObject): boolean {
  return part['cache_control'] !== undefined || part['prompt_cache_breakpoint'] !== undefined;
}

/**
 * Texts as one string. Where marks are understood they stay apart: a mark moves on with the
 * conversation, and if texts were joined as soon as it left them, the cached prefix would change (G2).
 */
export function textContent(
  texts: readonly JsonObject[],
  separator: string,
  traits: UpstreamTraits,
): string | readonly JsonObject[] {
  const apart = traits.cacheMarks || traits.cacheBreakpoints === true;
  if (texts.some(isMarked) || (apart && texts.length > 1)) return texts;
  return texts.map((part) => String(part['text'])).join(separator);
}

/** Puts a breakpoint on a text. */
type Marking = () => void;

/**
 * Breakpoints are taken on text parts only: those of images, files and calls move to the nearest text
 * before them. One without any text before it is dropped: so little is not worth caching.
 */
export function settleBreakpoints(messages: readonly JsonMembers[]): void {
  let mark: Marking = () => {};
  for (const message of messages) {
    const { content, tool_calls: calls } = message;
    if (typeof content === 'string' && content !== '') mark = markWhole(message, content);
    if (isArray(content)) {
      const parts = [...content];
      message['content'] = parts;
      parts.forEach((part, at) => {
        if (!isObject(part)) return;
        if (part['type'] === 'text') {
          mark = () => (parts[at] = { ...part, ...breakpoint });
        } else if (isMarked(part)) {
          parts[at] = unmarked(part);
          mark();
        }
      });
    }
    if (isArray(calls) && calls.some((call) => isObject(call) && isMarked(call))) {
      message['tool_calls'] = calls.map((call) => (isObject(call) ? unmarked(call) : call));
      mark();
    }
  }
}

function markWhole(message: JsonMembers, text: string): Marking {
  return () => {
    message['content'] = [{ type: 'text', text, ...breakpoint }];
  };
}

function unmarked({ prompt_cache_breakpoint: _mark, ...part }: JsonObject): JsonObject {
  return part;
}
