/** Credentials of clouds beside worker processes: each worker fetches its own, at its start (issue 22). */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { test, type TestContext } from 'node:test';
import { Instance } from '../cluster/instance.ts';
import { until } from '../support/postgres-store.ts';
import { converseAnswer } from '../upstream/converse.ts';
import { ScriptedUpstream } from '../upstream/scripted.ts';
import { TokenServer, type TokenReply } from '../upstream/token-server.ts';
import { tryParseObject } from '../../src/json/parse.ts';
import { connectionTo, killWorker, optionsOf, workersOf } from './crew.ts';

const model = 'amazon.nova-pro-v1:0';

function keysOf(id: string): TokenReply {
  return {
    body: {
      AccessKeyId: id,
      SecretAccessKey: 'secret-canary',
      Token: 'session-canary',
      Expiration: new Date(Date.now() + 3_600_000).toISOString(),
    },
  };
}

interface Scene {
  readonly gateway: Instance;
  readonly bedrock: ScriptedUpstream;
  readonly machine: TokenServer;
  readonly key: string;
}

/** Two workers whose provider signs with the keys of a container. */
async function scene(t: TestContext, ...replies: readonly TokenReply[]): Promise<Scene> {
  const machine = await TokenServer.start(...replies);
  t.after(() => machine.close());
  const bedrock = await ScriptedUpstream.start();
  t.after(() => bedrock.close());
  bedrock.script(`/model/${encodeURIComponent(model)}/converse`, converseAnswer());
  const endpoint = `http://127.0.0.1:${bedrock.port}`;
  const cloud = { like: 'bedrock', region: 'eu-central-1', endpoint, auth: 'container' };
  const gateway = await Instance.start({
    ...optionsOf(bedrock, { workers: 2, providers: { cloud }, prices: {} }),
    env: { AWS_CONTAINER_CREDENTIALS_FULL_URI: `${machine.url}/keys` },
  });
  t.after(() => gateway.kill());
  await until(() => workersOf(gateway).size === 2, 'the log tells of both workers');
  const { key } = await gateway.makeKey();
  return { gateway, bedrock, machine, key };
}

/** One call on a connection that this worker has accepted; its status. */
async function callOf({ gateway, key }: Scene, worker: number): Promise<number> {
  const socket = await connectionTo(gateway, workersOf(gateway).get(worker) ?? 0);
  try {
    const body = JSON.stringify({
      model: `cloud/${model}`,
      messages: [{ role: 'user', content: 'Hello' }],
    });
    const head = [
      'POST /v1/chat/completions HTTP/1.1',
      'host: gateway',
      `authorization: Bearer ${key}`,
      'content-type: application/json',
      `content-length: ${Buffer.byteLength(body)}`,
    ];
    socket.write(`${head.join('\r\n')}\r\n\r\n${body}`);
    return await statusOf(socket);
  } finally {
    socket.destroy();
  }
}

async function statusOf(socket: Socket): Promise<number> {
  const [first]: unknown[] = await once(socket, 'data');
  return Number(/^HTTP\/1\.1 (\d+)/.exec(String(first))?.[1]);
}

/** The access key that signed each request to the cloud. */
function signers({ bedrock }: Scene): readonly string[] {
  return bedrock.all.map(({ headerLines }) => {
    const signed = headerLines.find(([name]) => name.toLowerCase() === 'authorization')?.[1] ?? '';
    return /Credential=([^/]+)\//.exec(signed)?.[1] ?? '';
  });
}

test('each worker fetches its keys once, before a call needs them; so does one in the place of a dead one', async (t) => {
  const own = await scene(t, keysOf('ASIAONE'), keysOf('ASIATWO'), keysOf('ASIATHREE'));
  const { gateway, machine } = own;
  await until(() => machine.asks.length === 2, 'both workers have asked');
  for (const worker of [1, 2, 1, 2]) assert.equal(await callOf(own, worker), 200);
  assert.equal(machine.asks.length, 2);
  const [one, two, again, andAgain] = signers(own);
  assert.deepEqual(new Set([one, two]), new Set(['ASIAONE', 'ASIATWO']));
  assert.deepEqual([again, andAgain], [one, two], 'each signs with its own');

  await killWorker(gateway, 1);
  await until(() => machine.asks.length === 3, 'the new one has asked');
  assert.equal(await callOf(own, 1), 200);
  assert.equal(signers(own).at(-1), 'ASIATHREE');
  assert.equal(await callOf(own, 2), 200);
  assert.equal(signers(own).at(-1), two);

  gateway.signal('SIGHUP');
  await until(() => gateway.log.includes('"config_applied"'), 'the config was read again');
  for (const worker of [1, 2]) assert.equal(await callOf(own, worker), 200);
  assert.equal(machine.asks.length, 3, 'a reload fetches nothing that still holds');
});

test('a service that refuses lets both workers start; each says so, and asks again for a call', async (t) => {
  const own = await scene(
    t,
    { status: 404, body: '{}' },
    { status: 404, body: '{}' },
    keysOf('ASIALATE'),
  );
  const { gateway, machine } = own;
  const failures = (): readonly unknown[] =>
    gateway.log
      .split('\n')
      .map((line) => tryParseObject(line) ?? {})
      .filter(({ event }) => event === 'credential_failed');
  await until(() => failures().length === 2, 'both workers say that they have no keys');
  assert.equal(machine.asks.length, 2);
  assert.doesNotMatch(gateway.log, /canary/);
  for (const worker of [1, 2]) {
    await until(async () => (await callOf(own, worker)) === 200, 'the worker has keys');
  }
  assert.deepEqual(new Set(signers(own)), new Set(['ASIALATE']));
});
