/** Who waits for a connection of its own pool has found no server that is away (F88, L5). */
import assert from 'node:assert/strict';
import { Client } from 'pg';
import { afterEach, describe, it } from 'node:test';
import { silentLog } from '../unit/access/fakes.ts';
import { callRow } from '../unit/store/call-rows.ts';
import { systemClock } from '../../src/observe/runtime.ts';
import { PostgresCounters } from '../../src/store/counters/postgres-counters.ts';
import { type PostgresPool, type Sql, isCrowded, openPool } from '../../src/store/postgres/pool.ts';
import type { Statement } from '../../src/store/statements.ts';
import { HaltingProxy } from '../support/halting-proxy.ts';
import { openTestStore, until, type TestStore } from '../support/postgres-store.ts';
import { postgresAddress, startPostgres, type TestPostgres } from '../support/postgres.ts';
import { withPostgres } from '../support/with-servers.ts';

await withPostgres(busyPools);

const dataConnections = 6;
const adminConnections = 3;
const one: Statement = { name: 'one', text: 'SELECT 1' };

/** Connections that are at work until they are let go, however long others take. */
interface Hold {
  /** Resolves when they are back in their pool; a second call does nothing. */
  letGo(): Promise<void>;
}

const holds: Hold[] = [];

/**
 * Puts connections of a pool to work; all of them are there when it resolves.
 * @param say what each of them does before it waits
 */
