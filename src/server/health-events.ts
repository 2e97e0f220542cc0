/**
 * What becomes of parts of the gateway that fail and come back, as events for webhooks: one when it gets
 * worse, one when it is well again, and no more than these two a minute and subject, however it flaps: what fails again
 * within the minute is told at its end, if it has not come back.
 */
import type { JsonObject } from '../core/conversation.ts';
import type { Clock, Later } from '../core/runtime.ts';

export interface HealthChange {
  /** What it is about: changes of one subject follow each other. */
  readonly subject: string;
  /** 0 = well; what is higher is worse. */
  readonly level: number;
  readonly type: string;
  readonly data: JsonObject;
}

export interface HealthEventParts {
  readonly tell: (type: string, data: JsonObject) => void;
  readonly clock: Clock;
  readonly later: Later;
}

interface Subject {
  /** The level that was told last. */
  told: number;
  /** When it was last told that it is not well, monotonic ms. */
  badAt: number;
  latest: HealthChange;
  /** Since the last event. */
  changes: number;
  cancel: (() => void) | undefined;
}

const everyMs = 60_000;
const maxSubjects = 1000;

export class HealthEvents {
  readonly #parts: HealthEventParts;
  readonly #subjects = new Map<string, Subject>();

  constructor(parts: HealthEventParts) {
    this.#parts = parts;
  }

  /** Never throws, never waits. */
  saw(change: HealthChange): void {
    const { clock, later } = this.#parts;
    const known = this.#subjects.get(change.subject);
    if (known === undefined && change.level === 0) return;
    const subject = known ?? this.#begin(change);
    subject.latest = change;
    subject.changes += 1;
    const waitMs = subject.badAt + everyMs - clock.now();
    // What gets worse while it is told to be bad is news at once, and so is that it is well.
    if (waitMs <= 0 || change.level === 0 || subject.told > 0) this.#tell(subject);
    else {
      subject.cancel ??= later(waitMs, () => {
        subject.cancel = undefined;
        this.#tell(subject);
      });
    }
  }

  close(): void {
    for (const { cancel } of this.#subjects.values()) cancel?.();
    this.#subjects.clear();
  }

  #begin(latest: HealthChange): Subject {
    if (this.#subjects.size >= maxSubjects) this.#forgetOne();
    const badAt = Number.NEGATIVE_INFINITY;
    const subject = { told: 0, badAt, latest, changes: 0, cancel: undefined };
    this.#subjects.set(latest.subject, subject);
    return subject;
  }

  /** Rather one that is well. */
  #forgetOne(): void {
    const all = [...this.#subjects];
    const [name, subject] =
      all.find(([, { told, cancel }]) => told === 0 && !cancel) ?? all[0] ?? [];
    if (name === undefined) return;
    subject?.cancel?.();
    this.#subjects.delete(name);
  }

  #tell(subject: Subject): void {
    const { latest, told, changes } = subject;
    const isNews = latest.level === 0 ? told > 0 : latest.level > told;
    if (!isNews) return;
    subject.told = latest.level;
    if (latest.level > 0) subject.badAt = this.#parts.clock.now();
    subject.changes = 0;
    this.#parts.tell(latest.type, { ...latest.data, changes });
  }
}
