/**
 * Usage of relayed answers in this dialect's own terms. Some servers leave reasoning out of their
 * completion (xAI, Gemini) or spell cached tokens in their own way (DeepSeek, LiteLLM): a client would
 * count them wrong, or not at all (F3, F4).
 */
import type { Json, JsonObject } from '../../core/conversation.ts';
import type { Usage } from '../../core/generation.ts';
import { isObject } from '../../core/json.ts';
import { writeUsage } from './usage.ts';

/** The report with the numbers as this dialect means them; undefined when it says so already. */
export function mendedUsage(raw: JsonObject, usage: Usage): JsonObject | undefined {
  const { prompt_tokens: prompt, completion_tokens: completion } = raw;
  if (typeof prompt !== 'number' || typeof completion !== 'number') return undefined;
  const meant = writeUsage(usage);
  return says(raw, meant) ? undefined : merged(raw, meant);
}

/** Every number that is meant stands where clients look for it. A zero may be left out. */
function says(raw: Json | undefined, meant: JsonObject): boolean {
  const told = isObject(raw) ? raw : {};
  for (const key in meant) {
    const value = meant[key];
    if (isObject(value) ? !says(told[key], value) : value !== (told[key] ?? 0)) return false;
  }
  return true;
}

function merged(raw: JsonObject, meant: JsonObject): JsonObject {
  const whole: { [key: string]: Json | undefined } = { ...raw };
  for (const [key, value] of Object.entries(meant)) {
    const told = raw[key];
    whole[key] = isObject(value) && isObject(told) ? { ...told, ...value } : value;
  }
  return whole;
}
