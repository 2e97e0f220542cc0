/**
 * Token servers and services of machines that are slow: no fetch is longer than its bound, `check` names the source and
 * what to do, one fetch serves all calls, and what still holds is used meanwhile (issue 22, clouds-config.md).
 */
import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, Socket } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, it, type TestContext } from 'node:test';
import { checkCommand } from '../../src/cli/commands/check.ts';
import { askProviders } from '../../src/compose/commands/admin-of-directory.ts';
import { describeProviders } from '../../src/compose/providers.ts';
import { GatewayError } from '../../src/core/errors.ts';
import type { JsonObject } from '../../src/json/value.ts';
import { providerRows } from '../../src/providers/compatible.ts';
import { keySource, type AwsAuth } from '../../src/providers/credentials/aws-keys.ts';
import { entraMachine } from '../../src/providers/credentials/entra.ts';
import { googleMachineTokens } from '../../src/providers/credentials/google.ts';
import { TokenCache, type TokenSource } from '../../src/providers/credentials/token-cache.ts';
import { temporaryFolder } from '../support/folders.ts';
import { startTestGateway } from '../support/gateway.ts';
import { send } from '../support/http.ts';
import { run } from '../unit/cli-config/context.ts';
import { scene } from '../unit/config/scene.ts';
import { converseAnswer } from '../upstream/converse.ts';
import { ScriptedUpstream } from '../upstream/scripted.ts';

const minute = 60_000;
const clock = { wall: () => Date.now() };
const keys = JSON.stringify({
  Code: 'Success',
  AccessKeyId: 'ASIASLOW000000000000',
  SecretAccessKey: 'slow-secret-canary',
  Token: 'slow-session-canary',
  Expiration: new Date(Date.now() + 60 * minute).toISOString(),
});
const token = JSON.stringify({ access_token: 'slow-token-canary', expires_in: '3600' });
const end = new Date(Date.now() + 60 * minute).toISOString();
const assumed = `<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>ASIASLOW000000000000</AccessKeyId><SecretAccessKey>slow-secret-canary</SecretAccessKey><SessionToken>slow-session-canary</SessionToken><Expiration>${end}</Expiration></Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`;

/** Answers as long as it has answers; the next request is kept waiting. */
class SlowServer {
  readonly asks: string[] = [];
  readonly #asked = new EventEmitter();
  readonly #server: Server;
  answers: string[] = [];
  /** Whether the head and a byte of an answer come in time. */
  begins = false;

