/** A body as it is kept: read for what it is, without secrets and media, under a limit. */
import { isUtf8 } from 'node:buffer';
import type { Json } from '../../core/conversation.ts';
import { tryParse } from '../../core/json.ts';
import { mergedEvents } from './merge-events.ts';
import type { Redactor } from './redactor.ts';
import type { BodyForm, KeptBody, SeenBody } from './seen-call.ts';

export interface BodyMeans {
  readonly redactor: Redactor;
  /** Characters of JSON that are kept; of what is longer beginning and end. */
  readonly most: number;
}

type Read = Pick<KeptBody, 'form' | 'content'>;

export function keptBody(
  { bytes, length }: SeenBody,
  { redactor, most }: BodyMeans,
  isStream = false,
): KeptBody {
  const { form, content } = read(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length), {
    redactor,
    isStream,
  });
  const cut = bytes.length < length;
  const json = JSON.stringify(content);
  if (json.length <= most) return { bytes: length, cut, form, content };
  return { bytes: length, cut: true, form: 'text', content: ends(textOf(form, content), most) };
}

function read(
  bytes: Buffer,
  { redactor, isStream }: { readonly redactor: Redactor; readonly isStream: boolean },
): Read {
  if (!isUtf8(bytes)) {
    // Cut within a character it is text all the same.
    return { form: 'text', content: redactor.text(bytes.toString('utf8')) };
  }
  const events = isStream ? eventsOf(bytes) : undefined;
  if (events !== undefined) {
    return { form: 'events', content: events.map((event) => redactor.json(event)) };
  }
  const text = bytes.toString('utf8');
  const value = tryParse(text);
  if (value === undefined) return { form: 'text', content: redactor.text(text) };
  return { form: 'json', content: redactor.json(value) };
}

function eventsOf(bytes: Buffer): readonly Json[] | undefined {
  try {
    return mergedEvents(bytes);
  } catch {
    // Too long, or no events: it is kept as text.
    return undefined;
  }
}

function textOf(form: BodyForm, content: Json): string {
  if (form === 'text' && typeof content === 'string') return content;
  if (!Array.isArray(content)) return JSON.stringify(content, null, 2);
  return content.map((each: Json) => JSON.stringify(each)).join('\n');
}

/** Of a prompt the end is what was asked, of an answer it is how it ended. */
function ends(text: string, most: number): string {
  const half = Math.floor(most / 2);
  const left = text.length - 2 * half;
  const front = text.slice(0, half).replace(/[\ud800-\udbff]$/, '');
  const back = text.slice(-half).replace(/^[\udc00-\udfff]/, '');
  return `${front}\n… ${left} characters left out …\n${back}`;
}
