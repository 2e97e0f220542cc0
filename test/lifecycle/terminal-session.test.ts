/**
 * A session at a terminal (`script` of util-linux): start, a second start, Ctrl-C while a stream runs, Ctrl-C again; and a
 * terminal that is closed.
 */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { temporaryFolder } from '../support/folders.ts';
import { until } from '../support/postgres-store.ts';
import { programArguments } from '../support/program.ts';

const hasScript = spawnSync('script', ['--version']).status === 0;
const skip = hasScript ? false : 'left out: there is no `script` (util-linux)';

/**
 * Under `npm start` npm passes on the signal that the terminal has sent to the gateway as well. The process itself sends
 * the second one: another process that has to wait for the processor may send it too late to be the same key press.
 */
const passingOn = [
  '--import',
  `data:text/javascript,${encodeURIComponent('process.once("SIGINT", () => process.kill(process.pid, "SIGINT"));')}`,
];

test(
  'Ctrl-C with a running stream says what it waits for, and a second one ends',
  { skip },
  async (t) => {
    const folder = temporaryFolder('session');
    // An upstream that begins an answer and never ends it.
    const upstream = createServer((_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(
        'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"Hi"}}]}\n\n',
      );
    }).listen(0, '127.0.0.1');
    await once(upstream, 'listening');
    t.after(() => upstream.closeAllConnections());
    t.after(() => upstream.close());
    const address = upstream.address();
    const port = typeof address === 'object' ? address?.port : 0;
    writeFileSync(
      join(folder, 'gateway.yaml'),
      `providers: { slow: { dialect: openai-chat, base_url: "http://127.0.0.1:${port}/v1" } }\n`,
    );
    const listen = ['--listen', '127.0.0.1:0', '--admin-listen', '127.0.0.1:0'];
    const args = programArguments(['start', ...listen], passingOn);
    const command = `stty cols 200; exec ${[process.execPath, ...args].map((word) => `'${word}'`).join(' ')}`;
    const env = { PATH: process.env['PATH'] ?? '', TERM: 'xterm', NO_COLOR: '1' };
    const child = spawn('script', ['-qefc', command, '/dev/null'], { cwd: folder, env });
    t.after(() => child.kill('SIGKILL'));
    let text = '';
    child.stdout.setEncoding('utf8').on('data', (piece: string) => (text += piece));
    const said = (form: RegExp): Promise<void> =>
      until(() => form.test(text), String(form), 120_000);
    await said(/More clients: /);
    await said(/gateway_started/);
    const banner = text.slice(0, text.indexOf('More clients'));
    assert.doesNotMatch(banner, /audit|engine_/, 'log lines stand in the banner');
    const url = /^listening +(\S+)/m.exec(text)?.[1] ?? '';
    const key = /\bgw_\w+/.exec(text)?.[0] ?? '';

    const second = spawnSync(process.execPath, args, { cwd: folder, env, encoding: 'utf8' });
    assert.equal(second.status, 1);
    assert.match(second.stderr, /Another gateway \(pid \d+\) runs on /);
    const taken = ['start', '--listen', new URL(url).host, '--data-dir', 'other'];
    const third = spawnSync(process.execPath, programArguments(taken), {
      cwd: folder,
      env,
      encoding: 'utf8',
    });
    assert.match(
      third.stderr,
      /is in use by \S+ \(pid \d+\)\. Stop that program, or choose another address/,
    );

    const answer = await fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: '{"model":"slow/m","stream":true,"messages":[{"role":"user","content":"hi"}]}',
    });
    assert.equal(answer.status, 200);
    const rest = answer.text().catch(() => '');
    child.stdin.write('\u0003');
    await said(/Stopping: 1 call still runs \(at most 2m\)\. Press Ctrl-C again to end now\./);
    await said(/gateway_stopping.*SIGINT/);
    const ended = once(child, 'close');
    child.stdin.write('\u0003');
    await ended;
    await rest;
    assert.match(text, /gateway_stopped/);
    assert.doesNotMatch(text, /engine_not_ready/);
  },
);

test(
  'G14 SIGHUP reloads while the terminal is there; a closed terminal stops, and its running call ends well',
  { skip },
  async (t) => {
    const folder = temporaryFolder('hangup');
    let finish = (): void => undefined;
    const upstream = createServer((_, response) => {
      const frame = (delta: object, reason: string | null): string =>
        `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: reason }] })}\n\n`;
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(frame({ role: 'assistant', content: 'Hi' }, null));
      finish = () => response.end(`${frame({}, 'stop')}data: [DONE]\n\n`);
    }).listen(0, '127.0.0.1');
    await once(upstream, 'listening');
    t.after(() => upstream.close());
    const { port } = upstream.address() as AddressInfo;
    writeFileSync(
      join(folder, 'gateway.yaml'),
      `providers: { slow: { dialect: openai-chat, base_url: "http://127.0.0.1:${port}/v1" } }\n`,
    );
    const listen = ['--listen', '127.0.0.1:0', '--admin-listen', '127.0.0.1:0'];
    const words = [process.execPath, ...programArguments(['start', ...listen])];
    const command = `exec ${words.map((word) => `'${word}'`).join(' ')} 2>log`;
    const secret = 'a-key-of-the-closed-terminal';
    const env = { PATH: process.env['PATH'] ?? '', TERM: 'xterm', MODEL_GATEWAY_KEY: secret };
    const child = spawn('script', ['-qefc', command, '/dev/null'], { cwd: folder, env });
    t.after(() => child.kill('SIGKILL'));
    child.stdout.resume();
    const log = (): string => {
      const path = join(folder, 'log');
      return existsSync(path) ? readFileSync(path, 'utf8') : '';
    };
    const logged = (form: RegExp): Promise<void> =>
      until(() => form.test(log()), String(form), 120_000);
    await logged(/"gateway_started"/);
    const [, pid = ''] = /"pid":(\d+)/.exec(log()) ?? [];
    const [, url = ''] = /"url":"([^"]+)"/.exec(log()) ?? [];
    const answer = await fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
      body: '{"model":"slow/m","stream":true,"messages":[{"role":"user","content":"hi"}]}',
    });
    process.kill(Number(pid), 'SIGHUP');
    await logged(/"config_applied"/);
    child.kill('SIGKILL');
    await logged(/"gateway_stopping","reason":"terminal closed","calls":1/);
    // As the shell of the terminal sends it, too.
    process.kill(Number(pid), 'SIGHUP');
    finish();
    assert.match(await answer.text(), /data: \[DONE\]/);
    await logged(/"gateway_stopped","reason":"terminal closed"/);
    await until(() => hasEnded(pid), 'the process ends', 120_000);
    assert.doesNotMatch(log(), /Assertion|Error/);
  },
);

/** Also one that its parent has not taken note of. Linux only, as the `script` of util-linux. */
function hasEnded(pid: string): boolean {
  try {
    return /\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return true;
  }
}
