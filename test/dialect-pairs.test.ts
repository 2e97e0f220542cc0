/** The suites that are to run each client on each upstream take both from `support/dialects.ts`. */
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { clientDialects, pairs, upstreamDialects } from './support/dialects.ts';

/** Files that still run two clients or two upstreams, or are about these two. */
const ofTwo: ReadonlySet<string> = new Set([
  'matrix/auto-marks.test.ts',
  'matrix/usage.test.ts',
  'inputs/behind-proxies.test.ts',
  'inputs/go-reader.test.ts',
  'inputs/twin-names.test.ts',
]);

function textsOf(folder: string): readonly (readonly [file: string, text: string])[] {
  return globSync(`${folder}/*.ts`, { cwd: import.meta.dirname }).map((file) => [
    file,
    readFileSync(join(import.meta.dirname, file), 'utf8'),
  ]);
}

test('there is a pair for each client on each upstream', () => {
  const names = new Set(pairs.map(({ client, upstream }) => `${client} on ${upstream}`));
  assert.equal(names.size, clientDialects.length * upstreamDialects.length);
});

for (const folder of ['recordings', 'two-turn', 'matrix', 'inputs', 'faults', 'limits']) {
  describe(folder, () => {
    test('clients and upstreams are those of the lists', () => {
      const all = textsOf(folder).map(([, text]) => text.split("support/dialects.ts'")[0] ?? '');
      const uses = (name: string): boolean => all.some((text) => text.includes(name));
      assert.ok(uses('clientDialects') || uses('pairs'), 'each client');
      const recordings = textsOf(folder).some(([, text]) => text.includes('recordedStreams()'));
      assert.ok(uses('upstreamDialects') || uses('pairs') || recordings, 'each upstream');
    });

    for (const [file, text] of textsOf(folder)) {
      test(`${file} does not leave a dialect out`, () => {
        const older = /import \{[^}]*\bdialects\b[^}]*\} from '\.\.\/support\/reading\.ts'/.test(
          text,
        );
        assert.equal(older, ofTwo.has(file), 'take them from support/dialects.ts');
      });
    }
  });
}
