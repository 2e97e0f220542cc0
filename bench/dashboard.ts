/**
 * Drives the dashboard in a real Chromium over many rows and keys, and says what a person waits for.
 * Usage: node bench/dashboard.ts [folder, default a new one that is removed] [--rows N] [--keys N] [--write] [--tail]
 * A folder that has a book is measured as it is; `--write` puts the figures into RESULTS.md. Ten million rows take
 * five minutes to write and 4.5 GB. `--tail` measures the live tail of calls alone.
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
    tail: { type: 'boolean', default: false },
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

/**
 * Opens a page. @returns ms from the request to the frame in which all of these are there, by the page's own clock:
 * looks from outside come every half second.
 */
async function opened(page: Page, url: string, wanted: readonly string[]): Promise<number> {
  await page.goto(url, { waitUntil: 'commit' });
  return page.evaluate<number>(`new Promise((resolve, reject) => {
    const look = () => {
      const now = performance.now();
      if (${JSON.stringify(wanted)}.every((selector) => document.querySelector(selector) !== null)) resolve(now);
      else if (now > 60000) reject(new Error('not seen within a minute'));
      else requestAnimationFrame(look);
    };
    look();
  })`);
}

/** Times that a page is opened; the first is often longer, since the browser compiles its code. */
const views = 5;

async function sayOpened(
  page: Page,
  what: string,
  { url, wanted }: { readonly url: string; readonly wanted: readonly string[] },
): Promise<void> {
  const times: number[] = [];
  for (let n = 0; n < views; n += 1) times.push(await opened(page, url, wanted));
  const [first = 0] = times;
  times.sort((a, b) => a - b);
  const [median = 0, worst = 0] = [times[views >> 1], times.at(-1)];
  const all = `median ${median.toFixed(0)} ms, first ${first.toFixed(0)} ms, worst ${worst.toFixed(0)} ms`;
  say(what, all);
}

const row = '[role=grid] [data-row="0"]';

/** Every page as it opens without a choice, and what has to be in sight. */
const firstViews = [
  ['Calls', '/calls', ['[role=grid] [data-row="0"] time']],
  ['Keys', '/keys', ['[role=grid][aria-label="Keys"] [data-row="0"] code']],
  ['Models', '/models', [row]],
  ['Playground', '/playground', ['main textarea']],
  ['Events', '/events', [row]],
  ['Audit log', '/audit', ['main h2']],
  ['Diagnostics', '/diagnostics', ['main dl']],
  ['Setup', '/setup', ['main table td']],
  ['Sessions', '/sessions', [row]],
] as const;

