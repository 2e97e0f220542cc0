/** Reads a call's body: size, memory and timing (G5, G7, G10). */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ClientDialect } from '../../core/dialect.ts';
import { GatewayError } from '../../core/errors.ts';
import { parseClientBody, type JsonSource } from '../../core/client-body.ts';
import type { Pieces } from '../../json/pieces.ts';
import { checkBodyHeaders, readBody, type BodyWatch } from '../body.ts';
import type { LongBodies } from '../../gateway/long-bodies/body-thread.ts';
import { type LongBody, openLongBody } from '../../gateway/long-bodies/long-body.ts';
import type { BodyShare, ComingBody } from './body-budget.ts';
import type { Overload } from './overload.ts';

export interface TakenBody {
  readonly pieces: Pieces;
  /** Its memory reservation; to be released at the end of the call. */
  readonly share: BodyShare;
}

interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

/**
 * Reads the body of a call of this key. Nothing is read before memory is reserved.
 * @throws GatewayError `too_large`, `unsupported_media_type`, `overloaded`, `request_timeout`, `canceled`.
 */
export async function readRequestBody(
  { request, response }: Exchange,
  key: string,
  overload: Overload,
): Promise<TakenBody> {
  const most = overload.maxBodyBytes;
  checkBodyHeaders(request, most);
  const { 'content-length': told, 'transfer-encoding': coding, expect } = request.headers;
  const length = coding === undefined ? Number(told ?? 0) : undefined;
  if (length !== undefined) overload.checkBody(length);
  const share = overload.bodies.take(key, length);
  if (share === undefined) throw noRoom(overload);
  const watch = new WatchedBody(share, overload, length === undefined);
  try {
    // HTTP/1.0 has no interim answers.
    if (expect !== undefined && request.httpVersionMinor > 0) response.writeContinue();
    const pieces = await readBody(request, most, watch);
    return { pieces, share };
  } catch (error) {
    share.release();
    throw error;
  }
}

/**
 * Parses the body. A long one is parsed in the worker thread; its values need no reservation, since the thread
 * holds those of one body at a time.
 * @throws GatewayError `too_large` when its values could never fit, `overloaded`, `canceled` when the client
 * disconnected, and as `parseClientBody` and `openLongBody`.
 */
export function parseRequestBody(
  { pieces, share }: TakenBody,
  { dialect, counting, traced }: AskedBody,
  { overload, response, bodies }: ParseOptions,
): JsonSource | Promise<LongBody> {
  // What it refers to was put into it: it is longer than what came.
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

interface AskedBody {
  readonly dialect: ClientDialect;
  /** It is a request to count tokens. */
  readonly counting: boolean;
  /** What it asks is told in a trace. */
  readonly traced: boolean;
}

export interface ParseOptions {
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
    this.#overload.paced.add(() => this.#refuse?.(lateBody()));
  }
}

function noRoom(overload: Overload): GatewayError {
  return overload.refusal('The gateway has no memory left for a body of this size', 'body_memory');
}

function lateBody(): GatewayError {
  return new GatewayError(
    'request_timeout',
    'The request timed out: its body did not arrive in time.',
  );
}
