import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { assert as check, json, nat, property } from 'fast-check';
import { hasDoubtfulKey, parseSlowly, tryParse } from '../../../src/json/parse.ts';
import { parseBody } from '../../../src/core/client-body.ts';
import { isObject } from '../../../src/json/value.ts';
import { anyCharacter } from '../../support/any-character.ts';

const bytes = (text: string): Buffer => Buffer.from(text);

describe('B39 B40 keys with escapes are what they are, whatever was parsed before', () => {
  for (const [name, before, text, key] of [
    ['a line end', '{"one":1,"\\\\":2}', '{"one":1,"\\n":2}', '\n'],
    ['a quote', '{"two":1,"\\\\":2}', '{"two":1,"\\"":2}', '"'],
    ['letters', '{"six":1,"\\\\u540":2}', '{"six":1,"\\u540d\\u524d\\u5b57!!":2}', '名前字!!'],
    ['a backslash', '{"ten":1,"\\\\":2}', '{"ten":1,"\\\\":2}', '\\'],
  ] as const) {
    test(name, async () => {
      const own = (value: unknown): unknown =>
        isObject(value) ? Object.keys(value).at(-1) : undefined;
      for (let i = 0; i < 3; i++) tryParse(before);
      assert.equal(own(tryParse(text)), key);
      for (let i = 0; i < 3; i++) parseBody(bytes(before), new Set());
      assert.equal(own(parseBody(bytes(text), new Set()).value), key);
    });
  }

  test('a text that is read slowly has the value that it is parsed to', () => {
    check(
      property(json({ stringUnit: anyCharacter }), nat(2), (text, indent) => {
        const spaced = JSON.stringify(JSON.parse(text), null, indent);
        assert.deepEqual(parseSlowly(spaced, false), JSON.parse(spaced));
      }),
      { numRuns: 300 },
    );
  });

  test('`__proto__`, twins, empty containers and space', () => {
    const text = ' { "__proto__" : [ ] , "a" : { } , "a" : [ { } , [ ] , -1.5e3 , "\\\\" ] } ';
    const value = parseSlowly(text, false);
    assert.equal(JSON.stringify(value), '{"__proto__":[],"a":[{},[],-1500,"\\\\"]}');
    assert.equal(hasDoubtfulKey(value), false);
    assert.equal(hasDoubtfulKey([{ a: [{ '\\': 1 }] }]), true);
  });
});
