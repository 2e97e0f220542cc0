/** Answers by `Idempotency-Key` for tests: in memory, with a clock and a store that the test holds. */
import { randomBytes } from 'node:crypto';
import type { Clock, Log } from '../../src/core/runtime.ts';
import { createSealer } from '../../src/core/secret.ts';
import {
  IdempotentAnswers,
  type KeepLimits,
} from '../../src/features/idempotency/idempotent-answers.ts';
import type { AnswerStore } from '../../src/store/sealed.ts';
import { memoryStore } from './memory-store.ts';

export const keepLimits: KeepLimits = {
  keepMs: 60_000,
  answerBytes: 1024 * 1024,
  keyBytes: 16 * 1024 * 1024,
  keyAnswers: 100,
  totalBytes: 64 * 1024 * 1024,
  memoryBytes: 20_000,
};

const nothing = (): void => undefined;
const silent: Log = { debug: nothing, info: nothing, warn: nothing, error: nothing };

export interface AnswersOptions {
  readonly clock: Clock;
  readonly store?: AnswerStore;
  readonly log?: Log;
  readonly random?: (count: number) => Uint8Array;
  readonly limits?: Partial<KeepLimits>;
}

export function idempotentAnswers(options: AnswersOptions): IdempotentAnswers {
  const { clock, store, log, random, limits } = options;
  return new IdempotentAnswers({
    clock,
    store: store ?? memoryStore(clock).answers,
    sealer: createSealer(Buffer.alloc(32, 7)),
    log: log ?? silent,
    random: random ?? ((count) => randomBytes(count)),
    limits: () => ({ ...keepLimits, ...limits }),
  });
}
