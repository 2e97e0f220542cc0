/**
 * The path of one admitted call: plan → attempt → respond → settle (docs/path.md draws it with every
 * error exit). The call settles exactly once, in `#settle`, whichever way it ends.
 */
import type { JsonObject } from '../core/conversation.ts';
import type { AnswerContext } from '../core/dialect.ts';
import { asGatewayError, GatewayError } from '../core/errors.ts';
import type { Generation, Usage } from '../core/generation.ts';
import { jsonInSteps } from '../core/json-write.ts';
import { inTurns } from '../core/steps.ts';
import { answerHeaders } from './answer-headers.ts';
import type { Call, ClientTimes, Gateway } from './call.ts';
import { CallContext } from './call-context.ts';
import { ClientAnswer } from './client-answer.ts';
import type { ClientObserver, ClientSink } from './client-sink.ts';
import { longestDrainMs } from './left-streams.ts';
import type { ClientEnd, Receipt } from './receipt.ts';
import { StreamResponder, type StreamOwner } from './stream-responder.ts';
import type { Swept } from './sweeper.ts';
import { Tries } from './tries.ts';
import type { Answer, StreamAnswer } from './upstream-answer.ts';

/**
 * After so much silence a stream gets a sign of life, from the start of the call on; without a committed
 * answer its status line goes out with it (R1 allows 20 s, E2 asks for a sign every 15 s).
 */
const keepAliveMs = 15_000;
const customaryTimes: ClientTimes = { keepAliveMs: {}, stalledMs: 60_000 };
/** How long an answer that is given up waits for its client. */
const lastWordsMs = 250;
/** How old the ledger's knowledge of a running call may be (F81). */
const checkpointMs = 5000;
/** The same in characters of the answer: some 256 tokens. */
const checkpointLength = 1024;
/** How long a finished upstream may take to close before its connection is given up. */
const drainUpstreamMs = 2000;

/** An answer of more characters is written in steps. */
const longAnswer = 1024 * 1024;

type WholeAnswer = Exclude<Answer, StreamAnswer>;

/** Serves one call to its end. Never throws; the promise resolves when the call is settled. */
export function handleCall(gateway: Gateway, call: Call, sink: ClientSink): Promise<void> {
  return new CallRun(gateway, call, sink).run();
}

class CallRun implements ClientObserver, StreamOwner, Swept {
  place = -1;
  readonly #gateway: Gateway;
  readonly #call: Call;
  readonly #sink: ClientSink;
  readonly #tries: Tries;
  readonly #out: ClientAnswer;
  readonly #done = Promise.withResolvers<void>();
  readonly #times: ClientTimes;
  #lastSentAt: number;
  /** When the ledger is told next that the call runs. No small integer, or its first value would change the class. */
  #checkpointAt = Number.NEGATIVE_INFINITY;
  #checkpointLength = 0;
  #fullSince: number | undefined;
  #responder: StreamResponder | undefined;
  #closedAt: number | undefined;
  #settled = false;
  /** Since when the stream is read on without its client (F73). */
  #leftAt: number | undefined;

  constructor(gateway: Gateway, call: Call, sink: ClientSink) {
    this.#gateway = gateway;
    this.#call = call;
    this.#sink = sink;
    this.#tries = new Tries(gateway, call);
    const headers = (): string[] => this.#answerHeaders();
    this.#out = new ClientAnswer({ call, sink, headers, random: gateway.random });
    this.#lastSentAt = call.startedAt;
    this.#times = gateway.clientTimes?.() ?? customaryTimes;
  }

  async run(): Promise<void> {
    this.#sink.observe(this, this.#times.stalledMs);
    this.#gateway.sweeper.add(this);
    try {
      const answering = this.#tries.answer();
      // Money is at stake from here on: a crash must not forget the call (F81).
      if (this.#call.grant?.paid === true) this.#checkpoint(this.#gateway.clock.now());
      const answer = await answering;
      if (this.#settled) return;
      if (this.#call.head.stream) this.#respondStream(answer);
      else if (this.#tries.meter.outputLength > longAnswer) await this.#respondInSteps(answer);
      else this.#respondDocument(answer);
    } catch (error) {
      this.#refuse(asGatewayError(error));
    }
    await this.#done.promise;
  }

  #respondStream(answer: Answer): void {
    const { dialect } = this.#call;
    const context = this.#context();
    const relayed = this.#tries.mode === 'relay' && answer.kind === 'stream';
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
      usageGap: () => this.#usageGap(),
      choices: this.#call.head.choices ?? 1,
    });
    this.#responder = responder;
    this.#tries.deliver(answer, responder, () => this.#fullSince === undefined);
  }

  #respondDocument(answer: Answer): void {
    if (answer.kind === 'stream') return;
    const relayed = this.#relayed(answer);
    this.#out.document(relayed ?? Buffer.from(JSON.stringify(this.#written(answer))));
    this.completed();
  }

