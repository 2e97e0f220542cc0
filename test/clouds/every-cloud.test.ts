/**
 * What every provider has, for every row of a cloud and every way its models are asked: prices by the cloud's own names,
 * budgets, rate limits, counts, lists, health and `check` (issue 22). A row without its facts fails.
 */
import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { PriceList, PriceTable } from '../../src/access/prices.ts';
import { checkCommand } from '../../src/cli/commands/check.ts';
import { askProviders } from '../../src/compose/commands/admin-of-directory.ts';
import { describeProviders } from '../../src/compose/providers.ts';
import { isObject, type JsonObject } from '../../src/json/value.ts';
import { priceOrigins, providerRows } from '../../src/providers/compatible.ts';
import { startTestGateway, type TestGateway } from '../support/gateway.ts';
import { send, type Reply } from '../support/http.ts';
import { silentLog } from '../unit/access/fakes.ts';
import { run } from '../unit/cli-config/context.ts';
import { scene } from '../unit/config/scene.ts';
import { ScriptedUpstream, type Answer } from '../upstream/scripted.ts';

const profile = 'arn:aws:bedrock:eu-central-1:123456789012:application-inference-profile/abc123';
const claudeId = 'eu.anthropic.claude-sonnet-4-5-20250929-v1:0';
const encoded = (id: string): string => encodeURIComponent(id);

type Wire = 'gemini' | 'messages' | 'chat' | 'converse';

/** One way in which models of a cloud are asked. */
interface Way {
  /** As clients call it, behind the provider. */
  readonly model: string;
  readonly wire: Wire;
  /** Where a document is asked for. */
  readonly path: string;
  /** Dollars per million tokens in and out; null = the list has none, and the config must. */
  readonly price: readonly [number, number] | null;
  /** Where its tokens are counted, and what answers; absent = they are estimated. */
  readonly count?: readonly [path: string, answer: JsonObject];
}

interface Facts {
  provider(base: string): JsonObject;
  readonly ways: readonly Way[];
  /** What is asked for the models; null = the names of the config are all that is shown. */
  readonly list: readonly (readonly [path: string, answer: JsonObject])[] | null;
  readonly shown: string;
  /** How `check` names the credential. */
  readonly credential: RegExp;
  /** Names of models and what they cost, besides those that are asked. */
  readonly prices: readonly (readonly [model: string, price: readonly [number, number] | null])[];
}

const google = '/v1/projects/acme-ml/locations/europe-west4';
const messagesCount = { input_tokens: 42 };

const bedrockPrices: Facts['prices'] = [
  // The profile of all regions costs less than those of some.
  ['global.anthropic.claude-sonnet-4-5-20250929-v1:0', [3, 15]],
  ['us.anthropic.claude-sonnet-4-5-20250929-v1:0', [3.3, 16.5]],
  ['apac.anthropic.claude-sonnet-4-5-20250929-v1:0', [3.3, 16.5]],
  ['us-gov.anthropic.claude-sonnet-4-5-20250929-v1:0', [3.3, 16.5]],
  ['anthropic.claude-sonnet-4-6', [3.3, 16.5]],
  ['arn:aws:bedrock:eu-central-1:1:inference-profile/eu.amazon.nova-pro-v1:0', [0.8, 3.2]],
  ['us.meta.llama3-3-70b-instruct-v1:0', [0.72, 0.72]],
  // Names without dates and versions, as those of `deployments` are: the dearest that may be meant.
  ['anthropic.claude-haiku-4-5', [1.1, 5.5]],
  ['global.anthropic.claude-haiku-4-5', [1, 5]],
  ['openai.gpt-oss-120b', [0.15, 0.6]],
  // An ARN that says nothing has no price, which is not zero.
  ['arn:aws:bedrock:eu-central-1:1:application-inference-profile/nothing', null],
  ['amazon.nova-omega-v9:0', null],
];

