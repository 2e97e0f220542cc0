import assert from 'node:assert/strict';
import { test } from 'node:test';
import { scene } from './scene.ts';

test('G5-G8 G10 B73: the bounds of the gateway, and where each comes from', async () => {
  const yaml = `limits:
  memory: 512MiB
  connections: 500
  key_share: 100
  loop_delay: 100ms
  body_rate: 1KiB
  bad_keys: 5
`;
  const { limits, origins } = await scene(yaml).load();
  assert.deepEqual(limits, {
    bodyBytes: 32 * 1024 ** 2,
    streams: 3000,
    memoryBytes: 512 * 1024 ** 2,
    connections: 500,
    keySharePercent: 100,
    loopDelayMs: 100,
    bodyRate: 1024,
    badKeys: 5,
  });
  const shown = origins.filter(({ path }) => path.startsWith('limits.'));
  assert.deepEqual(
    shown.map(({ path, value, origin }) => `${path} ${value} ${origin.split('/').at(-1)}`),
    [
      'limits.body 32MiB default',
      'limits.streams 3000 default',
      'limits.memory 512MiB gateway.yaml:2',
      'limits.connections 500 gateway.yaml:3',
      'limits.key_share 100 gateway.yaml:4',
      'limits.loop_delay 100ms gateway.yaml:5',
      'limits.body_rate 1KiB gateway.yaml:6',
      'limits.bad_keys 5 gateway.yaml:7',
    ],
  );
});

test('N1: what is not set is what there is', async () => {
  const { limits, origins } = await scene('').load();
  assert.deepEqual(limits, {
    bodyBytes: 32 * 1024 ** 2,
    streams: 3000,
    memoryBytes: undefined,
    connections: undefined,
    keySharePercent: 50,
    loopDelayMs: 25,
    bodyRate: 16 * 1024,
    badKeys: 20,
  });
  const memory = origins.find(({ path }) => path === 'limits.memory');
  assert.equal(memory?.value, 'the memory of the container or the machine');
});

test('N3: bounds that cannot be meant', async () => {
  const yaml = `limits: { memory: 64MiB, key_share: 0, loop_delay: 1ms, body_rate: fast, bad_keys: 0 }`;
  const told = (await scene(yaml).errors()).join('\n');
  for (const part of [
    'limits.memory: must be 128MiB to 1TiB',
    'limits.key_share: must be at least 1',
    'limits.loop_delay: must be 5ms to 24h',
    'limits.body_rate: is not a size (16KiB, 1KiB, bytes)',
    'limits.bad_keys: must be at least 1',
  ]) {
    assert.ok(told.includes(part), `${part}\n${told}`);
  }
});

test('G2 N3: of fewer streams or connections than workers some worker would have none', async () => {
  const few = 'limits: { streams: 3, connections: 12 }\n';
  for (const [workers, name] of [
    ['4', 'streams'],
    ['13', 'connections'],
  ] as const) {
    const told = (await scene(few).errors({ flags: { workers } })).join('\n');
    const part = `limits.${name}: must be at least ${workers}, one for each of the workers`;
    assert.ok(told.includes(part), told);
  }
  const { limits } = await scene(few).load({ flags: { workers: '3' } });
  assert.equal(limits.streams, 3);
});
