import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Conversation, Part, Tool, Turn } from '../../../src/core/conversation.ts';
import { isObject, type JsonObject } from '../../../src/json/value.ts';
import { strictSchema } from '../../../src/dialects/anthropic-messages/request/write-tools.ts';
import { fields, refusalOf, writeWith } from './answer-context.ts';

const user: Turn = { role: 'user', parts: [{ type: 'text', text: 'Hi' }] };
const tool: Tool = { name: 'f', schema: { type: 'object', properties: {} } };

describe('sampling', () => {
  test('1.2 the cap, or the default of the model; never 0', () => {
    assert.equal(fields({ sampling: { maxOutputTokens: 5 } })['max_tokens'], 5);
    assert.equal(fields({}, { defaultMaxOutputTokens: 99 })['max_tokens'], 99);
    assert.match(
      refusalOf(() => fields({ sampling: { maxOutputTokens: 0 } })),
      /^max_tokens: /,
    );
  });

  test('1.3 temperature above 1 is clamped and noted; 0 stays 0', () => {
    assert.deepEqual(fields({ sampling: { temperature: 1.5, topP: 0.5, topK: 4 } }), {
      max_tokens: 8192,
      temperature: 1,
      top_p: 0.5,
      top_k: 4,
      notes: ['temperature changed'],
    });
    assert.deepEqual(fields({ sampling: { temperature: 0 } }), {
      max_tokens: 8192,
      temperature: 0,
      notes: [],
    });
  });

  test('a model that refuses sampling: dropped and noted, defaults silently', () => {
    const off = { samplingAllowed: false };
    assert.deepEqual(fields({ sampling: { temperature: 0.5, topP: 1, topK: 4 } }, off), {
      max_tokens: 8192,
      notes: ['temperature lost', 'top_k lost'],
    });
    assert.deepEqual(fields({ sampling: { topK: 4 } }, { topK: false }).notes, ['top_k lost']);
  });

  test('1.4 stop strings; those of white space, and too many, are left to the path', () => {
    assert.deepEqual(fields({ sampling: { stop: ['a', '\n'], seed: 1 } }), {
      max_tokens: 8192,
      stop_sequences: ['a'],
      notes: ['seed lost'],
    });
    const tooMany = fields({ sampling: { stop: ['a', 'b'] } }, { stopMax: 1 });
    assert.deepEqual(tooMany, fields({}));
  });

  test('end users: short ids as they are, longer ones hashed', () => {
    assert.deepEqual(fields({ endUser: 'me' })['metadata'], { user_id: 'me' });
    const hashed = fields({ endUser: 'x'.repeat(300) })['metadata'];
    assert.match(JSON.stringify(hashed), /^\{"user_id":"[0-9a-f]{64}"\}$/);
  });

  test('stream is said only when wanted', () => {
    assert.equal('stream' in writeWith({}).body, false);
  });
});

