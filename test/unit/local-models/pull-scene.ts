/** A folder to pull into, with free space and pauses under control. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { pull, type PullDeps, type Pulled } from '../../../src/local-models/pull.ts';
import { temporaryFolder } from '../../support/folders.ts';
import type { FileServer } from './file-server.ts';
import { PullError } from '../../../src/local-models/part-file.ts';

export interface PullScene {
  readonly folder: string;
  readonly notes: string[];
  readonly pauses: number[];
  readonly steps: Set<string>;
  files(): readonly string[];
  pull(source: string, more?: PullMore): Promise<Pulled>;
  /** The message of the error that it must end in. */
  refused(source: string, more?: PullMore): Promise<string>;
}

export interface PullMore {
  readonly name?: string;
  readonly sha256?: string;
  readonly env?: { readonly [name: string]: string };
  readonly free?: number;
}

/** @param server is told how far a download is. */
export function pullScene(server?: FileServer): PullScene {
  const directory = temporaryFolder('pull');
  const folder = join(directory, 'data', 'models');
  const notes: string[] = [];
  const pauses: number[] = [];
  const steps = new Set<string>();
  const run = (source: string, { env = {}, free = 1e12, ...more }: PullMore = {}) => {
    const means: PullDeps = {
      freeBytes: () => Promise.resolve(free),
      sleep: (ms) => {
        pauses.push(ms);
        return Promise.resolve();
      },
    };
    const watcher = {
      progress: (step: string, bytes: number) => {
        steps.add(step);
        if (step === 'fetching') server?.received(bytes);
      },
      note: (text: string) => void notes.push(text),
    };
    return pull({ source, folder, cwd: directory, env, ...more }, watcher, means);
  };
  return {
    folder,
    notes,
    pauses,
    steps,
    files: () => readdirSync(folder).sort(),
    pull: run,
    refused: async (source, more) => {
      try {
        await run(source, more);
      } catch (error) {
        if (error instanceof PullError) return error.message;
        throw error;
      }
      throw new Error('the pull succeeded, an error was expected');
    },
  };
}
