/** The part of an upstream's answer that was read, and its consumer. */
import type { JsonObject } from '../../json/value.ts';
import type { Frame } from '../../core/dialect.ts';
import { GatewayError } from '../../core/errors.ts';
import type { Collector, Generation, GenerationEvent } from '../../core/generation.ts';

/** A frame and what it means. */
export interface ReadFrame {
  readonly frame: Frame;
  readonly events: readonly GenerationEvent[];
  /** Its reader found that it only continues a text. */
  readonly plain: boolean;
}

/** A whole JSON answer. */
export interface DocumentAnswer {
  readonly kind: 'document';
  readonly bytes: Buffer;
  /** Absent for a long one, whose value is not read on the event loop. */
  readonly body?: JsonObject;
  readonly generation: Generation;
  /** The events of a stream of it; without its finish where the turn is to be continued. */
  readonly events: readonly GenerationEvent[];
}

/** A stream that has reached its first content; its attempt has what came until then. */
export interface StreamAnswer {
  readonly kind: 'stream';
}

/** An answer that was put together here, or made up. */
export interface CollectedAnswer {
  readonly kind: 'collected';
  readonly generation: Generation;
  readonly events: readonly GenerationEvent[];
}

export type Answer = DocumentAnswer | StreamAnswer | CollectedAnswer;

const nothing: Frame = { bytes: Buffer.alloc(0), event: undefined, data: undefined };

/** Events that no frame of the upstream stands for. */
export function eventsFrame(events: readonly GenerationEvent[]): ReadFrame {
  return { frame: nothing, events, plain: false };
}

/** Takes a committed stream. Exactly one of `ended` and `failed` is called, last. */
export interface StreamConsumer {
  frames(batch: readonly ReadFrame[]): void;
  /** The upstream closed; `events` is what its reader still had. */
  ended(events: readonly GenerationEvent[]): void;
  failed(error: GatewayError): void;
  /**
   * Alternative: the answer was cut at its cap. The events are its end, for consumers that write events. Absent
   * = they are passed on as a frame.
   */
  cutShort?(events: readonly GenerationEvent[]): void;
}

/** As for a document (answer-body.ts). */
const maxLength = 64 * 1024 * 1024;
/** The approximate size of an event without its text. */
const overhead = 64;

export interface CollectorOwner {
  complete(generation: Generation): void;
  failed(error: GatewayError): void;
}

/** Collects a stream for a client that wants a document. */
export class StreamCollector implements StreamConsumer {
  readonly #collector: Collector;
  readonly #owner: CollectorOwner;
  #over = false;
  #length = 0;

  constructor(collector: Collector, owner: CollectorOwner) {
    this.#collector = collector;
    this.#owner = owner;
  }

  frames(batch: readonly ReadFrame[]): void {
    for (const { events } of batch) this.#add(events);
  }

  ended(events: readonly GenerationEvent[]): void {
    this.#add(events);
    this.failed(new GatewayError('stream_interrupted', 'The upstream closed before its end.'));
  }

  failed(error: GatewayError): void {
    if (this.#over) return;
    this.#over = true;
    this.#owner.failed(error);
  }

  #add(events: readonly GenerationEvent[]): void {
    for (const event of events) {
      if (this.#over) return;
      this.#length += overhead + (event.type === 'part-delta' ? event.delta.length : 0);
      if (event.type === 'error') this.failed(event.error);
      else if (this.#length > maxLength)
        this.failed(
          new GatewayError('upstream_invalid', 'The upstream sent an answer beyond 64 MiB.'),
        );
      else this.#collector.add(event);
      if (event.type === 'finish') this.#complete();
    }
  }

  /** Nothing of the answer comes after its finish. */
  #complete(): void {
    const generation = this.#collector.result();
    if (generation === undefined) return;
    this.#over = true;
    this.#owner.complete(generation);
  }
}
