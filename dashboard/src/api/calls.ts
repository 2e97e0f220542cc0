/** The ledger, call by call: `/api/calls`. */
import { useQuery } from '@tanstack/react-query';
import type { Fault } from './errors.ts';
import { get, type QueryValue } from './client.ts';

/** The three APIs of calls, as people call them. */
export const endpointNames: { readonly [endpoint: string]: string } = {
  'openai-chat': 'Chat Completions',
  'anthropic-messages': 'Messages',
  'openai-responses': 'Responses',
};

export type Outcome = 'ok' | 'failed' | 'canceled';

/** Null: not known, which is not zero. */
export interface Counts {
  readonly fresh_input_tokens: number | null;
  readonly cache_read_tokens: number | null;
  readonly cache_write_tokens: number | null;
  readonly cache_write_1h_tokens: number | null;
  readonly output_tokens: number | null;
  readonly reasoning_tokens: number | null;
  readonly audio_input_tokens: number | null;
  readonly image_input_tokens: number | null;
  readonly video_input_tokens: number | null;
  readonly audio_output_tokens: number | null;
  readonly image_output_tokens: number | null;
  readonly web_searches: number | null;
  readonly images: number | null;
}

export interface Call {
  readonly id: string;
  readonly started_at: string;
  /** Id of the key. */
  readonly key: string;
  readonly team: string | null;
  readonly tags: readonly string[];
  readonly user: string | null;
  readonly metadata: unknown;
  readonly endpoint: string;
  readonly model: string;
  readonly provider: string | null;
  readonly upstream_model: string | null;
  readonly mode: string | null;
  readonly stream: boolean;
  readonly outcome: Outcome;
  readonly status: number | null;
  readonly error: string | null;
  readonly fault: Fault | null;
  /** Named reason that the client got. */
  readonly reason: string | null;
  /** The error text that the client got. */
  readonly message: string | null;
  /** The limit or budget that refused: `key:ID:requests`, `team:NAME:month`. */
  readonly limit: string | null;
  readonly attempts: number;
  readonly reported: Counts | null;
  readonly charged: Counts;
  readonly usage_source: string;
  readonly suspect: boolean;
  readonly cost_usd: number | null;
  readonly cost: CostParts | null;
  /** What caches saved; null: nothing was cached, or the price is unknown. */
  readonly cache_saved_usd: number | null;
  readonly reserved_usd: number | null;
  readonly overrun: boolean;
  readonly budgets: readonly { readonly counter: string; readonly window: string }[];
  readonly first_event_ms: number | null;
  readonly total_ms: number;
  /** What a translation lost or changed: `field: what; field: what`. */
  readonly notes: string | null;
}

/** Dollars. */
export interface CostParts {
  readonly input: number;
  readonly cache_read: number;
  readonly cache_write: number;
  readonly output: number;
  readonly reasoning: number;
  readonly call: number;
}

export interface Attempt {
  readonly provider: string;
  readonly upstream_model: string;
  readonly credential: string | null;
  readonly started_at: string;
  readonly ms: number;
  readonly status: number | null;
  readonly outcome: Outcome;
  readonly error: string | null;
  /** The provider's own words, where it said some. */
  readonly message: string | null;
  readonly maybe_billed: boolean;
}

/** Dollars for a million tokens; null: this class has no price of its own. */
export interface CallPrice {
  readonly source: string;
  readonly input: number | null;
  readonly cache_read: number | null;
  readonly cache_write: number | null;
  readonly cache_write_1h: number | null;
  readonly output: number | null;
  readonly reasoning: number | null;
}

export interface CallDetails extends Call {
  readonly price: CallPrice | null;
  readonly attempt_list: readonly Attempt[];
}

export interface CallPage {
  readonly calls: readonly Call[];
  /** Null on the last page. */
  readonly next: string | null;
}

/** When the answer began, ms; null of one that was not streamed: its first part comes when all of it is there. */
export function firstTokenMs({ stream, first_event_ms: ms }: Call): number | null {
  return stream ? ms : null;
}

/** Tokens a second between the first and the last part of a stream; null if it is unknown. */
export function outputSpeed(call: Call): number | null {
  const first = firstTokenMs(call);
  const tokens = call.charged.output_tokens;
  if (first === null || tokens === null || call.total_ms <= first) return null;
  return (tokens * 1000) / (call.total_ms - first);
}

/** Parameters of a list of calls. */
export interface CallFilter {
  readonly [name: string]: QueryValue;
}

/** One page, newest first. @throws ApiError */
export function fetchCalls(filter: CallFilter, signal?: AbortSignal): Promise<CallPage> {
  return get<CallPage>('/api/calls', { query: filter, signal });
}

/** Calls that ended since a look before. */
export interface CallTail {
  /** The one that ended last first. */
  readonly calls: readonly Call[];
  readonly ended: number;
  /** The number of calls that ended and were dropped before this page could get them. */
  readonly lost: number;
  /** False: there was no look before, or it was too long ago. */
  readonly continued: boolean;
  readonly next: string;
}

/** @throws ApiError */
export function fetchTail(filter: CallFilter, signal?: AbortSignal): Promise<CallTail> {
  return get<CallTail>('/api/calls/tail', { query: filter, signal });
}

export function useCall(id: string) {
  return useQuery({
    queryKey: ['call', id],
    queryFn: ({ signal }) => get<CallDetails>(`/api/calls/${encodeURIComponent(id)}`, { signal }),
    // A call in the ledger is over and changes no more.
    staleTime: Infinity,
  });
}

/** The newest call of a list, to see whether there are new ones. */
export function useNewestCall(list: string, filter: CallFilter, everyMs: number) {
  return useQuery({
    queryKey: ['newest-call', list],
    queryFn: async ({ signal }) => {
      const { calls } = await fetchCalls({ ...filter, limit: 1 }, signal);
      return calls[0]?.id ?? null;
    },
    refetchInterval: everyMs,
  });
}
