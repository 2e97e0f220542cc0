/**
 * Credentials that do not let calls in, in each cloud: the operator reads which one it is and what to do, a client learns
 * nothing of it, and no secret is anywhere (issue 22).
 */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { checkCommand } from '../../src/cli/commands/check.ts';
import { askProviders } from '../../src/compose/commands/admin-of-directory.ts';
import { describeProviders } from '../../src/compose/providers.ts';
import { tryParseObject } from '../../src/json/parse.ts';
import type { JsonObject } from '../../src/json/value.ts';
import { providerRows } from '../../src/providers/compatible.ts';
import { temporaryFolder } from '../support/folders.ts';
import { startTestGateway, type TestGateway } from '../support/gateway.ts';
import { send } from '../support/http.ts';
import { endpointOf, requestBody } from '../support/requests.ts';
import { clientDialects } from '../support/dialects.ts';
import { until } from '../support/postgres-store.ts';
import { Instance } from '../cluster/instance.ts';
import { run } from '../unit/cli-config/context.ts';
import { scene } from '../unit/config/scene.ts';
import { awsError } from '../upstream/aws.ts';
import { account, privateKey } from '../upstream/google-tokens.ts';
import { ScriptedUpstream, type Answer } from '../upstream/scripted.ts';
import { TokenServer } from '../upstream/token-server.ts';

/** In each secret of the test. */
const canary = 'canary0123456789';
const folder = temporaryFolder('bad-credentials');
const file = (name: string): string => join(folder, name);

interface Case {
  readonly cloud: string;
  readonly name: string;
  /** What the provider has besides its address. */
  readonly provider: JsonObject;
  readonly model: string;
  /** What the provider says where it is asked; absent = it is not asked. */
  readonly answer?: Answer;
  /** What the operator reads. */
  readonly told: RegExp;
}

function googleError(code: number, status: string, message: string, reason: string): Answer {
  const type = 'type.googleapis.com/google.rpc.ErrorInfo';
  const error = { code, message, status, details: [{ '@type': type, reason }] };
  return { status: code, body: JSON.stringify({ error }) };
}

const gemini = { like: 'gemini', api_key: `AIza-${canary}` };
const vertex = { like: 'vertex', project: 'acme-ml', location: 'europe-west4' };
const bedrock = { like: 'bedrock', region: 'eu-central-1' };
const keys = { access_key_id: 'AKIA0000000000000000', secret_access_key: `aws-${canary}` };
const azure = { like: 'azure' };
const app = { auth: 'entra', tenant_id: 't', client_id: 'app-1' };
const claude = 'eu.anthropic.claude-sonnet-4-5-20250929-v1:0';
const nowhere = 'http://127.0.0.1:9';

