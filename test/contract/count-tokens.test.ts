/** `POST /v1/messages/count_tokens`, for models of all vendors (A7, F5, translation.md §11). */
import assert from 'node:assert/strict';
import { adminToken } from '../support/keys.ts';
import { after, before, describe, test } from 'node:test';
import { countTokens as cl100k } from 'gpt-tokenizer/encoding/cl100k_base';
import { isObject, type JsonObject } from '../../src/json/value.ts';
import { tryParseObject } from '../../src/json/parse.ts';
import { send, type Reply, type Sending } from '../support/http.ts';
import { listAt, objectAt, textAt } from '../support/reading.ts';
import { startRig, type Rig } from '../support/rig.ts';
import { plainUsage, replying } from '../upstream/reply.ts';
import { samples } from '../unit/tokens/samples.ts';
import { type Scripted, ScriptedUpstream } from '../upstream/scripted.ts';
import { halves } from '../property/dialect-halves.ts';

const path = '/v1/messages/count_tokens';
const hello = [{ role: 'user', content: 'Hello' }];

let rig: Rig;
/** An upstream that stands for an engine or a vendor with rows of its own. */
let known: ScriptedUpstream;

before(async () => {
  known = await ScriptedUpstream.start();
  const base = `http://127.0.0.1:${known.port}`;
  rig = await startRig({
    providers: {
      vllm: { base_url: `${base}/v1` },
      'llama-cpp': { base_url: `${base}/v1` },
      openai: { base_url: `${base}/v1`, api_key: 'k' },
      gone: { dialect: 'anthropic-messages', base_url: 'http://127.0.0.1:9' },
    },
    models: { alias: { targets: ['openai/gpt-4o', 'up-chat/other'] } },
  });
});
after(async () => {
  await rig.stop();
  await known.close();
});

function count(body: JsonObject, sending: Sending = {}, at = path): Promise<Reply> {
  return send(rig.gateway.url + at, body, sending);
}

async function counted(body: JsonObject, source: string): Promise<number> {
  const reply = await count(body);
  assert.equal(reply.status, 200, reply.text);
  assert.deepEqual(Object.keys(reply.json), ['input_tokens']);
  assert.equal(reply.headers['x-gateway-usage'], source);
  const tokens = reply.json['input_tokens'];
  assert.ok(typeof tokens === 'number' && Number.isInteger(tokens) && tokens > 0, reply.text);
  return tokens;
}

describe('A7 addresses, keys and errors', () => {
  for (const at of [path, `${path}?beta=true`, `/v1${path}`, `/v1${path}?beta=true`]) {
    test(`A7 A8 POST ${at}`, async () => {
      const reply = await count({ model: 'openai/gpt-4o', messages: hello }, {}, at);
      assert.equal(reply.status, 200, reply.text);
      assert.ok(Number(reply.json['input_tokens']) > 0);
    });
  }

  test('A7 an alias with several targets counts as its first', async () => {
    const direct = await counted({ model: 'openai/gpt-4o', messages: hello }, 'counted');
    assert.equal(await counted({ model: 'alias', messages: hello }, 'counted'), direct);
  });

  test('A7 an unknown model is a 404 in the messages envelope', async () => {
    const reply = await count({ model: 'no-such-model', messages: hello });
    assert.equal(reply.status, 404);
    assert.equal(reply.json['type'], 'error');
    assert.equal(textAt(objectAt(reply.json, 'error'), 'type'), 'not_found_error');
  });

  test('A7 bad bodies are a 400 in the messages envelope that names the field', async () => {
    for (const [body, field] of [
      [{ messages: hello }, 'model'],
      [{ model: 'openai/gpt-4o' }, 'messages'],
      [{ model: 'openai/gpt-4o', messages: 'x' }, 'messages'],
    ] as const) {
      const reply = await count(body);
      assert.equal(reply.status, 400, reply.text);
      const error = objectAt(reply.json, 'error');
      assert.equal(error['type'], 'invalid_request_error');
      assert.ok(textAt(error, 'message').startsWith(field), textAt(error, 'message'));
    }
  });

  test('A7 S7 without a key, or with one for other endpoints or models', async () => {
    const body = { model: 'openai/gpt-4o', messages: hello };
    assert.equal((await count(body, { anonymous: true })).status, 401);
    const statuses: number[] = [];
    for (const input of [
      { models: ['*'], endpoints: ['chat', 'messages'] },
      { models: ['up-chat/*'] },
      { models: ['openai/*'], endpoints: ['count_tokens'] },
    ]) {
      const made = await send(
        `${rig.gateway.adminUrl}/api/keys`,
        { name: 'k', ...input },
        { headers: { authorization: `Bearer ${adminToken}` } },
      );
      const headers = { authorization: `Bearer ${textAt(made.json, 'key')}` };
      statuses.push((await count(body, { headers })).status);
    }
    assert.deepEqual(statuses, [403, 404, 200]);
  });
});

