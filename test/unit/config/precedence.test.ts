import assert from 'node:assert/strict';
import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { loadLocation } from '../../../src/config/load.ts';
import { scene } from './scene.ts';

test('N1: without anything the defaults hold, and each value says so', async () => {
  const { directory, load } = scene();
  const settings = await load();
  assert.deepEqual(settings.listen, { host: '127.0.0.1', port: 8686 });
  assert.deepEqual(settings.adminListen, { host: '127.0.0.1', port: 8687 });
  assert.equal(settings.dataDir, join(directory, '.model-gateway'));
  assert.equal(settings.configFile, undefined);
  assert.deepEqual([settings.limits.bodyBytes, settings.limits.streams], [32 * 1024 * 1024, 3000]);
  assert.deepEqual(settings.timeouts, {
    connectMs: 2000,
    firstEventMs: 60_000,
    reasoningMs: 300_000,
    documentMs: 600_000,
    idleMs: 60_000,
    totalMs: 1_800_000,
    rateWindowMs: 30_000,
  });
  assert.deepEqual(settings.clients, {
    keepAliveMs: { chat: 15_000, messages: 15_000, responses: 15_000 },
    stalledMs: 60_000,
  });
  assert.deepEqual(settings.drain, { waitMs: undefined, limitMs: 120_000 });
  assert.ok(settings.origins.every(({ origin }) => origin === 'default'));
});

test('a config file that is a link to nothing is a mistake, and not a gateway without a config', async () => {
  const { directory, load } = scene();
  symlinkSync(join(directory, 'gone.yaml'), join(directory, 'gateway.yaml'));
  await assert.rejects(
    load(),
    /^ConfigError: gateway\.yaml: is a link to a file that does not exist$/,
  );
});

test('N1: flag before variable before file before default, with the origin of each', async () => {
  const yaml = 'listen: 127.0.0.1:9001\n\nlog_level: warn\nadmin_listen: 127.0.0.1:9101\n';
  const { load } = scene(yaml);
  const env = { MODEL_GATEWAY_LISTEN: ':9002', MODEL_GATEWAY_ADMIN_LISTEN: ':9102' };
  const settings = await load({ env, flags: { listen: '[::1]:9003' } });
  assert.deepEqual(settings.listen, { host: '::1', port: 9003 });
  assert.deepEqual(settings.adminListen, { host: '127.0.0.1', port: 9102 });
  assert.equal(settings.logLevel, 'warn');
  const origins = new Map(settings.origins.map(({ path, origin }) => [path, origin]));
  assert.equal(origins.get('listen'), 'flag --listen');
  assert.equal(origins.get('admin_listen'), 'env MODEL_GATEWAY_ADMIN_LISTEN');
  assert.equal(origins.get('log_level'), 'gateway.yaml:3');
  assert.equal(origins.get('workers'), 'default');
});

test('every flag has its variable, and an empty variable is none', async () => {
  const { directory, write, load } = scene();
  const file = write('other.yaml', 'limits: { body: 10MB, streams: 7 }\n');
  const settings = await load({
    env: {
      MODEL_GATEWAY_CONFIG: file,
      MODEL_GATEWAY_DATA_DIR: 'here',
      MODEL_GATEWAY_LOG_LEVEL: 'silent',
      MODEL_GATEWAY_WORKERS: '1',
      MODEL_GATEWAY_LISTEN: '',
    },
  });
  assert.equal(settings.configFile, file);
  assert.equal(settings.dataDir, join(directory, 'here'));
  assert.equal(settings.logLevel, 'silent');
  assert.deepEqual([settings.limits.bodyBytes, settings.limits.streams], [10_000_000, 7]);
  assert.equal(settings.listen.port, 8686);
});

test('data_dir of the file is relative to the file, not to the working directory', async () => {
  const { directory, write, load } = scene();
  const { mkdirSync } = await import('node:fs');
  mkdirSync(join(directory, 'etc'));
  const file = write(join('etc', 'gateway.yaml'), 'data_dir: data\n');
  const settings = await load({ flags: { config: file } });
  assert.equal(settings.dataDir, join(directory, 'etc', 'data'));
});

