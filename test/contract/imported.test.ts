/** Configs of LiteLLM, imported: clients call with the names and the key that they have, and each answers. */
import assert from 'node:assert/strict';
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { basename, join } from 'node:path';
import { test } from 'node:test';
import OpenAI from 'openai';
import { parse, stringify } from 'yaml';
import { importCommand } from '../../src/compose/commands/config-commands.ts';
import { isObject, type JsonObject } from '../../src/json/value.ts';
import { startGateway } from '../../src/main.ts';
import { temporaryFolder } from '../support/folders.ts';
import { run } from '../unit/cli-config/context.ts';
import type { UpstreamDialect } from '../support/dialects.ts';
import { adminToken, clientKey } from '../support/keys.ts';
import { claudeChunks } from '../clouds/bedrock-scene.ts';
import { eventStream } from '../upstream/aws.ts';
import { chatAnswer } from '../upstream/chat.ts';
import { answerIn, joined } from '../upstream/reply.ts';
import { type Answer, ScriptedUpstream } from '../upstream/scripted.ts';

const masterKey = 'sk-master-0123456789abcdef';

test('a LiteLLM config imported answers a call of an unchanged client, and its fallback', async (t) => {
  const upstream = await ScriptedUpstream.start();
  t.after(() => upstream.close());
  const cwd = temporaryFolder('imported');
  const config = `model_list:
  - model_name: gpt-4o
    litellm_params:
      model: openai/broken-model
      api_base: http://127.0.0.1:${upstream.port}/v1
      api_key: os.environ/HOUSE_KEY
  - model_name: spare
    litellm_params:
      model: openai/house-7b
      api_base: http://127.0.0.1:${upstream.port}/v1
      api_key: os.environ/HOUSE_KEY
litellm_settings: { fallbacks: [{ gpt-4o: [spare] }] }
general_settings: { master_key: os.environ/LITELLM_MASTER_KEY }
`;
  const file = join(cwd, 'config.yaml');
  writeFileSync(file, config);
  const out = join(cwd, 'gateway.yaml');
  const made = await run(importCommand, ['litellm', file, '--out', out], {
    LITELLM_MASTER_KEY: masterKey,
  });
  assert.equal(made.code, 0, made.err);
  assert.ok(!readFileSync(out, 'utf8').includes(masterKey));
  const gateway = await startGateway({
    flags: { listen: '127.0.0.1:0', 'admin-listen': '127.0.0.1:0', 'log-level': 'silent' },
    env: {
      MODEL_GATEWAY_KEY: clientKey,
      MODEL_GATEWAY_ADMIN_TOKEN: adminToken,
      HOUSE_KEY: 'key-of-the-house',
    },
    cwd,
  });
  t.after(() => gateway.stop());
  const broken = upstream.script('broken-model', {
    status: 404,
    body: '{"error":{"message":"The model does not exist.","code":"model_not_found"}}',
  });
  const spare = upstream.script('house-7b', chatAnswer({ text: 'Hello.' }, false));
  const client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: masterKey, maxRetries: 0 });
  const answer = await client.chat.completions.create({
    model: 'gpt-4o',
    messages: [{ role: 'user', content: 'Say hello.' }],
  });
  assert.equal(answer.choices[0]?.message.content, 'Hello.');
  assert.equal(broken.requests.length, 1);
  assert.equal(spare.requests[0]?.header('authorization'), 'Bearer key-of-the-house');
});

/** The API of a request, by its path. */
const apis: readonly (readonly [RegExp, UpstreamDialect])[] = [
  [/\/(messages|invoke)$/, 'messages'],
  [/\/responses$/, 'responses'],
  [/:generateContent$/, 'gemini'],
  [/\/converse$/, 'converse'],
  [/\/chat\/completions/, 'chat'],
];

