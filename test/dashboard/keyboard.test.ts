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
        // While nothing is on its way, Escape closes the window.
        await inOneQueue(page, [{ key: 'Escape' }]);
        await form.waitFor({ state: 'detached' });
        await page.getByRole('button', { name: 'Create key' }).press('Enter');
        await form.getByLabel('Name').fill('slow to come');
        await inOneQueue(page, [
          { click: 'Create key' },
          { click: 'Create key' },
          { key: 'Escape' },
        ]);
        await asked.promise;
        await form.locator('button[aria-busy]', { hasText: 'Cancel' }).waitFor();
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

    test('a key is rotated once, and "back" loses neither its secret nor a refusal', async () => {
      const { id } = await stage.gateway.makeKey({ name: 'to be rotated' });
      await stage.view(
        '/models',
        async (page) => {
          let asked = Promise.withResolvers<void>();
          let answer = Promise.withResolvers<void>();
          let sent = 0;
          await page.route('**/rotate', async (route) => {
            sent += 1;
            asked.resolve();
            await answer.promise;
            await route.fallback();
          });
          const question = page.getByRole('alertdialog', { name: 'Give this key a new secret?' });
          const rotate = async (): Promise<void> => {
            await page.getByRole('row').filter({ hasText: id }).press('Enter');
            const sheet = page.getByRole('dialog', { name: 'to be rotated' });
            await sheet.getByRole('button', { name: 'Rotate' }).press('Enter');
            await question.getByRole('button', { name: 'Rotate key' }).waitFor();
            await inOneQueue(page, [
              { click: 'Rotate key' },
              { click: 'Rotate key' },
              { key: 'Escape' },
            ]);
            await asked.promise;
            await page.goBack();
            await page.waitForURL(/\/keys$/);
          };
          await page.getByRole('link', { name: 'Keys', exact: true }).click();
          await rotate();
          await page.goBack();
          const leaving = page.getByRole('alertdialog', { name: 'Leave without saving?' });
          await leaving.getByText('A new secret is on its way.').waitFor();
          answer.resolve();
          const once = page.getByRole('dialog', { name: 'Copy the secret now' });
          await once.getByRole('region', { name: 'The secret of the key' }).waitFor();
          await once.getByText('The secret of to be rotated').waitFor();
          await leaving.waitFor({ state: 'detached' });
          await page.keyboard.press('Escape');
          await once.waitFor({ state: 'detached' });
          assert.equal(sent, 1, 'a second press does not replace the new secret');
          asked = Promise.withResolvers();
          answer = Promise.withResolvers();
          await rotate();
          await stage.gateway.admin('POST', `/api/keys/${id}/revoke`);
          answer.resolve();
          await question.getByRole('alert').waitFor();
          await page.keyboard.press('Escape');
          await page
            .locator('[role=dialog], [role=alertdialog]')
            .first()
            .waitFor({ state: 'detached' });
        },
        { expected: [/status of 4\d\d/] },
      );
    });

    for (const [path, button, name] of [
      ['/keys', 'Set up a tag', 'Set up a tag'],
      ['/keys?team=limited', undefined, 'limited'],
    ] as const) {
      test(`a change that is on its way is sent once, and its window stays until the refusal is shown: ${name}`, async () => {
        await stage.gateway.admin('PUT', '/api/teams/limited', { rpm: 5 });
        await stage.view(
          path,
          async (page) => {
            const answer = Promise.withResolvers<void>();
            let sent = 0;
            await page.route(/\/api\/(teams|tags)\/[^/]+$/, async (route) => {
              if (route.request().method() !== 'PUT') return route.fallback();
              sent += 1;
              await answer.promise;
              await route.fallback();
            });
            const form = page.getByRole('dialog', { name });
            if (button !== undefined) {
              await page.getByRole('button', { name: button }).press('Enter');
              await form.getByLabel('Name').fill('refused');
            }
            await form.getByLabel('Requests per minute').fill('many');
            await inOneQueue(page, [{ click: 'Save' }, { click: 'Save' }, { key: 'Escape' }]);
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
    }

    test("Removing a team's limits does not change the address after the person went to another page", async () => {
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

/** The text of a button, or the name of a key. */
type Press = { readonly click: string } | { readonly key: string };

/**
 * Presses buttons of the uppermost window, and keys, one behind the other in one task of the browser: as events that wait
 * in its queue while it is busy. Between two of them run microtasks, and no timer. Fails where a button is missing.
 */
async function inOneQueue(page: Page, presses: readonly Press[]): Promise<void> {
  await page.evaluate(`(async () => {
    for (const { click, key } of ${JSON.stringify(presses)}) {
      if (click === undefined) {
        const press = { key, bubbles: true, cancelable: true };
        document.activeElement.dispatchEvent(new KeyboardEvent('keydown', press));
      } else {
        const top = [...document.querySelectorAll('[role=dialog], [role=alertdialog]')].at(-1);
        const button = [...top.querySelectorAll('button')].find(
          ({ textContent }) => textContent === click,
        );
        button.click();
      }
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
