/**
 * Steps 4 to 6 for one call: its targets in order, a try at each, until one commits. What is known of
 * the try that counts stands here for everybody.
 */
import { asGatewayError, GatewayError } from '../core/errors.ts';
import type { NoteList } from '../core/notes.ts';
import type { Target } from '../core/provider.ts';
import type { Attempt } from './attempt.ts';
import type { AttemptEnd } from './attempt-log.ts';
import type { Call, Gateway } from './call.ts';
import type { Meter } from './meter.ts';
import { Hedge, type HedgeSide } from './hedge.ts';
import { plan } from './plan.ts';
import type { AttemptReceipt, ChargedTry, Mode } from './receipt.ts';
import { Retries } from './retries.ts';
import { TargetTry, TryQuota } from './target-try.ts';
import type { Answer, StreamConsumer } from './upstream-answer.ts';
import type { PreparedRequest } from './upstream-request.ts';

const nothing: readonly ChargedTry[] = [];

export class Tries {
  readonly #gateway: Gateway;
  readonly #call: Call;
  readonly #quota = new TryQuota();
  readonly #receipts: AttemptReceipt[] = [];
  /** The try that counts, as far as can be told by now. */
  #try: TargetTry;
  /** It runs beside the other one. */
  #second: TargetTry | undefined;
  #hedge: Hedge | undefined;
  /** What was let go, because another one was sooner. */
  #left = nothing;
  #retries: Retries | undefined;
  /** The pause before the next try. */
  #waiting: PromiseWithResolvers<void> | undefined;
  #stopped = false;

  constructor(gateway: Gateway, call: Call) {
    this.#gateway = gateway;
    this.#call = call;
    this.#try = this.#newTry();
  }

  /** The attempt that is running or ran last. */
  get attempt(): Attempt | undefined {
    return this.#try.attempt;
  }

  /** Requests that went upstream, and those that were refused here. */
  get count(): number {
    return this.#quota.count;
  }

  get meter(): Meter {
    return this.#try.meter;
  }

  get notes(): NoteList {
    return this.#try.notes;
  }

  get target(): Target | undefined {
    return this.#try.target;
  }

  get mode(): Mode | undefined {
    return this.#try.mode;
  }

  get prepared(): PreparedRequest | undefined {
    return this.#try.prepared;
  }

  /** The answer is of several requests: its counts say nothing about the first one's size. */
  get continued(): boolean {
    return this.#try.continued;
  }

  /** When the upstream that counts began to answer; undefined when none did. */
  get firstEventAt(): number | undefined {
    return this.#try.firstEventAt;
  }

