/** Cache marks of a request: at most four, and only where the server takes them (§8). */
import type { CacheMark, JsonObject, PartBase } from '../../core/conversation.ts';
import type { Notes } from '../../core/notes.ts';
import type { JsonMembers } from './fields.ts';

const maxMarks = 4;

/** Blocks and tools that asked for a mark, in the order of the prompt: tools, system, messages. */
export class CacheMarks {
  readonly #enabled: boolean;
  readonly #prefix: Marked[] = [];
  readonly #messages: Marked[] = [];

  /** @param enabled false for servers that cache by themselves or not at all. */
  constructor(enabled: boolean) {
    this.#enabled = enabled;
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
   * @param taken marks that stand elsewhere in the request.
   */
  apply(notes: Notes, taken: number): void {
    if (!this.#enabled) return;
    const free = maxMarks - taken;
    const prefix = lastOf(this.#prefix, free);
    const messages = lastOf(this.#messages, free - prefix.length);
    for (const { block, mark } of [...prefix, ...messages]) {
      block['cache_control'] = writeMark(mark, notes);
    }
    if (prefix.length + messages.length < this.#prefix.length + this.#messages.length) {
      notes.lost(['cache_control'], `a request has at most ${maxMarks} cache marks`);
    }
  }
}

interface Marked {
  readonly block: JsonMembers;
  readonly mark: CacheMark;
}

function lastOf(marks: readonly Marked[], count: number): readonly Marked[] {
  return count <= 0 ? [] : marks.slice(-count);
}

function writeMark({ ttl }: CacheMark, notes: Notes): JsonObject {
  switch (ttl) {
    case undefined:
      return { type: 'ephemeral' };
    case '5m':
    case '1h':
      return { type: 'ephemeral', ttl };
    default:
      notes.changed(['cache_control', 'ttl'], 'a prompt is cached for 5m or 1h');
      return ttl === '24h' ? { type: 'ephemeral', ttl: '1h' } : { type: 'ephemeral' };
  }
}
