import assert from 'node:assert/strict';
import { utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { it } from 'node:test';
import { HeaderSettings } from '../../../src/config/settings.ts';
import { Secret } from '../../../src/core/secret.ts';
import { readDownloads } from '../../../src/local-models/model-folder.ts';
import { adminProviders } from '../../../src/compose/providers.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { adminRig, errorOf, listOf } from './admin-rig.ts';

it('issue 8 downloads are seen by the files that they leave, with what is known of their size', async (t) => {
  const folder = temporaryFolder('downloads');
  const now = Math.floor(Date.now() / 1000) * 1000;
  for (const [name, bytes, ago] of [
    ['a', 10, 20_000],
    ['b', 20, 1000],
  ] as const) {
    const path = join(folder, `${name}.gguf.part`);
    writeFileSync(path, 'x'.repeat(bytes));
    utimesSync(path, now / 1000, (now - ago) / 1000);
  }
  writeFileSync(join(folder, 'b.gguf.part.json'), '{"identity":"h","bytes":40}');
  writeFileSync(join(folder, 'whole.gguf'), 'x');
  const rig = await adminRig(t, { downloads: () => readDownloads(folder) });
  rig.clock.time += now - rig.clock.wall();
  const { body } = await rig.ask('/api/downloads');
  const at = (ago: number): string => new Date(now - ago).toISOString();
  assert.deepEqual(body, {
    downloads: [
      { name: 'a', bytes: 10, total_bytes: null, written_at: at(20_000), active: false },
      { name: 'b', bytes: 20, total_bytes: 40, written_at: at(1000), active: true },
    ],
  });
  assert.deepEqual(await readDownloads(join(folder, 'none')), []);
});

it('S4 providers are listed with their origin and without what is secret', async (t) => {
  const up = {
    id: 'up',
    baseUrl: 'https://user:hidden-1@up.example/v1?key=hidden-2',
    headers: new HeaderSettings([['x-key', 'hidden-4']]),
    options: {},
    credentials: ['one', 'two'].map((name) => ({ name, key: new Secret('hidden-5') })),
    where: 'gateway.yaml:3',
  };
  const env = { OPENAI_API_KEY: 'hidden-3' };
  const providers = adminProviders({ providers: [up] }, env, ['local', 'up']);
  const rig = await adminRig(t, { providers: () => providers });
  const { body } = await rig.ask('/api/providers');
  assert.doesNotMatch(JSON.stringify(body), /hidden/);
  const listed = listOf(body, 'providers');
  assert.deepEqual(
    listed.find(({ id }) => id === 'up'),
    {
      id: 'up',
      address: 'https://up.example/v1',
      origin: 'gateway.yaml:3',
      there: true,
      credentials: ['one', 'two'],
      health: 'unknown',
    },
  );
  assert.deepEqual(listed.find(({ id }) => id === 'openai')?.['origin'], 'env OPENAI_API_KEY');
  assert.ok(listed.some(({ there }) => there === false));
});

it('issue 8 models come in pages', async (t) => {
  const models = ['a', 'b', 'c'].map((id) => ({ id, targets: [] }));
  const rig = await adminRig(t, { models: async () => models });
  const first = await rig.ask('/api/models?limit=2');
  assert.deepEqual(
    [listOf(first.body, 'models').map(({ id }) => id), first.body['next']],
    [['a', 'b'], 'b'],
  );
  const last = await rig.ask('/api/models?limit=2&after=b');
  assert.deepEqual(
    [listOf(last.body, 'models').map(({ id }) => id), last.body['next']],
    [['c'], null],
  );
  assert.equal(listOf((await rig.ask('/api/models')).body, 'models').length, 3);
  assert.equal((await rig.ask('/api/models?limit=10001')).status, 400);
});

it('issue 8 L5 keys are found by a text in id, name, team, owner or tags, page by page', async (t) => {
  const rig = await adminRig(t);
  for (let i = 0; i < 30; i++) {
    const team = i % 10 === 0 ? { team: 'Rot' } : {};
    await rig.keys.create({ name: `key ${i}`, models: ['*'], ...team, tags: [`t${i}`] });
  }
  const find = async (query: string): Promise<readonly unknown[]> => {
    const names: unknown[] = [];
    let after = '';
    for (;;) {
      const { status, body } = await rig.ask(`/api/keys?limit=2&${query}${after}`);
      assert.equal(status, 200);
      names.push(...listOf(body, 'keys').map(({ name }) => name));
      if (body['next'] === null) return names;
      after = `&after=${String(body['next'])}`;
    }
  };
  assert.deepEqual(await find('text=rOT'), ['key 0', 'key 10', 'key 20']);
  assert.deepEqual(await find('text=key%201'), [
    'key 1',
    ...Array.from({ length: 10 }, (_, i) => `key 1${i}`),
  ]);
  assert.deepEqual(await find('text=t29'), ['key 29']);
  assert.deepEqual(await find('text=nothing'), []);
  const unknown = await rig.ask('/api/keys?text=a&after=nobody');
  assert.deepEqual([unknown.status, errorOf(unknown)['field']], [400, 'after']);
});
