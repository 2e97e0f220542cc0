/** Keys, teams and models as a person uses them, in a real Chromium. */
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { requestBody } from '../support/requests.ts';
import { noBrowser } from './browser.ts';
import { longName, xss } from './names.ts';
import { startStage, type Stage } from './stage.ts';
import { narrow } from './watched-page.ts';

const teams = { shared: { budget: 50, per: 'month' } };
const started = await startStage({ teams });
if (started === undefined) test(noBrowser, () => undefined);
else story(started);

function story(stage: Stage): void {
  describe('issue 8 keys in the browser', { timeout: 300_000 }, () => {
    after(() => stage.stop());

    test('issue 8 S4 a key from the form to a call with it, and to its end', async () => {
      await stage.view(
        '/keys',
        async (page) => {
          await page.getByRole('button', { name: 'Create key' }).click();
          const form = page.getByRole('dialog', { name: 'Create a key' });
          await form.getByLabel('Name').fill('from the form');
          await form.getByLabel('Models', { exact: true }).fill('local/tiny');
          await form.getByLabel('Requests a minute').fill('many');
          await form.getByRole('button', { name: 'Create key' }).click();
          await form
            .getByText(/must be a number/)
            .first()
            .waitFor();
        },
        { expected: [/status of 400/] },
      );
      let secret = '';
      await stage.view('/keys', async (page) => {
        await page.getByRole('button', { name: 'Create key' }).click();
        const form = page.getByRole('dialog', { name: 'Create a key' });
        await form.getByLabel('Name').fill('from the form');
        await form.getByLabel('Models', { exact: true }).fill('local/tiny');
        await form.getByLabel('Requests a minute').fill('50');
        await form.getByLabel('Budget in dollars').fill('2.50');
        await form.getByRole('button', { name: 'Create key' }).click();
        const once = page.getByRole('dialog', { name: 'Copy the secret now' });
        secret = (await once.getByRole('region').textContent()) ?? '';
        assert.match(secret, /^gw_/);
        await once.getByRole('button', { name: 'I have copied it' }).click();
        await page.getByRole('row').filter({ hasText: 'from the form' }).waitFor();
        assert.ok(!(await page.content()).includes(secret), 'the secret is shown once');
      });
      const headers = { authorization: `Bearer ${secret}` };
      const body = requestBody('chat', { model: 'local/tiny', stream: false });
      const called = await stage.call('/v1/chat/completions', body, { headers });
      assert.equal(called.status, 200, called.text);
      await stage.view('/keys', async (page) => {
        await page.getByLabel('Find keys').fill('FROM the form');
        await page.getByRole('row').filter({ hasText: 'from the form' }).click();
        const sheet = page.getByRole('dialog', { name: 'from the form' });
        await sheet.getByText('$0.00 of $2.50 this month').waitFor();
        await sheet.getByRole('button', { name: 'Change' }).click();
        const form = page.getByRole('dialog', { name: 'Change the key' });
        await form.getByLabel('Owner').fill('ana');
        await form.getByRole('button', { name: 'Save' }).click();
        await sheet.getByText('ana').waitFor();
        await sheet.getByText('$2.50').first().waitFor();
        await sheet.getByRole('button', { name: 'Revoke' }).click();
        await page.getByRole('button', { name: 'Revoke key' }).click();
        await sheet.getByText('revoked').first().waitFor();
      });
      const refused = await stage.call('/v1/chat/completions', body, { headers });
      assert.equal(refused.status, 401);
    });

    test('issue 8 L5 N5 a thousand keys, with names of any length, are found and scrolled', async () => {
      const names = [...xss('key'), longName('key', 200)];
      for (let i = 0; i < 1000; i += 50) {
        const some = Array.from({ length: 50 }, (_, k) => names[i + k] ?? `key ${i + k}`);
        await Promise.all(some.map((name) => stage.gateway.makeKey({ name: name.slice(0, 200) })));
      }
      for (const viewport of [undefined, narrow]) {
        const how = viewport === undefined ? {} : { viewport };
        await stage.view(
          '/keys',
          async (page) => {
            const grid = page.getByRole('grid', { name: 'Keys' });
            await grid.getByRole('row').nth(3).focus();
            for (let i = 0; i < 12; i++) {
              await page.keyboard.press('End');
              await page.waitForTimeout(100);
            }
            assert.ok((await grid.getByRole('row').count()) < 100, 'only rows in sight are there');
            await page.getByLabel('Find keys').fill('key 999');
            await grid.getByText('key 999').waitFor();
            const sideways = await page.evaluate(
              'document.documentElement.scrollWidth - document.documentElement.clientWidth',
            );
            assert.equal(sideways, 0, 'the page does not scroll sideways');
          },
          how,
        );
      }
    });

    test('issue 8 a team is set up, shown with its budget, and taken away', async () => {
      await stage.view('/keys', async (page) => {
        await page.getByRole('button', { name: 'Set up a team' }).click();
        const form = page.getByRole('dialog', { name: 'Set up a team' });
        await form.getByLabel('Name').fill('red team');
        await form.getByLabel('Budget in dollars').fill('7');
        await form.getByRole('button', { name: 'Save' }).click();
        await page.getByRole('row').filter({ hasText: 'red team' }).click();
        const sheet = page.getByRole('dialog', { name: 'red team' });
        await sheet.getByText('$0.00 of $7.00 this month').waitFor();
        await sheet.getByRole('button', { name: 'Remove' }).click();
        await page.getByRole('button', { name: 'Remove limits' }).click();
        await page.getByRole('row').filter({ hasText: 'red team' }).waitFor({ state: 'detached' });
        await page.getByRole('row').filter({ hasText: 'shared' }).click();
        await page.getByText('It is declared in the config').waitFor();
      });
    });

    test('issue 8 models show their targets, health and prices', async () => {
      await stage.view('/models', async (page) => {
        await page.getByLabel('Find models').fill('fast');
        await page.getByRole('row').filter({ hasText: 'up-messages/spare' }).click();
        const sheet = page.getByRole('dialog', { name: 'fast' });
        await sheet.getByText('no trouble').first().waitFor();
        await sheet.getByText('Nobody knows its price').first().waitFor();
        await page.keyboard.press('Escape');
        await page.getByLabel('Find models').fill('local/tiny');
        await page.getByRole('row').filter({ hasText: 'local/tiny' }).first().click();
        await page.getByRole('dialog').getByText('Context', { exact: true }).waitFor();
        await page.keyboard.press('Escape');
        await page.getByText('ships with the gateway').waitFor();
      });
    });
  });
}
