/** Windows by keyboard alone: everything in them is reached, the focus stays in them, and nothing is lost when one closes. */
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import type { Page } from 'playwright-core';
import { until } from '../support/postgres-store.ts';
import { noBrowser } from './browser.ts';
import { settled } from './settled.ts';
import { startStage, type Stage } from './stage.ts';

/** So many that the list below a field scrolls: browsers lead Tab to what scrolls. */
const models = Object.fromEntries(
  Array.from({ length: 40 }, (_, i) => [`model-${i}`, 'up-chat/steady']),
);
const stage = await startStage({ models, teams: { research: { budget: 50, per: 'month' } } });
if (stage === undefined) test(noBrowser, () => undefined);
else byKeyboard(stage);

function byKeyboard(stage: Stage): void {
  describe('windows by keyboard alone', { timeout: 900_000 }, () => {
    after(() => stage.stop());

    const windows = [
      ['/keys', 'Create key'],
      ['/keys', 'Set up a tag'],
      ['/keys?key=ID', 'Change'],
      ['/keys?key=ID', 'Rotate'],
      ['/keys?team=research', undefined],
      ['/models?model=model-1', undefined],
      ['/calls', 'Columns'],
      ['/playground', 'Saved prompts'],
    ] as const;
    for (const [path, button] of windows) {
      test(`Tab reaches all of ${button ?? 'the sheet'} on ${path}, and nothing else`, async () => {
        await stage.view(path.replace('ID', stage.key.id), async (page) => {
          await settled(page);
          if (button !== undefined) {
            await page.getByRole('button', { name: button }).first().press('Enter');
          }
          await page.locator('[role=dialog], [role=alertdialog]').last().waitFor();
          await settled(page);
          await assertTabStaysAndReachesAll(page);
        });
      });
    }

    test('a key that is being made has its secret shown, whatever was pressed meanwhile', async () => {
      await stage.view('/keys', async (page) => {
        const asked = Promise.withResolvers<void>();
        const answer = Promise.withResolvers<void>();
        let sent = 0;
        await page.route('**/api/keys', async (route) => {
          if (route.request().method() !== 'POST') return route.fallback();
          sent += 1;
          asked.resolve();
          await answer.promise;
          await route.fallback();
        });
        await page.getByRole('button', { name: 'Create key' }).press('Enter');
        const form = page.getByRole('dialog', { name: 'Create a key' });
        await form.getByLabel('Name').fill('slow to come');
        await inOneQueue(page, ['Create key', 'Create key', 'Escape']);
        await asked.promise;
        await page.keyboard.press('Escape');
        await page.goBack();
        answer.resolve();
        const once = page.getByRole('dialog', { name: 'Copy the secret now' });
        await once.getByRole('region', { name: 'The secret of the key' }).waitFor();
        await page.keyboard.press('Escape');
        await once.waitFor({ state: 'detached' });
        assert.equal(sent, 1, 'a second press makes no second key');
      });
    });

    test('a key whose secret is replaced has the new one shown, also when "back" closed its sheet', async () => {
      const { id } = await stage.gateway.makeKey({ name: 'to be rotated' });
      await stage.view('/keys', async (page) => {
        const asked = Promise.withResolvers<void>();
        const answer = Promise.withResolvers<void>();
        await page.route('**/rotate', async (route) => {
          asked.resolve();
          await answer.promise;
          await route.fallback();
        });
        await page.getByRole('row').filter({ hasText: id }).press('Enter');
        const sheet = page.getByRole('dialog', { name: 'to be rotated' });
        await sheet.getByRole('button', { name: 'Rotate' }).press('Enter');
        await page.getByRole('alertdialog').getByRole('button', { name: 'Rotate key' }).waitFor();
        await inOneQueue(page, ['Rotate key', 'Escape']);
        await asked.promise;
        await page.goBack();
        await page.getByRole('alertdialog').waitFor({ state: 'detached' });
        answer.resolve();
        const once = page.getByRole('dialog', { name: 'Copy the secret now' });
        await once.getByRole('region', { name: 'The secret of the key' }).waitFor();
        await page.keyboard.press('Escape');
        await once.waitFor({ state: 'detached' });
      });
    });

    test('a change that is on its way is sent once, and its window stays until the refusal is shown', async () => {
      await stage.view(
        '/keys',
        async (page) => {
          const answer = Promise.withResolvers<void>();
          let sent = 0;
          await page.route('**/api/tags/*', async (route) => {
            if (route.request().method() !== 'PUT') return route.fallback();
            sent += 1;
            await answer.promise;
            await route.fallback();
          });
          await page.getByRole('button', { name: 'Set up a tag' }).press('Enter');
          const form = page.getByRole('dialog', { name: 'Set up a tag' });
          await form.getByLabel('Name').fill('refused');
          await form.getByLabel('Requests per minute').fill('many');
          await inOneQueue(page, ['Save', 'Save', 'Escape']);
          answer.resolve();
          await form
            .getByText(/must be a number/)
            .first()
            .waitFor();
          assert.equal(sent, 1);
        },
        { expected: [/status of 400/] },
      );
    });

    test('a team whose limits are taken away leads nowhere: who went to another page stays there', async () => {
      await stage.gateway.admin('PUT', '/api/teams/short-lived', { rpm: 5 });
      await stage.view('/models', async (page) => {
        const asked = Promise.withResolvers<void>();
        const answer = Promise.withResolvers<void>();
        await page.route('**/api/teams/short-lived', async (route) => {
          if (route.request().method() !== 'DELETE') return route.fallback();
          asked.resolve();
          await answer.promise;
          await route.fallback();
        });
        await page.getByRole('link', { name: 'Keys', exact: true }).click();
        await page.getByRole('row').filter({ hasText: 'short-lived' }).press('Enter');
        const sheet = page.getByRole('dialog', { name: 'short-lived' });
        await sheet.getByRole('button', { name: 'Remove', exact: true }).press('Enter');
        await page.getByRole('button', { name: 'Remove limits' }).press('Enter');
        await asked.promise;
        await page.goBack();
        await page.goBack();
        await page.getByRole('heading', { level: 1, name: 'Models' }).waitFor();
        const removed = page.waitForResponse(
          (response) => response.request().method() === 'DELETE',
        );
        answer.resolve();
        await (await removed).finished();
        await settled(page);
        assert.equal(new URL(page.url()).pathname, '/models');
      });
    });

    test('a new secret is shown while the browser says it is offline and no list answers', async () => {
      await stage.view('/keys', async (page) => {
        const lists = Promise.withResolvers<void>();
        await page.getByRole('button', { name: 'Create key' }).press('Enter');
        const form = page.getByRole('dialog', { name: 'Create a key' });
        await form.getByLabel('Name').fill('made offline');
        await settled(page);
        await page.route('**/api/**', async (route) => {
          if (route.request().method() === 'GET') await lists.promise;
          await route.fallback();
        });
        await page.evaluate(`window.dispatchEvent(new Event('offline'))`);
        await form.getByRole('button', { name: 'Create key' }).press('Enter');
        const once = page.getByRole('dialog', { name: 'Copy the secret now' });
        await once.getByRole('region', { name: 'The secret of the key' }).waitFor();
        lists.resolve();
        await page.keyboard.press('Escape');
        await once.waitFor({ state: 'detached' });
      });
    });

    test('a key is revoked: the question stays until it is, and the focus goes back into the sheet', async () => {
      const { id } = await stage.gateway.makeKey({ name: 'to be revoked' });
      await stage.view('/keys', async (page) => {
        const asked = Promise.withResolvers<void>();
        const answer = Promise.withResolvers<void>();
        await page.route('**/revoke', async (route) => {
          asked.resolve();
          await answer.promise;
          await route.fallback();
        });
        await page.getByRole('row').filter({ hasText: id }).press('Enter');
        const sheet = page.getByRole('dialog', { name: 'to be revoked' });
        await sheet.getByRole('button', { name: 'Revoke' }).press('Enter');
        const question = page.getByRole('alertdialog');
        await question.getByRole('button', { name: 'Revoke key' }).press('Enter');
        await asked.promise;
        await page.keyboard.press('Escape');
        assert.equal(await question.count(), 1);
        answer.resolve();
        await question.waitFor({ state: 'detached' });
        await sheet.getByText('revoked').first().waitFor();
        const isInside = (): Promise<boolean> =>
          page.evaluate<boolean>(
            `document.querySelector('[role=dialog]').contains(document.activeElement)`,
          );
        await until(isInside, 'the focus is in the sheet: its button is gone');
      });
    });
  });
}