  /** All other calls have their turn in between (G11). */
  async #respondInSteps(answer: Answer): Promise<void> {
    if (answer.kind === 'stream') return;
    const document = this.#relayed(answer) ?? (await this.#writtenInSteps(answer));
    // Meanwhile its time may be over, or its client gone.
    if (this.#settled) return;
    this.#out.document(document);
    this.completed();
  }

  /** The upstream's own document; undefined for an answer that is to be written. */
  #relayed(answer: WholeAnswer): Buffer | undefined {
    if (this.#tries.mode !== 'relay' || answer.kind !== 'document') return undefined;
    const relay = this.#call.dialect.answerRelay(this.#context());
    return relay.document(answer, this.#tries.meter.complete());
  }

  #written(answer: WholeAnswer): JsonObject {
    return this.#call.dialect.writeResponse(this.#complete(answer), this.#context());
  }

  async #writtenInSteps(answer: WholeAnswer): Promise<Buffer> {
    const { dialect } = this.#call;
    const written = dialect.responseWriting(this.#complete(answer), this.#context());
    return jsonInSteps(await inTurns(written));
  }

  #complete({ generation }: WholeAnswer): Generation {
    return { ...generation, usage: this.#tries.meter.complete() };
  }

  #answerHeaders(): string[] {
    const { target, mode, count, meter, notes } = this.#tries;
    const { id, grant, dialect } = this.#call;
    const headers = answerHeaders({
      requestId: id,
      target,
      mode,
      attempts: count,
      usage: meter.source,
      notes,
    });
    if (grant !== undefined) {
      headers.push(...dialect.limitHeaders(grant.standings, this.#gateway.clock.wall()));
    }
    return headers;
  }

  #context(): AnswerContext {
    return new CallContext(this.#gateway, this.#call, this.#tries);
  }

  #usageGap(): Usage | undefined {
    const { meter } = this.#tries;
    const { reported } = meter;
    const complete = meter.complete();
    const known =
      reported?.outputTokens !== undefined &&
      complete.freshInputTokens === reported.freshInputTokens;
    return known ? undefined : complete;
  }

  /** Ends the call in failure, whatever the client has seen of it. */
  #refuse(error: GatewayError): void {
    if (this.#settled) return;
    this.#out.error(error);
    this.broken(error);
  }

  full(): void {
    this.#fullSince = this.#gateway.clock.now();
    this.#tries.attempt?.pause();
  }

