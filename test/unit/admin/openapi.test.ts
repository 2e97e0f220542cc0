import type { GatewayState } from '../../../src/admin/diagnostics.ts';
import type { EventSource } from '../../../src/admin/events.ts';
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { it } from 'node:test';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { isObject, type Json, type JsonObject } from '../../../src/json/value.ts';
import { adminRoutes } from '../../../src/admin/handler.ts';
import { playgroundPrincipal, type CallerDeps } from '../../../src/admin/explain.ts';
import { fullCall } from '../../store/rows.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { adminRig, adminToken, fileStore, listOf, textOf } from './admin-rig.ts';

it('every route of the admin API is described', async (t) => {
  const rig = await adminRig(t);
  const routes = adminRoutes(rig.deps);
  const missing = routes.filter(({ about }) => about === undefined);
  assert.deepEqual(
    missing.map(({ method, path }) => `${method} ${path}`),
    [],
    'give these routes an `about`',
  );
  const { paths } = (await rig.ask('/api/openapi.json')).body;
  const described = Object.entries(isObject(paths) ? paths : {}).flatMap(([path, operations]) =>
    Object.keys(isObject(operations) ? operations : {}).map(
      (method) => `${method.toUpperCase()} ${path.replace(/\{(\w+)\}/g, ':$1')}`,
    ),
  );
  assert.deepEqual(
    described.toSorted(),
    routes.map(({ method, path }) => `${method} ${path}`).toSorted(),
  );
});

it('the description fits the meta-schema of OpenAPI 3.1', async (t) => {
  const rig = await adminRig(t);
  const { body } = await rig.ask('/api/openapi.json');
  const file = join(import.meta.dirname, '../../support/openapi/schema-3.1.json');
  const ajv = new Ajv2020({ strict: false, validateFormats: false });
  const check = ajv.compile(JSON.parse(readFileSync(file, 'utf8')));
  assert.ok(check(body), JSON.stringify(check.errors));
  assert.ok(!check({ ...body, paths: { nothing: {} } }), 'the meta-schema refuses what is wrong');
});

