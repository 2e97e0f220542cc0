/** A thinking model, made of the tiny one by a template that opens the reasoning. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { JsonObject } from '../../src/json/value.ts';
import { createLocalEngine, type LocalEngine } from '../../src/providers/local.ts';
import { temporaryFolder } from '../support/folders.ts';
import { writeAlteredModel } from './altered-model.ts';
import {
  at,
  clock,
  EngineClient,
  memoryLog,
  messageOf,
  patient,
  reasonToSkip,
  textOf,
  type Answer,
} from './engine-client.ts';

const skip = await reasonToSkip();
const folder = temporaryFolder('engine-test');
let engine: LocalEngine;
let client: EngineClient;

before(async () => {
  if (skip !== false) return;
  const modelPath = join(folder, 'tiny.gguf');
  // As Qwen3's: the switch writes reasoning that is empty, else the model begins inside of it.
  const ending =
    '{% if add_generation_prompt %}' +
    "{{ '<think>\\n' if enable_thinking is not defined or enable_thinking " +
    "else '<think>\\n\\n</think>\\n\\n' }}{% endif %}";
  writeAlteredModel(modelPath, {
    template: (original) => original.trimEnd() + ending,
    floats: { 'general.sampling.temp': 0 },
  });
  engine = createLocalEngine({ modelPath, clock, log: memoryLog().log, ...patient });
  await engine.ready();
  client = new EngineClient(engine.socketPath);
});

after(async () => {
  if (skip === false) await engine.stop();
});

const question = 'Who are you?';
const details = (answer: Answer): unknown =>
  at(answer.body, 'usage', 'completion_tokens_details', 'reasoning_tokens');

describe('a thinking model', { skip }, () => {
  test('what stands behind the opened tag is reasoning, and is counted', async () => {
    const answer = await client.chat(question, { max_tokens: 7 });
    const { content, reasoning_content: reasoning } = messageOf(answer);
    assert.equal(content, '');
    assert.ok(String(reasoning).length > 0);
    const completion = Number(at(answer.body, 'usage', 'completion_tokens'));
    // The end token, where there is one, is no reasoning.
    const ended = at(answer.body, 'choices', 0, 'finish_reason') === 'stop';
    assert.equal(details(answer), ended ? completion - 1 : completion);
    const streamed = await client.stream(question, { max_tokens: 7 });
    const pieces = streamed.chunks.map((chunk) =>
      at(chunk, 'choices', 0, 'delta', 'reasoning_content'),
    );
    assert.equal(pieces.join(''), reasoning);
    assert.equal(textOf(streamed), '');
    assert.deepEqual(streamed.chunks.at(-1)?.['usage'], answer.body['usage']);
  });

  test('the switch of its template leaves reasoning out', async () => {
    const switches: readonly JsonObject[] = [
      { reasoning_effort: 'none' },
      { chat_template_kwargs: { enable_thinking: false } },
    ];
    const on = await client.chat(question, { max_tokens: 7 });
    for (const more of switches) {
      const answer = await client.chat(question, { ...more, max_tokens: 7 });
      const message = messageOf(answer);
      assert.ok(String(message['content']).length > 0);
      assert.ok(!Object.hasOwn(message, 'reasoning_content'));
      assert.equal(details(answer), undefined);
      assert.notEqual(
        at(answer.body, 'usage', 'prompt_tokens'),
        at(on.body, 'usage', 'prompt_tokens'),
      );
    }
  });

  test('a grammar leaves the reasoning free', async () => {
    const format = { type: 'json_schema', json_schema: { name: 'x', schema: { const: 1 } } };
    const thinking = messageOf(
      await client.chat(question, { response_format: format, max_tokens: 7 }),
    );
    assert.equal(thinking['content'], '');
    const more = { response_format: format, reasoning_effort: 'none' };
    assert.equal(messageOf(await client.chat(question, more))['content'], '1');
  });

  test("sampling is the model's own where the request says nothing", async () => {
    const uncut = { top_p: 1, top_k: 0, min_p: 0 };
    const ask = async (): Promise<JsonObject> =>
      messageOf(
        await client.chat('Tell me a joke.', { ...uncut, temperature: null, max_tokens: 25 }),
      );
    const first = await ask();
    for (let times = 0; times < 3; times++) assert.deepEqual(await ask(), first);
  });

  test('models report the switch', async () => {
    const models = await client.call('/v1/models');
    assert.equal(at(models.body, 'data', 0, 'reasoning'), 'switchable');
  });
});
