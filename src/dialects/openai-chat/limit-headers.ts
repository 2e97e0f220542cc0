/** `x-ratelimit-*`, as chat completions tells where a caller's limits stand (chat-completions.md §6). */
import type { Standing, Standings } from '../../core/grant.ts';

/** Flat headers; none for a caller without limits. */
export function limitHeaders({ requests, tokens }: Standings, wallMs: number): readonly string[] {
  return [...headersOf('requests', requests, wallMs), ...headersOf('tokens', tokens, wallMs)];
}

function headersOf(
  what: 'requests' | 'tokens',
  standing: Standing | undefined,
  wallMs: number,
): readonly string[] {
  if (standing === undefined) return [];
  const { limit, remaining, fullAt } = standing;
  return [
    `x-ratelimit-limit-${what}`,
    String(limit),
    `x-ratelimit-remaining-${what}`,
    String(remaining),
    `x-ratelimit-reset-${what}`,
    durationText(Math.max(0, Math.ceil(fullAt - wallMs))),
  ];
}

/** As this dialect's service spells durations: `17ms`, `1.2s`, `6m0s`, `1h0m0s`. */
export function durationText(ms: number): string {
  if (ms < 1000) return `${ms}ms`;
  const minutes = Math.floor(ms / 60_000);
  const seconds = `${(ms % 60_000) / 1000}s`;
  if (minutes === 0) return seconds;
  return minutes < 60
    ? `${minutes}m${seconds}`
    : `${Math.floor(minutes / 60)}h${minutes % 60}m${seconds}`;
}
