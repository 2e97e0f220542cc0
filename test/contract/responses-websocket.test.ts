/** clients that try a WebSocket get an immediate error. */
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { after, before, test } from 'node:test';
import { clientKey } from '../support/keys.ts';
import { startRig, type Rig } from '../support/rig.ts';

let rig: Rig;
before(async () => {
  rig = await startRig();
});
after(() => rig.stop());

function upgrade(lines: readonly string[]): Promise<string> {
  const { hostname, port } = new URL(rig.gateway.url);
  return new Promise((resolve, reject) => {
    let text = '';
    const socket = connect({ host: hostname, port: Number(port) });
    socket.on('error', reject);
    socket.on('close', () => resolve(text));
    socket.setEncoding('utf8').on('data', (piece: string) => (text += piece));
    const head = ['GET /v1/responses HTTP/1.1', `host: ${hostname}`, 'connection: Upgrade'];
    const version = ['upgrade: websocket', 'sec-websocket-version: 13', 'sec-websocket-key: AAAA'];
    socket.write([...head, ...version, ...lines, '', ''].join('\r\n'));
  });
}

for (const [how, lines] of [
  ['without a key', []],
  ['with a key', [`authorization: Bearer ${clientKey}`]],
] as const) {
  test(`R-16 an upgrade on /v1/responses is answered 426 ${how}, and closed`, async () => {
    const began = performance.now();
    const answer = await upgrade(lines);
    // Once in many tries: the machine may be busy.
    const took = [performance.now() - began];
    while (Math.min(...took) >= 50 && took.length < 100) {
      const again = performance.now();
      await upgrade(lines);
      took.push(performance.now() - again);
    }
    assert.ok(Math.min(...took) < 50, took.join());
    for (const upstream of Object.values(rig.upstreams)) assert.equal(upstream.all.length, 0);
    assert.match(answer, /^HTTP\/1\.1 426 /);
    assert.match(answer, /"code":"websocket_not_supported"/);
    assert.match(answer, /connection: close/i);
  });
}
