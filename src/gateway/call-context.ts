/**
 * What the client's dialect may know of a call while it writes the answer. A class, for speed: V8 gives
 * a literal with a getter a hidden class of its own each time, which lives until a full collection. The
 * heap stood twice as high with them, and young collections took more than twice as long.
 */
import type { Conversation } from '../core/conversation.ts';
import type { AnswerContext, Sealing } from '../core/dialect.ts';
import type { Notes } from '../core/notes.ts';
import type { NewId } from '../core/runtime.ts';
import type { Call, Gateway } from './call.ts';
import type { Meter } from './meter.ts';
import type { Tries } from './tries.ts';

export class CallContext implements AnswerContext {
  readonly model: string;
  readonly requestId: string;
  readonly createdSeconds: number;
  readonly wantsUsageFrame: boolean;
  readonly newId: NewId;
  readonly notes: Notes;
  readonly conversation?: Conversation;
  readonly sealing?: Sealing;
  readonly #meter: Meter;

  constructor({ clock, newId }: Gateway, call: Call, { meter, notes, prepared }: Tries) {
    this.model = call.head.model;
    this.requestId = call.id;
    this.createdSeconds = Math.floor(clock.wall() / 1000);
    this.wantsUsageFrame = call.head.wantsUsageFrame;
    this.newId = newId;
    this.notes = notes;
    if (prepared?.conversation !== undefined) this.conversation = prepared.conversation;
    if (prepared?.watch?.sealing !== undefined) this.sealing = prepared.watch.sealing;
    this.#meter = meter;
  }

  /** Guessed only if the answer has to tell it before the upstream does. */
  get promptTokensEstimate(): number {
    return this.#meter.promptEstimate;
  }
}