  #newTry(): TargetTry {
    return new TargetTry({
      gateway: this.#gateway,
      call: this.#call,
      quota: this.#quota,
      receipts: this.#receipts,
    });
  }

  /** What is to be paid besides the try that counts, if the call ended now. */
  get beside(): readonly ChargedTry[] {
    const running = this.#second?.chargedIfLeft;
    return running === undefined ? this.#left : [...this.#left, running];
  }

  /** Compares the clocks of what runs with the time. */
  check(now: number): void {
    this.#try.attempt?.check(now);
    this.#second?.attempt?.check(now);
  }

  /** A paused upstream is not an idle one. */
  touch(): void {
    this.#try.attempt?.touch();
    this.#second?.attempt?.touch();
  }

  /** Ends what runs as failed. */
  fail(error: GatewayError): void {
    this.#second?.attempt?.fail(error);
    this.#try.attempt?.fail(error);
  }

  /** All tries, now that the one that counts ended like this. */
  ended(how: Pick<AttemptEnd, 'outcome' | 'error'>): readonly AttemptReceipt[] {
    this.#leaveSecond();
    this.#try.ended(how);
    // One that was let go ended before the one that was sooner.
    return this.#hedge === undefined
      ? this.#receipts
      : this.#receipts.toSorted((a, b) => a.startedAt - b.startedAt);
  }

  #leaveSecond(): void {
    const charged = this.#second?.leave();
    this.#second = undefined;
    if (charged !== undefined) this.#left = [...this.#left, charged];
  }

  /** Nothing will be made of the call any more: its upstream is let go. */
  stop(): void {
    this.#stopped = true;
    this.#hedge?.stop();
    this.#second?.stop();
    this.#try.stop();
    this.#waiting?.reject(new GatewayError('canceled', 'The client left.'));
  }

  /**
   * The only loop over targets: until one commits, or nothing is left to try, or the call was stopped.
   * A client that wants a document gets nothing before the whole of it is there, so that a stream for
   * it commits at its end.
   */
  async answer(): Promise<Answer> {
    const { health, retryBudget } = this.#gateway;
    const order = plan(this.#call, this.#gateway);
    let [target] = order;
    if (target !== undefined) {
      health.enter(target);
      retryBudget.called(target.provider.id, this.#call.startedAt);
    }
    while (target !== undefined) {
      try {
        const answer = await this.#ask(target, order);
        const { target: answered = target } = this.#try;
        // What needs no answer of a model says nothing of the target.
        if (this.#try.attempt === undefined) return answer;
        health.answered(answered);
        this.#gateway.routing.answered(this.#call, answered);
        return answer;
      } catch (error) {
        const failure = asGatewayError(error);
        if (this.#stopped) throw failure;
        const retries = this.#retriesOf(order);
        const { target: failed = target } = this.#try;
        retries.note(failed, failure, this.#try.failed(failed, failure));
        target = await this.#next(retries);
      }
    }
    throw this.#retries?.failure ?? new GatewayError('model_not_found', 'The model has no target.');
  }

  #retriesOf(order: readonly Target[]): Retries {
    this.#retries ??= new Retries(this.#gateway, this.#call, order);
    return this.#retries;
  }

  /** Only the first request of a call is hedged, and only where two of them are paid for. */
  #ask(target: Target, order: readonly Target[]): Promise<Answer> {
    const { route, grant } = this.#call;
    if (route.hedge === undefined || order.length < 2) return this.#try.ask(target);
    if (this.#quota.count > 0 || grant?.mayHedge === false) return this.#try.ask(target);
    const hedge = new Hedge({
      afterMs: route.hedge.afterMs,
      later: this.#gateway.later,
      second: () => this.#secondTry(order),
      failed: ({ one, target: failed }, error) => this.#oneFailed(order, { one, failed, error }),
      leads: ({ one }) => this.#lead(one),
    });
    this.#hedge = hedge;
    return hedge.ask({ one: this.#try, target });
  }

  #secondTry(order: readonly Target[]): HedgeSide | undefined {
    const { target, attempt } = this.#try;
    if (this.#stopped || this.#quota.left === 0 || target === undefined) return undefined;
    if (attempt?.begun === true) return undefined;
    const next = this.#retriesOf(order).beside(target);
    if (next === undefined) return undefined;
    this.#second = this.#newTry();
    return { one: this.#second, target: next };
  }

  /** One of two failed, and the other one is the call's now. */
  #oneFailed(
    order: readonly Target[],
    { one, failed, error }: { one: TargetTry; failed: Target; error: unknown },
  ): void {
    if (this.#stopped) return;
    const failure = asGatewayError(error);
    this.#retriesOf(order).note(failed, failure, one.failed(failed, failure));
    this.#try = (one === this.#try ? this.#second : this.#try) ?? one;
    this.#second = undefined;
  }

  /** The first content is there: of two requests the other one is let go. */
  #lead(one: TargetTry): void {
    if (this.#stopped) return;
    if (one === this.#second) {
      this.#second = this.#try;
      this.#try = one;
    }
    this.#leaveSecond();
  }

  /** The target of the next try, when it is time for it. @throws GatewayError when the client leaves. */
  async #next(retries: Retries): Promise<Target | undefined> {
    if (this.#quota.left === 0 || this.continued) return undefined;
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

  /** Hands the committed answer over, and all that comes of it later (`TargetTry.deliver`). */
  deliver(answer: Answer, consumer: StreamConsumer, mayFlow?: () => boolean): void {
    this.#try.deliver(answer, consumer, mayFlow);
  }
}
