/** What a budget is charged for real answers: to the nanodollar, in every dialect and mode (F2). */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { costOf } from '../../src/access/cost.ts';
import type { JsonObject } from '../../src/json/value.ts';
import { PriceList } from '../../src/access/prices.ts';
import { clientDialects, upstreamDialects } from '../support/dialects.ts';
import { numberAt, objectAt, type AnyDialect } from '../support/reading.ts';
import { requestBody } from '../support/requests.ts';
import { recordedDocuments, recordedStreams, whyOmitted } from '../recordings/recorded.ts';
import {
  messageDelta,
  messagesFrame,
  messageStart,
  messageStop,
  textBlock,
} from '../upstream/messages.ts';
import {
  responsesAnswer,
  responsesEvents,
  responsesFrame,
  textItem,
} from '../upstream/responses.ts';
import { replying, toldUsage } from '../upstream/reply.ts';
import { startLimitedRig, type LimitedRig } from './limited-rig.ts';

const sonnet = { input: 3, output: 15, cache_read: 0.3, cache_write: 3.75, cache_write_1h: 6 };

let rig: LimitedRig;
before(async () => {
  rig = await startLimitedRig(({ chat, messages }) => ({
    providers: {
      // Known vendors, played here: their ways and their prices hold.
      xai: { base_url: `http://127.0.0.1:${chat.port}/v1`, api_key: 'vendor-key' },
      anthropic: { base_url: `http://127.0.0.1:${messages.port}`, api_key: 'vendor-key' },
    },
    prices: {
      'up-messages/advisor': { input: 15, output: 75, cache_read: 1.5, cache_write: 18.75 },
      'up-chat/*': sonnet,
      'up-messages/*': sonnet,
      'up-responses/*': { ...sonnet, file_search: 0.0025 },
      'up-gemini/*': sonnet,
      'up-converse/*': sonnet,
    },
  }));
});
after(() => rig.stop());

interface Asked {
  readonly dialect: AnyDialect;
  readonly model: string;
  readonly stream: boolean;
}

const calls = new Map<string, number>();

/** Nanodollars that one call took from the budget of a key of its own. */
async function charged({ dialect, model, stream }: Asked): Promise<number> {
  const key = await rig.key({ budget: 1000, per: 'day' });
  const body = requestBody(dialect, { model, stream, more: { max_tokens: 4096 } });
  const reply = await rig.call(key, dialect, body);
  assert.equal(reply.status, 200, reply.text);
  // A budget has spent what the ledger says, once the row is there.
  const count = (calls.get(model) ?? 0) + 1;
  calls.set(model, count);
  await rig.gateway.callRows(model, count);
  return rig.spent(key);
}

for (const dialect of clientDialects) {
  for (const upstream of upstreamDialects) {
    for (const stream of [false, true]) {
      test(`F2 four rates: ${dialect} on ${upstream}, ${stream ? 'stream' : 'document'}`, async () => {
        const usage = { fresh: 3, cacheRead: 1000, cacheWrite: 12_304, output: 550, reasoning: 9 };
        const { model } = rig.play(upstream, replying(upstream, { text: 'Good day.', usage }));
        const { fresh, cacheWrite } = toldUsage(upstream, usage);
        const rates = fresh * 3000 + 1000 * 300 + cacheWrite * 3750 + 550 * 15_000;
        assert.equal(await charged({ dialect, model, stream }), rates);
      });
    }
  }
}

/** As it is recorded: the totals are those of the answer alone. */
const compacted = {
  input_tokens: 682,
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: 0,
  output_tokens: 1320,
  iterations: [
    { type: 'compaction', input_tokens: 60_385, output_tokens: 592, cache_read_input_tokens: 100 },
    { type: 'message', input_tokens: 682, output_tokens: 1320, cache_read_input_tokens: 0 },
  ],
} as const;
const answers = answersWith(compacted);

