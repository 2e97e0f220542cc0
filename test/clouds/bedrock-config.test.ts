/** Declarations of Bedrock: allowed options, and errors (wire/bedrock.md §13: 26, 27, 59; wire/clouds-config.md). */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type {
  CloudDeclaration,
  CloudInput,
  CloudSettings,
  Environment,
} from '../../src/core/cloud.ts';
import { Secret } from '../../src/core/secret.ts';
import { makersName } from '../../src/providers/clouds/aws/models.ts';
import { type Cloud, credentialDescription } from '../../src/providers/clouds/cloud.ts';
import { providerRow } from '../../src/providers/compatible.ts';
import { temporaryFolder } from '../support/folders.ts';

const cloud = cloudOf('bedrock');
const clock = { now: () => 0, wall: () => 0 };
const region = 'eu-central-1';
const keyed = { AWS_ACCESS_KEY_ID: 'AKIA', AWS_SECRET_ACCESS_KEY: 'secret' };
const bearer = { AWS_BEARER_TOKEN_BEDROCK: 'key' };
const ofConfig: CloudSettings = { accessKeyId: 'AKIA', secretAccessKey: new Secret('secret') };

function cloudOf(id: string): Cloud {
  const found = providerRow(id)?.cloud;
  assert.ok(found !== undefined);
  return found;
}

type Declared = Partial<CloudDeclaration>;

function wish(declared: Declared, env: Environment = {}): CloudInput {
  return { declared: { hasKey: false, hasHeaders: false, cloud: {}, ...declared }, env };
}

/** Declaration, environment, what is wrong as `key message`. */
const wrong: readonly (readonly [Declared, Environment, RegExp])[] = [
  [{ hasKey: true }, {}, /^ needs region/],
  [{ hasKey: true, region: 'evil.com#' }, {}, /^region has a region that is not of the form/],
  [{ hasKey: true }, { AWS_REGION: 'evil.com/' }, /^ has a region that is not of the form/],
  [{ region }, {}, /^ has no credential: set AWS_BEARER_TOKEN_BEDROCK/],
  [{ region, hasKey: true, baseUrl: 'https://x' }, {}, /^base_url does not apply/],
  [{ region, hasKey: true, dialect: 'openai-chat' }, {}, /^dialect does not apply/],
  [{ region, hasKey: true, cloud: { auth: 'keys' } }, {}, /^auth cannot be combined with api_key/],
  [{ region, cloud: { auth: 'bearer' } }, keyed, /^auth needs api_key or AWS_BEARER_TOKEN_BEDROCK/],
  [{ region, cloud: { auth: 'keys' } }, {}, /^auth needs access_key_id and secret_access_key/],
  [{ region, cloud: { accessKeyId: 'AKIA' } }, {}, /^access_key_id needs .* together/],
  [{ region, cloud: { auth: 'web_identity' } }, {}, /^auth needs AWS_WEB_IDENTITY_TOKEN_FILE/],
  [{ region, cloud: { auth: 'container' } }, {}, /^auth needs AWS_CONTAINER_CREDENTIALS_RELATIVE/],
  [
    { region, cloud: { auth: 'container' } },
    { AWS_CONTAINER_CREDENTIALS_FULL_URI: 'http://evil.example/x' },
    /^auth has an AWS_CONTAINER_CREDENTIALS_FULL_URI that is neither/,
  ],
  [
    { region, hasKey: true, cloud: { endpoint: 'http://10.0.0.1' } },
    {},
    /^endpoint is neither an https:\/\/ address nor one of this machine/,
  ],
  [
    { region, hasKey: true },
    { AWS_ENDPOINT_URL_BEDROCK_RUNTIME: 'http://10.0.0.1' },
    /^ AWS_ENDPOINT_URL_BEDROCK_RUNTIME is neither/,
  ],
  [{ region, hasKey: true, cloud: { deployments: { '..': 'x' } } }, {}, /^deployments "\.\."/],
];

describe('bedrock: what is wrong with a declaration', () => {
  for (const [declared, env, told] of wrong) {
    it(String(told), () => {
      const problems = cloud.problems(wish(declared, env));
      assert.equal(problems.length, 1, JSON.stringify(problems));
      assert.match(`${problems[0]?.key ?? ''} ${problems[0]?.message ?? ''}`, told);
    });
  }
});

/** What lets calls in, in the order of precedence: each row is chosen before those below it. */
const sources: readonly (readonly [Declared, Environment, string])[] = [
  [{ hasKey: true }, {}, 'key of the config'],
  [{}, bearer, 'env AWS_BEARER_TOKEN_BEDROCK'],
  [{ cloud: ofConfig }, {}, 'keys of the config'],
  [{}, keyed, 'keys of the environment'],
  [{}, { AWS_PROFILE: 'work' }, 'profile work'],
  [{}, { AWS_WEB_IDENTITY_TOKEN_FILE: '/t', AWS_ROLE_ARN: 'arn' }, 'web identity, token of /t'],
];

