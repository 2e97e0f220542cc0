/**
 * The path of one admitted call: plan → attempt → respond → settle (docs/maintainer/path.md draws it with every
 * error exit). The call settles exactly once, in `#settle`, whichever way it ends.
 */
import type { Call, ClientEnd, Receipt } from '../core/call.ts';
import type { Conversation, DialectId, Part } from '../core/conversation.ts';
import type { AnswerContext, RequestState, Sealing, StreamOpening } from '../core/dialect.ts';
import { GatewayError, asGatewayError } from '../core/errors.ts';
import type { Generation, Usage } from '../core/generation.ts';
import type { Notes } from '../core/notes.ts';
import type { Clock, NewId } from '../core/runtime.ts';
import { Pieces } from '../json/pieces.ts';
import type { JsonObject } from '../json/value.ts';
import { AttemptLoop } from './attempt-loop.ts';
import type { Attempt } from './attempt.ts';
import {
  ClientAnswer,
  type ClientObserver,
  type ClientSink,
  type StreamOwner,
  StreamResponder,
  answerHeaders,
} from './answer/client-answer.ts';
import { type Swept, maxDetachedMs } from './deadlines.ts';
import type { ClientTimes, Gateway } from './gateway.ts';
import type { BodyOfJob, LongBodies } from './long-bodies/body-thread.ts';
import type { MadeAnswer, PlainContext } from './long-bodies/jobs.ts';
import { addNotes, bufferOver } from './long-bodies/transfer.ts';
import type { Meter } from './answer/meter.ts';
import type { Answer, StreamAnswer } from './answer/upstream-answer.ts';

/**
 * A stream gets a keep-alive after this silence, from the start of the call on; it carries the status line where no
 * answer is committed yet (R1). Proxies and clients give a silent stream up, the strictest of them soon after 20 s.
 */
const keepAliveMs = 15_000;
const defaultTimes: ClientTimes = { keepAliveMs: {}, stalledMs: 60_000 };
/** How long the last error of a call waits for its client to read. */
const finalWriteMs = 250;
/** Maximum age of the ledger's record of a running call (F81). */
const checkpointMs = 5000;
/** The same in characters of the answer, about 256 tokens. */
const checkpointLength = 1024;
/** How long a finished upstream may take to end its answer before its connection is closed. */
const drainUpstreamMs = 2000;

/** Longer answers, in characters, are written in the worker thread. */
const longAnswer = 1024 * 1024;

/** The result of a call without an attempt. */
const unanswered = {
  target: undefined,
  mode: undefined,
  reported: undefined,
  usageSource: 'estimated',
  suspect: false,
  firstEventMs: undefined,
  notes: [],
} as const;

type Ending = Pick<
  Receipt,
  'outcome' | 'status' | 'error' | 'failure' | 'attempts' | 'charged' | 'totalMs' | 'readToEnd'
>;

type WholeAnswer = Exclude<Answer, StreamAnswer>;

/** Serves one call to its end. Never throws; the promise resolves when the call is settled. */
export function handleCall(gateway: Gateway, call: Call, sink: ClientSink): Promise<void> {
  return new CallRun(gateway, call, sink).run();
}

class CallRun implements ClientObserver, StreamOwner, Swept {
  index = -1;
  readonly #gateway: Gateway;
  readonly #call: Call;
  readonly #sink: ClientSink;
  readonly #loop: AttemptLoop;
  readonly #out: ClientAnswer;
  /** Present while `run` waits for the end of a call whose answer has begun. */
  #done: PromiseWithResolvers<void> | undefined;
  readonly #times: ClientTimes;
  #lastSentAt: number;
  /**
   * When the call is recorded next. Starts at -Infinity: V8 would deoptimise the class when an integer field
   * becomes a double.
   */
  #checkpointAt = Number.NEGATIVE_INFINITY;
  #checkpointLength = 0;
  /** The last record charges nothing, since no request was sent by then. */
  #recordedUnsent = false;
  #fullSince: number | undefined;
  #responder: StreamResponder | undefined;
  /** The events that the client got before an upstream answered. */
  #opening: StreamOpening | undefined;
  #closedAt: number | undefined;
  #settled = false;
  /** Monotonic ms since which the answer is read without its client (F73). */
  #leftAt: number | undefined;
  /** It holds one of the slots of detached streams. */
  #detached = false;

