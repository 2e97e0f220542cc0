/** A model whose template teaches calls with one element a parameter, made of the tiny one. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { JsonObject } from '../../src/json/value.ts';
import { createLocalEngine, type LocalEngine } from '../../src/providers/local.ts';
import { temporaryFolder } from '../support/folders.ts';
import { writeAlteredModel } from './altered-model.ts';
import { at, clock, EngineClient, memoryLog, patient, reasonToSkip } from './engine-client.ts';

const skip = await reasonToSkip();
const folder = temporaryFolder('engine-test');
let engine: LocalEngine;
let client: EngineClient;

before(async () => {
  if (skip !== false) return;
  const modelPath = join(folder, 'tiny.gguf');
  writeAlteredModel(modelPath, {
    template: (original) => `${original.trimEnd()}{# <function=NAME> #}`,
  });
  engine = createLocalEngine({ modelPath, clock, log: memoryLog().log, ...patient });
  await engine.ready();
  client = new EngineClient(engine.socketPath);
});

after(async () => {
  if (skip === false) await engine.stop();
});

const tool = (more: JsonObject = {}): JsonObject => ({
  type: 'function',
  function: { name: 'f', parameters: { type: 'object', properties: {} }, ...more },
});
const format = { response_format: { type: 'json_object' }, max_tokens: 40 };

describe('§4 a model that writes its calls in a form of its own', { skip }, () => {
  const refused: readonly (readonly [string, JsonObject, string])[] = [
    ['a call that is asked for', { tools: [tool()], tool_choice: 'required' }, 'tool_choice'],
    [
      'a call of one tool that is asked for',
      { tools: [tool()], tool_choice: { type: 'function', function: { name: 'f' } } },
      'tool_choice',
    ],
    ['a strict tool', { tools: [tool({ strict: true })] }, 'tools[0].function.strict'],
    ['a format beside tools', { tools: [tool()], ...format }, 'response_format'],
  ];
  for (const [name, more, param] of refused) {
    test(`${name} is a 400 that names ${param}`, async () => {
      const answer = await client.chat('Hello', more);
      assert.equal(answer.status, 400, answer.text);
      assert.equal(at(answer.body, 'error', 'param'), param);
    });
  }

  test('tools that may be called are taken, and so are formats without them', async () => {
    for (const more of [{ tools: [tool()] }, { tools: [tool()], tool_choice: 'none' }, format]) {
      const answer = await client.chat('Hello', { max_tokens: 20, ...more });
      assert.equal(answer.status, 200, answer.text);
    }
  });
});
