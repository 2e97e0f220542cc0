/** S11: what a real Chromium does with the session's cookie, and with pages that would like to use it. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, describe, test } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { startTestGateway } from '../support/gateway.ts';
import { adminToken } from '../support/keys.ts';
import { noBrowser, openBrowser } from './browser.ts';

const browser = await openBrowser(['--host-resolver-rules=MAP admin.example 127.0.0.1']);
if (browser === undefined) test(noBrowser, () => undefined);
else await story(browser);

/** Signs in by the page's own means; the status of the answer, and of a look at the session after it. */
function signIn(page: Page): Promise<readonly [number, boolean]> {
  return page.evaluate(async (token) => {
    const opened = await fetch('/api/session', {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-model-gateway-csrf': '1' },
      body: JSON.stringify({ token }),
    });
    const seen = (await (await fetch('/api/session')).json()) as { signed_in: boolean };
    return [opened.status, seen.signed_in] as const;
  }, adminToken);
}

async function story(browser: Browser): Promise<void> {
  const gateway = await startTestGateway({});
  const { port } = new URL(gateway.adminUrl);
  const evil = createServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/html' });
    const body = `name='{"name":"stolen","models":["*"],"x":"' value='"}'`;
    response.end(`<!doctype html><link rel="icon" href="data:,"><title>another page</title>
      <form method="post" enctype="text/plain" action="${gateway.adminUrl}/api/keys">
      <input ${body}><button>Win a prize</button></form>`);
  });
  evil.listen(0, '127.0.0.1');
  await once(evil, 'listening');
  const evilPort = (evil.address() as AddressInfo).port;

  const keys = async (): Promise<readonly unknown[]> => {
    const headers = { authorization: `Bearer ${adminToken}` };
    const answer = await fetch(`${gateway.adminUrl}/api/keys`, { headers });
    const { keys: found } = (await answer.json()) as { readonly keys: readonly unknown[] };
    return found;
  };

  describe('S11 sessions in Chromium', { timeout: 900_000 }, () => {
    after(async () => {
      await browser.close();
      evil.close();
      evil.closeAllConnections();
      await gateway.stop();
    });

    test('S11 the cookie is kept over plain HTTP for 127.0.0.1 and localhost, and no script sees it', async () => {
      for (const host of ['127.0.0.1', 'localhost']) {
        const context = await browser.newContext();
        const page = await context.newPage();
        // The listener is on 127.0.0.1; both names lead there.
        await page.goto(`http://${host}:${port}/healthz`);
        assert.deepEqual(await signIn(page), [200, true], host);
        assert.equal(await page.evaluate('document.cookie'), '');
        const [cookie] = await context.cookies();
        assert.equal(cookie?.name, `__Host-model-gateway-${port}`);
        const { httpOnly, secure, sameSite, path } = cookie ?? {};
        assert.deepEqual([httpOnly, secure, sameSite, path], [true, true, 'Strict', '/']);
        await context.close();
      }
    });

    test('S9 S11 over plain HTTP under another name signing in is refused, with the way out', async () => {
      const context = await browser.newContext();
      const page = await context.newPage();
      await page.goto(`http://admin.example:${port}/healthz`);
      assert.deepEqual(await signIn(page), [403, false]);
      assert.deepEqual(await context.cookies(), []);
      await context.close();
    });

    test('S11 pages of other origins change nothing and read nothing, on the same machine, too', async () => {
      const context = await browser.newContext();
      const page = await context.newPage();
      await page.goto(`http://127.0.0.1:${port}/healthz`);
      assert.deepEqual(await signIn(page), [200, true]);
      const before = await keys();
      for (const home of [`http://127.0.0.1:${evilPort}`, `http://admin.example:${evilPort}`]) {
        await page.goto(home);
        const target = `http://127.0.0.1:${port}/api/keys`;
        const read = await page.evaluate(async (address) => {
          const tries: string[] = [];
          const body = JSON.stringify({ name: 'stolen', models: ['*'] });
          const requests: RequestInit[] = [
            { method: 'POST', body, mode: 'no-cors' },
            { method: 'POST', body, headers: { 'x-model-gateway-csrf': '1' } },
            { method: 'POST', body, headers: { 'content-type': 'application/json' } },
            { mode: 'no-cors' },
            {},
          ];
          for (const request of requests) {
            const answer = await fetch(address, { ...request, credentials: 'include' }).catch(
              () => undefined,
            );
            tries.push((await answer?.text().catch(() => '')) ?? '');
          }
          return tries.join('');
        }, target);
        assert.equal(read, '', home);
        const form = page.waitForResponse(target);
        await page.click('button');
        assert.match(String((await form).status()), /^40[13]$/, home);
      }
      assert.deepEqual(await keys(), before);
      await context.close();
    });
  });
}
