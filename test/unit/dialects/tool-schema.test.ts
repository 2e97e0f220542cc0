import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { JsonObject } from '../../../src/json/value.ts';
import { tryParseObject } from '../../../src/json/parse.ts';
import type { SchemaRules } from '../../../src/core/traits.ts';
import { cleanSchema } from '../../../src/dialects/shared/request/tool-schema.ts';

interface Row {
  readonly what: string;
  readonly schema: JsonObject;
  readonly resolved: JsonObject;
  readonly openapi: JsonObject;
  /** Keywords that are told as removed under `openapi`; under `resolved` only `$ref` may be. */
  readonly removed?: readonly string[];
}

const object = (properties: JsonObject, more: JsonObject = {}): JsonObject => ({
  type: 'object',
  ...more,
  properties,
});
const same = (schema: JsonObject) => ({ schema, resolved: schema, openapi: schema });

const rows: readonly Row[] = [
  {
    what: 'identity and annotations go silently',
    schema: {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      $id: 'x',
      $comment: 'c',
      type: 'object',
      properties: { a: { type: 'string', examples: ['x'] } },
    },
    resolved: object({ a: { type: 'string' } }),
    openapi: object({ a: { type: 'string' } }),
  },
  {
    what: 'local references are inlined, siblings win, definitions go',
    schema: {
      type: 'object',
      properties: { a: { $ref: '#/$defs/A', description: 'own' }, b: { $ref: '#/$defs/x~1y' } },
      $defs: { A: { type: 'string', description: 'shared' }, 'x/y': { type: 'integer' } },
    },
    resolved: object({ a: { type: 'string', description: 'own' }, b: { type: 'integer' } }),
    openapi: object({ a: { type: 'string', description: 'own' }, b: { type: 'integer' } }),
  },
  {
    what: 'a cycle is cut',
    schema: {
      type: 'object',
      properties: { next: { $ref: '#' }, name: { type: 'string' } },
    },
    resolved: object({
      next: object({ next: {}, name: { type: 'string' } }),
      name: { type: 'string' },
    }),
    openapi: object({
      next: object({ next: {}, name: { type: 'string' } }),
      name: { type: 'string' },
    }),
    removed: ['$ref'],
  },
  {
    what: 'foreign and broken references leave an open schema',
    schema: object({ a: { $ref: 'https://x.example/s' }, b: { $ref: '#/$defs/none' } }),
    resolved: object({ a: {}, b: {} }),
    openapi: object({ a: {}, b: {} }),
    removed: ['$ref'],
  },
  {
    what: 'const is an enum of one',
    schema: object({ a: { const: 'x' }, n: { const: 3 } }),
    resolved: object({ a: { enum: ['x'] }, n: { enum: [3] } }),
    openapi: object({
      a: { enum: ['x'], type: 'string' },
      n: { description: '(const: [3])' },
    }),
    removed: ['const'],
  },
  {
    what: 'objects always have properties, at every depth',
    schema: object({ a: { type: 'object' }, b: { type: 'array', items: { type: 'object' } } }),
    resolved: object({ a: object({}), b: { type: 'array', items: object({}) } }),
    openapi: object({ a: object({}), b: { type: 'array', items: object({}) } }),
  },
  {
    what: 'additionalProperties',
    schema: object({ a: { type: 'string' } }, { additionalProperties: false }),
    resolved: object({ a: { type: 'string' } }, { additionalProperties: false }),
    openapi: object({ a: { type: 'string' } }),
  },
  {
    what: 'a map is told in words',
    schema: { type: 'object', additionalProperties: { type: 'number' } },
    resolved: { type: 'object', additionalProperties: { type: 'number' }, properties: {} },
    openapi: {
      type: 'object',
      description: '(additionalProperties: {"type":"number"})',
      properties: {},
    },
    removed: ['additionalProperties'],
  },
  {
    what: 'lists of types and null',
    schema: object({
      a: { type: ['string', 'null'] },
      b: { type: ['string', 'integer'] },
      c: { enum: ['x', null] },
    }),
    resolved: object({
      a: { type: ['string', 'null'] },
      b: { type: ['string', 'integer'] },
      c: { enum: ['x', null] },
    }),
    openapi: object({
      a: { nullable: true, type: 'string' },
      b: { anyOf: [{ type: 'string' }, { type: 'integer' }] },
      c: { nullable: true, enum: ['x'], type: 'string' },
    }),
  },
  {
    what: 'one of, all of',
    schema: object({
      a: { oneOf: [{ type: 'string' }, { const: 'y' }] },
      b: {
        allOf: [
          { properties: { x: { type: 'string' } }, required: ['x'] },
          { properties: { y: { type: 'string' } } },
        ],
      },
    }),
    resolved: object({
      a: { oneOf: [{ type: 'string' }, { enum: ['y'] }] },
      b: {
        allOf: [
          { properties: { x: { type: 'string' } }, required: ['x'] },
          { properties: { y: { type: 'string' } } },
        ],
      },
    }),
    openapi: object({
      a: { anyOf: [{ type: 'string' }, { enum: ['y'], type: 'string' }] },
      b: {
        properties: { x: { type: 'string' }, y: { type: 'string' } },
        required: ['x'],
        type: 'object',
      },
    }),
  },
  {
    what: 'rules that are refused go into words',
    schema: object({
      a: { type: 'integer', description: 'Age', exclusiveMinimum: 0 },
      b: { type: 'string', format: 'uri' },
      c: { type: 'string', format: 'date-time' },
    }),
    resolved: object({
      a: { type: 'integer', description: 'Age', exclusiveMinimum: 0 },
      b: { type: 'string', format: 'uri' },
      c: { type: 'string', format: 'date-time' },
    }),
    openapi: object({
      a: { type: 'integer', description: 'Age (exclusiveMinimum: 0)' },
      b: { type: 'string', description: '(format: "uri")' },
      c: { type: 'string', format: 'date-time' },
    }),
    removed: ['exclusiveMinimum', 'format'],
  },
  {
    what: 'lists say of what; tuples of their first; booleans are open',
    schema: object({
      a: { type: 'array' },
      b: { type: 'array', items: [{ type: 'integer' }] },
      c: true,
    }),
    resolved: object({
      a: { type: 'array' },
      b: { type: 'array', items: [{ type: 'integer' }] },
      c: {},
    }),
    openapi: object({
      a: { type: 'array', items: { type: 'string' } },
      b: { type: 'array', items: { type: 'integer' } },
      c: {},
    }),
  },
  {
    what: 'only properties that exist are required',
    schema: object({ a: {} }, { required: ['a', 'gone'] }),
    resolved: object({ a: {} }, { required: ['a', 'gone'] }),
    openapi: object({ a: {} }, { required: ['a'] }),
  },
  {
    what: 'properties called like keywords survive',
    ...same(
      object(
        Object.fromEntries(
          ['$schema', '$id', '$defs', '$ref', 'const', 'additionalProperties', 'allOf', 'type'].map(
            (name) => [name, { type: 'string' }],
          ),
        ),
      ),
    ),
  },
];

