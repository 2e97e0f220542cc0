/**
 * `node bench/overload.ts RUN`: overloads a gateway of its own in one way and prints what became of it.
 * Exits with 1 when a bound was not retained. What the runs show is in docs/operator/overload.md.
 */
import { parseArgs } from 'node:util';
import { loadCore, stopAll } from './child.ts';
import { putSection } from './saved-sections.ts';
import { inspectMachine, pinMyself } from './machine.ts';
import { largeBodies } from './overload/large-bodies.ts';
import { plateau } from './overload/plateau.ts';
import { slowReaders } from './overload/readers.ts';
import { slowloris } from './overload/slowloris.ts';
import type { Figure } from './overload/stage.ts';
import { shortCalls } from './overload/short-calls.ts';
import { manyStreams, type StreamsWanted } from './overload/streams.ts';
import { translatedStreams } from './overload/translated.ts';
import { table } from './tables.ts';

const usage = `Usage: node bench/overload.ts RUN [--seconds N | --minutes N] [--write]
  plateau     G6   three times the capacity, in streams of a second
  slowloris   G10  5,000 half-open heads and bodies of a byte a second
  bodies      G5   50 bodies of 32 MB at once under 512 MB
  readers     G9   500 clients that stop reading
  streams     G2   open streams: [--count 3000] [--rate 2]
  translated  G1   open streams, translated: [--count 1000] [--rate 20]
  calls       G3   short calls: [--rate 500]
  all              one after the other, 15 seconds each
  --write          puts the tables into bench/RESULTS.md
`;

type Run = (seconds: number, say: (line: string) => void) => Promise<readonly Figure[]>;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seconds: { type: 'string', default: '15' },
    minutes: { type: 'string' },
    count: { type: 'string' },
    rate: { type: 'string' },
    write: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});
const seconds = values.minutes === undefined ? Number(values.seconds) : 60 * Number(values.minutes);

/** What was requested, or else what is usual. */
function wanted(count: number, rate: number): StreamsWanted {
  return { count: Number(values.count ?? count), rate: Number(values.rate ?? rate) };
}

const runs: { readonly [name: string]: Run } = {
  plateau,
  slowloris,
  bodies: largeBodies,
  readers: slowReaders,
  streams: (seconds, say) => manyStreams(seconds, say, wanted(3000, 2)),
  translated: (seconds, say) => translatedStreams(seconds, say, wanted(1000, 20)),
  calls: (seconds, say) => shortCalls(seconds, say, wanted(0, 500).rate),
};

function say(line: string): void {
  process.stderr.write(`${line}\n`);
}

function keep(run: string, machine: string, lines: readonly string[]): void {
  const said = (['count', 'rate'] as const).flatMap((name) =>
    values[name] === undefined ? [] : [`--${name} ${values[name]}`],
  );
  const command = ['node bench/overload.ts', run, ...said, `--seconds ${seconds} --write`].join(
    ' ',
  );
  const date = new Date().toISOString().slice(0, 10);
  const text = [
    `## Overload: ${run}`,
    '',
    `Written by \`${command}\` on ${date}, ${machine}.`,
    '',
    ...lines,
  ];
  putSection(`overload-${run}`, text.join('\n'));
}

async function main(): Promise<number> {
  const [name = ''] = positionals;
  const chosen = name === 'all' ? Object.keys(runs) : [name];
  if (values.help || !chosen.every((each) => Object.hasOwn(runs, each)) || !(seconds > 0)) {
    process.stdout.write(usage);
    return values.help ? 0 : 2;
  }
  const machine = await inspectMachine();
  pinMyself(loadCore);
  process.stdout.write(`${machine.description}, ${machine.commit}\n`);
  for (const warning of machine.warnings) process.stdout.write(`Warning: ${warning}\n`);
  let kept = true;
  for (const each of chosen) {
    say(`${each} …`);
    const figures = (await runs[each]?.(seconds, say)) ?? [];
    const rows = figures.map(({ what, value, bound = '', kept: is }) => [
      what,
      value,
      bound,
      is === undefined ? '' : is ? 'yes' : '**no**',
    ]);
    const lines = table([each, 'figure', 'bound', 'kept'], rows);
    process.stdout.write(`\n${lines.join('\n')}\n`);
    if (values.write) keep(each, machine.description, lines);
    kept &&= figures.every((figure) => figure.kept !== false);
  }
  return kept ? 0 : 1;
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    stopAll();
    process.exit(130);
  });
}
try {
  process.exitCode = await main();
} finally {
  stopAll();
}
