/**
 * A month of traffic as companies make it, from a seed: working hours, weekends, several teams, an outage of a
 * provider, a budget that runs out, a key that meets its rate limit. For tests and pictures of the dashboard.
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { cacheSavingOf, costOf } from '../../src/access/cost.ts';
import type { Usage } from '../../src/core/generation.ts';
import type { Failure } from '../../src/core/faults.ts';
import type { Price } from '../../src/core/money.ts';
import type { JsonObject } from '../../src/json/value.ts';
import type { AttemptRow, CallRow, KeyRecord } from '../../src/store/store.ts';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { silentLog } from '../unit/access/fakes.ts';
import { keyRecord } from '../unit/store/call-rows.ts';

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
const days = 30;

/** Names of a provider, its model, and dollars for a million tokens. */
interface Model {
  readonly asked: string;
  readonly provider: string;
  readonly model: string;
  readonly input: number;
  readonly output: number;
  /** Milliseconds to the first token, and for each further token. */
  readonly firstMs: number;
  readonly tokenMs: number;
}

const models = {
  assistant: model('assistant', 'anthropic/claude-sonnet-5', [3, 15], [780, 14]),
  fallback: model('assistant', 'openai/gpt-5', [1.25, 10], [610, 11]),
  summaries: model('summaries', 'openai/gpt-5-mini', [0.25, 2], [340, 7]),
  coder: model('coder', 'anthropic/claude-opus-5', [15, 75], [1100, 19]),
} as const;

function model(
  asked: string,
  target: string,
  [input, output]: readonly [number, number],
  [firstMs, tokenMs]: readonly [number, number],
): Model {
  const [provider = '', name = ''] = target.split('/');
  return { asked, provider, model: name, input, output, firstMs, tokenMs };
}

interface Worker {
  readonly id: string;
  readonly name: string;
  readonly team?: string;
  readonly model: Model;
  /** Calls on a working day. */
  readonly perDay: number;
  /** Works at night and on weekends, too. */
  readonly always?: true;
  /** Dollars in total. */
  readonly budget?: number;
  readonly users?: number;
  readonly cached: number;
}

const workers: readonly Worker[] = [
  {
    ...key('supportb', 'support-bot', 'support'),
    ...uses(models.assistant, 62, 0.7),
    always: true,
    users: 40,
  },
  { ...key('helpdesk', 'helpdesk-summaries', 'support'), ...uses(models.summaries, 30, 0.1) },
  {
    ...key('ideagent', 'ide-agents', 'platform'),
    ...uses(models.coder, 24, 0.85),
    budget: 38,
    users: 9,
  },
  { ...key('cirobots', 'ci', 'platform'), ...uses(models.summaries, 14, 0) },
  { ...key('notebook', 'notebooks', 'research'), ...uses(models.assistant, 18, 0.2), users: 5 },
  {
    ...key('nightlyx', 'nightly-batch', 'research'),
    ...uses(models.summaries, 20, 0),
    always: true,
  },
];

function key(id: string, name: string, team: string): Pick<Worker, 'id' | 'name' | 'team'> {
  return { id, name, team };
}

function uses(used: Model, perDay: number, cached: number) {
  return { model: used, perDay, cached };
}

/** Config of a gateway over this store: the same names, two upstreams that are not called. */
export const monthConfig: JsonObject = {
  providers: {
    openai: {
      dialect: 'openai-chat',
      base_url: 'http://127.0.0.1:9/v1',
      api_key: 'upstream-key-a',
    },
    anthropic: {
      dialect: 'anthropic-messages',
      base_url: 'http://127.0.0.1:9',
      api_key: 'upstream-key-b',
    },
  },
  models: {
    assistant: { targets: ['anthropic/claude-sonnet-5', 'openai/gpt-5'] },
    summaries: 'openai/gpt-5-mini',
    coder: 'anthropic/claude-opus-5',
  },
  prices: Object.fromEntries(
    Object.values(models).map(({ provider, model: name, input, output }) => [
      `${provider}/${name}`,
      { input, output, cache_read: input / 10 },
    ]),
  ),
  teams: {
    support: { budget: 400, per: 'month' },
    platform: { budget: 120, per: 'month' },
    research: { budget: 60, per: 'month' },
  },
};

export interface SeededMonth {
  readonly keys: readonly KeyRecord[];
  /** In the order of their time; the last ones are a few minutes old. */
  readonly calls: readonly CallRow[];
}

