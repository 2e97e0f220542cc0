import assert from 'node:assert/strict';
import { describe, it, test } from 'node:test';
import { costOf } from '../../../src/access/cost.ts';
import { PriceList, PriceTable, familyNames, listedNames } from '../../../src/access/prices.ts';
import type { Price, PriceSettings } from '../../../src/core/money.ts';
import type { Log } from '../../../src/core/runtime.ts';
import { priceOrigins, providerRows } from '../../../src/providers/compatible.ts';
import { silentLog } from './fakes.ts';

const list = new PriceList();
/** The package's prices are those of a day: tests ask for that day. */
const at = Date.UTC(2026, 10, 21, 12);

const declared = [
  { id: 'team-vllm', baseUrl: 'http://10.0.0.5:8000/v1' },
  { id: 'eu-openai', baseUrl: 'https://api.openai.com/v1' },
  { id: 'proxy', like: 'anthropic', baseUrl: 'https://llm.example.com' },
  { id: 'engine', like: 'vllm', baseUrl: 'https://api.openai.com/v1' },
];

function book(settings: PriceSettings = { models: [] }): PriceTable {
  return new PriceTable({ settings, list, origin: priceOrigins(declared, {}), log: silentLog });
}

function found(provider: string, model: string, when = at): Price {
  const price = book().find(provider, model, when);
  assert.ok(price, `${provider}/${model} has no price`);
  return price;
}

function flat(input: number, output = 0): Price {
  return { rates: { input, output }, tiers: [], source: `gateway.yaml:${input}` };
}

describe('F6 vendors’ price sheets', () => {
  it('Anthropic: reads at a tenth, writes at 1.25 and 2 times', () => {
    assert.deepEqual(found('anthropic', 'claude-opus-4-5'), {
      rates: {
        input: 5_000_000,
        output: 25_000_000,
        cacheRead: 500_000,
        cacheWrite: 6_250_000,
        cacheWriteLong: 10_000_000,
      },
      tiers: [],
      webSearch: 10_000_000_000,
      source: `genai-prices ${list.version} anthropic/claude-opus-4-5`,
    });
  });

  it('OpenAI: cached input at a tenth, nothing for writing', () => {
    const { rates, tiers } = found('openai', 'gpt-5-mini');
    assert.deepEqual(rates, { input: 250_000, output: 2_000_000, cacheRead: 25_000 });
    assert.deepEqual(tiers, []);
  });

  it('Gemini: the whole call is more expensive above 200,000 tokens', () => {
    assert.deepEqual(found('gemini', 'gemini-2.5-pro'), {
      rates: { input: 1_250_000, output: 10_000_000, cacheRead: 125_000 },
      tiers: [
        {
          above: 200_000,
          rates: { input: 2_500_000, output: 15_000_000, cacheRead: 250_000 },
        },
      ],
      source: `genai-prices ${list.version} google/gemini-2.5-pro`,
    });
  });

  it('all rates of all vendors’ lists are integers that nothing was lost from', () => {
    const models = [
      ['anthropic', 'claude-sonnet-4-5', 3_000_000],
      ['deepseek', 'deepseek-v3.2', 228_800],
      ['xai', 'grok-4.5', 2_000_000],
      ['zai', 'glm-5.2', 1_400_000],
      ['moonshot', 'kimi-k2.6', 950_000],
      ['groq', 'openai/gpt-oss-20b', 75_000],
      ['cerebras', 'gpt-oss-120b', 350_000],
      ['fireworks', 'accounts/fireworks/models/glm-5p2', 1_400_000],
      ['openrouter', 'anthropic/claude-sonnet-5', 2_000_000],
      ['mistral', 'codestral-2508', 300_000],
    ] as const;
    for (const [provider, model, input] of models) {
      assert.equal(found(provider, model).rates.input, input, `${provider}/${model}`);
    }
  });

  it('each vendor row names a list that exists', () => {
    for (const { id, prices } of providerRows) {
      if (prices === undefined) continue;
      assert.equal(list.find(prices, 'no-such-model'), undefined);
      assert.ok(list.knows(prices), `${id}: there is no list ${prices}`);
    }
    assert.ok(!list.knows('no-such-list'));
  });
});

describe('F6 the vendor’s own statement of what a recorded call cost', () => {
  // xAI tells the cost in units of 10^-10 dollars (recordings/openai-compatible/xai-*).
  const calls = [
    { input: 12, cached: 11, output: 342, reasoning: 340, ticks: 1_721_250 },
    { input: 12, cached: 2, output: 322, reasoning: 320, ticks: 1_641_500 },
    { input: 307, cached: 244, output: 281, reasoning: 255, ticks: 1_777_000 },
    { input: 307, cached: 306, output: 253, reasoning: 227, ticks: 1_497_500 },
  ];
  for (const { input, cached, output, reasoning, ticks } of calls) {
    it(`grok-3-mini: ${ticks} ticks`, () => {
      const cost = costOf(found('xai', 'grok-3-mini'), {
        freshInputTokens: input - cached,
        cacheReadTokens: cached,
        outputTokens: output,
        reasoningTokens: reasoning,
      });
      assert.equal(cost?.total, ticks / 10);
    });
  }
});

