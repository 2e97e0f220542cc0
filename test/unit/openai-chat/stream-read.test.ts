import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { collect } from '../../../src/core/generation.ts';
import { chatTraits } from '../../../src/core/traits.ts';
import { openaiChatUpstream } from '../../../src/dialects/openai-chat/upstream.ts';
import {
  call,
  chunk,
  collectChunks,
  errorOf,
  frame,
  framesOf,
  readAll,
  readChunks,
  role,
  types,
  usage,
  usageChunk,
} from './answer-context.ts';

const finish = chunk({}, 'stop');

describe('text and order', () => {
  test('the events of a plain stream, one by one', () => {
    const reader = openaiChatUpstream.streamReader(chatTraits);
    assert.deepEqual(reader.read(frame(role)), [
      { type: 'start', id: 'chatcmpl-1', model: 'upstream-model' },
    ]);
    assert.deepEqual(reader.read(frame(chunk({ content: 'Hel' }))), [
      { type: 'part-start', index: 0, part: { type: 'text', text: '' } },
      { type: 'part-delta', index: 0, field: 'text', delta: 'Hel' },
    ]);
    assert.deepEqual(reader.read(frame(chunk({ content: 'lo' }))), [
      { type: 'part-delta', index: 0, field: 'text', delta: 'lo' },
    ]);
    assert.equal(reader.finishPending, false);
    assert.deepEqual(reader.read(frame(finish)), []);
    assert.equal(reader.finishPending, true);
    const raw = { freshInputTokens: 9, outputTokens: 5, raw: usage };
    assert.deepEqual(reader.read(frame(usageChunk)), [{ type: 'usage', usage: raw }]);
    assert.equal(reader.finishPending, true);
    assert.deepEqual(reader.read(frame('[DONE]')), [
      { type: 'part-end', index: 0 },
      { type: 'finish', reason: { kind: 'stop', raw: 'stop' } },
    ]);
    assert.equal(reader.finishPending, false);
    assert.deepEqual(reader.end(), []);
  });

  test('F55 what other choices say in the frame of a text is counted', () => {
    const reader = openaiChatUpstream.streamReader(chatTraits);
    for (const one of [role, chunk({ content: 'one' })]) reader.read(frame(one));
    const choices = ['two', 'beside'].map((content, index) => ({ index, delta: { content } }));
    assert.deepEqual(reader.read(frame(chunk({}, null, { choices }))), [
      { type: 'part-delta', index: 0, field: 'text', delta: 'two' },
    ]);
    assert.equal(reader.plain, false);
    assert.equal(reader.otherChoicesLength, 'beside'.length);
  });

  test('F49 comments, empty data and empty deltas mean nothing', () => {
    const reader = openaiChatUpstream.streamReader(chatTraits);
    for (const one of framesOf(': OPENROUTER PROCESSING\n\nid: 5\n\nevent: ping\n\ndata:\n\n')) {
      assert.deepEqual(reader.read(one), []);
    }
    reader.read(frame(role));
    assert.deepEqual(reader.read(frame(chunk({}))), []);
    assert.deepEqual(reader.read(frame({ id: 'x', object: 'ping' })), []);
  });

  test('Azure: a first chunk without choice, id and model does not start the answer', () => {
    const filter = { choices: [], created: 0, id: '', model: '', prompt_filter_results: [] };
    const generation = collectChunks([filter, role, chunk({ content: 'a' }), finish, '[DONE]']);
    assert.equal(generation.id, 'chatcmpl-1');
    assert.equal(generation.model, 'upstream-model');
  });

  test('F62 role on every chunk, and other choices than the first', () => {
    const other = { ...chunk({}), choices: [{ index: 1, delta: { content: 'no' } }] };
    const generation = collectChunks([
      chunk({ role: 'assistant', content: 'a' }),
      other,
      chunk({ role: 'assistant', content: 'b' }),
      finish,
      '[DONE]',
    ]);
    assert.deepEqual(generation.parts, [{ type: 'text', text: 'ab' }]);
  });

  test('refusal deltas are the model refusing, not text', () => {
    const generation = collectChunks([
      role,
      chunk({ refusal: 'I ' }),
      chunk({ refusal: 'won’t' }),
      finish,
    ]);
    assert.deepEqual(generation.parts, [{ type: 'refusal', text: 'I won’t' }]);
  });

  test('C1 every switch of kind keeps its first delta', () => {
    const generation = collectChunks([
      role,
      chunk({ reasoning_content: 'r1' }),
      chunk({ content: 't1' }),
      chunk({ tool_calls: [call(0, 'a', 'f', '{}')] }),
      chunk({ content: 't2' }),
      chunk({ reasoning_content: 'r2' }),
      chunk({ content: 't3' }),
      chunk({}, 'tool_calls'),
    ]);
    assert.deepEqual(
      generation.parts.map((part) =>
        part.type === 'tool-call' ? part.id : 'text' in part && part.text,
      ),
      ['r1', 't1', 'a', 't2', 'r2', 't3'],
    );
  });

  test('annotations become citations of the text', () => {
    const annotation = {
      type: 'url_citation',
      url_citation: { url: 'https://a.example', title: 'A', start_index: 0, end_index: 1 },
    };
    const { parts } = collectChunks([
      role,
      chunk({ content: 'x' }),
      chunk({ annotations: [{ index: 0, ...annotation }] }),
      finish,
    ]);
    assert.deepEqual(parts, [
      {
        type: 'text',
        text: 'x',
        citations: [
          {
            url: 'https://a.example',
            title: 'A',
            span: { start: 0, end: 1 },
            native: { dialect: 'openai-chat', value: annotation },
          },
        ],
      },
    ]);
  });
});

