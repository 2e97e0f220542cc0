/** A stop while PostgreSQL does not answer ends like any other, logs the failure, and loses no finished call (G14, F88). */
import assert from 'node:assert/strict';
import { after, before, it } from 'node:test';
import { brokenness, scriptSlow, stream } from '../lifecycle/streams.ts';
import type { TestPostgres } from '../support/postgres.ts';
import { until } from '../support/postgres-store.ts';
import { SilentProxy } from '../support/silent-proxy.ts';
import { withPostgres } from '../support/with-servers.ts';
import { ScriptedUpstream } from '../upstream/scripted.ts';
import { Instance } from './instance.ts';

await withPostgres(silentStop);

function silentStop(postgres: TestPostgres): void {
  let upstream: ScriptedUpstream;
  before(async () => {
    upstream = await ScriptedUpstream.start();
  });
  after(() => upstream.close());

  for (const [workers, dialect] of [
    [1, 'messages'],
    [2, 'responses'],
  ] as const) {
    it(`G14 F88 workers: ${workers}: a stop waits for no server that swallows all, and its calls are in the book after the next start`, async (t) => {
      const url = await postgres.makeDatabase();
      const proxy = await SilentProxy.start(postgres.port);
      t.after(() => proxy.close());
      const options = {
        storage: proxy.through(url),
        upstream: upstream.port,
        config: { workers },
      };
      const instance = await Instance.start(options);
      t.after(() => instance.kill());
      const { key } = await instance.makeKey();
      const gate = Promise.withResolvers<void>();
      scriptSlow(upstream, 'slow', () => gate.promise);
      const begun = Promise.withResolvers<void>();
      const call = { instance, key, dialect, model: 'up/slow' };
      const running = stream({ ...call, onData: () => begun.resolve() });
      await begun.promise;
      proxy.fallSilent();
      gate.resolve();
      assert.equal(brokenness(dialect, await running), undefined);
      instance.signal('SIGTERM');
      await until(() => !instance.running, 'the stop ends', 60_000);
      assert.equal(await instance.stop(), 0, instance.log);
      const told = instance.log.split('\n').filter((line) => line.includes('store_silent_at_stop'));
      assert.equal(told.length, 1, instance.log);
      assert.match(told[0] ?? '', /1 finished calls wait in .*spool/);
      assert.ok(!instance.log.includes('ledger_rows_lost'), instance.log);

      proxy.speak();
      const next = await Instance.start({ ...options, directory: instance.directory });
      t.after(() => next.kill());
      const rows = 'SELECT outcome FROM calls';
      await until(async () => (await postgres.query(rows, url)).length > 0, 'it is in the book');
      assert.deepEqual(await postgres.query(rows, url), [{ outcome: 'ok' }]);
      assert.equal(await next.stop(), 0);
    });
  }
}