describe('tools', () => {
  test('1.5 definitions, without what is empty; schemas keep every key', () => {
    const schema = { type: 'object', $defs: { a: {} }, additionalProperties: false };
    const tools: readonly Tool[] = [
      { name: 'f', description: '', schema },
      { name: 'g', description: 'does', schema: { properties: { a: {} } } },
      { name: 'h', schema: {}, extras: { 'anthropic-messages': { eager_input_streaming: true } } },
    ];
    assert.deepEqual(fields({ tools })['tools'], [
      { name: 'f', input_schema: schema },
      {
        name: 'g',
        description: 'does',
        input_schema: { type: 'object', properties: { a: {} } },
      },
      {
        name: 'h',
        input_schema: { type: 'object', properties: {} },
        eager_input_streaming: true,
      },
    ]);
    assert.match(
      refusalOf(() => fields({ tools: [{ name: 'f', schema: { type: 'array' } }] })),
      /^tools\.0\.function\.parameters: /,
    );
  });

  test('B7 long and odd names get another one, the same everywhere', () => {
    const name = `server.${'x'.repeat(140)}`;
    const call: Part = { type: 'tool-call', id: 'a', name, argumentsJson: '{}' };
    const { body } = writeWith({
      tools: [{ ...tool, name }],
      toolChoice: { type: 'tool', name },
      turns: [
        user,
        { role: 'assistant', parts: [call] },
        { role: 'user', parts: [{ type: 'tool-result', callId: 'a', parts: [], failed: true }] },
      ],
    });
    const names = [...JSON.stringify(body).matchAll(/"name":"([^"]*)"/g)].map((found) => found[1]);
    assert.equal(names.length, 3);
    assert.equal(new Set(names).size, 1);
    assert.match(names[0] ?? '', /^[a-zA-Z0-9_-]{1,128}$/);
    assert.ok(JSON.stringify(body).includes('"is_error":true'));
  });

  test('native tools of this dialect pass, those of another are refused', () => {
    const value = { type: 'web_search_20250305', name: 'web_search' };
    const native = { name: 'web_search', schema: {} };
    const own: Tool = { ...native, native: { dialect: 'anthropic-messages', value } };
    assert.deepEqual(fields({ tools: [own] })['tools'], [value]);
    const other: Tool = { ...native, native: { dialect: 'openai-chat', value } };
    assert.match(
      refusalOf(() => fields({ tools: [other] })),
      /^tools\.0\.type: /,
    );
  });

  test('strict tools: the schema as far as it is enforced, else a note', () => {
    const schema = { type: 'object', properties: { a: { type: 'string', minLength: 2 } } };
    const tools = [{ name: 'f', schema, strict: true }];
    const enforced = fields({ tools });
    assert.deepEqual(enforced['tools'], [
      {
        name: 'f',
        input_schema: {
          type: 'object',
          properties: { a: { type: 'string', description: '(minLength: 2)' } },
          additionalProperties: false,
        },
        strict: true,
      },
    ]);
    assert.deepEqual(enforced.notes, ['tools.0.function.parameters changed']);
    assert.deepEqual(fields({ tools }, { responseFormat: 'none' }).notes, [
      'tools.0.function.strict lost',
    ]);
  });

  const choices: readonly (readonly [Partial<Conversation>, JsonObject | undefined, string[]])[] = [
    [{}, undefined, []],
    [{ toolChoice: { type: 'auto' } }, { type: 'auto' }, []],
    [{ toolChoice: { type: 'none' } }, { type: 'none' }, []],
    [{ toolChoice: { type: 'required' } }, { type: 'any' }, []],
    [{ toolChoice: { type: 'tool', name: 'f' } }, { type: 'tool', name: 'f' }, []],
    [{ parallelTools: true }, undefined, []],
    [{ parallelTools: false }, { type: 'auto', disable_parallel_tool_use: true }, []],
    [
      { toolChoice: { type: 'required' }, parallelTools: false },
      { type: 'any', disable_parallel_tool_use: true },
      [],
    ],
    [
      { toolChoice: { type: 'allowed', mode: 'required', names: ['f'] } },
      { type: 'any' },
      ['tool_choice changed'],
    ],
  ];
  for (const [changes, expected, notes] of choices) {
    test(`1.6 ${JSON.stringify(changes)}`, () => {
      const tools = [tool, { ...tool, name: 'g' }];
      const written = fields({ ...changes, tools });
      assert.deepEqual(written['tool_choice'], expected);
      assert.deepEqual(written.notes, notes);
      const names = Array.isArray(written['tools'])
        ? written['tools'].filter(isObject).map(({ name }) => name)
        : [];
      assert.deepEqual(names, changes.toolChoice?.type === 'allowed' ? ['f'] : ['f', 'g']);
    });
  }

  test('a server without tool choice chooses by itself', () => {
    const { notes, ...written } = fields(
      { tools: [tool], toolChoice: { type: 'required' } },
      { toolChoice: false },
    );
    assert.equal(written['tool_choice'], undefined);
    assert.deepEqual(notes, ['tool_choice lost']);
  });
});

