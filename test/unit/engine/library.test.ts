/** What is said when the package of the local engine does not load. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { notImported } from '../../../src/engine/library.ts';

async function failureOf(specifier: string): Promise<Error> {
  const failure = await import(specifier).then(
    () => undefined,
    (error: unknown) => error,
  );
  assert.ok(failure instanceof Error, specifier);
  return failure;
}

test('A15 a package that is not there is to be installed', async () => {
  const failure = await failureOf('a-package-that-is-not-there');
  failure.message = failure.message.replace('a-package-that-is-not-there', 'node-llama-cpp');
  const said = notImported(failure).message;
  assert.match(
    said,
    /needs the package node-llama-cpp\. Install it with: npm install node-llama-cpp@\d/,
  );
});

test('A15 a package without one of its dependencies is not itself missing', async () => {
  const said = notImported(await failureOf('a-package-that-is-not-there')).message;
  assert.match(said, /^The package node-llama-cpp could not be loaded: .*a-package-that-is-not-/);
});

test('A15 a package that is there and fails says why, and not that it is missing', async () => {
  const module = 'data:text/javascript,throw new Error("uv_os_homedir returned ENOENT")';
  const said = notImported(await failureOf(module)).message;
  assert.equal(
    said,
    'The package node-llama-cpp could not be loaded: uv_os_homedir returned ENOENT',
  );
});
