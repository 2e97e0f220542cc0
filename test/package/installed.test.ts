/** The package that `npm pack` makes, installed with `npm install` somewhere else: it starts and answers from there. */
import assert from 'node:assert/strict';
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { clientDialects } from '../support/dialects.ts';
import { removeFolder, temporaryFolder } from '../support/folders.ts';
import { send } from '../support/http.ts';
import { clientKey } from '../support/keys.ts';
import { whenLoaded } from '../support/loaded.ts';
import { endpointOf, requestBody } from '../support/requests.ts';
import { npm, packedOnce, root } from './pack.ts';
import { type Installed, startRegistry } from './registry.ts';

/**
 * What the registry has and is not installed here: engine builds of this platform and of another, and a package of
 * Google's library that the overrides of a clone replace. An installed package has no overrides.
 */
function notInstalledHere(folder: string): readonly Installed[] {
  const here = { os: [process.platform], cpu: [process.arch] };
  const builds = {
    'linux-riscv64': { os: ['linux'], cpu: ['riscv64'] },
    'linux-x64-cuda': here,
    'linux-x64-cuda-ext': here,
    'linux-x64-vulkan': here,
  };
  const manifests = Object.entries(builds).map(([name, platform]) => {
    return { name: `@node-llama-cpp/${name}`, version: '3.21.1', ...platform };
  });
  return [...manifests, { name: 'web-streams-polyfill', version: '3.3.3' }].map((manifest) => {
    const place = join(folder, 'builds', manifest.name);
    mkdirSync(place, { recursive: true });
    writeFileSync(join(place, 'package.json'), JSON.stringify(manifest));
    return { folder: place, manifest };
  });
}

describe('the installed package', { timeout: 500_000 }, () => {
  const folder = temporaryFolder('installed');
  const project = join(folder, 'project');
  const program = join(project, 'node_modules', '.bin', 'model-gateway');
  const env = {
    // As npx sets it.
    PATH: `${dirname(program)}:${join(root, 'node_modules', '.bin')}:${process.env['PATH'] ?? ''}`,
    HOME: folder,
    MODEL_GATEWAY_KEY: clientKey,
  };
  let gateway: ChildProcess | undefined;
  let said = '';

  before(async () => {
    const { tarball } = await packedOnce();
    mkdirSync(project);
    writeFileSync(join(project, 'package.json'), '{"private":true}');
    const registry = await startRegistry(root, notInstalledHere(folder));
    try {
      const args = ['install', tarball, '--no-audit', '--no-fund', '--registry', registry.url];
      await npm(project, folder, args);
    } finally {
      registry.close();
    }
  });

  after(async () => {
    if (gateway !== undefined && gateway.exitCode === null && gateway.signalCode === null) {
      const closed = once(gateway, 'close');
      gateway.kill('SIGKILL');
      await closed;
    }
    removeFolder(folder);
  });

  test('it brings one build of the engine, without CUDA and Vulkan, and no Node', () => {
    const modules = join(project, 'node_modules');
    const builds = readdirSync(join(modules, '@node-llama-cpp'));
    assert.ok(builds.length > 0);
    assert.deepEqual(
      builds.filter((name) => /cuda|vulkan/.test(name)),
      [],
    );
    assert.ok(!readdirSync(modules).some((name) => /^node-(bin-)?(linux|darwin|win)-/.test(name)));
  });

  test('it is JavaScript only, and every command explains itself', () => {
    assert.ok(!existsSync(join(project, 'node_modules', 'model-gateway', 'src')));
    const help = spawnSync(program, ['help'], { env, encoding: 'utf8' });
    assert.equal(help.status, 0, help.stderr);
    const commands = [...help.stdout.matchAll(/^ {2}([a-z]+) {2}/gm)].map(([, name = '']) => name);
    assert.ok(commands.length > 10, help.stdout);
    for (const name of commands) {
      const { status, stdout, stderr } = spawnSync(program, [name, '--help'], {
        env,
        encoding: 'utf8',
      });
      assert.equal(status, 0, `${name}: ${stderr}`);
      assert.match(stdout, /^Usage: model-gateway /m);
    }
  });

  test('issue 8.1 it answers on each endpoint from its own model, serves its dashboard, and stops with 0', async () => {
    const started = spawn(program, ['start', '--listen', ':0', '--admin-listen', ':0'], {
      cwd: project,
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    gateway = started;
    const url = await new Promise<string>((resolve, reject) => {
      for (const stream of [started.stdout, started.stderr]) {
        stream.setEncoding('utf8').on('data', (text: string) => {
          said += text;
          const found = /^listening (\S+)$/m.exec(said)?.[1];
          if (found !== undefined && said.includes('More clients')) resolve(found);
        });
      }
      started.once('close', () => reject(new Error(said)));
    });
    assert.match(said, /^More clients: npx model-gateway connect CLIENT$/m);
    for (const dialect of clientDialects) {
      const body = requestBody(dialect, { model: 'local/tiny', stream: false });
      const reply = await whenLoaded(() => send(`${url}${endpointOf[dialect]}`, body));
      assert.equal(reply.status, 200, `${reply.text}\n${said}`);
      assert.equal(reply.headers['x-gateway-target'], 'local/tiny');
    }
    const admin = /^admin (http\S+)$/m.exec(said)?.[1] ?? '';
    const page = await fetch(`${admin}/`);
    const html = await page.text();
    assert.equal(page.status, 200, html);
    const [script = ''] = /\/assets\/[^"]+\.js/.exec(html) ?? [];
    assert.match(html, /<div id="root">/, 'the page that says how to build it is another one');
    const code = await fetch(`${admin}${script}`);
    assert.match(code.headers.get('content-type') ?? '', /javascript/);
    await code.arrayBuffer();
    const closed = once(started, 'close');
    started.kill('SIGTERM');
    assert.deepEqual(await closed, [0, null], said);
  });
});