describe('F6 dated names have the price of their family', () => {
  const names: readonly (readonly [string, readonly string[]])[] = [
    ['claude-sonnet-5-20260930', ['claude-sonnet-5-20260930', 'claude-sonnet-5']],
    ['gpt-5-mini-2026-08-07', ['gpt-5-mini-2026-08-07', 'gpt-5-mini']],
    ['claude-sonnet-4@20250514', ['claude-sonnet-4@20250514', 'claude-sonnet-4']],
    [
      'a/claude-4.5-sonnet-20250929:beta',
      ['a/claude-4.5-sonnet-20250929:beta', 'a/claude-4.5-sonnet:beta'],
    ],
    ['mistral-large-2411', ['mistral-large-2411', 'mistral-large']],
    ['codestral-2508', ['codestral-2508', 'codestral']],
    ['gpt-4-0613', ['gpt-4-0613', 'gpt-4']],
    ['grok-2-1212', ['grok-2-1212', 'grok-2']],
    [
      'deepseek/deepseek-r1-0528:free',
      ['deepseek/deepseek-r1-0528:free', 'deepseek/deepseek-r1:free'],
    ],
    ['command-r-plus-08-2024', ['command-r-plus-08-2024', 'command-r-plus']],
    // No dates: a version, a count of parameters, a month or day that there is not, sizes, what other words follow.
    ['llama-3.1-70b', ['llama-3.1-70b']],
    ['gemini-1.5-pro-002', ['gemini-1.5-pro-002']],
    ['model-2413', ['model-2413']],
    ['model-0631x', ['model-0631x']],
    ['model-0632', ['model-0632']],
    ['model-1300', ['model-1300']],
    ['llama3-70b-8192', ['llama3-70b-8192']],
    ['embed-1024', ['embed-1024']],
    ['embed-1536', ['embed-1536']],
    ['embed-2048', ['embed-2048']],
    ['mixtral-8x7b-32768', ['mixtral-8x7b-32768']],
    ['gpt-4-0125-preview', ['gpt-4-0125-preview']],
    ['model2411', ['model2411']],
    ['-2411', ['-2411']],
    ['model-20261399', ['model-20261399']],
    ['model-202609301', ['model-202609301']],
  ];
  for (const [name, family] of names) {
    it(name, () => {
      assert.deepEqual(familyNames(name), family);
    });
  }

  it('and what stands before the last slash may be missing in the list', () => {
    assert.deepEqual(listedNames('models/gemini-3-pro'), ['models/gemini-3-pro', 'gemini-3-pro']);
    assert.deepEqual(listedNames('x/'), ['x/']);
  });

  it('in the package', () => {
    const dated = [
      ['openai', 'gpt-5-mini-2026-12-31', 'gpt-5-mini'],
      ['anthropic', 'claude-opus-4-1-20261231', 'claude-opus-4-1'],
      ['gemini', 'models/gemini-2.5-flash', 'gemini-2.5-flash'],
      ['openrouter', 'anthropic/claude-sonnet-5-20260930', 'anthropic/claude-sonnet-5'],
    ] as const;
    for (const [provider, name, family] of dated) {
      assert.deepEqual(found(provider, name), found(provider, family), name);
    }
  });

  it('a dated name with a price of its own keeps it', () => {
    assert.equal(found('openai', 'gpt-4o-2024-05-13').rates.input, 5_000_000);
    assert.equal(found('openai', 'gpt-4o').rates.input, 2_500_000);
  });
});

describe('F6 prices that change', () => {
  it('on a date', () => {
    const start = Date.UTC(2026, 2, 13);
    const model = 'claude-sonnet-4-6';
    assert.equal(found('anthropic', model, start - 1).tiers[0]?.above, 200_000);
    assert.deepEqual(found('anthropic', model, start).tiers, []);
  });

  it('by the time of day, in UTC; a later case comes before an earlier one', () => {
    const input = (hour: number, minute = 0): number =>
      found('deepseek', 'deepseek-v4-flash', Date.UTC(2026, 10, 21, hour, minute)).rates.input;
    assert.deepEqual(
      [input(0, 59), input(1), input(3, 59), input(4), input(6), input(9, 59), input(10)],
      [220_000, 440_000, 440_000, 220_000, 440_000, 440_000, 220_000],
    );
    const earlier = Date.UTC(2026, 7, 16, 12);
    assert.equal(found('deepseek', 'deepseek-v4-flash', earlier).rates.input, 140_000);
  });
});

