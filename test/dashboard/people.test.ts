/** People at the dashboard: a real browser, a certified provider at another site, and what a role finds (issue 23). */
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { client, realProvider } from '../people/providers.ts';
import { startTestGateway } from '../support/gateway.ts';
import { freePort } from '../support/server-process.ts';
import { assertAccessible, assertFits } from './accessible.ts';
import { noBrowser, openBrowser } from './browser.ts';
import { buildDashboard } from './built.ts';
import { settled } from './settled.ts';
import { fillLogin } from './stage.ts';
import { onPage } from './watched-page.ts';

const browser = await openBrowser();
if (browser === undefined) test(noBrowser, () => undefined);
else await story(browser);

/** The pages of the provider are not ours: they ask for fonts elsewhere. */
const ofProvider = [/localhost:/, /fonts\.g/];

function heading(page: Page, name: string): ReturnType<Page['getByRole']> {
  return page.getByRole('heading', { level: 1, name });
}

/** From the door through the forms of the provider; an account is in the group of its name. */
async function signIn(page: Page, account: string): Promise<void> {
  await page.getByRole('link', { name: 'Sign in with Test' }).click();
  await page.locator('input[name=login]').fill(account);
  await page.locator('input[name=password]').fill('x');
  await page.locator('button[type=submit]').click();
  await page.locator('input[name=prompt][value=consent]').waitFor({ state: 'attached' });
  await page.locator('button[type=submit]').click();
}

async function story(browser: Browser): Promise<void> {
  await buildDashboard();
  const port = await freePort();
  const home = `http://127.0.0.1:${port}`;
  const ends: (() => void)[] = [];
  // For browsers another site than 127.0.0.1: cookies are told apart as between two companies.
  const issuer = await realProvider(
    { after: (end) => void ends.push(end) },
    `${home}/api/oidc/callback`,
    'localhost',
  );
  const gateway = await startTestGateway(
    {
      teams: { red: { rpm: 100 } },
      oidc: {
        issuer,
        client_id: client.id,
        client_secret: client.secret,
        url: home,
        label: 'Test',
        scopes: 'openid profile',
        roles: { viewer: ['viewers'] },
        teams: { red: { members: ['red'], models: ['local/*'] } },
      },
    },
    { adminPort: port },
  );

  describe('S11 issue 23 people in Chromium', { timeout: 900_000 }, () => {
    after(async () => {
      await browser.close();
      await gateway.stop();
      for (const end of ends) end();
    });

    test('a member signs in, makes a key, finds their own part only, and signs out', async () => {
      await onPage(browser, home, { expected: ofProvider }, async (page) => {
        await page.goto(home);
        await page.getByRole('link', { name: 'Sign in with Test' }).waitFor();
        await assertAccessible(page);
        await signIn(page, 'red');
        // The overview is of the whole gateway.
        await heading(page, 'Calls').waitFor();
        const links = await page.getByRole('navigation').first().getByRole('link').allInnerTexts();
        assert.deepEqual(links, ['Calls', 'Keys', 'Sessions']);
        await page.getByText('Name of red').first().waitFor();
        await settled(page);
        // Export and tail are of the whole gateway.
        for (const name of ['CSV', 'JSON', 'Live']) {
          const found = page.getByRole('main').getByText(name, { exact: true });
          assert.equal(await found.count(), 0, name);
        }
        await page.getByRole('link', { name: 'Keys' }).click();
        await page.getByRole('button', { name: 'Create key' }).click();
        const form = page.getByRole('dialog', { name: 'Create a key' });
        await form.getByLabel('Name').fill('mine');
        await form.getByLabel('Models', { exact: true }).fill('local/tiny');
        assert.equal(await form.getByLabel('Tags', { exact: true }).count(), 0);
        await form.getByRole('button', { name: 'Create key' }).click();
        await page.getByRole('button', { name: 'I have copied it' }).click();
        await page.getByRole('row', { name: /mine/ }).click();
        const sheet = page.getByRole('dialog', { name: 'mine' });
        await sheet.getByRole('button', { name: 'Rotate' }).waitFor();
        assert.equal(await sheet.getByRole('button', { name: 'Change' }).count(), 0);
        await page.goto(`${home}/setup`);
        await page.getByText('This page is not for your role').waitFor();
        await page.goto(`${home}/sessions`);
        await page.getByText('this browser').waitFor();
        await settled(page);
        await assertFits(page);
        await assertAccessible(page);
        await page.getByRole('button', { name: 'Sign out' }).click();
        await page.getByRole('link', { name: 'Sign in with Test' }).waitFor();
      });
    });

    test('a viewer sees every page but the playground, and nothing that changes something', async () => {
      await onPage(browser, home, { expected: ofProvider }, async (page) => {
        // A link to a filter, with a fragment: the way over the provider leads back to it.
        const wanted = `${home}/calls?outcome=failed#end`;
        await page.goto(wanted);
        await signIn(page, 'viewers');
        await heading(page, 'Calls').waitFor();
        assert.equal(page.url(), wanted);
        for (const name of ['Overview', 'Calls', 'Errors', 'Keys', 'Models', 'Setup', 'Sessions']) {
          await page.getByRole('link', { name, exact: true }).first().click();
          await heading(page, name).waitFor();
          await settled(page);
        }
        assert.equal(await page.getByRole('link', { name: 'Playground' }).count(), 0);
        for (const path of ['/keys', '/setup', '/models?model=local%2Ftiny']) {
          await page.goto(home + path);
          await settled(page);
          const changing = page.getByRole('button', { name: /Create|Set up|Reload|Test call/ });
          assert.equal(await changing.count(), 0, path);
        }
      });
    });

    test('a person without a role gets an error at the sign-in', async () => {
      await onPage(browser, home, { expected: ofProvider }, async (page) => {
        await page.goto(home);
        await signIn(page, 'strangers');
        await page.getByRole('alert').getByText('You have no role at this gateway').waitFor();
        await assertAccessible(page);
        await fillLogin(page);
        await heading(page, 'Overview').waitFor();
      });
    });

    test('an owner ends a session and revokes a person, whose page goes to the door', async () => {
      const expected = [...ofProvider, /status of 401 /];
      await onPage(browser, home, { expected }, async (theirs) => {
        await theirs.goto(home);
        await signIn(theirs, 'red');
        await heading(theirs, 'Calls').waitFor();
        await onPage(browser, home, {}, async (page) => {
          await page.goto(`${home}/sessions`);
          await fillLogin(page);
          const sessions = page.getByRole('grid', { name: 'Sessions' });
          await sessions.getByRole('row', { name: /red/ }).getByRole('button').first().click();
          await page.getByRole('alertdialog').getByRole('button', { name: 'End session' }).click();
          await theirs.getByRole('link', { name: 'Sign in with Test' }).waitFor();
          const people = page.getByRole('grid', { name: 'People' });
          await people
            .getByRole('row', { name: /Name of red/ })
            .getByRole('button')
            .click();
          await page
            .getByRole('alertdialog')
            .getByRole('button', { name: 'Revoke access' })
            .click();
          await people.getByRole('button', { name: 'Restore' }).waitFor();
          await settled(page);
          await assertAccessible(page);
        });
        await theirs.getByRole('link', { name: 'Sign in with Test' }).click();
        await theirs.getByRole('alert').getByText('was revoked').waitFor();
      });
    });
  });
}
