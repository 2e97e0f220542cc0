/** Vertex AI: where requests go, what they carry, and its tokens on their way (wire/gemini.md §11: 31, 49, 50). */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { CloudSettings, Environment } from '../../src/core/cloud.ts';
import { isObject, type JsonObject } from '../../src/json/value.ts';
import { providerRow } from '../../src/providers/compatible.ts';
import { temporaryFolder } from '../support/folders.ts';
import { startTestGateway, type TestGateway } from '../support/gateway.ts';
import { send, type Reply } from '../support/http.ts';
import type { AnyDialect } from '../support/reading.ts';
import { endpointOf, requestBody, toolsOf } from '../support/requests.ts';
import { assertTaken, geminiAnswer, streamOf } from '../upstream/gemini.ts';
import { GoogleTokens } from '../upstream/google-tokens.ts';
import {
  ScriptedUpstream,
  type Answer,
  type Received,
  type Script,
  type Scripted,
} from '../upstream/scripted.ts';
import { assertAsked, chatDocument, claudeDocument, eventsOf } from './azure-scene.ts';

let vertex: ScriptedUpstream;
let tokens: GoogleTokens;
let gateway: TestGateway;
let folder: string;
let lists: Script;
let listed: Reply;
const listPath = '/v1beta1/publishers/google/models?pageSize=1000';
before(async () => {
  vertex = await ScriptedUpstream.start();
  tokens = await GoogleTokens.start();
  folder = temporaryFolder('vertex');
  const file = (name: string, content: string): string => {
    const path = join(folder, name);
    writeFileSync(path, content);
    return path;
  };
  const place = { base_url: `http://127.0.0.1:${vertex.port}`, project: 'acme-ml' };
  gateway = await startTestGateway(
    {
      providers: {
        vertex: {
          ...place,
          location: 'europe-west4',
          credentials: file('sa.json', tokens.serviceAccountFile()),
        },
        user: { like: 'vertex', ...place, credentials: file('user.json', tokens.userFile()) },
        machine: { like: 'vertex', ...place, auth: 'metadata' },
        few: {
          like: 'vertex',
          ...place,
          auth: 'metadata',
          betas: ['context-1m-2025-08-07'],
          headers: { 'x-goog-user-project': 'billing' },
        },
        express: { like: 'vertex', base_url: place.base_url, api_key: 'express-canary-1' },
        tuned: {
          like: 'vertex',
          ...place,
          auth: 'metadata',
          deployments: { 'endpoints/123': 'gemini-2.5-flash' },
        },
        broken: { like: 'vertex', ...place, credentials: file('no.json', '{}') },
      },
      models: {
        safe: { targets: ['broken/claude-opus-4-6', 'vertex/claude-opus-4-6'] },
        chatty: { targets: ['vertex/ministral-8b-2410'], api: 'chat' },
      },
    },
    { env: { GCE_METADATA_HOST: tokens.host }, random: () => 0 },
  );
  const publisherModels = ['gemini-2.5-pro', 'imagen-4.0', 'text-embedding-005'].map((name) => ({
    name: `publishers/google/models/${name}`,
    versionId: '001',
  }));
  lists = vertex.script(listPath, { body: JSON.stringify({ publisherModels }) });
  // Asked first, so that no name that is not found asks for it again.
  listed = await send(`${gateway.url}/v1/models`, undefined);
});
after(async () => {
  await gateway.stop();
  await vertex.close();
  await tokens.close();
});

const anthropic = '/v1/projects/acme-ml/locations/europe-west4/publishers/anthropic/models';
const mistral = '/v1/projects/acme-ml/locations/europe-west4/publishers/mistralai/models';
const open = '/v1/projects/acme-ml/locations/europe-west4/endpoints/openapi/chat/completions';

interface Asked {
  readonly reply: Reply;
  readonly received: Received | undefined;
}

