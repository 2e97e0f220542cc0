/** F95: the gateway's output is not read, and calls, metrics and the stop work nevertheless. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { tryParseObject } from '../../src/json/parse.ts';
import { temporaryFolder } from '../support/folders.ts';
import { send } from '../support/http.ts';
import { adminToken, clientKey } from '../support/keys.ts';
import { nodeEnvironment, programArguments } from '../support/program.ts';
import { requestBody } from '../support/requests.ts';
import { scrape } from '../support/scrape.ts';
import { replying } from '../upstream/reply.ts';
import { ScriptedUpstream } from '../upstream/scripted.ts';
/** A line is longer with it: the pipe and the queue are full sooner. */
const longModel = 'm'.repeat(500);
const most = 8000;

test('F95 a standard error that is not read holds up no call and no stop', async () => {
  const upstream = await ScriptedUpstream.start();
  upstream.script(longModel, replying('chat', { text: 'Hi.' }));
  const directory = temporaryFolder('blocked');
  const config = {
    providers: {
      up: {
        dialect: 'openai-chat',
        base_url: `http://127.0.0.1:${upstream.port}/v1`,
        api_key: 'k',
      },
    },
  };
  const configFile = join(directory, 'gateway.yaml');
  writeFileSync(configFile, JSON.stringify(config), { mode: 0o600 });
  const options = ['--config', configFile, '--data-dir', join(directory, 'data')];
  options.push('--listen', '127.0.0.1:0', '--admin-listen', '127.0.0.1:0');
  const child = spawn(process.execPath, programArguments(['start', ...options]), {
    cwd: directory,
    env: {
      PATH: process.env['PATH'],
      ...nodeEnvironment,
      MODEL_GATEWAY_KEY: clientKey,
      MODEL_GATEWAY_ADMIN_TOKEN: adminToken,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const ended = once(child, 'exit');
  const kill = (): boolean => child.kill('SIGKILL');
  process.prependOnceListener('exit', kill);
  try {
    let printed = '';
    // Standard error is never read while calls are made: its pipe fills up.
    for await (const text of child.stdout.setEncoding('utf8')) {
      printed += String(text);
      if (/^admin \S+$/m.test(printed)) break;
    }
    const url = /^listening (\S+)$/m.exec(printed)?.[1] ?? '';
    const adminUrl = /^admin (\S+)$/m.exec(printed)?.[1] ?? '';
    let dropped = 0;
    let calls = 0;
    while (dropped === 0) {
      assert.ok(calls < most, 'no line was dropped');
      const some = Array.from({ length: 50 }, () =>
        send(
          `${url}/v1/chat/completions`,
          requestBody('chat', { model: `up/${longModel}`, stream: false }),
        ),
      );
      for (const { status, text } of await Promise.all(some)) assert.equal(status, 200, text);
      calls += some.length;
      dropped = (await scrape(adminUrl)).one('model_gateway_log_lines_dropped_total');
    }
    child.kill('SIGTERM');
    const late = Symbol('late');
    const [code] = await Promise.race([
      ended,
      new Promise<[symbol]>((resolve) => setTimeout(() => resolve([late]), 300_000).unref()),
    ]);
    assert.notEqual(code, late, 'it waits for a reader');
    assert.equal(code, 0);
    // What was written before is whole lines, and no line is there twice.
    let log = '';
    for await (const text of child.stderr.setEncoding('utf8')) log += String(text);
    const lines = log.split('\n').slice(0, -1);
    assert.ok(lines.length > 10 && lines.length < calls);
    for (const line of lines) assert.notEqual(tryParseObject(line), undefined, line);
    const ids = lines.map((line) => tryParseObject(line)?.['id']).filter((id) => id !== undefined);
    assert.equal(new Set(ids).size, ids.length);
  } finally {
    process.off('exit', kill);
    kill();
    await upstream.close();
  }
});