describe('F5 who counts', () => {
  test('F5 a messages server is asked with the client’s own bytes; headers say reported', async () => {
    const { model, script } = rig.play('messages', { body: '{"input_tokens":23}' });
    const body = { model, messages: hello, some_new_field: { a: 1 } };
    assert.equal(await counted(body, 'reported'), 23);
    const asked = script.requests[0];
    assert.equal(asked?.path, '/v1/messages/count_tokens');
    assert.deepEqual(asked?.json, { ...body, model: model.split('/')[1] });
  });

  test('F5 a messages server is asked with the members that its counter takes, for a translated request', async () => {
    const { model, script } = rig.play('messages', { body: '{"input_tokens":24}' });
    const body = {
      model,
      input: [{ role: 'user', content: 'Hello' }],
      instructions: 'Be short.',
      max_output_tokens: 9,
      temperature: 0.5,
      metadata: { a: 'b' },
      safety_identifier: 'someone',
      // A call is refused for it.
      include: ['message.output_text.logprobs'],
      tools: [{ type: 'function', name: 'w', parameters: { type: 'object' }, strict: false }],
      tool_choice: 'required',
    };
    const reply = await count(body, {}, '/v1/responses/input_tokens');
    assert.equal(reply.json['input_tokens'], 24, reply.text);
    const sent = script.requests[0]?.json ?? {};
    // The service refuses any other: `max_tokens: Extra inputs are not permitted`.
    assert.deepEqual(Object.keys(sent).toSorted(), [
      'messages',
      'model',
      'system',
      'tool_choice',
      'tools',
    ]);
  });

  for (const [name, answer] of [
    ['404', { status: 404, body: '{}' }],
    ['a refusal', { status: 400, body: '{"type":"error"}' }],
    ['no number', { body: '{"input_tokens":"many"}' }],
    ['no JSON', { body: '<html>' }],
    ['a cut', { body: '{"input', ending: 'reset' }],
  ] as const satisfies readonly (readonly [string, Scripted])[]) {
    test(`F5 a counter that answers with ${name}: estimated, and said so`, async () => {
      const { model } = rig.play('messages', answer);
      await counted({ model, messages: hello }, 'estimated');
    });
  }

  test('F5 a provider that is down: estimated', async () => {
    await counted({ model: 'gone/claude-x', messages: hello }, 'estimated');
  });

  test('F5 vLLM: /tokenize beside the API, with the chat template’s members', async () => {
    const script = known.script('qwen', { body: '{"count":31,"max_model_len":4096,"tokens":[1]}' });
    const tools = [
      { name: 'f', description: 'd', input_schema: { type: 'object', properties: {} } },
    ];
    const body = { model: 'vllm/qwen', messages: hello, system: 'Be brief.', tools, top_k: 5 };
    assert.equal(await counted(body, 'reported'), 31);
    const asked = script.requests[0];
    assert.equal(asked?.path, '/tokenize');
    assert.deepEqual(Object.keys(asked?.json ?? {}).sort(), [
      'add_generation_prompt',
      'messages',
      'model',
      'tools',
    ]);
    assert.deepEqual(
      listAt(asked?.json ?? {}, 'messages').map((message) => message['role']),
      ['system', 'user'],
    );
  });

  test('F5 vLLM: pictures, which /tokenize leaves out, are added and the sum is an estimate', async () => {
    known.script('qwen-vl', { body: '{"count":31}' });
    const source = { type: 'url', url: 'https://example.com/a.png' };
    const content = [{ type: 'image', source }];
    const body = { model: 'vllm/qwen-vl', messages: [{ role: 'user', content }] };
    assert.equal(await counted(body, 'estimated'), 1631);
  });

  test('F5 llama.cpp: the template, then the tokenizer', async () => {
    const script = known.script(
      'gguf',
      { body: JSON.stringify({ prompt: '<|user|>Hello<|assistant|>' }) },
      { body: JSON.stringify({ tokens: [1, 2, 3, 4, 5, 6, 7] }) },
    );
    assert.equal(await counted({ model: 'llama-cpp/gguf', messages: hello }, 'reported'), 7);
    const [template, tokenize] = script.requests;
    assert.equal(template?.path, '/apply-template');
    assert.equal(listAt(template?.json ?? {}, 'messages').length, 1);
    assert.equal(tokenize?.path, '/tokenize');
    assert.equal(tokenize?.json['content'], '<|user|>Hello<|assistant|>');
    assert.equal(tokenize?.json['add_special'], true);
  });

  for (const engine of ['vllm', 'llama-cpp']) {
    test(`F5 ${engine} without a counter: estimated`, async () => {
      known.script('old', { status: 404, body: '{"detail":"Not Found"}' });
      await counted({ model: `${engine}/old`, messages: hello }, 'estimated');
    });
  }

  test('F5 a model with a public tokenizer: counted, exactly as published, and no target is called', async () => {
    const asked = known.all.length;
    const body = {
      model: 'openai/gpt-4o',
      system: 'You are a helpful assistant that can answer to questions about the weather.',
      messages: [{ role: 'user', content: "What's the weather like in San Francisco?" }],
      tools: [
        {
          name: 'get_current_weather',
          description: 'Get the current weather in a given location',
          input_schema: {
            type: 'object',
            properties: {
              location: {
                type: 'string',
                description: 'The city and state, e.g. San Francisco, CA',
              },
              unit: {
                type: 'string',
                description: 'The unit of temperature to return',
                enum: ['celsius', 'fahrenheit'],
              },
            },
            required: ['location'],
          },
        },
      ],
    };
    assert.equal(await counted(body, 'counted'), 101);
    assert.equal(known.all.length, asked);
  });

  test('F5 E2 a run of 300,000 letters neither blocks other calls nor takes for ever', async () => {
    const content = 'a'.repeat(300_000);
    const slow = counted(
      { model: 'openai/gpt-4o', messages: [{ role: 'user', content }] },
      'counted',
    );
    const quick = await send(`${rig.gateway.url}/healthz`, undefined);
    assert.equal(quick.status, 200);
    assert.ok((await slow) > 30_000);
  });

  test('F5 tools, system, pictures and results count in estimates too', async () => {
    const { model } = rig.play('chat', { status: 404, body: '{}' });
    const base = await counted({ model, messages: hello }, 'estimated');
    const text = 'many words '.repeat(100);
    const source = { type: 'base64', media_type: 'image/png', data: 'aGVsbG8=' };
    for (const more of [
      { system: text },
      { system: [{ type: 'text', text }] },
      { tools: [{ name: 'f', description: text, input_schema: { type: 'object' } }] },
      { messages: [{ role: 'user', content: [{ type: 'image', source }] }] },
      {
        messages: [
          ...hello,
          {
            role: 'assistant',
            content: [{ type: 'tool_use', id: 'toolu_1', name: 'f', input: {} }],
          },
          {
            role: 'user',
            content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: text }],
          },
        ],
      },
    ]) {
      const tokens = await counted({ model, messages: hello, ...more }, 'estimated');
      assert.ok(tokens > base + 200, JSON.stringify(Object.keys(more)));
    }
  });

  test('A6 the billing line of Claude Code does not count where it is removed', async () => {
    const messages = hello;
    const system = [
      { type: 'text', text: `x-anthropic-billing-header: ${'cch=1234; '.repeat(50)}` },
      { type: 'text', text: 'Be brief.' },
    ];
    const without = await counted(
      { model: 'openai/gpt-4o', messages, system: 'Be brief.' },
      'counted',
    );
    assert.equal(await counted({ model: 'openai/gpt-4o', messages, system }, 'counted'), without);
  });
});

