/**
 * How connections to a provider are made in networks that let nothing out directly: through a proxy, with
 * an authority of their own. The proxy of the environment is for what is outside: never for
 * loopback, nor for what NO_PROXY names.
 */
import type { NetworkWay } from '../core/provider.ts';
import { AddressRange } from '../core/addresses.ts';

interface NetworkWayOptions {
  readonly baseUrl: string;
  /** `none`, or the address of a proxy; absent = what the environment says. */
  readonly proxy?: string;
  /** PEM of authorities that are trusted besides the usual ones. */
  readonly ca?: string;
  readonly env: { readonly [name: string]: string | undefined };
}

/** Undefined = directly, with the usual authorities. */
export function networkWay({ baseUrl, proxy, ca, env }: NetworkWayOptions): NetworkWay | undefined {
  const url = new URL(baseUrl);
  const address = proxy ?? environmentProxy(url, env);
  const through = address === undefined || address === 'none' ? undefined : readProxy(address);
  if (through === undefined && ca === undefined) return undefined;
  return {
    ...(through === undefined ? {} : { proxy: through }),
    ...(ca === undefined ? {} : { ca }),
  };
}

/** What is wrong with the text of a proxy, in words that follow its name; undefined when nothing is. */
function proxyProblem(text: string): string | undefined {
  if (text === 'none') return undefined;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const known = url?.protocol === 'http:' || url?.protocol === 'https:';
  return known ? undefined : 'is neither none nor an http:// or https:// address';
}

function readProxy(text: string): NetworkWay['proxy'] {
  if (proxyProblem(text) !== undefined) return undefined;
  const { origin, username, password } = new URL(text);
  if (username === '' && password === '') return { origin };
  const pair = `${decoded(username)}:${decoded(password)}`;
  return { origin, authorization: `Basic ${Buffer.from(pair).toString('base64')}` };
}

/** Passwords have percent signs of their own, too. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function environmentProxy(url: URL, env: NetworkWayOptions['env']): string | undefined {
  if (isLoopback(url.hostname) || isExcepted(url, variable(env, 'no_proxy') ?? ''))
    return undefined;
  const own = variable(env, url.protocol === 'https:' ? 'https_proxy' : 'http_proxy');
  const found = own ?? variable(env, 'all_proxy');
  if (found === undefined) return undefined;
  return found.includes('://') ? found : `http://${found}`;
}

/** The lower-case name wins, as it does in curl; an empty variable is none. */
function variable(env: NetworkWayOptions['env'], name: string): string | undefined {
  const [lower, upper] = [env[name], env[name.toUpperCase()]];
  if (lower !== undefined && lower !== '') return lower;
  return upper === '' ? undefined : upper;
}

function isLoopback(hostname: string): boolean {
  return (
    hostname === 'localhost' ||
    hostname.endsWith('.localhost') ||
    hostname === '[::1]' ||
    hostname.startsWith('127.')
  );
}

/** `NO_PROXY`: hosts and their subdomains, with or without a port, addresses, ranges, or `*`. */
function isExcepted(url: URL, list: string): boolean {
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const port = url.port === '' ? (url.protocol === 'https:' ? '443' : '80') : url.port;
  return list.split(/[\s,]+/).some((entry) => {
    if (entry === '' || entry === '*') return entry === '*';
    const range = rangeOf(entry);
    if (range !== undefined) return range.holds(host);
    const [, name = '', wanted = port] =
      /^\*?\.?(\[.*\]|.*?)(?::(\d+))?$/.exec(entry.toLowerCase()) ?? [];
    if (wanted !== port) return false;
    return host === name || url.hostname === name || host.endsWith(`.${name}`);
  });
}

/** Bits after the prefix do not matter here: other programs read the same list. */
function rangeOf(entry: string): AddressRange | undefined {
  try {
    return new AddressRange(entry);
  } catch {
    return undefined;
  }
}