async function askFor(
  model: string,
  options: {
    readonly dialect?: AnyDialect;
    readonly more?: JsonObject;
    readonly stream?: boolean;
    readonly headers?: { readonly [name: string]: string };
  } = {},
): Promise<Asked> {
  const { dialect = 'messages', more = {}, stream = false, headers = {} } = options;
  const before = vertex.all.length;
  const body = requestBody(dialect, { model, stream, more });
  const reply = await send(`${gateway.url}${endpointOf[dialect]}`, body, { headers });
  return { reply, received: vertex.all[before] };
}

/** Each request must have a token that the server gave out; the rest is as in `headers`. */
function assertVertex(
  received: Received | undefined,
  path: string,
  headers: { readonly [name: string]: string } = {},
): void {
  const authorization = received?.header('authorization') ?? '';
  assert.ok(tokens.issued(authorization), authorization);
  assertAsked(received, { path, headers: { authorization, ...headers } });
}

const claudeStream = [
  'event: message_start\ndata: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-opus-4-6","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":8,"output_tokens":1}}}\n\n',
  'event: content_block_start\ndata: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}\n\n',
  'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"ok"}}\n\n',
  'event: content_block_stop\ndata: {"type":"content_block_stop","index":0}\n\n',
  'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":2}}\n\n',
  'event: message_stop\ndata: {"type":"message_stop"}\n\n',
] as const;
const streamed: Answer = { headers: { 'content-type': 'text/event-stream' }, body: claudeStream };