describe('F6 what has no price', () => {
  it('a model that nobody knows', () => {
    assert.equal(book().find('openai', 'gpt-99', at), undefined);
    assert.equal(book().find('nobody', 'gpt-5-mini', at), undefined);
  });

  it('an engine of one’s own, even under a vendor’s model names', () => {
    assert.equal(book().find('team-vllm', 'gpt-5-mini', at), undefined);
    assert.equal(book().find('vllm', 'gpt-5-mini', at), undefined);
    assert.equal(book().find('engine', 'gpt-5-mini', at), undefined);
  });

  it('a model that the list names without rates: that is not 0', () => {
    assert.equal(book().find('cerebras', 'qwen-3-coder-480b', at), undefined);
    assert.equal(book().find('gemini', 'gemini-embedding-001', at), undefined);
  });

  it('a model whose answers are billed by kinds of tokens that nobody reports apart', () => {
    assert.equal(book().find('gemini', 'gemini-2.5-flash-image', at), undefined);
  });
});

describe('F6 whose list holds', () => {
  it('a provider under another name: by its address, or by the vendor whose ways it has', () => {
    assert.equal(book().find('eu-openai', 'gpt-5-mini', at)?.rates.input, 250_000);
    assert.equal(book().find('proxy', 'claude-opus-4-5', at)?.rates.input, 5_000_000);
  });

  it('models that run here cost nothing, and say so', () => {
    assert.deepEqual(book().find('local', 'tiny', at), {
      rates: { input: 0, output: 0 },
      tiers: [],
      source: 'local',
    });
  });
});

describe('F6 the config comes first', () => {
  const configured = book({
    models: [
      { pattern: 'team-vllm/*', price: flat(1) },
      { pattern: 'team-vllm/big', price: flat(2) },
      { pattern: '*/big*', price: flat(3) },
      { pattern: 'openai/gpt-5-mini', price: flat(4) },
      { pattern: 'local/tiny', price: flat(5) },
    ],
    otherwise: flat(9),
  });
  const input = (provider: string, model: string): number | undefined =>
    configured.find(provider, model, at)?.rates.input;

  it('a full name before globs, the first fitting glob before others', () => {
    assert.equal(input('team-vllm', 'big'), 2);
    assert.equal(input('team-vllm', 'bigger'), 1);
    assert.equal(input('nobody', 'bigger'), 3);
  });

  it('and its families before the package', () => {
    assert.equal(input('openai', 'gpt-5-mini'), 4);
    assert.equal(input('openai', 'gpt-5-mini-2025-08-07'), 4);
    assert.equal(input('openai', 'gpt-5-nano'), 50_000);
    assert.equal(input('local', 'tiny'), 5);
  });

  it('the default is for those who must have a price: unpriced stays unpriced', () => {
    assert.equal(input('nobody', 'x'), undefined);
    assert.equal(configured.otherwise?.rates.input, 9);
    assert.equal(book().otherwise, undefined);
  });
});

test('F6 a price is looked for once; names without end are forgotten again', () => {
  let asked = 0;
  const counting = {
    load: () => {},
    find: () => {
      asked += 1;
      return undefined;
    },
  };
  const origin = priceOrigins([], {});
  const kept = new PriceTable({ settings: { models: [] }, list: counting, origin, log: silentLog });
  for (let i = 0; i < 3; i++) kept.find('openai', 'a', at);
  assert.equal(asked, 1);
  for (let i = 0; i < 10_000; i++) kept.find('openai', `made-up-${i}`, at);
  kept.find('openai', 'a', at);
  assert.equal(asked, 10_002);
});

test('F6 a package that cannot be read prices nothing and is told once', () => {
  const told: string[] = [];
  const log: Log = { ...silentLog, error: (event) => void told.push(event) };
  const broken = {
    load: () => {
      throw new Error('no such file');
    },
    find: () => {
      throw new Error('no such file');
    },
  };
  const settings = { models: [{ pattern: 'openai/a', price: flat(1) }] };
  const kept = new PriceTable({ settings, list: broken, origin: priceOrigins([], {}), log });
  kept.warm(['openai']);
  assert.equal(kept.find('openai', 'b', at), undefined);
  assert.equal(kept.find('openai', 'a', at)?.rates.input, 1);
  assert.deepEqual(told, ['price_list_unreadable']);
});

test('issue 25.4: the list is loaded ahead only where it prices a provider', () => {
  let loads = 0;
  const counted = { load: () => void (loads += 1), find: () => undefined };
  const deps = { settings: { models: [] }, list: counted, log: silentLog };
  const table = new PriceTable({ ...deps, origin: priceOrigins(declared, {}) });
  table.warm(['local', 'team-vllm', 'engine']);
  assert.equal(loads, 0, 'own models and servers have no list prices');
  table.warm(['local', 'team-vllm', 'proxy']);
  assert.equal(loads, 1);
});
