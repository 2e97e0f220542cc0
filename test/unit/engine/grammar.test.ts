/** Schemas as grammars: what the grammars allow is what the schemas mean. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import * as fc from 'fast-check';
import { EngineError, type Json } from '../../../src/engine/engine-error.ts';
import {
  GrammarRules,
  areDisjoint,
  integerRule,
  numberRule,
  schemaRule,
} from '../../../src/engine/schema-grammar.ts';

/** A grammar of numbers as a regular expression: the two write alternatives and repeats alike. */
function expression(rules: GrammarRules, root: string): RegExp {
  const bodies = new Map(
    rules
      .text(root)
      .split('\n')
      .map((line): [string, string] => {
        const [name = '', body = ''] = line.split(' ::= ');
        return [name, body];
      }),
  );
  const expand = (body: string): string =>
    body
      .replace(/\br\d+\b/g, (name) => `(?:${expand(bodies.get(name) ?? '')})`)
      .replace(/"([^"]*)"/g, (_all, text: string) => text.replace('.', String.raw`\.`))
      .replaceAll(' ', '');
  return new RegExp(`^(?:${expand(root)})$`, 'u');
}

const bound = fc.integer({ min: -3000, max: 3000 });

describe('numbers', () => {
  test('integers between bounds, those and no others', () => {
    fc.assert(
      fc.property(bound, fc.nat({ max: 2500 }), bound, (low, width, value) => {
        const rules = new GrammarRules();
        const rule = integerRule(rules, { low, high: low + width });
        assert.ok(rule !== undefined);
        const allowed = expression(rules, rule);
        for (const candidate of [value, low, low + width, low - 1, low + width + 1]) {
          const fits = candidate >= low && candidate <= low + width;
          assert.equal(allowed.test(String(candidate)), fits, `${low}+${width}: ${candidate}`);
        }
      }),
    );
    assert.equal(integerRule(new GrammarRules(), { low: 3, high: 2 }), undefined);
  });

  test('numbers between bounds', () => {
    const value = fc.double({ min: -60, max: 60, noNaN: true }).map((n) => Number(n.toFixed(3)));
    const edge = fc.integer({ min: -50, max: 50 });
    const exclusive = fc.record({ low: fc.boolean(), high: fc.boolean() });
    fc.assert(
      fc.property(
        edge,
        fc.integer({ min: 1, max: 40 }),
        fc.tuple(value, exclusive),
        (low, width, [number, without]) => {
          const rules = new GrammarRules();
          const high = low + width;
          const rule = numberRule(rules, { low, high }, without);
          assert.ok(rule !== undefined);
          const allowed = expression(rules, rule);
          for (const candidate of [
            number,
            low,
            high,
            low + 0.5,
            high - 0.5,
            low - 0.5,
            high + 0.5,
          ]) {
            const above = without.low ? candidate > low : candidate >= low;
            const below = without.high ? candidate < high : candidate <= high;
            const fits = above && below;
            assert.equal(allowed.test(String(candidate)), fits, `${low}..${high}: ${candidate}`);
          }
        },
      ),
    );
  });
});

describe('schemas', () => {
  const read = (schema: Json, strict = true): string =>
    schemaRule(schema, { rules: new GrammarRules(), path: 'schema', strict });
  const refusal = (schema: Json): string | null => {
    try {
      read(schema);
      return null;
    } catch (error) {
      assert.ok(error instanceof EngineError);
      return error.param;
    }
  };

  test('what cannot be held is refused with its path', () => {
    assert.equal(
      refusal({ properties: { a: { items: { not: {} } } } }),
      'schema.properties.a.items.not',
    );
    assert.equal(refusal({ anyOf: [{ type: 'string' }, { type: 'odd' }] }), 'schema.anyOf[1].type');
    assert.equal(
      refusal({ allOf: [{ minLength: 1 }, { minLength: 2 }] }),
      'schema.allOf[1].minLength',
    );
    assert.equal(
      refusal({ $ref: '#/$defs/a', $defs: { a: { pattern: '' } } }),
      'schema.$defs.a.pattern',
    );
    assert.equal(refusal(false), 'schema');
    assert.equal(
      refusal({ type: 'object', required: ['b'], additionalProperties: false }),
      'schema.required',
    );
  });

  test('keywords of other types and annotations say nothing', () => {
    assert.equal(refusal({ type: 'boolean', pattern: 'x', title: 'T', default: 1 }), null);
    assert.equal(refusal({ type: ['string', 'null'], maxLength: 3, minimum: 2 }), null);
    assert.equal(
      refusal({
        allOf: [{ $ref: '#/$defs/a' }, { required: ['x'] }],
        $defs: { a: { type: 'object', properties: { x: {} } } },
      }),
      null,
    );
  });

  test('a guiding schema is never refused', () => {
    const odd = { type: 'object', properties: { a: { pattern: 'x' }, b: { not: {} }, c: false } };
    assert.doesNotThrow(() => read(odd, false));
  });

  test('a schema that is too deep or too wide is refused, not computed', () => {
    let deep: Json = {};
    for (let depth = 0; depth < 100; depth++) deep = { type: 'array', items: deep };
    assert.match(String(refusal(deep)), /^schema\.items/);
  });

  test('references that multiply come to an end', () => {
    const twice: Json = { type: 'object', anyOf: [{ $ref: '#' }, { $ref: '#' }] };
    assert.match(String(refusal(twice)), /^schema\.anyOf/);
    assert.doesNotThrow(() => read(twice, false));
    const $defs = Object.fromEntries(
      Array.from({ length: 30 }, (_, index): [string, Json] => {
        const next = { allOf: [{ $ref: `#/$defs/d${index + 1}` }, {}] };
        return [`d${index}`, { type: 'object', properties: { a: next, b: next } }];
      }),
    );
    const tree = { $ref: '#/$defs/d0', $defs: { ...$defs, d30: { type: 'string' } } };
    assert.match(String(refusal(tree)), /^schema\./);
    assert.doesNotThrow(() => read(tree, false));
  });

  test('long lists of values are refused, not computed', () => {
    const list = (length: number): Json => ({ enum: Array.from({ length }, (_, index) => index) });
    assert.equal(refusal(list(2000)), null);
    assert.equal(refusal(list(2001)), 'schema');
    assert.equal(read(list(2001), false), 'value');
  });

  test('a reference that is no address points at nothing, or at what is called so', () => {
    assert.equal(refusal({ $ref: '#/$defs/%zz' }), 'schema.$ref');
    assert.equal(refusal({ $ref: '#/$defs/%zz', $defs: { '%zz': { type: 'null' } } }), null);
  });

  test('schemas are distinguished by types, constants and tags', () => {
    const tagged = (kind: string) => ({
      type: 'object',
      properties: { kind: { const: kind } },
      required: ['kind'],
    });
    assert.ok(areDisjoint([{ type: 'string' }, { type: 'integer' }, tagged('a'), tagged('b')]));
    assert.ok(areDisjoint([{ enum: [1, 2] }, { const: 3 }]));
    assert.ok(!areDisjoint([{ type: 'number' }, { type: 'integer' }]));
    assert.ok(!areDisjoint([tagged('a'), tagged('a')]));
    assert.ok(!areDisjoint([{}, { type: 'null' }]));
  });
});