describe('gemini 50: Claude on Vertex', () => {
  it('is relayed: the model is in the address, the version in the body, all else is the client’s', async () => {
    vertex.script(`${anthropic}/claude-opus-4-6:rawPredict`, claudeDocument('claude-opus-4-6'));
    const { reply, received } = await askFor('vertex/claude-opus-4-6', {
      headers: { 'anthropic-version': '2023-06-01', 'anthropic-beta': 'context-1m-2025-08-07' },
    });
    assert.equal(reply.status, 200, reply.text);
    assert.equal(reply.headers['x-gateway-mode'], 'relay');
    assert.equal(reply.json['model'], 'vertex/claude-opus-4-6');
    assertVertex(received, `${anthropic}/claude-opus-4-6:rawPredict`, {
      'anthropic-beta': 'context-1m-2025-08-07',
    });
    const { model: _, ...rest } = requestBody('messages', { model: 'm', stream: false });
    const bytes = JSON.stringify({ anthropic_version: 'vertex-2023-10-16', ...rest });
    assert.equal(received?.body.toString(), bytes);
  });

  it('streams have an address of their own, and their bytes are relayed', async () => {
    vertex.script(`${anthropic}/claude-opus-4-6:streamRawPredict`, streamed);
    const { reply, received } = await askFor('vertex/claude-opus-4-6', { stream: true });
    assert.equal(reply.status, 200, reply.text);
    assertVertex(received, `${anthropic}/claude-opus-4-6:streamRawPredict`);
    const { model: _, ...rest } = requestBody('messages', { model: 'm', stream: true });
    assert.deepEqual(received?.json, { ...rest, anthropic_version: 'vertex-2023-10-16' });
    assert.deepEqual(
      eventsOf(reply.text).map(({ type }) => type),
      claudeStream.map((frame) => /^event: (\w+)/.exec(frame)?.[1]),
    );
  });

  for (const dialect of ['chat', 'responses'] as const) {
    for (const stream of [false, true]) {
      it(`answers ${dialect} clients, ${stream ? 'streamed' : 'whole'}`, async () => {
        for (const verb of ['rawPredict', 'streamRawPredict']) {
          const answer = verb === 'rawPredict' ? claudeDocument('claude-opus-4-6') : streamed;
          vertex.script(`${anthropic}/claude-opus-4-6:${verb}`, answer);
        }
        const { reply, received } = await askFor('vertex/claude-opus-4-6', { dialect, stream });
        assert.equal(reply.status, 200, reply.text);
        assert.match(reply.text, /"ok"/);
        // Documents are asked for as streams: they outlive the limits of documents.
        assertVertex(received, `${anthropic}/claude-opus-4-6:streamRawPredict`);
        assert.equal(received?.json['anthropic_version'], 'vertex-2023-10-16');
        assert.equal(received.json['model'], undefined);
        assert.equal(received.json['stream'], true);
      });
    }
  }

  for (const [called, segment] of [
    ['claude-sonnet-4-5@20250929', 'claude-sonnet-4-5@20250929'],
    ['claude-sonnet-4-5-20250929', 'claude-sonnet-4-5@20250929'],
    ['anthropic/claude-haiku-4-5@default', 'claude-haiku-4-5@default'],
    ['publishers/anthropic/models/claude-opus-4-6', 'claude-opus-4-6'],
  ] as const) {
    it(`${called} is ${segment}`, async () => {
      const path = `${anthropic}/${segment}:rawPredict`;
      vertex.script(path, claudeDocument('claude'));
      const { reply, received } = await askFor(`vertex/${called}`);
      assert.equal(reply.status, 200, reply.text);
      assertVertex(received, path);
    });
  }

  it('a newer version of the client is the version of the body', async () => {
    vertex.script(`${anthropic}/claude-opus-4-6:rawPredict`, claudeDocument('claude-opus-4-6'));
    const headers = { 'anthropic-version': '2026-10-21' };
    const { received } = await askFor('vertex/claude-opus-4-6', { headers });
    assert.equal(received?.json['anthropic_version'], '2026-10-21');
    const own = await askFor('vertex/claude-opus-4-6', { more: { anthropic_version: 'mine' } });
    assert.equal(own.received?.json['anthropic_version'], 'vertex-2023-10-16');
  });

  it('only the betas of the config go up, and its headers', async () => {
    const path = '/v1/projects/acme-ml/locations/global/publishers/anthropic/models';
    vertex.script(`${path}/claude-opus-4-6:rawPredict`, claudeDocument('claude-opus-4-6'));
    const { received } = await askFor('few/claude-opus-4-6', {
      headers: { 'anthropic-beta': 'other-2025-01-01,context-1m-2025-08-07' },
    });
    assertVertex(received, `${path}/claude-opus-4-6:rawPredict`, {
      'anthropic-beta': 'context-1m-2025-08-07',
      'x-goog-user-project': 'billing',
    });
  });

  it('an image by its address cannot be sent', async () => {
    const source = { type: 'url', url: 'https://example.com/a.png' };
    const messages = [{ role: 'user', content: [{ type: 'image', source }] }];
    const { reply, received } = await askFor('vertex/claude-opus-4-6', { more: { messages } });
    assert.equal(reply.status, 400, reply.text);
    assert.equal(received, undefined);
  });

  it('tokens are counted at its address', async () => {
    vertex.script('claude-opus-4-6', { body: JSON.stringify({ input_tokens: 42 }) });
    const before = vertex.all.length;
    const messages = [{ role: 'user', content: 'Hi' }];
    const body = { model: 'vertex/claude-opus-4-6@latest', messages };
    const reply = await send(`${gateway.url}/v1/messages/count_tokens`, body);
    assert.equal(reply.json['input_tokens'], 42, reply.text);
    assertVertex(vertex.all[before], `${anthropic}/count-tokens:rawPredict`);
    assert.deepEqual(vertex.all[before]?.json, {
      anthropic_version: 'vertex-2023-10-16',
      model: 'claude-opus-4-6',
      messages,
    });
  });

  it('errors of the platform and of the model are distinguished', async () => {
    const path = `${anthropic}/claude-opus-4-6:rawPredict`;
    const google = (code: number, status: string, message: string): Answer => ({
      status: code,
      body: JSON.stringify([{ error: { code, message, status } }]),
    });
    const invalid = {
      type: 'error',
      error: { type: 'invalid_request_error', message: 'Bad max.' },
    };
    for (const [answer, status, type, words] of [
      [{ status: 400, body: JSON.stringify(invalid) }, 400, 'invalid_request_error', /Bad max/],
      [google(404, 'NOT_FOUND', 'Publisher Model `x` was not found.'), 404, 'not_found_error', /./],
      [google(403, 'PERMISSION_DENIED', 'Permission denied.'), 400, 'billing_error', /credentials/],
    ] as const) {
      vertex.script(path, answer);
      const { reply } = await askFor('vertex/claude-opus-4-6');
      assert.equal(reply.status, status, reply.text);
      assert.equal(errorOf(reply)['type'], type);
      assert.match(reply.text, words);
    }
  });

  it('has its price under the name with and without its date', async () => {
    const path = `${anthropic}/claude-sonnet-4-5@20250929:rawPredict`;
    vertex.script(path, claudeDocument('claude-sonnet-4-5'));
    const { reply } = await askFor('vertex/claude-sonnet-4-5@20250929');
    const row = await gateway.callRow(String(reply.headers['x-request-id']));
    // 3 and 15 dollars per million tokens, a tenth more in a region; 8 and 2 tokens.
    const { input, output } = row['cost'] as JsonObject;
    assert.deepEqual([input, output], [0.000_026_4, 0.000_033]);
  });
});

