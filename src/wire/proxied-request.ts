/** What a request to a plain http address says when it goes through a proxy (RFC 9112 §3.2.2). */
import type { Endpoint } from '../core/provider.ts';

/** A proxy is asked for plain http by the whole address. */
export function pathThrough({ origin, path }: Endpoint): string {
  return origin.startsWith('http:') ? origin + path : path;
}

const none: readonly string[] = [];

export function proxyHeaders({ origin, way }: Endpoint): readonly string[] {
  const credential = way?.proxy?.authorization;
  if (credential === undefined || !origin.startsWith('http:')) return none;
  return ['proxy-authorization', credential];
}
