/**
 * Asks a real gateway for every list and chart of the admin plane over many rows (each under 300 ms).
 * Usage: node bench/admin-pages.ts [folder, default a new one that is removed] [--rows N] [--keys N]
 *        [--postgres] [--rounds N] [--write]
 * A folder that has a book is measured as it is; `--postgres` starts a server of its own and fills it;
 * `--write` puts the figures into RESULTS.md.
 */
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Instance } from '../test/cluster/instance.ts';
import { startPostgres } from '../test/support/postgres.ts';
import { endOnSignals } from './at-end.ts';
import { putSection } from './saved-sections.ts';
import { fillPostgres, fillPostgresKeys } from './many-rows-postgres.ts';
import { callId, dayMs, end, fillCalls, fillKeys } from './many-rows.ts';

const { values: flags, positionals } = parseArgs({
  options: {
    keys: { type: 'string', default: '1000' },
    rows: { type: 'string', default: '10000000' },
    rounds: { type: 'string', default: '8' },
    postgres: { type: 'boolean', default: false },
    write: { type: 'boolean', default: false },
  },
  allowPositionals: true,
});
const rows = Number(flags.rows);
const rounds = Number(flags.rounds);
const budgetMs = 300;
const [given] = positionals;
const folder = given ?? mkdtempSync(join(tmpdir(), 'gateway-pages-'));

const date = (daysBack: number): string => new Date(end - daysBack * dayMs).toISOString();

/** A name for the table, and what is asked. */
const charts: readonly string[] = ['', '&by=key', '&by=model', '&by=provider', '&by=team'].flatMap(
  (by) => [
    `/api/series?since=${date(90)}&until=${date(0)}${by}`,
    `/api/series?since=${date(7)}&until=${date(0)}${by}`,
    `/api/series?since=${date(1)}&until=${date(0)}${by}`,
    `/api/series?since=${date(1 / 12)}&until=${date(0)}${by}`,
  ],
);
const filtered: readonly string[] = [
  `/api/series?since=${date(90)}&until=${date(0)}&key=key00007`,
  `/api/series?since=${date(90)}&until=${date(0)}&by=key&team=team-7`,
  `/api/series?since=${date(90)}&until=${date(0)}&by=key&tag=project-7`,
  ...['key', 'model', 'provider', 'team', 'tag', 'day'].map(
    (by) => `/api/usage?by=${by}&since=${date(90)}`,
  ),
  `/api/usage?by=hour&since=${date(7)}`,
];
const calls: readonly string[] = [
  '',
  `&until=${date(45)}`,
  '&key=key00007',
  '&key=no-such-key',
  '&team=team-7',
  '&model=openai/model-1',
  '&model=no-such-model',
  '&provider=openai',
  '&provider=no-such-provider',
  '&tag=project-7',
  '&tag=no-such-tag',
  '&outcome=failed',
  '&outcome=canceled',
  '&status=200',
  '&status=503',
  '&mode=translate',
  '&endpoint=anthropic-messages',
  '&user=nobody',
  '&notes=dropped',
  `&notes=dropped&key=key00007&until=${date(30)}`,
].map((filter) => `/api/calls?limit=100${filter}`);
const others: readonly string[] = [
  `/api/calls/${callId(Math.floor(rows / 2))}`,
  '/api/keys?limit=200',
  '/api/keys?limit=200&text=key+9',
  '/api/keys?limit=200&text=no+such+key',
  '/api/teams?limit=1000',
  '/api/audit?limit=100',
  '/api/status',
  '/api/models',
];

interface Taken {
  readonly path: string;
  readonly first: number;
  readonly median: number;
  readonly worst: number;
}

