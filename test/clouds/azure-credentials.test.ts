/** Tokens of Entra and of managed identities on the way of calls (wire/azure.md §9: 17, 26–29, 50). */
import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import type { GatewayError } from '../../src/core/errors.ts';
import { isObject, type JsonObject } from '../../src/json/value.ts';
import { tokenFrom } from '../../src/providers/credentials/token-answer.ts';
import { adminToken } from '../support/keys.ts';
import { send, type Reply } from '../support/http.ts';
import { endpointOf, requestBody } from '../support/requests.ts';
import type { Answer, Scripted } from '../upstream/scripted.ts';
import type { TokenReply } from '../upstream/token-server.ts';
import {
  assertAsked,
  chatDocument,
  claudeDocument,
  startAzure,
  type AzureScene,
} from './azure-scene.ts';

const secret = 'client-secret-canary+&=%';
const clients = ['chat', 'messages', 'responses'] as const;
const granted = (value: string, seconds: number | string = 3600): TokenReply => ({
  body: { token_type: 'Bearer', access_token: value, expires_in: seconds },
});

let scene: AzureScene;

/** Each app has a token of its own: tests do not share one. */
function app(azure: string, id: string): JsonObject {
  return {
    base_url: azure,
    auth: 'entra',
    tenant_id: 'acme',
    client_id: `app-${id}`,
    client_secret: secret,
  };
}

before(async () => {
  scene = await startAzure(
    ({ azure }) => ({
      providers: {
        ...Object.fromEntries(
          ['e1', 'e2', 'e3', 'e4', 'e5', 'e6', 'e7', 'e8', 'e9'].map((id) => [
            id,
            { like: 'azure', ...app(azure, id) },
          ]),
        ),
        claude: { like: 'foundry', ...app(azure, 'claude') },
        scoped: { like: 'azure', ...app(azure, 'scoped'), scope: 'api://own/.default' },
        machine: { like: 'azure', base_url: azure, auth: 'managed_identity' },
        keyed: { like: 'azure', base_url: azure, api_key: 'key-canary-24' },
        proxied: {
          like: 'azure',
          base_url: 'https://acme.openai.azure.com',
          auth: 'managed_identity',
          client_id: 'proxied',
          proxy: 'http://127.0.0.1:9',
        },
      },
      models: { safe: { targets: ['e5/gone', 'machine/good'] } },
    }),
    ({ tokens }) => ({
      AZURE_AUTHORITY_HOST: tokens.url,
      AZURE_POD_IDENTITY_AUTHORITY_HOST: tokens.url,
    }),
  );
});
after(() => scene.stop());
beforeEach(() => {
  scene.tokens.asks.length = 0;
});

function ask(model: string, dialect: (typeof clients)[number] = 'chat'): Promise<Reply> {
  const body = requestBody(dialect, { model, stream: false });
  return send(`${scene.gateway.url}${endpointOf[dialect]}`, body);
}

const unauthorized: Answer = {
  status: 401,
  body: JSON.stringify({ error: { code: 'Unauthorized', message: 'Access token has expired.' } }),
};

/** A deployment that takes one token only. */
function takes(token: string): Scripted {
  return (request) =>
    request.header('authorization') === `Bearer ${token}` ? chatDocument('gpt-4.1') : unauthorized;
}

describe('azure 24: the metadata service', () => {
  it('is asked only where the config says so', async () => {
    scene.azure.script('good', chatDocument('gpt-4.1'));
    assert.equal((await ask('keyed/good')).status, 200);
    assert.equal(scene.tokens.asks.length, 0);
  });

  it('is asked directly, also where the provider is reached through a proxy', async () => {
    scene.tokens.play(granted('direct'));
    const reply = await ask('proxied/good');
    // Nothing listens at the proxy.
    assert.ok(reply.status >= 500, reply.text);
    assert.equal(scene.tokens.asks.length, 1);
    assert.equal(scene.tokens.asks[0]?.headers['metadata'], 'true');
  });
});

