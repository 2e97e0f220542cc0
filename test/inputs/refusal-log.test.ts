/** Each refused request has one line in the log with its id, and nothing that it sent (B1–B75, S13). */
import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { tryParseObject } from '../../src/json/parse.ts';
import { temporaryFolder } from '../support/folders.ts';
import { clientKey, adminToken } from '../support/keys.ts';
import { clientDialects } from '../support/dialects.ts';
import { send } from '../support/http.ts';
import { until } from '../support/postgres-store.ts';
import { endpointOf } from '../support/requests.ts';
import { talkRaw } from './raw-client.ts';
import { keyLine, rawRequest, typeLine } from './raw-row.ts';
import { nodeEnvironment } from '../support/program.ts';

const program = join(import.meta.dirname, '..', '..', 'bin', 'model-gateway');
const secret = 'SECRET-of-the-client';

function withBody(head: string, body: string): string {
  return `${head}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}

describe('the log of refusals', { timeout: 500_000 }, () => {
  const folder = temporaryFolder('refusals');
  let gateway: ChildProcess;
  let url = '';
  let adminUrl = '';
  let said = '';
  before(async () => {
    const addresses = ['--listen', '127.0.0.1:0', '--admin-listen', '127.0.0.1:0'];
    gateway = spawn(program, ['start', ...addresses, '--data-dir', join(folder, 'data')], {
      cwd: folder,
      env: {
        ...nodeEnvironment,
        PATH: process.env['PATH'] ?? '',
        HOME: folder,
        MODEL_GATEWAY_KEY: clientKey,
        MODEL_GATEWAY_ADMIN_TOKEN: adminToken,
      },
    });
    const listening = Promise.withResolvers<void>();
    for (const stream of [gateway.stdout, gateway.stderr]) {
      stream?.on('data', (bytes: Buffer) => {
        said += bytes.toString('utf8');
        url = /^listening (\S+)\n/m.exec(said)?.[1] ?? '';
        adminUrl = /^admin (\S+)\n/m.exec(said)?.[1] ?? '';
        if (/^admin \S+\n/m.test(said)) listening.resolve();
      });
    }
    gateway.on('exit', () => listening.reject(new Error(said)));
    await listening.promise;
  });
  after(() => {
    if (gateway.exitCode === null) gateway.kill('SIGKILL');
  });

  test('one line each, with the id that the client was told, and nothing else of it', async () => {
    const requests = clientDialects.flatMap((dialect) => {
      const { head, headWith } = rawRequest(dialect);
      const bad = `{"model":"local/tiny","messages":"${secret}"}`;
      return [
        withBody(head, bad),
        withBody(head, secret),
        withBody(headWith([keyLine, 'Content-Type: text/plain', `X-A: ${secret}`]), bad),
        withBody(headWith([`Authorization: Bearer ${secret}`, typeLine]), bad),
        withBody(headWith([keyLine, typeLine], `/v1/nothing?key=${secret}`), bad),
        withBody(headWith([keyLine, typeLine, `Host: ${secret}`]), bad),
        `${head}Content-Length: 1, 1\r\nX-A: ${secret}\r\n\r\n${secret}`,
        withBody(headWith([keyLine, typeLine, `Expect: ${secret}`]), bad),
      ];
    });
    const ids: string[] = [];
    for (const request of requests) {
      const { answers } = await talkRaw(url, request, 1);
      assert.equal(answers.length, 1, request);
      ids.push(answers[0]?.headers.get('x-request-id') ?? '');
    }
    await until(() => ids.every((id) => said.includes(id)), 'all are told');
    assert.ok(!said.includes(secret), said);
    const lines = said
      .split('\n')
      .map(tryParseObject)
      .filter((line) => line !== undefined);
    for (const [i, id] of ids.entries()) {
      const own = lines.filter((line) => line['id'] === id);
      assert.equal(own.length, 1, `${requests[i] ?? ''}: ${JSON.stringify(own)}`);
      assert.equal(typeof own[0]?.['error'], 'string');
      assert.equal(typeof own[0]?.['status'], 'number');
    }
  });

  test('X-6 a flood of requests without a key is counted and not written out', async () => {
    const long = `{"messages":"${'x'.repeat(40_000)}"}`;
    const wrong = { authorization: 'Bearer wrong-wrong-wrong-wrong' };
    const before = said.length;
    const kinds = [
      ...clientDialects.flatMap((dialect) =>
        ['{}', long].map(
          (body) => () => send(url + endpointOf[dialect], body, { anonymous: true }),
        ),
      ),
      () => send(`${url}/nothing`, '{}', { anonymous: true }),
      () => send(`${adminUrl}/api/keys`, undefined, { headers: wrong }),
      () => talkRaw(url, 'NO HTTP\r\n\r\n', 1),
    ];
    const flood = async (ask: () => Promise<unknown>): Promise<void> => {
      // The admin plane delays its answers to eight wrong tokens at once.
      for (let i = 0; i < 15; i++) await Promise.all(Array.from({ length: 20 }, ask));
    };
    for (const kind of kinds) await flood(kind);
    await until(() => /refused_without_line/.test(said), 'they are counted');
    // 2,700 lines have some 500 KB.
    assert.ok(said.length - before < 150_000, `${said.length - before} characters`);
  });
});
