/** Folders of tests (test/support/folders.ts). */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';

const module = pathToFileURL(join(import.meta.dirname, '..', '..', 'support', 'folders.ts')).href;

const source = `
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after } from 'node:test';
import { temporaryFolder } from '${module}';
const paths = [temporaryFolder('first'), temporaryFolder('second')];
for (const path of paths) {
  mkdirSync(join(path, 'data'));
  writeFileSync(join(path, 'data', 'file'), '');
}
after(() => console.log(JSON.stringify(paths.map((path) => [path, existsSync(path)]))));
`;

test('temporary folders are there in the last hook, and removed when the process ends', () => {
  const { stdout, status } = spawnSync(process.execPath, ['--input-type=module', '-e', source], {
    encoding: 'utf8',
    env: { ...process.env, NODE_TEST_CONTEXT: undefined },
  });
  assert.equal(status, 0);
  const folders = JSON.parse(/^\[.*/m.exec(stdout)?.[0] ?? '[]') as [string, boolean][];
  assert.deepEqual(
    folders.map(([path, there]) => [/gw-[a-z]+/.exec(path)?.[0], there, existsSync(path)]),
    [
      ['gw-first', true, false],
      ['gw-second', true, false],
    ],
  );
});
