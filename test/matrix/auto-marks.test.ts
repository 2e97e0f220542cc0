/** D15: `cache: auto` marks prompts of clients that do not, in every pair of dialects, and counts what that costs. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, before, suite, test } from 'node:test';
import { isObject, type Json, type JsonObject } from '../../src/json/value.ts';
import { startTestGateway, type TestGateway } from '../support/gateway.ts';
import { send } from '../support/http.ts';
import { adminToken, clientKey } from '../support/keys.ts';
import { type ClientDialect, clientDialects } from '../support/dialects.ts';
import { objectAt, textAt } from '../support/reading.ts';
import { endpointOf } from '../support/requests.ts';
import { answerIn, replying } from '../upstream/reply.ts';
import { ScriptedUpstream } from '../upstream/scripted.ts';

const parameters = { type: 'object', properties: {} };
const turns = ['one', 'two', 'three'].flatMap((content) => [
  { role: 'user', content },
  { role: 'assistant', content: 'Yes.' },
]);
const messages = [...turns, { role: 'user', content: [{ type: 'text', text: 'four' }] }];
const items = messages.map(({ role, content }) => ({
  role,
  content: typeof content === 'string' ? content : [{ type: 'input_text', text: 'four' }],
}));
const bodies: { readonly [D in ClientDialect]: JsonObject } = {
  chat: {
    messages: [{ role: 'system', content: 'Be brief.' }, ...messages],
    tools: ['f', 'g'].map((name) => ({ type: 'function', function: { name, parameters } })),
  },
  messages: {
    max_tokens: 100,
    system: 'Be brief.',
    messages,
    tools: ['f', 'g'].map((name) => ({ name, input_schema: parameters })),
  },
  responses: {
    instructions: 'Be brief.',
    input: items,
    tools: ['f', 'g'].map((name) => ({ type: 'function', name, parameters, strict: false })),
    store: false,
  },
};

const declaredKey = 'declared-key-0123456789abcdef';
/** Models that take marks, by their dialect: a Responses server takes none. */
const marking = ['chat', 'messages'] as const;
/** Routes that do not ask for marks, by the dialect of their model. */
const plainRoutes = { chat: 'plain-chat', messages: 'plain' } as const;

let gateway: TestGateway;
let upstream: ScriptedUpstream;
before(async () => {
  upstream = await ScriptedUpstream.start();
  const base = `http://127.0.0.1:${upstream.port}`;
  gateway = await startTestGateway({
    providers: {
      anthropic: { base_url: base, api_key: 'k' },
      openrouter: { base_url: `${base}/v1`, api_key: 'k' },
      openai: { base_url: `${base}/v1`, api_key: 'k' },
    },
    models: {
      messages: { targets: ['anthropic/claude-opus-4-8'], cache: 'auto' },
      chat: { targets: ['openrouter/anthropic/claude-opus-4.8'], cache: 'auto' },
      automatic: { targets: ['openai/gpt-4.1'], cache: 'auto' },
      plain: { targets: ['anthropic/claude-opus-4-7'] },
      'plain-chat': { targets: ['openrouter/anthropic/claude-opus-4.7'] },
      'plain-automatic': { targets: ['openai/gpt-4.1'] },
      marked: { targets: ['anthropic/claude-opus-4-7'], cache: 'auto' },
    },
    keys: {
      declared: {
        digest: `sha256:${createHash('sha256').update(declaredKey).digest('hex')}`,
        models: ['*'],
        cache: 'auto',
      },
    },
  });
});
after(async () => {
  await gateway.stop();
  await upstream.close();
});

/** What carries a mark: the text of a block, or the name of a tool. */
function marked(value: Json | undefined): readonly string[] {
  if (Array.isArray(value)) return value.flatMap((each) => marked(each));
  if (!isObject(value)) return [];
  const { cache_control: mark, text, name } = value;
  const own =
    mark === undefined ? [] : [String(text ?? name ?? objectAt(value, 'function')['name'])];
  return [...own, ...Object.values(value).flatMap((each) => marked(each))];
}

async function ask(
  model: string,
  client: ClientDialect,
  body: JsonObject,
  key = clientKey,
): Promise<JsonObject> {
  const before = upstream.all.length;
  const headers = { authorization: `Bearer ${key}` };
  const reply = await send(gateway.url + endpointOf[client], { model, ...body }, { headers });
  assert.equal(reply.status, 200, reply.text);
  assert.equal(reply.headers['x-gateway-notes'], undefined);
  return upstream.all[before]?.json ?? {};
}

async function admin(method: string, path: string, body: JsonObject): Promise<JsonObject> {
  const headers = { authorization: `Bearer ${adminToken}` };
  const reply = await send(gateway.adminUrl + path, body, { method, headers });
  assert.ok(reply.status < 300, reply.text);
  return reply.json;
}

async function makeKey(more: JsonObject): Promise<{ readonly id: string; readonly key: string }> {
  const made = await admin('POST', '/api/keys', { name: 'a', models: ['*'], ...more });
  return { id: textAt(made, 'id'), key: textAt(made, 'key') };
}

