/** Issue 24: the dashboard over a month of traffic with an outage and a budget that ran out. */
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import type { Page } from 'playwright-core';
import { exactMoney, roughMoney } from '../../dashboard/src/format/money.ts';
import { count, speed } from '../../dashboard/src/format/number.ts';
import type { Json } from '../../src/json/value.ts';
import { monthConfig, seedStore } from '../support/seeded-month.ts';
import { assertAccessible, assertFits } from './accessible.ts';
import { noBrowser } from './browser.ts';
import { settled } from './settled.ts';
import { startStage, type Stage } from './stage.ts';
import { narrow } from './watched-page.ts';

const stage = await startStage(monthConfig, (directory) => seedStore(directory, Date.now()));
if (stage === undefined) test(noBrowser, () => undefined);
else withMonth(stage);

type Sums = {
  readonly calls: number;
  readonly cost_usd: number;
  readonly cache_saved_usd: number;
  readonly speed_p50: number;
  readonly points: readonly Json[];
};

/** Pixels; `titles`: length of what stands before the second cell. */
interface Shape {
  readonly wide: number;
  readonly overlap: number;
  readonly titles: number;
}

function withMonth(stage: Stage): void {
  describe('issue 24: a month at a glance', { timeout: 300_000 }, () => {
    after(() => stage.stop());

    test('the overview reports cost, calls and errors as the API does, the change, who spends, and what is not well', async () => {
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
        await health.getByText('ready, store writable').waitFor();
        await health.getByText('none dropped').waitFor();
        await health
          .getByRole('link', { name: /Budgets ide-agents (and \d+ more )?almost spent/ })
          .click();
        await page.waitForURL(/\/keys\?key=ideagent/);
        await page.getByRole('dialog', { name: 'ide-agents' }).waitFor();
      });
    });

    test('issue 24 overview and errors send two requests each to the ledger: one for the total and its groups', async () => {
      for (const [path, wanted] of [
        [
          '/?range=7d',
          [
            '/api/series?since=14d&until=7d',
            '/api/series?since=7d&by=model&groups=50&points=6&with=total',
          ],
        ],
        ['/errors?range=7d', ['/api/errors?since=7d&limit=100&facets=7', '/api/series?since=7d']],
      ] as const) {
        await stage.view('/no-such-page', async (page) => {
          const asked: string[] = [];
          page.on('request', (request) => {
            const { pathname, search } = new URL(request.url());
            if (/^\/api\/(series|errors|usage)$/.test(pathname)) asked.push(pathname + search);
          });
          await page.goto(stage.gateway.adminUrl + path);
          await settled(page);
          // Live pages repeat them.
          assert.deepEqual([...new Set(asked)].toSorted(), wanted);
        });
      }
    });

    test('issue 24 calls are grouped by the model that answered, and lead to those calls', async () => {
      const { json } = await stage.gateway.admin('GET', '/api/series?since=7d&by=answered');
      const [most] = json['groups'] as readonly { readonly name: string; readonly calls: number }[];
      assert.equal(most?.name, 'anthropic/claude-sonnet-5');
      await stage.view('/?range=7d', async (page) => {
        await page.getByRole('button', { name: 'By answering model' }).click();
        const list = page.getByRole('list', { name: 'Cost by answering model' });
        await list.getByRole('link', { name: most.name }).click();
        await page.waitForURL(/provider=anthropic&upstream_model=claude-sonnet-5/);
        const first = page.getByRole('grid', { name: 'Calls' }).locator('[data-row="0"]');
        await first.getByText(most.name).waitFor();
      });
      const { json: failed } = await stage.gateway.admin(
        'GET',
        '/api/errors?since=30d&by=answered',
      );
      const names = (failed['groups'] as readonly { readonly name: string | null }[]).flatMap(
        ({ name }) => name ?? [],
      );
      assert.ok(names.length > 0);
      await stage.view('/errors?range=30d', async (page) => {
        const list = page.getByRole('list', { name: 'Errors by answering model' });
        await list.getByRole('link').first().waitFor();
        assert.deepEqual(await list.getByRole('link').allInnerTexts(), names.slice(0, 6));
      });
    });

    test('issue 24 tables need no scrolling to the side in a window of 1280 pixels', async () => {
      for (const path of ['/calls', '/keys', '/models']) {
        await stage.view(path, async (page) => {
          await page.getByRole('grid').first().getByRole('row').nth(2).waitFor();
          const [least = 0, needed = 0, there = 0] = await page.evaluate<
            readonly number[]
          >(`(() => {
            const grid = document.querySelector('[role=grid]');
            const frame = grid.parentElement;
            return [parseFloat(getComputedStyle(grid).minWidth), frame.scrollWidth, frame.offsetWidth];
          })()`);
          // Where bars for scrolling take room, they take 15 pixels.
          assert.ok(least > 500 && least + 15 <= there, `${path}: at least ${least} in ${there}`);
          assert.ok(needed <= there, `${path}: ${needed} in ${there}`);
          // A13: neither times of other days nor outcomes end in dots.
          const cut = await page.evaluate<
            readonly string[]
          >(`[...document.querySelectorAll('[role=gridcell]')]
            .filter((cell) => ['Time', 'Outcome'].includes(cell.dataset.title))
            .filter((cell) => cell.scrollWidth > cell.clientWidth)
            .map((cell) => cell.textContent)`);
          assert.deepEqual(cut, [], path);
        });
      }
    });

    test('issue 24 the overview reports what caches saved, how fast streams are, and which users and tags spend', async () => {
      type Spender = Sums & { readonly name: string | null };
      const ask = async (query: string): Promise<readonly Spender[]> =>
        (await stage.gateway.admin('GET', `/api/series?since=7d${query}`)).json[
          'groups'
        ] as readonly Spender[];
      const [week] = await ask('');
      assert.ok(week !== undefined && week.cache_saved_usd > 1 && week.speed_p50 > 10);
      const dearest = (groups: readonly Spender[]) =>
        groups.filter(({ name }) => name !== null).toSorted((a, b) => b.cost_usd - a.cost_usd)[0];
      const user = dearest(await ask('&by=user&groups=50'));
      const tag = dearest(await ask('&by=tag&groups=50'));
      assert.ok(user !== undefined && tag !== undefined);
      assert.match(String(user.name), /^user-\d+$/);
      assert.equal(tag.name, 'ci');
      await stage.view('/?range=7d', async (page) => {
        await settled(page);
        const small = (name: string) => page.locator('dl > div', { hasText: name });
        const saved = small('Saved by caches').locator('dd').first();
        assert.equal(await saved.textContent(), roughMoney(week.cache_saved_usd));
        assert.equal(await saved.getAttribute('title'), exactMoney(week.cache_saved_usd));
        await small('Output speed p50')
          .getByText(`${speed(week.speed_p50)} tokens/s`)
          .waitFor();
        await page
          .getByRole('figure', { name: 'Output speed over time' })
          .getByRole('columnheader', { name: 'p5', exact: true })
          .waitFor();
        for (const { by, group } of [
          { by: 'user', group: user },
          { by: 'tag', group: tag },
        ]) {
          await page.getByRole('button', { name: `By ${by}`, exact: true }).click();
          const list = page.getByRole('list', { name: `Cost by ${by}` });
          const link = list.getByRole('link', { name: group.name ?? '', exact: true });
          await link.waitFor();
          await list.getByText(roughMoney(group.cost_usd), { exact: true }).first().waitFor();
          await page
            .getByRole('figure', { name: `Cost over time, by ${by}` })
            .getByRole('columnheader', { name: group.name ?? '', exact: true })
            .waitFor();
          await settled(page);
          await assertFits(page);
          await assertAccessible(page);
        }
        await page
          .getByRole('list', { name: 'Cost by tag' })
          .getByRole('link', { name: 'ci' })
          .click();
        await page.waitForURL(/\/calls\?since=7d&tag=ci$/);
      });
    });

    test('the outage is on the page of errors: whose fault, which provider, and its calls', async () => {
      await stage.view('/errors?range=30d&fault=provider', async (page) => {
        const providers = page.getByRole('list', { name: 'Errors by provider' });
        await providers.getByRole('link', { name: 'anthropic' }).click();
        await page.waitForURL(/provider=anthropic/);
        await page
          .getByRole('grid', { name: 'Calls' })
          .locator('[data-row="0"]')
          .getByText('529 overloaded')
          .click();
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

    test('issue 24 keys are listed by what they cost, with how full their budgets are, as the API has it', async () => {
      const { json } = await stage.gateway.admin('GET', '/api/keys?sort=spend&with=spend');
      const keys = json['keys'] as readonly { readonly name: string; readonly spent_usd: number }[];
      const dearest = keys[0];
      assert.ok(dearest !== undefined && dearest.spent_usd > 0);
      await stage.view('/keys', async (page) => {
        const grid = page.getByRole('grid', { name: 'Keys' });
        await grid.getByRole('button', { name: 'Cost, 30 d' }).click();
        await page.waitForURL(/sort=spend/);
        const first = grid.locator('[data-row="0"]');
        await first.getByText(dearest.name, { exact: true }).waitFor();
        await first.getByText(roughMoney(dearest.spent_usd), { exact: true }).waitFor();
        await first.getByTitle(exactMoney(dearest.spent_usd), { exact: true }).waitFor();
        await grid.getByRole('columnheader', { name: 'Cost, 30 d', exact: false }).waitFor();
        assert.equal(await grid.locator('[aria-sort=descending]').count(), 1);
        const agents = grid.getByRole('row').filter({ hasText: 'ide-agents' });
        await agents.getByText(/^\$38 of \$38 in total$/).waitFor();
        await page.getByLabel('State').selectOption('revoked');
        await page.getByText('No matching keys').waitFor();
      });
    });

    test('issue 24 a team shows its budget as it went, and its keys, the dearest first', async () => {
      const { json } = await stage.gateway.admin('GET', '/api/usage?by=team&since=30d');
      const rows = json['rows'] as readonly { readonly team: string; readonly cost_usd: number }[];
      const cost = rows.find(({ team }) => team === 'platform')?.cost_usd;
      assert.ok(cost !== undefined);
      await stage.view('/keys', async (page) => {
        const teams = page.getByRole('grid', { name: 'Teams' });
        const row = teams.getByRole('row').filter({ hasText: 'platform' });
        await row.getByText(/ of \$120 a month$/).waitFor();
        await row.getByText(roughMoney(cost), { exact: true }).waitFor();
        await row.click();
        const sheet = page.getByRole('dialog', { name: 'platform' });
        const chart = sheet.getByRole('figure', { name: /^Burn-down: .* of \$120.00 are left/ });
        await chart.locator('canvas').waitFor();
        for (const line of ['Left', 'Even pace']) {
          await chart.getByRole('columnheader', { name: line }).waitFor();
        }
        const members = sheet.getByRole('grid', { name: 'Keys of platform' });
        await members.locator('[data-row="0"]').getByText('ide-agents').click();
        await page.waitForURL(/\/keys\?key=ideagent$/);
        await page.getByRole('dialog', { name: 'ide-agents' }).waitFor();
      });
    });

    test('issue 24 models show what they cost, their window, their calls and their last day, as the API has it', async () => {
      const { json } = await stage.gateway.admin('GET', '/api/series?since=24h&by=model&step=hour');
      const groups = json['groups'] as readonly { readonly name: string; readonly calls: number }[];
      const calls = groups.find(({ name }) => name === 'assistant')?.calls;
      assert.ok(calls !== undefined && calls > 0);
      await stage.view('/models', async (page) => {
        const row = page.getByRole('row').filter({ hasText: /^assistant/ });
        await row.getByText('anthropic/claude-sonnet-5 → openai/gpt-5').waitFor();
        await row.getByText('3 / 15', { exact: true }).waitFor();
        await row.getByText(count(calls), { exact: true }).waitFor();
        await row.getByRole('img', { name: /^Last 24 hours: calls in \d+, failures/ }).waitFor();
        await row.click();
        const sheet = page.getByRole('dialog', { name: 'assistant' });
        await sheet.getByText('text, images', { exact: false }).waitFor();
        // The route as a picture: each target with the calls that it answered.
        const target = sheet.getByRole('listitem').filter({ hasText: /answered \d/ });
        await target.nth(1).waitFor();
        assert.equal(await target.count(), 2);
        await target.first().getByText('anthropic/claude-sonnet-5', { exact: true }).waitFor();
        await sheet
          .getByRole('list', { name: 'Calls by answering model' })
          .getByText('anthropic/claude-sonnet-5', { exact: true })
          .waitFor();
      });
    });

    test('F6 issue 24 a sum that cannot be read is a dash beside its error, never a zero', async () => {
      const failing = async (path: string, api: string, look: (page: Page) => Promise<void>) => {
        await stage.view(
          '/no-such',
          async (page) => {
            await page.route(
              (url) => url.pathname === api,
              (route) =>
                route.fulfill({ status: 500, json: { error: { message: 'Out of order.' } } }),
            );
            await page.goto(stage.gateway.adminUrl + path);
            await page.getByRole('alert').filter({ hasText: 'Out of order.' }).first().waitFor();
            await look(page);
          },
          { expected: [/status of 500/] },
        );
      };
      const cellsOf = (page: Page, grid: string, name: string) =>
        page
          .getByRole('grid', { name: grid, exact: true })
          .getByRole('row')
          .filter({ hasText: name });
      await failing('/keys', '/api/usage', async (page) => {
        const cells = cellsOf(page, 'Teams', 'platform').getByRole('gridcell');
        await cells
          .nth(1)
          .getByText(/^\$\d+ of \$120 a month$/)
          .waitFor();
        assert.deepEqual((await cells.allInnerTexts()).slice(2, 4), ['–', '–']);
      });
      await failing('/keys', '/api/budgets', async (page) => {
        await cellsOf(page, 'Teams', 'platform').getByText('– of $120 a month').waitFor();
      });
      await failing('/models', '/api/series', async (page) => {
        const cells = cellsOf(page, 'Models', 'anthropic/claude-sonnet-5').getByRole('gridcell');
        await cells.first().waitFor();
        assert.deepEqual((await cells.allInnerTexts()).slice(5), ['–', '–', '–', '–']);
      });
      await failing('/audit', '/api/audit/check', async (page) => {
        await page.getByText('not verified', { exact: true }).waitFor();
      });
      await failing('/setup', '/api/status', async (page) => {
        await page.getByText('unknown: the request failed', { exact: true }).waitFor();
      });
    });

    test('issue 24 on a phone each row of a list is a card with the titles of its columns', async () => {
      for (const [path, table] of [
        ['/keys', 'Keys'],
        ['/models', 'Models'],
        ['/calls?range=30d', 'Calls'],
        ['/errors?range=30d', 'Errors by cause'],
      ] as const) {
        await stage.view(
          path,
          async (page) => {
            const grid = page.getByRole('grid', { name: table, exact: true });
            await grid.locator('[data-row="1"]').waitFor();
            await settled(page);
            const shape = await page.evaluate<Shape>(`(() => {
              const grid = document.querySelector('[role=grid][aria-label="${table}"]');
              const [first, second] = ['0', '1'].map((row) =>
                grid.querySelector('[data-row="' + row + '"]'));
              return {
                wide: grid.parentElement.scrollWidth - grid.parentElement.clientWidth,
                overlap: Math.round(
                  first.getBoundingClientRect().bottom - second.getBoundingClientRect().top),
                titles: getComputedStyle(first.children[1], '::before').content.length,
              };
            })()`);
            assert.equal(shape.wide, 0, `${table} does not scroll sideways`);
            assert.ok(Math.abs(shape.overlap) <= 1, `cards of ${table} follow each other`);
            assert.ok(shape.titles > 2, 'a cell says what it is');
            await assertFits(page);
          },
          { viewport: narrow },
        );
      }
    });

    test('A7 Enter does not close what it should fill in: dialogs and the door begin in their first field', async () => {
      await stage.view('/keys', async (page) => {
        await page.getByRole('button', { name: 'Create key' }).first().click();
        await page.locator('[role=dialog] input:focus').waitFor();
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
