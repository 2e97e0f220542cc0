/** A session at a terminal (`script` of util-linux): start, a second start, Ctrl-C while a stream runs, Ctrl-C again. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { until } from '../support/postgres-store.ts';
import { programArguments } from '../support/program.ts';

const hasScript = spawnSync('script', ['--version']).status === 0;
const skip = hasScript ? false : 'left out: there is no `script` (util-linux)';

test(
  'Ctrl-C with a running stream says what it waits for, and a second one ends',
  { skip },
  async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'gw-session-'));
    t.after(() => rmSync(folder, { recursive: true, force: true }));
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
    const args = programArguments([
      'start',
      '--listen',
      '127.0.0.1:0',
      '--admin-listen',
      '127.0.0.1:0',
    ]);
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
    const ended = once(child, 'close');
    child.stdin.write('\u0003');
    await ended;
    await rest;
    assert.match(text, /gateway_stopping.*SIGINT/);
    assert.match(text, /gateway_stopped/);
    assert.doesNotMatch(text, /engine_not_ready/);
  },
);
