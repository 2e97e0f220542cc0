/** `scripts/program/run.cjs`: the joined program runs with the code that its build saved, and without it. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { temporaryFolder } from '../../support/folders.ts';

const runner = join(import.meta.dirname, '..', '..', '..', 'scripts', 'program', 'run.cjs');

/** A program of two modules. V8 compiles the function of `more.cjs` when it is called. */
function program(): {
  readonly run: (script: string, ...options: readonly string[]) => string;
  readonly code: string;
} {
  const folder = temporaryFolder('saved-code');
  copyFileSync(runner, join(folder, 'run.cjs'));
  writeFileSync(
    join(folder, 'main.cjs'),
    "exports.result = require('./more.cjs').called() + require('node:path').sep;\n",
  );
  writeFileSync(
    join(folder, 'more.cjs'),
    `exports.called = () => { ${'{ let a = 1; a += 2; } '.repeat(200)} return __filename.endsWith('more.cjs'); };\n`,
  );
  const run = (script: string, ...options: readonly string[]): string => {
    const whole = `const { codePath, compile, load, pack, run } = require('./run.cjs');\n${script}`;
    writeFileSync(join(folder, 'start.cjs'), whole);
    const { stdout, stderr } = spawnSync(
      process.execPath,
      [...options, join(folder, 'start.cjs')],
      {
        encoding: 'utf8',
      },
    );
    assert.equal(stderr, '');
    return stdout;
  };
  return { run, code: join(folder, `main.cjs.${process.arch}.code`) };
}

const starts = "process.stdout.write(run('main.cjs').result);";
const saves = `
  const scripts = new Map();
  load('main.cjs', (name) => scripts.set(name, compile(name)).get(name));
  const code = new Map([...scripts].map(([name, script]) => [name, script.createCachedData()]));
  require('node:fs').writeFileSync(codePath('main.cjs'), pack(code));`;
/** Whether V8 took the code: functions that were called are compiled before they are called. */
const says = `
  const { Script } = require('node:vm');
  const used = [];
  const own = Object.getOwnPropertyDescriptor(Script.prototype, 'runInThisContext').value;
  Script.prototype.runInThisContext = function () {
    used.push(this.cachedDataRejected);
    return own.call(this);
  };
  run('main.cjs');
  process.stdout.write(JSON.stringify(used));`;

test('a program whose code was not saved runs as any other', () => {
  const { run } = program();
  assert.equal(run(starts), 'true/');
  assert.equal(run(says), '[]', 'Node compiles it, with its own cache');
});

test('the saved code of each module is taken', () => {
  const { run } = program();
  run(saves);
  assert.equal(run(says), '[false,false]');
  assert.equal(run(starts), 'true/');
});

test('code that V8 refuses, as after an update of Node, is left: Node loads the modules, with its own cache', () => {
  const { run } = program();
  run(saves);
  assert.equal(run(says, '--no-opt'), '[]');
  assert.equal(run(starts, '--no-opt'), 'true/');
});

test('a module that throws throws the next time as well', () => {
  const { run } = program();
  run(saves);
  const twice = `
    const fails = () => { throw new Error('no'); };
    const errors = [1, 2].map(() => {
      try { return load('main.cjs', fails); } catch (error) { return error.message; }
    });
    process.stdout.write(errors.join());`;
  assert.equal(run(twice), 'no,no');
});

test('code that is damaged is not run', () => {
  const { run, code } = program();
  run(saves);
  const whole = readFileSync(code);
  for (const at of [whole.length - 1, whole.length - 200, Math.floor(whole.length / 2)]) {
    const damaged = Buffer.from(whole);
    damaged.writeUInt8(damaged.readUInt8(at) ^ 0xff, at);
    writeFileSync(code, damaged);
    assert.match(run(says), /^\[(false,null)?\]$/, 'V8 got code of one module only, or none');
    assert.equal(run(starts), 'true/');
  }
  for (const bytes of [whole.subarray(0, whole.length - 50), whole.subarray(0, 9), Buffer.of()]) {
    writeFileSync(code, bytes);
    assert.equal(run(starts), 'true/');
  }
});
