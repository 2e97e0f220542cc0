/** Tests with calendar budgets do not depend on the hour at which they run. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { windowAt } from '../../../src/access/windows.ts';
import { isObject } from '../../../src/json/value.ts';
import { Instance } from '../../cluster/instance.ts';
import { startLimitedRig } from '../../limits/limited-rig.ts';
import { inNoonZone, noonZone } from '../../support/noon.ts';

const hour = 3_600_000;

test('K1 at any minute of a year every period of a test has begun and continues for eleven hours', () => {
  const start = Date.UTC(2026, 10, 22);
  for (let now = start; now < start + 366 * 24 * hour; now += 29 * 60_000) {
    for (const per of ['day', 'week', 'month'] as const) {
      const { startsAt = 0, endsAt = 0 } = windowAt(per, noonZone(now), now);
      assert.ok(now - startsAt >= 11 * hour && endsAt - now >= 11 * hour, new Date(now).toJSON());
    }
  }
});

test('K1 a wish keeps the zone that it names, and gets none without a budget', () => {
  const midnight = Date.UTC(2026, 10, 23) - 1;
  assert.deepEqual(inNoonZone({ rpm: 1 }, midnight), { rpm: 1 });
  const day = { budget: 1, per: 'day' };
  assert.deepEqual(inNoonZone(day, midnight), { ...day, time_zone: 'Etc/GMT+11' });
  assert.deepEqual(inNoonZone(day, midnight + 1), { ...day, time_zone: 'Etc/GMT-12' });
  const berlin = { ...day, time_zone: 'Europe/Berlin' };
  assert.deepEqual(inNoonZone(berlin, midnight), berlin);
});

/** Of the budgets of a key, as the admin API shows them. */
function zones(key: { readonly [name: string]: unknown }): readonly unknown[] {
  const { budgets } = key;
  return Array.isArray(budgets) ? budgets.filter(isObject).map((each) => each['time_zone']) : [];
}

test('K1 keys of the rig and of gateway processes have it', async () => {
  const rig = await startLimitedRig();
  try {
    const { id } = await rig.key({ budget: 1, per: 'day', budgets: [{ usd: 9, per: 'month' }] });
    const shown = await rig.admin('GET', `/api/keys/${id}`);
    assert.equal(zones(shown).length, 2);
    // An hour may have ended meanwhile.
    for (const zone of zones(shown)) assert.match(String(zone), /^Etc\/GMT/);
  } finally {
    await rig.stop();
  }
  const gateway = await Instance.start({ storage: 'memory', upstream: 1 });
  try {
    const { id } = await gateway.makeKey({ budget: 1, per: 'day' });
    const { json } = await gateway.admin('GET', `/api/keys/${id}`);
    assert.match(String(zones(json)[0]), /^Etc\/GMT/);
  } finally {
    await gateway.kill();
  }
});
