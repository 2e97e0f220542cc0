/** The journal of leases: what a killed process leaves proves what it took, and nothing else proves anything (Q1). */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync,
  closeSync,
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmdirSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { test, type TestContext } from 'node:test';
import type { Log } from '../../../src/core/runtime.ts';
import { bootId, LeaseJournal, type TakenLease } from '../../../src/store/leases/lease-journal.ts';
import { temporaryFolder } from '../../support/folders.ts';

const source = new URL('../../../src/store/leases/lease-journal.ts', import.meta.url).href;

const lease = (counter: string, taken: number): TakenLease => ({ counter, window: 'ever', taken });

function scene(context: TestContext, made = temporaryFolder('journal')) {
  const told: string[] = [];
  const tell: Log['warn'] = (event) => told.push(event);
  const log: Log = { debug: tell, info: tell, warn: tell, error: tell };
  const directory = join(made, 'leases');
  const open = (instance: string, boot: string | undefined = 'boot 1'): LeaseJournal => {
    const journal = new LeaseJournal({ directory, instance, log, boot });
    context.after(() => journal.close());
    return journal;
  };
  return { directory, open, told };
}

/** What a journal leaves, by instance. */
const leftBy = ({ left }: LeaseJournal): object =>
  Object.fromEntries(left.map(({ instance, leases }) => [instance, leases]));

test('the next process finds the last totals, until it removes them', (t) => {
  const { directory, open } = scene(t);
  const first = open('gw_1');
  assert.deepEqual(leftBy(first), {});
  const a = { ...lease('a', 5) };
  first.note(a, () => []);
  first.note(lease('b', 5), () => []);
  a.taken = 9;
  first.note(a, () => []);
  const [path = ''] = readdirSync(directory);
  assert.equal(statSync(join(directory, path)).mode & 0o777, 0o600);
  // A reservation that was being noted: its call was never sent.
  appendFileSync(join(directory, path), '["a","ever",99');
  const second = open('gw_2');
  const left = { gw_1: [lease('a', 9), lease('b', 5)] };
  assert.deepEqual(leftBy(second), left);
  const third = open('gw_3');
  assert.deepEqual(leftBy(third), { ...left, gw_2: [] }, 'one that was killed before it gave back');
  for (const each of third.left) each.remove();
  assert.deepEqual(leftBy(open('gw_4')), { gw_3: [] });
});

test('a total is overwritten, and never crosses a page', (t) => {
  const { directory, open } = scene(t);
  const journal = open('gw_1');
  const leases = Array.from({ length: 300 }, (_, i) => ({ ...lease('é'.repeat(i), 1) }));
  for (const each of leases) journal.note(each, () => leases);
  const path = join(directory, 'gw_1.journal');
  const before = readFileSync(path);
  for (const each of leases) {
    each.taken = Number.MAX_SAFE_INTEGER;
    journal.note(each, () => leases);
  }
  const after = readFileSync(path);
  assert.equal(after.length, before.length);
  assert.deepEqual(leftBy(open('gw_2')), { gw_1: leases });
  for (let at = after.indexOf(']\n'); at >= 0; at = after.indexOf(']\n', at + 1)) {
    assert.equal((at + 2) % 64, 0);
  }
});

test('a journal from before a restart of the machine proves nothing, and goes', (t) => {
  const { directory, open } = scene(t);
  open('gw_1').note(lease('a', 5), () => []);
  assert.deepEqual(leftBy(open('gw_2', 'boot 2')), {});
  assert.deepEqual(readdirSync(directory), ['gw_2.journal']);
});

test('a copy of the directory proves nothing: its first owner may live', (t) => {
  const { directory, open } = scene(t);
  open('gw_1').note(lease('a', 5), () => []);
  const copy = temporaryFolder('journal');
  cpSync(directory, join(copy, 'leases'), { recursive: true });
  assert.deepEqual(leftBy(scene(t, copy).open('gw_2')), {});
});

test('where the boot is unknown no journal is kept', (t) => {
  const { directory } = scene(t);
  const log: Log = { debug() {}, info() {}, warn() {}, error() {} };
  const journal = new LeaseJournal({ directory, instance: 'gw_1', log, boot: undefined });
  journal.note(lease('a', 5), () => []);
  assert.deepEqual(readdirSync(directory), []);
});

test('a journal that has grown long is written anew with all leases', (t) => {
  const { directory, open } = scene(t);
  const journal = open('gw_1');
  const all = [lease('quiet', 7), lease('busy', 0)];
  let biggest = 0;
  for (let taken = 1; taken <= 300_000; taken++) {
    all[1] = lease('busy', taken);
    journal.note(lease('busy', taken), () => all);
    if (taken % 1000 === 0) {
      biggest = Math.max(biggest, statSync(join(directory, 'gw_1.journal')).size);
    }
  }
  assert.ok(biggest > 4_000_000 && biggest < 4_500_000, String(biggest));
  assert.deepEqual(leftBy(open('gw_2')), { gw_1: all });
});