const facts: { readonly [row: string]: Facts } = {
  gemini: {
    provider: (base) => ({ base_url: `${base}/v1beta`, api_key: 'gemini-key' }),
    ways: [
      {
        model: 'gemini-2.5-pro',
        wire: 'gemini',
        path: '/v1beta/models/gemini-2.5-pro:generateContent',
        price: [1.25, 10],
        count: ['/v1beta/models/gemini-2.5-pro:countTokens', { totalTokens: 42 }],
      },
    ],
    list: [
      [
        '/v1beta/models?pageSize=1000',
        {
          models: [
            { name: 'models/gemini-2.5-pro', supportedGenerationMethods: ['generateContent'] },
          ],
        },
      ],
    ],
    shown: 'gemini-2.5-pro',
    credential: /key of the config/,
    prices: [
      ['models/gemini-2.5-pro', [1.25, 10]],
      ['gemini-2.5-flash', [0.3, 2.5]],
      ['tunedModels/mine', null],
    ],
  },
  vertex: {
    provider: (base) => ({
      base_url: base,
      project: 'acme-ml',
      location: 'europe-west4',
      auth: 'metadata',
    }),
    ways: [
      {
        model: 'gemini-2.5-pro',
        wire: 'gemini',
        path: `${google}/publishers/google/models/gemini-2.5-pro:generateContent`,
        price: [1.25, 10],
        count: [
          `${google}/publishers/google/models/gemini-2.5-pro:countTokens`,
          { totalTokens: 42 },
        ],
      },
      {
        // From Sonnet 4.5 on a location other than global costs a tenth more.
        model: 'claude-sonnet-4-5@20250929',
        wire: 'messages',
        path: `${google}/publishers/anthropic/models/claude-sonnet-4-5@20250929:rawPredict`,
        price: [3.3, 16.5],
        count: [`${google}/publishers/anthropic/models/count-tokens:rawPredict`, messagesCount],
      },
      {
        model: 'mistral-medium-3',
        wire: 'chat',
        path: `${google}/publishers/mistralai/models/mistral-medium-3:rawPredict`,
        price: null,
      },
      {
        model: 'meta/llama-3.3-70b-instruct-maas',
        wire: 'chat',
        path: `${google}/endpoints/openapi/chat/completions`,
        price: null,
      },
    ],
    list: [
      [
        '/v1beta1/publishers/google/models?pageSize=1000',
        { publisherModels: [{ name: 'publishers/google/models/gemini-2.5-pro' }] },
      ],
    ],
    shown: 'gemini-2.5-pro',
    credential: /service account of the machine/,
    prices: [
      ['claude-sonnet-4-5-20250929', [3.3, 16.5]],
      ['publishers/anthropic/models/claude-opus-4-6', [5.5, 27.5]],
      ['claude-opus-4-1@20250805', [15, 75]],
      ['claude-opus-4-6@default', [5.5, 27.5]],
      ['publishers/google/models/gemini-2.5-pro', [1.25, 10]],
      ['endpoints/123', null],
    ],
  },
  bedrock: {
    provider: (base) => ({
      region: 'eu-central-1',
      endpoint: base,
      control_endpoint: base,
      access_key_id: 'AKIA0000000000000000',
      secret_access_key: 'secret',
    }),
    ways: [
      {
        model: claudeId,
        wire: 'messages',
        path: `/model/${encoded(claudeId)}/invoke`,
        price: [3.3, 16.5],
        count: [
          `/model/${encoded('anthropic.claude-sonnet-4-5-20250929-v1:0')}/count-tokens`,
          { inputTokens: 42 },
        ],
      },
      {
        model: 'amazon.nova-pro-v1:0',
        wire: 'converse',
        path: `/model/${encoded('amazon.nova-pro-v1:0')}/converse`,
        price: [0.8, 3.2],
        count: [`/model/${encoded('amazon.nova-pro-v1:0')}/count-tokens`, { inputTokens: 42 }],
      },
    ],
    list: [
      [
        '/inference-profiles?maxResults=1000&type=SYSTEM_DEFINED',
        { inferenceProfileSummaries: [{ inferenceProfileId: claudeId, status: 'ACTIVE' }] },
      ],
      [
        '/foundation-models?byOutputModality=TEXT&byInferenceType=ON_DEMAND',
        { modelSummaries: [] },
      ],
    ],
    shown: claudeId,
    credential: /keys of the config/,
    prices: bedrockPrices,
  },
  'bedrock-mantle': {
    provider: (base) => ({ region: 'eu-central-1', endpoint: base, api_key: 'bedrock-key' }),
    ways: [
      {
        model: 'openai.gpt-oss-120b',
        wire: 'chat',
        path: '/v1/chat/completions',
        price: [0.15, 0.6],
      },
      {
        model: 'anthropic.claude-opus-4-8',
        wire: 'messages',
        path: '/anthropic/v1/messages',
        price: [5.5, 27.5],
        count: ['/anthropic/v1/messages/count_tokens', messagesCount],
      },
    ],
    list: [['/v1/models', { data: [{ id: 'openai.gpt-oss-120b' }] }]],
    shown: 'openai.gpt-oss-120b',
    credential: /key of the config/,
    prices: bedrockPrices,
  },
  azure: {
    provider: (base) => ({
      base_url: base,
      api_key: 'azure-key',
      // A name that says nothing.
      deployments: { fast: 'gpt-5-mini' },
    }),
    ways: [
      { model: 'fast', wire: 'chat', path: '/openai/v1/chat/completions', price: [0.25, 2] },
      { model: 'gpt-4.1', wire: 'chat', path: '/openai/v1/chat/completions', price: [2, 8] },
    ],
    list: null,
    shown: 'fast',
    credential: /key of the config/,
    prices: [
      ['gpt-4o-2024-08-06', [2.5, 10]],
      ['team-search-prod', null],
    ],
  },
  foundry: {
    provider: (base) => ({
      base_url: base,
      api_key: 'foundry-key',
      deployments: { writer: 'claude-opus-4-8' },
    }),
    ways: [
      {
        model: 'writer',
        wire: 'messages',
        path: '/anthropic/v1/messages',
        price: [5, 25],
        count: ['/anthropic/v1/messages/count_tokens', messagesCount],
      },
      { model: 'grok-3', wire: 'chat', path: '/openai/v1/chat/completions', price: [3, 15] },
    ],
    list: null,
    shown: 'writer',
    credential: /key of the config/,
    prices: [
      ['claude-sonnet-4-5', [3, 15]],
      ['team-search-prod', null],
    ],
  },
};