describe('bedrock 27: which credential is taken', () => {
  for (const [i, [declared, , words]] of sources.entries()) {
    it(`${words}, before all that follow`, () => {
      const env2 = Object.assign({}, ...sources.slice(i).map(([, each]) => each)) as Environment;
      const later = Object.assign({}, ...sources.slice(i).map(([each]) => each)) as Declared;
      const all = wish({ ...later, ...declared, region }, env2);
      assert.deepEqual(cloud.problems(all), []);
      assert.equal(credentialDescription({ cloud, input: all }, clock), words);
    });
  }

  it('metadata services are asked only where the config names them', () => {
    const env = { AWS_CONTAINER_CREDENTIALS_RELATIVE_URI: '/role' };
    assert.match(cloud.problems(wish({ region }, env))[0]?.message ?? '', /has no credential/);
    for (const [auth, words] of [
      ['container', 'role of the container'],
      ['instance', 'role of the instance'],
    ] as const) {
      const named = wish({ region, cloud: { auth } }, env);
      assert.deepEqual(cloud.problems(named), []);
      assert.equal(credentialDescription({ cloud, input: named }, clock), words);
    }
  });

  it('appears by itself with a bearer key and a region, and not with access keys', () => {
    assert.equal(cloud.appears({ ...bearer, AWS_REGION: region }), true);
    assert.equal(cloud.appears({ ...bearer }), false);
    assert.equal(cloud.appears({ ...keyed, AWS_REGION: region }), false);
  });
});

describe('bedrock 26 and 59: addresses and names', () => {
  it('by region, and by an endpoint', () => {
    const at = (declared: Declared, env: Environment = {}): string | undefined =>
      cloud.address(wish({ hasKey: true, ...declared }, env));
    const runtime = 'https://bedrock-runtime.';
    assert.equal(at({ region }), `${runtime}eu-central-1.amazonaws.com`);
    assert.equal(at({ region: 'cn-north-1' }), `${runtime}cn-north-1.amazonaws.com.cn`);
    assert.equal(at({}, { AWS_DEFAULT_REGION: 'us-east-1' }), `${runtime}us-east-1.amazonaws.com`);
    const endpoint = 'https://vpce-1.bedrock-runtime.eu-central-1.vpce.amazonaws.com';
    assert.equal(at({ region, cloud: { endpoint: `${endpoint}/` } }), endpoint);
    assert.equal(at({ region }, { AWS_ENDPOINT_URL_BEDROCK_RUNTIME: endpoint }), endpoint);
  });

  it('by the region of the profile that lets calls in, behind all that names one', () => {
    const folder = temporaryFolder('bedrock-config');
    const file = join(folder, 'config');
    writeFileSync(
      file,
      '[default]\nregion = us-west-2\n[profile work]\ns3 =\n  region = ap-south-1\nregion=eu-west-1 # ours\n[profile "my own"]\r\nregion = eu-north-1\r\n[profile none]\noutput = json\n',
    );
    const env = { AWS_CONFIG_FILE: file };
    const at = (declared: Declared, more: Environment = {}): string | undefined =>
      cloud.address(wish(declared, { ...env, ...more }))?.slice('https://bedrock-runtime.'.length);
    const of = (name: string): Declared => ({ cloud: { profile: name } });
    assert.equal(at(of('work')), 'eu-west-1.amazonaws.com');
    assert.equal(at({}, { AWS_PROFILE: 'my own' }), 'eu-north-1.amazonaws.com');
    assert.equal(at({ cloud: { auth: 'profile' } }), 'us-west-2.amazonaws.com');
    assert.equal(at({ ...of('work'), region }), `${region}.amazonaws.com`);
    assert.equal(at(of('work'), { AWS_REGION: 'us-east-1' }), 'us-east-1.amazonaws.com');
    assert.equal(at({ hasKey: true }), undefined, 'nothing is read where a key lets calls in');
    for (const declared of [of('none'), of('gone')]) {
      assert.match(cloud.problems(wish(declared, env))[0]?.message ?? '', /^needs region/);
    }
  });

  it('no name leaves its segment of the path', () => {
    for (const name of ['', '.', '..', 'anthropic.claude\n', 'a'.repeat(2049)]) {
      assert.equal(cloud.mayHave(name), false, JSON.stringify(name));
    }
  });

  it('the id of an application inference profile has no dot', () => {
    assert.equal(cloud.mayHave('l8lf5yc7xtvy'), true);
  });

  it("the maker's name, whatever stands around it", () => {
    const names = {
      'us.anthropic.claude-sonnet-4-5-20250929-v1:0': 'claude-sonnet-4-5-20250929',
      'global.anthropic.claude-opus-4-8': 'claude-opus-4-8',
      'anthropic.claude-opus-4-6-v1': 'claude-opus-4-6',
      'arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude-haiku-4-5-20251001-v1:0':
        'claude-haiku-4-5-20251001',
      'us-gov.amazon.nova-pro-v1:0': 'amazon.nova-pro',
      'claude-sonnet-4-5': 'claude-sonnet-4-5',
    };
    for (const [id, name] of Object.entries(names)) assert.equal(makersName(id), name);
  });
});
