/**
 * `node bench/call-tables.ts`: what a table of running calls costs a call, as a `Map` or `Set` and as the gateway has it
 * (`src/core/id-table.ts`, `src/gateway/deadlines.ts`). Each row is a fresh process with the gateway's options of Node;
 * the two of a pair take turns.
 */
import { spawnSync } from 'node:child_process';
import { constants, PerformanceObserver } from 'node:perf_hooks';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { IdTable } from '../src/core/id-table.ts';

interface Table {
  add(call: Call): void;
  delete(call: Call): void;
}

interface Call {
  readonly id: string;
  readonly started: number;
  readonly budgets: readonly number[];
  place: number;
}

const tables: { readonly [name: string]: () => Table } = {
  Map: () => {
    const map = new Map<string, Call>();
    return { add: (call) => void map.set(call.id, call), delete: ({ id }) => void map.delete(id) };
  },
  IdTable: () => {
    const table = new IdTable<Call>();
    return { add: (call) => table.set(call.id, call), delete: ({ id }) => void table.delete(id) };
  },
  Set: () => {
    const set = new Set<Call>();
    return { add: (call) => void set.add(call), delete: (call) => void set.delete(call) };
  },
  array: () => {
    const live: Call[] = [];
    const add = (call: Call): void => {
      call.place = live.length;
      live.push(call);
    };
    return {
      add,
      delete: ({ place }) => {
        const last = live.pop();
        if (last === undefined || last.place === place) return;
        live[place] = last;
        last.place = place;
      },
    };
  },
};

const calls = 1_500_000;
const warmCalls = 100_000;
const rounds = 3;
const majorCollection = constants.NODE_PERFORMANCE_GC_MAJOR;

/** Calls that come and end, `running` at a time; prints the CPU of one and the full collections. */
async function measure(name: string, running: number): Promise<void> {
  const table = tables[name]?.();
  if (table === undefined) throw new Error(`no table ${name}`);
  let full = 0;
  const observer = new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      if (Reflect.get(Object(Reflect.get(entry, 'detail')), 'kind') === majorCollection) full += 1;
    }
  });
  observer.observe({ entryTypes: ['gc'] });
  const live: Call[] = [];
  let began = process.cpuUsage();
  for (let i = 0; i < calls; i++) {
    if (i === warmCalls) {
      await nextTurn();
      full = 0;
      began = process.cpuUsage();
    }
    const ended = live[i % running];
    if (ended !== undefined) table.delete(ended);
    const id = `req_${(1e15 + i * 7919).toString(36)}`;
    const call = { id, started: i, budgets: [i, i + 1], place: -1 };
    live[i % running] = call;
    table.add(call);
    // As often as a busy gateway: collections run between turns.
    if (i % 10_000 === 0) await nextTurn();
  }
  const { user, system } = process.cpuUsage(began);
  await nextTurn();
  const us = ((user + system) / (calls - warmCalls)).toFixed(2);
  process.stdout.write(`| ${name} | ${running} | ${us} | ${full} |\n`);
}

const [name, running] = process.argv.slice(2);
if (name !== undefined) await measure(name, Number(running));
else {
  process.stdout.write(
    '| table | calls at once | CPU µs a call | full collections |\n|---|---|---|---|\n',
  );
  const options = [
    '--disable-warning=ExperimentalWarning',
    '--min-semi-space-size=4',
    '--max-semi-space-size=8',
    '--no-parallel-scavenge',
    '--no-memory-reducer',
    '--v8-pool-size=1',
  ];
  for (let round = 0; round < rounds; round++) {
    for (const atOnce of ['64', '1000']) {
      for (const each of Object.keys(tables)) {
        const argv = [...options, import.meta.filename, each, atOnce];
        spawnSync(process.execPath, argv, { stdio: 'inherit' });
      }
    }
  }
}
