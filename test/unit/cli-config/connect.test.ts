import assert from 'node:assert/strict';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { connectCommand } from '../../../src/cli/commands/connect.ts';
import { tryParse } from '../../../src/json/parse.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { run } from './context.ts';

const given = ['--base-url', 'http://gw:9/v1/', '--key', 'gw_secret', '--model', 'local/tiny'];

function put(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

test('each client gets the form of the address that it needs', async () => {
  const print = async (client: string): Promise<string> =>
    (await run(connectCommand, [client, ...given])).out;
  const claude = await print('claude-code');
  assert.match(claude, /^export ANTHROPIC_BASE_URL=http:\/\/gw:9$/m);
  assert.match(claude, /^export ANTHROPIC_AUTH_TOKEN=gw_secret$/m);
  assert.match(claude, /^export ANTHROPIC_MODEL=local\/tiny$/m);
  assert.ok(!claude.includes('ANTHROPIC_API_KEY'));
  const openai = await print('openai-sdk');
  assert.match(openai, /^export OPENAI_BASE_URL=http:\/\/gw:9\/v1$/m);
  assert.match(openai, /new OpenAI\({ baseURL: 'http:\/\/gw:9\/v1', apiKey: 'gw_secret' }\)/);
  const anthropic = await print('anthropic-sdk');
  assert.match(anthropic, /new Anthropic\({ baseURL: 'http:\/\/gw:9', apiKey: 'gw_secret' }\)/);
  const curl = await print('curl');
  assert.match(curl, /^curl http:\/\/gw:9\/v1\/chat\/completions/m);
  assert.match(curl, /^curl http:\/\/gw:9\/v1\/messages/m);
  const opencode = await print('opencode');
  assert.match(opencode, /"baseURL": "http:\/\/gw:9\/v1"/);
  assert.match(await print('codex'), /base_url = "http:\/\/gw:9\/v1"/);
});

test('without arguments the default address and a placeholder are shown, and said', async () => {
  const { code, out, err } = await run(connectCommand, ['curl']);
  assert.equal(code, 0);
  assert.match(out, /http:\/\/127\.0\.0\.1:8686\/v1\/messages/);
  assert.match(out, /YOUR_KEY/);
  assert.match(err, /replace YOUR_KEY by your key/);
  const env = { MODEL_GATEWAY_LISTEN: '0.0.0.0:9000', MODEL_GATEWAY_KEY: 'from-environment' };
  const second = await run(connectCommand, ['curl'], env);
  assert.match(second.out, /http:\/\/127\.0\.0\.1:9000\/v1\/messages/);
  assert.match(second.out, /-H "authorization: Bearer \$MODEL_GATEWAY_KEY"/);
  assert.doesNotMatch(second.out, /from-environment/);
});

test('what stands in shell lines is quoted', async () => {
  const { out } = await run(connectCommand, ['claude-code', '--key', "it's; rm -rf"]);
  assert.match(out, /^export ANTHROPIC_AUTH_TOKEN='it'\\''s; rm -rf'$/m);
});

test('connect claude-code --write keeps everything else, leaves a backup, and says what it did', async () => {
  const root = temporaryFolder('home');
  const file = join(root, '.claude', 'settings.json');
  const before = `{
    "permissions": { "allow": ["Bash"] },
    "env": { "OTHER": "1", "ANTHROPIC_AUTH_TOKEN": "old-secret", "ANTHROPIC_BASE_URL": "http://old" }
}
`;
  put(file, before);
  const { code, out } = await run(connectCommand, ['claude-code', '--write', ...given], {
    HOME: root,
  });
  assert.equal(code, 0);
  const text = readFileSync(file, 'utf8');
  assert.deepEqual(tryParse(text), {
    permissions: { allow: ['Bash'] },
    env: {
      OTHER: '1',
      ANTHROPIC_AUTH_TOKEN: 'gw_secret',
      ANTHROPIC_BASE_URL: 'http://gw:9',
      ANTHROPIC_MODEL: 'local/tiny',
      ANTHROPIC_DEFAULT_OPUS_MODEL: 'local/tiny',
      ANTHROPIC_DEFAULT_SONNET_MODEL: 'local/tiny',
      ANTHROPIC_DEFAULT_HAIKU_MODEL: 'local/tiny',
      ANTHROPIC_DEFAULT_FABLE_MODEL: 'local/tiny',
      ANTHROPIC_SMALL_FAST_MODEL: 'local/tiny',
      CLAUDE_CODE_SUBAGENT_MODEL: 'local/tiny',
    },
  });
  assert.match(text, /^ {4}"permissions"/m, 'the indentation stays');
  assert.equal(readFileSync(`${file}.bak`, 'utf8'), before);
  assert.match(out, /env\.ANTHROPIC_BASE_URL = "http:\/\/gw:9" \(was "http:\/\/old"\)/);
  assert.match(out, /env\.ANTHROPIC_AUTH_TOKEN replaced/);
  assert.match(out, /settings\.json\.bak/);
  assert.ok(!out.includes('secret'));
  assert.equal(statSync(file).mode & 0o077, 0);
  assert.equal(statSync(`${file}.bak`).mode & 0o077, 0);
});

test('a second --write changes nothing; a different one keeps both backups', async () => {
  const root = temporaryFolder('home');
  const file = join(root, '.claude', 'settings.json');
  const env = { HOME: root };
  const args = ['claude-code', '--write', ...given];
  const first = await run(connectCommand, args, env);
  assert.ok(!first.out.includes('.bak'), 'there was nothing to keep');
  assert.match((await run(connectCommand, args, env)).out, /is up to date/);
  assert.deepEqual(readdirSync(dirname(file)), ['settings.json']);
  for (const key of ['second', 'third']) {
    const others = args.map((arg) => (arg === 'gw_secret' ? key : arg));
    await run(connectCommand, others, env);
  }
  assert.deepEqual(readdirSync(dirname(file)).sort(), [
    'settings.json',
    'settings.json.bak',
    'settings.json.bak1',
  ]);
});

test('connect opencode --write adds one provider beside the others', async () => {
  const root = temporaryFolder('home');
  const file = join(root, '.config', 'opencode', 'opencode.json');
  put(file, '{"theme":"x","provider":{"other":{"npm":"a"},"model-gateway":{"models":{"b/c":{}}}}}');
  const args = ['opencode', '--write', ...given];
  const { code, err } = await run(connectCommand, args, { HOME: root });
  assert.equal(code, 0);
  assert.match(err, /model-gateway\/local\/tiny/);
  assert.deepEqual(tryParse(readFileSync(file, 'utf8')), {
    theme: 'x',
    $schema: 'https://opencode.ai/config.json',
    provider: {
      other: { npm: 'a' },
      'model-gateway': {
        models: { 'b/c': {}, 'local/tiny': { name: 'local/tiny' } },
        npm: '@ai-sdk/openai-compatible',
        name: 'Model Gateway',
        options: { baseURL: 'http://gw:9/v1', apiKey: 'gw_secret' },
      },
    },
  });
});

test('a file that cannot be written is reported and left whole', async (t) => {
  if (process.getuid?.() === 0) return t.skip('left out: root may write everywhere');
  const root = temporaryFolder('home');
  const file = join(root, '.claude', 'settings.json');
  put(file, '{}');
  chmodSync(dirname(file), 0o500);
  t.after(() => chmodSync(dirname(file), 0o700));
  await assert.rejects(
    run(connectCommand, ['claude-code', '--write', ...given], { HOME: root }),
    /EACCES/,
  );
  assert.equal(readFileSync(file, 'utf8'), '{}');
});

test('--write without a key, or for a client without a file, says so and writes nothing', async () => {
  const root = temporaryFolder('home');
  const env = { HOME: root };
  const noKey = await run(connectCommand, ['claude-code', '--write'], env);
  assert.equal(noKey.code, 2);
  assert.match(noKey.err, /needs a key/);
  for (const client of ['codex', 'openai-sdk', 'anthropic-sdk', 'curl']) {
    const { code, err } = await run(connectCommand, [client, '--write', ...given], env);
    assert.equal(code, 2);
    assert.match(err, /^--write: /);
  }
  assert.ok(!existsSync(join(root, '.claude')));
});

test('M5: two different keys in one environment are warned of', async () => {
  const { err } = await run(connectCommand, ['claude-code', ...given], { ANTHROPIC_API_KEY: 'x' });
  assert.match(err, /ANTHROPIC_API_KEY is set here/);
});

test('wrong arguments are named', async () => {
  const unknown = await run(connectCommand, ['claudecode']);
  assert.equal(unknown.code, 2);
  assert.match(unknown.err, /^claudecode: unknown client\. Did you mean "claude-code"\? /);
  const language = await run(connectCommand, ['python']);
  assert.match(
    language.err,
    /^python: unknown client\. For python: openai-sdk, anthropic-sdk, .*langchain/,
  );
  assert.match((await run(connectCommand, ['zzzz'])).err, /^zzzz: unknown client\. model-gateway /);
  assert.match(
    (await run(connectCommand, [])).err,
    /^CLIENT is missing: model-gateway connect --list names all clients\.\nSee "model-gateway connect --help"\.\n$/,
  );
  assert.equal(
    (await run(connectCommand, ['curl', '--model'])).err.split('\n')[0],
    '--model needs a value.',
  );
  assert.match((await run(connectCommand, ['curl', 'more'])).err, /more: unexpected argument/);
  assert.match((await run(connectCommand, ['curl', '--wirte'])).err, /--wirte/);
  assert.match((await run(connectCommand, ['curl', '--base-url', 'gw:9'])).err, /--base-url/);
  const help = await run(connectCommand, ['--help']);
  assert.equal(help.code, 0);
  assert.match(help.out, /opencode/);
});
