/** The playground asks each endpoint with the same conversation, and reads the same answer from each. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  documentAnswer,
  nothingYet,
  withEvent,
} from '../../../dashboard/src/pages/playground/formats/answer.ts';
import { bodyChanges } from '../../../dashboard/src/pages/playground/formats/changes.ts';
import { FrameReader } from '../../../dashboard/src/pages/playground/formats/frames.ts';
import { requestBody } from '../../../dashboard/src/pages/playground/formats/request.ts';
import {
  exampleTools,
  translatedTools,
} from '../../../dashboard/src/pages/playground/formats/tools.ts';
import {
  noSettings,
  type CallSettings,
  type Turn,
} from '../../../dashboard/src/pages/playground/formats/turns.ts';
import { GatewayError } from '../../../src/core/errors.ts';
import { replay, type Generation } from '../../../src/core/generation.ts';
import { NoteList } from '../../../src/core/notes.ts';
import { tryParseObject } from '../../../src/json/parse.ts';
import { answerContext, halves, writeStream } from '../../property/dialect-halves.ts';
import { allDialects, type AnyDialect } from '../../support/reading.ts';

const turns: readonly Turn[] = [
  {
    role: 'user',
    text: 'What is it?',
    pictures: [{ name: 'p', type: 'image/png', base64: 'iVBORw0KGgo=' }],
  },
  {
    role: 'assistant',
    text: 'I look.',
    reasoning: '',
    calls: [{ id: 'call_1', name: 'get_weather', arguments: '{"city":"Paris"}' }],
  },
  { role: 'tool', results: [{ id: 'call_1', text: 'Sunny.' }] },
  { role: 'user', text: 'And now?', pictures: [] },
];

function settings(endpoint: AnyDialect): CallSettings {
  const plain = {
    model: 'm',
    stream: true,
    system: 'Be brief.',
    maxTokens: '77',
    temperature: '0.5',
  };
  return { ...noSettings, endpoint, ...plain, tools: exampleTools(endpoint) };
}

/** What the gateway reads of it. */
function understood(endpoint: AnyDialect): unknown {
  const { client } = halves[endpoint];
  const text = JSON.stringify(requestBody(settings(endpoint), turns));
  const body = tryParseObject(text) ?? assert.fail(text);
  const head = client.readHead(body);
  const notes = new NoteList();
  const { system, turns: read, tools, sampling } = client.readRequest(body, notes);
  assert.deepEqual(notes.all, []);
  return {
    model: head.model,
    stream: head.stream,
    cap: sampling.maxOutputTokens,
    temperature: sampling.temperature,
    system: system.map((part) => part.type === 'text' && part.text),
    tools: tools.map(({ name, description, schema }) => ({ name, description, schema })),
    // Turns of one role may be one or two.
    parts: read.flatMap(({ role, parts }) =>
      parts.map((part) => {
        if (part.type === 'text') return [role, part.text];
        if (part.type === 'tool-call') return [role, part.id, part.name, part.argumentsJson];
        return [role, part.type === 'tool-result' ? part.callId : part.type];
      }),
    ),
  };
}

const generation: Generation = {
  id: 'x',
  model: 'm',
  parts: [
    { type: 'reasoning', text: 'Hm.', signature: 's' },
    { type: 'text', text: 'Sunny.' },
    { type: 'tool-call', id: 'call_1', name: 'get_weather', argumentsJson: '{"city":"Paris"}' },
  ],
  finish: { kind: 'tool-calls' },
  usage: { freshInputTokens: 3, outputTokens: 5 },
};
const ends = { chat: 'tool_calls', messages: 'tool_use', responses: 'completed' } as const;

for (const endpoint of allDialects) {
  describe(endpoint, () => {
    test('a conversation with pictures, calls and results is what it is on chat', () => {
      assert.deepEqual(understood(endpoint), understood('chat'));
    });

    test('tools are translated from each other endpoint', () => {
      for (const other of allDialects) {
        assert.equal(translatedTools(exampleTools(other), endpoint), exampleTools(endpoint), other);
      }
    });

    test('a stream and a document are read alike', () => {
      const stream = writeStream(halves[endpoint], replay(generation));
      const streamed = new FrameReader()
        .push(stream)
        .reduce((answer, { data }) => withEvent(answer, endpoint, data), nothingYet);
      const document = halves[endpoint].client.writeResponse(generation, answerContext());
      for (const answer of [streamed, documentAnswer(endpoint, document)]) {
        assert.equal(answer.text, 'Sunny.');
        assert.equal(answer.reasoning, 'Hm.');
        assert.deepEqual(answer.calls, [
          { id: 'call_1', name: 'get_weather', arguments: '{"city":"Paris"}' },
        ]);
        assert.equal(answer.finish, ends[endpoint]);
        assert.ok(answer.usage !== undefined);
        assert.equal(answer.error, undefined);
      }
    });

    test('a stream that fails says why', () => {
      const failure = new GatewayError('stream_interrupted', 'It broke.');
      const begun = replay(generation).slice(0, 3);
      const failed = new FrameReader()
        .push(writeStream(halves[endpoint], begun, failure))
        .reduce((answer, { data }) => withEvent(answer, endpoint, data), nothingYet);
      assert.match(failed.error ?? '', /It broke/);
    });
  });
}

