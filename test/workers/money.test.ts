/**
 * Q1 Q2: what calls cost at two workers, with cached prompts, reasoning, service tiers and a change of prices in between:
 * ledger, sums, budgets and metrics say to the nanodollar what the upstream counted.
 */
import assert from 'node:assert/strict';
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { isObject, type JsonObject } from '../../src/json/value.ts';
import { tryParseObject } from '../../src/json/parse.ts';
import { until } from '../support/postgres-store.ts';
import { chatDocument } from '../upstream/chat.ts';
import type { Received } from '../upstream/scripted.ts';
import { startCrew, type Crewed } from './crew.ts';

const rates = (times: number): JsonObject => ({
  input: times,
  cache_read: times / 10,
  output: 10 * times,
  reasoning: 20 * times,
});
const pricesTimes = (times: number): JsonObject => ({
  'up/*': {
    ...rates(times),
    service_tiers: { priority: rates(2 * times), flex: rates(times / 2) },
  },
});
const tierTimes: { readonly [tier: string]: number } = { default: 1, priority: 2, flex: 0.5 };
const tiers = Object.keys(tierTimes);

let crew: Crewed;
before(async () => {
  crew = await startCrew(2, {
    prices: pricesTimes(1),
    teams: { crew: { budget: 50, per: 'ever' } },
    tags: { night: { budget: 50, per: 'ever', keys: ['*'] } },
  });
});
after(() => crew.end());

interface Counted {
  /** Nanodollars at the first prices. */
  readonly cost: number;
  readonly tokens: number;
}

const counted = new Map<string, Counted>();
const upTo = (most: number): number => Math.floor(Math.random() * (most + 1));

/** Answers with a usage and a tier of its own choice. */
function answer({ json }: Received): { body: string; headers: { [name: string]: string } } {
  const [read, fresh, reasoning, text] = [upTo(40), 1 + upTo(9), upTo(50), 1 + upTo(50)];
  const asked = String(json['service_tier'] ?? tiers[upTo(2)]);
  const tier = Math.random() < 0.5 ? asked : 'default';
  const nanodollars = 1000 * fresh + 100 * read + 10_000 * text + 20_000 * reasoning;
  const tokens = read + fresh + reasoning + text;
  counted.set(String(json['user']), { cost: nanodollars * (tierTimes[tier] ?? 1), tokens });
  const usage = {
    prompt_tokens: read + fresh,
    completion_tokens: text + reasoning,
    total_tokens: tokens,
    prompt_tokens_details: { cached_tokens: read },
    completion_tokens_details: { reasoning_tokens: reasoning },
  };
  const document = { ...chatDocument({ text: 'x', usage }), service_tier: tier };
  return { body: JSON.stringify(document), headers: { 'content-type': 'application/json' } };
}

/** 16 clients make 6 calls each. Some of the calls name the tag. */
async function callAll(key: string, phase: string): Promise<void> {
  const client = async (_: unknown, index: number): Promise<void> => {
    for (let turn = 0; turn < 6; turn += 1) {
      const tier = [undefined, ...tiers][upTo(3)];
      const reply = await crew.gateway.chat(key, {
        model: 'up/counting',
        user: `${phase} ${index} ${turn}`,
        max_tokens: 120,
        ...(tier === undefined ? {} : { service_tier: tier }),
      });
      assert.equal(reply.status, 200, reply.text);
    }
  };
  await Promise.all(Array.from({ length: 16 }, client));
}

async function doublePrices(): Promise<void> {
  const { gateway } = crew;
  const file = join(gateway.directory, 'gateway.yaml');
  const config = { ...tryParseObject(readFileSync(file, 'utf8')), prices: pricesTimes(2) };
  writeFileSync(`${file}.new`, JSON.stringify(config), { mode: 0o600 });
  renameSync(`${file}.new`, file);
  await until(() => gateway.log.includes('config_applied'), 'the prices have changed');
}

const nanodollars = (usd: unknown): number => Math.round(Number(usd) * 1e9);

async function listed(path: string, member: string): Promise<readonly JsonObject[]> {
  const { json } = await crew.gateway.admin('GET', path);
  const list = json[member];
  assert.ok(Array.isArray(list), path);
  return list.filter(isObject);
}

/** The sum of a metric over all its series. */
function sumOf(metrics: string, name: string): number {
  const lines = metrics.split('\n').filter((line) => line.startsWith(`${name}{`));
  return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0);
}

test('Q2: ledger, sums, budgets and metrics of two workers agree with the upstream to the nanodollar', async () => {
  const { gateway, upstream } = crew;
  upstream.script('counting', answer);
  const made = await gateway.makeKey({ budget: 50, per: 'ever', team: 'crew', tags: ['night'] });
  await callAll(made.key, 'before');
  await doublePrices();
  await callAll(made.key, 'after');

  let cost = 0;
  let tokens = 0;
  for (const [user, account] of counted) {
    cost += account.cost * (user.startsWith('after') ? 2 : 1);
    tokens += account.tokens;
  }
  assert.equal(counted.size, 192);
  const usage = async () => (await listed('/api/usage?by=key', 'rows'))[0] ?? {};
  await until(async () => (await usage())['calls'] === 192, 'all rows are written');
  for (const call of await listed('/api/calls?limit=200', 'calls')) {
    const user = String(call['user']);
    const expected = (counted.get(user)?.cost ?? 0) * (user.startsWith('after') ? 2 : 1);
    assert.equal(nanodollars(call['cost_usd']), expected, user);
  }
  for (const by of ['key', 'team', 'tag']) {
    const [row] = await listed(`/api/usage?by=${by}`, 'rows');
    assert.equal(nanodollars(row?.['cost_usd']), cost, by);
    assert.equal(Number(row?.['input_tokens']) + Number(row?.['output_tokens']), tokens, by);
  }
  const budgets = await listed('/api/budgets', 'budgets');
  assert.deepEqual(
    budgets.map(({ holder, spent_usd: spent }) => [holder, nanodollars(spent)]).sort(),
    [
      ['key', cost],
      ['tag', cost],
      ['team', cost],
    ],
  );
  const metrics = (await gateway.admin('GET', '/metrics')).text;
  assert.equal(nanodollars(sumOf(metrics, 'model_gateway_key_cost_dollars_total')), cost);
  assert.equal(sumOf(metrics, 'model_gateway_key_tokens_total'), tokens);
});
