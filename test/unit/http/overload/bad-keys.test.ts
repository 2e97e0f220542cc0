import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BadKeys, maxAddresses } from '../../../../src/http/overload/bad-keys.ts';
import { HeldClock } from '../../access/fakes.ts';

function scene(perMinute = 20) {
  const clock = new HeldClock();
  return { clock, keys: new BadKeys({ clock, perMinute: () => perMinute }) };
}

test('B73 twenty refused keys a minute and address, then a wait', () => {
  const { keys, clock } = scene();
  for (let i = 0; i < 20; i++) assert.equal(keys.refused('192.0.2.1'), undefined);
  assert.equal(keys.refused('192.0.2.1'), 3000);
  assert.equal(keys.refused('192.0.2.2'), undefined);
  clock.time += 1500;
  assert.equal(keys.refused('192.0.2.1'), 1500);
  clock.time += 1500;
  assert.equal(keys.refused('192.0.2.1'), undefined);
  assert.equal(keys.refused('192.0.2.1'), 3000);
  clock.time += 60_000;
  for (let i = 0; i < 20; i++) assert.equal(keys.refused('192.0.2.1'), undefined);
  assert.notEqual(keys.refused('192.0.2.1'), undefined);
});

test('B73 a network of IPv6 is one address, IPv4 in it is not', () => {
  const { keys } = scene(2);
  assert.equal(keys.refused('2001:db8::1'), undefined);
  assert.equal(keys.refused('2001:db8:0:0:ffff::2'), undefined);
  assert.notEqual(keys.refused('2001:0db8:0000:0000:1::'), undefined);
  assert.equal(keys.refused('2001:db8:0:1::1'), undefined);
  for (const address of [
    '::ffff:192.0.2.1',
    '::ffff:192.0.2.2',
    undefined,
    '::1',
    'fe80::1%eth0',
  ]) {
    assert.equal(keys.refused(address), undefined);
  }
});

test('B73 however many addresses knock, so many are remembered', () => {
  const { keys } = scene(1);
  for (let i = 0; i <= maxAddresses; i++) keys.refused(`10.0.${i >> 8}.${i & 255}`);
  assert.equal(keys.size, maxAddresses);
  // The first one is forgotten, the last one is not.
  assert.notEqual(keys.refused(`10.0.${maxAddresses >> 8}.${maxAddresses & 255}`), undefined);
  assert.equal(keys.refused('10.0.0.0'), undefined);
});
