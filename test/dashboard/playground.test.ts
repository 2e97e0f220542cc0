/** The page Playground in a real browser (issue 8.1). */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import type { Page } from 'playwright-core';
import { whenLoaded } from '../support/loaded.ts';
import { chatChunk, chatDone, chatFrame } from '../upstream/chat.ts';
import { replying } from '../upstream/reply.ts';
import { assertAccessible, assertFits } from './accessible.ts';
import { noBrowser } from './browser.ts';
import { oddText, xss, xssText } from './names.ts';
import { startStage, type Stage } from './stage.ts';
import { narrow } from './watched-page.ts';

const stage = await startStage();
if (stage === undefined) test(noBrowser, () => undefined);
else playground(stage);

/** Answers that are errors are what these tests are about; the browser notes each on its console. */
const refusal = (status: number): RegExp => new RegExp(`status of ${status} .*api/playground`);

function model(page: Page): ReturnType<Page['getByLabel']> {
  return page.getByLabel('Model', { exact: true });
}

async function say(page: Page, text: string): Promise<void> {
  await page.getByRole('textbox', { name: 'Message' }).fill(text);
  await page.keyboard.press('Enter');
}

function turns(page: Page, of: string): ReturnType<Page['locator']> {
  return page.locator(`article[data-role="${of}"]`);
}

const lastEvents = {
  chat: 'data: [DONE]',
  messages: 'message_stop',
  responses: 'event: response.completed',
} as const;

