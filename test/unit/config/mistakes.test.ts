import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { scene } from './scene.ts';

/** Text of the file, and the only line of errors that it must give. */
const mistakes: readonly (readonly [string, string, string])[] = [
  [
    'an unknown key',
    'limits:\n  streams: 5\nproviders:\n  team:\n    dialekt: openai-chat\n    base_url: http://a/v1\n',
    'gateway.yaml:5: providers.team.dialekt: unknown key (did you mean "dialect"?)',
  ],
  [
    'an unknown section',
    'model: {}\n',
    'gateway.yaml:1: model: unknown key (did you mean "models"?)',
  ],
  [
    'a key in another spelling',
    'providers:\n  openai:\n    baseURL: http://a\n    api_key: x\n',
    'gateway.yaml:3: providers.openai.baseURL: unknown key (did you mean "base_url"?)',
  ],
  [
    'an unknown key of a target',
    'models:\n  fast:\n    targets:\n      - local/tiny\n      - target: local/tiny\n        wieght: 2\n',
    'gateway.yaml:6: models.fast.targets[1].wieght: unknown key (did you mean "weight"?)',
  ],
  [
    'traces that go nowhere',
    'traces: { sample: 0.5 }\n',
    'gateway.yaml:1: traces: names no endpoint: set it, or OTEL_EXPORTER_OTLP_ENDPOINT',
  ],
  [
    'traces to no address',
    'traces:\n  endpoint: localhost:4318\n',
    'gateway.yaml:2: traces.endpoint: is not an http:// or https:// address',
  ],
  [
    'more traces than all',
    'traces:\n  endpoint: http://localhost:4318\n  sample: 10\n',
    'gateway.yaml:3: traces.sample: must be 0 to 1',
  ],
  [
    'a webhook for events that there are not',
    'webhooks:\n  - url: http://a/b\n    secret: 0123456789abcdef\n    events: []\n',
    'gateway.yaml:4: webhooks[0].events: needs at least one entry',
  ],
  [
    'a webhook of a chat with a secret that it does not use',
    'webhooks:\n  - url: http://a/b\n    format: slack\n    secret: 0123456789abcdef\n',
    'gateway.yaml:4: webhooks[0].secret: is not used by slack, whose address is the secret: remove it',
  ],
  [
    'a webhook whose events would go unsigned',
    'webhooks:\n  - url: http://a/b\n',
    'gateway.yaml:2: webhooks[0].secret: is missing: it signs each event',
  ],
  [
    'signs of life that never stop',
    'clients:\n  keep_alive: 0s\n',
    'gateway.yaml:2: clients.keep_alive: must be 1ms to 24h',
  ],
  [
    'signs of life in words of another kind',
    'clients:\n  keep_alive:\n    chat: rarely\n',
    'gateway.yaml:3: clients.keep_alive.chat: is neither never nor a duration (500ms, 2s, 30m, 1h)',
  ],
  [
    'a base address with the path of its endpoint',
    'providers:\n  a:\n    dialect: openai-chat\n    base_url: http://a/v1/chat/completions/\n',
    'gateway.yaml:4: providers.a.base_url: ends with an endpoint: leave /chat/completions out, the gateway adds the path of each call',
  ],
  [
    'a home directory that no shell replaces',
    'data_dir: ~/gateway\n',
    'gateway.yaml:1: data_dir: begins with ~, which only a shell replaces: write the whole path, in the file also ${HOME}/…',
  ],
  [
    'a merge key',
    'limits: &a\n  streams: 5\nretry:\n  <<: *a\n',
    'gateway.yaml:4: retry.<<: merge keys are not read: repeat the settings here (an alias for a whole value, NAME: *anchor, is read)',
  ],
  [
    'the encoding of another editor',
    'l\0o\0g\0_\0l\0e\0v\0e\0l\0:\0',
    'gateway.yaml: is not UTF-8 text (UTF-16?): save it as UTF-8',
  ],
  [
    'the key in place of its digest',
    'keys:\n  ci:\n    digest: gw_key\n    models: ["*"]\n',
    'gateway.yaml:3: keys.ci.digest: is not sha256: and 64 hexadecimal digits, as printf %s "$KEY" | sha256sum gives them',
  ],
  [
    'a duplicate model',
    'models:\n  a: local/tiny\n  b: local/tiny\n  a: local/other\n',
    'gateway.yaml:4: models.a: occurs twice (first on line 2)',
  ],
  [
    'a duplicate section',
    'models: {}\nlimits: {}\nmodels: {}\n',
    'gateway.yaml:3: models: occurs twice (first on line 1)',
  ],
  [
    'a word for true that YAML no longer knows',
    'models:\n  m: { targets: [local/tiny], strict: yes }\n',
    'gateway.yaml:2: models.m.strict: expected true or false, found a text',
  ],
  [
    'a likeness that nobody has',
    'providers:\n  team:\n    dialect: openai-chat\n    base_url: http://a/v1\n    like: vlm\n',
    'gateway.yaml:5: providers.team.like: "vlm" is not a known vendor',
  ],
  [
    'a likeness to the embedded engine',
    'providers:\n  team:\n    dialect: openai-chat\n    base_url: http://a/v1\n    like: local\n',
    'gateway.yaml:5: providers.team.like: "local" is not a known vendor',
  ],
  [
    'a likeness that speaks another format',
    'providers:\n  team:\n    dialect: anthropic-messages\n    base_url: http://a\n    like: ollama\n',
    'gateway.yaml:5: providers.team.like: "ollama" speaks openai-chat, this address anthropic-messages',
  ],
  [
    'betas for a server that gets none',
    'providers:\n  openai:\n    api_key: x\n    betas: [a]\n',
    'gateway.yaml:4: providers.openai.betas: does not apply to openai-chat: these servers get no anthropic-beta',
  ],
  [
    'a region where the server itself is asked',
    'providers:\n  anthropic:\n    api_key: x\n    region: eu\n',
    'gateway.yaml:4: providers.anthropic.region: does not apply to anthropic-messages: these servers receive inference_geo themselves',
  ],
  [
    'a list of betas with a comma list in it',
    'providers:\n  openai:\n    api_key: x\n    betas: ["a,b"]\n',
    'gateway.yaml:4: providers.openai.betas[0]: is not a beta name',
  ],
  [
    'an unset reference',
    'providers:\n  team:\n    dialect: openai-chat\n    base_url: http://a/v1\n    api_key: ${NOT_THERE}\n',
    'gateway.yaml:5: providers.team.api_key: the environment variable NOT_THERE is not set',
  ],
  [
    'an empty reference',
    'providers:\n  openai:\n    api_key: ${EMPTY}\n',
    'gateway.yaml:3: providers.openai.api_key: the environment variable EMPTY is empty',
  ],
  [
    'an unreadable file reference',
    'providers:\n  openai:\n    api_key: ${file:no-such-file}\n',
    'gateway.yaml:3: providers.openai.api_key: the file no-such-file cannot be read (ENOENT)',
  ],
  [
    'a reference that is never closed',
    'providers:\n  openai:\n    api_key: "${OPEN"\n',
    'gateway.yaml:3: providers.openai.api_key: ${ is never closed',
  ],
  [
    'a reference with a default, which is none',
    'providers:\n  openai:\n    api_key: ${KEY:-x}\n',
    'gateway.yaml:3: providers.openai.api_key: ${KEY:-x} is not a reference: ${NAME} or ${file:/path}; $${ stands for ${',
  ],
  [
    'another tool’s reference',
    'providers:\n  openai:\n    api_key: os.environ/OPENAI_API_KEY\n',
    'gateway.yaml:3: providers.openai.api_key: is not a reference here; write ${OPENAI_API_KEY}',
  ],
  [
    'a shell variable without braces',
    'providers:\n  openai:\n    api_key: $OPENAI_API_KEY\n',
    'gateway.yaml:3: providers.openai.api_key: is not a reference here; write ${OPENAI_API_KEY}',
  ],
  [
    'a placeholder in an address',
    'providers:\n  openai:\n    api_key: x\n    base_url: "https://a/{model}"\n',
    'gateway.yaml:4: providers.openai.base_url: contains an unresolved placeholder in braces',
  ],
  [
    'the gateway’s own address',
    'providers:\n  openai:\n    api_key: x\n    base_url: http://localhost:8686/v1\n',
    'gateway.yaml:4: providers.openai.base_url: points to this gateway itself',
  ],
  [
    'the admin plane’s address',
    'admin_listen: 0.0.0.0:9000\nadmin_public: true\nproviders:\n  ollama:\n    base_url: http://127.0.0.1:9000\n',
    'gateway.yaml:5: providers.ollama.base_url: points to this gateway itself',
  ],
  [
    'an address of cloud metadata (S16)',
    'providers:\n  openai:\n    api_key: x\n    base_url: http://0xa9fea9fe/v1\n',
    'gateway.yaml:4: providers.openai.base_url: is a link-local or cloud-metadata address, which can expose credentials of the machine; the gateway never connects there',
  ],
  [
    'a name of cloud metadata (S16)',
    'webhooks:\n  - url: http://metadata.google.internal./x\n    secret: some-secret-of-mine\n',
    'gateway.yaml:2: webhooks[0].url: is a link-local or cloud-metadata address, which can expose credentials of the machine; the gateway never connects there',
  ],
  [
    'an admin plane that others can reach (S9)',
    'admin_listen: 127.example.com:8687\n',
    'gateway.yaml:1: admin_listen: exposes the unencrypted admin plane to other machines: listen on 127.0.0.1 behind a TLS proxy, or set admin_public: true (--admin-public yes)',
  ],
  [
    'a password in an address',
    'providers:\n  openai:\n    base_url: https://me:hidden@host/v1\n',
    'gateway.yaml:3: providers.openai.base_url: holds a user or password; use api_key or headers',
  ],
  [
    'a query in an address',
    'providers:\n  openai:\n    base_url: https://host/v1?api-version=1\n',
    'gateway.yaml:3: providers.openai.base_url: must end with its path, without ? or #',
  ],
  [
    'no address',
    'providers:\n  openai:\n    base_url: api.openai.com\n',
    'gateway.yaml:3: providers.openai.base_url: is not an http:// or https:// address',
  ],
  [
    'an unknown provider of a target',
    'models:\n  a:\n    targets:\n      - local/tiny\n      - opnai/gpt\n',
    'gateway.yaml:5: models.a.targets[1]: there is no provider "opnai" (did you mean "openai"?)',
  ],
  [
    'a vendor without its key in a target',
    'models:\n  a: openai/gpt\n',
    'gateway.yaml:2: models.a: provider "openai" has no key: set OPENAI_API_KEY or declare it under providers',
  ],
  [
    'a declared vendor without its key',
    'providers:\n  anthropic: {}\n',
    'gateway.yaml:2: providers.anthropic: has no key: set ANTHROPIC_API_KEY or api_key',
  ],
  [
    'an unknown vendor without address',
    'providers:\n  mine:\n    dialect: openai-chat\n',
    'gateway.yaml:2: providers.mine: "mine" is not a known vendor: base_url must be set',
  ],
  [
    'the embedded engine’s name',
    'providers:\n  local: { dialect: openai-chat, base_url: "http://a/v1" }\n',
    'gateway.yaml:2: providers.local: "local" is the embedded engine; choose another name',
  ],
  [
    'a target without a provider',
    'models:\n  a: gpt-5\n',
    'gateway.yaml:2: models.a: a target is provider/model, e.g. openai/gpt-5-mini; names under models: do not chain',
  ],
  [
    'a route without targets',
    'models:\n  a: { order: listed }\n',
    'gateway.yaml:2: models.a.targets: is missing',
  ],
  [
    'an order that does not exist',
    'models:\n  a:\n    targets: [local/tiny]\n    order: nearest\n',
    'gateway.yaml:4: models.a.order: expected one of listed, weighted, least-busy, fastest, cheapest',
  ],
  [
    'one key under two names',
    'providers:\n  openai:\n    credentials: { a: sk-1, b: sk-1 }\n',
    'gateway.yaml:3: providers.openai.credentials: holds the same key twice',
  ],
  [
    'keys in both ways',
    'providers:\n  openai:\n    api_key: sk-1\n    credentials: { b: sk-2 }\n',
    'gateway.yaml:4: providers.openai.credentials: cannot be combined with api_key: use one of them',
  ],
  [
    'a storage that does not exist',
    'storage: mysql://me:hidden@host/db\n',
    'gateway.yaml:1: storage: expected sqlite, memory or postgres://USER:PASSWORD@HOST:5432/DATABASE',
  ],
  [
    'a dialect that is planned',
    'providers:\n  a: { dialect: gemini, base_url: "http://a" }\n',
    'gateway.yaml:2: providers.a.dialect: is not available yet; expected one of openai-chat, anthropic-messages, openai-responses',
  ],
  ['too many workers', 'workers: 65\n', 'gateway.yaml:1: workers: must be at most 64'],
  [
    'a duration without unit',
    'timeouts:\n  idle: 60\n',
    'gateway.yaml:2: timeouts.idle: is a number without a unit; write a duration (500ms, 2s, 30m, 1h)',
  ],
  [
    'a duration that is none',
    'timeouts:\n  idle: soon\n',
    'gateway.yaml:2: timeouts.idle: is not a duration (500ms, 2s, 30m, 1h)',
  ],
  [
    'a duration of zero',
    'timeouts: { idle: 0s }\n',
    'gateway.yaml:1: timeouts.idle: must be 1ms to 24h',
  ],
  [
    'a size that is none',
    'limits:\n  body: 32 megabytes\n',
    'gateway.yaml:2: limits.body: is not a size (32MiB, 10MB, bytes)',
  ],
  ['a size of zero', 'limits:\n  body: 0\n', 'gateway.yaml:2: limits.body: must be 1B to 512MiB'],
  ['no streams', 'limits:\n  streams: 0\n', 'gateway.yaml:2: limits.streams: must be at least 1'],
  [
    'a listen address that is none',
    'listen: http://127.0.0.1:80\n',
    'gateway.yaml:1: listen: is not an address. Use HOST:PORT, PORT (loopback) or [::1]:PORT, without http://',
  ],
  [
    'one address for both planes',
    'listen: 127.0.0.1:8687\n',
    'admin_listen: is also the address of the data plane; the admin plane needs its own',
  ],
  [
    'a header that the gateway writes itself',
    'providers:\n  openai:\n    api_key: x\n    headers:\n      Content-Type: text/plain\n',
    'gateway.yaml:5: providers.openai.headers.Content-Type: is set by the gateway',
  ],
  [
    'a header with a line break',
    'providers:\n  openai:\n    api_key: x\n    headers:\n      x-a: "a\\r\\nb"\n',
    'gateway.yaml:5: providers.openai.headers.x-a: contains a line break or another character that headers cannot contain',
  ],
  [
    'a provider name with a slash',
    'providers:\n  a/b: { dialect: openai-chat, base_url: "http://a" }\n',
    'gateway.yaml:2: providers.a/b: a provider name consists of letters, digits, . _ and -',
  ],
  [
    'a name that would vanish',
    'models:\n  __proto__: local/tiny\n',
    'gateway.yaml:2: models: a key must be a plain text, and not __proto__',
  ],
  [
    'a list',
    '- a\n- b\n',
    'gateway.yaml: expected a mapping, found a list; write sections such as providers: and models:',
  ],
  [
    'a list of keys',
    'keys:\n  - name: ci\n',
    'gateway.yaml:1: keys: expected a mapping, found a list; write NAME: in place of each "-"',
  ],
  [
    'a value in place of a mapping',
    'drain: 5s\n',
    'gateway.yaml:1: drain: expected a mapping, found a text; write { wait: …, limit: … }',
  ],
  [
    'a number in place of a mapping with many keys',
    'limits: 5\n',
    'gateway.yaml:1: limits: expected a mapping, found a number; write { body: …, streams: …, memory: …, connections: …, … }',
  ],
  [
    'a text in place of a mapping of names',
    'models: gpt\n',
    'gateway.yaml:1: models: expected a mapping, found a text; write { NAME: … }',
  ],
  [
    'an alias of an alias',
    'models:\n  a: local/tiny\n  b: a\n',
    'gateway.yaml:3: models.b: a target is provider/model, e.g. openai/gpt-5-mini; names under models: do not chain',
  ],

  ['a tag', 'models:\n  a: !secret x\n', 'gateway.yaml:2: Unresolved tag: !secret'],
  [
    'two documents',
    'models: {}\n---\nlimits: {}\n',
    'gateway.yaml:2: a second document begins here: remove the line ---',
  ],
];

