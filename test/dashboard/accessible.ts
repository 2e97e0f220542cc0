/** Accessibility of a page as it is now, by axe-core: what is serious or critical fails. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';

const axe = readFileSync(
  join(import.meta.dirname, '../../node_modules/axe-core/axe.min.js'),
  'utf8',
);

interface Violation {
  readonly id: string;
  readonly impact: string;
  readonly help: string;
  readonly nodes: readonly { readonly target: readonly string[]; readonly summary: string }[];
}

/** WCAG 2.1 AA, contrast included. */
export async function assertAccessible(page: Page): Promise<void> {
  // Evaluated by the debugger, past the policy that keeps the page's own scripts in bounds.
  await page.evaluate(axe);
  const found = await page.evaluate<readonly Violation[]>(`axe.run(document, {
    runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa'],
    resultTypes: ['violations'],
  }).then(({ violations }) => violations.map(({ id, impact, help, nodes }) => ({
    id, impact, help,
    nodes: nodes.map(({ target, failureSummary }) => ({
      target: target.map(String), summary: failureSummary,
    })),
  })))`);
  const serious = found.filter(({ impact }) => impact === 'serious' || impact === 'critical');
  assert.deepEqual(serious, [], 'axe-core finds nothing serious');
}

/** Nothing is wider than the window: long names wrap or are cut (N5). */
export async function assertFits(page: Page): Promise<void> {
  const wide = await page.evaluate<readonly string[]>(`(() => {
    const { scrollWidth, clientWidth } = document.documentElement;
    if (scrollWidth <= clientWidth) return [];
    return [...document.querySelectorAll('body *')]
      .filter((each) => each.getBoundingClientRect().right > clientWidth + 1)
      .slice(0, 5)
      .map((each) => each.tagName + '.' + each.className + ': ' + each.textContent.slice(0, 40));
  })()`);
  assert.deepEqual(wide, [], 'nothing is wider than the window');
}
