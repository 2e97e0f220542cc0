/** Routes of names that clients make up: found once for all calls, and never longer than the configuration that they are of. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Provider } from '../../../src/core/provider.ts';
import { systemClock } from '../../../src/observe/runtime.ts';
import { Credentials } from '../../../src/providers/credentials/credentials.ts';
import { createHttpProvider } from '../../../src/providers/http-provider.ts';
import { ModelLists } from '../../../src/providers/model-list.ts';
import { Registry } from '../../../src/providers/registry.ts';
import { HttpClient } from '../../../src/wire/http-client.ts';
import { silentLog } from '../access/fakes.ts';

const baseUrl = 'http://127.0.0.1:1/v1';
const idle = 60_000;
const timeouts = { connectMs: 1000, firstEventMs: idle, idleMs: idle, documentMs: idle };
const credentials = new Credentials(systemClock);
const client = new HttpClient();
const lists = new ModelLists({ client, clock: systemClock, log: silentLog, connectMs: 1000 });

/** A configuration with the provider `own`, and a local model whose engine is a new one each time. */
function registry(totalMs: number): Registry {
  const engine = (): Provider =>
    createHttpProvider({ id: 'local', dialect: 'openai-chat', baseUrl });
  const provider = { ...engine(), forModel: engine };
  const file = { name: 'tiny', path: '/tiny', bytes: 1, settings: {} };
  return new Registry({
    declared: [{ id: 'own', dialect: 'openai-chat', baseUrl, headers: new Map() }],
    routes: [],
    timeouts: { ...timeouts, totalMs },
    retry: { afterSent: false },
    env: {},
    lists,
    credentials,
    local: { provider, models: () => [file] },
  });
}

test('calls by one name share their route, which ends with its configuration', () => {
  const before = registry(1000);
  const route = before.find('own/model');
  assert.equal(route?.targets[0]?.timeouts.totalMs, 1000);
  assert.equal(before.find('own/model'), route);
  assert.equal(before.find('own/other')?.targets[0]?.model, 'other');
  assert.deepEqual(before.find('own/other')?.retry, { afterSent: false });
  assert.equal(registry(2000).find('own/model')?.targets[0]?.timeouts.totalMs, 2000);
});

test('the engine of a local model is looked for with each call', () => {
  const known = registry(1000);
  const first = known.find('local/tiny')?.targets[0]?.provider;
  assert.notEqual(first, undefined);
  assert.notEqual(known.find('local/tiny')?.targets[0]?.provider, first);
});

test('clients who make up names without end fill no memory', () => {
  const known = registry(1000);
  const first = known.find('own/0');
  for (let i = 1; i <= 1000; i += 1) known.find(`own/${i}`);
  assert.notEqual(known.find('own/0'), first);
  assert.deepEqual(known.find('own/0'), first);
});
