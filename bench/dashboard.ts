/**
 * Drives the dashboard in a real Chromium over many rows and keys, and says what a person waits for.
 * Usage: node bench/dashboard.ts [folder, default a new one that is removed] [--rows N] [--keys N] [--write]
 * A folder that has a book is measured as it is; `--write` puts the figures into RESULTS.md. Ten million rows take
 * five minutes to write and 4.5 GB.
 */
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { Browser, Page } from 'playwright-core';
import { Instance } from '../test/cluster/instance.ts';
import { openBrowser } from '../test/dashboard/browser.ts';
import { buildDashboard } from '../test/dashboard/built.ts';
import { fillLogin } from '../test/dashboard/stage.ts';
import { endOnSignals } from './at-end.ts';
import { putSection } from './saved-sections.ts';
import { dayMs, end, fillCalls, fillKeys } from './many-rows.ts';

const { values: flags, positionals } = parseArgs({
  options: {
    keys: { type: 'string', default: '1000' },
    rows: { type: 'string', default: '10000000' },
    write: { type: 'boolean', default: false },
  },
  allowPositionals: true,
});
const rows = Number(flags.rows);
const [given] = positionals;
const folder = given ?? mkdtempSync(join(tmpdir(), 'gateway-dashboard-'));
const said: string[] = [];

function say(what: string, value: string): void {
  process.stdout.write(`${what.padEnd(60)} ${value}\n`);
  said.push(`| ${what} | ${value} |`);
}

async function fill(): Promise<void> {
  const data = join(folder, 'data');
  mkdirSync(data, { recursive: true, mode: 0o700 });
  const path = join(data, 'gateway.db');
  if (existsSync(path)) return;
  fillCalls(path, rows);
  await fillKeys(path, Number(flags.keys));
}

async function time(what: string, work: () => Promise<unknown>): Promise<void> {
  const began = performance.now();
  await work();
  say(what, `${(performance.now() - began).toFixed(0)} ms`);
}

/** MB of the page's heap after a collection, as Chromium counts it. */
async function heap(page: Page): Promise<string> {
  const devtools = await page.context().newCDPSession(page);
  await devtools.send('HeapProfiler.collectGarbage');
  const { usedSize } = await devtools.send('Runtime.getHeapUsage');
  await devtools.detach();
  return `${(usedSize / 1e6).toFixed(1)} MB`;
}

/** A row of the table that holds a value, and not the mark of one on its way. */
async function filled(page: Page): Promise<void> {
  await page.locator('[data-row] time').first().waitFor();
}

/** What stands below the table: how many calls it knows. */
function known(page: Page): Promise<string> {
  return page.getByText(/calls so far/).innerText();
}

async function measureCalls(page: Page, home: string): Promise<void> {
  await time('Calls, opened', async () => {
    await page.goto(`${home}/calls`);
    await filled(page);
  });
  say('… heap', await heap(page));
  const grid = page.getByRole('grid', { name: 'Calls' });
  await time('… to the end and 20 times further: 2,000 rows down', async () => {
    await grid.locator('[data-row="0"]').focus();
    for (let n = 1; n <= 20; n += 1) {
      const before = await known(page);
      await page.keyboard.press('End');
      while ((await known(page)) === before) await page.waitForTimeout(5);
    }
  });
  say('… rows in the page', String(await grid.locator('[data-row]').count()));
  say('… heap', await heap(page));
  await time('… back to the top', async () => {
    await page.keyboard.press('Home');
    await grid.locator('[data-row="0"] time').waitFor();
  });
  await time('… a call opened', async () => {
    await grid.locator('[data-row="0"]').click();
    await page.getByRole('dialog').getByRole('region', { name: 'curl command' }).waitFor();
  });
  await page.keyboard.press('Escape');
  for (const query of [
    'until=2026-10-01T00:00:00Z',
    'outcome=failed',
    'key=key00007',
    'model=openai/model-1',
    'status=200&outcome=failed',
  ]) {
    await time(`Calls with ${query}`, async () => {
      await page.goto(`${home}/calls?${query}`);
      await filled(page);
    });
  }
  await time('Calls with notes=nothing-has-this, until it asks whether to go on', async () => {
    await page.goto(`${home}/calls?notes=nothing-has-this`);
    await page
      .getByRole('button', { name: 'Search further back' })
      .or(page.getByText('No matching calls'))
      .first()
      .waitFor();
  });
}

