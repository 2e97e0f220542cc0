/**
 * F-1, B60, B61: an address into the gateway's own network is refused in every member that may hold one, whatever reads
 * the body: on the event loop, by its skeleton, or in the worker thread. Which members and spellings there are is tried in `unit/dialects/body-media.test.ts`.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { JsonObject } from '../../src/json/value.ts';
import { isInSample } from '../support/depth.ts';
import { send } from '../support/http.ts';
import { pairs, upstreamDialects, type ClientDialect } from '../support/dialects.ts';
import { ask, startRig, type Rig } from '../support/rig.ts';
import { requestBody } from '../support/requests.ts';
import { replying } from '../upstream/reply.ts';
import { messagesWith } from './bad-row.ts';

interface Place {
  readonly path: string;
  body(text: string): JsonObject;
}

function part(value: JsonObject): JsonObject {
  return messagesWith({ role: 'user', content: [{ type: 'text', text: 'See' }, value] });
}

const inPart = 'messages.0.content.1';
const places: { readonly [D in ClientDialect]: readonly Place[] } = {
  chat: [
    ...['image_url', 'video_url', 'audio_url', 'document_url'].map((name) => ({
      path: `${inPart}.${name}.url`,
      body: (url: string) => part({ type: name, [name]: { url } }),
    })),
    {
      path: `${inPart}.file.file_data`,
      body: (text) => part({ type: 'file', file: { filename: 'a.pdf', file_data: text } }),
    },
    {
      path: `${inPart}.input_audio.data`,
      body: (data) => part({ type: 'input_audio', input_audio: { data, format: 'wav' } }),
    },
    { path: 'tools.0.server_url', body: (url) => ({ tools: [{ type: 'mcp', server_url: url }] }) },
    {
      path: `${inPart}.fileData.fileUri`,
      body: (fileUri) => part({ type: 'media', fileData: { fileUri } }),
    },
    {
      path: `${inPart}.imageURLs[0]`,
      body: (url) => part({ type: 'media', imageURLs: [url] }),
    },
    {
      path: `${inPart}.file.file_id`,
      body: (url) => part({ type: 'file', file: { file_id: url } }),
    },
    {
      path: 'plugins.0.parameters.url',
      body: (url) => ({ plugins: [{ id: 'fetch', parameters: { url } }] }),
    },
  ],
  messages: [
    {
      path: `${inPart}.source.url`,
      body: (url) => part({ type: 'image', source: { type: 'url', url } }),
    },
    {
      path: `${inPart}.source.url`,
      body: (url) => part({ type: 'document', source: { type: 'url', url } }),
    },
    {
      path: 'mcp_servers.0.url',
      body: (url) => ({ mcp_servers: [{ type: 'url', name: 'm', url }] }),
    },
  ],
  responses: [
    {
      path: 'input.0.content.1.image_url',
      body: (url) => part({ type: 'input_image', image_url: url }),
    },
    {
      path: 'input.0.content.1.file_url',
      body: (url) => part({ type: 'input_file', file_url: url }),
    },
    {
      path: 'input.0.content.1.file_data',
      body: (text) => part({ type: 'input_file', filename: 'a.pdf', file_data: text }),
    },
    {
      path: 'input.0.output.0.image_url',
      body: (url) =>
        messagesWith({
          type: 'function_call_output',
          call_id: 'a',
          output: [{ type: 'input_image', image_url: url }],
        }),
    },
    { path: 'tools.0.server_url', body: (url) => ({ tools: [{ type: 'mcp', server_url: url }] }) },
  ],
};
const insiders = [
  ' http://127.0.0.1/a',
  'ht\ttp://localhost/a',
  ' file:///etc/passwd',
  '//127.0.0.1/x',
];

let rig: Rig;
before(async () => {
  rig = await startRig();
});
after(() => rig.stop());

const sizes = { short: 0, outlined: 20_000, long: 1_200_000 } as const;

for (const [i, { client: dialect, upstream }] of pairs.entries()) {
  for (const [j, size] of (['short', 'outlined', 'long'] as const).entries()) {
    describe(`${dialect} on ${upstream}, ${size}`, () => {
      // `npm test` plays one in thirteen, at another size with the next pair and the next path.
      for (const { path, body } of places[dialect].filter((_, k) => isInSample(i + j + k, 13))) {
        test(`F-1 ${path}`, async () => {
          const { model, script } = rig.play(upstream, replying(upstream, { text: 'Hello' }));
          for (const text of insiders) {
            const more = { ...body(text), padding: 'x'.repeat(sizes[size]) };
            const reply = await ask(
              rig,
              dialect,
              requestBody(dialect, { model, stream: false, more }),
            );
            assert.equal(reply.status, 400, `${text}: ${reply.text}`);
            const spelled = dialect !== 'messages' ? path.replace(/\.(\d+)/g, '[$1]') : path;
            assert.ok(reply.text.includes(spelled), reply.text);
          }
          assert.equal(script.requests.length, 0, 'no upstream call');
        });
      }
    });
  }
}

test('F-1 a count of tokens is refused alike', async () => {
  const { model } = rig.play('messages', { body: '{"input_tokens":7}' });
  const more = part({ type: 'image', source: { type: 'url', url: ' http://127.0.0.1/' } });
  const { max_tokens: _, ...asked } = requestBody('messages', { model, stream: false, more });
  const reply = await send(`${rig.gateway.url}/v1/messages/count_tokens`, asked);
  assert.equal(reply.status, 400, reply.text);
});

test('D4 a file at an address reaches a messages model as a document at that address', async () => {
  const { model, script } = rig.play('messages', replying('messages', { text: 'Hello' }));
  const url = 'https://example.com/papers/a.pdf';
  const file = { type: 'file', file: { filename: 'a.pdf', file_data: url } };
  const reply = await ask(
    rig,
    'chat',
    requestBody('chat', { model, stream: false, more: part(file) }),
  );
  assert.equal(reply.status, 200, reply.text);
  assert.ok(script.requests[0]?.body.includes(`"source":{"type":"url","url":"${url}"}`));
});

test('D4 it is relayed to a chat model as it is', async () => {
  const { model, script } = rig.play('chat', replying('chat', { text: 'Hello' }));
  const url = 'https://example.com/papers/a.pdf';
  const file = { type: 'file', file: { filename: 'a.pdf', file_data: url } };
  await ask(rig, 'chat', requestBody('chat', { model, stream: false, more: part(file) }));
  assert.ok(script.requests[0]?.body.includes(`"file_data":"${url}"`));
});

for (const upstream of upstreamDialects) {
  test(`D4 data that is no base64 is refused, ${upstream} upstream`, async () => {
    const { model, script } = rig.play(upstream, replying(upstream, { text: 'Hello' }));
    for (const data of ['see a.pdf', 'data:application/pdf;base64,%%%%', 'JVBERi0==']) {
      const more = part({ type: 'file', file: { filename: 'a.pdf', file_data: data } });
      const reply = await ask(rig, 'chat', requestBody('chat', { model, stream: false, more }));
      assert.equal(reply.status, 400, reply.text);
      assert.match(reply.text, /messages\[0\]\.content\[1\]\.file\.file_data/);
    }
    assert.equal(script.requests.length, 0);
  });
}
