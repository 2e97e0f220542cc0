/** What a key may do: every key at every route with every model from every address (S7). */
import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import type { JsonObject } from '../../src/json/value.ts';
import { send, type Reply } from '../support/http.ts';
import { assertErrorBody } from '../support/legality.ts';
import { startRig, type Rig } from '../support/rig.ts';
import { replying } from '../upstream/reply.ts';

const near = '127.0.0.1';
const far = '203.0.113.9';

interface KeyRow {
  readonly models: readonly string[];
  readonly endpoints?: readonly string[];
  readonly cidrs?: readonly string[];
  readonly expires?: string;
}

const keys: { readonly [id: string]: KeyRow } = {
  all: { models: ['*'] },
  'chat-only': { models: ['*'], endpoints: ['chat'] },
  'messages-only': { models: ['*'], endpoints: ['messages', 'count_tokens'] },
  'list-only': { models: ['*'], endpoints: ['models'] },
  'one-model': { models: ['up-chat/m'] },
  'one-provider': { models: ['up-messages/*'] },
  'no-such-model': { models: ['nothing/*'] },
  'near-only': { models: ['*'], cidrs: ['127.0.0.0/8', '::1'] },
  'far-only': { models: ['*'], cidrs: ['203.0.113.0/24'] },
  'far-chat': { models: ['up-chat/*'], endpoints: ['chat'], cidrs: ['203.0.113.0/24'] },
  expired: { models: ['*'], expires: '2020-01-01' },
};

interface RouteRow {
  readonly path: (model: string) => string;
  readonly scope: string;
  readonly body?: (model: string) => JsonObject;
}

const messages = [{ role: 'user', content: 'Hello' }];
const routes: { readonly [name: string]: RouteRow } = {
  chat: {
    path: () => '/v1/chat/completions',
    scope: 'chat',
    body: (model) => ({ model, messages }),
  },
  messages: {
    path: () => '/v1/messages',
    scope: 'messages',
    body: (model) => ({ model, messages, max_tokens: 9 }),
  },
  'messages, /v1 twice': {
    path: () => '/v1/v1/messages?beta=true',
    scope: 'messages',
    body: (model) => ({ model, messages, max_tokens: 9 }),
  },
  count: {
    path: () => '/v1/messages/count_tokens',
    scope: 'count_tokens',
    body: (model) => ({ model, messages }),
  },
  'one model': { path: (model) => `/v1/models/${encodeURIComponent(model)}`, scope: 'models' },
};

const models = ['up-chat/m', 'up-messages/m'];

const secretOf = (id: string): string => `the secret of ${id}`.replaceAll(' ', '-');

function fits(glob: string, model: string): boolean {
  return glob.endsWith('*') ? model.startsWith(glob.slice(0, -1)) : glob === model;
}

/** What must come of it, by the rule alone. */
function expected(
  row: KeyRow,
  scope: string,
  call: { readonly model: string; readonly from: string },
): number {
  if (row.expires !== undefined) return 401;
  const ranges = row.cidrs ?? [];
  const isNear = call.from === near;
  const prefix = isNear ? '127.' : '203.';
  if (ranges.length > 0 && !ranges.some((range) => range.startsWith(prefix))) return 403;
  if (row.endpoints?.includes(scope) === false) return 403;
  return row.models.some((glob) => fits(glob, call.model)) ? 200 : 404;
}

