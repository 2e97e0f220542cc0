/** Ids of tool calls in an answer: legal here and new to the conversation (B6, wire/translation.md §3.9). */
import type { AnswerContext } from '../../core/dialect.ts';
import { allowedToolId } from '../tool-ids.ts';

/** Engines start from `call_0` in each answer; the client's next request must hold each id once. */
export class AnswerCallIds {
  readonly #context: AnswerContext;
  #used: Set<string> | undefined;

  constructor(context: AnswerContext) {
    this.#context = context;
  }

  /** The id to show for the upstream's; `''` when it sent none. */
  show(id: string): string {
    const used = (this.#used ??= this.#earlierIds());
    let shown = id === '' ? this.#context.newId('toolu_') : allowedToolId(id, 0);
    for (let occurrence = 1; used.has(shown); occurrence++) shown = allowedToolId(id, occurrence);
    used.add(shown);
    return shown;
  }

  #earlierIds(): Set<string> {
    const ids = new Set<string>();
    for (const turn of this.#context.conversation?.turns ?? []) {
      for (const part of turn.parts) if (part.type === 'tool-call') ids.add(part.id);
    }
    return ids;
  }
}
