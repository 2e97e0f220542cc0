/** A server that takes a connection and says nothing, then or later, holds up no start (L1, F88). */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { describe, it } from 'node:test';
import { prepareSchema } from '../../src/store/postgres/prepare.ts';
import { schemaVersion } from '../../src/store/schema.ts';
import { HaltingProxy } from '../support/halting-proxy.ts';
import { openTestStore, until, type TestStore } from '../support/postgres-store.ts';
import { postgresAddress, type TestPostgres } from '../support/postgres.ts';
import { withPostgres } from '../support/with-servers.ts';

await withPostgres(silence);

function reasonIn({ log }: TestStore): string {
  return log.find((line) => line.startsWith('store_unavailable')) ?? log.join('\n');
}

function silence(postgres: TestPostgres): void {
  function behind(proxy: HaltingProxy, url: string): string {
    const through = new URL(url);
    through.port = String(proxy.port);
    return through.href;
  }

  async function versions(url: string): Promise<readonly number[]> {
    const rows = await postgres.query('SELECT version FROM gateway_schema ORDER BY version', url);
    return rows.map(({ version }) => Number(version));
  }

  describe('a start beside a server that is silent', () => {
    it('L1 F88: that takes connections and says nothing: it is reported, and asked again', async (t) => {
      const sockets = new Set<Socket>();
      const silent = createServer((socket) => void sockets.add(socket.on('error', () => {})));
      await once(silent.listen(0, '127.0.0.1'), 'listening');
      const { port } = silent.address() as AddressInfo;
      t.after(() => {
        for (const socket of sockets) socket.destroy();
        silent.close();
      });
      const opened = await openTestStore(`postgres://u:p@127.0.0.1:${port}/gateway`);
      assert.equal(opened.store.server.up, false);
      assert.match(reasonIn(opened), /no answer to a new connection in time.*pooler or a firewall/);
      await until(() => sockets.size > 1, 'it is asked again');
      await opened.close();
    });

    it('L1 F88: that does not answer the look at the schema: it is reported, and up when it answers', async (t) => {
      const url = await postgres.makeDatabase();
      await prepareSchema(postgresAddress(url));
      const proxy = await HaltingProxy.start(postgres.port, 'gateway_schema');
      t.after(() => proxy.close());
      const opened = await openTestStore(behind(proxy, url));
      assert.equal(opened.store.server.up, false);
      assert.match(
        reasonIn(opened),
        /took a connection and a question, and did not answer in time/,
      );
      await assert.rejects(opened.store.keys.list(), { kind: 'unavailable' });
      proxy.goOn();
      await until(() => opened.store.server.up, 'it is up without a restart');
      assert.deepEqual(await opened.store.keys.list(), []);
      await opened.close();
    });

    it('L1 F88: a silence while the tables are made ends it, and nothing is recorded', async (t) => {
      const url = await postgres.makeDatabase();
      const schema = "CREATE TABLE one (a integer); SELECT 'halt-' || 'here';";
      const hasty = { answerMs: 1000, lookEveryMs: 100, lookMs: 300 };
      for (const whose of ['all', 'its own'] as const) {
        const proxy = await HaltingProxy.start(postgres.port, 'halt-here', whose);
        t.after(() => proxy.close());
        await assert.rejects(prepareSchema(postgresAddress(behind(proxy, url)), schema, hasty), {
          kind: 'unavailable',
          message: /neither answered nor worked on it/,
        });
        const made = "SELECT to_regclass('gateway_schema') AS schema";
        assert.deepEqual(await postgres.query(made, url), [{ schema: null }], whose);
      }
      await prepareSchema(postgresAddress(url), schema);
      assert.deepEqual(await versions(url), [schemaVersion]);
    });

    it('N2 L1: a schema that takes long is not ended, nor who waits for its turn', async () => {
      const url = await postgres.makeDatabase();
      const address = postgresAddress(url);
      const schema = 'CREATE TABLE one (a integer); SELECT pg_sleep(2);';
      const hasty = { answerMs: 300, lookEveryMs: 100, lookMs: 10_000 };
      await Promise.all([
        prepareSchema(address, schema, hasty),
        prepareSchema(address, schema, hasty),
      ]);
      assert.deepEqual(await versions(url), [schemaVersion]);
    });
  });
}
