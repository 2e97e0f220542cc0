/** Settings on their way to a worker are the same there, secrets included; each worker has its part of the limits. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { loadSettings } from '../../../src/config/load.ts';
import {
  HeaderSettings,
  type Settings,
  packSettings,
  unpackSettings,
  workerShare,
} from '../../../src/config/settings.ts';
import { Secret } from '../../../src/core/secret.ts';
import { knownProviders } from '../../../src/compose/providers.ts';
import { temporaryFolder } from '../../support/folders.ts';

const config = `
workers: 3
providers:
  up:
    dialect: openai-chat
    base_url: http://127.0.0.1:9/v1
    api_key: upstream-secret
    headers: { x-team: research-secret }
models:
  fast: { targets: [up/a, { target: up/b, weight: 2 }], order: weighted }
limits: { streams: 100, memory: 3GiB }
prices:
  up/a:
    input: 1
    output: 2
    web_search: 0.01
    tiers: [{ above: 1000, input: 2, output: 3 }]
    service_tiers:
      priority: { input: 4, output: 5, tiers: [{ above: 1000, input: 5, output: 6 }] }
  default: { input: 20, output: 100, service_tiers: { flex: { input: 1, output: 1 } } }
teams: { crew: { budgets: [{ usd: 4, per: day }] } }
tags: { night: { budget: 4, per: ever, keys: ["*"] } }
traces: { endpoint: 'http://127.0.0.1:9/v1/traces', headers: { x-token: trace-secret } }
clients: { keep_alive: never }
webhooks: [{ url: 'http://127.0.0.1:9/hook', secret: whsec_0123456789abcdef0123456789abcdef }]
`;

async function settingsOf(text: string): Promise<Settings> {
  const folder = temporaryFolder('packed');
  writeFileSync(join(folder, 'gateway.yaml'), text, { mode: 0o600 });
  return await loadSettings({ flags: {}, env: {}, cwd: folder, knownProviders });
}

test('what a worker unpacks is what its parent read', async () => {
  const settings = await settingsOf(config);
  const there = unpackSettings(packSettings(settings));
  const [provider] = there.providers;
  assert.ok(provider?.apiKey instanceof Secret);
  assert.equal(provider.apiKey.reveal(), 'upstream-secret');
  assert.ok(provider.headers instanceof HeaderSettings);
  assert.equal(provider.headers.get('x-team'), 'research-secret');
  assert.equal(there.webhooks[0]?.secret?.reveal(), 'whsec_0123456789abcdef0123456789abcdef');
  const never = Number.POSITIVE_INFINITY;
  assert.deepEqual(there.clients.keepAliveMs, { chat: never, messages: never, responses: never });
  assert.deepEqual(there.routes, settings.routes);
  assert.equal(packSettings(there), packSettings(settings));
  assert.doesNotMatch(JSON.stringify(there), /upstream-secret|research-secret|whsec/);
});

test('settings hold nothing that would arrive in a worker as something else', async () => {
  const settings = await settingsOf(config);
  const foreign: string[] = [];
  const look = (path: string, value: unknown): void => {
    if (typeof value !== 'object' || value === null) return;
    if (value instanceof Secret || value instanceof HeaderSettings) return;
    if (value instanceof Map) return look(path, [...value]);
    const known = Array.isArray(value) || Object.getPrototypeOf(value) === Object.prototype;
    if (!known) foreign.push(path);
    for (const [name, each] of Object.entries(value)) look(`${path}.${name}`, each);
  };
  look('settings', settings);
  assert.deepEqual(foreign, []);
  const there = unpackSettings(packSettings(settings));
  assert.deepEqual(there.prices, settings.prices);
  assert.equal(there.prices.models[0]?.price.service?.get('priority')?.rates.input, 4_000_000);
});

test('the parts of all workers make the whole', async () => {
  const settings = await settingsOf(config);
  const parts = [1, 2, 3].map((number) => workerShare(settings, number, 9).limits);
  assert.deepEqual(
    parts.map(({ streams }) => streams),
    [34, 33, 33],
  );
  assert.deepEqual(
    parts.map(({ memoryBytes }) => memoryBytes),
    [1024 ** 3, 1024 ** 3, 1024 ** 3],
  );
  assert.equal(parts[0]?.connections, undefined);
  assert.equal(parts[0]?.badKeys, settings.limits.badKeys);
});
