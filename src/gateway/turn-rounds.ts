/**
 * A turn that its upstream pauses (messages `pause_turn`: the provider's own tools run long) is requested again with
 * the answer so far, until it ends. Behind this stage all rounds are one answer: part indexes continue, token counts
 * are sums, and no pause is visible.
 */
import type { Part } from '../core/conversation.ts';
import {
  Collector,
  type GenerationEvent,
  type Usage,
  addUsage,
  lastRequest,
  mergeUsage,
  totalInputTokens,
} from '../core/generation.ts';
import type { Call } from '../core/call.ts';
import { spent } from './output-guard.ts';

/** Further requests of one turn at most; then it ends with finish `length`. */
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

  /** The upstream paused the turn. */
  get paused(): boolean {
    return this.#paused;
  }

  /** The turn took more than one round so far. */
  get continued(): boolean {
    return this.#round > 0;
  }

  /** The usage that the last round reported. */
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

/** A report without the prompt of its round is incomplete: its prompt is estimated until then. */
function sumOf(before: Usage, current: Usage): GenerationEvent | undefined {
  if (totalInputTokens(current) === undefined) return undefined;
  const sum = addUsage(before, current) ?? current;
  return { type: 'usage', usage: { ...sum, earlier: requestsOf(before) } };
}

/** What each of the requests used. */
function requestsOf(usage: Usage): readonly Usage[] {
  return [...(usage.earlier ?? []), lastRequest(usage)];
}

/** The usage with a further request, which reads the prompt and the answer so far again. */
export function withFurther(used: Usage): Usage {
  const last = lastRequest(used);
  const again = (totalInputTokens(last) ?? 0) + (last.outputTokens ?? 0);
  const freshInputTokens = (used.freshInputTokens ?? 0) + again;
  return { ...used, freshInputTokens, earlier: requestsOf(used) };
}

/** A further request of a paused turn. */
export interface NextRound {
  /** The answer so far. */
  readonly answered: readonly Part[];
  /** Cap of its output tokens; undefined where no budget pays. */
  readonly most: number | undefined;
}

/**
 * A further round reads the prompt and what was answered so far again: both are paid for before it is
 * asked for (Q1), and it may answer as much as the rounds before it left of what is paid for.
 * @param used by the rounds before it
 * @throws GatewayError `budget_exhausted`
 */
export async function payRound(
  { grant, head }: Pick<Call, 'grant' | 'head'>,
  used: Usage,
): Promise<number | undefined> {
  if (grant?.outputCap === undefined || !grant.paid) return undefined;
  const { outputCap } = grant;
  const paid = await grant.outputOfRound(withFurther(used));
  const left = Math.min(paid ?? outputCap, outputCap) - (used.outputTokens ?? 0);
  if (left <= (head.reasoningBudget ?? 0)) throw spent();
  return left;
}
