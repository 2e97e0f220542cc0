/** A directory with a config file, and what loading it gives. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ConfigError } from '../../../src/config/errors.ts';
import type { Flags } from '../../../src/config/base.ts';
import type { KnownProviders } from '../../../src/config/providers.ts';
import { loadSettings } from '../../../src/config/load.ts';
import type { Settings } from '../../../src/config/settings.ts';
import { temporaryFolder } from '../../support/folders.ts';

export const known: KnownProviders = new Map([
  [
    'openai',
    {
      dialect: 'openai-chat',
      keyVariable: 'OPENAI_API_KEY',
      baseUrlVariable: 'OPENAI_BASE_URL',
    },
  ],
  [
    'anthropic',
    {
      dialect: 'anthropic-messages',
      keyVariable: 'ANTHROPIC_API_KEY',
      baseUrlVariable: 'ANTHROPIC_BASE_URL',
    },
  ],
  ['ollama', { dialect: 'openai-chat' }],
  ['local', { embedded: true }],
]);

export interface Scene {
  readonly directory: string;
  /** Writes a file into the directory and returns its path. */
  write(name: string, text: string): string;
  load(given?: Given): Promise<Settings>;
  /** The lines of the ConfigError that loading must throw. */
  errors(given?: Given): Promise<readonly string[]>;
}

export interface Given {
  readonly flags?: Flags;
  readonly env?: { readonly [name: string]: string };
}

export function scene(yaml?: string, knownProviders: KnownProviders = known): Scene {
  const directory = temporaryFolder('config');
  const write = (name: string, text: string): string => {
    const path = join(directory, name);
    writeFileSync(path, text);
    return path;
  };
  if (yaml !== undefined) write('gateway.yaml', yaml);
  const load = ({ flags = {}, env = {} }: Given = {}): Promise<Settings> =>
    loadSettings({ flags, env, cwd: directory, knownProviders });
  const errors = async (given?: Given): Promise<readonly string[]> => {
    try {
      await load(given);
    } catch (error) {
      if (error instanceof ConfigError) return error.message.split('\n');
      throw error;
    }
    throw new Error('loading succeeded, an error was expected');
  };
  return { directory, write, load, errors };
}