describe('azure 26: one token for all calls', () => {
  it('30 calls at once and 30 behind them ask for one', async () => {
    const { azure, tokens } = scene;
    tokens.play(granted('first'));
    azure.script('good', chatDocument('gpt-4.1'));
    for (let round = 0; round < 2; round++) {
      const replies = await Promise.all(Array.from({ length: 30 }, () => ask('e1/good')));
      for (const reply of replies) assert.equal(reply.status, 200, reply.text);
    }
    assert.equal(tokens.asks.length, 1);
    assertAsked(azure.all.at(-1), {
      path: '/openai/v1/chat/completions',
      headers: { authorization: 'Bearer first' },
    });
  });

  it('a reload of the config keeps it', async () => {
    const { tokens } = scene;
    tokens.play(granted('another'));
    await scene.reload();
    assert.equal((await ask('e1/good')).status, 200);
    assert.equal(tokens.asks.length, 0);
  });
});

describe('azure 27: a token that is refused', () => {
  for (const [i, dialect] of clients.entries()) {
    it(`is replaced once, and the call repeated, for ${dialect}`, async () => {
      const { azure, tokens } = scene;
      tokens.play(granted('old'), granted('new'));
      const script = azure.script(`expired-${i}`, takes('new'));
      const reply = await ask(`e${i + 2}/expired-${i}`, dialect);
      assert.equal(reply.status, 200, reply.text);
      assert.deepEqual(
        script.requests.map((request) => request.header('authorization')),
        ['Bearer old', 'Bearer new'],
      );
      assert.equal(tokens.asks.length, 2);
      // Nothing is held against the target: the next call goes there at once, with the new one.
      assert.equal((await ask(`e${i + 2}/expired-${i}`, dialect)).status, 200);
      assert.equal(tokens.asks.length, 2);
    });
  }

  it('calls that were refused together share the next one', async () => {
    const { azure, tokens } = scene;
    tokens.play(granted('old'), granted('new'));
    azure.script('many', takes('new'));
    const replies = await Promise.all(Array.from({ length: 20 }, () => ask('e6/many')));
    for (const reply of replies) assert.equal(reply.status, 200, reply.text);
    assert.equal(tokens.asks.length, 2);
  });

  it('a second refusal is upstream_auth', async () => {
    const { azure, tokens } = scene;
    tokens.play(granted('one'), granted('two'), granted('three'));
    const script = azure.script('never', unauthorized);
    const reply = await ask('e7/never');
    assert.equal(errorOf(reply)['code'], 'upstream_auth', reply.text);
    assert.equal(script.requests.length, 2);
    assert.equal(tokens.asks.length, 2);
  });
});

describe('azure 28: a token that cannot be had', () => {
  it('is a neutral error to the client, and no secret stands in it', async () => {
    scene.tokens.play({
      status: 401,
      body: {
        error: 'invalid_client',
        error_description: `AADSTS7000215: Invalid client secret ${secret} for app.`,
      },
    });
    for (const dialect of clients) {
      const reply = await ask('e8/good', dialect);
      assert.ok(reply.status >= 400);
      assert.match(String(errorOf(reply)['message']), /no valid credential for the provider/);
      assert.doesNotMatch(reply.text, /canary|AADSTS|127\.0\.0\.1|app-/);
      const row = await scene.gateway.callRow(String(reply.headers['x-request-id']));
      assert.equal(row['error'], 'upstream_auth');
      assert.doesNotMatch(JSON.stringify(row), /canary/);
    }
  });

  it('no part of a secret is reported where the cut of a long refusal lies within it', async () => {
    const before = '-'.repeat(490);
    const body = { error: `${before}${secret}`, error_description: `${before}${secret}` };
    const said = { status: 401, body, text: '', headers: {} };
    const url = new URL('https://login.example/token');
    const asking = { description: 'app', url, clock: { wall: () => 0 }, secrets: [secret] };
    const failed = tokenFrom(async () => said, { ...asking, advice: 'Set it.' });
    await assert.rejects(failed, (error: GatewayError) => {
      assert.equal(
        error.detail,
        `No token (app) from https://login.example/token: it answered 401: ${before}[redacted]. Set it.`,
      );
      return true;
    });
  });

  it('another target answers, and nothing is held against the provider', async () => {
    const { azure, tokens } = scene;
    // The first target is an app whose server refuses; the second is the machine.
    tokens.play({ status: 400, body: { error: 'x' } }, granted('of-the-machine'));
    azure.script('good', chatDocument('gpt-4.1'));
    const reply = await ask('safe');
    assert.equal(reply.status, 200, reply.text);
    assert.equal(azure.all.at(-1)?.header('authorization'), 'Bearer of-the-machine');
  });
});

