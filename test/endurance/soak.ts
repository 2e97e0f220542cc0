/**
 * `npm run soak`: ten minutes; `--minutes N` or `--hours N` for others, `--callers N`. `--write` puts the
 * result into bench/RESULTS.md. Exits with 1 when a row is wrong, something is left open, or memory grows.
 */
import { cpus } from 'node:os';
import { parseArgs } from 'node:util';
import { putSection } from '../../bench/saved-sections.ts';
import { soak, type SoakReport } from './soak-run.ts';

const { values } = parseArgs({
  options: {
    minutes: { type: 'string' },
    hours: { type: 'string' },
    callers: { type: 'string', default: '100' },
    write: { type: 'boolean', default: false },
  },
});
const hourMs = 3_600_000;
const minutes =
  values.hours === undefined ? Number(values.minutes ?? 10) : Number(values.hours) * 60;
const callers = Number(values.callers);
const report = await soak({
  ms: minutes * 60_000,
  callers,
  say: (line) => process.stderr.write(`${line}\n`),
});
const text = render(report);
process.stdout.write(`${text}\n${report.wrong.slice(0, 20).join('\n')}\n`);
if (values.write) putSection('soak', text);
if (verdicts(report).some(({ met }) => !met)) process.exitCode = 1;

interface Verdict {
  readonly what: string;
  readonly figure: string;
  readonly met: boolean;
}

/** G4 speaks of what comes behind the first hour; what is loaded, compiled or learned comes before. */
function growth({ heap, options }: SoakReport): Verdict {
  const figure = `${heap.slope.toFixed(1)} ± ${heap.error.toFixed(1)} MB an hour`;
  if (options.ms >= 2 * hourMs) {
    const what = 'heap behind full collections, from the second hour on: ≤ 1 MB an hour';
    return { what, figure, met: heap.slope - 3 * heap.error <= 1 };
  }
  const grown = (heap.slope * options.ms * (2 / 3)) / hourMs;
  return {
    what: 'heap behind full collections, last two thirds of the run: grows by ≤ 4 MB',
    figure: `${grown.toFixed(1)} MB (${figure})`,
    met: grown <= 4,
  };
}

function verdicts(report: SoakReport): readonly Verdict[] {
  const { wrong, settledMs, booked, counted } = report;
  return [
    growth(report),
    {
      what: 'nothing more open than before the load, within 60 s',
      figure: settledMs === undefined ? 'not reached' : `${(settledMs / 1000).toFixed(0)} s`,
      met: settledMs !== undefined,
    },
    {
      what: 'rows that do not fit what client and upstream know',
      figure: String(wrong.length),
      met: wrong.length === 0,
    },
    {
      what: 'tokens of answers with reported usage: ledger, upstream',
      figure: `${booked}, ${counted}`,
      met: booked === counted,
    },
  ];
}

function render(report: SoakReport): string {
  const { samples, rss, cpu, calls, rows, succeeded, before, after } = report;
  const mega = 1024 * 1024;
  const most = (of: (sample: (typeof samples)[number]) => number): number =>
    Math.max(0, ...samples.map((sample) => of(sample)));
  const opened = (held: typeof before): string =>
    Object.entries(held.resources)
      .map(([kind, open]) => `${open} ${kind}`)
      .join(', ');
  const figures: readonly (readonly [string, string])[] = [
    ['calls, rows, of them succeeded', `${calls}, ${rows}, ${succeeded}`],
    ['CPU, share of a core', cpu.toFixed(2)],
    ['resident memory, most', `${(most(({ rssBytes }) => rssBytes) / mega).toFixed(0)} MB`],
    ['resident memory, slope', `${rss.slope.toFixed(1)} ± ${rss.error.toFixed(1)} MB an hour`],
    ['event loop late, p99 of the worst sample', `${most(({ loopP99 }) => loopP99).toFixed(1)} ms`],
    ['event loop late, most', `${most(({ loopMax }) => loopMax).toFixed(0)} ms`],
    ['open before the load', opened(before)],
    ['open after it', opened(after)],
  ];
  return [
    '## Soak',
    '',
    `Written by \`npm run soak -- --minutes ${minutes} --callers ${callers} --write\` on ${new Date().toISOString().slice(0, 10)}: both dialects, relayed and translated, streams of up to 60 chunks at 20 a second and documents; one call in five is left by its client, one in twenty breaks upstream. Clients and upstream share the machine (${cpus().length} cores).`,
    '',
    '| what | measured | reached |',
    '| --- | --- | --- |',
    ...verdicts(report).map(
      ({ what, figure, met }) => `| ${what} | ${figure} | ${met ? 'yes' : '**no**'} |`,
    ),
    ...figures.map(([what, figure]) => `| ${what} | ${figure} | – |`),
    '',
  ].join('\n');
}
