/** Waiting for what a page fetches, without waiting for a time. */
import type { Page } from 'playwright-core';

/** Resolves when nothing is on its way and nothing says that it loads. Pages that poll come to rest in between. */
export async function settled(page: Page): Promise<void> {
  await page.waitForLoadState('networkidle');
  // Not `waitForFunction` with a text: from its second look on that is `eval`, which the policy of the page forbids.
  await page.waitForSelector('[role=status]:not(:empty)', { state: 'detached' });
}
