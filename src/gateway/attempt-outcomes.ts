/** Records the ends of attempts: receipts for the ledger, health, speed and load of targets, and log lines. */
import type { AttemptReceipt, Call, ClientEnd } from '../core/call.ts';
import type { GatewayError } from '../core/errors.ts';
import type { Attempt } from './attempt.ts';
import type { Gateway } from './gateway.ts';
import { nameOf } from './targets/health.ts';
import { mayFallBack, type FailedTry } from './targets/retries.ts';

export class AttemptOutcomes {
  /** The receipts of all ended attempts of the call, including hedged ones. */
  readonly receipts: AttemptReceipt[] = [];
  readonly #gateway: Gateway;
  readonly #call: Call;

  constructor(gateway: Gateway, call: Call) {
    this.#gateway = gateway;
    this.#call = call;
  }

  /** A failed attempt: writes its receipt, closes its connection, and records what it says about its target. */
  giveUp(attempt: Attempt, error: GatewayError): FailedTry {
    const { health, routing, clock, log } = this.#gateway;
    const { target, status, streamed } = attempt;
    const { maybeBilled = false } = this.end(attempt, 'failed', error) ?? {};
    attempt.abort();
    attempt.chargeable = false;
    health.failed(target, error);
    const now = clock.now();
    if (error.code === 'timeout') this.noteSpeed(attempt, now);
    else if (mayFallBack(error)) routing.speed.failed(nameOf(target), { streamed, now });
    log.warn('attempt_failed', {
      call: this.#call.id,
      trace_id: this.#call.trace?.traceId,
      target: nameOf(target),
      credential: target.credential,
      error: error.code,
      message: error.detail ?? error.message,
      upstream_status: error.upstream?.status,
      location: error.location,
    });
    return { status, streamed, maybeBilled };
  }

  /** The last attempt of a track ended with the call; failed attempts were reported to the health before. */
  finish(
    attempt: Attempt | undefined,
    outcome: AttemptReceipt['outcome'],
    error?: GatewayError | ClientEnd,
  ): void {
    if (attempt === undefined) return;
    const { health } = this.#gateway;
    const { target } = attempt;
    if (!attempt.chargeable) health.release(target);
    else if (outcome === 'ok') health.succeeded(target, attempt.answeredAt);
    else if (error === undefined || typeof error === 'string') health.release(target);
    else health.failed(target, error);
    this.end(attempt, outcome, error);
  }

  /** Writes the receipt of an attempt, once. */
  end(
    attempt: Attempt,
    outcome: AttemptReceipt['outcome'],
    error?: GatewayError | ClientEnd,
  ): AttemptReceipt | undefined {
    this.unload(attempt);
    if (attempt.ended) return undefined;
    attempt.ended = true;
    const receipt = attempt.receipt(outcome, error);
    this.receipts.push(receipt);
    return receipt;
  }

  unload(attempt: Attempt): void {
    if (!attempt.loads) return;
    attempt.loads = false;
    this.#gateway.routing.load.end(nameOf(attempt.target));
  }

  /** @param until monotonic ms at which the answer began or was given up; undefined = neither. */
  noteSpeed({ target, startedAt, streamed }: Attempt, until: number | undefined): void {
    if (until === undefined) return;
    const ms = until - startedAt;
    this.#gateway.routing.speed.saw(nameOf(target), { streamed, now: until, ms });
  }
}