/** Each would be a 400 as a request to this model. */
const refused: readonly (readonly [string, JsonObject])[] = [
  ['thread', { thread: { id: 'thread_1' } }],
  ['container', { container: 'container_1' }],
  ['mcp_servers', { mcp_servers: [{ type: 'url', url: 'https://example.com', name: 'a' }] }],
  ['inference_geo', { inference_geo: 'us' }],
  ['a server tool', { tools: [{ type: 'code_execution_20250825', name: 'code_execution' }] }],
  ['too many stop sequences', { stop_sequences: ['a', 'b', 'c', 'd', 'e'] }],
  ['max_tokens 0', { max_tokens: 0 }],
  [
    'a block that only one vendor knows',
    {
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'Hello' },
            { type: 'container_upload', file_id: 'file_1' },
          ],
        },
      ],
    },
  ],
];

describe('translation.md §11: what a request would be refused for is omitted', () => {
  for (const [name, more] of refused) {
    test(`A7 ${name}`, async () => {
      const body = { model: 'openai/gpt-4o', messages: hello };
      const plain = await counted(body, 'counted');
      const tokens = await counted({ ...body, ...more }, 'counted');
      assert.ok(tokens >= plain && tokens <= plain + 3, `${tokens}, without it ${plain}`);
    });
  }
});

