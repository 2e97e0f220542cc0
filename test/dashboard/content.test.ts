/** What a call asked and was answered, as a person sees it in a real Chromium (docs/user/content.md). */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { until } from '../support/postgres-store.ts';
import { requestBody } from '../support/requests.ts';
import { errorIn, replying } from '../upstream/reply.ts';
import { assertAccessible, assertFits } from './accessible.ts';
import { noBrowser } from './browser.ts';
import { oddText, xssText } from './names.ts';
import { settled } from './settled.ts';
import { startStage, type Stage } from './stage.ts';
import { narrow, wide } from './watched-page.ts';

const started = await startStage();
if (started === undefined) test(noBrowser, () => undefined);
else story(started);

const secret = `sk-proj-${'aB3'.repeat(12)}`;

function story(stage: Stage): void {
  describe('issue 8.1 content of calls in the browser', { timeout: 900_000 }, () => {
    let key: { readonly id: string; readonly key: string };
    before(async () => {
      key = await stage.gateway.makeKey({ name: 'logs its content', log_content: true });
      stage.upstreams.chat.script('primary', errorIn('chat', 503, `no room ${xssText('error')}`));
      stage.upstreams.messages.script(
        'spare',
        replying('messages', { text: `Said: ${xssText('answer')} ${oddText} ${secret}` }),
      );
      stage.upstreams.chat.script('steady', replying('chat', { text: 'All is well.' }));
    });
    after(() => stage.stop());

    /** Makes a call and gives its id. */
    async function called(model: string, stream: boolean, as?: string): Promise<string> {
      const more = { messages: [{ role: 'user', content: `Asked: ${xssText('prompt')}` }] };
      const { headers } = await stage.call(
        '/v1/chat/completions',
        requestBody('chat', { model, stream, more }),
        {
          headers: {
            ...(as === undefined ? {} : { authorization: `Bearer ${as}` }),
            'user-agent': xssText('agent').slice(0, 500),
          },
        },
      );
      return String(headers['x-request-id']);
    }

    for (const [look, how] of [
      ['wide and light', { viewport: wide, dark: false }],
      ['narrow and dark', { viewport: narrow, dark: true }],
    ] as const) {
      test(`S12 S4 request, answer and failures are shown as text, without keys: ${look}`, async () => {
        const id = await called('fast', true, key.key);
        await stage.view(
          `/calls/${id}`,
          async (page) => {
            const dialog = page.getByRole('dialog');
            const text = async (name: string): Promise<string> =>
              (await dialog.getByRole('region', { name, exact: true }).textContent()) ?? '';
            const answer = dialog.getByRole('article').filter({ hasText: 'Said: ' });
            assert.match(
              (await answer.textContent()) ?? '',
              /^AnswerSaid: <img\/src=.*\[redacted\]/s,
            );
            const question = dialog.getByRole('article').filter({ hasText: 'Asked: ' });
            assert.match((await question.textContent()) ?? '', /^UserAsked: <img\/src=/);
            await settled(page);
            await assertFits(page);
            await assertAccessible(page);
            await dialog.getByRole('tab', { name: 'To the upstream' }).click();
            await dialog
              .getByText(/members? differs? from/)
              .filter({ visible: true })
              .click();
            const differences = dialog
              .getByRole('list', { name: 'Differences' })
              .filter({ visible: true });
            assert.match((await differences.textContent()) ?? '', /model"fast""(?:primary|spare)"/);
            await assertFits(page);
            await assertAccessible(page);
            await dialog.getByRole('tab', { name: 'Raw' }).click();
            await dialog.getByRole('region', { name: 'request body' }).waitFor();
            assert.match(await text('request body'), /Asked: <img\/src=/);
            assert.match(await text('answer'), /Said: <img\/src=/);
            assert.match(await text('answer'), /\[redacted\]/);
            assert.match(await text('answer of up-chat/primary'), /no room <img\/src=/);
            await dialog.getByText(/^Request headers/).click();
            await dialog.getByText('not stored').first().waitFor();
            const command = await text('curl command');
            assert.match(command, /\$MODEL_GATEWAY_KEY/);
            assert.match(command, /Asked: <img\/src=/);
            const all = (await dialog.textContent()) ?? '';
            assert.ok(!all.includes(secret) && !all.includes(key.key));
            await settled(page);
            await assertFits(page);
            await assertAccessible(page);
          },
          how,
        );
      });
    }

    test('where content is not logged it says so, and how to switch it on', async () => {
      const id = await called('steady', false);
      await stage.view(`/calls/${id}`, async (page) => {
        const dialog = page.getByRole('dialog');
        await dialog.getByText('the key of this call does not log content').waitFor();
        await dialog.getByText('keys update ID --log-content').waitFor();
        const command = dialog.getByRole('region', { name: 'curl command' });
        assert.match((await command.textContent()) ?? '', /your prompt/);
        await settled(page);
        await assertAccessible(page);
      });
    });

    test('it is switched on in the form of a key, and what was kept is removed from its sheet', async () => {
      const made = await stage.gateway.makeKey({ name: 'quiet until now' });
      await stage.view('/keys', async (page) => {
        await page.getByRole('row').filter({ hasText: 'quiet until now' }).click();
        const sheet = page.getByRole('dialog');
        await sheet.getByText('not logged').waitFor();
        await sheet.getByRole('button', { name: 'Change' }).click();
        const form = page.getByRole('dialog').last();
        await form.getByLabel('Log content').check();
        await assertAccessible(page);
        await form.getByRole('button', { name: 'Save' }).click();
        await sheet.getByText('logged', { exact: true }).waitFor();
        const id = await called('steady', false, made.key);
        const path = `/api/calls/${id}/content`;
        const state = async () => (await stage.gateway.admin('GET', path)).json['state'];
        await until(async () => (await state()) === 'kept', 'the content is stored');
        await sheet.getByRole('button', { name: 'Remove stored content' }).click();
        await page.getByRole('button', { name: 'Remove content' }).click();
        await sheet.getByText('Removed the content of 1 call.').waitFor();
        assert.equal(await state(), 'absent');
      });
    });
  });
}