test('providers and models of interface.md are read as they are written there', async () => {
  const { load } = scene(`providers:
  openai: {}
  team-vllm:
    dialect: openai-chat
    base_url: http://vllm.internal:8000/v1
    api_key: \${TEAM_VLLM_KEY}
    headers: { X-Team: research }
    timeouts: { total: 1h }
models:
  sonnet: anthropic/claude-sonnet-5
  fast:
    targets:
      - openai/gpt-5-mini
      - { target: team-vllm/qwen/qwen3-32b, weight: 2 }
    order: weighted
    strict: true
    timeouts: { connect: 500ms, first_event: 90s, document: 5m, idle: 60s, total: 30m }
limits: { body: 32MiB, streams: 3000 }
storage: memory
timeouts: { idle: 2m }
`);
  const env = { TEAM_VLLM_KEY: 'secret-1', OPENAI_API_KEY: 'secret-2', ANTHROPIC_API_KEY: 'x' };
  const settings = await load({ env });
  const [openai, team] = settings.providers;
  assert.equal(openai?.id, 'openai');
  assert.equal(openai?.apiKey, undefined);
  assert.equal(team?.baseUrl, 'http://vllm.internal:8000/v1');
  assert.equal(team?.apiKey?.reveal(), 'secret-1');
  assert.deepEqual([...(team?.headers ?? [])], [['x-team', 'research']]);
  assert.deepEqual(team?.timeouts, { totalMs: 3_600_000 });
  assert.equal(team?.where, 'gateway.yaml:3');
  const [sonnet, fast] = settings.routes;
  assert.deepEqual(sonnet, {
    name: 'sonnet',
    targets: [{ provider: 'anthropic', model: 'claude-sonnet-5', weight: 1 }],
    order: 'listed',
    where: 'gateway.yaml:10',
  });
  assert.deepEqual(fast?.targets[1], {
    provider: 'team-vllm',
    model: 'qwen/qwen3-32b',
    weight: 2,
  });
  assert.deepEqual([fast?.order, fast?.strict], ['weighted', true]);
  assert.deepEqual(fast?.timeouts, {
    connectMs: 500,
    firstEventMs: 90_000,
    reasoningMs: 90_000,
    documentMs: 300_000,
    idleMs: 60_000,
    totalMs: 1_800_000,
  });
  assert.deepEqual(settings.storage, { database: 'memory' });
  assert.equal(settings.timeouts.idleMs, 120_000);
});

test('R1 R7 G9: clients, the time for reasoning and the lowest rate', async () => {
  const yaml = `clients: { keep_alive: { chat: never }, stalled: 5s }
timeouts: { reasoning: 4m, min_rate: 64B, rate_window: 10s }
models:
  slow: { targets: [anthropic/a], timeouts: { first_event: 9s, reasoning: 20m } }
`;
  const settings = await scene(yaml).load({ env: { ANTHROPIC_API_KEY: 'x' } });
  const never = Number.POSITIVE_INFINITY;
  assert.deepEqual(settings.clients, {
    keepAliveMs: { chat: never, messages: 15_000, responses: 15_000 },
    stalledMs: 5000,
  });
  const { firstEventMs, reasoningMs, minBytesPerS, rateWindowMs } = settings.timeouts;
  assert.deepEqual([firstEventMs, reasoningMs], [60_000, 240_000]);
  assert.deepEqual([minBytesPerS, rateWindowMs], [64, 10_000]);
  assert.deepEqual(settings.routes[0]?.timeouts, { firstEventMs: 9000, reasoningMs: 1_200_000 });
  const shown = new Map(settings.origins.map(({ path, value }) => [path, value]));
  assert.equal(shown.get('clients.keep_alive.chat'), 'never');
  assert.equal(shown.get('timeouts.min_rate'), '64B');
});

test('a file of comments, empty sections and JSON are all fine', async () => {
  for (const text of [
    '',
    '# nothing\n',
    'providers:\nmodels:\nlimits:\n',
    '{"limits":{"streams":5}}',
  ]) {
    const settings = await scene(text).load();
    assert.equal(settings.routes.length, 0, text);
  }
});

test('anchors and aliases of YAML work', async () => {
  const { load } = scene('models:\n  a: &a\n    targets: [local/tiny]\n  b: *a\n');
  const settings = await load();
  assert.deepEqual(settings.routes[1]?.targets, settings.routes[0]?.targets);
});

