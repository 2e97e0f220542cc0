/** The commands `check`, `init` and `import`: they read and write config files, and know the providers. */
import { join } from 'node:path';
import { isatty } from 'node:tty';
import { checkCommand as makeCheckCommand } from '../../cli/commands/check.ts';
import type { Command } from '../../cli/command.ts';
import { importCommand as makeImportCommand } from '../../cli/import/import.ts';
import { initCommand as makeInitCommand } from '../../cli/commands/init.ts';
import { programName } from '../../cli/program.ts';
import type { Settings } from '../../config/settings.ts';
import { readModelFolder } from '../../local-models/model-folder.ts';
import { providerRows } from '../../providers/compatible.ts';
import { describeProviders, knownProviders } from '../providers.ts';

export const checkCommand: Command = makeCheckCommand({
  cwd: process.cwd(),
  knownProviders,
  describeProviders,
  lookAround: async (settings) => [
    ...(await missingModels(settings)),
    ...(await identityProblem(settings)),
  ],
  askProviders: async (settings, env) => {
    const { askProviders } = await import('./admin-of-directory.ts');
    return askProviders(settings, env);
  },
});

export const initCommand: Command = makeInitCommand({
  known: providerRows.flatMap(({ id, keyVariable }) =>
    keyVariable === undefined ? [] : [{ id, keyVariable }],
  ),
  schema: join(import.meta.dirname, '../../../docs/gateway.schema.json'),
  cwd: process.cwd(),
  program: programName(process.env, process.cwd()),
  ask: isatty(0) && isatty(1) ? ask : undefined,
});

export const importCommand: Command = makeImportCommand({
  vendors: providerRows.map(({ id, dialect, baseUrl, keyVariable, cloud }) => ({
    id,
    dialect,
    baseUrl,
    ...(keyVariable === undefined ? {} : { keyVariable }),
    isCloud: cloud !== undefined && keyVariable === undefined,
  })),
  cwd: process.cwd(),
  program: programName(process.env, process.cwd()),
});

/** Undefined after Ctrl-C or Ctrl-D. */
async function ask(question: string): Promise<string | undefined> {
  const { createInterface } = await import('node:readline/promises');
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  try {
    return await terminal.question(question);
  } catch (error) {
    if (error instanceof Error && error.name === 'AbortError') return undefined;
    throw error;
  } finally {
    terminal.close();
  }
}

/** Local models that cannot be called: the gateway starts without them. */
async function missingModels({ local }: Settings): Promise<readonly string[]> {
  const { problems } = await readModelFolder(local.modelsDir, local.models);
  return problems.map(({ subject, why }) => `local model skipped: ${subject} ${why}`);
}

/** Why people could not sign in: the gateway starts all the same. */
async function identityProblem({ oidc }: Settings): Promise<readonly string[]> {
  if (oidc === undefined) return [];
  const { discover, SignInError } = await import('../../admin/people/openid.ts');
  try {
    await discover(oidc);
    return [];
  } catch (error) {
    if (error instanceof SignInError) return [error.message];
    throw error;
  }
}
