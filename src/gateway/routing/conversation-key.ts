/**
 * What calls of one conversation have in common: the name that the client gives its session, else how
 * the conversation begins. Asked for only where there is a choice of targets.
 */
import { hash } from 'node:crypto';
import type { Json } from '../../core/conversation.ts';
import { isObject } from '../../core/json.ts';
import type { Call } from '../call.ts';

/** By which agents name their session. A child agent has the session of its parent: that is wanted. */
const sessionHeaders = [
  'x-claude-code-session-id',
  'x-session-id',
  'x-session-affinity',
  'session-id',
] as const;

/** Of a text its beginning and its end are looked at: prompts of agents are long and begin alike. */
const lookedAt = 2048;
/** Of the whole opening; more of it tells nobody apart. */
const mostLength = 64 * 1024;
const longestName = 512;

export type RoutedCall = Pick<Call, 'header'> & {
  readonly caller: Pick<Call['caller'], 'keyId'>;
  readonly source: Pick<Call['source'], 'value' | 'outline'>;
};

/**
 * A short text. It is the key's own: equal sessions of two keys are two conversations, so that no
 * tenant learns of another's by where its calls go.
 */
export function conversationKey(call: RoutedCall): string {
  const name = sessionName(call);
  const text = name === undefined ? `o${opening(call.source.value)}` : `s${name}`;
  return hash('sha1', `${call.caller.keyId}\n${text}`, 'base64');
}

function sessionName({ header, source }: RoutedCall): string | undefined {
  for (const name of sessionHeaders) {
    const value = header(name);
    if (value !== undefined && value !== '') return value.slice(0, longestName);
  }
  const { prompt_cache_key: key } = source.outline;
  return typeof key === 'string' && key !== '' ? key.slice(0, longestName) : undefined;
}

/** The system prompt and what stands before the first answer, up to the first message of the user. */
function opening({ system, messages }: { readonly [name: string]: Json | undefined }): string {
  const text = new OpeningText();
  text.add(system);
  for (const message of Array.isArray(messages) ? messages : []) {
    text.add(message);
    if (isObject(message) && message['role'] === 'user') break;
  }
  return text.text;
}

/** Clients write a text plainly, and as a part where they mark it for a cache: it is the same text. */
function isText(value: Json | undefined): value is { readonly text: string } {
  return isObject(value) && value['type'] === 'text' && typeof value['text'] === 'string';
}

/** Values that say the same give the same text; marks of caches move, and say nothing. */
class OpeningText {
  text = '';

  add(value: Json | undefined): void {
    if (this.text.length > mostLength) return;
    if (typeof value === 'string') this.#addText(value);
    else if (Array.isArray(value)) for (const each of value) this.add(each);
    else if (isText(value)) this.#addText(value.text);
    else if (isObject(value)) this.#addMembers(value);
    else if (value !== undefined) this.text += `${String(value)};`;
  }

  #addText(value: string): void {
    const { length } = value;
    const seen = length <= 2 * lookedAt ? value : value.slice(0, lookedAt) + value.slice(-lookedAt);
    this.text += `${length}:${seen};`;
  }

  #addMembers(value: { readonly [name: string]: Json | undefined }): void {
    for (const name in value) {
      if (name === 'cache_control') continue;
      this.text += `${name}=`;
      this.add(value[name]);
    }
  }
}
