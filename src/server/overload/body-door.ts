/** A call's body on its way in: how large, whether there is room, whether it comes in time (G5, G7, G10). */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { GatewayError } from '../../core/errors.ts';
import type { JsonSource } from '../../core/json.ts';
import { checkBodyHeaders, readBody, type BodyWatch } from '../body.ts';
import type { BodyShare } from './body-budget.ts';
import type { Overload } from './overload.ts';

export interface TakenBody {
  readonly bytes: Buffer;
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
  try {
    // HTTP/1.0 knows no interim answers.
    if (expect !== undefined && request.httpVersionMinor > 0) response.writeContinue();
    const bytes = await readBody(request, most, watchOf(share, overload, length === undefined));
    return { bytes, share };
  } catch (error) {
    share.release();
    throw error;
  }
}

/**
 * A body is parsed: what its values cost is known only now.
 * @throws GatewayError `too_large` when they would never have room, `overloaded`.
 */
export function keepParsed(
  share: BodyShare,
  { bytes, tokens }: Pick<JsonSource, 'bytes' | 'tokens'>,
  overload: Overload,
): void {
  if (share.parsed(bytes.length, tokens)) return;
  if (overload.bodies.fits(bytes.length, tokens)) throw noRoom(overload);
  throw new GatewayError(
    'too_large',
    'The request body holds more values than there is memory for.',
  );
}

/** `grows`: its length was not told, so that what it needs is seen only as it comes. */
function watchOf(share: BodyShare, overload: Overload, grows: boolean): BodyWatch {
  const coming = { received: 0, tooSlow: (): void => undefined };
  let forget = (): void => undefined;
  return {
    begun: (refuse) => {
      coming.tooSlow = () => refuse(tooSlow());
      forget = overload.slowBodies.watch(coming);
    },
    came: (length) => {
      coming.received = length;
      if (!grows) return;
      overload.checkBody(length);
      if (!share.grow(length)) throw noRoom(overload);
    },
    over: () => forget(),
  };
}

function noRoom(overload: Overload): GatewayError {
  return overload.refusal('The gateway has no memory left for a body of this size');
}

function tooSlow(): GatewayError {
  return new GatewayError('request_timeout', 'The request body did not arrive in time.');
}
