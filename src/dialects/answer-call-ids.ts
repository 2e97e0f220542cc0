/** Ids of tool calls in an answer: legal for the client and new to the conversation (B6, §3.9). */
import type { AnswerContext } from '../core/dialect.ts';
import { allowedToolId } from './tool-ids.ts';

export interface CallIdRule {
  /** Of ids that are made up, because the upstream sent none. */
  readonly prefix: 'call_' | 'toolu_';
  /** The client takes any text as an id. */
  readonly anyText: boolean;
}

/** Engines start from `call_0` in each answer; the client's next request must hold each id once. */
export class AnswerCallIds {
  readonly #context: AnswerContext;
  readonly #rule: CallIdRule;
  #used: Set<string> | undefined;

  constructor(context: AnswerContext, rule: CallIdRule) {
    this.#context = context;
    this.#rule = rule;
  }

  /** The id to show for the upstream's; `''` when it sent none. */
  show(id: string): string {
    const used = (this.#used ??= this.#earlierIds());
    let shown = this.#first(id);
    for (let occurrence = 1; used.has(shown); occurrence++) shown = allowedToolId(id, occurrence);
    used.add(shown);
    if (shown !== id) this.#context.sealing?.callShown?.(id, shown);
    return shown;
  }

  #first(id: string): string {
    if (id === '') return this.#context.newId(this.#rule.prefix);
    return this.#rule.anyText ? id : allowedToolId(id, 0);
  }

  #earlierIds(): Set<string> {
    const ids = new Set<string>();
    for (const turn of this.#context.conversation?.turns ?? []) {
      for (const part of turn.parts) if (part.type === 'tool-call') ids.add(part.id);
    }
    return ids;
  }
}
