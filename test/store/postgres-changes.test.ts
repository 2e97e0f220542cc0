import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from 'pg';
import { keyRecord, march } from '../unit/store/call-rows.ts';
import { openTestStore, until, type TestStore } from '../support/postgres-store.ts';
import type { TestPostgres } from '../support/postgres.ts';
import { withPostgres } from '../support/with-servers.ts';

await withPostgres(changes);

function changes(postgres: TestPostgres): void {
  const stores: TestStore[] = [];
  const open = async (url: string): Promise<TestStore> => {
    const opened = await openTestStore(url);
    stores.push(opened);
    return opened;
  };
  /** Keys as an instance would follow them. */
  const follow = async (url: string): Promise<ReadonlyMap<string, number | undefined>> => {
    const { store } = await open(url);
    const known = new Map<string, number | undefined>();
    let stamp = 0;
    let loading = Promise.resolve();
    const load = async (): Promise<void> => {
      const found = await store.keys.since(stamp).catch(() => undefined);
      for (const { id, revokedAt } of found?.records ?? []) known.set(id, revokedAt);
      stamp = found?.stamp ?? stamp;
    };
    store.watch(() => {
      loading = loading.then(load);
    });
    return known;
  };

  afterEach(async () => {
    await Promise.all(stores.splice(0).map((each) => each.close()));
  });

  describe('changes that other instances made', () => {
    it('S6: a new key and its end are known everywhere at once, and again after a restart of the server', async () => {
      const url = await postgres.makeDatabase();
      const known = await Promise.all([follow(url), follow(url)]);
      const { store } = await open(url);
      await store.keys.add(keyRecord('a'));
      await until(() => known.every((keys) => keys.has('a')), 'the key is known');
      await store.keys.revoke('a', march);
      await until(() => known.every((keys) => keys.get('a') === march), 'it is revoked');
      await postgres.stop('immediate');
      await postgres.start();
      await until(() => store.server.up, 'the server is back');
      await store.keys.add(keyRecord('b'));
      await until(() => known.every((keys) => keys.has('b')), 'the next key is known');
    });

    it('G14: a listener that is closed while it begins to listen, or before, has no connection', async () => {
      const url = await postgres.makeDatabase();
      const [begun, late] = await Promise.all([open(url), open(url)]);
      begun.store.watch(() => undefined);
      await Promise.all([begun.close(), late.close()]);
      late.store.watch(() => undefined);
      // One of its own is connected in a tenth of that.
      await sleep(300);
      const listening = `SELECT 1 FROM pg_stat_activity
        WHERE application_name = 'model-gateway changes' AND datname = '${new URL(url).pathname.slice(1)}'`;
      // The server may need longer than that to end the one of a closed client.
      await until(async () => (await postgres.query(listening)).length === 0, 'none is left');
    });

    it('S6: stamps rise in the order of commits: a change is never passed over', async () => {
      const url = await postgres.makeDatabase();
      const [{ store }, { store: other }, { store: reader }] = await Promise.all([
        open(url),
        open(url),
        open(url),
      ]);
      let stamp = 0;
      const seen = new Set<string>();
      const writers = { done: false };
      const reading = (async () => {
        do {
          const found = await reader.keys.since(stamp);
          for (const { id } of found.records) seen.add(id);
          stamp = found.stamp;
        } while (!writers.done);
      })();
      const write = (into: typeof store, name: string): Promise<unknown> =>
        Promise.all(Array.from({ length: 50 }, (_, i) => into.keys.add(keyRecord(`${name}${i}`))));
      await Promise.all([write(store, 'a'), write(other, 'b')]);
      writers.done = true;
      await reading;
      for (const { id } of (await reader.keys.since(stamp)).records) seen.add(id);
      assert.equal(seen.size, 100);
    });

    it('K8: of two instances that change a key at once, one is told to look again', async () => {
      const url = await postgres.makeDatabase();
      const [{ store }, { store: other }] = await Promise.all([open(url), open(url)]);
      await store.keys.add(keyRecord('a'));
      const changed = (name: string) => keyRecord('a', { name, version: 2 });
      const won = await Promise.all([
        store.keys.replace(changed('one')),
        other.keys.replace(changed('two')),
      ]);
      assert.deepEqual(won.toSorted(), [false, true]);
      const [key] = await store.keys.list();
      assert.equal(key?.name, won[0] ? 'one' : 'two');
      assert.equal(key?.version, 2);
    });

    it('R-34 a response that is deleted while another instance begins to store it is not stored', async () => {
      const url = await postgres.makeDatabase();
      const [{ store }, { store: other }] = await Promise.all([open(url), open(url)]);
      const holder = new Client({ connectionString: url });
      await holder.connect();
      try {
        // Removing what a key kept takes this lock, and storing waits for it.
        await holder.query('SELECT pg_advisory_lock(5563204124)');
        const own = { keyId: 'key', previous: undefined, items: ['x'], startedAt: 1 };
        const response = { ...own, id: 'a', sealed: Buffer.of(1), keepMs: 3_600_000 };
        const keeping = store.responses.keep([response]);
        const waiting = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted";
        await until(async () => (await holder.query(waiting)).rows.length > 0, 'it waits');
        const refusal = { ms: 3_600_000, most: 1000 };
        assert.equal(await other.responses.remove('key', 'a', refusal), false);
        await holder.query('SELECT pg_advisory_unlock(5563204124)');
        assert.deepEqual(await keeping, [false]);
      } finally {
        await holder.end();
      }
      const limits = { links: 1, bytes: 1e6 };
      assert.deepEqual((await store.responses.chain('key', 'a', limits)).responses, []);
      assert.deepEqual((await store.responses.holding('key', ['x'], 1e6)).places, []);
    });

    it('S24: entries of several instances make one chain without a gap', async () => {
      const url = await postgres.makeDatabase();
      const opened = await Promise.all([open(url), open(url)]);
      const entry = { at: march, actor: 'admin', action: 'key.create', subject: 'key:a' };
      await Promise.all(
        opened.flatMap(({ store }) => Array.from({ length: 20 }, () => store.audit.append(entry))),
      );
      const [{ store }] = opened;
      const found = await store.audit.list({ limit: 100 });
      assert.deepEqual(
        found.map(({ seq }) => seq),
        Array.from({ length: 40 }, (_, i) => 40 - i),
      );
      const { brokenAt } = await import('../../src/store/records.ts');
      assert.equal(brokenAt(found.toReversed()), undefined);
    });
  });
}
