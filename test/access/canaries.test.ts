/** Unique secrets in every place that has one, and then nowhere else (S4, M4, S13). */
import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { hash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, before, describe, test } from 'node:test';
import { isObject } from '../../src/json/value.ts';
import { temporaryFolder } from '../support/folders.ts';
import { send, type Reply } from '../support/http.ts';
import { endpointOf, requestBody } from '../support/requests.ts';
import { errorIn, replying } from '../upstream/reply.ts';
import { ScriptedUpstream } from '../upstream/scripted.ts';
import { CloudCanaries } from './cloud-canaries.ts';
import { nodeEnvironment } from '../support/program.ts';

const canary = (name: string): string => `CANARY-${name}-${randomBytes(12).toString('hex')}`;

/** Each with where it may stand: its own file, and what only the asker gets. */
const canaries = {
  clientKey: canary('client-key'),
  declaredKey: canary('declared-key'),
  adminToken: canary('admin-token'),
  pepper: canary('pepper'),
  upstreamKey: canary('upstream-key'),
  header: canary('header'),
  prompt: canary('prompt'),
  answer: canary('answer'),
  wrongKey: canary('wrong-key'),
  databasePassword: canary('database-password'),
  countersPassword: canary('counters-password'),
};

const program = join(import.meta.dirname, '..', '..', 'bin', 'model-gateway');

