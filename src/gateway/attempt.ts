/**
 * One request to one target (steps 5 and 6): send it, wait for the commit point, read its answer, time it out,
 * account for it. A failure before the commit point rejects the promise of `send`, so that another target may be
 * tried; after it the consumer gets the frames as they come. Callbacks, not promises: this runs for every chunk.
 */
import type { Frame, FrameSplitter, StreamReader } from '../core/dialect.ts';
import { GatewayError, asGatewayError } from '../core/errors.ts';
import { type GenerationEvent, isContent, replay } from '../core/generation.ts';
import { NoteList } from '../core/notes.ts';
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
import { AnswerBody, contentStart, kindOf } from './answer/answer-body.ts';
import { Deadlines } from './deadlines.ts';
import type { TargetHealth } from './targets/health.ts';
import type { LongBodies } from './long-bodies/body-thread.ts';
import { maskEvents } from './mask-credentials.ts';
import type { Meter } from './answer/meter.ts';
import type { AttemptReceipt, ClientEnd, CutReason, Mode } from '../core/call.ts';
import type { TurnRounds } from './answer/translated-turn.ts';
import type {
  Answer,
  DocumentAnswer,
  ReadFrame,
  StreamConsumer,
} from './answer/upstream-answer.ts';
import type { PreparedRequest } from './upstream-request.ts';

/** Maximum size of frames without content that are held before the commit point. */
const maxHeldBytes = 1024 * 1024;
/** How long a usage report may come after the finish (F58). */
const usageGraceMs = 2000;

const none: readonly ReadFrame[] = [];
/** Until an answer is known to be a stream. */
const noSplitter: FrameSplitter = { push: () => [], end: () => undefined };

type Phase = 'unsent' | 'waiting' | 'error-body' | 'document' | 'stream' | 'over';

export interface AttemptOptions {
  readonly target: Target;
  /** Meters this answer; the requests of a paused turn share it. */
  readonly meter: Meter;
  readonly clock: Clock;
  readonly client: HttpClient;
  /** Parses long documents. */
  readonly bodies: LongBodies;
  /** Notified of a target that was unreachable after the attempt was aborted (R6). */
  readonly health?: Pick<TargetHealth, 'failed'>;
  /** Id of its span, if the call is traced. */
  readonly spanId?: string | undefined;
}

/**
 * Used by the attempt loop, `handle.ts` and the sweeper; it knows nothing of other attempts.
 *
 * Its phase: `unsent` → `waiting` → `stream`, `document` or `error-body` → `over`. `stream` and `document` follow from the
 * type or the first bytes of the answer, `error-body` by its status. Other state, and when it changes:
 *
 * | member | set | cleared |
 * |---|---|---|
 * | `chargeable` | by `send`; from the beginning in further requests of a paused turn | when the attempt is given up |
 * | `#content` | with the first content of a stream | – |
 * | `#committed` | with the first content of a stream, with a document that was read; then `send` resolves | – |
 * | `#reading` | while a long document that has arrived is parsed in the worker thread | – |
 * | `#endsWhenAttached` | with the end of a stream whose first content was its last, unfinished frame | – |
 * | `#finishReadAt` | with the finish of a stream; only a usage report may follow | – |
 * | `cut` | when the loop ends a good answer before its upstream does | – |
 * | `loads` | while it counts in the load of its target | by the loop, at its end |
 * | `ended` | when its receipt was written, or none is needed | – |
 */
