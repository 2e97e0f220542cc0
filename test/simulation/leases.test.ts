/** Budgets on several instances: many histories of the real leases, and what goes wrong in them is seen. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { caseRange } from '../support/depth.ts';
import { runLeaseHistory, type LeaseSabotage } from './lease-history.ts';

/** Seeds of the histories, from 1 on. LEASE_ROUNDS=100000 plays more. */
const wanted = process.env['LEASE_ROUNDS'];
const [first, last] = wanted === undefined ? caseRange(6_000, 250) : [1, Number(wanted)];
const told = 5;

// Played before a test is declared: the test runner follows every promise from then on, which doubles the time.
const failed: string[] = [];
let [granted, refused, kills] = [0, 0, 0];
for (let seed = first; seed <= last && failed.length < told; seed++) {
  const outcome = await runLeaseHistory(seed);
  granted += outcome.granted;
  refused += outcome.refused;
  kills += outcome.kills;
  if (outcome.complaints.length === 0) continue;
  failed.push(`npm run simulate -- --leases --seed ${seed}\n  ${outcome.complaints.join('\n  ')}`);
}

test('Q1 Q2: histories of leases: kills, lost and late answers, cuts, clock jumps, overruns', (t) => {
  t.diagnostic(
    `${last + 1 - first} histories, ${granted} calls, ${refused} refused, ${kills} kills`,
  );
  assert.equal(failed.length, 0, failed.join('\n'));
  assert.ok(refused > 0 && kills > 0);
});

const sabotages: { readonly [name in LeaseSabotage]: RegExp } = {
  'an answer that counts twice': /spent and leased|used of|are left/,
  'a lease that is never given back': /refused|still leased|are left/,
  'a journal that lacks reservations': /spent and leased|used of/,
};

for (const sabotage of Object.keys(sabotages) as LeaseSabotage[]) {
  test(`the judge sees ${sabotage}`, async () => {
    const complaints: string[] = [];
    for (let seed = 1; seed < 60 && complaints.length === 0; seed++) {
      complaints.push(...(await runLeaseHistory(seed, sabotage)).complaints);
    }
    assert.match(complaints.join('\n'), sabotages[sabotage]);
  });
}
