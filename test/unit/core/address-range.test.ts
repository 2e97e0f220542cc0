import assert from 'node:assert/strict';
import { it } from 'node:test';
import { AddressRange, rangeProblem } from '../../../src/core/addresses.ts';

const inside: readonly (readonly [string, string])[] = [
  ['10.0.0.0/8', '10.255.0.1'],
  ['10.0.0.0/8', '::ffff:10.1.2.3'],
  ['10.0.0.0/8', '::ffff:0a01:0203'],
  ['192.0.2.7', '192.0.2.7'],
  ['192.0.2.6/31', '192.0.2.7'],
  ['0.0.0.0/0', '203.0.113.9'],
  ['::ffff:10.0.0.0/104', '10.9.9.9'],
  ['2001:db8::/32', '2001:db8:ffff::1'],
  ['2001:DB8::/32', '2001:0db8:0000:0000:0000:0000:0000:0001'],
  ['fe80::/10', 'fe80::1%eth0'],
  ['::1', '::1'],
  ['::/0', '2001:db8::1'],
  ['1:2:3:4:5:6:7:8', '1:2:3:4:5:6:7:8'],
];

for (const [range, address] of inside) {
  it(`S7 ${range} holds ${address}`, () => {
    assert.equal(rangeProblem(range), undefined);
    assert.ok(new AddressRange(range).holds(address));
  });
}

const outside: readonly (readonly [string, string])[] = [
  ['10.0.0.0/8', '11.0.0.1'],
  ['10.0.0.0/8', '::a00:1'],
  ['10.0.0.0/8', ''],
  ['10.0.0.0/8', 'localhost'],
  ['10.0.0.0/8', '10.0.0.1:80'],
  ['10.0.0.0/8', '010.0.0.1'],
  ['10.0.0.0/8', '10.0.0.1, 192.0.2.1'],
  ['0.0.0.0/0', '2001:db8::1'],
  ['::/0', '10.0.0.1'],
  ['2001:db8::/32', '2001:db9::1'],
  ['192.0.2.7', '192.0.2.8'],
  ['::1', '127.0.0.1'],
];

for (const [range, address] of outside) {
  it(`S7 ${range} does not hold "${address}"`, () => {
    assert.ok(!new AddressRange(range).holds(address));
  });
}

it('S7 what is no range is reported, and no range at all', () => {
  for (const text of [
    '',
    '*',
    '10.0.0.0/33',
    '10.0.0.0/08',
    '10.0.0.0/',
    '10.0.0/8',
    '10.0.0.256',
    '::/129',
    '1::2::3',
    ':::',
    '1:2:3:4:5:6:7',
    '1:2:3:4:5:6:7:8:9',
    '1:2:3:4:5:6:7::8',
    '::12345',
    '::1.2.3',
    '1.2.3.4::',
    'fe80::1%eth0',
    'example.com',
  ]) {
    assert.match(rangeProblem(text) ?? '', /is not an address range/, text);
    assert.throws(() => new AddressRange(text), RangeError, text);
  }
  assert.match(rangeProblem('10.0.0.1/8') ?? '', /bits after its prefix/);
  assert.match(rangeProblem('2001:db8::1/32') ?? '', /bits after its prefix/);
});
