/** Names and forms that requests and answers of Gemini share. */
import type { Extras, Origin } from '../../core/conversation.ts';
import { isObject, type JsonObject } from '../../json/value.ts';

export const dialectId = 'gemini';

// Signatures: opaque text beside a part, which must come back on the part that it came on.

/** In whose words reasoning is sealed, by the name that lists of reasoning have for it. */
export const signatureFormat = 'google-gemini-v1';

/** What a signed call carries besides its own fields. */
export function signedExtras(signature: string): Extras {
  return { [dialectId]: { thoughtSignature: signature } };
}

/** Something of an earlier answer that may bear a signature. */
interface Signed {
  readonly extras?: Extras;
  readonly origin?: Origin;
}

/** The signature of a call, in this dialect's spelling or in that of chat clients; undefined where it has none. */
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