  drained(): void {
    if (this.#fullSince === undefined) return;
    this.#fullSince = undefined;
    this.#tries.attempt?.resume();
  }

  left(): void {
    if (this.#settled || this.#leftAt !== undefined) return;
    if (this.#readsOn()) return;
    this.#settle('canceled', 'canceled');
    this.#close();
  }

  /** Where a stream costs all of it whether it is read or not, its end tells how much that is. */
  #readsOn(): boolean {
    const { attempt, target } = this.#tries;
    const { clock, leftStreams } = this.#gateway;
    if (target?.provider.onAbort !== 'drain' || this.#responder === undefined) return false;
    if (attempt === undefined || attempt.over || leftStreams?.take() !== true) return false;
    this.#leftAt = clock.now();
    this.#call.grant?.vacate();
    this.drained();
    return true;
  }

  completed(): void {
    const { continued, meter, prepared, attempt } = this.#tries;
    if (!continued) meter.learn();
    prepared?.watch?.keep();
    this.#settle('ok', undefined);
    // The upstream's last bytes may still be on their way: its connection is kept if they come soon.
    if (attempt?.over === false) this.#closedAt = this.#gateway.clock.now();
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
      if (now - this.#leftAt > longestDrainMs) this.broken(canceledError());
      else this.#tries.check(now);
      return;
    }
    if (this.#fullSince !== undefined) {
      this.#tries.touch();
      if (now - this.#fullSince > this.#times.stalledMs) this.#cutStalledClient();
      return;
    }
    if (this.#call.head.stream) this.#keepAlive(now);
    this.#tries.check(now);
  }

  #mustEnd(now: number): GatewayError | undefined {
    if (this.#call.caller.revoked()) return revokedKey();
    const total = (this.#tries.target ?? this.#call.route.targets[0])?.timeouts.totalMs;
    if (total === undefined || now - this.#call.startedAt <= total) return undefined;
    const why = `The call took longer than ${total} ms.`;
    return new GatewayError('timeout', why, { retryable: false });
  }

  /** Calls that cost nobody's budget and are over before the first sweep are never told (F81). */
  #checkpoint(now: number): void {
    const { outputLength } = this.#tries.meter;
    if (now < this.#checkpointAt && outputLength < this.#checkpointLength) return;
    this.#checkpointAt = now + checkpointMs;
    this.#checkpointLength = outputLength + checkpointLength;
    // As it stands when the ledger writes it, unless it is over by then.
    this.#gateway.running(this.#call, () => {
      const { attempt, meter, count, target, mode } = this.#tries;
      return {
        target,
        mode,
        attempts: count,
        reported: meter.reported,
        charged: attempt === undefined ? {} : meter.complete(),
        beside: this.#tries.beside,
        totalMs: this.#gateway.clock.now() - this.#call.startedAt,
      };
    });
  }

  /** The answer is out: the upstream's connection is kept if it ends its answer soon. */
  #letGo(now: number, closedAt: number): void {
    if (this.#tries.attempt?.over !== false || now - closedAt > drainUpstreamMs) this.#close();
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
    // The error stands behind what was not read yet: a client that reads now still sees it.
    this.#gateway.later(lastWordsMs, () => this.#sink.cut());
  }

  /** Ends the running call through its attempt, or before one began. */
  #endWith(error: GatewayError): void {
    const { attempt } = this.#tries;
    if (attempt === undefined || attempt.over) this.#refuse(error);
    else this.#tries.fail(error);
  }

  #cutStalledClient(): void {
    this.#sink.cut();
    this.#settle('failed', 'interrupted');
    this.#close();
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
    this.#sink.write(dialect.keepAlive(this.#responder !== undefined));
  }

  #settle(how: Receipt['outcome'], why: GatewayError | ClientEnd | undefined): void {
    if (this.#settled) return;
    this.#settled = true;
    const left = this.#leftAt !== undefined;
    const outcome = left ? 'canceled' : how;
    const failure = left ? 'canceled' : why;
    if (left) this.#gateway.leftStreams?.done();
    const error = typeof failure === 'string' ? failure : failure?.code;
    const { attempt, firstEventAt, meter, target, mode, notes } = this.#tries;
    // A call that no upstream began to answer costs nothing (L0); one that was left may cost (LC).
    const billed = outcome === 'canceled' ? attempt !== undefined : firstEventAt !== undefined;
    const attempts = this.#tries.ended({ outcome, error: failure });
    // Behind the last try's end: a call takes no less time than its tries.
    const now = this.#gateway.clock.now();
    this.#gateway.settle(this.#call, {
      outcome,
      status: this.#out.status,
      error,
      attempts,
      target,
      mode,
      reported: meter.reported,
      charged: billed ? meter.complete() : {},
      beside: this.#tries.beside,
      usageSource: meter.source,
      suspect: meter.suspect,
      firstEventMs: firstEventAt === undefined ? undefined : firstEventAt - this.#call.startedAt,
      totalMs: now - this.#call.startedAt,
      notes: notes.all,
      readToEnd: left && how === 'ok',
    });
    this.#done.resolve();
  }

  /** Leaves nothing of the call behind. */
  #close(): void {
    this.#gateway.sweeper.delete(this);
    this.#tries.stop();
  }
}

function canceledError(): GatewayError {
  return new GatewayError('canceled', 'The client left.');
}

function revokedKey(): GatewayError {
  return new GatewayError('unauthenticated', 'The API key of this call was revoked.');
}
