/** The door, the frame and what happens when the gateway or the session is gone (issue 8.1, S11). */
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import type { Page, Route } from 'playwright-core';
import { startTestGateway } from '../support/gateway.ts';
import { adminToken } from '../support/keys.ts';
import { until } from '../support/postgres-store.ts';
import { chatChunk, chatFrame } from '../upstream/chat.ts';
import { assertAccessible, assertFits } from './accessible.ts';
import { noBrowser } from './browser.ts';
import { settled } from './settled.ts';
import { fillLogin, startStage, type Stage } from './stage.ts';
import { narrow, onPage } from './watched-page.ts';

const stage = await startStage();
if (stage === undefined) test(noBrowser, () => undefined);
else door(stage);

function heading(page: Page, name: string): ReturnType<Page['getByRole']> {
  return page.getByRole('heading', { level: 1, name });
}

function door(stage: Stage): void {
  describe('S11 issue 8.1 session', { timeout: 900_000 }, () => {
    after(() => stage.stop());

    test('S10 without a session there is the door only, whatever the address', async () => {
      for (const path of ['/', '/keys', '/calls/req_1', '/no-such-page']) {
        await stage.view(
          path,
          async (page) => {
            await page.getByLabel('Admin token').waitFor();
            assert.equal(await page.getByRole('navigation').count(), 0);
          },
          { anonymous: true },
        );
      }
    });

    test('a wrong token is refused in words, the right one opens; the door is accessible', async () => {
      await stage.view(
        '/setup',
        async (page) => {
          await page.getByLabel('Admin token').fill('not-the-token-0123456789');
          await assertAccessible(page);
          await page.keyboard.press('Enter');
          await page
            .getByRole('alert')
            .getByText(/not the admin token/)
            .waitFor();
          await assertAccessible(page);
          await fillLogin(page);
          // Where one wanted to go.
          await heading(page, 'Setup').waitFor();
        },
        { anonymous: true, expected: [/status of 401 .*api\/session/] },
      );
    });

    test('the token is nowhere in the page, its storage or its address; the cookie is not for scripts', async () => {
      await stage.view('/', async (page, { context }) => {
        await page.getByRole('navigation').first().waitFor();
        const kept = await page.evaluate<string>(
          'JSON.stringify([document.cookie, {...localStorage}, {...sessionStorage}, location.href, document.documentElement.outerHTML])',
        );
        assert.ok(!kept.includes(adminToken));
        assert.equal(await page.evaluate<string>('document.cookie'), '');
        const [cookie] = await context.cookies();
        assert.match(cookie?.name ?? '', /^__Host-/);
        assert.equal(cookie?.httpOnly, true);
        assert.equal(cookie.secure, true);
        assert.equal(cookie.sameSite, 'Strict');
      });
    });

    test('a session that is over leads to the door, and back to the page', async () => {
      await stage.view(
        '/setup',
        async (page, { context }) => {
          await heading(page, 'Setup').waitFor();
          await context.clearCookies();
          // The page asks how the gateway is all the time.
          await page.getByLabel('Admin token').waitFor();
          await fillLogin(page);
          await heading(page, 'Setup').waitFor();
        },
        { expected: [/status of 401 /] },
      );
    });

    test('issue 8.1 a form keeps its text while its session expires, and loses it with a sign-out', async () => {
      await stage.view(
        '/keys',
        async (page, { context }) => {
          await fillLogin(page);
          await page.getByRole('button', { name: 'Create key' }).click();
          const form = page.getByRole('dialog', { name: 'Create a key' });
          await form.getByLabel('Name').fill('typed before');
          await context.clearCookies();
          await form.getByRole('button', { name: 'Create key' }).click();
          await page.getByLabel('Admin token').waitFor();
          await form.waitFor({ state: 'hidden' });
          assert.equal(await page.getByRole('navigation').count(), 0);
          await assertAccessible(page);
          await page.getByLabel('Admin token').fill(adminToken);
          await page.keyboard.press('Enter');
          await form.waitFor();
          assert.equal(await form.getByLabel('Name').inputValue(), 'typed before');
          await assertAccessible(page);
          await form.getByLabel('Models', { exact: true }).fill('*');
          await form.getByRole('button', { name: 'Create key' }).click();
          const once = page.getByRole('dialog', { name: 'Copy the secret now' });
          await once.getByRole('button', { name: 'I have copied it' }).click();
          await page.goto(new URL('/playground', page.url()).href);
          const words = page.getByLabel('Message', { exact: true });
          await words.fill('typed before');
          await page.getByRole('button', { name: 'Sign out' }).click();
          await fillLogin(page);
          await heading(page, 'Playground').waitFor();
          assert.equal(await words.inputValue(), '');
          const kept = await page.evaluate<string>(
            'JSON.stringify([{...localStorage}, {...sessionStorage}])',
          );
          assert.ok(!kept.includes('typed before'));
        },
        { anonymous: true, expected: [/status of 401 /] },
      );
    });

    test('issue 8.1 pages of a session that expired are gone after some minutes, and at once without typed text or with a secret', async () => {
      await stage.view(
        '/keys',
        async (page, { context }) => {
          await page.clock.install();
          const title = page.getByRole('heading', { name: 'Keys', level: 1, includeHidden: true });
          const expire = async (): Promise<void> => {
            await context.clearCookies();
            // The page asks how the gateway is all the time.
            await page.clock.runFor(60_000);
            await page.getByLabel('Admin token').waitFor();
          };
          await fillLogin(page);
          await title.waitFor();
          await expire();
          assert.equal(await title.count(), 0);
          await fillLogin(page);
          await page.getByRole('button', { name: 'Create key' }).click();
          const form = page.getByRole('dialog', { name: 'Create a key' });
          await form.getByLabel('Name').fill('typed before');
          await expire();
          assert.equal(await title.count(), 1);
          await page.clock.runFor(5 * 60_000);
          await title.waitFor({ state: 'detached' });
          await page.getByLabel('Admin token').fill(adminToken);
          await page.keyboard.press('Enter');
          // The address has the open form, without the text.
          await form.waitFor();
          assert.equal(await form.getByLabel('Name').inputValue(), '');
          await form.getByLabel('Name').fill('one more');
          await form.getByLabel('Models', { exact: true }).fill('*');
          await form.getByRole('button', { name: 'Create key' }).click();
          const once = page.getByRole('dialog', { name: 'Copy the secret now' });
          await once.waitFor();
          const secret = await once.locator('code, pre').first().innerText();
          assert.match(secret, /\S{20}/);
          await expire();
          assert.equal(await title.count(), 0);
          assert.ok(!(await page.content()).includes(secret.trim()));
        },
        { anonymous: true, expected: [/status of 401 /] },
      );
    });

    test('signing out ends the session, not only its cookie here', async () => {
      await stage.view(
        '/',
        async (page, { context }) => {
          await fillLogin(page);
          const before = await context.cookies();
          await page.getByRole('button', { name: 'Sign out' }).click();
          await page.getByLabel('Admin token').waitFor();
          await context.addCookies(before);
          await page.reload();
          await page.getByLabel('Admin token').waitFor();
        },
        { anonymous: true },
      );
    });

    for (const path of ['/', '/models', '/setup']) {
      test(`while a sign-out is on its way nothing is asked behind it: ${path}`, async () => {
        await stage.view(
          path,
          async (page) => {
            await page.clock.install();
            await fillLogin(page);
            await settled(page);
            const heard = Promise.withResolvers<void>();
            const told = Promise.withResolvers<void>();
            await page.route('**/api/session', async (route) => {
              if (route.request().method() !== 'DELETE') return route.fallback();
              // The server has ended the session, and the page does not know it yet.
              const response = await route.fetch();
              heard.resolve();
              await told.promise;
              await route.fulfill({ response });
            });
            await page.getByRole('button', { name: 'Sign out' }).click();
            await heard.promise;
            const asked: string[] = [];
            page.on('request', (request) => asked.push(request.url()));
            // Longer than every page waits before it asks again, and shorter than a request may take.
            await page.clock.runFor(50_000);
            told.resolve();
            await page.getByLabel('Admin token').waitFor();
            assert.deepEqual(
              asked.filter((url) => url.includes('/api/')),
              [],
            );
          },
          { anonymous: true },
        );
      });
    }

    test('issue 8.1 a change that is on its way is heard before the session ends', async () => {
      await stage.view(
        '/setup',
        async (page) => {
          await fillLogin(page);
          await settled(page);
          const heard: string[] = [];
          const released = Promise.withResolvers<void>();
          await page.route('**/api/reload', async (route) => {
            await released.promise;
            const response = await route.fetch();
            heard.push(`reload ${response.status()}`);
            await route.fulfill({ response });
          });
          page.on('request', (request) => {
            if (request.method() === 'DELETE') heard.push('the end of the session');
          });
          await page.getByRole('button', { name: 'Reload the file' }).click();
          const signOut = page.getByRole('button', { name: 'Sign out' });
          await signOut.click();
          await page.locator('button[aria-busy]', { hasText: 'Sign out' }).waitFor();
          // A second click ends nothing twice.
          await signOut.dispatchEvent('click');
          released.resolve();
          await page.getByLabel('Admin token').waitFor();
          assert.deepEqual(heard, ['reload 200', 'the end of the session']);
        },
        { anonymous: true },
      );
    });

    test('issue 8.1 signing out ends what the playground has running', async () => {
      const never = new Promise(() => undefined);
      const half = chatFrame(chatChunk({ role: 'assistant', content: 'Half of it' }));
      const script = stage.upstreams.chat.script('left', { body: [half, never] });
      await stage.view(
        '/playground',
        async (page) => {
          await fillLogin(page);
          await page.getByLabel('Model', { exact: true }).fill('up-chat/left');
          await page.getByRole('textbox', { name: 'Message' }).fill('Go on.');
          await page.keyboard.press('Enter');
          await page.getByText('Half of it').waitFor();
          await page.getByRole('button', { name: 'Sign out' }).click();
          await page.getByLabel('Admin token').waitFor();
          assert.equal(await (await script.request(0)).closed, 'gateway');
        },
        { anonymous: true },
      );
    });

    test('issue 8.1 a change that finds the session over leads to the door', async () => {
      await stage.view(
        '/keys',
        async (page, { context }) => {
          await page.getByRole('button', { name: 'Create key' }).click();
          const form = page.getByRole('dialog', { name: 'Create a key' });
          await form.getByLabel('Name').fill('too late');
          await context.clearCookies();
          await form.getByRole('button', { name: 'Create key' }).click();
          await page.getByLabel('Admin token').waitFor();
          await page.getByRole('dialog').waitFor({ state: 'hidden' });
        },
        { expected: [/status of 401 /] },
      );
    });

    test('issue 8.1 a request without an answer ends in time, and says what it may have done', async () => {
      await stage.view('/setup', async (page) => {
        await settled(page);
        const held: Route[] = [];
        await page.route('**/api/reload', (route) => void held.push(route));
        // What takes a minute here takes two seconds.
        await page.evaluate(`{
          const timeout = AbortSignal.timeout;
          AbortSignal.timeout = (ms) => timeout.call(AbortSignal, ms / 30);
        }`);
        await page.getByRole('button', { name: 'Reload the file' }).click();
        const alert = page.getByRole('alert').filter({ hasText: 'POST /api/reload' });
        await alert.getByText('The gateway did not answer within 60 s.').waitFor();
        await alert.getByText(/The change may have been made/).waitFor();
        assert.equal(held.length, 1, 'it is not sent a second time');
        await page.unrouteAll({ behavior: 'ignoreErrors' });
      });
    });

    test('every page is reached by keyboard alone, and says where one is', async () => {
      await stage.view('/', async (page) => {
        await heading(page, 'Overview').waitFor();
        await settled(page);
        await page.keyboard.press('Tab');
        assert.equal(await focused(page), 'Skip to the page');
        await page.keyboard.press('Tab');
        assert.match(await focused(page), /^Go to…/);
        for (const name of [
          'Overview',
          'Calls',
          'Errors',
          'Keys',
          'Models',
          'Playground',
          'Events',
          'Audit log',
          'Diagnostics',
          'Setup',
          'Sessions',
        ]) {
          await page.keyboard.press('Tab');
          assert.equal(await focused(page), name);
          await page.keyboard.press('Enter');
          await heading(page, name).waitFor();
          const current = page.locator('[aria-current=page]').first();
          assert.equal(await current.innerText(), name);
          assert.match(await page.title(), new RegExp(name));
        }
      });
    });

    test('on a narrow screen the menu opens, leads on, and closes by Escape', async () => {
      await stage.view(
        '/',
        async (page) => {
          await page.getByRole('button', { name: 'Menu' }).click();
          await page.getByRole('dialog').waitFor();
          await assertAccessible(page);
          await page.keyboard.press('Escape');
          await page.getByRole('dialog').waitFor({ state: 'hidden' });
          await page.getByRole('button', { name: 'Menu' }).click();
          await page.getByRole('dialog').getByRole('link', { name: 'Setup' }).click();
          await heading(page, 'Setup').waitFor();
          await assertFits(page);
        },
        { viewport: narrow },
      );
    });

    test('the switch of colours changes them, and they stay', async () => {
      await stage.view('/setup', async (page) => {
        await heading(page, 'Setup').waitFor();
        const light = await page.evaluate<string>(
          'getComputedStyle(document.body).backgroundColor',
        );
        const change = page.getByRole('button', { name: /^Colours/ });
        while (!(await change.getAttribute('aria-label'))?.startsWith('Colours: dark')) {
          await change.click();
        }
        // Colours change with the next frame.
        const isDark = async (): Promise<boolean> =>
          (await page.evaluate<string>('getComputedStyle(document.body).backgroundColor')) !==
          light;
        await until(isDark, 'the colours are dark');
        await page.reload();
        await heading(page, 'Setup').waitFor();
        await until(isDark, 'the colours are dark');
      });
    });

    test('S11 another admin token ends sessions: an open page goes to the door, which only the new one opens', async () => {
      const next = 'another-admin-token-1';
      let gateway = await startTestGateway({});
      const { adminUrl } = gateway;
      const expected = [/status of (401|503) /, /net::ERR_/];
      try {
        await onPage(stage.browser, adminUrl, { expected }, async (page, { context }) => {
          await page.goto(`${adminUrl}/setup`);
          await fillLogin(page);
          await heading(page, 'Setup').waitFor();
          const before = await context.cookies();
          await gateway.stop();
          const env = { MODEL_GATEWAY_ADMIN_TOKEN: next };
          gateway = await startTestGateway({}, { env, adminPort: Number(new URL(adminUrl).port) });
          await page.getByLabel('Admin token').waitFor();
          await page.getByLabel('Admin token').fill(adminToken);
          await page.keyboard.press('Enter');
          await page.getByRole('alert').waitFor();
          await context.addCookies(before);
          await page.reload();
          await page.getByLabel('Admin token').waitFor();
          await fillLogin(page, next);
          await heading(page, 'Setup').waitFor();
        });
      } finally {
        await gateway.stop();
      }
    });

    // The last one: the gateway is gone behind it.
    test('a gateway that stops while its page is open is said to be away, with what to do', async () => {
      await stage.view(
        '/setup',
        async (page) => {
          await heading(page, 'Setup').waitFor();
          await page.getByText('ready', { exact: true }).first().waitFor();
          await stage.gateway.stop();
          await page.getByText('unreachable').waitFor();
          await page
            .getByText(/does not answer/)
            .first()
            .waitFor();
          // Nobody heard it: the session lives on, and so does the page.
          await page.getByRole('button', { name: 'Sign out' }).click();
          await page.getByRole('dialog').getByText('The gateway does not answer.').waitFor();
          assert.equal(await page.getByLabel('Admin token').count(), 0);
          await page.getByRole('link', { name: 'Calls' }).click();
          await page
            .getByText(/does not answer|could not be loaded|Reload/i)
            .first()
            .waitFor();
          await assertAccessible(page);
        },
        {
          expected: [/status of 503 |net::ERR_|preload|dynamically imported|A page failed/],
        },
      );
    });
  });
}

/** The words of what has the focus. */
function focused(page: Page): Promise<string> {
  return page.evaluate<string>(
    `(document.activeElement?.getAttribute('aria-label') ?? document.activeElement?.textContent ?? '').trim()`,
  );
}
