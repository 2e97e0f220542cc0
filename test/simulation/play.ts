/** Many histories as tests: a part of the seeds each file, so that they are played side by side. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { caseRange } from '../support/depth.ts';
import { complaintOf, runHistory } from './history.ts';

/** Seeds of the histories, from 1 on. SIMULATION_ROUNDS=100000 plays more. */
const wanted = process.env['SIMULATION_ROUNDS'];
const [first, last] = wanted === undefined ? caseRange(3_000, 250) : [1, Number(wanted)];
const parts = 4;
const told = 5;

/**
 * Plays a part of the histories, and then declares the test that reports them. The test runner follows every
 * promise once a test is declared, which doubles the time of a history.
 */
export async function playPart(part: number): Promise<void> {
  const failed: string[] = [];
  let calls = 0;
  let played = 0;
  let hedged = 0;
  for (let seed = first - 1 + part; seed <= last && failed.length < told; seed += parts) {
    const outcome = await runHistory(seed);
    played += 1;
    calls += outcome.calls;
    hedged += outcome.hedged;
    if (outcome.complaints.length > 0) failed.push(complaintOf(outcome));
  }
  test(`Q1-Q3 R1-R7 F8: histories of faults, aborts, limits and crashes, part ${part} of ${parts}`, (t) => {
    t.diagnostic(`${played} histories, ${calls} calls, ${hedged} hedged`);
    assert.equal(failed.length, 0, failed.join('\n'));
    assert.ok(hedged > 0 || played < 100, 'no call was hedged');
  });
}
