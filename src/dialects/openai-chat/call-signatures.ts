/** Signatures of calls, for the server that refuses a history without them (Gemini, D5). */
import type { JsonObject } from '../../core/conversation.ts';
import { isObject } from '../../core/json.ts';
import type { UpstreamTraits } from '../../core/traits.ts';

interface SignedCall {
  readonly id: string;
  readonly extras: JsonObject | undefined;
}

/** What to add to each call of a turn, and whether it is the vendor's word for "never had one". */
export interface CallSignatures {
  readonly members: readonly JsonObject[];
  readonly filled: boolean;
}

export const fillerNote = 'tool calls of another model are sent without a signature';

/**
 * Undefined when nothing is missing or nothing is known. Only the first of parallel calls carries a
 * signature. A turn that never had one (another model wrote it) gets the vendor's own word for that,
 * where there is one; no signature is ever made up.
 * @param kept what the server said of calls of this turn, by id.
 */
export function missingSignatures(
  calls: readonly SignedCall[],
  traits: UpstreamTraits,
  kept?: ReadonlyMap<string, JsonObject>,
): CallSignatures | undefined {
  if (traits.callSignatures !== true || calls.length === 0) return undefined;
  if (calls.some(({ extras }) => isSigned(extras))) return undefined;
  if (kept !== undefined && calls.some(({ id }) => kept.has(id))) {
    return { members: calls.map(({ id }) => kept.get(id) ?? {}), filled: false };
  }
  const filler = traits.callSignatureFiller;
  if (filler === undefined) return undefined;
  const signature = { extra_content: { google: { thought_signature: filler } } };
  return { members: calls.map((_, i) => (i === 0 ? signature : {})), filled: true };
}

function isSigned(extras: JsonObject | undefined): boolean {
  const content = extras?.['extra_content'];
  const google = isObject(content) ? content['google'] : undefined;
  return isObject(google) && typeof google['thought_signature'] === 'string';
}