  constructor() {
    this.#server = createServer((request, response) => {
      request.resume();
      request.on('end', () => {
        const answer = this.answers.shift();
        this.asks.push(`${request.method} ${URL.parse(request.url ?? '', this.url)?.pathname}`);
        this.#asked.emit('came');
        const type = answer?.startsWith('<') === true ? 'text/xml' : 'application/json';
        const head = { 'metadata-flavor': 'Google', 'content-type': type };
        if (answer !== undefined || this.begins) response.writeHead(200, head);
        if (answer !== undefined) response.end(answer);
        else if (this.begins) response.write('{');
        if (answer === undefined) this.#asked.emit('waits');
      });
    });
  }

  async listen(): Promise<this> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    return this;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** A request came that gets no answer. */
  async waits(): Promise<void> {
    await once(this.#asked, 'waits');
    // The client has read what was written of an answer.
    if (this.begins) await new Promise((resolve) => setImmediate(resolve));
  }

  /** Resolves when this number of requests has come. */
  async asked(count: number): Promise<void> {
    while (this.asks.length < count) await once(this.#asked, 'came');
  }

  /** Ends the requests that wait. */
  drop(): void {
    this.#server.closeAllConnections();
  }

  async close(): Promise<void> {
    this.drop();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }
}

interface Source {
  readonly name: string;
  /** All answers of one fetch. */
  readonly answers: readonly string[];
  readonly boundMs: number;
  /** What the operator reads. */
  readonly told: RegExp;
  of(url: string): TokenSource<object>;
}

const scope = 'https://cognitiveservices.azure.com/.default';
const folder = temporaryFolder('slow');
const webToken = join(folder, 'web-token');

function aws(auth: AwsAuth, env: (url: string) => { readonly [name: string]: string }) {
  return (url: string): TokenSource<object> => {
    const input = { settings: {}, env: env(url), region: 'eu-central-1' };
    const source = keySource(auth, input, clock);
    assert.ok('fetch' in source);
    return source;
  };
}

const sources: readonly Source[] = [
  {
    name: 'the metadata server of Google',
    answers: [token],
    boundMs: 3000,
    told: /\(service account of the machine\) from http:\S+: no answer within 3 s\. .*Outside of Google Cloud use auth: file/,
    of: (url) => googleMachineTokens({ GCE_METADATA_HOST: url.slice('http://'.length) }, clock),
  },
  {
    name: 'the service of a virtual machine of Azure',
    answers: [token],
    boundMs: 3000,
    told: /\(managed identity\) from http:\S+: no answer within 3 s\. .*Outside of Azure use auth: entra or api_key/,
    of: (url) => {
      const env = { AZURE_POD_IDENTITY_AUTHORITY_HOST: url };
      return entraMachine({ settings: {}, env, scope, clock });
    },
  },
  {
    name: 'the service of App Service',
    answers: [token],
    boundMs: 3000,
    told: /\(managed identity\) from http:\S+: no answer within 3 s\. .*Outside of Azure/,
    of: (url) => {
      const env = { IDENTITY_ENDPOINT: `${url}/msi`, IDENTITY_HEADER: 'header-canary' };
      return entraMachine({ settings: {}, env, scope, clock });
    },
  },
  {
    name: 'the service of a container of AWS',
    answers: [keys],
    boundMs: 3000,
    told: /\(role of the container\): http:\S+\/keys: no answer within 3 s\. .*Outside of ECS and EKS/,
    of: aws('container', (url) => ({ AWS_CONTAINER_CREDENTIALS_FULL_URI: `${url}/keys` })),
  },
  {
    name: 'the service of an instance of AWS',
    answers: ['imds-token-canary', 'the-role', keys],
    boundMs: 3000,
    told: /\(role of the instance\): http:\S+\/latest\/\S+: no answer within 3 s\. .*Outside of EC2/,
    of: aws('instance', (url) => ({ AWS_EC2_METADATA_SERVICE_ENDPOINT: url })),
  },
  {
    name: 'the token service of AWS',
    answers: [assumed],
    boundMs: 20_000,
    told: /\(web identity, token of \S+\): no answer within 20 s\. Check that arn:\S+ trusts/,
    of: aws('web_identity', (url) => ({
      AWS_ENDPOINT_URL_STS: url,
      AWS_WEB_IDENTITY_TOKEN_FILE: webToken,
      AWS_ROLE_ARN: 'arn:aws:iam::123456789012:role/pod',
    })),
  },
];

let server: SlowServer;
before(async () => {
  server = await new SlowServer().listen();
  writeFileSync(webToken, 'web-identity-canary');
});
after(() => server.close());

/** What the operator reads of a fetch that is given its whole bound. */
async function detailAfterBound(t: TestContext, source: Source): Promise<string> {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const waits = server.waits();
  const failed = source
    .of(server.url)
    .fetch()
    .then(
      () => assert.fail('a token was fetched'),
      (error: unknown) => error,
    );
  await waits;
  t.mock.timers.tick(source.boundMs);
  const error = await failed;
  t.mock.timers.reset();
  assert.ok(error instanceof GatewayError, String(error));
  assert.equal(error.code, 'upstream_auth');
  const detail = error.detail ?? '';
  assert.doesNotMatch(detail, /canary/);
  return detail;
}

for (const source of sources) {
  describe(`slow: ${source.name}`, () => {
    for (const [i] of source.answers.entries()) {
      for (const begins of [false, true]) {
        it(`request ${i + 1} ${begins ? 'whose answer never ends' : 'that gets no answer'} fails at the bound and is reported`, async (t) => {
          Object.assign(server, { begins, answers: source.answers.slice(0, i) });
          assert.match(await detailAfterBound(t, source), source.told);
        });
      }
    }

    it('one fetch for all callers, and what holds is used while the next fetch waits', async () => {
      let now = 0;
      const cache = new TokenCache(source.of(server.url), { now: () => now });
      Object.assign(server, { begins: false, answers: [...source.answers] });
      server.asks.length = 0;
      const first = await Promise.all(Array.from({ length: 20 }, () => cache.get()));
      assert.equal(new Set(first).size, 1);
      assert.equal(server.asks.length, source.answers.length);
      now += 56 * minute;
      const waits = server.waits();
      for (let i = 0; i < 20; i++) assert.equal(cache.get(), first[0]);
      await waits;
      assert.equal(server.asks.length, source.answers.length + 1);
      // No promise: no call waits.
      for (let i = 0; i < 20; i++) assert.equal(cache.get(), first[0]);
      assert.equal(server.asks.length, source.answers.length + 1);
    });
  });
}

/** The keys of a program that takes them from the address of its argument. */
const keyProgram = `
const answer = await fetch(process.argv[2]);
process.stdout.write(await answer.text());
`;

describe('slow: the program of a profile of AWS', () => {
  it('is started once while it hangs, and again after its end', async (t) => {
    const home = temporaryFolder('slow-profile');
    const own = await new SlowServer().listen();
    t.after(() => own.close());
    const [program, config] = [join(home, 'keys.mjs'), join(home, 'config')];
    writeFileSync(program, keyProgram);
    const command = `"${process.execPath}" "${program}" "${own.url}"`;
    writeFileSync(config, `[profile slow]\ncredential_process = ${command}\n`);
    const source = aws('profile', () => ({
      AWS_PROFILE: 'slow',
      AWS_CONFIG_FILE: config,
      AWS_SHARED_CREDENTIALS_FILE: join(home, 'none'),
    }))(own.url);
    const failure = (): Promise<string> =>
      source.fetch().then(
        () => assert.fail('keys were fetched'),
        (error: unknown) => (error instanceof GatewayError ? (error.detail ?? '') : String(error)),
      );
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const waits = own.waits();
    const first = failure();
    await waits;
    t.mock.timers.tick(20_000);
    assert.match(await first, /\(profile slow\): no answer within 20 s\. Check \[slow\]/);
    for (let i = 0; i < 3; i++) {
      const next = failure();
      t.mock.timers.tick(20_000);
      assert.match(await next, /within another 20 s of a fetch that began earlier; a new one/);
    }
    const last = failure();
    own.drop();
    assert.match(await last, /\(profile slow\): Command failed/);
    t.mock.timers.reset();
    assert.equal(own.asks.length, 1);
    own.answers = [JSON.stringify({ Version: 1, AccessKeyId: 'AKIASLOW', SecretAccessKey: 's' })];
    await source.fetch();
    assert.equal(own.asks.length, 2);
  });
});

describe('slow: a request to the token service of AWS', () => {
  it('ends after a minute of silence, and the library repeats it', async (t) => {
    const own = await new SlowServer().listen();
    t.after(() => own.close());
    const bounded: { readonly socket: Socket; readonly ms: number }[] = [];
    t.mock.method(
      Socket.prototype,
      'setTimeout',
      function (this: Socket, ms: number, end: () => void) {
        bounded.push({ socket: this, ms });
        return end === undefined ? this : this.once('timeout', end);
      },
    );
    const source = sources.find(({ name }) => name === 'the token service of AWS');
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const waits = own.waits();
    const fetched = source?.of(own.url).fetch();
    await waits;
    // The library sets the bound three seconds after the start of a request.
    t.mock.timers.tick(3000);
    t.mock.timers.reset();
    own.answers = [assumed];
    const silent = bounded.filter(({ ms }) => ms === minute);
    assert.equal(silent.length, 1);
    for (const { socket } of silent) socket.emit('timeout');
    assert.ok(await fetched);
    assert.equal(own.asks.length, 2);
  });
});

interface ContainerGateway {
  readonly bedrock: ScriptedUpstream;
  /** One call. */
  ask(): ReturnType<typeof send>;
}

/** A gateway whose keys are those of a container, which the slow server has. */
async function containerGateway(
  t: TestContext,
  {
    fetchesCredentials = false,
    answers = [],
  }: { readonly fetchesCredentials?: boolean; readonly answers?: readonly string[] } = {},
): Promise<ContainerGateway> {
  const bedrock = await ScriptedUpstream.start();
  t.after(() => bedrock.close());
  Object.assign(server, { begins: false, answers: [...answers] });
  server.asks.length = 0;
  const endpoint = `http://127.0.0.1:${bedrock.port}`;
  const slow = { like: 'bedrock', region: 'eu-central-1', endpoint, auth: 'container' };
  const env = { AWS_CONTAINER_CREDENTIALS_FULL_URI: `${server.url}/keys` };
  const means = { env, random: () => 0, fetchesCredentials };
  const gateway = await startTestGateway({ providers: { slow } }, means);
  t.after(() => gateway.stop());
  const model = 'amazon.nova-pro-v1:0';
  bedrock.script(`/model/${encodeURIComponent(model)}/converse`, converseAnswer());
  const body = { model: `slow/${model}`, messages: [{ role: 'user', content: 'Hello' }] };
  return { bedrock, ask: () => send(`${gateway.url}/v1/chat/completions`, body) };
}

describe('slow: a gateway', () => {
  it('calls that wait for one slow service share its fetch and its failure, and later ones fail at once', async (t) => {
    const { ask, bedrock } = await containerGateway(t);
    const replies = await Promise.all(Array.from({ length: 10 }, ask));
    for (const { status, text } of replies) {
      assert.equal(status, 400, text);
      assert.match(text, /no valid credential for the provider/);
      assert.doesNotMatch(text, /127\.0\.0\.1|canary/);
    }
    assert.equal(server.asks.length, 1);
    assert.equal(bedrock.all.length, 0);
    // The service is still silent. No call waits for it now.
    assert.equal((await ask()).status, 400);
    assert.equal(server.asks.length, 1);
  });

  it('a service that fails at once is asked again after a second', async (t) => {
    const { ask, bedrock } = await containerGateway(t);
    const waits = server.waits();
    const first = ask();
    await waits;
    server.drop();
    assert.equal((await first).status, 400);
    assert.equal(server.asks.length, 1);
    await new Promise((resolve) => setTimeout(resolve, 1100));
    server.answers = [keys];
    const later = await ask();
    assert.equal(later.status, 200, later.text);
    assert.equal(bedrock.all.length, 1);
  });

  it('keys are fetched at the start, and the first call does not wait for them', async (t) => {
    const { ask } = await containerGateway(t, { fetchesCredentials: true, answers: [keys] });
    await server.asked(1);
    // The answer of a second fetch would never come.
    const reply = await ask();
    assert.equal(reply.status, 200, reply.text);
    assert.deepEqual(server.asks, ['GET /keys']);
  });

  it('after a fetch at the start that failed the first call asks again', async (t) => {
    const { ask } = await containerGateway(t, { fetchesCredentials: true, answers: ['{}', keys] });
    await server.asked(1);
    const replies = [await ask(), await ask()];
    assert.ok(
      replies.some(({ status }) => status === 200),
      replies.map(({ text }) => text).join(),
    );
    assert.equal(server.asks.length, 2);
  });

  it('check --ask names each source that does not answer, and what to do', async () => {
    Object.assign(server, { begins: false, answers: [] });
    const at = { region: 'eu-central-1', control_endpoint: server.url };
    const providers: JsonObject = {
      google: { like: 'vertex', project: 'acme-ml', base_url: server.url, auth: 'metadata' },
      machine: { like: 'azure', base_url: server.url, auth: 'managed_identity' },
      container: { like: 'bedrock', ...at, auth: 'container' },
      instance: { like: 'bedrock', ...at, auth: 'instance' },
    };
    const { directory } = scene(JSON.stringify({ providers }));
    const knownProviders = new Map(providerRows.map((row) => [row.id, row]));
    const means = { cwd: directory, knownProviders, describeProviders, askProviders };
    const { code, out } = await run(checkCommand(means), ['--ask'], {
      GCE_METADATA_HOST: server.url.slice('http://'.length),
      AZURE_POD_IDENTITY_AUTHORITY_HOST: server.url,
      AWS_CONTAINER_CREDENTIALS_FULL_URI: `${server.url}/keys`,
      AWS_EC2_METADATA_SERVICE_ENDPOINT: server.url,
    });
    assert.equal(code, 1);
    const told = [
      ['google', /service account of the machine.*no answer within 3 s.*use auth: file/],
      ['machine', /managed identity.*no answer within 3 s.*use auth: entra or api_key/],
      ['container', /role of the container.*no answer within 3 s.*have a role\?/],
      ['instance', /role of the instance.*no answer within 3 s.*IMDSv2 reachable/],
    ] as const;
    for (const [name, words] of told) {
      const line = out.split('\n').find((each) => new RegExp(`^ +${name} +fails `).test(each));
      assert.match(line ?? out, words);
    }
  });
});
