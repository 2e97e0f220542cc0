/**
 * Part of the composition root: all workers are replaced, one after another. Each one's successor takes calls before
 * it stops to, and the next one's turn comes when its last call has ended.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Log } from '../core/runtime.ts';
import type { Crew, Member } from './crew.ts';

export interface RenewalParts {
  readonly crew: Crew;
  readonly log: Log;
  /** Another one begins in the place of this one, which goes on. */
  readonly begin: (member: Member) => void;
  /** Resolves when it has let its calls end and is gone. */
  readonly end: (member: Member) => Promise<void>;
  /** Whether the gateway stops. */
  readonly stopping: () => boolean;
}

const lookEveryMs = 50;

export class Renewal {
  readonly #parts: RenewalParts;
  #running: Promise<void> | undefined;

  constructor(parts: RenewalParts) {
    this.#parts = parts;
  }

  /** Resolves when those that ran are gone; who asks meanwhile waits for the same. Never rejects. */
  run(): Promise<void> {
    this.#running ??= this.#all().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  async #all(): Promise<void> {
    const { crew, log, stopping } = this.#parts;
    const members = [...crew.members].toSorted((a, b) => a.process.number - b.process.number);
    log.info('workers_renewing', { workers: members.length });
    for (const member of members) await this.#one(member);
    if (!stopping()) log.info('workers_renewed', {});
  }

  async #one(member: Member): Promise<void> {
    const { crew, begin, end, stopping } = this.#parts;
    // One that died or leaves is new, or will be.
    if (stopping() || !crew.members.has(member) || member.replaced) return;
    member.replaced = true;
    begin(member);
    // However often it takes: until then this one serves.
    while (!stopping() && !this.#hasSuccessor(member)) await sleep(lookEveryMs);
    if (stopping() || !crew.members.has(member)) return;
    member.renewed = true;
    await end(member);
  }

  #hasSuccessor(member: Member): boolean {
    const { number } = member.process;
    return [...this.#parts.crew.members].some(
      (other) => other !== member && other.process.number === number && other.listening,
    );
  }
}
