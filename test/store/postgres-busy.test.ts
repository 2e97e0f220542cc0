/** Who waits for a connection of its own pool has found no server that is away (F88, L5). */
import assert from 'node:assert/strict';
import { Client } from 'pg';
import { after, afterEach, describe, it, test } from 'node:test';
import { silentLog } from '../unit/access/parts.ts';
import { callRow } from '../unit/store/call-rows.ts';
import { systemClock } from '../../src/observe/clock.ts';
import { PostgresCounters } from '../../src/store/postgres-counters.ts';
import { isCrowded } from '../../src/store/postgres-failure.ts';
import { openPool, type PostgresPool } from '../../src/store/postgres-pool.ts';
import { HaltingProxy } from '../support/halting-proxy.ts';
import { openTestStore, until, type TestStore } from '../support/postgres-store.ts';
import {
  noPostgres,
  postgresAddress,
  startPostgres,
  type TestPostgres,
} from '../support/postgres.ts';

const server = await startPostgres();
if (server === undefined) test(noPostgres, () => {});
else busyPools(server);

/** Two of them take longer than anybody waits; one takes less than a statement may. */
const slow = { name: 'slow', text: 'SELECT pg_sleep(3.5)' };
const dataConnections = 6;
const adminConnections = 3;

/** Keeps all connections of a pool at work. */
function occupy(pool: PostgresPool, connections: number): Promise<unknown> {
  return Promise.all(
    Array.from({ length: connections }, () =>
      pool.transaction(async (sql) => {
        await sql.run(slow);
        await sql.run(slow);
      }),
    ),
  );
}

/** Takes what is left of a server's connections; those of servers that are just ending come free a moment later. */
async function takeAll(url: string, most: number): Promise<readonly Client[]> {
  const taken: Client[] = [];
  await until(async () => {
    const client = new Client({ connectionString: url });
    try {
      await client.connect();
      taken.push(client);
    } catch (error) {
      if (!isCrowded(error)) throw error;
    }
    const counted = await taken[0]?.query<{ here: number }>(countConnections);
    return counted?.rows[0]?.here === most;
  }, 'all connections are taken');
  return taken;
}

const countConnections =
  "SELECT count(*)::int AS here FROM pg_stat_activity WHERE backend_type = 'client backend'";

