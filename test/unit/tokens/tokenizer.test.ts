/** The tokenizer's thread: what it cannot do ends nothing but the question. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { TokenizerThread } from '../../../src/tokens/tokenizer.ts';

const thread = new TokenizerThread();
after(() => thread.close());

test('F5 E8 a thread that dies answers no caller, and the next question starts another', async () => {
  assert.equal(await thread.count('o200k_base', ['hello world']), 2);
  const broken: string[] = JSON.parse('["fine", 5]');
  const behind = thread.count('o200k_base', ['behind it']);
  assert.deepEqual(await Promise.all([thread.count('o200k_base', broken), behind]), [
    undefined,
    await behind,
  ]);
  assert.equal(await thread.count('cl100k_base', ['hello world']), 2);
});

test('F5 too much at once is not counted', async () => {
  assert.equal(await thread.count('o200k_base', ['a'.repeat(8_000_001)]), undefined);
  const many = Array.from({ length: 65 }, () => thread.count('o200k_base', ['a b c']));
  const counts = await Promise.all(many);
  assert.equal(counts.filter((tokens) => tokens === 3).length, 64);
  assert.equal(counts.at(-1), undefined);
});

test('F5 a thread that is closed answers no waiting caller', async () => {
  const closing = new TokenizerThread();
  const waiting = closing.count('o200k_base', ['x']);
  await closing.close();
  assert.equal(await waiting, undefined);
  assert.equal(await closing.count('o200k_base', ['x']), undefined);
});
