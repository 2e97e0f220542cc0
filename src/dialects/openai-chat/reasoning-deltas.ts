/**
 * Reasoning in a stream: `reasoning_content` for display, and `reasoning_details` increments that a
 * client sends back whole, signature included (wire/translation.md §5.2). Each increment stands in
 * both, so that no reader needs to guess which one is complete.
 */
import type { JsonObject, ReasoningPart } from '../../core/conversation.ts';
import type { Sealer } from '../../core/sealer.ts';
import { detailMark } from './reasoning-seal.ts';
import {
  detailConstants,
  detailType,
  hasProof,
  isSummary,
  writeDetail,
} from './reasoning-write.ts';

interface OpenReasoning {
  readonly part: ReasoningPart;
  readonly detail: number;
  readonly callsBefore: number;
  /** All text so far: the mark of the entry is a digest of it. */
  text: string;
  /** The constants of the entry were sent: they may stand only once. */
  constantsSent: boolean;
}

export class ReasoningDeltas {
  readonly #hidden: boolean;
  readonly #sealer: Sealer | undefined;
  readonly #open = new Map<number, OpenReasoning>();
  #details = 0;
  #anyText = false;
  /** A blank line is due between the texts of two parts. */
  #separator = '';

  /**
   * @param hidden the client does not want to see reasoning.
   * @param sealer marks entries, where they must come back whole.
   */
  constructor(hidden: boolean, sealer: Sealer | undefined) {
    this.#hidden = hidden;
    this.#sealer = sealer;
  }

  /**
   * The delta members of a part's beginning; `''` when there is nothing to send yet.
   * @param callsBefore how many calls of the answer stand before it.
   */
  start(index: number, part: ReasoningPart, callsBefore: number): string {
    if (this.#hidden) return '';
    const detail = this.#details++;
    this.#separator = this.#anyText ? '\n\n' : '';
    const whole = hasProof(part);
    const { text } = part;
    const open = { part, detail, callsBefore, text, constantsSent: whole };
    this.#open.set(index, open);
    const content = text === '' ? '' : this.#content(text);
    if (whole) {
      return members(content, details({ ...writeDetail(part, detail), ...this.#mark(open) }));
    }
    const type = detailType(part);
    return content === ''
      ? ''
      : members(content, details({ index: detail, type, ...textOf(part, text) }));
  }

  /** The delta members of an increment. */
  add(index: number, field: 'text' | 'signature', delta: string): string {
    const open = this.#open.get(index);
    if (open === undefined) return '';
    const { part, detail } = open;
    const type = detailType(part);
    if (field === 'text') {
      open.text += delta;
      const entry = details({ index: detail, type, ...textOf(part, delta) });
      return members(this.#content(delta), entry);
    }
    const constants = open.constantsSent ? {} : { ...detailConstants(part), ...this.#mark(open) };
    open.constantsSent = true;
    return details({ index: detail, type, signature: delta, ...constants });
  }

  /** Stands once in an entry, beside its signature: the Python helper joins what is repeated. */
  #mark({ part, detail, callsBefore, text }: OpenReasoning): JsonObject {
    if (this.#sealer === undefined) return {};
    const place = { entry: detail, callsBefore };
    return { id: detailMark({ ...part, text }, place, this.#sealer) };
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
