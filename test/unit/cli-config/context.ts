/** A command run to its end: exit code and what it printed. */
import type { Command } from '../../../src/cli/command.ts';

export interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

export async function run(
  command: Command,
  args: readonly string[],
  env: { readonly [name: string]: string | undefined } = {},
): Promise<Ran> {
  let out = '';
  let err = '';
  const code = await command.run(args, {
    stdout: (text) => {
      out += text;
    },
    stderr: (text) => {
      err += text;
    },
    env,
    admin: () => Promise.reject(new Error('no gateway runs here')),
    gatewayUrl: () => Promise.resolve(undefined),
  });
  return { code, out, err };
}
