/**
 * Steps 5 and 6 for one target: send, wait for the commit point, read. Before the commit point every
 * failure ends the attempt quietly, so that another target may be tried; behind it the consumer gets
 * the frames as they come. Callbacks, not promises: this runs for every chunk.
 */
import type { Frame, StreamReader } from '../core/dialect.ts';
import { asGatewayError, GatewayError } from '../core/errors.ts';
import { isContent, replay, type GenerationEvent } from '../core/generation.ts';
import type { Target } from '../core/provider.ts';
import type { Clock } from '../core/runtime.ts';
import type { UpstreamTraits } from '../core/traits.ts';
import type {
  Exchange,
  ResponseHeaders,
  UpstreamHandler,
  UpstreamRequest,
} from '../wire/exchange.ts';
import type { HttpClient } from '../wire/http-client.ts';
import { SseSplitter } from '../wire/sse.ts';
import { AnswerBody } from './answer-body.ts';
import { kindOf } from './answer-kind.ts';
import type { TargetHealth } from './health.ts';
import { maskEvents } from './mask-credentials.ts';
import type { Meter } from './meter.ts';
import type { TurnRounds } from './turn-rounds.ts';
import type { Answer, DocumentAnswer, ReadFrame, StreamConsumer } from './upstream-answer.ts';

/** Frames without any content that are held before the commit point. */
const maxHeldBytes = 1024 * 1024;
/** How long a usage report may come after the finish (F58). */
const usageGraceMs = 2000;
/** How long pings and comments alone count as a sign that the model goes on (F49). */
const pingsMs = 5 * 60_000;

type Phase = 'waiting' | 'error-body' | 'document' | 'stream' | 'over';

export interface AttemptOptions {
  readonly target: Target;
  readonly meter: Meter;
  readonly clock: Clock;
  readonly client: HttpClient;
  /** Told of a target that could not be reached, though nobody waits for it any more (R6). */
  readonly health?: Pick<TargetHealth, 'failed'>;
  /** What is known of the model, with what was learned of it. */
  readonly traits: UpstreamTraits;
  /** A stream was asked for; its first event is due sooner than a whole document. */
  readonly streamed: boolean;
  /** The model may reason before its first event. */
  readonly reasons: boolean;
  /** Present when this may be one of several requests that make one answer. */
  readonly rounds: TurnRounds | undefined;
}

/** One try at one target. */
export class Attempt implements UpstreamHandler {
  readonly target: Target;
  readonly #meter: Meter;
  readonly #clock: Clock;
  readonly #client: HttpClient;
  readonly #health: Pick<TargetHealth, 'failed'> | undefined;
  readonly #streamed: boolean;
  readonly #traits: UpstreamTraits;
  readonly #rounds: TurnRounds | undefined;
  readonly #settled = Promise.withResolvers<Answer>();
  readonly #splitter = new SseSplitter();
  readonly #startedAt: number;
  #exchange: Exchange | undefined;
  #phase: Phase = 'waiting';
  #status = 0;
  #headers: ResponseHeaders = {};
  readonly #body = new AnswerBody();
  #reader: StreamReader | undefined;
  #held: ReadFrame[] = [];
  #heldBytes = 0;
  #consumer: StreamConsumer | undefined;
  #committed = false;
  #finishReadAt: number | undefined;
  #lastActivityAt: number;
  /** Of events; pings and comments are none. */
  #lastEventAt: number;
  readonly #reasons: boolean;
  readonly #firstEventMs: number;
  /** Bytes of events since `#rateSince`. */
  #rateBytes = 0;
  #rateSince = 0;
  /** Monotonic time of the first event, or of the document. */
  firstEventAt: number | undefined;

  constructor(options: AttemptOptions) {
    this.target = options.target;
    this.#meter = options.meter;
    this.#clock = options.clock;
    this.#client = options.client;
    this.#health = options.health;
    this.#streamed = options.streamed;
    this.#traits = options.traits;
    this.#rounds = options.rounds;
    this.#startedAt = options.clock.now();
    this.#lastActivityAt = this.#startedAt;
    this.#lastEventAt = this.#startedAt;
    const { firstEventMs, reasoningMs } = options.target.timeouts;
    this.#reasons = options.reasons;
    this.#firstEventMs = options.reasons ? (reasoningMs ?? firstEventMs) : firstEventMs;
  }

