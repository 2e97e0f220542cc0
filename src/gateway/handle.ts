/**
 * The path of one admitted call: plan → attempt → respond → settle (docs/path.md draws it with every
 * error exit). The call settles exactly once, in `#settle`, whichever way it ends.
 */
import type { AnswerContext } from '../core/dialect.ts';
import { asGatewayError, GatewayError } from '../core/errors.ts';
import { Collector, type Generation, type Usage } from '../core/generation.ts';
import { NoteList, StrictNotes, StrictRefusal } from '../core/notes.ts';
import type { Target } from '../core/provider.ts';
import { promptOf, samplePrompt } from '../tokens/prompt.ts';
import { answerHeaders, retryHeaders, streamHeaders } from './answer-headers.ts';
import { Attempt } from './attempt.ts';
import type { Call, Gateway } from './call.ts';
import type { ClientObserver, ClientSink } from './client-sink.ts';
import { documentBytes, replayedStream } from './document-responder.ts';
import { Meter } from './meter.ts';
import { maxAttempts, plan } from './plan.ts';
import type { Mode, Receipt } from './receipt.ts';
import { StreamCollector } from './stream-collector.ts';
import { StreamResponder, type StreamOwner } from './stream-responder.ts';
import type { Swept } from './sweeper.ts';
import type { Answer, DocumentAnswer, StreamAnswer } from './upstream-answer.ts';
import { prepareRequest, type PreparedRequest } from './upstream-request.ts';

/**
 * After so long without a committed answer a stream's status line goes out and keep-alives follow
 * (R1 allows 20 s; E2 asks for a sign of life every 15 s from the start of the request).
 */
export const holdMs = 15_000;
/** Silence after which a stream gets a keep-alive. */
export const keepAliveMs = 15_000;
/** A client that takes no bytes for so long is cut (G9). */
const stalledClientMs = 60_000;
/** How long a finished upstream may take to close before its connection is given up. */
const drainUpstreamMs = 2000;

/** Holds nothing: shared by all calls. */
const strictNotes = new StrictNotes();

/** Serves one call to its end. Never throws; the promise resolves when the call is settled. */
export function handleCall(gateway: Gateway, call: Call, sink: ClientSink): Promise<void> {
  return new CallRun(gateway, call, sink).run();
}

class CallRun implements ClientObserver, StreamOwner, Swept {
  place = -1;
  readonly #gateway: Gateway;
  readonly #call: Call;
  readonly #sink: ClientSink;
  readonly #notes = new NoteList();
  readonly #meter: Meter;
  readonly #done = Promise.withResolvers<void>();
  #attempt: Attempt | undefined;
  #attempts = 0;
  #target: Target | undefined;
  #mode: Mode | undefined;
  #prepared: PreparedRequest | undefined;
  #status: number | undefined;
  #firstEventAt: number | undefined;
  #lastSentAt: number;
  #fullSince: number | undefined;
  #responder: StreamResponder | undefined;
  #closedAt: number | undefined;
  #settled = false;

  constructor(gateway: Gateway, call: Call, sink: ClientSink) {
    this.#gateway = gateway;
    this.#call = call;
    this.#sink = sink;
    this.#meter = new Meter(gateway.estimator, () => samplePrompt(promptOf(call.source.value)));
    this.#lastSentAt = call.startedAt;
  }

