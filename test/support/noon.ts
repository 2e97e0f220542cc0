/** Calendar budgets of tests that run on the real clock, whatever the hour is. */
import type { JsonObject } from '../../src/json/value.ts';

const hourMs = 3_600_000;

/** A zone without summer time in which it is between noon and one o'clock. */
export function noonZone(now = Date.now()): string {
  const ahead = 12 - new Date(now - (now % hourMs)).getUTCHours();
  // The names have the sign of POSIX: west of Greenwich is plus.
  return `Etc/GMT${ahead > 0 ? '-' : '+'}${Math.abs(ahead)}`;
}

/**
 * The wish of a key or a policy, as the admin API takes it: budgets that name no zone get one whose next
 * midnight is eleven hours away. In UTC a test that runs across midnight spends half in a new window.
 */
export function inNoonZone(input: JsonObject, now?: number): JsonObject {
  const hasBudget = input['budget'] !== undefined || input['budgets'] !== undefined;
  return hasBudget ? { time_zone: noonZone(now), ...input } : input;
}
