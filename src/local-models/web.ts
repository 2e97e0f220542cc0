/**
 * HTTP as downloads need it: proxies of the environment, redirects by hand (the hub's answer carries the
 * hash of the file that it redirects to, and its token goes to no other host), and errors that say what
 * was tried.
 */
import type { IncomingHttpHeaders } from 'node:http';
import { lookup } from 'node:dns';
import { EnvHttpProxyAgent, request, type Dispatcher } from 'undici';
import { forbiddenHost, isForbiddenHost } from '../core/addresses.ts';
import { guardedLookup } from '../wire/connect.ts';
import { networkText, statusText } from './web-errors.ts';
import { codeOf, PullError } from './pull-error.ts';
import type { Environment, Hub } from './hub.ts';

export interface WebAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Dispatcher.ResponseData['body'];
  /** SHA-256 (hex) and size of the file, where the hub told them on the way. */
  readonly linked: { readonly sha256?: string; readonly bytes?: number };
  /** Where the answer came from, without its query: that may be a signature. */
  readonly place: string;
}

const maxRedirects = 10;
const maxDocumentBytes = 32 * 2 ** 20;
const timeouts = { connectMs: 15_000, headersMs: 60_000, bodyMs: 60_000 } as const;
/** A proxy is never the way to this machine itself. */
const loopback = 'localhost,127.0.0.1,::1';

export class Web {
  readonly #hub: Hub;
  readonly #env: Environment;
  readonly #agent: EnvHttpProxyAgent;

  constructor(env: Environment, hub: Hub) {
    this.#env = env;
    this.#hub = hub;
    this.#agent = new EnvHttpProxyAgent({
      httpProxy: proxyOf(env, 'http') ?? '',
      httpsProxy: proxyOf(env, 'https') ?? '',
      noProxy: [env['no_proxy'] ?? env['NO_PROXY'] ?? '', loopback].filter(Boolean).join(','),
      connect: { timeout: timeouts.connectMs, lookup: guardedLookup(lookup) },
      headersTimeout: timeouts.headersMs,
      bodyTimeout: timeouts.bodyMs,
    });
  }

  /** Ends all connections. */
  async close(): Promise<void> {
    await this.#agent.destroy();
  }

  /**
   * Asks for an address and follows redirects. The body is the caller's to read or to throw away.
   * @throws PullError when no answer could be had.
   */
  async get(url: URL, headers: { readonly [name: string]: string } = {}): Promise<WebAnswer> {
    let linked: WebAnswer['linked'] = {};
    let next = url;
    for (let step = 0; step <= maxRedirects; step += 1) {
      const answer = await this.#ask(next, headers);
      linked = { ...linkedFile(answer.headers), ...linked };
      const { location } = answer.headers;
      if (![301, 302, 303, 307, 308].includes(answer.statusCode) || typeof location !== 'string') {
        const { statusCode: status, headers: answered, body } = answer;
        return { status, headers: answered, body, linked, place: placeOf(next) };
      }
      await answer.body.dump();
      next = redirected(next, location);
    }
    throw new PullError(`${placeOf(url)} redirects more than ${maxRedirects} times.`);
  }

  /** A JSON document. @throws PullError when it is not there. */
  async text(url: URL): Promise<string> {
    const answer = await this.get(url, { accept: 'application/json' });
    if (answer.status !== 200) throw await this.refused(answer);
    const pieces: Buffer[] = [];
    let length = 0;
    for await (const piece of answer.body) {
      const bytes = Buffer.from(piece);
      length += bytes.length;
      if (length > maxDocumentBytes)
        throw new PullError(`The answer of ${answer.place} is too long.`);
      pieces.push(bytes);
    }
    return Buffer.concat(pieces).toString('utf8');
  }

  /** The error of an answer that is none; throws its body away. */
  async refused({ status, headers, body, place }: WebAnswer): Promise<PullError> {
    await body.dump().catch(() => {});
    return statusText({ status, headers, place, hub: this.#hub });
  }

  async #ask(
    url: URL,
    headers: { readonly [name: string]: string },
  ): Promise<Dispatcher.ResponseData> {
    if (isForbiddenHost(url.hostname)) {
      throw new PullError(`${placeOf(url)} is not fetched: ${url.hostname} ${forbiddenHost}.`);
    }
    const token = this.#hub.tokenFor(url);
    try {
      return await request(url, {
        dispatcher: this.#agent,
        headers: {
          'user-agent': 'model-gateway',
          // A compressed body has no ranges to resume at.
          'accept-encoding': 'identity',
          ...headers,
          ...(token === undefined ? {} : { authorization: `Bearer ${token.reveal()}` }),
        },
      });
    } catch (error) {
      const proxy = proxyOf(this.#env, url.protocol === 'https:' ? 'https' : 'http');
      const message = networkText({ error, place: placeOf(url), host: url.host, proxy });
      const dead = ['ECONNRESET', 'UND_ERR_SOCKET', 'UND_ERR_HEADERS_TIMEOUT', 'EPIPE'];
      throw new PullError(message, {
        cause: error,
        ...(dead.includes(codeOf(error)) ? { again: {} } : {}),
      });
    }
  }
}

function proxyOf(env: Environment, scheme: 'http' | 'https'): string | undefined {
  const name = `${scheme}_proxy`;
  const value = env[name] ?? env[name.toUpperCase()];
  return value === undefined || value === '' ? undefined : value;
}

/** An address as it may be shown. */
export function placeOf({ origin, pathname }: URL): string {
  return `${origin}${pathname}`;
}

function redirected(from: URL, location: string): URL {
  if (!URL.canParse(location, from.href)) {
    throw new PullError(`${placeOf(from)} redirects to something that is not an address.`);
  }
  const to = new URL(location, from);
  const safe = to.protocol === 'https:' || (to.protocol === 'http:' && from.protocol === 'http:');
  if (!safe) {
    throw new PullError(`${placeOf(from)} redirects to ${to.protocol}//, which is not followed.`);
  }
  return to;
}

/** The hub redirects to a store; what it says of the file stands in the redirect itself. */
function linkedFile(headers: IncomingHttpHeaders): WebAnswer['linked'] {
  const hash = /^(?:W\/)?"?([0-9a-f]{64})"?$/i.exec(String(headers['x-linked-etag'] ?? ''))?.[1];
  const size = /^\d{1,15}$/.exec(String(headers['x-linked-size'] ?? ''))?.[0];
  return {
    ...(hash === undefined ? {} : { sha256: hash.toLowerCase() }),
    ...(size === undefined ? {} : { bytes: Number(size) }),
  };
}
