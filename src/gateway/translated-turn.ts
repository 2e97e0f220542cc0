/**
 * A translated answer between the upstream's reader and the consumer: a turn that the upstream pauses
 * is gone on with, and stop sequences that the upstream was not told are looked for.
 */
import { asGatewayError, type GatewayError } from '../core/errors.ts';
import type { GenerationEvent } from '../core/generation.ts';
import { StopScanner } from './stop-scanner.ts';
import type { TurnRounds } from './turn-rounds.ts';
import { eventsFrame, type ReadFrame, type StreamConsumer } from './upstream-answer.ts';

/** The upstream's side of the turn. */
export interface TurnSource {
  /** The answer is complete, whatever the upstream would still say. */
  cut(): void;
  /** Asks for the rest of a paused turn and hands it to the same consumer; rejects with its failure. */
  goOn(): Promise<void>;
}

export interface TranslatedTurnOptions {
  /** Who takes the events that are left. */
  readonly consumer: StreamConsumer;
  readonly scanned: readonly string[];
  readonly rounds: TurnRounds | undefined;
  readonly source: TurnSource;
}

export class TranslatedTurn implements StreamConsumer {
  readonly #options: TranslatedTurnOptions;
  readonly #scanner: StopScanner;
  #over = false;

  constructor(options: TranslatedTurnOptions) {
    this.#options = options;
    this.#scanner = new StopScanner(options.scanned);
  }

  frames(batch: readonly ReadFrame[]): void {
    if (this.#over) return;
    const passed: ReadFrame[] = [];
    for (const { frame, events } of batch) {
      // Behind a failure nothing is read, so that what was held back must be shown before it.
      const failed = events.some((event) => event.type === 'error');
      if (failed) passed.push(eventsFrame(this.#scanner.flush()));
      passed.push({
        frame,
        events: events.flatMap((event) => this.#scanner.push(event)),
        plain: false,
      });
    }
    if (this.#scanner.matched !== undefined) {
      this.#over = true;
      this.#options.source.cut();
      // A report that came along behind the sequence is metered, so that the client is told it too.
      passed.unshift(eventsFrame(batch.flatMap(({ events }) => events.filter(isUsage))));
      return this.#showLast(passed);
    }
    this.#options.consumer.frames(passed);
    this.#goOnIfPaused();
  }

  /** The upstream is gone: nobody else would tell the consumer that it failed. */
  #showLast(batch: readonly ReadFrame[]): void {
    const { consumer } = this.#options;
    try {
      consumer.frames(batch);
    } catch (error) {
      consumer.failed(asGatewayError(error));
    }
  }

  ended(events: readonly GenerationEvent[]): void {
    if (this.#over) return;
    this.frames([eventsFrame(events)]);
    if (this.#options.rounds?.paused !== true) this.#options.consumer.ended([]);
  }

  failed(error: GatewayError): void {
    if (this.#over) return;
    this.#over = true;
    const { consumer } = this.#options;
    try {
      consumer.frames([eventsFrame(this.#scanner.flush())]);
    } catch {
      // It may be the consumer's own failure that is told: the first one counts.
    }
    consumer.failed(error);
  }

  #goOnIfPaused(): void {
    const { rounds, source } = this.#options;
    if (this.#over || rounds?.paused !== true) return;
    source.goOn().catch((error: unknown) => this.failed(asGatewayError(error)));
  }
}

function isUsage({ type }: GenerationEvent): boolean {
  return type === 'usage';
}
