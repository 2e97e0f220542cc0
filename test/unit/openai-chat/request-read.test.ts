import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Conversation } from '../../../src/core/conversation.ts';
import type { JsonObject } from '../../../src/json/value.ts';
import { GatewayError } from '../../../src/core/errors.ts';
import { tryParseObject } from '../../../src/json/parse.ts';
import { NoteList } from '../../../src/core/notes.ts';
import { openaiChatClient } from '../../../src/dialects/openai-chat/client.ts';
import { spellPath } from '../../../src/dialects/openai-chat/fields.ts';

const user = { role: 'user', content: 'hi' };

function read(more: JsonObject, notes = new NoteList()): Conversation {
  return openaiChatClient.readRequest({ model: 'm', messages: [user], ...more }, notes);
}

/** The path of the refusal. */
function refused(more: JsonObject): string {
  try {
    read(more);
  } catch (error) {
    assert.ok(error instanceof GatewayError, String(error));
    assert.equal(error.code, 'invalid_request');
    return spellPath(error.path ?? []);
  }
  return assert.fail(`should be refused: ${JSON.stringify(more)}`);
}

describe('top-level fields', () => {
  test('the smallest request', () => {
    assert.deepEqual(read({}), {
      system: [],
      turns: [{ role: 'user', parts: [{ type: 'text', text: 'hi' }] }],
      tools: [],
      sampling: {},
      output: { type: 'text' },
      extras: {},
    });
  });

  test('sampling', () => {
    const more = {
      max_completion_tokens: 5,
      max_tokens: 5,
      temperature: 1.5,
      top_p: 0.5,
      top_k: 4,
      stop: 'END',
      seed: 7,
    };
    assert.deepEqual(read(more).sampling, {
      maxOutputTokens: 5,
      temperature: 1.5,
      topP: 0.5,
      topK: 4,
      stop: ['END'],
      seed: 7,
    });
    assert.deepEqual(read({ stop: ['a', 'b'], top_k: -1 }).sampling, { stop: ['a', 'b'] });
  });

  test('principle 1: values equal to the defaults are neither kept nor noted', () => {
    const notes = new NoteList();
    const more = {
      n: 1,
      logprobs: false,
      top_logprobs: 0,
      frequency_penalty: 0,
      presence_penalty: 0,
      logit_bias: {},
      parallel_tool_calls: true,
      modalities: ['text'],
      store: false,
      metadata: {},
      verbosity: 'medium',
      service_tier: 'auto',
      reasoning_effort: null,
      audio: { voice: 'x' },
      prediction: { type: 'content', content: 'x' },
      stream_options: { include_obfuscation: true },
      response_format: { type: 'text' },
    };
    assert.deepEqual(read(more, notes), read({}));
    assert.deepEqual(notes.all, []);
  });

  test('WARN fields and unknown ones stay in extras for the foreign writer to tell', () => {
    const more = {
      frequency_penalty: 0.5,
      presence_penalty: -1,
      logit_bias: { '50256': -100 },
      metadata: { a: 'b' },
      store: true,
      service_tier: 'flex',
      verbosity: 'low',
      min_p: 0.1,
      chat_template_kwargs: { x: 1 },
      moderation: { model: 'm', policy: { input: { mode: 'score' } } },
    };
    assert.deepEqual(read(more).extras['openai-chat'], more);
  });

  test('B40 __proto__ is data', () => {
    const body = { ...tryParseObject('{"__proto__":{"x":1}}'), model: 'm', messages: [user] };
    const extras = openaiChatClient.readRequest(body, new NoteList()).extras['openai-chat'];
    assert.deepEqual(Object.keys(extras ?? {}), ['__proto__']);
    assert.equal(Reflect.get({}, 'x'), undefined);
  });

  const refusals: readonly (readonly [JsonObject, string])[] = [
    [{ n: 2 }, 'n'],
    [{ logprobs: true }, 'logprobs'],
    [{ modalities: ['text', 'audio'], audio: {} }, 'modalities'],
    [{ moderation: { model: 'm', policy: { output: { mode: 'block' } } } }, 'moderation'],
    [
      {
        tools: [{ type: 'function', function: { name: 'web_search' } }],
        web_search_options: {},
      },
      'web_search_options',
    ],
    [{ response_format: { type: 'grammar' } }, 'response_format.type'],
    [{ reasoning_effort: 'enormous' }, 'reasoning_effort'],
    [{ thinking: { type: 'loud' } }, 'thinking.type'],
    [{ tools: [{ type: 'web_search' }] }, 'tools[0].type'],
    [
      { tools: [{ type: 'function', function: { name: 'f', parameters: { type: 'string' } } }] },
      'tools[0].function.parameters',
    ],
    [{ messages: [{ role: 'user', content: '' }] }, 'messages'],
  ];
  for (const [more, path] of refusals) {
    test(`REJECT ${JSON.stringify(more).slice(0, 70)}`, () => assert.equal(refused(more), path));
  }

  test('end user: safety_identifier wins', () => {
    assert.equal(read({ user: 'u', safety_identifier: 's' }).endUser, 's');
    assert.equal(read({ user: 'u' }).endUser, 'u');
  });

  const reasonings: readonly (readonly [JsonObject, unknown])[] = [
    [{}, undefined],
    [{ reasoning_effort: 'xhigh' }, { effort: 'xhigh' }],
    [{ reasoning: { effort: 'low', exclude: true } }, { effort: 'low', hidden: true }],
    [{ reasoning: { max_tokens: 2000 } }, { budgetTokens: 2000 }],
    [{ reasoning: { enabled: false } }, { effort: 'none' }],
    [{ reasoning: { enabled: true } }, { effort: 'medium' }],
    [{ reasoning: {}, reasoning_effort: 'high' }, { effort: 'high' }],
    [
      { thinking: { type: 'enabled', budget_tokens: 4096 }, reasoning_effort: 'low' },
      { budgetTokens: 4096 },
    ],
    [
      { thinking: { type: 'adaptive' }, reasoning_effort: 'low' },
      { adaptive: true, effort: 'low' },
    ],
    [{ thinking: { type: 'adaptive', display: 'omitted' } }, { adaptive: true, hidden: true }],
    [{ thinking: { type: 'disabled' } }, { effort: 'none' }],
  ];
  for (const [more, expected] of reasonings) {
    test(`reasoning ${JSON.stringify(more)}`, () => {
      assert.deepEqual(read(more).reasoning, expected);
    });
  }

  test('structured output', () => {
    const schema = { type: 'object', properties: {} };
    const json_schema = { name: 'x', description: 'd', strict: true, schema };
    assert.deepEqual(read({ response_format: { type: 'json_schema', json_schema } }).output, {
      type: 'json',
      name: 'x',
      description: 'd',
      strict: true,
      schema,
    });
    assert.deepEqual(read({ response_format: { type: 'json_object' } }).output, { type: 'json' });
  });

  test('G1 cache_control at the top level is the messages dialect’s own field', () => {
    const mark = { type: 'ephemeral', ttl: '1h' };
    assert.deepEqual(read({ cache_control: mark }).extras, {
      'anthropic-messages': { cache_control: mark },
    });
  });
});

