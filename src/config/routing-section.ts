/** Credentials of providers, and rules of retries, as the gateway uses them. */
import type { HedgeRule, RetryRules } from '../core/provider.ts';
import { Secret } from '../core/secret.ts';
import type { ConfigFile } from './schema.ts';

type ProviderForm = NonNullable<NonNullable<ConfigFile['providers']>[string]>;

/** One of several keys of a provider. */
export interface CredentialSettings {
  readonly name: string;
  readonly key: Secret;
}

/** One key has no name; several have: their own, or `key-1`, `key-2` of a list. */
export function readKeys({ api_key: apiKey, credentials }: ProviderForm): {
  readonly apiKey?: Secret;
  readonly credentials?: readonly CredentialSettings[];
} {
  const named = Object.entries(credentials ?? {}).map(([name, key]) => ({
    name,
    key: new Secret(key),
  }));
  if (named.length > 0) return { credentials: named };
  if (typeof apiKey === 'string') return { apiKey: new Secret(apiKey) };
  const [only, ...others] = apiKey ?? [];
  if (only === undefined) return {};
  if (others.length === 0) return { apiKey: new Secret(only) };
  const listed = [only, ...others].map((key, i) => ({
    name: `key-${i + 1}`,
    key: new Secret(key),
  }));
  return { credentials: listed };
}

/** What is wrong with the keys of a provider together; undefined when nothing is. */
export function keysProblem({ api_key: apiKey, credentials }: ProviderForm): string | undefined {
  const names = Object.keys(credentials ?? {});
  if (credentials !== undefined && names.length === 0) return 'names no key';
  if (apiKey !== undefined && names.length > 0) return 'stands beside api_key: use one of the two';
  const keys = [...Object.values(credentials ?? {}), ...(Array.isArray(apiKey) ? apiKey : [])];
  return new Set(keys).size < keys.length ? 'holds the same key twice' : undefined;
}

/** `hedge` of a name; nothing where it says none. */
export function readHedge(form: { readonly after?: number | undefined } | null | undefined): {
  readonly hedge?: HedgeRule;
} {
  const afterMs = form?.after;
  return afterMs === undefined ? {} : { hedge: { afterMs } };
}

/** What is wrong with a hedge beside the other rules; undefined when nothing is. */
export function hedgeProblem({
  hedge,
  retry,
}: {
  readonly hedge?: HedgeRule;
  readonly retry?: RetryRules;
}): string | undefined {
  if (hedge === undefined || retry?.afterSent !== false) return undefined;
  return 'sends a request twice, which after_sent: false of retry forbids: take one of the two';
}

/** The nearer rules before the farther ones. */
export function readRetry(...forms: readonly ConfigFile['retry'][]): {
  readonly retry?: RetryRules;
} {
  const afterSent = forms.find((form) => form?.after_sent !== undefined)?.after_sent;
  const overflow = forms.find((form) => form?.context_overflow !== undefined)?.context_overflow;
  const retry: RetryRules = {
    ...(afterSent === undefined ? {} : { afterSent }),
    ...(overflow === undefined ? {} : { contextOverflow: overflow }),
  };
  return Object.keys(retry).length === 0 ? {} : { retry };
}
