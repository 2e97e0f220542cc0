/**
 * A real Chromium of this machine, headless: a package of the system, or the program that `CHROMIUM` names. Nothing
 * is downloaded. Where there is none, tests say so:
 * `const stage = await startStage(); if (stage === undefined) test(noBrowser, () => {});`
 */
import { chromium, type Browser } from 'playwright-core';
import { findProgram } from '../support/server-process.ts';

export const noBrowser =
  'Chromium is not on this machine (apt-get install chromium-headless-shell): the tests of the dashboard are left out';

/** Those without windows first: a page takes half the CPU time there. */
const programs = [
  'chromium-headless-shell',
  'chrome-headless-shell',
  'chromium',
  'chromium-browser',
  'google-chrome',
  'google-chrome-stable',
];

/** The program, or undefined where there is none. */
function findBrowser(): string | undefined {
  const named = process.env['CHROMIUM'];
  if (named !== undefined && named !== '') return named;
  return findProgram(programs);
}

/**
 * Undefined where no browser is installed.
 * @param more further options of its command line
 */
export async function openBrowser(more: readonly string[] = []): Promise<Browser | undefined> {
  const executablePath = findBrowser();
  if (executablePath === undefined) return undefined;
  // Its sandbox does not start as root, and small /dev/shm of containers ends pages.
  const asRoot = process.getuid?.() === 0 ? ['--no-sandbox'] : [];
  const args = [...asRoot, '--disable-dev-shm-usage', '--disable-gpu', ...more];
  return chromium.launch({ executablePath, args, chromiumSandbox: false, timeout: 500_000 });
}
