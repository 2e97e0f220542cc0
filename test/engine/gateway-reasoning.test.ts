/** How a client controls reasoning, and the prompts that local models of three kinds get. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { JsonObject } from '../../src/json/value.ts';
import { reasoningTagsOf } from '../../src/engine/scanners.ts';
import { reasoningFacts } from '../../src/local-models/gguf.ts';
import { temporaryFolder } from '../support/folders.ts';
import { startTestGateway, type TestGateway } from '../support/gateway.ts';
import { send, type Reply } from '../support/http.ts';
import { whenLoaded } from '../support/loaded.ts';
import { objectAt, readDocument, type AnyDialect, type Seen } from '../support/reading.ts';
import { endpointOf, requestBody } from '../support/requests.ts';
import { writeAlteredModel } from './altered-model.ts';
import { reasonToSkip } from './engine-client.ts';

const skip = await reasonToSkip();
const folder = temporaryFolder('engine-test');
/** As Qwen3's: the switch writes reasoning that is empty, else the model begins inside of it. */
const switchable =
  "{{ '<think>\\n' if enable_thinking is not defined or enable_thinking " +
  "else '<think>\\n\\n</think>\\n\\n' }}";
const endings: { readonly [name: string]: string } = {
  switchable,
  always: "{{ '<think>\\n' }}{# </think> #}",
  levels: `{% if reasoning_effort == 'high' %}much much much {% endif %}${switchable}`,
};

describe('§4 reasoning of local models through the gateway', { skip }, () => {
  let gateway: TestGateway;
  before(async () => {
    const models: Record<string, JsonObject> = {};
    for (const [name, ending] of Object.entries(endings)) {
      const path = join(folder, `${name}.gguf`);
      const template = (original: string): string =>
        `${original.trimEnd()}{% if add_generation_prompt %}${ending}{% endif %}`;
      writeAlteredModel(path, { template });
      models[name] = { path, threads: 1, parallel: 2 };
    }
    gateway = await startTestGateway({ local: { models } });
  });
  after(() => gateway.stop());

  const reply = (dialect: AnyDialect, name: string, more: JsonObject): Promise<Reply> => {
    const body = requestBody(dialect, {
      model: `local/${name}`,
      stream: false,
      more: { temperature: 0, max_tokens: 8, ...more },
    });
    return whenLoaded(() => send(`${gateway.url}${endpointOf[dialect]}`, body));
  };
  const ask = async (dialect: AnyDialect, name: string, more: JsonObject): Promise<Seen & Told> => {
    const answer = await reply(dialect, name, more);
    assert.equal(answer.status, 200, answer.text);
    const notes = String(answer.headers['x-gateway-notes'] ?? '');
    return { ...readDocument(dialect, answer.json), notes };
  };
  interface Told {
    readonly notes: string;
  }

  const off = { thinking: { type: 'disabled' } };
  const budget = { thinking: { type: 'enabled', budget_tokens: 1024 }, max_tokens: 1032 };
  const effort = { thinking: { type: 'adaptive' }, output_config: { effort: 'low' } };
  const cases: readonly (readonly [string, JsonObject, 'reasons' | 'speaks', RegExp])[] = [
    ['switchable', {}, 'reasons', /^$/],
    ['switchable', off, 'speaks', /^$/],
    ['switchable', effort, 'reasons', /^output_config\.effort: changed/],
    ['always', {}, 'reasons', /^$/],
    ['always', off, 'reasons', /^thinking: dropped, the model always reasons/],
    ['levels', off, 'speaks', /^$/],
    ['levels', effort, 'reasons', /^$/],
    ['tiny', {}, 'speaks', /^$/],
    ['tiny', off, 'speaks', /^$/],
    ['tiny', effort, 'speaks', /^output_config\.effort: dropped/],
    ['tiny', budget, 'speaks', /^thinking\.budget_tokens: dropped/],
  ];
  for (const [name, more, does, notes] of cases) {
    test(`a messages client: ${name} ${does} with ${JSON.stringify(more)}`, async () => {
      const seen = await ask('messages', name, more);
      assert.equal(seen.reasoning === '' ? 'speaks' : 'reasons', does);
      assert.match(seen.notes, notes);
      if (does === 'speaks') assert.ok(seen.text.length > 0);
    });
  }

  test('a word of effort becomes the level of the template', async () => {
    const prompt = async (word: string): Promise<number | undefined> => {
      const more = { thinking: { type: 'adaptive' }, output_config: { effort: word } };
      return (await ask('messages', 'levels', more)).usage?.fresh;
    };
    assert.equal(await prompt('max'), await prompt('high'));
    assert.notEqual(await prompt('medium'), await prompt('high'));
  });

  test('a chat client: its word reaches the engine, and is noted where the model cannot follow (D13)', async () => {
    assert.equal((await ask('chat', 'switchable', { reasoning_effort: 'none' })).reasoning, '');
    assert.notEqual((await ask('chat', 'switchable', { reasoning_effort: 'high' })).reasoning, '');
    const noted = await reply('chat', 'always', { reasoning_effort: 'none' });
    assert.equal(noted.status, 200, noted.text);
    assert.match(String(noted.headers['x-gateway-notes']), /^reasoning_effort: dropped, /);
  });

  test('a responses client: its effort reaches the engine, and reasoning is shown with a summary only', async () => {
    const effort = (word: string): JsonObject => ({ reasoning: { effort: word, summary: 'auto' } });
    assert.equal((await ask('responses', 'switchable', effort('none'))).reasoning, '');
    assert.notEqual((await ask('responses', 'switchable', effort('high'))).reasoning, '');
    const hidden = { reasoning: { effort: 'high' } };
    assert.equal((await ask('responses', 'switchable', hidden)).reasoning, '');
    const noted = await reply('responses', 'always', effort('none'));
    assert.equal(noted.status, 200, noted.text);
    assert.match(String(noted.headers['x-gateway-notes']), /^reasoning\.effort: dropped, /);
  });

  test('the list of models reports which reason, and how many requests each answers at once', async () => {
    const about = async (name: string): Promise<readonly unknown[]> => {
      const { json } = await send(`${gateway.url}/v1/models/local%2F${name}`, undefined);
      const { reasoning, parallel, context } = objectAt(json, 'local');
      assert.equal(json['owned_by'], 'local');
      assert.equal(json['max_input_tokens'], context);
      return [reasoning, parallel, context];
    };
    assert.deepEqual(await about('switchable'), ['switchable', 2, 2048]);
    assert.deepEqual(await about('always'), ['always', 2, 2048]);
    assert.deepEqual(await about('levels'), ['switchable', 2, 2048]);
    assert.deepEqual(await about('tiny'), ['none', 4, 2048]);
  });
});

test('§4 the gateway and the engine take the same templates for those of models that reason', () => {
  const tags = ['</think>', '</thinking>', '</seed:think>', '[/THINK]', '</thought>', '<think>'];
  for (const tag of tags) {
    const known = reasoningTagsOf(`{{ x }}${tag}`) !== undefined;
    assert.equal(reasoningFacts(`{{ x }}${tag}`).reasoning !== undefined, known, tag);
  }
});