test('F-11: aliases that multiply, and one inside of itself, are an error and take no time', async () => {
  const levels = Array.from({ length: 9 }, (_, i) => {
    const inner = i === 0 ? 'x' : `*a${i - 1}`;
    return `  a${i}: &a${i} [${Array.from({ length: 9 }, () => inner).join(', ')}]`;
  });
  for (const text of [`models:\n${levels.join('\n')}\n`, 'models: &a\n  b: *a\n']) {
    const errors = await scene(text).errors();
    assert.match(errors.join('\n'), /more than 1000 aliases/);
  }
});

test('F-4: a file without settings is told from one with an empty set of them', async () => {
  for (const text of ['', '\n', '# models:\n#   a: b\n', '\ufeff']) {
    assert.equal((await scene(text).load()).configIsEmpty, true, JSON.stringify(text));
  }
  for (const text of ['{}', 'limits: { streams: 5 }']) {
    assert.equal((await scene(text).load()).configIsEmpty, false, text);
  }
  assert.equal((await scene().load()).configIsEmpty, false);
});

test('S9: an admin plane that others can reach is refused; where it was said, warned of', async () => {
  const { load } = scene();
  const flags = { 'admin-listen': '0.0.0.0:8687' };
  await assert.rejects(load({ flags }), /--admin-listen: exposes the unencrypted admin plane/);
  const no = { ...flags, 'admin-public': 'no' };
  await assert.rejects(load({ flags: no }), /--admin-listen: exposes the unencrypted admin plane/);
  const unclear = { ...flags, 'admin-public': 'perhaps' };
  await assert.rejects(load({ flags: unclear }), /--admin-public: expected yes or no/);
  const env = { MODEL_GATEWAY_ADMIN_PUBLIC: 'true' };
  assert.equal((await load({ flags, env })).adminListen.host, '0.0.0.0');
  const open = await load({ flags: { ...flags, 'admin-public': 'yes' } });
  assert.match(open.warnings.join('\n'), /other machines can reach the unencrypted admin plane/);
  assert.deepEqual((await load()).warnings, []);
});

test('N3: a gateway.yml is warned of, since it is not read', async () => {
  const { load, write } = scene();
  write('gateway.yml', 'limits: {}\n');
  assert.match((await load()).warnings.join('\n'), /gateway\.yml is not read/);
});

test('N1: check reports what the config says of an address and of a route, with its line', async () => {
  const yaml = [
    'providers:',
    '  a:',
    '    dialect: anthropic-messages',
    '    base_url: http://a',
    '    like: anthropic',
    '    betas: [one, two]',
    '    server_tools: true',
    '  b: { dialect: openai-chat, base_url: http://b/v1, region: eu }',
    'models:',
    '  m: { targets: [a/x], strict: true, server_tools: false }',
  ].join('\n');
  const { origins } = await scene(yaml).load();
  const told = origins
    .filter(({ path }) => /^(providers|models)[.]/.test(path) && !/dialect|base_url/.test(path))
    .map(({ path, value, origin }) => `${path} ${value} ${origin}`);
  assert.deepEqual(told, [
    'providers.a.server_tools true gateway.yaml:7',
    'providers.a.like anthropic gateway.yaml:5',
    'providers.a.betas one, two gateway.yaml:6',
    'providers.b.region eu gateway.yaml:8',
    'models.m.targets[0] a/x gateway.yaml:10',
    'models.m.strict true gateway.yaml:10',
    'models.m.server_tools false gateway.yaml:10',
  ]);
});

test('a data directory that a flag or a variable names is known whatever the file has', async () => {
  const { directory } = scene('models: {a: local/tiny\nadmin_listen: nonsense\n');
  const load = (env: Readonly<Record<string, string>>) =>
    loadLocation({ flags: {}, env, cwd: directory });
  await assert.rejects(load({}), /^ConfigError: gateway\.yaml:2: /);
  const { dataDir } = await load({ MODEL_GATEWAY_DATA_DIR: 'here' });
  assert.equal(dataDir, join(directory, 'here'));
  // What is wrong with the flags themselves is told.
  const wrong = load({ MODEL_GATEWAY_DATA_DIR: 'here', MODEL_GATEWAY_ADMIN_LISTEN: 'nonsense' });
  await assert.rejects(wrong, /^ConfigError: MODEL_GATEWAY_ADMIN_LISTEN: is not an address/);
});
