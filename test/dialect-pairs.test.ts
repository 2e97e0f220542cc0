/** The suites that are to run each client on each upstream take both from `support/dialects.ts`. */
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { clientDialects, pairs, upstreamDialects } from './support/dialects.ts';

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

/** In these, each client meets each upstream. */
const whole = ['recordings', 'two-turn', 'matrix', 'inputs', 'faults', 'limits'];
/** In these, what is shown does not depend on the pair; each client takes its turn. */
const turns = ['lifecycle', 'overload', 'access', 'metrics'];

for (const folder of whole) {
  describe(folder, () => {
    test('clients and upstreams are those of the lists', () => {
      const all = textsOf(folder).map(([, text]) => text.split("support/dialects.ts'")[0] ?? '');
      const uses = (name: string): boolean => all.some((text) => text.includes(name));
      assert.ok(uses('clientDialects') || uses('pairs'), 'each client');
      const recordings = textsOf(folder).some(([, text]) => text.includes('recordedStreams()'));
      assert.ok(uses('upstreamDialects') || uses('pairs') || recordings, 'each upstream');
    });
  });
}

for (const folder of [...whole, ...turns]) {
  describe(folder, () => {
    for (const [file, text] of textsOf(folder)) {
      test(`${file} does not leave a dialect out`, () => {
        const older = /import \{[^}]*\bdialects\b[^}]*\} from '\.\.\/support\/reading\.ts'/;
        assert.doesNotMatch(text, older, 'take them from support/dialects.ts');
      });
    }
  });
}
