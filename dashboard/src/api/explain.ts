/** What a request would do, from `/api/explain`: nothing is sent to a model, taken from a limit or recorded. */
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { send } from './client.ts';

/** The error that the client would get. */
interface Refusal {
  readonly status: number;
  /** In the endpoint's form. */
  readonly body: { readonly error?: { readonly message?: string } };
}

export interface ExplainedLimit {
  readonly kind: 'concurrent' | 'requests' | 'tokens' | 'budget';
  /** `key:ID`, `team:NAME`. */
  readonly holder: string;
  /** Dollars of a budget are text. */
  readonly limit: number | string;
  readonly takes: number | string;
  /** Dollars; null: not of a budget. */
  readonly left: string | null;
  readonly per: string | null;
}

export interface ExplainedTarget {
  readonly target: string;
  /** From 1 in the order of attempts; null: not tried. */
  readonly place: number | null;
  readonly why: string;
  readonly health: string;
  readonly mode: 'relay' | 'translate' | null;
  readonly notes: readonly {
    readonly path: string;
    readonly what: 'lost' | 'changed';
    readonly why: string;
  }[];
  readonly refused: Refusal | null;
  readonly request: {
    readonly method: string;
    readonly url: string;
    readonly headers: Readonly<Record<string, string>>;
    readonly body: Readonly<Record<string, unknown>> | null;
  } | null;
}

export interface Explanation {
  readonly route: { readonly name: string; readonly order: string };
  readonly refused: Refusal | null;
  readonly prompt: { readonly tokens: number; readonly counted_by: string } | null;
  readonly cost: {
    /** Dollars, as text; null: unknown. */
    readonly highest_usd: string | null;
    readonly expected_usd: string | null;
    readonly expected_output_tokens: number | null;
  };
  readonly limits: readonly ExplainedLimit[];
  readonly targets: readonly ExplainedTarget[];
}

export interface ExplainedRequest {
  /** Path of the endpoint: `/v1/messages`. */
  readonly endpoint: string;
  /** JSON of the body. */
  readonly body: string;
  /** Id of the key to call as; '' = none. */
  readonly key: string;
}

/** Asked again for every other request; the answer to the one before is shown until then. */
export function useExplanation({ endpoint, body, key }: ExplainedRequest) {
  return useQuery({
    queryKey: ['explain', endpoint, key, body],
    queryFn: ({ signal }) =>
      send<Explanation>('POST', '/api/explain', {
        query: { endpoint, key: key === '' ? undefined : key },
        body: JSON.parse(body) as unknown,
        signal,
      }),
    placeholderData: keepPreviousData,
    retry: false,
    // Bodies may have pictures.
    gcTime: 0,
  });
}

/** The sentence of a refusal. */
export function refusalText({ status, body }: Refusal): string {
  return `${status}: ${body.error?.message ?? 'no details'}`;
}
