/**
 * Every call has one result in the user turn behind it, results first in their message; an unmatched
 * result, a missing or doubled one, and an id used twice are refused (wire/messages.md §3; B4, B5,
 * B54). Results may be spread over neighbouring user messages, which the service merges and the
 * request reader regroups; a system message in between does not break the run (A3).
 */
import type { Json, JsonObject } from '../../core/conversation.ts';
import { invalidRequest } from '../../core/errors.ts';
import { textOf } from './fields.ts';

export class ToolPairing {
  readonly #used = new Set<string>();
  /** Calls of the last assistant turn, and whether their result was seen. */
  #calls = new Map<string, boolean>();
  /** Index of the message with the calls. */
  #at = 0;
  #previous: Json | undefined;

  /** @throws GatewayError `invalid_request`. `blocks` is empty for content that is a string. */
  see(role: Json | undefined, blocks: readonly JsonObject[], i: number): void {
    if (role === 'assistant') {
      // Neighbouring assistant messages are one turn.
      if (this.#previous !== 'assistant') this.end();
      blocks.forEach((block, j) => {
        if (block['type'] === 'tool_use') this.#call(textOf(block['id']), i, j);
      });
    } else if (role === 'user') {
      this.#results(blocks, i);
    }
    this.#previous = role;
  }

  /** The run of user messages behind the calls is over. */
  end(): void {
    const open = [...this.#calls].filter(([, answered]) => !answered).map(([id]) => id);
    if (open.length > 0) {
      throw invalidRequest(
        '`tool_use` ids were found without `tool_result` blocks immediately after: ' +
          `${open.map(shown).join(', ')}. Each \`tool_use\` block must have a corresponding ` +
          '`tool_result` block in the next message.',
        ['messages', this.#at],
      );
    }
    this.#calls = new Map();
  }

  #call(id: string, i: number, j: number): void {
    if (this.#used.has(id)) {
      throw invalidRequest('`tool_use` ids must be unique', ['messages', i, 'content', j, 'id']);
    }
    this.#used.add(id);
    this.#calls.set(id, false);
    this.#at = i;
  }

  #results(blocks: readonly JsonObject[], i: number): void {
    let first = true;
    blocks.forEach((block, j) => {
      if (block['type'] !== 'tool_result') {
        first = false;
        return;
      }
      const path = ['messages', i, 'content', j];
      const id = textOf(block['tool_use_id']);
      const answered = this.#calls.get(id);
      if (answered === undefined) {
        throw invalidRequest(
          `unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${shown(id)}. Each ` +
            '`tool_result` block must have a corresponding `tool_use` block in the previous message.',
          path,
        );
      }
      if (answered) {
        throw invalidRequest(
          'each `tool_use` must have a single result. Found multiple `tool_result` blocks with ' +
            `id: ${shown(id)}`,
          path,
        );
      }
      if (!first) {
        throw invalidRequest(
          '`tool_result` blocks must stand before all other blocks of their message',
          path,
        );
      }
      this.#calls.set(id, true);
    });
  }
}

function shown(id: string): string {
  return id.length > 80 ? `${id.slice(0, 80)}…` : id;
}