async function ask(gateway: Instance, path: string): Promise<Taken> {
  const taken: number[] = [];
  for (let round = 0; round <= rounds; round += 1) {
    const began = performance.now();
    const { status, text } = await gateway.admin('GET', path);
    taken.push(performance.now() - began);
    const isThere = status === 200 || path.startsWith('/api/calls/');
    if (!isThere) throw new Error(`${path}: ${status} ${text.slice(0, 200)}`);
  }
  const [first = 0, ...later] = taken;
  const sorted = later.toSorted((a, b) => a - b);
  const median = sorted[Math.floor(sorted.length / 2)] ?? 0;
  return { path, first, median, worst: sorted.at(-1) ?? 0 };
}

/** Nothing is pruned while it is measured. */
const config = { ledger: { keep: 'forever', keep_hours: 'forever' } };

/** A start of the gateway that is measured; it ends with this process. */
async function start(storage: string): Promise<Instance> {
  const gateway = await Instance.start({ storage, upstream: 1, directory: folder, config });
  endOnSignals(() => gateway.kill());
  return gateway;
}

function removeOwnFolder(): void {
  if (given === undefined) rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
}

async function startOnSqlite(): Promise<Instance> {
  const data = join(folder, 'data');
  mkdirSync(data, { recursive: true, mode: 0o700 });
  const path = join(data, 'gateway.db');
  if (!existsSync(path)) {
    fillCalls(path, rows);
    await fillKeys(path, Number(flags.keys));
  }
  endOnSignals(async () => removeOwnFolder());
  return start('sqlite');
}

/** Tables of the gateway's own making, then filled; a second start reads them as after a restart. */
async function onPostgres(work: (gateway: Instance) => Promise<void>): Promise<void> {
  const server = await startPostgres(['shared_buffers=1GB', 'max_wal_size=8GB', 'work_mem=16MB']);
  if (server === undefined) throw new Error('PostgreSQL is not on this machine');
  endOnSignals(async () => removeOwnFolder());
  endOnSignals(() => server.close());
  try {
    const storage = await server.makeDatabase();
    await (await start(storage)).stop();
    await fillPostgres(storage, rows);
    await fillPostgresKeys(storage, Number(flags.keys));
    const gateway = await start(storage);
    await work(gateway).finally(() => gateway.stop());
  } finally {
    await server.close();
  }
}

const said: string[] = [];
let isSlow = false;

async function measure(gateway: Instance): Promise<void> {
  for (const path of [...charts, ...filtered, ...calls, ...others]) {
    const { first, median, worst } = await ask(gateway, path);
    const isOver = median > budgetMs;
    isSlow ||= isOver;
    const figures = [first, median, worst].map((ms) => ms.toFixed(0));
    const shown = path.replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, (at) => {
      return `${((end - Date.parse(at)) / dayMs).toFixed(2).replace(/\.?0+$/, '')}d`;
    });
    process.stdout.write(`${shown.padEnd(64)} ${figures.join(' / ')} ms${isOver ? ' OVER' : ''}\n`);
    said.push(`| \`${shown}\` | ${figures.join(' | ')} |`);
  }
}

try {
  if (flags.postgres) await onPostgres(measure);
  else {
    const gateway = await startOnSqlite();
    await measure(gateway).finally(() => gateway.stop());
  }
} finally {
  removeOwnFolder();
}
if (flags.write) {
  const store = flags.postgres ? 'postgres' : 'sqlite';
  const args = `${flags.postgres ? '--postgres ' : ''}--rows ${rows} --keys ${flags.keys}`;
  putSection(
    `admin-pages-${store}`,
    [
      `## Admin pages on ${flags.postgres ? 'PostgreSQL' : 'SQLite'}`,
      '',
      `Written by \`node bench/admin-pages.ts ${args} --write\` on ${new Date().toISOString().slice(0, 10)}, on a machine with two cores that others used, too. ms over HTTP: the first time, and the median and worst of ${rounds} more; at most ${budgetMs}.`,
      '',
      '| asked | first | median | worst |',
      '| --- | --- | --- | --- |',
      ...said,
    ].join('\n'),
  );
}
process.exitCode = isSlow ? 1 : 0;
