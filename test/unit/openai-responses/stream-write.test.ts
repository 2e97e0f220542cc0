import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Conversation, Part, Tool } from '../../../src/core/conversation.ts';
import type { AnswerContext } from '../../../src/core/dialect.ts';
import { GatewayError } from '../../../src/core/errors.ts';
import { replay, type Generation, type GenerationEvent } from '../../../src/core/generation.ts';
import { NoteList } from '../../../src/core/notes.ts';
import { openaiResponsesClient as client } from '../../../src/dialects/openai-responses/client.ts';
import { tryParseObject } from '../../../src/json/parse.ts';
import { isObject, type Json, type JsonObject } from '../../../src/json/value.ts';
import { schemaJudge } from '../../support/schemas.ts';
import { messagesUpstream, sealingFor } from '../../support/sealing.ts';

function conversation(changes: Partial<Conversation> = {}): Conversation {
  const base = { system: [], turns: [], tools: [], sampling: {}, extras: {} };
  return { ...base, output: { type: 'text' }, ...changes };
}

function contextOf(changes: Partial<AnswerContext> = {}): AnswerContext {
  let count = 0;
  return {
    model: 'my-model',
    requestId: 'req_1',
    createdSeconds: 1_700_000_000,
    nowSeconds: 1_700_000_000,
    wantsUsageFrame: true,
    promptTokensEstimate: 11,
    newId: (prefix) => `${prefix}${++count}`,
    notes: new NoteList(),
    conversation: conversation(),
    ...changes,
  };
}

function eventsIn(text: string): readonly JsonObject[] {
  return text
    .split('\n\n')
    .filter((block) => block !== '')
    .map((block) => {
      const [name = '', data = ''] = block.split('\n');
      const event = tryParseObject(data.replace(/^data: /, '')) ?? {};
      assert.equal(name, `event: ${String(event['type'])}`);
      return event;
    });
}

function written(events: readonly GenerationEvent[], changes: Partial<AnswerContext> = {}) {
  const writer = client.streamWriter(contextOf(changes));
  const text = events.map((event) => writer.write(event)).join('') + writer.end();
  const all = eventsIn(text);
  assert.deepEqual(
    all.map((event) => event['sequence_number']),
    all.map((_, i) => i),
  );
  return all;
}

function generation(parts: readonly Part[], more: Partial<Generation> = {}): Generation {
  const usage = { freshInputTokens: 40, cacheReadTokens: 60, outputTokens: 7, reasoningTokens: 3 };
  return { id: 'x', model: 'up', parts, finish: { kind: 'stop' }, usage, ...more };
}

const types = (events: readonly JsonObject[]): readonly Json[] =>
  events.map((event) => String(event['type']).replace('response.', ''));

function responseOf(event: JsonObject | undefined): JsonObject {
  const response = event?.['response'];
  assert.ok(isObject(response));
  return response;
}

function outputOf(events: readonly JsonObject[]): readonly JsonObject[] {
  const output = responseOf(events.at(-1))['output'];
  assert.ok(Array.isArray(output));
  return output.filter(isObject);
}

const callPart = (name: string, argumentsJson: string): Part => ({
  type: 'tool-call',
  id: 'c1',
  name,
  argumentsJson,
});
const tool = (name: string, extras: JsonObject = {}): Tool => ({
  name,
  schema: {},
  extras: { 'openai-responses': extras },
});

