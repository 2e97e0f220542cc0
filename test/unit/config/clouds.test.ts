/** Clouds in gateway.yaml and in the environment: what is wrong is said with its line (wire/clouds-config.md, azure 46). */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { describeProviders } from '../../../src/compose/providers.ts';
import { providerRows } from '../../../src/providers/compatible.ts';
import { scene } from './scene.ts';

const knownProviders = new Map(providerRows.map((row) => [row.id, row]));
const key = { AZURE_OPENAI_API_KEY: 'k' };

/** Text of the file, variables, and the only line of errors that it must give. */
const mistakes: readonly (readonly [
  name: string,
  yaml: string,
  env: { readonly [name: string]: string },
  line: string,
])[] = [
  [
    'azure 46: resource and base_url',
    'providers:\n  azure:\n    resource: acme\n    base_url: https://acme.openai.azure.com\n',
    key,
    'gateway.yaml:3: providers.azure.resource: cannot be combined with base_url: use one of them',
  ],
  [
    'bedrock: a guardrail without its version',
    'providers:\n  bedrock:\n    region: eu-central-1\n    api_key: k\n    guardrail: abc\n',
    {},
    'gateway.yaml:5: providers.bedrock.guardrail: is not of the form ID:VERSION',
  ],
  [
    'bedrock: a door that there is not',
    'providers:\n  bedrock:\n    region: eu-central-1\n    api_key: k\n    door: mantle\n',
    {},
    'gateway.yaml:5: providers.bedrock.door: expected one of invoke, converse',
  ],
  [
    'bedrock-mantle: a dialect that it does not have there',
    'providers:\n  bedrock-mantle:\n    region: eu-central-1\n    api_key: k\n    dialect: anthropic-messages\n',
    {},
    'gateway.yaml:5: providers.bedrock-mantle.dialect: must be openai-chat or openai-responses here',
  ],
  [
    'bedrock-mantle: a door of another service',
    'providers:\n  bedrock-mantle:\n    region: eu-central-1\n    api_key: k\n    door: invoke\n',
    {},
    'gateway.yaml:5: providers.bedrock-mantle.door: does not apply to this provider',
  ],
  [
    'bedrock: metadata that AWS does not take',
    'providers:\n  bedrock:\n    region: eu-central-1\n    api_key: k\n    request_metadata:\n      team: "a|b"\n',
    {},
    'gateway.yaml:6: providers.bedrock.request_metadata.team: has characters that AWS does not take, or over 256',
  ],
  [
    'a key of another cloud',
    'providers:\n  azure:\n    resource: acme\n    door: converse\n',
    key,
    'gateway.yaml:4: providers.azure.door: does not apply to this provider',
  ],
  [
    'neither of them',
    'providers:\n  azure: {}\n',
    key,
    'gateway.yaml:2: providers.azure: needs resource or base_url (or AZURE_RESOURCE_NAME)',
  ],
  [
    'two variables for one address',
    'providers:\n  foundry: {}\n',
    {
      AZURE_API_KEY: 'k',
      ANTHROPIC_FOUNDRY_RESOURCE: 'acme',
      ANTHROPIC_FOUNDRY_BASE_URL: 'https://acme.services.ai.azure.com/anthropic',
    },
    'gateway.yaml:2: providers.foundry: finds ANTHROPIC_FOUNDRY_RESOURCE and ANTHROPIC_FOUNDRY_BASE_URL: use one of them',
  ],
  [
    'a plain address',
    'providers:\n  azure:\n    base_url: http://acme.example\n',
    key,
    'gateway.yaml:3: providers.azure.base_url: is neither an https:// address nor one of this machine',
  ],
  [
    'no key',
    'providers:\n  azure: { resource: acme }\n',
    {},
    'gateway.yaml:2: providers.azure.auth: has no key: set AZURE_OPENAI_API_KEY or api_key, or auth: entra or managed_identity',
  ],
  [
    'a key beside tokens',
    'providers:\n  azure:\n    resource: acme\n    auth: managed_identity\n    api_key: k\n',
    {},
    'gateway.yaml:4: providers.azure.auth: cannot be combined with api_key: use one of them',
  ],
  [
    'an app without its tenant',
    'providers:\n  azure:\n    resource: acme\n    auth: entra\n    client_id: app\n    client_secret: s\n',
    {},
    'gateway.yaml:4: providers.azure.auth: needs tenant_id or AZURE_TENANT_ID',
  ],
  [
    'an app without a proof',
    'providers:\n  azure:\n    resource: acme\n    auth: entra\n    client_id: app\n    tenant_id: t\n',
    {},
    'gateway.yaml:4: providers.azure.auth: needs client_secret or AZURE_CLIENT_SECRET, AZURE_CLIENT_CERTIFICATE_PATH, or AZURE_FEDERATED_TOKEN_FILE',
  ],
  [
    'a login host of somebody else',
    'providers:\n  azure: { resource: acme, auth: entra, client_id: a, tenant_id: t, client_secret: s }\n',
    { AZURE_AUTHORITY_HOST: 'https://login.example.com' },
    'gateway.yaml:2: providers.azure.auth: has an AZURE_AUTHORITY_HOST that is none of the login hosts of Microsoft',
  ],
  [
    'the dialect of another model',
    'providers:\n  azure: { resource: acme, dialect: anthropic-messages }\n',
    key,
    'gateway.yaml:2: providers.azure.dialect: must be openai-chat or openai-responses here',
  ],
  [
    'a name that is no deployment',
    'providers:\n  azure: { resource: acme, deployments: { a/b: gpt-5 } }\n',
    key,
    'gateway.yaml:2: providers.azure.deployments: "a/b" cannot be the name of a deployment',
  ],
  [
    'a version that is no date',
    'providers:\n  azure: { resource: acme, api_version: v1 }\n',
    key,
    'gateway.yaml:2: providers.azure.api_version: is neither preview nor a date such as 2024-10-21',
  ],
  [
    'a key of a cloud at another vendor',
    'providers:\n  openai: { resource: acme, api_key: k }\n',
    {},
    'gateway.yaml:2: providers.openai.resource: does not apply to this provider',
  ],
  [
    'a key of Azure OpenAI at Foundry',
    'providers:\n  foundry: { resource: acme, api_key: k, api_version: preview }\n',
    {},
    'gateway.yaml:2: providers.foundry.api_version: does not apply to this provider',
  ],
  [
    'no project',
    'providers:\n  vertex: { credentials: sa.json }\n',
    {},
    'gateway.yaml:2: providers.vertex: needs project (or GOOGLE_CLOUD_PROJECT)',
  ],
  [
    'no credentials of Google',
    'providers:\n  vertex: { project: acme }\n',
    { CLOUDSDK_CONFIG: '/nowhere' },
    'gateway.yaml:2: providers.vertex.auth: has no credentials: set credentials or GOOGLE_APPLICATION_CREDENTIALS, log in with "gcloud auth application-default login", or set auth: metadata',
  ],
  [
    'a file beside the metadata server',
    'providers:\n  vertex: { project: acme, auth: metadata, credentials: sa.json }\n',
    {},
    'gateway.yaml:2: providers.vertex.auth: metadata cannot be combined with credentials: use one of them',
  ],
  [
    'a host of the metadata server that is none',
    'providers:\n  vertex: { project: acme, auth: metadata }\n',
    { GCE_METADATA_HOST: 'a/b' },
    'gateway.yaml:2: providers.vertex.auth: has a GCE_METADATA_HOST that is no host:port',
  ],
  [
    'a credential of another cloud',
    'providers:\n  vertex: { project: acme, auth: entra }\n',
    {},
    'gateway.yaml:2: providers.vertex.auth: must be one of file, metadata, api_key here',
  ],
  [
    'express mode without a key',
    'providers:\n  vertex: { auth: api_key }\n',
    {},
    'gateway.yaml:2: providers.vertex.auth: has no key: set GOOGLE_VERTEX_API_KEY or api_key',
  ],
  [
    'a key beside a file',
    'providers:\n  vertex: { api_key: k, credentials: sa.json }\n',
    {},
    'gateway.yaml:2: providers.vertex.auth: cannot be combined with api_key: use one of them',
  ],
  [
    'a dialect, which the model decides',
    'providers:\n  vertex: { project: acme, credentials: sa.json, dialect: openai-chat }\n',
    {},
    'gateway.yaml:2: providers.vertex.dialect: does not apply here: the model decides',
  ],
  [
    'a location that is none',
    'providers:\n  vertex: { project: acme, credentials: sa.json, location: a.example.com }\n',
    {},
    'gateway.yaml:2: providers.vertex.location: is not the name of a location',
  ],
  [
    'a plain address of Vertex',
    'providers:\n  vertex: { project: acme, credentials: sa.json }\n',
    { GOOGLE_VERTEX_BASE_URL: 'http://vertex.example' },
    'gateway.yaml:2: providers.vertex: GOOGLE_VERTEX_BASE_URL is neither an https:// address nor one of this machine',
  ],
  [
    'a file of credentials at another vendor',
    'providers:\n  openai: { api_key: k, credentials: sa.json }\n',
    {},
    'gateway.yaml:2: providers.openai.credentials: does not apply to this provider',
  ],
  [
    "one of OpenAI's APIs for a model that has neither",
    'providers:\n  gemini: { api_key: k }\nmodels:\n  fast:\n    targets: [gemini/gemini-3-pro]\n    api: chat\n',
    {},
    'gateway.yaml:6: models.fast.api: "gemini/gemini-3-pro" has no chat API: remove api, or name another target',
  ],
  [
    'the same for Claude at a provider that has both for other models',
    'providers:\n  foundry: { resource: acme, api_key: k, deployments: { fast: claude-opus-4-6 } }\nmodels:\n  fast:\n    targets: [foundry/fast]\n    api: responses\n',
    {},
    'gateway.yaml:6: models.fast.api: "foundry/fast" has no responses API: remove api, or name another target',
  ],
  [
    'the Responses API of a model that has chat completions alone',
    'providers:\n  vertex: { project: acme, credentials: sa.json }\nmodels:\n  fast:\n    targets: [vertex/mistral-medium-3]\n    api: responses\n',
    {},
    'gateway.yaml:6: models.fast.api: "vertex/mistral-medium-3" has no responses API: remove api, or name another target',
  ],
  [
    'the chat API of Claude at its maker',
    'providers:\n  anthropic: { api_key: k }\nmodels:\n  fast:\n    targets: [anthropic/claude-opus-4-6]\n    api: chat\n',
    {},
    'gateway.yaml:6: models.fast.api: "anthropic/claude-opus-4-6" has no chat API: remove api, or name another target',
  ],
];

