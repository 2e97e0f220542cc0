/** Commands give the admin token to the very certificate that they know, and to no other of the same authority (S19). */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { httpAdminClient } from '../../../src/cli/admin-client.ts';
import { Secret } from '../../../src/core/secret.ts';

const pem = (name: string): string =>
  readFileSync(join(import.meta.dirname, '../../support/tls', `${name}.pem`), 'utf8');
/** As operators are told: the certificate, and those between it and the authority after it. */
const chain = pem('good') + pem('ca');

/** An admin plane that shows this certificate. @returns its address, and the tokens that it was given */
async function planeWith(t: TestContext, cert: string) {
  const tokens: (string | undefined)[] = [];
  const server = createServer({ key: pem('leaf-key'), cert }, (request, response) => {
    tokens.push(request.headers.authorization);
    response.end('{"signed_in":true}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => server.close());
  const bound = server.address();
  assert.ok(typeof bound === 'object' && bound !== null);
  return { address: `https://127.0.0.1:${bound.port}`, tokens };
}

const token = new Secret('the-admin-token-of-this-test');

for (const [what, known] of [
  ['alone', pem('good')],
  ['with its authority', chain],
] as const) {
  test(`S19 a certificate that is known ${what} is trusted, whatever the host`, async (t) => {
    const { address, tokens } = await planeWith(t, chain);
    const at = address.replace('127.0.0.1', 'localhost');
    for (const place of [address, at]) {
      const client = httpAdminClient({ address: place, token, certificate: known });
      assert.equal((await client.request('GET', '/api/session')).status, 200);
    }
    assert.equal(tokens.length, 2);
  });

  test(`S19 another one of the same authority gets no token; known ${what}`, async (t) => {
    const { address, tokens } = await planeWith(t, pem('elsewhere') + pem('ca'));
    const client = httpAdminClient({ address, token, certificate: known });
    await assert.rejects(client.request('GET', '/api/session'), /cannot be used: /);
    assert.deepEqual(tokens, []);
  });
}
