/** Long bodies as text in steps: the same bytes, and others have their turn (G2, G11). */
import assert from 'node:assert/strict';
import * as fc from 'fast-check';
import { test } from 'node:test';
import { jsonInSteps } from '../../../src/core/json-write.ts';
import { tryParseObject } from '../../../src/core/json.ts';
import { checkAsync } from '../../property/checking.ts';

test('G2 the bytes are those of JSON.stringify', async (t) => {
  const bodies = fc.tuple(fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 3 })), fc.string());
  await checkAsync(t, bodies, async ([value, absent]) => {
    const body = { ...tryParseObject(JSON.stringify(value)), [absent]: undefined };
    assert.equal((await jsonInSteps(body)).toString(), JSON.stringify(body));
  });
});

test('G2 numbers keep their digits, and empty lists and objects stay', async () => {
  const text = '{"a":12345678901234567890,"b":[],"c":{},"d":[{"e":[98765432109876543210]}]}';
  const body = tryParseObject(text);
  assert.ok(body);
  assert.equal((await jsonInSteps(body)).toString(), text);
});

test('G11 G2 a long string becomes text in pieces, and none of its characters is halved', async (t) => {
  const halves = '\ud83e".\udd80'.repeat(100);
  for (const before of ['', 'x']) {
    const long = `${before}${'🦀'.repeat(700_000)}${halves}\n${'é"'.repeat(700_000)}`;
    const body = { long, list: [long, 1], deep: { long } };
    const whole = JSON.stringify(body);
    const stringify = t.mock.method(JSON, 'stringify');
    const bytes = await jsonInSteps(body);
    const lengths = stringify.mock.calls.map(({ result }) => String(result).length);
    stringify.mock.restore();
    assert.ok(bytes.toString() === whole);
    assert.ok(Math.max(...lengths) < 2_000_000, `${Math.max(...lengths)} characters at once`);
  }
});

test('G11 others have a turn between pieces of a long body', async () => {
  let turns = 0;
  let over = false;
  const other = (): void => {
    turns += 1;
    if (!over) setImmediate(other);
  };
  setImmediate(other);
  const items = Array.from({ length: 40 }, () => 'é'.repeat(300_000));
  const bytes = await jsonInSteps({ model: 'm', messages: items });
  over = true;
  assert.equal(bytes.toString(), JSON.stringify({ model: 'm', messages: items }));
  assert.ok(turns >= 20, `${turns} turns`);
});
