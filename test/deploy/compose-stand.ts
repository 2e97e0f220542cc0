/**
 * Starts the services of deploy/compose.yaml by stand-ins, calls them, replaces a gateway under load and stops them.
 * A program of compose.test.ts, in namespaces of its own. Its argument is an empty folder.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chownSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { parse } from 'yaml';
import { tryParse } from '../../src/json/parse.ts';
import { isObject, type JsonObject } from '../../src/json/value.ts';
import { whenLoaded } from '../support/loaded.ts';
import { until } from '../support/postgres-store.ts';
import { nodeEnvironment, programArguments } from '../support/program.ts';
import { findProgram, notRoot } from '../support/server-process.ts';
import { findCollector } from './collector.ts';
import {
  hostAddress,
  makeNetwork,
  nodeInside,
  openFolder,
  prefix,
  type Service,
  StandIn,
} from './stand-ins.ts';

const deploy = join(import.meta.dirname, '../../deploy');
const [folder = ''] = process.argv.slice(2);
const postgresFolders = globSync('/usr/lib/postgresql/*/bin').sort().toReversed();
const adminToken = 'a-token-of-the-compose-file-0123456789';
const postgresPassword = 'a-password-of-the-compose-file';

const whole: unknown = parse(readFileSync(join(deploy, 'compose.yaml'), 'utf8'), { merge: true });
const services = objectOf(objectOf(whole)['services']);
/** Without its program the collector is a server of this process. */
const otelcol = findCollector();
const absent = ['grafana', ...(otelcol === undefined ? ['otel-collector'] : [])];
const names = Object.keys(services).filter((name) => !absent.includes(name));

/** Users of the images. nginx begins as root, and its workers are not; so it is here. */
const nobody = { uid: 65534, gid: 65534 };
const gatewayUser = { uid: 65532, gid: 65532 };
const users: Readonly<Record<string, Service['user']>> = {
  gateway: gatewayUser,
  postgres: notRoot(),
  valkey: { uid: 999, gid: 999 },
  prometheus: nobody,
  'otel-collector': { uid: 10001, gid: 10001 },
};

function objectOf(value: unknown): JsonObject {
  assert.ok(isObject(value));
  return value;
}

function textsOf(value: unknown): readonly string[] {
  assert.ok(value === undefined || Array.isArray(value));
  return (value ?? []).map(String);
}

function program(...known: readonly string[]): string {
  const found = findProgram(known, postgresFolders);
  assert.ok(found !== undefined, known.join());
  return found;
}

/** As the images start their programs. */
const starts: Readonly<Record<string, (command: readonly string[]) => readonly string[]>> = {
  gateway: (command) => [nodeInside, ...programArguments(command)],
  nginx: () => {
    const own = 'daemon off; error_log stderr; pid /run/nginx.pid; events {}';
    const http = 'http { access_log off; include /etc/nginx/conf.d/default.conf; }';
    writeFileSync(join(folder, 'nginx.conf'), `${own}\n${http}\n`);
    return [program('nginx'), '-e', 'stderr', '-c', '/etc/nginx/compose.conf'];
  },
  postgres: () => {
    const data = '/var/lib/postgresql/data';
    return [program('postgres'), '-D', data, '-c', 'listen_addresses=*', '-c', 'fsync=off'];
  },
  valkey: ([, ...options]) => {
    const image = ['--dir', '/data', '--protected-mode', 'no'];
    return [program('valkey-server', 'redis-server'), ...options, ...image];
  },
  prometheus: (command) => [program('prometheus'), ...command],
  'otel-collector': (command) => [otelcol ?? '', ...command],
};

/** A new volume belongs to the user of the image, as its folder there does. */
function volume(path: string, user: Service['user']): string {
  mkdirSync(path, { recursive: true, mode: 0o755 });
  if (user !== undefined) chownSync(path, user.uid, user.gid);
  return path;
}

