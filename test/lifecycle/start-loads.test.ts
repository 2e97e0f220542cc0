/** What a start loads, and what it leaves to those who need it (issue 7). */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { Instance } from '../cluster/instance.ts';
import { temporaryFolder } from '../support/folders.ts';
import { nodeEnvironment, programArguments } from '../support/program.ts';
import { chatFrames } from '../upstream/chat.ts';
import { ScriptedUpstream } from '../upstream/scripted.ts';

/** Answers a message with the files that were required, and with the modules of Node that were loaded. */
const telling = [
  '--import',
  `data:text/javascript,${encodeURIComponent(`
    import { createRequire } from 'node:module';
    const { cache } = createRequire('/');
    process.on('message', () => process.send([...Object.keys(cache), ...process.moduleLoadList]));`)}`,
];

test('a start and a call load nothing of undici, also not of the one in Node', async (t) => {
  const upstream = await ScriptedUpstream.start();
  const gateway = await Instance.start({
    storage: 'sqlite',
    upstream: upstream.port,
    node: telling,
  });
  t.after(async () => {
    await gateway.kill();
    await upstream.close();
  });
  const usage = { prompt_tokens: 10, completion_tokens: 5 };
  upstream.script('short', { body: chatFrames({ text: 'Good day.', usage }).join('') });
  const { key } = await gateway.makeKey();
  assert.equal((await gateway.chat(key, { model: 'up/short', stream: true })).status, 200);
  const loaded = await gateway.ask('loaded');
  assert.ok(Array.isArray(loaded));
  const files = loaded.map(String);
  assert.ok(files.length > 0, 'what is loaded is seen');
  assert.deepEqual(
    files.filter((file) => file.includes('/undici/')),
    [],
  );
});

/** Answers a message with the number of full collections of garbage that the program asked for. */
const tellingCollections = [
  '--import',
  `data:text/javascript,${encodeURIComponent(`
    import { constants, PerformanceObserver } from 'node:perf_hooks';
    const { NODE_PERFORMANCE_GC_MAJOR: full, NODE_PERFORMANCE_GC_FLAGS_FORCED: forced } = constants;
    let collections = 0;
    const isWanted = ({ detail }) => detail.kind === full && (detail.flags & forced) !== 0;
    const count = (list) => (collections += list.getEntries().filter(isWanted).length);
    new PerformanceObserver(count).observe({ type: 'gc' });
    process.on('message', () => process.send(collections));`)}`,
];

test('issue 25.2: all garbage of a start is collected before the first call', async (t) => {
  const gateway = await Instance.start({
    storage: 'sqlite',
    upstream: 1,
    node: tellingCollections,
  });
  t.after(() => gateway.kill());
  assert.equal(await gateway.ask('collections'), 1);
});

/** Answers a message with the addresses of the modules that were imported. */
const tellingModules = [
  '--import',
  `data:text/javascript,${encodeURIComponent(`
    import { registerHooks } from 'node:module';
    const loaded = [];
    registerHooks({ load: (url, context, next) => (loaded.push(url), next(url, context)) });
    process.on('message', () => process.send(loaded));`)}`,
];

test('issue 25.4: a start without a config file loads the admin API and its libraries with the first admin request', async (t) => {
  const folder = temporaryFolder('loads');
  const listen = ['--listen', '127.0.0.1:0', '--admin-listen', '127.0.0.1:0'];
  const args = ['start', '--data-dir', join(folder, 'data'), ...listen];
  const gateway = spawn(process.execPath, programArguments(args, tellingModules), {
    cwd: folder,
    env: { ...nodeEnvironment, PATH: process.env['PATH'], HOME: folder },
    stdio: ['ignore', 'pipe', 'ignore', 'ipc'],
  });
  t.after(async () => {
    gateway.kill('SIGKILL');
    if (gateway.exitCode === null && gateway.signalCode === null) await once(gateway, 'exit');
  });
  assert.ok(gateway.stdout);
  let admin: string | undefined;
  for await (const line of createInterface({ input: gateway.stdout })) {
    admin = /^admin +(http:\S+)/.exec(line)?.[1];
    if (admin !== undefined) break;
  }
  assert.ok(admin, 'the banner names the address of the admin plane');
  const loadedBy = async (): Promise<readonly string[]> => {
    const answer = once(gateway, 'message');
    gateway.send('loaded');
    const [loaded]: unknown[] = await answer;
    assert.ok(Array.isArray(loaded));
    return loaded.map(String);
  };
  const ofAdmin = /\/node_modules\/(zod|yaml)\/|\/src\/admin\/(handler|route|keys)\.ts$/;
  const before = await loadedBy();
  assert.ok(before.some((url) => url.endsWith('/src/http/data-plane.ts')));
  assert.deepEqual(
    before.filter((url) => ofAdmin.test(url)),
    [],
  );
  const { status } = await fetch(`${admin}/healthz`);
  assert.equal(status, 200);
  const after = await loadedBy();
  assert.ok(after.some((url) => url.endsWith('/src/admin/handler.ts')));
});
