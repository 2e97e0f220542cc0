/** A server of the config that lacks the API which the gateway chose by default (docs/decisions/0050). */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { JsonObject } from '../../src/json/value.ts';
import { send, type Reply } from '../support/http.ts';
import { adminToken } from '../support/keys.ts';
import { allDialects, listAt, type AnyDialect } from '../support/reading.ts';
import { endpointOf, requestBody, toolsOf } from '../support/requests.ts';
import { ask, startRig, type Rig } from '../support/rig.ts';
import { chatAnswer } from '../upstream/chat.ts';
import { replying } from '../upstream/reply.ts';
import { responsesAnswer, textItem } from '../upstream/responses.ts';
import type { Answer, Received, Script } from '../upstream/scripted.ts';

const responsesPath = '/v1/responses';
const chatPath = '/v1/chat/completions';
const note = 'model: changed, asked by chat completions, since its provider has no Responses API';
const unknownUrl: Answer = {
  status: 404,
  body: '{"error":{"message":"Invalid URL (POST /v1/responses)","type":"invalid_request_error","param":null,"code":null}}',
};

/** A server that has chat completions only. */
function chatOnly(
  missing: Answer,
  chat: (request: Received) => Answer = ({ json }) =>
    chatAnswer({ text: 'Sunny.' }, json['stream'] === true),
): (request: Received) => Answer {
  return (request) => (request.path === chatPath ? chat(request) : missing);
}

const model = 'gpt-5.5-elsewhere';

/** The provider `openai` at a server of its own: what it lacks is not known yet. */
async function elsewhere(
  answer: (request: Received) => Answer,
  run: (rig: Rig, script: Script) => Promise<void>,
  { openai = {}, models = {} }: { openai?: JsonObject; models?: JsonObject } = {},
): Promise<void> {
  const rig = await startRig(({ chat }) => ({
    providers: {
      openai: { base_url: `http://127.0.0.1:${chat.port}/v1`, api_key: 'k', ...openai },
    },
    models,
    prices: { 'openai/*': { input: 1000, output: 2000 } },
  }));
  try {
    await run(rig, rig.upstreams.chat.script(model, answer));
  } finally {
    await rig.stop();
  }
}

interface Asking {
  readonly stream?: boolean;
  readonly name?: string;
  readonly more?: JsonObject;
}

function call(
  rig: Rig,
  dialect: AnyDialect,
  { stream = false, name = `openai/${model}`, more = {} }: Asking = {},
): Promise<Reply> {
  const body = requestBody(dialect, {
    model: name,
    stream,
    more: { ...toolsOf(dialect), ...more },
  });
  return ask(rig, dialect, body);
}

function pathsOf({ requests }: Script): readonly string[] {
  return requests.map(({ path }) => path);
}

for (const dialect of allDialects) {
  for (const stream of [true, false]) {
    test(`${dialect} client, ${stream ? 'stream' : 'document'}: the call goes to chat completions, and the next ones at once`, () =>
      elsewhere(chatOnly(unknownUrl), async (rig, script) => {
        const first = await call(rig, dialect, { stream });
        assert.equal(first.status, 200, first.text);
        assert.match(first.text, /Sun/);
        assert.equal(first.headers['x-gateway-attempts'], '2');
        assert.match(String(first.headers['x-gateway-notes']), new RegExp(note));
        assert.deepEqual(pathsOf(script), [responsesPath, chatPath]);
        assert.equal(listAt(script.requests[1]?.json ?? {}, 'tools').length, 1);

        const second = await call(rig, dialect, { stream });
        assert.equal(second.status, 200, second.text);
        assert.equal(second.headers['x-gateway-attempts'], '1');
        assert.match(String(second.headers['x-gateway-notes']), new RegExp(note));
        assert.deepEqual(pathsOf(script), [responsesPath, chatPath, chatPath]);
      }));
  }

  test(`${dialect} client: a body that is read in the thread goes there, too`, () =>
    elsewhere(chatOnly(unknownUrl), async (rig, script) => {
      const content = 'word '.repeat(300_000);
      const messages = [{ role: 'user', content }];
      const more = dialect === 'responses' ? { input: content } : { messages };
      const reply = await call(rig, dialect, { more });
      assert.equal(reply.status, 200, reply.text.slice(0, 500));
      assert.deepEqual(pathsOf(script), [responsesPath, chatPath]);
      assert.match(JSON.stringify(script.requests[1]?.json['messages']), /word word/);
    }));
}

