/** The simulation itself: a seed gives one history, and what goes wrong in it is seen. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { complaintOf, runHistory } from './history.ts';
import { keptSeeds } from './saved-seeds.ts';

test('a seed gives the same history each time, whatever was played before', async () => {
  const seeds = [3, 14, 159, 2653, 5897];
  const first: string[] = [];
  for (const seed of seeds) first.push((await runHistory(seed)).trace);
  for (const [i, seed] of seeds.entries()) {
    await runHistory(seed + 1);
    assert.equal((await runHistory(seed)).trace, first[i], `seed ${seed}`);
  }
});

test('histories that once went wrong go well', async () => {
  for (const [seed, what] of keptSeeds) {
    const outcome = await runHistory(seed);
    assert.deepEqual(outcome.complaints, [], `${what}: ${complaintOf(outcome)}`);
  }
});

const sabotages = {
  'a settlement that is lost': /still holds its share|still reserved|not given back/,
  'a row that is lost': /calls and \d+ rows/,
  'a budget that is passed': /spent and \d+ held of|reserved/,
  'a timer that is left': /still busy|timers are left/,
  'a provider that says two things': /which nobody said/,
} as const;

for (const [sabotage, complaint] of Object.entries(sabotages)) {
  test(`the judge sees ${sabotage}`, async () => {
    const complaints: string[] = [];
    for (let seed = 1; seed < 40 && complaints.length === 0; seed++) {
      const outcome = await runHistory(seed, sabotage as keyof typeof sabotages);
      complaints.push(...outcome.complaints);
    }
    assert.match(complaints.join('\n'), complaint);
  });
}