  async run(): Promise<void> {
    this.#sink.observe(this);
    this.#gateway.sweeper.add(this);
    try {
      const answer = await this.#attemptTargets();
      if (this.#settled) return;
      this.#respond(answer);
    } catch (error) {
      this.#refuse(asGatewayError(error));
    }
    return this.#done.promise;
  }

  /** The only loop over targets: until one commits, or none is left, or the client left. */
  async #attemptTargets(): Promise<Answer> {
    const targets = plan(this.#call.route, this.#gateway.random);
    let last: GatewayError | undefined;
    let left = maxAttempts;
    for (const target of targets) {
      try {
        return await this.#attemptOne(target);
      } catch (error) {
        const failure = asGatewayError(error);
        // Where another target only failed for now, its failure tells more than a strict refusal.
        const refused = failure instanceof StrictRefusal;
        if (last === undefined || !refused) last = failure;
        if (!refused) left -= 1;
        if (this.#settled) break;
        this.#logFailedAttempt(target, failure);
        if (left === 0 || !mayFallBack(failure)) break;
      }
    }
    throw last ?? new GatewayError('model_not_found', 'The model has no target.');
  }

  async #attemptOne(target: Target): Promise<Answer> {
    this.#target = target;
    this.#attempts += 1;
    this.#meter.begin(`${target.provider.id}/${target.model}`);
    this.#notes.all.length = 0;
    const traits = target.provider.traits(target.model);
    const { newId } = this.#gateway;
    const ask = { model: target.model, stream: this.#call.head.stream, traits, newId };
    const prepared = prepareRequest(this.#call, target, {
      ask,
      notes: this.#call.strict ? strictNotes : this.#notes,
    });
    this.#prepared = prepared;
    this.#mode = prepared.mode;
    if (target.provider.wake !== undefined) await target.provider.wake();
    if (this.#settled) throw new GatewayError('canceled', 'The client left.');
    const { client, clock } = this.#gateway;
    const wantsStream = this.#call.head.stream;
    const attempt = new Attempt({ target, client, clock, wantsStream, meter: this.#meter });
    this.#attempt = attempt;
    const answer = await attempt.send(prepared.request);
    this.#firstEventAt = attempt.firstEventAt;
    return answer;
  }

  #respond(answer: Answer): void {
    const wantsStream = this.#call.head.stream;
    if (answer.kind === 'stream') {
      if (wantsStream) this.#respondStream(answer);
      else this.#collectStream(answer);
    } else if (wantsStream) {
      this.#startStream();
      this.#finishWith(replayedStream(answer.generation, this.#call.dialect, this.#context()));
    } else {
      this.#respondDocument(answer);
    }
  }

  #respondStream(answer: StreamAnswer): void {
    const { dialect } = this.#call;
    const context = this.#context();
    const output =
      this.#mode === 'relay'
        ? { relay: dialect.answerRelay(context) }
        : { writer: dialect.streamWriter(context) };
    this.#startStream();
    const responder = new StreamResponder({
      sink: this.#sink,
      dialect,
      requestId: this.#call.id,
      owner: this,
      output,
      usageGap: () => this.#usageGap(),
    });
    this.#responder = responder;
    this.#attempt?.attach(responder);
    responder.frames(answer.held);
    if (!this.#settled && this.#fullSince === undefined) this.#attempt?.resume();
  }

  /** A stream for a client that asked for a document (F23): collected, then written whole. */
  #collectStream(answer: StreamAnswer): void {
    this.#mode = 'translate';
    const collector = new StreamCollector(new Collector(), {
      complete: (generation) => this.#sendCollected(generation),
      failed: (error) => this.#refuse(error),
    });
    this.#attempt?.attach(collector);
    collector.frames(answer.held);
    this.#attempt?.resume();
  }

  #sendCollected(generation: Generation): void {
    try {
      const whole = { ...generation, usage: this.#meter.complete() };
      const body = this.#call.dialect.writeResponse(whole, this.#context());
      this.#sendDocument(Buffer.from(JSON.stringify(body)));
    } catch (error) {
      this.#refuse(asGatewayError(error));
    }
  }

  #respondDocument(answer: DocumentAnswer): void {
    const relayed = this.#mode === 'relay';
    const generation = { ...answer.generation, usage: this.#meter.complete() };
    const whole = { ...answer, generation };
    this.#sendDocument(
      documentBytes(whole, { relayed, dialect: this.#call.dialect, context: this.#context() }),
    );
  }

  #sendDocument(body: Buffer): void {
    this.#status = 200;
    this.#sink.start(200, [
      ...this.#answerHeaders(),
      'content-type',
      'application/json',
      'content-length',
      String(body.length),
    ]);
    this.#finishWith(body);
  }