/** As servers answer an address that they do not know. */
const unknown: readonly (readonly [who: string, answer: Answer])[] = [
  ['FastAPI', { status: 404, body: '{"detail":"Not Found"}' }],
  [
    'nginx',
    {
      status: 405,
      headers: { 'content-type': 'text/html' },
      body: '<html><head><title>405 Not Allowed</title></head></html>',
    },
  ],
  ['Go', { status: 404, headers: { 'content-type': 'text/plain' }, body: '404 page not found\n' }],
  ['a proxy without a body', { status: 404, body: '' }],
  ['LM Studio', { body: '{"error":"Unexpected endpoint or method. (POST /v1/responses)"}' }],
  ['a method that is not implemented', { status: 501, body: '{"error":"Not implemented"}' }],
];
describe('whatever the words', () => {
  for (const [who, answer] of unknown) {
    test(who, () =>
      elsewhere(chatOnly(answer), async (rig, script) => {
        const reply = await call(rig, 'messages', { stream: true });
        assert.equal(reply.status, 200, reply.text);
        assert.deepEqual(pathsOf(script), [responsesPath, chatPath]);
      }),
    );
  }
});

/** What an API that is there does not find. */
const notFound: readonly (readonly [what: string, error: JsonObject])[] = [
  [
    'model',
    {
      message: 'The model `gpt-5.5-elsewhere` does not exist or you do not have access to it.',
      type: 'invalid_request_error',
      param: null,
      code: 'model_not_found',
    },
  ],
  [
    'item',
    {
      message: "Item with id 'rs_1' not found.",
      type: 'invalid_request_error',
      param: 'input',
      code: null,
    },
  ],
];
describe('an API that is there', () => {
  for (const [what, error] of notFound) {
    test(`a 404 of an unknown ${what} is not asked again by another API`, () =>
      elsewhere(
        () => ({ status: 404, body: JSON.stringify({ error }) }),
        async (rig, script) => {
          for (const times of [1, 2]) {
            const reply = await call(rig, 'chat');
            assert.ok(reply.status >= 400, reply.text);
            assert.equal(reply.headers['x-gateway-attempts'], '1');
            assert.deepEqual(
              pathsOf(script),
              Array.from({ length: times }, () => responsesPath),
            );
          }
        },
      ));
  }

  test('where chat completions are unknown as well, nothing is learned', () =>
    elsewhere(
      () => unknownUrl,
      async (rig, script) => {
        for (const times of [1, 2]) {
          const reply = await call(rig, 'chat');
          assert.ok(reply.status >= 400, reply.text);
          assert.equal(script.requests.length, 2 * times);
        }
      },
    ));

  test('a server that answers 404 and 503 while it starts is asked by its preferred API again', () => {
    let starting = true;
    const away: Answer = { status: 503, body: '<html>503</html>' };
    const answer = ({ path, json }: Received): Answer => {
      if (starting) return path === chatPath ? away : { status: 404, body: '<html>404</html>' };
      if (path === chatPath) return chatAnswer({ text: 'Rain.' }, json['stream'] === true);
      return responsesAnswer([textItem('Sunny.')], { stream: json['stream'] === true });
    };
    return elsewhere(answer, async (rig, script) => {
      const first = await call(rig, 'chat');
      assert.ok(first.status >= 500, first.text);
      assert.equal(script.requests[1]?.path, chatPath);
      starting = false;
      const second = await call(rig, 'chat');
      assert.equal(second.status, 200, second.text);
      assert.equal(script.requests.at(-1)?.path, responsesPath);
    });
  });

  test('what the config says is not questioned', async () => {
    await elsewhere(
      chatOnly(unknownUrl),
      async (rig, script) => {
        const reply = await call(rig, 'messages', { name: 'by-responses' });
        assert.ok(reply.status >= 400, reply.text);
        assert.deepEqual(pathsOf(script), [responsesPath]);
      },
      { models: { 'by-responses': { targets: [`openai/${model}`], api: 'responses' } } },
    );
    await elsewhere(
      chatOnly(unknownUrl),
      async (rig, script) => {
        const reply = await call(rig, 'messages');
        assert.ok(reply.status >= 400, reply.text);
        assert.deepEqual(pathsOf(script), [responsesPath]);
      },
      { openai: { dialect: 'openai-responses' } },
    );
  });
});

