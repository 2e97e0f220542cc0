/** `anthropic-ratelimit-*`, as the messages API tells where a caller's limits stand (messages.md §9). */
import type { Standing, Standings } from '../../core/grant.ts';
import { limitNames, type LimitNames } from '../limit-names.ts';

const ofRequests = limitNames((part) => `anthropic-ratelimit-requests-${part}`);
const ofTokens = limitNames((part) => `anthropic-ratelimit-tokens-${part}`);

/** Flat headers; none for a caller without limits. */
export function limitHeaders({ requests, tokens }: Standings): readonly string[] {
  const headers: string[] = [];
  if (requests !== undefined) add(headers, ofRequests, requests);
  if (tokens !== undefined) add(headers, ofTokens, tokens);
  return headers;
}

function add(headers: string[], names: LimitNames, { limit, remaining, fullAt }: Standing): void {
  headers.push(
    names.limit,
    String(limit),
    names.remaining,
    String(remaining),
    names.reset,
    timeText(fullAt),
  );
}

/** RFC 3339 in whole seconds, never before the time itself. */
function timeText(ms: number): string {
  return new Date(Math.ceil(ms / 1000) * 1000).toISOString().replace('.000Z', 'Z');
}
