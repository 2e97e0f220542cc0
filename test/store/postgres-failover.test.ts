/** The primary dies, its replica takes over behind the same address: nothing is lost, nothing is restarted (L1). */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { after, test } from 'node:test';
import { openTestStore, until } from '../support/postgres-store.ts';
import { noPostgres, startPostgres, type TestPostgres } from '../support/postgres.ts';
import { callRow, keyRecord } from '../unit/store/call-rows.ts';
import { costing } from './rows.ts';

/** An address that leads to the one or the other: a virtual address, or a name that is changed. */
class Leader {
  readonly #server = createServer((client) => this.#join(client));
  readonly #open = new Set<Socket>();
  to = 0;

  async start(port: number): Promise<number> {
    this.to = port;
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    const address: AddressInfo | string | null = this.#server.address();
    return typeof address === 'object' && address !== null ? address.port : 0;
  }

  close(): void {
    this.#server.close();
    for (const socket of this.#open) socket.destroy();
  }

  #join(client: Socket): void {
    const server = connect(this.to, '127.0.0.1');
    for (const [one, other] of [
      [client, server],
      [server, client],
    ] as const) {
      this.#open.add(one);
      one.on('error', () => other.destroy());
      one.on('close', () => {
        this.#open.delete(one);
        other.destroy();
      });
      one.pipe(other);
    }
  }
}

function failover(first: TestPostgres, second: TestPostgres): void {
  const leader = new Leader();
  after(async () => {
    leader.close();
    await second.close();
    await first.close();
  });

  test('L1 F88: a replica that is promoted continues with all that was written, without a restart', async () => {
    const url = await first.makeDatabase();
    const port = await leader.start(first.port);
    const opened = await openTestStore(url.replace(`:${first.port}/`, `:${port}/`));
    const { store } = opened;
    const budgets = [{ counter: 'key:k1:ever', window: 'ever' }];
    const row = (id: string) => callRow(id, { ...costing(7), budgets });
    try {
      await store.keys.add(keyRecord('a'));
      await store.calls.record([row('c1')]);
      const [there] = await first.query('SELECT pg_current_wal_lsn()::text AS lsn');
      const follows = async (): Promise<boolean> => {
        const sql = `SELECT pg_last_wal_replay_lsn() >= '${String(there?.lsn)}'::pg_lsn AS done`;
        return (await second.query(sql))[0]?.done === true;
      };
      await until(follows, 'the replica has all of it');

      await first.stop('immediate');
      leader.to = second.port;
      await store.calls.record([row('c2')]);
      assert.equal(store.spooled, 1, 'a replica takes nothing: it waits on the disk');
      await until(() => !store.server.up, 'the store is away');
      await until(() => /replica|read-only/.test(store.server.failure ?? ''), 'it says why');

      await second.query('SELECT pg_promote()');
      await until(() => store.server.up && store.spooled === 0, 'the store is back');
      await store.keys.add(keyRecord('b'));
      const keys = await store.keys.list();
      assert.deepEqual(
        keys.map(({ id }) => id),
        ['a', 'b'],
      );
      assert.equal((await store.calls.spent(0))[0]?.nanodollars, 14);
      const [usage] = await store.calls.usage({ by: 'key', since: 0 });
      assert.equal(usage?.calls, 2);
    } finally {
      await opened.close();
    }
  });
}

const primary = await startPostgres();
const replica = await primary?.startReplica();
if (primary === undefined || replica === undefined) test(noPostgres, () => {});
else failover(primary, replica);
