import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { scene } from './scene.ts';

test('F6 prices: dollars per million tokens become integers, with their lines as sources', async () => {
  const { load } = scene(`providers:
  team-vllm: { dialect: openai-chat, base_url: 'http://127.0.0.1:9/v1' }
prices:
  team-vllm/qwen3-32b: { input: 0.1, output: 0.000001, call: 0.000000000001, web_search: 0.01, file_search: 0.0025 }
  'team-vllm/*':
    input: 1.25
    output: 10
    cache_read: 0.125
    cache_write: 1.5625
    cache_write_1h: 2.5
    reasoning: 12
    tiers:
      - { above: 200000, input: 2.5, output: 15, cache_read: 0.25, cache_write: 3.125, cache_write_1h: 5, reasoning: 18 }
  default: { input: 100, output: 500 }
`);
  const { prices, origins } = await load();
  assert.deepEqual(prices, {
    models: [
      {
        pattern: 'team-vllm/qwen3-32b',
        price: {
          rates: { input: 100_000, output: 1 },
          tiers: [],
          call: 1,
          webSearch: 10_000_000_000,
          fileSearch: 2_500_000_000,
          source: 'gateway.yaml:4',
        },
      },
      {
        pattern: 'team-vllm/*',
        price: {
          rates: {
            input: 1_250_000,
            output: 10_000_000,
            cacheRead: 125_000,
            cacheWrite: 1_562_500,
            cacheWriteLong: 2_500_000,
            reasoning: 12_000_000,
          },
          tiers: [
            {
              above: 200_000,
              rates: {
                input: 2_500_000,
                output: 15_000_000,
                cacheRead: 250_000,
                cacheWrite: 3_125_000,
                cacheWriteLong: 5_000_000,
                reasoning: 18_000_000,
              },
            },
          ],
          source: 'gateway.yaml:5',
        },
      },
    ],
    otherwise: {
      rates: { input: 100_000_000, output: 500_000_000 },
      tiers: [],
      source: 'gateway.yaml:14 (default)',
    },
  });
  const shown = origins
    .filter(({ path }) => path.startsWith('prices'))
    .map(({ path, value, origin }) => `${path}: ${value} (${origin})`);
  assert.deepEqual(shown, [
    'prices.team-vllm/qwen3-32b: input 0.1, output 0.000001, call 0.000000000001, web_search 0.01, file_search 0.0025 (gateway.yaml:4)',
    'prices.team-vllm/*: input 1.25, cache_read 0.125, cache_write 1.5625, cache_write_1h 2.5, output 10, reasoning 12, above 200000: input 2.5, cache_read 0.25, cache_write 3.125, cache_write_1h 5, output 15, reasoning 18 (gateway.yaml:5)',
    'prices.default: input 100, output 500 (gateway.yaml:14)',
  ]);
});

test('F6 without prices: nothing is set', async () => {
  assert.deepEqual((await scene().load()).prices, { models: [] });
  assert.deepEqual((await scene('prices:\n').load()).prices, { models: [] });
});

test('F6 the example of docs/user/prices.md has the prices that it shows', async () => {
  const page = readFileSync(join(import.meta.dirname, '../../../docs/user/prices.md'), 'utf8');
  const example = /```yaml\n([\s\S]*?)```/.exec(page)?.[1] ?? '';
  const others = `  openrouter: { dialect: openai-chat, base_url: 'http://127.0.0.1:9/v1' }
  gemini: { dialect: openai-chat, base_url: 'http://127.0.0.1:9/v1' }
`;
  const { load } = scene(example.replace('providers:\n', `providers:\n${others}`));
  const { prices } = await load();
  assert.equal(prices.models.length, 5);
  assert.equal(prices.otherwise?.rates.input, 20_000_000);
});

test('N3 mistakes in prices: name their line and what is wrong', async () => {
  const { errors } = scene(`prices:
  sonnet: { input: 1, output: 2 }
  opnai/gpt-5: { input: 1, output: 2 }
  openai/a: { input: -1, output: 2 }
  openai/b: { input: 0.0000001, output: 2.0000001 }
  openai/c: { output: 2 }
  openai/d: { input: 1, output: 2, cached: 1 }
  openai/e: { input: "1", output: 2 }
  openai/f:
    input: 1
    output: 2
    cache_read: 0.1
    tiers:
      - { above: 200000, input: 2, output: 4 }
      - { above: 200000, input: 3, output: 5, cache_read: 0.2 }
  '*/g': { input: 1, output: 1, call: 2000000 }
`);
  assert.deepEqual(await errors(), [
    'gateway.yaml:2: prices.sonnet: is provider/model, a glob such as team-vllm/*, or default',
    'gateway.yaml:3: prices.opnai/gpt-5: there is no provider "opnai" (did you mean "openai"?)',
    'gateway.yaml:4: prices.openai/a.input: must be at least 0',
    'gateway.yaml:5: prices.openai/b.input: is less than the smallest amount, 0.000001',
    'gateway.yaml:5: prices.openai/b.output: must have at most 6 decimals and 15 digits',
    'gateway.yaml:6: prices.openai/c.input: is missing',
    'gateway.yaml:7: prices.openai/d.cached: unknown key',
    'gateway.yaml:8: prices.openai/e.input: expected a number, found a text',
    'gateway.yaml:14: prices.openai/f.tiers[0]: cache_read is missing',
    'gateway.yaml:15: prices.openai/f.tiers[1]: above must increase from tier to tier; the tier before has 200000',
    'gateway.yaml:16: prices.*/g.call: must be at most 1000000',
  ]);
});

test('F6 prices of service tiers stand beside the standard one; one that leaves a rate open is reported', async () => {
  const text = `prices:
  openai/a:
    input: 1
    output: 2
    cache_read: 0.5
    call: 0.01
    tiers: [{ above: 100, input: 3, output: 4, cache_read: 1 }]
    service_tiers:
      flex: { input: 0.5, output: 1, cache_read: 0.25, tiers: [] }
`;
  const { prices, origins } = await scene(text).load();
  const price = prices.models[0]?.price;
  assert.deepEqual([...(price?.service?.keys() ?? [])], ['standard', 'flex']);
  assert.deepEqual(price?.service?.get('flex'), {
    rates: { input: 500_000, output: 1_000_000, cacheRead: 250_000 },
    tiers: [],
    call: 10_000_000_000,
    source: 'gateway.yaml:2 (flex)',
  });
  assert.equal(price?.service?.get('standard')?.service, undefined);
  const shown = origins.find(({ path }) => path === 'prices.openai/a')?.value;
  assert.match(shown ?? '', /flex: input 0\.5, cache_read 0\.25, output 1$/);

  const wrong = text.replace(
    'cache_read: 0.25, tiers: []',
    'tiers: [{ above: 9, input: 1, output: 1 }, { above: 9, input: 1, output: 1 }]',
  );
  await assert.rejects(scene(wrong).load(), (error: Error) => {
    assert.match(
      error.message,
      /:9: prices\.openai\/a\.service_tiers\.flex: cache_read is missing/,
    );
    assert.match(error.message, /flex\.tiers\[1\]: above must increase/);
    return true;
  });
  const short = text.replace(', tiers: []', '');
  await assert.rejects(scene(short).load(), /flex: tiers are missing/);
});
