/** Part of the composition root: answers by `Idempotency-Key`, in the store that the gateway has. */
import { randomBytes } from 'node:crypto';
import type { IdempotencySettings } from '../config/settings.ts';
import type { Log } from '../core/runtime.ts';
import type { Sealer } from '../core/sealer.ts';
import { systemClock } from '../observe/clock.ts';
import { AnswerSweeper } from '../access/answer-sweeper.ts';
import { IdempotentAnswers } from '../server/idempotent-answers.ts';
import type { AnswerStore } from '../store/answers.ts';

export interface IdempotencyOptions {
  readonly access: { readonly answers: AnswerStore; readonly sealer: Sealer };
  readonly log: Log;
}

export interface Idempotency {
  readonly answers: IdempotentAnswers;
  /** For /api/status. */
  status(): { readonly [name: string]: number };
  close(): Promise<void>;
}

const keyAnswers = 10_000;
/** Answers that are being given lie in memory until they are kept. */
const memoryBytes = 64 * 1024 * 1024;

/** @param settings the current ones: a reload replaces them. */
export function createIdempotency(
  { access, log }: IdempotencyOptions,
  settings: () => IdempotencySettings,
): Idempotency {
  const { answers: store, sealer } = access;
  const answers = new IdempotentAnswers({
    store,
    sealer,
    clock: systemClock,
    log,
    random: (count) => randomBytes(count),
    limits: () => ({ ...settings(), keyAnswers, memoryBytes }),
  });
  const sweeper = new AnswerSweeper({ store, log, totalBytes: () => settings().totalBytes });
  answers.onMuchKept(() => void sweeper.run());
  sweeper.start();
  return {
    answers,
    status: () => statusOf(answers),
    close: async () => {
      await sweeper.close();
      await answers.close();
    },
  };
}

function statusOf({
  tallies,
  claims,
  memory,
}: IdempotentAnswers): ReturnType<Idempotency['status']> {
  const counts = Object.entries(tallies).map(([name, count]) => [`idempotency_${name}`, count]);
  return {
    ...Object.fromEntries(counts),
    idempotency_running: claims,
    idempotency_bytes: memory,
  };
}
