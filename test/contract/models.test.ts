/** `GET /v1/models` and `/v1/models/{id}` as the clients of both formats read them (A11, clients.md §2.12). */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import AnthropicOld from '@anthropic-ai/sdk-0';
import OpenAI from 'openai';
import OpenAIOld from 'openai-4';
import { send, type Reply } from '../support/http.ts';
import { adminToken, clientKey } from '../support/keys.ts';
import { listAt, objectAt, textAt } from '../support/reading.ts';
import { startRig, type Rig } from '../support/rig.ts';

/** Names with everything that ids hold: slashes, colons, a space for a template. */
const chatModels = [
  { id: 'plain', object: 'model', created: 1_700_000_000, owned_by: 'x' },
  {
    id: 'org/deep/name:free',
    context_length: 65_536,
    top_provider: { max_completion_tokens: 4096 },
  },
  { id: 'served', max_model_len: 32_768, created: 'soon' },
  { id: 'odd name', context_window: -1 },
];
const claude = {
  type: 'model',
  id: 'claude-x',
  display_name: 'Claude X',
  created_at: '2026-03-04T05:06:07Z',
  max_input_tokens: 200_000,
  max_tokens: 64_000,
  capabilities: { image_input: { supported: true } },
  lifecycle: 'deprecated',
  line: 'opus',
  deprecated_at: '2026-09-01T00:00:00Z',
  retires_at: null,
};

let rig: Rig;
let narrowKey: string;

before(async () => {
  rig = await startRig({
    models: {
      sonnet: 'up-messages/claude-x',
      'team/fast:latest': 'up-chat/served',
      both: { targets: ['up-chat/plain', 'up-messages/claude-x'] },
    },
  });
  rig.upstreams.chat.script('/v1/models', { body: JSON.stringify({ data: chatModels }) });
  rig.upstreams.messages.script('/v1/models?limit=1000', {
    body: JSON.stringify({ data: [claude], has_more: false }),
  });
  const made = await send(
    `${rig.gateway.adminUrl}/api/keys`,
    { name: 'narrow', models: ['up-chat/org/*', 'sonnet'] },
    { headers: { authorization: `Bearer ${adminToken}` } },
  );
  narrowKey = textAt(made.json, 'key');
});
after(() => rig.stop());

const asChat = { authorization: `Bearer ${clientKey}` };
const asMessages = { 'x-api-key': clientKey, 'anthropic-version': '2023-06-01' };

function get(path: string, headers: { readonly [name: string]: string } = asChat): Promise<Reply> {
  return send(`${rig.gateway.url}${path}`, undefined, { anonymous: true, headers });
}

const ids = (reply: Reply): readonly string[] =>
  listAt(reply.json, 'data').map((entry) => textAt(entry, 'id'));

