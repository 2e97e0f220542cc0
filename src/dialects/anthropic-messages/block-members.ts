/** Members of content blocks that this gateway does not know: new ones appear before it learns them (A4). */
import type { JsonObject } from '../../core/conversation.ts';
import type { FieldPath } from '../../core/errors.ts';
import type { Notes } from '../../core/notes.ts';

const common = ['type', 'cache_control'];

/** Wire/messages.md §4.1; blocks of server tools are shown as text and keep what they can. */
const known: ReadonlyMap<string, ReadonlySet<string>> = new Map(
  Object.entries({
    text: ['text', 'citations'],
    image: ['source', 'transformations'],
    document: ['source', 'title', 'context', 'citations'],
    search_result: ['source', 'title', 'content', 'citations'],
    thinking: ['thinking', 'signature'],
    redacted_thinking: ['data'],
    tool_use: ['id', 'name', 'input', 'caller'],
    tool_result: ['tool_use_id', 'content', 'is_error'],
    tool_reference: ['tool_name'],
  }).map(([type, keys]) => [type, new Set([...common, ...keys])]),
);

/** Notes each unknown member once a request: a history may repeat it in hundreds of blocks. */
export class BlockMembers {
  readonly #notes: Notes;
  readonly #noted = new Set<string>();

  constructor(notes: Notes) {
    this.#notes = notes;
  }

  check(block: JsonObject, path: FieldPath): void {
    const type = String(block['type']);
    const keys = known.get(type);
    if (keys === undefined) return;
    for (const key in block) {
      if (keys.has(key) || block[key] === null || this.#noted.has(`${type}.${key}`)) continue;
      this.#noted.add(`${type}.${key}`);
      this.#notes.lost([...path, key], 'not known to the model');
    }
  }
}
