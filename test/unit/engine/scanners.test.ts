/** Text in pieces: stop sequences, tool calls and characters are found wherever the pieces break. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import * as fc from 'fast-check';
import type { Token } from 'node-llama-cpp';
import type { JsonObject } from '../../../src/engine/engine-error.ts';
import { StopScanner, ToolScanner } from '../../../src/engine/scanners.ts';
import { TextPieces } from '../../../src/engine/generate.ts';
import { anyCharacter } from '../../support/any-character.ts';

/** Cuts a text at the given places, wherever they fall. */
function cut(text: string, places: readonly number[]): string[] {
  const sorted = places.map((place) => place % (text.length + 1)).sort((a, b) => a - b);
  const pieces = sorted.map((place, index) => text.slice(sorted[index - 1] ?? 0, place));
  return [...pieces, text.slice(sorted.at(-1) ?? 0)];
}

const places = fc.array(fc.nat(), { maxLength: 12 });

describe('stop sequences', () => {
  function scan(pieces: readonly string[], stops: readonly string[]): readonly [string, unknown] {
    const scanner = new StopScanner(stops);
    let text = '';
    for (const piece of pieces) {
      text += scanner.push(piece);
      if (scanner.matched !== undefined) return [text, scanner.matched];
    }
    return [text + scanner.end(), undefined];
  }

  test('the first sequence cuts the text', () => {
    assert.deepEqual(scan(['one, t', 'wo, three'], ['three', 'two']), ['one, ', 'two']);
    assert.deepEqual(scan(['aab'], ['ab', 'b']), ['a', 'ab']);
    assert.deepEqual(scan(['abc'], ['ab', 'abc']), ['', 'abc']);
    assert.deepEqual(scan(['one tw'], ['two']), ['one tw', undefined]);
    assert.deepEqual(scan(['any'], []), ['any', undefined]);
  });

  test('pieces make no difference', () => {
    const text = fc.string({ unit: fc.constantFrom('a', 'b', '\n'), maxLength: 30 });
    const stop = fc.string({ unit: fc.constantFrom('a', 'b', '\n'), minLength: 3, maxLength: 4 });
    fc.assert(
      fc.property(text, stop, places, (whole, sequence, at) => {
        assert.deepEqual(scan(cut(whole, at), [sequence]), scan([whole], [sequence]));
      }),
    );
  });
});

describe('calls with one element a parameter', () => {
  const schemas: { readonly [name: string]: JsonObject } = {
    f: {
      properties: {
        city: { type: 'string' },
        count: { type: 'integer' },
        list: { type: 'array' },
        maybe: { type: ['string', 'null'] },
        pick: { enum: ['1', 2] },
      },
    },
    g: {},
  };
  function read(body: string): readonly string[] {
    const found: string[] = [];
    const scanner = new ToolScanner(
      {
        names: new Set(['f', 'g']),
        schemaOf: (name) => schemas[name],
        holdsForm: () => false,
        callEnded: () => {},
      },
      {
        text: (text) => void found.push(`text ${text}`),
        call: (name) => void found.push(name),
        callArguments: (text) => void found.push(text),
      },
    );
    for (const character of `<tool_call>\n${body}\n</tool_call>`) scanner.push(character);
    scanner.end();
    return found;
  }
  const parameter = (key: string, value: string): string =>
    `<parameter=${key}>\n${value}\n</parameter>\n`;

  test('values are what the schema says', () => {
    const values = [
      parameter('city', '12'),
      parameter('count', '9007199254740993'),
      parameter('list', '[1, "a"]'),
      parameter('maybe', 'null'),
      parameter('pick', '1'),
      parameter('other', 'true'),
    ];
    assert.deepEqual(read(`<function=f>\n${values.join('')}</function>`), [
      'f',
      '{"city": "12", "count": 9007199254740993, "list": [1, "a"], "maybe": null, "pick": "1", "other": "true"}',
    ]);
    assert.deepEqual(read('<function=g>\n</function>'), ['g', '{}']);
  });

  test('lines, quotes and tags inside a value stay, JSON that is none becomes text', () => {
    const value = 'if (a < b) {\n  "x"</parameter> y\n}\n';
    assert.deepEqual(
      read(`<function=f>\n${parameter('city', value)}${parameter('count', 'many')}</function>`),
      ['f', `{"city": ${JSON.stringify(value)}, "count": "many"}`],
    );
  });

  test('what is no call of an offered tool stays text', () => {
    for (const body of [
      '<function=h>\n</function>',
      '<function=f>\nhello</function>',
      '<functions',
    ]) {
      assert.deepEqual(read(body), [`text <tool_call>\n${body}\n</tool_call>`]);
    }
  });
});