async function measureFirstViews(page: Page, home: string): Promise<void> {
  for (const query of [period(90), `${period(90)}&by=key`, `${period(7)}&by=model`, period(1)]) {
    const url = `${home}/?${query}`;
    await sayOpened(page, `Overview with ${shown(query)}`, { url, wanted: ['canvas', row] });
  }
  for (const query of [period(30), period(1)]) {
    const url = `${home}/errors?${query}`;
    await sayOpened(page, `Errors with ${shown(query)}`, { url, wanted: ['canvas', row] });
  }
  for (const [what, path, wanted] of firstViews) {
    await sayOpened(page, `${what}, opened`, { url: home + path, wanted });
  }
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

/** What is below the table: how many calls it knows. */
function known(page: Page): Promise<string> {
  return page.getByText(/calls so far/).innerText();
}

async function measureCalls(page: Page, home: string): Promise<void> {
  await page.goto(`${home}/calls`);
  await filled(page);
  say('Calls, heap', await heap(page));
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

async function measureKeys(page: Page, home: string): Promise<void> {
  await page.goto(`${home}/keys`);
  const grid = page.getByRole('grid', { name: 'Keys' });
  await grid.locator('[data-row="0"] code').waitFor();
  await time('Keys, to the last of them', async () => {
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

const tailSeconds = 20;
const tailRate = 500;

/** Calls of a model that there is not: each is a row of the ledger, and costs the machine little besides. */
async function endCalls(gateway: Instance, key: string): Promise<void> {
  const began = performance.now();
  const running = new Set<Promise<unknown>>();
  for (let asked = 0; ;) {
    const seconds = (performance.now() - began) / 1000;
    if (seconds >= tailSeconds) break;
    for (; asked < seconds * tailRate; asked += 1) {
      const call = fetch(`${gateway.url}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: '{"model":"none/such","messages":[{"role":"user","content":"hi"}]}',
      }).then((response) => response.arrayBuffer());
      running.add(call);
      void call.finally(() => running.delete(call));
    }
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  await Promise.all(running);
}

interface Frames {
  readonly frames: number;
  readonly worstMs: number;
  /** Gaps of more than 50 ms between two frames. */
  readonly late: number;
}

interface TraceEvent {
  readonly name: string;
  readonly pid: number;
  readonly tid: number;
  readonly args?: { readonly name?: string };
  /** Of the thread's processor, microseconds. */
  readonly tdur?: number;
}

/** The longest task of a page's main thread, in ms of the processor: waiting for it is not in it. */
function longestTask(trace: readonly TraceEvent[]): number {
  const threads = new Set(
    trace
      .filter(({ name, args }) => name === 'thread_name' && args?.name === 'CrRendererMain')
      .map(({ pid, tid }) => `${pid} ${tid}`),
  );
  return trace
    .filter(({ pid, tid }) => threads.has(`${pid} ${tid}`))
    .reduce((longest, { tdur = 0 }) => Math.max(longest, tdur / 1000), 0);
}

/** What the page draws for as long as `work` takes. */
async function sayFrames(page: Page, what: string, work: () => Promise<unknown>): Promise<void> {
  const browser = page.context().browser();
  await browser?.startTracing(page, { categories: ['toplevel', '__metadata'] });
  await page.evaluate(`{
    const seen = { frames: 0, worstMs: 0, late: 0 };
    globalThis.seen = seen;
    let last;
    const frame = (now) => {
      const gap = now - (last ?? now);
      last = now;
      seen.frames += 1;
      seen.worstMs = Math.max(seen.worstMs, gap);
      if (gap > 50) seen.late += 1;
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  }`);
  await work();
  const { frames, worstMs, late } = await page.evaluate<Frames>('globalThis.seen');
  const trace = JSON.parse(String(await browser?.stopTracing()));
  const task = longestTask(trace.traceEvents).toFixed(0);
  const gaps = `${late} of ${frames} later than 50 ms, the worst ${worstMs.toFixed(0)} ms`;
  say(what, `${gaps}; longest task of the page ${task} ms of CPU`);
}

/** The same page first without a call: what is late then is the machine's. */
async function measureTail(page: Page, gateway: Instance): Promise<void> {
  const { key } = await gateway.makeKey({});
  const ended = page.getByText(/calls? ha(s|ve) ended since/);
  const open = async (): Promise<void> => {
    await page.goto(`${gateway.adminUrl}/calls?live=1`);
    await ended.waitFor();
  };
  await open();
  await sayFrames(page, 'Live tail without a call, frames', () =>
    page.waitForTimeout(tailSeconds * 1000),
  );
  await open();
  await sayFrames(page, `Live tail, ${tailRate} calls a second for ${tailSeconds} s, frames`, () =>
    endCalls(gateway, key),
  );
  say('… and what the page says', await ended.innerText());
}

async function measure(browser: Browser, gateway: Instance): Promise<void> {
  const home = gateway.adminUrl;
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  context.setDefaultTimeout(60_000);
  const page = await context.newPage();
  await page.goto(home);
  await fillLogin(page);
  if (!flags.tail) await measureLedger(page, home);
  await measureTail(page, gateway);
}

async function measureLedger(page: Page, home: string): Promise<void> {
  await measureFirstViews(page, home);
  await measureCalls(page, home);
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
  await measure(browser, gateway).finally(() => gateway.stop());
} finally {
  await browser.close();
  removeOwnFolder();
}
if (flags.write) {
  const date = new Date().toISOString().slice(0, 10);
  const intro = `Written by \`node bench/dashboard.ts --rows ${rows} --keys ${flags.keys} --write\` on ${date}, on a machine with two cores: headless Chromium and the gateway on the same machine. Pages are opened ${views} times, from the request to the frame that shows figures and first rows; in the other lines looks from outside are up to half a second late.`;
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