  #finishWith(bytes: Buffer | string): void {
    this.#sink.end(bytes);
    this.completed();
  }

  #startStream(): void {
    if (this.#status !== undefined) return;
    this.#status = 200;
    this.#sink.start(200, [...this.#answerHeaders(), ...streamHeaders]);
  }

  #answerHeaders(): string[] {
    return answerHeaders({
      requestId: this.#call.id,
      target: this.#target,
      mode: this.#mode,
      attempts: this.#attempts,
      usage: this.#meter.source,
      notes: this.#notes,
    });
  }

  #context(): AnswerContext {
    const meter = this.#meter;
    return {
      model: this.#call.head.model,
      requestId: this.#call.id,
      createdSeconds: Math.floor(this.#gateway.clock.wall() / 1000),
      wantsUsageFrame: this.#call.head.wantsUsageFrame,
      // Guessed only if the answer has to tell it before the upstream does.
      get promptTokensEstimate(): number {
        return meter.promptEstimate;
      },
      newId: this.#gateway.newId,
      notes: this.#notes,
      ...(this.#prepared?.conversation === undefined
        ? {}
        : { conversation: this.#prepared.conversation }),
    };
  }

  #usageGap(): Usage | undefined {
    const reported = this.#meter.reported;
    const complete = this.#meter.complete();
    const known =
      reported?.outputTokens !== undefined &&
      complete.freshInputTokens === reported.freshInputTokens;
    return known ? undefined : complete;
  }

  /** Ends the call in failure: as a status before the first byte, as an error frame after it. */
  #refuse(error: GatewayError): void {
    if (this.#settled) return;
    const { dialect, id } = this.#call;
    if (this.#status !== undefined) {
      this.#sink.end(dialect.writeStreamError(error, id));
      return this.broken(error);
    }
    const written = dialect.writeError(error, id);
    const body = Buffer.from(JSON.stringify(written.body));
    this.#status = written.status;
    this.#sink.start(written.status, [
      ...this.#answerHeaders(),
      ...retryHeaders(error, this.#gateway.random),
      'content-type',
      'application/json',
      'content-length',
      String(body.length),
    ]);
    this.#sink.end(body);
    this.broken(error);
  }

  full(): void {
    this.#fullSince = this.#gateway.clock.now();
    this.#attempt?.pause();
  }

  drained(): void {
    if (this.#fullSince === undefined) return;
    this.#fullSince = undefined;
    this.#attempt?.resume();
  }

  left(): void {
    if (this.#settled) return;
    this.#settle('canceled', 'canceled');
    this.#close();
  }

  completed(): void {
    this.#meter.learn();
    this.#settle('ok', undefined);
    // The upstream's last bytes may still be on their way: its connection is kept if they come soon.
    if (this.#attempt?.over === false) this.#closedAt = this.#gateway.clock.now();
    else this.#close();
  }

  broken(error: GatewayError): void {
    this.#settle('failed', error);
    this.#close();
  }

  check(now: number): void {
    if (this.#closedAt !== undefined) return this.#letGo(now, this.#closedAt);
    const total = (this.#target ?? this.#call.route.targets[0])?.timeouts.totalMs;
    if (total !== undefined && now - this.#call.startedAt > total) {
      const why = `The call took longer than ${total} ms.`;
      return this.#endWith(new GatewayError('timeout', why, { retryable: false }));
    }
    if (this.#fullSince !== undefined) {
      this.#attempt?.touch();
      if (now - this.#fullSince > stalledClientMs) this.#cutStalledClient();
      return;
    }
    if (this.#call.head.stream) this.#keepAlive(now);
    this.#attempt?.check(now);
  }

  /** The answer is out: the upstream's connection is kept if it ends its answer soon. */
  #letGo(now: number, closedAt: number): void {
    if (this.#attempt?.over !== false || now - closedAt > drainUpstreamMs) this.#close();
  }

  shutDown(): void {
    if (this.#closedAt === undefined) {
      this.#endWith(new GatewayError('shutting_down', 'The gateway is shutting down.'));
    } else this.#close();
  }

  /** Ends the running call through its attempt, or before one began. */
  #endWith(error: GatewayError): void {
    if (this.#attempt === undefined || this.#attempt.over) this.#refuse(error);
    else this.#attempt.fail(error);
  }

  #cutStalledClient(): void {
    this.#sink.cut();
    this.#settle('canceled', 'canceled');
    this.#close();
  }

  #keepAlive(now: number): void {
    if (this.#responder?.wrote === true) {
      this.#responder.wrote = false;
      this.#lastSentAt = now;
    }
    if (this.#status === undefined) {
      if (now - this.#call.startedAt < holdMs) return;
      this.#startStream();
    } else if (now - this.#lastSentAt < keepAliveMs) {
      return;
    }
    this.#lastSentAt = now;
    this.#sink.write(this.#call.dialect.keepAlive(this.#responder !== undefined));
  }

  #settle(outcome: Receipt['outcome'], failure: GatewayError | 'canceled' | undefined): void {
    if (this.#settled) return;
    this.#settled = true;
    const now = this.#gateway.clock.now();
    const error = failure === 'canceled' ? 'canceled' : failure?.code;
    // A call that no upstream began to answer costs nothing (L0); one that was left may cost (LC).
    const billed =
      outcome === 'canceled' ? this.#attempt !== undefined : this.#firstEventAt !== undefined;
    this.#gateway.settle(this.#call, {
      outcome,
      status: this.#status,
      error,
      attempts: this.#attempts,
      target: this.#target,
      mode: this.#mode,
      reported: this.#meter.reported,
      charged: billed ? this.#meter.complete() : {},
      usageSource: this.#meter.source,
      firstEventMs:
        this.#firstEventAt === undefined ? undefined : this.#firstEventAt - this.#call.startedAt,
      totalMs: now - this.#call.startedAt,
      notes: this.#notes.all,
    });
    this.#done.resolve();
  }

  /** Leaves nothing of the call behind. */
  #close(): void {
    this.#gateway.sweeper.delete(this);
    this.#attempt?.abort();
  }

  #logFailedAttempt(target: Target, error: GatewayError): void {
    this.#gateway.log.warn('attempt failed', {
      call: this.#call.id,
      target: `${target.provider.id}/${target.model}`,
      error: error.code,
      message: error.message,
      upstream_status: error.upstream?.status,
    });
  }
}

/** Whether another target may be tried after this failure (R3). */
function mayFallBack(error: GatewayError): boolean {
  return error.retryable || error.code === 'model_not_found';
}
