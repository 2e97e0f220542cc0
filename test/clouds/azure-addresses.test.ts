/** Where requests to Azure OpenAI and Foundry go, and what they carry (wire/azure.md §9: 14–18, 40–46). */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { isObject, type JsonObject } from '../../src/json/value.ts';
import { send, type Reply } from '../support/http.ts';
import { endpointOf, requestBody } from '../support/requests.ts';
import type { AnyDialect } from '../support/reading.ts';
import type { Received } from '../upstream/scripted.ts';
import { responsesAnswer, textItem } from '../upstream/responses.ts';
import {
  assertAsked,
  azureKey,
  chatDocument,
  claudeDocument,
  startAzure,
  type AzureScene,
} from './azure-scene.ts';

let scene: AzureScene;
before(async () => {
  scene = await startAzure(({ azure }) => ({
    providers: {
      azure: {
        base_url: azure,
        api_key: azureKey,
        deployments: { fast: 'gpt-4.1-mini', thinker: 'gpt-5-mini' },
      },
      project: { like: 'azure', base_url: `${azure}/api/projects/p1/`, api_key: azureKey },
      copied: { like: 'azure', base_url: `${azure}/openai/v1`, api_key: azureKey },
      classic: { like: 'azure', base_url: azure, api_key: azureKey, api_version: '2024-10-21' },
      old: { like: 'azure', base_url: azure, api_key: azureKey, api_version: '2024-06-01' },
      preview: { like: 'azure', base_url: azure, api_key: azureKey, api_version: 'preview' },
      'classic-responses': {
        like: 'azure',
        base_url: azure,
        api_key: azureKey,
        api_version: '2025-04-01-preview',
        dialect: 'openai-responses',
      },
      foundry: {
        base_url: azure,
        api_key: azureKey,
        deployments: { writer: 'claude-opus-4-8' },
      },
      several: {
        like: 'azure',
        base_url: azure,
        credentials: { one: azureKey, two: 'second-key' },
      },
    },
    models: { asked: { targets: ['azure/fast'], api: 'responses' } },
  }));
});
after(() => scene.stop());

/** Asks for a deployment and gives what the server got. */
async function askFor(
  model: string,
  {
    dialect = 'chat',
    more = {},
    stream = false,
    headers = {},
  }: {
    readonly dialect?: AnyDialect;
    readonly more?: JsonObject;
    readonly stream?: boolean;
    readonly headers?: { readonly [name: string]: string };
  } = {},
): Promise<{ readonly reply: Reply; readonly received: Received | undefined }> {
  const { azure, gateway } = scene;
  const before = azure.all.length;
  const body = requestBody(dialect, { model, stream, more });
  const reply = await send(`${gateway.url}${endpointOf[dialect]}`, body, { headers });
  return { reply, received: azure.all[before] };
}

function firstRole(received: Received | undefined): unknown {
  const messages = received?.json['messages'];
  const first = Array.isArray(messages) ? messages[0] : undefined;
  return isObject(first) ? first['role'] : undefined;
}

const key = { 'api-key': azureKey };

describe('azure 14, 16, 17: each form of address, with its key', () => {
  const forms = [
    ['azure', '/openai/v1/chat/completions'],
    ['project', '/api/projects/p1/openai/v1/chat/completions'],
    ['copied', '/openai/v1/chat/completions'],
    ['preview', '/openai/v1/chat/completions?api-version=preview'],
    ['classic', '/openai/deployments/mine/chat/completions?api-version=2024-10-21'],
    ['foundry', '/openai/v1/chat/completions'],
  ] as const;
  for (const [provider, path] of forms) {
    for (const dialect of ['chat', 'messages', 'responses'] as const) {
      it(`${provider} from ${dialect}`, async () => {
        scene.azure.script('mine', chatDocument('gpt-4.1-mini-2025-04-14'));
        const { reply, received } = await askFor(`${provider}/mine`, { dialect });
        assert.equal(reply.status, 200, reply.text);
        assertAsked(received, { path, headers: key });
        assert.equal(received?.json['model'], 'mine');
      });
    }
  }

  it('Responses: v1 by a route, the classic address by the dialect', async () => {
    const answer = responsesAnswer([textItem('ok')], { stream: false });
    scene.azure.script('fast', answer);
    scene.azure.script('mine', answer);
    const asked = await askFor('asked', { dialect: 'responses' });
    assert.equal(asked.reply.status, 200, asked.reply.text);
    assertAsked(asked.received, { path: '/openai/v1/responses', headers: key });
    assert.equal(asked.received?.json['model'], 'fast');
    const classic = await askFor('classic-responses/mine', { dialect: 'responses' });
    assert.equal(classic.reply.status, 200, classic.reply.text);
    const path = '/openai/responses?api-version=2025-04-01-preview';
    assertAsked(classic.received, { path, headers: key });
  });

  it('several keys take turns, each with its own header', async () => {
    scene.azure.script('mine', chatDocument('gpt-4.1'));
    const seen = new Set<string | undefined>();
    for (let i = 0; i < 4; i++)
      seen.add((await askFor('several/mine')).received?.header('api-key'));
    assert.ok(seen.has(azureKey) || seen.has('second-key'));
    for (const each of seen) assert.ok(each === azureKey || each === 'second-key');
  });
});

