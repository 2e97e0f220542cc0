import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { prepareSchema } from '../../src/store/postgres/prepare.ts';
import { schemaVersion } from '../../src/store/schema.ts';
import { postgresAddress, type TestPostgres } from '../support/postgres.ts';
import { withPostgres } from '../support/with-servers.ts';

await withPostgres(schema);

function schema(postgres: TestPostgres): void {
  async function versions(url: string): Promise<readonly number[]> {
    const rows = await postgres.query('SELECT version FROM gateway_schema ORDER BY version', url);
    return rows.map(({ version }) => Number(version));
  }

  describe('the schema of the shared store', () => {
    it('N2: eight instances that start at once make the tables once, and none fails', async () => {
      const url = await postgres.makeDatabase();
      const script = join(import.meta.dirname, 'prepare-once.ts');
      const ends = await Promise.all(
        Array.from({ length: 8 }, async () => {
          const child = spawn(process.execPath, [script, url], {
            stdio: ['ignore', 'ignore', 'pipe'],
          });
          let said = '';
          child.stderr.setEncoding('utf8').on('data', (text: string) => (said += text));
          const [code]: unknown[] = await once(child, 'close');
          return `${String(code)} ${said}`;
        }),
      );
      assert.deepEqual(
        ends,
        Array.from({ length: 8 }, () => '0 '),
      );
      assert.deepEqual(await versions(url), [schemaVersion]);
    });

    it('N2: a schema that fails leaves nothing and is not recorded; mended, it is made', async () => {
      const url = await postgres.makeDatabase();
      const address = postgresAddress(url);
      const broken = 'CREATE TABLE one (a integer); INSERT INTO one VALUES (1 / 0);';
      await assert.rejects(prepareSchema(address, broken), {
        name: 'StoreError',
        kind: 'failed',
        message: `${address.shown}: division by zero`,
      });
      const made = "SELECT to_regclass('one') AS one, to_regclass('gateway_schema') AS schema";
      assert.deepEqual(await postgres.query(made, url), [{ one: null, schema: null }]);
      await prepareSchema(address, 'CREATE TABLE one (a integer);');
      assert.deepEqual(await versions(url), [schemaVersion]);
    });

    it('N2: a database of a newer version is refused and left as it is', async () => {
      const url = await postgres.makeDatabase();
      await prepareSchema(postgresAddress(url));
      await postgres.query('INSERT INTO gateway_schema (version) VALUES (900)', url);
      await assert.rejects(prepareSchema(postgresAddress(url)), { kind: 'newer_schema' });
      assert.deepEqual(await versions(url), [schemaVersion, 900]);
    });

    it('N2: a database of a development version is refused, left as it is, and told what to do', async () => {
      const url = await postgres.makeDatabase();
      await postgres.query('CREATE TABLE gateway_schema (version integer PRIMARY KEY)', url);
      await postgres.query('INSERT INTO gateway_schema (version) VALUES (10), (11)', url);
      await assert.rejects(prepareSchema(postgresAddress(url)), {
        kind: 'older_schema',
        message: /has schema 11, .* move it away/,
      });
      assert.deepEqual(await versions(url), [10, 11]);
    });

    it('N2: a user who may not make tables is told what to do, and may use tables that are there', async () => {
      const url = await postgres.makeDatabase();
      await postgres.query("CREATE ROLE guest LOGIN PASSWORD 'guest'", url);
      const guest = new URL(url);
      guest.username = 'guest';
      guest.password = 'guest';
      const address = postgresAddress(guest.href);
      await assert.rejects(prepareSchema(address), /permission denied.*GRANT CREATE ON SCHEMA/s);
      await prepareSchema(postgresAddress(url));
      await postgres.query('GRANT SELECT ON ALL TABLES IN SCHEMA public TO guest', url);
      await prepareSchema(address);
    });

    it("another program's tables are not touched", async () => {
      const url = await postgres.makeDatabase();
      await postgres.query('CREATE TABLE calls (a integer)', url);
      await assert.rejects(prepareSchema(postgresAddress(url)), /give the gateway a database of/);
      const tables = "SELECT count(*)::integer AS n FROM pg_tables WHERE schemaname = 'public'";
      assert.deepEqual(await postgres.query(tables, url), [{ n: 1 }]);
    });

    it('S24: the audit log takes no change and no removal', async () => {
      const url = await postgres.makeDatabase();
      await prepareSchema(postgresAddress(url));
      const entry = "INSERT INTO audit VALUES (1, 0, 'a', NULL, 'b', 'c', NULL, NULL, 'd')";
      await postgres.query(entry, url);
      for (const sql of ["UPDATE audit SET actor = 'x'", 'DELETE FROM audit', 'TRUNCATE audit']) {
        await assert.rejects(postgres.query(sql, url), /append-only/, sql);
      }
    });
  });
}
