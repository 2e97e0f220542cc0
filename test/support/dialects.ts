/**
 * The wire formats that clients and upstreams speak in tests. Suites take their clients, upstreams and pairs from here, and
 * their tables have a row for each, so that a further dialect shows each place that does not know it.
 */

/** What a client may speak. Upstreams speak each of them, too: then the bytes are relayed. */
export const clientDialects = ['chat', 'messages', 'responses'] as const;
export type ClientDialect = (typeof clientDialects)[number];

/** Upstreams that stream server-sent events. */
export const sseUpstreams = [...clientDialects, 'gemini'] as const;
export type SseUpstream = (typeof sseUpstreams)[number];

/** What upstreams alone speak: it is always translated. */
export const upstreamOnlyDialects = ['gemini', 'converse'] as const;

/** What an upstream may speak. */
export const upstreamDialects = [...clientDialects, ...upstreamOnlyDialects] as const;
export type UpstreamDialect = (typeof upstreamDialects)[number];

export interface Pair {
  readonly client: ClientDialect;
  readonly upstream: UpstreamDialect;
}

/** Each client on each upstream. */
export const pairs: readonly Pair[] = clientDialects.flatMap((client) =>
  upstreamDialects.map((upstream) => ({ client, upstream })),
);
