/** What an upstream answered, as far as it was read, and who takes it. */
import type { Frame } from '../core/dialect.ts';
import type { GatewayError } from '../core/errors.ts';
import type { Generation, GenerationEvent } from '../core/generation.ts';
import type { WholeDocument } from '../core/json-answer.ts';

/** A frame and what it means. */
export interface ReadFrame {
  readonly frame: Frame;
  readonly events: readonly GenerationEvent[];
  /** Its reader says that it goes on with a text, and says nothing else. */
  readonly plain: boolean;
}

/** A whole JSON answer. */
export interface DocumentAnswer extends WholeDocument {
  readonly kind: 'document';
  readonly generation: Generation;
  /** The events of a stream of it; without its finish where the turn is to be gone on with. */
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
   * Instead of either: the answer was cut at its cap. The events are its end, for whoever writes events.
   * Absent = they are handed over as a frame.
   */
  cutShort?(events: readonly GenerationEvent[]): void;
}
