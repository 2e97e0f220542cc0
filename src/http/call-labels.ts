/**
 * Labels that group the cost of calls: the key's tags, the client's tags, the client's user name, and its
 * metadata. Labels are not verified, and are not sent upstream as such.
 */
import type { RequestDescription } from '../core/description.ts';
import { invalidRequest } from '../core/errors.ts';
import { tryParseObject } from '../json/parse.ts';

export interface CallLabels {
  /** The key's, then the client's; without duplicates. */
  readonly tags: readonly string[];
  readonly user?: string;
  /** JSON text, at most `maxMetadataLength`. */
  readonly metadata?: string;
}

const tagsHeader = 'x-gateway-tags';
const metadataHeader = 'x-gateway-metadata';
const maxClientTags = 8;
const tagForm = /^[^,\s\p{Cc}\p{Cf}\p{Zl}\p{Zp}]{1,100}$/u;
/** Maximum length that the ledger stores. */
const maxMetadataLength = 2048;
const maxPairs = 16;
const maxKeyLength = 64;
const maxValueLength = 512;
const maxUserLength = 512;

/**
 * The tags of the header `x-gateway-tags: a,b`, without those that the key has anyway.
 * @throws GatewayError `invalid_request` for more than 8 of them, or an invalid tag.
 */
export function clientTags(
  header: (name: string) => string | undefined,
  ofKey: readonly string[],
): readonly string[] {
  const text = header(tagsHeader);
  if (text === undefined || text.trim() === '') return noTags;
  const named = decoded(text)
    .split(',')
    .map((tag) => tag.trim())
    .filter((tag) => tag !== '');
  const wrong = named.find((tag) => !tagForm.test(tag));
  if (wrong !== undefined) {
    throw invalidRequest(
      `The header ${tagsHeader} contains an invalid tag. Tags have 1 to 100 characters without spaces, separated by commas.`,
    );
  }
  if (named.length > maxClientTags) {
    throw invalidRequest(`The header ${tagsHeader} holds more than ${maxClientTags} tags.`);
  }
  return [...new Set(named)].filter((tag) => !ofKey.includes(tag));
}

const noTags: readonly string[] = [];

/**
 * The labels of a generating call.
 * @param tags the client's own, from `clientTags`.
 * @throws GatewayError `invalid_request` for an invalid metadata header.
 */
export function callLabels(
  request: RequestDescription,
  header: (name: string) => string | undefined,
  tags: { readonly ofKey: readonly string[]; readonly ofClient: readonly string[] },
): CallLabels {
  const user = request.endUser()?.slice(0, maxUserLength);
  const metadata = metadataOf(request.metadata(), header(metadataHeader));
  return {
    tags: tags.ofClient.length === 0 ? tags.ofKey : [...tags.ofKey, ...tags.ofClient],
    ...(user === undefined ? {} : { user }),
    ...(metadata === undefined ? {} : { metadata }),
  };
}

/** Pairs of the header precede those of the body; pairs that do not fit are left out, which is noted. */
function metadataOf(ofBody: readonly Pair[] = [], header?: string): string | undefined {
  if (header === undefined && ofBody.length === 0) return undefined;
  const pairs = [...headerPairs(header), ...ofBody];
  if (pairs.length === 0) return undefined;
  const kept = new Map<string, string>();
  let length = 2;
  let left = 0;
  for (const [key, value] of pairs) {
    if (kept.has(key)) continue;
    const size = JSON.stringify([key, value]).length + 1;
    if (length + size > maxMetadataLength - marker.length) left += 1;
    else {
      kept.set(key, value);
      length += size;
    }
  }
  const text = JSON.stringify(Object.fromEntries(kept));
  return left === 0 ? text : JSON.stringify({ ...Object.fromEntries(kept), [leftOut]: left });
}

const leftOut = '_left_out';
const marker = `,"${leftOut}":99`;

type Pair = readonly [key: string, value: string];

function headerPairs(text: string | undefined): readonly Pair[] {
  if (text === undefined || text.trim() === '') return [];
  const object = tryParseObject(decoded(text));
  const entries = Object.entries(object ?? {});
  const valid =
    object !== undefined &&
    entries.length <= maxPairs &&
    entries.every(
      ([key, value]) =>
        key.length <= maxKeyLength && typeof value === 'string' && value.length <= maxValueLength,
    );
  if (!valid) {
    throw invalidRequest(
      `The header ${metadataHeader} must be a JSON object of at most ${maxPairs} strings, keys up to ${maxKeyLength} and values up to ${maxValueLength} characters.`,
    );
  }
  return entries.filter((entry): entry is [string, string] => typeof entry[1] === 'string');
}

/** Node decodes header bytes as latin-1; clients send UTF-8. */
function decoded(header: string): string {
  const text = Buffer.from(header, 'latin1').toString('utf8');
  return text.includes('\ufffd') ? header : text;
}
