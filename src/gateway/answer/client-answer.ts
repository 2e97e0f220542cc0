/** The answer to the client of one call: status line, headers, then a document, a stream or an error. */
import { type GatewayError, transientCodes } from '../../core/errors.ts';
import type {
  StreamOpening,
  AnswerRelay,
  ClientDialect,
  StreamWriter,
} from '../../core/dialect.ts';
import type { Call, Receipt } from '../../core/call.ts';
import { maxRetryAfterMs } from '../../wire/upstream-error.ts';
import type { AttemptLoop } from '../attempt-loop.ts';
import type { GenerationEvent, Usage } from '../../core/generation.ts';
import { eventsFrame, type ReadFrame, type StreamConsumer } from './upstream-answer.ts';

export interface ClientAnswerOptions {
  readonly call: Call;
  readonly sink: ClientSink;
  /** Headers of every answer, with their current values. */
  readonly headers: () => string[];
  readonly random: () => number;
}

export class ClientAnswer {
  readonly #options: ClientAnswerOptions;
  #status: number | undefined;

  constructor(options: ClientAnswerOptions) {
    this.#options = options;
  }

  /** The status that was sent; undefined before that. */
  get status(): number | undefined {
    return this.#status;
  }

  /** Sends status and headers of a stream, once. */
  startStream(): void {
    if (this.#status !== undefined) return;
    this.#status = 200;
    this.#options.sink.start(200, [...this.#options.headers(), ...streamHeaders]);
  }

  /** Sends a whole answer. */
  document(body: Buffer): void {
    this.#json(200, body, []);
  }

  /**
   * A failure: as a status before the first byte, as an error frame after it.
   * @param opening of a stream that was begun before any upstream answered.
   */
  error(failure: GatewayError, opening?: StreamOpening): void {
    const { call, sink, random } = this.#options;
    const { dialect, id, head } = call;
    const earlier = head.state?.earlierItems;
    const error =
      earlier === undefined ? failure : (dialect.stored?.ownError(failure, earlier) ?? failure);
    if (this.#status !== undefined) {
      return sink.end(opening?.fail(error, id) ?? dialect.writeStreamError(error, id));
    }
    const { status, body } = dialect.writeError(error, id);
    this.#json(status, Buffer.from(JSON.stringify(body)), retryHeaders(error, random));
  }

  #json(status: number, body: Buffer, more: readonly string[]): void {
    this.#status = status;
    const { sink, headers } = this.#options;
    const all = headers();
    all.push(...more, 'content-type', 'application/json');
    all.push('content-length', String(body.length));
    sink.start(status, all);
    sink.end(body);
  }
}

/** The client's side of a call; the server implements it over a socket. */
export interface ClientSink {
  /** Sends status and headers (flat name, value, …). Once. */
  start(status: number, headers: readonly string[]): void;
  /** Sends bytes. False = the socket is full: stop until `drained` is called. */
  write(bytes: Buffer | string): boolean;
  /** Ends the answer properly, with the last bytes if any. */
  end(bytes?: Buffer | string): void;
  /** Cuts the connection: the client must see a broken answer, not an ended one. */
  cut(): void;
  /** Called once, when the call is settled. */
  settled?(receipt: Receipt): void;
  /**
   * Registers callbacks for a disconnect before `end`, and for room in a full socket.
   * @param stalledMs how long the client may leave the last bytes unread after `end` (G9).
   */
  observe(observer: ClientObserver, stalledMs?: number): void;
}

export interface ClientObserver {
  left(): void;
  drained(): void;
}

/**
 * Flat headers of every answer; the caller adds its content headers.
 * @param ownNotes the notes in the client's own words
 */
export function answerHeaders(
  requestId: string,
  { attempt, count }: Pick<AttemptLoop, 'attempt' | 'count'>,
  ownNotes: (notes: string) => string,
): string[] {
  const headers = ['x-request-id', requestId, 'request-id', requestId];
  if (attempt !== undefined) {
    const { provider, model } = attempt.target;
    // Header values are latin-1 without control characters; anything else becomes `?`.
    headers.push('x-gateway-target', `${provider.id}/${model}`.replace(/[^\x20-\x7e]/g, '?'));
    if (attempt.mode !== undefined) headers.push('x-gateway-mode', attempt.mode);
  }
  headers.push('x-gateway-attempts', String(count));
  headers.push('x-gateway-usage', attempt?.meter.source ?? 'estimated');
  const notes = attempt?.notes.header() ?? '';
  if (notes !== '') headers.push('x-gateway-notes', ownNotes(notes));
  return headers;
}

/** Headers of a stream: intermediaries must not buffer it. */
export const streamHeaders: readonly string[] = [
  'content-type',
  'text/event-stream; charset=utf-8',
  'cache-control',
  'no-cache, no-transform',
  'x-accel-buffering',
  'no',
];

