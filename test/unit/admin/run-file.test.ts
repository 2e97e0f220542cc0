import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { it } from 'node:test';
import { Secret } from '../../../src/core/secret.ts';
import { readRunFile, removeRunFile, writeRunFile } from '../../../src/admin/run-file.ts';
import { temporaryFolder } from '../../support/folders.ts';

const folder = temporaryFolder('run');
const path = join(folder, 'run.json');
const admin = 'http://127.0.0.1:8687';
const control = new Secret('control');

it('S25 is written in one step, 0600, and read back', () => {
  writeFileSync(path, 'old', { mode: 0o644 });
  writeRunFile(folder, { pid: process.pid, admin, control });
  assert.equal(statSync(path).mode & 0o777, 0o600);
  assert.deepEqual(readdirSync(folder), ['run.json']);
  const run = readRunFile(folder);
  assert.deepEqual([run?.pid, run?.admin, run?.control.reveal()], [process.pid, admin, 'control']);
});

it('a dead gateway counts as none, and a broken file too', () => {
  const dead = spawnSync(process.execPath, ['-e', '']).pid;
  writeRunFile(folder, { pid: dead, admin, control });
  assert.equal(readRunFile(folder), undefined);
  for (const text of ['', '{', '[]', '{"pid":1}', '{"pid":-1,"admin":"a","control":"c"}']) {
    writeFileSync(path, text);
    assert.equal(readRunFile(folder), undefined, text);
  }
});

it('is removed only by its own process', () => {
  writeRunFile(folder, { pid: process.pid, admin, control });
  removeRunFile(folder, process.pid + 1);
  assert.ok(readRunFile(folder));
  removeRunFile(folder, process.pid);
  assert.equal(readRunFile(folder), undefined);
  removeRunFile(folder, process.pid);
});

it('a file that cannot be written is named: of a full disk the system names none', () => {
  const away = join(folder, 'away');
  assert.throws(
    () => writeRunFile(away, { pid: process.pid, admin, control }),
    (error: Error) => error.message.startsWith(`${join(away, 'run.json')} cannot be written (`),
  );
});
