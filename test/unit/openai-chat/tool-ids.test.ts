import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import {
  allowedToolId,
  allowedToolName,
  nineCharacterToolId,
  originalToolName,
  ToolIdMap,
} from '../../../src/dialects/shared/tool-names.ts';

test('B6: a usable id passes unchanged', () => {
  assert.equal(allowedToolId('call_abc-123', 0), 'call_abc-123');
  assert.equal(allowedToolId('a'.repeat(64), 0), 'a'.repeat(64));
});

test('B6, B7: an id that the other side refuses becomes a hash of the whole id', () => {
  for (const id of ['', 'search:0', 'a'.repeat(65), 'ünicode', 'with space']) {
    const allowed = allowedToolId(id, 0);
    assert.match(allowed, /^[a-zA-Z0-9_-]{1,64}$/);
    assert.equal(allowed, allowedToolId(id, 0));
  }
  const prefix = 'p'.repeat(80);
  assert.notEqual(allowedToolId(`${prefix}1`, 0), allowedToolId(`${prefix}2`, 0));
});

test('B6: any ids stay different, whatever their occurrence', () => {
  const key = fc.tuple(fc.string({ maxLength: 90 }), fc.nat({ max: 3 }));
  fc.assert(
    fc.property(fc.uniqueArray(key, { selector: (k) => JSON.stringify(k) }), (keys) => {
      const ids = new Set(keys.map(([id, occurrence]) => allowedToolId(id, occurrence)));
      assert.equal(ids.size, keys.length);
    }),
  );
});

test('B6: ids reused each turn are distinguished, and a result belongs to the latest call', () => {
  const ids = new ToolIdMap();
  const first = ids.call('call_0');
  assert.equal(first, 'call_0');
  assert.equal(ids.result('call_0'), first);
  const second = ids.call('call_0');
  assert.notEqual(second, first);
  assert.equal(ids.result('call_0'), second);
  assert.equal(ids.result('never-called'), 'never-called');
});

test('B6: a stricter rule applies to calls and results alike', () => {
  const ids = new ToolIdMap(nineCharacterToolId);
  assert.match(ids.call('toolu_01'), /^[a-zA-Z0-9]{9}$/);
  assert.equal(ids.result('toolu_01'), nineCharacterToolId('toolu_01', 0));
  assert.equal(nineCharacterToolId('gSIMJiOkT', 0), 'gSIMJiOkT');
  assert.notEqual(nineCharacterToolId('toolu_01', 0), nineCharacterToolId('toolu_01', 1));
});

test('B7: long names are shortened without collision and restored', () => {
  const common = `mcp__server__${'x'.repeat(80)}`;
  const tools = [{ name: `${common}_one` }, { name: `${common}_two` }, { name: 'dotted.name' }];
  const short = tools.map((tool) => allowedToolName(tool.name, 64));
  assert.equal(new Set(short).size, 3);
  for (const [i, name] of short.entries()) {
    assert.match(name, /^[a-zA-Z0-9_-]{1,64}$/);
    assert.equal(originalToolName(name, tools), tools[i]?.name);
  }
  assert.equal(allowedToolName(common, 128), common);
  assert.equal(originalToolName('unknown', tools), 'unknown');
});