describe('events', () => {
  test('the order of a text and a call is that of the service', () => {
    const events = written(replay(generation([{ type: 'text', text: 'Hi' }, callPart('f', '{}')])));
    assert.deepEqual(types(events), [
      'created',
      'in_progress',
      'output_item.added',
      'content_part.added',
      'output_text.delta',
      'output_text.done',
      'content_part.done',
      'output_item.done',
      'output_item.added',
      'function_call_arguments.delta',
      'function_call_arguments.done',
      'output_item.done',
      'completed',
    ]);
  });

  test('R-69 texts of two phases are two messages, each with its own', () => {
    const text = (words: string, phase: string): Part => ({
      type: 'text',
      text: words,
      extras: { 'openai-responses': { phase } },
    });
    const parts = [text('I look.', 'commentary'), text('Noon.', 'final_answer')];
    const phases = outputOf(written(replay(generation(parts)))).map((item) => item['phase']);
    assert.deepEqual(phases, ['commentary', 'final_answer']);
  });

  for (const between of [callPart('f', '{}'), { type: 'reasoning', text: 'Hm.' }] as const) {
    test(`D3 a text that goes on although a ${between.type} began is not lost`, () => {
      const piece = (delta: string): GenerationEvent => {
        return { type: 'part-delta', index: 0, field: 'text', delta };
      };
      const events = written([
        { type: 'start', id: 'x', model: 'up' },
        { type: 'part-start', index: 0, part: { type: 'text', text: '' } },
        piece('It is '),
        { type: 'part-start', index: 1, part: between },
        piece('mild.'),
        { type: 'part-end', index: 1 },
        { type: 'part-end', index: 0 },
        { type: 'finish', reason: { kind: 'stop' } },
      ]);
      const said = outputOf(events).flatMap(({ content }) =>
        content === undefined ? [] : content,
      );
      assert.match(JSON.stringify(said), /It is .*mild\./);
    });
  }

  test('D3 what belongs to nothing is noted: the result of a search, sources of a text that ended', () => {
    const notes = new NoteList();
    const found = { type: 'web_search_tool_result', tool_use_id: 'x', content: [] };
    const url = 'https://a.example';
    const native = { dialect: 'openai-chat', value: {} } as const;
    const writer = client.streamWriter(contextOf({ notes }));
    const events: readonly GenerationEvent[] = [
      { type: 'start', id: 'x', model: 'up' },
      { type: 'part-start', index: 0, part: { type: 'text', text: 'Hi' } },
      { type: 'part-start', index: 1, part: callPart('f', '{}') },
      { type: 'part-citation', index: 0, citation: { url, native } },
      { type: 'part-end', index: 0 },
      { type: 'part-end', index: 1 },
      {
        type: 'part-start',
        index: 2,
        part: { type: 'opaque', dialect: 'anthropic-messages', value: found },
      },
      { type: 'part-end', index: 2 },
      { type: 'finish', reason: { kind: 'stop' } },
    ];
    for (const event of events) writer.write(event);
    assert.deepEqual(
      notes.all.map(({ path }) => path),
      ['citations', 'output'],
    );
  });

  test('R-80 a refusal after text is a message of its own', () => {
    const parts: Part[] = [
      { type: 'text', text: 'Hm.' },
      { type: 'refusal', text: 'No.' },
    ];
    const output = outputOf(
      written(replay(generation(parts, { finish: { kind: 'content-filter' } }))),
    );
    assert.deepEqual(
      output.map((item) => [item['type'], item['status']]),
      [
        ['message', 'completed'],
        ['message', 'completed'],
      ],
    );
  });

  test('R-81 usage has five integers, and the total is the sum', () => {
    const events = written(replay(generation([{ type: 'text', text: 'a' }])));
    assert.deepEqual(responseOf(events.at(-1))['usage'], {
      input_tokens: 100,
      input_tokens_details: { cached_tokens: 60, cache_write_tokens: 0 },
      output_tokens: 7,
      output_tokens_details: { reasoning_tokens: 3 },
      total_tokens: 107,
    });
    const { usage: _usage, ...unreported } = generation([]);
    const guessed = responseOf(written(replay(unreported)).at(-1))['usage'];
    assert.ok(isObject(guessed));
    assert.equal(guessed['total_tokens'], 11);
  });

  test('§5.1 a response is completed when it ends, and an incomplete one never', () => {
    let now = 1_700_000_000;
    const context = {
      ...contextOf(),
      get nowSeconds() {
        return now;
      },
    };
    const writer = client.streamWriter(context);
    const { parts, finish } = generation([{ type: 'text', text: 'a' }]);
    const events = replay({ id: 'x', model: 'up', parts, finish });
    const frames = events.map((event) => writer.write(event)).join('');
    now += 7;
    const all = eventsIn(frames + writer.end());
    assert.equal(responseOf(all[0])['completed_at'], null);
    const last = responseOf(all.at(-1));
    assert.equal(last['created_at'], 1_700_000_000);
    assert.equal(last['completed_at'], 1_700_000_007);
    const cut = written(replay(generation(parts, { finish: { kind: 'length' } })));
    assert.equal(responseOf(cut.at(-1))['completed_at'], null);
  });

  test('R-15 a call that was cut has no end, and the response is incomplete', () => {
    const finish = { kind: 'length' } as const;
    const events = written(replay(generation([callPart('f', '{"a":')], { finish })));
    assert.ok(!types(events).includes('output_item.done'));
    const response = responseOf(events.at(-1));
    assert.equal(events.at(-1)?.['type'], 'response.incomplete');
    assert.deepEqual(response['incomplete_details'], { reason: 'max_output_tokens' });
    const [item] = outputOf(events);
    assert.equal(item?.['status'], 'incomplete');
    assert.equal(item?.['arguments'], '{"a":');
  });

  for (const [why, kind, status] of [
    ['at the cap', 'length', 'incomplete'],
    ['by a filter', 'content-filter', 'incomplete'],
    ['nowhere', 'stop', 'completed'],
  ] as const) {
    test(`a message that was cut ${why} is ${status}, and one before it completed`, () => {
      const parts: readonly Part[] = [
        { type: 'text', text: 'I look.' },
        callPart('f', '{}'),
        { type: 'text', text: 'It is' },
      ];
      const events = written(replay(generation(parts, { finish: { kind } })));
      const statuses = outputOf(events).map((item) => item['status']);
      assert.deepEqual(statuses, ['completed', 'completed', status]);
      const done = events.filter(({ type }) => type === 'response.output_item.done');
      const last = done.at(-1)?.['item'];
      assert.ok(isObject(last) && last['type'] === 'message');
      assert.equal(last['status'], status);
      assert.equal(responseOf(events.at(-1))['status'], status);
    });
  }

  const textTool = { ...tool('patch', { kind: 'custom' }), freeText: true };
  const searchTool = tool('tool_search', { kind: 'tool_search' });
  for (const [name, args, shown] of [
    ['patch', '{"input":"say \\"hi', { input: 'say "hi' }],
    ['patch', '{"input":"a\\u00e', { input: 'a' }],
    ['patch', '{ "input": "\\\\', { input: '\\' }],
    ['patch', '{"input":"all"', { input: 'all' }],
    ['patch', '{"in', { input: '{"in' }],
    ['patch', '', { input: '' }],
    ['tool_search', '{"q":"x","n', { arguments: { q: 'x' } }],
    ['tool_search', '', { arguments: {} }],
  ] as const) {
    test(`R-15 of a cut call of ${name} all is shown that came: ${args}`, () => {
      const cut = generation([callPart(name, args)], { finish: { kind: 'length' } });
      const offered = conversation({ tools: [textTool, searchTool] });
      const events = written(replay(cut), { conversation: offered });
      assert.ok(!types(events).some((type) => String(type).endsWith('.done')));
      const [item = {}] = outputOf(events);
      assert.equal(item['status'], 'incomplete');
      assert.deepEqual({ ...item, ...shown }, item);
      const deltas = events.map(({ type, delta }) =>
        type === 'response.custom_tool_call_input.delta' ? delta : '',
      );
      if ('input' in shown) assert.equal(deltas.join(''), shown.input);
    });
  }

  test('R-26 a failure in mid-stream is an error event and a failed response', () => {
    const writer = client.streamWriter(contextOf());
    const events: GenerationEvent[] = [
      { type: 'start', id: 'x', model: 'm' },
      { type: 'part-start', index: 0, part: { type: 'text', text: 'Half' } },
    ];
    const begun = events.map((event) => writer.write(event)).join('');
    const failure = new GatewayError('stream_interrupted', 'It broke.');
    const last = eventsIn(begun + (writer.fail?.(failure, 'req_1') ?? '')).slice(-2);
    assert.deepEqual(types(last), ['error', 'failed']);
    const error = last[0]?.['error'];
    assert.ok(isObject(error));
    assert.equal(error['code'], 'upstream_stream_interrupted');
    const response = responseOf(last[1]);
    assert.equal(response['status'], 'failed');
    assert.ok(isObject(response['error']));
    assert.equal(response['error']['code'], 'server_error');
    assert.deepEqual(response['output'], []);
  });

  test('R-14 R-12 R-13 the code of a failed response is the one that Codex acts on', () => {
    const codes = [
      ['budget_exhausted', 'insufficient_quota'],
      ['rate_limited', 'rate_limit_exceeded'],
      ['context_overflow', 'context_length_exceeded'],
      ['overloaded', 'server_is_overloaded'],
      ['upstream_rejected', 'invalid_prompt'],
      ['upstream_auth', 'invalid_prompt'],
    ] as const;
    for (const [code, shown] of codes) {
      const [, , error, failed] = eventsIn(
        client.writeStreamError(new GatewayError(code, 'Why.'), 'r'),
      );
      assert.equal(error?.['type'], 'error');
      const told = responseOf(failed)['error'];
      assert.ok(isObject(told));
      assert.equal(told['code'], shown);
      if (code === 'rate_limited')
        assert.match(String(told['message']), /Please try again in 1\.0s\.$/);
    }
  });

  test('R-17 silence is filled with events: an empty delta of what is open, else the response so far', () => {
    const writer = client.streamWriter(contextOf());
    const keep = (): JsonObject | undefined => eventsIn(writer.keepAlive?.() ?? '').at(-1);
    assert.equal(keep()?.['type'], 'response.in_progress');
    writer.write({ type: 'start', id: 'x', model: 'm' });
    writer.write({ type: 'part-start', index: 0, part: { type: 'text', text: 'a' } });
    assert.deepEqual([keep()?.['type'], keep()?.['delta']], ['response.output_text.delta', '']);
    writer.write({ type: 'part-end', index: 0 });
    writer.write({ type: 'part-start', index: 1, part: callPart('f', '') });
    assert.equal(keep()?.['type'], 'response.function_call_arguments.delta');
    writer.write({ type: 'part-delta', index: 1, field: 'arguments', delta: '{}' });
    writer.write({ type: 'part-end', index: 1 });
    const between = keep();
    assert.equal(between?.['type'], 'response.in_progress');
    assert.equal(outputItems(between).length, 2);
  });

  test('R-17 a stream that began before an upstream answered continues with its id and numbers', () => {
    const context = contextOf();
    const opening = client.openStream?.(context);
    assert.ok(opening !== undefined);
    const begun = eventsIn(opening.keepAlive() + opening.keepAlive());
    const writer = client.streamWriter({ ...context, opening });
    const events = replay(generation([{ type: 'text', text: 'a' }]));
    const rest = eventsIn(events.map((event) => writer.write(event)).join('') + writer.end());
    assert.deepEqual(types(begun), ['created', 'in_progress', 'in_progress']);
    assert.equal(rest[0]?.['type'], 'response.output_item.added');
    assert.equal(rest[0]?.['sequence_number'], 3);
    assert.equal(responseOf(rest.at(-1))['id'], responseOf(begun[0])['id']);
  });
});

