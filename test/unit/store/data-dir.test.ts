import assert from 'node:assert/strict';
import { rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { makeDirectories } from '../../../src/store/data-dir.ts';
import { StoreError } from '../../../src/store/store-error.ts';
import { temporaryFolder } from '../../support/folders.ts';

const root = temporaryFolder('data-dir');

test('F-11 missing directories are made, private, and those that are there are left alone', () => {
  const path = join(root, 'a', 'b');
  makeDirectories(path);
  makeDirectories(path);
  assert.equal(statSync(join(root, 'a')).mode & 0o777, 0o700);
  symlinkSync(path, join(root, 'link'));
  makeDirectories(join(root, 'link', 'c'));
  assert.ok(statSync(join(path, 'c')).isDirectory());
});

/** Node's recursive mkdir never returns below /proc. */
for (const [name, path] of [
  ['/proc', '/proc/x/y'],
  ['a file', join(root, 'file', 'x')],
  ['a link to nothing', join(root, 'dangling')],
] as const) {
  test(`F-11 a directory below ${name} is an error that names it`, () => {
    writeFileSync(join(root, 'file'), '');
    rmSync(join(root, 'dangling'), { force: true });
    symlinkSync(join(root, 'gone', 'far'), join(root, 'dangling'));
    assert.throws(
      () => makeDirectories(path),
      (error: Error) =>
        error instanceof StoreError && /^The directory .* cannot be made/.test(error.message),
    );
  });
}
