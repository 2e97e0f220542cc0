/**
 * Steps 4 to 7 of one call: its targets in their order, an attempt at each, until one commits. Here is decided what
 * is retried, what is sent in parallel (hedging, docs/user/routing.md), what is sent again in other words (corrections),
 * and how a committed answer reaches its consumer.
 */
import { asGatewayError, GatewayError } from '../core/errors.ts';
import { Collector, replay, type Generation } from '../core/generation.ts';
import { NoteList, StrictNotes } from '../core/notes.ts';
import type { Target } from '../core/provider.ts';
import type { UpstreamTraits } from '../core/traits.ts';
import { LongBody } from './long-bodies/body-thread.ts';
import { promptSpans } from '../dialects/shared/body/thin-skeleton.ts';
import { isMissingApi } from '../dialects/shared/vendor-errors.ts';
import { sampleJson, samplePrompt } from '../tokens/prompt.ts';
import { authorized, type UpstreamRequest } from '../wire/exchange.ts';
import { Attempt } from './attempt.ts';
import { AttemptOutcomes } from './attempt-outcomes.ts';
import type { AttemptReceipt, Call, ChargedTry, ClientEnd, CutReason } from '../core/call.ts';
import type { Gateway } from './gateway.ts';
import { nameOf } from './targets/health.ts';
import { corrected, readRefused, type Again, type RefusedRequest } from './learned-parameters.ts';
import { Meter } from './answer/meter.ts';
import { OutputGuard } from './answer/output-guard.ts';
import { maxAttempts, Retries } from './targets/retries.ts';
import { plan } from './targets/routing.ts';
import {
  type NextRound,
  TranslatedTurn,
  TurnRounds,
  payRound,
  roomOf,
} from './answer/translated-turn.ts';
import {
  eventsFrame,
  StreamCollector,
  type Answer,
  type CollectedAnswer,
  type StreamAnswer,
  type StreamConsumer,
} from './answer/upstream-answer.ts';
import { requestOf, type PreparedRequest, type Preparing } from './upstream-request.ts';

/** The charge of an attempt if it ends now; undefined if no request of it is charged. */
function chargeOf(attempt: Attempt | undefined): ChargedTry | undefined {
  if (attempt?.chargeable !== true) return undefined;
  return { target: attempt.target, charged: attempt.meter.complete() };
}

/** Stateless: shared by all calls. */
const strictNotes = new StrictNotes();

const noCharges: readonly ChargedTry[] = [];

/** One of two hedged requests, or the only one, with the requests that follow it at the same target. */
class Track {
  /** The attempt that runs or ran last. */
  attempt: Attempt | undefined;
  /** Its results are discarded. */
  stopped = false;
  /** Called with the first content of an answer, before anything else sees it. */
  onContent: (() => void) | undefined;
  /** The document assembled from a stream. */
  collecting: PromiseWithResolvers<Generation> | undefined;

  /** Closes its upstream connection. */
  stop(): void {
    this.stopped = true;
    this.attempt?.abort();
    this.collecting?.reject(canceled());
  }
}

export class AttemptLoop {
  readonly #gateway: Gateway;
  readonly #call: Call;
  /** Requests that went upstream; requests that were refused here do not count. */
  count = 0;
  /** Requests that may still go upstream before an answer commits (G12). */
  #left = maxAttempts;
  readonly #outcomes: AttemptOutcomes;
  /** The track whose answer the client gets, as far as known. */
  #track = new Track();
  /** The other one while two requests run. */
  #secondary: Track | undefined;
  #hedged = false;
  /** Sends no secondary request any more. */
  #cancelHedge: () => void = () => undefined;
  /** Secondary requests that were canceled. */
  #charges = noCharges;
  #retries: Retries | undefined;
  /** The pause before a retry. */
  #waiting: PromiseWithResolvers<void> | undefined;
  #promptGuess: number | undefined;
  /** Made without a parse of the body. */
  #roughGuess: number | undefined;
  #stopped = false;
  /** No further request goes upstream. */
  #lastAsked = false;

  constructor(gateway: Gateway, call: Call) {
    this.#gateway = gateway;
    this.#call = call;
    this.#outcomes = new AttemptOutcomes(gateway, call);
  }

