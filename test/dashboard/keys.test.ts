/** Keys, teams and models as a person uses them, in a real Chromium. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { after, describe, test } from 'node:test';
import type { JsonObject } from '../../src/json/value.ts';
import { whenLoaded } from '../support/loaded.ts';
import { requestBody } from '../support/requests.ts';
import { until } from '../support/postgres-store.ts';
import { assertAccessible } from './accessible.ts';
import { noBrowser } from './browser.ts';
import { longName, xss } from './names.ts';
import { startStage, type Stage } from './stage.ts';
import { narrow } from './watched-page.ts';

const teams = { shared: { budget: 50, per: 'month' } };
const started = await startStage({ teams });
if (started === undefined) test(noBrowser, () => undefined);
else story(started);

function story(stage: Stage): void {
  describe('issue 8 keys in the browser', { timeout: 900_000 }, () => {
    after(() => stage.stop());

    test('issue 8 S4 a key from the form to a call with it, and to its end', async () => {
      await stage.view(
        '/keys',
        async (page) => {
          await page.getByRole('button', { name: 'Create key' }).click();
          const form = page.getByRole('dialog', { name: 'Create a key' });
          await form.getByLabel('Name').fill('from the form');
          await form.getByLabel('Models', { exact: true }).fill('local/tiny');
          await form.getByLabel('Requests per minute').fill('many');
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
        await form.getByLabel('Requests per minute').fill('50');
        await form.getByLabel('Budget in dollars').fill('2.50');
        await form.getByRole('button', { name: 'Create key' }).click();
        const once = page.getByRole('dialog', { name: 'Copy the secret now' });
        const shown = once.getByRole('region', { name: 'The secret of the key' });
        secret = (await shown.textContent()) ?? '';
        assert.match(secret, /^gw_/);
        await once.getByRole('button', { name: 'I have copied it' }).click();
        await page.getByRole('row').filter({ hasText: 'from the form' }).waitFor();
        assert.ok(!(await page.content()).includes(secret), 'the secret is shown once');
      });
      const headers = { authorization: `Bearer ${secret}` };
      const body = requestBody('chat', { model: 'local/tiny', stream: false });
      const called = () => stage.call('/v1/chat/completions', body, { headers });
      const { status, text } = await whenLoaded(called);
      assert.equal(status, 200, text);
      await stage.view('/keys', async (page) => {
        await page.getByLabel('Find keys').fill('FROM the form');
        // Rows move when the found ones come: a press on one that moves is none.
        const other = page.getByRole('grid', { name: 'Keys' }).getByText('everything');
        await other.waitFor({ state: 'detached' });
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
            // The last row asks for the next page, until there is none: the made ones, and that of the stage.
            const shown = (): Promise<number> => grid.locator('[data-row="1000"]').count();
            await until(
              async () => {
                await page.keyboard.press('End');
                return (await shown()) === 1;
              },
              'the last row is in sight',
              240_000,
            );
            assert.ok((await grid.getByRole('row').count()) < 100, 'only rows in sight are there');
            // The focus stays on its row when that is scrolled away, and the keys go on from there.
            await grid.locator('[data-row="1000"]').focus();
            await page.evaluate(
              `document.querySelector('[role=grid][aria-label=Keys]').parentElement.scrollTop = 0`,
            );
            await grid.locator('[data-row="1"]').waitFor();
            await page.keyboard.press('ArrowUp');
            await grid.locator('[data-row="999"]:focus').waitFor();
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
        await sheet.getByRole('button', { name: 'Remove', exact: true }).click();
        await page.getByRole('button', { name: 'Remove limits' }).click();
        await page.getByRole('row').filter({ hasText: 'red team' }).waitFor({ state: 'detached' });
        await page.getByRole('row').filter({ hasText: 'shared' }).click();
        await page.getByText('It is declared in the config').waitFor();
      });
    });

    test('issue 8.1 all that a key may have is in the form: budgets by period, limits by model, an end', async () => {
      await stage.view('/keys', async (page) => {
        await page.getByRole('button', { name: 'Create key' }).click();
        const form = page.getByRole('dialog', { name: 'Create a key' });
        await form.getByLabel('Name').fill('everything set');
        await form.getByLabel('Budget in dollars').fill('5');
        await form.getByLabel('Period of the budget').selectOption('day');
        await form.getByLabel('Time zone').fill('Europe/Berlin');
        await form.getByRole('button', { name: 'Add a budget' }).click();
        await form.getByLabel('Budget in dollars').nth(1).fill('100');
        await form.getByRole('button', { name: 'Add a limit' }).click();
        await form.getByLabel('For models').fill('local/*');
        await form.getByLabel('Maximum').fill('2');
        await form.getByLabel('Requests per minute').fill('60');
        await form.getByText('More settings').click();
        await form.getByLabel('chat', { exact: true }).check();
        await form.getByLabel('responses', { exact: true }).check();
        await form.getByLabel('Expires').selectOption('date');
        await form.getByLabel('Expiry date').fill('2031-12-31');
        await form.getByLabel('Shrink').uncheck();
        await form.getByRole('button', { name: 'Create key' }).click();
        await page.getByRole('button', { name: 'I have copied it' }).click();
      });
      const made = await keyNamed(stage, 'everything set');
      const { budgets, limits, endpoints, shrink, expires_at: end } = made;
      assert.deepEqual(
        { budgets, limits, endpoints, shrink, end },
        {
          budgets: [
            { usd: '5', per: 'day', time_zone: 'Europe/Berlin' },
            { usd: '100', per: 'month', time_zone: 'UTC' },
          ],
          limits: [
            { kind: 'requests', amount: 60, model: null },
            { kind: 'requests', amount: 2, model: 'local/*' },
          ],
          endpoints: ['chat', 'responses'],
          shrink: false,
          end: '2031-12-31T00:00:00.000Z',
        },
      );
      // A change of one limit leaves the others, and takes away what is emptied.
      await stage.view(`/keys?key=${String(made['id'])}`, async (page) => {
        const sheet = page.getByRole('dialog', { name: 'everything set' });
        await sheet.getByText('$0.00 of $5.00 today').waitFor();
        await sheet.getByText('$0.00 of $100.00 this month').waitFor();
        await sheet.getByRole('button', { name: 'Change' }).click();
        const form = page.getByRole('dialog', { name: 'Change the key' });
        await form.getByLabel('Requests per minute').fill('');
        await form.getByRole('button', { name: 'Remove budget 1' }).click();
        await form.getByLabel('Expires').selectOption('never');
        await form.getByRole('button', { name: 'Save' }).click();
        await form.waitFor({ state: 'detached' });
      });
      const changed = await keyNamed(stage, 'everything set');
      assert.deepEqual(
        [changed['budgets'], changed['limits'], changed['expires_at']],
        [
          [{ usd: '100', per: 'month', time_zone: 'UTC' }],
          [{ kind: 'requests', amount: 2, model: 'local/*' }],
          null,
        ],
      );
    });

    test('issue 24 a preset, models picked by keyboard, and code with the new key that works', async () => {
      await stage.view('/keys', async (page) => {
        await page.getByRole('button', { name: 'Create key' }).click();
        const form = page.getByRole('dialog', { name: 'Create a key' });
        await form.getByLabel('Name').fill('by preset');
        await form.getByRole('button', { name: 'CI job' }).click();
        assert.equal(await form.getByLabel('Name').inputValue(), 'by preset');
        const models = form.getByRole('combobox', { name: 'Models' });
        await models.focus();
        await page.keyboard.type('loc');
        // Providers and models are two requests: each brings a part of the list.
        await form.getByRole('option', { name: 'local/*' }).waitFor();
        await form.getByRole('option', { name: 'local/tiny' }).waitFor();
        for (const key of ['ArrowDown', 'ArrowDown', 'Enter']) await page.keyboard.press(key);
        await form.getByRole('button', { name: 'Remove local/tiny' }).waitFor();
        // What names every model is gone; a comma ends a name that is in no list.
        assert.equal(await form.getByRole('button', { name: 'Remove *', exact: true }).count(), 0);
        await page.keyboard.type('up-chat/*,');
        await page.keyboard.type('gone');
        await page.keyboard.press('Enter');
        await page.keyboard.press('Backspace');
        // Escape closes the list, and not the window.
        await page.keyboard.press('Escape');
        await form.getByRole('listbox').waitFor({ state: 'detached' });
        await form.getByRole('button', { name: 'Create key' }).click();
        const once = page.getByRole('dialog', { name: 'Copy the secret now' });
        const secret = await once
          .getByRole('region', { name: 'The secret of the key' })
          .innerText();
        const curl = once.getByRole('region', { name: 'First call: curl' });
        const text = await curl.innerText();
        assert.ok(text.includes(`Bearer ${secret}`), text);
        assert.ok(text.includes(`${stage.gateway.url}/v1/chat/completions`), text);
        assert.ok(text.includes('local/tiny'), text);
        const { status, stdout, stderr } = spawnSync('sh', ['-c', text], { encoding: 'utf8' });
        assert.equal(status, 0, stderr);
        assert.match(stdout, /"choices"/);
        for (const [tab, words] of [
          ['TypeScript', 'new OpenAI({ baseURL:'],
          ['Python', 'from openai import OpenAI'],
        ] as const) {
          await once.getByRole('tab', { name: tab }).click();
          const code = once.getByRole('region', { name: `First call: ${tab}` });
          await code.getByText(words).waitFor();
          await code.getByText(secret).waitFor();
        }
        await assertAccessible(page);
        await once.getByRole('button', { name: 'I have copied it' }).click();
      });
      const made = await keyNamed(stage, 'by preset');
      const { models, tags, rpm, concurrent, budgets } = made;
      assert.deepEqual(
        { models, tags, rpm, concurrent, budgets },
        {
          models: ['local/tiny', 'up-chat/*'],
          tags: ['ci'],
          rpm: 30,
          concurrent: 4,
          budgets: [{ usd: '5', per: 'day', time_zone: 'UTC' }],
        },
      );
      assert.ok(made['expires_at'] !== null);
    });

    test('issue 24 a tag is set up with who may set it, shown, and changed without a loss', async () => {
      await stage.view('/keys', async (page) => {
        await page.getByRole('button', { name: 'Set up a tag' }).click();
        const form = page.getByRole('dialog', { name: 'Set up a tag' });
        await form.getByLabel('Name').fill('nightly');
        await form.getByLabel('Budget in dollars').fill('9');
        await form.getByLabel('Teams that may set it').fill('shared');
        await form.getByRole('button', { name: 'Save' }).click();
        await page
          .getByRole('grid', { name: 'Tags' })
          .getByRole('row')
          .filter({ hasText: 'nightly' })
          .click();
        const sheet = page.getByRole('dialog', { name: 'nightly' });
        await sheet.getByText('$0.00 of $9.00 this month').waitFor();
        await sheet.getByRole('figure', { name: /^Burn-down: / }).waitFor();
        await sheet.getByLabel('Requests per minute').fill('7');
        await sheet.getByRole('button', { name: 'Save' }).click();
        await page.getByText('The limits of nightly are saved.').waitFor();
      });
      const { json } = await stage.gateway.admin('GET', '/api/tags/nightly');
      const { rpm, teams: allowed, budgets } = json;
      assert.partialDeepStrictEqual(
        { rpm, allowed, budgets },
        { rpm: 7, allowed: ['shared'], budgets: [{ usd: '9', per: 'month' }] },
      );
    });

    test('issue 8.1 a refused row of a form says so at its field', async () => {
      await stage.view(
        '/keys',
        async (page) => {
          await page.getByRole('button', { name: 'Create key' }).click();
          const form = page.getByRole('dialog', { name: 'Create a key' });
          await form.getByLabel('Name').fill('wrong');
          await form.getByLabel('Budget in dollars').fill('5');
          await form.getByRole('button', { name: 'Add a budget' }).click();
          await form.getByLabel('Budget in dollars').nth(1).fill('plenty');
          await form.getByLabel('Period of the budget').nth(1).selectOption('day');
          await form.getByRole('button', { name: 'Create key' }).click();
          const wrong = form.getByLabel('Budget in dollars').nth(1);
          await form
            .getByText(/not an amount in dollars/)
            .first()
            .waitFor();
          assert.equal(await wrong.getAttribute('aria-invalid'), 'true');
          // Only the head of the form needs the name of the member: at the field it is in sight.
          assert.equal(await form.getByText(/budgets\.1/).count(), 1);
          await form.getByLabel('Budget in dollars').nth(1).fill('6');
          await form.getByLabel('Period of the budget').nth(1).selectOption('month');
          await form.getByRole('button', { name: 'Create key' }).click();
          await form
            .getByText(/has duplicate entries/)
            .first()
            .waitFor();
          assert.equal(await form.getByText(/budgets: budgets/).count(), 0);
        },
        { expected: [/status of 400/] },
      );
    });

    test('issue 8.1 a rotated key: the old secret opens as long as was chosen', async () => {
      const { id, key } = await stage.gateway.makeKey({ name: 'to be rotated' });
      const body = requestBody('chat', { model: 'local/tiny', stream: false });
      await stage.view(`/keys?key=${id}`, async (page) => {
        await page.getByRole('button', { name: 'Rotate' }).click();
        await page.getByLabel('The old secret').selectOption('0');
        await page.getByRole('button', { name: 'Rotate key' }).click();
        const once = page.getByRole('dialog', { name: 'Copy the secret now' });
        const shown = once.getByRole('region', { name: 'The secret of the key' });
        const secret = (await shown.textContent()) ?? '';
        const [old, fresh] = await Promise.all(
          [key, secret].map((each) =>
            stage.call('/v1/chat/completions', body, {
              headers: { authorization: `Bearer ${each}` },
            }),
          ),
        );
        assert.deepEqual([old?.status, fresh?.status], [401, 200]);
        await once.getByRole('button', { name: 'I have copied it' }).click();
      });
    });

    test('issue 8.1 an address opens a key or a team, "back" closes it, and one that there is not is reported', async () => {
      const { id } = await stage.gateway.makeKey({ name: 'sent to a colleague' });
      await stage.view(
        `/keys?key=${id}`,
        async (page) => {
          const sheet = page.getByRole('dialog', { name: 'sent to a colleague' });
          await sheet.getByRole('link', { name: 'Calls of this key' }).waitFor();
          await page.keyboard.press('Escape');
          await sheet.waitFor({ state: 'detached' });
          assert.equal(new URL(page.url()).search, '');
          await page.getByRole('row').filter({ hasText: 'shared' }).click();
          await page.waitForURL(/\?team=shared$/);
          await page.getByRole('dialog', { name: 'shared' }).waitFor();
          await page.goBack();
          await page.getByRole('dialog').waitFor({ state: 'detached' });
          await page.goto(`${stage.gateway.adminUrl}/keys?key=nobody`);
          await page
            .getByRole('dialog')
            .getByText(/status 404/)
            .waitFor();
        },
        { expected: [/status of 404/] },
      );
    });
  });
}

async function keyNamed({ gateway }: Stage, name: string): Promise<JsonObject> {
  const { json } = await gateway.admin('GET', `/api/keys?text=${encodeURIComponent(name)}`);
  const [found] = json['keys'] as readonly JsonObject[];
  assert.ok(found !== undefined);
  return found;
}
