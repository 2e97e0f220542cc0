/** Three gateways on one PostgreSQL, without Redis: what they share, and what happens when it is away. */
import assert from 'node:assert/strict';
import { Client } from 'pg';
import { after, afterEach, before, describe, it, test } from 'node:test';
import {
  noPostgres,
  postgresPassword,
  startPostgres,
  type TestPostgres,
} from '../support/postgres.ts';
import { until } from '../support/postgres-store.ts';
import { chatDocument } from '../upstream/chat.ts';
import { ScriptedUpstream } from '../upstream/scripted.ts';
import { Instance, type InstanceOptions } from './instance.ts';

const server = await startPostgres();
if (server === undefined) test(noPostgres, () => {});
else book(server);

function book(postgres: TestPostgres): void {
  let upstream: ScriptedUpstream;
  const instances: Instance[] = [];
  const start = async (
    storage: InstanceOptions['storage'],
    directory?: string,
  ): Promise<Instance> => {
    const instance = await Instance.start({
      storage,
      upstream: upstream.port,
      ...(directory === undefined ? {} : { directory }),
    });
    instances.push(instance);
    return instance;
  };
  const calls = async (url: string): Promise<number> => {
    const [row] = await postgres.query('SELECT count(*)::integer AS n FROM calls', url);
    return Number(row?.n);
  };

  before(async () => {
    upstream = await ScriptedUpstream.start();
    upstream.script('fast', { body: JSON.stringify(chatDocument({ text: 'hello' })) });
    upstream.script('slow', {
      body: ['data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"a"}}]}\n\n'],
      headers: { 'content-type': 'text/event-stream' },
      ending: 'hang',
    });
  });
  after(async () => {
    await upstream.close();
    await postgres.close();
  });
  afterEach(async () => {
    for (const instance of instances.splice(0)) {
      instance.signal('SIGCONT');
      await instance.kill();
      assert.ok(!instance.log.includes(postgresPassword), instance.log);
    }
  });

  describe('gateways that share a book', () => {
    it('S10: instances that start together make one first key, and one seal for all', async () => {
      const url = await postgres.makeDatabase();
      await Promise.all([start(url), start(url), start(url)]);
      const keys = await postgres.query("SELECT name FROM keys WHERE name = 'first key'", url);
      assert.equal(keys.length, 1);
      // The banner, with the key that is shown once, is written behind the addresses.
      const said = (): boolean => instances.every(({ log }) => log.includes('More clients: '));
      await until(said, 'all have written their banners');
      assert.equal(instances.filter(({ log }) => / gw_\w+/.test(log)).length, 1);
      const seals = await postgres.query("SELECT value FROM settings WHERE name = 'seal_key'", url);
      assert.equal(seals.length, 1);
    });

    it('L1: with the book away at the start it answers 503, never 401, and serves when it comes', async () => {
      const url = await postgres.makeDatabase();
      const first = await start(url);
      const { key } = await first.makeKey();
      await first.stop();
      await postgres.stop();
      const instance = await start(url);
      assert.equal(await instance.ready(), 503);
      const refused = await instance.chat(key, { model: 'up/fast' });
      assert.equal(refused.status, 503, refused.text);
      assert.match(refused.text, /store_unavailable/);
      const unknown = await instance.chat('not-a-key', { model: 'up/fast' });
      assert.equal(unknown.status, 401);
      const unread = await instance.admin('GET', '/api/status');
      assert.equal(unread.status, 503, unread.text);
      assert.match(unread.text, /store is not available/);
      await postgres.start();
      await until(async () => (await instance.ready()) === 200, 'it is ready');
      assert.equal((await instance.admin('GET', '/api/status')).status, 200);
      const reply = await instance.chat(key, { model: 'up/fast' });
      assert.equal(reply.status, 200, reply.text);
    });

    it('L1 F84: with the book locked at the start it answers 503, and serves when it is free', async () => {
      const url = await postgres.makeDatabase();
      const first = await start(url);
      const { key } = await first.makeKey();
      await first.stop();
      const other = new Client({ connectionString: url });
      await other.connect();
      try {
        // As by a program that rebuilds the tables.
        await other.query('BEGIN');
        await other.query('LOCK TABLE keys, spending IN ACCESS EXCLUSIVE MODE');
        const instance = await start(url);
        assert.equal(await instance.ready(), 503);
        assert.equal((await instance.chat(key, { model: 'up/fast' })).status, 503);
        await other.query('COMMIT');
        await until(async () => (await instance.ready()) === 200, 'it is ready');
        const reply = await instance.chat(key, { model: 'up/fast' });
        assert.equal(reply.status, 200, reply.text);
      } finally {
        await other.end();
      }
    });

    it('F88: a restart of the book under calls refuses no key and loses no call', async () => {
      const url = await postgres.makeDatabase();
      const [one, two] = await Promise.all([start(url), start(url)]);
      const { key } = await one.makeKey();
      await until(async () => (await two.chat(key, { model: 'up/fast' })).status === 200, 'known');
      const clock = { done: false };
      let served = 0;
      const client = async (instance: Instance): Promise<void> => {
        while (!clock.done) {
          const { status, text } = await instance.chat(key, { model: 'up/fast' });
          assert.equal(status, 200, text);
          served += 1;
        }
      };
      const clients = [client(one), client(one), client(two), client(two)];
      await until(() => served > 40, 'calls are served');
      await postgres.stop('immediate');
      await until(async () => (await one.ready()) === 503, 'it says that the book is away');
      const before = served;
      await until(() => served > before + 40, 'calls are served while it is away');
      await postgres.start();
      await until(async () => (await one.ready()) === 200, 'it is ready again');
      const after = served;
      await until(() => served > after + 40, 'calls are served again');
      clock.done = true;
      await Promise.all(clients);
      // One call of each was made before the count began.
      await until(async () => (await calls(url)) >= served + 1, 'all calls are in the book');
      assert.deepEqual(await Promise.all([one.stop(), two.stop()]), [0, 0]);
      assert.equal(await calls(url), served + 1);
      const [sums] = await postgres.query('SELECT sum(calls)::integer AS n FROM usage_hours', url);
      assert.deepEqual(sums, { n: served + 1 });
    });

    it('F88: calls of an outage survive the end of their gateway, killed or not', async () => {
      const url = await postgres.makeDatabase();
      const instance = await start(url);
      const { key } = await instance.makeKey();
      await postgres.stop();
      for (let i = 0; i < 5; i += 1) {
        assert.equal((await instance.chat(key, { model: 'up/fast' })).status, 200);
      }
      // The group commit takes 20 ms; a call that was answered is on the disk by then.
      await until(async () => {
        const status = await instance.admin('GET', '/api/status');
        return status.json['spooled_calls'] === 5;
      }, 'the calls are on the disk');
      await instance.kill();
      await start(url, instance.directory);
      await postgres.start();
      await until(async () => (await calls(url)) === 5, 'the calls are in the book');
    });

    it('S6 K8: a key works everywhere at once, and ends everywhere at once, streams included', async () => {
      const url = await postgres.makeDatabase();
      const [one, two, three] = await Promise.all([start(url), start(url), start(url)]);
      const { id, key } = await one.makeKey();
      const all = [one, two, three];
      // Without a notice it is asked for every ten seconds: before that, somebody was told.
      const told = AbortSignal.timeout(8000);
      const statuses = (): Promise<readonly number[]> =>
        Promise.all(all.map(async (each) => (await each.chat(key, { model: 'up/fast' })).status));
      await until(async () => {
        assert.ok(!told.aborted, 'the key is known at once');
        return (await statuses()).every((status) => status === 200);
      }, 'the key is known everywhere');
      let begun = 0;
      const streams = all.map((each) => {
        const onData = (): void => {
          begun += 1;
        };
        return each.chat(key, { model: 'up/slow', stream: true }, { onData });
      });
      await until(() => begun >= 3, 'the streams run');
      const revoked = AbortSignal.timeout(8000);
      const cut = AbortSignal.timeout(30_000);
      assert.equal((await two.admin('POST', `/api/keys/${id}/revoke`)).status, 200);
      await until(async () => {
        assert.ok(!revoked.aborted, 'the key is refused at once');
        return (await statuses()).every((status) => status === 401);
      }, 'the key is refused everywhere');
      for (const reply of await Promise.all(streams)) {
        assert.ok(!cut.aborted, 'streams are cut soon');
        assert.match(reply.text, /"error"/);
        assert.doesNotMatch(reply.text, /\[DONE\]/);
      }
    });

    it('K8: a key that was made or rotated on one instance opens all others at the next call', async () => {
      const url = await postgres.makeDatabase();
      const all = await Promise.all([start(url), start(url), start(url)]);
      const [one, ...others] = all;
      for (let round = 0; round < 5; round++) {
        const { id, key } = await one.makeKey();
        const first = await Promise.all(others.map((each) => each.chat(key, { model: 'up/fast' })));
        assert.deepEqual(
          first.map(({ status }) => status),
          [200, 200],
        );
        const rotated = await one.admin('POST', `/api/keys/${id}/rotate`);
        const { key: next } = JSON.parse(rotated.text);
        const second = await Promise.all(
          others.map((each) => each.chat(next, { model: 'up/fast' })),
        );
        assert.deepEqual(
          second.map(({ status }) => status),
          [200, 200],
        );
      }
    });

    it('S6: a change whose notice was lost is known within 30 s', async () => {
      const url = await postgres.makeDatabase();
      const instance = await start(url);
      const { id, key } = await instance.makeKey();
      assert.equal((await instance.chat(key, { model: 'up/fast' })).status, 200);
      const within30s = AbortSignal.timeout(30_000);
      const stamp = '(SELECT max(stamp) + 1 FROM keys)';
      await postgres.query(
        `UPDATE keys SET revoked_at = 1, version = version + 1, stamp = ${stamp} WHERE id = '${id}'`,
        url,
      );
      await until(
        async () => {
          assert.ok(!within30s.aborted);
          return (await instance.chat(key, { model: 'up/fast' })).status === 401;
        },
        'the key is refused',
        30_000,
      );
    });

    it('a team that is limited on one instance is limited on all', async () => {
      const url = await postgres.makeDatabase();
      const [one, two] = await Promise.all([start(url), start(url)]);
      const reply = await one.admin('PUT', '/api/teams/red', { rpm: 5 });
      assert.ok(reply.status < 300, reply.text);
      await until(async () => {
        const shown = await two.admin('GET', '/api/teams/red');
        return shown.status === 200;
      }, 'the team is known');
    });

    it('an instance that was paused through a change knows it when it continues', async () => {
      const url = await postgres.makeDatabase();
      const [one, two] = await Promise.all([start(url), start(url)]);
      const { id, key } = await one.makeKey();
      await until(async () => (await two.chat(key, { model: 'up/fast' })).status === 200, 'known');
      two.signal('SIGSTOP');
      await one.admin('POST', `/api/keys/${id}/revoke`);
      two.signal('SIGCONT');
      await until(
        async () => (await two.chat(key, { model: 'up/fast' })).status === 401,
        'the key is refused',
      );
    });
  });
}
