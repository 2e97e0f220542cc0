/** Reads a request body under a byte limit (E2, E3; reliability.md B26–B30). */
import type { IncomingMessage } from 'node:http';
import { asGatewayError, GatewayError, invalidRequest } from '../core/errors.ts';
import type { Pieces } from '../core/pieces.ts';
import { BodyPieces } from './body-pieces.ts';

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

/** Who looks on while a body comes. */
export interface BodyWatch {
  /** Called before the first byte; what it is given refuses the body from outside. */
  begun(refuse: (error: GatewayError) => void): void;
  /** So many bytes are there. @throws GatewayError what the body is refused with. */
  came(length: number): void;
  /** It is there, or refused, or its client left. */
  over(): void;
}

/**
 * The whole body.
 * @throws GatewayError `too_large` at the limit, `canceled` when the client left, what `watch` refuses.
 */
export function readBody(
  request: IncomingMessage,
  limitBytes: number,
  watch?: BodyWatch,
): Promise<Pieces> {
  // It left while its key was looked up: no event will tell of it again.
  if (request.destroyed) return Promise.reject(clientLeft());
  return new Promise((resolve, reject) => {
    const pieces = new BodyPieces(Number(request.headers['content-length'] ?? 0));
    let length = 0;
    let over = false;
    const refuse = (error: unknown): void => {
      if (over) return;
      over = true;
      pieces.clear();
      watch?.over();
      reject(asGatewayError(error));
    };
    request.on('data', (piece: Buffer) => {
      if (over) return;
      length += piece.length;
      try {
        if (length > limitBytes) throw tooLarge(limitBytes);
        watch?.came(length);
        pieces.add(piece);
      } catch (error) {
        refuse(error);
      }
    });
    request.on('end', () => {
      if (length === 0) return refuse(invalidRequest('The request body is empty.'));
      if (over) return;
      over = true;
      watch?.over();
      resolve(pieces.all(length));
    });
    const left = (): void => {
      // Each request ends in a close: an error that nobody gets would cost a tenth of the call.
      if (!over) refuse(clientLeft());
    };
    request.on('close', left);
    request.on('error', left);
    watch?.begun(refuse);
  });
}

/** Nobody is there any more whom an answer could reach. */
export function clientLeft(): GatewayError {
  return new GatewayError('canceled', 'The client left.');
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
  // As most clients write it.
  if (value === 'application/json') return true;
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
