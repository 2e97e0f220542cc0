/** Issue 8.1: the overview and the calls, in a browser, over calls that were really made. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import type { Page } from 'playwright-core';
import { count } from '../../dashboard/src/format/number.ts';
import { span as spanText } from '../../dashboard/src/format/time.ts';
import { until } from '../support/postgres-store.ts';
import { noBrowser } from './browser.ts';
import { settled } from './settled.ts';
import { startStage, type Stage } from './stage.ts';
import { playWorld, worldConfig, type World } from './world.ts';

/** What of it is used here; the types of browsers are those of the dashboard alone. */
interface Canvas {
  readonly width: number;
  readonly height: number;
  getContext(kind: '2d'): {
    getImageData(x: number, y: number, width: number, height: number): { data: Uint8ClampedArray };
  };
}

type SteadyGroup = {
  readonly name: string | null;
  readonly points: readonly { readonly input_tokens: number; readonly output_tokens: number }[];
};

const stage = await startStage(worldConfig);
if (stage === undefined) test(noBrowser, () => undefined);
else withWorld(stage);

function dollars(text: string): number {
  return Number(text.replaceAll(/[$,]/g, ''));
}

/** The value beside a name in a list of sums. */
async function stat(page: Page, name: string): Promise<string> {
  const entry = page.locator('dl > div', { hasText: name }).first();
  return (await entry.locator('dd').first().textContent()) ?? '';
}

/** The row of a group in the table of sums; charts have tables of their own, for screen readers. */
function groupRow(page: Page, name: string) {
  const table = page.getByRole('grid', { name: /^Sums by/ });
  return table.getByRole('row').filter({ hasText: name }).first();
}

/** In the page: whether a canvas holds more than grey. Text and grid are. */
function hasColour(canvas: unknown): boolean {
  const { width, height, getContext } = canvas as Canvas;
  const { data } = getContext.call(canvas, '2d').getImageData(0, 0, width, height);
  for (let i = 0; i < data.length; i += 4) {
    const [red = 0, green = 0, blue = 0] = data.slice(i, i + 3);
    if (Math.max(red, green, blue) - Math.min(red, green, blue) > 90) return true;
  }
  return false;
}

