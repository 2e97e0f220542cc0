/** A page whose every complaint is kept: a test with one fails (S12). */
import assert from 'node:assert/strict';
import type { Browser, BrowserContext, BrowserContextOptions, Page } from 'playwright-core';
import { patienceMs } from './patience.ts';
import { watchTraffic } from './settled.ts';

/** Widths that the dashboard is made for. */
export const wide = { width: 1280, height: 800 } as const;
export const narrow = { width: 390, height: 844 } as const;

export interface Viewing {
  readonly viewport?: { readonly width: number; readonly height: number };
  readonly dark?: boolean;
  /** Cookies of a session. */
  readonly session?: BrowserContextOptions['storageState'];
  /** Complaints that this test is about, e.g. the browser's line on an answer 401. */
  readonly expected?: readonly RegExp[];
}

export interface WatchedPage {
  readonly page: Page;
  readonly context: BrowserContext;
  /** What went wrong so far, one line each. */
  readonly problems: readonly string[];
  close(): Promise<void>;
}

/**
 * Runs in the page before anything of its own. The console tells of violations, too; of those that are
 * only reported it would not. `pwned` is what the XSS corpus calls.
 */
const listeners = `
addEventListener('securitypolicyviolation', (event) => {
  console.error('CSP: ' + event.violatedDirective + ' ' + event.blockedURI + ' ' + event.sample);
});
globalThis.pwned = (by) => console.error('XSS: ' + by);
`;

/** Characters of a page that a failed test shows. */
const maxShown = 3000;

/**
 * A page in a context of its own. Kept are: errors of scripts, errors and warnings on the console,
 * violations of the content security policy, and every request that leaves `home`.
 */
export async function openPage(
  browser: Browser,
  home: string,
  { viewport = wide, dark = false, session, expected = [] }: Viewing = {},
): Promise<WatchedPage> {
  const context = await browser.newContext({
    viewport: { ...viewport },
    colorScheme: dark ? 'dark' : 'light',
    reducedMotion: 'reduce',
    permissions: ['clipboard-read', 'clipboard-write'],
    ...(session === undefined ? {} : { storageState: session }),
  });
  context.setDefaultTimeout(patienceMs);
  const problems: string[] = [];
  const note = (text: string): void => {
    if (!expected.some((pattern) => pattern.test(text))) problems.push(text);
  };
  await context.addInitScript(listeners);
  const page = await context.newPage();
  watchTraffic(page);
  page.on('pageerror', (error) => note(`page error: ${error.stack ?? error.message}`));
  page.on('console', (message) => {
    if (['error', 'warning', 'assert'].includes(message.type())) {
      note(`console ${message.type()}: ${message.text()} (${message.location().url})`);
    }
  });
  page.on('dialog', (dialog) => {
    note(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on('request', (request) => {
    const url = request.url();
    if (!url.startsWith(`${home}/`) && !/^(data|blob):/.test(url)) note(`request to ${url}`);
  });
  page.on('crash', () => note('the page crashed'));
  return { page, context, problems, close: () => context.close() };
}

/** Opens a page, lets `body` use it, and fails on the first complaint. */
export async function onPage(
  browser: Browser,
  home: string,
  viewing: Viewing,
  body: (page: Page, watched: WatchedPage) => Promise<void>,
): Promise<void> {
  const watched = await openPage(browser, home, viewing);
  try {
    await body(watched.page, watched);
    assert.deepEqual(watched.problems, [], 'the page complains of nothing');
  } catch (error) {
    const body = watched.page.locator('body');
    const shown = await body.innerText({ timeout: 1000 }).catch(() => '(nothing)');
    const told = [...watched.problems, watched.page.url(), shown.slice(0, maxShown)];
    process.stderr.write(`${told.join('\n')}\n`);
    throw error;
  } finally {
    await watched.close();
  }
}