describe('reasoning', () => {
  for (const field of ['reasoning', 'reasoning_content']) {
    test(`D7 delta.${field}`, () => {
      const { parts } = collectChunks([
        role,
        chunk({ [field]: 'th', content: null }),
        chunk({ [field]: 'ink' }),
        chunk({ content: 'ok' }),
        finish,
      ]);
      assert.deepEqual(parts, [
        { type: 'reasoning', text: 'think' },
        { type: 'text', text: 'ok' },
      ]);
    });
  }

  test('D7 two spellings of one text are counted once', () => {
    const { parts } = collectChunks([
      role,
      chunk({ reasoning: 'a', reasoning_content: 'a' }),
      chunk({
        reasoning: 'b',
        reasoning_details: [{ type: 'reasoning.text', text: 'b', index: 0 }],
      }),
      chunk({ content: 'ok' }),
      finish,
    ]);
    assert.deepEqual(parts[0], { type: 'reasoning', text: 'ab' });
  });

  test('D1 reasoning_details: the signature is kept, byte for byte', () => {
    const detail = { type: 'reasoning.text', format: 'anthropic-claude-v1', index: 0 };
    const { parts } = collectChunks([
      role,
      chunk({ reasoning: 'think', reasoning_details: [{ ...detail, text: 'think' }] }),
      chunk({ reasoning_details: [{ ...detail, signature: 'c2ln+/==' }] }),
      chunk({ content: 'ok' }),
      finish,
    ]);
    assert.deepEqual(parts, [
      { type: 'reasoning', text: 'think', signature: 'c2ln+/==' },
      { type: 'text', text: 'ok' },
    ]);
  });

  test('D4 a signature behind the first text belongs to its own block', () => {
    const detail = { type: 'reasoning.text', format: 'anthropic-claude-v1', index: 0 };
    const { parts } = collectChunks([
      role,
      chunk({ reasoning_details: [{ ...detail, text: 'think' }] }),
      chunk({ content: 'o' }),
      chunk({ content: 'k', reasoning_details: [{ ...detail, signature: 'sig' }] }),
      finish,
    ]);
    assert.deepEqual(parts, [
      { type: 'reasoning', text: 'think', signature: 'sig' },
      { type: 'text', text: 'ok' },
    ]);
  });

  test('D2 D4 a block with nothing but a signature, and one that is encrypted', () => {
    const { parts } = collectChunks([
      role,
      chunk({
        reasoning_details: [
          { type: 'reasoning.text', signature: 'sig', format: 'anthropic-claude-v1', index: 0 },
          { type: 'reasoning.encrypted', data: 'blob', format: 'anthropic-claude-v1', index: 1 },
        ],
      }),
      chunk({ content: 'ok' }),
      finish,
    ]);
    assert.deepEqual(parts.slice(0, 2), [
      { type: 'reasoning', text: '', signature: 'sig' },
      { type: 'reasoning', text: '', encrypted: 'blob' },
    ]);
  });

  test('details with a new index are a new block', () => {
    const detail = (index: number, text: string) => ({ type: 'reasoning.text', index, text });
    const { parts } = collectChunks([
      role,
      chunk({ reasoning_details: [detail(0, 'a')] }),
      chunk({ reasoning_details: [detail(0, 'b'), detail(1, 'c')] }),
      finish,
    ]);
    assert.deepEqual(
      parts.map((part) => part.type === 'reasoning' && part.text),
      ['ab', 'c'],
    );
  });

  test('LiteLLM thinking_blocks beside reasoning_content', () => {
    const { parts } = collectChunks([
      role,
      chunk({ reasoning_content: 'th', thinking_blocks: [{ type: 'thinking', thinking: 'th' }] }),
      chunk({ thinking_blocks: [{ type: 'thinking', thinking: '', signature: 's' }] }),
      chunk({ content: 'ok' }),
      finish,
    ]);
    assert.deepEqual(parts[0], { type: 'reasoning', text: 'th', signature: 's' });
  });
});

