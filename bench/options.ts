/** The options of the bench. */
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { knownPeers } from './peers.ts';
import { defaultChunksPerSecond, groups, workloads } from './workloads.ts';

export const usage = `Usage: npm run bench -- [options]
  --quick             2 rounds, short windows, a colder gateway; written into a temporary folder
  --rounds N          rounds (3; with --quick 2)
  --only ID[,ID…]     only these, which take the place of the same in the results: ${workloads.map(({ id }) => id).join(', ')},
                      start, engine; or groups: ${Object.keys(groups).join(', ')}
  --peers NAME[,…]    gateways of others to measure beside: ${knownPeers().join(', ')}, a file
                      of the same form, or none; without it all that are on the PATH or quickly installed
  --chunk-rate N      chunks a second of each stream (${defaultChunksPerSecond})
  --seconds N         length of each measured window
  --engine-model FILE a GGUF file to measure the engine with, besides its own two
  --out FILE          where to write (bench/RESULTS.md); plots/ and measurements.json go beside it
  --guard             compares ratios to nginx with the committed ones (bench/ratios.json), and fails where
                      one grew by more than 15 %; writes nothing
`;

/** Long enough for the last wave of compiling, some 15,000 calls after the first (docs/maintainer/performance.md). */
const full = { warmMs: 1000, longWarmMs: 8000, measureMs: 3000, settleMs: 1000 };
const quick = { warmMs: 500, longWarmMs: 1500, measureMs: 1500, settleMs: 700 };

export const resultsFile = join(import.meta.dirname, 'RESULTS.md');
const quickFile = join(tmpdir(), 'model-gateway-bench', 'RESULTS.md');

const { values: flags } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    rounds: { type: 'string' },
    only: { type: 'string' },
    peers: { type: 'string' },
    'chunk-rate': { type: 'string' },
    seconds: { type: 'string' },
    'engine-model': { type: 'string' },
    out: { type: 'string' },
    guard: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});

function positive(text: string | undefined, otherwise: number): number {
  const value = text === undefined ? otherwise : Number(text);
  if (!(value > 0)) throw new Error(`not a positive number: ${text}`);
  return value;
}

/** Ids of what is requested; undefined = everything. @throws Error for an unknown one */
function asked(only: string | undefined): ReadonlySet<string> | undefined {
  if (only === undefined) return undefined;
  const known = new Set([...workloads.map(({ id }) => id), 'start', 'engine']);
  const ids = only.split(',').flatMap((id) => groups[id] ?? [id]);
  for (const id of ids) if (!known.has(id)) throw new Error(`--only: nothing is called ${id}`);
  return new Set(ids);
}

function names(text: string | undefined): readonly string[] | undefined {
  if (text === undefined) return undefined;
  return text === 'none' ? [] : text.split(',');
}

/** The command as others may repeat it: where its results went is no part of that. */
function told(args: readonly string[]): string[] {
  const out = args.indexOf('--out');
  const kept = args.filter((_, at) => at !== out && (out === -1 || at !== out + 1));
  const all = kept.filter((arg) => !arg.startsWith('--out='));
  return all.length === 0 ? [] : ['--', ...all];
}

const defaults = flags.quick ? quick : full;
const wanted = asked(flags.only);
const modelFile = flags['engine-model'];

export const options = {
  help: flags.help,
  guard: flags.guard,
  quick: flags.quick,
  rounds: positive(flags.rounds, flags.quick ? 2 : 3),
  starts: flags.quick ? 3 : 5,
  peers: names(flags.peers),
  chunksPerSecond: positive(flags['chunk-rate'], defaultChunksPerSecond),
  durations: { ...defaults, measureMs: positive(flags.seconds, defaults.measureMs / 1000) * 1000 },
  out: flags.out ?? (flags.quick ? quickFile : resultsFile),
  command: ['npm run bench', ...told(process.argv.slice(2))].join(' '),
  ...(modelFile === undefined ? {} : { modelFile }),
  /** Is it requested, or is everything? */
  wants: (id: string): boolean => wanted?.has(id) ?? true,
  workloads: workloads.filter((each) =>
    flags.guard && wanted === undefined
      ? each.kind === 'cpu' && each.budget !== undefined
      : (wanted?.has(each.id) ?? true),
  ),
} as const;
