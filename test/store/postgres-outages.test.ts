import assert from 'node:assert/strict';
import { existsSync, readdirSync } from 'node:fs';
import { afterEach, describe, it } from 'node:test';
import { callRow, keyRecord, march } from '../unit/store/call-rows.ts';
import { openTestStore, until, type TestStore } from '../support/postgres-store.ts';
import { postgresPassword, type TestPostgres } from '../support/postgres.ts';
import { withPostgres } from '../support/with-servers.ts';

await withPostgres(outages);

const budgets = [{ counter: 'key:k1:month', window: '2026-03' }];
const cost = { total: 7, input: 7, cacheRead: 0, cacheWrite: 0, output: 0, reasoning: 0, call: 0 };

function outages(postgres: TestPostgres): void {
  const stores: TestStore[] = [];
  const open = async (url: string, spool?: string): Promise<TestStore> => {
    const opened = await openTestStore(url, spool);
    stores.push(opened);
    return opened;
  };
  /** Rows, sums and spending must tell the same number of calls. */
  const assertBooked = async ({ store }: TestStore, calls: number): Promise<void> => {
    const [sums] = await store.calls.usage({ by: 'key', since: 0 });
    assert.equal(sums?.calls, calls);
    const [spent] = await store.calls.spent(0);
    assert.deepEqual(spent, { ...budgets[0], nanodollars: 7 * calls });
  };
  const terminateAll = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE application_name LIKE 'model-gateway%'`;

  afterEach(async () => {
    await Promise.all(stores.splice(0).map((each) => each.close()));
  });

  describe('the shared book comes and goes', () => {
    it('L1 F88: away at the start, it is refused by kind; calls wait on the disk; then all is there', async () => {
      const url = await postgres.makeDatabase();
      await postgres.stop();
      const opened = await open(url);
      const { store, spoolDirectory, log } = opened;
      assert.equal(store.server.up, false);
      await assert.rejects(store.keys.list(), { name: 'StoreError', kind: 'unavailable' });
      await store.calls.record([
        callRow('c1', { cost, budgets }),
        callRow('c2', { cost, budgets }),
      ]);
      assert.equal(store.spooled, 2);
      assert.equal(readdirSync(spoolDirectory).length, 1);
      await postgres.start();
      await until(() => store.server.up && store.spooled === 0, 'the store is back');
      assert.deepEqual(readdirSync(spoolDirectory), []);
      await assertBooked(opened, 2);
      await store.keys.add(keyRecord('a'));
      assert.equal((await store.keys.list()).length, 1);
      assert.ok(!log.join('\n').includes(postgresPassword), log.join('\n'));
    });

    for (const how of ['fast', 'immediate'] as const) {
      it(`F88: a restart (${how}) in the middle of writes loses no call and counts none twice`, async () => {
        const opened = await open(await postgres.makeDatabase());
        const { store } = opened;
        let written = 0;
        const outage = { seen: false };
        // Until the server is away for them: who stops it does not know when that is.
        const write = async (): Promise<void> => {
          for (let i = 0; i < 60 || !outage.seen; i += 1) {
            written += 1;
            await store.calls.record([callRow(`c${written}`, { cost, budgets })]);
          }
        };
        const writers = [write(), write(), write(), write()];
        await until(() => written > 60, 'some calls are written');
        await postgres.stop(how);
        await until(() => store.spooled > 0, 'calls wait on the disk');
        outage.seen = true;
        await postgres.start();
        await Promise.all(writers);
        await until(() => store.server.up && store.spooled === 0, 'the spool is written');
        await assertBooked(opened, written);
      });
    }

    it('F88: connections that are ended one by one are replaced without an outage', async () => {
      const opened = await open(await postgres.makeDatabase());
      const { store } = opened;
      for (let i = 0; i < 20; i += 1) {
        await store.calls.record([callRow(`c${i}`, { cost, budgets })]);
        await store.calls.list({ limit: 1 });
        await postgres.query(terminateAll);
        await store.keys.list();
      }
      assert.equal(store.spooled, 0);
      assert.equal(store.server.up, true);
      await assertBooked(opened, 20);
    });

    for (const order of ['ASC', 'DESC']) {
      it(`F88: connections that all ended before the pool knows of it are replaced without an outage (${order})`, async () => {
        const opened = await open(await postgres.makeDatabase());
        const { store } = opened;
        await Promise.all(Array.from({ length: 6 }, () => store.keys.list()));
        const pids = await postgres.query(`SELECT pid FROM pg_stat_activity
          WHERE application_name = 'model-gateway data' ORDER BY backend_start ${order}`);
        assert.ok(pids.length > 3, `${pids.length} connections`);
        // Without a turn of the event loop, which would tell the pool.
        const pause = new Int32Array(new SharedArrayBuffer(4));
        for (const { pid } of pids) {
          process.kill(Number(pid), 'SIGTERM');
          while (existsSync(`/proc/${String(pid)}`)) Atomics.wait(pause, 0, 0, 5);
        }
        await store.calls.record([callRow('c1', { cost, budgets })]);
        assert.equal(store.spooled, 0);
        assert.equal(store.server.up, true);
        await assertBooked(opened, 1);
      });
    }

    it('F88: a server that turns read-only is as good as away, until it is not', async () => {
      const opened = await open(await postgres.makeDatabase());
      const { store } = opened;
      await store.calls.record([callRow('c1', { cost, budgets })]);
      await postgres.query('ALTER SYSTEM SET default_transaction_read_only = on');
      await postgres.query('SELECT pg_reload_conf()');
      await until(async () => {
        await store.calls.record([callRow('c2', { cost, budgets })]);
        return store.spooled > 0;
      }, 'writes are refused').finally(async () => {
        assert.equal(store.server.up, false);
        assert.match(store.server.failure ?? '', /read-only|takes no writes/);
        await postgres.query('ALTER SYSTEM RESET ALL');
        await postgres.query('SELECT pg_reload_conf()');
      });
      await until(() => store.server.up && store.spooled === 0, 'writes are taken again');
      await assertBooked(opened, 2);
    });

    it('F88: what waits on the disk at the end is written after the next start', async () => {
      const url = await postgres.makeDatabase();
      const first = await open(url);
      await first.store.calls.record([callRow('c1', { cost, budgets })]);
      await postgres.stop();
      await first.store.calls.record([callRow('c1', { cost, budgets })]).catch(() => undefined);
      await first.store.calls.record([callRow('c2', { cost, budgets })]);
      await first.store.close();
      const second = await open(url, first.spoolDirectory);
      assert.equal(second.store.spooled, 2);
      await postgres.start();
      await until(() => second.store.server.up && second.store.spooled === 0, 'it is written');
      await assertBooked(second, 2);
    });

    it('a wrong password is reported at the start, without it', async () => {
      const url = new URL(await postgres.makeDatabase());
      url.password = 'canary-wrong';
      await assert.rejects(open(url.href), (error: Error) => {
        assert.match(error.message, /password authentication failed.*check user and password/);
        assert.ok(!error.message.includes('canary'));
        return true;
      });
    });

    it('a database that is not UTF-8 is refused', async () => {
      await postgres.query("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0");
      await assert.rejects(open(postgres.url('latin')), /encoding UTF8/);
    });

    it('the Unix socket of the server serves too', async () => {
      await postgres.makeDatabase();
      const { store } = await open(postgres.socketUrl('gw1'));
      assert.equal(store.server.up, true);
    });

    it('F88: instances that add to the same sums in different orders wait, and none is refused', async () => {
      const url = await postgres.makeDatabase();
      const opened = await Promise.all([open(url), open(url)]);
      const models = Array.from({ length: 20 }, (_, i) => `m${i}`);
      const batch = (name: string, order: readonly string[]) =>
        order.map((model, i) =>
          callRow(`${name}-${model}`, { model, cost, budgets, startedAt: march + i * 3_600_000 }),
        );
      // As many at once as there are connections: nobody waits for one for longer than two seconds.
      await Promise.all(
        opened.flatMap(({ store }, which) =>
          Array.from({ length: 5 }, async (_, lane) => {
            const order = which === 0 ? models : models.toReversed();
            for (let i = 0; i < 5; i += 1) {
              await store.calls.record(batch(`${which}-${lane}-${i}`, order));
            }
          }),
        ),
      );
      for (const { store } of opened) assert.equal(store.spooled, 0);
      const [one] = opened;
      await assertBooked(one, 1000);
    });

    it('Q2: orphans are settled once, by any number of instances', async () => {
      const url = await postgres.makeDatabase();
      const opened = await Promise.all([open(url), open(url), open(url)]);
      const [{ store }] = opened;
      const orphans = Array.from({ length: 700 }, (_, i) => callRow(`o${i}`, { cost, budgets }));
      await store.calls.open(orphans.map((row) => ({ row, seenAt: march })));
      await store.calls.open([
        { row: callRow('young', { cost, budgets }), seenAt: march + 60_000 },
      ]);
      const found = await Promise.all(
        opened.map((each) => each.store.calls.settleOrphans(march + 1)),
      );
      assert.equal(found.flat().length, 700);
      assert.equal(new Set(found.flat().map(({ id }) => id)).size, 700);
      await assertBooked(opened[0], 700);
    });

    it('Q1 F81: an instance that notes a call which another one has settled learns of it', async () => {
      const url = await postgres.makeDatabase();
      const [{ store: one }, { store: other }] = await Promise.all([open(url), open(url)]);
      const noted = ['a', 'b', 'c'].map((id) => ({ row: callRow(id), seenAt: march }));
      assert.deepEqual(await one.calls.open(noted), []);
      assert.deepEqual(await one.calls.open(noted), []);
      await one.calls.open([{ row: callRow('b'), seenAt: march + 60_000 }]);
      assert.equal((await other.calls.settleOrphans(march + 1)).length, 2);
      assert.deepEqual(await one.calls.open(noted), ['a', 'c']);
      assert.deepEqual(await one.calls.open([]), []);
    });
  });
}