export class Attempt implements UpstreamHandler {
  readonly target: Target;
  readonly meter: Meter;
  readonly notes: NoteList;
  /** Monotonic ms. Preparing the request is part of the attempt. */
  readonly startedAt: number;
  readonly #clock: Clock;
  readonly #client: HttpClient;
  readonly #bodies: LongBodies;
  readonly #health: Pick<TargetHealth, 'failed'> | undefined;
  /** Id of its span, if the call is traced. */
  readonly spanId: string | undefined;
  /** The prepared request; the first one of a paused turn. */
  prepared: PreparedRequest | undefined;
  mode: Mode | undefined;
  /** The client gets no frame of a stream as the upstream sent it. */
  rewritten = false;
  /** How many answers the client requests. */
  choices = 1;
  /** The headers that its credential added; absent where the credential is a fixed header of its endpoint. */
  credentialHeaders: readonly string[] | undefined;
  /** Present if several requests may make up one answer. */
  rounds: TurnRounds | undefined;
  /** Monotonic ms at which the answer began, with the first request of a paused turn; set at the commit point. */
  answeredAt: number | undefined;
  /** A request was sent and not given up: its usage is charged. */
  chargeable = false;
  /** Why the answer was ended before its upstream ended. */
  cut: CutReason | undefined;
  /** It counts in the load of its target. */
  loads = false;
  /** Its receipt was written. */
  ended = false;
  readonly #settled = Promise.withResolvers<Answer>();
  #splitter = noSplitter;
  #exchange: Exchange | undefined;
  #phase: Phase = 'unsent';
  /** The gateway itself ended the stream, since nothing came after its finish. */
  #silent = false;
  #sent = false;
  readonly #deadlines: Deadlines;
  /** A whole document is read in the worker thread. */
  #reading = false;
  #status = 0;
  #headers: ResponseHeaders = {};
  readonly #body = new AnswerBody();
  #reader: StreamReader | undefined;
  #held: ReadFrame[] = [];
  #heldBytes = 0;
  #consumer: StreamConsumer | undefined;
  /** The upstream closed with its first content, before there was a consumer. */
  #endsWhenAttached = false;
  /** Content of a stream was read. */
  #content = false;
  #committed = false;
  #finishReadAt: number | undefined;
  /** Monotonic time of the first event, or of the document. */
  firstEventAt: number | undefined;

  /** @param previous the previous request of the same paused turn. */
  constructor(
    { target, meter, clock, client, bodies, health, spanId }: AttemptOptions,
    previous?: Attempt,
  ) {
    this.target = target;
    this.meter = meter;
    this.#clock = clock;
    this.#client = client;
    this.#bodies = bodies;
    this.#health = health;
    this.spanId = spanId;
    this.startedAt = clock.now();
    this.#deadlines = new Deadlines(target.timeouts);
    this.notes = previous?.notes ?? new NoteList();
    if (previous === undefined) return;
    this.prepared = previous.prepared;
    this.mode = previous.mode;
    this.rewritten = previous.rewritten;
    this.rounds = previous.rounds;
    this.answeredAt = previous.answeredAt;
    this.chargeable = true;
  }

  /** The traits with which its answer is read. */
  get traits(): UpstreamTraits {
    return this.prepared?.traits ?? this.target.provider.traits(this.target.model);
  }

  /** A stream was requested; its first event is due sooner than a whole document. */
  get streamed(): boolean {
    return this.prepared?.streamed === true;
  }

  /**
   * Sends the request, once.
   * @param reasons the model may reason before its first event.
   * @returns resolves at the commit point. @throws GatewayError before it.
   */
  send(request: UpstreamRequest, reasons: boolean): Promise<Answer> {
    this.#phase = 'waiting';
    this.chargeable = true;
    this.#sent = true;
    this.credentialHeaders = request.credentialHeaders;
    this.#deadlines.start(this.#clock.now(), reasons);
    this.#exchange = this.#client.send(request, this);
    return this.#settled.promise;
  }

