import assert from 'node:assert/strict';
import { test } from 'node:test';
import { adminRig } from './admin-rig.ts';

test('N3 issue 8: the settings that hold are shown with their origins', async (t) => {
  const rig = await adminRig(t, {
    config: () => ({
      origins: [{ path: 'listen', value: '127.0.0.1:8686', origin: 'gateway.yaml:1' }],
      warnings: ['something is odd'],
      configFile: '/etc/gateway.yaml',
    }),
  });
  const { status, body } = await rig.ask('/api/config');
  assert.equal(status, 200);
  assert.deepEqual(body, {
    config_file: '/etc/gateway.yaml',
    settings: [{ path: 'listen', value: '127.0.0.1:8686', origin: 'gateway.yaml:1' }],
    warnings: ['something is odd'],
  });
});

test('N3 issue 8: without a file its name is null', async (t) => {
  const rig = await adminRig(t);
  assert.equal((await rig.ask('/api/config')).body['config_file'], null);
});