  /** The attempt that counts: it runs or ran last; undefined before the first one. */
  get attempt(): Attempt | undefined {
    return this.#track.attempt;
  }

  /** The answer is assembled from several requests: its counts say nothing about the first one's size. */
  get continued(): boolean {
    return this.#track.attempt?.rounds?.continued === true;
  }

  /** Secondary requests that are paid for if the call ends now. */
  get secondary(): readonly ChargedTry[] {
    const running = chargeOf(this.#secondary?.attempt);
    return running === undefined ? this.#charges : [...this.#charges, running];
  }

  /** Compares the deadlines of what runs with the time. */
  check(now: number): void {
    this.#track.attempt?.check(now);
    this.#secondary?.attempt?.check(now);
  }

  /** A paused upstream is not idle. */
  touch(): void {
    this.#track.attempt?.touch();
    this.#secondary?.attempt?.touch();
  }

  /**
   * The client left. If a whole document has arrived and is being parsed, it is read to its end for its usage. False when
   * there is none.
   */
  readOn(): boolean {
    const tracks = [this.#track, this.#secondary];
    const track = tracks.find((each) => each?.attempt?.reading === true);
    if (track === undefined) return false;
    track.onContent?.();
    return true;
  }

  /** The running answer is read to its end for its usage; no further request is sent. */
  askNoMore(): void {
    this.#lastAsked = true;
  }

  /** Ends what runs as failed. */
  fail(error: GatewayError): void {
    this.#secondary?.attempt?.fail(error);
    this.#track.attempt?.fail(error);
  }

  /** Ends the call. @returns all attempts, in the order in which they began. */
  end(
    outcome: AttemptReceipt['outcome'],
    error?: GatewayError | ClientEnd,
  ): readonly AttemptReceipt[] {
    this.#leaveSecondary();
    this.#outcomes.finish(this.#track.attempt, outcome, error);
    // A canceled hedged request ended before the one that won.
    const { receipts } = this.#outcomes;
    return this.#hedged ? receipts.toSorted((a, b) => a.startedAt - b.startedAt) : receipts;
  }

  /** The call is over: closes its upstream connections. */
  stop(): void {
    this.#stopped = true;
    this.#cancelHedge();
    this.#secondary?.stop();
    this.#track.stop();
    this.#waiting?.reject(canceled());
  }

  /**
   * The only loop over targets: until one commits, or none is left, or the call was stopped. A stream for a client
   * that wants a document commits at its end.
   * @throws GatewayError
   */
  async answer(): Promise<Answer> {
    const { health, retryBudget, routing } = this.#gateway;
    const order = plan(this.#call, this.#gateway);
    let [target] = order;
    if (target !== undefined) {
      health.enter(target);
      retryBudget.called(target.provider.id, this.#call.startedAt);
    }
    while (target !== undefined) {
      try {
        const answer = await this.#askFirst(target, order);
        const { attempt } = this.#track;
        // An answer without a request says nothing about the target.
        if (attempt?.chargeable !== true) return answer;
        health.answered(attempt.target);
        routing.answered(this.#call, attempt.target);
        return answer;
      } catch (error) {
        const failure = asGatewayError(error);
        if (this.#stopped) throw failure;
        const retries = this.#retriesOf(order);
        const { attempt } = this.#track;
        if (attempt === undefined) throw failure;
        retries.note(attempt.target, failure, this.#outcomes.giveUp(attempt, failure));
        target = await this.#next(retries);
      }
    }
    throw this.#retries?.failure ?? new GatewayError('model_not_found', 'The model has no target.');
  }

  #retriesOf(order: readonly Target[]): Retries {
    this.#retries ??= new Retries(this.#gateway, this.#call, order);
    return this.#retries;
  }

  /** The target of the next attempt, when its wait is over. @throws GatewayError when the call is stopped. */
  async #next(retries: Retries): Promise<Target | undefined> {
    if (this.#left === 0 || this.#lastAsked || this.continued) return undefined;
    const next = retries.next();
    if (next === undefined || next.waitMs === 0) return next?.target;
    const waiting = Promise.withResolvers<void>();
    this.#waiting = waiting;
    const cancel = this.#gateway.later(next.waitMs, waiting.resolve);
    try {
      await waiting.promise;
    } finally {
      this.#waiting = undefined;
      cancel();
    }
    return next.target;
  }

  /** Only the first request of a call is hedged, and only where both requests are paid for. */
  #askFirst(target: Target, order: readonly Target[]): Promise<Answer> {
    const { route, grant } = this.#call;
    const hedge = this.count > 0 || grant?.mayHedge === false ? undefined : route.hedge;
    if (hedge === undefined || order.length < 2) return this.#ask(this.#track, target);
    return this.#askHedged(target, order, hedge.afterMs);
  }

  /** A slow first request gets a secondary one in parallel; the one with the first content wins. */
  #askHedged(target: Target, order: readonly Target[], afterMs: number): Promise<Answer> {
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    /** Tracks that may still answer. */
    const running = new Set<Track>();
    const ask = (track: Track, asked: Target): void => {
      running.add(track);
      const won = (): void => {
        if (!running.has(track)) return;
        track.onContent = undefined;
        this.#cancelHedge();
        running.clear();
        running.add(track);
        // The first content arrived: the other of two requests is canceled.
        if (this.#stopped) return;
        if (track === this.#secondary) {
          this.#secondary = this.#track;
          this.#track = track;
        }
        this.#leaveSecondary();
      };
      const answered = (answer: Answer): void => {
        won();
        if (running.has(track)) resolve(answer);
      };
      const failed = (error: unknown): void => {
        track.onContent = undefined;
        if (!running.delete(track)) return;
        if (running.size > 0) return this.#oneFailed(track, order, error);
        this.#cancelHedge();
        reject(error);
      };
      track.onContent = won;
      this.#ask(track, asked).then(answered, failed);
    };
    this.#hedged = true;
    this.#cancelHedge = this.#gateway.later(afterMs, () => {
      const second = this.#secondTarget(order);
      if (second === undefined) return;
      this.#secondary = new Track();
      ask(this.#secondary, second);
    });
    ask(this.#track, target);
    return promise;
  }

  #secondTarget(order: readonly Target[]): Target | undefined {
    const { attempt } = this.#track;
    if (this.#stopped || this.#left === 0 || attempt === undefined || attempt.begun) {
      return undefined;
    }
    return this.#retriesOf(order).secondary(attempt.target);
  }

  /** One of two hedged requests failed; the other one counts now. */
  #oneFailed(track: Track, order: readonly Target[], error: unknown): void {
    const { attempt } = track;
    if (this.#stopped || attempt === undefined) return;
    const failure = asGatewayError(error);
    this.#retriesOf(order).note(attempt.target, failure, this.#outcomes.giveUp(attempt, failure));
    this.#track = (track === this.#track ? this.#secondary : this.#track) ?? track;
    this.#secondary = undefined;
  }

  #leaveSecondary(): void {
    const track = this.#secondary;
    const attempt = track?.attempt;
    this.#secondary = undefined;
    if (track === undefined) return;
    const charge = chargeOf(attempt);
    if (charge !== undefined && attempt?.begun === false) {
      this.#outcomes.noteSpeed(attempt, this.#gateway.clock.now());
    }
    this.#outcomes.finish(attempt, 'canceled', 'canceled');
    track.stop();
    if (charge !== undefined) this.#charges = [...this.#charges, charge];
  }

  /** The answer of one target. @throws GatewayError */
  #ask(track: Track, target: Target): Promise<Answer> {
    const { byOwnApi } = target;
    // A conversation is compacted by one API only.
    if (byOwnApi === undefined || this.#call.head.compacts === true) {
      return this.#askBy(track, target);
    }
    if (this.#gateway.learned.lacksApi(target)) return this.#askBy(track, byOwnApi);
    return this.#askEither(track, target, byOwnApi);
  }

  /** By the API that the gateway chose; where the server does not know it, by the provider's own one. */
  async #askEither(track: Track, target: Target, byOwnApi: Target): Promise<Answer> {
    try {
      return await this.#askBy(track, target);
    } catch (error) {
      if (!this.#endedAsMissing(track, error)) throw error;
    }
    try {
      const answer = await this.#askBy(track, byOwnApi);
      this.#learnMissing(target);
      return answer;
    } catch (error) {
      const failure = asGatewayError(error);
      // Another refusal than of the address: the server has this API. A server that fails, or is away, shows nothing.
      const status = failure.upstream?.status ?? 0;
      if (status >= 400 && status < 500 && !isMissingApi(failure)) {
        this.#learnMissing(target);
      }
      throw error;
    }
  }

  /** Ends the attempt, without a failure of its target, if the server does not know the API; false otherwise. */
  #endedAsMissing(track: Track, error: unknown): boolean {
    const { attempt } = track;
    const refusal = asGatewayError(error);
    const { upstream } = refusal;
    if (attempt === undefined || upstream === undefined || !isMissingApi(refusal)) return false;
    if (track.stopped || this.#left === 0 || this.#lastAsked) return false;
    const why = 'The provider does not have the API that it was asked by.';
    const ending = new GatewayError('upstream_rejected', why, { upstream, ofRequest: true });
    this.#outcomes.giveUp(attempt, ending);
    return true;
  }

  #learnMissing(target: Target): void {
    const { learned, log } = this.#gateway;
    if (learned.lacksApi(target)) return;
    learned.rememberMissing(target);
    const { id, generate, dialect } = target.provider;
    log.warn('api_missing', {
      provider: id,
      api: dialect.id,
      address: `${generate.origin}${generate.path}`,
      instead: target.byOwnApi?.provider.dialect.id,
      hint: 'The server is asked again in an hour. A dialect of the provider in the config leaves that out.',
    });
  }

  /** The answer of one target, after corrections of refused members. @throws GatewayError */
  async #askBy(track: Track, target: Target): Promise<Answer> {
    const { learned } = this.#gateway;
    const { keyId, team } = this.#call.caller;
    const tenant = team ?? keyId;
    let traits = learned.traits(target, tenant);
    let again: Again | undefined;
    let renewed = false;
    for (;;) {
      try {
        const attempt = this.#begin(track, target);
        const preparing = this.#prepare(track, attempt, traits);
        const prepared = preparing instanceof Promise ? await preparing : preparing;
        noteCorrection(prepared, again, attempt.notes);
        this.#begun(attempt, prepared);
        let answer: Answer;
        if (warmsCache(prepared)) answer = this.#unasked(attempt);
        else {
          attempt.rounds = roundsOf(prepared);
          answer = await this.#exchange(track, attempt, prepared.request);
          this.#answered(track, attempt);
          if (this.#mustCollect(attempt, answer)) answer = await this.#collect(track, answer);
        }
        if (again !== undefined) learned.remember({ target, tenant, ...again.taught });
        return answer;
      } catch (error) {
        if (!renewed && this.#endedForRenewal(track, error)) {
          renewed = true;
          continue;
        }
        const refused = await this.#refused(track, error, traits);
        if (refused === undefined) throw error;
        if (refused.error === again?.refused.error || track.attempt === undefined) throw error;
        this.#outcomes.giveUp(track.attempt, refused.error);
        again = corrected(refused, again);
        traits = { ...traits, ...refused.correction.traits };
      }
    }
  }

  /**
   * Ends the attempt, without a failure of its target, if its credential was refused and a newer one can be had; false
   * otherwise.
   */
  #endedForRenewal(track: Track, error: unknown): boolean {
    const { attempt } = track;
    const { credential } = attempt?.target.provider.generate ?? {};
    if (credential === undefined || attempt?.credentialHeaders === undefined) return false;
    if (track.stopped || this.#left === 0 || this.#lastAsked) return false;
    const refusal = asGatewayError(error);
    const { code, message, upstream } = refusal;
    if (upstream === undefined || !credential.renew(attempt.credentialHeaders, refusal))
      return false;
    this.#outcomes.giveUp(attempt, new GatewayError(code, message, { upstream, ofRequest: true }));
    return true;
  }

  /** @param previous the previous request of a paused turn. */
  #begin(track: Track, target: Target, previous?: Attempt): Attempt {
    const { clock, client, health, routing, bodies } = this.#gateway;
    const { trace } = this.#call;
    const attempt = new Attempt(
      {
        target,
        meter: previous?.meter ?? this.#newMeter(target),
        clock,
        client,
        bodies,
        health,
        spanId: trace?.newSpanId(),
      },
      previous,
    );
    attempt.loads = routing.load.begin(nameOf(target));
    track.attempt = attempt;
    return attempt;
  }

  #newMeter(target: Target): Meter {
    const { trace, grant } = this.#call;
    // The reservation has read the prompt already, and its parsed form may be gone by now.
    const guess = (): number =>
      (this.#promptGuess ??= grant?.promptGuess ?? promptSample(this.#call));
    const roughGuess = (): number =>
      this.#promptGuess ??
      grant?.promptGuess ??
      (this.#roughGuess ??= roughPromptSample(this.#call)) ??
      guess();
    const meter = new Meter(this.#gateway.estimator, nameOf(target), guess, roughGuess);
    if (trace?.content === true) meter.keepAnswer();
    return meter;
  }

  /** @param round of a paused turn: its notes are those of the first request. */
  #prepare(track: Track, attempt: Attempt, traits: UpstreamTraits, round?: NextRound): Preparing {
    const notes = round === undefined ? attempt.notes : new NoteList();
    const { spanId } = attempt;
    const options = { traits, notes, round, spanId, wanted: () => !track.stopped };
    const prepared = requestOf(this.#gateway, this.#call, attempt.target, options);
    // Rounds and corrections parse the body again; it is not kept in memory while the upstream works.
    this.#call.source.forget();
    return prepared;
  }

  async #refused(
    track: Track,
    error: unknown,
    traits: UpstreamTraits,
  ): Promise<RefusedRequest | undefined> {
    const body = track.attempt?.prepared?.request.body;
    if (body === undefined || track.stopped || this.#left === 0 || this.#lastAsked) {
      return undefined;
    }
    const { source } = this.#call;
    const refused = await readRefused(
      asGatewayError(error),
      { body, traits, source, wanted: () => !track.stopped },
      this.#gateway.bodies,
    );
    // The call may have ended while a long answer was parsed.
    return track.stopped ? undefined : refused;
  }

  /** The first request of a turn is made. */
  #begun(attempt: Attempt, prepared: PreparedRequest): void {
    attempt.prepared = prepared;
    attempt.mode = prepared.mode;
    const { stream, choices = 1 } = this.#call.head;
    attempt.rewritten = prepared.mode === 'translate' || !stream;
    attempt.choices = choices;
    attempt.meter.watch(prepared.watch);
  }

  /** The answer to a request that only warms a cache of another dialect: nothing is sent. */
  #unasked(attempt: Attempt): CollectedAnswer {
    attempt.ended = true;
    this.#outcomes.unload(attempt);
    const { dialect, source, strict } = this.#call;
    const notes = strict ? strictNotes : attempt.notes;
    notes.lost(
      [dialect.describe(source).capMember()],
      'there is no cache to warm; the model was not asked',
    );
    const ending = { finish: { kind: 'stop' }, usage: { outputTokens: 0 } } as const;
    const generation: Generation = { id: '', model: '', parts: [], ...ending };
    const events = replay(generation);
    for (const event of events) attempt.meter.see(event);
    return { kind: 'collected', generation, events };
  }

