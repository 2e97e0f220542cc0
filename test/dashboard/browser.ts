/**
 * A real Chromium of this machine, headless: Debian's package, or whatever `CHROMIUM` names. Nothing is
 * downloaded. Where there is none, tests say so:
 * `const stage = await startStage(); if (stage === undefined) test(noBrowser, () => {});`
 */
import { chromium, type Browser } from 'playwright-core';
import { findProgram } from '../support/server-process.ts';

export const noBrowser =
  'Chromium is not on this machine (apt-get install chromium): the tests of the dashboard are left out';

/** The program, or undefined where there is none. */
export function findBrowser(): string | undefined {
  const named = process.env['CHROMIUM'];
  if (named !== undefined && named !== '') return named;
  return findProgram(['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable']);
}

/** Undefined where no browser is installed. */
export async function openBrowser(): Promise<Browser | undefined> {
  const executablePath = findBrowser();
  if (executablePath === undefined) return undefined;
  // Its sandbox does not start as root, and small /dev/shm of containers ends pages.
  const asRoot = process.getuid?.() === 0 ? ['--no-sandbox'] : [];
  const args = [...asRoot, '--disable-dev-shm-usage', '--disable-gpu'];
  return chromium.launch({ executablePath, args, chromiumSandbox: false, timeout: 500_000 });
}
