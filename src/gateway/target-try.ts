/**
 * Steps 5 and 6 at one target: the request in its dialect, if need be corrected, sent, read up to the
 * commit point, handed over. What is known of the running try stands here: target, mode, request, notes,
 * usage. One after the other, one of these asks several targets.
 */
import type { Conversation, Origin, Part } from '../core/conversation.ts';
import { asGatewayError, GatewayError } from '../core/errors.ts';
import { Collector, replay, type Generation } from '../core/generation.ts';
import { NoteList, StrictNotes } from '../core/notes.ts';
import type { Target } from '../core/provider.ts';
import type { UpstreamTraits } from '../core/traits.ts';
import { promptOf, samplePrompt } from '../tokens/prompt.ts';
import type { UpstreamRequest } from '../wire/exchange.ts';
import { Attempt } from './attempt.ts';
import { AttemptLog, type AttemptEnd } from './attempt-log.ts';
import type { Call, Gateway } from './call.ts';
import { corrected, readRefused, type Again, type RefusedRequest } from './corrected-request.ts';
import { correctionFor } from './learned-parameters.ts';
import { nameOf } from './health.ts';
import { Meter } from './meter.ts';
import { payRound, type NextRound } from './next-round.ts';
import { OutputGuard } from './output-guard.ts';
import { maxAttempts } from './plan.ts';
import type { AttemptReceipt, ChargedTry, CutReason, Mode } from './receipt.ts';
import { mayFallBack, type FailedTry } from './repeatable.ts';
import { StreamCollector } from './stream-collector.ts';
import { TranslatedTurn } from './translated-turn.ts';
import { TurnRounds } from './turn-rounds.ts';
import {
  eventsFrame,
  type Answer,
  type CollectedAnswer,
  type StreamConsumer,
} from './upstream-answer.ts';
import { prepareRequest, type PreparedRequest, type Preparing } from './upstream-request.ts';

/** Holds nothing: shared by all calls. */
const strictNotes = new StrictNotes();

/** What the tries of one call use up together. */
export class TryQuota {
  /** Requests that went upstream, and those that were refused here. */
  count = 0;
  /** Requests that may still go upstream before an answer commits (G12). */
  left = maxAttempts;
}

export interface TargetTryParts {
  readonly gateway: Gateway;
  readonly call: Call;
  readonly quota: TryQuota;
  /** All tries of the call that are over. */
  readonly receipts: AttemptReceipt[];
}

export class TargetTry {
  readonly notes = new NoteList();
  readonly meter: Meter;
  readonly #gateway: Gateway;
  readonly #call: Call;
  readonly #quota: TryQuota;
  readonly #log: AttemptLog;
  #attempt: Attempt | undefined;
  #target: Target | undefined;
  #mode: Mode | undefined;
  #prepared: PreparedRequest | undefined;
  #rounds: TurnRounds | undefined;
  #firstEventAt: number | undefined;
  /** The answer that is being put together for a client that wants a document. */
  #collecting: PromiseWithResolvers<Generation> | undefined;
  #stopped = false;
  #spanId: string | undefined;
  #cut: CutReason | undefined;
  /** The target that counts this call as running. */
  #loads: string | undefined;

  /** Told when the first content of an answer is there, before anyone else. */
  contentCame: (() => void) | undefined;

  constructor({ gateway, call, quota, receipts }: TargetTryParts) {
    this.#gateway = gateway;
    this.#call = call;
    this.#quota = quota;
    this.#log = new AttemptLog(receipts);
    this.meter = new Meter(gateway.estimator, () => samplePrompt(promptOf(call.source.value)));
    if (call.trace?.content === true) this.meter.keepAnswer();
  }

  /** The attempt that is running or ran last. */
  get attempt(): Attempt | undefined {
    return this.#attempt;
  }

  get target(): Target | undefined {
    return this.#target;
  }

  get mode(): Mode | undefined {
    return this.#mode;
  }

  get prepared(): PreparedRequest | undefined {
    return this.#prepared;
  }

  /** The answer is of several requests: its counts say nothing about the first one's size. */
  get continued(): boolean {
    return this.#rounds?.continued === true;
  }

  /** When the upstream began to answer; undefined when it did not. */
  get firstEventAt(): number | undefined {
    return this.#firstEventAt;
  }

