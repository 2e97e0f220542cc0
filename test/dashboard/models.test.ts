/** Models, providers and model files as a person sees them, in a real Chromium. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { tinyModel } from '../../src/local-models/model-folder.ts';
import { errorIn, replying } from '../upstream/reply.ts';
import { until } from '../support/postgres-store.ts';
import { assertAccessible } from './accessible.ts';
import { noBrowser } from './browser.ts';
import { settled } from './settled.ts';
import { startStage, type Stage } from './stage.ts';
import { nodeEnvironment } from '../support/program.ts';

const started = await startStage({
  models: {
    split: {
      order: 'weighted',
      targets: [
        { target: 'up-chat/steady', weight: 3 },
        { target: 'up-messages/other', weight: 1 },
      ],
    },
  },
});
if (started === undefined) test(noBrowser, () => undefined);
else story(started);

function story(stage: Stage): void {
  describe('issue 8.1 models in the browser', { timeout: 900_000 }, () => {
    after(() => stage.stop());

    test('issue 8 models show their targets, health and prices', async () => {
      await stage.view('/models', async (page) => {
        await page.getByLabel('Find models').fill('fast');
        await page.getByRole('row').filter({ hasText: 'up-messages/spare' }).click();
        const sheet = page.getByRole('dialog', { name: 'fast' });
        await sheet.getByText('unknown').first().waitFor();
        await sheet.getByText('The price is unknown').first().waitFor();
        await page.keyboard.press('Escape');
        await page.getByLabel('Find models').fill('local/tiny');
        await page.getByRole('row').filter({ hasText: 'local/tiny' }).first().click();
        await page.getByRole('dialog').getByText('Context', { exact: true }).waitFor();
        await page.keyboard.press('Escape');
        await page.getByText('ships with the gateway').waitFor();
      });
    });

    test('issue 24 a weighted route is drawn by its weights, and a test call says whether a model answers', async () => {
      const { chat } = stage.upstreams;
      await stage.view('/models', async (page) => {
        const row = page.getByRole('row').filter({ hasText: 'split' });
        await row.getByText('up-chat/steady 75% + up-messages/other 25%').waitFor();
        await row.click();
        const sheet = page.getByRole('dialog', { name: 'split' });
        await sheet.getByText('weight: 75% of calls').waitFor();
        await sheet.getByText('Targets, asked by weight').waitFor();
        chat.script('steady', replying('chat', { text: 'Hello from upstream.' }));
        await page.goto(`${stage.gateway.adminUrl}/models?model=steady`);
        const steady = page.getByRole('dialog', { name: 'steady' });
        await steady.getByRole('button', { name: 'Test call' }).click();
        const result = steady.getByRole('region', { name: 'Result of the test call' });
        await result.getByText('200 ok').waitFor();
        await result.getByText('Hello from upstream.').waitFor();
        await assertAccessible(page);
        await result.getByRole('link', { name: 'Show the call' }).click();
        await page.waitForURL(/\/calls\/req_/);
      });
      await stage.view(
        '/models?model=steady',
        async (page) => {
          chat.script('steady', errorIn('chat', 400, 'not today'));
          const steady = page.getByRole('dialog', { name: 'steady' });
          await steady.getByRole('button', { name: 'Test call' }).click();
          const result = steady.getByRole('region', { name: 'Result of the test call' });
          await result.getByText('400', { exact: true }).waitFor();
          await result.getByText(/not today/).waitFor();
        },
        { expected: [/status of 400/] },
      );
    });

    test('issue 8.1 an address opens a model, "back" closes it, and one that there is not is reported', async () => {
      await stage.view('/models?model=steady', async (page) => {
        const sheet = page.getByRole('dialog', { name: 'steady' });
        await sheet.getByText('up-chat/steady').first().waitFor();
        await page.keyboard.press('Escape');
        await sheet.waitFor({ state: 'detached' });
        assert.equal(new URL(page.url()).search, '');
        await page.getByRole('row').filter({ hasText: 'up-messages/spare' }).click();
        await page.waitForURL(/\?model=fast$/);
        await page.goBack();
        await page.getByRole('dialog').waitFor({ state: 'detached' });
        await page.goto(`${stage.gateway.adminUrl}/models?model=${'W'.repeat(500)}`);
        await page.getByText('Model not found').waitFor();
      });
    });

    test('S4 issue 8.1 providers are shown with the names of their credentials, never a value', async () => {
      await stage.view('/models', async (page) => {
        await settled(page);
        const providers = page.getByRole('listitem').filter({ hasText: 'up-chat' });
        await providers.first().waitFor();
        for (const path of ['/models', '/models?model=steady', '/setup']) {
          await page.goto(stage.gateway.adminUrl + path);
          await settled(page);
          const html = await page.content();
          for (const secret of ['upstream-chat-key', 'upstream-messages-key', stage.key.key]) {
            assert.ok(!html.includes(secret), `${path} holds ${secret}`);
          }
        }
      });
    });

    test('G13 issue 8.1 a target that is out is shown as out while it is, and as well again afterwards', async () => {
      const { chat } = stage.upstreams;
      chat.script('steady', ...Array.from({ length: 5 }, () => errorIn('chat', 500, 'broken')));
      const body = { model: 'steady', messages: [{ role: 'user', content: 'hello' }] };
      for (let call = 0; call < 5; call += 1) await stage.call('/v1/chat/completions', body);
      await stage.view('/models?model=steady', async (page) => {
        const sheet = page.getByRole('dialog', { name: 'steady' });
        // After five seconds it waits for the call that tries it.
        const out = /^down: (until .*|the next call tries it) /;
        await sheet.getByText(out).waitFor();
        await page.locator('[data-row]').getByText(out).first().waitFor();
        chat.script('steady', replying('chat', { text: 'well again' }));
        await until(async () => {
          const { status } = await stage.call('/v1/chat/completions', body);
          return status === 200;
        }, 'the target answers again');
        // By itself: the page asks every few seconds.
        await sheet.getByText('healthy').first().waitFor();
      });
    });

    test('issue 8.1 a model file on its way is shown with how far it is, and when it was broken off', async () => {
      const content = readFileSync(tinyModel.path);
      const half = content.subarray(0, Math.floor(content.length / 2));
      const server = createServer((_request, response) => {
        response.writeHead(200, { 'content-length': content.length });
        response.write(half);
      });
      server.listen(0, '127.0.0.1');
      await once(server, 'listening');
      const { port } = server.address() as AddressInfo;
      const source = `http://127.0.0.1:${port}/Halfway.gguf`;
      const program = join(import.meta.dirname, '../../bin/model-gateway');
      const data = join(stage.gateway.directory, 'data');
      const pull = spawn(program, ['pull', source], {
        stdio: 'ignore',
        env: { ...nodeEnvironment, PATH: process.env['PATH'], MODEL_GATEWAY_DATA_DIR: data },
      });
      const ended = once(pull, 'close');
      try {
        await stage.view('/models', async (page) => {
          const files = page.getByRole('listitem').filter({ hasText: 'local/halfway' });
          await files.getByText('fetching', { exact: true }).waitFor();
          const bar = files.getByRole('progressbar');
          await page.waitForFunction(
            (element) => Number((element as { value?: number } | null)?.value) > 0,
            await bar.elementHandle(),
          );
          assert.equal(await bar.getAttribute('max'), String(content.length));
          pull.kill('SIGKILL');
          await ended;
          await files.getByText(/^interrupted/).waitFor();
          await files.getByText(/to resume/).waitFor();
        });
      } finally {
        pull.kill('SIGKILL');
        await ended;
        server.closeAllConnections();
        server.close();
      }
    });
  });
}
