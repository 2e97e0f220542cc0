/** The examples of proxies with the real programs: streams, addresses, and gateways replaced under load (G14). */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { connect as connectTcp } from 'node:net';
import { join } from 'node:path';
import { connect, type TLSSocket } from 'node:tls';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Instance } from '../cluster/instance.ts';
import { brokenness, scriptSlow, stream } from '../lifecycle/streams.ts';
import { type Certificates, makeCertificates } from '../support/certificates.ts';
import { clientDialects } from '../support/dialects.ts';
import { temporaryFolder } from '../support/folders.ts';
import { type Reply, send, type Sending } from '../support/http.ts';
import { clientKey } from '../support/keys.ts';
import { findProgram, freePort, ServerProcess } from '../support/server-process.ts';
import { ScriptedUpstream } from '../upstream/scripted.ts';

const examples = join(import.meta.dirname, '../../deploy/proxies');

/** Where an example runs in a test, in place of what it names. */
interface Site {
  /** Its own, for configuration and what it writes. */
  readonly folder: string;
  readonly port: number;
  /** Addresses of the two gateways. */
  readonly gateways: readonly [string, string];
  readonly certificate: { readonly cert: string; readonly key: string };
}

interface Proxy {
  readonly name: string;
  readonly program: string | undefined;
  /** Debian's name of it. */
  readonly from: string;
  /** Writes the example as it runs here. @returns arguments of the program */
  write(site: Site): readonly string[];
}

const proxies: readonly Proxy[] = [
  { name: 'nginx', program: findProgram(['nginx']), from: 'nginx-light', write: writeNginx },
  { name: 'Caddy', program: findProgram(['caddy']), from: 'caddy', write: writeCaddy },
];

/** The example with each of these texts replaced. */
function adapted(file: string, places: readonly (readonly [from: string, to: string])[]): string {
  return places.reduce(
    (text, [from, to]) => {
      assert.ok(text.includes(from), from);
      return text.replace(from, to);
    },
    readFileSync(join(examples, file), 'utf8'),
  );
}

function writeNginx({ folder, port, gateways, certificate }: Site): readonly string[] {
  const site = adapted('nginx.conf', [
    ['10.0.0.11:8686', gateways[0]],
    ['10.0.0.12:8686', gateways[1]],
    ['listen 443 ssl', `listen 127.0.0.1:${port} ssl`],
    ['/etc/nginx/tls/ai.example.com.crt', certificate.cert],
    ['/etc/nginx/tls/ai.example.com.key', certificate.key],
    ['server_name ai.example.com', 'server_name localhost'],
  ]);
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (kind) => `${kind}_temp_path ${folder}/${kind};`,
  );
  const file = join(folder, 'nginx.conf');
  writeFileSync(
    file,
    `daemon off; pid ${folder}/pid; error_log stderr error; worker_processes 1;
events { worker_connections 512; }
http { access_log off; ${temporary.join(' ')}\n${site}\n}\n`,
  );
  return ['-p', folder, '-e', 'stderr', '-c', file];
}

function writeCaddy({ folder, port, gateways, certificate }: Site): readonly string[] {
  const site = adapted('Caddyfile', [
    ['10.0.0.11:8686', gateways[0]],
    ['10.0.0.12:8686', gateways[1]],
    [
      'ai.example.com {',
      `https://localhost:${port}, https://127.0.0.1:${port} {\n\tbind 127.0.0.1\n\ttls ${certificate.cert} ${certificate.key}`,
    ],
  ]);
  const file = join(folder, 'Caddyfile');
  const own = `admin off\n\tstorage file_system ${folder}\n\tauto_https disable_redirects`;
  writeFileSync(file, `{\n\t${own}\n\tlog {\n\t\tlevel WARN\n\t}\n}\n${site}`);
  return ['run', '--adapter', 'caddyfile', '--config', file];
}

/** Each key by the name that the gateways know it by; `far` may only be used from 127.0.0.9. */
const keys = { near: clientKey, far: 'test-key-of-one-address-0123456789' };

for (const each of proxies) {
  const missing =
    each.program === undefined || findProgram(['openssl']) === undefined
      ? `${each.name} or openssl is not on this machine (apt-get install ${each.from} openssl)`
      : false;
  describe(`${each.name} as in deploy/proxies`, { skip: missing, timeout: 300_000 }, () => {
    playWith(each);
  });
}

