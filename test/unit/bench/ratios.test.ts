import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { folderTimes, readProfile, selfTimes } from '../../../bench/cpu-profile.ts';
import { flameGraph } from '../../../bench/flame-graph.ts';
import { committedRatios, judge, keepRatios } from '../../../bench/ratios.ts';
import { temporaryFolder } from '../../support/folders.ts';

test('issue 7.8: the guard fails on a ratio that grew by more than 15 %, and on no other', () => {
  const committed = { a: 4, b: 2 };
  assert.equal(judge(committed, { a: 4.6, b: 1 }).failed, false);
  const higher = judge(committed, { a: 4.61, b: 2 });
  assert.equal(higher.failed, true);
  assert.match(higher.lines[0] ?? '', /^HIGHER a: 4\.61 × nginx, committed 4\.00 × \(\+15 %\)/);
});

test('issue 7.8: a guard that has nothing to compare fails', () => {
  assert.equal(judge({}, { a: 1 }).failed, true);
  assert.equal(judge({ a: 1 }, {}).failed, true);
});

test('issue 7.8: a run keeps the ratios of workloads that it did not measure', () => {
  const folder = temporaryFolder('ratios');
  const file = join(folder, 'ratios.json');
  assert.deepEqual(committedRatios(file), {});
  keepRatios({ a: 4, b: 2 }, file);
  keepRatios({ b: 3 }, file);
  assert.deepEqual(committedRatios(file), { a: 4, b: 3 });
  writeFileSync(file, '{"a":"4"}');
  assert.throws(() => committedRatios(file), /the ratio of a is no number/);
  assert.equal(readFileSync(file, 'utf8'), '{"a":"4"}');
});

test('issue 7.7: a profile is read without its idle time, and drawn with each function once a caller', () => {
  const frame = (functionName: string, url = '', lineNumber = 0): object => ({
    functionName,
    url,
    lineNumber,
  });
  const nodes = [
    { id: 1, callFrame: frame('(root)'), children: [2, 3, 4] },
    { id: 2, callFrame: frame('(idle)') },
    { id: 3, callFrame: frame('run', 'file:///any/src/gateway/handle.ts', 9), children: [5, 6] },
    { id: 4, callFrame: frame('run', 'file:///any/src/gateway/handle.ts', 9) },
    { id: 5, callFrame: frame('parse<T>', 'file:///any/src/core/json.ts', 4) },
    { id: 6, callFrame: frame('write', 'file:///any/node_modules/a/src/b/c.js', 4) },
  ];
  const profile = { nodes, samples: [2, 3, 4, 5, 6], timeDeltas: [900, 10, 20, 65, 5] };
  const root = readProfile(JSON.stringify(profile));
  assert.equal(root.totalUs, 100);
  assert.deepEqual(selfTimes(root, ({ functionName }) => functionName).slice(0, 2), [
    ['parse<T>', 65],
    ['run', 30],
  ]);
  const folders = folderTimes(root).filter(([, us]) => us > 0);
  // What a package does, it does for who called it.
  assert.deepEqual(folders, [
    ['core', 65],
    ['gateway', 35],
  ]);
  const picture = flameGraph(root, 'a < b');
  assert.match(picture, /a &lt; b/);
  assert.equal(
    picture.match(/run gateway\/handle\.ts:10: 100\.00 %, 30\.00 % in itself/g)?.length,
    1,
  );
  assert.match(picture, /parse&lt;T> core\/json\.ts:5: 65\.00 %/);
  assert.throws(() => readProfile('{}'), /no CPU profile/);
});