const usedIn = 1000;
const usedOut = 100;

/** A document in which so much was used. */
const answers: { readonly [W in Wire]: JsonObject } = {
  gemini: {
    candidates: [{ content: { role: 'model', parts: [{ text: 'ok' }] }, finishReason: 'STOP' }],
    usageMetadata: {
      promptTokenCount: usedIn,
      candidatesTokenCount: usedOut,
      totalTokenCount: usedIn + usedOut,
    },
  },
  messages: {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'claude',
    content: [{ type: 'text', text: 'ok' }],
    stop_reason: 'end_turn',
    stop_sequence: null,
    usage: { input_tokens: usedIn, output_tokens: usedOut },
  },
  chat: {
    id: 'chatcmpl-1',
    object: 'chat.completion',
    created: 1_759_396_891,
    model: 'm',
    choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: 'ok' } }],
    usage: {
      prompt_tokens: usedIn,
      completion_tokens: usedOut,
      total_tokens: usedIn + usedOut,
    },
  },
  converse: {
    output: { message: { role: 'assistant', content: [{ text: 'ok' }] } },
    stopReason: 'end_turn',
    usage: { inputTokens: usedIn, outputTokens: usedOut, totalTokens: usedIn + usedOut },
    metrics: { latencyMs: 1 },
  },
};

const json = (value: JsonObject): Answer => ({
  headers: { 'content-type': 'application/json', 'metadata-flavor': 'Google' },
  body: JSON.stringify(value),
});

const rows = providerRows.filter(({ cloud }) => cloud !== undefined).map(({ id }) => id);
const known = rows.flatMap((id) => (facts[id] === undefined ? [] : [[id, facts[id]] as const]));
const ways = known.flatMap(([id, { ways: all }]) => all.map((way) => [id, way] as const));

const digest = (key: string): string => `sha256:${hash('sha256', key)}`;
const poor = 'poor-key-0123456789abcdef';
const rare = 'rare-key-0123456789abcdef';

let upstream: ScriptedUpstream;
let gateway: TestGateway;
let providers: JsonObject;
const env = (): { readonly [name: string]: string } => ({
  GCE_METADATA_HOST: `127.0.0.1:${upstream.port}`,
});
const tokenPath =
  '/computeMetadata/v1/instance/service-accounts/default/token?scopes=https://www.googleapis.com/auth/cloud-platform';

