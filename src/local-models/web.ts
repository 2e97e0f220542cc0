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
import { codeOf, PullError } from './part-file.ts';
import type { Environment, Hub } from './repository.ts';

// What is said of a download that got no file: what was tried, what came of it, what to do.

interface NetworkFailure {
  readonly error: unknown;
  readonly place: string;
  readonly host: string;
  readonly proxy: string | undefined;
}

const elsewhere =
  'Or fetch the file on another machine, copy it here and run: model-gateway pull PATH/FILE.gguf';

/** No answer at all: DNS, connection, TLS or proxy. */
function networkText({ error, place, host, proxy }: NetworkFailure): string {
  const code = codeOf(error);
  // A proxy's address without its user and password.
  const proxyHost =
    proxy !== undefined && URL.canParse(proxy) ? new URL(proxy).host : 'of the environment';
  const through = proxy === undefined ? 'directly (no proxy is set)' : `by the proxy ${proxyHost}`;
  // Behind a proxy, only the proxy is connected to.
  const met = proxy === undefined ? host : `the proxy ${proxyHost}`;
  const tried = `Tried ${place} ${through}: ${whatHappened(error, { host, met })}.`;
  if (isCertificate(code)) {
    return `${tried}\nIf a proxy of your network signs its own certificates, name its authority in NODE_EXTRA_CA_CERTS.`;
  }
  const proxyHint =
    proxy === undefined
      ? 'If this machine reaches the internet through a proxy only, set HTTPS_PROXY=http://HOST:PORT.'
      : 'Check HTTPS_PROXY, HTTP_PROXY and NO_PROXY.';
  return `${tried}\n${proxyHint}\nA mirror of the hub can be named in HF_ENDPOINT=https://HOST.\n${elsewhere}`;
}

interface Peers {
  readonly host: string;
  /** The host, or the proxy in between. */
  readonly met: string;
}

function whatHappened(error: unknown, { host, met }: Peers): string {
  const code = codeOf(error);
  const known = failures.get(code);
  if (known !== undefined) return `${known.replace('HOST', met)} (${code})`;
  if (isCertificate(code)) return `the certificate of ${host} is not accepted (${code})`;
  // Several addresses of one name were tried: each has an error of its own.
  if (error instanceof AggregateError) {
    const codes = [...new Set(error.errors.map(codeOf))].filter(Boolean).join(', ');
    return `${host} cannot be connected to (${codes === '' ? 'unknown reason' : codes})`;
  }
  const text = error instanceof Error ? error.message : 'unknown reason';
  return `${host} did not answer (${code === '' ? text.slice(0, 200) : code})`;
}

const failures: ReadonlyMap<string, string> = new Map([
  ['ENOTFOUND', 'the DNS does not know HOST'],
  ['EAI_AGAIN', 'the DNS cannot be asked for HOST'],
  ['ECONNREFUSED', 'HOST refuses the connection'],
  ['ECONNRESET', 'HOST cut the connection'],
  ['EHOSTUNREACH', 'there is no way to HOST'],
  ['ENETUNREACH', 'this machine has no way out to HOST'],
  ['ETIMEDOUT', 'HOST does not answer'],
  ['UND_ERR_CONNECT_TIMEOUT', 'HOST does not answer'],
  ['UND_ERR_HEADERS_TIMEOUT', 'HOST accepted the connection and sent no answer'],
]);

function isCertificate(code: string): boolean {
  return /CERT|SELF_SIGNED|UNABLE_TO_|SSL|TLS_/.test(code);
}

interface RefusedAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly place: string;
  readonly hub: Hub;
}

/** An answer that is not a file. */
function statusText({ status, headers, place, hub }: RefusedAnswer): PullError {
  const said = `${place} answered ${status}`;
  const ofHub = new URL(place).origin === hub.endpoint.origin;
  if (status === 401 || status === 403) return new PullError(`${said}: ${deniedText(hub, ofHub)}`);
  if (status === 404 || status === 410) {
    const hint = ofHub ? ' Check the names of user, repository and file.' : '';
    return new PullError(`${said}: there is no such file.${hint}`);
  }
  if (status === 429) return busyText(said, headers, ofHub && !hub.hasToken);
  if (status >= 500 || status === 408) {
    return new PullError(`${said}: the server has a failure of its own. Try again later.`, {
      again: {},
    });
  }
  return new PullError(`${said}, which is not a file.`);
}

function busyText(said: string, headers: IncomingHttpHeaders, tokenHelps: boolean): PullError {
  const text = headers['retry-after'];
  const afterMs = text !== undefined && /^\d{1,6}$/.test(text) ? Number(text) * 1000 : undefined;
  const wait = afterMs === undefined ? 'later' : `in ${Math.ceil(afterMs / 1000)} s`;
  const hint = tokenHelps ? ' HF_TOKEN raises the limit.' : '';
  return new PullError(`${said}: too many requests. Try again ${wait}.${hint}`, {
    again: afterMs === undefined ? {} : { afterMs },
  });
}

function deniedText(hub: Hub, ofHub: boolean): string {
  if (!ofHub) return 'the server wants a login, which is not supported.';
  return hub.hasToken
    ? 'HF_TOKEN does not open this repository. Check its name, and accept its terms on its page if it has any.'
    : 'the repository does not exist, is private, or has terms to be accepted. Check its name; to log in set HF_TOKEN (and accept the terms on its page).';
}

export interface WebAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Dispatcher.ResponseData['body'];
  /** SHA-256 (hex) and size of the file, where the hub reported them in a redirect. */
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
   * Requests an address and follows redirects. The body is the caller's to read or to throw away.
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
        return { status, headers: answered, body, linked, place: addressText(next) };
      }
      await answer.body.dump();
      next = redirected(next, location);
    }
    throw new PullError(`${addressText(url)} redirects more than ${maxRedirects} times.`);
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
      throw new PullError(`${addressText(url)} is not fetched: ${url.hostname} ${forbiddenHost}.`);
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
      const message = networkText({ error, place: addressText(url), host: url.host, proxy });
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
export function addressText({ origin, pathname }: URL): string {
  return `${origin}${pathname}`;
}

function redirected(from: URL, location: string): URL {
  if (!URL.canParse(location, from.href)) {
    throw new PullError(`${addressText(from)} redirects to something that is not an address.`);
  }
  const to = new URL(location, from);
  const safe = to.protocol === 'https:' || (to.protocol === 'http:' && from.protocol === 'http:');
  if (!safe) {
    throw new PullError(
      `${addressText(from)} redirects to ${to.protocol}//, which is not followed.`,
    );
  }
  return to;
}

/** The hub redirects to a store; what it says of the file is in the redirect itself. */
function linkedFile(headers: IncomingHttpHeaders): WebAnswer['linked'] {
  const hash = /^(?:W\/)?"?([0-9a-f]{64})"?$/i.exec(String(headers['x-linked-etag'] ?? ''))?.[1];
  const size = /^\d{1,15}$/.exec(String(headers['x-linked-size'] ?? ''))?.[0];
  return {
    ...(hash === undefined ? {} : { sha256: hash.toLowerCase() }),
    ...(size === undefined ? {} : { bytes: Number(size) }),
  };
}
