/** Sums of tokens: OpenAI's dialects count cached input and reasoning within them, and not all of their servers do. */
import { isObject, type Json, type JsonObject } from '../../json/value.ts';

/** The maximum plausible count. A larger number is a fault of the upstream (F57). */
const maxCount = 1e12;

/** A plausible token count. Undefined for negative numbers, infinity and values that are no numbers (F57). */
export function tokenCount(value: Json | undefined): number | undefined {
  if (typeof value !== 'number' || !(value >= 0 && value <= maxCount)) return undefined;
  return Math.floor(value);
}

/** Counts as a server reports them; a part that it does not report is 0. */
export interface ReportedSums {
  readonly input: number | undefined;
  readonly cached: number;
  readonly output: number | undefined;
  readonly reasoning: number;
  readonly total: number | undefined;
}

/** Which parts are counted outside their sum. */
export interface ExcludedParts {
  readonly cached: boolean;
  readonly reasoning: boolean;
}

/**
 * xAI counts reasoning outside the completion, and was seen to count cached input outside the prompt. The total decides,
 * else a part that is larger than its sum.
 */
export function excludedParts(sums: ReportedSums): ExcludedParts {
  const { input = 0, cached, output = 0, reasoning, total } = sums;
  const excluded = { cached: cached > input, reasoning: reasoning > output };
  if (total === undefined) return excluded;
  switch (total - input - output) {
    case 0:
      return { ...excluded, reasoning: false };
    case reasoning:
      return { ...excluded, reasoning: true };
    case cached:
      return { cached: true, reasoning: false };
    case cached + reasoning:
      return { cached: true, reasoning: true };
    default:
      return excluded;
  }
}

/** The report with the corrected numbers. Undefined if it has them already. */
export function repairedUsage(raw: JsonObject, meant: JsonObject): JsonObject | undefined {
  return says(raw, meant) ? undefined : merged(raw, meant);
}

/** Every number that is meant is where clients look for it. A zero may be omitted. */
function says(raw: Json | undefined, meant: JsonObject): boolean {
  const sent = isObject(raw) ? raw : {};
  for (const key in meant) {
    const value = meant[key];
    if (isObject(value) ? !says(sent[key], value) : value !== (sent[key] ?? 0)) return false;
  }
  return true;
}

function merged(raw: JsonObject, meant: JsonObject): JsonObject {
  const whole: { [key: string]: Json | undefined } = { ...raw };
  for (const [key, value] of Object.entries(meant)) {
    const sent = raw[key];
    whole[key] = isObject(value) && isObject(sent) ? { ...sent, ...value } : value;
  }
  return whole;
}