  /**
   * Passes the committed stream on, the held frames first. They are then released: a client that reads nothing
   * must not hold a read buffer of 64 KB and its texts (G9).
   */
  attach(consumer: StreamConsumer): void {
    this.#consumer = consumer;
    consumer.frames(this.#held.splice(0));
    if (this.#endsWhenAttached) this.#endStream();
  }

  pause(): void {
    this.#exchange?.pause();
  }

  resume(): void {
    this.touch();
    this.#exchange?.resume();
  }

  /** Ends the attempt without notifying the consumer; the upstream connection is closed. */
  abort(): void {
    this.#phase = 'over';
    this.#exchange?.abort();
    // Creating an error is expensive because of its stack: finished calls create none.
    if (this.#sent && !this.#committed)
      this.#settled.reject(new GatewayError('canceled', 'The client disconnected.'));
  }

  /** Fails the attempt, for deadlines and invalid answers. */
  fail(error: GatewayError): void {
    if (!this.running) return;
    this.#phase = 'over';
    this.#exchange?.abort();
    if (this.#committed) this.#consumer?.failed(error);
    else this.#settled.reject(error);
  }

  /** Checks its deadlines; called by the sweeper. */
  check(now: number): void {
    if (!this.running || this.#waits) return;
    const deadlines = this.#deadlines;
    if (this.#finishReadAt !== undefined) {
      // Silence after the finish is not a failure: the answer is complete.
      if (now - this.#finishReadAt <= usageGraceMs) return;
      this.#silent = true;
      this.#exchange?.abort();
      return this.#endStream();
    }
    if (this.#phase === 'error-body' && deadlines.stalls(now)) return this.fail(this.#readError());
    const document = this.#phase === 'document';
    const missed =
      this.firstEventAt === undefined
        ? deadlines.missedByBeginning(now, { document, streamed: this.streamed })
        : deadlines.missedByStream(now, this.#committed);
    if (missed !== undefined) this.fail(new GatewayError('timeout', missed));
  }

  /** HTTP status of the answer; 0 while none came. */
  get status(): number {
    return this.#status;
  }

  /** Data that is queued in the event loop is not silence of the model. */
  get #waits(): boolean {
    return this.#exchange?.waits === true;
  }

  /**
   * Part of the answer arrived: an event of a stream, bytes of a document, or data queued in the event loop.
   */
  get begun(): boolean {
    return this.firstEventAt !== undefined || this.#phase === 'document' || this.#waits;
  }

  /** It was sent and is not over. */
  get running(): boolean {
    return this.#phase !== 'over' && this.#phase !== 'unsent';
  }

  /** All of its document came, and is read in the worker thread: what it used is known soon. */
  get reading(): boolean {
    return this.#reading && this.running;
  }

  get #over(): boolean {
    return this.#phase === 'over';
  }

  /** The finish of the answer was read; only a usage report may follow. */
  get finished(): boolean {
    return this.#finishReadAt !== undefined;
  }

  /** A paused upstream is not idle. */
  touch(): void {
    this.#deadlines.restart(this.#clock.now());
  }

  head(status: number, headers: ResponseHeaders): void {
    this.#status = status;
    this.#headers = headers;
    this.#deadlines.lastActivityAt = this.#clock.now();
    if (status >= 400) {
      this.#phase = 'error-body';
    } else if (status !== 200) {
      // The location without its query, which may hold a secret.
      this.fail(
        new GatewayError('upstream_invalid', `The upstream answered with status ${status}.`, {
          // Redirects stay what they are; other odd statuses may pass (F30).
          repeat: status >= 300 ? 'never' : 'once',
          ...(headers.location === undefined
            ? {}
            : { location: (/^[^?#]*/.exec(headers.location)?.[0] ?? '').slice(0, 256) }),
        }),
      );
    } else {
      const type = headers['content-type'] ?? '';
      const splitter = this.target.provider.splitter?.(type);
      if (splitter !== undefined) this.#splitter = splitter;
      if (splitter !== undefined || type.includes('text/event-stream')) this.#beginStream();
      // Any other type, including JSON, is decided by its first bytes.
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
        this.#deadlines.lastActivityAt = this.#clock.now();
        this.#body.add(chunk);
        return;
      case 'error-body':
        this.#deadlines.lastActivityAt = this.#clock.now();
        this.#body.addError(chunk);
        return;
      case 'unsent':
      case 'over':
        return;
      default:
        this.#phase satisfies never;
    }
  }

  #sniff(chunk: Buffer): void {
    const sniffed = this.#body.sniffed(chunk);
    const start = contentStart(sniffed);
    const bytes = start === 0 ? sniffed : sniffed.subarray(start);
    if (bytes.length === 0) return this.#body.clear();
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
    if (this.#splitter === noSplitter) this.#splitter = new SseSplitter();
    const notes = this.rewritten ? this.notes : undefined;
    const { dialect } = this.target.provider;
    this.#reader = dialect.streamReader(this.traits, notes, this.choices);
  }

  #readStream(frames: readonly Frame[]): void {
    const reader = this.#reader;
    if (reader === undefined || frames.length === 0) return;
    const now = this.#clock.now();
    this.#deadlines.lastActivityAt = now;
    let batch: ReadFrame[] | undefined;
    for (const frame of frames) {
      const read = this.#readFrame(reader, frame, batch ?? none, now);
      if (read === undefined) return;
      // Most reads are one frame, and a list that grows has room for 17.
      if (batch === undefined) batch = [read];
      else batch.push(read);
    }
    if (reader.otherChoicesLength !== undefined) this.meter.otherChoices(reader.otherChoicesLength);
    if (batch === undefined) return;
    if (this.#committed) this.#consumer?.frames(batch);
    else {
      for (const read of batch) {
        this.#held.push(read);
        this.#heldBytes += read.frame.bytes.length;
      }
      if (this.#content) {
        this.#committed = true;
        this.#deadlines.commit();
        // The promise resolves one tick later: nothing may reach the consumer before the held frames.
        this.#exchange?.pause();
        this.#settled.resolve({ kind: 'stream' });
      } else if (this.#heldBytes > maxHeldBytes) {
        this.fail(new GatewayError('upstream_invalid', 'The upstream sent only empty events.'));
      }
    }
  }

  /** Reads and meters one frame. Undefined if the attempt ended with it. */
  #readFrame(
    reader: StreamReader,
    frame: Frame,
    before: readonly ReadFrame[],
    now: number,
  ): ReadFrame | undefined {
    const events = this.#eventsOf(reader, frame, before);
    if (events.length > 0) {
      this.#sawEvent(frame.bytes.length, now);
      this.#observe(events);
      if (this.#over) return undefined;
    }
    // Usage reported so far is what the answer used, even if an error follows at once.
    if (reader.finishPending && this.#finishReadAt === undefined) {
      this.#finishReadAt = now;
      this.meter.answered();
    }
    // A frame that could not be decoded was not read.
    const plain = frame.failure === undefined && reader.plain === true;
    return { frame, events, plain };
  }

  /** Frames of one read that precede a broken frame go to the client: they were metered and are charged. */
  #eventsOf(
    reader: StreamReader,
    frame: Frame,
    before: readonly ReadFrame[],
  ): readonly GenerationEvent[] {
    try {
      const { failure } = frame;
      return this.#seen(
        failure === undefined ? reader.read(frame) : [{ type: 'error', error: failure }],
      );
    } catch (error) {
      if (this.#committed && before.length > 0) this.#consumer?.frames(before);
      throw error;
    }
  }

  #sawEvent(bytes: number, now: number): void {
    this.#deadlines.event(bytes, now);
    if (this.firstEventAt !== undefined) return;
    this.firstEventAt = now;
  }

  /** The events with credentials masked; those of later rounds are renumbered. */
  #seen(read: readonly GenerationEvent[]): readonly GenerationEvent[] {
    const events = maskEvents(read, this.target.provider.generate);
    return this.rounds === undefined ? events : this.rounds.pass(events);
  }

  /** Meters the events; an error before any content fails the attempt. */
  #observe(events: readonly GenerationEvent[]): void {
    for (const event of events) {
      this.meter.see(event);
      if (this.#content) continue;
      if (isContent(event)) this.#content = true;
      else if (event.type === 'error') this.fail(event.error);
    }
  }

  /** Never throws: timers and broken connections end a stream too, and do not catch. */
  #endStream(): void {
    try {
      this.#readRest();
    } catch (error) {
      const failure = asGatewayError(error);
      // After the end `fail` does nothing, and the consumer still waits.
      if (this.#over) this.#consumer?.failed(failure);
      else this.fail(failure);
    }
  }

  #readRest(): void {
    const reader = this.#reader;
    if (reader === undefined || this.#phase === 'over') return;
    const last = this.#splitter.end();
    const isCut = last?.failure !== undefined && !this.#silent;
    if (isCut && reader.finishPending) return this.fail(last.failure);
    // An incomplete line after the last event is dropped; it would break the terminator.
    if (last?.data !== undefined && last.data !== '') this.#readStream([last]);
    if (this.#over || this.#isUnattached()) return;
    const events = this.#seen(reader.end());
    for (const event of events) this.meter.see(event);
    if (!this.#committed) return this.fail(this.#withoutContent(events));
    this.#phase = 'over';
    this.#consumer?.ended(events);
  }

  /** Whether the last frame had the first content. The consumer attaches one tick later, and then hears of the end. */
  #isUnattached(): boolean {
    this.#endsWhenAttached = this.#committed && this.#consumer === undefined;
    return this.#endsWhenAttached;
  }

  /** The error of a stream without content. */
  #withoutContent(events: readonly GenerationEvent[]): GatewayError {
    const broken = events.find((event) => event.type === 'error');
    if (this.firstEventAt !== undefined && broken !== undefined) return broken.error;
    return emptyAnswer('The upstream sent an empty stream.');
  }

  #endDocument(): void {
    const notes = this.mode === 'translate' ? this.notes : undefined;
    const wanted = (): boolean => this.running;
    const reading = { bodies: this.#bodies, wanted, notes, choices: this.choices };
    const answer = this.#body.document(this.target.provider, this.traits, reading);
    if (!(answer instanceof Promise)) this.#takeDocument(answer);
    else {
      this.#reading = true;
      // All bytes are here: reading them is the gateway's own work.
      this.#deadlines.lastActivityAt = Number.POSITIVE_INFINITY;
      answer
        .then((read) => this.#takeDocument(read))
        .catch((error: unknown) => this.fail(asGatewayError(error)));
    }
  }

  #takeDocument(answer: Omit<DocumentAnswer, 'events'>): void {
    // The attempt may have ended while a long document was parsed.
    if (this.#over) return;
    this.firstEventAt = this.#clock.now();
    const events = this.#seen(replay(answer.generation));
    for (const event of events) this.meter.see(event);
    this.#phase = 'over';
    this.#committed = true;
    this.#settled.resolve({ ...answer, events });
  }

  /**
   * The record of the attempt for ledger and traces.
   * @param error why it failed, or how the client ended it.
   */
  receipt(outcome: AttemptReceipt['outcome'], error?: GatewayError | ClientEnd): AttemptReceipt {
    const { firstEventAt, startedAt } = this;
    const status = this.#status === 0 ? undefined : this.#status;
    const errorBody = this.#status >= 400 ? this.#body.errorText : undefined;
    return {
      target: this.target,
      startedAt,
      ms: this.#clock.now() - startedAt,
      status,
      outcome,
      error: typeof error === 'string' ? error : error?.code,
      failure: typeof error === 'string' ? undefined : error,
      reported: this.rounds === undefined ? this.meter.reported : this.rounds.last,
      maybeBilled:
        outcome !== 'ok' &&
        firstEventAt === undefined &&
        this.#sent &&
        mayBeBilled(this.#status, error),
      spanId: this.spanId,
      firstEventMs: firstEventAt === undefined ? undefined : firstEventAt - startedAt,
      // Only spans need it.
      said: this.spanId === undefined ? undefined : this.meter.said,
      cut: this.cut,
      ...(errorBody === undefined ? {} : { errorBody }),
    };
  }

  #readError(): GatewayError {
    const wallMs = this.#clock.wall();
    const head = { status: this.#status, headers: this.#headers, wallMs };
    return this.#body.error(this.target.provider, head);
  }
}

/** Transient at some vendors: worth one retry (F29). */
function emptyAnswer(message: string): GatewayError {
  return new GatewayError('upstream_invalid', message, { repeat: 'once' });
}

/** A request without a complete answer, which the vendor may bill (R5). @param status 0 when none came. */
function mayBeBilled(status: number, error: GatewayError | ClientEnd | undefined): boolean {
  if (error === undefined) return false;
  if (typeof error === 'string') return true;
  if (status !== 0) return status === 200;
  // A connection that was never made has its own cause.
  if (error.code === 'timeout') return error.cause === undefined;
  return error.code === 'upstream_unavailable' && brokenSockets.has(codeOf(error.cause));
}

const brokenSockets: ReadonlySet<string> = new Set(['ECONNRESET', 'EPIPE']);

function codeOf(cause: unknown): string {
  return typeof cause === 'object' && cause !== null && 'code' in cause ? String(cause.code) : '';
}