const cases: readonly Case[] = [
  {
    cloud: 'gemini',
    name: 'a key that is none',
    provider: gemini,
    model: 'gemini-bad-key',
    answer: googleError(400, 'INVALID_ARGUMENT', 'API key not valid.', 'API_KEY_INVALID'),
    told: /refused the credential \(400\): API key not valid/,
  },
  {
    cloud: 'gemini',
    name: 'an API that is switched off',
    provider: gemini,
    model: 'gemini-off',
    answer: googleError(
      403,
      'PERMISSION_DENIED',
      'Generative Language API has not been used in project 1 before or it is disabled.',
      'SERVICE_DISABLED',
    ),
    told: /refused the credential \(403\): Generative Language API has not been used/,
  },
  {
    cloud: 'vertex',
    name: 'a file that is not there',
    provider: { ...vertex, credentials: file('gone.json') },
    model: 'gemini-2.5-pro',
    told: /No token \(file [^)]*gone\.json\): it cannot be read \(ENOENT[^)]*\)\. Use the key file/,
  },
  {
    cloud: 'vertex',
    name: 'a file without a key',
    provider: { ...vertex, credentials: file('keyless.json') },
    model: 'gemini-2.5-pro',
    told: /No token \(file [^)]*keyless\.json\): it has no private_key\. Use the key file/,
  },
  {
    cloud: 'vertex',
    name: 'a key that Google no longer takes',
    provider: { ...vertex, credentials: file('revoked.json') },
    model: 'claude-opus-4-6',
    told: /No token \(service account gateway@acme-ml\.iam\.gserviceaccount\.com of [^)]*revoked\.json\).*Invalid JWT Signature.*still valid at Google.*roles\/aiplatform\.user/,
  },
  {
    cloud: 'vertex',
    name: 'a machine without an account',
    provider: { ...vertex, auth: 'metadata' },
    model: 'mistral-medium-3',
    told: /No token \(service account of the machine\).*Is a service account .* attached to this machine.*roles\/aiplatform\.user/,
  },
  {
    cloud: 'bedrock',
    name: 'keys that are none',
    provider: { ...bedrock, ...keys },
    model: claude,
    answer: awsError(403, 'UnrecognizedClientException', {
      message: 'The security token included in the request is invalid.',
    }),
    told: /refused the credential \(403\): The security token included in the request is invalid/,
  },
  {
    cloud: 'bedrock',
    name: 'a profile that is not there',
    provider: { ...bedrock, profile: 'gone' },
    model: 'eu.amazon.nova-pro-v1:0',
    told: /No AWS keys \(profile gone\).*Check \[gone\] in ~\/\.aws\/config/,
  },
  {
    cloud: 'bedrock',
    name: 'a web identity without its file',
    provider: { ...bedrock, auth: 'web_identity' },
    model: claude,
    told: /No AWS keys \(web identity, token of [^)]*gone-token\): ENOENT.*Check that arn:aws:iam::123456789012:role\/pod trusts/,
  },
  {
    cloud: 'azure',
    name: 'a key that is none',
    provider: { ...azure, api_key: `key-${canary}` },
    model: 'fast-1',
    answer: {
      status: 401,
      body: JSON.stringify({
        error: { code: '401', message: 'Access denied due to invalid subscription key.' },
      }),
    },
    told: /refused the credential \(401\): Access denied due to invalid subscription key/,
  },
  {
    cloud: 'azure',
    name: 'a secret that is none',
    provider: { ...azure, ...app, client_secret: `secret-${canary}` },
    model: 'fast-2',
    told: /No token \(Entra app app-1, client secret\).*AADSTS7000215.*Check the app in Entra/,
  },
  {
    cloud: 'azure',
    name: 'a machine without an identity',
    provider: { ...azure, auth: 'managed_identity' },
    model: 'fast-3',
    told: /No token \(managed identity\).*Is an identity assigned to this machine, and does it have a role/,
  },
];

/** The same where a call was refused: `check` alone says that it asked with the credential. */
function ofCall(told: RegExp): RegExp {
  return new RegExp(
    told.source.replace(/^refused the credential \\\(\d+\\\)/, 'The provider said'),
  );
}

const ids = cases.map(({ cloud }, i) => `${cloud}-${i}`);

const env = (tokens: string): { readonly [name: string]: string } => ({
  GCE_METADATA_HOST: '127.0.0.1:9',
  AZURE_AUTHORITY_HOST: tokens,
  AZURE_POD_IDENTITY_AUTHORITY_HOST: nowhere,
  AWS_WEB_IDENTITY_TOKEN_FILE: file('gone-token'),
  AWS_ROLE_ARN: 'arn:aws:iam::123456789012:role/pod',
  AWS_CONFIG_FILE: file('no-config'),
  AWS_SHARED_CREDENTIALS_FILE: file('no-keys'),
  AWS_EC2_METADATA_DISABLED: 'true',
});

let cloud: ScriptedUpstream;
let tokens: TokenServer;
let google: TokenServer;
let gateway: TestGateway;
let providers: JsonObject;
before(async () => {
  cloud = await ScriptedUpstream.start();
  tokens = await TokenServer.start({
    status: 401,
    body: {
      error: 'invalid_client',
      error_description: `AADSTS7000215: Invalid client secret secret-${canary}.`,
    },
  });
  google = await TokenServer.start({
    status: 400,
    body: { error: 'invalid_grant', error_description: 'Invalid JWT Signature.' },
  });
  const keyless = { type: 'service_account', client_email: account, token_uri: `${google.url}/t` };
  writeFileSync(file('keyless.json'), JSON.stringify(keyless));
  writeFileSync(file('revoked.json'), JSON.stringify({ ...keyless, private_key: privateKey }));
  providers = Object.fromEntries(cases.map((each, i) => [ids[i] ?? '', providerOf(each, i)]));
  gateway = await startTestGateway({ providers }, { env: env(tokens.url), random: () => 0 });
});
after(async () => {
  await gateway.stop();
  await cloud.close();
  await tokens.close();
  await google.close();
});

/** Each has a part of the server for itself. */
function providerOf({ cloud: of, provider }: Case, i: number): JsonObject {
  const base = `http://127.0.0.1:${cloud.port}/${i}`;
  if (of === 'bedrock') return { endpoint: base, control_endpoint: base, ...provider };
  return { base_url: of === 'gemini' ? `${base}/v1beta` : base, ...provider };
}

