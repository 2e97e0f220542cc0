/**
 * What server tools found in earlier turns, as text, so that a model that cannot run them keeps the
 * knowledge (wire/translation.md §3.5).
 */
import type { Json, JsonObject } from '../../core/conversation.ts';
import type { FieldPath } from '../../core/errors.ts';
import { isObject } from '../../core/json.ts';
import { isArray, textOf } from './fields.ts';

const maxLength = 4000;

/** Remembers calls until their results come. */
export class ServerToolText {
  readonly #calls = new Map<string, string>();
  readonly #unanswered = new Map<string, FieldPath>();

  ask(block: JsonObject, path: FieldPath): void {
    this.#unanswered.set(textOf(block['id']), path);
    const { id, name, input } = block;
    const query = isObject(input) ? input['query'] : undefined;
    const shown = typeof query === 'string' ? JSON.stringify(query) : JSON.stringify(input ?? {});
    this.#calls.set(textOf(id), `${textOf(name)} ${shown}`);
  }

  /** Where the calls stand that no result came for. */
  unanswered(): readonly FieldPath[] {
    return [...this.#unanswered.values()];
  }

  /** `[web_search "query" → 2 results: title url, title url]` */
  result(block: JsonObject): string {
    const kind = textOf(block['type']).replace(/_tool_result$/, '');
    this.#unanswered.delete(textOf(block['tool_use_id']));
    const call = this.#calls.get(textOf(block['tool_use_id'])) ?? kind;
    return `[${call} → ${describe(block['content'])}]`;
  }
}

function describe(content: Json | undefined): string {
  if (isArray(content)) {
    const entries = content.filter(isObject).map(describeEntry);
    return `${entries.length} ${entries.length === 1 ? 'result' : 'results'}: ${entries.join(', ')}`;
  }
  if (!isObject(content)) return textOf(content);
  const error = content['error_code'];
  if (typeof error === 'string') return `error: ${error}`;
  return cut(JSON.stringify(readable(content)));
}

function describeEntry(entry: JsonObject): string {
  const { title, url, text } = entry;
  const named = [title, url].filter((each) => typeof each === 'string' && each !== '').join(' ');
  if (named !== '') return named;
  return typeof text === 'string' ? text : cut(JSON.stringify(readable(entry)));
}

/** Without what only the provider can read. */
function readable(value: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(value).filter(([key]) => !key.startsWith('encrypted_')));
}

function cut(text: string): string {
  return text.length <= maxLength ? text : `${text.slice(0, maxLength)}…`;
}

/** A search result that the client brought: title, source, texts. */
export function readSearchResult(block: JsonObject): string {
  const { content } = block;
  const texts = isArray(content)
    ? content.filter(isObject).map((each) => textOf(each['text']))
    : [textOf(content)];
  return [textOf(block['title']), textOf(block['source']), ...texts]
    .filter((line) => line !== '')
    .join('\n');
}
