import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { describe, test } from 'node:test';
import type { Conversation, Tool } from '../../../src/core/conversation.ts';
import type { JsonObject } from '../../../src/json/value.ts';
import { GatewayError } from '../../../src/core/errors.ts';
import { NoteList } from '../../../src/core/notes.ts';
import { chatTraits, type UpstreamTraits } from '../../../src/core/traits.ts';
import { openaiChatUpstream } from '../../../src/dialects/openai-chat/upstream.ts';
import { allowedToolName } from '../../../src/dialects/shared/tool-names.ts';

interface Written {
  readonly body: JsonObject;
  /** `lost path` or `changed path`. */
  readonly notes: readonly string[];
}

interface Setting {
  readonly traits?: Partial<UpstreamTraits>;
  readonly stream?: boolean;
}

const empty: Conversation = {
  system: [],
  turns: [{ role: 'user', parts: [{ type: 'text', text: 'hi' }] }],
  tools: [],
  sampling: {},
  output: { type: 'text' },
  extras: {},
};

function write(changes: Partial<Conversation>, { traits, stream = false }: Setting = {}): Written {
  const notes = new NoteList();
  const ask = {
    model: 'up',
    stream,
    traits: { ...chatTraits, ...traits },
    newId: () => assert.fail('no random ids in requests'),
  };
  const body = openaiChatUpstream.writeRequest({ ...empty, ...changes }, ask, notes);
  return { body, notes: notes.all.map((note) => `${note.what} ${note.path}`) };
}

/** The path of the refusal, in dots. */
function refused(changes: Partial<Conversation>, setting: Setting = {}): string {
  try {
    write(changes, setting);
  } catch (error) {
    assert.ok(error instanceof GatewayError, String(error));
    assert.equal(error.reason, 'unsupported_parameter');
    return (error.path ?? []).join('.');
  }
  return assert.fail('should be refused');
}

const schema = { type: 'object', properties: { a: { type: 'string' } } };
const f: Tool = { name: 'f', schema };

function native(type: string, name = type): Tool {
  const value = { type, name };
  return { name, schema: {}, native: { dialect: 'anthropic-messages', value } };
}

