/** The suites that are to run each client on each upstream take both from `support/dialects.ts`. */
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { describe, test } from 'node:test';
import { clientDialects as registeredClients } from '../src/dialects/registry.ts';
import { beforeContentRows } from './faults/before-content-rows.ts';
import { cutRows } from './faults/cut-rows.ts';
import { endingRows, framingRows } from './faults/framing-rows.ts';
import { casesOf } from './faults/row-case.ts';
import { wireRows } from './faults/wire-rows.ts';
import { upstreamHalves } from './property/dialect-halves.ts';
import { recordedDocuments, recordedStreams, whyLeftOut } from './recordings/recorded.ts';
import { clientDialects, pairs, upstreamDialects } from './support/dialects.ts';
import { firstTurns } from './two-turn/first-turns.ts';

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

test('the lists have every dialect that the gateway has', () => {
  assert.equal(clientDialects.length, registeredClients.length);
  const folders = globSync('src/dialects/*/upstream.ts', { cwd: join(import.meta.dirname, '..') });
  const ids = folders.map((folder) => basename(dirname(folder)));
  const spoken = upstreamDialects.map((each) => upstreamHalves[each].upstream.id);
  assert.deepEqual(spoken.toSorted(), ids.toSorted());
});

const rows = [beforeContentRows, cutRows, framingRows, endingRows, wireRows].flat();

test('each fault before and within an answer is played by each upstream to each client, or says whose it is', () => {
  for (const row of rows) {
    const own = [row.upstream ?? upstreamDialects].flat();
    const played = casesOf([row]).map(({ dialect, upstream }) => `${dialect} on ${upstream}`);
    const wanted = own.flatMap((upstream) =>
      clientDialects
        .filter(
          (client) => row.mode === undefined || (client === upstream) === (row.mode === 'relay'),
        )
        .map((client) => `${client} on ${upstream}`),
    );
    assert.deepEqual(new Set(played), new Set(wanted), `${row.id} ${row.name}`);
  }
});

test('each upstream has recordings and first turns that want something back', () => {
  for (const upstream of upstreamDialects) {
    assert.ok(
      firstTurns.some((turn) => turn.upstream === upstream),
      upstream,
    );
    if (whyLeftOut !== undefined) continue;
    assert.ok(recordedDocuments([upstream]).length > 0, upstream);
    assert.ok(recordedStreams([upstream]).length > 0, upstream);
  }
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
