import assert from 'node:assert/strict';
import { test } from 'node:test';
import { scene } from './scene.ts';

const day = 86_400_000;

test('calls are kept 90 days, sums by hour 400, unless the file says otherwise', async () => {
  const plain = await scene().load();
  assert.deepEqual(plain.ledger, {
    keepMs: 90 * day,
    keepHoursMs: 400 * day,
    durability: 'normal',
  });
  const lines = plain.origins.filter(({ path }) => path.startsWith('ledger'));
  assert.deepEqual(
    lines.map(({ path, value, origin }) => `${path} ${value} ${origin}`),
    [
      'ledger.keep 90d default',
      'ledger.keep_hours 400d default',
      'ledger.durability normal default',
    ],
  );
  const text = 'ledger:\n  keep: 26w\n  keep_hours: forever\n  durability: full\n';
  const { ledger, origins } = await scene(text).load();
  assert.deepEqual(ledger, { keepMs: 182 * day, keepHoursMs: Infinity, durability: 'full' });
  assert.ok(
    origins.some(({ path, origin }) => path === 'ledger.keep' && origin === 'gateway.yaml:2'),
  );
});

test('sums are kept at least as long as calls', async () => {
  const { ledger } = await scene('ledger: { keep: 500d }\n').load();
  assert.equal(ledger.keepHoursMs, 500 * day);
  const forever = await scene('ledger: { keep: forever }\n').load();
  assert.equal(forever.ledger.keepHoursMs, Infinity);
  await assert.rejects(
    scene('ledger:\n  keep: 90d\n  keep_hours: 30d\n').load(),
    /gateway\.yaml:3.*keep_hours.*at least as long as keep/s,
  );
});

test('N3 a span that is none is reported with its line', async () => {
  for (const [text, message] of [
    ['90', /gateway\.yaml:1.*ledger\.keep/s],
    ['"90 days"', /is not a span \(90d, 26w, forever\)/],
    ['5h', /must be 1d to 3660d, or forever/],
    ['9999w', /must be 1d to 3660d, or forever/],
  ] as const) {
    await assert.rejects(scene(`ledger: { keep: ${text} }\n`).load(), message);
  }
  await assert.rejects(scene('ledger: { durability: most }\n').load(), /durability/);
  await assert.rejects(scene('ledger: { kept: 3d }\n').load(), /kept/);
});
