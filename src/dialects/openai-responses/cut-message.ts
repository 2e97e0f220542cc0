/** The end of a message that the gateway cuts at its cap. Clients take content from the events that end items. */
import { tryParseObject } from '../../json/parse.ts';
import { isObject, type JsonObject } from '../../json/value.ts';
import { textOf } from './fields.ts';

interface CutPart {
  readonly kind: 'output_text' | 'refusal';
  text: string;
  readonly annotations: JsonObject[];
  done: boolean;
}

export interface CutMessage {
  readonly item: JsonObject;
  /** The events that are still owed, each with its type. */
  readonly events: readonly (readonly [type: string, members: JsonObject])[];
}

/**
 * Ends a message as far as it came.
 * @param item as its first event had it.
 * @param data of all events of the item since; others than those of texts say nothing here.
 * @returns undefined for another item, and for a message of which nothing came.
 */
export function cutMessage(
  output: number,
  item: JsonObject,
  data: readonly string[],
): CutMessage | undefined {
  if (item['type'] !== 'message') return undefined;
  const parts = new Map<number, CutPart>();
  for (const text of data) {
    const event = tryParseObject(text);
    if (event !== undefined) addTo(parts, event);
  }
  if (parts.size === 0) return undefined;
  const events: [string, JsonObject][] = [];
  const content = [...parts].map(([index, part]) => {
    const written = contentOf(part);
    const place = { item_id: item['id'] ?? '', output_index: output, content_index: index };
    if (!part.done) {
      const { [part.kind === 'refusal' ? 'refusal' : 'text']: whole = '' } = written;
      events.push(
        part.kind === 'refusal'
          ? ['response.refusal.done', { ...place, refusal: whole }]
          : ['response.output_text.done', { ...place, text: whole, logprobs: [] }],
        ['response.content_part.done', { ...place, part: written }],
      );
    }
    return written;
  });
  const ended = { ...item, status: 'completed', content };
  events.push(['response.output_item.done', { output_index: output, item: ended }]);
  return { item: ended, events };
}

function addTo(parts: Map<number, CutPart>, event: JsonObject): void {
  const { content_index: given, annotation } = event;
  const index = typeof given === 'number' ? given : 0;
  const type = textOf(event['type']).replace('response.', '');
  const part = parts.get(index);
  switch (type) {
    case 'output_text.delta':
    case 'refusal.delta': {
      const kind = type === 'refusal.delta' ? 'refusal' : 'output_text';
      const begun = part ?? { kind, text: '', annotations: [], done: false };
      begun.text += textOf(event['delta']);
      parts.set(index, begun);
      return;
    }
    case 'output_text.annotation.added':
      if (isObject(annotation)) part?.annotations.push(annotation);
      return;
    case 'content_part.done':
      if (part !== undefined) part.done = true;
      return;
    default:
  }
}

function contentOf({ kind, text, annotations }: CutPart): JsonObject {
  return kind === 'refusal'
    ? { type: kind, refusal: text }
    : { type: kind, text, annotations, logprobs: [] };
}