before(async () => {
  upstream = await ScriptedUpstream.start();
  const base = `http://127.0.0.1:${upstream.port}`;
  providers = Object.fromEntries(
    // A part of the server for each.
    known.map(([id, { provider }]) => [id, provider(`${base}/${id}`)]),
  );
  upstream.script(tokenPath, json({ access_token: 'machine-token', expires_in: 3600 }));
  for (const [id, { list }] of known) {
    // Where the config names what is shown, the list is asked for by `check` only.
    const asked = list ?? [['/openai/v1/models', { data: [] }] as const];
    for (const [path, answer] of asked) upstream.script(`/${id}${path}`, json(answer));
  }
  gateway = await startTestGateway(
    {
      providers,
      models: Object.fromEntries(
        ways.map(([id, { model }], i) => [`way-${i}`, { targets: [`${id}/${model}`] }]),
      ),
      keys: {
        poor: { digest: digest(poor), models: ['*'], budget: 0.000001, per: 'month' },
        rare: { digest: digest(rare), models: ['*'], rpm: ways.length },
      },
    },
    { env: env(), random: () => 0 },
  );
});
after(async () => {
  await gateway.stop();
  await upstream.close();
});

function ask(model: string, key?: string, endpoint = '/v1/chat/completions'): Promise<Reply> {
  const body = { model, messages: [{ role: 'user', content: 'Hello' }], max_tokens: 50 };
  const headers = key === undefined ? {} : { authorization: `Bearer ${key}` };
  return send(`${gateway.url}${endpoint}`, body, { headers });
}

/** Claude is asked by a messages client: translated calls are asked for as streams at another path. */
const endpointFor = ({ wire }: Way): string =>
  wire === 'messages' ? '/v1/messages' : '/v1/chat/completions';

it('each row of a cloud has its facts here, and each fact a row', () => {
  assert.deepEqual(Object.keys(facts).toSorted(), rows.toSorted());
});

describe('each cloud: prices by its own names', () => {
  const list = new PriceList();
  const at = Date.UTC(2026, 10, 21, 12);
  for (const [id, { prices, ways: own, provider }] of known) {
    const { deployments, location } = provider('https://host.example');
    const settings = {
      ...(isObject(deployments) ? { deployments: deployments as { [name: string]: string } } : {}),
      ...(typeof location === 'string' ? { location } : {}),
    };
    const origin = priceOrigins([{ id, cloud: settings }], {});
    const table = new PriceTable({ settings: { models: [] }, list, origin, log: silentLog });
    const named = own.map(({ model, price }) => [model, price] as const);
    for (const [model, price] of [...named, ...prices]) {
      it(`${id}/${model}: ${price === null ? 'unknown' : price.join(' and ')}`, () => {
        const rates = table.find(id, model, at)?.rates;
        const found = rates === undefined ? null : [rates.input / 1e6, rates.output / 1e6];
        assert.deepEqual(found, price);
        // What is kept for an hour costs Claude's customers twice the input at each cloud.
        if (/claude/.test(model) || rates?.cacheWriteLong !== undefined) {
          assert.equal(rates?.cacheWriteLong, (rates?.input ?? 0) * 2);
        }
      });
    }
  }

  it('the profile of an ARN has the price of the model that deployments name', () => {
    const cloud = {
      deployments: { [profile]: 'claude-sonnet-4-5', global: 'global.anthropic.claude-sonnet-4-5' },
    };
    const origin = priceOrigins([{ id: 'bedrock', cloud }], {});
    const table = new PriceTable({ settings: { models: [] }, list, origin, log: silentLog });
    // It does not say which regions: the dearer ones.
    assert.equal(table.find('bedrock', profile, at)?.rates.input, 3_300_000);
    assert.equal(table.find('bedrock', 'global', at)?.rates.input, 3_000_000);
  });

  it('at the location global, in express mode and of older models Vertex has the list price', () => {
    const global = priceOrigins([{ id: 'vertex', cloud: {} }], {});
    const inEurope = priceOrigins([{ id: 'vertex', cloud: {} }], { GOOGLE_CLOUD_LOCATION: 'eu' });
    const inputOf = (origin: typeof global, model: string): number | undefined =>
      new PriceTable({ settings: { models: [] }, list, origin, log: silentLog }).find(
        'vertex',
        model,
        at,
      )?.rates.input;
    assert.equal(inputOf(global, 'claude-sonnet-4-5'), 3_000_000);
    assert.equal(inputOf(inEurope, 'claude-sonnet-4-5'), 3_300_000);
    assert.equal(inputOf(inEurope, 'claude-sonnet-4@20250514'), 3_000_000);
    assert.equal(inputOf(inEurope, 'gemini-2.5-pro'), 1_250_000);
  });
});