test('a disk that fails ends the journal, so that it proves nothing', (t) => {
  const { directory, open, told } = scene(t);
  const journal = open('gw_1');
  journal.note(lease('a', 5), () => []);
  const failing = {
    get counter(): string {
      throw new Error('ENOSPC');
    },
    window: 'ever',
    taken: 6,
  };
  journal.note(failing, () => []);
  journal.note(lease('a', 7), () => []);
  assert.deepEqual(told, ['lease_journal_failed']);
  assert.deepEqual(readdirSync(directory), []);
});

test('what was noted before a kill is there after it', async (t) => {
  const { directory } = scene(t);
  const program = `import { bootId, LeaseJournal } from ${JSON.stringify(source)};
    const [directory] = process.argv.slice(1);
    const journal = new LeaseJournal({ directory, instance: 'gw_1', log: {}, boot: bootId() });
    const lease = { counter: 'a', window: 'ever', taken: 0 };
    for (let taken = 1; ; taken++) {
      lease.taken = taken;
      journal.note(lease, () => []);
      if (taken % 100 === 0) console.log(taken);
    }`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', program, directory]);
  let printed = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    printed += text;
    if (printed.length > 2000) child.kill('SIGKILL');
  });
  await once(child, 'close');
  const told = Number(printed.trimEnd().split('\n').at(-2));
  const log: Log = { debug() {}, info() {}, warn() {}, error() {} };
  const next = new LeaseJournal({ directory, instance: 'gw_2', log, boot: bootId() });
  t.after(() => next.close());
  if (bootId() === undefined) return;
  const [left] = next.left;
  assert.ok(
    Number(left?.leases[0]?.taken) >= told,
    readFileSync(join(directory, 'gw_1.journal'), 'utf8').slice(-200),
  );
});

test('a disk that takes only a part of a line ends the journal', async (t) => {
  const { directory } = scene(t);
  // After each note either all of it is in the file, or there is no file.
  const program = `import { statSync } from 'node:fs';
    import { LeaseJournal } from ${JSON.stringify(source)};
    const [directory] = process.argv.slice(1);
    const told = [];
    const log = { warn: (event) => told.push(event), error: (event) => told.push(event) };
    const journal = new LeaseJournal({ directory, instance: 'gw_1', log, boot: 'boot 1' });
    const size = () => statSync(directory + '/gw_1.journal', { throwIfNoEntry: false })?.size;
    let bytes = size();
    for (let taken = 1000; size() === bytes; taken++) {
      journal.note({ counter: 'é', window: 'ever', taken }, () => []);
      bytes += 64;
    }
    console.log(JSON.stringify([size() ?? 'gone', told, bytes > 4000]));`;
  const args = [process.execPath, '--input-type=module', '-e', program, directory];
  const limited = spawn('bash', ['-c', 'ulimit -f 4; exec "$@"', 'bash', ...args]);
  const printed = await text(limited.stdout);
  assert.deepEqual(JSON.parse(printed), ['gone', ['lease_journal_failed'], true]);
});

test('a journal that cannot be written anew ends, and throws nothing', (t) => {
  const { directory, open, told } = scene(t);
  const journal = open('gw_1');
  mkdirSync(join(directory, 'gw_1.journal.new'));
  const many = Array.from({ length: 70_000 }, (_, i) => lease(`counter ${i}`, 1));
  for (const each of many) journal.note(each, () => many);
  assert.deepEqual(told, ['lease_journal_failed']);
  assert.deepEqual(readdirSync(directory), ['gw_1.journal.new']);
  assert.ok(journal.mayReserve());
});

test('a journal that lacks reservations and cannot be removed lets nothing be reserved until it can', (t) => {
  const { directory, open, told } = scene(t);
  const journal = open('gw_1');
  const path = join(directory, 'gw_1.journal');
  // As on a disk that is read-only from now on: neither the file nor its directory can be changed.
  for (const file of readdirSync('/proc/self/fd')) {
    if (attemptLink(`/proc/self/fd/${file}`) === path) closeSync(Number(file));
  }
  renameSync(path, `${path}.kept`);
  mkdirSync(path);
  journal.note(lease('a', 5), () => []);
  assert.equal(journal.mayReserve(), false);
  assert.deepEqual(told, ['lease_journal_stuck']);
  rmdirSync(path);
  assert.ok(journal.mayReserve());
});

function attemptLink(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return '';
  }
}

test('a journal that cannot be read proves nothing, and hinders no start', (t) => {
  const { directory, open, told } = scene(t);
  open('gw_1').note(lease('a', 5), () => []);
  appendFileSync(join(directory, 'gw_1.journal'), '["a","ever",["a","ever",6]\n');
  open('gw_2').note(lease('a', 0.5), () => []);
  mkdirSync(join(directory, 'gw_0.journal'));
  assert.deepEqual(leftBy(open('gw_3')), {});
  assert.deepEqual(told, Array(3).fill('lease_journal_failed'));
});

test('a file that was born at another time proves nothing, though it has the number of the journal', (t) => {
  const { directory, open } = scene(t);
  open('gw_1').note(lease('a', 5), () => []);
  const path = join(directory, 'gw_1.journal');
  const [head = '', ...lines] = readFileSync(path, 'utf8').split('\n');
  const other = head.replace(/("\d+:\d+:)\d+"\]$/, (_all, file: string) => `${file}1"]`);
  writeFileSync(path, [other, ...lines].join('\n'));
  assert.deepEqual(leftBy(open('gw_2')), {});
});
