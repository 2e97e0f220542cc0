/** `anthropic-ratelimit-*`, as the messages API tells where a caller's limits stand (messages.md §9). */
import type { Standing, Standings } from '../../core/grant.ts';

/** Flat headers; none for a caller without limits. */
export function limitHeaders({ requests, tokens }: Standings): readonly string[] {
  return [...headersOf('requests', requests), ...headersOf('tokens', tokens)];
}

function headersOf(what: 'requests' | 'tokens', standing: Standing | undefined): readonly string[] {
  if (standing === undefined) return [];
  const { limit, remaining, fullAt } = standing;
  return [
    `anthropic-ratelimit-${what}-limit`,
    String(limit),
    `anthropic-ratelimit-${what}-remaining`,
    String(remaining),
    `anthropic-ratelimit-${what}-reset`,
    timeText(fullAt),
  ];
}

/** RFC 3339 in whole seconds, never before the time itself. */
function timeText(ms: number): string {
  return new Date(Math.ceil(ms / 1000) * 1000).toISOString().replace('.000Z', 'Z');
}
