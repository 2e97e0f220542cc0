/** What a failed exchange with an upstream is called to whoever asked. */
import { GatewayError } from '../core/errors.ts';
import type { Endpoint } from '../core/provider.ts';
import { ProtocolError } from './http1/protocol-error.ts';
import { UnsendableRequest } from './http1/request-head.ts';

export function errorCode(error: unknown): string {
  return typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : '';
}

/** No HTTP, or a status that nobody asked for (101, 100): undici has codes for neither (F26, F27). */
export function isGarbled(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return error.name === 'HTTPParserError' || /^bad (upgrade|response)$/.test(error.message);
}

/** Another protocol that nobody asked for comes the same way again. */
function mayComeWhole(error: unknown): boolean {
  if (error instanceof ProtocolError) return error.passing;
  if (errorCode(error) === 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH') return true;
  if (error instanceof Error && error.message === 'bad upgrade') return false;
  return isGarbled(error);
}

const unreadableCodes: ReadonlySet<string> = new Set([
  'UND_ERR_HEADERS_OVERFLOW',
  'UND_ERR_RES_CONTENT_LENGTH_MISMATCH',
  'UND_ERR_INVALID_ARG',
]);

function isUnreadable(error: unknown): boolean {
  return (
    error instanceof ProtocolError || isGarbled(error) || unreadableCodes.has(errorCode(error))
  );
}

/** File descriptors, ports or memory of this machine are used up: that says nothing of the upstream (F92). */
const ownScarcity: ReadonlySet<string> = new Set([
  'EMFILE',
  'ENFILE',
  'EADDRNOTAVAIL',
  'ENOBUFS',
  'ENOMEM',
]);

/** Asking again would not make it trusted, and asking without would be worse (F4, S19). */
function isRefusedCertificate(error: unknown): boolean {
  return /^(CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|ERR_TLS_CERT_)/.test(errorCode(error));
}

/** `upstream_unavailable`, `timeout` (connect), `upstream_invalid` or `overloaded`; a GatewayError as it is. */
export function asUpstreamError(error: unknown, endpoint: Endpoint): GatewayError {
  if (error instanceof GatewayError) return error;
  const code = errorCode(error);
  const where = endpoint.socketPath === undefined ? endpoint.origin : 'the embedded engine';
  if (code === 'UND_ERR_CONNECT_TIMEOUT') {
    return new GatewayError('timeout', `Could not connect to ${where} in time.`, { cause: error });
  }
  if (ownScarcity.has(code)) {
    return new GatewayError('overloaded', 'The gateway has no room for another connection.', {
      cause: error,
      retryable: false,
    });
  }
  if (error instanceof UnsendableRequest) {
    const why = `The request to ${where} cannot be sent: ${error.message}.`;
    return new GatewayError('upstream_invalid', why, { cause: error, repeat: 'never' });
  }
  if (isUnreadable(error)) {
    return new GatewayError('upstream_invalid', `The answer of ${where} is not valid HTTP.`, {
      cause: error,
      // What was broken on the way comes whole the next time (F25, F26); headers stay too large (F31).
      repeat: mayComeWhole(error) ? 'may' : 'never',
    });
  }
  return brokenConnection(error, where);
}

function brokenConnection(error: unknown, where: string): GatewayError {
  const code = errorCode(error);
  if (code === 'PROXY_REFUSED' && error instanceof Error) {
    return new GatewayError('upstream_unavailable', `No way to ${where}: ${error.message}.`, {
      cause: error,
    });
  }
  if (isRefusedCertificate(error)) {
    return new GatewayError(
      'upstream_unavailable',
      `The certificate of ${where} is not accepted (${code}). Where an authority of your own signed it, name its file in ca of the provider or in NODE_EXTRA_CA_CERTS.`,
      { cause: error, repeat: 'never' },
    );
  }
  return new GatewayError(
    'upstream_unavailable',
    `The connection to ${where} failed${code === '' ? '' : ` (${code})`}.`,
    { cause: error },
  );
}
