/** Gateways that serve both planes over TLS: calls, commands, and certificates that change (S9, S19, G15). */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect, type TLSSocket } from 'node:tls';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import type { JsonObject } from '../../src/json/value.ts';
import { Instance } from '../cluster/instance.ts';
import { type Certificates, makeCertificates, noOpenssl } from '../support/certificates.ts';
import { temporaryFolder } from '../support/folders.ts';
import { type Reply, send } from '../support/http.ts';
import { adminToken } from '../support/keys.ts';
import { until } from '../support/postgres-store.ts';
import { nodeEnvironment, programArguments } from '../support/program.ts';
import { findProgram } from '../support/server-process.ts';
import { ScriptedUpstream } from '../upstream/scripted.ts';
import { brokenness, scriptSlow, stream } from './streams.ts';

const run = promisify(execFile);
const hasOpenssl = findProgram(['openssl']) !== undefined;

interface Asked {
  readonly ca?: string;
  readonly client?: { readonly cert: string; readonly key: string };
}

describe('both planes over TLS', { skip: hasOpenssl ? false : noOpenssl, timeout: 300_000 }, () => {
  let upstream: ScriptedUpstream;
  let first: Certificates;
  let second: Certificates;
  before(async () => {
    upstream = await ScriptedUpstream.start();
    const [one, other] = await Promise.all([makeCertificates('one'), makeCertificates('other')]);
    assert.ok(one !== undefined && other !== undefined);
    first = one;
    second = other;
  });
  after(() => upstream.close());

  /** A directory with `tls/cert.pem` and `tls/key.pem`. */
  function directoryWith({ server, ca }: Certificates): string {
    const directory = temporaryFolder('tls');
    mkdirSync(join(directory, 'tls'));
    copyFileSync(server.cert, join(directory, 'tls/cert.pem'));
    copyFileSync(server.key, join(directory, 'tls/key.pem'));
    copyFileSync(ca, join(directory, 'tls/ca.pem'));
    return directory;
  }

  function start(directory: string, config: JsonObject = {}): Promise<Instance> {
    const tls = { cert: 'tls/cert.pem', key: 'tls/key.pem' };
    return Instance.start({
      storage: 'sqlite',
      upstream: upstream.port,
      directory,
      config: { tls, admin_tls: tls, ...config },
    });
  }

  async function open(url: string, { ca = first.ca, client }: Asked = {}): Promise<TLSSocket> {
    const { port } = new URL(url);
    const own =
      client === undefined
        ? {}
        : { cert: readFileSync(client.cert), key: readFileSync(client.key) };
    const socket = connect({
      port: Number(port),
      host: '127.0.0.1',
      servername: 'localhost',
      ca: readFileSync(ca),
      ...own,
    });
    await once(socket, 'secureConnect');
    return socket;
  }

  async function ask(url: string, path: string, body?: JsonObject, asked?: Asked): Promise<Reply> {
    const socket = await open(url, asked);
    const headers = { authorization: `Bearer ${adminToken}` };
    return send(url.replace('https:', 'http:') + path, body, { socket, headers });
  }

  async function makeKey(instance: Instance): Promise<string> {
    const { status, json } = await ask(instance.adminUrl, '/api/keys', {
      name: 'k',
      models: ['*'],
    });
    assert.equal(status, 201);
    return String(json['key']);
  }

  async function streamed(instance: Instance, key: string, model: string): Promise<Reply> {
    const socket = await open(instance.url);
    const plain = { url: instance.url.replace('https:', 'http:') };
    return stream({ instance: plain, key, dialect: 'chat', model, socket });
  }

  /** Of the certificate that a new connection is shown; it is not judged. */
  async function shown(url: string): Promise<string> {
    const { port } = new URL(url);
    const socket = connect({ port: Number(port), host: '127.0.0.1', rejectUnauthorized: false });
    await once(socket, 'secureConnect');
    const print = socket.getPeerX509Certificate()?.fingerprint256 ?? '';
    socket.destroy();
    return print;
  }

  function fingerprint(path: string): string {
    return new X509Certificate(readFileSync(path)).fingerprint256;
  }

  interface Ran {
    readonly stdout: string;
    readonly stderr: string;
    readonly code?: number;
  }

  function command(
    cwd: string,
    args: readonly string[],
    env: NodeJS.ProcessEnv = {},
  ): Promise<Ran> {
    const options = { cwd, env: { PATH: process.env['PATH'], ...nodeEnvironment, ...env } };
    return run(process.execPath, programArguments(args), options).catch((error: Ran) => error);
  }

  test('S9 calls, the admin API and the commands are served; a wrong authority is refused', async () => {
    const directory = directoryWith(first);
    const instance = await start(directory);
    assert.match(instance.url, /^https:/);
    assert.match(instance.adminUrl, /^https:/);
    const key = await makeKey(instance);
    scriptSlow(upstream, 'quick', () => Promise.resolve());
    assert.equal(brokenness('chat', await streamed(instance, key, 'up/quick')), undefined);
    await assert.rejects(ask(instance.url, '/v1/models', undefined, { ca: first.stranger }));
    await assert.rejects(send(instance.url.replace('https:', 'http:'), undefined));

    // By the files of the directory, which name its certificate.
    const env = { MODEL_GATEWAY_DATA_DIR: join(directory, 'data') };
    const status = await command(tmpdir(), ['status', '--json'], env);
    assert.match(status.stdout, /"url": "https:\/\/127\.0\.0\.1/, status.stderr);
    // By the address and the certificate of a config and the admin token.
    const elsewhere = directoryWith(first);
    const { host } = new URL(instance.adminUrl);
    const config = { admin_listen: host, admin_tls: { cert: 'tls/cert.pem', key: 'tls/key.pem' } };
    writeFileSync(join(elsewhere, 'gateway.yaml'), JSON.stringify(config));
    const token = { MODEL_GATEWAY_ADMIN_TOKEN: adminToken };
    const keys = await command(elsewhere, ['keys', 'list'], token);
    assert.match(keys.stdout, /\bk\b/, keys.stderr);
    // S19: another certificate is not trusted, and gets no token.
    copyFileSync(second.server.cert, join(elsewhere, 'tls/cert.pem'));
    const refused = await command(elsewhere, ['keys', 'list'], token);
    assert.notEqual(refused.code ?? 0, 0);
    assert.equal(await instance.stop(), 0, instance.log);
    assert.doesNotMatch(instance.log, /PRIVATE KEY|CERTIFICATE/);
  });

  for (const workers of [1, 2]) {
    test(`G15 ${workers} workers: another certificate is served without a restart, and a wrong one is not`, async () => {
      const directory = directoryWith(first);
      const instance = await start(directory, { workers });
      const key = await makeKey(instance);
      const gate = Promise.withResolvers<void>();
      let begun = false;
      scriptSlow(upstream, `held-${workers}`, () => {
        begun = true;
        return gate.promise;
      });
      const running = streamed(instance, key, `up/held-${workers}`);
      await until(() => begun, 'the stream has begun');
      const now = fingerprint(first.server.cert);
      assert.deepEqual([await shown(instance.url), await shown(instance.adminUrl)], [now, now]);

      // Half of a new pair is refused as a whole, and so is what is no certificate.
      writeFileSync(join(directory, 'tls/cert.pem'), 'no certificate\n');
      await until(() => instance.log.includes('is not a PEM file'), 'it is refused');
      assert.match(instance.log, /tls\.cert: the certificate tls\/cert\.pem is not a PEM file/);
      assert.deepEqual([await shown(instance.url), await shown(instance.adminUrl)], [now, now]);

      copyFileSync(second.server.key, join(directory, 'tls/key.pem'));
      copyFileSync(second.server.cert, join(directory, 'tls/cert.pem'));
      const next = fingerprint(second.server.cert);
      await until(async () => (await shown(instance.adminUrl)) === next, 'the admin plane has it');
      for (let i = 0; i < 8; i++) assert.equal(await shown(instance.url), next);
      const env = { MODEL_GATEWAY_DATA_DIR: join(directory, 'data') };
      assert.equal((await command(tmpdir(), ['status'], env)).code ?? 0, 0);

      gate.resolve();
      assert.equal(brokenness('chat', await running), undefined);
      assert.equal(await instance.stop(), 0, instance.log);
    });
  }

  test('S9 an admin plane for clients with a certificate: commands show theirs', async () => {
    const directory = directoryWith(first);
    const admin_tls = { cert: 'tls/cert.pem', key: 'tls/key.pem', client_ca: 'tls/ca.pem' };
    const instance = await start(directory, { admin_tls });
    const { client } = first;
    const { status } = await ask(instance.adminUrl, '/api/status', undefined, { client });
    assert.equal(status, 200);
    await assert.rejects(ask(instance.adminUrl, '/healthz'));
    const env = { MODEL_GATEWAY_DATA_DIR: join(directory, 'data') };
    const without = await command(tmpdir(), ['status'], env);
    assert.equal(without.code, 1);
    assert.match(without.stderr, /Set MODEL_GATEWAY_CLIENT_CERT and MODEL_GATEWAY_CLIENT_KEY/);
    const own = { MODEL_GATEWAY_CLIENT_CERT: client.cert, MODEL_GATEWAY_CLIENT_KEY: client.key };
    const found = await command(tmpdir(), ['status'], { ...env, ...own });
    assert.match(found.stdout, /data plane +https:/, found.stderr);
    // Without the authority the same listener would take any certificate: that is for the next start.
    const config = JSON.parse(readFileSync(join(directory, 'gateway.yaml'), 'utf8')) as JsonObject;
    const changed = { ...config, admin_tls: { cert: 'tls/cert.pem', key: 'tls/key.pem' } };
    writeFileSync(join(directory, 'gateway.yaml'), JSON.stringify(changed));
    await until(() => instance.log.includes('config_needs_restart'), 'it is told');
    await assert.rejects(ask(instance.adminUrl, '/healthz'));
    assert.equal(await instance.stop(), 0, instance.log);
  });
});
