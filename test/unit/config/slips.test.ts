/** Slips that are valid settings are named at the start and by check, not first by a provider that refuses a call. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { knownProviders } from '../../../src/compose/providers.ts';
import { scene } from './scene.ts';

const mark = '0123456789secret';

/** The warnings about the text, which is a `providers:` section; none may quote a key. */
async function warnings(
  yaml: string,
  env: { readonly [name: string]: string } = {},
): Promise<readonly string[]> {
  const { load } = scene(yaml, knownProviders);
  const told = (await load({ env })).warnings.filter((each) => !each.includes('in plain text'));
  assert.ok(!told.join('\n').includes(mark), 'no key is quoted');
  return told;
}

const pasted: readonly (readonly [string, RegExp])[] = [
  [` sk-${mark}`, /begins or ends with a space or a line break/],
  [`sk-${mark} `, /begins or ends with a space or a line break/],
  [`Bearer sk-${mark}`, /begins with "Bearer"/],
  [`"sk-${mark}"`, /is in quotation marks/],
  [`sk-${mark} sk-${mark}`, /has a space in it/],
  ['OPENAI_API_KEY', /is the name of a variable: write \$\{NAME\}/],
];

test('a provider key that was pasted with something else is named in a warning, of file and environment', async () => {
  for (const [key, expected] of pasted) {
    const yaml = `providers:\n  openai:\n    api_key: '${key}'\n`;
    const [ofFile = '', ...others] = await warnings(yaml);
    assert.match(ofFile, /^providers\.openai\.api_key /);
    assert.match(ofFile, expected);
    assert.deepEqual(others, []);
    const [ofVariable = ''] = await warnings('', { OPENAI_API_KEY: key });
    assert.match(ofVariable, /^OPENAI_API_KEY /);
    assert.match(ofVariable, expected);
  }
  const unfilled = await warnings('', { GROQ_API_KEY: '${GROQ_KEY}' });
  assert.deepEqual(unfilled, ['GROQ_API_KEY is the name of a variable that was not filled in']);
});

test('each of several keys is looked at, and a variable of two providers is named once', async () => {
  const yaml = `providers:\n  openai:\n    api_key: [sk-${mark}, ' sk-${mark}']\n  groq:\n    credentials:\n      a: gsk_${mark}\n      b: 'Bearer gsk_${mark}'\n`;
  const told = await warnings(yaml, { GEMINI_API_KEY: ` AIza${mark}` });
  assert.deepEqual(
    told.map((each) => each.split(' ')[0]),
    ['providers.openai.api_key[1]', 'providers.groq.credentials.b', 'GEMINI_API_KEY'],
  );
});

test("a key that begins as another vendor's is named where the vendor itself would get it", async () => {
  const yaml = `providers:\n  openai: { api_key: sk-ant-${mark} }\n  mistral: { api_key: gsk_${mark} }\n  relay: { dialect: openai-chat, base_url: http://relay/v1, api_key: sk-ant-${mark} }\n`;
  assert.deepEqual(await warnings(yaml, { XAI_API_KEY: `sk-or-v1-${mark}` }), [
    'providers.openai.api_key begins as keys of anthropic do (sk-ant-); it is sent to openai',
    'providers.mistral.api_key begins as keys of groq do (gsk_); it is sent to mistral',
    'XAI_API_KEY begins as keys of openrouter do (sk-or-); it is sent to xai',
  ]);
});

test('keys of the right vendor, at own addresses and of clouds have no warning', async () => {
  const yaml = `providers:\n  openai: { api_key: sk-${mark} }\n  anthropic: { base_url: http://relay, api_key: sk-or-${mark} }\n  gemini: { api_key: AIza${mark} }\n  vertex: { project: p, auth: api_key, api_key: AIza${mark} }\n`;
  const env = { OPENROUTER_API_KEY: `sk-or-${mark}`, GROQ_API_KEY: `gsk_${mark}` };
  assert.deepEqual(await warnings(yaml, env), []);
});

test('a variable that is nearly one of the gateway is named; those of Kubernetes and of others are not', async () => {
  assert.deepEqual(
    await warnings('', {
      MODEL_GATEWAY_ADMIN_TOKN: mark,
      MODEL_GATEWAY_LISTN: mark,
      MODEL_GATEWAY_PORT: 'tcp://10.0.0.1:8686',
      MODEL_GATEWAY_PORT_8686_TCP_ADDR: '10.0.0.1',
      MODEL_GATEWAY_SERVICE_HOST: '10.0.0.1',
      MODEL_GATEWAY_URL: 'http://127.0.0.1:8686',
      MODEL_GATEWAY_KEY: mark,
      MODEL_GATEWAY_PEPPER_FILE: '/nowhere',
    }),
    [
      'the variable MODEL_GATEWAY_ADMIN_TOKN is not read; did you mean MODEL_GATEWAY_ADMIN_TOKEN?',
      'the variable MODEL_GATEWAY_LISTN is not read; did you mean MODEL_GATEWAY_LISTEN?',
    ],
  );
});
