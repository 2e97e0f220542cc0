/** Which of a vendor's two APIs a call goes to where the config leaves it open (docs/user/routing.md). */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { JsonObject } from '../../src/json/value.ts';
import { send, type Reply } from '../support/http.ts';
import { adminToken } from '../support/keys.ts';
import { allDialects, listAt, type AnyDialect, type Dialect } from '../support/reading.ts';
import { endpointOf, requestBody, toolsOf } from '../support/requests.ts';
import { ask, startRig, type Rig } from '../support/rig.ts';
import { chatAnswer } from '../upstream/chat.ts';
import { replying } from '../upstream/reply.ts';
import { reasoningItem, responsesAnswer, textItem } from '../upstream/responses.ts';
import { ScriptedUpstream, type Scripted, type Script } from '../upstream/scripted.ts';

const responsesPath = '/v1/responses';
const chatPath = '/v1/chat/completions';
const note = 'model: changed, asked by the Responses API, where it reasons with tools';

let rig: Rig;
let upstream: ScriptedUpstream;
let played = 0;

before(async () => {
  upstream = await ScriptedUpstream.start();
  const base_url = `http://127.0.0.1:${upstream.port}/v1`;
  rig = await startRig({
    providers: {
      openai: { base_url, api_key: ['k1', 'k2'] },
      'chat-only': { base_url, api_key: 'k', dialect: 'openai-chat', like: 'openai' },
    },
    models: {
      'by-chat': { targets: ['openai/gpt-5.5-by-chat'], api: 'chat' },
      'by-responses': { targets: ['openai/gpt-4o-by-responses'], api: 'responses' },
      exact: { targets: ['openai/gpt-5.5-exact'], strict: true },
      pair: { targets: ['openai/gpt-5.5-broken', 'up-messages/second'] },
    },
  });
});
after(async () => {
  await rig.stop();
  await upstream.close();
});

/** Answers in the format of the path that is asked. */
function answersOf(stream: boolean): { readonly [path: string]: Scripted } {
  const items = [reasoningItem('Thought.', 'blob'), textItem('Sunny.')];
  return {
    [responsesPath]: responsesAnswer(items, { stream }),
    [chatPath]: chatAnswer({ text: 'Sunny.' }, stream),
  };
}

/** A call, and the path that it was sent to. */
async function sentTo(
  dialect: AnyDialect,
  { model, path, stream = false, more }: CallOf,
): Promise<{ readonly reply: Reply; readonly script: Script }> {
  played += 1;
  const name = `${model}-${played}`;
  const script = upstream.script(name, answersOf(stream)[path] ?? assert.fail());
  const body = requestBody(dialect, { model: `openai/${name}`, stream, more });
  const reply = await ask(rig, dialect, body);
  assert.equal(reply.status, 200, reply.text);
  assert.equal((await script.request(0)).path, path);
  return { reply, script };
}

interface CallOf {
  readonly model: string;
  readonly path: string;
  readonly stream?: boolean;
  readonly more: JsonObject;
}

