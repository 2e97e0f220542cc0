/** Tokens of Entra as its servers take and give them: apps, certificates, workloads and machines (wire/azure.md §2.1). */
import assert from 'node:assert/strict';
import { createHash, verify, X509Certificate } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, beforeEach, describe, it } from 'node:test';
import type { CloudSettings } from '../../../src/core/cloud.ts';
import { GatewayError } from '../../../src/core/errors.ts';
import { Secret } from '../../../src/core/secret.ts';
import {
  entraApp,
  entraMachine,
  entraProblem,
  machineProblem,
} from '../../../src/providers/credentials/entra.ts';
import type { TokenSource } from '../../../src/providers/credentials/token-cache.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { TokenServer } from '../../upstream/token-server.ts';

const scope = 'https://cognitiveservices.azure.com/.default';
const wall = Date.parse('2026-11-26T12:00:00Z');
const clock = { wall: () => wall };
const canary = 's3cr3t+&=%/ÄCANARY';
const good = { body: { token_type: 'Bearer', expires_in: 3599, access_token: 'granted' } };

let server: TokenServer;
let folder: string;
before(async () => {
  server = await TokenServer.start(good);
  folder = temporaryFolder('entra');
});
after(() => server.close());
beforeEach(() => {
  server.asks.length = 0;
  server.play(good);
});

type Env = { readonly [name: string]: string | undefined };

function app(settings: CloudSettings = {}, env: Env = {}): TokenSource {
  const all = { AZURE_AUTHORITY_HOST: server.url, ...env };
  const named = { tenantId: 'acme.onmicrosoft.com', clientId: 'app-1', ...settings };
  return entraApp({ settings: named, env: all, scope, clock });
}

function machine(env: Env, settings: CloudSettings = {}): TokenSource {
  return entraMachine({ settings, env, scope, clock });
}

/** What the operator reads of a failed fetch; the client reads nothing of it. */
async function detailOf(source: TokenSource): Promise<string> {
  const error = await source.fetch().then(
    () => assert.fail('a token was fetched'),
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof GatewayError);
  assert.equal(error.code, 'upstream_auth');
  assert.match(error.message, /Only the operator of the gateway can fix this/);
  assert.doesNotMatch(error.message, /127\.0\.0\.1|app-1|AADSTS/);
  return error.detail ?? '';
}

describe('azure 19: an app with a secret', () => {
  it('posts the form with every character of the secret', async () => {
    const token = await app({ clientSecret: new Secret(canary) }).fetch();
    const [ask] = server.asks;
    assert.equal(ask?.method, 'POST');
    assert.equal(ask.url.pathname, '/acme.onmicrosoft.com/oauth2/v2.0/token');
    assert.equal(ask.headers['content-type'], 'application/x-www-form-urlencoded');
    assert.deepEqual(Object.fromEntries(ask.form), {
      grant_type: 'client_credentials',
      client_id: 'app-1',
      client_secret: canary,
      scope,
    });
    assert.equal(token.value.reveal(), 'granted');
    assert.equal(token.lifeMs, 3_599_000);
  });

  it('all of it may stand in the environment', async () => {
    const env = { AZURE_TENANT_ID: 't', AZURE_CLIENT_ID: 'c', AZURE_CLIENT_SECRET: 'from-env' };
    await entraApp({
      settings: {},
      env: { ...env, AZURE_AUTHORITY_HOST: server.url },
      scope,
      clock,
    }).fetch();
    assert.equal(server.asks[0]?.form.get('client_secret'), 'from-env');
    assert.equal(server.asks[0]?.form.get('client_id'), 'c');
  });

  it('its identity distinguishes two secrets and holds none', () => {
    const one = app({ clientSecret: new Secret(canary) });
    const other = app({ clientSecret: new Secret('another') });
    assert.notEqual(one.identity, other.identity);
    assert.equal(one.identity, app({ clientSecret: new Secret(canary) }).identity);
    assert.doesNotMatch(one.identity + one.description, /CANARY/);
  });
});

describe('azure 20: workload identity', () => {
  it('reads the file anew for each token', async () => {
    const file = join(folder, 'federated');
    const source = app({}, { AZURE_FEDERATED_TOKEN_FILE: file });
    for (const content of ['first.jwt', 'second.jwt']) {
      writeFileSync(file, `${content}\n`);
      await source.fetch();
      assert.deepEqual(Object.fromEntries(server.asks.at(-1)?.form ?? []), {
        grant_type: 'client_credentials',
        client_id: 'app-1',
        client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
        client_assertion: content,
        scope,
      });
    }
  });

  it('a file that is missing is named to the operator', async () => {
    const detail = await detailOf(app({}, { AZURE_FEDERATED_TOKEN_FILE: '/nowhere/token' }));
    assert.match(detail, /token of \/nowhere\/token.*ENOENT/);
  });
});

