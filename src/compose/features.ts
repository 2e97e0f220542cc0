/** Part of the composition root: what is stored of what calls say, in the store that the gateway has. */
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { AnswerSweeper, ContentSweeper, ResponseSweeper } from '../access/sweepers.ts';
import {
  type ContentKey,
  contentKeyFile,
  contentKeyOf,
  keyOrNone,
  noContentKey,
  passingContentKey,
} from '../access/keys/seal-key.ts';
import { readSecretVariable } from '../config/config-file.ts';
import type { ContentSettings, IdempotencySettings, ResponseSettings } from '../config/sections.ts';
import type { Settings } from '../config/settings.ts';
import type { Log } from '../core/runtime.ts';
import type { Sealer } from '../core/secret.ts';
import { ContentLog, ContentThread } from '../features/content-log/content-log.ts';
import { IdempotentAnswers } from '../features/idempotency/idempotent-answers.ts';
import { StoredResponses } from '../features/stored-responses/stored-responses.ts';
import { later, systemClock } from '../observe/runtime.ts';
import type { AnswerStore, ContentStore, ResponseStore } from '../store/sealed.ts';

export interface ContentOptions {
  readonly access: { readonly contents: ContentStore; readonly contentKey: ContentKey };
  readonly log: Log;
}

export interface Contents {
  readonly log: ContentLog;
  /** For /api/status. */
  status(): { readonly [name: string]: number };
  close(): Promise<void>;
}

/** Memory for call contents that are not written yet. */
const maxMemoryBytes = 64 * 1024 * 1024;

const random = (count: number): Uint8Array => randomBytes(count);

/**
 * From the environment, or from a file in the data directory if the store is not shared. A shared database
 * needs the variable.
 * @throws Error when the variable is not usable.
 */
export function contentKeyFor(
  { storage, dataDir }: Pick<Settings, 'storage' | 'dataDir'>,
  env: { readonly [name: string]: string | undefined },
): ContentKey {
  const secret = readSecretVariable(env, 'MODEL_GATEWAY_CONTENT_KEY');
  if (secret !== undefined) return contentKeyOf(secret);
  switch (storage.database) {
    case 'memory':
      return passingContentKey(random);
    case 'sqlite':
      return contentKeyFile(join(dataDir, 'content.key'), random);
    case 'postgres':
      return noContentKey;
    default:
      return storage satisfies never;
  }
}

/** @param settings the current ones: a reload replaces them. */
export function createContents(
  { access, log }: ContentOptions,
  settings: () => ContentSettings,
): Contents {
  const { contents: store, contentKey } = access;
  const contents = new ContentLog({
    store,
    sealer: new ContentThread(),
    clock: systemClock,
    log,
    key: () => contentKey.need(),
    limits: () => ({ bodyBytes: settings().bodyBytes, memoryBytes: maxMemoryBytes }),
  });
  const sweeper = new ContentSweeper({ store, clock: systemClock, log, limits: settings });
  sweeper.start();
  return {
    log: contents,
    status: () => contentStatus(contents),
    close: async () => {
      await sweeper.close();
      await contents.close();
    },
  };
}

function contentStatus({ tallies, memory }: ContentLog): ReturnType<Contents['status']> {
  return {
    contents_kept: tallies.kept,
    contents_dropped: tallies.dropped,
    contents_failed: tallies.failed,
    contents_bytes: memory,
  };
}

// Part of the composition root: answers by `Idempotency-Key`, in the store that the gateway has.

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
/** Answers that are being given lie in memory until they are stored. */
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
  answers.onManyStored(() => void sweeper.run());
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

// Part of the composition root: responses that later requests refer to, in the store that the gateway has.

export interface ResponseOptions {
  readonly access: { readonly responses: ResponseStore; readonly contentKey: ContentKey };
  readonly log: Log;
}

export interface Responses {
  readonly stored: StoredResponses;
  close(): Promise<void>;
}

/** @param settings the current ones: a reload replaces them. */
export function createResponses(
  { access, log }: ResponseOptions,
  settings: () => ResponseSettings,
): Responses {
  const { responses: store, contentKey } = access;
  const sweeper = new ResponseSweeper({ store, log, room: settings });
  sweeper.start();
  const tell = (reason: string): void => log.warn('content_key_unusable', { reason });
  const stored = new StoredResponses({
    store,
    contentKey: () => keyOrNone(contentKey, tell),
    log,
    later,
    random,
    settings,
    manyStored: () => void sweeper.run(),
  });
  return { stored, close: () => sweeper.close() };
}
