/** Answers that are held to a form: JSON, schemas, tool calls; and what tokens they were made of. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Ajv2020 } from 'ajv/dist/2020.js';
import * as fc from 'fast-check';
import type { Json, JsonObject } from '../../src/json/value.ts';
import { loadLibrary } from '../../src/engine/library.ts';
import { tinyModel } from '../../src/local-models/model-folder.ts';
import type { LocalEngine } from '../../src/providers/local.ts';
import {
  asObject,
  at,
  EngineClient,
  messageOf,
  reasonToSkip,
  textOf,
  tinyEngine,
  type Answer,
} from './engine-client.ts';

const skip = await reasonToSkip();
let engine: LocalEngine;
let client: EngineClient;

before(async () => {
  if (skip !== false) return;
  engine = tinyEngine();
  await engine.ready();
  client = new EngineClient(engine.socketPath);
});

after(async () => {
  if (skip === false) await engine.stop();
});

const format = (schema: Json): JsonObject => ({
  response_format: { type: 'json_schema', json_schema: { name: 'answer', schema, strict: true } },
});
const parsed = (answer: Answer): Json => JSON.parse(String(messageOf(answer)['content']));
const finish = (answer: Answer): unknown => at(answer.body, 'choices', 0, 'finish_reason');

/** Schemas whose values are short whatever the model thinks, with what each keyword is for. */
const leaf = fc.oneof(
  fc.constantFrom<JsonObject>(
    { type: 'boolean' },
    { type: 'null' },
    { type: 'integer' },
    { type: 'number' },
    { const: { a: [1, 'x'] } },
    { enum: ['red', 7, null] },
    { type: 'string', format: 'date' },
    { type: ['string', 'null'], maxLength: 5 },
  ),
  fc
    .tuple(fc.integer({ min: -2000, max: 2000 }), fc.nat({ max: 900 }))
    .map(([minimum, width]): JsonObject => ({
      type: 'integer',
      minimum,
      maximum: minimum + width,
    })),
  fc
    .tuple(fc.integer({ min: -20, max: 20 }), fc.integer({ min: 1, max: 30 }))
    .map(([low, width]): JsonObject => ({
      type: 'number',
      exclusiveMinimum: low,
      maximum: low + width,
    })),
  fc.tuple(fc.nat({ max: 4 }), fc.nat({ max: 5 })).map(([minLength, more]): JsonObject => ({
    type: 'string',
    minLength,
    maxLength: minLength + more,
  })),
);
const { schema: anySchema } = fc.letrec<{ schema: JsonObject }>((tie) => ({
  schema: fc.oneof(
    { depthSize: 'small', maxDepth: 3 },
    leaf,
    fc
      .tuple(tie('schema'), fc.nat({ max: 2 }), fc.nat({ max: 2 }))
      .map(([items, minItems, more]) => ({
        type: 'array',
        items,
        minItems,
        maxItems: minItems + more,
      })),
    fc
      .dictionary(fc.constantFrom('a', 'b c', 'd"e', 'ü'), fc.tuple(tie('schema'), fc.boolean()))
      .map((members) => ({
        type: 'object',
        properties: Object.fromEntries(
          Object.entries(members).map(([name, [schema]]) => [name, schema]),
        ),
        required: Object.keys(members).filter((name) => members[name]?.[1] === true),
        additionalProperties: false,
      })),
    fc.array(tie('schema'), { minLength: 1, maxLength: 3 }).map((anyOf) => ({ anyOf })),
  ),
}));