/** A document and a stream that report this usage. */
function answersWith(usage: JsonObject) {
  return {
    document: {
      body: JSON.stringify({
        type: 'message',
        id: 'msg_1',
        role: 'assistant',
        model: 'm',
        content: [{ type: 'text', text: 'Good day.' }],
        stop_reason: 'end_turn',
        stop_sequence: null,
        usage,
      }),
    },
    stream: {
      body: [
        messageStart({ input_tokens: 60_385, cache_read_input_tokens: 100, output_tokens: 5 }),
        ...textBlock(0, 'Good day.'),
        messageDelta('end_turn', usage),
        messageStop,
      ]
        .map((event) => messagesFrame(event))
        .join(''),
      framing: 'chunked',
    },
  } as const;
}

for (const form of ['document', 'stream'] as const) {
  for (const dialect of clientDialects) {
    test(`F2 a compaction before the answer is charged, which its totals leave out: ${dialect}, ${form}`, async () => {
      const { model } = rig.play('messages', answers[form]);
      const input = (60_385 + 682) * 3000 + 100 * 300;
      const output = (592 + 1320) * 15_000;
      assert.equal(await charged({ dialect, model, stream: form === 'stream' }), input + output);
    });
  }
}

for (const stream of [false, true]) {
  for (const dialect of ['responses', 'chat'] as const) {
    test(`F2 file searches of the provider cost what the config says: ${dialect}, ${stream ? 'stream' : 'document'}`, async () => {
      const search = { type: 'file_search_call', id: 'fs_1', status: 'completed', queries: ['q'] };
      const items = [search, { ...search, id: 'fs_2' }, textItem('Found.')];
      // Such items have no arguments.
      const events = responsesEvents(items).filter(({ type }) => !/arguments/.test(String(type)));
      const answer = stream
        ? ({ body: events.map(responsesFrame), framing: 'chunked' } as const)
        : responsesAnswer(items, { stream });
      const { model } = rig.play('responses', answer);
      const body = requestBody(dialect, { model, stream });
      assert.equal((await rig.call(await rig.key(), dialect, body)).status, 200);
      const [row = {}] = await rig.gateway.callRows(model, 1);
      // Five fresh tokens, four of a cache and five of output: see `responsesUsage`.
      const tokens = 5 * 3000 + 4 * 300 + 5 * 15_000;
      assert.equal(numberAt(row, 'cost_usd'), (tokens + 2 * 2_500_000) / 1e9);
      assert.match(String(row['notes']), /cost: includes file searches of the provider: 2/);
    });
  }
}

for (const dialect of ['responses', 'chat'] as const) {
  test(`F2 file searches of an answer without usage are in its cost: ${dialect}`, async () => {
    const search = { type: 'file_search_call', id: 'fs_1', status: 'completed', queries: ['q'] };
    const answer = responsesAnswer([search, textItem('Found.')], { stream: false });
    const { usage: _, ...body } = JSON.parse(String(answer.body)) as JsonObject;
    const { model } = rig.play('responses', { ...answer, body: JSON.stringify(body) });
    const asked = requestBody(dialect, { model, stream: false });
    const reply = await rig.call(await rig.key(), dialect, asked);
    assert.equal(reply.status, 200, reply.text);
    const [row = {}] = await rig.gateway.callRows(model, 1);
    const counts = objectAt(row, 'charged');
    const tokens =
      numberAt(counts, 'fresh_input_tokens') * 3000 + numberAt(counts, 'output_tokens') * 15_000;
    assert.ok(tokens > 0);
    assert.equal(numberAt(row, 'cost_usd'), (tokens + 2_500_000) / 1e9);
    assert.match(String(row['notes']), /cost: includes file searches of the provider: 1/);
  });
}