/** Whatever is asked there. */
function refuse(): void {
  for (const [i, { answer, model }] of cases.entries()) {
    if (answer === undefined) continue;
    cloud.script(model, answer);
    const lists = {
      gemini: ['/v1beta/models?pageSize=1000'],
      bedrock: [
        '/inference-profiles?maxResults=1000&type=SYSTEM_DEFINED',
        '/foundation-models?byOutputModality=TEXT&byInferenceType=ON_DEMAND',
        ...['invoke', 'invoke-with-response-stream'].map(
          (action) => `/model/${encodeURIComponent(claude)}/${action}`,
        ),
      ],
      azure: ['/openai/v1/models'],
    }[cases[i]?.cloud ?? ''];
    for (const path of lists ?? []) cloud.script(`/${i}${path}`, answer);
  }
}

describe('credentials that do not let calls in', () => {
  it('check --ask says which one it is, why, and what to do', async () => {
    refuse();
    const { directory } = scene(JSON.stringify({ providers }));
    const knownProviders = new Map(providerRows.map((row) => [row.id, row]));
    const command = checkCommand({
      cwd: directory,
      knownProviders,
      describeProviders,
      askProviders,
    });
    const { code, out, err } = await run(command, ['--ask'], env(tokens.url));
    assert.equal(code, 1, err);
    for (const [i, { told }] of cases.entries()) {
      const line = out.split('\n').find((each) => new RegExp(`^ +${ids[i]} +fails `).test(each));
      assert.match(line ?? out, told, ids[i]);
    }
    assert.doesNotMatch(out + err, new RegExp(canary));
    const asJson = await run(command, ['--ask', '--json'], env(tokens.url));
    assert.doesNotMatch(asJson.out + asJson.err, new RegExp(canary));
  });

  for (const [i, { name, model, cloud: of }] of cases.entries()) {
    it(`${of}: ${name}: a client learns that the operator must act, and nothing else`, async () => {
      refuse();
      for (const dialect of clientDialects) {
        for (const stream of [false, true]) {
          const body = requestBody(dialect, { model: `${ids[i]}/${model}`, stream });
          const { status, text, headers } = await send(
            `${gateway.url}${endpointOf[dialect]}`,
            body,
          );
          assert.equal(status >= 400, true, text);
          assert.match(text, /Only the operator of the gateway can fix this/);
          for (const secret of [canary, folder, 'AADSTS', '127.0.0.1', 'acme-ml', 'app-1']) {
            assert.ok(!(text + JSON.stringify(headers)).includes(secret), `${secret}: ${text}`);
          }
        }
      }
    });
  }

  it('the log says which one it is, why, and what to do, at the start and for each call', async (t) => {
    refuse();
    const logged = await Instance.start({
      storage: 'sqlite',
      upstream: cloud.port,
      config: { providers },
      env: env(tokens.url),
    });
    t.after(() => logged.kill());
    const { key } = await logged.makeKey();
    const linesOf = (event: string): readonly JsonObject[] =>
      logged.log
        .split('\n')
        .map((line) => tryParseObject(line) ?? {})
        .filter((line) => line['event'] === event);
    for (const [i, { model }] of cases.entries()) {
      const { status } = await logged.chat(key, { model: `${ids[i]}/${model}` });
      assert.equal(status, 400, ids[i]);
    }
    await until(() => linesOf('attempt_failed').length >= cases.length, 'each is logged');
    for (const [i, { told, answer }] of cases.entries()) {
      const of = (lines: readonly JsonObject[]): string =>
        lines
          .filter(({ provider, target }) => String(provider ?? target).split('/')[0] === ids[i])
          .map(({ message, reason }) => String(message ?? reason))
          .join('\n');
      assert.match(of(linesOf('attempt_failed')), ofCall(told), ids[i]);
      // What the service itself refuses shows with the first call only.
      if (answer === undefined) assert.match(of(linesOf('credential_failed')), told, ids[i]);
    }
    assert.doesNotMatch(logged.log, new RegExp(canary));
  });

  it('the admin API names the reason, without a secret', async () => {
    for (const [i, { model, told }] of cases.entries()) {
      const rows = await gateway.callRows(`${ids[i]}/${model}`, 6);
      const row = await gateway.callRow(String(rows[0]?.['id']));
      const said = JSON.stringify(row);
      assert.match(said, /upstream_auth/, said);
      assert.match(said, ofCall(told), ids[i]);
      assert.doesNotMatch(said, new RegExp(canary));
    }
  });
});