describe('top-level fields', () => {
  test('the smallest request, plain and streamed', () => {
    assert.deepEqual(write({}).body, { model: 'up', messages: [{ role: 'user', content: 'hi' }] });
    assert.deepEqual(write({}, { stream: true }).body['stream_options'], { include_usage: true });
    const without = write({}, { stream: true, traits: { usageOption: false } }).body;
    assert.equal(without['stream'], true);
    assert.equal('stream_options' in without, false);
  });

  test('B9 the cap goes into the field that the upstream knows', () => {
    const sampling = { maxOutputTokens: 5 };
    assert.equal(write({ sampling }).body['max_tokens'], 5);
    const body = write({ sampling }, { traits: { maxTokensField: 'max_completion_tokens' } }).body;
    assert.equal(body['max_completion_tokens'], 5);
    assert.equal('max_tokens' in body, false);
  });

  test('sampling: sent where known, noted where not', () => {
    const sampling = { temperature: 0.5, topP: 0.9, topK: 3, seed: 7, stop: ['a'] };
    assert.deepEqual(write({ sampling }, { traits: { topK: true } }), {
      body: { ...write({}).body, temperature: 0.5, top_p: 0.9, top_k: 3, seed: 7, stop: ['a'] },
      notes: [],
    });
    const none = { topK: false, seed: false, samplingAllowed: false, stopMax: 0 };
    assert.deepEqual(write({ sampling }, { traits: none }), {
      body: write({}).body,
      notes: ['lost temperature', 'lost top_p', 'lost top_k', 'lost seed'],
    });
    assert.deepEqual(write({ sampling: { temperature: 1 } }, { traits: none }).notes, []);
  });

  test('B47 §2.1 stop sequences that the upstream cannot take are not sent, nor noted', () => {
    const sampling = { stop: ['a', 'b', 'c', 'd', 'e'] };
    assert.deepEqual(write({ sampling }), write({}));
    assert.deepEqual(write({ sampling: { stop: ['a'] } }, { traits: { stopMax: 0 } }), write({}));
    assert.deepEqual(
      write({ sampling }, { traits: { stopMax: undefined } }).body['stop'],
      sampling.stop,
    );
  });

  test('end user: short as it is, long as a hash, noted where there is no field', () => {
    const long = 'x'.repeat(65);
    const hash = createHash('sha256').update(long).digest('hex');
    assert.equal(write({ endUser: 'u' }).body['user'], 'u');
    assert.equal(write({ endUser: long }).body['user'], hash);
    const traits = { endUserField: 'safety_identifier' } as const;
    assert.equal(write({ endUser: 'u' }, { traits }).body['safety_identifier'], 'u');
    assert.deepEqual(write({ endUser: 'u' }, { traits: { endUserField: undefined } }).notes, [
      'lost metadata.user_id',
    ]);
  });

  const efforts: readonly (readonly [
    Conversation['reasoning'],
    UpstreamTraits['efforts'],
    unknown,
    boolean,
  ])[] = [
    [{ effort: 'high' }, ['low', 'medium', 'high'], 'high', false],
    [{ effort: 'max' }, ['low', 'medium', 'high'], 'high', true],
    [{ effort: 'xhigh' }, ['none', 'low', 'high', 'max'], 'high', true],
    [{ effort: 'minimal' }, ['low', 'high'], 'low', true],
    [{ effort: 'minimal' }, ['none', 'low'], 'low', true],
    [{ effort: 'none' }, ['none', 'low'], 'none', false],
    [{ effort: 'none' }, ['minimal', 'low'], 'minimal', true],
    [{ effort: 'none' }, [], undefined, false],
    [{ effort: 'high' }, [], undefined, true],
    [{ budgetTokens: 31_999 }, ['minimal', 'low', 'medium', 'high'], 'high', false],
    [{ budgetTokens: 5000 }, ['minimal', 'low', 'medium', 'high'], 'medium', false],
    [{ budgetTokens: 2000 }, ['minimal', 'low', 'medium', 'high'], 'low', false],
    [{ budgetTokens: 1024 }, ['minimal', 'low', 'medium', 'high'], 'minimal', false],
    [{ adaptive: true }, ['low', 'medium', 'high'], 'high', false],
    [{ adaptive: true, effort: 'low' }, ['low', 'medium', 'high'], 'low', false],
    [{ hidden: true }, ['low'], undefined, false],
  ];
  for (const [reasoning, known, effort, noted] of efforts) {
    test(`B14 ${JSON.stringify(reasoning)} of ${known.join(',')}`, () => {
      const asked = reasoning === undefined ? {} : { reasoning };
      const { body, notes } = write(asked, { traits: { efforts: known } });
      assert.equal(body['reasoning_effort'], effort);
      assert.equal(notes.length, noted ? 1 : 0);
    });
  }

  const strict = {
    type: 'object',
    properties: { a: { type: 'string' } },
    required: ['a'],
    additionalProperties: false,
  };
  test('structured output: strict where the schema allows it', () => {
    assert.deepEqual(write({ output: { type: 'json', schema: strict } }), {
      body: {
        ...write({}).body,
        response_format: {
          type: 'json_schema',
          json_schema: { name: 'output', schema: strict, strict: true },
        },
      },
      notes: [],
    });
    const nested = {
      ...strict,
      properties: { a: { type: 'array', items: { type: 'object', properties: { b: {} } } } },
    };
    for (const optional of [{ ...strict, required: [] }, nested]) {
      const { body, notes } = write({ output: { type: 'json', schema: optional } });
      assert.match(JSON.stringify(body), /"strict":false/);
      assert.deepEqual(notes, ['changed output_config.format']);
    }
  });

  test('structured output without the means: asked for in the prompt, and noted', () => {
    const { body, notes } = write(
      { output: { type: 'json', schema: strict }, system: [{ type: 'text', text: 'Be kind.' }] },
      { traits: { responseFormat: 'object' } },
    );
    const system = JSON.stringify(body['messages']);
    assert.ok(system.includes('Be kind.') && system.includes('JSON schema'));
    assert.deepEqual(body['response_format'], { type: 'json_object' });
    assert.deepEqual(notes, ['changed output_config.format']);
  });

  test('§1.7 no structured output at all: the input of a forced tool, else refused', () => {
    const output = { type: 'json', schema: strict } as const;
    const traits = { responseFormat: 'none', efforts: ['low'] } as const;
    const { body, notes } = write({ output }, { traits });
    assert.deepEqual(body['tool_choice'], { type: 'function', function: { name: 'json' } });
    const name = 'json';
    const description = 'Answers the user. Its input is the whole answer.';
    assert.deepEqual(body['tools'], [
      { type: 'function', function: { name, description, parameters: strict } },
    ]);
    assert.equal('response_format' in body, false);
    assert.deepEqual(notes, ['changed output_config.format']);
    const format = 'output_config.format';
    assert.equal(refused({ output, tools: [f] }, { traits }), format, 'tools of its own');
    assert.equal(refused({ output, reasoning: { adaptive: true } }, { traits }), format);
    assert.equal(refused({ output: { ...output, schema: { type: 'array' } } }, { traits }), format);
    assert.equal(refused({ output }, { traits: { ...traits, toolChoice: false } }), format);
    const any = write({ output: { type: 'json' } }, { traits });
    assert.match(JSON.stringify(any.body['messages']), /one JSON object/);
  });

  test('own extras go out as they came', () => {
    const extras = { 'openai-chat': { min_p: 0.1, metadata: { a: 'b' } } };
    assert.deepEqual(write({ extras }), {
      body: { min_p: 0.1, metadata: { a: 'b' }, ...write({}).body },
      notes: [],
    });
  });

  for (const [key, value] of Object.entries({
    container: { id: 'x' },
    mcp_servers: [{ url: 'https://x.example' }],
    inference_geo: 'eu',
    thread: { type: 'create' },
    fallbacks: [{ model: 'x' }],
  })) {
    test(`REJECT ${key}`, () => {
      assert.equal(refused({ extras: { 'anthropic-messages': { [key]: value } } }), key);
    });
  }

  test('A4 other foreign fields are dropped and noted; hints silently', () => {
    const fields = {
      context_management: { edits: [{ type: 'clear_tool_uses_20250919' }] },
      diagnostics: { x: 1 },
      speed: 'fast',
      fallbacks: 'default',
      output_config: { task_budget: { total: 5 } },
      brand_new: 1,
      cache_control: { type: 'ephemeral' },
      service_tier: 'standard_only',
      mcp_servers: [],
      container: null,
    };
    const { body, notes } = write({ extras: { 'anthropic-messages': fields, gemini: { x: 1 } } });
    assert.deepEqual(body, write({}).body);
    assert.deepEqual(notes, [
      'lost context_management',
      'lost diagnostics',
      'lost speed',
      'lost fallbacks',
      'lost output_config.task_budget',
      'lost brand_new',
      'lost x',
    ]);
  });
});

