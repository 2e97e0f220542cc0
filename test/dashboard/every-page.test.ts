/** What holds for every page: it complains of nothing, fits, reads well, and runs nothing of what it shows. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { until } from '../support/postgres-store.ts';
import { assertAccessible, assertFits } from './accessible.ts';
import { noBrowser } from './browser.ts';
import { xssText } from './names.ts';
import { settled } from './settled.ts';
import { startStage, type Stage } from './stage.ts';
import { stretchedName, stretchNames } from './stretched.ts';
import { narrow, wide } from './watched-page.ts';
import { playWorld, worldConfig, type World } from './world.ts';

/** Address and heading. */
export const pages = [
  ['/', 'Overview'],
  ['/calls', 'Calls'],
  ['/errors', 'Errors'],
  ['/keys', 'Keys'],
  ['/models', 'Models'],
  ['/playground', 'Playground'],
  ['/events', 'Events'],
  ['/audit', 'Audit log'],
  ['/diagnostics', 'Diagnostics'],
  ['/setup', 'Setup'],
  ['/sessions', 'Sessions'],
] as const;

const looks = [
  ['wide and light', { viewport: wide, dark: false }],
  ['narrow and dark', { viewport: narrow, dark: true }],
] as const;

const stage = await startStage(worldConfig);
if (stage === undefined) test(noBrowser, () => undefined);
else withWorld(stage);

function withWorld(stage: Stage): void {
  describe('S12 B65 N5 issue 8.1: every page', { timeout: 900_000 }, () => {
    let world: World;
    before(async () => {
      world = await playWorld(stage);
    });
    after(() => stage.stop());

    // One page of the browser goes to all addresses: a fresh one each costs twice the time.
    for (const [look, how] of looks) {
      test(`no complaint, nothing serious by axe-core, nothing too wide, ${look}`, async (t) => {
        await stage.view(
          '/no-such-page',
          async (page, { problems }) => {
            for (const [path, heading] of pages) {
              await t.test(heading, async () => {
                await page.goto(stage.gateway.adminUrl + path);
                await page.getByRole('heading', { level: 1, name: heading }).waitFor();
                await settled(page);
                await assertFits(page);
                await assertAccessible(page);
                const scheme = await page.evaluate<string>(
                  `getComputedStyle(document.body).backgroundColor`,
                );
                assert.equal(isDark(scheme), how.dark, scheme);
                assert.deepEqual(problems, []);
              });
            }
          },
          how,
        );
      });
    }

    for (const [look, how] of looks) {
      test(`N5 every page and every window over it, with names of 500 characters, ${look}`, async () => {
        const { json } = await stage.gateway.admin('GET', '/api/keys?text=key-WWW');
        const [long] = json['keys'] as readonly { readonly id: string }[];
        const { json: made } = await stage.gateway.admin('GET', '/api/calls?limit=1000');
        const called = (
          made['calls'] as readonly { readonly id: string; readonly model: string }[]
        ).find(({ model }) => model.includes('WWW'));
        assert.ok(long !== undefined && called !== undefined);
        const team = encodeURIComponent(xssText('team').slice(0, 200));
        const ofModel = `model=${stretchedName('model')}`;
        const dialogs = '[role=dialog], [role=alertdialog]';
        const views = [
          ['/?range=24h&by=key', 0],
          [`/calls?${ofModel}&user=${stretchedName('user')}`, 0],
          [`/calls/${called.id}`, 1],
          [`/keys?key=${world.oddKey}`, 1],
          [`/keys?key=${long.id}`, 1],
          [`/keys?key=${long.id}`, 2, 'Change'],
          [`/keys?key=${long.id}`, 2, 'Rotate'],
          [`/keys?key=${long.id}`, 2, 'Revoke'],
          [`/keys?team=${team}`, 1],
          [`/keys?team=${stretchedName('team')}`, 1],
          ['/keys', 1, 'Create key'],
          ['/keys', 1, 'Set up a team'],
          [`/models?${ofModel}`, 1],
          ['/playground', 0],
          ['/setup', 0],
        ] as const;
        await stage.view(
          '/no-such-page',
          async (page) => {
            await stretchNames(page);
            for (const [path, windows, button] of views) {
              await page.goto(stage.gateway.adminUrl + path);
              await settled(page);
              if (button !== undefined) {
                await page.getByRole('button', { name: button }).first().click();
              }
              await until(
                async () => (await page.locator(dialogs).count()) === windows,
                `${path} has ${windows} windows`,
              );
              await settled(page);
              await assertFits(page);
              await assertAccessible(page);
            }
            // A page asks until it is closed.
            await page.unrouteAll({ behavior: 'wait' });
          },
          how,
        );
      });
    }

    test('S12 the page of a call whose every text is the corpus runs nothing of it', async () => {
      const { json } = await stage.gateway.admin('GET', `/api/calls?key=${world.oddKey}&limit=20`);
      const calls = json['calls'] as readonly { readonly id: string }[];
      assert.ok(calls.length >= 10);
      for (const { id } of calls.slice(0, 4)) {
        await stage.view(`/calls/${id}`, async (page) => {
          await page.getByRole('dialog').getByText(id).first().waitFor();
          await settled(page);
          await assertFits(page);
        });
      }
    });

    test('an address that there is not says so, and where to go', async () => {
      await stage.view('/no-such-page', async (page) => {
        await page
          .getByRole('link', { name: /overview/i })
          .last()
          .waitFor();
        await settled(page);
        await assertAccessible(page);
      });
    });
  });
}

/** Of `rgb(15, 18, 22)`. */
function isDark(color: string): boolean {
  const channels = color.match(/[\d.]+/g)?.map(Number) ?? [];
  assert.ok(channels.length >= 3, color);
  return channels.slice(0, 3).every((channel) => channel < 128);
}