describe('1.7 structured output', () => {
  const schema: JsonObject = {
    $schema: 'https://json-schema.org/draft',
    type: 'object',
    properties: {
      name: { type: 'string', minLength: 2, description: 'The name.' },
      mail: { type: 'string', format: 'email' },
      zip: { type: 'string', format: 'zip' },
      age: { oneOf: [{ type: 'integer', minimum: 0 }, { type: 'null' }] },
      tags: { type: 'array', items: { type: 'string' }, maxItems: 3 },
      minimum: { type: 'number' },
      inner: { type: 'object', properties: {}, additionalProperties: true },
    },
    required: ['name'],
    $defs: { a: { type: 'object', patternProperties: { x: {} } } },
  };

  test('what cannot be enforced moves into descriptions, names of properties stay', () => {
    const { schema: subset, moved } = strictSchema(schema);
    assert.deepEqual(subset, {
      type: 'object',
      properties: {
        name: { type: 'string', description: 'The name. (minLength: 2)' },
        mail: { type: 'string', format: 'email' },
        zip: { type: 'string', description: '(format: "zip")' },
        age: { anyOf: [{ type: 'integer', description: '(minimum: 0)' }, { type: 'null' }] },
        tags: { type: 'array', items: { type: 'string' }, description: '(maxItems: 3)' },
        minimum: { type: 'number' },
        inner: {
          type: 'object',
          properties: {},
          additionalProperties: false,
          description: '(additionalProperties: true)',
        },
      },
      required: ['name'],
      $defs: {
        a: {
          type: 'object',
          additionalProperties: false,
          description: '(patternProperties: {"x":{}})',
        },
      },
      additionalProperties: false,
    });
    assert.deepEqual(moved, [
      'minLength',
      'format',
      'minimum',
      'maxItems',
      'additionalProperties',
      'patternProperties',
    ]);
  });

  test('a schema is enforced natively; strict false is enforced anyway', () => {
    const plain = { type: 'object', properties: {}, additionalProperties: false };
    const output = { type: 'json', schema: plain, name: 'x' } as const;
    assert.deepEqual(fields({ output }), {
      max_tokens: 8192,
      output_config: { format: { type: 'json_schema', schema: plain } },
      notes: [],
    });
    assert.deepEqual(fields({ output: { ...output, strict: false } }).notes, [
      'response_format.json_schema.strict changed',
    ]);
    assert.deepEqual(fields({ output: { type: 'json', schema } }).notes, [
      'response_format.json_schema.schema changed',
    ]);
  });

  test('an object of any shape is asked for in words; a schema that nothing enforces is refused', () => {
    const written = fields({ output: { type: 'json' } });
    assert.match(JSON.stringify(written['system']), /one bare JSON object/);
    assert.deepEqual(written.notes, ['response_format changed']);
  });

  test('§1.7 without native structured output: a forced tool, or a refusal', () => {
    const output = { type: 'json', schema } as const;
    const none = { responseFormat: 'none', thinking: 'budget' } as const;
    const written = fields({ output }, none);
    assert.deepEqual(written['tool_choice'], {
      type: 'tool',
      name: 'json',
      disable_parallel_tool_use: true,
    });
    assert.equal('output_config' in written, false);
    assert.deepEqual(written.notes, ['response_format changed']);
    for (const obstacle of [
      { tools: [{ name: 'f', schema }] },
      { reasoning: { budgetTokens: 2000 }, sampling: { maxOutputTokens: 9000 } },
    ]) {
      assert.match(
        refusalOf(() => fields({ output, ...obstacle }, none)),
        /^response_format: /,
      );
    }
  });
});

describe('1.1 fields of other dialects', () => {
  const chat = (extra: JsonObject) => fields({ extras: { 'openai-chat': extra } });

  test('dropped and noted, unless they ask for nothing', () => {
    assert.deepEqual(
      chat({
        frequency_penalty: 0.5,
        presence_penalty: 0,
        logit_bias: {},
        metadata: { a: 'b' },
        store: false,
        verbosity: 'low',
        brand_new: 1,
        gone: null,
      }),
      {
        max_tokens: 8192,
        notes: ['frequency_penalty lost', 'metadata lost', 'verbosity lost', 'brand_new lost'],
      },
    );
  });

  test('service tiers', () => {
    assert.equal(chat({ service_tier: 'default' })['service_tier'], 'standard_only');
    assert.deepEqual(chat({ service_tier: 'priority' }).notes, ['service_tier changed']);
    const flex = chat({ service_tier: 'flex' });
    assert.equal(flex['service_tier'], undefined);
    assert.deepEqual(flex.notes, ['service_tier lost']);
  });

  test('fields of this dialect that came through another one are sent', () => {
    const extras = { 'anthropic-messages': { brand_new: 1, output_config: { task_budget: 2 } } };
    assert.deepEqual(fields({ extras, reasoning: { effort: 'low' } }), {
      max_tokens: 8192,
      brand_new: 1,
      thinking: { type: 'adaptive', display: 'summarized' },
      output_config: { task_budget: 2, effort: 'low' },
      notes: [],
    });
  });
});
