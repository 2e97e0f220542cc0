/**
 * Smuggling through a proxy (S18): whatever a client sends, the next client on the proxy's connection to
 * the gateway gets the answer to its own question, and nobody's request grows a second one.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { send } from '../support/http.ts';
import { startRig, type Rig } from '../support/rig.ts';
import { clientDialects } from '../support/dialects.ts';
import { framingRows } from './framing-rows.ts';
import { startFront, type Front } from './front.ts';
import { rawRequest } from './raw-row.ts';
import { requestRows } from './request-rows.ts';
import { sendRaw } from '../support/http.ts';

let rig: Rig;
before(async () => {
  rig = await startRig();
});
after(() => rig.stop());

const ending = 'GET /healthz HTTP/1.1\r\nHost: gateway\r\nConnection: close\r\n\r\n';

for (const name of ['nginx', 'haproxy']) {
  describe(`S18 behind ${name}`, { timeout: 500_000 }, () => {
    let front: Front | undefined;
    before(async () => {
      front = await startFront(name, rig.gateway.url);
    });
    after(() => front?.stop());

    test('the next client gets its own answer, whatever the one before sent', async (t) => {
      if (front === undefined) return t.diagnostic(`${name} is not installed`);
      const { url } = front;
      for (const [at, row] of [...framingRows, ...requestRows].entries()) {
        // Framing is the same for all paths: each row takes the next of them.
        const dialect = clientDialects[at % clientDialects.length] ?? 'chat';
        const bytes = Buffer.from(row.bytes(rawRequest(dialect)));
        // What the proxy waits for in vain is ended by the client that leaves.
        const text = await sendRaw(url, Buffer.concat([bytes, Buffer.from(ending)]), (sofar) =>
          /^HTTP\/1\.1 [2-5]\d\d /.test(sofar),
        ).catch((error: unknown) => String(error));
        assert.ok(!/^HTTP\/1\.1 200 [^]*"data"/.test(text), `${row.id} ${row.name}: ${text}`);
        for (let next = 0; next < 2; next += 1) {
          const victim = await send(`${url}/healthz`, undefined, { anonymous: true });
          assert.equal(victim.status, 200, `${row.id} ${row.name}: ${victim.text}`);
          assert.equal(victim.json['status'], 'ok', `${row.id} ${row.name}: ${victim.text}`);
        }
      }
      for (const { all } of Object.values(rig.upstreams)) {
        assert.equal(all.filter(({ method }) => method === 'POST').length, 0);
      }
    });
  });
}
