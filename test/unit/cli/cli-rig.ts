/** Commands run to their end against a real admin server. */
import type { TestContext } from 'node:test';
import { httpAdminClient } from '../../../src/cli/admin-client.ts';
import type { Command } from '../../../src/cli/command.ts';
import type { Screen } from '../../../src/cli/screen.ts';
import { adminRig, type Rig } from '../admin/admin-rig.ts';
import type { AdminDeps } from '../../../src/admin/handler.ts';

export interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

export interface CliRig extends Rig {
  /** @param screen what stdout is; absent = no terminal */
  run(command: Command, args: readonly string[], screen?: Screen): Promise<Ran>;
}

export async function cliRig(t: TestContext, change: Partial<AdminDeps> = {}): Promise<CliRig> {
  const rig = await adminRig(t, change);
  const admin = httpAdminClient({ address: rig.url, token: rig.control });
  return {
    ...rig,
    run: async (command, args, screen) => {
      let out = '';
      let err = '';
      const code = await command.run(args, {
        stdout: (text) => {
          out += text;
        },
        stderr: (text) => {
          err += text;
        },
        env: {},
        ...(screen === undefined ? {} : { screen }),
        admin: async () => admin,
        gatewayUrl: () => Promise.resolve('http://127.0.0.1:8686'),
      });
      return { code, out, err };
    },
  };
}
