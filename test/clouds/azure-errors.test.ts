/** How Azure refuses, and what becomes of it (wire/azure.md §9: 13, 30–36, 38, 39). */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { isObject, type JsonObject } from '../../src/json/value.ts';
import { send, type Reply } from '../support/http.ts';
import { endpointOf, requestBody } from '../support/requests.ts';
import type { Answer, Script, Scripted } from '../upstream/scripted.ts';
import {
  azureKey,
  chatDocument,
  noRecordings,
  recording,
  startAzure,
  type AzureScene,
} from './azure-scene.ts';

const clients = ['chat', 'messages', 'responses'] as const;
const slots = 60;

let scene: AzureScene;
before(async () => {
  const names = Array.from({ length: slots }, (_, i) => `d${i + 1}`);
  scene = await startAzure(({ azure }) => ({
    providers: {
      azure: { base_url: azure, api_key: azureKey },
      second: { like: 'azure', base_url: azure, api_key: 'key-of-the-second' },
      next: { like: 'azure', base_url: azure, api_key: azureKey, on_content_filter: 'next' },
      ...Object.fromEntries(
        // A refused key is out for ten minutes: each test of one has a provider of its own.
        ['auth-1', 'auth-2', 'auth-3', 'auth-4', 'auth-5'].map((id) => [
          id,
          { like: 'azure', base_url: azure, api_key: azureKey },
        ]),
      ),
    },
    models: {
      ...Object.fromEntries(
        names.map((name) => [name, { targets: [`azure/${name}`, 'second/good'] }]),
      ),
      filtered: { targets: ['next/filtered', 'second/good'] },
    },
  }));
  scene.azure.script('good', chatDocument('gpt-4.1', 'from the second'));
});
after(() => scene.stop());

let used = 0;

interface Tried {
  readonly reply: Reply;
  readonly script: Script;
}

/** A route whose first target answers so; the second one is good. */
async function tryRoute(
  answers: readonly Scripted[],
  dialect: (typeof clients)[number] = 'chat',
  more: JsonObject = {},
): Promise<Tried> {
  const route = `d${++used}`;
  const script = scene.azure.script(route, ...answers);
  const body = requestBody(dialect, { model: route, stream: false, more });
  return { reply: await send(`${scene.gateway.url}${endpointOf[dialect]}`, body), script };
}

/** The same without another target. */
async function tryOnly(
  answer: Answer,
  {
    provider = 'azure',
    dialect = 'chat',
  }: { provider?: string; dialect?: (typeof clients)[number] } = {},
): Promise<Tried> {
  const name = `only-${++used}`;
  const script = scene.azure.script(name, answer);
  const body = requestBody(dialect, { model: `${provider}/${name}`, stream: false });
  return { reply: await send(`${scene.gateway.url}${endpointOf[dialect]}`, body), script };
}

const refused = (status: number, error: JsonObject, headers = {}): Answer => ({
  status,
  headers,
  body: JSON.stringify({ error }),
});

function errorOf({ json }: Reply): JsonObject {
  return isObject(json['error']) ? json['error'] : {};
}

describe('azure 13: a prompt that the filter blocks', { skip: noRecordings }, () => {
  const blocked = (): Answer => ({
    status: 400,
    body: recording('azure/reported-400-content-filter.json'),
  });

  it('keeps its code, is not repeated, and is sent to no other target', async () => {
    const { reply, script } = await tryRoute([blocked()]);
    assert.equal(reply.status, 400);
    assert.equal(errorOf(reply)['code'], 'content_filter');
    assert.match(String(errorOf(reply)['message']), /content management policy/);
    assert.equal(script.requests.length, 1);
  });

  it('to messages clients it is an invalid_request_error', async () => {
    const { reply } = await tryRoute([blocked()], 'messages');
    assert.equal(reply.status, 400);
    assert.equal(errorOf(reply)['type'], 'invalid_request_error');
  });

  it('with on_content_filter: next it continues', async () => {
    const script = scene.azure.script('filtered', blocked());
    const body = requestBody('chat', { model: 'filtered', stream: false });
    const reply = await send(`${scene.gateway.url}/v1/chat/completions`, body);
    assert.equal(reply.status, 200, reply.text);
    assert.match(reply.text, /from the second/);
    assert.equal(script.requests.length, 1);
  });
});