  /** Whether the answer must be put together for a client that wants a document. */
  #mustCollect({ prepared, rounds }: Attempt, { kind }: Answer): boolean {
    // The client left: the answer is read for its usage only.
    if (this.#lastAsked || this.#call.head.stream) return false;
    return kind === 'stream' || (prepared?.scanned.length ?? 0) > 0 || rounds?.paused === true;
  }

  /**
   * Sends a request. Only the answer is a promise where nothing else waits.
   * @returns the answer, to be noted by `#answered`. @throws GatewayError, at once or as a rejection
   */
  #exchange(track: Track, attempt: Attempt, request: UpstreamRequest): Promise<Answer> {
    this.count += 1;
    this.#left -= 1;
    const waking = track.stopped ? undefined : attempt.target.provider.wake?.();
    const ready =
      waking === undefined
        ? this.#letIn(track, request)
        : waking.then(() => this.#letIn(track, request));
    return ready instanceof Promise
      ? ready.then((letIn) => this.#sendReady(track, attempt, letIn))
      : this.#sendReady(track, attempt, ready);
  }

  #letIn(track: Track, request: UpstreamRequest): UpstreamRequest | Promise<UpstreamRequest> {
    if (track.stopped) throw canceled();
    const once = this.#call.route.retry?.afterSent === false;
    return authorized(once ? { ...request, once } : request);
  }