describe('azure 15: the name of a deployment', () => {
  for (const [name, segment] of [
    ['with space', 'with%20space'],
    ['größe-ü', 'gr%C3%B6%C3%9Fe-%C3%BC'],
    ['100%', '100%25'],
    ['a?b=c', 'a%3Fb%3Dc'],
    ['a#b', 'a%23b'],
  ] as const) {
    it(`"${name}" is one segment`, async () => {
      scene.azure.script(name, chatDocument('gpt-4.1'));
      const { reply, received } = await askFor(`classic/${name}`);
      assert.equal(reply.status, 200, reply.text);
      const path = `/openai/deployments/${segment}/chat/completions?api-version=2024-10-21`;
      assertAsked(received, { path, headers: key });
    });
  }

  for (const name of ['a/b', '..', '.', 'a\\b', 'a%2Fb', '..%2F..', 'a%5cb']) {
    it(`"${name}" is no name: nothing is asked`, async () => {
      for (const provider of ['classic', 'azure', 'foundry']) {
        const { reply, received } = await askFor(`${provider}/${name}`);
        assert.equal(reply.status, 404, reply.text);
        assert.equal(received, undefined);
      }
    });
  }
});

describe('azure 18: a redirect', () => {
  it('is not followed, with key or without', async () => {
    const { azure } = scene;
    azure.script('moved', {
      status: 307,
      headers: { location: `http://127.0.0.1:${azure.port}/elsewhere` },
      body: '{}',
    });
    const before = azure.all.length;
    const { reply } = await askFor('azure/moved');
    assert.equal(reply.status, 502);
    assert.equal(azure.all.length, before + 1);
  });
});

describe('azure 40, 41: what older addresses do not know', () => {
  it('stream_options is omitted before 2024-10-21, and sent since', async () => {
    for (const [provider, known] of [
      ['old', false],
      ['classic', true],
      ['azure', true],
    ] as const) {
      scene.azure.script('mine', chatDocument('gpt-4.1'));
      const { received } = await askFor(`${provider}/mine`, { stream: true, dialect: 'messages' });
      assert.equal(received?.json['stream_options'] !== undefined, known, provider);
    }
  });

  it('the end user is safety_identifier at v1, and user at the classic address', async () => {
    scene.azure.script('mine', chatDocument('gpt-4.1'));
    const more = { metadata: { user_id: 'someone' } };
    const v1 = await askFor('azure/mine', { dialect: 'messages', more });
    assert.equal(v1.received?.json['safety_identifier'], 'someone');
    assert.equal(v1.received.json['user'], undefined);
    const classic = await askFor('classic/mine', { dialect: 'messages', more });
    assert.equal(classic.received?.json['user'], 'someone');
    assert.equal(classic.received.json['safety_identifier'], undefined);
  });

  it('the cap is max_completion_tokens', async () => {
    scene.azure.script('mine', chatDocument('gpt-4.1'));
    const { received } = await askFor('azure/mine', { dialect: 'messages' });
    assert.equal(received?.json['max_completion_tokens'], 100);
    assert.equal(received.json['max_tokens'], undefined);
  });
});

describe('azure 42: the model behind a deployment', () => {
  it('decides what is sent: a reasoning model gets developer and no temperature', async () => {
    scene.azure.script('thinker', chatDocument('gpt-5-mini'));
    scene.azure.script('fast', chatDocument('gpt-4.1-mini'));
    const more = { system: 'Be brief.', temperature: 0.5 };
    const thinker = await askFor('azure/thinker', { dialect: 'messages', more });
    assert.equal(firstRole(thinker.received), 'developer');
    assert.equal(thinker.received?.json['temperature'], undefined);
    const fast = await askFor('azure/fast', { dialect: 'messages', more });
    assert.equal(firstRole(fast.received), 'system');
    assert.equal(fast.received?.json['temperature'], 0.5);
  });

  it('a name that shows no maker gets no traits', async () => {
    scene.azure.script('unknown', chatDocument('gpt-4.1'));
    const more = { system: 'Be brief.', temperature: 0.5, stop_sequences: ['END'] };
    const { received } = await askFor('azure/unknown', { dialect: 'messages', more });
    assert.equal(received?.json['temperature'], 0.5);
    assert.deepEqual(received.json['stop'], ['END']);
  });

  it('and its price', async () => {
    scene.azure.script('fast', chatDocument('gpt-4.1-mini'));
    const { reply } = await askFor('azure/fast');
    const row = await scene.gateway.callRow(String(reply.headers['x-request-id']));
    // gpt-4.1-mini: 0.4 and 1.6 dollars per million tokens, 8 and 2 tokens.
    const { input, output } = row['cost'] as JsonObject;
    assert.deepEqual([input, output], [0.000_003_2, 0.000_003_2]);
  });

  it('of a name that tells nothing, the price is that of the model that answers', async () => {
    scene.azure.script('router', chatDocument('gpt-4.1-mini-2025-04-14'));
    const { reply } = await askFor('azure/router');
    const row = await scene.gateway.callRow(String(reply.headers['x-request-id']));
    assert.equal(row['cost_usd'], 0.000_006_4);
    scene.azure.script('router', chatDocument('something-of-ours'));
    const other = await askFor('azure/router');
    const unknown = await scene.gateway.callRow(String(other.reply.headers['x-request-id']));
    assert.equal(unknown['cost_usd'], null);
  });
});

