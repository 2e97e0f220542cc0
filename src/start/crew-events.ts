/**
 * Part of the composition root: what several processes see of the same upstreams, as one: out when the first of
 * them takes it out, back when all of them have it back.
 */
import type { JsonObject } from '../core/conversation.ts';
import { parseOwn } from '../core/json.ts';
import type { DeadCredential, TargetChange } from '../gateway/health.ts';
import type { Events, PlaneEvents } from './events.ts';
import type { EventOperations } from './worker-protocol.ts';

type Told = Pick<Events, 'credentialOut' | 'targetChanged' | 'pressureChanged'>;

export class CrewEvents {
  readonly #told: Told;
  /** By what is out: who says so. */
  readonly #out = new Map<string, Set<number>>();
  readonly #steps = new Map<number, number>();
  #step = 0;

  constructor(told: Told) {
    this.#told = told;
  }

  /** @param process its id: one that leaves has its successor's number; 0 is the parent */
  of(process: number): EventOperations {
    return {
      credentialOut: (dead) => this.#credentialOut(process, dead),
      targetChanged: (change) => this.#targetChanged(process, change),
      pressureChanged: (step, facts) => this.#pressureChanged(process, step, facts),
    };
  }

  /** It is gone, and whoever takes its place has seen nothing yet. */
  gone(process: number): void {
    for (const [subject, processes] of this.#out) {
      if (processes.has(process)) this.#back(process, subject);
    }
    this.#pressureChanged(process, 0, {});
  }

  #credentialOut(process: number, dead: DeadCredential): void {
    const { provider, credential } = dead;
    const named = credential === undefined ? { provider } : { provider, credential };
    this.#isOut(process, subjectOf(named));
    this.#told.credentialOut(dead);
  }

  #targetChanged(process: number, change: TargetChange): void {
    const { out, ...named } = change;
    if (out === undefined) return this.#back(process, subjectOf(named));
    this.#isOut(process, subjectOf(named));
    this.#told.targetChanged(change);
  }

  #isOut(process: number, subject: string): void {
    const known = this.#out.get(subject);
    if (known === undefined) this.#out.set(subject, new Set([process]));
    else known.add(process);
  }

  #back(process: number, subject: string): void {
    const processes = this.#out.get(subject);
    processes?.delete(process);
    if ((processes?.size ?? 0) > 0) return;
    this.#out.delete(subject);
    this.#told.targetChanged(parseOwn<TargetChange>(subject));
  }

  #pressureChanged(process: number, step: number, facts: JsonObject): void {
    this.#steps.set(process, step);
    const worst = Math.max(...this.#steps.values());
    if (worst === this.#step) return;
    this.#step = worst;
    this.#told.pressureChanged(worst, facts);
  }
}

/** What is out, so that it can be told that it is back. */
function subjectOf(named: Omit<TargetChange, 'out'>): string {
  return JSON.stringify(named);
}

/** Those of the parent's own calls. */
export function parentEvents(events: Events, crew: CrewEvents): PlaneEvents {
  return {
    ...crew.of(0),
    tell: (type, data) => events.tell(type, data),
    get counts() {
      return events.counts;
    },
  };
}
