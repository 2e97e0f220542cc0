/**
 * Reasoning in a stream: `reasoning_content` for display, and `reasoning_details` increments that a
 * client sends back whole, signature included (wire/translation.md §5.2). Each increment stands in
 * both, so that no reader needs to guess which one is complete.
 */
import type { JsonObject, ReasoningPart } from '../../core/conversation.ts';
import { detailConstants, detailType, isSummary, writeDetail } from './reasoning-write.ts';

interface OpenReasoning {
  readonly part: ReasoningPart;
  readonly detail: number;
  /** The constants of the entry were sent: they may stand only once. */
  constantsSent: boolean;
}

export class ReasoningDeltas {
  readonly #hidden: boolean;
  readonly #open = new Map<number, OpenReasoning>();
  #details = 0;
  #anyText = false;
  /** A blank line is due between the texts of two parts. */
  #separator = '';

  /** @param hidden the client does not want to see reasoning. */
  constructor(hidden: boolean) {
    this.#hidden = hidden;
  }

  /** The delta members of a part's beginning; `''` when there is nothing to send yet. */
  start(index: number, part: ReasoningPart): string {
    if (this.#hidden) return '';
    const detail = this.#details++;
    this.#separator = this.#anyText ? '\n\n' : '';
    const whole = part.encrypted !== undefined || part.signature !== undefined;
    this.#open.set(index, { part, detail, constantsSent: whole });
    const content = part.text === '' ? '' : this.#content(part.text);
    if (whole) return members(content, details(writeDetail(part, detail)));
    const type = detailType(part);
    return content === ''
      ? ''
      : members(content, details({ index: detail, type, ...textOf(part, part.text) }));
  }

  /** The delta members of an increment. */
  add(index: number, field: 'text' | 'signature', delta: string): string {
    const open = this.#open.get(index);
    if (open === undefined) return '';
    const { part, detail } = open;
    const type = detailType(part);
    if (field === 'text') {
      const entry = details({ index: detail, type, ...textOf(part, delta) });
      return members(this.#content(delta), entry);
    }
    const constants = open.constantsSent ? {} : detailConstants(part);
    open.constantsSent = true;
    return details({ index: detail, type, signature: delta, ...constants });
  }

  #content(text: string): string {
    const separated = this.#separator + text;
    this.#separator = '';
    this.#anyText = true;
    return `"reasoning_content":${JSON.stringify(separated)}`;
  }
}

function textOf(part: ReasoningPart, text: string): JsonObject {
  return isSummary(part) ? { summary: text } : { text };
}

function details(entry: JsonObject): string {
  return `"reasoning_details":[${JSON.stringify(entry)}]`;
}

function members(first: string, second: string): string {
  return first === '' ? second : `${first},${second}`;
}