  #sendReady(track: Track, attempt: Attempt, request: UpstreamRequest): Promise<Answer> {
    if (track.stopped) throw canceled();
    const { head } = this.#call;
    const reasons = attempt.prepared?.traits.reasonsFirst === true || head.reasons === true;
    return attempt.send(request, reasons);
  }

  /** @throws GatewayError if the other one of two hedged requests has won in the same tick. */
  #answered(track: Track, attempt: Attempt): void {
    if (track.stopped) throw canceled();
    track.onContent?.();
    this.#outcomes.noteSpeed(attempt, attempt.firstEventAt);
    attempt.answeredAt ??= attempt.firstEventAt;
  }

  /** Assembles a stream for a client that wants a document. */
  async #collect(track: Track, answer: Answer): Promise<CollectedAnswer> {
    if (track.attempt !== undefined) track.attempt.mode = 'translate';
    const collecting = Promise.withResolvers<Generation>();
    track.collecting = collecting;
    const collector = new StreamCollector(new Collector(), {
      complete: (generation) => collecting.resolve(generation),
      failed: (error) => collecting.reject(error),
    });
    this.#deliver(track, answer, { consumer: collector, mayFlow: () => true });
    const generation = await collecting.promise;
    return { kind: 'collected', generation, events: replay(generation) };
  }

  /**
   * Passes the committed answer and its later events on.
   * @param mayFlow false while the client reads nothing: the upstream then stays paused.
   */
  deliver(answer: Answer, consumer: StreamConsumer, mayFlow: () => boolean): void {
    this.#deliver(this.#track, answer, { consumer, mayFlow });
  }

  #deliver(track: Track, answer: Answer, { consumer, mayFlow }: Delivery): void {
    const rounds = track.attempt?.rounds;
    const scanned = track.attempt?.prepared?.scanned ?? [];
    if (answer.kind === 'collected' || (scanned.length === 0 && rounds === undefined)) {
      return this.#feed(track, answer, {
        consumer: this.#guarded(track, answer, consumer),
        mayFlow,
      });
    }
    const turn: StreamConsumer = new TranslatedTurn({
      consumer,
      scanned,
      rounds,
      source: {
        cut: () => cut(track, 'stop'),
        continueTurn: async () => {
          const rest = await this.#nextRound(track);
          if (rest !== undefined) this.#feed(track, rest, delivery);
        },
      },
    });
    const delivery = { consumer: this.#guarded(track, answer, turn), mayFlow };
    this.#feed(track, answer, delivery);
  }

  /** Cuts the stream of a call with a budget at its reservation; documents cannot be cut. */
  #guarded(track: Track, answer: Answer, consumer: StreamConsumer): StreamConsumer {
    const { grant, head } = this.#call;
    const { attempt } = track;
    if (grant?.outputCap === undefined || answer.kind !== 'stream' || attempt === undefined) {
      return consumer;
    }
    return new OutputGuard({
      consumer,
      grant,
      cap: grant.outputCap,
      choices: head.choices ?? 1,
      meter: attempt.meter,
      source: {
        finished: () => track.attempt?.finished === true,
        cut: () => cut(track, 'limit'),
        fail: (error) => track.attempt?.fail(error),
      },
    });
  }

  #feed(
    { attempt, stopped }: Track,
    answer: DeliveredAnswer,
    { consumer, mayFlow }: Delivery,
  ): void {
    if (answer.kind !== 'stream') return consumer.frames([eventsFrame(answer.events)]);
    attempt?.attach(consumer);
    if (!stopped && mayFlow()) attempt?.resume();
  }

  /**
   * The next part of a paused turn from the same target, or its end where its cap is spent; undefined when the call was
   * stopped meanwhile. @throws GatewayError
   */
  async #nextRound(track: Track): Promise<DeliveredAnswer | undefined> {
    const before = track.attempt;
    const { rounds, prepared, target, meter } = before ?? {};
    if (!before || !rounds || !prepared || !target || !meter) return undefined;
    const { provider } = target;
    const origin = { provider: provider.id, dialect: provider.dialect.id };
    this.#outcomes.end(before, 'ok');
    before.abort();
    const used = meter.paused();
    // The client left: it would pay for an answer that it does not read.
    if (this.#lastAsked) throw canceled();
    const room = roomOf(this.#call, prepared.conversation?.sampling.maxOutputTokens, used);
    if (room === 0) {
      const finish = rounds.end();
      meter.see(finish);
      return { kind: 'collected', events: [finish] };
    }
    const { answered, resume } = rounds.nextRound(used);
    try {
      const most = await payRound(this.#call, used, room);
      if (track.stopped) return undefined;
      const attempt = this.#begin(track, target, before);
      const { request } = await this.#prepare(track, attempt, prepared.traits, {
        answered: answered.map((part) =>
          part.type === 'reasoning' || part.type === 'tool-call' ? { ...part, origin } : part,
        ),
        most,
        resume,
      });
      meter.nextRound(used);
      const rest = await this.#exchangeRound(track, attempt, request);
      return track.stopped ? undefined : rest;
    } catch (error) {
      if (track.stopped) return undefined;
      throw error;
    }
  }

  async #exchangeRound(track: Track, attempt: Attempt, request: UpstreamRequest): Promise<Answer> {
    try {
      const rest = await this.#exchange(track, attempt, request);
      this.#answered(track, attempt);
      return rest;
    } catch (error) {
      // A request that no upstream began to answer costs nothing.
      if (attempt.firstEventAt === undefined && !track.stopped) attempt.meter.wentNowhere();
      throw error;
    }
  }
}