function playground(stage: Stage): void {
  describe('issue 8.1 playground', { timeout: 900_000 }, () => {
    const { chat, messages } = stage.upstreams;
    before(async () => {
      const body = { model: 'local/tiny', messages: [{ role: 'user', content: 'Load.' }] };
      const { status, text } = await whenLoaded(() => stage.call('/v1/chat/completions', body));
      assert.equal(status, 200, text);
    });
    after(() => stage.stop());

    for (const endpoint of ['chat', 'messages', 'responses'] as const) {
      test(`${endpoint}: local/tiny answers, with usage, cost and its row`, async () => {
        await stage.view('/playground', async (page) => {
          await page.getByLabel('Endpoint').selectOption(endpoint);
          await model(page).fill('local/tiny');
          await say(page, 'Say hello.');
          await page.getByText('done', { exact: true }).waitFor();
          await page.getByText('local/tiny', { exact: true }).last().waitFor();
          // From its row in the ledger, which is written behind the answer.
          await page.getByText('Answered by').waitFor();
          const id = await page.getByRole('link', { name: /^req_/ }).innerText();
          const { json } = await stage.gateway.admin('GET', `/api/calls/${id}`);
          assert.equal(json['key'], 'playground');
          assert.equal(json['stream'], true);
          const answer = await turns(page, 'assistant').innerText();
          assert.ok(answer.replace('Model', '').trim().length > 0, answer);
          await page.getByRole('tab', { name: 'Request' }).click();
          await page.getByText('"model": "local/tiny"').waitFor();
          await page.getByRole('tab', { name: /^Events/ }).click();
          await page.getByText(lastEvents[endpoint]).last().waitFor();
        });
      });
    }

    test('a stream is shown while it comes, and Stop ends it upstream', async () => {
      const more = Promise.withResolvers<void>();
      const script = chat.script('slow', {
        body: [
          chatFrame(chatChunk({ role: 'assistant', content: 'First ' })),
          chatFrame(chatChunk({ content: 'half.' })),
          more.promise,
          chatFrame(chatChunk({ content: ' Second half.' }, 'stop')),
          chatDone,
        ],
      });
      await stage.view('/playground', async (page) => {
        await model(page).fill('up-chat/slow');
        await say(page, 'Go on.');
        await page.getByText('First half.').waitFor();
        await page.getByText('running', { exact: true }).waitFor();
        await page.getByRole('button', { name: 'Stop' }).click();
        await page.getByText('stopped', { exact: true }).waitFor();
        assert.equal(await (await script.request(0)).closed, 'gateway');
        await page.getByText('First half.').waitFor();
      });
      more.resolve();
      const [row] = await stage.recorded('up-chat/slow', 1);
      assert.equal(row?.['outcome'], 'canceled');
    });

    test('Escape stops, and the next message has what was said before', async () => {
      const never = new Promise(() => undefined);
      const script = chat.script(
        'twice',
        { body: [chatFrame(chatChunk({ role: 'assistant', content: 'Half' })), never] },
        replying('chat', { text: 'Again.' }),
      );
      await stage.view('/playground', async (page) => {
        await model(page).fill('up-chat/twice');
        await say(page, 'One');
        await page.getByText('Half', { exact: true }).waitFor();
        await page.keyboard.press('Escape');
        await page.getByText('stopped', { exact: true }).waitFor();
        await say(page, 'Two');
        await page.getByText('Again.').waitFor();
      });
      assert.deepEqual((await script.request(1)).json['messages'], [
        { role: 'user', content: 'One' },
        { role: 'assistant', content: 'Half' },
        { role: 'user', content: 'Two' },
      ]);
    });

    test('issue 24 four models at a time: each has its own conversation, and its code', async () => {
      chat.script('left', replying('chat', { text: 'From the left.' }));
      messages.script('right', replying('messages', { text: 'From the right.' }));
      await stage.view('/playground', async (page) => {
        const more = page.getByRole('button', { name: 'Compare with another model' });
        for (let models = 2; models <= 4; models += 1) await more.click();
        await more.waitFor({ state: 'detached' });
        await page.getByText('fast, unless you choose one').last().waitFor();
        await page.getByRole('button', { name: 'Remove model 3' }).click();
        await page.getByRole('button', { name: 'Remove model 3' }).click();
        await model(page).fill('up-chat/left');
        await page.getByLabel('Model 2', { exact: true }).fill('up-messages/right');
        await page.getByRole('tab', { name: 'Code' }).last().click();
        await page.getByText('Has an example message').waitFor();
        await say(page, 'Who are you?');
        const left = page.getByRole('region', { name: 'up-chat/left' });
        const right = page.getByRole('region', { name: 'up-messages/right' });
        await left.getByText('From the left.').waitFor();
        const code = right.getByRole('region', { name: 'Python code' });
        await right.getByRole('button', { name: 'Python' }).click();
        assert.match((await code.textContent()) ?? '', /environ\['MODEL_GATEWAY_KEY'\][^]*Who are/);
        await right.getByRole('tab', { name: 'Conversation' }).click();
        await right.getByText('From the right.').waitFor();
        await right.getByText('Answered by').waitFor();
        await assertFits(page);
        await assertAccessible(page);
      });
    });

    for (const endpoint of ['chat', 'messages', 'responses'] as const) {
      test(`${endpoint}: tools go as JSON, the call is shown, its result is sent back`, async () => {
        const call = { id: 'call_1', name: 'get_weather', arguments: '{"city":"Ulm"}' };
        const script = chat.script(
          `tools-${endpoint}`,
          replying('chat', { calls: [call] }),
          replying('chat', { text: 'It is sunny.' }),
        );
        await stage.view('/playground', async (page) => {
          await page.getByLabel('Endpoint').selectOption(endpoint);
          await model(page).fill(`up-chat/tools-${endpoint}`);
          await page.getByText('Tools', { exact: true }).click();
          await page.getByRole('button', { name: 'Add an example tool' }).click();
          await say(page, 'How is the weather?');
          await page.getByText('get_weather({').waitFor();
          await page.getByLabel('Result of get_weather').fill('sunny');
          await page.getByRole('button', { name: 'Send the results' }).click();
          await page.getByText('It is sunny.').waitFor();
        });
        const sent = JSON.stringify((await script.request(1)).json['messages']);
        assert.match(sent, /call_1/);
        assert.match(sent, /sunny/);
        const tools = JSON.stringify((await script.request(0)).json['tools']);
        assert.match(tools, /"function":\{"name":"get_weather"/);
      });
    }

    test('images are sent as the endpoint wants them', async () => {
      // One red pixel.
      const png =
        'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==';
      const script = chat.script('eyes', replying('chat', { text: 'A red dot.' }));
      await stage.view('/playground', async (page) => {
        await model(page).fill('up-chat/eyes');
        await page.locator('input[type=file]').setInputFiles({
          name: `${xss('file')[0] ?? ''}.png`,
          mimeType: 'image/png',
          buffer: Buffer.from(png, 'base64'),
        });
        await page.getByRole('button', { name: /^Remove/ }).waitFor();
        await say(page, 'What is it?');
        await page.getByText('A red dot.').waitFor();
      });
      const sent = JSON.stringify((await script.request(0)).json['messages']);
      assert.ok(sent.includes(`data:image/png;base64,${png}`), sent.slice(0, 300));
    });

    test('issue 24 without streaming the whole answer is shown, formatted, and parameters are sent', async () => {
      const text =
        '# All at once\n\n- **one**\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n[x](javascript:1)';
      const script = chat.script('whole', replying('chat', { text, reasoning: 'It is *easy*.' }));
      await stage.view('/playground', async (page) => {
        await page.getByLabel('Stream the answer').uncheck();
        await model(page).fill('up-chat/whole');
        await page.getByLabel('Top P').fill('0.5');
        await page.getByLabel('Seed').fill('7');
        await page.getByLabel('Stop sequences').fill('END\n###');
        await page.getByLabel('Reasoning effort').selectOption('low');
        await say(page, 'Speak.');
        const said = turns(page, 'assistant');
        await said.getByRole('heading', { name: 'All at once' }).waitFor();
        await said.getByRole('cell', { name: '2' }).waitFor();
        await said.getByText('[x](javascript:1)').waitFor();
        await said.getByText('Reasoning').click();
        await said.locator('em').getByText('easy').waitFor();
        await page.getByText('Answered by').waitFor();
        await assertAccessible(page);
      });
      const { json } = await script.request(0);
      assert.deepEqual(
        [json['top_p'], json['seed'], json['stop'], json['reasoning_effort']],
        [0.5, 7, ['END', '###'], 'low'],
      );
    });

    test('S12 B65 what models and upstreams write is text', async () => {
      chat.script(
        'odd',
        replying('chat', {
          text: `${xssText('answer')} ${oddText}`,
          reasoning: xssText('thought'),
        }),
      );
      await stage.view('/playground', async (page) => {
        await model(page).fill('up-chat/odd');
        await say(page, `${xssText('prompt')} ${oddText}`);
        await page.getByText('done', { exact: true }).waitFor();
        const shown = await turns(page, 'assistant').innerText();
        for (const text of xss('answer')) assert.ok(shown.includes(text), text);
        for (const view of ['Request', /^Events/]) {
          await page.getByRole('tab', { name: view }).click();
        }
        await assertFits(page);
      });
    });

    test('a failure says what happened, and can be asked again', async () => {
      chat.script(
        'broken',
        { status: 400, body: JSON.stringify({ error: { message: `no ${xssText('error')}` } }) },
        replying('chat', { text: 'Now it works.' }),
      );
      await stage.view(
        '/playground',
        async (page) => {
          await model(page).fill('up-chat/broken');
          await say(page, 'Work!');
          await page.getByText('failed', { exact: true }).waitFor();
          await page.getByRole('alert').getByText(/img/).waitFor();
          await assertAccessible(page);
          await page.getByRole('button', { name: 'Ask again' }).click();
          await page.getByText('Now it works.').waitFor();
        },
        { expected: [refusal(400)] },
      );
    });

    test('a stream that is cut is said to be', async () => {
      chat.script('cut', {
        body: [chatFrame(chatChunk({ role: 'assistant', content: 'It began' }))],
        ending: 'reset',
      });
      await stage.view('/playground', async (page) => {
        await model(page).fill('up-chat/cut');
        await say(page, 'Begin.');
        await page.getByText('failed', { exact: true }).waitFor();
        await page.getByText('It began').waitFor();
      });
    });

    test('as a key: its scope holds, and the refusal is shown', async () => {
      chat.script('scoped', replying('chat', { text: 'Allowed.' }));
      const { id } = await stage.gateway.makeKey({ name: 'scoped', models: ['up-chat/scoped'] });
      await stage.view(
        '/playground',
        async (page) => {
          await page.getByLabel('Call as').selectOption(id);
          await model(page).fill('up-chat/scoped');
          await say(page, 'May I?');
          await page.getByText('Allowed.').waitFor();
          await model(page).fill('local/tiny');
          await say(page, 'And this?');
          await page.getByText('failed', { exact: true }).waitFor();
        },
        { expected: [refusal(404)] },
      );
      const [row] = await stage.recorded('up-chat/scoped', 1);
      assert.equal(row?.['key'], id);
    });

    test('settings that are no JSON or no number are named, and nothing is sent', async () => {
      const script = chat.script('unasked', replying('chat', { text: 'No.' }));
      await stage.view('/playground', async (page) => {
        await model(page).fill('up-chat/unasked');
        await page.getByText('Tools', { exact: true }).click();
        await page.getByLabel('Tools (JSON)').fill('[{');
        await say(page, 'Hello');
        await page
          .getByRole('alert')
          .getByText(/not JSON/)
          .waitFor();
        await page.getByLabel('Tools (JSON)').fill('');
        await page.getByLabel('Temperature').fill('warm');
        await page.getByRole('textbox', { name: 'Message' }).press('Enter');
        await page
          .getByRole('alert')
          .getByText(/not a number/)
          .waitFor();
        assert.equal(await page.getByRole('textbox', { name: 'Message' }).inputValue(), 'Hello');
      });
      assert.equal(script.requests.length, 0);
    });

    test('issue 24 Upstream shows what a target would get and what is lost, and sends nothing', async () => {
      const script = chat.script('explained', replying('chat', { text: 'No.' }));
      const { id } = await stage.gateway.makeKey({ name: 'elsewhere', models: ['other/*'] });
      await stage.view(
        '/playground',
        async (page) => {
          await page.getByLabel('Endpoint').selectOption('messages');
          await model(page).fill('up-chat/explained');
          await page.getByLabel('Top K').fill('40');
          await page.getByRole('textbox', { name: 'Message' }).fill(`Why? ${xssText('draft')}`);
          await page.getByRole('tab', { name: 'Upstream' }).click();
          await page.getByRole('region', { name: 'Body for up-chat/explained' }).waitFor();
          const body = page.getByRole('region', { name: 'Body for up-chat/explained' });
          await body.getByText(/"content": "Why\? </).waitFor();
          await page.getByRole('list', { name: 'Dropped or changed' }).getByText('top_k').waitFor();
          await assertFits(page);
          await assertAccessible(page);
          await page.getByLabel('Call as').selectOption(id);
          await page
            .getByRole('alert')
            .getByText(/explained/)
            .waitFor();
        },
        { viewport: narrow, dark: true, expected: [/status of 404 .*api\/explain/] },
      );
      assert.equal(script.requests.length, 0);
    });

    test('issue 24 a link has the conversation and no key; a prompt is saved, opened and deleted', async () => {
      const script = chat.script(
        'kept',
        replying('chat', { text: 'The first answer.' }),
        replying('chat', { text: 'The second one.' }),
      );
      const { id } = await stage.gateway.makeKey({ name: 'not shared' });
      let link = '';
      await stage.view('/playground', async (page) => {
        await page.getByLabel('Call as').selectOption(id);
        await model(page).fill('up-chat/kept');
        await page.getByLabel('System prompt').fill(xssText('kept'));
        await say(page, `Remember ${xssText('shared')}`);
        await page.getByText('The first answer.').waitFor();
        await page.getByRole('button', { name: 'Share' }).click();
        link = await page.getByRole('region', { name: 'Link' }).innerText();
        await assertAccessible(page);
        await page.keyboard.press('Escape');
        const message = page.getByRole('textbox', { name: 'Message' });
        await message.fill(randomBytes(20_000).toString('base64'));
        await page.getByRole('button', { name: 'Share' }).click();
        await page.getByText(/too long for a link/).waitFor();
      });
      const path = link.slice(stage.gateway.adminUrl.length);
      assert.ok(path.startsWith('/playground#share=') && !path.includes(id), path);
      await stage.view(path, async (page) => {
        await page.getByText('Opened from a link').waitFor();
        assert.equal(new URL(page.url()).hash, '');
        await turns(page, 'assistant').getByText('The first answer.').waitFor();
        assert.equal(await page.getByLabel('Call as').inputValue(), '');
        assert.equal(await page.getByLabel('System prompt').inputValue(), xssText('kept'));
        await page.getByRole('button', { name: 'Saved prompts' }).click();
        await page.keyboard.type('Mine');
        await page.keyboard.press('Enter');
        await page.getByRole('button', { name: 'Open Mine' }).waitFor();
        await assertAccessible(page);
        await page.reload();
        await page.getByText('No messages yet').waitFor();
        await page.getByRole('button', { name: 'Saved prompts' }).click();
        await page.getByRole('button', { name: 'Open Mine' }).click();
        await turns(page, 'assistant').getByText('The first answer.').waitFor();
        await say(page, 'And?');
        await page.getByText('The second one.').waitFor();
        await page.getByRole('button', { name: 'Saved prompts' }).click();
        await page.getByRole('button', { name: 'Delete Mine' }).click();
        await page.getByText('Nothing is saved yet.').waitFor();
      });
      const { json } = await script.request(1);
      const sent = (json['messages'] as readonly { readonly content: string }[]).map(
        ({ content }) => content,
      );
      assert.deepEqual(sent, [
        xssText('kept'),
        `Remember ${xssText('shared')}`,
        'The first answer.',
        'And?',
      ]);
    });

    test('issue 24 a call is made again: its conversation if its content is stored, else its model', async () => {
      const script = chat.script(
        'again',
        ...['One.', 'Two.', 'Three.'].map((text) => replying('chat', { text })),
      );
      const logged = await stage.gateway.makeKey({ name: 'logs', log_content: true });
      const ids: string[] = [];
      for (const key of [logged, stage.key]) {
        const reply = await stage.call(
          '/v1/messages',
          {
            model: 'up-chat/again',
            max_tokens: 50,
            system: 'Count.',
            messages: [{ role: 'user', content: 'Begin.' }],
          },
          { headers: { authorization: `Bearer ${key.key}` } },
        );
        ids.push(String(reply.headers['x-request-id']));
      }
      await stage.recorded('up-chat/again', 2);
      const [stored, bare] = ids;
      await stage.view(`/calls/${stored}`, async (page) => {
        await page.getByRole('link', { name: 'Again in the playground' }).click();
        await page.getByText('Send asks it again.').waitFor();
        await turns(page, 'user').getByText('Begin.').waitFor();
        assert.equal(await page.getByLabel('Endpoint').inputValue(), 'messages');
        await page.getByRole('button', { name: 'Send' }).click();
        await page.getByText('Three.').waitFor();
        assert.equal(new URL(page.url()).search, '');
        await page.goto(`${stage.gateway.adminUrl}/playground?call=${bare}`);
        await page.getByText('Its content is not stored').waitFor();
        assert.equal(await model(page).inputValue(), 'up-chat/again');
      });
      const first = await script.request(0);
      assert.deepEqual((await script.request(2)).json['messages'], first.json['messages']);
    });

    test('on a narrow screen, in the dark, by keyboard alone', async () => {
      chat.script('small', replying('chat', { text: `Narrow. ${'W'.repeat(600)}` }));
      await stage.view(
        '/playground',
        async (page) => {
          await model(page).fill('up-chat/small');
          await page.getByRole('textbox', { name: 'Message' }).focus();
          await page.keyboard.type('Hello');
          await page.keyboard.press('Shift+Enter');
          await page.keyboard.type('there');
          await page.keyboard.press('Enter');
          await page.getByText(/^Narrow\./).waitFor();
          await page.getByText('Answered by').waitFor();
          assert.match(await turns(page, 'user').innerText(), /Hello\nthere/);
          await assertFits(page);
          await assertAccessible(page);
        },
        { viewport: narrow, dark: true },
      );
    });
  });
}
