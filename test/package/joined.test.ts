/** What `npm ci` makes of src/ in a clone: few files, which answer as the modules one by one do. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync,
  cpSync,
  readdirSync,
  readFileSync,
  realpathSync,
  symlinkSync,
} from 'node:fs';
import { join, relative } from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { tryParse } from '../../src/json/parse.ts';
import { temporaryFolder } from '../support/folders.ts';
import { send } from '../support/http.ts';
import { clientKey } from '../support/keys.ts';
import { whenLoaded } from '../support/loaded.ts';
import { readDocument } from '../support/reading.ts';
import { root } from './pack.ts';

const skip = process.platform === 'win32' ? 'left out: the launcher is a POSIX script' : false;

/** What a process and those that it has started run (Linux). */
function filesRunBy(pid: number): readonly string[] {
  const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
  const started = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').match(/\d+/g) ?? [];
  const own = words.find((word) => word.endsWith('.js') || word.endsWith('.ts')) ?? '';
  return [own, ...started.flatMap((child) => filesRunBy(Number(child)))];
}

test(
  'issue 25.4: a clone starts the joined program: with its store, its workers, its engine and its admin server',
  { skip, timeout: 200_000 },
  async (t) => {
    const folder = realpathSync(temporaryFolder('joined'));
    for (const name of ['bin', 'docs', 'models', 'package.json', 'scripts', 'src']) {
      cpSync(join(root, name), join(folder, name), { recursive: true });
    }
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
    const build = join(folder, 'scripts', 'build-program.mjs');
    const built = spawnSync(process.execPath, [build], { encoding: 'utf8' });
    assert.equal(built.status, 0, built.stderr);
    assert.equal(built.stderr, '');
    const saved = readdirSync(join(folder, 'dist', 'program')).filter((name) =>
      name.endsWith('.code'),
    );
    assert.ok(
      readdirSync(join(folder, 'dist', 'program')).some((name) =>
        name.startsWith('engine-library-'),
      ),
      'the engine has its library in one file',
    );
    assert.match(saved.join(), /^main-[\w-]{8}\.cjs\.\w+\.code$/);

    const launcher = join(folder, 'bin', 'model-gateway');
    const env = {
      PATH: process.env['PATH'],
      HOME: folder,
      MODEL_GATEWAY_KEY: clientKey,
      NODE_COMPILE_CACHE: join(folder, 'compiled'),
    };
    const listen = ['--listen', '127.0.0.1:0', '--admin-listen', '127.0.0.1:0'];
    const options = ['--data-dir', join(folder, 'data'), '--workers', '2', ...listen];
    const gateway = spawn(launcher, ['start', ...options], {
      cwd: folder,
      env,
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    t.after(async () => {
      gateway.kill('SIGKILL');
      if (gateway.exitCode === null && gateway.signalCode === null) await once(gateway, 'exit');
    });
    const urls: string[] = [];
    for await (const line of createInterface({ input: gateway.stdout })) {
      const url = /^(?:listening|admin) (http:\S+)/.exec(line)?.[1];
      if (url !== undefined && urls.push(url) === 2) break;
    }
    const [url = '', adminUrl = ''] = urls;
    const call = { model: 'local/tiny', messages: [{ role: 'user', content: 'Hi' }] };
    const reply = await whenLoaded(() =>
      send(`${url}/v1/chat/completions`, { ...call, max_tokens: 2 }),
    );
    assert.equal(reply.status, 200, reply.text);
    // The engine's library is joined in part: what the engine calls of it is there.
    const schema = { type: 'object', properties: { a: { enum: [7] } }, required: ['a'] };
    const shaped = await send(`${url}/v1/chat/completions`, {
      ...call,
      response_format: { type: 'json_schema', json_schema: { name: 'a', schema } },
      logit_bias: { 5: 1 },
    });
    assert.equal(shaped.status, 200, shaped.text);
    assert.deepEqual(tryParse(readDocument('chat', shaped.json).text), { a: 7 });
    assert.equal((await send(`${adminUrl}/api/status`, undefined)).status, 401);
    if (process.platform === 'linux') {
      assert.deepEqual(
        filesRunBy(gateway.pid ?? 0)
          .map((file) =>
            relative(join(folder, 'dist', 'program'), file).replace(/(-[\w-]{8})?\.js$/, ''),
          )
          .sort(),
        ['compose/host/worker-main', 'compose/host/worker-main', 'engine/main', 'main'],
      );
    }
    gateway.kill('SIGTERM');
    await once(gateway, 'exit');
    assert.equal(gateway.exitCode, 0);

    const { stdout } = spawnSync(launcher, ['version'], { env, encoding: 'utf8' });
    assert.match(stdout, /\d+\.\d+\.\d+/);

    // Otherwise two builds at once, or a start during one, would mix files of both.
    const before = contents(join(folder, 'dist', 'program'));
    const ofThread = join(folder, 'src', 'store', 'sqlite', 'worker.ts');
    appendFileSync(ofThread, "\nprocess.title = 'another';\n");
    assert.equal(spawnSync(process.execPath, [build]).status, 0);
    const after = contents(join(folder, 'dist', 'program'));
    const changed = [...before].filter(([name, text]) => after.get(name) !== text);
    assert.deepEqual(
      changed.map(([name]) => name),
      ['main.js'],
      'of the files of a build, another one replaces only main.js',
    );
    const added = [...after].filter(([name]) => !before.has(name));
    assert.ok(added.some(([, text]) => text.includes("'another'") || text.includes('"another"')));

    appendFileSync(build, '\n// Another way to join.\n');
    assert.equal(spawnSync(process.execPath, [build]).status, 0);
    const names = [...contents(join(folder, 'dist', 'program')).keys()];
    assert.ok(
      names.some((name) => !after.has(name)),
      'a build by a changed script has names of its own',
    );
  },
);

/** Each file of a folder. */
function contents(folder: string): ReadonlyMap<string, string> {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  const files = names.filter((name) => /\.c?js$/.test(name));
  return new Map(files.map((name) => [name, readFileSync(join(folder, name), 'utf8')]));
}