describe('vertex: Mistral and the models of others', () => {
  for (const [called, name, stream] of [
    ['mistral-small-2503', 'mistral-small-2503', false],
    ['codestral-2501@001', 'codestral-2501', false],
    ['mistralai/mistral-medium-3', 'mistral-medium-3', true],
  ] as const) {
    it(`${called}${stream ? ', streamed' : ''}`, async () => {
      const answer = stream ? chatStream(name) : chatDocument(name);
      vertex.script(name, answer);
      const { reply, received } = await askFor(`vertex/${called}`, { dialect: 'chat', stream });
      assert.equal(reply.status, 200, reply.text);
      const segment = called.replace('mistralai/', '');
      assertVertex(received, `${mistral}/${segment}:${stream ? 'streamRawPredict' : 'rawPredict'}`);
      assert.equal(received?.json['model'], name);
      // Unknown members are refused there, as at Mistral itself.
      assert.equal(received.json['stream_options'], undefined);
    });
  }

  for (const [called, name] of [
    ['meta/llama-3.3-70b-instruct-maas', 'meta/llama-3.3-70b-instruct-maas'],
    ['deepseek-ai/deepseek-v3.1-maas', 'deepseek-ai/deepseek-v3.1-maas'],
  ] as const) {
    for (const dialect of ['chat', 'messages'] as const) {
      it(`${called} from ${dialect}: by the openapi endpoint`, async () => {
        vertex.script(name, chatDocument(name));
        const { reply, received } = await askFor(`vertex/${called}`, { dialect });
        assert.equal(reply.status, 200, reply.text);
        assertVertex(received, open);
        assert.equal(received?.json['model'], name);
      });
    }
  }
});

describe('vertex: a route by chat completions', () => {
  it('is one where the model has no other API', async () => {
    vertex.script('ministral-8b-2410', chatDocument('ministral-8b-2410'));
    const { reply, received } = await askFor('chatty', { dialect: 'messages' });
    assert.equal(reply.status, 200, reply.text);
    assertVertex(received, `${mistral}/ministral-8b-2410:rawPredict`);
  });
});