it('the description is sound: ids, parameters, schemas', async (t) => {
  const rig = await adminRig(t);
  const { openapi, info, paths, components } = (await rig.ask('/api/openapi.json')).body;
  assert.equal(openapi, '3.1.0');
  assert.equal(isObject(info) ? info['version'] : undefined, '1.2.3');
  const ajv = new Ajv2020({ strict: false, validateFormats: false });
  ajv.addSchema({ $id: 'doc', components });
  const ids: Json[] = [];
  for (const [path, operations] of Object.entries(isObject(paths) ? paths : {})) {
    assert.match(path, /^\/api\/[a-z/{}.]+$/);
    for (const operation of Object.values(isObject(operations) ? operations : {})) {
      assert.ok(isObject(operation));
      ids.push(operation['operationId'] ?? null);
      const parameters = listOf(operation, 'parameters');
      assert.deepEqual(
        parameters.filter((each) => each['in'] === 'path').map(({ name }) => name),
        [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name),
      );
      assert.ok(parameters.every(({ in: at, required }) => at === 'query' || required === true));
      for (const schema of schemasIn(operation)) {
        // Such a reference would start at the whole document, where there is none.
        assert.doesNotMatch(JSON.stringify(schema), /"#\/\$defs/, path);
        ajv.compile(
          JSON.parse(JSON.stringify(schema).replaceAll('"#/components', '"doc#/components')),
        );
      }
      const { responses } = operation;
      assert.ok(isObject(responses));
      assert.ok(Object.keys(responses).some((status) => /^2\d\d$/.test(status)));
    }
  }
  assert.equal(new Set(ids).size, ids.length);
});

/** What the data plane answers is described by the endpoints' own schemas. */
const playground: CallerDeps = {
  keys: { principalOf: () => playgroundPrincipal },
  makePlane: () => ({
    handle: async (_request, response) => {
      response.end('{}');
    },
  }),
};

/** What it answers for real calls is compared with its description in test/contract/explain.test.ts. */
const explainer: CallerDeps = {
  keys: { principalOf: () => playgroundPrincipal },
  makePlane: () => ({
    handle: async (_request, response) => {
      const cost = { highest_usd: null, expected_usd: null };
      const counts = { expected_output_tokens: null, reserved_output_tokens: null };
      const route = { name: 'a', order: 'listed', strict: false };
      const call = {
        endpoint: 'openai-chat',
        model: 'a',
        key: 'k',
        tags: [],
        refused: null,
        prompt: null,
      };
      response.end(
        JSON.stringify({ ...call, route, cost: { ...cost, ...counts }, limits: [], targets: [] }),
      );
    },
  }),
};

const hookId = 'abcdef012345';

/** Those of a real gateway are in test/lifecycle/event-list.test.ts. */
const events: EventSource = {
  since: 0,
  forgotten: 0,
  list: () => [
    {
      seq: 1,
      id: 'evt_1',
      type: 'target.back',
      created_at: '2026-11-27T12:00:00.000Z',
      source: 'here',
      data: { target: 'a/b', changes: 1 },
    },
  ],
  hooks: () => [
    {
      id: hookId,
      hook: { url: 'https://a.example/x', format: 'slack', events: ['target'] },
      host: 'a.example',
      delivered: 1,
      dropped: 1,
      pending: 0,
      deliveredAt: 1,
      failures: [{ at: 2, event: 'target.out', reason: 'status 404' }],
    },
  ],
  test: async () => ({ delivered: false, reason: 'status 404', ms: 3 }),
};

function schemasIn(node: Json | undefined): readonly JsonObject[] {
  if (Array.isArray(node)) return node.flatMap((item) => schemasIn(item));
  if (!isObject(node)) return [];
  return Object.entries(node).flatMap(([name, child]) =>
    name === 'schema' && isObject(child) ? [child] : schemasIn(child),
  );
}

const diagnostics = async (): Promise<GatewayState> => ({
  version: '1.2.3',
  node: 'v24.0.0',
  platform: 'linux x64',
  pid: 1,
  workers: 1,
  started_at: '2026-01-01T00:00:00.000Z',
  uptime_s: 1,
  url: 'http://127.0.0.1:1',
  admin_url: 'http://127.0.0.1:2',
  data: { directory: '/data', bytes: 1, free_bytes: null, total_bytes: null },
  store: {
    kind: 'sqlite',
    server: null,
    schema: 1,
    up: true,
    reason: null,
    read_ms: 0.1,
    last_write_ms: null,
    waiting_ms: 0,
    queued: 0,
    spooled: 0,
    saved: 0,
    failures: 0,
    refused: 0,
  },
  counters: { kind: 'local', server: null, up: true },
  process: {
    rss_bytes: 1,
    heap_bytes: 1,
    heap_limit_bytes: 1,
    memory_share: 0,
    loop_delay_ms: 0,
    pressure: 0,
  },
  calls: { live: 0, streams: 0 },
  engines: [],
  certificates: [],
  last_reload: null,
  tallies: { live_calls: 0 },
});

const change = { path: 'listen', before: null, after: ':1', overriddenBy: 'flag --listen' };

it('answers are as they are described', async (t) => {
  const { store } = await fileStore();
  const configFile = join(temporaryFolder('openapi'), 'gateway.yaml');
  writeFileSync(configFile, 'models: {}\n');
  const config = () => ({ origins: [], warnings: [], configFile });
  const editing = {
    tagKey: Buffer.from('key'),
    isShared: false,
    preview: async () => ({ changes: [change], warnings: ['w'], needsRestart: ['workers'] }),
  };
  const rig = await adminRig(t, {
    store,
    playground,
    explainer: async () => explainer,
    events,
    config,
    editing,
    diagnostics,
  });
  const routes = adminRoutes(rig.deps);
  const full = {
    name: 'a',
    models: ['*'],
    tags: ['t'],
    cidrs: ['::1'],
    team: 'red',
    owner: 'me',
    expires_in: '1d',
    rpm: 5,
    budget: 1,
    per: 'ever',
    limits: [{ kind: 'tokens', amount: 5, model: 'x' }],
  };
  const made = await rig.ask('/api/keys', { method: 'POST', body: full });
  const id = textOf(made.body, 'id');
  rig.keys.authenticate(undefined, textOf(made.body, 'key'));
  const bodies: { readonly [route: string]: JsonObject } = {
    'POST /api/keys': full,
    'PATCH /api/keys/:id': { team: null },
    'PUT /api/teams/:name': { rpm: 1, budget: 1, per: 'day' },
    'PUT /api/tags/:name': {},
    'POST /api/session': { token: adminToken },
    'POST /api/backup': { path: join(rig.folder, 'copy.db') },
    'POST /api/config/file/validate': { text: 'models: {}' },
    'PUT /api/config/file': { text: 'models: {}' },
  };
  let etag = '';
  rig.ledger.record(fullCall);
  const { people } = rig.deps.store;
  const now = rig.clock.wall();
  const groups = { roles: [], leads: [], teams: ['red'] };
  await people.signedIn({ id: 'red', name: 'Red', ...groups, firstAt: now, seenAt: now });
  const times = { createdAt: now, seenAt: now, endsAt: now + 1000 };
  await people.openSession({ id, person: 'blue', origin: rig.url, ...times });
  const idIn = (path: string): string => {
    if (path.startsWith('/api/webhooks')) return hookId;
    return path.startsWith('/api/calls') ? fullCall.id : id;
  };
  const late = routes.filter(
    ({ path, method }) => method === 'DELETE' || path === '/api/keys/:id/revoke',
  );
  for (const route of [...routes.filter((each) => !late.includes(each)), ...late]) {
    const { method, path, about } = route;
    const body = bodies[`${method} ${path}`];
    if (method === 'GET' && path.endsWith('s/:name')) {
      const put = { method: 'PUT', body: { budget: 2, per: 'week' } };
      await rig.ask(path.replace(':name', 'red'), put);
    }
    const answer = await rig.ask(path.replace(':id', idIn(path)).replace(':name', 'red'), {
      method,
      ...(body === undefined ? {} : { body }),
      // As a browser does: for signing in, and for a change of what it has read.
      headers: { origin: rig.url, 'if-match': etag },
    });
    etag = String(answer.headers['etag'] ?? etag);
    const what = `${method} ${path} ${JSON.stringify(answer.body)}`;
    assert.equal(answer.status, about?.status ?? 200, what);
    const checked = about?.answer.safeParse(answer.body);
    assert.equal(checked?.success, true, `${what} ${String(checked?.error?.message)}`);
  }
});
