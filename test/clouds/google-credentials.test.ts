/** Tokens of Google, of each kind of file and of a machine (wire/gemini.md §9 and case 52, clouds-config.md). */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, beforeEach, describe, it } from 'node:test';
import { GatewayError } from '../../src/core/errors.ts';
import {
  googleFile,
  googleFileTokens,
  googleMachineTokens,
  metadataProblem,
} from '../../src/providers/credentials/google.ts';
import { BearerToken, type TokenSource } from '../../src/providers/credentials/token-cache.ts';
import { temporaryFolder } from '../support/folders.ts';
import { account, GoogleTokens, privateKey, subject } from '../upstream/google-tokens.ts';

const clock = { wall: () => Date.now() };
let server: GoogleTokens;
let folder: string;
let files = 0;
before(async () => {
  server = await GoogleTokens.start();
  folder = temporaryFolder('google');
});
after(() => server.close());
beforeEach(() => {
  server.asks.length = 0;
});

function fileOf(content: string): string {
  const file = join(folder, `${++files}.json`);
  writeFileSync(file, content);
  return file;
}

const sourceOf = (content: string): TokenSource => googleFileTokens(fileOf(content), clock);

/** What the operator reads of a failed fetch; the client reads nothing of it. */
async function detailOf(source: TokenSource): Promise<string> {
  const error = await source.fetch().then(
    () => assert.fail('a token was fetched'),
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof GatewayError, String(error));
  assert.equal(error.code, 'upstream_auth');
  assert.match(error.message, /Only the operator of the gateway can fix this/);
  assert.doesNotMatch(error.message, /127\.0\.0\.1|acme-ml/);
  const detail = error.detail ?? '';
  assert.doesNotMatch(detail, /canary|PRIVATE KEY/);
  return detail;
}

async function fetched(source: TokenSource): Promise<string> {
  const { value, lifeMs } = await source.fetch();
  assert.ok(lifeMs > 3_590_000 && lifeMs <= 3_599_000, String(lifeMs));
  assert.ok(server.issued(value.reveal()));
  return value.reveal();
}

describe('gemini 52: the key file of a service account', () => {
  it('proves itself by a signed assertion that the server verifies', async () => {
    const token = await fetched(sourceOf(server.serviceAccountFile()));
    assert.match(token, /^ya29\.account/);
    assert.deepEqual(server.asks, ['POST /token']);
  });

  it('is read anew for each token', async () => {
    const file = fileOf(server.serviceAccountFile({ client_email: 'other@acme-ml' }));
    const source = googleFileTokens(file, clock);
    assert.match(await detailOf(source), /other@acme-ml of .*Invalid issuer/);
    writeFileSync(file, server.serviceAccountFile());
    await fetched(source);
  });

  it('30 calls at once ask for one token', async () => {
    const token = new BearerToken(sourceOf(server.serviceAccountFile()), { now: () => 0 });
    const all = await Promise.all(Array.from({ length: 30 }, () => token.headersFor()));
    assert.equal(new Set(all.map(([, value]) => value)).size, 1);
    assert.equal(server.asks.length, 1);
  });

  it('a refusal names account, file, address and what to do', async () => {
    server.instead.push({
      status: 400,
      body: { error: 'invalid_grant', error_description: 'Invalid JWT Signature.' },
    });
    const detail = await detailOf(sourceOf(server.serviceAccountFile()));
    assert.match(detail, new RegExp(`service account ${account} of ${folder}/\\d+\\.json`));
    assert.match(detail, /127\.0\.0\.1:\d+\/token: it answered 400: Invalid JWT Signature\. /);
    assert.match(detail, /still valid.*role Vertex AI User \(roles\/aiplatform\.user\)/);
    assert.equal(server.asks.length, 1);
  });

  it('a server that is down is not asked again at once, and a redirect is not followed', async () => {
    server.instead.push({ status: 503, body: 'busy' });
    assert.match(await detailOf(sourceOf(server.serviceAccountFile())), /it answered 503/);
    const location = `${server.url}/elsewhere`;
    server.instead.push({ status: 307, body: '', headers: { location } });
    assert.match(await detailOf(sourceOf(server.serviceAccountFile())), /a redirect \(307\)/);
    assert.deepEqual(server.asks, ['POST /token', 'POST /token']);
  });

  it('a private key that is none says so and does not show it', async () => {
    const broken = privateKey.replaceAll(/[A-Z]/g, 'x');
    const detail = await detailOf(sourceOf(server.serviceAccountFile({ private_key: broken })));
    assert.match(detail, /service account/);
    assert.doesNotMatch(detail, /xxx/);
    assert.deepEqual(server.asks, []);
  });
});

