/** The pages under "Operate" in a real browser (issue 24, part 7). */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { until } from '../support/postgres-store.ts';
import { assertAccessible, assertFits } from './accessible.ts';
import { noBrowser } from './browser.ts';
import { xssText } from './names.ts';
import { settled } from './settled.ts';
import { startStage, type Stage } from './stage.ts';
import { narrow } from './watched-page.ts';

const stage = await startStage();
if (stage === undefined) test(noBrowser, () => undefined);
else operate(stage);

function operate(stage: Stage): void {
  const { gateway } = stage;

  describe('issue 24 operate', { timeout: 900_000 }, () => {
    after(() => stage.stop());

    describe('audit log', () => {
      before(async () => {
        const research = '/api/teams/research';
        await gateway.admin('PUT', research, { rpm: 100 });
        await gateway.admin('PUT', research, { rpm: 250 });
        await gateway.admin('PUT', '/api/tags/nightly', {});
        const odd = encodeURIComponent(xssText('team').slice(0, 200));
        await gateway.admin('PUT', `/api/teams/${odd}`, { rpm: 7 });
      });

      test('S24 says who changed what, from which value to which, and that the chain is intact', async () => {
        await stage.view('/audit', async (page) => {
          await page.getByText('intact', { exact: true }).waitFor();
          const table = page.getByRole('grid', { name: 'Audit log' });
          await table.getByRole('row').filter({ hasText: 'rpm: 100 → 250' }).click();
          const sheet = page.getByRole('dialog');
          await sheet.getByText('admin token').waitFor();
          const row = sheet.getByRole('row').filter({ hasText: 'rpm' });
          assert.match(await row.innerText(), /rpm\s+100\s+250/);
          await settled(page);
          await assertAccessible(page);
          await sheet.getByRole('link', { name: 'team:research' }).click();
          await page.getByRole('dialog').getByText('research').first().waitFor();
        });
      });

      test('filters stand in the address, and are found by keyboard only', async () => {
        await stage.view('/audit', async (page) => {
          const table = page.getByRole('grid', { name: 'Audit log' });
          await table.waitFor();
          await page.getByLabel('Action').focus();
          await page.keyboard.type('team');
          await until(
            async () => (await table.getByRole('row').count()) === 4,
            'the header and the three changes of teams are left',
          );
          assert.match(page.url(), /action=team/);
          await table.locator('[data-row="0"]').focus();
          await page.keyboard.press('ArrowDown');
          await page.keyboard.press('Enter');
          await page.getByRole('dialog').getByText('team.set').waitFor();
          await page.keyboard.press('Escape');
          await page.getByRole('dialog').waitFor({ state: 'detached' });
          await page.getByLabel('Who').fill('nobody');
          await page.getByText('No entry fits').waitFor();
          await page.getByRole('button', { name: 'Clear' }).click();
          await table.getByText('tag.set').waitFor();
        });
      });

      test('an entry has an address of its own, also on a phone in the dark', async () => {
        await stage.view(
          '/audit?entry=1',
          async (page) => {
            await page.getByRole('dialog').getByText('Entry 1', { exact: true }).waitFor();
            await settled(page);
            await assertFits(page);
            await assertAccessible(page);
          },
          { viewport: narrow, dark: true },
        );
      });
    });
  });
}
