/** What is said of a download that got no file: what was tried, what came of it, what to do. */
import type { IncomingHttpHeaders } from 'node:http';
import { codeOf, PullError } from './pull-error.ts';
import type { Hub } from './hub.ts';

export interface NetworkFailure {
  readonly error: unknown;
  readonly place: string;
  readonly host: string;
  readonly proxy: string | undefined;
}

const elsewhere =
  'Or fetch the file on another machine, copy it here and run: model-gateway pull PATH/FILE.gguf';

/** No answer at all: DNS, connection, TLS or proxy. */
export function networkText({ error, place, host, proxy }: NetworkFailure): string {
  const code = codeOf(error);
  const through =
    proxy === undefined ? 'directly (no proxy is set)' : `by the proxy ${bare(proxy)}`;
  const tried = `Tried ${place} ${through}: ${whatHappened(error, host)}.`;
  if (isCertificate(code)) {
    return `${tried}\nIf a proxy of your network signs its own certificates, name its authority in NODE_EXTRA_CA_CERTS.`;
  }
  const proxyHint =
    proxy === undefined
      ? 'If this machine reaches the internet through a proxy only, set HTTPS_PROXY=http://HOST:PORT.'
      : 'Check HTTPS_PROXY, HTTP_PROXY and NO_PROXY.';
  return `${tried}\n${proxyHint}\nA mirror of the hub can be named in HF_ENDPOINT=https://HOST.\n${elsewhere}`;
}

function whatHappened(error: unknown, host: string): string {
  const code = codeOf(error);
  const known = failures.get(code);
  if (known !== undefined) return `${known.replace('HOST', host)} (${code})`;
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
  ['ENOTFOUND', 'the name HOST is not known to the DNS'],
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

/** A proxy's address without its user and password. */
function bare(proxy: string): string {
  return URL.canParse(proxy) ? new URL(proxy).host : 'of the environment';
}

export interface RefusedAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly place: string;
  readonly hub: Hub;
}

/** An answer that is not a file. */
export function statusText({ status, headers, place, hub }: RefusedAnswer): PullError {
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
  const afterMs = retryAfterMs(headers);
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

function retryAfterMs(headers: IncomingHttpHeaders): number | undefined {
  const text = headers['retry-after'];
  return text !== undefined && /^\d{1,6}$/.test(text) ? Number(text) * 1000 : undefined;
}
