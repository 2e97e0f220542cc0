/** The one place that says which suites play which clients on which upstreams, and fails where one leaves a pair out. */
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
import { answerSamples } from './corpus/answers.ts';
import { cloudAnswers } from './corpus/cloud-answers.ts';
import { corpus } from './corpus/samples.ts';
import { answerTables, requestTables } from './decisions/rows.ts';
import { halves, upstreamHalves } from './property/dialect-halves.ts';
import { recordedDocuments, recordedStreams, whyOmitted } from './recordings/recorded.ts';
import { clientDialects, pairs, type Pair, upstreamDialects } from './support/dialects.ts';
import { allDialects } from './support/reading.ts';
import { firstTurns } from './two-turn/first-turns.ts';
import { histories } from './two-turn/histories.ts';

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

/** Answers of clouds have no table: their goldens show what becomes of each, and `test/clouds` why. */
const ninePairs = pairs.filter(({ upstream }) => clientDialects.some((each) => each === upstream));
const cloudPairs = pairs.filter((pair) => !ninePairs.includes(pair));
type CloudDialect = keyof typeof cloudAnswers;
const goldens = join(import.meta.dirname, 'golden/files');

/** How much each suite of translation plays of a pair, by the data that its tests are made of. */
const suites: {
  readonly [suite: string]: {
    readonly pairs?: readonly Pair[];
    readonly count: (pair: Pair) => number;
  };
} = {
  'decisions, requests': {
    count: ({ client, upstream }) => {
      const { rows, towards } = requestTables[client];
      return (client === upstream ? rows : towards(upstream)).length;
    },
  },
  'decisions, answers': {
    pairs: ninePairs.filter(({ client, upstream }) => client !== upstream),
    count: ({ client, upstream }) =>
      ['document', 'stream'].every((form) =>
        answerTables.some(
          ({ client: to, from, what }) => to === client && from === upstream && what === form,
        ),
      )
        ? 1
        : 0,
  },
  'corpus, requests': {
    count: ({ client, upstream }) => {
      const isPlayed = client === upstream || requestTables[client].upstreams.includes(upstream);
      return isPlayed ? Object.keys(corpus[client]).length : 0;
    },
  },
  'corpus, answers': {
    pairs: ninePairs.filter(({ client, upstream }) => client !== upstream),
    count: ({ client, upstream }) =>
      Object.entries(answerSamples)
        .find(([from]) => from === upstream)?.[1]
        .filter(({ to }) => to[client] !== undefined).length ?? 0,
  },
  'goldens, answers of clouds': {
    pairs: cloudPairs,
    count: ({ client, upstream }) => {
      const answers = upstream in cloudAnswers ? cloudAnswers[upstream as CloudDialect] : [];
      const golden = readFileSync(join(goldens, `answers-${upstream}.txt`), 'utf8');
      const isShown = answers.every(({ name }) =>
        ['document', 'stream'].every((form) =>
          golden.includes(`#### ${name}: ${client} ${form}\n`),
        ),
      );
      return isShown ? answers.length : 0;
    },
  },
  faults: {
    count: ({ client, upstream }) =>
      casesOf(rows).filter((each) => each.dialect === client && each.upstream === upstream).length,
  },
  recordings: {
    count: ({ upstream }) =>
      whyOmitted === undefined
        ? Math.min(recordedDocuments([upstream]).length, recordedStreams([upstream]).length)
        : 1,
  },
  'two turns': {
    count: ({ client, upstream }) =>
      Math.min(
        histories.filter(({ dialect }) => dialect === client).length,
        firstTurns.filter((turn) => turn.upstream === upstream).length,
      ),
  },
};

for (const [suite, { pairs: wanted = pairs, count }] of Object.entries(suites)) {
  test(`issue 21: ${suite} play each client on each upstream: no hole`, () => {
    const holes = wanted.filter((pair) => count(pair) === 0);
    assert.deepEqual(holes, []);
  });
}

test('issue 21: the laws of conversations and answers are held for each pair of halves', () => {
  assert.deepEqual(Object.keys(halves).toSorted(), clientDialects.toSorted());
  assert.deepEqual(Object.keys(upstreamHalves).toSorted(), upstreamDialects.toSorted());
  assert.deepEqual(allDialects, clientDialects);
  for (const [file, text] of textsOf('property')) {
    if (!/^property\/(conversations|generations|any-input)\.test\.ts$/.test(file)) continue;
    assert.match(text, /for \(const dialect of allDialects\)[^]+ of allDialects\b/, file);
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
