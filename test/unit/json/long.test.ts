import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { GatewayError } from '../../../src/core/errors.ts';
import { parseBody, parseClientBody } from '../../../src/core/client-body.ts';

const none: ReadonlySet<string> = new Set();
const megabyte = 1024 * 1024;

describe('G11 bodies that the worker thread reads', () => {
  const text = (length: number): string => 'x'.repeat(length);
  test('a body of many bytes or of many values is not parsed on the event loop', () => {
    const many = Buffer.from(`{"x":[${'1,'.repeat(30_000)}1]}`);
    const long = Buffer.from(`{"x":"${text(megabyte)}"}`);
    for (const body of [many, long]) {
      assert.equal(parseClientBody(body, none), undefined);
      assert.ok(parseBody(body, none).value['x'] !== undefined);
    }
    assert.ok(parseClientBody(Buffer.from('{"x":[1,2]}'), none) !== undefined);
  });

  const pad = `"pad":"${text(megabyte)}"`;
  const refusals: readonly (readonly [string, string, RegExp])[] = [
    ['cut off in a string', `{${pad},"x":"abc`, /line 1, column 1048591/],
    ['cut off behind a string', `{${pad},"x":"abc"`, /not valid JSON \(line 1/],
    ['a line that is wrong', `{${pad},\n"a":[1,2,\n3,,4]}`, /line 3, column 3/],
    ['escaped quotes without an end', `{"x":"${'\\"'.repeat(megabyte)}`, /not valid JSON/],
    ['two documents', `{${pad}}{${pad}}`, /not valid JSON/],
    ['an array at the top', `[{${pad}}]`, /must be a JSON object/],
    ['white space only', ' '.repeat(2 * megabyte), /empty/],
    ['a wrong bracket', `{${pad},"a":[1}}`, /not valid JSON/],
    ['a number out of range', `{${pad},"a":[{"b":[1,1e400]}]}`, /out of range/],
    ['too many digits', `{${pad},"a":${'1'.repeat(2000)}}`, /digits/],
    ['too deep', `{${pad},"a":${'['.repeat(200)}`, /nested/],
    ['too many keys', `{${pad},"a":{${'"k":1,'.repeat(300_000)}"k":1}}`, /more than 500000/],
    ['twins', `{${pad},"a":{${'"k":1,'.repeat(30_000)}"k":1}}`, /repeats its keys/],
    ['a long key', `{${pad},"a":{"${text(2000)}":[{}]}}`, /key is longer/],
    ['not UTF-8', '', /UTF-8/],
  ];
  for (const [name, body, message] of refusals) {
    test(`B26-B41 refused: ${name}`, () => {
      const bytes =
        name === 'not UTF-8'
          ? Buffer.concat([Buffer.alloc(2 * megabyte, ' '), Buffer.from([0xff])])
          : Buffer.from(body);
      assert.throws(
        () => parseBody(bytes, none),
        (error) => {
          assert.ok(error instanceof GatewayError);
          assert.match(error.message, message);
          return true;
        },
      );
    });
  }

  const string = `"${text(2 * megabyte)}"`;
  const around: readonly string[] = [
    `["${text(2 * megabyte)}\\x"]`,
    `"${text(2 * megabyte)}\n"`,
    `[1${string}]`,
    `[${string}1]`,
    `[${string},]`,
    `[${string}}`,
    string,
    `{${string}:1}`,
    `{"b"1:${string}}`,
    `{"b":${string},"c":1,}`,
    `{,"b":${string}}`,
    `${string}},`,
  ];
  for (const body of around.map((each) => `{"x":${each}${each === string ? '' : '}'}`)) {
    const shape = body.replaceAll(/x{9,}/g, '…');
    test(`B34 wrong around a long string, and told where it is: ${shape}`, () => {
      const told = (error: unknown): string => (error instanceof GatewayError ? error.message : '');
      const refused: string[] = [];
      assert.throws(
        () => parseBody(Buffer.from(body), none),
        (error) => refused.push(told(error)) > 0,
      );
      assert.match(refused[0] ?? '', /line 1, column|key is longer/);
    });
  }

  test('B41 the path of a number out of range begins at the top', () => {
    const numbers = '1,'.repeat(25_000);
    const body = `{"a":[${numbers}{"b":[${numbers}1e400]}]}`;
    assert.throws(
      () => parseBody(Buffer.from(body), none),
      (error) => {
        assert.ok(error instanceof GatewayError);
        assert.deepEqual(error.path, ['a', 25_000, 'b', 25_000]);
        return true;
      },
    );
  });

  test('B40 __proto__ is data', () => {
    const members = Array.from({ length: 15_000 }, (_, i) => `"k${i}":1`).join(',');
    const body = `{"__proto__":{"isAdmin":true,${members}},"x":{${members},"__proto__":{"isAdmin":true}}}`;
    const { value } = parseBody(Buffer.from(body), none);
    assert.equal('isAdmin' in value, false);
    assert.equal(JSON.stringify(value), body);
  });
});