describe('tool calls', () => {
  interface Found {
    text: string;
    calls: string[];
  }
  function scan(pieces: readonly string[], names = ['f', 'g'], holds = false): Found {
    const found = { text: '', calls: new Array<string>() };
    const scanner = new ToolScanner(
      { names: new Set(names), holdsForm: () => holds, callEnded: () => {} },
      {
        text: (text) => void (found.text += text),
        call: (name) => void found.calls.push(`${name} `),
        callArguments: (text) => void found.calls.push(`${found.calls.pop() ?? ''}${text}`),
      },
    );
    for (const piece of pieces) scanner.push(piece);
    scanner.end();
    return found;
  }
  const call = (name: string, args: string): string =>
    `<tool_call>\n{"name": "${name}", "arguments": ${args}}\n</tool_call>`;

  test('several calls, with the text before them', () => {
    const text = `I look.\n${call('f', '{"a": 1}')}\n${call('g', '{}')}\n`;
    assert.deepEqual(scan([text]), { text: 'I look.', calls: ['f {"a": 1}', 'g {}'] });
  });

  test('arguments keep their digits', () => {
    const precise = '{"id": 12345678901234567890, "2": 1.0}';
    assert.deepEqual(scan([call('f', precise)]).calls, [`f ${precise}`]);
  });

  test('a call without its closing tag counts; arguments may be missing or a string', () => {
    assert.deepEqual(scan(['<tool_call>{"name":"f"}']).calls, ['f {}']);
    assert.deepEqual(scan([call('f', String.raw`"{\"a\":1}"`)]).calls, ['f {"a":1}']);
  });

  test('what is no call of an offered tool stays text', () => {
    for (const text of [
      call('unknown', '{}'),
      '<tool_call>{"name": f}</tool_call> after',
      '<tool_call>{"name":"f","argu',
      'a < b, <tool',
    ]) {
      assert.deepEqual(scan([text]), { text, calls: [] });
    }
    assert.deepEqual(scan([call('f', '{}')], []), { text: call('f', '{}'), calls: [] });
  });

  test('a call of certain form is passed on as it is written', () => {
    const written: string[] = [];
    const scanner = new ToolScanner(
      { names: new Set(['f']), holdsForm: () => true, callEnded: () => void written.push('end') },
      {
        text: (text) => void written.push(`text ${text}`),
        call: (name) => void written.push(`call ${name}`),
        callArguments: (text) => void written.push(text),
      },
    );
    const pieces = [
      '<tool_call>',
      '\n{"na',
      'me": "f", "arguments": {"a',
      '": "}\\"',
      '{"}',
      '}\n</tool',
      '_call>',
    ];
    for (const piece of pieces) scanner.push(piece);
    assert.deepEqual(written, ['call f', '{"a', '": "}\\"', '{"}', 'end']);
    assert.equal(scanner.endedCalls, 1);
  });

  test('calls of certain form: pieces make no difference', () => {
    const text = `I look.\n${call('f', '{"a": [{}, "\\\\"]}')}\n${call('g', '{}')}`;
    const whole = scan([text], ['f', 'g'], true);
    assert.deepEqual(whole.calls, ['f {"a": [{}, "\\\\"]}', 'g {}']);
    fc.assert(
      fc.property(places, (at) => assert.deepEqual(scan(cut(text, at), ['f', 'g'], true), whole)),
    );
  });

  test('a call of certain form that is cut: before its arguments it is text, in them it is a call', () => {
    const begun = '<tool_call>\n{"name": "f", "argu';
    assert.deepEqual(scan([begun], ['f'], true), { text: begun, calls: [] });
    assert.deepEqual(scan([call('f', '{"a": "b').slice(0, 45)], ['f'], true).calls.length, 1);
  });

  test('pieces make no difference', () => {
    const text = `Well <tool \n${call('f', '{"x": "<tool_call>"}')} \n${call('h', '{}')}end \n`;
    const whole = scan([text]);
    fc.assert(fc.property(places, (at) => assert.deepEqual(scan(cut(text, at)), whole)));
  });
});

describe('characters', () => {
  // A tokenizer with one token a byte.
  const decoder = new TextDecoder();
  const decode = (tokens: readonly Token[]): string => decoder.decode(Uint8Array.from(tokens));
  const isToken = (value: number): value is Token => Number.isInteger(value);
  const tokens = (bytes: Iterable<number>): Token[] => [...bytes].filter(isToken);

  function pieces(bytes: Iterable<number>): string[] {
    const held = new TextPieces(decode, []);
    const found = tokens(bytes).map((token) => held.push(token));
    return [...found, held.end()].filter((piece) => piece !== '');
  }

  test('a character is held back until it is whole', () => {
    assert.deepEqual(pieces(Buffer.from('a🎉é日')), ['a', '🎉', 'é', '日']);
  });

  test('broken bytes and the replacement character itself come out', () => {
    assert.deepEqual(pieces([0xf0, 0x9f]), ['\uFFFD']);
    for (const text of ['\uFFFD and on', '\uFFFD日', '\uFFFD\uFFFD🎉\uFFFDé']) {
      assert.equal(pieces(Buffer.from(text)).join(''), text);
    }
  });

  test('any text comes out as it went in', () => {
    const text = fc.string({ unit: anyCharacter });
    fc.assert(
      fc.property(text, (whole) => assert.equal(pieces(Buffer.from(whole)).join(''), whole)),
    );
  });
});
