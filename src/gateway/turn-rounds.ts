/**
 * A turn that its upstream pauses (messages `pause_turn`: the provider's own tools run long) is asked
 * for again with what was answered so far, until it ends (translation.md §7.3). Behind this stage
 * all rounds are one answer: parts are numbered on, token counts are sums, and no pause is seen.
 */
import type { Part } from '../core/conversation.ts';
import {
  addUsage,
  Collector,
  lastRequest,
  mergeUsage,
  totalInputTokens,
  type GenerationEvent,
  type Usage,
} from '../core/generation.ts';

/** A turn is asked for again at most so often; then it counts as cut off. */
const maxContinuations = 5;

export class TurnRounds {
  /** All parts so far, of every round. */
  readonly #collector = new Collector();
  #round = 0;
  /** Index of this round's first part. */
  #base = 0;
  #next = 0;
  /** What the rounds before this one used. */
  #before: Usage | undefined;
  #current: Usage | undefined;
  #paused = false;

  /** The upstream wants to be asked to go on. */
  get paused(): boolean {
    return this.#paused;
  }

  /** The turn took more than one round so far. */
  get continued(): boolean {
    return this.#round > 0;
  }

  /** What the round that ran last reported of itself. */
  get last(): Usage | undefined {
    return this.#current;
  }

  /** The events of the whole answer that these events of one round are. */
  pass(events: readonly GenerationEvent[]): readonly GenerationEvent[] {
    const passed: GenerationEvent[] = [];
    for (const event of events) {
      const own = this.#pass(event);
      if (own === undefined) continue;
      this.#collector.add(own);
      passed.push(own);
    }
    return passed;
  }

  /**
   * Begins the next round.
   * @param used by all rounds so far, gaps filled
   * @returns the assistant's turn so far
   */
  goOn(used: Usage): readonly Part[] {
    this.#paused = false;
    this.#round += 1;
    this.#base = this.#next;
    this.#before = used;
    this.#current = undefined;
    return this.#collector.parts();
  }

  #pass(event: GenerationEvent): GenerationEvent | undefined {
    switch (event.type) {
      case 'start':
        return this.#round === 0 ? event : undefined;
      case 'part-start':
      case 'part-delta':
      case 'part-citation':
      case 'part-end': {
        const index = this.#base + event.index;
        this.#next = Math.max(this.#next, index + 1);
        return this.#base === 0 ? event : { ...event, index };
      }
      case 'usage':
        this.#current = mergeUsage(this.#current, event.usage);
        return this.#before === undefined ? event : sumOf(this.#before, this.#current);
      case 'finish':
        if (event.reason.kind !== 'pause') return event;
        if (this.#round === maxContinuations) {
          return { type: 'finish', reason: { ...event.reason, kind: 'length' } };
        }
        this.#paused = true;
        return undefined;
      case 'error':
        return event;
      default:
        return event satisfies never;
    }
  }
}

/** Without its prompt a round's report is none yet: what it reads is reckoned with until then. */
function sumOf(before: Usage, current: Usage): GenerationEvent | undefined {
  if (totalInputTokens(current) === undefined) return undefined;
  const sum = addUsage(before, current) ?? current;
  return { type: 'usage', usage: { ...sum, earlier: requestsOf(before) } };
}

/** What each of the requests used. */
function requestsOf(usage: Usage): readonly Usage[] {
  return [...(usage.earlier ?? []), lastRequest(usage)];
}

/** With a further request, which reads the prompt and what was answered so far again. */
export function withFurther(used: Usage): Usage {
  const last = lastRequest(used);
  const again = (totalInputTokens(last) ?? 0) + (last.outputTokens ?? 0);
  const freshInputTokens = (used.freshInputTokens ?? 0) + again;
  return { ...used, freshInputTokens, earlier: requestsOf(used) };
}
