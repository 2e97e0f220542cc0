/** What a start loads, and what it leaves to those who need it (issue 7). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Instance } from '../cluster/instance.ts';
import { chatFrames } from '../upstream/chat.ts';
import { ScriptedUpstream } from '../upstream/scripted.ts';

/** Answers a message with the files that were required. */
const telling = [
  '--import',
  `data:text/javascript,${encodeURIComponent(`
    import { createRequire } from 'node:module';
    const { cache } = createRequire('/');
    process.on('message', () => process.send(Object.keys(cache)));`)}`,
];

test('a start and a call load nothing of undici', async (t) => {
  const upstream = await ScriptedUpstream.start();
  const gateway = await Instance.start({
    storage: 'sqlite',
    upstream: upstream.port,
    node: telling,
  });
  t.after(async () => {
    await gateway.kill();
    await upstream.close();
    gateway.remove();
  });
  const usage = { prompt_tokens: 10, completion_tokens: 5 };
  upstream.script('short', { body: chatFrames({ text: 'Good day.', usage }).join('') });
  const { key } = await gateway.makeKey();
  assert.equal((await gateway.chat(key, { model: 'up/short', stream: true })).status, 200);
  const loaded = await gateway.ask('loaded');
  assert.ok(Array.isArray(loaded));
  const files = loaded.map(String);
  assert.ok(files.length > 0, 'what is loaded is seen');
  assert.deepEqual(
    files.filter((file) => file.includes('/undici/')),
    [],
  );
});