  /** Sends the request. Resolves at the commit point; rejects with GatewayError before it. */
  send(request: UpstreamRequest): Promise<Answer> {
    this.#exchange = this.#client.send(request, this);
    return this.#settled.promise;
  }

  /**
   * Hands the committed stream over, first of all what was held. Nothing keeps that then: it may be a read of 64 KB and
   * all of its texts, beside a client that reads nothing (G9).
   */
  attach(consumer: StreamConsumer): void {
    this.#consumer = consumer;
    consumer.frames(this.#held.splice(0));
  }

  pause(): void {
    this.#exchange?.pause();
  }

  resume(): void {
    this.touch();
    this.#exchange?.resume();
  }

  /** Ends the attempt without a word; the upstream connection is closed. */
  abort(): void {
    this.#phase = 'over';
    this.#exchange?.abort();
    // Errors carry a stack, which is dear: none is made for the many calls that are simply done.
    if (!this.#committed) this.#settled.reject(new GatewayError('canceled', 'The client left.'));
  }

  /** Ends the attempt as failed; used for deadlines and faults of the answer. */
  fail(error: GatewayError): void {
    if (this.#phase === 'over') return;
    this.#phase = 'over';
    this.#exchange?.abort();
    if (this.#committed) this.#consumer?.failed(error);
    else this.#settled.reject(error);
  }

  /** Compares the attempt's clocks with the time; the sweeper calls it. */
  check(now: number): void {
    if (this.#phase === 'over' || this.#waits) return;
    if (this.#finishReadAt !== undefined) {
      // Behind a finish silence is no fault: the answer is whole.
      if (now - this.#finishReadAt <= usageGraceMs) return;
      this.#exchange?.abort();
      this.#endStream();
    } else if (this.firstEventAt === undefined) {
      // Asked for a stream it may send a document all the same.
      const streams = this.#streamed && this.#phase !== 'document';
      const limit = streams ? this.#firstEventMs : this.target.timeouts.documentMs;
      if (now - this.#startedAt > limit) {
        this.#timeOut(`The model did not answer within ${limit} ms.`);
      }
    } else {
      this.#checkFlow(now);
    }
  }

  /** Whether a stream that began still comes, and fast enough. */
  #checkFlow(now: number): void {
    const { minBytesPerS, rateWindowMs = 30_000 } = this.target.timeouts;
    const idleMs = this.#idleMs;
    if (now - this.#lastActivityAt > idleMs) {
      this.#timeOut(`The model stopped answering for more than ${idleMs} ms.`);
    } else if (now - this.#lastEventAt > Math.max(idleMs, pingsMs)) {
      this.#timeOut('The model sent nothing but pings for more than five minutes.');
    } else if (!this.#committed || minBytesPerS === undefined) {
      return;
    } else if (now - this.#rateSince > rateWindowMs) {
      const least = (minBytesPerS * (now - this.#rateSince)) / 1000;
      if (this.#rateBytes < least) {
        this.#timeOut(`The model answered with less than ${minBytesPerS} bytes a second.`);
      }
      this.#measureFrom(now);
    }
  }

  /** A model may say that it is there, and reason unseen before it says more. */
  get #idleMs(): number {
    const { idleMs } = this.target.timeouts;
    return this.#reasons && !this.#committed ? Math.max(idleMs, this.#firstEventMs) : idleMs;
  }

  #measureFrom(now: number): void {
    this.#rateSince = now;
    this.#rateBytes = 0;
  }

  #timeOut(why: string): void {
    this.fail(new GatewayError('timeout', why));
  }

  /** HTTP status of the answer; 0 while none came. */
  get status(): number {
    return this.#status;
  }

  /** What the upstream sent with an error status, as far as it came; undefined without one. */
  get errorBody(): string | undefined {
    return this.#status >= 400 ? this.#body.errorText : undefined;
  }

  /** What came and waits for its turn of the loop is no silence of the model. */
  get #waits(): boolean {
    return this.#exchange?.waits === true;
  }

  /** The answer has begun to come: an event of a stream, bytes of a document, or what waits for its turn. */
  get begun(): boolean {
    return this.firstEventAt !== undefined || this.#phase === 'document' || this.#waits;
  }

  /** Nothing more will come of it. */
  get over(): boolean {
    return this.#phase === 'over';
  }

  /** The model has said all of its answer; only a report of its usage may follow. */
  get finished(): boolean {
    return this.#finishReadAt !== undefined;
  }

  /** A paused upstream is not an idle one. */
  touch(): void {
    const now = this.#clock.now();
    this.#lastActivityAt = now;
    this.#lastEventAt = now;
    this.#measureFrom(now);
  }

  head(status: number, headers: ResponseHeaders): void {
    this.#status = status;
    this.#headers = headers;
    if (status >= 400) {
      this.#phase = 'error-body';
    } else if (status !== 200) {
      this.fail(
        new GatewayError('upstream_invalid', `The upstream answered with status ${status}.`, {
          // Redirects stay what they are (F28); other odd statuses may pass (F30).
          repeat: status >= 300 ? 'never' : 'once',
          ...(headers.location === undefined ? {} : { location: withoutQuery(headers.location) }),
        }),
      );
    } else {
      const type = headers['content-type'] ?? '';
      if (type.includes('text/event-stream')) this.#beginStream();
      // Any other type, JSON included, is looked at when its first bytes are there (F34).
    }
  }

  data(chunk: Buffer): void {
    try {
      this.#read(chunk);
    } catch (error) {
      this.fail(asGatewayError(error));
    }
  }

  end(): void {
    try {
      if (this.#phase === 'stream') this.#endStream();
      else if (this.#phase === 'document') this.#endDocument();
      else if (this.#phase === 'error-body') this.fail(this.#readError());
      else this.fail(emptyAnswer('The upstream sent an empty answer.'));
    } catch (error) {
      this.fail(asGatewayError(error));
    }
  }

  failed(error: GatewayError): void {
    if (this.#phase === 'error-body') {
      this.fail(this.#readError());
    } else if (this.#phase === 'stream' && this.#finishReadAt !== undefined) {
      this.#endStream();
    } else if (this.#phase === 'document' && error.code === 'upstream_unavailable') {
      this.fail(
        new GatewayError('upstream_invalid', 'The upstream closed in the middle of its answer.', {
          cause: error,
          repeat: 'may',
        }),
      );
    } else if (this.#committed && error.code === 'upstream_unavailable') {
      this.fail(
        new GatewayError('stream_interrupted', 'The upstream closed the stream before its end.', {
          cause: error,
        }),
      );
    } else {
      this.fail(error);
    }
  }

  unreachable(error: GatewayError): void {
    this.#health?.failed(this.target, error);
  }

  #read(chunk: Buffer): void {
    switch (this.#phase) {
      case 'waiting':
        this.#sniff(chunk);
        return;
      case 'stream':
        this.#readStream(this.#splitter.push(chunk));
        return;
      case 'document':
        this.#lastActivityAt = this.#clock.now();
        this.#body.add(chunk);
        return;
      case 'error-body':
        this.#lastActivityAt = this.#clock.now();
        this.#body.addError(chunk);
        return;
      case 'over':
        return;
      default:
        this.#phase satisfies never;
    }
  }

  #sniff(chunk: Buffer): void {
    const bytes = this.#body.sniffed(chunk);
    const kind = kindOf(bytes);
    if (kind === 'unknown') return;
    if (kind === 'neither') {
      this.fail(
        new GatewayError('upstream_invalid', 'The upstream answered with neither JSON nor events.'),
      );
      return;
    }
    this.#body.clear();
    if (kind === 'stream') this.#beginStream();
    else this.#phase = 'document';
    this.#read(bytes);
  }

  #beginStream(): void {
    this.#phase = 'stream';
    this.#reader = this.target.provider.dialect.streamReader(this.#traits);
  }

  #readStream(frames: readonly Frame[]): void {
    const reader = this.#reader;
    if (reader === undefined || frames.length === 0) return;
    const now = this.#clock.now();
    this.#lastActivityAt = now;
    const batch: ReadFrame[] = [];
    let content = this.#committed;
    for (const frame of frames) {
      const events = this.#eventsOf(reader, frame, batch);
      if (events.length > 0) {
        this.#sawEvent(frame.bytes.length, now);
        content = this.#observe(events, content);
        if (this.over) return;
      }
      batch.push({ frame, events, plain: reader.plain === true });
    }
    if (reader.finishPending) this.#finishReadAt ??= now;
    if (reader.besideLength !== undefined) this.#meter.beside(reader.besideLength);
    if (this.#committed) this.#consumer?.frames(batch);
    else this.#hold(batch, content);
  }

  /** What one read brought before a broken frame is the client's: it was counted, and will be charged. */
  #eventsOf(
    reader: StreamReader,
    frame: Frame,
    before: readonly ReadFrame[],
  ): readonly GenerationEvent[] {
    try {
      return this.#seen(reader.read(frame));
    } catch (error) {
      if (this.#committed && before.length > 0) this.#consumer?.frames(before);
      throw error;
    }
  }

  #sawEvent(bytes: number, now: number): void {
    this.#lastEventAt = now;
    this.#rateBytes += bytes;
    if (this.firstEventAt !== undefined) return;
    this.firstEventAt = now;
  }

  /** The events as everybody is to see them. */
  #seen(read: readonly GenerationEvent[]): readonly GenerationEvent[] {
    const events = maskEvents(read, this.target.provider.generate.headers);
    return this.#rounds === undefined ? events : this.#rounds.pass(events);
  }

  /** Meters the events; an error before any content fails the attempt. True once content was seen. */
  #observe(events: readonly GenerationEvent[], contentBefore: boolean): boolean {
    let content = contentBefore;
    for (const event of events) {
      this.#meter.see(event);
      if (isContent(event)) content = true;
      else if (event.type === 'error' && !content) this.fail(event.error);
    }
    return content;
  }

  #hold(batch: readonly ReadFrame[], content: boolean): void {
    for (const read of batch) {
      this.#held.push(read);
      this.#heldBytes += read.frame.bytes.length;
    }
    if (content) {
      this.#committed = true;
      this.#measureFrom(this.#lastEventAt);
      // The promise is answered a tick later: nothing may reach the consumer before what was held.
      this.#exchange?.pause();
      this.#settled.resolve({ kind: 'stream' });
    } else if (this.#heldBytes > maxHeldBytes) {
      this.fail(new GatewayError('upstream_invalid', 'The upstream sent only empty events.'));
    }
  }