describe('azure 30, 31: a refused key', () => {
  const shapes: readonly (readonly [name: string, provider: string, body: () => string])[] = [
    ['as reported', 'auth-1', () => recording('azure/reported-401.json')],
    [
      'Unauthorized',
      'auth-2',
      () =>
        JSON.stringify({
          error: {
            code: 'Unauthorized',
            message: 'Access token is missing, invalid, audience is incorrect, or have expired.',
          },
        }),
    ],
    [
      'of API Management',
      'auth-3',
      () =>
        JSON.stringify({
          statusCode: 401,
          message: 'Access denied due to missing subscription key.',
        }),
    ],
    [
      'of Entra',
      'auth-4',
      () =>
        JSON.stringify({
          error: {
            code: 'PermissionDenied',
            message: 'The principal lacks the required data action.',
          },
        }),
    ],
  ];
  for (const [name, provider, body] of shapes) {
    it(
      `${name}: only the operator can help, and nothing of it is reported`,
      { skip: noRecordings },
      async () => {
        const { reply, script } = await tryOnly({ status: 401, body: body() }, { provider });
        assert.equal(errorOf(reply)['code'], 'upstream_auth', reply.text);
        assert.match(
          String(errorOf(reply)['message']),
          /Only the operator of the gateway can fix this/,
        );
        assert.doesNotMatch(reply.text, /subscription|principal|audience|canary/);
        // A fixed key is not repeated.
        assert.equal(script.requests.length, 1);
      },
    );
  }

  it('the key is never quoted', async () => {
    const { reply } = await tryOnly(
      refused(400, { code: 'x', message: `api-key ${azureKey} is odd` }),
    );
    assert.doesNotMatch(reply.text, /canary/);
    assert.match(reply.text, /\[redacted\]/);
  });
});

describe('azure 32: a deployment, or an address, that is not there', () => {
  it('DeploymentNotFound: another target is asked; without one it is a 404', async () => {
    const gone = (): Answer =>
      refused(404, {
        code: 'DeploymentNotFound',
        message: 'The API deployment for this resource does not exist.',
      });
    assert.match((await tryRoute([gone()])).reply.text, /from the second/);
    const { reply } = await tryOnly(gone());
    assert.equal(reply.status, 404);
    assert.equal(errorOf(reply)['code'], 'model_not_found');
  });

  it('Resource not found: the address is wrong, which is not the client’s fault', async () => {
    const { reply } = await tryOnly(refused(404, { code: '404', message: 'Resource not found' }));
    assert.equal(reply.status, 502, reply.text);
  });

  it('OperationNotSupported: a deployment of another kind', async () => {
    const other = (): Answer =>
      refused(400, {
        code: 'OperationNotSupported',
        message:
          'The chatCompletion operation does not work with the specified model, text-embedding-3-small.',
      });
    assert.match((await tryRoute([other()])).reply.text, /from the second/);
    assert.equal((await tryOnly(other())).reply.status, 404);
  });
});

describe('azure 33: the network of the resource', () => {
  it('another target is asked, and the key stays in', async () => {
    const firewall = refused(403, {
      code: '403',
      message: 'Access denied due to Virtual Network/Firewall rules.',
    });
    const route = await tryRoute([firewall]);
    assert.match(route.reply.text, /from the second/);
    assert.equal(
      errorOf((await tryOnly(firewall, { provider: 'auth-5' })).reply)['code'],
      'upstream_auth',
    );
    scene.azure.script('works', chatDocument('gpt-4.1', 'the key still works'));
    const body = requestBody('chat', { model: 'auth-5/works', stream: false });
    const reply = await send(`${scene.gateway.url}/v1/chat/completions`, body);
    assert.match(reply.text, /the key still works/);
  });
});

