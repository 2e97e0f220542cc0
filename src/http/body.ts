/** Reads a request body under a byte limit (E2, E3; reliability.md B26–B30). */
import type { IncomingMessage } from 'node:http';
import { asGatewayError, GatewayError, invalidRequest } from '../core/errors.ts';
import { Pieces } from '../json/pieces.ts';

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

// What came of a body so far.

/** A piece that is shorter is copied: as an object of its own it may cost a hundred times its bytes. */
const smallPiece = 16 * 1024;
/** The first room for them, and the longest: each is twice the one before, so that little takes little. */
const roomOfCopies = { first: 2 * 1024, most: 64 * 1024 };
/**
 * A longer body of which the length is known is put in its place as it comes: put together later it would be there
 * twice. The place is made when so much of it has come: hundreds of clients that announce a megabyte and send a byte
 * would have as many megabytes taken in one turn of the event loop (G10).
 */
const longBody = 128 * 1024;
const nothing = Buffer.alloc(0);

/**
 * The pieces of a body. It may come byte by byte, and each piece keeps alive what it was read in: 32 MB in
 * chunks of one byte would take gigabytes (G5).
 */
export class BodyPieces {
  #first: Buffer | undefined;
  #rest: Buffer[] | undefined;
  #room = nothing;
  #nextRoom = roomOfCopies.first;
  #used = 0;
  /** All of a long body, as far as it came; absent until much of it is there. */
  #long: Buffer | undefined;
  #came = 0;
  readonly #told: number;

  /** @param told the length as the client tells it; 0 = it does not. No more than that may be added. */
  constructor(told = 0) {
    this.#told = told;
  }

  add(piece: Buffer): void {
    if (this.#told > longBody && this.#addLong(piece)) return;
    // Most bodies are one piece, which nobody copies.
    if (this.#first === undefined) this.#first = piece;
    else if (piece.length >= smallPiece) this.#closeRoom().push(piece);
    else {
      if (this.#room.length - this.#used < piece.length) {
        this.#closeRoom();
        const length = Math.max(this.#nextRoom, piece.length);
        this.#room = Buffer.allocUnsafeSlow(length);
        this.#nextRoom = Math.min(2 * length, roomOfCopies.most);
      }
      this.#used += piece.copy(this.#room, this.#used);
    }
  }

  /** Its memory is taken once it really comes: who announces much and sends little costs little. */
  #addLong(piece: Buffer): boolean {
    const before = this.#came;
    this.#came += piece.length;
    if (this.#came <= longBody) return false;
    this.#long ??= this.#longOfAll(before);
    this.#used += piece.copy(this.#long, this.#used);
    return true;
  }

  #longOfAll(came: number): Buffer {
    const long = Buffer.allocUnsafeSlow(this.#told);
    this.#listed().copy(long);
    this.clear();
    this.#used = came;
    return long;
  }

  /** All of them, so many bytes; nothing is kept here. */
  all(length: number): Pieces {
    const pieces = this.#all(length);
    this.clear();
    return pieces;
  }

  #all(length: number): Pieces {
    if (this.#long !== undefined) return Pieces.of(this.#long.subarray(0, length));
    const first = this.#first ?? nothing;
    if (first.length === length) return Pieces.of(first);
    const pieces = this.#listed();
    if (length >= smallPiece) return pieces;
    // It would keep the room alive, many times its length, for as long as its call runs.
    const short = Buffer.allocUnsafeSlow(length);
    pieces.copy(short);
    return Pieces.of(short);
  }

  /** Those that are in no place of their own. */
  #listed(): Pieces {
    return new Pieces([this.#first ?? nothing, ...this.#closeRoom()]);
  }

  clear(): void {
    this.#first = undefined;
    this.#rest = undefined;
    this.#room = nothing;
    this.#used = 0;
    this.#long = undefined;
  }

  /** What lies in the room is a piece of its own from here on. */
  #closeRoom(): Buffer[] {
    this.#rest ??= [];
    if (this.#used > 0) this.#rest.push(this.#room.subarray(0, this.#used));
    this.#room = this.#room.subarray(this.#used);
    this.#used = 0;
    return this.#rest;
  }
}
