/**
 * Signatures that the gateway mints for what came from an upstream of another dialect: this dialect
 * demands one for reasoning, and on the way back it must be known whose reasoning it was, with what
 * that upstream wants to see again (wire/translation.md §5.4; D5, D6). The record is not
 * authenticated. It carries nothing that a client could not also say in the open: what it unpacks to
 * goes to the upstream as the client's own history.
 */
import type { DialectId, JsonObject, ReasoningPart } from '../../core/conversation.ts';
import { isObject, tryParseObject } from '../../core/json.ts';
import type { JsonMembers } from './fields.ts';

const prefix = 'gw1.';

/**
 * The dialect of the upstream when an answer is translated into this dialect. Chat completions is the
 * only one so far.
 */
export const foreignDialect: DialectId = 'openai-chat';

/** What a minted signature holds. */
export interface SealedRecord {
  readonly signature?: string;
  readonly encrypted?: string;
  /** The text, where the client did not want to be shown it but its upstream wants it back. */
  readonly text?: string;
  /** Members that only the foreign dialect knows, of the reasoning or of the call. */
  readonly extras?: JsonObject;
  /** Id of the tool call that `extras` belong to: Gemini signs calls, not reasoning. */
  readonly callId?: string;
}

/** Whether the gateway minted this signature; a native service must never see it. */
export function isSealed(signature: string | undefined): boolean {
  return signature?.startsWith(prefix) === true;
}

export function seal(record: SealedRecord): string {
  const members: JsonMembers = { v: 1, from: foreignDialect, ...record };
  return prefix + Buffer.from(JSON.stringify(members)).toString('base64url');
}

/**
 * The signature for reasoning of a foreign upstream.
 * @param hidden the client is not shown the text, so that the record must hold it (D6).
 */
export function sealReasoning(part: ReasoningPart, hidden: boolean): string {
  const { signature, encrypted, text } = part;
  const extras = part.extras?.[foreignDialect];
  return seal({
    ...(signature === undefined ? {} : { signature }),
    ...(encrypted === undefined ? {} : { encrypted }),
    ...(hidden && text !== '' ? { text } : {}),
    ...(extras === undefined ? {} : { extras }),
  });
}

/** Undefined when the record is of an upstream of another kind, or unreadable. */
export function unseal(sealed: string): SealedRecord | undefined {
  const json = Buffer.from(sealed.slice(prefix.length), 'base64url').toString('utf8');
  const record = tryParseObject(json);
  if (record === undefined || record['from'] !== foreignDialect) return undefined;
  const { signature, encrypted, text, extras, callId } = record;
  return {
    ...(typeof signature === 'string' ? { signature } : {}),
    ...(typeof encrypted === 'string' ? { encrypted } : {}),
    ...(typeof text === 'string' ? { text } : {}),
    ...(isObject(extras) ? { extras } : {}),
    ...(typeof callId === 'string' ? { callId } : {}),
  };
}

/** Whether a messages server may be shown this reasoning: it signed or encrypted it itself. */
export function isNative(part: ReasoningPart): boolean {
  const proof = part.signature ?? part.encrypted;
  if (proof === undefined || proof === '' || isSealed(proof)) return false;
  const foreign = part.extras?.[foreignDialect];
  return foreign === undefined || (foreign['format'] === undefined && foreign['summary'] !== true);
}
