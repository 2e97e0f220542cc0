/**
 * `npm run simulate -- --seed N --rounds N`: plays histories from a seed on and prints what went wrong in each.
 * `--leases` plays histories of budgets on several instances. `--trace` prints what was seen. Exits with 1 when a history has complaints.
 */
import { parseArgs } from 'node:util';
import { runHistory } from './history.ts';
import { runLeaseHistory } from './lease-history.ts';

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    rounds: { type: 'string', default: '1' },
    leases: { type: 'boolean', default: false },
    trace: { type: 'boolean', default: false },
  },
});
const first = Number(values.seed);
const rounds = Number(values.rounds);
const began = performance.now();
let failed = 0;
let calls = 0;
let hedged = 0;
for (let seed = first; seed < first + rounds; seed++) {
  const outcome = values.leases ? await leaseOutcome(seed) : await runHistory(seed);
  calls += outcome.calls;
  hedged += outcome.hedged;
  if (values.trace) process.stdout.write(`${outcome.trace}\n`);
  if (outcome.complaints.length === 0) continue;
  failed += 1;
  process.stdout.write(
    `seed ${seed}:\n${outcome.complaints.map((what) => `  ${what}\n`).join('')}`,
  );
}
const seconds = (performance.now() - began) / 1000;
process.stdout.write(
  `${rounds} histories, ${calls} calls (${hedged} hedged), ${failed} with complaints, ${seconds.toFixed(1)} s\n`,
);
if (failed > 0) process.exitCode = 1;

async function leaseOutcome(seed: number): ReturnType<typeof runHistory> {
  const { complaints, granted, refused, kills } = await runLeaseHistory(seed);
  const trace = `${granted} granted, ${refused} refused, ${kills} killed`;
  return { seed, complaints, trace, calls: granted, hedged: 0 };
}