/** The database of the image: its first start makes it. */
function makeDatabase(data: string, env: JsonObject): void {
  const user = notRoot();
  assert.ok(user !== undefined);
  chownSync(data, user.uid, user.gid);
  const password = join(folder, 'password');
  writeFileSync(password, postgresPassword, { mode: 0o644 });
  const name = String(env['POSTGRES_USER']);
  const as = { ...user, stdio: ['pipe', 'pipe', 'pipe'] as ['pipe', 'pipe', 'pipe'] };
  const form = ['-E', 'UTF8', '--locale=C', '--no-sync', '--auth=scram-sha-256'];
  execFileSync(program('initdb'), ['-D', data, '-U', name, '--pwfile', password, ...form], as);
  writeFileSync(join(data, 'pg_hba.conf'), 'local all all trust\nhost all all all scram-sha-256\n');
  const single = ['--single', '-D', data, 'postgres'];
  const input = `CREATE DATABASE ${String(env['POSTGRES_DB'])}\n`;
  execFileSync(program('postgres'), single, { ...as, input });
}

function serviceOf(name: string, index: number): Service {
  const service = objectOf(services[name]);
  const image = name.startsWith('gateway') ? 'gateway' : name;
  const env = objectOf(service['environment'] ?? {});
  const data = '/var/lib/model-gateway';
  const set = { OPENAI_API_KEY: 'a-key', MODEL_GATEWAY_DATA_DIR: data, HOME: data };
  const mounts: Record<string, string> = {};
  for (const each of textsOf(service['volumes'])) {
    const [from = '', to = ''] = each.split(':');
    mounts[to] = from.startsWith('.')
      ? join(deploy, from)
      : volume(join(folder, 'volumes', from), users[image]);
  }
  for (const each of textsOf(service['secrets'])) {
    mounts[`/run/secrets/${each}`] = join(folder, 'secrets', each);
  }
  const database = mounts['/var/lib/postgresql/data'];
  if (database !== undefined) makeDatabase(database, env);
  const command = starts[image]?.(textsOf(service['command']));
  assert.ok(command !== undefined, name);
  if (image === 'nginx') mounts['/etc/nginx/compose.conf'] = join(folder, 'nginx.conf');
  const networks = service['networks'];
  const fixed = isObject(networks) ? objectOf(networks['default'])['ipv4_address'] : undefined;
  const user = users[image];
  const privileges = [
    ...(textsOf(service['cap_drop']).includes('ALL') ? ['--bounding-set=-all'] : []),
    ...(textsOf(service['security_opt']).includes('no-new-privileges:true')
      ? ['--no-new-privs']
      : []),
  ];
  return {
    name,
    address: typeof fixed === 'string' ? fixed : `${prefix}${20 + index}`,
    command,
    env: { ...nodeEnvironment, ...textEnv(env), ...set },
    mounts,
    root: join(folder, 'roots', name),
    privileges,
    isReadOnly: service['read_only'] === true,
    temporary: textsOf(service['tmpfs']),
    ...(user === undefined ? {} : { user }),
  };
}

function textEnv(env: JsonObject): Record<string, string> {
  return Object.fromEntries(Object.entries(env).map(([name, value]) => [name, String(value)]));
}

function secret(name: string, value: string, mode: number, gid = 0): void {
  const file = join(secrets, name);
  writeFileSync(file, value, { mode });
  chownSync(file, gatewayUser.uid, gid);
}

async function ask(url: string, options: RequestInit = {}): Promise<[number, string]> {
  try {
    const answer = await fetch(url, { ...options, signal: AbortSignal.timeout(120_000) });
    return [answer.status, await answer.text()];
  } catch (error) {
    return [0, String(error)];
  }
}

openFolder(folder);
const secrets = openFolder(join(folder, 'secrets'));
// The modes and owners that docs/operator/deploy.md gives them.
secret('admin_token', adminToken, 0o600);
secret('metrics_token', 'a-token-of-prometheus-0123456789', 0o640, nobody.gid);
secret('postgres_password', postgresPassword, 0o600);
openFolder(join(folder, 'roots'));

makeNetwork();
let spans = 0;
const collector =
  otelcol === undefined
    ? createServer((request, response) => {
        if (request.url === '/v1/traces') spans += 1;
        request.resume().on('end', () => response.end());
      }).listen(4318, hostAddress)
    : undefined;
/** The collector prints how many spans it has. */
const hasSpans = (): boolean =>
  spans > 0 || /"spans": [1-9]/.test(running.get('otel-collector')?.said ?? '');

