/** The pages under "Operate" in a real browser (issue 24, part 7). */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Listener } from '../support/hook-listener.ts';
import { until } from '../support/postgres-store.ts';
import { requestBody } from '../support/requests.ts';
import { errorIn } from '../upstream/reply.ts';
import { assertAccessible, assertFits } from './accessible.ts';
import { noBrowser } from './browser.ts';
import { xssText } from './names.ts';
import { settled } from './settled.ts';
import { startStage, type Stage } from './stage.ts';
import { narrow } from './watched-page.ts';

const hooks = { good: new Listener(200), gone: new Listener(404) };
const stage = await startStage({
  webhooks: [
    { url: await hooks.good.listen(), format: 'slack', events: ['config'] },
    { url: await hooks.gone.listen(), secret: 'hook-secret-0123456789' },
  ],
});
if (stage === undefined) {
  closeHooks();
  test(noBrowser, () => undefined);
} else operate(stage);

function closeHooks(): void {
  for (const listener of Object.values(hooks)) listener.close();
}

function operate(stage: Stage): void {
  const { gateway } = stage;

  describe('issue 24 operate', { timeout: 900_000 }, () => {
    after(async () => {
      await stage.stop();
      closeHooks();
    });

    describe('audit log', () => {
      before(async () => {
        const research = '/api/teams/research';
        await gateway.admin('PUT', research, { rpm: 100 });
        await gateway.admin('PUT', research, { rpm: 250 });
        await gateway.admin('PUT', '/api/tags/nightly', {});
        const odd = encodeURIComponent(xssText('team').slice(0, 200));
        await gateway.admin('PUT', `/api/teams/${odd}`, { rpm: 7 });
      });

      test('an entry of the address that is none says so', async () => {
        for (const entry of ['abc', '-1', '99999']) {
          await stage.view(`/audit?entry=${entry}`, async (page) => {
            await page.getByRole('dialog').getByText('No such entry').waitFor();
          });
        }
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

    describe('events', () => {
      before(async () => {
        stage.upstreams.chat.script('broken', errorIn('chat', 500, xssText('broken')));
        for (let n = 0; n < 3; n += 1) {
          await stage.call(
            '/v1/chat/completions',
            requestBody('chat', { model: 'up-chat/broken', stream: false }),
          );
        }
      });

      test('A6 an open circuit breaker is seen, and which webhook failed; a test event is sent', async () => {
        await stage.view('/events', async (page) => {
          const table = page.getByRole('grid', { name: 'Events' });
          await table.getByText(/up-chat\/broken is down: 5 failures in a row/).waitFor();
          await table
            .getByText(/was not delivered/)
            .first()
            .waitFor();
          const [good, gone] = [
            page.getByRole('listitem').filter({ hasText: 'Slack' }),
            page.getByRole('listitem').filter({ hasText: 'Signed JSON' }),
          ];
          await gone.getByText('failing', { exact: true }).waitFor();
          await gone.getByText('target.out').waitFor();
          await good.getByRole('button', { name: 'Send a test event' }).focus();
          await page.keyboard.press('Enter');
          await good.getByText('The test event was delivered').waitFor();
          await gone.getByRole('button', { name: 'Send a test event' }).click();
          await gone.getByText('The test event was not delivered: status 404.').waitFor();
          await page.getByLabel('Severity').selectOption('error');
          await until(
            async () => (await table.getByRole('row').count()) === 2,
            'the header and the breaker are left',
          );
          await settled(page);
          await assertAccessible(page);
          assert.doesNotMatch(await page.locator('body').innerText(), /token=x|hook-secret/);
        });
      });

      test('an event opens with its data, also on a phone in the dark; a webhook is added by lines to copy', async () => {
        await stage.view(
          '/events?group=target',
          async (page) => {
            await page.locator('[data-row="0"]').click();
            await page.getByRole('dialog').getByText('"failures": 5').waitFor();
            await settled(page);
            await assertFits(page);
            await assertAccessible(page);
            await page.keyboard.press('Escape');
            await page.getByRole('dialog').waitFor({ state: 'detached' });
            await page.getByRole('button', { name: 'Add a webhook' }).click();
            await page.getByLabel('Send to').selectOption('pagerduty');
            await page.getByText(/PAGERDUTY_INTEGRATION_KEY/).waitFor();
          },
          { viewport: narrow, dark: true },
        );
      });
    });
  });
}
