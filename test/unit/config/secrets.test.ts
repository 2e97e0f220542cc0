import assert from 'node:assert/strict';
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { inspect } from 'node:util';
import { withSecretFiles } from '../../../src/config/config-file.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { scene } from './scene.ts';

const canary = 'canary-5f1c9d';

test('S4: no form of printing the settings shows a key or a header value', async () => {
  const { load } = scene(`providers:
  openai:
    api_key: \${KEY}
    headers: { x-pass: "Bearer \${KEY}", x-plain: ${canary} }
`);
  const settings = await load({ env: { KEY: canary } });
  const [openai] = settings.providers;
  assert.equal(openai?.apiKey?.reveal(), canary);
  assert.equal(openai?.headers.get('x-pass'), `Bearer ${canary}`);
  const printed = [
    JSON.stringify(settings),
    inspect(settings, { depth: 20 }),
    String(openai?.apiKey),
    settings.origins.map(({ path, value, origin }) => `${path} ${value} ${origin}`).join('\n'),
  ].join('\n');
  assert.ok(!printed.includes(canary));
  const shown = new Map(settings.origins.map(({ path, value }) => [path, value]));
  assert.equal(shown.get('providers.openai.api_key'), '[secret]');
  assert.equal(shown.get('providers.openai.headers.x-pass'), '[secret]');
});

test('S4: no error quotes what a reference held', async () => {
  const { errors } = scene(`listen: \${KEY}
log_level: \${KEY}
data_dir: \${KEY}
storage: \${KEY}
limits: { body: "\${KEY}", streams: "\${KEY}" }
timeouts: { idle: "\${KEY}" }
providers:
  a: { dialect: "\${KEY}", base_url: "\${KEY}", api_key: "\${KEY}\\n" }
  b: { dialect: openai-chat, base_url: "\${KEY}" }
models:
  a: \${KEY}
  b: { targets: [{ target: "\${KEY}", weight: "\${KEY}" }], order: "\${KEY}" }
`);
  const lines = await errors({ env: { KEY: canary } });
  assert.ok(lines.length >= 10, lines.join('\n'));
  assert.ok(!lines.join('\n').includes(canary), lines.join('\n'));
});

test('a file reference is read relative to the config file, without its last line end', async () => {
  const { load, write } = scene('providers:\n  openai:\n    api_key: ${file:key.txt}\n');
  chmodSync(write('key.txt', `${canary}\n`), 0o600);
  const settings = await load();
  assert.equal(settings.providers[0]?.apiKey?.reveal(), canary);
});

test('references stand anywhere in a value, and $${ is a literal ${', async () => {
  const { load } = scene(`providers:
  openai:
    api_key: a-\${ONE}-\${TWO}
    base_url: https://\${ONE}.example/v1
    headers: { x-a: "$\${ONE}", x-b: "$5", x-c: "$$" }
`);
  const settings = await load({ env: { ONE: '1', TWO: '2' } });
  const [openai] = settings.providers;
  assert.equal(openai?.apiKey?.reveal(), 'a-1-2');
  assert.equal(openai?.baseUrl, 'https://1.example/v1');
  assert.deepEqual([...(openai?.headers.values() ?? [])], ['${ONE}', '$5', '$$']);
});

test('S25: a secret file that every user can read is refused; a closed directory closes it', async (t) => {
  if (process.platform === 'win32') return t.skip('left out: modes say nothing on Windows');
  const { directory, errors, load, write } = scene(
    'providers:\n  openai:\n    api_key: ${file:key.txt}\n',
  );
  chmodSync(write('key.txt', canary), 0o644);
  await load();
  chmodSync(directory, 0o755);
  assert.deepEqual(await errors(), [
    'gateway.yaml:3: providers.openai.api_key: the file key.txt is readable by every user of this machine; chmod 600 it',
  ]);
});

test('S25: a key in plain text in a file that every user can read is warned of', async (t) => {
  if (process.platform === 'win32') return t.skip('left out: modes say nothing on Windows');
  const { directory, load } = scene(`providers:\n  openai:\n    api_key: ${canary}\n`);
  assert.deepEqual((await load()).warnings, []);
  chmodSync(directory, 0o755);
  const { warnings } = await load();
  assert.match(warnings.join('\n'), /providers\.openai\.api_key in plain text/);
  assert.ok(!warnings.join('\n').includes(canary));
});

test('S25: a short secret of a variable, whose text stands elsewhere in the file, is not in plain text', async () => {
  const text =
    'providers: { team: { dialect: openai-chat, base_url: "http://vllm:8000/v1", api_key: "${K}" } }\n';
  const made = scene(text);
  chmodSync(made.directory, 0o755);
  const { warnings } = await made.load({ env: { K: 'k' } });
  assert.doesNotMatch(warnings.join('\n'), /plain text/);
});

test('the config of another gateway is one error that says which command takes it', async () => {
  for (const [origin, word, yaml] of [
    [
      'LiteLLM',
      'litellm',
      'model_list:\n  - model_name: a\nlitellm_settings: { drop_params: true }\n',
    ],
    ['LiteLLM', 'litellm', 'general_settings: { master_key: k }\n'],
    ['Portkey', 'portkey', '{ "strategy": { "mode": "fallback" }, "targets": [] }\n'],
    ['OpenRouter', 'openrouter', '{ "model": "openai/gpt-5", "temperature": 0 }\n'],
  ] as const) {
    assert.deepEqual(await scene(yaml).errors(), [
      `gateway.yaml: this is a config of ${origin}. "model-gateway import ${word} gateway.yaml --out NEW" makes one of this gateway of it`,
    ]);
  }
  const own = await scene('model: a\nworkers: 1\n').errors();
  assert.deepEqual(own, ['gateway.yaml:1: model: unknown key (did you mean "models"?)']);
});

test('S25 secrets of the gateway itself may be files, as systemd and Kubernetes hand them over', () => {
  const directory = temporaryFolder('secret-files');
  const file = join(directory, 'token');
  writeFileSync(file, 'a-token-of-a-file\n', { mode: 0o600 });
  const name = 'MODEL_GATEWAY_ADMIN_TOKEN';
  const env = withSecretFiles({ PATH: '/bin', [`${name}_FILE`]: file });
  assert.equal(env[name], 'a-token-of-a-file');
  assert.equal(env['PATH'], '/bin');
  assert.equal(env[`${name}_FILE`], undefined);
  assert.throws(() => withSecretFiles({ [name]: 'x', [`${name}_FILE`]: file }), /not both/);
  assert.throws(
    () => withSecretFiles({ [`${name}_FILE`]: join(directory, 'none') }),
    /MODEL_GATEWAY_ADMIN_TOKEN_FILE: .* cannot be read \(ENOENT\)/,
  );
});