async function occupy(
  pool: PostgresPool,
  connections: number,
  say: (sql: Sql) => void = () => undefined,
): Promise<Hold> {
  const begun = Promise.withResolvers<void>();
  const released = Promise.withResolvers<void>();
  let missing = connections;
  const works = Array.from({ length: connections }, () =>
    pool.transaction(async (sql) => {
      await sql.run(one);
      missing -= 1;
      if (missing === 0) begun.resolve();
      await begun.promise;
      say(sql);
      await released.promise;
    }),
  );
  const ended = Promise.allSettled(works);
  const hold: Hold = {
    letGo: async () => {
      begun.resolve();
      released.resolve();
      await ended;
    },
  };
  holds.push(hold);
  await Promise.race([begun.promise, Promise.all(works)]);
  return hold;
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

/** A server with this number of connection slots, none of them reserved, and a database on it. */
async function crowdedServer(
  most: number,
): Promise<{ readonly url: string; close(): Promise<void> }> {
  const crowded = await startPostgres([
    `max_connections=${most}`,
    'superuser_reserved_connections=0',
    'max_wal_senders=0',
  ]);
  if (crowded === undefined) throw new Error('there was one');
  return { url: await crowded.makeDatabase(), close: () => crowded.close() };
}

/** Whether a read of calls came through; who looks after the server may have the only connection just then. */
function serves(store: TestStore['store']): Promise<boolean> {
  return store.keys.list().then(
    () => true,
    () => false,
  );
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
  afterEach(async () => {
    await Promise.all(holds.splice(0).map((each) => each.letGo()));
    await Promise.all(stores.splice(0).map((each) => each.close()));
  });

  describe('all connections of a pool are at work', () => {
    it('L5: admin pages that wait for each other take nothing from the calls', async () => {
      const opened = await open(await postgres.makeDatabase());
      const { store } = opened;
      const pages = await occupy(store.server.admin, adminConnections);
      await assert.rejects(store.calls.list({ limit: 10 }), { name: 'StoreError', kind: 'busy' });
      assert.equal(store.server.up, true);
      assert.deepEqual(await store.keys.list(), []);
      await pages.letGo();
      assert.equal(wasLost(opened), false);
      assert.deepEqual((await store.calls.list({ limit: 10 })).calls, []);
    });

    it('F88: a spent pool is overload: calls wait on the disk, the server is not taken for dead', async () => {
      const opened = await open(await postgres.makeDatabase());
      const { store } = opened;
      const work = await occupy(store.server.data, dataConnections);
      const reading = assert.rejects(store.keys.list(), { name: 'StoreError', kind: 'busy' });
      await store.calls.record([callRow('c1')]);
      await reading;
      assert.equal(store.spooled, 1);
      assert.equal(store.server.up, true);
      await work.letGo();
      await until(() => store.spooled === 0, 'it is written without an outage before it');
      assert.equal((await store.calls.find('c1'))?.id, 'c1');
      assert.equal(wasLost(opened), false);
    });

    it('F88: a reservation that found no connection has taken nothing, and has nothing to give back', async () => {
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
      const request = { callId: 'c1', concurrent: [], requests: [], tokens: [], budgets: [] };
      const work = await occupy(data, dataConnections);
      await assert.rejects(counters.reserve(request), { name: 'StoreError', kind: 'busy' });
      assert.equal(sent, 1);
      await counters.settled();
      assert.equal(sent, 1);
      await work.letGo();
      assert.equal((await counters.reserve(request)).granted, true);
      await counters.close();
    });

    it('F88: a server that has no connection left for one who looks is there', async (t) => {
      const { url, close } = await crowdedServer(dataConnections + adminConnections);
      t.after(close);
      const opened = await open(url);
      const { store } = opened;
      const pages = await occupy(store.server.admin, adminConnections);
      const work = await occupy(store.server.data, dataConnections);
      await assert.rejects(store.keys.list(), { name: 'StoreError', kind: 'busy' });
      await Promise.all([pages.letGo(), work.letGo()]);
      assert.equal(wasLost(opened), false);
      await store.close();
    });

    it('F88: a server that has no connection left does not cost those that there are', async (t) => {
      const { url, close } = await crowdedServer(5);
      t.after(close);
      const opened = await open(url);
      const { store } = opened;
      const work = await occupy(store.server.data, 1);
      const others = await takeAll(url, 5);
      await assert.rejects(store.keys.list(), { name: 'StoreError', kind: 'busy' });
      await work.letGo();
      await until(() => serves(store), 'a call has the connection that there is');
      await Promise.all(others.map((other) => other.end()));
      assert.equal(wasLost(opened), false);
      await store.close();
    });

    it('L5 F88: an admin page that finds no connection left leaves the calls those that they have', async (t) => {
      const { url, close } = await crowdedServer(5);
      t.after(close);
      const opened = await open(url);
      const { store } = opened;
      assert.deepEqual(await store.keys.list(), []);
      const others = await takeAll(url, 5);
      await assert.rejects(store.calls.list({ limit: 10 }), { name: 'StoreError', kind: 'busy' });
      assert.equal(store.server.up, true);
      await until(() => serves(store), 'a call has the connection that there is');
      await Promise.all(others.map((other) => other.end()));
      assert.deepEqual((await store.calls.list({ limit: 10 })).calls, []);
      assert.equal(wasLost(opened), false);
      await store.close();
    });

    it('F88: connections that are being refused are none that calls could continue by', async (t) => {
      const { url, close } = await crowdedServer(5);
      t.after(close);
      const others = await takeAll(url, 5);
      const pool = await openPool({
        address: postgresAddress(url),
        name: 'late',
        connections: 3,
        statementMs: 5000,
        random: Math.random,
      });
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

    it('F88: where the server says nothing any more, it is an outage nevertheless', async (t) => {
      const proxy = await HaltingProxy.start(postgres.port, 'halt-here');
      // Before the stores are closed, which wait for what is silent.
      t.after(() => proxy.close());
      const url = new URL(await postgres.makeDatabase());
      url.port = String(proxy.port);
      const { store } = await open(url.href);
      const { data } = store.server;
      const halt: Statement = { name: 'halt', text: "SELECT 'halt-here'" };
      const silent = await occupy(data, dataConnections, (sql) => {
        sql.run(halt).catch(() => undefined);
      });
      await proxy.halted;
      const waiting = assert.rejects(store.keys.list(), { name: 'StoreError' });
      // No connection is given back, whatever becomes of its statement: only one who looks can tell.
      await until(() => !store.server.up, 'a server that is silent is away');
      await waiting;
      proxy.goOn();
      await until(() => store.server.up, 'it is there again');
      await silent.letGo();
      assert.deepEqual(await store.keys.list(), []);
      await store.close();
    });
  });
}
