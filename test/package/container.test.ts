/** The image of deploy/container, built and run: what is in it, a call, the health check, and a drain by SIGTERM (G14, S25). */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { cpSync, globSync, lstatSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { tryParseObject } from '../../src/json/parse.ts';
import type { JsonObject } from '../../src/json/value.ts';
import { brokenness, scriptSlow, stream } from '../lifecycle/streams.ts';
import { send } from '../support/http.ts';
import { clientKey } from '../support/keys.ts';
import { whenLoaded } from '../support/loaded.ts';
import { until } from '../support/postgres-store.ts';
import { freePort } from '../support/server-process.ts';
import { ScriptedUpstream } from '../upstream/scripted.ts';
import { Container, Images, missing } from './images.ts';
import { packedOnce, root } from './pack.ts';

const megabyte = 1_000_000;
const recipe = readFileSync(join(root, 'deploy/container/Containerfile'), 'utf8');

test('the Containerfile is of this version, and its last stage needs no shell', () => {
  const manifest = tryParseObject(readFileSync(join(root, 'package.json'), 'utf8')) ?? {};
  assert.equal(/^ARG VERSION=(.*)$/m.exec(recipe)?.[1], manifest['version']);
  assert.match(recipe, /^ARG NODE_IMAGE=docker\.io\/library\/node:26-/m);
  const last = recipe.slice(recipe.lastIndexOf('\nFROM '));
  assert.match(last, /^\nFROM scratch\n/);
  assert.doesNotMatch(last, /^RUN /m);
  for (const [, form = ''] of last.matchAll(/^(?:ENTRYPOINT|CMD|\s+CMD) (.)/gm)) {
    assert.equal(form, '[', 'the shell form runs a shell');
  }
});

describe('the images', { skip: missing, timeout: 900_000 }, () => {
  const images = new Images();
  let upstream: ScriptedUpstream;
  let count = 0;

  before(async () => {
    upstream = await ScriptedUpstream.start();
    const { tarball } = await packedOnce();
    const context = join(images.folder, 'context');
    mkdirSync(context);
    cpSync(tarball, join(context, 'model-gateway-0.0.0.tgz'));
    cpSync(join(root, 'package-lock.json'), join(context, 'package-lock.json'));
    await images.makeBase();
    await images.build('localhost/whole', 'yes', context);
    await images.build('localhost/small', 'no', context);
  });
  after(async () => {
    await upstream?.close();
    await images.remove();
  });

  async function start(name: string, more: JsonObject = {}): Promise<[Container, string]> {
    count += 1;
    const folder = join(images.folder, `container-${count}`);
    const mounts = {
      '/etc/model-gateway': join(folder, 'config'),
      '/var/lib/model-gateway': join(folder, 'data'),
    };
    for (const each of Object.values(mounts)) mkdirSync(each, { recursive: true });
    const port = await freePort();
    const digest = createHash('sha256').update(clientKey).digest('hex');
    const config = {
      listen: `127.0.0.1:${port}`,
      admin_listen: '127.0.0.1:0',
      drain: { wait: '1s', limit: '1m' },
      keys: { test: { digest: `sha256:${digest}`, models: ['*'] } },
      ...more,
    };
    writeFileSync(join(folder, 'config/gateway.yaml'), JSON.stringify(config), { mode: 0o644 });
    const files = await images.filesOf(name);
    const options = { args: ['start'], mounts };
    const container = new Container(images.folder, files, await images.configOf(name), options);
    const url = `http://127.0.0.1:${port}`;
    const isReady = async (): Promise<boolean> => {
      assert.ok(container.running, container.said);
      return (await status(url)) === 200;
    };
    await until(isReady, 'it is ready');
    return [container, url];
  }

  async function status(url: string): Promise<number> {
    const reply = await send(`${url}/readyz`, undefined, { anonymous: true }).catch(
      () => undefined,
    );
    return reply?.status ?? 0;
  }

  for (const [name, most] of [
    ['localhost/whole', 300],
    ['localhost/small', 150],
  ] as const) {
    test(`${name} has at most ${most} MB, no shell, no program that gives rights, and a user`, async () => {
      const files = await images.filesOf(name);
      const paths = globSync('**/*', { cwd: files }).map((path) => join(files, path));
      const stats = paths.map((path) => lstatSync(path));
      const bytes = stats.reduce((sum, each) => sum + (each.isFile() ? each.size : 0), 0);
      assert.ok(bytes <= most * megabyte, `${bytes} bytes`);
      assert.ok(bytes > 100 * megabyte, 'Node alone is larger');
      assert.deepEqual(
        paths.filter((path) => /\/(ba|da|a|z)?sh$|\/busybox$|\/npm$/.test(path)),
        [],
      );
      assert.deepEqual(
        paths.filter((_, i) => stats[i]?.isFile() === true && (stats[i].mode & 0o6000) !== 0),
        [],
      );
      const config = await images.configOf(name);
      assert.equal(config['User'], '65532:65532');
      const labels = config['Labels'] as JsonObject;
      assert.equal(labels['org.opencontainers.image.title'], 'Model Gateway');
      assert.ok(config['Healthcheck'] !== undefined);
    });
  }

  test('the whole image answers by its own model, without rights, on files that nothing can change', async () => {
    const [container, url] = await start('localhost/whole');
    const headers = { authorization: `Bearer ${clientKey}` };
    const body = { model: 'local/tiny', messages: [{ role: 'user', content: 'Say hello.' }] };
    const reply = await whenLoaded(() => send(`${url}/v1/chat/completions`, body, { headers }));
    assert.equal(reply.status, 200, reply.text + container.said);
    const written = container.exec(['node', '-e', "fs.writeFileSync('/app/written', '')"]);
    assert.match(written.text, /EROFS/);
    const rights = container.exec(['node', '-p', "fs.readFileSync('/proc/1/status', 'utf8')"]);
    assert.match(rights.text, /^Uid:\t65532\t65532/m);
    assert.match(rights.text, /^CapEff:\t0+$/m);
    assert.notEqual(container.exec(['sh', '-c', 'true']).status, 0);
    // What the banner says to run does run here.
    assert.match(container.said, /^More clients: model-gateway connect CLIENT$/m);
    const listed = container.exec(['model-gateway', 'keys', 'list']);
    assert.equal(listed.status, 0, listed.text);
    assert.match(listed.text, /^test +test +active/m);
    container.signal('SIGTERM');
    assert.equal(await container.end(), 0, container.said);
  });

  test('G14 the small image offers no local model, says its health, and drains on SIGTERM', async () => {
    const gate = Promise.withResolvers<void>();
    scriptSlow(upstream, 'held', () => gate.promise);
    const base_url = `http://127.0.0.1:${upstream.port}/v1`;
    const up = { dialect: 'openai-chat', base_url, api_key: 'a-key' };
    const [container, url] = await start('localhost/small', {
      providers: { up },
      models: { held: 'up/held' },
      // Longer than the signal and the first question behind it take on a busy machine.
      drain: { wait: '10s', limit: '1m' },
    });
    const headers = { authorization: `Bearer ${clientKey}` };
    const { text } = await send(`${url}/v1/models`, undefined, { headers });
    assert.match(text, /"held"/);
    assert.doesNotMatch(text, /local\//);
    const { Test: check } = (await images.configOf('localhost/small'))['Healthcheck'] as JsonObject;
    assert.ok(Array.isArray(check) && check[0] === 'CMD');
    const health = container.exec(check.slice(1).map(String));
    assert.equal(health.status, 0, health.text);

    const began = Promise.withResolvers<void>();
    const call = { instance: { url }, key: clientKey, dialect: 'chat' as const, model: 'up/held' };
    const streaming = stream({ ...call, onData: () => began.resolve() });
    await began.promise;
    container.signal('SIGTERM');
    await until(async () => (await status(url)) === 503, 'it says that it stops', 60_000);
    // The port closes: what runs still goes on.
    await until(async () => (await status(url)) === 0, 'its port is closed', 60_000);
    assert.ok(container.running);
    gate.resolve();
    assert.equal(brokenness('chat', await streaming), undefined);
    assert.equal(await container.end(), 0, container.said);
  });
});