describe('response_format', { skip }, () => {
  test('json_schema: whatever the schema, the answer fits it', async () => {
    const ajv = new Ajv2020({ strict: false, formats: { date: /^\d{4}-\d{2}-\d{2}$/ } });
    const schemas = fc.sample(anySchema, { numRuns: 20, seed: 42 });
    for (const [index, schema] of schemas.entries()) {
      const more = { ...format(schema), temperature: 1.5, seed: index, max_tokens: 900 };
      const answer = await client.chat('Tell me about it.', more);
      const text = String(messageOf(answer)['content']);
      assert.equal(finish(answer), 'stop', `${JSON.stringify(schema)} ${text}`);
      assert.ok(ajv.validate(schema, JSON.parse(text)), `${JSON.stringify(schema)} ${text}`);
      assert.equal(text, text.trim());
    }
  });

  test('json_schema: references, also to itself', async () => {
    const schema = {
      $ref: '#/$defs/tree',
      $defs: {
        tree: {
          type: 'object',
          properties: {
            name: { enum: ['leaf', 'branch'] },
            child: { anyOf: [{ type: 'null' }, { $ref: '#/$defs/tree' }] },
          },
          required: ['name', 'child'],
        },
      },
    };
    const value = parsed(
      await client.chat('Hello', { ...format(schema), temperature: 1, seed: 4 }),
    );
    assert.ok(new Ajv2020().validate(schema, value), JSON.stringify(value));
  });

  test('json_object gives an object; one that is cut ends in length', async () => {
    const json = { response_format: { type: 'json_object' } };
    const cut = await client.chat('Hello', { ...json, max_tokens: 1 });
    assert.equal(finish(cut), 'length');
    assert.ok(String(messageOf(cut)['content']).startsWith('{'));
    const whole = await client.chat('Hello', {
      response_format: {
        type: 'json_object',
        schema: { type: 'object', properties: {}, additionalProperties: false },
      },
    });
    assert.deepEqual(parsed(whole), {});
  });

  test('a stream has the same text as the document', async () => {
    const schema = {
      type: 'object',
      properties: { a: { enum: ['x', 'y'] }, b: { type: 'boolean' } },
    };
    const document = await client.chat('Hello', format({ ...schema, required: ['a', 'b'] }));
    const streamed = await client.stream('Hello', format({ ...schema, required: ['a', 'b'] }));
    assert.equal(textOf(streamed), messageOf(document)['content']);
    assert.deepEqual(streamed.chunks.at(-1)?.['usage'], document.body['usage']);
  });

  const base = 'response_format.json_schema.schema';
  const refused: readonly [string, JsonObject, string][] = [
    [
      'a pattern',
      { type: 'object', properties: { a: { type: 'string', pattern: '^x' } } },
      `${base}.properties.a.pattern`,
    ],
    ['not', { not: { type: 'null' } }, `${base}.not`],
    ['uniqueItems', { type: 'array', uniqueItems: true }, `${base}.uniqueItems`],
    [
      'multipleOf',
      { type: 'array', items: { type: 'integer', multipleOf: 3 } },
      `${base}.items.multipleOf`,
    ],
    ['oneOf that overlaps', { oneOf: [{ type: 'number' }, { type: 'integer' }] }, `${base}.oneOf`],
    ['a reference to nothing', { $ref: '#/$defs/none' }, `${base}.$ref`],
    ['a schema without values', { type: 'integer', minimum: 3, maximum: 2 }, base],
    ['an unknown keyword', { type: 'string', minWords: 3 }, `${base}.minWords`],
    ['an unknown format', { type: 'string', format: 'iri' }, `${base}.format`],
  ];
  for (const [name, schema, param] of refused) {
    test(`${name} is a 400 that names ${param}`, async () => {
      const answer = await client.chat('Hello', format(schema));
      assert.equal(answer.status, 400, answer.text);
      assert.equal(at(answer.body, 'error', 'param'), param);
      assert.ok(String(at(answer.body, 'error', 'message')).includes(param));
    });
  }
});

describe('calls', { skip }, () => {
  const parameters = {
    type: 'object',
    properties: {
      city: { type: 'string', maxLength: 6 },
      days: { type: 'array', items: { type: 'integer', minimum: 1, maximum: 7 }, maxItems: 3 },
      unit: { enum: ['C', 'F'] },
    },
    required: ['city', 'days', 'unit'],
    additionalProperties: false,
  };
  const tool = (more: JsonObject = {}): JsonObject => ({
    type: 'function',
    function: { name: 'get_weather', description: 'Get the weather', parameters, ...more },
  });
  const callOf = (answer: Answer): JsonObject =>
    asObject(at(messageOf(answer)['tool_calls'], 0, 'function'));

  test('arguments keep to the schema, whether the call was asked for or not', async () => {
    const validate = new Ajv2020().compile(parameters);
    for (const choice of ['auto', 'required']) {
      const more = { tools: [tool()], tool_choice: choice };
      const call = callOf(await client.chat('What is the weather in Paris?', more));
      assert.equal(call['name'], 'get_weather');
      assert.ok(validate(JSON.parse(String(call['arguments']))), String(call['arguments']));
    }
  });

  test('a strict tool is refused where its schema cannot be held; another is not', async () => {
    const odd = {
      parameters: { type: 'object', properties: { a: { type: 'string', pattern: 'x' } } },
    };
    const strict = await client.chat('Hello', {
      tools: [tool(), { ...tool({ ...odd, name: 'f', strict: true }) }],
    });
    assert.equal(strict.status, 400);
    assert.equal(
      at(strict.body, 'error', 'param'),
      'tools[1].function.parameters.properties.a.pattern',
    );
    assert.equal((await client.chat('Hello', { tools: [tool(odd)] })).status, 200);
  });

  test('arguments that are cut end in length, streamed as in the document', async () => {
    const more = { tools: [tool()], tool_choice: 'required', max_tokens: 22 };
    const document = await client.chat('Hello', more);
    const { chunks } = await client.stream('Hello', more);
    const pieces = chunks.map((chunk) =>
      at(chunk, 'choices', 0, 'delta', 'tool_calls', 0, 'function', 'arguments'),
    );
    assert.equal(finish(document), 'length');
    assert.equal(pieces.join(''), callOf(document)['arguments']);
    assert.deepEqual(chunks.at(-1)?.['usage'], document.body['usage']);
  });

  test('a format leaves calls possible', async () => {
    const more = { tools: [tool()], ...format({ type: 'object' }), max_tokens: 200 };
    const message = messageOf(await client.chat('What is the weather in Paris?', more));
    const isCall = message['tool_calls'] !== undefined;
    assert.ok(isCall || String(message['content']).startsWith('{'));
  });
});

