/** Addresses of images: which ones may travel at all (reliability.md B59–B61), and `data:` URLs. */
import type { FieldPath } from '../../core/errors.ts';
import { mayBeImage } from '../../core/image-bytes.ts';
import { isInternalUrl } from '../../core/internal-address.ts';
import { badValue } from './fields.ts';

const maxUrlLength = 2048;
const scheme = /^([a-zA-Z][a-zA-Z0-9+.-]*):/;
const allowedSchemes: ReadonlySet<string> = new Set(['http', 'https', 'data', 'gs']);
const credentials = /^https?:\/\/[^/?#]*@/i;
/** Leaves the payload alone: it may be megabytes. */
const dataUrlHead = /^data:([^;,]*)((?:;[^;,]*)*),/i;
const base64Text = /^[A-Za-z0-9+/]*={0,2}$/;

export interface DataUrl {
  /** Lower case, without parameters; `''` when not given. */
  readonly mediaType: string;
  readonly base64: string;
}

/**
 * Refuses addresses that point at files or other protocols, into the network that the gateway stands
 * in, carry credentials, or are too long; and `data:` URLs that hold no image.
 * @throws GatewayError `invalid_request`.
 */
export function checkMediaUrl(url: string, path: FieldPath): void {
  if (url === '') throw badValue(path, 'must not be empty');
  const found = scheme.exec(url)?.[1]?.toLowerCase();
  if (found === 'data') return checkImageData(url, path);
  // No address at all: some engines take bare base64.
  if (found === undefined) return;
  if (!allowedSchemes.has(found)) {
    throw badValue(path, 'must be an http, https or data URL');
  }
  if (url.length > maxUrlLength)
    throw badValue(path, `must have at most ${maxUrlLength} characters`);
  if (credentials.test(url)) throw badValue(path, 'must not contain credentials');
  if (found !== 'gs' && isInternalUrl(url)) {
    throw badValue(path, 'must not point into a private network');
  }
}

function checkImageData(url: string, path: FieldPath): void {
  const data = readDataUrl(url, path);
  if (data === undefined) return;
  if (data.mediaType === 'image/svg+xml' || !mayBeImage(data.mediaType, data.base64)) {
    throw badValue(path, 'must hold a JPEG, PNG, GIF or WebP image');
  }
}

/**
 * Takes a base64 `data:` URL apart; undefined for any other address.
 * @throws GatewayError `invalid_request` for a `data:` URL that is empty or not base64.
 */
export function readDataUrl(url: string, path: FieldPath): DataUrl | undefined {
  if (!/^data:/i.test(url)) return undefined;
  const head = dataUrlHead.exec(url);
  const base64 = head === null ? '' : url.slice(head[0].length);
  const isBase64 = head?.[2]?.toLowerCase().includes(';base64') === true;
  if (!isBase64 || base64 === '' || !base64Text.test(base64)) {
    throw badValue(path, 'must be a data URL with base64 content');
  }
  return { mediaType: head?.[1]?.trim().toLowerCase() ?? '', base64 };
}
