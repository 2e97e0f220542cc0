/**
 * Signatures that the gateway mints for what came from an upstream of another dialect. On the way back it must be known whose
 * reasoning it was, with what that upstream wants to see again. The seal keeps clients from making up a record, and from
 * changing the text that a foreign signature vouches for.
 */
import type { DialectId, Origin, ReasoningPart } from '../../core/conversation.ts';
import type { Sealing } from '../../core/dialect.ts';
import type { Sealer } from '../../core/secret.ts';
import { isObject, type JsonObject } from '../../json/value.ts';

/** What a minted signature holds. */
export interface SealedRecord {
  readonly origin: Origin;
  readonly signature?: string;
  readonly encrypted?: string;
  /** The text, where the client did not want to be shown it but its upstream wants it back. */
  readonly text?: string;
  /** Digest of a text that is sent with the record and that `signature` covers. */
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
 * @param hidden the client is not shown the text, so that the record must hold it.
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

/**
 * Undefined when this gateway did not seal it, or not like this.
 * @param reader the dialect that it came back in: what that one made is never sealed for it.
 */
export function unseal(
  sealed: string,
  sealer: Sealer | undefined,
  reader: DialectId,
): SealedRecord | undefined {
  const record = sealer?.open(sealed);
  if (record === undefined) return undefined;
  const { from, by, signature, encrypted, text, digest, extras, callId } = record;
  const dialect = dialects.find((each) => each === from);
  if (dialect === undefined || dialect === reader || typeof by !== 'string') return undefined;
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

const dialects: readonly DialectId[] = [
  'openai-chat',
  'anthropic-messages',
  'openai-responses',
  'gemini',
  'bedrock-converse',
];
