/**
 * Counts a streamed answer against its reservation. An upstream that exceeds the cap of its request is cut, and the answer
 * ends with finish `length` (F63); an answer that the budget cannot pay for any more ends with an error (F64). Only
 * limited calls have a guard.
 */
import { asGatewayError, GatewayError } from '../../core/errors.ts';
import type { GenerationEvent } from '../../core/generation.ts';
import type { Grant } from '../../core/policy.ts';
import { estimateText } from '../../tokens/prompt.ts';
import type { Meter } from './meter.ts';
import { eventsFrame, type ReadFrame, type StreamConsumer } from './upstream-answer.ts';

/** The upstream's side of the answer. */
export interface GuardedSource {
  /** The finish was read: a cut would save nothing. */
  finished(): boolean;
  /** Ends the answer before the upstream does. */
  cut(): void;
  /** Ends the answer in failure. */
  fail(error: GatewayError): void;
}

export interface OutputGuardOptions {
  readonly consumer: StreamConsumer;
  readonly source: GuardedSource;
  readonly grant: Grant;
  /** Output tokens of each choice at most. */
  readonly cap: number;
  /** Number of choices; the events are those of the first. */
  readonly choices: number;
  readonly meter: Pick<Meter, 'atMost' | 'complete' | 'outputLength' | 'outputOf'>;
}

/** An upstream that honours its cap must not be cut: both estimates must exceed it by the error of the better one. */
const slack = 1.1;
const slackTokens = 16;
/** Several choices are compared by their length alone, which is less exact. */
const slackOfAll = 2;

export class OutputGuard implements StreamConsumer {
  readonly #options: OutputGuardOptions;
  readonly #open = new Set<number>();
  /** Parts that do not count. */
  readonly #uncounted = new Set<number>();
  #length = 0;
  #tokens = 0;
  /** Tokens of this choice that the budget pays for. */
  #paid = Number.POSITIVE_INFINITY;
  #over = false;

  constructor(options: OutputGuardOptions) {
    this.#options = options;
    options.meter.atMost(options.cap * options.choices);
  }

  frames(batch: readonly ReadFrame[]): void {
    if (this.#over) return;
    const finished = batch.some(({ events }) => events.some(({ type }) => type === 'finish'));
    for (const { events } of batch) for (const event of events) this.#see(event);
    this.#options.consumer.frames(batch);
    // An answer that ends by itself is not cut.
    if (!finished) this.#compare();
  }

  ended(events: readonly GenerationEvent[]): void {
    if (!this.#over) this.#options.consumer.ended(events);
  }

  failed(error: GatewayError): void {
    if (this.#over) return;
    this.#over = true;
    this.#options.consumer.failed(error);
  }

  #see(event: GenerationEvent): void {
    if (event.type === 'part-delta') {
      if (event.field === 'signature' || this.#uncounted.has(event.index)) return;
      this.#length += event.delta.length;
      this.#tokens += estimateText(event.delta);
    } else if (event.type === 'part-start') {
      this.#open.add(event.index);
      const reasoning = event.part.type === 'reasoning';
      if (reasoning && !this.#options.grant.paid) this.#uncounted.add(event.index);
    } else if (event.type === 'part-end') {
      this.#open.delete(event.index);
    } else if (event.type === 'usage') {
      // The upstream reported the prompt: there may be less money for the answer.
      const after = this.#options.grant.outputAfter(event.usage);
      if (after instanceof Promise) void this.#payLater(after);
      else this.#lower(after);
    }
  }

  async #payLater(after: Promise<number | undefined>): Promise<void> {
    this.#lower(await after);
    if (!this.#over) this.#compare();
  }

  #lower(tokens: number | undefined): void {
    if (tokens === undefined) return;
    const { choices, meter } = this.#options;
    this.#paid = Math.floor(tokens / choices);
    meter.atMost(tokens);
  }

  #compare(): void {
    const { cap, source, meter } = this.#options;
    if (this.#over || source.finished()) return;
    if (this.#allBeyond()) return this.#cut();
    const paid = this.#paid < cap;
    if (this.#paid > 0 && this.#tokens <= Math.min(cap, this.#paid) * slack + slackTokens) return;
    const counted = Math.min(this.#tokens, meter.outputOf(this.#length));
    if (paid && counted >= this.#paid) return source.fail(spent());
    if (counted > cap * slack + slackTokens) this.#cut();
  }

  /** Whether all choices together exceed their caps. */
  #allBeyond(): boolean {
    const { cap, choices, meter } = this.#options;
    if (choices === 1) return false;
    return meter.outputOf(meter.outputLength) > cap * choices * slackOfAll + slackTokens;
  }

  #cut(): void {
    this.#over = true;
    const { consumer, source, meter } = this.#options;
    source.cut();
    const events: readonly GenerationEvent[] = [
      ...[...this.#open].map((index) => ({ type: 'part-end', index }) as const),
      { type: 'usage', usage: meter.complete() },
      { type: 'finish', reason: { kind: 'length' } },
    ];
    try {
      if (consumer.cutShort === undefined) consumer.frames([eventsFrame(events)]);
      else consumer.cutShort(events);
    } catch (error) {
      // The upstream is closed: nothing else would end the consumer.
      consumer.failed(asGatewayError(error));
    }
  }
}

/** The budget was used up before the answer ended. */
export function spent(): GatewayError {
  const why =
    'The budget is exhausted: the prompt was larger than estimated, so the answer ends here.';
  return new GatewayError('budget_exhausted', why, { retryable: false });
}
