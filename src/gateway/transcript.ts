/** The parts of an answer as they come, for the span of its call, where content is told (docs/traces.md). */
import type { Part } from '../core/conversation.ts';
import type { GenerationEvent } from '../core/generation.ts';

/** What is longer ends here: nobody reads a book in a span. */
const mostCharacters = 65_536;

interface GrowingPart {
  readonly part: Part;
  text: string;
}

export class Transcript {
  #parts: GrowingPart[] = [];
  readonly #open = new Map<number, GrowingPart>();
  #room = mostCharacters;
  #cut = false;

  /** A new attempt begins. */
  clear(): void {
    this.#parts = [];
    this.#open.clear();
    this.#room = mostCharacters;
    this.#cut = false;
  }

  see(event: GenerationEvent): void {
    if (event.type === 'part-start') {
      const growing = { part: event.part, text: '' };
      this.#parts.push(growing);
      this.#open.set(event.index, growing);
      this.#room -= lengthOf(event.part);
    } else if (event.type === 'part-delta' && event.field !== 'signature') {
      const growing = this.#open.get(event.index);
      if (growing !== undefined) this.#grow(growing, event.delta);
    }
  }

  /** What came, up to the limit. */
  answer(): { readonly parts: readonly Part[]; readonly cut: boolean } {
    return { parts: this.#parts.map(whole), cut: this.#cut };
  }

  #grow(growing: GrowingPart, delta: string): void {
    const taken = delta.length <= this.#room ? delta : delta.slice(0, Math.max(0, this.#room));
    if (taken.length < delta.length) this.#cut = true;
    this.#room -= taken.length;
    growing.text += taken;
  }
}

function lengthOf(part: Part): number {
  if (part.type === 'tool-call') return part.argumentsJson.length;
  return 'text' in part ? part.text.length : 0;
}

function whole({ part, text }: GrowingPart): Part {
  if (text === '') return part;
  if (part.type === 'tool-call') return { ...part, argumentsJson: part.argumentsJson + text };
  return 'text' in part ? { ...part, text: part.text + text } : part;
}
