/** The page Setup in a real browser (issue 8.1). */
import assert from 'node:assert/strict';
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { until } from '../support/postgres-store.ts';
import { assertAccessible, assertFits } from './accessible.ts';
import { noBrowser } from './browser.ts';
import { settled } from './settled.ts';
import { startStage, type Stage } from './stage.ts';

const stage = await startStage();
if (stage === undefined) test(noBrowser, () => undefined);
else setup(stage);

function setup(stage: Stage): void {
  describe('issue 8.1 setup', { timeout: 900_000 }, () => {
    after(() => stage.stop());

    test('the lines for each client name this gateway and the chosen model', async () => {
      await stage.view('/setup', async (page) => {
        const lines = page.getByRole('region', { name: /^Snippet for/ });
        await page.getByText(`ANTHROPIC_BASE_URL=${stage.gateway.url}`).first().waitFor();
        await page.getByLabel('Model').fill('steady');
        for (const [client, words] of [
          ['opencode', `"baseURL": "${stage.gateway.url}/v1"`],
          ['OpenAI SDK (TypeScript, Python)', `OPENAI_BASE_URL=${stage.gateway.url}/v1`],
          ['Anthropic SDK (TypeScript, Python)', `ANTHROPIC_BASE_URL=${stage.gateway.url}`],
          ['curl', `${stage.gateway.url}/v1/chat/completions`],
        ] as const) {
          await page.getByLabel('Client', { exact: true }).selectOption({ label: client });
          await lines.getByText(words).first().waitFor();
          await lines
            .getByText(/steady/)
            .first()
            .waitFor();
        }
      });
    });

    test('the lines can be copied', async () => {
      await stage.view('/setup', async (page) => {
        await page.getByText(`ANTHROPIC_BASE_URL=${stage.gateway.url}`).first().waitFor();
        await page.getByRole('button', { name: /^Copy: Snippet/ }).click();
        await page.getByRole('button', { name: 'Copied' }).waitFor();
        const copied = await page.evaluate<string>('navigator.clipboard.readText()');
        assert.match(copied, /ANTHROPIC_AUTH_TOKEN=YOUR_KEY/);
      });
    });

    test('N3 each setting is shown with its origin, and can be searched', async () => {
      await stage.view('/setup', async (page) => {
        const table = page.getByRole('region', { name: 'Settings', exact: true });
        await table.getByText('models.steady').waitFor();
        await page.getByLabel('Filter settings').fill('steady');
        await until(
          async () => (await table.getByRole('row').count()) === 2,
          'one setting is left',
        );
        assert.match(await table.innerText(), /up-chat\/steady/);
        assert.match(await table.innerText(), /gateway\.yaml:\d+/);
        assert.doesNotMatch(await page.locator('body').innerText(), /upstream-chat-key/);
        await page.getByLabel('Filter settings').fill('there is no such setting');
        await page.getByText('No matching settings').waitFor();
      });
    });

    test('the health of the gateway and its store is shown', async () => {
      await stage.view('/setup', async (page) => {
        await page.getByText('ready', { exact: true }).first().waitFor();
        await page.getByText('Store', { exact: true }).waitFor();
        await page.getByText(stage.gateway.directory).first().waitFor();
        await page.getByText(/has stores, providers, memory/).waitFor();
      });
    });

    test('issue 24 the file is edited: problems with their line, what would change, applied; secrets stay out of the page', async () => {
      const file = join(stage.gateway.directory, 'gateway.yaml');
      const before = readFileSync(file, 'utf8');
      await stage.view('/setup', async (page) => {
        await page.getByRole('button', { name: 'Edit the file' }).click();
        const area = page.getByLabel(/^Text of .*gateway\.yaml$/);
        await area.waitFor();
        const text = await area.inputValue();
        assert.match(text, /<kept: providers\.up-chat\.api_key>/);
        assert.doesNotMatch(await page.content(), /upstream-chat-key/);
        const button = (name: string) => page.getByRole('button', { name });
        assert.ok(await button('Check').isDisabled(), 'nothing was changed');
        await assertAccessible(page);
        await area.fill(text.replace('up-chat/steady', 'nobody/steady'));
        await button('Check').click();
        const problem = page.getByRole('alert').getByRole('button', { name: /models\.steady/ });
        await problem.click();
        assert.equal(await page.evaluate<string>('document.activeElement.tagName'), 'TEXTAREA');
        assert.ok(await button('Write and apply').isDisabled());
        await area.fill(text.replace('up-chat/steady', 'up-chat/steadier'));
        await button('Check').click();
        const changes = page.getByRole('region', { name: 'Changes' });
        await changes.getByText('up-chat/steadier').waitFor();
        await assertFits(page);
        await assertAccessible(page);
        await button('Write and apply').click();
        await page.getByText(/was written and applied.*gateway\.yaml\.bak/).waitFor();
        assert.equal(
          readFileSync(file, 'utf8'),
          before.replace('up-chat/steady', 'up-chat/steadier'),
        );
        const settings = page.getByRole('region', { name: 'Settings', exact: true });
        await settings.getByText('up-chat/steadier').waitFor();
        await button('Close').click();
        assert.equal(await area.count(), 0);
      });
    });

    test('issue 24 typed text of the file is left only on purpose: links, "back", sign-out, and the tab', async () => {
      await stage.view(
        '/models',
        async (page) => {
          const link = (name: string) => page.getByRole('link', { name, exact: true });
          const question = page.getByRole('alertdialog', { name: 'Leave without saving?' });
          const answer = (name: string) => question.getByRole('button', { name }).click();
          await link('Setup').click();
          await page.getByRole('button', { name: 'Edit the file' }).click();
          const area = page.getByLabel(/^Text of .*gateway\.yaml$/);
          await area.press('End');
          await area.pressSequentially('# typed');
          const isKept = async (): Promise<void> => {
            await question.waitFor({ state: 'detached' });
            assert.match(await area.inputValue(), /# typed/);
            assert.match(page.url(), /\/setup/);
          };
          await link('Calls').click();
          await assertAccessible(page);
          await answer('Cancel');
          await isKept();
          await page.goBack();
          await answer('Cancel');
          await isKept();
          await page.getByRole('button', { name: 'Sign out' }).click();
          await answer('Cancel');
          await isKept();
          const asked = page.waitForEvent('dialog');
          await page.close({ runBeforeUnload: true });
          // `WatchedPage` answers that the page stays.
          assert.equal((await asked).type(), 'beforeunload');
          await isKept();
          await page.goBack();
          await answer('Leave');
          await page.waitForURL(/\/models$/);
          // Discarded text is not asked about again.
          await link('Setup').click();
          await page.getByRole('button', { name: 'Edit the file' }).click();
          assert.doesNotMatch(await area.inputValue(), /# typed/);
          await link('Calls').click();
          await page.waitForURL(/\/calls$/);
        },
        { expected: [/^dialog: $/] },
      );
    });

    test('issue 24 what is typed while the file is written stays in the editor', async () => {
      const file = join(stage.gateway.directory, 'gateway.yaml');
      await stage.view('/setup', async (page) => {
        await page.getByRole('button', { name: 'Edit the file' }).click();
        const area = page.getByLabel(/^Text of .*gateway\.yaml$/);
        const text = await area.inputValue();
        await area.fill(`${text}\n# written\n`);
        await page.getByRole('button', { name: 'Check' }).click();
        await page.getByText('Valid. No setting changes.').waitFor();
        const asked = Promise.withResolvers<void>();
        const answer = Promise.withResolvers<void>();
        await page.route('**/api/config/file', async (route) => {
          if (route.request().method() !== 'PUT') return route.fallback();
          asked.resolve();
          await answer.promise;
          await route.fallback();
        });
        await page.getByRole('button', { name: 'Write and apply' }).click();
        await asked.promise;
        await area.fill(`${text}\n# written\n# typed meanwhile\n`);
        const read = page.waitForResponse(
          (response) =>
            response.url().endsWith('/config/file') && response.request().method() === 'GET',
        );
        answer.resolve();
        await page.getByText(/was written and applied/).waitFor();
        await (await read).finished();
        await settled(page);
        assert.match(await area.inputValue(), /# written\n# typed meanwhile\n$/);
        await page.getByRole('button', { name: 'Discard changes' }).waitFor();
        assert.match(readFileSync(file, 'utf8'), /# written\n$/);
      });
    });

    test('issue 24 a file that changed meanwhile is not overwritten, and a read-only one says why', async () => {
      const file = join(stage.gateway.directory, 'gateway.yaml');
      await stage.view(
        '/setup',
        async (page) => {
          await page.getByRole('button', { name: 'Edit the file' }).click();
          const area = page.getByLabel(/^Text of .*gateway\.yaml$/);
          const text = await area.inputValue();
          await area.fill(text.replace('up-chat/steadier', 'up-chat/mine'));
          await page.getByRole('button', { name: 'Check' }).click();
          await page.getByRole('region', { name: 'Changes' }).waitFor();
          const theirs = readFileSync(file, 'utf8').replace('up-chat/steadier', 'up-chat/theirs');
          writeFileSync(file, theirs);
          await page.getByRole('button', { name: 'Write and apply' }).click();
          await page.getByText(/has changed since it was read/).waitFor();
          assert.match(await area.inputValue(), /up-chat\/mine/, 'what was typed stays');
          await page.getByRole('button', { name: /^Load the file again/ }).click();
          await until(
            async () => /up-chat\/theirs/.test(await area.inputValue()),
            'the file is loaded again',
          );
          assert.equal(readFileSync(file, 'utf8'), theirs);
          chmodSync(file, 0o444);
          await page.reload();
          await page.getByRole('button', { name: 'Edit the file' }).click();
          await page.getByText(/cannot be changed here: its mode allows no writing/).waitFor();
          await page.getByText(/a Git repository, a ConfigMap/).waitFor();
          chmodSync(file, 0o644);
        },
        { expected: [/status of 412 .*api\/config\/file/] },
      );
    });

    test('issue 24 diagnostics: versions, stores, providers, memory, clocks; saved as a file without secrets', async () => {
      await stage.view('/diagnostics', async (page) => {
        await page.getByText('Event loop delay', { exact: true }).waitFor();
        for (const words of [process.version, stage.gateway.directory, 'up-chat', 'below 2 s']) {
          await page.getByText(words).first().waitFor();
        }
        await page.getByText(/^Built on \d{4}-\d\d-\d\d/).waitFor();
        const download = page.waitForEvent('download');
        await page.getByRole('link', { name: 'Save as a file' }).click();
        const path = await (await download).path();
        const text = readFileSync(path, 'utf8');
        assert.match(text, /"tallies"/);
        assert.doesNotMatch(text, /upstream-chat-key/);
      });
    });

    test('issue 24 a build of three months ago says how to look for a newer one', async () => {
      await stage.view('/', async (page) => {
        await page.clock.setSystemTime(Date.now() + 100 * 86_400_000);
        await page.goto(`${stage.gateway.adminUrl}/diagnostics`);
        await page.getByText(/is more than 90 days old/).waitFor();
        await page.getByText('npm view model-gateway version').waitFor();
        await page.getByText(/behind this browser/).waitFor();
      });
    });

    test('a file that is not valid is refused with its line, and what is wrong can be read', async () => {
      const file = join(stage.gateway.directory, 'gateway.yaml');
      await stage.view(
        '/setup',
        async (page) => {
          await page.getByText('models.steady').waitFor();
          writeFileSync(file, 'providers: {}\nmodells: {}\n');
          await page.getByRole('button', { name: 'Reload the file' }).click();
          await page
            .getByRole('alert')
            .getByText(/gateway\.yaml:2/)
            .first()
            .waitFor();
        },
        { expected: [/status of 422 .*api\/reload/] },
      );
    });
  });
}