  /** Never throws: a timer and a broken connection end a stream too, and nobody catches there. */
  #endStream(): void {
    try {
      this.#readRest();
    } catch (error) {
      const failure = asGatewayError(error);
      // Behind the end, `fail` has nothing to end any more; the consumer still waits for a word.
      if (this.over) this.#consumer?.failed(failure);
      else this.fail(failure);
    }
  }

  #readRest(): void {
    const reader = this.#reader;
    if (reader === undefined || this.#phase === 'over') return;
    const last = this.#splitter.end();
    // Half a line behind the last event says nothing, and passed on it would spoil the terminator (F52).
    if (last?.data !== undefined && last.data !== '') this.#readStream([last]);
    if (this.over) return;
    const events = this.#seen(reader.end());
    for (const event of events) this.#meter.see(event);
    if (!this.#committed) return this.fail(this.#withoutContent(events));
    this.#phase = 'over';
    this.#consumer?.ended(events);
  }

  /** Why a stream without content is no answer. Without any event it broke nothing off: it was empty. */
  #withoutContent(events: readonly GenerationEvent[]): GatewayError {
    const broken = events.find((event) => event.type === 'error');
    if (this.firstEventAt !== undefined && broken !== undefined) return broken.error;
    return emptyAnswer('The upstream sent an empty stream.');
  }

  #endDocument(): void {
    const answer = this.#body.document(this.target.provider, this.#traits);
    if (!(answer instanceof Promise)) this.#takeDocument(answer);
    else {
      answer
        .then((read) => this.#takeDocument(read))
        .catch((error: unknown) => this.fail(asGatewayError(error)));
    }
  }

  #takeDocument(answer: Omit<DocumentAnswer, 'events'>): void {
    // While a long one was read its time ran out, or its client left.
    if (this.over) return;
    this.firstEventAt = this.#clock.now();
    const events = this.#seen(replay(answer.generation));
    for (const event of events) this.#meter.see(event);
    this.#phase = 'over';
    this.#committed = true;
    this.#settled.resolve({ ...answer, events });
  }

  #readError(): GatewayError {
    const wallMs = this.#clock.wall();
    const head = { status: this.#status, headers: this.#headers, wallMs };
    return this.#body.error(this.target.provider, head);
  }
}

/** Where it pointed, cut: behind the question mark there may be a secret. */
function withoutQuery(location: string): string {
  return (/^[^?#]*/.exec(location)?.[0] ?? '').slice(0, 256);
}

/** F29: happens once in a while, and then not again. */
function emptyAnswer(message: string): GatewayError {
  return new GatewayError('upstream_invalid', message, { repeat: 'once' });
}