  /** What the running request may cost though nobody waits for its answer (LC); undefined when nothing runs. */
  get chargedIfLeft(): ChargedTry | undefined {
    const target = this.#target;
    if (target === undefined || this.#attempt === undefined) return undefined;
    return { target, charged: this.meter.complete() };
  }

  /** The last try ended like this, and nothing comes behind it. */
  ended(how: Pick<AttemptEnd, 'outcome' | 'error'>): void {
    this.#tellHealth(how);
    this.#endTry(how);
  }

  /** The try failed like this. @returns what tells whether it may be repeated. */
  failed(target: Target, error: GatewayError): FailedTry {
    const streamed = this.#prepared?.streamed === true;
    const status = this.#attempt?.status ?? 0;
    this.#giveUp(target, error);
    return { status, streamed, maybeBilled: this.#log.all.at(-1)?.maybeBilled === true };
  }

  /** Another request was sooner, or the call is over: this one is let go. @returns what it may cost. */
  leave(): ChargedTry | undefined {
    const charged = this.chargedIfLeft;
    if (charged !== undefined && this.#attempt?.begun !== true) {
      const streamed = this.#prepared?.streamed === true;
      this.#tellSpeed(charged.target, { streamed, until: this.#gateway.clock.now() });
    }
    this.ended({ outcome: 'canceled', error: 'canceled' });
    this.stop();
    return charged;
  }

  /** Nothing will be made of the call any more: its upstream is let go. */
  stop(): void {
    this.#stopped = true;
    this.#attempt?.abort();
    this.#collecting?.reject(canceled());
  }

  #begin(target: Target): void {
    this.#unload();
    this.#spanId = this.#call.trace?.newSpanId();
    this.#cut = undefined;
    this.#log.begin(target, this.#gateway.clock.now(), this.#spanId);
    const name = nameOf(target);
    if (this.#gateway.routing.load.begin(name)) this.#loads = name;
  }

  /** The target has one call less, if anyone counts. */
  #unload(): void {
    if (this.#loads === undefined) return;
    this.#gateway.routing.load.end(this.#loads);
    this.#loads = undefined;
  }

  #tellSpeed(target: Target, how: { streamed: boolean; until: number | undefined }): void {
    const { streamed, until: now } = how;
    if (now === undefined) return;
    const ms = now - this.#log.startedAt;
    this.#gateway.routing.speed.saw(nameOf(target), { streamed, now, ms });
  }

  #endTry(how: Pick<AttemptEnd, 'outcome' | 'error'>): void {
    this.#unload();
    const { status = 0, firstEventAt, errorBody } = this.#attempt ?? {};
    const { reported } = this.#rounds === undefined ? this.meter : { reported: this.#rounds.last };
    const now = this.#gateway.clock.now();
    // Only spans tell it.
    const said = this.#spanId === undefined ? undefined : this.meter.said;
    const seen = { now, status, firstEventAt, reported, said, errorBody, cut: this.#cut };
    this.#log.end({ ...how, ...seen });
  }

  /** What a target answers, if need be after corrections of what it refuses (B9). */
  async ask(target: Target): Promise<Answer> {
    const { learned } = this.#gateway;
    let traits = learned.traits(target);
    let again: Again | undefined;
    for (;;) {
      try {
        const answer = await this.#try(target, traits, again);
        if (again !== undefined) learned.remember(target, again.lasting);
        return answer;
      } catch (error) {
        const refused = await this.#refused(error, traits);
        const correction = refused === undefined ? undefined : correctionFor(refused);
        if (refused === undefined || correction === undefined) throw error;
        if (refused.error === again?.refused.error) throw error;
        this.#giveUp(target, refused.error);
        again = corrected(refused, correction, again);
        traits = { ...traits, ...correction.traits };
      }
    }
  }

  async #try(target: Target, traits: UpstreamTraits, again?: Again): Promise<Answer> {
    this.#target = target;
    this.#quota.count += 1;
    this.#attempt = undefined;
    this.#begin(target);
    this.#firstEventAt = undefined;
    this.#rounds = undefined;
    this.meter.begin(`${target.provider.id}/${target.model}`);
    this.notes.all.length = 0;
    const prepared = await this.#prepare(target, traits);
    if (again !== undefined) this.#assertCorrected(prepared, again);
    this.#prepared = prepared;
    this.#mode = prepared.mode;
    this.meter.watch(prepared.watch);
    if (prepared.conversation?.sampling.maxOutputTokens === 0) return this.#answerNothing();
    if (mayPause(prepared.conversation)) this.#rounds = new TurnRounds();
    const answer = await this.#send(target, prepared.request);
    const mustCollect =
      answer.kind === 'stream' || prepared.scanned.length > 0 || this.#rounds?.paused === true;
    return mustCollect && !this.#call.head.stream ? this.#collect(answer) : answer;
  }

