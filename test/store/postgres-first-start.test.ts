/** A first start that meets a lock in the middle of it: what it made by then is shown all the same (L1, F84). */
import assert from 'node:assert/strict';
import { Client } from 'pg';
import { test } from 'node:test';
import { silentLog } from '../unit/access/fakes.ts';
import { Secret } from '../../src/core/secret.ts';
import { Boot } from '../../src/compose/boot.ts';
import { makeAuthenticator } from '../../src/compose/keys.ts';
import { openTestStore, until } from '../support/postgres-store.ts';
import type { TestPostgres } from '../support/postgres.ts';
import { withPostgres } from '../support/with-servers.ts';

/** Settings in the order in which a first start writes them, and what it has made before. */
const steps = [
  { held: 'admin_token_digest', made: ['key'] },
  { held: 'seal_key', made: ['adminToken', 'key'] },
];

await withPostgres(firstStart);

function firstStart(postgres: TestPostgres): void {
  for (const { held, made: names } of steps) {
    test(`L1 F84: a first start that waits for "${held}" shows the ${names.join(' and ')} that it made`, async (t) => {
      const url = await postgres.makeDatabase();
      const opened = await openTestStore(url);
      const { store } = opened;
      const authenticator = makeAuthenticator({
        store,
        settings: { keys: [], policies: [] },
        env: {},
        log: silentLog,
        shared: true,
      });
      const boot = new Boot({ store, shared: store, authenticator, env: {}, log: silentLog });
      const other = new Client({ connectionString: url });
      await other.connect();
      t.after(async () => {
        boot.close();
        await other.end();
        await opened.close();
      });
      // Who writes the same row waits for the end of this.
      await other.query('BEGIN');
      await other.query("INSERT INTO settings (name, value) VALUES ($1, '')", [held]);
      const made = await boot.begin();
      assert.equal(boot.done, false);
      assert.deepEqual(Object.keys(made).sort(), names);
      await other.query('ROLLBACK');
      await until(() => boot.done, 'the start goes on');
      assert.equal(authenticator.keys.holds(new Secret(made.key ?? '')), true);
      if (made.adminToken !== undefined)
        assert.equal(boot.adminToken.verify(made.adminToken), true);
    });
  }
}