function outputItems(event: JsonObject | undefined): readonly Json[] {
  const { output } = responseOf(event);
  return Array.isArray(output) ? output : [];
}

describe('kinds of calls', () => {
  function answered(name: string, argumentsJson: string, tools: readonly Tool[]): JsonObject {
    const context = { conversation: conversation({ tools }) };
    const [item] = outputOf(written(replay(generation([callPart(name, argumentsJson)])), context));
    assert.ok(item !== undefined);
    return item;
  }

  test('R-4 R-71 a free text comes back as one', () => {
    const patch = { ...tool('apply_patch', { kind: 'custom' }), freeText: true };
    const item = answered('apply_patch', '{"input":"*** Begin"}', [patch]);
    assert.equal(item['type'], 'custom_tool_call');
    assert.equal(item['input'], '*** Begin');
  });

  test('R-6 a search comes back with arguments that are an object', () => {
    const item = answered('tool_search', '{"query":"q"}', [
      tool('tool_search', { kind: 'tool_search' }),
    ]);
    assert.equal(item['type'], 'tool_search_call');
    assert.equal(item['execution'], 'client');
    assert.deepEqual(item['arguments'], { query: 'q' });
  });

  test('R-8 a namespaced call has its bare name and its namespace, however the model writes it', () => {
    const tools = [tool('agents__close', { namespace: 'agents', name: 'close' })];
    for (const name of ['agents__close', 'agents.close', 'close']) {
      const item = answered(name, '{}', tools);
      assert.deepEqual([item['name'], item['namespace']], ['close', 'agents']);
    }
  });

  test('R-50 a patch tool and a function of its name come back as what they are, whichever is first', () => {
    const typed = { type: 'apply_patch' };
    const named = { type: 'function', name: 'apply_patch' };
    for (const offered of [
      [typed, named],
      [named, typed],
    ]) {
      const body = { model: 'm', input: 'Hi', tools: offered };
      const { tools } = client.readRequest(body, new NoteList());
      const patch = '{"operation":{"type":"delete_file","path":"a"}}';
      const items = tools.map(({ name }) => answered(name, patch, tools));
      assert.deepEqual(
        items.map(({ type, name = '' }) => [type, name]),
        offered.map((tool) =>
          tool === typed ? ['apply_patch_call', ''] : ['function_call', 'apply_patch'],
        ),
      );
    }
  });

  test('R-50 shell and patch tools come back as their own items', () => {
    const shells = (['local_shell', 'shell', 'apply_patch'] as const).map((kind) =>
      tool(kind, { kind }),
    );
    const local = answered('local_shell', '{"command":["ls"]}', shells);
    assert.deepEqual(local['action'], { type: 'exec', command: ['ls'], env: {} });
    assert.equal(answered('shell', '{"commands":["ls"]}', shells)['type'], 'shell_call');
    const patch = '{"operation":{"type":"delete_file","path":"a"}}';
    assert.equal(answered('apply_patch', patch, shells)['type'], 'apply_patch_call');
    const odd = answered('shell', '{"command":1}', shells);
    assert.deepEqual([odd['type'], odd['name']], ['function_call', 'shell']);
  });
});