  #prepare(target: Target, traits: UpstreamTraits, round?: NextRound): Preparing {
    const { newId, memory } = this.#gateway;
    const { grant, head } = this.#call;
    const answered = round?.answered;
    const cap = round?.most ?? (grant?.tellsCap === true ? grant.outputCap : undefined);
    const ask = { model: target.model, stream: head.stream, traits, newId, maxOutputTokens: cap };
    // What a later round's request loses was told with the first.
    const own = answered === undefined ? this.notes : new NoteList();
    const translated = target.provider.dialect.id !== this.#call.dialect.id;
    const strict = this.#call.strict && translated && answered === undefined;
    const notes = strict ? strictNotes : own;
    if (grant?.capNote !== undefined) own.changed(['max_tokens'], grant.capNote);
    const means = { ask, memory, notes, answered, spanId: this.#spanId };
    const prepared = prepareRequest(this.#call, target, means);
    // Rounds and corrections read it again; while an upstream is waited for nobody needs it.
    this.#call.source.forget();
    return prepared;
  }

  /** The same request again would only be refused again. */
  #assertCorrected(prepared: PreparedRequest, { refused, members }: Again): void {
    if (prepared.request.body?.equals(refused.body) === true) throw refused.error;
    const why = `the provider refused ${members.join(', ')}; asked again in another way`;
    this.notes.changed(['model'], why);
  }

  async #refused(error: unknown, traits: UpstreamTraits): Promise<RefusedRequest | undefined> {
    const body = this.#prepared?.request.body;
    if (body === undefined || this.#stopped || this.#quota.left === 0) return undefined;
    const relayed = this.#mode === 'relay' ? this.#call.source : undefined;
    const refused = await readRefused(asGatewayError(error), { body, traits, relayed });
    // Nobody may wait for the answer any more when a long one is read.
    return this.#stopped ? undefined : refused;
  }