describe('tools', () => {
  test('functions, with properties in every object schema (B8)', () => {
    const tools: readonly Tool[] = [
      { ...f, description: 'does' },
      { name: 'g', description: '', schema: { type: 'object' } },
      { name: 'h', schema: {} },
    ];
    assert.deepEqual(write({ tools }).body['tools'], [
      {
        type: 'function',
        function: { name: 'f', description: 'does', parameters: schema },
      },
      { type: 'function', function: { name: 'g', parameters: { type: 'object', properties: {} } } },
      { type: 'function', function: { name: 'h', parameters: { type: 'object', properties: {} } } },
    ]);
  });

  test('§1.5 strict where the schema is, else noted', () => {
    const whole = { ...schema, required: ['a'], additionalProperties: false };
    const written = (tool: Tool, traits: Partial<UpstreamTraits> = {}) => {
      const { body, notes } = write({ tools: [tool] }, { traits });
      return [JSON.stringify(body['tools']).includes('"strict":true'), notes];
    };
    assert.deepEqual(written({ name: 'f', schema: whole, strict: true }), [true, []]);
    assert.deepEqual(written({ ...f, strict: true }), [false, ['lost tools.0.strict']]);
    assert.deepEqual(
      written({ name: 'f', schema: whole, strict: true }, { schemaRules: 'openapi' }),
      [false, ['lost tools.0.strict']],
    );
  });

  test('B7 long names are shortened, in tools, choice and calls alike', () => {
    const name = `mcp__${'x'.repeat(85)}`;
    const { body } = write({
      tools: [{ name, schema }],
      toolChoice: { type: 'tool', name },
      turns: [
        { role: 'assistant', parts: [{ type: 'tool-call', id: 'a', name, argumentsJson: '{}' }] },
        { role: 'user', parts: [{ type: 'tool-result', callId: 'a', parts: [], failed: false }] },
      ],
    });
    const short = allowedToolName(name, 64);
    assert.equal(JSON.stringify(body).split(`"name":"${short}"`).length, 4);
    assert.ok(!JSON.stringify(body).includes(name));
  });

  const choices: readonly (readonly [NonNullable<Conversation['toolChoice']>, unknown])[] = [
    [{ type: 'auto' }, 'auto'],
    [{ type: 'none' }, 'none'],
    [{ type: 'required' }, 'required'],
    [
      { type: 'tool', name: 'f' },
      { type: 'function', function: { name: 'f' } },
    ],
    [
      { type: 'allowed', mode: 'required', names: ['f'] },
      {
        type: 'allowed_tools',
        allowed_tools: { mode: 'required', tools: [{ type: 'function', function: { name: 'f' } }] },
      },
    ],
  ];
  for (const [toolChoice, expected] of choices) {
    test(`choice ${JSON.stringify(toolChoice)}`, () => {
      assert.deepEqual(write({ tools: [f], toolChoice }).body['tool_choice'], expected);
    });
  }

  test('a server without tool_choice', () => {
    const traits = { toolChoice: false, parallelFlag: false };
    const forced = write({ tools: [f], toolChoice: { type: 'required' } }, { traits });
    assert.equal('tool_choice' in forced.body, false);
    assert.deepEqual(forced.notes, ['lost tool_choice']);
    const none = write({ tools: [f], toolChoice: { type: 'none' } }, { traits });
    assert.equal('tools' in none.body, false);
    assert.deepEqual(none.notes, ['changed tool_choice']);
    const single = write({ tools: [f], parallelTools: false }, { traits });
    assert.deepEqual(single.notes, ['changed tool_choice.disable_parallel_tool_use']);
  });

  test('parallel_tool_calls only with tools', () => {
    assert.equal(write({ tools: [f], parallelTools: false }).body['parallel_tool_calls'], false);
    assert.equal('parallel_tool_calls' in write({ parallelTools: false }).body, false);
  });

  test('custom tools and their choice', () => {
    const tools = [{ name: 'c', schema, freeText: true }];
    const toolChoice = { type: 'tool', name: 'c' } as const;
    const { body } = write({ tools, toolChoice }, { traits: { customTools: true } });
    assert.deepEqual(body['tools'], [{ type: 'custom', custom: { name: 'c' } }]);
    assert.deepEqual(body['tool_choice'], { type: 'custom', custom: { name: 'c' } });
    const elsewhere = write({ tools, toolChoice }).body;
    assert.deepEqual(elsewhere['tools'], [
      { type: 'function', function: { name: 'c', parameters: schema } },
    ]);
    assert.deepEqual(elsewhere['tool_choice'], { type: 'function', function: { name: 'c' } });
  });

  test('client-run tools of the messages API become functions', () => {
    const tools = [
      native('bash_20250124', 'bash'),
      native('text_editor_20250728', 'str_replace_based_edit_tool'),
      native('memory_20250818', 'memory'),
    ];
    const { body, notes } = write({ tools });
    const text = JSON.stringify(body['tools']);
    for (const name of ['bash', 'str_replace_based_edit_tool', 'memory']) {
      assert.ok(text.includes(`"name":"${name}"`), name);
    }
    assert.ok(text.includes('"command"'));
    assert.equal(notes.length, 3);
  });

  for (const type of [
    'computer_20250124',
    'web_fetch_20250910',
    'code_execution_20250825',
    'mcp_toolset',
    'advisor_1',
  ]) {
    test(`REJECT ${type}`, () =>
      assert.equal(refused({ tools: [f, native(type)] }), 'tools.1.type'));
  }

  test('A10 web search alone or forced is refused, beside other tools it is omitted', () => {
    const search = native('web_search_20250305', 'web_search');
    assert.equal(refused({ tools: [search] }), 'tools.0.type');
    const toolChoice = { type: 'tool', name: 'web_search' } as const;
    assert.equal(refused({ tools: [f, search], toolChoice }), 'tools.1.type');
    const { body, notes } = write({ tools: [f, search] });
    assert.equal(JSON.stringify(body).includes('web_search'), false);
    assert.deepEqual(notes, ['lost tools.1.type']);
  });

  test('G1 cache marks of tools only where they are understood', () => {
    const tools = [{ ...f, cacheUntilHere: { ttl: '1h' } }];
    assert.ok(!JSON.stringify(write({ tools }).body).includes('cache_control'));
    assert.match(
      JSON.stringify(write({ tools }, { traits: { cacheMarks: true } }).body),
      /"cache_control":\{"type":"ephemeral","ttl":"1h"\}/,
    );
  });
});