/** With all vendors that the gateway knows. */
const withAll = (yaml?: string): ReturnType<typeof scene> => scene(yaml, knownProviders);

describe('mistakes in a cloud', () => {
  for (const [name, yaml, env, line] of mistakes) {
    it(name, async () => {
      assert.deepEqual(await withAll(yaml).errors({ env }), [line]);
    });
  }
});

describe('the API that a route wants', () => {
  it('is taken where a model of a cloud has it', async () => {
    const yaml = `
providers:
  azure: { resource: acme, api_key: k }
  foundry: { resource: acme, api_key: k, deployments: { cheap: gpt-5-mini } }
  vertex: { project: acme, credentials: sa.json }
models:
  a: { targets: [azure/fast, foundry/cheap], api: responses }
  b: { targets: [azure/fast, vertex/mistral-medium-3, vertex/meta/llama-4-maas], api: chat }
`;
    const { routes } = await withAll(yaml).load();
    assert.deepEqual(
      routes.map(({ api }) => api),
      ['responses', 'chat'],
    );
  });
});

describe('a cloud as check shows it', () => {
  it('names where its credential comes from, and never a value', async () => {
    const yaml = `
providers:
  azure: { resource: acme-eu, deployments: { fast: gpt-5-mini } }
  app: { like: azure, resource: acme, auth: entra, tenant_id: t, client_id: app-1, client_secret: canary }
  machine: { like: foundry, resource: acme, auth: managed_identity }
  keyed: { like: foundry, base_url: 'https://acme.services.ai.azure.com/anthropic/', api_key: canary }
  vertex: { project: acme-ml, location: europe-west4, credentials: secrets/sa.json }
  own: { like: vertex, project: acme-ml }
  attached: { like: vertex, project: acme-ml, location: eu, auth: metadata }
`;
    const env = { AZURE_API_KEY: 'canary', GOOGLE_APPLICATION_CREDENTIALS: '/run/adc.json' };
    const { load, directory } = withAll(yaml);
    const settings = await load({ env });
    const described = describeProviders(settings, env).filter(({ id }) => id !== 'local');
    const shown = described
      .filter(({ credential }) => credential !== undefined)
      .map(({ id, address, credential }) => [id, address, credential]);
    assert.deepEqual(shown, [
      ['azure', 'https://acme-eu.openai.azure.com', 'env AZURE_API_KEY'],
      ['app', 'https://acme.openai.azure.com', 'Entra app app-1, client secret'],
      ['machine', 'https://acme.services.ai.azure.com', 'managed identity'],
      ['keyed', 'https://acme.services.ai.azure.com', 'key of the config'],
      [
        'vertex',
        'https://europe-west4-aiplatform.googleapis.com',
        `file ${join(directory, 'secrets/sa.json')}`,
      ],
      ['own', 'https://aiplatform.googleapis.com', 'file /run/adc.json'],
      ['attached', 'https://aiplatform.eu.rep.googleapis.com', 'service account of the machine'],
    ]);
    assert.doesNotMatch(
      JSON.stringify([described, settings.origins, settings.providers]),
      /canary/,
    );
    const lines = settings.origins.map(({ path, value }) => `${path}: ${value}`);
    assert.ok(lines.includes('providers.azure.deployments.fast: gpt-5-mini'), lines.join('\n'));
    assert.ok(lines.includes('providers.app.client_secret: [secret]'), lines.join('\n'));
  });

  it('appears by itself with a key and an address', async () => {
    const settings = await withAll().load();
    const there = (env: { readonly [name: string]: string }): readonly (string | undefined)[] =>
      describeProviders(settings, env)
        .filter(({ id }) => id === 'azure' || id === 'foundry')
        .map(({ id, address, origin }) => `${id} ${address} ${origin}`);
    assert.deepEqual(there({ AZURE_OPENAI_API_KEY: 'k' }), []);
    assert.deepEqual(there({ AZURE_RESOURCE_NAME: 'acme' }), []);
    assert.deepEqual(there({ AZURE_OPENAI_API_KEY: 'k', AZURE_RESOURCE_NAME: 'acme' }), [
      'azure https://acme.openai.azure.com env AZURE_OPENAI_API_KEY',
    ]);
    const endpoint = {
      AZURE_API_KEY: 'k',
      AZURE_OPENAI_ENDPOINT: 'https://acme.openai.azure.com/',
    };
    assert.deepEqual(there(endpoint), ['azure https://acme.openai.azure.com env AZURE_API_KEY']);
    const foundry = { ANTHROPIC_FOUNDRY_API_KEY: 'k', ANTHROPIC_FOUNDRY_RESOURCE: 'acme' };
    assert.deepEqual(there(foundry), [
      'foundry https://acme.services.ai.azure.com env ANTHROPIC_FOUNDRY_API_KEY',
    ]);
  });
});
