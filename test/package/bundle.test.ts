/** The program in a single file: made, started in a folder with nothing else, called, asked by its commands, and stopped. */
import assert from 'node:assert/strict';
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { legalFrames } from '../faults/stream-pieces.ts';
import { clientDialects } from '../support/dialects.ts';
import { removeFolder, temporaryFolder } from '../support/folders.ts';
import { send } from '../support/http.ts';
import { adminToken, clientKey } from '../support/keys.ts';
import { until } from '../support/postgres-store.ts';
import { endpointOf, requestBody } from '../support/requests.ts';
import { ScriptedUpstream } from '../upstream/scripted.ts';
import { packedOnce, root } from './pack.ts';

function whatIsMissing(): string | false {
  if (process.platform !== 'linux') return 'left out: it is made on Linux only';
  if (!existsSync(join(root, 'node_modules', 'postject')))
    return 'left out: postject is not installed (npm ci)';
  if (!readFileSync(process.execPath).includes('NODE_SEA_FUSE_'))
    return 'left out: this Node cannot carry a script inside';
  return false;
}

describe('the program in a single file', { skip: whatIsMissing(), timeout: 1_200_000 }, () => {
  const folder = temporaryFolder('bundle');
  const empty = join(folder, 'empty');
  const cache = join(folder, 'cache', 'model-gateway');
  const program = join(empty, 'model-gateway');
  const env = {
    PATH: '/usr/bin:/bin',
    HOME: folder,
    XDG_CACHE_HOME: join(folder, 'cache'),
    MODEL_GATEWAY_KEY: clientKey,
    MODEL_GATEWAY_ADMIN_TOKEN: adminToken,
  };
  let upstream: ScriptedUpstream;
  let gateway: ChildProcess | undefined;
  let said = '';

  const call = (...args: readonly string[]): string => {
    const { status, stdout, stderr } = spawnSync(program, args, {
      cwd: empty,
      env,
      encoding: 'utf8',
    });
    assert.equal(status, 0, `${args.join(' ')}\n${stdout}${stderr}`);
    return stdout;
  };

  before(async () => {
    upstream = await ScriptedUpstream.start();
    const frames = legalFrames('chat');
    upstream.script('plain', () => ({ body: [frames.join('')], framing: 'chunked' }));
    mkdirSync(empty);
    const { copy } = await packedOnce();
    const script = join(copy, 'scripts/bundle/make.mjs');
    const made = spawnSync(process.execPath, [script, '--no-build', '--out', program], {
      encoding: 'utf8',
    });
    assert.equal(made.status, 0, made.stdout + made.stderr);
  });

  after(async () => {
    if (gateway?.exitCode === null && gateway.signalCode === null) {
      const closed = once(gateway, 'close');
      gateway.kill('SIGKILL');
      await closed;
    }
    await upstream?.close();
    removeFolder(folder);
  });

  test('it unpacks its files once, for its user alone, and every package that it has can be loaded', () => {
    assert.match(call('--version'), /^model-gateway \d+\.\d+\.\d+\nnode v/);
    assert.match(call('--help'), /^Usage: model-gateway COMMAND/m);
    const [home = '', ...more] = readdirSync(cache);
    assert.deepEqual(more, []);
    const load = `const { dependencies } = require('./package.json');
      Promise.all(Object.keys(dependencies).map((name) => name === 'gpt-tokenizer' ? import('gpt-tokenizer/encoding/o200k_base') : import(name)))
        .then((all) => console.log(all.length), (error) => { console.error(error); process.exit(1); });`;
    const loaded = spawnSync(process.execPath, ['-e', load], {
      cwd: join(cache, home),
      encoding: 'utf8',
    });
    assert.equal(loaded.status, 0, loaded.stderr);
    assert.ok(!existsSync(join(cache, home, 'node_modules', 'node-llama-cpp')));
  });

  test('it serves all dialects in two processes, its dashboard, and answers its commands', async () => {
    const base_url = `http://127.0.0.1:${upstream.port}/v1`;
    const up = { dialect: 'openai-chat', base_url, api_key: 'a-key' };
    const config = { workers: 2, providers: { up }, models: { plain: 'up/plain' } };
    writeFileSync(join(empty, 'gateway.yaml'), JSON.stringify(config));
    const started = spawn(program, ['start', '--listen', ':0', '--admin-listen', ':0'], {
      cwd: empty,
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    gateway = started;
    for (const stream of [started.stdout, started.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => (said += text));
    }
    await until(
      () => {
        assert.equal(started.exitCode, null, said);
        return Promise.resolve(said.includes('"gateway_started"'));
      },
      'it is started',
      60_000,
    );
    const url = /^listening (\S+)$/m.exec(said)?.[1] ?? '';
    const admin = /^admin (http\S+)$/m.exec(said)?.[1] ?? '';
    for (const dialect of clientDialects) {
      const body = requestBody(dialect, { model: 'plain', stream: true });
      const reply = await send(`${url}${endpointOf[dialect]}`, body);
      assert.equal(reply.status, 200, `${reply.text}\n${said}`);
    }
    // Above 1 MiB a body is read in a thread.
    const long = { model: 'plain', messages: [{ role: 'user', content: 'word '.repeat(300_000) }] };
    const reply = await send(`${url}${endpointOf.chat}`, { ...long, stream: true });
    assert.equal(reply.status, 200, reply.text);
    const local = await send(`${url}${endpointOf.chat}`, { ...long, model: 'local/tiny' });
    assert.match(
      local.text,
      /This build has no engine for local models: use a model of a provider/,
    );

    const html = await (await fetch(`${admin}/`)).text();
    const [script = ''] = /\/assets\/[^"]+\.js/.exec(html) ?? [];
    const code = await fetch(`${admin}${script}`);
    assert.match(code.headers.get('content-type') ?? '', /javascript/, html);
    await code.arrayBuffer();
    assert.match(call('status'), /^ready +true$/m);
    assert.match(call('keys', 'create', '--name', 'ana', '--models', '*'), /gw_/);
    assert.match(call('models'), /plain/);
    assert.match(call('usage'), /^env +MODEL_GATEWAY_KEY /m);

    const closed = once(started, 'close');
    started.kill('SIGTERM');
    assert.deepEqual(await closed, [0, null], said);
    assert.doesNotMatch(said, /npx/, 'it is called by its own name');
  });

  test('files that others may have written are not run', () => {
    chmodSync(cache, 0o777);
    const { status, stderr } = spawnSync(program, ['--version'], {
      cwd: empty,
      env,
      encoding: 'utf8',
    });
    chmodSync(cache, 0o700);
    assert.equal(status, 1);
    assert.match(stderr, /others may write it/);
  });
});
