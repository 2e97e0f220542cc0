/** Keys of the role of an instance (IMDSv2) or a container, by hand (wire/bedrock.md §2.3 and §13: 29, 30; decision 0057). */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { after, before, beforeEach, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { sourceProblem, usualSource } from '../../src/providers/credentials/aws-keys.ts';
import { containerKeys, instanceKeys } from '../../src/providers/credentials/aws-machine.ts';
import { temporaryFolder } from '../support/folders.ts';
import { TokenServer, type TokenReply } from '../upstream/token-server.ts';

const rolePath = '/latest/meta-data/iam/security-credentials/';
const imdsToken = 'imds-token-canary-0123';
const containerToken = 'container-token-canary-0123';
const expiration = '2030-01-01T00:00:00Z';
const keys = {
  Code: 'Success',
  AccessKeyId: 'ASIAMACHINE000000000',
  SecretAccessKey: 'machine-secret-canary',
  Token: 'machine-session-canary',
  Expiration: expiration,
};
const given = {
  accessKeyId: keys.AccessKeyId,
  secretAccessKey: keys.SecretAccessKey,
  sessionToken: keys.Token,
  expiration: new Date(expiration),
};
const whole: readonly TokenReply[] = [{ body: imdsToken }, { body: 'the-role\n' }, { body: keys }];

let server: TokenServer;
let folder: string;
before(async () => {
  server = await TokenServer.start();
  folder = temporaryFolder('aws-machine');
});
after(() => server.close());
beforeEach(() => {
  server.asks.length = 0;
});

type Env = { readonly [name: string]: string };
const instanceEnv = (): Env => ({ AWS_EC2_METADATA_SERVICE_ENDPOINT: server.url });
const containerEnv = (): Env => ({
  AWS_CONTAINER_CREDENTIALS_FULL_URI: `${server.url}/v2/keys?a=b`,
});
const asked = (): readonly string[] =>
  server.asks.map(({ method, url }) => `${method} ${url.pathname}${url.search}`);

/** Why no keys came; no secret stands in it. */
async function failure(keysOf: Promise<unknown>): Promise<string> {
  const error = await keysOf.then(
    () => assert.fail('keys were fetched'),
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof Error);
  assert.doesNotMatch(error.message, /canary/);
  return error.message;
}

describe('bedrock 29: the role of an instance', () => {
  it('is asked for by a token of the service, never without one', async () => {
    server.play(...whole);
    assert.deepEqual(await instanceKeys(instanceEnv()), given);
    assert.deepEqual(asked(), [
      'PUT /latest/api/token',
      `GET ${rolePath}`,
      `GET ${rolePath}the-role`,
    ]);
    const [put, ...gets] = server.asks;
    assert.equal(put?.headers['x-aws-ec2-metadata-token-ttl-seconds'], '21600');
    for (const { headers } of gets) assert.equal(headers['x-aws-ec2-metadata-token'], imdsToken);
  });

  it('is asked only where the config names it', () => {
    const settings = {};
    const env = { ...instanceEnv(), ...containerEnv() };
    assert.equal(usualSource({ settings, env }), undefined);
  });

  for (const status of [403, 404, 405]) {
    it(`a service that gives no token (${status}) is not asked by the older version`, async () => {
      server.play({ status, body: '' }, ...whole);
      const said = await failure(instanceKeys(instanceEnv()));
      assert.match(said, new RegExp(`/latest/api/token: it answered ${status}$`));
      assert.deepEqual(asked(), ['PUT /latest/api/token']);
    });
  }

  for (const [i] of whole.entries()) {
    it(`a redirect of request ${i + 1} is not followed`, async () => {
      const location = `${server.url}/elsewhere`;
      server.play(...whole.slice(0, i), { status: 307, body: '', headers: { location } });
      assert.match(await failure(instanceKeys(instanceEnv())), /it answered with a redirect$/);
      assert.equal(asked().length, i + 1);
      assert.ok(!asked().some((each) => each.includes('elsewhere')));
    });
  }

  it('a busy service is asked again, three times at most', async () => {
    server.play({ status: 503, body: '' }, ...whole);
    assert.deepEqual(await instanceKeys(instanceEnv()), given);
    server.asks.length = 0;
    server.play({ status: 429, body: '' });
    assert.match(await failure(instanceKeys(instanceEnv())), /it answered 429$/);
    assert.equal(server.asks.length, 3);
  });

  const odd: readonly (readonly [string, readonly TokenReply[], RegExp])[] = [
    ['without a role', [{ body: imdsToken }, { body: '\n' }], /names no role/],
    [
      'whose list is not there',
      [{ body: imdsToken }, { status: 404, body: '' }],
      /it answered 404/,
    ],
    ['with a page for keys', [...whole.slice(0, 2), { body: '<html>' }], /holds no keys$/],
    [
      'whose keys failed',
      [...whole.slice(0, 2), { body: { Code: 'AssumeRoleUnauthorizedAccess' } }],
      /holds no keys \(AssumeRoleUnauthorizedAccess\)$/,
    ],
    [
      'with keys without an end',
      [...whole.slice(0, 2), { body: { ...keys, Expiration: 'never' } }],
      /holds no keys \(Success\)$/,
    ],
  ];
  for (const [name, replies, words] of odd) {
    it(`a machine ${name} is told so`, async () => {
      server.play(...replies);
      assert.match(await failure(instanceKeys(instanceEnv())), words);
    });
  }

  it('the name of a role is one part of the path', async () => {
    server.play({ body: imdsToken }, { body: '../a b?c\nsecond' }, { body: keys });
    await instanceKeys(instanceEnv());
    assert.equal(asked().at(-1), `GET ${rolePath}..%2Fa%20b%3Fc`);
  });

  const addresses = [
    [{}, true],
    [{ AWS_EC2_METADATA_SERVICE_ENDPOINT: 'http://[fd00:ec2::254]' }, true],
    [{ AWS_EC2_METADATA_SERVICE_ENDPOINT: 'http://localhost:1338/' }, true],
    [{ AWS_EC2_METADATA_SERVICE_ENDPOINT: 'http://evil.example' }, false],
    [{ AWS_EC2_METADATA_SERVICE_ENDPOINT: 'http://169.254.169.254.evil.example' }, false],
    [{ AWS_EC2_METADATA_SERVICE_ENDPOINT: 'ftp://127.0.0.1' }, false],
    [{ AWS_EC2_METADATA_SERVICE_ENDPOINT: '127.0.0.1:80' }, false],
  ] as const;
  for (const [env, isGood] of addresses) {
    it(`${JSON.stringify(env)} is ${isGood ? 'asked' : 'a mistake of the environment'}`, () => {
      const problem = sourceProblem('instance', { settings: {}, env });
      if (isGood) assert.equal(problem, undefined);
      else assert.match(problem ?? '', /AWS_EC2_METADATA_SERVICE_ENDPOINT that is neither/);
    });
  }

  it('a service that the environment switches off is a mistake of the config', () => {
    const env = { AWS_EC2_METADATA_DISABLED: 'true' };
    assert.match(
      sourceProblem('instance', { settings: {}, env }) ?? '',
      /switches the service off/,
    );
  });
});

describe('bedrock 30: the role of a container', () => {
  it('is asked for with its token, whose file is read anew', async () => {
    const file = join(folder, 'token');
    writeFileSync(file, `${containerToken}\n`);
    const env = { ...containerEnv(), AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: file };
    server.play({ body: keys });
    assert.deepEqual(await containerKeys(env), given);
    writeFileSync(file, 'next');
    await containerKeys(env);
    assert.deepEqual(
      server.asks.map(({ headers }) => headers.authorization),
      [containerToken, 'next'],
    );
    assert.deepEqual(asked(), ['GET /v2/keys?a=b', 'GET /v2/keys?a=b']);
  });

  it('a refusal is reported with its words, without the token that it quotes', async () => {
    const env = { ...containerEnv(), AWS_CONTAINER_AUTHORIZATION_TOKEN: containerToken };
    server.play({ status: 400, body: { message: `Invalid token ${containerToken}` } });
    const said = await failure(containerKeys(env));
    assert.match(said, /\/v2\/keys: it answered 400: Invalid token \[redacted\]$/);
    assert.equal(server.asks.length, 1);
  });

  it('no part of a token is reported where the cut of a long refusal lies within it', async () => {
    const env = { ...containerEnv(), AWS_CONTAINER_AUTHORIZATION_TOKEN: containerToken };
    const before = '-'.repeat(290);
    server.play({ status: 400, body: { message: `${before}${containerToken}` } });
    const said = await failure(containerKeys(env));
    assert.ok(said.endsWith(`: ${before}[redacted]`), said);
    server.play({ status: 400, body: { message: `${before}----${containerToken}` } });
    assert.ok((await failure(containerKeys(env))).endsWith(`: ${before}----[redac`));
  });

  it('a token file that is empty changes no letter of the refusal', async () => {
    const file = join(folder, 'empty');
    writeFileSync(file, '\n');
    const env = { ...containerEnv(), AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: file };
    server.play({ status: 400, body: { message: 'No token' } });
    assert.match(await failure(containerKeys(env)), /: it answered 400: No token$/);
  });

  it('a redirect is not followed', async () => {
    const location = `${server.url}/elsewhere`;
    server.play({ status: 302, body: '', headers: { location } }, { body: keys });
    assert.match(await failure(containerKeys(containerEnv())), /it answered with a redirect$/);
    assert.equal(server.asks.length, 1);
  });

  it('a token file that is missing is named', async () => {
    const file = join(folder, 'gone');
    const env = { ...containerEnv(), AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: file };
    assert.match(await failure(containerKeys(env)), new RegExp(`ENOENT.*${file}`));
    assert.equal(server.asks.length, 0);
  });

  const full = 'AWS_CONTAINER_CREDENTIALS_FULL_URI';
  const relative = 'AWS_CONTAINER_CREDENTIALS_RELATIVE_URI';
  const addresses = [
    [full, 'http://169.254.170.2/k', true],
    [full, 'http://169.254.170.23/v1/credentials', true],
    [full, 'http://[fd00:ec2::23]/v1/credentials', true],
    [full, 'http://127.9.9.9:51678/k', true],
    [full, 'https://keys.example/k', true],
    [full, 'http://keys.example/k', false],
    [full, 'http://169.254.169.254/latest', false],
    [full, 'http://10.0.0.1/k', false],
    [full, 'file:///etc/passwd', false],
    [full, 'keys', false],
    [relative, '/v2/credentials/1', true],
    [relative, '@evil.example/k', false],
    [relative, '.evil.example/k', false],
    [relative, ':81/k', false],
  ] as const;
  for (const [name, value, isGood] of addresses) {
    it(`${value} is ${isGood ? 'asked' : 'a mistake of the environment'}`, () => {
      const problem = sourceProblem('container', { settings: {}, env: { [name]: value } });
      if (isGood) assert.equal(problem, undefined);
      else assert.match(problem ?? '', new RegExp(`has an ${name} that is neither`));
    });
  }
});

/** Fetches from each source whose modules and environment are given, and prints what came. */
const program = `
import { get } from 'node:http';
const [url, host] = [process.env.SERVER, new URL(process.env.SERVER).host];
const at = (name) => import(new URL(name, process.env.MODULES));
const { instanceKeys, containerKeys } = await at('aws-machine.ts');
const { googleMachineTokens } = await at('google.ts');
const { entraMachine } = await at('entra.ts');
const clock = { wall: () => Date.now() };
const scope = 'https://cognitiveservices.azure.com/.default';
const fetches = [
  () => instanceKeys({ AWS_EC2_METADATA_SERVICE_ENDPOINT: url }),
  () => containerKeys({ AWS_CONTAINER_CREDENTIALS_FULL_URI: url + '/keys' }),
  () => googleMachineTokens({ GCE_METADATA_HOST: host }, clock).fetch(),
  () => entraMachine({ settings: {}, env: { AZURE_POD_IDENTITY_AUTHORITY_HOST: url }, scope, clock }).fetch(),
];
for (const fetch of fetches) await fetch();
await new Promise((resolve) => get(url + '/control', (answer) => answer.resume().on('end', resolve)));
`;

describe('bedrock 29, azure 24, gemini 52: a proxy of the environment', () => {
  it('is not asked for keys of a machine', async (t) => {
    const proxied: string[] = [];
    const proxy = createServer((request, response) => {
      proxied.push(request.url ?? '');
      response.end();
    });
    await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
    t.after(() => proxy.close());
    const { port } = proxy.address() as AddressInfo;
    const headers = { 'metadata-flavor': 'Google' };
    const token = { body: { access_token: 't', expires_in: 3600 }, headers };
    server.play(...whole, { body: keys }, token);
    const env = {
      PATH: process.env['PATH'],
      NODE_USE_ENV_PROXY: '1',
      HTTP_PROXY: `http://127.0.0.1:${port}`,
      http_proxy: `http://127.0.0.1:${port}`,
      SERVER: server.url,
      MODULES: new URL('../../src/providers/credentials/', import.meta.url).href,
    };
    const options = [
      '--disable-warning=ExperimentalWarning',
      '--input-type=module',
      '--eval',
      program,
    ];
    await promisify(execFile)(process.execPath, options, { env });
    // The last request shows that others of this process do go there.
    assert.deepEqual(proxied, [`${server.url}/control`]);
    assert.equal(server.asks.length, 6);
  });
});