describe('A11 the list', () => {
  test('A11 one body for both formats, no redirect, aliases and each provider’s models', async () => {
    for (const [path, headers] of [
      ['/v1/models', asChat],
      ['/v1/v1/models', asChat],
      ['/v1/models?limit=1000', asMessages],
      ['/v1/models?limit=1000&beta=true', asMessages],
    ] as const) {
      const reply = await get(path, headers);
      assert.equal(reply.status, 200, reply.text);
      assert.equal(reply.json['object'], 'list');
      const listed = ids(reply);
      for (const id of ['sonnet', 'team/fast:latest', 'local/tiny', 'up-messages/claude-x']) {
        assert.ok(listed.includes(id), id);
      }
      for (const { id } of chatModels) assert.ok(listed.includes(`up-chat/${id}`), id);
      assert.equal(reply.json['first_id'], listed.at(0));
      assert.equal(reply.json['last_id'], listed.at(-1));
      assert.equal(reply.json['has_more'], false);
      for (const entry of listAt(reply.json, 'data')) {
        assert.deepEqual([entry['object'], entry['type']], ['model', 'model']);
        assert.ok(Number.isInteger(entry['created']) && textAt(entry, 'owned_by') !== '');
        assert.ok(textAt(entry, 'display_name') !== '');
        assert.match(textAt(entry, 'created_at'), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/);
      }
    }
  });

  test('A11 what providers say of their models is passed on; the rest is null', async () => {
    const told = async (id: string): Promise<readonly unknown[]> => {
      const { json } = await get(`/v1/models/${encodeURIComponent(id)}`);
      const names = ['max_input_tokens', 'max_tokens', 'capabilities', 'lifecycle', 'created'];
      return names.map((name) => json[name]);
    };
    const { capabilities } = claude;
    const march = Date.UTC(2026, 2, 4, 5, 6, 7) / 1000;
    const ofClaude = [200_000, 64_000, capabilities, 'deprecated', march];
    assert.deepEqual(await told('up-messages/claude-x'), ofClaude);
    assert.deepEqual(await told('sonnet'), ofClaude);
    assert.deepEqual(await told('claude-x'), ofClaude);
    assert.deepEqual(await told('up-chat/org/deep/name:free'), [65_536, 4096, null, 'active', 0]);
    assert.deepEqual(await told('team/fast:latest'), [32_768, null, null, 'active', 0]);
    assert.deepEqual(await told('up-chat/plain'), [null, null, null, 'active', 1_700_000_000]);
    // Two providers may differ.
    assert.deepEqual(await told('both'), [null, null, null, 'active', 0]);
    assert.deepEqual(await told('up-chat/odd name'), [null, null, null, 'active', 0]);
  });

  test('A11 S7 only what the key may use, in the list and one by one', async () => {
    const headers = { authorization: `Bearer ${narrowKey}` };
    assert.deepEqual(ids(await get('/v1/models', headers)), [
      'sonnet',
      'up-chat/org/deep/name:free',
    ]);
    assert.deepEqual(ids(await get('/v1/models?limit=1&after_id=sonnet', headers)), [
      'up-chat/org/deep/name:free',
    ]);
    assert.equal((await get('/v1/models/sonnet', headers)).status, 200);
    for (const id of ['up-chat/plain', 'plain', 'local/tiny', 'both']) {
      assert.equal((await get(`/v1/models/${id}`, headers)).status, 404, id);
      // As a cursor it would tell that it exists.
      assert.equal((await get(`/v1/models?after_id=${id}`, headers)).status, 400, id);
    }
  });
});

describe('A11 pages, as the messages API defines them', () => {
  test('A11 forwards and backwards, each model once, in one order', async () => {
    const all = ids(await get('/v1/models'));
    for (const size of [1, 7, 1000]) {
      const forwards: string[] = [];
      let page = await get(`/v1/models?limit=${size}`, asMessages);
      for (;;) {
        forwards.push(...ids(page));
        assert.equal(page.json['has_more'], forwards.length < all.length);
        if (page.json['has_more'] !== true) break;
        const last = encodeURIComponent(String(page.json['last_id']));
        page = await get(`/v1/models?limit=${size}&after_id=${last}`, asMessages);
      }
      assert.deepEqual(forwards, all);
    }
    const backwards: string[] = [];
    let cursor = all.at(-1) ?? '';
    for (let more = true; more;) {
      const query = `limit=9&before_id=${encodeURIComponent(cursor)}`;
      const page = await get(`/v1/models?${query}`, asMessages);
      backwards.unshift(...ids(page));
      more = page.json['has_more'] === true;
      cursor = String(page.json['first_id']);
    }
    assert.deepEqual(backwards, all.slice(0, -1));
  });

  test('A11 nothing behind the last, nothing before the first', async () => {
    const all = ids(await get('/v1/models'));
    for (const query of [`after_id=${all.at(-1)}`, `before_id=${all.at(0)}`]) {
      const page = await get(`/v1/models?${query}`, asMessages);
      const { data, has_more: more, first_id: first, last_id: last } = page.json;
      assert.deepEqual([data, more, first, last], [[], false, null, null]);
    }
  });

  for (const [query, field] of [
    ['limit=0', 'limit'],
    ['limit=1001', 'limit'],
    ['limit=-1', 'limit'],
    ['limit=ten', 'limit'],
    ['after_id=nobody', 'after_id'],
    ['before_id=nobody', 'before_id'],
    ['after_id=sonnet&before_id=both', 'before_id'],
  ] as const) {
    test(`A11 ${query} is a 400 that names ${field}`, async () => {
      const reply = await get(`/v1/models?${query}`, asMessages);
      assert.equal(reply.status, 400, reply.text);
      const error = objectAt(reply.json, 'error');
      assert.equal(error['type'], 'invalid_request_error');
      assert.ok(textAt(error, 'message').startsWith(`${field}: `), textAt(error, 'message'));
    });
  }
});

