/** Three gateways on one database, for tests of money: what was spent, by the ledger and by the upstream. */
import assert from 'node:assert/strict';
import type { JsonObject } from '../../src/json/value.ts';
import type { TestPostgres } from '../support/postgres.ts';
import { until } from '../support/postgres-store.ts';
import { ScriptedUpstream } from '../upstream/scripted.ts';
import { Instance, type MadeKey } from './instance.ts';
import { stormPrices } from './storm.ts';

export class Trio {
  readonly upstream: ScriptedUpstream;
  readonly #postgres: TestPostgres;
  /** Of the database. */
  readonly url: string;
  /** Those that run. */
  instances: readonly Instance[];

  private constructor(
    parts: { readonly postgres: TestPostgres; readonly url: string },
    upstream: ScriptedUpstream,
    instances: readonly Instance[],
  ) {
    this.#postgres = parts.postgres;
    this.url = parts.url;
    this.upstream = upstream;
    this.instances = instances;
  }

  static async start(postgres: TestPostgres): Promise<Trio> {
    const upstream = await ScriptedUpstream.start();
    const url = await postgres.makeDatabase();
    const options = { storage: url, upstream: upstream.port, prices: stormPrices };
    const instances = await Promise.all([
      Instance.start(options),
      Instance.start(options),
      Instance.start(options),
    ]);
    return new Trio({ postgres, url }, upstream, instances);
  }

  async close(): Promise<void> {
    for (const instance of this.instances) {
      await instance.kill();
    }
    await this.upstream.close();
  }

  /** A key that all of them know. */
  async makeKey(input: JsonObject): Promise<MadeKey> {
    const [first] = this.instances;
    assert.ok(first !== undefined);
    const made = await first.makeKey({ ...input, per: 'month' });
    await until(async () => {
      const known = await Promise.all(
        this.instances.map((each) => each.chat(made.key, { model: 'up/none', max_tokens: 1 })),
      );
      return known.every(({ status }) => status !== 401);
    }, 'the key is known');
    return made;
  }

  query(sql: string): ReturnType<TestPostgres['query']> {
    return this.#postgres.query(sql, this.url);
  }

  /** Nanodollars of the budget's windows. */
  spent({ id }: MadeKey): Promise<number> {
    return this.#number(`SELECT coalesce(sum(nanodollars), 0)::float8 AS n FROM spending
      WHERE counter LIKE 'key:${id}:%'`);
  }

  /** Nanodollars of the rows. */
  costs({ id }: MadeKey): Promise<number> {
    return this.#number(
      `SELECT coalesce(sum(cost), 0)::float8 AS n FROM calls WHERE key_id = '${id}'`,
    );
  }

  /** Calls that are noted as running, or only those of a model: what asked for a key may still be noted. */
  open(model = '%'): Promise<number> {
    return this.#number(
      `SELECT count(*)::integer AS n FROM open_calls WHERE call LIKE '%"${model}"%'`,
    );
  }

  async #number(sql: string): Promise<number> {
    return Number((await this.query(sql))[0]?.n);
  }
}