test('24.3 what an upstream gets is compared member by member', () => {
  const sent = { model: 'fast', messages: [{ role: 'user', content: 'Hi' }], user: 'u', n: 1 };
  const got = { model: 'primary', messages: [{ role: 'user', content: 'Hi' }, 1], n: 1, seed: 7 };
  assert.deepEqual(bodyChanges(sent, got), [
    { path: 'model', sent: '"fast"', got: '"primary"' },
    { path: 'messages[1]', sent: undefined, got: '1' },
    { path: 'user', sent: '"u"', got: undefined },
    { path: 'seed', sent: undefined, got: '7' },
  ]);
  assert.deepEqual(bodyChanges(sent, structuredClone(sent)), []);
});

test('parameters are sent by the endpoints that have them, under the names that they have there', () => {
  const all = {
    ...noSettings,
    model: 'm',
    stream: false,
    maxTokens: '9000',
    temperature: '0.5',
    topP: '0.9',
    topK: '40',
    stop: 'END\n\n###',
    seed: '7',
    frequencyPenalty: '0.1',
    presencePenalty: '-0.2',
    effort: 'low',
    thinkingBudget: '2048',
    format: 'schema',
    schema: '{"type":"object"}',
    toolChoice: 'required',
    more: '{"user":"u"}',
  };
  const sent = (endpoint: AnyDialect, change: Partial<CallSettings> = {}) => {
    const tools = exampleTools(endpoint);
    const body = requestBody({ ...all, tools, endpoint, ...change }, []);
    const { model: _model, messages: _messages, input: _input, tools: _tools, ...members } = body;
    return members;
  };
  const schema = { type: 'object' };
  assert.deepEqual(sent('chat'), {
    max_completion_tokens: 9000,
    temperature: 0.5,
    top_p: 0.9,
    stop: ['END', '###'],
    seed: 7,
    frequency_penalty: 0.1,
    presence_penalty: -0.2,
    reasoning_effort: 'low',
    response_format: { type: 'json_schema', json_schema: { name: 'answer', schema, strict: true } },
    tool_choice: 'required',
    user: 'u',
  });
  assert.deepEqual(sent('messages'), {
    max_tokens: 9000,
    temperature: 0.5,
    top_p: 0.9,
    top_k: 40,
    stop_sequences: ['END', '###'],
    thinking: { type: 'enabled', budget_tokens: 2048 },
    output_config: { effort: 'low', format: { type: 'json_schema', schema } },
    tool_choice: { type: 'any' },
    user: 'u',
  });
  assert.deepEqual(sent('responses'), {
    max_output_tokens: 9000,
    temperature: 0.5,
    top_p: 0.9,
    reasoning: { effort: 'low', summary: 'auto' },
    text: { format: { type: 'json_schema', name: 'answer', schema, strict: true } },
    store: false,
    tool_choice: 'required',
    user: 'u',
  });
  const plain = { thinkingBudget: '', format: '' };
  assert.deepEqual(sent('messages', plain)['thinking'], { type: 'adaptive' });
  assert.deepEqual(sent('messages', { ...plain, effort: 'none' })['thinking'], {
    type: 'disabled',
  });
  assert.equal(sent('messages', { ...plain, effort: 'minimal' })['thinking'], undefined);
  assert.deepEqual(sent('chat', { format: 'json' })['response_format'], { type: 'json_object' });
  assert.deepEqual(sent('messages', { ...plain, format: 'json' })['output_config'], {
    effort: 'low',
  });
  assert.throws(() => sent('chat', { schema: '' }), /JSON Schema/);
  assert.throws(() => sent('chat', { more: '[]' }), /JSON object/);
});