  constructor(gateway: Gateway, call: Call, sink: ClientSink) {
    this.#gateway = gateway;
    this.#call = call;
    this.#sink = sink;
    this.#loop = new AttemptLoop(gateway, call);
    const headers = (): string[] => this.#answerHeaders();
    this.#out = new ClientAnswer({ call, sink, headers, random: gateway.random });
    this.#lastSentAt = call.startedAt;
    this.#times = gateway.clientTimes?.() ?? defaultTimes;
  }

  async run(): Promise<void> {
    this.#sink.observe(this, this.#times.stalledMs);
    this.#gateway.sweeper.add(this);
    try {
      const answering = this.#loop.answer();
      // From here on the call costs money: a crash must not lose it (F81).
      this.#checkpoint(this.#gateway.clock.now());
      const answer = await answering;
      const { attempt } = this.#loop;
      if (this.#settled || attempt === undefined) return;
      // Its client left while it was read.
      if (this.#leftAt !== undefined) this.completed();
      else if (this.#call.head.stream) {
        const { dialect } = this.#call;
        const context = this.#context(attempt);
        const relayed = attempt.mode === 'relay' && answer.kind === 'stream';
        const output = relayed
          ? { relay: dialect.answerRelay(context) }
          : { writer: dialect.streamWriter(context) };
        this.#out.startStream();
        const responder = new StreamResponder({
          sink: this.#sink,
          dialect,
          requestId: this.#call.id,
          owner: this,
          output,
          usageGap: () => attempt.meter.gap,
          choices: this.#call.head.choices ?? 1,
        });
        this.#responder = responder;
        this.#loop.deliver(answer, responder, () => this.#fullSince === undefined);
      } else if (answer.kind !== 'stream') {
        if (isLong(answer, attempt)) await this.#respondLong(answer, attempt);
        else this.#respondDocument(answer, attempt);
      }
    } catch (error) {
      this.#refuse(asGatewayError(error));
    }
    if (this.#settled) return;
    this.#done = Promise.withResolvers();
    await this.#done.promise;
  }

  #respondDocument(answer: WholeAnswer, attempt: Attempt): void {
    const relayed = this.#relayed(answer, attempt);
    this.#out.document(relayed ?? Buffer.from(JSON.stringify(this.#written(answer, attempt))));
    this.completed();
  }

  /** A long answer is relayed or written in the worker thread (G11). */
  async #respondLong(answer: WholeAnswer, attempt: Attempt): Promise<void> {
    const bytes = await writeLongAnswer(this.#gateway.bodies, {
      client: this.#call.dialect.id,
      context: this.#context(attempt),
      make: longAnswerOf(answer, attempt),
      ...(answer.kind === 'document' ? { document: answer.bytes } : {}),
      wanted: () => !this.#settled,
    });
    // The call may have ended meanwhile.
    if (this.#settled) return;
    this.#out.document(bytes);
    this.completed();
  }

  /** The upstream's own document; undefined for an answer that must be written. */
  #relayed(answer: WholeAnswer, attempt: Attempt): Buffer | undefined {
    if (attempt.mode !== 'relay' || answer.kind !== 'document') return undefined;
    const { bytes, body } = answer;
    if (body === undefined) throw new TypeError('A long document is relayed in the worker thread.');
    const relay = this.#call.dialect.answerRelay(this.#context(attempt));
    return relay.document({ bytes, body }, attempt.meter.gap);
  }

  #written(answer: WholeAnswer, attempt: Attempt): JsonObject {
    const { dialect } = this.#call;
    return dialect.writeResponse(completed(answer, attempt), this.#context(attempt));
  }