test('E10 a client that leaves closes the question to the counter', async () => {
  const { model, script } = rig.play('messages', { body: '', mute: true, ending: 'hang' });
  const abort = new AbortController();
  const waiting = count({ model, messages: hello }, { signal: abort.signal }).catch(
    (error: unknown) => error,
  );
  const asked = await script.request(0);
  abort.abort();
  assert.ok((await waiting) instanceof Error);
  assert.equal(await asked.closed, 'gateway');
});

describe('F1 message_start of a chat upstream that reports at the end', () => {
  for (const [kind, text] of Object.entries(samples)) {
    test(`F1 F5 ${kind}: not zero, and at most 10 % below a public tokenizer`, async () => {
      const { model } = rig.play('chat', replying('chat', { text: 'ok' }));
      const messages = [{ role: 'user', content: text }];
      const body = { model, max_tokens: 9, stream: true, messages };
      const reply = await send(`${rig.gateway.url}/v1/messages`, body);
      const [start, delta] = ['message_start', 'message_delta'].map((type) => {
        const line = new RegExp(`^data: (\\{"type":"${type}".*)$`, 'm').exec(reply.text)?.[1] ?? '';
        return tryParseObject(line) ?? {};
      });
      const told = objectAt(objectAt(start ?? {}, 'message'), 'usage')['input_tokens'];
      assert.ok(Number(told) >= 0.9 * cl100k(text), `${String(told)} for ${cl100k(text)}`);
      // The exact numbers replace it.
      assert.equal(objectAt(delta ?? {}, 'usage')['input_tokens'], plainUsage.fresh);
    });
  }
});

test('F5 an estimate follows what the model reported before, towards more', async () => {
  const chat = {
    id: 'c',
    object: 'chat.completion',
    created: 1,
    model: 'm',
    choices: [{ index: 0, message: { role: 'assistant', content: 'ok' }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 900, completion_tokens: 20, total_tokens: 920 },
  };
  const { model } = rig.play('chat', { body: JSON.stringify(chat) });
  const messages = [{ role: 'user', content: 'Many words are here. '.repeat(60) }];
  const first = await counted({ model, messages }, 'estimated');
  const reply = await send(`${rig.gateway.url}/v1/messages`, { model, max_tokens: 9, messages });
  assert.equal(reply.status, 200, reply.text);
  assert.ok(isObject(reply.json['usage']));
  const second = await counted({ model, messages }, 'estimated');
  assert.ok(first < 900 && second >= 900, `${first}, then ${second}`);
});

describe('G11 a long prompt is counted off the event loop', () => {
  const turns = 12_800;
  const messages = Array.from({ length: turns }, (_, i) => {
    return { role: i % 2 === 0 ? 'user' : 'assistant', content: 'Hello' };
  });
  for (const dialect of ['messages', 'chat'] as const) {
    test(`G11 for a ${dialect} model`, async (t) => {
      const { model } = rig.play(dialect, replying(dialect, { text: 'Hi' }));
      const short = await count({ model, messages: hello });
      const { upstream } = halves[dialect];
      const here = [
        t.mock.method(upstream, 'relayRequest'),
        t.mock.method(upstream, 'writeRequest'),
      ];
      const reply = await count({ model, messages });
      assert.equal(reply.status, 200, reply.text);
      assert.ok(Number(reply.json['input_tokens']) > Number(short.json['input_tokens']));
      for (const { mock } of here) assert.equal(mock.callCount(), 0);
    });
  }

  test('G11 the same where the public tokenizer of the model counts', async () => {
    await counted({ model: 'openai/gpt-4o', messages }, 'counted');
  });

  test('G11 a counter of the provider is asked with the members that it knows', async () => {
    const script = known.script('long', { body: '{"count":77}' });
    assert.equal(await counted({ model: 'vllm/long', messages }, 'reported'), 77);
    const { messages: sent, add_generation_prompt: prompt } = script.requests[0]?.json ?? {};
    assert.deepEqual([Array.isArray(sent) && sent.length, prompt], [turns, true]);
  });
});
