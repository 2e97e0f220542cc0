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
import { plan } from './plan.ts';
import type { AttemptReceipt, Mode } from './receipt.ts';
import { Retries } from './retries.ts';
import { TargetTry, TryQuota } from './target-try.ts';
import type { Answer, StreamConsumer } from './upstream-answer.ts';
import type { PreparedRequest } from './upstream-request.ts';

export class Tries {
  readonly #gateway: Gateway;
  readonly #call: Call;
  readonly #quota = new TryQuota();
  readonly #try: TargetTry;
  /** The pause before the next try. */
  #waiting: PromiseWithResolvers<void> | undefined;
  #stopped = false;

  constructor(gateway: Gateway, call: Call) {
    this.#gateway = gateway;
    this.#call = call;
    this.#try = new TargetTry({ gateway, call, quota: this.#quota });
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

  /** All tries, now that the last one ended like this. */
  ended(how: Pick<AttemptEnd, 'outcome' | 'error'>): readonly AttemptReceipt[] {
    this.#try.ended(how);
    return this.#try.receipts;
  }

  /** Nothing will be made of the call any more: its upstream is let go. */
  stop(): void {
    this.#stopped = true;
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
    let retries: Retries | undefined;
    if (target !== undefined) {
      health.enter(target);
      retryBudget.called(target.provider.id, this.#call.startedAt);
    }
    while (target !== undefined) {
      try {
        const answer = await this.#try.ask(target);
        health.answered(target);
        this.#gateway.routing.answered(this.#call, target);
        return answer;
      } catch (error) {
        const failure = asGatewayError(error);
        if (this.#stopped) throw failure;
        retries ??= new Retries(this.#gateway, this.#call, order);
        retries.note(target, failure, this.#try.failed(target, failure));
        target = await this.#next(retries);
      }
    }
    throw retries?.failure ?? new GatewayError('model_not_found', 'The model has no target.');
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
