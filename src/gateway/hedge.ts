/**
 * A second request beside the first one of a call, when that is slow to begin (docs/routing.md): whichever
 * brings content first is the call's, the other one is let go at once.
 */
import type { Target } from '../core/provider.ts';
import type { Later } from '../core/runtime.ts';
import type { TargetTry } from './target-try.ts';
import type { Answer } from './upstream-answer.ts';

/** One of the requests. */
export interface HedgeSide {
  readonly one: TargetTry;
  readonly target: Target;
}

export interface HedgeParts {
  /** How long the first request has to itself. */
  readonly afterMs: number;
  readonly later: Later;
  /** The second request, if there may be one now. */
  readonly second: () => HedgeSide | undefined;
  /** One failed, and the other one goes on. */
  readonly failed: (side: HedgeSide, error: unknown) => void;
  /** It is the call's now; the other one, if any, is to be let go. */
  readonly leads: (side: HedgeSide) => void;
}

export class Hedge {
  readonly #parts: HedgeParts;
  readonly #answer = Promise.withResolvers<Answer>();
  /** Those of which an answer may still come. */
  #running: readonly HedgeSide[] = [];
  #cancel: () => void = () => undefined;

  constructor(parts: HedgeParts) {
    this.#parts = parts;
  }

  /** The answer that is first. @throws what the last one of them failed with. */
  ask(first: HedgeSide): Promise<Answer> {
    const { later, afterMs } = this.#parts;
    this.#cancel = later(afterMs, () => this.#ask(this.#parts.second()));
    this.#ask(first);
    return this.#answer.promise;
  }

  /** No second request is sent any more. */
  stop(): void {
    this.#cancel();
  }

  #ask(side: HedgeSide | undefined): void {
    if (side === undefined) return;
    const { one, target } = side;
    this.#running = [...this.#running, side];
    const won = (): void => this.#won(side);
    one.contentCame = won;
    one.ask(target).then(
      (answer) => this.#answered(side, answer),
      (error: unknown) => this.#failed(side, error),
    );
  }

  #answered(side: HedgeSide, answer: Answer): void {
    if (!this.#running.includes(side)) return;
    this.#won(side);
    this.#answer.resolve(answer);
  }

  #won(side: HedgeSide): void {
    if (!this.#running.includes(side)) return;
    side.one.contentCame = undefined;
    this.#cancel();
    this.#running = [side];
    this.#parts.leads(side);
  }

  #failed(side: HedgeSide, error: unknown): void {
    if (!this.#running.includes(side)) return;
    side.one.contentCame = undefined;
    this.#running = this.#running.filter((each) => each !== side);
    const [other] = this.#running;
    if (other === undefined) {
      this.#cancel();
      this.#answer.reject(error);
    } else {
      this.#parts.failed(side, error);
    }
  }
}