function playWith({ program, write }: Proxy): void {
  let upstream: ScriptedUpstream;
  let certificates: Certificates;
  let proxy: ServerProcess;
  const folder = temporaryFolder('proxy');
  const places: { listen: string; instance: Instance }[] = [];
  let url = '';
  let port = 0;

  before(async () => {
    upstream = await ScriptedUpstream.start();
    const made = await makeCertificates('someone');
    assert.ok(made !== undefined && program !== undefined);
    certificates = made;
    for (let i = 0; i < 2; i++) {
      const listen = `127.0.0.1:${await freePort()}`;
      places.push({ listen, instance: await startPlace(listen) });
    }
    port = await freePort();
    const [first = '', second = ''] = places.map(({ listen }) => listen);
    const certificate = certificates.server;
    const args = write({ folder, port, gateways: [first, second], certificate });
    spawnSync('chmod', ['-R', '777', folder]);
    proxy = new ServerProcess(program, args);
    await proxy.untilReady(() => listens(port));
    url = `http://127.0.0.1:${port}`;
  });
  after(async () => {
    await proxy?.end('SIGQUIT');
    for (const { instance } of places) {
      await instance.stop();
    }
    await upstream?.close();
  });

  function startPlace(listen: string, directory?: string): Promise<Instance> {
    const digest = (key: string): string =>
      `sha256:${createHash('sha256').update(key).digest('hex')}`;
    return Instance.start({
      storage: 'sqlite',
      upstream: upstream.port,
      listen,
      drain: { wait: '5s', limit: '2m' },
      config: {
        trusted_proxies: ['127.0.0.1'],
        keys: {
          near: { digest: digest(keys.near), models: ['*'] },
          far: { digest: digest(keys.far), models: ['*'], cidrs: ['127.0.0.9'] },
        },
      },
      ...(directory === undefined ? {} : { directory }),
    });
  }

  async function open(from = '127.0.0.1'): Promise<TLSSocket> {
    const socket = connectTcp({ port, host: '127.0.0.1', localAddress: from });
    const ca = readFileSync(certificates.ca);
    const secure = connect({ socket, servername: 'localhost', ca });
    await once(secure, 'secureConnect');
    return secure;
  }

  async function ask(path: string, body?: unknown, sending: Sending = {}): Promise<Reply> {
    return send(url + path, body, { socket: await open(), ...sending });
  }

  test('a stream comes as it is made, not at its end', async () => {
    const gate = Promise.withResolvers<void>();
    scriptSlow(upstream, 'held', () => gate.promise);
    // The end is made only when the beginning has come.
    const reply = await stream({
      instance: { url },
      key: keys.near,
      dialect: 'chat',
      model: 'up/held',
      socket: await open(),
      onData: () => gate.resolve(),
    });
    assert.equal(brokenness('chat', reply), undefined);
  });

  test('the gateway sees the address of the client, and none that it says of itself', async () => {
    const headers = { authorization: `Bearer ${keys.far}`, 'x-forwarded-for': '127.0.0.9' };
    const forged = await ask('/v1/models', undefined, { headers });
    assert.equal(forged.status, 403, forged.text);
    const socket = await open('127.0.0.9');
    const { status, text } = await ask('/v1/models', undefined, { headers, socket });
    assert.equal(status, 200, text);
  });

  test('a long body goes through, and one that is too long is refused by the gateway or before it', async () => {
    const long = (megabytes: number): object => ({
      model: 'up/none',
      messages: [{ role: 'user', content: 'x'.repeat(megabytes * 1024 * 1024) }],
    });
    const headers = { authorization: `Bearer ${keys.near}` };
    const taken = await ask('/v1/chat/completions', long(5), { headers });
    assert.notEqual(taken.status, 413);
    const refused = await ask('/v1/chat/completions', long(33), { headers }).catch(() => undefined);
    assert.ok(refused === undefined || refused.status === 413, refused?.text);
  });

  test('G14 both gateways are restarted under load: no stream breaks, no call is refused', async () => {
    let turn = 0;
    scriptSlow(upstream, 'slow', () => sleep(200 + ((turn * 137) % 800)));
    const broken: string[] = [];
    const restarts = { over: false };
    let ended = 0;
    const client = async (number: number): Promise<void> => {
      while (!restarts.over) {
        turn += 1;
        const dialect = clientDialects[number % clientDialects.length] ?? 'chat';
        const socket = await open();
        const call = { instance: { url }, key: keys.near, dialect, model: 'up/slow', socket };
        const reply = await stream(call).catch(String);
        const problem = typeof reply === 'string' ? reply : brokenness(dialect, reply);
        if (problem !== undefined) broken.push(problem);
        ended += 1;
      }
    };
    const calling = Promise.all(Array.from({ length: 8 }, (_, number) => client(number)));
    for (const place of places) {
      const old = place.instance;
      assert.equal(await old.stop(), 0, old.log);
      place.instance = await startPlace(place.listen, old.directory);
      // It is out of nginx' turn for fail_timeout after the first connection that it did not take; Caddy asks each second.
      await sleep(5500);
    }
    restarts.over = true;
    await calling;
    assert.deepEqual(broken, [], proxy.said);
    assert.ok(ended >= 100, `${ended} streams`);
  });
}

async function listens(port: number): Promise<boolean> {
  const socket = connectTcp(port, '127.0.0.1');
  const outcome = await Promise.race([
    once(socket, 'connect').then(() => true),
    once(socket, 'error').then(() => false),
  ]).catch(() => false);
  socket.destroy();
  return outcome;
}
