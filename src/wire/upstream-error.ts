/** The error of a failed exchange with an upstream, and how long the upstream asks to wait. */
import { GatewayError } from '../core/errors.ts';
import type { Endpoint } from '../core/provider.ts';
import { ProtocolError, UnsendableRequest } from './http1/response-reader.ts';
import type { ResponseHeaders } from './exchange.ts';

function errorCode(error: unknown): string {
  return typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : '';
}

/** File descriptors, ports or memory of this machine are used up: that is no fault of the upstream (F92). */
const ownScarcity: ReadonlySet<string> = new Set([
  'EMFILE',
  'ENFILE',
  'EADDRNOTAVAIL',
  'ENOBUFS',
  'ENOMEM',
]);

/** Asking again would not make it trusted, and asking without would be worse (S19). */
function isRefusedCertificate(error: unknown): boolean {
  return /^(CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|ERR_TLS_CERT_)/.test(errorCode(error));
}

/**
 * `upstream_unavailable`, `timeout` (connect), `upstream_invalid` or `overloaded`; a GatewayError as it is.
 * Its message names no address: it goes to clients. The address is in `detail`.
 */
export function asUpstreamError(error: unknown, endpoint: Endpoint): GatewayError {
  if (error instanceof GatewayError) return error;
  const isEngine = endpoint.socketPath !== undefined;
  const name = isEngine ? 'the embedded engine' : 'the provider';
  const where = isEngine ? name : endpoint.origin;
  const code = errorCode(error);
  if (code === 'CONNECT_TIMEOUT') {
    return new GatewayError('timeout', `The connection to ${name} timed out.`, {
      detail: `Could not connect to ${where} in time.`,
      cause: error,
    });
  }
  if (ownScarcity.has(code)) {
    return new GatewayError('overloaded', 'The gateway has no room for another connection.', {
      cause: error,
      retryable: false,
    });
  }
  if (error instanceof UnsendableRequest) {
    return new GatewayError('upstream_invalid', `The request to ${name} cannot be sent.`, {
      detail: `The request to ${where} cannot be sent: ${error.message}.`,
      cause: error,
      repeat: 'never',
    });
  }
  if (error instanceof ProtocolError) {
    return new GatewayError('upstream_invalid', `The answer of ${name} is not valid HTTP.`, {
      detail: `The answer of ${where} is not valid HTTP.`,
      cause: error,
      // What was broken on the way comes whole the next time; headers stay too large (F31).
      repeat: error.passing ? 'may' : 'never',
    });
  }
  return new GatewayError('upstream_unavailable', `The connection to ${name} failed.`, {
    detail: whyBroken(error, where),
    cause: error,
    ...(isRefusedCertificate(error) ? { repeat: 'never' } : {}),
  });
}

/** What a code most often means. */
const hints: ReadonlyMap<string, string> = new Map([
  ['ECONNREFUSED', 'No server listens there.'],
  ['ENOTFOUND', 'The host name is not known: is it spelled right?'],
  ['ERR_SSL_WRONG_VERSION_NUMBER', 'No TLS is spoken there: the address may need http://.'],
  ['ERR_SSL_PACKET_LENGTH_TOO_LONG', 'No TLS is spoken there: the address may need http://.'],
]);

function whyBroken(error: unknown, where: string): string {
  const code = errorCode(error);
  if (code === 'PROXY_REFUSED' && error instanceof Error) {
    return `No way to ${where}: ${error.message}.`;
  }
  if (isRefusedCertificate(error)) {
    return `The certificate of ${where} is not accepted (${code}). Where an authority of your own signed it, name its file in ca of the provider or in NODE_EXTRA_CA_CERTS.`;
  }
  const hint = hints.get(code);
  return `The connection to ${where} failed${code === '' ? '' : ` (${code})`}.${hint === undefined ? '' : ` ${hint}`}`;
}

/** Longer waits are not passed on: both official SDKs would sleep through them. */
export const maxRetryAfterMs = 60_000;

/** Where a wait is in the words of an error: `Please retry after 45 seconds.`, `Please try again in 6ms.` */
const waitInWords =
  /\b(?:retry|try again) (?:after|in) (\d{1,9}(?:\.\d{1,9})?) ?(ms|milliseconds?|s|seconds?)\b/i;

/**
 * The wait in ms from `retry-after-ms`, `retry-after` (seconds or HTTP date), else from the words of the error;
 * undefined when absent, unreadable, negative or in the past.
 */
export function readRetryAfterMs(
  headers: ResponseHeaders,
  wallMs: number,
  words = '',
): number | undefined {
  const ofHeaders = readRetryHeaders(headers, wallMs);
  if (ofHeaders !== undefined || words === '') return ofHeaders;
  const [, amount, unit = ''] = waitInWords.exec(words) ?? [];
  if (amount === undefined) return undefined;
  return Number(amount) * (unit.toLowerCase().startsWith('m') ? 1 : 1000);
}

function readRetryHeaders(headers: ResponseHeaders, wallMs: number): number | undefined {
  const milliseconds = positiveNumber(first(headers['retry-after-ms']));
  if (milliseconds !== undefined) return milliseconds;
  const text = first(headers['retry-after']);
  const seconds = positiveNumber(text);
  if (seconds !== undefined) return seconds * 1000;
  if (text === undefined || !/[a-z]/i.test(text)) return undefined;
  const date = Date.parse(text);
  return Number.isNaN(date) || date <= wallMs ? undefined : date - wallMs;
}

function first(value: string | readonly string[] | undefined): string | undefined {
  return typeof value === 'string' || value === undefined ? value : value[0];
}

function positiveNumber(text: string | undefined): number | undefined {
  if (text === undefined || !/^\s*\d+(\.\d+)?\s*$/.test(text)) return undefined;
  const value = Number(text);
  return Number.isFinite(value) ? value : undefined;
}
