import assert from 'node:assert/strict';
import { test } from 'node:test';
import { addressText, leadsTo, readAddress } from '../../../src/config/errors.ts';
import { nearest } from '../../../src/core/nearest.ts';
import { durationText, readDuration, readSize, sizeText } from '../../../src/config/options.ts';

test('addresses: HOST:PORT, :PORT, PORT and [IPv6]:PORT, nothing else', () => {
  assert.deepEqual(readAddress('127.0.0.1:0'), { host: '127.0.0.1', port: 0 });
  assert.deepEqual(readAddress(':8686'), { host: '127.0.0.1', port: 8686 });
  assert.deepEqual(readAddress('8686'), { host: '127.0.0.1', port: 8686 });
  assert.deepEqual(readAddress('[::1]:65535'), { host: '::1', port: 65_535 });
  assert.deepEqual(readAddress('my-host.local:1'), { host: 'my-host.local', port: 1 });
  const wrong = [
    '',
    '65536',
    'a:',
    'a:65536',
    '::1:80',
    '[a]:80',
    'http://a:80',
    'a b:80',
    'a:1e3',
    '*:80',
  ];
  for (const text of wrong) assert.equal(readAddress(text), undefined, text);
  assert.equal(addressText({ host: '::1', port: 80 }), '[::1]:80');
});

test('N3: own addresses are recognised through all their names, others are not', () => {
  const names = new Set(['my-host', '10.0.0.5', 'fe80::1']);
  const leads = (url: string, listen: string): boolean => {
    const address = readAddress(listen);
    assert.ok(address !== undefined);
    return leadsTo(new URL(url), address, names);
  };
  assert.equal(leads('http://localhost:8686/v1', ':8686'), true);
  assert.equal(leads('http://[::1]:8686', '0.0.0.0:8686'), true);
  assert.equal(leads('http://0.0.0.0:8686', ':8686'), true);
  assert.equal(leads('http://my-host:8686', '0.0.0.0:8686'), true);
  assert.equal(leads('http://10.0.0.5:8686', '[::]:8686'), true);
  assert.equal(leads('http://gateway.example', 'gateway.example:80'), true);
  assert.equal(leads('https://gateway.example', 'gateway.example:443'), true);
  assert.equal(leads('http://10.0.0.5:8686', ':8686'), false);
  assert.equal(leads('http://127.0.0.1:8000', ':8686'), false);
  assert.equal(leads('http://other:8686', '0.0.0.0:8686'), false);
  assert.equal(leads('http://127.0.0.1:80', '127.0.0.1:0'), false);
});

test('durations and sizes are read and written back', () => {
  assert.deepEqual(
    ['2s', '500ms', '30m', '1h', '1.5s'].map(readDuration),
    [2000, 500, 1_800_000, 3_600_000, 1500],
  );
  assert.deepEqual(
    ['32MiB', '10MB', '1KiB', '7B', '0.5GiB'].map(readSize),
    [33_554_432, 10_000_000, 1024, 7, 536_870_912],
  );
  for (const text of ['', '2', 's', '-1s', '2 s', '2S', '1d', '1e3s', '∞s']) {
    assert.equal(readDuration(text), undefined, text);
  }
  for (const text of ['', '2', '2mb', 'MiB', '-1MB', '1 MB']) {
    assert.equal(readSize(text), undefined, text);
  }
  assert.deepEqual([90_000, 1_800_000, 1500, 0].map(durationText), ['90s', '30m', '1500ms', '0s']);
  assert.deepEqual([33_554_432, 10_000_000, 1000, 7].map(sizeText), ['32MiB', '10MB', '1KB', '7B']);
});

test('suggestions are near or none', () => {
  const names = ['dialect', 'base_url', 'api_key'];
  assert.equal(nearest('dialekt', names), 'dialect');
  assert.equal(nearest('baseUrl', names), 'base_url');
  assert.equal(nearest('apikey', names), 'api_key');
  assert.equal(nearest('retries', names), undefined);
});