describe('reasoning', () => {
  const thought: Part = { type: 'reasoning', text: 'I think.', signature: 'sig' };

  test('R-54 R-55 hidden it has no summary, shown it has one, and both are sealed for the way back', () => {
    for (const hidden of [true, false]) {
      const asked = conversation({ reasoning: hidden ? { hidden } : {} });
      const context = { conversation: asked, sealing: sealingFor(messagesUpstream) };
      const [item] = outputOf(written(replay(generation([thought])), context));
      assert.deepEqual(
        item?.['summary'],
        hidden ? [] : [{ type: 'summary_text', text: 'I think.' }],
      );
      const input = [
        { role: 'user', content: 'u' },
        item ?? {},
        { role: 'assistant', content: 't' },
      ];
      const body = { model: 'm', input };
      const { sealer } = sealingFor(messagesUpstream);
      const [part] = client.readRequest(body, new NoteList(), sealer).turns[1]?.parts ?? [];
      assert.deepEqual(part, { ...thought, origin: messagesUpstream });
    }
  });
});

/** Before its end the service tells `usage: null`, which its schema forbids. */
function withoutNoUsage(event: JsonObject): JsonObject {
  const { response } = event;
  if (!isObject(response) || response['usage'] !== null) return event;
  const { usage: _usage, ...rest } = response;
  return { ...event, response: rest };
}

describe('schema', () => {
  const parts: Part[] = [
    { type: 'reasoning', text: 'I think.' },
    { type: 'text', text: 'Hi' },
    { type: 'refusal', text: 'No.' },
    callPart('f', '{"a":1}'),
  ];

  test('R-79 events, and the document in the last one, are those of the published schema', () => {
    const judgeEvent = schemaJudge('ResponseStreamEvent');
    // The last event holds the document.
    for (const event of written(replay(generation(parts)))) {
      assert.equal(judgeEvent(withoutNoUsage(event)), '', JSON.stringify(event));
    }
  });

  test('a document is the response with which the stream of the same answer ends', () => {
    const events = written(replay(generation(parts)));
    const document = client.writeResponse(generation(parts), contextOf());
    assert.deepEqual(document, responseOf(events.at(-1)));
  });
});
