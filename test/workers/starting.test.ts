/** What is told to a worker that starts at that moment. */
import assert from 'node:assert/strict';
import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { send } from '../support/http.ts';
import { until } from '../support/postgres-store.ts';
import { connectionTo, crewed, workersOf } from './crew.ts';

/** Each process says when it loads what traces need, and takes so long. */
const slowTraces = [
  '--import',
  `data:text/javascript,${encodeURIComponent(`
    import { writeSync } from 'node:fs';
    import { registerHooks } from 'node:module';
    registerHooks({
      load(url, context, next) {
        const loaded = next(url, context);
        if (!/traces.otlp\\.[jt]s/.test(url)) return loaded;
        writeSync(2, 'loading traces\\n');
        const wait = 'await new Promise((resolve) => setTimeout(resolve, 3000));';
        return { ...loaded, source: String(loaded.source) + wait };
      },
    });`)}`,
];

/** Makes listening on a shared port fail as it does where the system has no SO_REUSEPORT of this kind. */
const noSharedPorts = [
  '--import',
  `data:text/javascript,${encodeURIComponent(`
    import { Server } from 'node:net';
    const { listen } = Server.prototype;
    Object.defineProperty(process, 'platform', { value: 'darwin' });
    Server.prototype.listen = function (options, ...rest) {
      if (options?.reusePort !== true) return listen.call(this, options, ...rest);
      process.nextTick(() => this.emit('error', Object.assign(new Error('listen ENOTSUP'), { code: 'ENOTSUP' })));
      return this;
    };`)}`,
];

test('where processes cannot share a port one process serves, and the log says so', async (t) => {
  const { gateway } = await crewed(t, 2, {}, noSharedPorts);
  assert.equal(await gateway.ready(), 200);
  await until(() => gateway.log.includes('"event":"workers_unsupported"'), 'the log tells of it');
  assert.equal(workersOf(gateway).size, 0);
  assert.equal(await gateway.stop(), 0);
});

test('L4 an edit of the config that comes while a worker starts is applied by that one, too', async (t) => {
  // Nobody is there.
  const traces = { endpoint: 'http://127.0.0.1:1' };
  const { gateway, upstream } = await crewed(t, 2, { traces }, slowTraces);
  const { key } = await gateway.makeKey();
  await until(() => workersOf(gateway).size === 2, 'the log tells of both');
  const loads = (): number => gateway.log.split('loading traces').length;
  const [loadsBefore, before = 0] = [loads(), workersOf(gateway).get(1)];
  process.kill(before, 'SIGKILL');
  await until(() => loads() > loadsBefore, 'the next one has its settings');
  const file = join(gateway.directory, 'gateway.yaml');
  const base_url = `http://127.0.0.1:${upstream.port}/v1`;
  const config = {
    workers: 2,
    storage: 'sqlite',
    drain: { wait: '0s' },
    traces,
    providers: { up: { dialect: 'openai-chat', base_url, api_key: 'upstream-key' } },
    models: { edited: 'up/short' },
  };
  // As a whole: what was emptied to be written is a config as well.
  writeFileSync(`${file}.new`, JSON.stringify(config));
  renameSync(`${file}.new`, file);
  await until(() => gateway.log.includes('config_applied'), 'the edit was applied');
  await until(() => (workersOf(gateway).get(1) ?? before) !== before, 'another worker serves');
  const headers = { authorization: `Bearer ${key}` };
  const lists = await Promise.all(
    [...workersOf(gateway).values()].map(async (pid) => {
      const socket = await connectionTo(gateway, pid);
      return send(`${gateway.url}/v1/models`, undefined, { headers, socket });
    }),
  );
  const known = lists.map(({ text }) => text.includes('"edited"'));
  assert.deepEqual(known, [true, true]);
});
