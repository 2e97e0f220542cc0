/** Cache marks of a request: at most four, and only where the server takes them. */
import type { CacheMark, PartBase } from '../../../core/conversation.ts';
import { type Notes, pathOf } from '../../../core/notes.ts';
import type { JsonObject, JsonMembers } from '../../../json/value.ts';

const maxMarks = 4;
const path = ['cache_control'];

/** Blocks and tools that requested a mark, in the order of the prompt: tools, system, messages. */
export class CacheMarks {
  readonly #enabled: boolean;
  readonly #write: WriteMark;
  readonly #prefix: Marked[] = [];
  readonly #messages: Marked[] = [];

  /**
   * @param enabled false for servers that cache by themselves or not at all.
   * @param write puts a mark on its block; absent = as a member of it.
   */
  constructor(enabled: boolean, write: WriteMark = writeControl) {
    this.#enabled = enabled;
    this.#write = write;
  }

  /** Remembers the mark of a tool or of a block of the system prompt. */
  prefix(block: JsonMembers, { cacheUntilHere }: PartBase): JsonMembers {
    if (cacheUntilHere !== undefined) this.#prefix.push({ block, mark: cacheUntilHere });
    return block;
  }

  /** Remembers the mark of a block of a message. */
  message(block: JsonMembers, { cacheUntilHere }: PartBase): JsonMembers {
    if (cacheUntilHere !== undefined) this.#messages.push({ block, mark: cacheUntilHere });
    return block;
  }

  /**
   * Writes the marks that fit: those of tools and system, then the latest of the messages.
   * @param taken marks that are elsewhere in the request.
   */
  apply(notes: Notes, taken: number): void {
    if (!this.#enabled) return;
    const free = maxMarks - taken;
    const prefix = lastOf(this.#prefix, free);
    const messages = lastOf(this.#messages, free - prefix.length);
    for (const { block, mark } of [...prefix, ...messages]) {
      this.#write(block, mark, notes);
    }
    const [left] = [...without(this.#prefix, prefix), ...without(this.#messages, messages)];
    if (left === undefined) return;
    notes.lost(pathOf(left.mark, path), `a request has at most ${maxMarks} cache marks`);
  }
}

type WriteMark = (block: JsonMembers, mark: CacheMark, notes: Notes) => void;

function writeControl(block: JsonMembers, mark: CacheMark, notes: Notes): void {
  block['cache_control'] = writeMark(mark, notes);
}

interface Marked {
  readonly block: JsonMembers;
  readonly mark: CacheMark;
}

function without(all: readonly Marked[], last: readonly Marked[]): readonly Marked[] {
  return all.slice(0, all.length - last.length);
}

function lastOf(marks: readonly Marked[], count: number): readonly Marked[] {
  return count <= 0 ? [] : marks.slice(-count);
}

export function writeMark(mark: CacheMark, notes: Notes): JsonObject {
  const { ttl } = mark;
  switch (ttl) {
    case undefined:
      return { type: 'ephemeral' };
    case '5m':
    case '1h':
      return { type: 'ephemeral', ttl };
    default:
      notes.changed([...pathOf(mark, path), 'ttl'], 'a prompt is cached for 5m or 1h');
      return ttl === '24h' ? { type: 'ephemeral', ttl: '1h' } : { type: 'ephemeral' };
  }
}
