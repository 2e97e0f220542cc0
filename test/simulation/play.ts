/** Many histories as tests: a part of the seeds each file, so that they are played side by side. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { caseCount } from '../support/depth.ts';
import { runHistory } from './history.ts';

/** Histories in all; each has a seed of its own, from 1 on. SIMULATION_ROUNDS=100000 plays more. */
const rounds = Number(process.env['SIMULATION_ROUNDS'] ?? caseCount(5_000, 1_000));
const parts = 4;
const told = 5;

export function playPart(part: number): void {
  test(`Q1-Q3 R1-R7 F8: histories of faults, aborts, limits and crashes, part ${part} of ${parts}`, async (t) => {
    const failed: string[] = [];
    let calls = 0;
    let played = 0;
    let hedged = 0;
    for (let seed = part; seed <= rounds && failed.length < told; seed += parts) {
      const outcome = await runHistory(seed);
      played += 1;
      calls += outcome.calls;
      hedged += outcome.hedged;
      if (outcome.complaints.length > 0) failed.push(complaintOf(outcome));
    }
    t.diagnostic(`${played} histories, ${calls} calls, ${hedged} hedged`);
    assert.equal(failed.length, 0, failed.join('\n'));
    assert.ok(hedged > 0 || played < 100, 'no call was hedged');
  });
}

export function complaintOf({
  seed,
  complaints,
}: {
  readonly seed: number;
  readonly complaints: readonly string[];
}): string {
  const what = complaints.map((complaint) => `  ${complaint}`).join('\n');
  return `npm run simulate -- --seed ${seed}\n${what}`;
}