function withWorld(stage: Stage): void {
  const { view, gateway } = stage;
  describe('issue 8.1: overview and calls', { timeout: 900_000 }, () => {
    let world: World;
    before(async () => {
      world = await playWorld(stage);
      const { calls } = world;
      // What is still on its way into the ledger would be counted by one question and not by the one before it.
      await until(async () => {
        const { json } = await gateway.admin('GET', '/api/calls?limit=1000');
        return (json['calls'] as readonly unknown[]).length === calls;
      }, 'all calls are recorded');
    });
    after(() => stage.stop());

    test('the overview shows the sums that the API reports, and follows range and grouping', async () => {
      const { json } = await gateway.admin('GET', '/api/series?since=24h');
      const [all] = json['groups'] as readonly {
        readonly calls: number;
        readonly failed: number;
      }[];
      assert.ok(all !== undefined && all.calls > 10 && all.failed > 0);
      await view('/', async (page) => {
        await settled(page);
        assert.equal(await stat(page, 'Calls'), String(all.calls));
        assert.equal(await stat(page, 'Errors'), String(all.failed));
        await page.locator('canvas').first().waitFor();
        await page.getByRole('button', { name: '1 h' }).click();
        await page.waitForURL(/range=1h/);
        await page.getByText('by the minute').waitFor();
        await page.getByLabel('Lines').selectOption('model');
        await page.waitForURL(/by=model/);
        await page
          .getByRole('figure', { name: 'Calls over time' })
          .getByText('steady')
          .first()
          .waitFor();
      });
    });

    test('issue 8.1 sums and percentiles of a model are those of the rows in the ledger', async () => {
      const rows = await stage.recorded('steady', 5);
      const well = rows.filter(({ outcome }) => outcome === 'ok');
      const times = well.map((row) => Number(row['total_ms'])).toSorted((a, b) => a - b);
      const cost = rows.reduce((sum, row) => sum + Number(row['cost_usd'] ?? 0), 0);
      const rank = (part: number): number =>
        times[Math.ceil(times.length * part) - 1] ?? Number.NaN;
      await view('/?range=24h', async (page) => {
        await settled(page);
        const row = groupRow(page, 'steady');
        const cells = await row.getByRole('gridcell').allTextContents();
        assert.equal(cells[1], String(rows.length));
        const exact = await row.locator('[title^="$"]').getAttribute('title');
        assert.ok(Math.abs(dollars(exact ?? '') - cost) < 1e-9, `${exact}: ${cost}`);
        for (const part of [0.5, 0.95]) {
          assert.ok(cells.includes(spanText(rank(part))), `${cells.join(' | ')}: ${rank(part)}`);
        }
        await page.getByText(/Sums and percentiles are exact/).waitFor();
        // A document has no first token before its end.
        const streams = well.filter(({ stream }) => stream === true);
        assert.ok(streams.length < well.length);
        const firsts = streams
          .map((row) => Number(row['first_event_ms']))
          .toSorted((a, b) => a - b);
        assert.equal(cells[8], spanText(firsts[Math.ceil(firsts.length / 2) - 1]));
      });
    });

    test('issue 8.1 lines by group are of the percentile, or of the tokens, that is chosen', async () => {
      await view('/?range=24h&by=model', async (page) => {
        await settled(page);
        for (const title of ['Latency', 'Time to first token']) {
          for (const name of ['p50', 'p95']) {
            await page.getByRole('group', { name: title }).getByRole('button', { name }).click();
            const chart = page.getByRole('figure', { name: `${title} over time, ${name}` });
            await chart.getByRole('columnheader', { name: 'steady' }).waitFor();
          }
        }
        await page.getByText('The charts show the 6 models with the most calls').waitFor();
        const { json } = await gateway.admin('GET', '/api/series?since=24h&by=model');
        const [steady] = (json['groups'] as readonly SteadyGroup[]).filter(
          ({ name }) => name === 'steady',
        );
        const point = steady?.points.at(-1);
        assert.ok(point !== undefined);
        for (const [name, tokens] of [
          ['input', point.input_tokens],
          ['output', point.output_tokens],
          ['all', point.input_tokens + point.output_tokens],
        ] as const) {
          await page.getByRole('group', { name: 'Tokens' }).getByRole('button', { name }).click();
          await page
            .getByRole('figure', { name: `Tokens over time, ${name}` })
            .getByRole('cell', { name: count(tokens), exact: true })
            .first()
            .waitFor();
        }
      });
    });

    test('issue 8.1 a live overview counts a call that ends while it is looked at', async () => {
      await view('/?range=1h', async (page) => {
        await settled(page);
        const before = Number(await stat(page, 'Calls'));
        const body = { model: 'steady', messages: [{ role: 'user', content: 'live' }] };
        assert.equal((await stage.call('/v1/chat/completions', body)).status, 200);
        await page
          .locator('dl > div', { hasText: 'Calls' })
          .first()
          .locator('dd')
          .getByText(String(before + 1), { exact: true })
          .waitFor();
      });
    });

    test('issue 8.1 a single hour with calls is seen in every chart, also where its neighbours have no value', async () => {
      await view('/?range=24h', async (page) => {
        await settled(page);
        const names = ['Latency', 'Time to first token'];
        for (const name of names) {
          const canvas = page.getByRole('figure', { name }).locator('canvas');
          await canvas.waitFor();
          await page.waitForFunction(hasColour, await canvas.elementHandle());
        }
      });
    });

    test('issue 8.5 the sums of the period come as a CSV file, with every group', async () => {
      const { json } = await gateway.admin('GET', '/api/usage?by=key&since=7d');
      const keys = (json['rows'] as readonly { readonly calls: number }[]).length;
      assert.ok(keys > 0);
      await view('/?range=7d', async (page) => {
        await settled(page);
        await page.getByRole('button', { name: 'By key' }).click();
        const saved = page.waitForEvent('download');
        await page.getByRole('link', { name: 'CSV' }).click();
        const file = await saved;
        assert.match(file.suggestedFilename(), /^usage-by-key-\d{4}-\d\d-\d\d\.csv$/);
        const lines = readFileSync(await file.path(), 'utf8')
          .trim()
          .split(/\r?\n/);
        assert.match(lines[0] ?? '', /^key,key_name,calls,/);
        assert.equal(lines.length, keys + 1);
      });
    });

    test('a row of the overview opens its calls', async () => {
      await view('/?range=24h', async (page) => {
        await settled(page);
        await groupRow(page, 'steady').click();
        await page.waitForURL(/\/calls\?since=24h&model=steady/);
        await page.getByRole('grid', { name: 'Calls' }).waitFor();
      });
    });

    test('filters find the calls that the API finds, and stand in the address', async () => {
      const { json } = await gateway.admin('GET', '/api/calls?outcome=failed&limit=100');
      const failed = (json['calls'] as readonly unknown[]).length;
      assert.ok(failed > 1);
      await view('/calls', async (page) => {
        await settled(page);
        await page.getByLabel('Outcome').selectOption('failed');
        await page.waitForURL(/outcome=failed/);
        await page.getByText(counted(failed)).waitFor();
        await page.getByLabel('Model').fill('no-such-model');
        await page.getByRole('heading', { name: 'No matching calls' }).waitFor();
        await page.getByRole('button', { name: 'Clear' }).click();
        await page.getByRole('grid', { name: 'Calls' }).waitFor();
        assert.equal(new URL(page.url()).search, '');
      });
    });

    test('issue 8.1 each filter finds the calls that the API finds, text in notes included', async () => {
      const messages = [{ role: 'user', content: 'noted' }];
      const noted = await stage.call('/v1/chat/completions', {
        model: 'up-messages/spare',
        seed: 7,
        messages,
      });
      assert.equal(noted.status, 200);
      assert.match(String(noted.headers['x-gateway-notes']), /seed/);
      const found = async (query: string): Promise<number> => {
        const { json } = await gateway.admin('GET', `/api/calls?limit=1000&${query}`);
        return (json['calls'] as readonly unknown[]).length;
      };
      await until(async () => (await found('notes=seed')) > 0, 'the noted call is recorded');
      const all = await found('');
      await view('/calls', async (page) => {
        await settled(page);
        await page.getByRole('button', { name: 'More' }).click();
        for (const [label, name, value] of [
          ['Key', 'key', world.oddKey],
          ['Model', 'model', 'fast'],
          ['Provider', 'provider', 'up-messages'],
          ['Status', 'status', '404'],
          ['Text in notes', 'notes', 'seed'],
          ['Outcome', 'outcome', 'failed'],
          ['Mode', 'mode', 'translate'],
        ] as const) {
          const field = page.getByLabel(label, { exact: true });
          const isChoice = name === 'outcome' || name === 'mode';
          await (isChoice ? field.selectOption(value) : field.fill(value));
          await page.waitForURL((url) => url.searchParams.get(name) === value);
          const expected = await found(`${name}=${encodeURIComponent(value)}`);
          assert.ok(expected > 0 && expected < all, `${name}: ${expected} of ${all}`);
          await page.getByText(counted(expected), { exact: true }).waitFor();
          await page.getByRole('button', { name: 'Clear' }).click();
          await page.waitForURL(/calls$/);
          await page.getByText(counted(all), { exact: true }).waitFor();
        }
      });
    });

    test('issue 8.1 N5 a key that is over its budget is shown with all its usage', async () => {
      const { id, key } = await gateway.makeKey({ name: 'spent', budget: 0.01, per: 'day' });
      let status = 0;
      for (let calls = 0; status !== 429 && calls < 20; calls += 1) {
        ({ status } = await gateway.chat(key, { model: 'steady', max_tokens: 64 }));
      }
      assert.equal(status, 429);
      const isRecorded = async (): Promise<boolean> => {
        const { json } = await gateway.admin('GET', `/api/calls?key=${id}&status=429`);
        return (json['calls'] as readonly unknown[]).length > 0;
      };
      await until(isRecorded, 'the refused call is recorded');
      await view(`/keys?key=${id}`, async (page) => {
        const sheet = page.getByRole('dialog', { name: 'spent' });
        await sheet.getByText(/of \$0\.01 today/).waitFor();
        await sheet.getByRole('figure', { name: /^Burn-down: .* of \$0\.01 are left/ }).waitFor();
      });
      await view(`/calls?key=${id}`, async (page) => {
        await page.getByText('429 key daily budget').first().waitFor();
      });
      const { json } = await gateway.admin('GET', `/api/calls?key=${id}&outcome=ok&limit=1`);
      const [paid] = json['calls'] as readonly { readonly id: string }[];
      assert.ok(paid);
      await view(`/calls/${paid.id}`, async (page) => {
        await page.getByText(/^daily budget of key spent, \d{4}-\d\d-\d\d$/).waitFor();
        await page.getByText('Chat Completions', { exact: true }).waitFor();
      });
      await view('/?range=24h&by=team', async (page) => {
        await groupRow(page, 'no team').waitFor();
      });
      await view('/?range=24h&by=key', async (page) => {
        await groupRow(page, 'spent').waitFor();
      });
      await view(
        '/playground',
        async (page) => {
          await page.getByLabel('Call as').selectOption(id);
          await page.getByLabel('Model', { exact: true }).fill('steady');
          await page.getByRole('textbox', { name: 'Message' }).fill('Once more.');
          await page.keyboard.press('Enter');
          await page
            .getByRole('alert')
            .getByText(/budget/)
            .waitFor();
        },
        { expected: [/status of 429 .*api\/playground/] },
      );
    });

    test('issue 8.1 calls between two dates, and then since the first one', async () => {
      const { json } = await gateway.admin('GET', '/api/calls?limit=1000');
      const all = (json['calls'] as readonly unknown[]).length;
      await view('/calls', async (page) => {
        await settled(page);
        await page.getByLabel('Period').selectOption('own');
        const dates = page.getByRole('dialog', { name: 'Period' });
        await dates.getByLabel('From').fill('2020-01-01T00:00');
        await dates.getByLabel('To').fill('2020-01-02T00:00');
        await dates.getByRole('button', { name: 'Show' }).click();
        await page.waitForURL(/since=20(19|20)-.*until=20(19|20)-/);
        await page.getByRole('heading', { name: 'No matching calls' }).waitFor();
        await page.getByRole('button', { name: /^Remove filter Until/ }).click();
        await page.getByText(counted(all), { exact: true }).waitFor();
        await page.getByLabel('Period').selectOption('1h');
        await page.waitForURL(/\?since=1h$/);
      });
    });

    test('"back" takes the last filter away, and then the one before it; the fields follow', async () => {
      await view('/calls', async (page) => {
        await settled(page);
        const outcome = page.getByLabel('Outcome');
        await outcome.selectOption('failed');
        await page.waitForURL(/outcome=failed$/);
        await page.getByLabel('Model').fill('steady');
        await page.waitForURL(/outcome=failed&model=steady$/);
        await page.goBack();
        await page.waitForURL(/outcome=failed$/);
        const model = page.getByLabel('Model');
        await until(
          async () => (await model.inputValue()) === '',
          'the field of the model follows',
        );
        await page.goBack();
        await page.waitForURL(/calls$/);
        await until(async () => (await outcome.inputValue()) === '', 'that of the outcome follows');
      });
    });

    test('a call that there is not is said to be gone, however its address is written', async () => {
      for (const id of ['req_none', '%E0%A4%A', '%2e%2e%2fkeys']) {
        await view(
          `/calls/${id}`,
          async (page) => {
            await page
              .getByRole('dialog')
              .getByText(/status 40[04]/)
              .waitFor();
          },
          { expected: [/status of 40[04] /] },
        );
      }
    });

    test('a call that no upstream saw has its reason beside its status, and no provider or counter', async () => {
      await view('/calls?status=404', async (page) => {
        const row = page.locator('[data-row="0"]');
        await row.getByText('404 model_not_found').waitFor();
        assert.equal(await row.getByRole('gridcell').nth(3).textContent(), '–');
        await row.click();
        const dialog = page.getByRole('dialog');
        await dialog.getByText('none: no request was sent to an upstream').waitFor();
        const why = dialog.getByRole('note', { name: 'Why it failed' });
        await why.getByText('The request was at fault').waitFor();
        await why.getByText(/does not exist or this key may not use it/).waitFor();
        assert.equal(await dialog.getByText('Counted by').count(), 0);
        // Absent is not zero: a sentence, and no table of dashes.
        await dialog.getByText('so there is no usage and no cost.').waitFor();
        assert.equal(await dialog.getByRole('row').count(), 0);
      });
    });

    test('A4 errors by whose fault are those of the ledger; a limit says whose it is, a cause opens its calls', async () => {
      const { json } = await gateway.admin('GET', '/api/errors?since=24h');
      const groups = json['groups'] as readonly {
        readonly fault: string;
        readonly calls: number;
      }[];
      const limits = groups
        .filter(({ fault }) => fault === 'limit')
        .reduce((sum, { calls }) => sum + calls, 0);
      assert.ok(limits > 0 && groups.some(({ fault }) => fault === 'provider'));
      await view('/errors?range=24h', async (page) => {
        const tile = page.getByRole('button', { name: `Own limit ${limits} ` });
        await tile.click();
        await page.waitForURL(/fault=limit/);
        const figure = page.getByRole('figure', { name: /Errors over time/ });
        await figure.getByRole('columnheader', { name: 'Own limit' }).waitFor();
        await page.getByText('key one a minute: request limit').waitFor();
        const causes = page.getByRole('grid', { name: 'Errors by cause' });
        await causes.getByText('429 rate_limited').click();
        await page.waitForURL(/\/calls\?.*fault=limit/);
        await page.locator('[data-row="0"]').getByText('429 key request limit').waitFor();
        await page.locator('[data-row="0"]').click();
        const why = page.getByRole('note', { name: 'Why it failed' });
        await why.getByText('Refused by the request limit of key one a minute.').waitFor();
        await why.getByText(/1 request per minute, 0 left/).waitFor();
      });
    });

    test('the keyboard goes down the rows, opens one, and comes back to it', async () => {
      await view('/calls?model=fast', async (page) => {
        await page.locator('[data-row="0"]').focus();
        await page.keyboard.press('ArrowDown');
        const row = page.locator('[data-row="1"]:focus');
        await row.getByText('up-messages/spare (2 attempts)').waitFor();
        await page.keyboard.press('Enter');
        const dialog = page.getByRole('dialog');
        await dialog.getByText('1. up-chat/primary').waitFor();
        await dialog.getByText('2. up-messages/spare').waitFor();
        await dialog.getByText('failed · status 503').waitFor();
        await dialog.getByRole('region', { name: 'curl command' }).waitFor();
        await page.keyboard.press('Escape');
        await dialog.waitFor({ state: 'detached' });
        await page.locator('[data-row="1"]:focus').waitFor();
        assert.equal(new URL(page.url()).pathname, '/calls');
      });
    });

    test('usage and cost of a call are those of the ledger, digit by digit', async () => {
      const { json } = await gateway.admin('GET', '/api/calls?model=fast&limit=1');
      const [call] = json['calls'] as readonly {
        readonly id: string;
        readonly cost_usd: number;
        readonly charged: { readonly output_tokens: number };
      }[];
      assert.ok(call !== undefined);
      await view(`/calls/${call.id}`, async (page) => {
        const table = page.getByRole('region', { name: 'Usage and cost' });
        await table.waitFor();
        const output = table.getByRole('row').filter({ hasText: /^Output/ });
        const cells = await output.getByRole('cell').allTextContents();
        assert.deepEqual(
          cells.slice(0, 2),
          [1, 1].map(() => String(call.charged.output_tokens)),
        );
        const sum = await table.getByRole('row').last().getByRole('cell').last().textContent();
        assert.equal(Number(sum?.replace('$', '')), call.cost_usd);
      });
    });

    test('new calls are announced, not pushed between the rows in sight', async () => {
      await view('/calls?model=steady', async (page) => {
        await settled(page);
        const body = { model: 'steady', messages: [{ role: 'user', content: 'again' }] };
        const answer = await stage.call('/v1/chat/completions', body);
        assert.equal(answer.status, 200);
        const button = page.getByRole('button', { name: 'Show new calls' });
        await button.waitFor();
        await button.click();
        await page.getByRole('button', { name: 'Refresh' }).waitFor();
        // A person who works with the keyboard stays where they were.
        await page.locator('button:focus', { hasText: 'Refresh' }).waitFor();
      });
    });
  });
}

/** What the page says below the rows. */
function counted(calls: number): string {
  return calls === 1 ? '1 call.' : `${calls} calls.`;
}
