/** How long an upstream asks to wait, in whichever way it says so (reliability.md F16). */
import type { ResponseHeaders } from './exchange.ts';

/** What is passed on to clients at most; longer waits put both SDKs to sleep (reliability.md §0). */
export const longestRetryAfterMs = 60_000;

/**
 * The wait in ms from `retry-after-ms`, `retry-after` (seconds or HTTP date); undefined when absent,
 * unreadable, negative or in the past.
 */
export function readRetryAfterMs(headers: ResponseHeaders, wallMs: number): number | undefined {
  const milliseconds = positiveNumber(first(headers['retry-after-ms']));
  if (milliseconds !== undefined) return milliseconds;
  const text = first(headers['retry-after']);
  const seconds = positiveNumber(text);
  if (seconds !== undefined) return seconds * 1000;
  if (text === undefined || !/[a-z]/i.test(text)) return undefined;
  const date = Date.parse(text);
  return Number.isNaN(date) || date <= wallMs ? undefined : date - wallMs;
}

function first(value: string | readonly string[] | undefined): string | undefined {
  return typeof value === 'string' || value === undefined ? value : value[0];
}

function positiveNumber(text: string | undefined): number | undefined {
  if (text === undefined || !/^\s*\d+(\.\d+)?\s*$/.test(text)) return undefined;
  const value = Number(text);
  return Number.isFinite(value) ? value : undefined;
}