describe('azure 21: a certificate', () => {
  it('signs an assertion that its public key proves, for this token address', async () => {
    const file = join(import.meta.dirname, '../../support/tls/app.pem');
    await app({}, { AZURE_CLIENT_CERTIFICATE_PATH: file }).fetch();
    const assertion = server.asks[0]?.form.get('client_assertion') ?? '';
    const [head = '', claims = '', signature = ''] = assertion.split('.');
    const decoded = (part: string): unknown =>
      JSON.parse(Buffer.from(part, 'base64url').toString('utf8'));
    const certificate = new X509Certificate(readFileSync(file));
    assert.deepEqual(decoded(head), {
      alg: 'RS256',
      typ: 'JWT',
      'x5t#S256': createHash('sha256').update(certificate.raw).digest('base64url'),
    });
    const { jti, ...rest } = decoded(claims) as Record<string, unknown>;
    assert.match(String(jti), /^[0-9a-f-]{36}$/);
    assert.deepEqual(rest, {
      aud: `${server.url}/acme.onmicrosoft.com/oauth2/v2.0/token`,
      iss: 'app-1',
      sub: 'app-1',
      nbf: wall / 1000,
      exp: wall / 1000 + 600,
    });
    assert.ok(
      verify(
        'RSA-SHA256',
        Buffer.from(`${head}.${claims}`),
        certificate.publicKey,
        Buffer.from(signature, 'base64url'),
      ),
    );
  });

  it('a file without an RSA key is refused before anything is sent', async () => {
    const file = join(import.meta.dirname, '../../support/tls/ca.pem');
    const detail = await detailOf(app({}, { AZURE_CLIENT_CERTIFICATE_PATH: file }));
    assert.match(detail, /certificate .*ca\.pem/);
    assert.equal(server.asks.length, 0);
  });
});

describe('azure 22: the identity of a virtual machine', () => {
  it('asks with its header, takes a life in text, and waits while the service is busy', async () => {
    server.play(
      { status: 429, body: {} },
      { status: 410, body: {} },
      { body: { access_token: 'of-the-machine', expires_in: '86399' } },
    );
    const token = await machine({ AZURE_POD_IDENTITY_AUTHORITY_HOST: server.url }).fetch();
    assert.equal(server.asks.length, 3);
    const ask = server.asks.at(-1);
    assert.equal(ask?.method, 'GET');
    assert.equal(ask.headers['metadata'], 'true');
    assert.equal(
      ask.url.pathname + ask.url.search,
      '/metadata/identity/oauth2/token?api-version=2018-02-01&resource=https%3A%2F%2Fcognitiveservices.azure.com',
    );
    assert.equal(token.value.reveal(), 'of-the-machine');
    assert.equal(token.lifeMs, 86_399_000);
  });

  it('names a user-assigned identity', async () => {
    const env = { AZURE_POD_IDENTITY_AUTHORITY_HOST: server.url };
    await machine(env, { clientId: 'identity-2' }).fetch();
    assert.equal(server.asks[0]?.url.searchParams.get('client_id'), 'identity-2');
  });

  it('a service that refuses is reported with what to do, and asked once', async () => {
    server.play({
      status: 400,
      body: { error: 'invalid_request', error_description: 'Identity not found' },
    });
    const detail = await detailOf(machine({ AZURE_POD_IDENTITY_AUTHORITY_HOST: server.url }));
    assert.match(detail, /managed identity.*\/metadata\/identity.*400: Identity not found/);
    assert.match(detail, /Is an identity assigned to this machine/);
    assert.equal(server.asks.length, 1);
  });

  it('a service that is not there is reported with its address', async () => {
    const gone = await TokenServer.start();
    const { url } = gone;
    await gone.close();
    const detail = await detailOf(machine({ AZURE_POD_IDENTITY_AUTHORITY_HOST: url }));
    assert.match(
      detail,
      new RegExp(`${url}/metadata/identity/oauth2/token: the connection failed`),
    );
  });

  it('a service that says nothing is given up after 3 s', async () => {
    const never = Promise.withResolvers<void>();
    server.play({ ...good, after: never.promise });
    const detail = await detailOf(machine({ AZURE_POD_IDENTITY_AUTHORITY_HOST: server.url }));
    never.resolve();
    assert.match(detail, /no answer within 3 s/);
  });
});

