/** `npm run crash -- --rounds N`: kills a gateway under load again and again; exits with 1 when a row is wrong. */
import { parseArgs } from 'node:util';
import { putSection } from '../../bench/saved-sections.ts';
import { crashLoop } from './crash-loop.ts';

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '20' },
    write: { type: 'boolean', default: false },
  },
});
const rounds = Number(values.rounds);
const report = await crashLoop({ rounds, say: (line) => process.stderr.write(`${line}\n`) });
const { wrong, ...figures } = report;
const lines = [
  `## Crash loop`,
  '',
  `Written by \`npm run crash -- --rounds ${rounds} --write\` on ${new Date().toISOString().slice(0, 10)}: a gateway with SQLite is killed with SIGKILL at a random moment under 16 callers, ${rounds} times.`,
  '',
  '| what | figure |',
  '| --- | --- |',
  `| calls begun | ${figures.calls} |`,
  `| rows, each of a call of its own | ${figures.rows} |`,
  `| tokens of calls that succeeded: ledger, upstream | ${figures.booked}, ${figures.counted} |`,
  `| calls that ran at a kill and have a row | ${figures.interrupted} |`,
  `| answers heard shortly before a kill whose row was not written by then | ${figures.lost}, the oldest ${figures.behindMs} ms before |`,
  `| calls that ran at a kill without a row | ${figures.forgotten} |`,
  `| rows that are wrong | ${wrong.length} |`,
  '',
];
process.stdout.write(`${lines.join('\n')}\n${wrong.slice(0, 20).join('\n')}\n`);
if (values.write) putSection('crash', lines.join('\n'));
if (wrong.length > 0) process.exitCode = 1;