suite('D15 cache: auto', () => {
  before(() => {
    const cached = { fresh: 5, cacheRead: 0, cacheWrite: 1000, output: 7, reasoning: 0 };
    const reply = { text: 'ok', usage: cached };
    for (const model of ['claude-opus-4-8', 'claude-opus-4-7']) {
      upstream.script(model, replying('messages', reply));
    }
    for (const model of ['anthropic/claude-opus-4.8', 'anthropic/claude-opus-4.7']) {
      upstream.script(model, replying('chat', reply));
    }
    upstream.script('gpt-4.1', (request) => {
      const dialect = request.path.endsWith('/responses') ? 'responses' : 'chat';
      return answerIn(dialect, reply, false);
    });
  });

  for (const client of clientDialects) {
    for (const server of marking) {
      test(`D15 ${client} client, ${server} model: tools, instructions and the last two turns`, async () => {
        const sent = await ask(server, client, bodies[client]);
        assert.deepEqual([...marked(sent)].sort(), ['Be brief.', 'four', 'g', 'three']);
      });

      test(`D15 ${client} client, ${server} model: the same for a key that asks for it, on a plain route`, async () => {
        const { key } = await makeKey({ cache: 'auto' });
        const asks = [
          await ask(plainRoutes[server], client, bodies[client], key),
          await ask(plainRoutes[server], client, bodies[client], declaredKey),
        ];
        for (const sent of asks) {
          assert.deepEqual([...marked(sent)].sort(), ['Be brief.', 'four', 'g', 'three']);
        }
      });
    }

    test(`D15 marks of the ${client} client's own hold`, async () => {
      const list = client === 'responses' ? 'input' : 'messages';
      const [first, ...rest] = bodies[client][list] as readonly JsonObject[];
      const mark =
        client === 'responses'
          ? { type: 'input_text', prompt_cache_breakpoint: { mode: 'explicit' } }
          : { type: 'text', cache_control: { type: 'ephemeral' } };
      const content = [{ ...mark, text: 'mine' }];
      const own = { ...bodies[client], [list]: [{ ...first, content }, ...rest] };
      for (const server of marking) {
        assert.deepEqual(marked(await ask(server, client, own)), ['mine']);
      }
    });

    test(`D15 no marks for the ${client} client elsewhere`, async () => {
      for (const model of ['plain', 'plain-chat', 'automatic']) {
        assert.deepEqual(marked(await ask(model, client, bodies[client])), []);
      }
      const sent = await ask('plain-automatic', client, bodies[client], declaredKey);
      assert.deepEqual(marked(sent), []);
    });
  }

  test('D15 what is written to the cache is counted and priced', async () => {
    await ask('messages', 'chat', bodies.chat);
    const [row] = await gateway.callRows('messages', 1);
    const charged = objectAt(row ?? {}, 'charged');
    const cost = objectAt(row ?? {}, 'cost');
    assert.equal(charged['cache_write_tokens'], 1000);
    assert.ok(Number(cost['cache_write']) > 0, JSON.stringify(row));
  });

  test('D15 a key that asks for marks no longer is not given them', async () => {
    const { id, key } = await makeKey({ cache: 'auto' });
    assert.notDeepEqual(marked(await ask('plain', 'chat', bodies.chat, key)), []);
    await admin('PATCH', `/api/keys/${id}`, { cache: null });
    assert.deepEqual(marked(await ask('plain', 'chat', bodies.chat, key)), []);
    // The route's wish holds for each key.
    assert.notDeepEqual(marked(await ask('marked', 'chat', bodies.chat, key)), []);
  });

  test('D15 a budget reserves for what is written, whether the key or the route asks for it', async () => {
    const budget = { budget: '5', per: 'day' };
    const keys = {
      unmarked: await makeKey(budget),
      marked: await makeKey({ ...budget, cache: 'auto' }),
    };
    const prompt = {
      ...bodies.chat,
      max_tokens: 1,
      messages: [{ role: 'user', content: 'a b '.repeat(5000) }],
    };
    const cost = async (model: string, { id }: { readonly id: string }): Promise<number> => {
      const path = `/api/explain?endpoint=chat/completions&key=${id}`;
      const explained = await admin('POST', path, { model, ...prompt });
      const [first] = explained['targets'] as readonly JsonObject[];
      const isMarked = marked(objectAt(first ?? {}, 'request')['body']).length > 0;
      assert.equal(isMarked, model === 'marked' || id === keys.marked.id);
      const [limit] = explained['limits'] as readonly JsonObject[];
      return Number(limit?.['takes']);
    };
    const plain = await cost('plain', keys.unmarked);
    const ofKey = await cost('plain', keys.marked);
    const ofRoute = await cost('marked', keys.unmarked);
    assert.equal(ofKey, ofRoute);
    assert.ok(ofKey > plain * 1.24 && ofKey < plain * 1.26, `${plain} ${ofKey}`);
  });
});