/**
 * Presses buttons of the uppermost window, and keys, one behind the other in one task of the browser: as events that wait
 * in its queue while it is busy. Between two of them run microtasks, and no timer.
 */
async function inOneQueue(page: Page, presses: readonly string[]): Promise<void> {
  await page.evaluate(`(async () => {
    for (const press of ${JSON.stringify(presses)}) {
      const top = [...document.querySelectorAll('[role=dialog], [role=alertdialog]')].at(-1);
      const buttons = [...(top?.querySelectorAll('button') ?? [])];
      const button = buttons.find(({ textContent }) => textContent === press);
      const key = { key: press, bubbles: true, cancelable: true };
      if (button === undefined) document.activeElement.dispatchEvent(new KeyboardEvent('keydown', key));
      else button.click();
      // More turns than any chain of microtasks takes that a press begins.
      for (let turn = 0; turn < 100; turn += 1) await undefined;
    }
  })()`);
}

/** More stops than a window has. */
const maxStops = 100;

/** From where the focus is, once around the uppermost window. */
async function assertTabStaysAndReachesAll(page: Page): Promise<void> {
  await page.evaluate('globalThis.reached = new Set()');
  let isNew = true;
  for (let stop = 0; isNew && stop < maxStops; stop += 1) {
    await page.keyboard.press('Tab');
    const { where, isFirst } = await page.evaluate<{
      where: string;
      isFirst: boolean;
    }>(`(async () => {
      // The guards of a window hand the focus on, a frame later.
      const isHandedOn = () => !document.activeElement.hasAttribute('data-base-ui-focus-guard');
      do await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
      while (!isHandedOn());
      const { activeElement: at } = document;
      const top = [...document.querySelectorAll('[role=dialog], [role=alertdialog]')].at(-1);
      const isFirst = !reached.has(at);
      reached.add(at);
      return { isFirst, where: top.contains(at) ? 'window' : at.outerHTML.slice(0, 200) };
    })()`);
    assert.equal(where, 'window', `after ${stop + 1} times Tab`);
    isNew = isFirst;
  }
  const missed = await page.evaluate<readonly string[]>(`(() => {
    const top = [...document.querySelectorAll('[role=dialog], [role=alertdialog]')].at(-1);
    return [...top.querySelectorAll('a[href], button, input, select, textarea, summary')]
      .filter((each) => each.checkVisibility() && !each.disabled && !reached.has(each))
      // Of tabs and of radio buttons one is a stop, and arrows lead to the others.
      .filter((each) => each.getAttribute('role') !== 'tab' && each.type !== 'radio')
      .map((each) => each.outerHTML.slice(0, 200));
  })()`);
  assert.deepEqual(missed, [], 'all that can be used is reached');
}
