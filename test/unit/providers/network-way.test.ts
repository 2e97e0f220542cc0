/** N4: which providers are reached through a proxy of the environment. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { networkWay } from '../../../src/providers/network-way.ts';

const env = { HTTPS_PROXY: 'http://secure:3128', http_proxy: 'plain:8080', HTTP_PROXY: 'http://x' };

function origin(baseUrl: string, more: object = {}): string | undefined {
  return networkWay({ baseUrl, env: { ...env, ...more } })?.proxy?.origin;
}

test('N4 by scheme, the lower-case name first', () => {
  assert.equal(origin('https://api.example.com/v1'), 'http://secure:3128');
  assert.equal(origin('http://vllm.internal:8000/v1'), 'http://plain:8080');
  assert.equal(networkWay({ baseUrl: 'https://a.example', env: {} }), undefined);
  const all = { all_proxy: 'http://all:1' };
  assert.equal(
    networkWay({ baseUrl: 'https://a.example', env: all })?.proxy?.origin,
    'http://all:1',
  );
});

test('N4 never for loopback', () => {
  for (const host of ['localhost', 'a.localhost', '127.0.0.1', '127.9.9.9', '[::1]']) {
    assert.equal(origin(`http://${host}:11434`), undefined, host);
  }
});

test('N4 NO_PROXY: names and what is below them, ports, addresses, ranges, all', () => {
  const rows: readonly (readonly [list: string, url: string, direct: boolean])[] = [
    ['example.com', 'https://api.example.com', true],
    ['.example.com', 'https://example.com', true],
    ['*.example.com', 'https://api.example.com', true],
    ['example.com', 'https://notexample.com', false],
    ['example.com:8443', 'https://example.com', false],
    ['example.com:8443', 'https://example.com:8443', true],
    ['a, EXAMPLE.com', 'https://example.com', true],
    ['10.0.0.0/8', 'http://10.1.2.3:8000', true],
    ['10.0.0.0/8', 'http://11.1.2.3:8000', false],
    ['10.1.2.3/8', 'http://10.9.9.9:8000', true],
    ['10.1.2.3:8000', 'http://10.1.2.3:8000', true],
    ['10.1.2.3:8000', 'http://10.1.2.3:9000', false],
    ['2001:db8::1', 'http://[2001:db8::1]:8000', true],
    ['[2001:db8::1]:8000', 'http://[2001:db8::1]:8000', true],
    ['[2001:db8::1]:8000', 'http://[2001:db8::1]:9000', false],
    ['[2001:db8::1]', 'http://[2001:db8::1]:9000', true],
    ['*', 'https://api.example.com', true],
    ['', 'https://api.example.com', false],
  ];
  for (const [NO_PROXY, url, direct] of rows) {
    assert.equal(origin(url, { NO_PROXY }) === undefined, direct, `${NO_PROXY} ${url}`);
  }
});

test('N4 the provider’s own word comes before the environment, with its password', () => {
  const baseUrl = 'https://api.example.com';
  assert.equal(networkWay({ baseUrl, env, proxy: 'none' }), undefined);
  const own = networkWay({ baseUrl, env, proxy: 'http://me:p%40ss@own:1' });
  assert.equal(own?.proxy?.origin, 'http://own:1');
  assert.equal(own?.proxy?.authorization, `Basic ${Buffer.from('me:p@ss').toString('base64')}`);
});

test('N4 a password with a percent sign of its own is a password', () => {
  const way = networkWay({
    baseUrl: 'https://a.example',
    env: {},
    proxy: 'http://me:50%off@own:1',
  });
  assert.equal(way?.proxy?.authorization, `Basic ${Buffer.from('me:50%off').toString('base64')}`);
});
