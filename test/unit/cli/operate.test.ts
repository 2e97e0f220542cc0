/** `status`, `tail`, `init` and `completion`. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { completionCommand } from '../../../src/cli/completion.ts';
import { errorsCommand } from '../../../src/cli/commands/errors.ts';
import { initCommand } from '../../../src/cli/commands/init.ts';
import { keysCommand } from '../../../src/cli/commands/keys.ts';
import { statusCommand } from '../../../src/cli/commands/status.ts';
import { tailCommand } from '../../../src/cli/commands/tail.ts';
import { loadSettings } from '../../../src/config/load.ts';
import { knownProviders } from '../../../src/compose/providers.ts';
import { tryParse, tryParseObject } from '../../../src/json/parse.ts';
import { run } from '../cli-config/context.ts';
import { callRow } from '../store/call-rows.ts';
import { cliRig } from './cli-rig.ts';

test('status says what runs, and its exit code whether it is ready', async (t) => {
  const about = { ready: true, version: '1.2.3', live_calls: 2, calls_shed: 0, data_dir: '/d' };
  const rig = await cliRig(t, { status: () => about });
  const { code, out } = await rig.run(statusCommand, []);
  assert.equal(code, 0);
  assert.match(out, /^version +1\.2\.3$/m);
  assert.match(out, /^running calls +2$/m);
  assert.doesNotMatch(out, /shed/);
  assert.deepEqual(tryParseObject((await rig.run(statusCommand, ['--json'])).out), about);
  const stopped = await cliRig(t, { status: () => ({ ready: false, why: 'no gateway runs' }) });
  assert.deepEqual(await stopped.run(statusCommand, []), {
    code: 1,
    out: '',
    err: 'no gateway runs\n',
  });
});

test('tail prints calls, the oldest first, and as objects', async (t) => {
  const rig = await cliRig(t);
  const now = rig.clock.wall();
  rig.ledger.record(callRow('c1', { startedAt: now - 2000, model: 'fast' }));
  rig.ledger.record(callRow('c2', { startedAt: now - 1000, model: 'slow\u001b[31m' }));
  const { code, out } = await rig.run(tailCommand, ['--no-follow']);
  assert.equal(code, 0);
  const lines = out.trimEnd().split('\n');
  assert.equal(lines.length, 2);
  assert.match(lines[0] ?? '', /^\d\d:\d\d:\d\d\.\d{3} {2}\S+ ok .* fast .*\d+ in, \d+ out .* ms$/);
  assert.match(lines[1] ?? '', /slow\?\[31m/);
  const last = await rig.run(tailCommand, ['--no-follow', '--lines', '1', '--json']);
  assert.equal(tryParseObject(last.out)?.['id'], 'c2');
  assert.match((await rig.run(tailCommand, ['--lines', 'x'])).err, /--lines: give a number/);
});

function initIn(t: TestContext, answers?: readonly string[]) {
  const cwd = mkdtempSync(join(tmpdir(), 'gw-init-'));
  t.after(() => rmSync(cwd, { recursive: true, force: true }));
  const waiting = [...(answers ?? [])];
  const known = [
    { id: 'openai', keyVariable: 'OPENAI_API_KEY' },
    { id: 'anthropic', keyVariable: 'ANTHROPIC_API_KEY' },
  ];
  const ask = answers === undefined ? undefined : () => Promise.resolve(waiting.shift() ?? '');
  const command = initCommand({ known, schema: '/s.json', cwd, program: 'gw', ask });
  return { cwd, command, text: () => readFileSync(join(cwd, 'gateway.yaml'), 'utf8') };
}

test('init writes a file that is valid, and changes none', async (t) => {
  const env = { OPENAI_API_KEY: 'sk-1' };
  const { cwd, command, text } = initIn(t);
  const made = await run(command, [], env);
  assert.equal(made.code, 0, made.err);
  assert.match(made.out, /^Wrote gateway\.yaml\. Next: gw check /);
  const settings = await loadSettings({ flags: {}, env, cwd, knownProviders });
  assert.deepEqual(
    settings.providers.map(({ id }) => id),
    ['openai'],
  );
  assert.match(text(), /^# yaml-language-server: \$schema=\/s\.json$/m);
  const before = text();
  const again = await run(command, ['--providers', 'anthropic'], env);
  assert.equal(again.code, 2);
  assert.match(again.err, /gateway\.yaml exists and stays as it is/);
  assert.equal(text(), before);
  // What is commented out is valid, too.
  const all = before
    .replace(/^# (?=providers:|models:|storage:|admin_listen:)/gm, '')
    .replace(/^# {3}/gm, '  ');
  const other = initIn(t);
  writeFileSync(join(other.cwd, 'gateway.yaml'), all);
  const more = { ...env, ANTHROPIC_API_KEY: 'k', TEAM_VLLM_KEY: 'k' };
  const whole = await loadSettings({ flags: {}, env: more, cwd: other.cwd, knownProviders });
  assert.deepEqual(
    [whole.providers, whole.routes].map((list) => list.length),
    [2, 2],
    all,
  );
});

test('init asks what the flags do not say, and refuses vendors that it does not know', async (t) => {
  const { command, text } = initIn(t, [' anthropic, openai ', '']);
  assert.equal((await run(command, [], {})).code, 0);
  assert.match(
    text(),
    /^ {2}anthropic: \{\} +# its key: ANTHROPIC_API_KEY, not set in this shell$/m,
  );
  assert.match(text(), /^ {2}openai: \{\} /m);
  assert.match(text(), /^listen: "127\.0\.0\.1:8686" /m);
  const wrong = await run(initIn(t).command, ['--providers', 'opnai', '--yes'], {});
  assert.equal(wrong.code, 2);
  assert.match(wrong.err, /opnai is not a known vendor\. Known: openai, anthropic\./);
});

test('completion completes commands, actions and flags in bash, and names them for zsh and fish', async () => {
  const command = completionCommand([keysCommand, statusCommand]);
  const { out: script } = await run(command, ['bash']);
  const completed = (words: readonly string[]): string[] => {
    const { stdout } = spawnSync('bash', ['--norc', '-s'], {
      input: `${script}\nCOMP_WORDS=(${words.map((word) => `'${word}'`).join(' ')}); COMP_CWORD=${words.length - 1}; _model_gateway; printf '%s\\n' "\${COMPREPLY[@]}"\n`,
      encoding: 'utf8',
    });
    return stdout.trim().split('\n');
  };
  assert.deepEqual(completed(['model-gateway', '']), ['keys', 'status', 'completion']);
  assert.deepEqual(completed(['model-gateway', 'keys', 'cr']), ['create']);
  assert.deepEqual(completed(['model-gateway', 'keys', 'create', '--bud']), ['--budget']);
  assert.deepEqual(completed(['model-gateway', 'status', '--']), ['--help', '--json']);
  const zsh = (await run(command, ['zsh'])).out;
  assert.match(zsh, /^ {4}keys\) words_of="create list .*--budget/m);
  const fish = (await run(command, ['fish'])).out;
  assert.match(fish, /-n '__fish_seen_subcommand_from keys' -l budget$/m);
  assert.equal((await run(command, ['tcsh'])).code, 2);
});

test('A4 tail and errors say why calls failed', async (t) => {
  const rig = await cliRig(t);
  const message = 'The price of openai/gpt-9 is not known.';
  const failure = { fault: 'limit', reason: 'price_unknown', message } as const;
  const row = { outcome: 'failed', status: 400, error: 'invalid_request', failure } as const;
  rig.ledger.record(callRow('c1', { startedAt: rig.clock.wall() - 1, ...row }));
  const tail = await rig.run(tailCommand, ['--no-follow', '--fault', 'limit']);
  assert.match(tail.out, /400 invalid_request .*\n {4}limit, price_unknown: The price of openai/);
  assert.equal((await rig.run(tailCommand, ['--no-follow', '--fault', 'client'])).out, '');
  const { out } = await rig.run(errorsCommand, ['--since', '1h']);
  assert.match(out, /^CALLS +FAULT +ERROR +REASON +STATUS/);
  assert.match(out, /\n1 +limit +invalid_request +price_unknown +400 .* c1 +The price of openai/);
  const narrow = await rig.run(errorsCommand, [], { colour: false, columns: 60 });
  assert.match(narrow.out, /^ERROR +invalid_request\nREASON +price_unknown\n/m);
  assert.match(narrow.out, /^LAST MESSAGE +The price of openai\/gpt-9 is not known\.$/m);
  const byKey = await rig.run(errorsCommand, ['--by', 'key', '--since', '1h', '--json']);
  assert.partialDeepStrictEqual(tryParse(byKey.out), [{ name: 'k1', calls: 1, failed_limit: 1 }]);
  const none = await rig.run(errorsCommand, ['--fault', 'gateway']);
  assert.equal(none.out, 'No calls failed in this period.\n');
});
