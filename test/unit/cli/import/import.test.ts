/** `import`: configs of other gateways, written after their published documentation, become configs of this one. */
import assert from 'node:assert/strict';
import { copyFileSync, existsSync, globSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { test } from 'node:test';
import { parse } from 'yaml';
import { importCommand } from '../../../../src/cli/import/import.ts';
import {
  checkCommand,
  importCommand as realCommand,
} from '../../../../src/compose/commands/config-commands.ts';
import { providerRows } from '../../../../src/providers/compatible.ts';
import { temporaryFolder } from '../../../support/folders.ts';
import { run, type Ran } from '../../cli-config/context.ts';

const litellm = globSync(join(import.meta.dirname, 'litellm/*.yaml')).toSorted();

function commandIn(cwd: string) {
  const vendors = providerRows.map(({ id, dialect, baseUrl, keyVariable, cloud }) => ({
    id,
    dialect,
    baseUrl,
    ...(keyVariable === undefined ? {} : { keyVariable }),
    isCloud: cloud !== undefined && keyVariable === undefined,
  }));
  return importCommand({ cwd, vendors, program: 'model-gateway' });
}

/** Imports a file of the fixtures into gateway.yaml of a folder of its own. */
async function imported(
  origin: string,
  file: string,
  more: readonly string[] = [],
): Promise<Ran & { readonly cwd: string; readonly yaml: string }> {
  const cwd = temporaryFolder('import');
  const path = join(import.meta.dirname, origin === 'litellm' ? 'litellm' : 'presets', file);
  copyFileSync(path, join(cwd, file));
  const ran = await run(commandIn(cwd), [origin, file, '--out', 'gateway.yaml', ...more]);
  assert.equal(ran.code, 0, ran.err);
  return { ...ran, cwd, yaml: readFileSync(join(cwd, 'gateway.yaml'), 'utf8') };
}

/** Values whose form `check` looks at. */
const formed: readonly (readonly [RegExp, string])[] = [
  [/_BASE$/, 'https://acme.openai.azure.com'],
  [/REGION/, 'eu-central-1'],
  [/^AWS_ACCESS_KEY_ID/, 'AKIAIOSFODNN7EXAMPLE'],
];

/** What a config reads from the environment. */
function environmentOf(yaml: string): { readonly [name: string]: string } {
  const names = [...yaml.matchAll(/\$\{(\w+)\}/g)].map(([, name = '']) => name);
  const valueOf = (name: string): string =>
    formed.find(([form]) => form.test(name))?.[1] ??
    `value-of-${name.toLowerCase().replaceAll('_', '-')}`;
  return Object.fromEntries(names.map((name) => [name, valueOf(name)]));
}

async function assertValid(cwd: string, yaml: string): Promise<void> {
  const args = ['--config', join(cwd, 'gateway.yaml'), '--data-dir', join(cwd, 'data')];
  // What Google's and Amazon's programs look for themselves.
  const env = {
    GOOGLE_APPLICATION_CREDENTIALS: '/etc/google.json',
    AWS_WEB_IDENTITY_TOKEN_FILE: '/var/run/token',
    AWS_ROLE_ARN: 'arn:aws:iam::123456789012:role/ai',
    ...environmentOf(yaml),
  };
  const { code, err } = await run(checkCommand, args, env);
  assert.equal(code, 0, `${err}\n${yaml}`);
}

test('there are eleven configs of LiteLLM', () => assert.equal(litellm.length, 11));

for (const path of litellm) {
  test(`litellm ${basename(path)}: check takes the result, and no secret is in it`, async () => {
    const { cwd, yaml, out, err } = await imported('litellm', basename(path));
    await assertValid(cwd, yaml);
    assert.doesNotMatch(yaml + out + err, /canary/);
    assert.doesNotMatch(out, /of the result:/);
  });
}

for (const [origin, file] of [
  ['portkey', 'portkey-fallback.json'],
  ['portkey', 'portkey-balance.json'],
  ['portkey', 'portkey-clouds.json'],
  ['openrouter', 'openrouter-preset.json'],
] as const) {
  test(`${origin} ${file}: check takes the result, and no secret is in it`, async () => {
    const { cwd, yaml, out, err } = await imported(origin, file, ['--name', 'reviewer']);
    await assertValid(cwd, yaml);
    assert.match(yaml, /^ {2}reviewer:/m);
    assert.doesNotMatch(yaml + out + err, /canary/);
  });
}

test('each line of the other config is taken, changed, omitted or not known', async () => {
  for (const path of litellm) {
    const { out } = await imported('litellm', basename(path));
    const members = [...readFileSync(path, 'utf8').matchAll(/^ {2}(\w+):/gm)].map(
      ([, name]) => name,
    );
    const rows = out.split('\n');
    for (const name of members) {
      // Anchors hold no settings; a value of environment_variables is named by its variable.
      if (/^(api_base|api_version|tenant_id|client_id|client_secret)$/.test(name ?? '')) continue;
      const isTold = rows.some(
        (row) => row.includes(`.${name ?? ''}`) || row.includes('mcp_servers'),
      );
      assert.ok(isTold, `${basename(path)}: no word of ${name ?? ''}\n${out}`);
    }
  }
});

test('deployments of one name become targets with the shares that LiteLLM gives them', async () => {
  const { yaml, out } = await imported('litellm', '02-azure-balanced.yaml');
  assert.match(
    yaml,
    /azure\/gpt-4o-eu\n +weight: 900\n +- target: azure-2\/gpt-4o-us\n +weight: 300\n/,
  );
  assert.match(yaml, /- target: openai\/gpt-4o\n +weight: 0\.000001\n +order: weighted/);
  assert.match(yaml, /deployments:\n +gpt-4o-eu: gpt-4o/);
  assert.match(out, /02-azure-balanced\.yaml:28 +changed +router_settings\.num_retries/);
  assert.match(
    out,
    /Set AZURE_API_KEY_EU, AZURE_API_KEY_US, OPENAI_API_KEY where the gateway runs/,
  );
});

test('clouds are found by their own names, and what lets calls in comes with them', async () => {
  const { yaml, out } = await imported('litellm', '11-clouds.yaml');
  const { providers, models } = parse(yaml);
  assert.deepEqual(providers, {
    gemini: { api_key: '${GEMINI_API_KEY}' },
    bedrock: {
      region: 'us-west-2',
      auth: 'keys',
      access_key_id: '${AWS_ACCESS_KEY_ID}',
      secret_access_key: '${AWS_SECRET_ACCESS_KEY}',
      session_token: '${AWS_SESSION_TOKEN}',
      guardrail: 'gf3sc1mzinjw:DRAFT',
    },
    'bedrock-2': { like: 'bedrock', region: 'eu-central-1', auth: 'profile', profile: 'ai' },
    vertex: {
      project: 'acme',
      location: 'europe-west1',
      credentials: '/etc/gateway/google.json',
    },
    'vertex-2': {
      like: 'vertex',
      project: '${PROJECT}',
      location: 'europe-west4',
      credentials: '${VERTEXAI_CREDENTIALS}',
    },
    'bedrock-3': { like: 'bedrock', region: 'us-east-1', auth: 'web_identity' },
    'bedrock-4': {
      like: 'bedrock',
      region: '${AWS_REGION_NAME}',
      auth: 'keys',
      access_key_id: '${AWS_ACCESS_KEY_ID}',
      secret_access_key: '${AWS_SECRET_ACCESS_KEY}',
      endpoint: 'https://vpce-1.bedrock-runtime.eu-central-1.vpce.amazonaws.com',
      deployments: { [profile]: 'anthropic.claude-sonnet-4-5-20250929-v1:0' },
    },
    'bedrock-5': {
      like: 'bedrock',
      region: 'us-east-1',
      auth: 'bearer',
      api_key: '${AWS_BEARER_TOKEN_BEDROCK}',
    },
    'vertex-3': { like: 'vertex', project: 'acme-us', location: 'us-east5' },
    'vertex-4': { like: 'vertex', project: 'acme-all', location: 'europe-west4' },
  });
  assert.deepEqual(models, {
    flash: 'gemini/gemini-2.5-flash',
    nova: 'bedrock/amazon.nova-pro-v1:0',
    claude: {
      targets: [
        'bedrock-2/eu.anthropic.claude-sonnet-4-5-20250929-v1:0',
        'vertex/claude-sonnet-4-5@20250929',
      ],
      order: 'weighted',
    },
    tuned: 'vertex-2/endpoints/4965075652664360960',
    haiku: 'bedrock-3/us.anthropic.claude-haiku-4-5-20251001-v1:0',
    profiled: `bedrock-4/${profile}`,
    keyed: 'bedrock-5/us.meta.llama3-3-70b-instruct-v1:0',
    llama: 'vertex-3/meta/llama-4-maverick-17b-128e-instruct-maas',
    pro: 'vertex-4/gemini-2.5-pro',
  });
  assert.match(out, /model_list\[8\]\.litellm_params\.model +agent: no model/);
  assert.match(out, /environment_variables\.OPENAI_API_BASE +no variable of this gateway/);
  const portkey = await imported('portkey', 'portkey-clouds.json');
  assert.deepEqual(parse(portkey.yaml).providers, {
    bedrock: {
      region: 'us-east-1',
      auth: 'keys',
      access_key_id: '${AWS_ACCESS_KEY_ID}',
      secret_access_key: '${AWS_SECRET_ACCESS_KEY}',
    },
    vertex: { project: 'acme', location: 'europe-west4' },
    gemini: { api_key: '${GEMINI_API_KEY}' },
  });
});

const profile = 'arn:aws:bedrock:eu-central-1:123456789012:application-inference-profile/abc';

test('aliases and fallbacks of every kind reach the routes', async () => {
  const { yaml } = await imported('litellm', '04-reliability.yaml');
  const routeOf = (name: string): string =>
    new RegExp(`^  ${name}:\n((?:    .*\n)+)`, 'm').exec(yaml)?.[1] ?? '';
  const smart = routeOf('smart');
  const order = [...smart.matchAll(/- (\S+)/g)].map(([, target]) => target);
  assert.deepEqual(order, [
    'anthropic/claude-opus-4-1',
    'gemini/gemini-2.5-pro',
    'groq/llama-3.3-70b-versatile',
    'cerebras/llama-3.3-70b',
  ]);
  assert.match(smart, /document: 10m/);
  assert.equal(routeOf('gpt-4'), smart);
  assert.match(routeOf('fast'), /context_overflow: true/);
  assert.match(yaml, /^timeouts:\n +document: 2m/m);
});

test('two keys in plain text become two variables, and the key of a vendor goes to no other server', async () => {
  const { yaml } = await imported('litellm', '06-plain-secrets.yaml');
  assert.match(yaml, /\$\{OPENAI_API_KEY\}/);
  assert.match(yaml, /\$\{OPENAI_API_KEY_2\}/);
  const servers = await imported('litellm', '03-own-servers.yaml');
  assert.doesNotMatch(servers.yaml, /OPENAI_API_KEY/);
});

test('prices are dollars per million tokens, exactly', async () => {
  const { yaml } = await imported('litellm', '07-prices-and-limits.yaml');
  assert.match(
    yaml,
    /deepseek\/deepseek-chat:\n +input: 0\.27\n +output: 1\.1\n +cache_read: 0\.07\n/,
  );
  assert.match(yaml, /^limits:\n +streams: 400\n +body: 16MiB/m);
  assert.match(yaml, /^ledger:\n +keep: 30d/m);
});

test('virtual keys keep their hashes, limits and budgets', async () => {
  const cwd = temporaryFolder('import');
  const token = 'ab'.repeat(32);
  writeFileSync(join(cwd, 'config.yaml'), 'model_list: []\n');
  const keys = {
    keys: [
      {
        token,
        key_alias: 'team a/ci',
        models: ['gpt-*'],
        team_alias: 'a',
        max_budget: 20,
        budget_duration: '30d',
        rpm_limit: 60,
        spend: 3.5,
        expires: '2027-01-31T00:00:00.000000+00:00',
      },
      { token: 'cd'.repeat(32), blocked: true },
      {
        token: 'ef'.repeat(32),
        models: ['all-proxy-models'],
        max_budget: 1,
        budget_duration: '3h',
      },
      'no object',
    ],
  };
  writeFileSync(join(cwd, 'keys.json'), JSON.stringify(keys));
  const args = ['litellm', 'config.yaml', '--keys', 'keys.json', '--out', 'gateway.yaml'];
  const { code, out, err } = await run(commandIn(cwd), args);
  assert.equal(code, 0, err);
  const yaml = readFileSync(join(cwd, 'gateway.yaml'), 'utf8');
  await assertValid(cwd, yaml);
  assert.match(yaml, new RegExp(`team-a-ci:\n +digest: sha256:${token}\n`));
  assert.match(yaml, /budget: 20\n +per: month/);
  assert.match(out, /^keys\.json:1 +left out +keys\[1\] +it is blocked/m);
  assert.match(out, /left out +keys\[2\]\.budget_duration/);
  assert.match(out, /not known +keys\[3\]/);
});

test('an existing file is never changed without --force', async () => {
  const cwd = temporaryFolder('import');
  writeFileSync(
    join(cwd, 'config.yaml'),
    'model_list: [{ model_name: m, litellm_params: { model: openai/gpt-5 } }]\n',
  );
  writeFileSync(join(cwd, 'gateway.yaml'), 'mine');
  const args = ['litellm', 'config.yaml', '--out', 'gateway.yaml'];
  const refused = await run(commandIn(cwd), args);
  assert.equal(refused.code, 2);
  assert.match(refused.err, /gateway\.yaml exists and stays as it is/);
  assert.equal(readFileSync(join(cwd, 'gateway.yaml'), 'utf8'), 'mine');
  assert.equal((await run(commandIn(cwd), [...args, '--force'])).code, 0);
  assert.match(
    readFileSync(join(cwd, 'gateway.yaml'), 'utf8'),
    /Made from config\.yaml \(LiteLLM\)/,
  );
});

test('without --out the result alone is on stdout; what is wrong is said', async () => {
  const cwd = temporaryFolder('import');
  writeFileSync(
    join(cwd, 'config.yaml'),
    'model_list: [{ model_name: m, litellm_params: { model: openai/gpt-5 } }]\nmystery: 1\n',
  );
  const { out, err } = await run(commandIn(cwd), ['litellm', 'config.yaml']);
  assert.match(out, /^# Made from/);
  assert.match(err, /config\.yaml:2 +not known +mystery +no such section is known/);
  const wrong = async (...args: readonly string[]): Promise<string> =>
    (await run(commandIn(cwd), args)).err;
  assert.match(
    await wrong('litelm', 'config.yaml'),
    /litelm: give one of litellm, portkey, openrouter/,
  );
  assert.match(await wrong('litellm', 'away.yaml'), /away\.yaml does not exist\./);
  assert.match(await wrong('portkey', 'config.yaml', '--keys', 'k'), /--keys belongs to litellm/);
  assert.match(await wrong('litellm', '.'), /\. is a directory, not a file\./);
  for (const [text, why] of [
    ['', /odd\.yaml is empty, or holds no mapping/],
    ['hello', /odd\.yaml is empty, or holds no mapping/],
    ['model_list: 5', /odd\.yaml:1 +not known +model_list +a list of models was expected\n/],
    [
      'providers: { openai: {} }',
      /odd\.yaml has nothing that can be taken from a config of LiteLLM/,
    ],
  ] as const) {
    writeFileSync(join(cwd, 'odd.yaml'), text);
    const odd = await run(commandIn(cwd), ['litellm', 'odd.yaml', '--out', 'made.yaml']);
    assert.equal(odd.code, 2, text);
    assert.match(odd.err, why);
    assert.ok(!existsSync(join(cwd, 'made.yaml')), text);
  }
  assert.match(
    await wrong('portkey', 'config.yaml'),
    /\(the file\) +it names no provider\n[^]*looks like a config of LiteLLM: give litellm in place of portkey/,
  );
  writeFileSync(join(cwd, 'broken.yaml'), 'a: [1\n');
  await assert.rejects(run(commandIn(cwd), ['litellm', 'broken.yaml']), /broken\.yaml/);
  assert.equal(realCommand.name, 'import');
});

test('litellm a target that is repeated in a group keeps the weight of both, and a note says so', async () => {
  const cwd = temporaryFolder('import');
  const deployment = (model: string, more = ''): string =>
    `  - { model_name: m, litellm_params: { model: ${model}${more} } }\n`;
  const text = `model_list:\n${deployment('openai/gpt-5')}${deployment('openai/gpt-5')}${deployment('groq/qwen')}`;
  writeFileSync(join(cwd, 'config.yaml'), text);
  const { code, out } = await run(commandIn(cwd), [
    'litellm',
    'config.yaml',
    '--out',
    'gateway.yaml',
  ]);
  assert.equal(code, 0);
  assert.match(
    out,
    /changed +model_list\S* +m: openai\/gpt-5 again: one target with the weight of both/,
  );
  const { models } = parse(readFileSync(join(cwd, 'gateway.yaml'), 'utf8'));
  assert.deepEqual(models.m.targets, [
    { target: 'openai/gpt-5', weight: 2 },
    { target: 'groq/qwen', weight: 1 },
  ]);
});

test('litellm what Google reads itself is named among the variables to set', async () => {
  const cwd = temporaryFolder('import');
  const params =
    '{ model: vertex_ai/gemini-2.5-pro, vertex_project: p, vertex_location: europe-west4 }';
  writeFileSync(
    join(cwd, 'c.yaml'),
    `model_list: [{ model_name: g, litellm_params: ${params} }]\n`,
  );
  const { out, err } = await run(commandIn(cwd), ['litellm', 'c.yaml', '--out', 'gateway.yaml']);
  assert.match(out + err, /Set GOOGLE_APPLICATION_CREDENTIALS where the gateway runs\./);
});