describe('S7 scope', { timeout: 500_000 }, () => {
  let rig: Rig;
  before(async () => {
    const declared = Object.entries(keys).map(([id, row]) => {
      const digest = `sha256:${hash('sha256', secretOf(id))}`;
      return [id, { digest, ...row }] as const;
    });
    rig = await startRig({
      keys: Object.fromEntries(declared),
      trusted_proxies: [near],
    });
    rig.upstreams.chat.script('m', replying('chat', { text: 'Hi' }));
    rig.upstreams.messages.script('m', replying('messages', { text: 'Hi' }));
  });
  after(() => rig.stop());

  const call = (
    id: string,
    { path, body }: RouteRow,
    { model, from }: { readonly model: string; readonly from: string },
  ): Promise<Reply> =>
    send(rig.gateway.url + path(model), body?.(model), {
      headers: {
        authorization: `Bearer ${secretOf(id)}`,
        ...(from === near ? {} : { 'x-forwarded-for': from }),
      },
    });

  for (const [id, row] of Object.entries(keys)) {
    for (const [name, route] of Object.entries(routes)) {
      test(`S7 ${id} at ${name}`, async () => {
        for (const model of models) {
          for (const from of [near, far]) {
            const reply = await call(id, route, { model, from });
            const wanted = expected(row, route.scope, { model, from });
            assert.equal(reply.status, wanted, `${model} from ${from}: ${reply.text}`);
            if (wanted < 400) continue;
            const dialect = name.startsWith('messages') || name === 'count' ? 'messages' : 'chat';
            assertErrorBody(dialect, reply.json);
          }
        }
      });
    }
  }

  test('S7 the list holds what the key may call, and nothing else', async () => {
    for (const [id, row] of Object.entries(keys)) {
      const reply = await send(`${rig.gateway.url}/v1/models?limit=1000`, undefined, {
        headers: { authorization: `Bearer ${secretOf(id)}` },
      });
      const allowed = row.endpoints?.includes('models') !== false;
      const here = row.cidrs === undefined || id === 'near-only';
      const wanted = row.expires !== undefined ? 401 : here && allowed ? 200 : 403;
      assert.equal(reply.status, wanted, id);
      const { data } = reply.json;
      for (const listed of Array.isArray(data) ? data : []) {
        const model = String(Object.entries(listed ?? {}).find(([each]) => each === 'id')?.[1]);
        assert.ok(
          row.models.some((glob) => fits(glob, model)),
          `${id} is shown ${model}`,
        );
      }
    }
  });

  test('S7 an unknown address under /v1 is as closed as a known one', async () => {
    for (const [id, status] of [
      ['all', 404],
      ['far-only', 403],
      ['expired', 401],
    ] as const) {
      const reply = await send(`${rig.gateway.url}/v1/nothing`, undefined, {
        headers: { authorization: `Bearer ${secretOf(id)}` },
      });
      assert.equal(reply.status, status, id);
    }
  });

  const chains: readonly (readonly [string, string, number])[] = [
    ['what the client itself wrote before the proxy', `${far}, 198.51.100.1`, 403],
    ['what the client wrote, seen by two proxies', `10.0.0.1, ${far}, ${near}`, 200],
    ['junk', 'unknown', 403],
    ['nothing', '', 403],
    ['an address with a port', `${far}:80`, 200],
    ['an address with what is no port', `${far}:x`, 403],
    ['IPv6 with a port', `[::ffff:${far}]:80`, 200],
    ['another address with a port', `[2001:db8::1]:80`, 403],
    ['junk behind an address', `${far}, ${'a'.repeat(5000)}`, 403],
    ['IPv4 in IPv6', `::ffff:${far}`, 200],
    ['only proxies', `${near}, ${near}`, 403],
  ];
  for (const [name, header, status] of chains) {
    test(`S7 B70 x-forwarded-for: ${name}`, async () => {
      const reply = await send(`${rig.gateway.url}/v1/models`, undefined, {
        headers: { authorization: `Bearer ${secretOf('far-only')}`, 'x-forwarded-for': header },
      });
      assert.equal(reply.status, status);
    });
  }

  test('M3 B70 without trusted proxies nobody is believed', async (t) => {
    const digest = `sha256:${hash('sha256', secretOf('far-only'))}`;
    const other = await startRig({
      keys: { 'far-only': { digest, models: ['*'], cidrs: ['203.0.113.0/24'] } },
    });
    t.after(() => other.stop());
    for (const name of ['x-forwarded-for', 'forwarded', 'x-real-ip', 'x-client-ip']) {
      const reply = await send(`${other.gateway.url}/v1/models`, undefined, {
        headers: { authorization: `Bearer ${secretOf('far-only')}`, [name]: far },
      });
      assert.equal(reply.status, 403, name);
    }
  });
});
