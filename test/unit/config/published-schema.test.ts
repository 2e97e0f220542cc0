import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { optionsPage } from '../../../scripts/options-page.ts';
import { publishedSchema, publishedSchemaText } from '../../../src/config/schema.ts';
import { isObject } from '../../../src/json/value.ts';

const docs = join(import.meta.dirname, '..', '..', '..', 'docs');

test('docs/gateway.schema.json and docs/options.md are fresh (node scripts/write-schema.mjs writes them)', () => {
  assert.equal(readFileSync(join(docs, 'gateway.schema.json'), 'utf8'), publishedSchemaText());
  assert.equal(readFileSync(join(docs, 'options.md'), 'utf8'), optionsPage(publishedSchema()));
});

test('every key of the published schema is described, and no unknown key is allowed', () => {
  const seen: string[] = [];
  const visit = (node: unknown, path: string): void => {
    if (Array.isArray(node)) node.forEach((item) => visit(item, path));
    if (!isObject(node)) return;
    const { properties } = node;
    if (isObject(properties)) {
      assert.equal(node['additionalProperties'], false, path);
      for (const [key, form] of Object.entries(properties)) {
        seen.push(key);
        assert.ok(isObject(form) && typeof form['description'] === 'string', `${path}.${key}`);
      }
    }
    for (const [key, child] of Object.entries(node)) visit(child, `${path}.${key}`);
  };
  visit(publishedSchema(), '');
  assert.ok(seen.includes('base_url') && seen.includes('weight'));
});
