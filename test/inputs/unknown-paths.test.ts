/** C8 E7: what a 404 says of paths that clients ask for: which API that is, and what is there instead. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { clientDialects } from '../../src/dialects/registry.ts';
import { compactingPaths, generatingPaths, notFound, sidePaths } from '../../src/http/paths.ts';
import { send } from '../support/http.ts';
import { assertErrorBody } from '../support/legality.ts';
import { startRig, type Rig } from '../support/rig.ts';

let rig: Rig;
before(async () => {
  rig = await startRig();
});
after(() => rig.stop());

const chat = /POST \/v1\/chat\/completions, POST \/v1\/messages and POST \/v1\/responses/;

const rows: readonly (readonly [path: string, ...said: readonly RegExp[]])[] = [
  ['/responses', /lacks \/v1; with it the path is \/v1\/responses\./],
  ['/responses/compact', /lacks \/v1; with it the path is \/v1\/responses\/compact\./],
  ['/responses/resp_1/input_items', /lacks \/v1; with it the path is \/v1\/responses\/resp_1\//],
  ['/v1/responses/resp_1/', /\/v1\/responses\/resp_1, without a slash at its end/],
  [
    '/responses/resp_1/items',
    /POST \/v1\/responses\/compact, POST \/v1\/responses\/input_tokens/,
    /GET and DELETE \/v1\/responses\/ID/,
  ],
  ['/v1/conversations', /keeps no files, conversations/, chat],
  ['/v1/completions', /plain text are not offered/, chat],
  ['/v1/complete', /plain text are not offered/, chat],
  ['/v1/embeddings', /Only models that chat/, chat],
  ['/v1/images/generations', /Only models that chat/, chat],
  ['/v1/audio/speech', /Only models that chat/, chat],
  ['/v1/moderations', /Only models that chat/, chat],
  ['/v1/files', /keeps no files/, chat],
  ['/v1/fine_tuning/jobs', /keeps no files, conversations or jobs/, chat],
  ['/v1/threads', /keeps no files, conversations/, chat],
  ['/v1/batches', /Batches are not offered/, chat],
  ['/v1/messages/batches', /Message batches are not offered/, /POST \/v1\/messages\./],
  ['/v1/messages/batches/msgbatch_1', /Message batches are not offered/],
  ['/v1/chat/completions/chatcmpl_1', /Kept chat completions/],
  ['/chat/completions', /lacks \/v1; with it the path is \/v1\/chat\/completions\./],
  ['/messages', /lacks \/v1; with it the path is \/v1\/messages\./],
  ['/messages/count_tokens', /the path is \/v1\/messages\/count_tokens\./],
  ['/models', /lacks \/v1; with it the path is \/v1\/models\./],
  ['/v1/v1/v1/messages', /several times.*The path is \/v1\/messages\./],
  ['/v1/chat/completions/', /\/v1\/chat\/completions, without a slash at its end/],
  ['/v1//chat/completions', /The path is \/v1\/chat\/completions: .* must not end in a slash/],
  ['/v1//responses/resp_1//input_items', /The path is \/v1\/responses\/resp_1\/input_items: /],
  ['/v1/messages/', /\/v1\/messages, without a slash at its end/],
  ['/api/chat', /Ollama’s own API/, chat],
  ['/api/tags', /Ollama’s own API/, chat],
  ['/v1beta/models/gemini-x:generateContent', /Gemini’s own API/, chat],
  ['/openai/deployments/x/chat/completions', /Azure OpenAI/, chat],
  ['/model/x/converse', /Amazon’s own API/, chat],
  ['/health', /no endpoint \/health\. The probes are GET \/healthz and GET \/readyz\./],
  ['/v1/nothing', /no endpoint \/v1\/nothing\. The gateway offers/, chat],
  ['/elsewhere', /no endpoint \/elsewhere\. The gateway offers/, chat],
];

for (const [path, ...said] of rows) {
  for (const speaks of ['chat', 'messages'] as const) {
    test(`C8 ${path}, to a client of ${speaks}`, async () => {
      const headers: { [name: string]: string } =
        speaks === 'messages' ? { 'anthropic-version': '2023-06-01' } : {};
      const reply = await send(`${rig.gateway.url}${path}`, '{}', { headers });
      assert.equal(reply.status, 404, reply.text);
      assert.equal(reply.headers['x-should-retry'], 'false');
      const isMessages = reply.json['type'] === 'error';
      const { message } = assertErrorBody(isMessages ? 'messages' : 'chat', reply.json);
      for (const sentence of said) assert.match(String(message), sentence);
      assert.doesNotMatch(String(message), /base address ends in/);
    });
  }
}

test('C8 E7 each path that is served is known without its /v1', () => {
  const served = [
    ...generatingPaths(clientDialects).keys(),
    ...compactingPaths(clientDialects).keys(),
    ...sidePaths(clientDialects),
  ];
  for (const path of served) {
    const { message } = notFound(path.replace(/^\/v1/, ''));
    assert.ok(message.endsWith(`lacks /v1; with it the path is ${path}.`), message);
  }
});

test('C8 E6 a model that is not there is reported as one, by its name', async () => {
  for (const name of ['nobody', 'nobody/knows']) {
    const reply = await send(`${rig.gateway.url}/v1/models/${name}`, undefined);
    assert.equal(reply.status, 404);
    assert.match(reply.text, /The model \\"nobody/);
  }
});