describe('azure 34–36: limits', { skip: noRecordings }, () => {
  const minute = (headers: { readonly [name: string]: string }): Answer => ({
    status: 429,
    headers,
    body: recording('azure/reported-429-minute.json'),
  });
  const waits: readonly (readonly [string, Answer, number])[] =
    noRecordings === false
      ? [
          ['retry-after', minute({ 'retry-after': '30' }), 30],
          [
            'retry-after-ms before it',
            minute({ 'retry-after-ms': '20500', 'retry-after': '30' }),
            21,
          ],
          ['the words alone', minute({}), 45],
        ]
      : [];
  for (const [name, answer, seconds] of waits) {
    it(`34 the wait stands in ${name}`, async () => {
      const { reply } = await tryOnly(answer);
      assert.equal(reply.status, 429);
      assert.equal(reply.headers['retry-after'], String(seconds));
    });
  }

  it('34 another target is asked, and the deployment cools down: others of the resource do not', async () => {
    const first = await tryRoute([minute({})]);
    assert.match(first.reply.text, /from the second/);
    const route = `d${used}`;
    assert.match(
      await scene.gateway.trouble(route, `azure/${route}`),
      /^degraded: rate limited until/,
    );
    const again = await send(
      `${scene.gateway.url}/v1/chat/completions`,
      requestBody('chat', { model: route, stream: false }),
    );
    assert.match(again.text, /from the second/);
    assert.equal(first.script.requests.length, 1);
    assert.equal(
      (await tryRoute([chatDocument('gpt-4.1', 'the other')])).script.requests.length,
      1,
    );
  });

  it('35 a day: another target, and no client sleeps through it', async () => {
    const day = (): Answer => ({ status: 429, body: recording('azure/reported-429-day.json') });
    assert.match((await tryRoute([day()])).reply.text, /from the second/);
    const { reply, script } = await tryOnly(day());
    assert.equal(reply.status, 429);
    assert.equal(reply.headers['retry-after'], undefined);
    assert.match(String(errorOf(reply)['message']), /86400 seconds/);
    assert.equal(script.requests.length, 1);
  });

  it('36 shared capacity is an overload, not a limit of this account', async () => {
    const peak = (): Answer =>
      refused(429, {
        code: '429',
        message:
          'The system is currently experiencing high demand and cannot process your request. Your request exceeds the maximum usage size allowed during peak load. For improved capacity reliability, consider switching to Provisioned Throughput.',
      });
    assert.match((await tryRoute([peak()])).reply.text, /from the second/);
    const { reply, script } = await tryOnly(peak());
    assert.equal(reply.status, 503, reply.text);
    assert.ok(script.requests.length > 1, 'it is asked again');
  });
});

describe('azure 38, 39: members that a deployment refuses', () => {
  it('38 max_tokens of a client: the other spelling is sent, within the call and from then on', async () => {
    const odd = refused(400, {
      code: 'unsupported_parameter',
      param: 'max_tokens',
      message:
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
      type: 'invalid_request_error',
    });
    const answer: Scripted = ({ json }) =>
      json['max_tokens'] === undefined ? chatDocument('gpt-5') : odd;
    const { reply, script } = await tryRoute([answer], 'chat', { max_tokens: 50 });
    assert.equal(reply.status, 200, reply.text);
    assert.equal(script.requests.at(-1)?.json['max_completion_tokens'], 50);
  });

  it('39 an unknown member is omitted from then on, for this deployment', async () => {
    const answer: Scripted = ({ json }) =>
      json['safety_identifier'] === undefined
        ? chatDocument('gpt-4.1')
        : refused(400, {
            code: 'unknown_parameter',
            param: 'safety_identifier',
            message: "Unknown parameter: 'safety_identifier'.",
            type: 'invalid_request_error',
          });
    const more = { metadata: { user_id: 'someone' } };
    const { reply, script } = await tryRoute([answer], 'messages', more);
    assert.equal(reply.status, 200, reply.text);
    assert.equal(script.requests.length, 2);
    const again = requestBody('messages', { model: `d${used}`, stream: false, more });
    await send(`${scene.gateway.url}/v1/messages`, again);
    assert.equal(script.requests.length, 3);
    assert.equal(script.requests[2]?.json['safety_identifier'], undefined);
  });
});
