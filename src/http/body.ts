/** Reads a request body under a byte limit (E2, E3). */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { type JsonSource, parseClientBody } from '../core/client-body.ts';
import type { ClientDialect } from '../core/dialect.ts';
import { GatewayError, asGatewayError, invalidRequest } from '../core/errors.ts';
import {
  type LongBodies,
  type LongBody,
  openLongBody,
} from '../gateway/long-bodies/body-thread.ts';
import { Pieces } from '../json/pieces.ts';
import { maxBytesAtOnce } from '../json/scan.ts';
import type { BodyShare, ComingBody } from './overload/body-budget.ts';
import type { Overload } from './overload/overload.ts';

/**
 * Checks the headers that describe the body, before it is read.
 * @throws GatewayError `unsupported_media_type` or `too_large`.
 */
export function checkBodyHeaders(request: IncomingMessage, limitBytes: number): void {
  const type = request.headers['content-type'];
  // No content type is read as JSON, since curl commands often lack one.
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

/** An observer of a body that is being read. */
export interface BodyWatch {
  /** Called before the first byte. Calling `refuse` refuses the body from outside. */
  begun(refuse: (error: GatewayError) => void): void;
  /** Called with the number of received bytes. @throws GatewayError why the body is refused. */
  came(length: number): void;
  /** The body is complete or refused, or the client disconnected. */
  over(): void;
}

/**
 * Reads the whole body.
 * @throws GatewayError `too_large` at the limit, `canceled` when the client disconnects, and what `watch`
 * refuses.
 */
export function readBody(
  request: IncomingMessage,
  limitBytes: number,
  watch?: BodyWatch,
): Promise<Pieces> {
  // The client disconnected during the key lookup: no further event will report it.
  if (request.destroyed) return Promise.reject(clientDisconnected());
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
      // Every request ends in a close: an error that is never read would cost a tenth of the call.
      if (!over) refuse(clientDisconnected());
    };
    request.on('close', left);
    request.on('error', left);
    watch?.begun(refuse);
  });
}

/** The client has disconnected; no answer can reach it. */
export function clientDisconnected(): GatewayError {
  return new GatewayError('canceled', 'The client disconnected.');
}

/** An unwanted body is read up to this size to keep the connection. */
const maxIgnoredBytes = 64 * 1024;

/**
 * Whether the request has a body that an answer now would leave unread and that is not worth reading: long,
 * without a length, or held back until `100 Continue` (RFC 9110 §10.1.1).
 */
export function leavesTooMuch({ complete, headers }: IncomingMessage): boolean {
  if (complete) return false;
  if (headers['transfer-encoding'] !== undefined) return true;
  const length = Number(headers['content-length'] ?? 0);
  return length > maxIgnoredBytes || (length > 0 && headers.expect !== undefined);
}