describe('azure 43–45: Claude on Foundry', () => {
  const claude = { 'x-api-key': azureKey, 'anthropic-version': '2023-06-01' };

  it('bytes are relayed, with the version and the betas of the client', async () => {
    scene.azure.script('claude-sonnet-4-6', claudeDocument('claude-sonnet-4-6'));
    const { reply, received } = await askFor('foundry/claude-sonnet-4-6', {
      dialect: 'messages',
      headers: { 'anthropic-version': '2023-06-01', 'anthropic-beta': 'context-1m-2025-08-07' },
    });
    assert.equal(reply.headers['x-gateway-mode'], 'relay');
    assertAsked(received, {
      path: '/anthropic/v1/messages',
      headers: { ...claude, 'anthropic-beta': 'context-1m-2025-08-07' },
    });
    const { model, ...rest } = requestBody('messages', { model: 'm', stream: false });
    assert.equal(
      received?.body.toString(),
      JSON.stringify({ model: String(model).replace('m', 'claude-sonnet-4-6'), ...rest }),
    );
  });

  for (const dialect of ['chat', 'responses'] as const) {
    it(`is asked in its dialect from ${dialect}, by the model of its deployment`, async () => {
      scene.azure.script('writer', { ...claudeStream, headers: {} });
      const { reply, received } = await askFor('foundry/writer', { dialect });
      assert.equal(reply.status, 200, reply.text);
      assertAsked(received, { path: '/anthropic/v1/messages', headers: claude });
      assert.equal(received?.json['model'], 'writer');
    });
  }

  it('counts are asked for at its address', async () => {
    scene.azure.script('writer', { body: JSON.stringify({ input_tokens: 42 }) });
    const before = scene.azure.all.length;
    const reply = await send(`${scene.gateway.url}/v1/messages/count_tokens`, {
      model: 'foundry/writer',
      messages: [{ role: 'user', content: 'Hello' }],
    });
    assert.equal(reply.json['input_tokens'], 42);
    const path = '/anthropic/v1/messages/count_tokens';
    assertAsked(scene.azure.all[before], { path, headers: claude });
  });

  it('an error of the front, in the shape of Azure, is that error', async () => {
    scene.azure.script('gone', {
      status: 404,
      body: JSON.stringify({
        error: {
          code: 'DeploymentNotFound',
          message: 'The API deployment for this resource does not exist.',
        },
      }),
    });
    const { reply } = await askFor('foundry/gone', { dialect: 'messages' });
    assert.equal(reply.status, 404, reply.text);
    assert.equal((reply.json['error'] as JsonObject)['type'], 'not_found_error');
  });
});

const claudeStream = {
  body: [
    'event: message_start\ndata: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-opus-4-8","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":8,"output_tokens":1}}}\n\n',
    'event: content_block_start\ndata: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}\n\n',
    'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"ok"}}\n\n',
    'event: content_block_stop\ndata: {"type":"content_block_stop","index":0}\n\n',
    'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":2}}\n\n',
    'event: message_stop\ndata: {"type":"message_stop"}\n\n',
  ],
} as const;

describe('azure: models and their list', () => {
  it('deployments are listed, and nothing is asked for', async () => {
    const before = scene.azure.all.length;
    const reply = await send(`${scene.gateway.url}/v1/models`, undefined);
    const ids = (reply.json['data'] as JsonObject[]).map(({ id }) => id);
    for (const id of ['azure/fast', 'azure/thinker', 'foundry/writer'])
      assert.ok(ids.includes(id), id);
    assert.equal(scene.azure.all.length, before);
  });

  it('the bare name of a deployment is its model', async () => {
    scene.azure.script('thinker', chatDocument('gpt-5-mini'));
    const { reply } = await askFor('thinker');
    assert.equal(reply.status, 200, reply.text);
  });
});
