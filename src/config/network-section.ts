/** `proxy` and `ca` of a provider: how it is reached where the network lets nothing out directly (N4, S19). */
import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { Secret } from '../core/secret.ts';
import type { CheckedFile } from './config-file.ts';
import type { Environment } from './references.ts';
import type { ConfigFile } from './schema.ts';
import type { ProviderSettings } from './settings.ts';

type ProviderForm = NonNullable<NonNullable<ConfigFile['providers']>[string]>;
type Complain = (message: string, ...keys: readonly string[]) => void;

export function readNetwork(
  { proxy, ca }: ProviderForm,
  file: CheckedFile,
  complain: Complain,
): Pick<ProviderSettings, 'proxy' | 'ca'> {
  // The text itself is not quoted: it may hold a password.
  if (proxy !== undefined && !isProxy(proxy)) {
    complain('is neither none nor an http:// or https:// address', 'proxy');
  }
  const pem = ca === undefined ? undefined : readAuthorities(ca, file, complain);
  return {
    ...(proxy === undefined ? {} : { proxy: new Secret(proxy) }),
    ...(pem === undefined ? {} : { ca: pem }),
  };
}

/** Proxies of the environment that the gateway cannot use: it would go past them without a word. */
export function proxyWarnings(env: Environment): readonly string[] {
  return ['https_proxy', 'http_proxy', 'all_proxy']
    .flatMap((name) => [name, name.toUpperCase()])
    .filter((name) => {
      const text = env[name] ?? '';
      return text !== '' && !isProxy(text.includes('://') ? text : `http://${text}`);
    })
    .map(
      (name) =>
        `${name} is no http:// or https:// address: the gateway does not use it and connects to providers directly`,
    );
}

function isProxy(text: string): boolean {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  return text === 'none' || url?.protocol === 'http:' || url?.protocol === 'https:';
}

function readAuthorities(path: string, file: CheckedFile, complain: Complain): string | undefined {
  try {
    const pem = readFileSync(resolve(dirname(file.place.path), path), 'utf8');
    // Node takes what it cannot read for no authority at all, and says nothing.
    void new X509Certificate(pem);
    return pem;
  } catch (error) {
    const why = error instanceof Error && 'code' in error ? String(error.code) : String(error);
    complain(`"${path}" cannot be read as a PEM file of certificates (${why})`, 'ca');
    return undefined;
  }
}