describe('vertex: Gemini by its own API', () => {
  const google = '/v1/projects/acme-ml/locations/europe-west4/publishers/google/models';
  for (const [called, path] of [
    ['gemini-3-pro-preview', `${google}/gemini-3-pro-preview`],
    ['google/gemini-2.5-flash', `${google}/gemini-2.5-flash`],
    ['endpoints/123', '/v1/projects/acme-ml/locations/europe-west4/endpoints/123'],
  ] as const) {
    for (const dialect of ['chat', 'messages', 'responses'] as const) {
      it(`${called} from ${dialect}, whole and streamed`, async () => {
        const streaming = `${path}:streamGenerateContent?alt=sse`;
        vertex.script(`${path}:generateContent`, geminiAnswer());
        vertex.script(streaming, streamOf({}));
        const whole = await askFor(`vertex/${called}`, { dialect });
        assert.equal(whole.reply.status, 200, whole.reply.text);
        assert.match(whole.reply.text, /"ok"/);
        const sent = whole.received?.path === streaming ? streaming : `${path}:generateContent`;
        assertVertex(whole.received, sent);
        const stream = await askFor(`vertex/${called}`, { dialect, stream: true });
        assertVertex(stream.received, streaming);
        assert.match(stream.reply.text, /"ok"/);
        for (const { received } of [whole, stream]) {
          assert.ok(received !== undefined);
          assertTaken(received);
          assert.equal(received.json['model'], undefined);
        }
      });
    }
  }

  it('a tuned endpoint takes what deployments says of its model, and costs as much', async () => {
    const path = '/v1/projects/acme-ml/locations/global/endpoints/123:generateContent';
    vertex.script(path, geminiAnswer());
    const more = { reasoning_effort: 'low' };
    const { reply, received } = await askFor('tuned/endpoints/123', { dialect: 'chat', more });
    assert.equal(reply.status, 200, reply.text);
    assert.equal(received?.path, path);
    const config = received.json['generationConfig'];
    const thinking = isObject(config) ? config['thinkingConfig'] : undefined;
    // A budget, as 2.5 has it, and no level.
    assert.deepEqual(isObject(thinking) ? Object.keys(thinking) : [], [
      'thinkingBudget',
      'includeThoughts',
    ]);
    const row = await gateway.callRow(String(reply.headers['x-request-id']));
    assert.ok(Number(row['cost_usd']) > 0);
  });

  it('what an endpoint runs is a model of its own maker', () => {
    const problems = (deployments: { readonly [name: string]: string }): string =>
      (
        providerRow('vertex')?.cloud?.problems({
          declared: {
            hasKey: false,
            hasHeaders: false,
            cloud: { project: 'p', auth: 'metadata', deployments },
          },
          env: {},
        }) ?? []
      )
        .map(({ key, message }) => `${key} ${message}`)
        .join();
    assert.equal(problems({ 'endpoints/123': 'gemini-2.5-flash' }), '');
    assert.match(
      problems({ 'endpoints/123': 'claude-opus-4-6' }),
      /^deployments "endpoints\/123" cannot be a model such as "claude-opus-4-6"$/,
    );
    assert.match(problems({ '..': 'gemini-2.5-flash' }), /^deployments/);
  });

  it('tiers are an agreement there: one that is asked for is reported as lost', async () => {
    const path = `${google}/gemini-2.5-pro`;
    vertex.script(`${path}:generateContent`, geminiAnswer());
    vertex.script(`${path}:streamGenerateContent?alt=sse`, streamOf({}));
    for (const dialect of ['chat', 'responses'] as const) {
      for (const tier of ['default', 'flex']) {
        const more = { service_tier: tier };
        const { reply, received } = await askFor('vertex/gemini-2.5-pro', { dialect, more });
        assert.equal(reply.status, 200, reply.text);
        assert.equal(received?.json['serviceTier'], undefined);
        assert.match(String(reply.headers['x-gateway-notes']), /service_tier/);
      }
    }
    const more = { service_tier: 'standard_only' };
    const { reply, received } = await askFor('vertex/gemini-2.5-pro', {
      dialect: 'messages',
      more,
    });
    assert.equal(received?.json['serviceTier'], undefined);
    assert.match(String(reply.headers['x-gateway-notes']), /service_tier/);
  });

  it('48: tokens are counted at its address, without a name and on top', async () => {
    const path = `${google}/gemini-2.5-pro:countTokens`;
    vertex.script(path, { body: JSON.stringify({ totalTokens: 42, totalBillableCharacters: 9 }) });
    const before = vertex.all.length;
    const messages = [{ role: 'user', content: 'Hi' }];
    const body = { model: 'vertex/gemini-2.5-pro', messages };
    const reply = await send(`${gateway.url}/v1/messages/count_tokens`, body);
    assert.equal(reply.json['input_tokens'], 42, reply.text);
    assertVertex(vertex.all[before], path);
    assert.deepEqual(vertex.all[before]?.json['contents'], [
      { role: 'user', parts: [{ text: 'Hi' }] },
    ]);
  });

  it('calls and their results have no ids there', async () => {
    const path = `${google}/gemini-2.5-pro:generateContent`;
    vertex.script(path, geminiAnswer());
    vertex.script(`${google}/gemini-2.5-pro:streamGenerateContent?alt=sse`, streamOf({}));
    const call = { id: 'c1', type: 'function', function: { name: 'w', arguments: '{"a":1}' } };
    const messages = [
      { role: 'user', content: 'Hi' },
      { role: 'assistant', tool_calls: [call] },
      { role: 'tool', tool_call_id: 'c1', content: 'sun' },
    ];
    const more = { ...toolsOf('chat'), messages };
    const { reply, received } = await askFor('vertex/gemini-2.5-pro', { dialect: 'chat', more });
    assert.equal(reply.status, 200, reply.text);
    const text = received?.body.toString() ?? '';
    assert.match(text, /"functionCall":\{[^}]*"name":"w"/);
    assert.match(text, /"functionResponse":\{[^}]*"name":"w"/);
    assert.doesNotMatch(text, /"id"/);
  });

  it('gemini 51: express mode takes a key, and needs no project', async () => {
    const path = '/v1/publishers/google/models/gemini-2.5-flash:generateContent';
    vertex.script(path, geminiAnswer());
    vertex.script(path.replace(/:.*/, ':streamGenerateContent?alt=sse'), streamOf({}));
    const { reply, received } = await askFor('express/gemini-2.5-flash', { stream: true });
    assert.equal(reply.status, 200, reply.text);
    assertAsked(received, {
      path: path.replace(/:.*/, ':streamGenerateContent?alt=sse'),
      headers: { 'x-goog-api-key': 'express-canary-1' },
    });
  });
});