test('the refused request is charged nothing', () =>
  elsewhere(chatOnly(unknownUrl), async (rig) => {
    for (let i = 0; i < 3; i += 1) assert.equal((await call(rig, 'chat')).status, 200);
    const reply = await call(rig, 'messages');
    assert.equal(reply.status, 200, reply.text);
    const rows = await rig.gateway.callRows(`openai/${model}`, 4);
    const costs = new Set(rows.map((row) => row['cost_usd']));
    assert.deepEqual(rows.map((row) => row['attempts']).toSorted(), [1, 1, 1, 2]);
    assert.equal(costs.size, 1, JSON.stringify([...costs]));
  }));

test('explain shows the API that is asked', () =>
  elsewhere(chatOnly(unknownUrl), async (rig) => {
    const shown = async (): Promise<string> => {
      const body = requestBody('chat', {
        model: `openai/${model}`,
        stream: false,
        more: toolsOf('chat'),
      });
      const endpoint = endpointOf['chat'].slice('/v1/'.length);
      const reply = await send(`${rig.gateway.adminUrl}/api/explain?endpoint=${endpoint}`, body, {
        headers: { authorization: `Bearer ${adminToken}` },
      });
      assert.equal(reply.status, 200, reply.text);
      return JSON.stringify(listAt(reply.json, 'targets')[0]);
    };
    assert.match(await shown(), /\/v1\/responses"/);
    await call(rig, 'chat');
    assert.match(await shown(), /\/v1\/chat\/completions"/);
  }));

test('after a failure of chat completions the next target is tried, and the lack is known', () =>
  elsewhere(
    chatOnly(unknownUrl, () => ({ status: 400, body: '{"error":{"message":"No."}}' })),
    async (rig, script) => {
      rig.upstreams.messages.script('second', replying('messages', { text: 'Second.' }));
      const refused = await call(rig, 'chat', { name: 'pair' });
      assert.equal(refused.status, 400, refused.text);
      await call(rig, 'chat', { name: 'pair' });
      assert.deepEqual(pathsOf(script), [responsesPath, chatPath, chatPath]);
    },
    { models: { pair: { targets: [`openai/${model}`, 'up-messages/second'] } } },
  ));

test('a target behind it is asked when both fail, within three attempts', () =>
  elsewhere(
    chatOnly(unknownUrl, () => ({ status: 500, body: '{}' })),
    async (rig, script) => {
      rig.upstreams.messages.script('second', replying('messages', { text: 'Second.' }));
      const reply = await call(rig, 'chat', { name: 'pair' });
      assert.equal(reply.status, 200, reply.text);
      assert.match(reply.text, /Second\./);
      assert.equal(reply.headers['x-gateway-attempts'], '3');
      assert.deepEqual(pathsOf(script), [responsesPath, chatPath]);
    },
    { models: { pair: { targets: [`openai/${model}`, 'up-messages/second'] } } },
  ));

test('the other credential of the provider is asked by chat completions at once', () =>
  elsewhere(
    chatOnly(unknownUrl, ({ header, json }) =>
      header('authorization') === limited
        ? { status: 429, body: '{"error":{"message":"Slow down."}}' }
        : chatAnswer({ text: 'Sunny.' }, json['stream'] === true),
    ),
    async (rig, script) => {
      // Whichever key a call begins with, one of the calls meets the limited one first.
      for (let i = 0; i < 8; i += 1) {
        const reply = await call(rig, 'chat');
        assert.equal(reply.status, 200, reply.text);
      }
      assert.deepEqual(
        pathsOf(script).filter((path) => path === responsesPath),
        [responsesPath],
      );
    },
    { openai: { api_key: ['k1', 'k2'] } },
  ));

const limited = 'Bearer k1';

test('Q1 a budget refuses what only chat completions would be told, since the call may come to them', () =>
  elsewhere(chatOnly(unknownUrl), async (rig, script) => {
    const made = await send(
      `${rig.gateway.adminUrl}/api/keys`,
      { name: 'poor', models: ['*'], budgets: [{ usd: 100, per: 'month' }] },
      { headers: { authorization: `Bearer ${adminToken}` } },
    );
    const headers = { authorization: `Bearer ${String(made.json['key'])}` };
    const name = `openai/${model}`;
    const more = { ...toolsOf('chat'), models: ['gpt-5.5-pro'], max_tokens: 10 };
    const body = requestBody('chat', { model: name, stream: false, more });
    const reply = await send(`${rig.gateway.url}${chatPath}`, body, { headers });
    assert.equal(reply.status, 400, reply.text);
    assert.match(reply.text, /price_unknown/);
    assert.equal(script.requests.length, 0);
  }));