/** @param now ms since the epoch: the month ends here. */
export function seededMonth(now: number, seed = 20_261_121): SeededMonth {
  const random = seededRandom(seed);
  const spent = new Map<string, number>();
  const calls: CallRow[] = [];
  const begin = Math.floor((now - days * dayMs) / hourMs) * hourMs;
  for (let at = begin; at < now; at += hourMs) {
    for (const worker of workers) {
      const wanted = worker.perDay * shareOfHour(worker, at);
      const count = Math.floor(wanted + random());
      for (let i = 0; i < count; i++) {
        const startedAt = Math.floor(at + random() * hourMs);
        if (startedAt >= now - 60_000 || leavesSoon(startedAt, now)) continue;
        const id = `req_${startedAt.toString(36)}${Math.floor(random() * 1e9).toString(36)}`;
        calls.push(callOf({ worker, startedAt, id, random, spent, now }));
      }
    }
  }
  const keys = workers.map(({ id, name, team, budget }) =>
    keyRecord(id, {
      name,
      createdAt: begin,
      ...(team === undefined ? {} : { team }),
      policy: {
        limits: name === 'ci' ? [{ kind: 'requests', amount: 3 }] : [],
        budgets:
          budget === undefined ? [] : [{ nanodollars: budget * 1e9, per: 'ever', timeZone: 'UTC' }],
      },
    }),
  );
  return { keys, calls: calls.toSorted((a, b) => a.startedAt - b.startedAt) };
}

/**
 * Whether a call would leave a period of the pages while a test looks: a test asks the API, and a page later. Sums of
 * the two are compared.
 */
function leavesSoon(startedAt: number, now: number): boolean {
  return [1, 7, 14, 30].some((age) => {
    const sinceBegin = startedAt - (now - age * dayMs);
    return sinceBegin >= 0 && sinceBegin < hourMs / 3;
  });
}

/** Writes the month into the store of a gateway that will start with `DIRECTORY/data`. */
export async function seedStore(directory: string, now: number): Promise<SeededMonth> {
  const month = seededMonth(now);
  const data = join(directory, 'data');
  mkdirSync(data, { recursive: true, mode: 0o700 });
  const store = await openSqliteStore({ path: join(data, 'gateway.db'), log: silentLog });
  try {
    for (const record of month.keys) await store.keys.add(record);
    for (let i = 0; i < month.calls.length; i += 500) {
      await store.calls.record(month.calls.slice(i, i + 500));
    }
    const lastUses = new Map(month.calls.map(({ keyId, startedAt }) => [keyId, startedAt]));
    await store.keys.touch([...lastUses].map(([id, at]) => ({ id, at, previous: false })));
  } finally {
    await store.close();
  }
  return month;
}

/** The part of a day's calls in this hour: lunch and evenings are quiet, weekends nearly so. */
function shareOfHour({ always }: Worker, at: number): number {
  const date = new Date(at);
  const hour = date.getUTCHours();
  const weekend = date.getUTCDay() % 6 === 0;
  const work = hour >= 7 && hour < 18 ? (hour === 12 ? 0.06 : 0.085) : 0.008;
  if (always === true) return weekend ? 0.02 : (work + 0.03) * 0.75;
  return weekend ? work * 0.08 : work;
}

/**
 * Eight o'clock of a working day, at least twenty days ago: in a night or on a weekend hardly a call would meet it, and
 * later the coder's budget is spent.
 */
function outageBefore(now: number): number {
  const begin = Math.floor((now - 20 * dayMs) / dayMs) * dayMs + 8 * hourMs;
  const weekday = new Date(begin).getUTCDay();
  return begin - (weekday === 0 ? 2 : weekday === 6 ? 1 : 0) * dayMs;
}

interface Making {
  readonly worker: Worker;
  readonly startedAt: number;
  readonly id: string;
  readonly random: () => number;
  /** Nanodollars of each key. */
  readonly spent: Map<string, number>;
  readonly now: number;
}

function callOf(making: Making): CallRow {
  const { worker, startedAt, id, random, now } = making;
  const stream = random() < 0.8;
  const row = {
    id,
    startedAt,
    keyId: worker.id,
    ...(worker.team === undefined ? {} : { team: worker.team }),
    tags: worker.name === 'ci' ? ['ci'] : [],
    ...(worker.users === undefined ? {} : { user: `user-${Math.floor(random() * worker.users)}` }),
    endpoint: worker.model === models.summaries ? 'openai-chat' : 'anthropic-messages',
    model: worker.model.asked,
    stream,
    budgets: [],
    usageSource: 'reported' as const,
  };
  const refused = refusal(making);
  if (refused !== undefined) return { ...row, ...refused };
  const sinceOutage = startedAt - outageBefore(now);
  const isOut =
    sinceOutage >= 0 && sinceOutage < 5 * hourMs && worker.model.provider === 'anthropic';
  // The assistant falls back, the coder has no other model.
  if (isOut && worker.model === models.coder)
    return { ...row, ...outOfService(worker.model, startedAt) };
  const used = isOut || random() < 0.01 ? fallbackOf(worker.model) : worker.model;
  const failed = used === worker.model ? undefined : failedAttempt(worker.model, startedAt);
  return { ...row, ...answered(making, used, failed) };
}

function fallbackOf(used: Model): Model {
  return used === models.assistant ? models.fallback : used;
}

type Ending = Pick<CallRow, 'outcome' | 'attempts' | 'attemptRows' | 'charged' | 'totalMs'> &
  Partial<CallRow>;

const nothing = { attempts: 0, attemptRows: [], charged: {}, cost: zeroCost() } as const;

/** Dollars that a call with a budget reserves: no call of the month costs more. */
const dearestCall = 0.5;