/**
 * `retry-after`, `retry-after-ms` and `x-should-retry` of an error. An upstream's own wait is forwarded; above
 * 60 s it becomes "do not retry", since both SDKs would sleep through it.
 */
export function retryHeaders(error: GatewayError, random: () => number): readonly string[] {
  if (error.code === 'unauthenticated') return ['www-authenticate', 'Bearer'];
  // Retries cannot succeed, which the answer says (E9).
  if (!transientCodes.has(error.code)) return ['x-should-retry', 'false'];
  if (
    error.code !== 'rate_limited' &&
    error.code !== 'overloaded' &&
    error.code !== 'store_unavailable' &&
    error.retryAfterMs === undefined
  ) {
    return [];
  }
  const wait = error.retryAfterMs ?? 1000 + Math.floor(random() * 4000);
  if (wait > maxRetryAfterMs) return ['x-should-retry', 'false'];
  return ['retry-after', String(Math.ceil(wait / 1000)), 'retry-after-ms', String(Math.ceil(wait))];
}

// Step 7 for streams. Relay forwards the bytes of frames, translate writes events; both read every event, so both
// have the same endings: finish → terminator, failure → error frame without a terminator.

/** Settles the call, and applies back-pressure to the upstream. */
export interface StreamOwner {
  /** The client's socket is full: the upstream must pause. */
  full(): void;
  /** The proper ending was written. */
  completed(): void;
  /** An error frame was written and the answer closed. */
  broken(error: GatewayError): void;
}

interface StreamResponderOptions {
  readonly sink: ClientSink;
  readonly dialect: ClientDialect;
  readonly requestId: string;
  readonly owner: StreamOwner;
  /** Bytes go through `relay`, or events through `writer`. */
  readonly output: { readonly relay: AnswerRelay } | { readonly writer: StreamWriter };
  /** The usage that the finish reports where the upstream did not report all of it (F55). */
  readonly usageGap: () => Usage | undefined;
  /** How many answers were requested. */
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
    if (failure !== undefined) return this.#fail(failure.error, events);
    if (events.some((event) => event.type === 'finish')) this.#finished = true;
    if ('relay' in output) this.#complete(output.relay.ending(this.#options.usageGap()));
    else this.#complete(this.#render(events, output.writer) + output.writer.end());
  }

  failed(error: GatewayError): void {
    this.#fail(error, []);
  }

  /** @param events of the upstream frame that has the failure */
  #fail(error: GatewayError, events: readonly GenerationEvent[]): void {
    if (this.#over) return;
    this.#over = true;
    const { sink, dialect, requestId, owner } = this.#options;
    const usage = events.find((event) => event.type === 'usage')?.usage;
    const words = this.#own.fail?.(error, requestId, usage);
    sink.end(words ?? dialect.writeStreamError(error, requestId));
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
    let pieces: Buffer[] | undefined;
    for (const read of batch) {
      const failure = read.plain ? undefined : read.events.find(isFailure);
      if (failure !== undefined) {
        this.#send(join(pieces));
        return this.#fail(failure.error, read.events);
      }
      const bytes = this.#relayed(read, relay);
      if (bytes !== undefined) {
        if (pieces === undefined) pieces = [bytes];
        else pieces.push(bytes);
      }
      if (relay.ended) break;
    }
    if (relay.ended && this.#finished) this.#complete(join(pieces));
    else this.#send(join(pieces));
  }

  #relayed({ frame, events, plain }: ReadFrame, relay: AnswerRelay): Buffer | undefined {
    // It has neither a finish nor a failure.
    if (plain && relay.plainFrame !== undefined) return relay.plainFrame(frame);
    let gap: Usage | undefined;
    if (events.some(({ type }) => type === 'finish')) {
      this.#finished = true;
      gap = this.#options.usageGap();
    }
    return relay.frame(frame, events, gap);
  }

  #translate(batch: readonly ReadFrame[], writer: StreamWriter): void {
    let text = '';
    for (const { events } of batch) {
      const failure = events.find((event) => event.type === 'error');
      if (failure !== undefined) {
        this.#send(text);
        return this.#fail(failure.error, events);
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

function isFailure(event: GenerationEvent): event is Extract<GenerationEvent, { type: 'error' }> {
  return event.type === 'error';
}

/** One buffer of all pieces; without a copy when they lie side by side in memory. */
function join(pieces: readonly Buffer[] | undefined): Buffer {
  const first = pieces?.[0];
  if (pieces === undefined || first === undefined) return nothing;
  if (pieces.length === 1) return first;
  let end = first.byteOffset;
  for (const piece of pieces) {
    if (piece.buffer !== first.buffer || piece.byteOffset !== end) return Buffer.concat(pieces);
    end += piece.length;
  }
  return Buffer.from(first.buffer, first.byteOffset, end - first.byteOffset);
}