describe('gemini 49: addresses', () => {
  const cloud = providerRow('vertex')?.cloud;
  assert.ok(cloud !== undefined);
  const baseOf = (settings: CloudSettings, env: Environment = {}): string =>
    cloud.place(
      { declared: { cloud: settings, hasKey: false, hasHeaders: false }, env },
      'meta/x',
      'meta/x',
    ).baseUrl;
  for (const [location, host] of [
    ['global', 'aiplatform.googleapis.com'],
    ['us', 'aiplatform.us.rep.googleapis.com'],
    ['eu', 'aiplatform.eu.rep.googleapis.com'],
    ['us-east5', 'us-east5-aiplatform.googleapis.com'],
  ] as const) {
    it(`${location} is at ${host}`, () => {
      const base = `https://${host}/v1/projects/p/locations/${location}/endpoints/openapi`;
      assert.equal(baseOf({ project: 'p', location }), base);
      const env = { GOOGLE_CLOUD_PROJECT: 'p', GOOGLE_CLOUD_LOCATION: location };
      assert.equal(baseOf({}, env), base);
    });
  }

  it('without a location it is global, and an address of its own replaces the host', () => {
    assert.match(
      baseOf({ project: 'p' }),
      /^https:\/\/aiplatform\.googleapis\.com.*locations\/global/,
    );
    const env = { GOOGLE_CLOUD_PROJECT: 'p', GOOGLE_VERTEX_BASE_URL: 'https://psc.example/' };
    assert.match(baseOf({}, env), /^https:\/\/psc\.example\/v1\/projects\/p\/locations\/global/);
  });

  for (const name of [
    '..',
    '.',
    'a/../b',
    'claude/..',
    'a//b',
    'a\\b',
    'a%2Fb',
    'a;b',
    'a?b',
    'a#b',
    'a:b',
    'claude-x@',
    'a/b/c',
  ]) {
    it(`"${name}" is no model: nothing is asked`, async () => {
      const { reply, received } = await askFor(`vertex/${name}`);
      assert.equal(reply.status, 404, reply.text);
      assert.equal(received, undefined);
    });
  }
});

