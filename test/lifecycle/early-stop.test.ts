/** G14: a stop that is asked for when calls may run already, but the start is not over, is a stop like any other. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { Instance, type InstanceOptions } from '../cluster/instance.ts';
import { legalFrames } from '../faults/stream-pieces.ts';
import { until } from '../support/postgres-store.ts';
import { ScriptedUpstream } from '../upstream/scripted.ts';

let upstream: ScriptedUpstream;
before(async () => {
  upstream = await ScriptedUpstream.start();
});
after(() => upstream.close());

/**
 * Keeps the process where it has just said that it listens, for as long as this file is there. Not by SIGSTOP:
 * who reads the line may be quicker with its SIGCONT, and then nothing ever lets it go on.
 */
function heldAtListening(file: string): readonly string[] {
  const code = `
    import { existsSync } from 'node:fs';
    const tick = new Int32Array(new SharedArrayBuffer(4));
    const write = process.stdout.write.bind(process.stdout);
    process.stdout.write = (text, ...rest) => {
      const written = write(text, ...rest);
      const listens = String(text).startsWith('listening ');
      while (listens && existsSync(${JSON.stringify(file)})) Atomics.wait(tick, 0, 0, 5);
      return written;
    };`;
  return ['--import', `data:text/javascript,${encodeURIComponent(code)}`];
}

for (const [signal, workers] of [
  ['SIGTERM', 1],
  ['SIGINT', 1],
  ['SIGTERM', 2],
] as const) {
  const who = workers === 1 ? '' : `, with ${workers} workers`;
  test(`G14 ${signal} right behind "listening"${who}: who is there is served, exit code 0`, async (t) => {
    upstream.script('short', { body: legalFrames('chat').join('') });
    const options: InstanceOptions = {
      storage: 'sqlite',
      upstream: upstream.port,
      config: { workers },
    };
    const first = await Instance.start({ ...options, config: {} });
    const { key } = await first.makeKey();
    assert.equal(await first.stop(), 0);
    const { directory } = first;
    const held = join(directory, 'held');
    writeFileSync(held, '');
    const gateway = await Instance.start({ ...options, directory, node: heldAtListening(held) });
    t.after(() => gateway.kill());
    const caller = connect(Number(new URL(gateway.url).port), '127.0.0.1');
    await once(caller, 'connect');
    let answer = '';
    caller.setEncoding('utf8').on('data', (more: string) => (answer += more));
    caller.write(callOf(key));
    gateway.signal(signal);
    rmSync(held);
    await once(caller, 'close');
    assert.match(answer, /^HTTP\/1\.1 200 /);
    assert.match(answer, /\[DONE\]/);
    await until(() => !gateway.running, 'it has ended');
    assert.equal(await gateway.stop(), 0, gateway.log);
  });
}

function callOf(key: string): string {
  const messages = [{ role: 'user', content: 'hi' }];
  const body = JSON.stringify({ model: 'up/short', stream: true, messages });
  const head = [
    'POST /v1/chat/completions HTTP/1.1',
    'Host: gateway',
    `Authorization: Bearer ${key}`,
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(body)}`,
  ];
  return `${head.join('\r\n')}\r\n\r\n${body}`;
}
