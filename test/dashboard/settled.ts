/** Waiting for what a page fetches, without waiting for a time. */
import assert from 'node:assert/strict';
import type { Page, Request } from 'playwright-core';
import { patienceMs } from './patience.ts';

interface Traffic {
  /** Requests that have no answer yet. */
  readonly open: Set<Request>;
  /** Addresses that were answered since the page was opened. */
  readonly answered: Set<string>;
}

const trafficOf = new WeakMap<Page, Traffic>();

/** Begins to count the page's requests, for `settled`. */
export function watchTraffic(page: Page): void {
  const open = new Set<Request>();
  const answered = new Set<string>();
  trafficOf.set(page, { open, answered });
  page.on('request', (request) => {
    if (request.isNavigationRequest()) answered.clear();
    open.add(request);
  });
  page.on('requestfailed', (request) => open.delete(request));
  page.on('requestfinished', (request) => {
    open.delete(request);
    answered.add(request.url());
  });
}

/**
 * Resolves when everything was fetched once and nothing says that it loads. Requests for what was answered
 * before do not count: a page that asks each second may never be without one on a busy machine.
 */
export async function settled(page: Page): Promise<void> {
  await page.waitForLoadState('load');
  const traffic = trafficOf.get(page);
  assert.ok(traffic);
  const { open, answered } = traffic;
  const until = performance.now() + patienceMs;
  for (;;) {
    await drawn(page);
    const missing = [...open].map((request) => request.url()).filter((url) => !answered.has(url));
    if (missing.length === 0) break;
    assert.ok(performance.now() < until, `no answer to ${missing.join(', ')}`);
  }
  // Not `waitForFunction` with a text: from its second look on that is `eval`, which the policy of the page forbids.
  await page.waitForSelector('[role=status]:not(:empty)', { state: 'detached' });
}

/** Resolves when the page has drawn what it knows, and sent what it asks for then. */
async function drawn(page: Page): Promise<void> {
  await page.evaluate(`(async () => {
    for (let frame = 0; frame < 3; frame += 1) {
      await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
    }
  })()`);
}