describe('A11 one model', () => {
  for (const id of ['up-chat/org/deep/name:free', 'team/fast:latest', 'local/tiny']) {
    for (const written of [id, encodeURIComponent(id), id.replaceAll('/', '%2f')]) {
      test(`A11 GET /v1/models/${written}`, async () => {
        const reply = await get(`/v1/models/${written}`);
        assert.equal(reply.status, 200, reply.text);
        assert.equal(reply.json['id'], id);
      });
    }
  }

  test('A11 an unknown id is a 404 in the caller’s own envelope', async () => {
    for (const id of ['nobody', 'no/body', 'no%2Fbody', '%zz', '']) {
      const chat = await get(`/v1/models/${id}`);
      assert.equal(chat.status, 404, id);
      assert.equal(objectAt(chat.json, 'error')['code'], 'model_not_found');
      assert.equal(chat.json['type'], undefined);
      for (const headers of [asMessages, { 'x-api-key': clientKey }]) {
        const messages = await get(`/v1/models/${id}`, headers);
        assert.equal(messages.status, 404, id);
        assert.equal(messages.json['type'], 'error');
        assert.equal(objectAt(messages.json, 'error')['type'], 'not_found_error');
      }
    }
  });
});

describe('A11 the official SDKs turn pages and read one model', () => {
  const anthropics = {
    '@anthropic-ai/sdk': Anthropic,
    '@anthropic-ai/sdk 0': AnthropicOld,
  } as const;
  for (const [name, Sdk] of Object.entries(anthropics)) {
    test(`A11 ${name}`, async () => {
      const client = new Sdk({ baseURL: rig.gateway.url, apiKey: clientKey, maxRetries: 0 });
      const all = ids(await get('/v1/models'));
      for (const query of [undefined, { limit: 3 }, { limit: 1000 }]) {
        const found: string[] = [];
        for await (const model of client.models.list(query)) found.push(model.id);
        assert.deepEqual(found, all);
      }
      const before: string[] = [];
      const start = { limit: 4, before_id: all[10] ?? '' };
      for await (const model of client.models.list(start)) before.push(model.id);
      assert.deepEqual(before.sort(), all.slice(0, 10).sort());
      const one = await client.models.retrieve('up-chat/org/deep/name:free');
      assert.equal(one.id, 'up-chat/org/deep/name:free');
      assert.equal(one.type, 'model');
      await assert.rejects(client.models.retrieve('no/body'), { status: 404 });
    });
  }

  const openais = { openai: OpenAI, 'openai 4': OpenAIOld } as const;
  for (const [name, Sdk] of Object.entries(openais)) {
    test(`A11 ${name}`, async () => {
      const client = new Sdk({
        baseURL: `${rig.gateway.url}/v1`,
        apiKey: clientKey,
        maxRetries: 0,
      });
      const found: string[] = [];
      for await (const model of client.models.list()) found.push(model.id);
      assert.deepEqual(found, ids(await get('/v1/models')));
      const one = await client.models.retrieve('up-chat/org/deep/name:free');
      assert.deepEqual(
        [one.id, one.object, one.owned_by],
        ['up-chat/org/deep/name:free', 'model', 'up-chat'],
      );
      await assert.rejects(client.models.retrieve('no/body'), { status: 404 });
    });
  }
});
