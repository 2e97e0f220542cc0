/** Issue 24: Ctrl-K goes to any page, key, team, model or call, by the keyboard alone. */
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import type { Page } from 'playwright-core';
import { assertAccessible, assertFits } from './accessible.ts';
import { noBrowser } from './browser.ts';
import { startStage, type Stage } from './stage.ts';
import { narrow, wide } from './watched-page.ts';

const started = await startStage({ teams: { research: { budget: 50, per: 'month' } } });
if (started === undefined) test(noBrowser, () => undefined);
else story(started);

function story(stage: Stage): void {
  describe('issue 24 the palette', { timeout: 300_000 }, () => {
    after(() => stage.stop());

    /** Opens it and waits until it is the field that is typed in. */
    const open = async (page: Page): Promise<void> => {
      await page.keyboard.press('Control+k');
      const field = page.getByRole('dialog', { name: 'Go to' }).getByRole('combobox');
      await field.and(page.locator(':focus')).waitFor();
    };

    test('a page is chosen by arrows, and has the focus; Escape gives it back', async () => {
      await stage.view('/', async (page) => {
        await page.getByRole('heading', { level: 1 }).waitFor();
        const calls = page.getByRole('link', { name: 'Calls', exact: true }).first();
        await calls.focus();
        await open(page);
        await page.keyboard.press('Escape');
        await page.getByRole('dialog').waitFor({ state: 'detached' });
        await calls.and(page.locator(':focus')).waitFor();
        await open(page);
        for (const key of ['ArrowDown', 'ArrowDown', 'ArrowDown', 'Enter']) {
          await page.keyboard.press(key);
        }
        await page.waitForURL(/\/keys$/);
        await page.getByRole('heading', { level: 1, name: 'Keys' }).waitFor();
        await page.locator('main:focus').waitFor();
      });
    });

    test('a key, a team, a model and a call are found by name or id, and open', async () => {
      const { id } = await stage.gateway.makeKey({ name: 'found by name' });
      const body = { model: 'local/tiny', messages: [{ role: 'user', content: 'Say hello.' }] };
      await stage.call('/v1/chat/completions', body);
      const [call] = await stage.recorded('local/tiny', 1);
      const callId = String(call?.['id']);
      await stage.view('/', async (page) => {
        await page.getByRole('heading', { level: 1 }).waitFor();
        for (const [text, option, address, window] of [
          ['FOUND by', `found by name ${id}`, `/keys?key=${id}`, 'found by name'],
          ['resea', 'research team', '/keys?team=research', 'research'],
          ['stead', 'steady model', '/models?model=steady', 'steady'],
          [callId, callId, `/calls/${callId}`, undefined],
        ] as const) {
          await open(page);
          await page.keyboard.type(text);
          await page.getByRole('option', { name: option, exact: true }).waitFor();
          await page.keyboard.press('Enter');
          await page.waitForURL((url) => url.pathname + url.search === address);
          await page.getByRole('dialog', window === undefined ? {} : { name: window }).waitFor();
          assert.equal(await page.getByRole('dialog').count(), 1);
          await page.locator('[role=dialog] :focus, [role=dialog]:focus').first().waitFor();
          await page.keyboard.press('Escape');
          await page.getByRole('dialog').waitFor({ state: 'detached' });
        }
        // Enter at once chooses from the places of the whole text, not of its first letters.
        await open(page);
        await page.keyboard.type('research');
        await page.keyboard.press('Enter');
        await page.waitForURL(/\/keys\?team=research$/);
        await page.getByRole('dialog', { name: 'research' }).waitFor();
        await page.keyboard.press('Escape');
        await page.getByRole('dialog').waitFor({ state: 'detached' });
        await open(page);
        await page.keyboard.type('create');
        await page.keyboard.press('Enter');
        await page.getByRole('dialog', { name: 'Create a key' }).getByLabel('Name').waitFor();
      });
    });

    for (const [look, how] of [
      ['wide and light', { viewport: wide, dark: false }],
      ['narrow and dark', { viewport: narrow, dark: true }],
    ] as const) {
      test(`${look}: nothing serious by axe-core, with entries and without`, async () => {
        await stage.view(
          '/setup',
          async (page) => {
            await page.getByRole('heading', { level: 1 }).waitFor();
            await open(page);
            await assertAccessible(page);
            await assertFits(page);
            await page.keyboard.type('nothing has such a name');
            await page.getByText('Nothing has this name.').waitFor();
            await assertAccessible(page);
          },
          how,
        );
      });
    }
  });
}