/** An answer as its consumer gets it. */
type DeliveredAnswer = StreamAnswer | Pick<Exclude<Answer, StreamAnswer>, 'kind' | 'events'>;

interface Delivery {
  readonly consumer: StreamConsumer;
  readonly mayFlow: () => boolean;
}

/** Only turns in which the provider runs its own tools are ever paused, and those of models that answer in parts. */
function roundsOf({ conversation, traits }: PreparedRequest): TurnRounds | undefined {
  if (conversation === undefined) return undefined;
  const usesTools = conversation.tools.some(({ native }) => native !== undefined);
  return usesTools || traits.continuation === true ? new TurnRounds() : undefined;
}

/** Ends an answer before its upstream does. */
function cut({ attempt }: Track, why: CutReason): void {
  if (attempt === undefined) return;
  attempt.cut = why;
  attempt.abort();
}

/** `max_tokens: 0`, which only the client's own dialect supports. */
function warmsCache({ conversation }: PreparedRequest): boolean {
  return conversation?.sampling.maxOutputTokens === 0;
}

/** Notes the correction, if there is one. @throws GatewayError if it changed nothing: the request would be refused again. */
function noteCorrection(
  { request }: PreparedRequest,
  again: Again | undefined,
  notes: NoteList,
): void {
  if (again === undefined) return;
  const { refused, members } = again;
  // Whether it streams may be in the address alone.
  const streamsOtherwise = refused.correction.traits.streams !== undefined;
  if (request.body?.equals(refused.body) === true && !streamsOtherwise) throw refused.error;
  const why = `the provider refused ${members.join(', ')}; retried in another form`;
  notes.changed(['model'], why);
}

function promptSample({ source, dialect }: Call): number {
  if (source instanceof LongBody) return source.sample;
  return samplePrompt(dialect.describe(source).prompt());
}

/** Shorter bodies are parsed in the time of such a sample. */
const roughlyFrom = 16 * 1024;
/** Bytes of a longer one that are examined: a parse of 100 KB would take half as long as the call. */
const roughlySampled = 1600;

/**
 * Tokens of the prompt for the record of a running call, without a parse of the body. Schemas of answers are not counted.
 * Undefined where only the parsed body tells: it is short, has files, or its sample shows no words.
 */
function roughPromptSample({ source }: Call): number | undefined {
  if (source instanceof LongBody || source.pieces.length < roughlyFrom) return undefined;
  if (source.has('media') || source.has('address')) return undefined;
  const parts = promptSpans(source.spans).flatMap(({ start, end }) =>
    source.pieces.between(start, end),
  );
  const tokens = sampleJson(parts, roughlySampled);
  return tokens === 0 ? undefined : tokens;
}

function canceled(): GatewayError {
  return new GatewayError('canceled', 'The client disconnected.');
}