function isJsonType(value: string): boolean {
  // The form that most clients send.
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

// The pieces of a body received so far.

/** Shorter pieces are copied: as separate buffers they may cost a hundred times their bytes. */
const smallPiece = 16 * 1024;
/**
 * Sizes of the first and the largest copy buffer; each is twice the previous one, so that short bodies use
 * little.
 */
const roomOfCopies = { first: 2 * 1024, most: 64 * 1024 };
/**
 * A longer body of known length is copied into one buffer as it arrives, up to the length that is parsed here; joining
 * it later would need twice the memory. The buffer is allocated only after this many bytes have arrived: otherwise
 * hundreds of clients that announce a megabyte and send one byte would allocate as many megabytes in one turn of the
 * event loop (G10). A body for the worker thread is joined by the copy that the thread gets.
 */
const longBody = 128 * 1024;
const nothing = Buffer.alloc(0);

/**
 * The pieces of a body. It may arrive byte by byte, and each piece keeps its whole read buffer alive: 32 MB in
 * chunks of one byte would take gigabytes (G5).
 */
export class BodyPieces {
  #first: Buffer | undefined;
  #rest: Buffer[] | undefined;
  #room = nothing;
  #nextRoom = roomOfCopies.first;
  #used = 0;
  /** The buffer of a long body; allocated once much of it has arrived. */
  #long: Buffer | undefined;
  #came = 0;
  readonly #declared: number;

  /** @param declared the announced length; 0 = none. No more than that may be added. */
  constructor(declared = 0) {
    this.#declared = declared;
  }

  add(piece: Buffer): void {
    const isJoined = this.#declared > longBody && this.#declared <= maxBytesAtOnce;
    if (isJoined && this.#addLong(piece)) return;
    // Most bodies arrive in one piece, which is not copied.
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

  /** The memory is allocated when data arrives: announcing much and sending little costs little. */
  #addLong(piece: Buffer): boolean {
    const before = this.#came;
    this.#came += piece.length;
    if (this.#came <= longBody) return false;
    this.#long ??= this.#longOfAll(before);
    this.#used += piece.copy(this.#long, this.#used);
    return true;
  }

  #longOfAll(came: number): Buffer {
    const long = Buffer.allocUnsafeSlow(this.#declared);
    this.#listed().copy(long);
    this.clear();
    this.#used = came;
    return long;
  }

  /** Returns all `length` bytes; nothing is kept here. */
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
    // A short copy: the piece would keep its much longer buffer alive for the whole call.
    const short = Buffer.allocUnsafeSlow(length);
    pieces.copy(short);
    return Pieces.of(short);
  }

  /** Pieces that are not in the long buffer. */
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

  /** Ends the current buffer; its content becomes a piece of its own. */
  #closeRoom(): Buffer[] {
    this.#rest ??= [];
    if (this.#used > 0) this.#rest.push(this.#room.subarray(0, this.#used));
    this.#room = this.#room.subarray(this.#used);
    this.#used = 0;
    return this.#rest;
  }
}

// Reads a call's body: size, memory and timing (G5, G7, G10).

export interface TakenBody {
  readonly pieces: Pieces;
  /** Its memory reservation; to be released at the end of the call. */
  readonly share: BodyShare;
}

/**
 * Reserves memory for the body of a call of this key, before any of it is read.
 * @returns to be released at the end of the call
 * @throws GatewayError `too_large`, `unsupported_media_type`, `overloaded`.
 */
export function reserveBody(request: IncomingMessage, key: string, overload: Overload): BodyShare {
  checkBodyHeaders(request, overload.maxBodyBytes);
  const length = declaredLength(request);
  if (length !== undefined) overload.checkBody(length);
  const share = overload.bodies.take(key, length);
  if (share === undefined) throw noRoom(overload);
  return share;
}

/** Undefined for a body in chunks. */
function declaredLength({ headers }: IncomingMessage): number | undefined {
  return headers['transfer-encoding'] === undefined
    ? Number(headers['content-length'] ?? 0)
    : undefined;
}

interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

/**
 * Reads the body of a call, whose memory is reserved.
 * @throws GatewayError `too_large`, `overloaded`, `request_timeout`, `canceled`.
 */
export function readRequestBody(
  { request, response }: Exchange,
  share: BodyShare,
  overload: Overload,
): Promise<Pieces> {
  const watch = new WatchedBody(share, overload, declaredLength(request) === undefined);
  // HTTP/1.0 has no interim answers.
  if (request.headers.expect !== undefined && request.httpVersionMinor > 0) {
    response.writeContinue();
  }
  return readBody(request, overload.maxBodyBytes, watch);
}

/**
 * Parses the body. A long one is parsed in the worker thread; its values need no reservation, since the thread
 * holds those of one body at a time.
 * @throws GatewayError `too_large` when its values could never fit, `overloaded`, `canceled` when the client
 * disconnected, and as `parseClientBody` and `openLongBody`.
 */
export function parseRequestBody(
  { pieces, share }: TakenBody,
  { dialect, counting, traced }: RequestedBody,
  { overload, response, bodies }: ParseOptions,
): JsonSource | Promise<LongBody> {
  // Stored responses were inserted, so the body may be longer than the one received.
  if (!share.grow(pieces.length)) throw noRoom(overload);
  const parsed = parseClientBody(pieces, dialect.ownedKeys);
  if (parsed !== undefined) {
    if (!share.parsed(pieces.length, parsed.tokens)) throw noRoom(overload);
    return parsed;
  }
  const wanted = (): boolean => !response.destroyed;
  return openLongBody(bodies, pieces, { client: dialect.id, counting, traced, wanted }).then(
    (body) => {
      if (share.parsed(pieces.length, 0)) return body;
      body.forget();
      throw noRoom(overload);
    },
  );
}

interface RequestedBody {
  readonly dialect: ClientDialect;
  /** It is a request to count tokens. */
  readonly counting: boolean;
  /** Its content goes into a trace. */
  readonly traced: boolean;
}

interface ParseOptions {
  readonly overload: Overload;
  readonly response: ServerResponse;
  readonly bodies: LongBodies;
}

/**
 * A body that is being read. A class instead of closures, which would keep more alive
 * (docs/maintainer/performance.md).
 */
class WatchedBody implements BodyWatch, ComingBody {
  received = 0;
  readonly #share: BodyShare;
  readonly #overload: Overload;
  /** Its length is unknown, so its reservation grows as it arrives. */
  readonly #grows: boolean;
  #refuse: ((error: GatewayError) => void) | undefined;
  #forget: (() => void) | undefined;

  constructor(share: BodyShare, overload: Overload, grows: boolean) {
    this.#share = share;
    this.#overload = overload;
    this.#grows = grows;
  }

  begun(refuse: (error: GatewayError) => void): void {
    this.#refuse = refuse;
    this.#forget = this.#overload.slowBodies.watch(this);
  }

  came(length: number): void {
    this.received = length;
    if (!this.#grows) return;
    this.#overload.checkBody(length);
    if (!this.#share.grow(length)) throw noRoom(this.#overload);
  }

  over(): void {
    this.#forget?.();
  }

  tooSlow(): void {
    this.#overload.paced.add(() =>
      this.#refuse?.(
        new GatewayError(
          'request_timeout',
          'The request timed out: its body did not arrive in time.',
        ),
      ),
    );
  }
}

/** Reserves memory for a body of this length, read from elsewhere. @throws GatewayError `overloaded` */
export function holdBody(share: BodyShare | undefined, length: number, overload: Overload): void {
  if (share?.grow(length) !== true) throw noRoom(overload);
}

function noRoom(overload: Overload): GatewayError {
  return overload.refusal('The gateway has no memory left for a body of this size', 'body_memory');
}