describe('S4 canaries', { timeout: 500_000 }, () => {
  const folder = temporaryFolder('canaries');
  const dataDir = join(folder, 'data');
  const configFile = join(folder, 'gateway.yaml');
  const env = {
    ...nodeEnvironment,
    PATH: process.env['PATH'] ?? '',
    HOME: folder,
    MODEL_GATEWAY_KEY: canaries.clientKey,
    MODEL_GATEWAY_ADMIN_TOKEN: canaries.adminToken,
    MODEL_GATEWAY_PEPPER: canaries.pepper,
    UPSTREAM_KEY: canaries.upstreamKey,
    UPSTREAM_HEADER: canaries.header,
  };
  const clouds = new CloudCanaries();
  let upstream: ScriptedUpstream;
  let gateway: ChildProcess;
  let out = '';
  let url = '';
  let adminUrl = '';
  /** All text that any client or log received, without the client's own text. */
  const told: string[] = [];

  before(async () => {
    upstream = await ScriptedUpstream.start();
    await clouds.listen();
    const digest = `sha256:${hash('sha256', canaries.declaredKey)}`;
    writeFileSync(
      configFile,
      `providers:
  up:
    dialect: openai-chat
    base_url: http://127.0.0.1:${upstream.port}/v1
    api_key: \${UPSTREAM_KEY}
    headers: { x-team: '\${UPSTREAM_HEADER}' }
${Object.entries(clouds.providers(folder))
  .map(([name, provider]) => `  ${name}: ${JSON.stringify(provider)}\n`)
  .join('')}traces: { endpoint: 'http://${clouds.host}' }
keys:
  declared: { digest: '${digest}', models: ['*'], log_content: true }
`,
    );
    const args = ['start', '--listen', '127.0.0.1:0', '--admin-listen', '127.0.0.1:0'];
    gateway = spawn(
      program,
      [...args, '--data-dir', dataDir, '--config', configFile, '--log-level', 'debug'],
      { env: { ...env, ...clouds.env }, cwd: folder },
    );
    const listening = Promise.withResolvers<void>();
    for (const stream of [gateway.stdout, gateway.stderr]) {
      stream?.on('data', (bytes: Buffer) => {
        out += bytes.toString('utf8');
        url = /^listening (\S+)\n/m.exec(out)?.[1] ?? '';
        adminUrl = /^admin (\S+)\n/m.exec(out)?.[1] ?? '';
        if (adminUrl !== '') listening.resolve();
      });
    }
    gateway.on('exit', () => listening.reject(new Error(out)));
    await listening.promise;
  });
  after(async () => {
    if (gateway.exitCode === null) gateway.kill('SIGKILL');
    await upstream.close();
    await clouds.close();
  });

  const call = async (path: string, body: unknown, key: string): Promise<Reply> => {
    const reply = await send(url + path, body, { headers: { authorization: `Bearer ${key}` } });
    told.push(JSON.stringify(reply.headers), reply.text);
    return reply;
  };
  const admin = async (method: string, path: string, body?: object): Promise<Reply> => {
    const headers = { authorization: `Bearer ${canaries.adminToken}` };
    return send(adminUrl + path, body, { method, headers });
  };
  const command = async (...args: readonly string[]): Promise<string> => {
    const child = spawn(program, [...args], {
      // Not the secrets of the gateway: the run file alone lets the command in.
      env: {
        ...nodeEnvironment,
        PATH: env.PATH,
        HOME: folder,
        UPSTREAM_KEY: 'x',
        UPSTREAM_HEADER: 'x',
        AWS_SESSION_KEY_OF_TEST: 'x',
      },
      cwd: folder,
    });
    let text = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (bytes: Buffer) => {
        text += bytes.toString('utf8');
      });
    }
    await once(child, 'close');
    return text;
  };

  /** Each cloud, by each client dialect, where it refuses and quotes what it was sent. */
  const callClouds = async (): Promise<void> => {
    for (const model of clouds.models) {
      const calls = (['chat', 'messages', 'responses'] as const).flatMap((dialect) =>
        [false, true].map((stream) => {
          const body = requestBody(dialect, { model, stream });
          return call(endpointOf[dialect], body, canaries.declaredKey);
        }),
      );
      for (const { status, text } of await Promise.all(calls)) {
        assert.ok(status >= 400 || /error/.test(text), `${model}: ${text}`);
      }
    }
  };

  test('S4 they go through every path, and are found nowhere', async () => {
    const made: string[] = [];
    const created = await admin('POST', '/api/keys', {
      name: 'a',
      models: ['*'],
      log_content: true,
    });
    made.push(String(created.json['key']));
    const id = String(created.json['id']);
    const rotated = await admin('POST', `/api/keys/${id}/rotate`);
    made.push(String(rotated.json['key']));

    upstream.script('good', replying('chat', { text: canaries.answer }));
    upstream.script('echo', (request) => ({
      status: 401,
      body: JSON.stringify({
        error: {
          message: `Incorrect API key ${request.header('authorization')} ${request.header('x-team')}`,
        },
      }),
    }));
    upstream.script('bad', errorIn('chat', 400, `bad ${canaries.upstreamKey}`));
    upstream.script('reset', { body: [], mute: true, ending: 'reset' });
    const prompt = { messages: [{ role: 'user', content: canaries.prompt }] };
    const keys = [canaries.clientKey, canaries.declaredKey, ...made, canaries.wrongKey];
    for (const key of keys) {
      for (const model of ['good', 'echo', 'bad', 'reset', 'unknown']) {
        const name = model === 'unknown' ? 'nobody/has-it' : `up/${model}`;
        for (const stream of [false, true]) {
          const chat = { ...requestBody('chat', { model: name, stream }), ...prompt };
          const messages = { ...requestBody('messages', { model: name, stream }), ...prompt };
          const input = { input: canaries.prompt, instructions: canaries.prompt };
          const responses = { ...requestBody('responses', { model: name, stream }), ...input };
          const replies = [
            await call('/v1/chat/completions', chat, key),
            await call('/v1/messages', messages, key),
            await call('/v1/responses', responses, key),
          ];
          // The answer belongs to its client, and no other may have it.
          if (model === 'good') told.splice(-6, 6);
          assert.ok(replies.every(({ status }) => status >= 200));
        }
      }
      await call(
        '/v1/messages/count_tokens',
        { ...requestBody('messages', { model: 'up/good', stream: false }), ...prompt },
        key,
      );
      await call('/v1/models', undefined, key);
      await call(`/v1/models?key=${key}`, undefined, 'nobody-at-all-0123');
      await call('/v1/nothing', undefined, key);
      await call('/v1/chat/completions', `{"model":"up/good","messages":"${canaries.prompt}"`, key);
    }
    await callClouds();
    for (const path of await adminPaths(admin)) {
      const answer = await admin('GET', path);
      told.push(answer.text);
      if (plainPaths.has(path)) assert.equal(answer.status, 200, path);
    }
    for (const path of [`/api/keys/${id}`, '/api/keys/declared', '/api/keys/env']) {
      const answer = await admin('GET', path);
      assert.equal(answer.status, 200, path);
      told.push(answer.text);
    }
    told.push(...(await contents(admin)));
    told.push((await admin('PATCH', `/api/keys/${id}`, { team: 'x' })).text);
    told.push((await admin('POST', '/api/reload')).text);
    writeFileSync(configFile, `${readFileSync(configFile, 'utf8')}wrong: true\n`);
    told.push((await admin('POST', '/api/reload')).text);
    told.push((await admin('POST', `/api/keys/${id}/revoke`)).text);
    const stranger = await send(`${adminUrl}/api/keys`, undefined, {
      headers: { authorization: `Bearer ${canaries.wrongKey}` },
    });
    told.push(stranger.text);
    for (const args of [
      ['keys', 'list'],
      ['keys', 'show', id, '--json'],
      ['usage', '--by', 'key'],
      ['audit', 'list', '--json'],
      ['audit', 'check'],
      ['models'],
      ['check'],
      ['check', '--ask'],
      ['check', '--json'],
      ['status', '--json'],
      ['explain', `gem/${clouds.models[0]}`],
    ]) {
      told.push(await command(...args));
    }

    const copy = join(folder, 'copy.db');
    const copied = await admin('POST', '/api/backup', { path: copy });
    assert.equal(copied.status, 200, copied.text);

    const shared = join(folder, 'shared.yaml');
    for (const wrong of ['', 'wrong: true\n']) {
      const database = `postgres://gateway:${canaries.databasePassword}@127.0.0.1:1/gateway`;
      const counters = `redis://:${canaries.countersPassword}@127.0.0.1:1/0`;
      writeFileSync(
        shared,
        `storage: { database: '${database}', counters: '${counters}' }\n${wrong}`,
      );
      told.push(await command('check', '--config', shared));
    }

    const places = (): { readonly [place: string]: string } => ({
      answers: told.join('\n'),
      'output and log': out,
      spans: clouds.spans,
      ...Object.fromEntries(
        [...filesBelow(dataDir), copy].map((path) => [path, readFileSync(path, 'latin1')] as const),
      ),
    });
    const secrets = [
      ...Object.entries({ ...canaries, ...clouds.secrets }),
      ...made.map((key, i) => [`made key ${i}`, key.slice(12)] as const),
    ];
    const look = (): void => {
      for (const [place, text] of Object.entries(places())) {
        for (const [name, secret] of secrets) {
          assert.ok(!text.includes(secret), `the ${name} stands in ${place}`);
          const hidden = [Buffer.from(secret).toString('base64'), encodeURIComponent(secret)];
          assert.ok(
            !text.includes(hidden[0] ?? '') && !text.includes(hidden[1] ?? ''),
            `the ${name} stands in ${place}, encoded`,
          );
        }
      }
    };
    assert.ok(out.includes('"event":"call"'), 'the log was written');
    assert.ok(filesBelow(dataDir).some((path) => path.endsWith('gateway.db')));
    assert.ok(filesBelow(dataDir).some((path) => path.endsWith('content.key')));
    const metrics = await admin('GET', '/metrics');
    assert.equal(metrics.status, 200);
    told.push(metrics.text);
    // R-33: responses were kept, sealed, in the log of the database as well as in the copy.
    assert.match(metrics.text, /kept_responses_total\{[^}]*"kept"[^}]*\} [1-9]/);
    const log = filesBelow(dataDir).find((path) => path.endsWith('gateway.db-wal'));
    assert.ok(log !== undefined && statSync(log).size > 0);
    const backup = new DatabaseSync(copy, { readOnly: true });
    const kept = backup.prepare('SELECT count(*) AS rows FROM kept_responses').get();
    backup.close();
    assert.ok(Number(kept?.['rows']) > 0);
    // Of the secrets of the clouds, all but the keys that only sign came to a server that quotes them.
    const unsent = ['awsSecretKey', 'machineSecretKey', 'googlePrivateKey'];
    const expected = Object.keys(clouds.secrets).filter((name) => !unsent.includes(name));
    assert.deepEqual([...clouds.arrived].toSorted(), expected.toSorted());
    look();
    gateway.kill('SIGTERM');
    await once(gateway, 'close');
    assert.ok(clouds.spans.includes('gateway.call_id'), 'spans were sent');
    look();
  });
});

