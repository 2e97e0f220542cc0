/** The library of Google is loaded for the first token, and never without a provider of Google (decision 0056). */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { it } from 'node:test';
import { temporaryFolder } from '../support/folders.ts';
import { startTestGateway } from '../support/gateway.ts';
import { send } from '../support/http.ts';
import { requestBody } from '../support/requests.ts';
import { GoogleTokens } from '../upstream/google-tokens.ts';
import { ScriptedUpstream } from '../upstream/scripted.ts';
import { chatDocument } from './azure-scene.ts';

/** Its modules are CommonJS: whoever loads them, they are in the cache of `require`. */
function loaded(): boolean {
  const { cache } = createRequire(import.meta.url);
  return Object.keys(cache).some((path) => /node_modules.(google-auth-library|gaxios)/.test(path));
}

it('a gateway without clouds loads nothing of it, one with Vertex AI does so for its first token', async (t) => {
  const upstream = await ScriptedUpstream.start();
  t.after(() => upstream.close());
  const tokens = await GoogleTokens.start();
  t.after(() => tokens.close());
  const folder = temporaryFolder('google-loading');
  const credentials = join(folder, 'sa.json');
  writeFileSync(credentials, tokens.serviceAccountFile());
  const base_url = `http://127.0.0.1:${upstream.port}`;
  upstream.script('m', chatDocument('m'));
  upstream.script('meta/m', chatDocument('m'));
  const ask = async (gateway: { readonly url: string }, model: string): Promise<void> => {
    const body = requestBody('chat', { model, stream: false });
    const reply = await send(`${gateway.url}/v1/chat/completions`, body);
    assert.equal(reply.status, 200, reply.text);
  };

  const plain = await startTestGateway({
    providers: { one: { dialect: 'openai-chat', base_url, api_key: 'k' } },
  });
  t.after(() => plain.stop());
  await ask(plain, 'one/m');
  assert.ok(!loaded());

  const cloud = await startTestGateway({
    providers: { vertex: { base_url, project: 'acme-ml', credentials } },
  });
  t.after(() => cloud.stop());
  assert.ok(!loaded());
  await ask(cloud, 'vertex/meta/m');
  assert.ok(loaded());
});