const planned = names.map(serviceOf);
const hosts = [
  '127.0.0.1 localhost',
  ...(otelcol === undefined ? [`${hostAddress} otel-collector`] : []),
  ...planned.map(({ name, address }) => `${address} ${name}`),
].join('\n');
const running = new Map<string, StandIn>();

function standIn(name: string): StandIn {
  const found = running.get(name);
  assert.ok(found !== undefined, name);
  return found;
}

/** In the order of what they depend on. */
async function start(service: Service): Promise<void> {
  const made = new StandIn(service, hosts);
  running.set(service.name, made);
  const check = objectOf(services[service.name])['healthcheck'];
  if (check === undefined) return;
  const [, tool = '', ...rest] = textsOf(objectOf(check)['test']);
  const command = [program(tool, tool.replace('valkey', 'redis')), ...rest];
  await until(() => made.succeeds(command), `${service.name} is healthy`);
}

try {
  const needs = ({ name }: Service): number => ['postgres', 'valkey'].indexOf(name);
  for (const service of planned.toSorted((a, b) => needs(b) - needs(a))) await start(service);
  await play();
} catch (error) {
  for (const [name, { said }] of running) process.stderr.write(`--- ${name}\n${said}\n`);
  throw error;
}
// As Compose does: what depends on others goes first.
for (const [name, each] of [...running].toReversed()) {
  const code = await each.stop();
  if (name.startsWith('gateway')) assert.equal(code, 0, each.said);
}
collector?.close();
process.stdout.write('all services answered and stopped\n');
process.exit(0);

async function play(): Promise<void> {
  const gateways = ['gateway-1', 'gateway-2'].map(standIn);
  for (const gateway of gateways) {
    const { address, name } = gateway.service;
    const ready = async (): Promise<boolean> => {
      gateway.requireRunning();
      return (await ask(`http://${address}:8686/readyz`))[0] === 200;
    };
    await until(ready, `${name} is ready`);
    const { uid } = gatewayUser;
    assert.match(gateway.status(), new RegExp(`^Uid:\\t${uid}\\t${uid}\\t${uid}`, 'm'));
    assert.match(gateway.status(), /^CapBnd:\t0+$/m);
    assert.match(gateway.status(), /^NoNewPrivs:\t1$/m);
    assert.ok(!gateway.succeeds(['touch', '/a-file']), 'the root is read-only');
  }
  const [first] = gateways;
  assert.ok(first !== undefined);
  const headers = { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json' };
  const [made, text] = await ask(`http://${first.service.address}:8687/api/keys`, {
    method: 'POST',
    headers,
    body: JSON.stringify({ name: 'compose', models: ['*'] }),
  });
  assert.equal(made, 201, text);
  const key = String(objectOf(tryParse(text))['key']);
  const proxy = `http://${standIn('nginx').service.address}:8686/v1`;
  const client = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  const sampled = `00-${'a1'.repeat(16)}-${'b2'.repeat(8)}-01`;
  const call = {
    method: 'POST',
    headers: { ...client, traceparent: sampled },
    body: '{"model":"local/tiny","stream":true,"messages":[{"role":"user","content":"Say hello."}]}',
  };
  const answer = await whenLoaded(async () => {
    const [status, said] = await ask(`${proxy}/chat/completions`, call);
    return { status, text: said };
  });
  assert.equal(answer.status, 200, answer.text);
  assert.match(answer.text, /data: \[DONE\]/);

  await until(hasSpans, 'the collector gets spans');
  const prometheus = `http://${standIn('prometheus').service.address}:9090/api/v1`;
  const up = async (): Promise<boolean> => {
    const [, found] = await ask(`${prometheus}/query?query=up`);
    return (found.match(/,"1"\]/g) ?? []).length === 2;
  };
  await until(up, 'Prometheus reads both gateways');
  assert.match((await ask(`${prometheus}/rules`))[1], /"type":"alerting"/);

  const stop = { isOver: false };
  const stopped = first.stop().finally(() => (stop.isOver = true));
  let calls = 0;
  do {
    const [each, said] = await ask(`${proxy}/models`, { headers: client });
    assert.equal(each, 200, said);
    calls += 1;
    await new Promise((resolve) => setTimeout(resolve, 50));
  } while (!stop.isOver);
  assert.equal(await stopped, 0, first.said);
  assert.ok(calls > 2, `${calls} calls`);
  running.delete(first.service.name);
}