describe('B8 tool schemas', () => {
  for (const rules of ['resolved', 'openapi'] as const) {
    for (const row of rows) {
      test(`B8 ${rules}: ${row.what}`, () => {
        const before = JSON.stringify(row.schema);
        const clean = cleanSchema(row.schema, rules);
        // Members that are undefined are not written.
        assert.deepEqual(JSON.parse(JSON.stringify(clean.schema)), row[rules]);
        const removed = row.removed ?? [];
        assert.deepEqual(
          clean.removed,
          rules === 'openapi' ? removed : removed.filter((key) => key === '$ref'),
        );
        assert.equal(JSON.stringify(row.schema), before, 'the client’s schema is left alone');
        assert.deepEqual(cleanSchema(row.schema, rules), clean, 'the same each time');
      });
    }
  }

  test('B8, B40 a property called __proto__ is data', () => {
    const schema = tryParseObject('{"type":"object","properties":{"__proto__":{"const":1}}}') ?? {};
    const clean = JSON.stringify(cleanSchema(schema, 'resolved').schema);
    assert.equal(clean, '{"type":"object","properties":{"__proto__":{"enum":[1]}}}');
  });

  test('B8 small schemas that mean huge ones are bounded', () => {
    const $defs = Object.fromEntries(
      Array.from({ length: 40 }, (_, i) => [
        `d${i}`,
        object({ a: { $ref: `#/$defs/d${i + 1}` }, b: { $ref: `#/$defs/d${i + 1}` } }),
      ]),
    );
    for (const rules of ['resolved', 'openapi'] satisfies SchemaRules[]) {
      const { schema, removed } = cleanSchema({ $ref: '#/$defs/d0', $defs }, rules);
      assert.ok(JSON.stringify(schema).length < 1_000_000);
      assert.ok(removed.includes('$ref'));
    }
  });

  test('B8 a chain of references does not blow the stack', () => {
    const $defs = Object.fromEntries(
      Array.from({ length: 20_000 }, (_, i) => [`d${i}`, { $ref: `#/$defs/d${i + 1}` }]),
    );
    const { removed } = cleanSchema({ $ref: '#/$defs/d0', $defs }, 'resolved');
    assert.deepEqual(removed, ['$ref']);
  });
});
