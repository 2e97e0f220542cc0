/** Watches one answer for what its upstream will want back with the next request. */
import type { JsonObject, Origin, ReasoningPart } from '../core/conversation.ts';
import type { GenerationEvent } from '../core/generation.ts';
import type { KnownCall, PlacedReasoning } from '../core/kept-turn.ts';
import type { UpstreamTraits } from '../core/traits.ts';
import type { StoredTurn } from './reasoning-store.ts';

interface OpenReasoning {
  readonly callsBefore: number;
  part: ReasoningPart;
}

interface OpenCall {
  readonly id: string;
  readonly name: string;
  readonly extras: JsonObject | undefined;
  argumentsJson: string;
}

export class TurnRecorder {
  readonly #origin: Origin;
  readonly #traits: UpstreamTraits;
  readonly #reasoning = new Map<number, OpenReasoning>();
  readonly #calls = new Map<number, OpenCall>();
  readonly #shown = new Map<string, string>();
  #finished = false;

  constructor(origin: Origin, traits: UpstreamTraits) {
    this.#origin = origin;
    this.#traits = traits;
  }

  see(event: GenerationEvent): void {
    if (event.type === 'part-start') this.#start(event.index, event.part);
    else if (event.type === 'part-delta') this.#add(event);
    else if (event.type === 'finish') this.#finished = true;
  }

  /** The client was shown another id for a call. */
  callShown(id: string, shown: string): void {
    this.#shown.set(id, shown);
  }

  /** The turn, if it ended, called tools, and holds something that its upstream wants back. */
  result(): StoredTurn | undefined {
    if (!this.#finished || this.#calls.size === 0) return undefined;
    const calls = new Map<string, JsonObject>();
    const known: KnownCall[] = [];
    for (const { id, name, argumentsJson, extras } of this.#calls.values()) {
      const shown = this.#shown.get(id) ?? id;
      known.push({ id: shown, name, argumentsJson });
      if (extras !== undefined) calls.set(shown, extras);
    }
    const reasoning: PlacedReasoning[] = [];
    for (const { callsBefore, part } of this.#reasoning.values()) {
      if (this.#isWanted(part)) {
        reasoning.push({ callsBefore, part: { ...part, origin: this.#origin } });
      }
    }
    if (reasoning.length + calls.size === 0) return undefined;
    return { origin: this.#origin, reasoning, calls, known };
  }

  #start(index: number, part: Extract<GenerationEvent, { type: 'part-start' }>['part']): void {
    if (part.type === 'reasoning') {
      this.#reasoning.set(index, { callsBefore: this.#calls.size, part });
    } else if (part.type === 'tool-call') {
      const { id, name, argumentsJson } = part;
      const extras = part.extras?.[this.#origin.dialect];
      this.#calls.set(index, { id, name, argumentsJson, extras });
    }
  }

  #add({ index, field, delta }: Extract<GenerationEvent, { type: 'part-delta' }>): void {
    const open = this.#reasoning.get(index);
    if (open !== undefined) {
      const { part } = open;
      if (field === 'text') open.part = { ...part, text: part.text + delta };
      else open.part = { ...part, signature: (part.signature ?? '') + delta };
    } else if (field === 'arguments') {
      const call = this.#calls.get(index);
      if (call !== undefined) call.argumentsJson += delta;
    }
  }

  #isWanted({ text, signature, encrypted, extras }: ReasoningPart): boolean {
    if ((signature ?? '') !== '' || encrypted !== undefined || extras !== undefined) return true;
    const { reasoningReplay, reasoningField } = this.#traits;
    return text !== '' && (reasoningReplay || reasoningField !== undefined);
  }
}