  /** `max_tokens: 0` asks to warm a cache that only the client's own dialect has (§2.1). */
  #answerNothing(): Answer {
    this.#quota.count -= 1;
    this.#log.drop();
    this.#unload();
    const notes = this.#call.strict ? strictNotes : this.notes;
    notes.lost(['max_tokens'], 'there is no cache to warm; the model was not asked');
    const ending = { finish: { kind: 'stop' }, usage: { outputTokens: 0 } } as const;
    const generation: Generation = { id: '', model: '', parts: [], ...ending };
    const events = replay(generation);
    for (const event of events) this.meter.see(event);
    return { kind: 'collected', generation, events };
  }

  async #send(target: Target, request: UpstreamRequest): Promise<Answer> {
    this.#quota.left -= 1;
    const waking = this.#wake(target);
    if (waking !== undefined) await waking;
    if (this.#stopped) throw canceled();
    const { client, clock, health } = this.#gateway;
    const traits = this.#prepared?.traits ?? target.provider.traits(target.model);
    const streamed = this.#prepared?.streamed === true;
    const reasons = traits.reasonsFirst === true || this.#call.head.reasons === true;
    const means = { client, clock, health, reasons, meter: this.meter, rounds: this.#rounds };
    const attempt = new Attempt({ target, traits, streamed, ...means });
    this.#attempt = attempt;
    const once = this.#call.route.retry?.afterSent === false;
    const answer = await attempt.send(once ? { ...request, once } : request);
    // What came in the same moment as a sooner answer is nobody's.
    if (this.#stopped) throw canceled();
    this.contentCame?.();
    this.#tellSpeed(target, { streamed, until: attempt.firstEventAt });
    this.#firstEventAt ??= attempt.firstEventAt;
    return answer;
  }

  /** No engine is woken for a client that left while its long request was made. */
  #wake({ provider }: Target): Promise<void> | undefined {
    return this.#stopped ? undefined : provider.wake?.();
  }

  /** Puts a stream together for a client that wants a document (F23). */
  async #collect(answer: Answer): Promise<CollectedAnswer> {
    this.#mode = 'translate';
    const collecting = Promise.withResolvers<Generation>();
    this.#collecting = collecting;
    const collector = new StreamCollector(new Collector(), {
      complete: (generation) => collecting.resolve(generation),
      failed: (error) => collecting.reject(error),
    });
    this.deliver(answer, collector);
    const generation = await collecting.promise;
    return { kind: 'collected', generation, events: replay(generation) };
  }

  /**
   * Hands a committed answer over, and all that comes of it later.
   * @param mayFlow false while the client takes nothing: the upstream then stays paused.
   */
  deliver(answer: Answer, consumer: StreamConsumer, mayFlow: () => boolean = () => true): void {
    const rounds = this.#rounds;
    const scanned = this.#prepared?.scanned ?? [];
    if (answer.kind === 'collected' || (scanned.length === 0 && rounds === undefined)) {
      return this.#feed(answer, this.#guarded(answer, consumer), mayFlow);
    }
    const turn: StreamConsumer = new TranslatedTurn({
      consumer,
      scanned,
      rounds,
      source: {
        cut: () => this.#cutAt('stop'),
        goOn: async () => {
          const rest = await this.#nextRound();
          if (rest !== undefined) this.#feed(rest, guarded, mayFlow);
        },
      },
    });
    const guarded = this.#guarded(answer, turn);
    this.#feed(answer, guarded, mayFlow);
  }

  /** Only a stream can be cut at what was reserved for it. */
  #guarded(answer: Answer, consumer: StreamConsumer): StreamConsumer {
    const { grant, head } = this.#call;
    if (grant?.outputCap === undefined || answer.kind !== 'stream') return consumer;
    return new OutputGuard({
      consumer,
      grant,
      cap: grant.outputCap,
      choices: head.choices ?? 1,
      meter: this.meter,
      source: {
        finished: () => this.#attempt?.finished === true,
        cut: () => this.#cutAt('limit'),
        fail: (error) => this.#attempt?.fail(error),
      },
    });
  }

  /** The answer is whole here, whatever the upstream would still say. */
  #cutAt(why: CutReason): void {
    this.#cut = why;
    this.#attempt?.abort();
  }

  #feed(answer: Answer, consumer: StreamConsumer, mayFlow: () => boolean): void {
    if (answer.kind !== 'stream') return consumer.frames([eventsFrame(answer.events)]);
    this.#attempt?.attach(consumer);
    if (!this.#stopped && mayFlow()) this.#attempt?.resume();
  }

  /** The rest of a paused turn from the same target; undefined when the call was stopped meanwhile. */
  async #nextRound(): Promise<Answer | undefined> {
    const rounds = this.#rounds;
    const target = this.#target;
    const traits = this.#prepared?.traits;
    if (rounds === undefined || target === undefined || traits === undefined) return undefined;
    const { provider } = target;
    const origin = { provider: provider.id, dialect: provider.dialect.id };
    this.#endTry({ outcome: 'ok' });
    this.#attempt?.abort();
    const used = this.meter.paused();
    const answered = rounds.goOn(used).map((part) => madeBy(part, origin));
    try {
      const most = await payRound(this.#call, used);
      if (this.#stopped) return undefined;
      this.#quota.count += 1;
      this.#begin(target);
      const { request } = await this.#prepare(target, traits, { answered, most });
      this.meter.goOn(used);
      const rest = await this.#sendFurther(target, request);
      return this.#stopped ? undefined : rest;
    } catch (error) {
      if (this.#stopped) return undefined;
      throw error;
    }
  }

  /** One that no upstream began to answer costs nothing (L0). */
  async #sendFurther(target: Target, request: UpstreamRequest): Promise<Answer> {
    const before = this.#attempt;
    try {
      return await this.#send(target, request);
    } catch (error) {
      const begun = this.#attempt !== before && this.#attempt?.firstEventAt !== undefined;
      if (!begun && !this.#stopped) this.meter.wentNowhere();
      throw error;
    }
  }

  #giveUp(target: Target, error: GatewayError): void {
    this.#endTry({ outcome: 'failed', error });
    this.#attempt?.abort();
    // Until the next one begins nothing runs that could be billed, paused or timed.
    this.#attempt = undefined;
    this.#gateway.health.failed(target, error);
    const streamed = this.#prepared?.streamed === true;
    const now = this.#gateway.clock.now();
    if (error.code === 'timeout') this.#tellSpeed(target, { streamed, until: now });
    else if (mayFallBack(error)) {
      this.#gateway.routing.speed.failed(nameOf(target), { streamed, now });
    }
    this.#gateway.log.warn('attempt failed', {
      call: this.#call.id,
      trace_id: this.#call.trace?.traceId,
      target: nameOf(target),
      credential: target.credential,
      error: error.code,
      message: error.message,
      upstream_status: error.upstream?.status,
      location: error.location,
    });
  }

  /** What the end of the call says of the target that answered; tries that failed were told before. */
  #tellHealth({ outcome, error }: Pick<AttemptEnd, 'outcome' | 'error'>): void {
    const { health } = this.#gateway;
    const target = this.#target;
    if (target === undefined) return;
    // It was not asked, or its failure was told before.
    if (this.#attempt === undefined) health.release(target);
    else if (outcome === 'ok') health.succeeded(target, this.#firstEventAt);
    else if (error === undefined || typeof error === 'string') health.release(target);
    else health.failed(target, error);
  }
}

/** Only turns in which the provider runs tools of its own are ever paused. */
function mayPause(conversation: Conversation | undefined): boolean {
  return conversation?.tools.some(({ native }) => native !== undefined) === true;
}

/** What the upstream is to get back as its own. */
function madeBy(part: Part, origin: Origin): Part {
  return part.type === 'reasoning' || part.type === 'tool-call' ? { ...part, origin } : part;
}

function canceled(): GatewayError {
  return new GatewayError('canceled', 'The client left.');
}
