// Runs several test files in this process, each as a suite named after it, so that its hooks stay its own.
// Usage: node scripts/test-folder.mjs FILE…
import { resolve } from 'node:path';
import { suite } from 'node:test';
import { pathToFileURL } from 'node:url';

for (const file of process.argv.slice(2)) {
  suite(file, async () => {
    await import(pathToFileURL(resolve(file)).href);
  });
}
