/** Part of the composition root: what is kept of what calls say, in the store that the gateway has. */
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import {
  contentKeyFile,
  contentKeyOf,
  noContentKey,
  passingContentKey,
  type ContentKey,
} from '../access/content-key.ts';
import { ContentSweeper } from '../access/content-sweeper.ts';
import { readSecretVariable } from '../config/secret-variable.ts';
import type { ContentSettings, Settings } from '../config/settings.ts';
import type { Log } from '../core/runtime.ts';
import { systemClock } from '../observe/clock.ts';
import { ContentLog } from '../server/content/content-log.ts';
import { ContentThread } from '../server/content/content-thread.ts';
import type { ContentStore } from '../store/contents.ts';

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

/** What calls said lies in memory until it is written. */
const memoryBytes = 64 * 1024 * 1024;

const random = (count: number): Uint8Array => randomBytes(count);

/**
 * Of the environment, or a file beside a store of one's own. A book that gateways share needs the former.
 * @throws Error when the variable cannot serve.
 */
export function contentKeyFor(
  { storage, dataDir }: Pick<Settings, 'storage' | 'dataDir'>,
  env: { readonly [name: string]: string | undefined },
): ContentKey {
  const secret = readSecretVariable(env, 'MODEL_GATEWAY_CONTENT_KEY');
  if (secret !== undefined) return contentKeyOf(secret);
  switch (storage.book) {
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
    limits: () => ({ bodyBytes: settings().bodyBytes, memoryBytes }),
  });
  const sweeper = new ContentSweeper({ store, clock: systemClock, log, limits: settings });
  sweeper.start();
  return {
    log: contents,
    status: () => statusOf(contents),
    close: async () => {
      await sweeper.close();
      await contents.close();
    },
  };
}

function statusOf({ tallies, memory }: ContentLog): ReturnType<Contents['status']> {
  return {
    contents_kept: tallies.kept,
    contents_dropped: tallies.dropped,
    contents_failed: tallies.failed,
    contents_bytes: memory,
  };
}
