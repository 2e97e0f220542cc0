import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { scene } from './scene.ts';

test('§4 local: folder, limits and single models, with their origins', async () => {
  const { directory, load } = scene(`local:
  models_dir: ./big
  idle_unload: 30m
  hang: 90s
  max_loaded: 2
  memory: 8GiB
  models:
    qwen3-0.6b: { context: 16384, threads: 4, parallel: 2, idle_unload: never }
    elsewhere:
      path: other/model.gguf
      sha256: ${'AB'.repeat(32)}
    tiny: { parallel: 8 }
`);
  const { local, origins } = await load();
  assert.deepEqual(local, {
    modelsDir: join(directory, 'big'),
    idleUnloadMs: 1_800_000,
    hangMs: 90_000,
    maxLoaded: 2,
    memoryBytes: 8 * 2 ** 30,
    models: [
      { name: 'qwen3-0.6b', context: 16_384, threads: 4, parallel: 2, idleUnloadMs: 0 },
      { name: 'elsewhere', path: join(directory, 'other/model.gguf'), sha256: 'ab'.repeat(32) },
      { name: 'tiny', parallel: 8 },
    ],
  });
  const shown = origins
    .filter(({ path }) => path.startsWith('local'))
    .map(({ path, value, origin }) => `${path} ${value} ${origin}`);
  assert.deepEqual(shown, [
    `local.models_dir ${join(directory, 'big')} gateway.yaml:2`,
    'local.idle_unload 30m gateway.yaml:3',
    'local.hang 90s gateway.yaml:4',
    'local.max_loaded 2 gateway.yaml:5',
    'local.memory 8GiB gateway.yaml:6',
    'local.models.qwen3-0.6b.context 16384 gateway.yaml:8',
    'local.models.qwen3-0.6b.threads 4 gateway.yaml:8',
    'local.models.qwen3-0.6b.parallel 2 gateway.yaml:8',
    'local.models.qwen3-0.6b.idle_unload never gateway.yaml:8',
    `local.models.elsewhere.path ${join(directory, 'other/model.gguf')} gateway.yaml:10`,
    `local.models.elsewhere.sha256 ${'ab'.repeat(32)} gateway.yaml:11`,
    'local.models.tiny.parallel 8 gateway.yaml:12',
  ]);
});

test('§4 without local: models lie in the data directory', async () => {
  const { directory, load } = scene('data_dir: ./state\n');
  const { local, origins } = await load();
  assert.deepEqual(local, { modelsDir: join(directory, 'state', 'models'), models: [] });
  const line = origins.find(({ path }) => path === 'local.models_dir');
  assert.equal(line?.origin, 'default');
});

test('N3 what is wrong in local: is reported with its line', async () => {
  const { errors } = scene(`local:
  models:
    ../evil: {}
    a: { context: 0 }
    b: { parallel: 65 }
    c: { idle_unload: soon }
    d: { sha256: abc }
    e: { thread: 2 }
    tiny: { path: other.gguf }
`);
  const lines = await errors();
  const expected = [
    /gateway.yaml:3: .*is not a model name/,
    /gateway.yaml:4: local.models.a.context.*at least 128/,
    /gateway.yaml:5: local.models.b.parallel.*at most 64/,
    /gateway.yaml:6: local.models.c.idle_unload/,
    /gateway.yaml:7: local.models.d.sha256.*64 hexadecimal/,
    /gateway.yaml:8: .*thread.*threads/,
  ];
  for (const [i, text] of expected.entries()) assert.match(lines[i] ?? '', text);
  const { errors: second } = scene('local: { models: { tiny: { path: other.gguf } } }\n');
  assert.match((await second())[0] ?? '', /local.models.tiny.path.*built-in/);
});
