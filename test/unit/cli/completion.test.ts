/** `completion`: what the shells make of the printed text. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { completionCommand } from '../../../src/cli/completion.ts';
import { connectCommand } from '../../../src/cli/commands/connect.ts';
import { keysCommand } from '../../../src/cli/commands/keys.ts';
import { modelsCommand } from '../../../src/cli/commands/models.ts';
import { statusCommand } from '../../../src/cli/commands/status.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { run } from '../cli-config/context.ts';

const models = modelsCommand({ remove: () => Promise.reject(new Error('not here')) });
const command = completionCommand([keysCommand, statusCommand, models, connectCommand]);

type Complete = (words: readonly string[]) => readonly string[];

/** How each shell is asked what it would offer for the last word, in a folder with one file. */
const shells: { readonly [name: string]: (script: string, folder: string) => Complete } = {
  bash: (script, folder) => (words) =>
    linesOf('bash', ['--norc', '-s'], {
      cwd: folder,
      input: `${script}\nCOMP_WORDS=(${quoted(words)}); COMP_CWORD=${words.length - 1}; _model_gateway; printf '%s\\n' "\${COMPREPLY[@]}"\n`,
    }),
  // The completion system of zsh needs a terminal: what the function hands to it is printed.
  zsh: (script, folder) => (words) => {
    const last = words.at(-1) ?? '';
    const stubs = `compdef() { : }; compadd() { shift; print -l -- \${(M)@:#${last}*} }; _files() { print -l -- *(N) }`;
    return linesOf('zsh', ['-f', '-s'], {
      cwd: folder,
      input: `${stubs}\n${script}\nwords=(${quoted(words)}); CURRENT=${words.length}; _model_gateway\n`,
    });
  },
  fish: (script, folder) => {
    const path = join(folder, '.script');
    writeFileSync(path, script);
    return (words) =>
      linesOf('fish', ['--no-config', '-c', `source ${path}; complete -C '${words.join(' ')}'`], {
        cwd: folder,
      }).map((line) => line.split('\t')[0] ?? '');
  },
};

function quoted(words: readonly string[]): string {
  return words.map((word) => `'${word}'`).join(' ');
}

function linesOf(
  shell: string,
  args: readonly string[],
  options: { readonly cwd: string; readonly input?: string },
): readonly string[] {
  const { stdout, stderr } = spawnSync(shell, args, {
    ...options,
    encoding: 'utf8',
    env: { PATH: process.env['PATH'], HOME: options.cwd },
  });
  assert.equal(stderr, '');
  return stdout
    .split('\n')
    .filter((line) => line !== '')
    .toSorted();
}

async function completeIn(shell: string): Promise<Complete> {
  const folder = temporaryFolder('completion');
  writeFileSync(join(folder, 'a-file'), '');
  const { out } = await run(command, [shell]);
  return shells[shell]?.(out, folder) ?? (() => []);
}

for (const shell of Object.keys(shells)) {
  const isThere = spawnSync(shell, ['-c', 'true']).status === 0;
  const skip = isThere ? false : `left out: there is no ${shell}`;

  test(
    `${shell} completes commands, actions and flags, and files where neither is meant`,
    { skip },
    async () => {
      const complete = await completeIn(shell);
      const all = ['completion', 'connect', 'help', 'keys', 'models', 'status'];
      assert.deepEqual(complete(['model-gateway', '']), all);
      assert.deepEqual(complete(['model-gateway', 'sta']), ['status']);
      const actions = ['create', 'forget', 'list', 'revoke', 'rotate', 'show', 'update'];
      assert.deepEqual(complete(['model-gateway', 'keys', '']), actions);
      assert.deepEqual(complete(['model-gateway', 'keys', 'cr']), ['create']);
      assert.deepEqual(complete(['model-gateway', 'keys', 'create', '--bud']), ['--budget']);
      assert.deepEqual(complete(['model-gateway', 'keys', 'list', 'a-']), ['a-file']);
      assert.deepEqual(complete(['model-gateway', 'status', '--']), [
        '--admin-listen',
        '--config',
        '--data-dir',
        '--help',
        '--json',
        '--storage',
      ]);
      // `models --help` names `model-gateway pull --list`.
      assert.deepEqual(complete(['model-gateway', 'models', '--l']), []);
      assert.deepEqual(complete(['model-gateway', 'models', 'rem']), ['remove']);
      assert.deepEqual(complete(['model-gateway', 'connect', 'claude-code-']), [
        'claude-code-router',
      ]);
      assert.deepEqual(complete(['model-gateway', 'completion', '']), ['bash', 'fish', 'zsh']);
      assert.ok(complete(['model-gateway', 'help', '']).includes('keys'));
    },
  );
}

test('completion is printed for three shells', async () => {
  assert.equal((await run(command, ['tcsh'])).code, 2);
});
