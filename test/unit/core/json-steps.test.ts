import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import * as fc from 'fast-check';
import { GatewayError } from '../../../src/core/errors.ts';
import { parseBody, parseClientBody, type JsonSource } from '../../../src/core/json.ts';
import { parseInSteps } from '../../../src/core/json-steps.ts';
import { Pieces } from '../../../src/core/pieces.ts';
import { jsonTexts } from './json-texts.ts';

const none: ReadonlySet<string> = new Set();
const megabyte = 1024 * 1024;

interface Read {
  readonly value: string;
  readonly spans: readonly unknown[];
  readonly unambiguous: boolean;
  readonly bodyStart: number;
}

function shown(source: JsonSource): Read {
  const { value, spans, unambiguous, bodyStart } = source;
  return { value: JSON.stringify(value), spans: [...spans], unambiguous, bodyStart };
}

async function outcome(read: () => Promise<Read> | Read): Promise<Read | string> {
  try {
    return await read();
  } catch (error) {
    assert.ok(error instanceof GatewayError, String(error));
    return error.code;
  }
}

describe('G11 long bodies in steps', () => {
  test('any text is read as at once, however small the steps and groups are', async () => {
    await fc.assert(
      fc.asyncProperty(
        jsonTexts,
        fc.integer({ min: 1, max: 40 }),
        fc.integer({ min: 0, max: 5 }),
        async (text, groupBytes, groupTokens) => {
          const bytes = Buffer.from(text);
          const sizes = { bytes: 7, tokens: 3, groupBytes, groupTokens, stringBytes: 8 };
          const atOnce = await outcome(() => shown(parseBody(bytes, none)));
          const inSteps = await outcome(async () => {
            const { value, ...rest } = await parseInSteps(bytes, { parse: parseText, sizes });
            if (value === undefined) throw new GatewayError('invalid_request', 'empty');
            const unambiguous = rest.keys === rest.colons;
            const pieces = Pieces.of(bytes);
            return shown({
              pieces,
              bytes,
              value,
              outline: value,
              ...rest,
              unambiguous,
              holds: () => false,
              forget: () => undefined,
            });
          });
          assert.deepEqual(inSteps, atOnce);
        },
      ),
      { numRuns: 1500 },
    );
  });

  const text = (length: number): string => 'x'.repeat(length);
  const messages = Array.from(
    { length: 400 },
    (_, i) => `{"role":"user","content":"${i} ${text(8000)}\\n\\"é"}`,
  );
  const long = `{"model":"m","messages":[${messages.join(',')}],"big":12345678901234567890}`;

  test('a long body: the same value, spans and digits', async () => {
    const bytes = Buffer.from(long);
    assert.ok(bytes.length > 3 * megabyte);
    const source = parseClientBody(bytes, none);
    assert.ok(source instanceof Promise);
    assert.deepEqual(shown(await source), shown(parseBody(bytes, none)));
  });

  test('others have their turn in between', async () => {
    let turns = 0;
    const count = (): void => {
      turns += 1;
      timer = setImmediate(count);
    };
    let timer = setImmediate(count);
    await parseClientBody(Buffer.from(long), none);
    clearImmediate(timer);
    assert.ok(turns >= 3, `${turns} turns`);
  });

  test('a short body with many values goes in steps, an ordinary one does not', () => {
    const many = Buffer.from(`{"x":[${'1,'.repeat(30_000)}1]}`);
    assert.ok(parseClientBody(many, none) instanceof Promise);
    assert.ok(!(parseClientBody(Buffer.from('{"x":[1,2]}'), none) instanceof Promise));
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
    test(`B26-B41 refused in steps: ${name}`, async () => {
      const bytes =
        name === 'not UTF-8'
          ? Buffer.concat([Buffer.alloc(2 * megabyte, ' '), Buffer.from([0xff])])
          : Buffer.from(body);
      await assert.rejects(
        async () => parseClientBody(bytes, none),
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
    test(`B34 wrong around a long string, and told where it is: ${shape}`, async () => {
      const told = (error: unknown): string => (error instanceof GatewayError ? error.message : '');
      const refused: string[] = [];
      for (const read of [parseBody, parseClientBody]) {
        await assert.rejects(
          async () => read(Buffer.from(body), none),
          (error) => refused.push(told(error)) > 0,
        );
      }
      assert.equal(refused[1], refused[0]);
      assert.match(refused[0] ?? '', /line 1, column|key is longer/);
    });
  }

  test('B41 the path of a number out of range begins at the top, in every group', async () => {
    const numbers = '1,'.repeat(25_000);
    const body = `{"a":[${numbers}{"b":[${numbers}1e400]}]}`;
    await assert.rejects(
      async () => parseClientBody(Buffer.from(body), none),
      (error) => {
        assert.ok(error instanceof GatewayError);
        assert.deepEqual(error.path, ['a', 25_000, 'b', 25_000]);
        return true;
      },
    );
  });

  test('B40 __proto__ is data in every group', async () => {
    const members = Array.from({ length: 15_000 }, (_, i) => `"k${i}":1`).join(',');
    const body = `{"__proto__":{"isAdmin":true,${members}},"x":{${members},"__proto__":{"isAdmin":true}}}`;
    const { value } = await parseClientBody(Buffer.from(body), none);
    assert.equal('isAdmin' in value, false);
    assert.equal(JSON.stringify(value), body);
  });
});

function parseText(text: string, longNumbers: boolean) {
  // The gateway's own way of parsing, by way of a body.
  void longNumbers;
  const { x } = parseBody(Buffer.from(`{"x":${text}}`), none).value;
  if (x === undefined) throw new SyntaxError('nothing');
  return x;
}