/** Of limits, budgets and clients' mistakes: no upstream was asked. */
function refusal({ worker, random, spent }: Making): Ending | undefined {
  const counter = `key:${worker.id}:ever`;
  const gone = spent.get(counter) ?? 0;
  const left = (worker.budget ?? Infinity) - gone / 1e9;
  if (left < dearestCall) {
    const message = `The budget of this key (${worker.id}) has no room for this call: $${worker.budget} in total, $${left.toFixed(2)} left.`;
    return refusedBy(402, 'budget_exhausted', { fault: 'limit', message, limit: counter });
  }
  if (worker.name === 'ci' && random() < 0.12) {
    const message = `Rate limit of this key (${worker.id}): 3 requests per minute, 0 left. Try again in 14 s.`;
    const limit = `key:${worker.id}:requests`;
    return refusedBy(429, 'rate_limited', { fault: 'limit', message, limit });
  }
  if (worker.name === 'notebooks' && random() < 0.04) {
    const message = 'messages.1.content: must be a text or a list of content blocks.';
    return refusedBy(400, 'invalid_request', { fault: 'client', message });
  }
  return undefined;
}

function refusedBy(status: number, error: string, failure: Failure): Ending {
  return { ...nothing, outcome: 'failed', status, error, failure, totalMs: 1.2 };
}

function failedAttempt(used: Model, startedAt: number): AttemptRow {
  return {
    provider: used.provider,
    upstreamModel: used.model,
    startedAt: startedAt + 2,
    ms: 180,
    status: 529,
    outcome: 'failed',
    error: 'overloaded',
    failure: { fault: 'provider', message: 'The provider said: Overloaded' },
  };
}

function outOfService(used: Model, startedAt: number): Ending {
  const message = 'The provider is overloaded; retry later.';
  return {
    outcome: 'failed',
    status: 529,
    error: 'overloaded',
    failure: { fault: 'provider', message },
    provider: used.provider,
    upstreamModel: used.model,
    attempts: 1,
    attemptRows: [failedAttempt(used, startedAt)],
    charged: {},
    cost: zeroCost(),
    totalMs: 190,
  };
}

function answered(
  { worker, startedAt, random, spent }: Making,
  used: Model,
  failed: AttemptRow | undefined,
): Ending {
  const input = Math.floor(800 + random() ** 3 * 24_000);
  const cacheReadTokens = used === worker.model ? Math.floor(input * worker.cached * random()) : 0;
  const outputTokens = Math.floor(40 + random() ** 2 * 1400);
  const charged: Usage = {
    freshInputTokens: input - cacheReadTokens,
    cacheReadTokens,
    outputTokens,
  };
  const price = priceOf(used);
  const cost = costOf(price, charged);
  const cacheSaved = cacheSavingOf(price, charged);
  const slow = random() < 0.04 ? 3 : 1;
  const first = used.firstMs * (0.7 + random() * 0.8) * slow;
  const ms = first + outputTokens * used.tokenMs * (0.8 + random() * 0.4);
  const month = new Date(startedAt).toISOString().slice(0, 7);
  const counter = `key:${worker.id}:ever`;
  if (worker.budget !== undefined) {
    spent.set(counter, (spent.get(counter) ?? 0) + (cost?.total ?? 0));
  }
  const budgets = [
    ...(worker.budget === undefined ? [] : [{ counter, window: 'ever' }]),
    { counter: `team:${worker.team ?? ''}:month`, window: month, endsAt: endOfMonth(startedAt) },
  ];
  const left = random() < 0.012;
  const good: AttemptRow = {
    provider: used.provider,
    upstreamModel: used.model,
    startedAt: startedAt + (failed === undefined ? 2 : 190),
    ms,
    status: 200,
    outcome: left ? 'canceled' : 'ok',
    reported: charged,
  };
  return {
    outcome: left ? 'canceled' : 'ok',
    ...(left ? { error: 'canceled' } : {}),
    status: 200,
    provider: used.provider,
    upstreamModel: used.model,
    mode: 'relay',
    attempts: failed === undefined ? 1 : 2,
    attemptRows: failed === undefined ? [good] : [failed, good],
    reported: charged,
    charged,
    ...(cost === undefined ? {} : { cost }),
    ...(cacheSaved === undefined ? {} : { cacheSaved }),
    price,
    budgets,
    firstEventMs: Math.round(first),
    totalMs: Math.round(ms + (failed === undefined ? 0 : 190)),
  };
}

function endOfMonth(at: number): number {
  const date = new Date(at);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 1);
}

const prices = new Map<Model, Price>();

/** Rates are picodollars for a token. */
function priceOf(used: Model): Price {
  const known = prices.get(used);
  if (known !== undefined) return known;
  const rate = (dollars: number): number => Math.round(dollars * 1e6);
  const { input, output } = used;
  const rates = { input: rate(input), output: rate(output), cacheRead: rate(input / 10) };
  const price: Price = { rates, tiers: [], source: 'gateway.yaml' };
  prices.set(used, price);
  return price;
}

function zeroCost() {
  return { total: 0, input: 0, cacheRead: 0, cacheWrite: 0, output: 0, reasoning: 0, call: 0 };
}

/** mulberry32: the same numbers in [0, 1) from the same seed. */
function seededRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
