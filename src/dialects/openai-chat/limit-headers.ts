/** `x-ratelimit-*`, as chat completions tells where a caller's limits stand (chat-completions.md §6). */
import type { Standing, Standings } from '../../core/grant.ts';
import { limitNames, type LimitNames } from '../limit-names.ts';

const ofRequests = limitNames((part) => `x-ratelimit-${part}-requests`);
const ofTokens = limitNames((part) => `x-ratelimit-${part}-tokens`);

/** Flat headers; none for a caller without limits. */
export function limitHeaders({ requests, tokens }: Standings, wallMs: number): readonly string[] {
  const headers: string[] = [];
  if (requests !== undefined) add(headers, ofRequests, { standing: requests, wallMs });
  if (tokens !== undefined) add(headers, ofTokens, { standing: tokens, wallMs });
  return headers;
}

function add(
  headers: string[],
  names: LimitNames,
  { standing, wallMs }: { readonly standing: Standing; readonly wallMs: number },
): void {
  const { limit, remaining, fullAt } = standing;
  headers.push(
    names.limit,
    String(limit),
    names.remaining,
    String(remaining),
    names.reset,
    durationText(Math.max(0, Math.ceil(fullAt - wallMs))),
  );
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
