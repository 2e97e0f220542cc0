/** A call's body on its way in: how large, whether there is room, whether it comes in time (G5, G7, G10). */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { GatewayError } from '../../core/errors.ts';
import { parseClientBody, type JsonSource } from '../../core/json.ts';
import type { Pieces } from '../../core/pieces.ts';
import { checkBodyHeaders, clientLeft, readBody, type BodyWatch } from '../body.ts';
import type { Route } from '../../core/provider.ts';
import type { BodyShare } from './body-budget.ts';
import type { Overload } from './overload.ts';
import type { ComingBody } from './slow-bodies.ts';

export interface TakenBody {
  readonly pieces: Pieces;
  /** What it holds of the memory for bodies; to be released when its call is over. */
  readonly share: BodyShare;
}

export interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

/**
 * Reads the body of a call of this key. Nothing of it is read before there is room for it.
 * @throws GatewayError `too_large`, `unsupported_media_type`, `overloaded`, `request_timeout`, `canceled`.
 */
export async function takeBody(
  { request, response }: Exchange,
  key: string,
  overload: Overload,
): Promise<TakenBody> {
  const most = overload.longestBody;
  checkBodyHeaders(request, most);
  const { 'content-length': told, 'transfer-encoding': coding, expect } = request.headers;
  const length = coding === undefined ? Number(told ?? 0) : undefined;
  if (length !== undefined) overload.checkBody(length);
  const share = overload.bodies.take(key, length);
  if (share === undefined) throw noRoom(overload);
  const watch = new WatchedBody(share, overload, length === undefined);
  try {
    // HTTP/1.0 knows no interim answers.
    if (expect !== undefined && request.httpVersionMinor > 0) response.writeContinue();
    const pieces = await readBody(request, most, watch);
    return { pieces, share };
  } catch (error) {
    share.release();
    throw error;
  }
}

/**
 * Parses it. What its values cost is asked for as they are made: three bytes of text may be sixty of
 * memory, and what has no room must not be there first.
 * @throws GatewayError `too_large` when they would never have room, `overloaded`, `canceled` when the client left
 * while others had their turn, and as `parseClientBody`.
 */
export function parseTaken(
  taken: TakenBody,
  ownedKeys: ReadonlySet<string>,
  { overload, response }: { readonly overload: Overload; readonly response: ServerResponse },
): JsonSource | Promise<JsonSource> {
  const { pieces, share } = taken;
  const parsed = parseClientBody(pieces, ownedKeys, (tokens) => {
    // Others wait for their turn behind a body that nobody wants any more.
    if (response.destroyed) throw clientLeft();
    if (!share.values(pieces.length, tokens)) throw noRoomFor(pieces.length, tokens, overload);
  });
  return parsed instanceof Promise
    ? parsed.then((source) => keepParsed(share, source, overload))
    : keepParsed(share, parsed, overload);
}

function keepParsed(share: BodyShare, source: JsonSource, overload: Overload): JsonSource {
  const { length } = source.pieces;
  if (!share.parsed(length, source.tokens)) throw noRoomFor(length, source.tokens, overload);
  return source;
}

/** What has fewer tokens is translated within what its values were taken for. */
const manyTokens = 20_000;

export interface RoutedBody {
  readonly dialect: { readonly id: string };
  readonly source: Pick<JsonSource, 'pieces' | 'tokens'>;
  readonly route: Route;
}

/**
 * A body of many values that may be translated needs room for them twice.
 * @throws GatewayError `too_large` when they would never have it, `overloaded`.
 */
export function roomToTranslate(
  share: BodyShare | undefined,
  { dialect, source: { pieces, tokens }, route: { targets } }: RoutedBody,
  overload: Overload,
): void {
  if (tokens <= manyTokens || share === undefined) return;
  if (targets.every(({ provider }) => provider.dialect.id === dialect.id)) return;
  const [length, twice] = [2 * pieces.length, 2 * tokens];
  if (!share.values(length, twice)) throw noRoomFor(length, twice, overload);
}

function noRoomFor(length: number, tokens: number, overload: Overload): GatewayError {
  if (overload.bodies.fits(length, tokens)) return noRoom(overload);
  return new GatewayError(
    'too_large',
    'The request body holds more values than there is memory for.',
  );
}

/** A body while it comes; nothing of it is told by closures that are set later (docs/performance.md). */
class WatchedBody implements BodyWatch, ComingBody {
  received = 0;
  readonly #share: BodyShare;
  readonly #overload: Overload;
  /** Its length was not told, so that what it needs is seen only as it comes. */
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
  return new GatewayError('request_timeout', 'The request body did not arrive in time.');
}
