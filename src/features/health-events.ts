/**
 * What becomes of parts of the gateway that fail and come back, as events: one when it gets worse, one when it is well
 * again, and no more than these two a minute and subject, however it flaps: what fails again within the minute is
 * reported at its end, unless it was undone.
 */
import type { Clock, Later } from '../core/runtime.ts';
import type { JsonObject } from '../json/value.ts';

interface HealthChange {
  /** What it is about: changes of one subject follow each other. */
  readonly subject: string;
  /** 0 = well; what is higher is worse. */
  readonly level: number;
  readonly type: string;
  readonly data: JsonObject;
}

interface HealthEventDeps {
  readonly tell: (type: string, data: JsonObject) => void;
  readonly clock: Clock;
  readonly later: Later;
}

interface Subject {
  /** The level that was reported last. */
  reported: number;
  /** When a bad state was last reported, monotonic ms. */
  badAt: number;
  latest: HealthChange;
  /** Since the last event. */
  changes: number;
  cancel: (() => void) | undefined;
}

const everyMs = 60_000;
const maxSubjects = 1000;

export class HealthEvents {
  readonly #deps: HealthEventDeps;
  readonly #subjects = new Map<string, Subject>();

  constructor(deps: HealthEventDeps) {
    this.#deps = deps;
  }

  /** Never throws, never waits. */
  saw(change: HealthChange): void {
    const { clock, later } = this.#deps;
    const known = this.#subjects.get(change.subject);
    if (known === undefined && change.level === 0) return;
    const subject = known ?? this.#begin(change);
    subject.latest = change;
    subject.changes += 1;
    const waitMs = subject.badAt + everyMs - clock.now();
    // A state that gets worse after it was reported as bad is reported at once, and so is its end.
    if (waitMs <= 0 || change.level === 0 || subject.reported > 0) this.#tell(subject);
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
    const subject = { reported: 0, badAt, latest, changes: 0, cancel: undefined };
    this.#subjects.set(latest.subject, subject);
    return subject;
  }

  /** Rather one that is well. */
  #forgetOne(): void {
    const all = [...this.#subjects];
    const [name, subject] =
      all.find(([, { reported, cancel }]) => reported === 0 && !cancel) ?? all[0] ?? [];
    if (name === undefined) return;
    subject?.cancel?.();
    this.#subjects.delete(name);
  }

  #tell(subject: Subject): void {
    const { latest, reported, changes } = subject;
    const isNews = latest.level === 0 ? reported > 0 : latest.level > reported;
    if (!isNews) return;
    subject.reported = latest.level;
    if (latest.level > 0) subject.badAt = this.#deps.clock.now();
    subject.changes = 0;
    this.#deps.tell(latest.type, { ...latest.data, changes });
  }
}