/** The last days of the book, however long ago it was filled. */
function period(daysBack: number): string {
  const at = (ms: number): string => new Date(ms).toISOString();
  return `since=${at(end - daysBack * dayMs)}&until=${at(end)}`;
}

/** `since=90d&until=0d&by=key`: times of the book as days before its end. */
function shown(query: string): string {
  return query.replaceAll(
    /\d{4}-\d\d-\d\dT[\d:.]+Z/g,
    (at) => `${(end - Date.parse(at)) / dayMs}d`,
  );
}

async function measureOverview(page: Page, home: string): Promise<void> {
  for (const query of [period(90), `${period(90)}&by=key`, `${period(7)}&by=model`, period(1)]) {
    await time(`Overview with ${shown(query)}`, async () => {
      await page.goto(`${home}/?${query}`);
      await page.locator('canvas').first().waitFor();
      await page.getByRole('grid').first().locator('[data-row="0"]').waitFor();
    });
  }
}

async function measureKeys(page: Page, home: string): Promise<void> {
  await time('Keys, opened', async () => {
    await page.goto(`${home}/keys`);
    await page.getByRole('grid', { name: 'Keys' }).locator('[data-row="0"] code').waitFor();
  });
  const grid = page.getByRole('grid', { name: 'Keys' });
  await time('… to the last of them', async () => {
    await grid.locator('[data-row="0"]').focus();
    const last = grid.locator(`[data-row="${Number(flags.keys) - 1}"] code`);
    for (let n = 0; n < 200 && (await last.count()) === 0; n += 1) {
      await page.keyboard.press('End');
      await page.waitForTimeout(20);
    }
  });
  say('… rows in the page', String(await grid.locator('[data-row]').count()));
  say('… heap', await heap(page));
  await time('… one found by its name', async () => {
    await page.getByLabel('Find keys').fill('key 777');
    await grid.getByText('key 777', { exact: true }).waitFor();
  });
}

async function measure(browser: Browser, home: string): Promise<void> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  context.setDefaultTimeout(60_000);
  const page = await context.newPage();
  await page.goto(home);
  await fillLogin(page);
  await measureCalls(page, home);
  await measureOverview(page, home);
  await measureKeys(page, home);
}

function removeOwnFolder(): void {
  if (given === undefined) rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
}

const browser = await openBrowser();
if (browser === undefined) throw new Error('Chromium is not on this machine');
try {
  await buildDashboard();
  await fill();
  const config = { ledger: { keep: 'forever', keep_hours: 'forever' } };
  const options = { storage: 'sqlite', upstream: 1, directory: folder, config };
  const gateway = await Instance.start(options);
  endOnSignals(async () => {
    await Promise.all([gateway.kill(), browser.close()]);
    removeOwnFolder();
  });
  await measure(browser, gateway.adminUrl).finally(() => gateway.stop());
} finally {
  await browser.close();
  removeOwnFolder();
}
if (flags.write) {
  const date = new Date().toISOString().slice(0, 10);
  const intro = `Written by \`node bench/dashboard.ts --rows ${rows} --keys ${flags.keys} --write\` on ${date}, on a machine with two cores that others used, too: headless Chromium and the gateway on the same machine, from the request to what is seen.`;
  putSection(
    'dashboard',
    [
      '## Dashboard in a browser',
      '',
      intro,
      '',
      '| what | measured |',
      '| --- | --- |',
      ...said,
    ].join('\n'),
  );
}
