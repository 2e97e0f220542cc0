/**
 * Values of many rows that stand there as the same text, read once: of half a million keys most allow the
 * same models and have the same policy. Shared within one message between threads, too.
 */
import type { Policy } from '../core/policy.ts';
import { readPolicy, readTexts } from './kept-json.ts';

export class SharedValues {
  readonly #texts = new Map<string, readonly string[]>();
  readonly #policies = new Map<string, Policy>();

  /** @throws StoreError `corrupt` */
  texts(kept: string): readonly string[] {
    return shared(this.#texts, kept, readTexts);
  }

  /** @throws StoreError `corrupt` */
  policy(kept: string): Policy {
    return shared(this.#policies, kept, readPolicy);
  }
}

function shared<T>(known: Map<string, T>, kept: string, read: (kept: string) => T): T {
  const found = known.get(kept);
  if (found !== undefined) return found;
  const value = read(kept);
  known.set(kept, value);
  return value;
}