describe('finish', () => {
  const rows: readonly (readonly [string, boolean, string])[] = [
    ['stop', false, 'stop'],
    ['stop', true, 'tool-calls'],
    ['tool_calls', true, 'tool-calls'],
    ['tool_calls', false, 'other'],
    ['function_call', true, 'tool-calls'],
    ['length', false, 'length'],
    ['length', true, 'length'],
    ['model_length', false, 'length'],
    ['content_filter', false, 'content-filter'],
    ['eos', false, 'stop'],
    ['something_new', false, 'other'],
  ];
  for (const [word, withCall, kind] of rows) {
    test(`B11 B12 B13 ${word}${withCall ? ' with a call' : ''} → ${kind}`, () => {
      const delta = withCall ? { tool_calls: [call(0, 'a', 'f', '{}')] } : { content: 'x' };
      const { finish: seen } = collectChunks([role, chunk(delta), chunk({}, word), '[DONE]']);
      assert.deepEqual(seen, { kind, raw: word });
    });
  }

  test('vLLM says which stop sequence matched', () => {
    const last = {
      ...chunk({}),
      choices: [{ index: 0, delta: {}, finish_reason: 'stop', stop_reason: 'END' }],
    };
    const { finish: seen } = collectChunks([role, chunk({ content: 'x' }), last]);
    assert.deepEqual(seen, { kind: 'stop-sequence', raw: 'stop', sequence: 'END' });
  });

  test('F60 the first finish reason holds', () => {
    const { finish: seen } = collectChunks([
      role,
      chunk({}, 'length'),
      chunk({}, 'stop'),
      '[DONE]',
    ]);
    assert.equal(seen.kind, 'length');
  });

  for (const [word, code] of [
    ['insufficient_system_resource', 'overloaded'],
    ['error', 'upstream_unavailable'],
    ['abort', 'stream_interrupted'],
  ] as const) {
    test(`finish ${word} is a failure`, () => {
      const events = readChunks([role, chunk({ content: 'x' }), chunk({}, word), '[DONE]']);
      assert.equal(errorOf(events).code, code);
      assert.equal(collect(events), undefined);
    });
  }

  test('n > 1 in relay: the stream is complete when every choice has finished', () => {
    const other = (finish_reason: string | null) => ({
      ...chunk({}),
      choices: [{ index: 1, delta: { content: 'b' }, finish_reason }],
    });
    const begun = (requested: number) => {
      const reader = openaiChatUpstream.streamReader(chatTraits, undefined, requested);
      for (const value of [role, other(null), finish]) reader.read(frame(value));
      return reader;
    };
    const reader = begun(2);
    assert.equal(reader.finishPending, false);
    reader.read(frame(other('stop')));
    assert.equal(reader.finishPending, true);
    assert.equal(errorOf([...begun(2).end()]).code, 'stream_interrupted');
    // It was not requested.
    assert.equal(begun(1).finishPending, true);
  });

  test('F53 nothing after the end counts', () => {
    const events = readChunks([
      role,
      finish,
      '[DONE]',
      chunk({ content: 'late' }),
      '[DONE]',
      usageChunk,
    ]);
    assert.deepEqual(types(events), ['start', 'finish']);
  });

  test('F54 [DONE] without a finish is no success', () => {
    const events = readChunks([role, chunk({ content: 'x' }), '[DONE]']);
    assert.equal(errorOf(events).code, 'stream_interrupted');
  });

  test('E4 F40 the close without a finish is no success', () => {
    assert.equal(errorOf(readChunks([role, chunk({ content: 'x' })])).code, 'stream_interrupted');
    assert.equal(errorOf(readAll([])).code, 'upstream_invalid');
  });

  test('F52 finish without [DONE], F58 usage behind the finish', () => {
    assert.equal(collectChunks([role, finish]).finish.kind, 'stop');
    assert.equal(collectChunks([role, finish, usageChunk]).usage?.outputTokens, 5);
  });
});
