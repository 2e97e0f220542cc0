import assert from 'node:assert/strict';
import { appendFileSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, it } from 'node:test';
import { Spool } from '../../src/store/postgres/spool.ts';
import { StoreError } from '../../src/store/store-error.ts';
import type { CallRow } from '../../src/store/store.ts';
import { temporaryFolder } from '../support/folders.ts';
import { silentLog } from '../unit/access/fakes.ts';
import { callRow } from '../unit/store/call-rows.ts';

const root = temporaryFolder('spool');

const full: CallRow = callRow('full', {
  tags: ['a', 'b'],
  user: 'somebody \u{1F600}',
  metadata: '{"a":"b"}',
  provider: 'p',
  upstreamModel: 'm',
  reported: { freshInputTokens: 3 },
  cost: { total: 9, input: 5, cacheRead: 0, cacheWrite: 0, output: 4, reasoning: 0, call: 0 },
  price: { rates: { input: 1, output: 2 }, tiers: [], source: 'gateway.yaml:3' },
  budgets: [{ counter: 'key:k1:day', window: '2026-03-01', endsAt: 5 }],
  attemptRows: [
    { provider: 'p', upstreamModel: 'm', startedAt: 1, ms: 2.5, status: 200, outcome: 'ok' },
  ],
  firstEventMs: 0.25,
});

describe('spool', () => {
  let directory = '';
  let made = 0;
  beforeEach(() => {
    made += 1;
    directory = join(root, String(made));
  });
  const open = (maxRows?: number): Spool =>
    new Spool({ directory, log: silentLog, ...(maxRows === undefined ? {} : { maxRows }) });
  const drained = async (spool: Spool): Promise<readonly CallRow[]> => {
    const rows: CallRow[] = [];
    await spool.drain(async (some) => void rows.push(...some));
    return rows;
  };

  it('F88: gives calls back as they were, in their order, and removes its files', async () => {
    const spool = open();
    await Promise.all([spool.append([full, callRow('c2')]), spool.append([callRow('c3')])]);
    assert.equal(spool.rows, 3);
    assert.deepEqual(await drained(spool), [full, callRow('c2'), callRow('c3')]);
    assert.equal(spool.rows, 0);
    assert.deepEqual(readdirSync(directory), []);
  });

  it('S25: its folder and files are for their owner only', async () => {
    const spool = open();
    await spool.append([full]);
    const [name = ''] = readdirSync(directory);
    assert.equal(statSync(directory).mode & 0o777, 0o700);
    assert.equal(statSync(join(directory, name)).mode & 0o777, 0o600);
    await spool.close();
  });

  it('F88: what a process left is there for the next one, but for a line that was being written', async () => {
    const killed = open();
    await killed.append([callRow('c1'), callRow('c2')]);
    const [name = ''] = readdirSync(directory);
    appendFileSync(join(directory, name), '["c3",12,');
    await killed.close();
    const next = open();
    assert.equal(next.rows, 2);
    await next.append([callRow('c4')]);
    assert.deepEqual(
      (await drained(next)).map(({ id }) => id),
      ['c1', 'c2', 'c4'],
    );
    assert.deepEqual(readdirSync(directory), []);
  });

  it('F88: takes so many calls and no more, until some are gone', async () => {
    const spool = open(3);
    await spool.append([callRow('c1'), callRow('c2')]);
    await assert.rejects(spool.append([callRow('c3'), callRow('c4')]), { kind: 'full' });
    await spool.append([callRow('c3')]);
    await drained(spool);
    await spool.append([callRow('c4')]);
    assert.equal(spool.rows, 1);
    await spool.close();
  });

  it('keeps what the book does not take, and what comes meanwhile', async () => {
    const spool = open();
    await spool.append([callRow('c1')]);
    await assert.rejects(
      spool.drain(() => Promise.reject(new Error('away'))),
      /away/,
    );
    assert.equal(spool.rows, 1);
    const rows: string[] = [];
    await spool.drain(async (some) => {
      rows.push(...some.map(({ id }) => id));
      if (rows.length === 1) await spool.append([callRow('c2')]);
    });
    assert.deepEqual(rows, ['c1']);
    assert.equal(spool.rows, 1);
    assert.deepEqual(await drained(spool), [callRow('c2')]);
  });

  it('lays a damaged file aside for a person, and continues', async () => {
    const killed = open();
    await killed.append([callRow('c1')]);
    const [name = ''] = readdirSync(directory);
    appendFileSync(join(directory, name), 'not a call\n');
    await killed.close();
    const spool = open();
    assert.deepEqual(await drained(spool), [callRow('c1')]);
    assert.deepEqual(readdirSync(directory), [`${name}.unread`]);
    assert.match(readFileSync(join(directory, `${name}.unread`), 'utf8'), /not a call/);
    assert.equal(spool.rows, 0);
  });

  it('F88: a call that the book refuses for what stands in it holds up no other', async () => {
    const spool = open();
    await spool.append(Array.from({ length: 9 }, (_, i) => callRow(`c${i}`)));
    const written = new Set<string>();
    await spool.drain((rows) => {
      if (rows.some(({ id }) => id === 'c4')) {
        return Promise.reject(new StoreError('refused', 'out of range'));
      }
      for (const { id } of rows) written.add(id);
      return Promise.resolve();
    });
    assert.deepEqual([...written].toSorted(), ['c0', 'c1', 'c2', 'c3', 'c5', 'c6', 'c7', 'c8']);
    assert.equal(spool.rows, 0);
    const [name = ''] = readdirSync(directory);
    assert.match(name, /\.unread$/);
    assert.match(readFileSync(join(directory, name), 'utf8'), /"c4"/);
  });

  it('begins a new file before one is large', async () => {
    const spool = open();
    const rows = Array.from({ length: 2500 }, (_, i) => callRow(`c${i}`));
    for (let i = 0; i < 5; i += 1) await spool.append(rows);
    assert.equal(readdirSync(directory).length, 3);
    assert.equal((await drained(spool)).length, 12_500);
  });
});