function busyPools(postgres: TestPostgres): void {
  const stores: TestStore[] = [];
  const open = async (url: string): Promise<TestStore> => {
    const opened = await openTestStore(url);
    stores.push(opened);
    return opened;
  };
  const wasLost = ({ log }: TestStore): boolean =>
    log.some((line) => line.startsWith('store_unavailable'));
  after(() => postgres.close());
  afterEach(async () => {
    await Promise.all(stores.splice(0).map((each) => each.close()));
  });

  describe('all connections of a pool are at work', () => {
    it('L5: admin pages that wait for each other take nothing from the calls', async () => {
      const opened = await open(await postgres.makeDatabase());
      const { store } = opened;
      const pages = occupy(store.server.admin, adminConnections);
      await assert.rejects(store.listCalls({ limit: 10 }), { name: 'StoreError', kind: 'busy' });
      assert.equal(store.server.up, true);
      assert.deepEqual(await store.listKeys(), []);
      await pages;
      assert.equal(wasLost(opened), false);
      assert.deepEqual((await store.listCalls({ limit: 10 })).calls, []);
    });

    it('F88: a spent pool is overload: calls wait on the disk, the server is not taken for dead', async () => {
      const opened = await open(await postgres.makeDatabase());
      const { store } = opened;
      const work = occupy(store.server.data, dataConnections);
      const reading = assert.rejects(store.listKeys(), { name: 'StoreError', kind: 'busy' });
      await store.recordCalls([callRow('c1')]);
      await reading;
      assert.equal(store.spooled, 1);
      assert.equal(store.server.up, true);
      await work;
      await until(() => store.spooled === 0, 'it is written without an outage before it');
      assert.equal((await store.findCall('c1'))?.id, 'c1');
      assert.equal(wasLost(opened), false);
    });

    it('F88: a draw that found no connection has taken nothing, and has nothing to give back', async () => {
      const { store } = await open(await postgres.makeDatabase());
      const { data } = store.server;
      let sent = 0;
      const counters = new PostgresCounters({
        server: {
          data,
          up: true,
          onUp: () => undefined,
          use: (work) => {
            sent += 1;
            return store.server.use(work);
          },
        },
        clock: systemClock,
        log: silentLog,
      });
      const draw = { callId: 'c1', concurrent: [], requests: [], tokens: [], budgets: [] };
      const work = occupy(data, dataConnections);
      await assert.rejects(counters.draw(draw), { name: 'StoreError', kind: 'busy' });
      assert.equal(sent, 1);
      assert.deepEqual([...counters.live], []);
      await work;
      assert.equal((await counters.draw(draw)).granted, true);
      await counters.close();
    });

    it('F88: a server that has no connection left for one who looks is there', async (t) => {
      const crowded = await startPostgres([
        `max_connections=${dataConnections + adminConnections}`,
        'superuser_reserved_connections=0',
        'max_wal_senders=0',
      ]);
      if (crowded === undefined) throw new Error('there was one');
      t.after(() => crowded.close());
      const opened = await open(await crowded.makeDatabase());
      const { store } = opened;
      const pages = occupy(store.server.admin, adminConnections);
      const work = occupy(store.server.data, dataConnections);
      await assert.rejects(store.listKeys(), { name: 'StoreError', kind: 'busy' });
      await Promise.all([pages, work]);
      assert.equal(wasLost(opened), false);
      await store.close();
    });

    it('F88: a server that has no connection left does not cost those that there are', async (t) => {
      const crowded = await startPostgres([
        'max_connections=5',
        'superuser_reserved_connections=0',
        'max_wal_senders=0',
      ]);
      if (crowded === undefined) throw new Error('there was one');
      t.after(() => crowded.close());
      const url = await crowded.makeDatabase();
      const opened = await open(url);
      const { store } = opened;
      const others = Array.from({ length: 4 }, () => new Client({ connectionString: url }));
      await Promise.all(others.map((other) => other.connect()));
      const work = store.server.data.run(slow);
      await assert.rejects(store.listKeys(), { name: 'StoreError', kind: 'busy' });
      await work;
      assert.deepEqual(await store.listKeys(), []);
      await Promise.all(others.map((other) => other.end()));
      assert.equal(wasLost(opened), false);
      await store.close();
    });

    it('L5 F88: an admin page that finds no connection left leaves the calls those that they have', async (t) => {
      const most = 5;
      const crowded = await startPostgres([
        `max_connections=${most}`,
        'superuser_reserved_connections=0',
        'max_wal_senders=0',
      ]);
      if (crowded === undefined) throw new Error('there was one');
      t.after(() => crowded.close());
      const url = await crowded.makeDatabase();
      const opened = await open(url);
      const { store } = opened;
      assert.deepEqual(await store.listKeys(), []);
      const others = await takeAll(url, most);
      await assert.rejects(store.listCalls({ limit: 10 }), { name: 'StoreError', kind: 'busy' });
      assert.equal(store.server.up, true);
      assert.deepEqual(await store.listKeys(), []);
      await Promise.all(others.map((other) => other.end()));
      assert.deepEqual((await store.listCalls({ limit: 10 })).calls, []);
      assert.equal(wasLost(opened), false);
      await store.close();
    });

    it('F88: connections that are being refused are none that calls could go on by', async (t) => {
      const most = 5;
      const crowded = await startPostgres([
        `max_connections=${most}`,
        'superuser_reserved_connections=0',
        'max_wal_senders=0',
      ]);
      if (crowded === undefined) throw new Error('there was one');
      t.after(() => crowded.close());
      const url = await crowded.makeDatabase();
      const others = await takeAll(url, most);
      const pool = await openPool({
        address: postgresAddress(url),
        name: 'late',
        connections: 3,
        statementMs: 5000,
        random: Math.random,
      });
      const one = { name: 'one', text: 'SELECT 1' };
      const refused = { name: 'StoreError', kind: 'unavailable' };
      await Promise.all(Array.from({ length: 3 }, () => assert.rejects(pool.run(one), refused)));
      assert.equal(pool.connected, 0);
      await Promise.all(others.map((other) => other.end()));
      await pool.run(one);
      assert.equal(pool.connected, 1);
      pool.reset();
      assert.equal(pool.connected, 0);
      await pool.close();
    });

    it('F88: where the server says nothing any more, it is an outage all the same', async (t) => {
      const proxy = await HaltingProxy.start(postgres.port, 'halt-here');
      // Before the stores are closed, which wait for what is silent.
      t.after(() => proxy.close());
      const url = new URL(await postgres.makeDatabase());
      url.port = String(proxy.port);
      const { store } = await open(url.href);
      const { data } = store.server;
      // All connections are there before it falls silent: a new one would tell at once.
      const quick = { name: 'quick', text: 'SELECT pg_sleep(0.5)' };
      await Promise.all(Array.from({ length: dataConnections }, () => data.run(quick)));
      let ended = 0;
      const run = (text: string): Promise<void> =>
        data.run({ name: text, text }).then(
          () => undefined,
          () => void (ended += 1),
        );
      const silent = [run("SELECT 'halt-here'")];
      await proxy.halted;
      while (silent.length < dataConnections) silent.push(run('SELECT 1'));
      const waiting = assert.rejects(store.listKeys(), { name: 'StoreError' });
      await until(() => !store.server.up, 'a server that is silent is away');
      assert.equal(ended, 0, 'who looks knows it before those who wait for an answer');
      await waiting;
      proxy.goOn();
      await until(() => store.server.up, 'it is there again');
      await Promise.all(silent);
      assert.deepEqual(await store.listKeys(), []);
      await store.close();
    });
  });
}
