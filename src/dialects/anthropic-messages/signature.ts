/**
 * Signatures that the gateway mints for what came from an upstream of another dialect: this dialect
 * demands one for reasoning, and on the way back it must be known whose reasoning it was, with what
 * that upstream wants to see again (wire/translation.md §5.4; D5, D6). The seal keeps clients from
 * making up a record, or from changing the text that a foreign signature vouches for.
 */
import type { DialectId, JsonObject, Origin, ReasoningPart } from '../../core/conversation.ts';
import type { Sealing } from '../../core/dialect.ts';
import { isObject } from '../../core/json.ts';
import { isSealed, type Sealer } from '../../core/sealer.ts';

/** What a minted signature holds. */
export interface SealedRecord {
  readonly origin: Origin;
  readonly signature?: string;
  readonly encrypted?: string;
  /** The text, where the client did not want to be shown it but its upstream wants it back. */
  readonly text?: string;
  /** Digest of a text that stands beside the record and that `signature` vouches for. */
  readonly textDigest?: string;
  /** Members that only the foreign dialect knows, of the reasoning or of the call. */
  readonly extras?: JsonObject;
  /** Id of the tool call that `extras` belong to: Gemini signs calls, not reasoning. */
  readonly callId?: string;
}

/** The signature for what a foreign upstream said of a call. */
export function sealCall(callId: string, extras: JsonObject, sealing: Sealing): string {
  return seal({ extras, callId }, sealing);
}

/**
 * The signature for reasoning of a foreign upstream.
 * @param hidden the client is not shown the text, so that the record must hold it (D6).
 */
export function sealReasoning(part: ReasoningPart, hidden: boolean, sealing: Sealing): string {
  const { signature, encrypted, text } = part;
  const extras = part.extras?.[sealing.upstream.dialect];
  const vouched = signature !== undefined && !hidden;
  return seal(
    {
      ...(signature === undefined ? {} : { signature }),
      ...(encrypted === undefined ? {} : { encrypted }),
      ...(hidden && text !== '' ? { text } : {}),
      ...(vouched ? { digest: sealing.sealer.digest(text) } : {}),
      ...(extras === undefined ? {} : { extras }),
    },
    sealing,
  );
}

function seal(record: JsonObject, { sealer, upstream }: Sealing): string {
  return sealer.seal({ v: 1, from: upstream.dialect, by: upstream.provider, ...record });
}

/** Undefined when this gateway did not seal it, or not like this. */
export function unseal(sealed: string, sealer: Sealer | undefined): SealedRecord | undefined {
  const record = sealer?.open(sealed);
  if (record === undefined) return undefined;
  const { from, by, signature, encrypted, text, digest, extras, callId } = record;
  const dialect = foreignDialects.find((each) => each === from);
  if (dialect === undefined || typeof by !== 'string') return undefined;
  return {
    origin: { provider: by, dialect },
    ...(typeof signature === 'string' ? { signature } : {}),
    ...(typeof encrypted === 'string' ? { encrypted } : {}),
    ...(typeof text === 'string' ? { text } : {}),
    ...(typeof digest === 'string' ? { textDigest: digest } : {}),
    ...(isObject(extras) ? { extras } : {}),
    ...(typeof callId === 'string' ? { callId } : {}),
  };
}

const foreignDialects: readonly DialectId[] = [
  'openai-chat',
  'openai-responses',
  'gemini',
  'bedrock-converse',
];

/** Whether a messages server may be shown this reasoning: it signed or encrypted it itself. */
export function isNative(part: ReasoningPart): boolean {
  const proof = part.signature ?? part.encrypted;
  if (part.broken === true || proof === undefined || proof === '' || isSealed(proof)) return false;
  if (part.origin !== undefined) return part.origin.dialect === 'anthropic-messages';
  const foreign = part.extras?.['openai-chat'];
  return foreign === undefined || (foreign['format'] === undefined && foreign['summary'] !== true);
}

/** Whether somebody vouched for this reasoning, so that leaving it out is a loss. */
export function isProof(part: ReasoningPart): boolean {
  return (
    part.broken === true ||
    part.origin !== undefined ||
    (part.signature ?? '') !== '' ||
    (part.encrypted ?? '') !== ''
  );
}
