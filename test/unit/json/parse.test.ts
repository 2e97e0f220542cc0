import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../../../src/core/errors.ts';
import { locateJsonError } from '../../../src/json/parse.ts';
import { maxDepth } from '../../../src/json/scan.ts';
import { parseBody } from '../../../src/core/client-body.ts';
import { spliceMembers } from '../../../src/json/edit.ts';

const owned = new Set(['model', 'messages']);

function parse(text: string | Buffer) {
  return parseBody(Buffer.from(text), owned);
}

function refusal(text: string | Buffer): GatewayError {
  try {
    parse(text);
  } catch (error) {
    assert.ok(error instanceof GatewayError);
    return error;
  }
  throw new Error('the body was accepted');
}

test('relay: a splice changes its span and not one other byte', () => {
  const text =
    '{ "10":1.0, "2" : {"model":"inner"} , "mod\\u0065l":"x\\"y" , "big":12345678901234567890 }\n';
  const source = parse(text);
  assert.equal(
    spliceMembers(source, { model: '"new"' }).toString(),
    text.replace('"x\\"y"', '"new"'),
  );
});

test('relay: a member that is absent is inserted first, and an empty object needs no comma', () => {
  assert.equal(spliceMembers(parse('{"a":1}'), { b: '{}' }).toString(), '{"b":{},"a":1}');
  assert.equal(spliceMembers(parse('{}'), { b: '2' }).toString(), '{"b":2}');
});

test('X-10 several members go into an empty object', () => {
  assert.equal(spliceMembers(parse('{ }'), { a: '1', b: '2' }).toString(), '{"a":1,"b":2 }');
});

test('relay: several spans are replaced whatever their order', () => {
  const source = parse('{"stream":false,"n":1,"model":"a"}');
  assert.equal(
    spliceMembers(source, { model: '"b"', stream: 'true', n: undefined }).toString(),
    '{"stream":true,"n":1,"model":"b"}',
  );
});

test('B39: a repeated owned key is refused by name, also when one is escaped', () => {
  assert.deepEqual(refusal('{"model":"a","m\\u006fdel":"b"}').path, ['model']);
});

test('B39: repeated keys elsewhere are never relayed as they are', () => {
  const source = parse('{"model":"a","x":{"k":1,"k":2}}');
  assert.equal(source.unambiguous, false);
  assert.equal(spliceMembers(source, { model: '"b"' }).toString(), '{"model":"b","x":{"k":2}}');
});

test('B40: __proto__ is data', () => {
  const source = parse('{"__proto__":{"isAdmin":true},"constructor":1}');
  assert.equal('isAdmin' in source.value, false);
  assert.equal(source.unambiguous, true);
  const text = spliceMembers(parse('{"__proto__":{"a":1},"x":1,"x":2}'), {
    model: '"m"',
  }).toString();
  assert.equal(text, '{"__proto__":{"a":1},"x":2,"model":"m"}');
});

test('B31, B32: invalid UTF-8 is refused, a byte order mark is not', () => {
  assert.match(refusal(Buffer.from([0x7b, 0xff, 0x7d])).message, /UTF-8/);
  assert.deepEqual(parse(Buffer.from('\ufeff{"a":1}')).value, { a: 1 });
});

test('B26: an empty body and one of white space say so', () => {
  for (const text of ['', '  \r\n\t']) assert.match(refusal(text).message, /empty/);
});

test('B34, B35: what is not a JSON object is refused with line and column and without its content', () => {
  for (const text of [
    '{"a":1,}',
    '{a:1}',
    "{'a':1}",
    '{"a":NaN}',
    '{"a":1} {}',
    '{"a":"secret',
    '{"a" 1}',
  ]) {
    const { message } = refusal(text);
    assert.match(message, /line 1, column \d+/);
    assert.doesNotMatch(message, /secret/);
  }
  for (const text of ['[1]', '"x"', 'null', '7']) assert.match(refusal(text).message, /object/);
});

test('B34: the position is that of the first character that cannot stand there', () => {
  assert.deepEqual(locateJsonError('{\n  "a": 1,\n  b: 2}'), { line: 3, column: 3 });
  assert.deepEqual(locateJsonError('{"a":[1,2}'), { line: 1, column: 10 });
  assert.deepEqual(locateJsonError('{"a":1'), { line: 1, column: 7 });
  assert.deepEqual(locateJsonError('{"a":"\u0001"}'), { line: 1, column: 6 });
});

test('B36, B37: depth and token bombs are refused before they are parsed', () => {
  const deep = `${'['.repeat(maxDepth + 1)}`;
  assert.equal(refusal(`{"a":${deep}`).code, 'too_large');
  assert.equal(refusal(`{"a":[${'0,'.repeat(500_001)}0]}`).code, 'too_large');
  const deepest = `{"a":${'['.repeat(maxDepth - 1)}${']'.repeat(maxDepth - 1)}}`;
  assert.equal(parse(deepest).unambiguous, true);
});

test('B38: a key beyond 1 KiB is refused', () => {
  assert.match(refusal(`{"${'k'.repeat(1025)}":1}`).message, /key/);
});

test('B41: a number beyond double range is refused with its path', () => {
  assert.deepEqual(refusal('{"a":[1,{"b":1e400}]}').path, ['a', 1, 'b']);
});

test('long strings with escaped quotes do not confuse the scan', () => {
  const long = `${'x'.repeat(100)}\\"}],{\\\\`;
  const source = parse(`{"a":"${long}","model":"m"}`);
  assert.equal(spliceMembers(source, { model: '"n"' }).toString(), `{"a":"${long}","model":"n"}`);
});

test('integers beyond 2^53 keep their digits through parse and stringify', () => {
  const text =
    '{"a":12345678901234567890,"b":[-9007199254740993],"c":0.1234567890123456789,"d":9007199254740991}';
  const source = parse(text);
  assert.equal(source.unambiguous, true);
  assert.equal(
    JSON.stringify(source.value),
    '{"a":12345678901234567890,"b":[-9007199254740993],"c":0.12345678901234568,"d":9007199254740991}',
  );
  assert.equal(typeof source.value['d'], 'number');
});

test('G11: a value that was forgotten is read again as it was, long numbers, doubtful keys and twins too', () => {
  const texts = [
    '{"model":"m","n":12345678901234567890,"a":[1.10,{"x":1e2}]}',
    '{"\\u006dodel":"m","__proto__":{"a":1},"b\\\\":1}',
    '{"a":{"x":1,"x":2},"a":3}',
  ];
  for (const text of texts) {
    const source = parseBody(Buffer.from(text), new Set());
    const before = JSON.stringify(source.value);
    const first = source.value;
    source.forget();
    assert.equal(JSON.stringify(source.value), before);
    assert.notEqual(source.value, first);
    assert.equal(source.value, source.value);
  }
});