  #answerHeaders(): string[] {
    const { id, grant, dialect, head } = this.#call;
    const earlier = head.state?.earlierItems;
    const ownNotes = (notes: string): string =>
      earlier === undefined ? notes : (dialect.stored?.ownNotes(notes, earlier) ?? notes);
    const headers = answerHeaders(id, this.#loop, ownNotes);
    if (grant !== undefined) {
      headers.push(...dialect.limitHeaders(grant.standings, this.#gateway.clock.wall()));
    }
    return headers;
  }

  #context(attempt: Attempt): AnswerContext {
    return new CallContext(this.#gateway, this.#call, attempt, this.#opening);
  }

  /** Ends the call with an error, before or after the answer began. */
  #refuse(error: GatewayError): void {
    if (this.#settled) return;
    if (this.#leftAt === undefined) this.#out.error(error, this.#opening);
    this.broken(error);
  }

  full(): void {
    this.#fullSince = this.#gateway.clock.now();
    this.#loop.attempt?.pause();
  }

  drained(): void {
    if (this.#fullSince === undefined) return;
    this.#fullSince = undefined;
    this.#loop.attempt?.resume();
  }

  left(): void {
    if (this.#settled || this.#leftAt !== undefined) return;
    if (this.#detach()) return;
    this.#settle('canceled', 'canceled');
    this.#close();
  }

  /**
   * Detaches the answer from the client that left and frees its slots, if its rest shows what it costs: a stream under
   * `on_abort: drain`, or a document that has arrived and is being parsed. False where there is nothing to read.
   */
  #detach(): boolean {
    if (!this.#loop.readOn() && !this.#takeDetachedSlot()) return false;
    this.#loop.askNoMore();
    this.#leftAt = this.#gateway.clock.now();
    this.#call.grant?.releaseSlots();
    this.drained();
    return true;
  }

  /** Takes a slot for a stream that is read to its end without its client; false where it is not to be, or none is free. */
  #takeDetachedSlot(): boolean {
    const { attempt } = this.#loop;
    if (attempt?.running !== true || this.#responder === undefined) return false;
    if (attempt.target.provider.options?.onAbort !== 'drain') return false;
    this.#detached = this.#gateway.detachedStreams?.take() === true;
    return this.#detached;
  }

  completed(): void {
    const { attempt, continued } = this.#loop;
    if (!continued) attempt?.meter.learn();
    attempt?.prepared?.watch?.keep();
    this.#settle('ok', undefined);
    // The connection is kept if the upstream's last bytes come soon.
    if (attempt?.running === true) this.#closedAt = this.#gateway.clock.now();
    else this.#close();
  }

  broken(error: GatewayError): void {
    this.#settle('failed', error);
    this.#close();
  }

  check(now: number): void {
    if (this.#closedAt !== undefined) return this.#letGo(now, this.#closedAt);
    const ending = this.#mustEnd(now);
    if (ending !== undefined) return this.#endWith(ending);
    this.#checkpoint(now);
    if (this.#leftAt !== undefined) {
      if (now - this.#leftAt > maxDetachedMs)
        this.broken(new GatewayError('canceled', 'The client disconnected.'));
      else this.#loop.check(now);
      return;
    }
    if (this.#fullSince !== undefined) {
      this.#loop.touch();
      if (now - this.#fullSince > this.#times.stalledMs) {
        this.#sink.cut();
        this.#settle('failed', 'interrupted');
        this.#close();
      }
      return;
    }
    if (this.#call.head.stream) this.#keepAlive(now);
    this.#loop.check(now);
  }

  #mustEnd(now: number): GatewayError | undefined {
    if (this.#call.caller.revoked())
      return new GatewayError('unauthenticated', 'The API key of this call was revoked.');
    const total = (this.#loop.attempt?.target ?? this.#call.route.targets[0])?.timeouts.totalMs;
    if (total === undefined || now - this.#call.startedAt <= total) return undefined;
    const why = `The call took longer than ${total} ms.`;
    return new GatewayError('timeout', why, { retryable: false });
  }

  /**
   * Records in the ledger that the call runs (F81). Most short calls end before the ledger writes the record.
   */
  #checkpoint(now: number): void {
    const { attempt: current } = this.#loop;
    const outputLength = current?.meter.outputLength ?? 0;
    const isSent = this.#recordedUnsent && current?.chargeable === true;
    if (now < this.#checkpointAt && outputLength < this.#checkpointLength && !isSent) return;
    this.#checkpointAt = now + checkpointMs;
    this.#checkpointLength = outputLength + checkpointLength;
    this.#recordedUnsent = false;
    // Called when the ledger writes the record, unless the call is over by then.
    this.#gateway.settlement.running(this.#call, () => {
      const { attempt, count, secondary } = this.#loop;
      const isCharged = attempt?.chargeable === true;
      this.#recordedUnsent = !isCharged;
      return {
        target: attempt?.target,
        mode: attempt?.mode,
        attempts: count,
        reported: attempt?.meter.reported,
        charged: isCharged ? attempt.meter.soFar() : {},
        secondary,
        totalMs: this.#gateway.clock.now() - this.#call.startedAt,
      };
    });
  }

  /** The answer is sent: the upstream's connection is kept if its answer ends soon. */
  #letGo(now: number, closedAt: number): void {
    if (this.#loop.attempt?.running !== true || now - closedAt > drainUpstreamMs) this.#close();
  }

  get id(): string {
    return this.#call.id;
  }

  get isStream(): boolean {
    return this.#call.head.stream;
  }

  end(error: GatewayError): void {
    if (this.#closedAt === undefined) this.#endWith(error);
    else this.#close();
  }

  get readsOn(): boolean {
    return this.#leftAt !== undefined && !this.#settled;
  }

  get fullSince(): number | undefined {
    return this.#settled ? undefined : this.#fullSince;
  }

  giveUp(error: GatewayError): void {
    this.#endWith(error);
    // The error follows unread bytes: a client that starts to read still gets it.
    this.#gateway.later(finalWriteMs, () => this.#sink.cut());
  }

  /** Ends the call through its running attempt, or directly. */
  #endWith(error: GatewayError): void {
    if (this.#loop.attempt?.running === true) this.#loop.fail(error);
    else this.#refuse(error);
  }

  #keepAlive(now: number): void {
    if (this.#responder?.wrote === true) {
      this.#responder.wrote = false;
      this.#lastSentAt = now;
    }
    const { dialect } = this.#call;
    if (now - this.#lastSentAt < (this.#times.keepAliveMs[dialect.scope] ?? keepAliveMs)) return;
    this.#lastSentAt = now;
    this.#out.startStream();
    this.#sink.write(this.#responder?.keepAlive() ?? this.#keepOpening());
  }

  /** Of a stream that no upstream has begun. */
  #keepOpening(): string {
    const { dialect, head } = this.#call;
    const { newId } = this.#gateway;
    const createdSeconds = Math.floor(this.#call.startedWall / 1000);
    const { model, state } = head;
    const known = { model, createdSeconds, newId, ...(state === undefined ? {} : { state }) };
    this.#opening ??= dialect.openStream?.(known);
    return this.#opening?.keepAlive() ?? dialect.keepAlive(false);
  }

  #settle(how: Receipt['outcome'], why: GatewayError | ClientEnd | undefined): void {
    if (this.#settled) return;
    this.#settled = true;
    const left = this.#leftAt !== undefined;
    const outcome = left ? 'canceled' : how;
    const end = left ? 'canceled' : why;
    if (this.#detached) this.#gateway.detachedStreams?.done();
    const failure = typeof end === 'string' ? undefined : end;
    const error = typeof end === 'string' ? end : end?.code;
    // Computed before the end of the last attempt, which may make it free of charge.
    const charged = chargedOf(outcome, this.#loop.attempt);
    const attempts = this.#loop.end(outcome, end);
    // Computed after the end of the last attempt: a call takes no less time than its attempts.
    const totalMs = this.#gateway.clock.now() - this.#call.startedAt;
    const { status } = this.#out;
    const readToEnd = left && how === 'ok';
    const ending = { outcome, status, error, failure, attempts, charged, totalMs, readToEnd };
    const receipt = this.#receipt(this.#loop.attempt, ending);
    this.#gateway.settlement.settle(this.#call, receipt);
    this.#sink.settled?.(receipt);
    this.#done?.resolve();
  }

  #receipt(attempt: Attempt | undefined, ending: Ending): Receipt {
    const { secondary } = this.#loop;
    if (attempt === undefined) return { ...unanswered, ...ending, secondary };
    const { target, mode, meter, notes, answeredAt } = attempt;
    return {
      outcome: ending.outcome,
      status: ending.status,
      error: ending.error,
      failure: ending.failure,
      attempts: ending.attempts,
      target,
      answeredModel: meter.answeredModel,
      mode,
      reported: meter.reported,
      charged: ending.charged,
      secondary,
      usageSource: meter.source,
      suspect: meter.suspect,
      firstEventMs: answeredAt === undefined ? undefined : answeredAt - this.#call.startedAt,
      totalMs: ending.totalMs,
      notes: notes.all,
      readToEnd: ending.readToEnd,
    };
  }

  /** Releases everything that the call holds. */
  #close(): void {
    this.#gateway.sweeper.delete(this);
    this.#loop.stop();
  }
}

/**
 * The charged usage: none if no upstream began to answer; a canceled call is charged for what its upstream has read and
 * written.
 */
function chargedOf(outcome: Receipt['outcome'], attempt: Attempt | undefined): Usage {
  if (attempt === undefined) return {};
  const billed = outcome === 'canceled' ? attempt.chargeable : attempt.answeredAt !== undefined;
  return billed ? attempt.meter.complete() : {};
}

/** The answer with the usage that the client gets. */
function completed({ generation }: WholeAnswer, { meter }: Attempt): Generation {
  return { ...generation, usage: meter.complete() };
}

/** The texts of a document are read once more in the thread, which has its bytes. */
function longAnswerOf(answer: WholeAnswer, attempt: Attempt): MadeAnswer {
  const { meter, mode, target, traits } = attempt;
  if (answer.kind === 'collected') {
    return { from: 'generation', generation: completed(answer, attempt) };
  }
  if (mode === 'relay') return { from: 'relay', gap: meter.gap };
  const upstream = target.provider.dialect.id;
  return { from: 'document', upstream, traits, usage: meter.complete() };
}

function isLong(answer: WholeAnswer, { meter }: Attempt): boolean {
  // A long document is not parsed on the event loop.
  if (answer.kind === 'document' && answer.body === undefined) return true;
  return meter.outputLength > longAnswer;
}

/**
 * The data of a call that the client's dialect may read while it writes the answer. A class and not a literal: V8 gives
 * each literal with a getter its own hidden class, which doubled the heap and the time of young collections.
 */
class CallContext implements AnswerContext {
  readonly model: string;
  readonly requestId: string;
  readonly createdSeconds: number;
  readonly wantsUsageFrame: boolean;
  readonly state?: RequestState;
  readonly compacts?: true;
  readonly newId: NewId;
  readonly notes: Notes;
  readonly conversation?: Conversation;
  readonly sealing?: Sealing;
  readonly mayBeCut: boolean;
  readonly opening?: StreamOpening;
  readonly #meter: Meter;
  readonly #clock: Pick<Clock, 'wall'>;

  constructor(
    { clock, newId }: Gateway,
    call: Call,
    { meter, notes, prepared }: Attempt,
    opening?: StreamOpening,
  ) {
    this.model = call.head.model;
    this.requestId = call.id;
    this.createdSeconds = Math.floor(call.startedWall / 1000);
    this.#clock = clock;
    this.wantsUsageFrame = call.head.wantsUsageFrame;
    if (call.head.state !== undefined) this.state = call.head.state;
    if (call.head.compacts === true) this.compacts = true;
    this.newId = newId;
    this.notes = notes;
    if (prepared?.conversation !== undefined) this.conversation = prepared.conversation;
    if (prepared?.watch?.sealing !== undefined) this.sealing = prepared.watch.sealing;
    this.mayBeCut = call.grant?.outputCap !== undefined;
    if (opening !== undefined) this.opening = opening;
    this.#meter = meter;
  }

  get nowSeconds(): number {
    return Math.floor(this.#clock.wall() / 1000);
  }

  /** Computed only if the answer needs it before the upstream reports it. */
  get promptTokensEstimate(): number {
    return this.#meter.promptEstimate;
  }
}

// Writes or relays a long answer in the worker thread.

interface LongAnswer {
  /** Dialect of the client. */
  readonly client: DialectId;
  readonly context: AnswerContext;
  readonly make: MadeAnswer;
  /** The upstream's document, where the answer is made of it; it cannot be read afterwards. */
  readonly document?: Buffer;
  /** Whether the client still waits. */
  readonly wanted?: () => boolean;
}

/** Characters of the texts and arguments of an answer. */
function textLength(parts: readonly Part[]): number {
  return parts.reduce((sum, part) => {
    if (part.type === 'tool-call') return sum + part.argumentsJson.length;
    return sum + ('text' in part ? part.text.length : 0);
  }, 0);
}

const nothing = Pieces.of(Buffer.alloc(0));

/** @returns the document for the client. @throws GatewayError */
export async function writeLongAnswer(
  bodies: LongBodies,
  { client, context, make, document, wanted }: LongAnswer,
): Promise<Buffer> {
  const { sealing, notes } = context;
  const plain: PlainContext = {
    model: context.model,
    requestId: context.requestId,
    createdSeconds: context.createdSeconds,
    nowSeconds: context.nowSeconds,
    wantsUsageFrame: context.wantsUsageFrame,
    promptTokensEstimate: context.promptTokensEstimate,
    ...(context.state === undefined ? {} : { state: context.state }),
    ...(context.compacts === undefined ? {} : { compacts: context.compacts }),
    ...(context.conversation === undefined ? {} : { conversation: context.conversation }),
    ...(sealing === undefined ? {} : { upstream: sealing.upstream }),
  };
  const body: BodyOfJob = {
    id: bodies.nextId(),
    pieces: document === undefined ? nothing : Pieces.of(document),
    textLength: make.from === 'generation' ? textLength(make.generation.parts) : 0,
    give: document !== undefined,
    ...(wanted === undefined ? {} : { wanted }),
  };
  const written = await bodies.run('answer', { client, context: plain, make }, body);
  addNotes(notes, written.notes);
  for (const [id, shown] of written.shown) sealing?.callShown?.(id, shown);
  return bufferOver(written.bytes);
}
