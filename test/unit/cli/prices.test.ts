import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { it } from 'node:test';
import { findGateway } from '../../../src/compose/commands/find-gateway.ts';
import { pricesCommand } from '../../../src/cli/commands/prices.ts';
import { tryParse } from '../../../src/json/parse.ts';
import { isObject } from '../../../src/json/value.ts';
import type { Price } from '../../../src/core/money.ts';
import type { AdminDeps } from '../../../src/admin/handler.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { listOf } from '../admin/admin-rig.ts';
import { cliRig } from './cli-rig.ts';

const mini: Price = {
  rates: { input: 250_000, output: 2_000_000, cacheRead: 25_000 },
  tiers: [],
  source: 'genai-prices 0.1.8 openai/gpt-5-mini',
};
const own: Price = {
  rates: { input: 1_250_000, output: 10_000_000, cacheWrite: 1_562_500, reasoning: 12_000_000 },
  tiers: [{ above: 200_000, rates: { input: 2_500_000, output: 15_000_000 } }],
  call: 12_000_000_000,
  perImage: 3_000_000_000,
  webSearch: 10_000_000_000,
  source: 'gateway.yaml:12',
};

const deps: Partial<AdminDeps> = {
  prices: async (model) =>
    [
      { model: 'fast', target: 'openai/gpt-5-mini', price: mini },
      { model: 'fast', target: 'team/qwen' },
      { model: 'team/big', target: 'team/big', price: own },
    ].filter((each) => model === undefined || each.model === model),
};

it('F6 prices shows each target with its rates in effect, and who says so', async (t) => {
  const rig = await cliRig(t, deps);
  const ran = await rig.run(pricesCommand, []);
  assert.deepEqual([ran.code, ran.err], [0, '']);
  assert.equal(
    ran.out,
    `Dollars per million tokens

MODEL     TARGET             PROMPT    INPUT    CACHED  WRITTEN  WRITTEN 1H  OUTPUT   FROM
fast      openai/gpt-5-mini            0.25     0.025   0.25     0.25        2        genai-prices 0.1.8 openai/gpt-5-mini
fast      team/qwen                    unknown                               unknown  -
team/big                               1.25     1.25    1.5625   1.5625      10       gateway.yaml:12, reasoning 12, and 0.012 a call, and 0.003 a picture, and 0.01 a web search
                             > 200000  2.5      2.5     2.5      2.5         15
`,
  );
});

it('F6 prices MODEL --json gives the price of one, null where nobody knows it', async (t) => {
  const rig = await cliRig(t, deps);
  const ran = await rig.run(pricesCommand, ['fast', '--json']);
  assert.deepEqual(tryParse(ran.out), [
    {
      model: 'fast',
      target: 'openai/gpt-5-mini',
      price: {
        source: 'genai-prices 0.1.8 openai/gpt-5-mini',
        input: 0.25,
        cache_read: 0.025,
        cache_write: null,
        cache_write_1h: null,
        output: 2,
        reasoning: null,
        audio_input: null,
        image_input: null,
        video_input: null,
        audio_cache_read: null,
        audio_output: null,
        image_output: null,
        tiers: [],
        service_tiers: {},
        call: null,
        per_image: null,
        web_search: null,
        file_search: null,
      },
    },
    { model: 'fast', target: 'team/qwen', price: null },
  ]);
});

it('F6 prices shows the default of the config', async (t) => {
  const rig = await cliRig(t, {
    prices: async () => [{ model: 'a/b', target: 'a/b' }],
    defaultPrice: () => ({ ...mini, source: 'gateway.yaml:3 (default)' }),
  });
  const { out } = await rig.run(pricesCommand, []);
  assert.match(out, /^default +0\.25 .* gateway\.yaml:3 \(default\)$/m);
  const { body } = await rig.ask('/api/prices');
  assert.ok(isObject(body['default']) && body['default']['input'] === 0.25);
});

it('prices reports what is wrong: an unknown model, a flag, too many arguments', async (t) => {
  const rig = await cliRig(t, deps);
  await assert.rejects(rig.run(pricesCommand, ['nobody']), /There is no model "nobody"/);
  assert.equal((await rig.run(pricesCommand, ['--what'])).code, 2);
  assert.equal((await rig.run(pricesCommand, ['a', 'b'])).code, 2);
  assert.match((await rig.run(pricesCommand, ['--help'])).out, /^Usage: model-gateway prices/);
});

it('the API takes model only', async (t) => {
  const rig = await cliRig(t, deps);
  assert.equal((await rig.ask('/api/prices?model=')).status, 400);
  assert.equal((await rig.ask('/api/prices?modell=fast')).status, 400);
  assert.equal((await rig.ask('/api/prices?model=nobody')).status, 404);
  assert.equal(listOf((await rig.ask('/api/prices')).body, 'prices').length, 3);
});

function directory(): string {
  const cwd = temporaryFolder('prices');
  writeFileSync(
    join(cwd, 'gateway.yaml'),
    `storage: memory
providers:
  openai: { api_key: no-key, base_url: 'http://127.0.0.1:9/v1' }
models:
  fast: { targets: [openai/gpt-5-mini-2026-01-31, local/tiny] }
prices:
  openai/gpt-5-nano: { input: 7, output: 8 }
`,
  );
  return cwd;
}

it('F6 without a gateway the directory’s config and the package answer', async () => {
  const { client: admin } = await findGateway({}, directory());
  const sources = async (query: string): Promise<readonly unknown[]> => {
    const { body } = await admin.request('GET', `/api/prices${query}`);
    return listOf(isObject(body) ? body : {}, 'prices').map(({ model, price }) => [
      model,
      isObject(price) ? String(price['source']).replace(/[\d.]+ /, '') : price,
    ]);
  };
  assert.deepEqual(await sources('?model=fast'), [
    ['fast', 'genai-prices openai/gpt-5-mini'],
    ['fast', 'local'],
  ]);
  assert.deepEqual(await sources('?model=openai/gpt-5-nano'), [
    ['openai/gpt-5-nano', 'gateway.yaml:7'],
  ]);
  assert.deepEqual(await sources('?model=openai/gpt-99'), [['openai/gpt-99', null]]);
  // Nobody here can call it, and it has a price all the same.
  assert.deepEqual(await sources('?model=anthropic/claude-opus-4-5'), [
    ['anthropic/claude-opus-4-5', 'genai-prices anthropic/claude-opus-4-5'],
  ]);
  const all = await sources('');
  assert.deepEqual(all.slice(0, 2), [
    ['fast', 'genai-prices openai/gpt-5-mini'],
    ['fast', 'local'],
  ]);
  assert.ok(all.some((row) => JSON.stringify(row) === '["local/tiny","local"]'));
});
