/** Issue 24: the dashboard over a month of traffic with an outage and a budget that ran out. */
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { roughMoney } from '../../dashboard/src/format/money.ts';
import { count } from '../../dashboard/src/format/number.ts';
import type { Json } from '../../src/json/value.ts';
import { monthConfig, seedStore } from '../support/seeded-month.ts';
import { noBrowser } from './browser.ts';
import { settled } from './settled.ts';
import { startStage, type Stage } from './stage.ts';

const stage = await startStage(monthConfig, (directory) => seedStore(directory, Date.now()));
if (stage === undefined) test(noBrowser, () => undefined);
else withMonth(stage);

type Sums = {
  readonly calls: number;
  readonly cost_usd: number;
  readonly points: readonly Json[];
};

function withMonth(stage: Stage): void {
  describe('issue 24: a month at a glance', { timeout: 300_000 }, () => {
    after(() => stage.stop());

    test('the overview tells cost, calls and errors as the API does, the change, who spends, and what is not well', async () => {
      const ask = async (path: string): Promise<readonly Sums[]> =>
        (await stage.gateway.admin('GET', path)).json['groups'] as readonly Sums[];
      const [week] = await ask('/api/series?since=7d');
      const [before] = await ask('/api/series?since=14d&until=7d');
      const models = await ask('/api/series?since=7d&by=model');
      assert.ok(week !== undefined && before !== undefined && models.length === 3);
      // Six hours, not hours: 28 or 29 steps.
      assert.ok(week.points.length <= 29, String(week.points.length));
      await stage.view('/?range=7d', async (page) => {
        await settled(page);
        const large = (name: string) => page.locator('dl > div', { hasText: name }).first();
        await large('Cost').getByText(roughMoney(week.cost_usd), { exact: true }).waitFor();
        await large('Calls').getByText(count(week.calls), { exact: true }).waitFor();
        const word = week.cost_usd > before.cost_usd ? 'more' : 'less';
        await large('Cost')
          .getByText(new RegExp(`${word} than before|as before`))
          .waitFor();
        const chart = page.getByRole('figure', { name: 'Cost over time, by model' });
        for (const model of ['assistant', 'coder', 'summaries']) {
          await chart.getByRole('columnheader', { name: model }).waitFor();
        }
        await page.getByRole('button', { name: 'By team' }).click();
        const teams = page.getByRole('list', { name: 'Cost by team' });
        await teams.getByRole('link', { name: 'platform' }).waitFor();
        const health = page.getByRole('list', { name: 'Health' });
        await health.getByText('ready, store writes').waitFor();
        await health.getByText('none dropped').waitFor();
        await health.getByRole('link', { name: /Budgets ide-agents spent/ }).click();
        await page.waitForURL(/\/keys\?key=ideagent/);
        await page.getByRole('dialog', { name: 'ide-agents' }).waitFor();
      });
    });

    test('the outage is on the page of errors: whose fault, which provider, and its calls', async () => {
      await stage.view('/errors?range=30d&fault=provider', async (page) => {
        const providers = page.getByRole('list', { name: 'Errors by provider' });
        await providers.getByRole('link', { name: 'anthropic' }).click();
        await page.waitForURL(/provider=anthropic/);
        await page.locator('[data-row="0"]').getByText('529 overloaded').click();
        const dialog = page.getByRole('dialog');
        await dialog.getByText('The provider failed').waitFor();
        await dialog.getByText(/The provider said: Overloaded/).waitFor();
      });
    });

    test('A13 calls are found by the name of a key, and those of the same user from one of them', async () => {
      await stage.view('/calls?range=30d', async (page) => {
        await page.getByLabel('Key', { exact: true }).fill('support-bot');
        await page.waitForURL(/key=supportb/);
        await page.locator('[data-row="0"]').getByText('support-bot').click();
        await page.getByRole('dialog').getByRole('link', { name: 'Calls of this user' }).click();
        await page.waitForURL(/\/calls\?user=user-\d+$/);
        assert.match(await page.getByLabel('User').inputValue(), /^user-\d+$/);
      });
    });

    test('A7 Enter does not close what it should fill in: dialogs and the door begin in their first field', async () => {
      await stage.view('/keys', async (page) => {
        await page.getByRole('button', { name: 'Create key' }).first().click();
        await page.waitForFunction(`document.activeElement.tagName === 'INPUT'`);
        await page.keyboard.type('typed at once');
        await page.getByLabel('Name').first().and(page.locator(':focus')).waitFor();
        assert.equal(await page.getByLabel('Name').first().inputValue(), 'typed at once');
      });
      await stage.view(
        '/',
        async (page) => {
          await page.getByLabel(/token/i).and(page.locator(':focus')).waitFor();
        },
        { anonymous: true },
      );
    });
  });
}
