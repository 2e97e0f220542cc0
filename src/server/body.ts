/** Reads a request body under a byte limit (E2, E3; reliability.md B26–B30). */
import type { IncomingMessage } from 'node:http';
import { GatewayError, invalidRequest } from '../core/errors.ts';

/**
 * Checks what the headers say of the body, before a byte of it is read.
 * @throws GatewayError `unsupported_media_type` or `too_large`.
 */
export function checkBodyHeaders(request: IncomingMessage, limitBytes: number): void {
  const type = request.headers['content-type'];
  // No type at all is read as JSON: people type curl commands without one.
  if (type !== undefined && !isJsonType(type)) {
    throw new GatewayError(
      'unsupported_media_type',
      'The content-type must be application/json, with no charset but utf-8.',
    );
  }
  const encoding = request.headers['content-encoding'];
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    throw new GatewayError('unsupported_media_type', 'Compressed request bodies are not accepted.');
  }
  if (Number(request.headers['content-length'] ?? 0) > limitBytes) throw tooLarge(limitBytes);
}

/**
 * The whole body.
 * @throws GatewayError `too_large` at the limit, `canceled` when the client left.
 */
export function readBody(request: IncomingMessage, limitBytes: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const pieces: Buffer[] = [];
    let length = 0;
    let over = false;
    request.on('data', (piece: Buffer) => {
      if (over) return;
      length += piece.length;
      if (length > limitBytes) {
        over = true;
        reject(tooLarge(limitBytes));
      } else {
        pieces.push(piece);
      }
    });
    request.on('end', () => {
      over = true;
      const only = pieces[0];
      if (only === undefined) reject(invalidRequest('The request body is empty.'));
      else resolve(pieces.length === 1 ? only : Buffer.concat(pieces, length));
    });
    const left = (): void => {
      if (!over) reject(new GatewayError('canceled', 'The client left.'));
      over = true;
    };
    request.on('close', left);
    request.on('error', left);
  });
}

/** So much of a body that nobody wants is read for the sake of the connection (B24). */
const maxIgnoredBytes = 64 * 1024;

/**
 * Whether a request has a body that an answer now would leave unread, and that is not worth reading:
 * long, without a length, or not sent before somebody asks for it (RFC 9110 §10.1.1).
 */
export function leavesTooMuch({ complete, headers }: IncomingMessage): boolean {
  if (complete) return false;
  if (headers['transfer-encoding'] !== undefined) return true;
  const length = Number(headers['content-length'] ?? 0);
  return length > maxIgnoredBytes || (length > 0 && headers.expect !== undefined);
}

function isJsonType(value: string): boolean {
  const [type = '', ...parameters] = value.toLowerCase().split(';');
  if (!/^\s*application\/([a-z0-9.-]+\+)?json\s*$/.test(type)) return false;
  return parameters.every((parameter) => {
    const [name, charset] = parameter.split('=');
    return name?.trim() !== 'charset' || /^\s*"?utf-?8"?\s*$/.test(charset ?? '');
  });
}

function tooLarge(limitBytes: number): GatewayError {
  return new GatewayError('too_large', `The request body is larger than ${limitBytes} bytes.`);
}