for (const [name, text, expected] of mistakes) {
  test(`N3: ${name} is refused with file and line`, async () => {
    const { errors } = scene(text);
    assert.deepEqual(await errors({ env: { EMPTY: '' } }), [expected]);
  });
}

test('N3: broken YAML names its line; an unquoted reference in braces says what to do', async () => {
  const broken = await scene('models:\n  a: [local/tiny\nlimits: {}\n').errors();
  assert.match(broken[0] ?? '', /^gateway\.yaml:\d: /);
  const reference = await scene('providers:\n  openai: { api_key: ${KEY} }\n').errors();
  const braces = ['gateway.yaml:2: inside { } and [ ] a reference needs quotes: "${NAME}"'];
  assert.deepEqual(reference, braces);
  const more = 'providers:\n  a: { api_key: ${X}, base_url: http://a, dialect: openai-chat }\n';
  assert.deepEqual(await scene(more).errors(), braces, 'one mistake is one line');
});

test('N3: all mistakes are reported together, in the order of the file', async () => {
  const { errors } = scene(`listen: nowhere
providers:
  team:
    dialekt: openai-chat
  other:
    dialect: openai-chat
    base_url: ftp://files
models:
  a: missing/model
  b: team/model
  a: local/tiny
limits: { streams: many }
`);
  const env = { NODE_TLS_REJECT_UNAUTHORIZED: '0', MODEL_GATEWAY_WORKERS: 'four' };
  assert.deepEqual(await errors({ env, flags: { 'log-level': 'loud' } }), [
    'NODE_TLS_REJECT_UNAUTHORIZED: disables all certificate verification; unset it and name your authority in NODE_EXTRA_CA_CERTS',
    '--log-level: expected one of debug, info, warn, error, silent',
    'MODEL_GATEWAY_WORKERS: expected a whole number from 1 to 64',
    'gateway.yaml:1: listen: is not an address. Use HOST:PORT, PORT (loopback) or [::1]:PORT',
    'gateway.yaml:4: providers.team.dialekt: unknown key (did you mean "dialect"?)',
    'gateway.yaml:7: providers.other.base_url: is not an http:// or https:// address',
    'gateway.yaml:11: models.a: occurs twice (first on line 9)',
    'gateway.yaml:12: limits.streams: expected a number, found a text',
  ]);
});

test('N3: a config file that was asked for must exist and be a file', async () => {
  const { directory, errors } = scene();
  assert.deepEqual(await errors({ flags: { config: 'nowhere.yaml' } }), [
    'nowhere.yaml: does not exist',
  ]);
  mkdirSync(join(directory, 'folder'));
  assert.deepEqual(await errors({ env: { MODEL_GATEWAY_CONFIG: 'folder' } }), [
    'folder: is a directory, not a file',
  ]);
});

test('N3: a vendor’s address variable that leads to this gateway is refused where it would be used', async () => {
  const { errors, load } = scene();
  const env = { OPENAI_BASE_URL: 'http://127.0.0.1:8686/v1' };
  assert.deepEqual(await errors({ env: { ...env, OPENAI_API_KEY: 'x' } }), [
    'OPENAI_BASE_URL: points to this gateway itself',
  ]);
  await load({ env });
});

test('S19: only "0" turns verification off, and only that is refused', async () => {
  const { load, errors } = scene();
  await load({ env: { NODE_TLS_REJECT_UNAUTHORIZED: '1' } });
  assert.equal((await errors({ env: { NODE_TLS_REJECT_UNAUTHORIZED: '0' } })).length, 1);
});
