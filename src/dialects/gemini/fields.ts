/** Names and forms that requests and answers of Gemini share. */
import type { Extras, Origin } from '../../core/conversation.ts';
import { isObject, type JsonObject } from '../../json/value.ts';

export const dialectId = 'gemini';

// Signatures: opaque text on a part. The client must return it on the same part.

/** The format name of Gemini's signatures in lists of reasoning. */
export const signatureFormat = 'google-gemini-v1';

/** The extras of a signed call. */
export function signedExtras(signature: string): Extras {
  return { [dialectId]: { thoughtSignature: signature } };
}

/** A part of an earlier answer that may have a signature. */
interface Signed {
  readonly extras?: Extras;
  readonly origin?: Origin;
}

/** The signature of a call, in this dialect's spelling or in that of chat clients. Undefined if there is none. */
export function callSignature({ extras }: Signed): string | undefined {
  const own = extras?.[dialectId]?.['thoughtSignature'];
  if (typeof own === 'string' && own !== '') return own;
  const google = objectIn(objectIn(extras?.['openai-chat'], 'extra_content'), 'google');
  const told = google?.['thought_signature'];
  return typeof told === 'string' && told !== '' ? told : undefined;
}

function objectIn(value: JsonObject | undefined, key: string): JsonObject | undefined {
  const found = value?.[key];
  return isObject(found) ? found : undefined;
}