describe('tools', () => {
  test('functions, strictness, marks, and every key of the schema', () => {
    const parameters = {
      type: 'object',
      properties: { a: { $ref: '#/$defs/x' } },
      $defs: { x: { type: 'string' } },
      additionalProperties: false,
    };
    const definition = { name: 'f', description: 'does', strict: true, parameters };
    const tools = [
      { type: 'function', function: definition, cache_control: { type: 'ephemeral', ttl: '1h' } },
      { type: 'function', function: { name: 'g', description: '' } },
      { type: 'function', function: { name: 'h', parameters: { properties: {} } } },
    ];
    assert.deepEqual(read({ tools }).tools, [
      {
        name: 'f',
        description: 'does',
        strict: true,
        schema: parameters,
        cacheUntilHere: { ttl: '1h' },
      },
      { name: 'g', schema: { type: 'object', properties: {} } },
      { name: 'h', schema: { type: 'object', properties: {} } },
    ]);
  });

  test('a custom tool is one free text', () => {
    const [tool] = read({
      tools: [{ type: 'custom', custom: { name: 'c', description: 'd' } }],
    }).tools;
    assert.equal(tool?.freeText, true);
    assert.deepEqual(tool.schema['required'], ['input']);
  });

  const f = { type: 'function', function: { name: 'f' } };
  const choices: readonly (readonly [JsonObject, unknown])[] = [
    [{}, undefined],
    [{ tool_choice: 'auto' }, { type: 'auto' }],
    [{ tool_choice: 'none' }, { type: 'none' }],
    [{ tool_choice: 'required' }, { type: 'required' }],
    [{ tool_choice: 'any' }, { type: 'required' }],
    [{ tool_choice: f }, { type: 'tool', name: 'f' }],
    [{ tool_choice: { type: 'custom', custom: { name: 'c' } } }, { type: 'tool', name: 'c' }],
    [
      { tool_choice: { type: 'allowed_tools', allowed_tools: { mode: 'required', tools: [f] } } },
      { type: 'allowed', mode: 'required', names: ['f'] },
    ],
    [{ function_call: 'auto' }, { type: 'auto' }],
    [{ function_call: { name: 'f' } }, { type: 'tool', name: 'f' }],
  ];
  test('a call that is required of no tool is refused', () => {
    const tool_choice = { type: 'allowed_tools', allowed_tools: { mode: 'required', tools: [] } };
    assert.throws(() => read({ tools: [f], tool_choice }), /must hold at least one tool/);
  });
  for (const [more, expected] of choices) {
    test(`choice ${JSON.stringify(more)}`, () => {
      assert.deepEqual(read({ tools: [f], ...more }).toolChoice, expected);
    });
  }

  test('parallel_tool_calls false is kept, true is the default', () => {
    assert.equal(read({ parallel_tool_calls: false }).parallelTools, false);
    assert.equal(read({ parallel_tool_calls: true }).parallelTools, undefined);
  });

  test('deprecated functions are tools that remember it', () => {
    const { tools } = read({ functions: [{ name: 'f', parameters: { type: 'object' } }] });
    assert.equal(tools[0]?.name, 'f');
    assert.deepEqual(tools[0]?.extras, { 'openai-chat': { legacy_function: true } });
  });
});