describe('tokens', { skip }, () => {
  const question = 'Who are you?';

  test('log probabilities belong to the text, the likeliest first', async () => {
    const plain = await client.chat(question);
    const answer = await client.chat(question, { logprobs: true, top_logprobs: 3 });
    assert.deepEqual(messageOf(answer), messageOf(plain));
    const entries = at(answer.body, 'choices', 0, 'logprobs', 'content');
    assert.ok(Array.isArray(entries));
    assert.equal(entries.map((entry) => at(entry, 'token')).join(''), messageOf(plain)['content']);
    for (const entry of entries) {
      const top = at(entry, 'top_logprobs');
      assert.ok(Array.isArray(top) && top.length === 3);
      // Greedy: what was chosen is the likeliest.
      assert.equal(at(top, 0, 'logprob'), at(entry, 'logprob'));
      const values = top.map((other) => Number(at(other, 'logprob')));
      assert.ok(values.every((value) => value <= 0));
      assert.deepEqual(
        values,
        values.toSorted((a, b) => b - a),
      );
      assert.ok(values.reduce((sum, value) => sum + Math.exp(value), 0) <= 1.0001);
    }
    const { chunks } = await client.stream(question, { logprobs: true, top_logprobs: 3 });
    const streamed = chunks.flatMap(
      (chunk) => at(chunk, 'choices', 0, 'logprobs', 'content') ?? [],
    );
    assert.deepEqual(streamed, entries);
    assert.equal(at(plain.body, 'choices', 0, 'logprobs'), null);
  });

  test('with log probabilities sampling keeps to its settings and its seed', async () => {
    const ask = async (more: JsonObject): Promise<unknown> =>
      messageOf(await client.chat('Tell me a joke.', { logprobs: true, max_tokens: 20, ...more }))[
        'content'
      ];
    const wild = { temperature: 1.9, top_p: 1, top_k: 0, min_p: 0 };
    assert.equal(await ask({ ...wild, seed: 1 }), await ask({ ...wild, seed: 1 }));
    assert.notEqual(await ask({ ...wild, seed: 1 }), await ask({ ...wild, seed: 2 }));
    const greedy = await ask({});
    for (const narrow of [{ top_k: 1 }, { top_p: 0 }, { min_p: 1 }]) {
      assert.equal(await ask({ ...wild, ...narrow, seed: 9 }), greedy);
    }
  });

  test('logit_bias excludes what ends an answer', async () => {
    const asked = { temperature: 0, max_tokens: 200 };
    const free = await client.chat('Hello', asked);
    assert.equal(at(free.body, 'choices', 0, 'finish_reason'), 'stop');
    const model = await (await loadLibrary(1)).llama.loadModel({ modelPath: tinyModel.path });
    const ends = [...model.iterateAllTokens()].filter((token) => model.isEogToken(token));
    await model.dispose();
    assert.ok(ends.length > 0);
    const logit_bias = Object.fromEntries(ends.map((token) => [token, -100]));
    const { body } = await client.chat('Hello', { ...asked, logit_bias });
    assert.equal(at(body, 'choices', 0, 'finish_reason'), 'length');
    assert.equal(at(body, 'usage', 'completion_tokens'), 200);
  });

  test('logit_bias makes a token certain, with and without log probabilities', async () => {
    for (const logprobs of [false, true]) {
      const more = { logprobs, logit_bias: { 70: 100 }, max_tokens: 6 };
      const { content } = messageOf(await client.chat(question, more));
      const text = String(content);
      assert.equal(text, (text[0] ?? '').repeat(6));
    }
  });
});
