/**
 * Step 7 for streams. Relay forwards the bytes of frames, translate writes events; both read every event, so both
 * have the same endings: finish → terminator, failure → error frame without a terminator.
 */
import type { AnswerRelay, ClientDialect, StreamWriter } from '../core/dialect.ts';
import type { GatewayError } from '../core/errors.ts';
import type { GenerationEvent, Usage } from '../core/generation.ts';
import type { ClientSink } from './client-answer.ts';
import { eventsFrame, type ReadFrame, type StreamConsumer } from './upstream-answer.ts';

/** Settles the call, and applies back-pressure to the upstream. */
export interface StreamOwner {
  /** The client's socket is full: the upstream must pause. */
  full(): void;
  /** The proper ending was written. */
  completed(): void;
  /** An error frame was written and the answer closed. */
  broken(error: GatewayError): void;
}

export interface StreamResponderOptions {
  readonly sink: ClientSink;
  readonly dialect: ClientDialect;
  readonly requestId: string;
  readonly owner: StreamOwner;
  /** Bytes go through `relay`, or events through `writer`. */
  readonly output: { readonly relay: AnswerRelay } | { readonly writer: StreamWriter };
  /** The usage that the finish reports where the upstream did not report all of it (F55). */
  readonly usageGap: () => Usage | undefined;
  /** How many answers were asked for. */
  readonly choices: number;
}

export class StreamResponder implements StreamConsumer {
  readonly #options: StreamResponderOptions;
  #finished = false;
  #over = false;
  /** Bytes were sent since the owner last set this to false; for the keep-alive. */
  wrote = false;

  constructor(options: StreamResponderOptions) {
    this.#options = options;
  }

  frames(batch: readonly ReadFrame[]): void {
    if (this.#over) return;
    const { output } = this.#options;
    if ('relay' in output) this.#relay(batch, output.relay);
    else this.#translate(batch, output.writer);
  }

  ended(events: readonly GenerationEvent[]): void {
    if (this.#over) return;
    const { output } = this.#options;
    const failure = events.find((event) => event.type === 'error');
    if (failure !== undefined) return this.failed(failure.error);
    if (events.some((event) => event.type === 'finish')) this.#finished = true;
    if ('relay' in output) this.#complete(output.relay.ending(this.#options.usageGap()));
    else this.#complete(this.#render(events, output.writer) + output.writer.end());
  }

  failed(error: GatewayError): void {
    if (this.#over) return;
    this.#over = true;
    const { sink, dialect, requestId, owner } = this.#options;
    sink.end(this.#own.fail?.(error, requestId) ?? dialect.writeStreamError(error, requestId));
    owner.broken(error);
  }

  /** A harmless frame for silent times. */
  keepAlive(): string {
    return this.#own.keepAlive?.() ?? this.#options.dialect.keepAlive(true);
  }

  get #own(): Pick<StreamWriter, 'fail' | 'keepAlive'> {
    const { output } = this.#options;
    return 'relay' in output ? output.relay : output.writer;
  }

  cutShort(events: readonly GenerationEvent[]): void {
    if (this.#over) return;
    const { output, choices } = this.#options;
    if ('writer' in output) return this.#translate([eventsFrame(events)], output.writer);
    const counted = events.find((event) => event.type === 'usage');
    this.#complete(output.relay.cutShort(counted?.usage ?? {}, choices));
  }

  #relay(batch: readonly ReadFrame[], relay: AnswerRelay): void {
    const pieces: Buffer[] = [];
    for (const { frame, events, plain } of batch) {
      let gap: Usage | undefined;
      for (const event of events) {
        if (event.type === 'finish') {
          this.#finished = true;
          gap = this.#options.usageGap();
        }
        if (event.type === 'error') {
          this.#send(join(pieces));
          return this.failed(event.error);
        }
      }
      const bytes =
        plain && relay.plainFrame !== undefined
          ? relay.plainFrame(frame)
          : relay.frame(frame, events, gap);
      if (bytes !== undefined) pieces.push(bytes);
      if (relay.ended) break;
    }
    if (relay.ended && this.#finished) this.#complete(join(pieces));
    else this.#send(join(pieces));
  }

  #translate(batch: readonly ReadFrame[], writer: StreamWriter): void {
    let text = '';
    for (const { events } of batch) {
      const failure = events.find((event) => event.type === 'error');
      if (failure !== undefined) {
        this.#send(text);
        return this.failed(failure.error);
      }
      text += this.#render(events, writer);
      if (this.#finished) return this.#complete(text + writer.end());
    }
    this.#send(text);
  }

  #render(events: readonly GenerationEvent[], writer: StreamWriter): string {
    let text = '';
    for (const event of events) {
      if (event.type === 'finish') {
        this.#finished = true;
        const gap = this.#options.usageGap();
        if (gap !== undefined) text += writer.write({ type: 'usage', usage: gap });
      }
      text += writer.write(event);
    }
    return text;
  }

  #send(bytes: Buffer | string): void {
    if (bytes.length === 0) return;
    this.wrote = true;
    if (!this.#options.sink.write(bytes)) this.#options.owner.full();
  }

  #complete(last: Buffer | string): void {
    this.#over = true;
    this.#options.sink.end(last);
    this.#options.owner.completed();
  }
}

const nothing = Buffer.alloc(0);

/** One buffer of all pieces; without a copy when they lie side by side in memory. */
function join(pieces: readonly Buffer[]): Buffer {
  const first = pieces[0];
  if (first === undefined) return nothing;
  if (pieces.length === 1) return first;
  let end = first.byteOffset;
  for (const piece of pieces) {
    if (piece.buffer !== first.buffer || piece.byteOffset !== end) return Buffer.concat(pieces);
    end += piece.length;
  }
  return Buffer.from(first.buffer, first.byteOffset, end - first.byteOffset);
}
