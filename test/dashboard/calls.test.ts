/** Issue 24: calls as operators use them, over a month of traffic. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import type { Page } from 'playwright-core';
import { until } from '../support/postgres-store.ts';
import { monthConfig, seedStore } from '../support/seeded-month.ts';
import { assertAccessible, assertFits } from './accessible.ts';
import { noBrowser } from './browser.ts';
import { settled } from './settled.ts';
import { startStage, type Stage } from './stage.ts';
import { narrow, wide } from './watched-page.ts';

/** What the tests read of a call. */
type Call = {
  readonly id: string;
  readonly model: string;
  readonly user: string | null;
  readonly cost_usd: number | null;
};

const looks = [
  ['wide and light', { viewport: wide, dark: false }],
  ['narrow and dark', { viewport: narrow, dark: true }],
] as const;

const stage = await startStage(monthConfig, (directory) => seedStore(directory, Date.now()));
if (stage === undefined) test(noBrowser, () => undefined);
else withMonth(stage);

/** Ids of the rows in sight, from the column of the request id. */
async function shownIds(page: Page): Promise<readonly string[]> {
  return page.locator('[data-row] [role=gridcell]:last-child').allTextContents();
}

function withMonth(stage: Stage): void {
  const { view, gateway } = stage;
  const listed = async (query: string): Promise<readonly Call[]> => {
    const { json } = await gateway.admin('GET', `/api/calls?${query}`);
    return json['calls'] as readonly Call[];
  };

  describe('issue 24 A13: the page of calls', { timeout: 300_000 }, () => {
    let newest: readonly Call[] = [];
    before(async () => {
      newest = await listed('limit=150');
    });
    after(() => stage.stop());

    for (const [look, how] of looks) {
      test(`filters, columns, the drawer with its steps, and live calls can be used by all, ${look}`, async () => {
        await view(
          '/calls',
          async (page) => {
            await settled(page);
            await page.getByRole('button', { name: 'More' }).click();
            await page.getByLabel('Team', { exact: true }).waitFor();
            await settled(page);
            await assertFits(page);
            await assertAccessible(page);
            await page.getByRole('button', { name: 'Columns' }).click();
            await page.getByRole('dialog', { name: 'Columns' }).waitFor();
            await assertAccessible(page);
            await page.keyboard.press('Escape');
            await page.locator('[data-row="0"]').click();
            await page.getByRole('button', { name: 'Next call' }).waitFor();
            await settled(page);
            await assertFits(page);
            await assertAccessible(page);
            await page.keyboard.press('Escape');
            await page.getByRole('button', { name: 'Live' }).click();
            await page.getByText(/0 calls have ended since/).waitFor();
            await assertFits(page);
            await assertAccessible(page);
          },
          how,
        );
      });
    }

    test('calls are found by team, tag, user, the model that answered, cost and time, and by id', async () => {
      await view('/calls?since=30d', async (page) => {
        await settled(page);
        await page.getByRole('button', { name: 'More' }).click();
        for (const [label, name, value] of [
          ['Team', 'team', 'research'],
          ['Tag', 'tag', 'ci'],
          ['User', 'user', 'user-3'],
          ['Answering model', 'upstream_model', 'gpt-5'],
          ['Cost at least, $', 'min_cost_usd', '0.2'],
          ['Duration at least, ms', 'min_ms', '20000'],
        ] as const) {
          const [first] = await listed(`since=30d&limit=1&${name}=${encodeURIComponent(value)}`);
          assert.ok(first !== undefined, `${name} finds calls`);
          await page.getByLabel(label, { exact: true }).fill(value);
          await page.waitForURL((url) => url.searchParams.get(name) === value);
          await settled(page);
          await page.locator('[data-row="0"]').click();
          const dialog = page.getByRole('dialog');
          await dialog.getByText(first.id, { exact: true }).first().waitFor();
          await page.keyboard.press('Escape');
          await dialog.waitFor({ state: 'detached' });
          await page.getByRole('button', { name: 'Clear' }).click();
        }
        // The names that calls have are offered.
        const offers = await page
          .locator('datalist option')
          .evaluateAll((options: unknown[]) =>
            (options as { readonly value: string }[]).map(({ value }) => value),
          );
        for (const name of ['research', 'ci', 'gpt-5-mini']) assert.ok(offers.includes(name), name);
        const last = newest.at(-1);
        assert.ok(last !== undefined);
        await page.getByLabel('Request id').fill(last.id);
        await page.getByRole('dialog').getByText(last.id, { exact: true }).first().waitFor();
      });
    });

    test('chosen columns stand in the table, and stay in this browser', async () => {
      await view('/calls', async (page) => {
        await settled(page);
        const heads = page.getByRole('columnheader');
        assert.equal(await heads.count(), 10);
        await page.getByRole('button', { name: 'Columns' }).click();
        const dialog = page.getByRole('dialog', { name: 'Columns' });
        for (const name of ['User', 'Tokens/s', 'Request id']) {
          await dialog.getByLabel(name, { exact: true }).check();
        }
        await dialog.getByLabel('Key', { exact: true }).uncheck();
        await dialog.getByRole('button', { name: 'Done' }).click();
        await page.reload();
        await settled(page);
        await heads.getByText('Tokens/s', { exact: true }).waitFor();
        assert.equal(await heads.getByText('Key', { exact: true }).count(), 0);
        const ids = await shownIds(page);
        assert.ok(ids.length > 5);
        assert.deepEqual(
          ids,
          newest.slice(0, ids.length).map(({ id }) => id),
        );
        await page.getByRole('button', { name: 'Columns' }).click();
        await dialog.getByRole('button', { name: 'Reset' }).click();
        await dialog.getByRole('button', { name: 'Done' }).click();
        await heads.getByText('Key', { exact: true }).waitFor();
      });
    });

    test('j and k go through the calls of the list, beyond the page that was read, and the link is of the call', async () => {
      await view('/calls', async (page) => {
        await settled(page);
        await page.locator('[data-row="0"]').click();
        const dialog = page.getByRole('dialog');
        const shows = (i: number): Promise<void> =>
          dialog
            .getByText(newest[i]?.id ?? '', { exact: true })
            .first()
            .waitFor();
        await shows(0);
        assert.equal(
          await dialog.getByRole('button', { name: 'Previous call' }).isDisabled(),
          true,
        );
        for (let i = 1; i <= 104; i++) {
          await page.keyboard.press('j');
          await shows(i);
        }
        await page.keyboard.press('k');
        await shows(103);
        await dialog.getByRole('button', { name: 'Previous call' }).click();
        await shows(102);
        await dialog.getByRole('button', { name: 'Copy the link' }).click();
        const link = await page.evaluate<string>('navigator.clipboard.readText()');
        assert.equal(link, `${gateway.adminUrl}/calls/${newest[102]?.id}`);
        // Steps are no pages of the history.
        await page.goBack();
        await dialog.waitFor({ state: 'detached' });
        assert.equal(new URL(page.url()).pathname, '/calls');
      });
    });

    test('Enter on a row that is scrolled away and not fetched brings it into sight, and opens it then', async () => {
      await view('/calls', async (page) => {
        await settled(page);
        const row = page.locator('[data-row="0"]');
        await row.focus();
        const isForgotten = async (): Promise<boolean> => {
          await page.evaluate(`{
            const frame = document.querySelector('[role=grid]').parentElement;
            frame.scrollTop = frame.scrollHeight;
          }`);
          return (await row.getByRole('gridcell').first().innerText()) === '…';
        };
        await until(isForgotten, 'the calls of the first row are far away');
        await page.keyboard.press('Enter');
        await row.filter({ hasNotText: '…' }).waitFor();
        await page.locator('[data-row="5"]').waitFor();
        await page.keyboard.press('Enter');
        const dialog = page.getByRole('dialog');
        await dialog
          .getByText(newest[0]?.id ?? '', { exact: true })
          .first()
          .waitFor();
      });
    });

    test('an export is a file with exactly the calls of the filter', async () => {
      const calls = await listed('team=research&since=7d&limit=1000');
      await view('/calls?team=research&since=7d', async (page) => {
        await settled(page);
        for (const name of ['CSV', 'JSON']) {
          const saved = page.waitForEvent('download');
          await page.getByRole('link', { name, exact: true }).click();
          const file = await saved;
          assert.match(file.suggestedFilename(), /^calls-\d{4}-\d\d-\d\d\.(csv|json)$/);
          const text = readFileSync(await file.path(), 'utf8');
          const ids =
            name === 'JSON'
              ? (JSON.parse(text) as { readonly calls: readonly Call[] }).calls.map(({ id }) => id)
              : text
                  .trim()
                  .split('\r\n')
                  .slice(1)
                  .map((line) => line.slice(0, line.indexOf(',')));
          assert.deepEqual(
            ids,
            calls.map(({ id }) => id),
          );
        }
      });
    });

    test('live calls come without a click, of the filter alone; a pause holds them, and a long one says so', async () => {
      const call = (model: string) =>
        stage.call('/v1/chat/completions', { model, messages: [{ role: 'user', content: 'x' }] });
      await view('/calls?live=1&model=nothing', async (page) => {
        await page.getByText(/^0 calls have ended since/).waitFor();
        await call('nothing');
        await page.getByText(/^1 call has ended since/).waitFor();
        await page.locator('[data-row="0"]').getByText('404 model_not_found').waitFor();
        await page.getByRole('button', { name: 'Pause' }).click();
        await call('something');
        await call('nothing');
        await call('nothing');
        // A call enters the ledger behind its answer.
        const [last] = await stage.recorded('nothing', 3);
        assert.ok(last !== undefined);
        assert.equal(await page.locator('[data-row]').count(), 1);
        await page.getByRole('button', { name: 'Resume' }).click();
        await page.getByText(/^3 calls have ended since/).waitFor();
        assert.equal(await page.locator('[data-row]').count(), 3);
        await page.locator('[data-row="0"]').click();
        await page
          .getByRole('dialog')
          .getByText(String(last['id']), { exact: true })
          .first()
          .waitFor();
        await page.keyboard.press('j');
        await page.getByRole('button', { name: 'Previous call' }).waitFor();
      });
    });

    test('thousands of live calls are a bounded table, whose number is exact', async () => {
      const [model] = newest;
      const made = (from: number): readonly object[] =>
        Array.from({ length: 200 }, (_, i) => ({ ...model, id: `live_${from + 199 - i}` }));
      await view('/calls?live=1', async (page) => {
        await page.route(/calls\/tail/, async (route) => {
          const after = new URL(route.request().url()).searchParams.get('after');
          const look = Number(after ?? 0) + (after === null ? 0 : 1);
          const isBusy = look >= 1 && look <= 8;
          const calls = isBusy ? made(look * 625) : [];
          const ended = isBusy ? 625 : 0;
          const next = String(look);
          await route.fulfill({ json: { calls, ended, lost: 0, continued: after !== null, next } });
        });
        await page.reload();
        await page.getByText(/^5,000 calls have ended since .*$/).waitFor();
        await page.getByText('The last 200 are shown.').waitFor();
        const rows = await page.locator('[data-row]').count();
        assert.ok(rows > 5 && rows < 60, `${rows} rows are drawn`);
        await page.unrouteAll({ behavior: 'wait' });
      });
    });
  });
}
