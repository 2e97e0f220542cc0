import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { test } from 'node:test';
import { checkCommand, type CheckDeps } from '../../../src/cli/commands/check.ts';
import { tryParse } from '../../../src/json/parse.ts';
import { isObject } from '../../../src/json/value.ts';
import { known, scene } from '../config/scene.ts';
import { run } from './context.ts';
import { nodeEnvironment } from '../../support/program.ts';

const program = join(import.meta.dirname, '../../../bin/model-gateway');

function command(cwd: string, describe?: CheckDeps['describeProviders']) {
  return checkCommand({
    cwd,
    knownProviders: known,
    describeProviders:
      describe ?? (() => [{ id: 'local', address: 'embedded', origin: 'ships with the gateway' }]),
  });
}

test('N1: check prints each effective value with its origin, and the providers', async () => {
  const { directory } = scene(
    'log_level: warn\nproviders:\n  openai:\n    api_key: canary-1\n    headers: { x-a: canary-2 }\nmodels:\n  a: openai/gpt\n',
  );
  const { code, out, err } = await run(command(directory), ['--listen', ':9000'], {
    MODEL_GATEWAY_ADMIN_LISTEN: ':9001',
  });
  assert.equal(err, '');
  assert.equal(code, 0);
  assert.match(out, /^listen +:9000 +flag --listen$/m);
  assert.match(out, /^admin_listen +:9001 +env MODEL_GATEWAY_ADMIN_LISTEN$/m);
  assert.match(out, /^log_level +warn +gateway\.yaml:1$/m);
  assert.match(out, /^limits\.body +32MiB +default$/m);
  assert.match(out, /^models\.a +openai\/gpt +gateway\.yaml:7$/m);
  assert.match(out, /^providers\.openai\.api_key +\[secret\] +gateway\.yaml:4$/m);
  assert.match(out, /^ +local +embedded +ships with the gateway$/m);
  assert.ok(!out.includes('canary'));
});

test('N1: check prints the rules of retries and of local models once, also where they are defaults', async () => {
  const { directory } = scene(
    'retry: { after_sent: false }\nproviders:\n  openai: { api_key: x }\nmodels:\n  a: openai/a\n  b: { targets: [openai/b], retry: { context_overflow: true } }\n',
  );
  const { out } = await run(command(directory), []);
  const lines = out.split('\n').filter((line) => /retry|^local\./.test(line));
  assert.deepEqual(
    lines.map((line) => line.replace(/ {2,}/g, ' | ')),
    [
      'retry.after_sent | false | gateway.yaml:1',
      'retry.context_overflow | false | default',
      `local.models_dir | ${join(directory, '.model-gateway/models')} | default`,
      'local.idle_unload | 10m | default',
      'local.hang | 2m | default',
      'local.max_loaded | 3 | default',
      'local.memory | 60 % of the memory | default',
      'models.b.retry.context_overflow | true | gateway.yaml:6',
    ],
  );
});

test('N3: check lists all errors on stderr and exits 1', async () => {
  const { directory } = scene('modles: {}\nlimits: { streams: 0 }\n');
  const { code, out, err } = await run(command(directory), []);
  assert.equal(code, 1);
  assert.equal(out, '');
  assert.deepEqual(err.split('\n'), [
    'gateway.yaml:1: modles: unknown key (did you mean "models"?)',
    'gateway.yaml:2: limits.streams: must be at least 1',
    '',
  ]);
});

test('§4 check warns of local models whose files are missing', async () => {
  const { directory } = scene(
    'local:\n  models:\n    gone: { context: 512 }\n    far: { path: /nowhere/deep.gguf }\n',
  );
  const child = spawn(program, ['check', '--json'], {
    cwd: directory,
    env: {
      ...nodeEnvironment,
      PATH: process.env['PATH'],
      MODEL_GATEWAY_DATA_DIR: join(directory, 'data'),
    },
  });
  let out = '';
  child.stdout.on('data', (piece) => (out += String(piece)));
  const [code] = await once(child, 'close');
  assert.equal(code, 0, 'the configuration is valid all the same');
  const report = tryParse(out);
  assert.ok(isObject(report) && Array.isArray(report['warnings']));
  const models = join(directory, 'data', 'models');
  assert.deepEqual(report['warnings'], [
    `local model skipped: gone is in the config, but ${models} has no gone.gguf`,
    'local model skipped: far has the path /nowhere/deep.gguf in the config, which is not there',
  ]);
});

test('check --json is one object, of a valid and of an invalid configuration', async () => {
  const good = scene('log_level: warn\n');
  const valid = await run(command(good.directory), ['--json']);
  const report = tryParse(valid.out);
  assert.ok(isObject(report));
  assert.equal(report['valid'], true);
  assert.deepEqual(report['errors'], []);
  assert.deepEqual(report['providers'], [
    { id: 'local', address: 'embedded', origin: 'ships with the gateway' },
  ]);
  assert.ok(Array.isArray(report['settings']));
  assert.ok(
    report['settings'].some((line) => isObject(line) && line['origin'] === 'gateway.yaml:1'),
  );

  const bad = scene('log_level: loud\n');
  const invalid = await run(command(bad.directory), ['--json']);
  assert.equal(invalid.code, 1);
  assert.deepEqual(tryParse(invalid.out), {
    valid: false,
    errors: [
      {
        file: 'gateway.yaml',
        line: 1,
        path: 'log_level',
        message: 'expected one of debug, info, warn, error, silent',
      },
    ],
  });
});

test('what start would fail at later makes check fail too', async () => {
  const { directory } = scene();
  const failing = command(directory, () => Promise.reject(new Error('providers.x: no dialect')));
  const { code, err } = await run(failing, []);
  assert.equal(code, 1);
  assert.equal(err, 'providers.x: no dialect\n');
});

test('wrong flags are named; --help explains', async () => {
  const { directory } = scene();
  const wrong = await run(command(directory), ['--lisen', ':1']);
  assert.deepEqual(wrong, {
    code: 2,
    out: '',
    err: '--lisen is not a flag of this command. Did you mean --listen?\nSee "model-gateway check --help".\n',
  });
  assert.deepEqual(tryParse((await run(command(directory), ['--lisen', ':1', '--json'])).out), {
    valid: false,
    errors: [{ path: '--lisen', message: 'is not a flag of this command. Did you mean --listen?' }],
  });
  const help = await run(command(directory), ['--help']);
  assert.equal(help.code, 0);
  assert.match(help.out, /--admin-listen/);
});

test('warnings go to stderr and do not fail', async () => {
  const { directory } = scene();
  const { code, err } = await run(command(directory), [
    '--admin-listen',
    '0.0.0.0:1',
    '--admin-public=yes',
  ]);
  assert.equal(code, 0);
  assert.match(err, /^warning: admin_listen 0\.0\.0\.0/);
});