describe('clouds-config: a file of gcloud', () => {
  it('is a refresh token that is exchanged', async () => {
    assert.match(await fetched(sourceOf(server.userFile())), /^ya29\.user/);
  });

  it('a login that has ended says how to log in', async () => {
    const detail = await detailOf(sourceOf(server.userFile({ refresh_token: 'old-canary-12' })));
    assert.match(detail, /Token has been expired or revoked\. Log in again with "gcloud auth/);
  });

  it('is found where gcloud keeps it, behind the config and the variable', () => {
    const env = { CLOUDSDK_CONFIG: folder };
    assert.equal(googleFile({}, env), undefined);
    const own = join(folder, 'application_default_credentials.json');
    writeFileSync(own, server.userFile());
    assert.equal(googleFile({}, env), own);
    const variable = { ...env, GOOGLE_APPLICATION_CREDENTIALS: '/sa.json' };
    assert.equal(googleFile({}, variable), '/sa.json');
    assert.equal(googleFile({ credentialsFile: '/own.json' }, variable), '/own.json');
  });
});

describe('clouds-config: workload identity federation', () => {
  it('exchanges the token of a file, which is read anew', async () => {
    const token = fileOf(`${subject}\n`);
    const source = sourceOf(server.poolFile({ file: token }));
    assert.match(await fetched(source), /^ya29\.federated/);
    writeFileSync(token, 'another-canary-token');
    const detail = await detailOf(source);
    assert.match(detail, /workload identity of .*\/v1\/token: it answered 400: Unable to verify/);
    assert.match(detail, /issuer and the audience/);
  });

  it('exchanges the token of an address, in JSON', async () => {
    const source = sourceOf(
      server.poolFile({
        url: `${server.url}/subject`,
        headers: { 'X-Source': 'own' },
        format: { type: 'json', subject_token_field_name: 'access' },
      }),
    );
    await fetched(source);
    assert.deepEqual(server.asks, ['GET /subject', 'POST /v1/token']);
  });

  it('then asks for a token of a service account', async () => {
    const source = sourceOf(
      server.poolFile(
        { file: fileOf(subject) },
        {
          service_account_impersonation_url: server.impersonationUrl,
          service_account_impersonation: { token_lifetime_seconds: 1800 },
        },
      ),
    );
    const token = await source.fetch();
    assert.match(token.value.reveal(), /^ya29\.impersonated/);
    assert.ok(token.lifeMs > 3_590_000 && token.lifeMs <= 3_599_000);
  });

  it('a principal without the role is told which one', async () => {
    const more = { service_account_impersonation_url: server.impersonationUrl };
    const detail = await detailOf(sourceOf(server.poolFile({ file: fileOf(subject) }, more)));
    assert.match(detail, /as gateway@acme-ml\.iam\.gserviceaccount\.com:generateAccessToken/);
    assert.match(detail, /it answered 403: Permission 'iam\.serviceAccounts\.getAccessToken'/);
    assert.match(detail, /Workload Identity User \(roles\/iam\.workloadIdentityUser\)/);
  });

  it('a source that is missing, or not of this machine, is named', async () => {
    const gone = await detailOf(sourceOf(server.poolFile({ file: '/nowhere/token' })));
    assert.match(gone, /credential_source cannot be had.*\/nowhere\/token/);
    const plain = await detailOf(sourceOf(server.poolFile({ url: 'http://other.example/t' })));
    assert.match(plain, /neither https:\/\/ nor one of this machine/);
    assert.match(
      await detailOf(sourceOf(server.poolFile({ certificate: {} }))),
      /no credential_source/,
    );
    assert.deepEqual(server.asks, []);
  });
});

describe('clouds-config: a file that is wrong', () => {
  const wrong = [
    ['is missing', undefined, /nowhere\.json\): it cannot be read \(ENOENT/],
    ['is no JSON', '{', /is not a JSON object/],
    [
      'is of another type',
      '{"type":"gdch_service_account"}',
      /has the type "gdch_service_account"; known/,
    ],
    ['is of no type', '{}', /has the type "undefined"/],
    ['names a type of JavaScript', '{"type":"constructor"}', /has the type "constructor"/],
    ['has no key', '{"type":"service_account","client_email":"a"}', /has no private_key/],
  ] as const;
  for (const [name, content, words] of wrong) {
    it(`${name}: told with the file`, async () => {
      const file = content === undefined ? '/nowhere.json' : fileOf(content);
      const detail = await detailOf(googleFileTokens(file, clock));
      assert.match(detail, words);
      assert.ok(detail.includes(file));
    });
  }

  for (const address of [
    'https://oauth2.googleapis.com.evil.example/token',
    'http://oauth2.googleapis.com/token',
    'https://evilgoogleapis.com/token',
    'file:///etc/passwd',
  ]) {
    it(`an assertion is not sent to ${address}`, async () => {
      const detail = await detailOf(sourceOf(server.serviceAccountFile({ token_uri: address })));
      assert.match(detail, /has a token_uri that is no https:\/\/ address of googleapis\.com/);
      const pool = server.poolFile({ file: fileOf(subject) }, { token_url: address });
      assert.match(await detailOf(sourceOf(pool)), /has a token_url that is no/);
      const account = { service_account_impersonation_url: address };
      const impersonated = server.poolFile({ file: fileOf(subject) }, account);
      assert.match(await detailOf(sourceOf(impersonated)), /impersonation_url that is no/);
      assert.deepEqual(server.asks, []);
    });
  }
});

describe('clouds-config: the metadata server', () => {
  it('is asked with its header', async () => {
    const source = googleMachineTokens({ GCE_METADATA_HOST: server.host }, clock);
    assert.match(await fetched(source), /^ya29\.metadata/);
  });

  it('a server that answers without its header is not it', async () => {
    server.instead.push({ status: 200, body: { access_token: 'x', expires_in: 3600 } });
    const source = googleMachineTokens({ GCE_METADATA_HOST: server.host }, clock);
    const detail = await detailOf(source);
    assert.match(detail, /not the metadata server of Google.*use auth: file/);
  });

  it('a busy one is asked again', async () => {
    const headers = { 'metadata-flavor': 'Google' };
    server.instead.push({ status: 503, body: '', headers });
    await fetched(googleMachineTokens({ GCE_METADATA_HOST: server.host }, clock));
    assert.equal(server.asks.length, 2);
  });

  it('an absent one is reported', async () => {
    const closed = await GoogleTokens.start();
    const { host } = closed;
    await closed.close();
    const detail = await detailOf(googleMachineTokens({ GCE_METADATA_HOST: host }, clock));
    assert.match(detail, /the connection failed \(ECONNREFUSED\)/);
  });

  it('a host that is none is a mistake of the environment', () => {
    assert.equal(metadataProblem({}), undefined);
    assert.equal(metadataProblem({ GCE_METADATA_HOST: '127.0.0.1:1' }), undefined);
    assert.match(metadataProblem({ GCE_METADATA_HOST: 'a/b' }) ?? '', /no host:port/);
  });
});
