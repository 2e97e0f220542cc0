/**
 * A recorded history of one budget, and whether some order of it keeps to the budget (Q1).
 *
 * A reservation takes effect at one moment between its call and its answer; a settlement at one moment after it
 * was sent. What was granted must be explained at the latest possible moment of settlements (nothing
 * was lent out twice) and what was refused at the earliest possible one (nothing was refused for nothing).
 */
import assert from 'node:assert/strict';

interface Reserved {
  readonly amount: number;
  readonly called: number;
  answered: number;
  granted: boolean;
  /** When the settlement was sent; it may have any later effect. */
  sent: number;
  cost: number;
}

export class History {
  readonly #budget: number;
  readonly #requests = new Map<string, Reserved>();
  #tick = 0;

  constructor(budget: number) {
    this.#budget = budget;
  }

  get settled(): number {
    let sum = 0;
    for (const { granted, cost } of this.#requests.values()) if (granted) sum += cost;
    return sum;
  }

  /** Makes a reservation; the result goes to the returned function. */
  requests(callId: string, amount: number): (granted: boolean) => void {
    const reserved: Reserved = {
      amount,
      called: this.#tick++,
      answered: Number.POSITIVE_INFINITY,
      granted: false,
      sent: Number.POSITIVE_INFINITY,
      cost: 0,
    };
    this.#requests.set(callId, reserved);
    return (granted) => {
      reserved.granted = granted;
      reserved.answered = this.#tick++;
    };
  }

  settles(callId: string, cost: number): void {
    const reserved = this.#requests.get(callId);
    if (reserved === undefined) return;
    reserved.sent = this.#tick++;
    reserved.cost = cost;
  }

  /** @throws AssertionError */
  check(): void {
    const all = [...this.#requests.values()];
    const granted = all.filter((each) => each.granted);
    assert.ok(granted.length > 0 && granted.length < all.length, 'grants and refusals');
    for (let at = 0; at < this.#tick; at++) {
      // What is certainly held or spent at this moment, in every order.
      let least = 0;
      for (const each of granted) {
        if (each.answered > at) continue;
        least += each.sent <= at ? Math.min(each.cost, each.amount) : each.amount;
      }
      assert.ok(least <= this.#budget, `at ${at}: ${least} of ${this.#budget}`);
    }
    for (const refused of all) {
      if (refused.granted) continue;
      // What may be held or spent while it was asked, at most.
      let most = 0;
      for (const each of granted) {
        if (each.called < refused.answered) most += Math.max(each.amount, each.cost);
      }
      assert.ok(most + refused.amount > this.#budget, `refused without need at ${refused.called}`);
    }
  }
}
