/** Names of 500 characters (N5): longer than the gateway takes, so that its real answers are stretched on their way. */
import type { Page } from 'playwright-core';
import { longName } from './names.ts';

const stretchedLength = 500;
/** Of one kind each, as `world.ts` makes them. */
const kinds = { model: 256, key: 200, team: 200, owner: 200, tag: 100, user: 500 } as const;

export type LongKind = keyof typeof kinds;

/** As long as the gateway takes it. */
export function longest(kind: LongKind): string {
  return longName(kind, kinds[kind]);
}

/** As the page sees it. */
export function stretchedName(kind: LongKind): string {
  return longName(kind, stretchedLength);
}

/** From now on the page sees the longest names of the world with 500 characters, and asks for them as such. */
export async function stretchNames(page: Page): Promise<void> {
  await page.route('**/api/**', async (route) => {
    const url = renamed(route.request().url(), stretchedName, longest);
    const response = await route.fetch({ url });
    await route.fulfill({
      response,
      body: renamed(await response.text(), longest, stretchedName),
    });
  });
}

function renamed(
  text: string,
  from: (kind: LongKind) => string,
  to: (kind: LongKind) => string,
): string {
  const each = Object.keys(kinds) as readonly LongKind[];
  return each.reduce((changed, kind) => changed.replaceAll(from(kind), to(kind)), text);
}