for (const form of ['document', 'stream'] as const) {
  test(`F2 advisors are charged at the prices of their own models: ${form}`, async () => {
    // As `BetaAdvisorMessageIterationUsage` of the official SDK has it: the totals are without it.
    const counts = { cache_read_input_tokens: 100, cache_creation_input_tokens: 0 };
    const asked = { type: 'advisor_message', model: 'advisor', ...counts };
    const usage = {
      input_tokens: 412,
      cache_read_input_tokens: 0,
      output_tokens: 531,
      iterations: [
        { type: 'message', input_tokens: 412, output_tokens: 89 },
        { ...asked, input_tokens: 823, output_tokens: 1612 },
        { type: 'message', input_tokens: 1348, output_tokens: 442 },
        { ...asked, input_tokens: 900, output_tokens: 1500 },
      ],
    };
    const { model } = rig.play('messages', answersWith(usage)[form]);
    const body = requestBody('messages', { model, stream: form === 'stream' });
    assert.equal((await rig.call(await rig.key(), 'messages', body)).status, 200);
    const [row = {}] = await rig.gateway.callRows(model, 1);
    const own = 412 * 3000 + 531 * 15_000;
    const advice = (823 + 900) * 15_000 + 2 * 100 * 1500 + (1612 + 1500) * 75_000;
    assert.equal(numberAt(row, 'cost_usd'), (own + advice) / 1e9);
    assert.match(String(row['notes']), /includes advisor, which .* with 923 input and 1612 output/);
  });
}

test('F2 a relayed answer reports a compaction as the upstream does', async () => {
  const { model } = rig.play('messages', answers.document);
  const reply = await rig.call(await rig.key(), 'messages', {
    ...requestBody('messages', { model, stream: false }),
  });
  assert.deepEqual(objectAt(reply.json, 'usage'), compacted);
});

describe('F2 F4 recorded answers, with what the vendor itself says that they cost', () => {
  if (whyOmitted !== undefined) test('recordings', { skip: whyOmitted }, () => undefined);
  const recorded = [
    ...recordedDocuments(['chat']).map(({ name, body, text }) => ({
      name,
      last: body,
      stream: false,
      answer: { body: text },
    })),
    ...recordedStreams(['chat']).map(({ name, events, frames }) => ({
      name,
      last: events.findLast((event) => 'usage' in event) ?? {},
      stream: true,
      answer: { body: frames.join(''), framing: 'chunked' as const },
    })),
  ].filter(({ name }) => name.startsWith('xai-'));
  for (const { name, last, stream, answer } of recorded) {
    for (const dialect of clientDialects) {
      test(`${name}, ${stream ? 'stream' : 'document'}, ${dialect} client`, async () => {
        // In units of 10^-10 dollars.
        const ticks = numberAt(objectAt(last, 'usage'), 'cost_in_usd_ticks');
        assert.ok(ticks > 0);
        const model = 'grok-3-mini';
        rig.upstreams.chat.script(model, answer);
        assert.equal(await charged({ dialect, model: `xai/${model}`, stream }), ticks / 10);
      });
    }
  }
});

test('F2 what is written for an hour, and searched on the web, is charged at its own price', async () => {
  const model = 'claude-opus-4-5-20991231';
  const usage = {
    input_tokens: 10,
    cache_read_input_tokens: 200,
    cache_creation_input_tokens: 3000,
    cache_creation: { ephemeral_5m_input_tokens: 1000, ephemeral_1h_input_tokens: 2000 },
    output_tokens: 40,
    server_tool_use: { web_search_requests: 2 },
  };
  const body = JSON.stringify({
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model,
    content: [{ type: 'text', text: 'Good day.' }],
    stop_reason: 'end_turn',
    stop_sequence: null,
    usage,
  });
  rig.upstreams.messages.script(model, { body });
  const price = new PriceList().find('anthropic', 'claude-opus-4-5')?.at(Date.now());
  assert.ok(price);
  const expected = costOf(price, {
    freshInputTokens: 10,
    cacheReadTokens: 200,
    cacheWriteTokens: 3000,
    cacheWriteLongTokens: 2000,
    outputTokens: 40,
    webSearches: 2,
  });
  const asked = { dialect: 'messages', model: `anthropic/${model}`, stream: false } as const;
  assert.equal(await charged(asked), expected?.total);
});