describe('azure 29: whom a token is for', () => {
  const scopes = [
    ['claude/claude-opus-4-8', 'https://ai.azure.com/.default'],
    ['scoped/good', 'api://own/.default'],
  ] as const;
  for (const [model, scope] of scopes) {
    it(`${model}: ${scope}`, async () => {
      const { azure, tokens } = scene;
      tokens.play(granted('t'));
      azure.script('claude-opus-4-8', claudeDocument('claude-opus-4-8'));
      azure.script('good', chatDocument('gpt-4.1'));
      const claude = model.startsWith('claude/');
      const reply = await ask(model, claude ? 'messages' : 'chat');
      assert.equal(reply.status, 200, reply.text);
      assert.equal(tokens.asks[0]?.form.get('scope'), scope);
      assert.equal(tokens.asks[0].url.pathname, '/acme/oauth2/v2.0/token');
      assertAsked(azure.all.at(-1), {
        path: claude ? '/anthropic/v1/messages' : '/openai/v1/chat/completions',
        headers: {
          authorization: 'Bearer t',
          ...(claude ? { 'anthropic-version': '2023-06-01' } : {}),
        },
      });
    });
  }

  it('a count of tokens is asked for with the same token', async () => {
    const { azure } = scene;
    azure.script('claude-opus-4-8', { body: JSON.stringify({ input_tokens: 42 }) });
    const body = { model: 'claude/claude-opus-4-8', messages: [{ role: 'user', content: 'Hi' }] };
    const reply = await send(`${scene.gateway.url}/v1/messages/count_tokens`, body);
    assert.equal(reply.json['input_tokens'], 42);
    assert.equal(azure.all.at(-1)?.header('authorization'), 'Bearer t');
  });
});

describe('azure: tokens are never shown', () => {
  it('an upstream that quotes its token, now or the one before, is masked', async () => {
    const { azure, tokens } = scene;
    tokens.play(granted('canary-before-12345'), granted('canary-now-1234567'));
    const seen: string[] = [];
    azure.script('quotes', (request) => {
      seen.push(request.header('authorization')?.slice('Bearer '.length) ?? '');
      if (seen.length === 1) return unauthorized;
      const message = `Of ${seen.join(' and ')} one is odd.`;
      return { status: 400, body: JSON.stringify({ error: { code: 'odd', message } }) };
    });
    const reply = await ask('e9/quotes');
    assert.equal(reply.status, 400, reply.text);
    assert.deepEqual(seen, ['canary-before-12345', 'canary-now-1234567']);
    assert.match(reply.text, /Of \[redacted\] and \[redacted\] one is odd/);
  });

  it('the admin API shows none', async () => {
    for (const path of ['/api/providers', '/api/models', '/api/calls', '/api/status']) {
      const reply = await fetch(scene.gateway.adminUrl + path, {
        headers: { authorization: `Bearer ${adminToken}` },
      });
      assert.doesNotMatch(await reply.text(), /canary/, path);
    }
  });
});

function errorOf({ json }: Reply): JsonObject {
  return isObject(json['error']) ? json['error'] : {};
}