const plainPaths: ReadonlySet<string> = new Set([
  '/api/keys',
  '/api/usage',
  '/api/calls',
  '/api/audit',
  '/api/models',
  '/api/status',
  '/api/prices',
  '/api/teams',
  '/api/tags',
  '/api/providers',
  '/api/diagnostics',
]);

/** Every path of the admin API that is read without an id: what the dashboard shows. Streams never end. */
async function adminPaths(
  admin: (method: string, path: string) => Promise<Reply>,
): Promise<readonly string[]> {
  const described = (await admin('GET', '/api/openapi.json')).json['paths'];
  assert.ok(isObject(described));
  const paths = Object.entries(described).flatMap(([path, methods]) =>
    isObject(methods) && isObject(methods['get']) && !path.includes('{') ? [path] : [],
  );
  assert.ok(
    [...plainPaths].every((path) => paths.includes(path)),
    paths.join(' '),
  );
  return [
    ...paths.filter((path) => path !== '/api/calls/tail'),
    '/api/calls?limit=1000',
    '/api/audit?limit=1000',
    '/api/openapi.json',
  ];
}

/** All calls as the operator sees them: with prompts and answers, and without secrets. */
async function contents(
  admin: (method: string, path: string) => Promise<Reply>,
): Promise<readonly string[]> {
  const { calls } = (await admin('GET', '/api/calls?limit=1000')).json;
  const ids = Array.isArray(calls) ? calls.filter(isObject).map((each) => String(each['id'])) : [];
  const texts: string[] = [];
  for (const id of ids) {
    texts.push((await admin('GET', `/api/calls/${id}`)).text);
    const { json, text } = await admin('GET', `/api/calls/${id}/content`);
    if (json['state'] === 'kept') texts.push(text);
  }
  assert.ok(texts.length > 50, 'contents were kept');
  const all = texts.join('\n');
  assert.ok(all.includes(canaries.prompt) && all.includes(canaries.answer));
  return texts.map((text) => text.replaceAll(canaries.prompt, '').replaceAll(canaries.answer, ''));
}

function filesBelow(folder: string): readonly string[] {
  return readdirSync(folder).flatMap((name) => {
    const path = join(folder, name);
    if (statSync(path).isDirectory()) return filesBelow(path);
    return statSync(path).isFile() ? [path] : [];
  });
}