describe('vertex: its models', () => {
  it('those of Google that answer prompts are listed', () => {
    const ids = (listed.json['data'] as JsonObject[]).map(({ id }) => String(id));
    assert.ok(ids.includes('vertex/gemini-2.5-pro'), ids.join());
    assert.ok(!ids.some((id) => /imagen|embedding/.test(id)), ids.join());
    const [received] = lists.requests;
    const authorization = received?.header('authorization') ?? '';
    assert.ok(tokens.issued(authorization), authorization);
    assertAsked(received, { method: 'GET', path: listPath, headers: { authorization } });
  });
});

describe('gemini 31: tokens on the way of calls', () => {
  const path = (location: string): string =>
    `/v1/projects/acme-ml/locations/${location}/publishers/anthropic/models/claude-opus-4-6:rawPredict`;
  const unauthorized: Answer = {
    status: 401,
    body: JSON.stringify({
      error: {
        code: 401,
        message: 'Request had invalid authentication credentials.',
        status: 'UNAUTHENTICATED',
      },
    }),
  };

  it('a token that is refused is replaced once, and the call repeated', async () => {
    const seen: (string | undefined)[] = [];
    const once: Scripted = (request) => {
      seen.push(request.header('authorization'));
      return seen.length === 1 ? unauthorized : claudeDocument('claude-opus-4-6');
    };
    vertex.script(path('global'), once);
    const before = tokens.asks.length;
    const { reply } = await askFor('user/claude-opus-4-6');
    assert.equal(reply.status, 200, reply.text);
    assert.equal(new Set(seen).size, 2);
    assert.equal(tokens.asks.length, before + 2);
    await askFor('user/claude-opus-4-6');
    assert.equal(tokens.asks.length, before + 2);
  });

  it('a second refusal is upstream_auth', async () => {
    const script = vertex.script(path('global'), unauthorized);
    const { reply } = await askFor('machine/claude-opus-4-6');
    assert.equal(errorOf(reply)['type'], 'billing_error', reply.text);
    assert.equal(script.requests.length, 2);
  });

  it('without a token another target answers; the client learns nothing of the file', async () => {
    vertex.script(path('europe-west4'), claudeDocument('claude-opus-4-6'));
    const { reply } = await askFor('safe');
    assert.equal(reply.status, 200, reply.text);
    const alone = await askFor('broken/claude-opus-4-6');
    assert.equal(alone.received, undefined);
    assert.match(alone.reply.text, /no valid credential for the provider/);
    assert.doesNotMatch(alone.reply.text, /no\.json|canary/);
  });

  it('an upstream that quotes the token is masked', async () => {
    vertex.script(path('europe-west4'), (request) => ({
      status: 400,
      body: JSON.stringify({
        error: { code: 400, message: `Odd ${request.header('authorization')}.`, status: 'X' },
      }),
    }));
    const { reply } = await askFor('vertex/claude-opus-4-6');
    assert.equal(reply.status, 400, reply.text);
    assert.doesNotMatch(reply.text, /canary/);
  });
});

function chatStream(model: string): Answer {
  const chunk = (choices: readonly JsonObject[], more: JsonObject = {}): string =>
    `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model, choices: [...choices], ...more })}\n\n`;
  return {
    headers: { 'content-type': 'text/event-stream' },
    body: [
      chunk([{ index: 0, delta: { role: 'assistant', content: 'ok' }, finish_reason: null }]),
      chunk([{ index: 0, delta: { content: '' }, finish_reason: 'stop' }], {
        usage: { prompt_tokens: 8, completion_tokens: 2, total_tokens: 10 },
      }),
      'data: [DONE]\n\n',
    ],
  };
}

function errorOf({ json }: Reply): JsonObject {
  return isObject(json['error']) ? json['error'] : {};
}
