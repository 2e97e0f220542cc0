/** Requests to the identity provider: bounded answers, and no address that the gateway never connects to. */
import type { CustomFetch } from 'openid-client';
import { isForbiddenHost } from '../../core/addresses.ts';

/** Documents, keys and tokens of providers have some kilobytes. */
const maxBytes = 1024 * 1024;

/**
 * `fetch` with the whole answer in memory, up to a megabyte. Addresses in the provider's own document may be any.
 * @throws Error for a longer answer, and for a link-local address or one of cloud metadata
 */
export const providerFetch: CustomFetch = async (url, options) => {
  const { hostname } = new URL(url);
  if (isForbiddenHost(hostname)) throw new Error(`The gateway never connects to ${hostname}.`);
  const response = await fetch(url, { ...options, body: options.body ?? null });
  const { status, headers } = response;
  const body = await wholeBody(response);
  return new Response(body.length === 0 ? null : body, { status, headers });
};

async function wholeBody({ body }: Response): Promise<Buffer<ArrayBuffer>> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  for await (const piece of body ?? []) {
    length += piece.length;
    if (length > maxBytes)
      throw new Error(`The identity provider sent more than ${maxBytes} bytes.`);
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}
