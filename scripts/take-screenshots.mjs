// Takes pictures of every page of the dashboard, light and dark, into docs/screenshots/: on a gateway of its own with
// a seeded month of calls, in the machine's Chromium. Usage: node scripts/take-screenshots.mjs
import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { settled } from '../test/dashboard/settled.ts';
import { startStage } from '../test/dashboard/stage.ts';
import { narrow, wide } from '../test/dashboard/watched-page.ts';
import { monthConfig, seedStore } from '../test/support/seeded-month.ts';

const folder = join(import.meta.dirname, '../docs/screenshots');
const pages = [
  ['overview', '/?range=7d'],
  ['calls', '/calls'],
  ['errors', '/errors?range=30d'],
  ['keys', '/keys'],
  ['models', '/models'],
  ['playground', '/playground'],
  ['events', '/events'],
  ['audit', '/audit'],
  ['setup', '/setup'],
];

const stage = await startStage(monthConfig, (directory) => seedStore(directory, Date.now()));
if (stage === undefined) {
  process.stdout.write('no Chromium on this machine: no pictures taken\n');
  process.exit(1);
}
mkdirSync(folder, { recursive: true });
try {
  for (const [name, path] of pages) {
    await take(`${name}-light`, path, { viewport: wide });
    await take(`${name}-dark`, path, { viewport: wide, dark: true });
    await take(`${name}-narrow`, path, { viewport: narrow });
  }
} finally {
  await stage.stop();
}
// A third of the bytes, where that program is there.
const files = readdirSync(folder).map((file) => join(folder, file));
spawnSync('pngquant', [
  '--force',
  '--ext',
  '.png',
  '--skip-if-larger',
  '--speed',
  '1',
  '64',
  ...files,
]);
const bytes = readdirSync(folder).reduce((sum, file) => sum + statSync(join(folder, file)).size, 0);
process.stdout.write(`docs/screenshots: ${Math.round(bytes / 1024)} KiB\n`);

async function take(name, path, how) {
  await stage.view(
    path,
    async (page) => {
      await page.getByRole('heading', { level: 1 }).waitFor();
      if (path === '/playground') await chat(page);
      await settled(page);
      // Charts are a chunk of their own.
      for (const chart of await page.locator('figure').all())
        await chart.locator('canvas').waitFor();
      await page.mouse.move(0, 0);
      await page.screenshot({ path: join(folder, `${name}.png`), animations: 'disabled' });
    },
    how,
  );
}

async function chat(page) {
  await page.getByLabel('Model', { exact: true }).fill('local/tiny');
  await page.getByRole('textbox', { name: 'Message' }).fill('Say hello.');
  await page.keyboard.press('Enter');
  await page.getByText('Answered by').waitFor();
}