for (const dialect of allDialects) {
  describe(`${dialect} client of OpenAI`, () => {
    for (const stream of [true, false]) {
      test(`tools beside a model that reasons: the Responses API, ${stream ? 'stream' : 'document'}`, async () => {
        const more = toolsOf(dialect);
        const call = { model: 'gpt-5.5', path: responsesPath, stream, more };
        const { reply, script } = await sentTo(dialect, call);
        assert.match(reply.text, /Sun/);
        const { json, header } = await script.request(0);
        assert.equal(listAt(json, 'tools').length, 1);
        assert.equal(json['store'], false);
        assert.match(header('authorization') ?? '', /^Bearer k[12]$/);
        const told = reply.headers['x-gateway-notes'];
        assert.equal(told, dialect === 'responses' ? undefined : note);
        const row = await rig.gateway.callRow(String(reply.headers['x-request-id']));
        assert.equal(row['mode'], dialect === 'responses' ? 'relay' : 'translate');
        assert.equal(row['provider'], 'openai');
      });
    }

    test('a body that is read in the thread goes there, too', async () => {
      const messages = [{ role: 'user', content: 'word '.repeat(300_000) }];
      const more = { ...toolsOf(dialect), messages };
      await sentTo(dialect, { model: 'gpt-5.5', path: responsesPath, more });
    });

    test('explain says the same', async () => {
      const body = requestBody(dialect, {
        model: 'openai/gpt-5.5',
        stream: false,
        more: toolsOf(dialect),
      });
      const endpoint = endpointOf[dialect].slice('/v1/'.length);
      const reply = await send(`${rig.gateway.adminUrl}/api/explain?endpoint=${endpoint}`, body, {
        headers: { authorization: `Bearer ${adminToken}` },
      });
      assert.equal(reply.status, 200, reply.text);
      const targets = listAt(reply.json, 'targets');
      assert.equal(targets.length, 2, 'one for each key');
      for (const { request } of targets) {
        assert.match(JSON.stringify(request), /\/v1\/responses"/);
      }
    });

    test('api: chat, and a declared dialect, hold for all calls', async () => {
      for (const [model, name] of [
        ['by-chat', 'gpt-5.5-by-chat'],
        ['chat-only/gpt-5.5-only', 'gpt-5.5-only'],
      ] as const) {
        const script = upstream.script(name, chatAnswer({ text: 'Sunny.' }, false));
        const body = requestBody(dialect, { model, stream: false, more: toolsOf(dialect) });
        const reply = await ask(rig, dialect, body);
        assert.equal(reply.status, 200, reply.text);
        const { path } = await script.request(script.requests.length - 1);
        assert.equal(path, chatPath);
      }
    });

    test('api: responses holds for all calls, without a note', async () => {
      const script = upstream.script(
        'gpt-4o-by-responses',
        responsesAnswer([textItem('Hi')], { stream: false }),
      );
      const reply = await ask(
        rig,
        dialect,
        requestBody(dialect, { model: 'by-responses', stream: false }),
      );
      assert.equal(reply.status, 200, reply.text);
      assert.equal((await script.request(0)).path, responsesPath);
      assert.equal(reply.headers['x-gateway-notes'], undefined);
    });

    test('strict takes it: nothing is lost by it', async () => {
      const script = upstream.script(
        'gpt-5.5-exact',
        responsesAnswer([textItem('Hi')], { stream: false }),
      );
      const body = requestBody(dialect, { model: 'exact', stream: false, more: toolsOf(dialect) });
      const reply = await ask(rig, dialect, body);
      assert.equal(reply.status, 200, reply.text);
      assert.equal((await script.request(0)).path, responsesPath);
    });

    test('after a failure there the next target of the route is tried', async () => {
      const broken = upstream.script('gpt-5.5-broken', { status: 500, body: '{}' });
      rig.upstreams.messages.script('second', replying('messages', { text: 'Second.' }));
      const body = requestBody(dialect, { model: 'pair', stream: false, more: toolsOf(dialect) });
      const reply = await ask(rig, dialect, body);
      assert.equal(reply.status, 200, reply.text);
      assert.match(reply.text, /Second\./);
      assert.doesNotMatch(String(reply.headers['x-gateway-notes']), /Responses API/);
      for (const { path } of broken.requests) assert.equal(path, responsesPath);
    });
  });
}

const grammar = { type: 'grammar', grammar: { syntax: 'regex', definition: 'a+' } };
const file = { type: 'file', file: { file_id: 'file-1' } };

/** What keeps a call with tools on chat completions. */
const onChat: readonly (readonly [what: string, Dialect, model: string, more: JsonObject])[] = [
  ['effort none', 'chat', 'gpt-5.5', { reasoning_effort: 'none' }],
  ['two choices', 'chat', 'gpt-5.5', { n: 2 }],
  ['log probabilities', 'chat', 'gpt-5.5', { logprobs: true }],
  ['spoken answers', 'chat', 'gpt-5.5', { modalities: ['text', 'audio'] }],
  ['a file at the provider', 'chat', 'gpt-5.5', { messages: [{ role: 'user', content: [file] }] }],
  [
    'a grammar',
    'chat',
    'gpt-5.5',
    { tools: [{ type: 'custom', custom: { name: 'g', format: grammar } }] },
  ],
  ['no tools', 'chat', 'gpt-5.5', { tools: [] }],
  ['a model that reasons with tools there', 'chat', 'gpt-5.1', {}],
  ['a model that does not reason', 'chat', 'gpt-4o', {}],
  ['thinking switched off', 'messages', 'gpt-5.5', { thinking: { type: 'disabled' } }],
  ['a model that does not reason', 'messages', 'gpt-4o', {}],
];

describe('chat completions stay', () => {
  for (const [what, dialect, model, more] of onChat) {
    test(`${dialect} client: ${what}`, async () => {
      const { reply } = await sentTo(dialect, {
        model,
        path: chatPath,
        more: { ...toolsOf(dialect), ...more },
      });
      assert.doesNotMatch(String(reply.headers['x-gateway-notes']), /Responses API/);
    });
  }
});

test('a client of the Responses API is relayed without tools, too', async () => {
  const { reply } = await sentTo('responses', { model: 'gpt-4o', path: responsesPath, more: {} });
  assert.equal(reply.headers['x-gateway-notes'], undefined);
});

describe('token counts are those of the model, by whichever API it is asked', () => {
  const counters = [
    ['messages', '/v1/messages/count_tokens', 'input_tokens'],
    ['responses', '/v1/responses/input_tokens', 'input_tokens'],
  ] as const;
  for (const [dialect, path, member] of counters) {
    test(`${dialect} client`, async () => {
      const counts: unknown[] = [];
      for (const provider of ['openai', 'chat-only']) {
        const model = `${provider}/gpt-5.5-counted`;
        const body = requestBody(dialect, { model, stream: false, more: toolsOf(dialect) });
        const reply = await send(`${rig.gateway.url}${path}`, body);
        assert.equal(reply.status, 200, reply.text);
        assert.equal(reply.headers['x-gateway-usage'], 'counted');
        counts.push(reply.json[member]);
      }
      assert.ok(Number(counts[0]) > 20);
      assert.equal(counts[0], counts[1]);
    });
  }
});
