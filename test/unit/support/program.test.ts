/** What is measured and tested is the program as it is installed: the same options of Node. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { Instance } from '../../cluster/instance.ts';
import { nodeEnvironment, nodeOptions } from '../../support/program.ts';

const skip = process.platform === 'linux' ? false : 'reads /proc';

test('G1 processes of tests run with the options of bin/model-gateway', { skip }, async () => {
  const gateway = await Instance.start({ storage: 'memory', upstream: 1 });
  try {
    const given = readFileSync(`/proc/${gateway.pid}/cmdline`, 'utf8').split('\0');
    for (const option of nodeOptions) assert.ok(given.includes(option), given.join(' '));
  } finally {
    await gateway.kill();
  }
});

test('what the launcher adds to the environment is what the tests add', () => {
  const launcher = readFileSync(join(import.meta.dirname, '../../../bin/model-gateway'), 'utf8');
  const wherever = { ...nodeEnvironment, NODE_COMPILE_CACHE: '${TMPDIR:-/tmp}/node-compile-cache' };
  for (const [name, value] of Object.entries(wherever)) {
    assert.ok(launcher.includes(`export ${name}="\${${name}:-${value}}"`), name);
  }
});