function answerTo({ pathname }: URL): Answer {
  // Claude on Bedrock is asked for a stream where its answer may take long.
  if (pathname.endsWith('/invoke-with-response-stream'))
    return eventStream(claudeChunks(['Hello.']));
  const api = apis.find(([form]) => form.test(pathname))?.[1];
  return api === undefined ? { status: 404, body: '{}' } : answerIn(api, { text: 'Hello.' }, false);
}

/** Identities of machines, which are not here: `test/clouds` has them. */
const identities = new Set(['entra', 'profile', 'web_identity']);

/** A provider at another address, or nothing where an identity opens it. */
function moved(name: string, given: unknown, url: string): JsonObject | undefined {
  assert.ok(isObject(given), name);
  const { resource: _resource, ...provider } = given;
  if (name.startsWith('vertex') || identities.has(String(provider['auth']))) return undefined;
  if (name.startsWith('bedrock')) return { ...provider, endpoint: url };
  return { ...provider, base_url: provider['api_version'] === undefined ? `${url}/v1` : url };
}

const configs = globSync(join(import.meta.dirname, '../unit/cli/import/litellm/*.yaml')).toSorted();

for (const path of configs) {
  test(`a LiteLLM config imported answers calls: ${basename(path)}`, async (t) => {
    const server = createServer((request, response) => {
      const { status = 200, headers, body } = answerTo(new URL(request.url ?? '/', 'http://a'));
      request.resume().on('end', () => {
        response.writeHead(status, { 'content-type': 'application/json', ...headers });
        response.end(joined(body));
      });
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    t.after(() => server.close());
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const cwd = temporaryFolder('imported');
    const out = join(cwd, 'gateway.yaml');
    const made = await run(importCommand, ['litellm', path, '--out', out], {});
    assert.equal(made.code, 0, made.err);
    const text = readFileSync(out, 'utf8');
    const config: unknown = parse(text);
    assert.ok(isObject(config) && isObject(config['providers']));
    const providers = Object.entries(config['providers']).flatMap(([name, given]) => {
      const there = moved(name, given, url);
      return there === undefined ? [] : [[name, there] as const];
    });
    const known = providers.map(([name]) => name);
    const models = Object.entries(isObject(config['models']) ? config['models'] : {}).filter(
      ([, route]) => targetsOf(route).every((target) => known.includes(target.split('/')[0] ?? '')),
    );
    assert.ok(models.length > 0 || config['models'] === undefined, text);
    const names = models.length > 0 ? models.map(([name]) => name) : ['openai/gpt-5'];
    const here = { ...config, providers: Object.fromEntries(providers) };
    const routes = models.length > 0 ? { models: Object.fromEntries(models) } : {};
    writeFileSync(out, stringify({ ...here, ...routes }));
    const variables = [...text.matchAll(/\$\{(\w+)\}/g)].map(([, name = '']) => name);
    const gateway = await startGateway({
      flags: { listen: '127.0.0.1:0', 'admin-listen': '127.0.0.1:0', 'log-level': 'silent' },
      env: {
        ...Object.fromEntries(variables.map((name) => [name, valueOf(name)])),
        MODEL_GATEWAY_KEY: clientKey,
        MODEL_GATEWAY_ADMIN_TOKEN: adminToken,
      },
      cwd,
    });
    t.after(() => gateway.stop());
    const client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: clientKey, maxRetries: 0 });
    for (const model of names) {
      const answer = await client.chat.completions.create({
        model,
        messages: [{ role: 'user', content: 'Say hello.' }],
      });
      assert.equal(answer.choices[0]?.message.content, 'Hello.', model);
    }
  });
}

function valueOf(name: string): string {
  if (name === 'AWS_ACCESS_KEY_ID') return 'AKIAIOSFODNN7EXAMPLE';
  return name.includes('REGION') ? 'eu-central-1' : `value-of-${name.toLowerCase()}`;
}

/** Targets of an alias or of a route. */
function targetsOf(route: unknown): readonly string[] {
  if (typeof route === 'string') return [route];
  assert.ok(isObject(route) && Array.isArray(route['targets']));
  return route['targets'].map((target) => String(isObject(target) ? target['target'] : target));
}
