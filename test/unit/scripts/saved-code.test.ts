/** `scripts/program/run.cjs`: the code that an earlier run of the joined program saved is taken where it can be trusted. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';

const runner = join(import.meta.dirname, '..', '..', '..', 'scripts', 'program', 'run.cjs');

interface Program {
  /** What it prints when it is started with these arguments. */
  readonly start: (args?: readonly string[], env?: Readonly<Record<string, string>>) => string;
  /** The only file of saved code. */
  readonly code: () => string;
  readonly saved: string;
}

function program(t: TestContext): Program {
  const folder = mkdtempSync(join(tmpdir(), 'gw-saved-code-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  copyFileSync(runner, join(folder, 'run.cjs'));
  writeFileSync(join(folder, 'main.cjs'), "require('./run.cjs')('main-1.cjs');\n");
  writeFileSync(
    join(folder, 'main-1.cjs'),
    "const { few, many } = require('./more-1.cjs');\nprocess.stdout.write(process.argv.includes('all') ? many() : few());\n",
  );
  const functions = Array.from({ length: 200 }, (_, i) => `function f${i}() { return ${i}; }`);
  const calls = functions.map((_, i) => `f${i}()`).join(' + ');
  writeFileSync(
    join(folder, 'more-1.cjs'),
    `${functions.join('\n')}\nexports.few = () => String(f7());\nexports.many = () => String(${calls});\n`,
  );
  const saved = join(folder, 'saved');
  return {
    saved,
    start: (args = [], env = {}) => {
      const { stdout, stderr } = spawnSync(process.execPath, [join(folder, 'main.cjs'), ...args], {
        env: { NODE_COMPILE_CACHE: saved, ...env },
        encoding: 'utf8',
      });
      assert.equal(stderr, '');
      return stdout;
    },
    code: () => {
      const own = join(saved, `model-gateway-${process.getuid?.() ?? 0}`);
      const [name = '', ...others] = readdirSync(own);
      assert.deepEqual(others, []);
      return join(own, name);
    },
  };
}

test('code is saved by a first run, and again by one that has called more', (t) => {
  const { start, code } = program(t);
  assert.equal(start(), '7');
  const first = statSync(code());
  assert.equal(start(), '7');
  assert.equal(statSync(code()).ino, first.ino, 'a run that called the same saved it again');
  assert.equal(start(['--', 'all']), '19900');
  const more = statSync(code());
  assert.ok(more.size > first.size * 1.1);
  assert.equal(start(), '7');
  assert.equal(statSync(code()).ino, more.ino, 'a run that called less replaced it');
});

test('each command has code of its own', (t) => {
  const { start, saved } = program(t);
  start(['keys']);
  start(['start', '--listen', ':0']);
  const names = readdirSync(saved, { recursive: true, encoding: 'utf8' });
  assert.deepEqual(
    names.filter((name) => name.includes('main-1')).map((name) => name.split('main-1-')[1]),
    [`keys-${process.version}`, `start-${process.version}`],
  );
});

test('code of builds of long ago is removed when code is saved', (t) => {
  const { start, code } = program(t);
  start();
  const old = join(code(), '..', 'main-0-start-v1');
  writeFileSync(old, '');
  utimesSync(old, new Date(0), new Date(0));
  assert.equal(start(['--', 'all']), '19900');
  assert.ok(!existsSync(old));
});

test('code that is damaged is not run, and is replaced', (t) => {
  const { start, code } = program(t);
  start();
  const whole = readFileSync(code());
  const torn = Buffer.from(whole);
  torn.fill(0, torn.length - 200);
  for (const bytes of [torn, whole.subarray(0, whole.length / 2), Buffer.from('x'), Buffer.of()]) {
    writeFileSync(code(), bytes);
    assert.equal(start(), '7');
    assert.ok(readFileSync(code()).length > 0.9 * whole.length);
  }
});

test(
  'code that another user may have written is not run, and is replaced',
  { skip: process.getuid === undefined ? 'files have no owners here' : false },
  (t) => {
    const { start, code } = program(t);
    start();
    const before = statSync(code()).ino;
    chmodSync(code(), 0o622);
    assert.equal(start(), '7');
    const after = statSync(code());
    assert.notEqual(after.ino, before);
    assert.equal(after.mode & 0o777, 0o600);
  },
);

test('nothing is saved where it is switched off or cannot be written', (t) => {
  const { start, saved } = program(t);
  assert.equal(start([], { NODE_DISABLE_COMPILE_CACHE: '1' }), '7');
  assert.ok(!existsSync(saved));
  writeFileSync(saved, '');
  assert.equal(start([], {}), '7');
});
