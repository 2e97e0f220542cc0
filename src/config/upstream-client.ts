/** MODEL_GATEWAY_UPSTREAM_CLIENT: what speaks HTTP with providers. No setting for every day (docs/network.md). */
import { ConfigError } from './config-error.ts';
import type { Environment } from './references.ts';

const variable = 'MODEL_GATEWAY_UPSTREAM_CLIENT';

/** @throws ConfigError for any other word. */
export function readUpstreamClient(env: Environment): 'sockets' | 'undici' {
  const word = env[variable] ?? '';
  if (word === '' || word === 'sockets') return 'sockets';
  if (word === 'undici') return word;
  throw new ConfigError([
    { path: variable, message: `is sockets (the default) or undici, not ${JSON.stringify(word)}` },
  ]);
}