describe('azure 23: the identity of App Service and Container Apps', () => {
  it('asks where the environment says, with its secret, and takes an end as a date', async () => {
    const until = String(wall / 1000 + 7200);
    server.play({ body: { access_token: 'of-the-app', expires_on: until } });
    const env = { IDENTITY_ENDPOINT: `${server.url}/msi/token`, IDENTITY_HEADER: 'header-canary' };
    const token = await machine(env).fetch();
    const [ask] = server.asks;
    assert.equal(ask?.headers['x-identity-header'], 'header-canary');
    assert.equal(ask.headers['metadata'], undefined);
    assert.equal(
      ask.url.pathname + ask.url.search,
      '/msi/token?api-version=2019-08-01&resource=https%3A%2F%2Fcognitiveservices.azure.com',
    );
    assert.equal(token.lifeMs, 7_200_000);
  });
});

describe('azure 24: the metadata service is asked directly', () => {
  it('an address of neither HTTPS nor the machine is a mistake of the environment', () => {
    for (const name of ['IDENTITY_ENDPOINT', 'AZURE_POD_IDENTITY_AUTHORITY_HOST']) {
      for (const good of [
        '',
        'http://127.0.0.1:41741/msi/token',
        'http://localhost:42356/msi/token',
        'http://169.254.129.4:8081/msi/token',
        'https://identity.example',
      ]) {
        assert.equal(machineProblem({ [name]: good }), undefined, good);
      }
      for (const bad of [
        'http://identity.example',
        'identity',
        'ftp://127.0.0.1',
        'http://10.0.0.1',
      ]) {
        assert.match(machineProblem({ [name]: bad }) ?? '', new RegExp(`has an ${name} that`), bad);
      }
    }
  });

  it('no redirect is followed', async () => {
    server.play({ status: 302, body: {}, headers: { location: `${server.url}/elsewhere` } });
    const detail = await detailOf(machine({ AZURE_POD_IDENTITY_AUTHORITY_HOST: server.url }));
    assert.match(detail, /redirect \(302\)/);
    assert.equal(server.asks.length, 1);
  });

  it('an answer beyond 64 KiB is not read', async () => {
    server.play({ body: 'x'.repeat(70_000) });
    const detail = await detailOf(machine({ AZURE_POD_IDENTITY_AUTHORITY_HOST: server.url }));
    assert.match(detail, /longer than 64 KiB/);
  });
});

describe('azure 25: the hosts that secrets go to', () => {
  const settings = { tenantId: 't', clientId: 'c', clientSecret: new Secret('s') };
  const problemAt = (host: string): string | undefined =>
    entraProblem(settings, { AZURE_AUTHORITY_HOST: host });
  it('are those of Microsoft, and this machine', () => {
    for (const host of [
      '',
      'https://login.microsoftonline.com',
      'login.microsoftonline.us',
      'https://login.chinacloudapi.cn/',
      'https://login.partner.microsoftonline.cn',
      'http://127.0.0.1:8080',
    ]) {
      assert.equal(problemAt(host), undefined, host);
    }
    for (const host of [
      'https://login.example.com',
      'http://login.microsoftonline.com',
      'https://login.microsoftonline.com:8443',
      'https://login.microsoftonline.com.evil.example',
      'http://10.0.0.1',
    ]) {
      assert.match(problemAt(host) ?? '', /AZURE_AUTHORITY_HOST/, host);
    }
  });

  it('a tenant is one segment', () => {
    for (const tenantId of ['a/b', '..%2f', 'a b', '']) {
      assert.notEqual(entraProblem({ ...settings, tenantId }, {}), undefined, tenantId);
    }
  });

  it('what is missing is named', () => {
    assert.match(entraProblem({}, {}) ?? '', /tenant_id or AZURE_TENANT_ID/);
    assert.match(entraProblem({ tenantId: 't' }, {}) ?? '', /client_id or AZURE_CLIENT_ID/);
    assert.match(
      entraProblem({ tenantId: 't', clientId: 'c' }, {}) ?? '',
      /client_secret.*AZURE_CLIENT_CERTIFICATE_PATH.*AZURE_FEDERATED_TOKEN_FILE/,
    );
  });
});

describe('azure 28: what Entra says of a refusal', () => {
  it('is told without ids and without the secret, not even where it is quoted', async () => {
    server.play({
      status: 401,
      body: {
        error: 'invalid_client',
        error_description: `AADSTS7000215: Invalid client secret provided: ${canary}. Trace ID: 1234 Correlation ID: 5678 Timestamp: 2026-11-26`,
        error_codes: [7000215],
      },
    });
    const detail = await detailOf(app({ clientSecret: new Secret(canary) }));
    assert.match(detail, /Entra app app-1, client secret/);
    assert.match(detail, /401: AADSTS7000215: Invalid client secret provided/);
    assert.doesNotMatch(detail, /CANARY|1234|5678/);
  });

  it('a success without a token is a failure', async () => {
    server.play({ body: { token_type: 'Bearer' } });
    const detail = await detailOf(app({ clientSecret: new Secret(canary) }));
    assert.match(detail, /200 without a token/);
  });
});