for (const [i, [id, way]] of ways.entries()) {
  const called = `${id}/${way.model}`;
  const path = `/${id}${way.path}`;
  describe(`each cloud: ${called}`, () => {
    it('is asked where it is, and costs what its list says', async () => {
      const { requests } = upstream.script(path, json(answers[way.wire]));
      const reply = await ask(called, undefined, endpointFor(way));
      assert.equal(reply.status, 200, reply.text);
      assert.equal(requests.length, 1);
      const row = await gateway.callRow(String(reply.headers['x-request-id']));
      const { price } = way;
      const cost = price === null ? null : (usedIn * price[0] + usedOut * price[1]) / 1e6;
      const found = row['cost_usd'];
      assert.equal(typeof found === 'number' ? found.toFixed(9) : found, cost?.toFixed(9) ?? null);
    });

    it('is refused by a budget that it would exceed, before it is asked', async () => {
      const { requests } = upstream.script(path, json(answers[way.wire]));
      const reply = await ask(called, poor);
      assert.ok(reply.status >= 400, reply.text);
      const { error } = reply.json;
      const code = isObject(error) ? error['code'] : undefined;
      assert.equal(code, way.price === null ? 'price_unknown' : 'insufficient_quota', reply.text);
      assert.equal(requests.length, 0);
    });

    it('counts tokens by its own counter, or says that it estimates', async () => {
      const [countPath, answer] = way.count ?? [];
      const counted =
        countPath === undefined
          ? undefined
          : upstream.script(`/${id}${countPath}`, json(answer ?? {}));
      const body = { model: called, messages: [{ role: 'user', content: 'Hello' }] };
      const reply = await send(`${gateway.url}/v1/messages/count_tokens`, body);
      assert.equal(reply.status, 200, reply.text);
      if (counted === undefined) assert.ok(Number(reply.json['input_tokens']) > 0);
      else {
        assert.equal(reply.json['input_tokens'], 42);
        assert.equal(counted.requests.length, 1);
      }
    });

    it('is held against its health where it fails', async () => {
      upstream.script(path, { status: 503, body: '{"message":"busy"}' });
      const reply = await ask(`way-${i}`, undefined, endpointFor(way));
      assert.ok(reply.status >= 500, reply.text);
      assert.match(await gateway.trouble(`way-${i}`, called), /^(degraded|down)/);
    });
  });
}

describe('each cloud: all together', () => {
  it('rate limits count the calls to all of them', async () => {
    for (const [id, { path, wire }] of ways) upstream.script(`/${id}${path}`, json(answers[wire]));
    for (const [id, { model }] of ways) {
      const { status, text } = await ask(`${id}/${model}`, rare);
      // Those that failed before may rest.
      assert.notEqual(status, 429, text);
    }
    assert.equal((await ask(`${ways[0]?.[0]}/${ways[0]?.[1].model}`, rare)).status, 429);
  });

  it('GET /v1/models shows what each lists, or what the config names', async () => {
    const { json: shown } = await send(`${gateway.url}/v1/models`, undefined);
    const ids = (shown['data'] as { id: string }[]).map((each) => each.id);
    for (const [id, { shown: model }] of known) {
      assert.ok(ids.includes(`${id}/${model}`), `${id}/${model} in ${ids.join(' ')}`);
    }
  });

  it('check names each credential, and check --ask says whether it works', async () => {
    const { directory } = scene(JSON.stringify({ providers }));
    const knownProviders = new Map(providerRows.map((row) => [row.id, row]));
    const means = { cwd: directory, knownProviders, describeProviders, askProviders };
    const { code, out, err } = await run(checkCommand(means), ['--ask'], env());
    assert.equal(code, 0, out + err);
    for (const [id, { credential, list }] of known) {
      const lines = out.split('\n').filter((line) => new RegExp(`^ +${id} `).test(line));
      assert.match(lines.join('\n'), credential, id);
      if (list !== null) assert.match(lines.join('\n'), new RegExp(`${id} +works +lists 1 models`));
    }
  });
});
