import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { call, chunk, collectChunks, errorOf, readChunks, role, types } from './answer-context.ts';

function calls(deltas: readonly object[], reason = 'tool_calls') {
  const chunks = deltas.map((delta) => chunk({ tool_calls: [delta] }));
  const { parts, finish: seen } = collectChunks([role, ...chunks, chunk({}, reason), '[DONE]']);
  return {
    finish: seen.kind,
    calls: parts.flatMap((part) =>
      part.type === 'tool-call' ? [[part.id, part.name, part.argumentsJson]] : [],
    ),
  };
}

describe('tool calls', () => {
  test('B1 interleaved fragments end up in their own calls', () => {
    assert.deepEqual(
      calls([
        call(0, 'a', 'f', ''),
        call(1, 'b', 'g', ''),
        call(0, undefined, undefined, '{"x":'),
        call(1, undefined, undefined, '{"y":'),
        call(0, undefined, undefined, '1}'),
        call(1, undefined, undefined, '2}'),
      ]),
      {
        finish: 'tool-calls',
        calls: [
          ['a', 'f', '{"x":1}'],
          ['b', 'g', '{"y":2}'],
        ],
      },
    );
  });

  test('B1 a complete call is ended when the next begins', () => {
    const events = readChunks([
      role,
      chunk({ tool_calls: [call(0, 'a', 'f', '{}')] }),
      chunk({ tool_calls: [call(1, 'b', 'g', '')] }),
      chunk({ tool_calls: [call(1, undefined, undefined, '{}')] }),
      chunk({}, 'tool_calls'),
      '[DONE]',
    ]);
    assert.deepEqual(types(events), [
      'start',
      'part-start',
      'part-delta',
      'part-end',
      'part-start',
      'part-delta',
      'part-end',
      'finish',
    ]);
  });

  test('B1 B6 thousands of open calls, or of fragments that each have an id, are read in one go', (t) => {
    const parse = t.mock.method(JSON, 'parse');
    const many = 2000;
    const open = Array.from({ length: many }, (_, i) => call(i, `c${i}`, 'f', '{"a":'));
    calls(open, 'length');
    const words = Array.from({ length: many }, () => 'lorem ipsum ');
    const pieces = ['{"a":"', ...words, '"}'];
    const seen = calls(
      pieces.map((piece, i) => call(0, `c${i}`, i === 0 ? 'f' : undefined, piece)),
    );
    assert.deepEqual(seen.calls, [['c0', 'f', pieces.join('')]]);
    // Once a frame; what was read of the arguments before is not parsed again with each of them.
    assert.ok(parse.mock.callCount() < 3 * many, String(parse.mock.callCount()));
  });

  test('B10 index 0 for all, different ids, arguments as objects', () => {
    assert.deepEqual(calls([call(0, 'a', 'f', { x: 1 }), call(0, 'b', 'f', { x: 2 })], 'stop'), {
      finish: 'tool-calls',
      calls: [
        ['a', 'f', '{"x":1}'],
        ['b', 'f', '{"x":2}'],
      ],
    });
  });

  test('B10 arguments as an object keep integers beyond 2^53', () => {
    const args = '{"id":12345678901234567890}';
    const calling = JSON.stringify(chunk({ tool_calls: [call(0, 'a', 'f', { here: 0 })] }));
    const { parts } = collectChunks([
      role,
      calling.replace('{"here":0}', args),
      chunk({}, 'tool_calls'),
      '[DONE]',
    ]);
    assert.deepEqual(
      parts.map((part) => part.type === 'tool-call' && part.argumentsJson),
      [args],
    );
  });

  test('B6 an id that is repeated on every delta is not joined', () => {
    assert.deepEqual(
      calls([call(0, 'a', 'f', ''), call(0, 'a', 'f', '{"x":'), call(0, 'a', 'f', '1}')]).calls,
      [['a', 'f', '{"x":1}']],
    );
  });

  test('B6 calls without ids get their own, the same each time', () => {
    const deltas = [call(0, undefined, 'f', '{}'), call(1, undefined, 'f', '{}')];
    const first = calls(deltas).calls;
    assert.equal(first.length, 2);
    assert.notEqual(first[0]?.[0], first[1]?.[0]);
    assert.match(String(first[0]?.[0]), /^call_[0-9a-f]{24}$/);
    assert.deepEqual(calls(deltas).calls, first);
  });

  test('B10 whole calls with index 0 and no ids are two calls', () => {
    assert.deepEqual(
      calls([call(0, undefined, 'f', '{"x":1}'), call(0, undefined, 'f', '{"x":2}')]).calls.map(
        ([, name, args]) => [name, args],
      ),
      [
        ['f', '{"x":1}'],
        ['f', '{"x":2}'],
      ],
    );
  });

  test('several whole calls in one delta, without any index', () => {
    const { parts } = collectChunks([
      role,
      chunk({ tool_calls: [call(undefined, 'a', 'f', '{}'), call(undefined, 'b', 'g', '{}')] }),
      chunk({}, 'tool_calls'),
    ]);
    assert.deepEqual(
      parts.map((part) => part.type === 'tool-call' && part.id),
      ['a', 'b'],
    );
  });

  test('F59 an id that comes late, and an index gap', () => {
    const late = [
      call(3, undefined, 'f'),
      call(3, 'late', undefined, ''),
      call(3, undefined, undefined, '{}'),
    ];
    assert.deepEqual(calls(late).calls, [['late', 'f', '{}']]);
  });

  test('F59 broken arguments are passed on as they are', () => {
    assert.deepEqual(calls([call(0, 'a', 'f', '{"x": tru')]).calls, [['a', 'f', '{"x": tru']]);
  });

  test('F-8 a call that never gets a name is an error, also beside another one', () => {
    for (const before of [[], [chunk({ tool_calls: [call(1, 'b', 'f', '{}')] })]]) {
      const nameless = chunk({ tool_calls: [call(0, 'a')] });
      const events = readChunks([role, ...before, nameless, chunk({}, 'tool_calls'), '[DONE]']);
      assert.equal(errorOf(events).code, 'upstream_invalid');
    }
  });

  test('deprecated function_call deltas', () => {
    const { parts, finish: seen } = collectChunks([
      role,
      chunk({ function_call: { name: 'f', arguments: '' } }),
      chunk({ function_call: { arguments: '{}' } }),
      chunk({}, 'function_call'),
    ]);
    assert.equal(seen.kind, 'tool-calls');
    assert.equal(parts[0]?.type === 'tool-call' && parts[0].argumentsJson, '{}');
  });

  test('custom calls: free text arrives as {"input"}', () => {
    const custom = (more: object) => chunk({ tool_calls: [{ index: 0, ...more }] });
    const { parts } = collectChunks([
      role,
      custom({ id: 'a', type: 'custom', custom: { name: 'c', input: '' } }),
      custom({ custom: { input: 'say "hi"\n' } }),
      custom({ custom: { input: 'bye' } }),
      chunk({}, 'tool_calls'),
    ]);
    assert.equal(
      parts[0]?.type === 'tool-call' && parts[0].argumentsJson,
      JSON.stringify({ input: 'say "hi"\nbye' }),
    );
  });

  for (const reason of ['length', 'content_filter']) {
    test(`R-15 a free text at whose end the answer was cut (${reason}) has no end`, () => {
      const custom = (index: number, id: string): object =>
        chunk({ tool_calls: [{ index, id, type: 'custom', custom: { name: 'c', input: 'x' } }] });
      const { parts } = collectChunks([role, custom(0, 'a'), custom(1, 'b'), chunk({}, reason)]);
      assert.deepEqual(
        parts.map((part) => part.type === 'tool-call' && part.argumentsJson),
        ['{"input":"x"}', '{"input":"x'],
      );
    });
  }

  test('D5 the thought signature of a call is kept', () => {
    const extra_content = { google: { thought_signature: 'abc' } };
    const { parts } = collectChunks([
      role,
      chunk({ tool_calls: [{ ...call(0, 'a', 'f', '{}'), extra_content }] }),
      chunk({}, 'stop'),
    ]);
    assert.deepEqual(parts[0]?.extras, { 'openai-chat': { extra_content } });
  });
});
