/** Q1 over turns that a messages upstream pauses (§7.3): each further round is paid for before it is asked for. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { JsonObject } from '../../src/json/value.ts';
import { listAt, numberAt, objectAt } from '../support/reading.ts';
import { requestBody } from '../support/requests.ts';
import {
  blockStart,
  blockStop,
  messageDelta,
  messagesFrame,
  messageStart,
  messageStop,
  textBlock,
} from '../upstream/messages.ts';
import type { Answer } from '../upstream/scripted.ts';
import {
  searchingProvider,
  startLimitedRig,
  type LimitedKey,
  type LimitedRig,
} from './limited-rig.ts';

/** 10 $ a million tokens of any kind. */
const nanodollarsOfToken = 10_000;
const cap = 40;

let rig: LimitedRig;
before(async () => {
  rig = await startLimitedRig(({ messages }) => ({
    providers: { 'up-search': searchingProvider(messages) },
    prices: {
      'up-search/dear-*': { input: 10, output: 10, web_search: 0.02, call: 0.05, per_image: 0.003 },
      'up-search/tiered-*': {
        input: 10,
        output: 10,
        web_search: 0,
        tiers: [{ above: 200, input: 20, output: 20 }],
      },
      'up-search/*': { input: 10, output: 10, web_search: 0 },
    },
  }));
});
after(() => rig.stop());

function usageOf(input: number, output: number): JsonObject {
  return {
    input_tokens: input,
    cache_read_input_tokens: 0,
    cache_creation_input_tokens: 0,
    output_tokens: output,
  };
}

const search = { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: {} };

function round(text: string, stop: string, usage: JsonObject): Answer {
  const paused = stop === 'pause_turn' ? [blockStart(1, search), blockStop(1)] : [];
  const events = [
    messageStart(usage),
    ...textBlock(0, text),
    ...paused,
    messageDelta(stop, usage),
    messageStop,
  ];
  return { body: events.map((event) => messagesFrame(event)).join(''), framing: 'chunked' };
}

let asked = 0;
async function ask(key: LimitedKey, stream: boolean, prompt = 50, answered = 30) {
  asked += 1;
  const name = `paid-rounds-${asked}`;
  const script = rig.upstreams.messages.script(
    name,
    round('Searching', 'pause_turn', usageOf(prompt, answered)),
    round(' and found', 'end_turn', usageOf(prompt + 35, 8)),
  );
  const more = { max_tokens: cap, web_search_options: {} };
  const model = `up-search/${name}`;
  const reply = await rig.call(key, 'chat', requestBody('chat', { model, stream, more }));
  await rig.gateway.callRows(model, 1);
  return { reply, script };
}

for (const stream of [true, false]) {
  const form = stream ? 'stream' : 'document';

  test(`Q1 a further round that the budget does not pay for is not asked for: ${form}`, async () => {
    // What five searches may find is 50,000 tokens of prompt: read once they fit into it, read again they do not.
    const prompt = 50_050;
    const budget = (60_000 * nanodollarsOfToken) / 1e9;
    const key = await rig.key({ budget, per: 'day' });
    const { reply, script } = await ask(key, stream, prompt);
    assert.equal(script.requests.length, 1);
    assert.match(reply.text, /budget/i);
    assert.ok(!reply.text.includes('found'));
    if (!stream) assert.equal(reply.status, 429, reply.text);
    assert.equal(await rig.spent(key), (prompt + 30) * nanodollarsOfToken);
  });

  test(`Q1 a further round may answer what is left of the answer that is paid for: ${form}`, async () => {
    const key = await rig.key({ budget: 1, per: 'day' });
    const { reply, script } = await ask(key, stream);
    assert.equal(reply.status, 200, reply.text);
    assert.match(reply.text, /found/);
    assert.equal((await script.request(0)).json['max_tokens'], cap);
    assert.equal((await script.request(1)).json['max_tokens'], cap - 30);
    assert.equal(await rig.spent(key), (80 + 93) * nanodollarsOfToken);
  });
}

for (const stream of [true, false]) {
  const form = stream ? 'stream' : 'document';

  for (const paid of [true, false]) {
    const whose = paid ? 'with a budget' : 'without a budget';

    test(`Q1 a turn whose cap is spent ends as cut, and not as unpaid: ${form} ${whose}`, async () => {
      const key = await rig.key(paid ? { budget: 5, per: 'day' } : {});
      const { reply, script } = await ask(key, stream, 50, cap);
      assert.equal(reply.status, 200, reply.text);
      assert.equal(script.requests.length, 1);
      assert.match(reply.text, /"finish_reason":"length"/);
      assert.doesNotMatch(reply.text, /"error"/);
      if (paid) assert.equal(await rig.spent(key), (50 + cap) * nanodollarsOfToken);
    });
  }

  test(`a further round may answer what is left of the client's cap without a budget: ${form}`, async () => {
    const { reply, script } = await ask(await rig.key(), stream);
    assert.match(reply.text, /found/);
    assert.equal((await script.request(1)).json['max_tokens'], cap - 30);
  });
}

/** What one request costs beside its tokens: its call, its picture, and a search. */
const nanodollarsOfCall = 50_000_000;
const nanodollarsOfPicture = 3_000_000;
const nanodollarsOfSearch = 20_000_000;
/** What five searches may cost at most, with what they find. */
const searching = 5 * (nanodollarsOfSearch + 10_000 * nanodollarsOfToken);

function searched(input: number, output: number, searches: number): JsonObject {
  const tools = { web_search_requests: searches, web_fetch_requests: 0 };
  return { ...usageOf(input, output), server_tool_use: tools };
}

/** A turn of two rounds with two searches each; the second one may be another answer. */
function askDear(key: LimitedKey, last?: Answer, sending?: { signal: AbortSignal }) {
  asked += 1;
  const name = `dear-${asked}`;
  const script = rig.upstreams.messages.script(
    name,
    round('Searching', 'pause_turn', searched(50, 30, 2)),
    last ?? round(' and found', 'end_turn', searched(85, 8, 2)),
  );
  const model = `up-search/${name}`;
  const image_url = { url: `data:image/png;base64,${onePixel}` };
  const content = [
    { type: 'text', text: 'What is it?' },
    { type: 'image_url', image_url },
  ];
  const body: JsonObject = {
    ...requestBody('chat', { model, stream: true, more: { max_tokens: cap } }),
    web_search_options: {},
    messages: [{ role: 'user', content }],
  };
  return { script, model, reply: rig.call(key, 'chat', body, {}, sending) };
}

const onePixel =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==';

test('F6 Q1 each round is charged with its call, its pictures and its searches', async () => {
  const key = await rig.key({ budget: 10, per: 'day' });
  const { model, reply } = askDear(key);
  assert.match((await reply).text, /found/);
  const [row] = await rig.gateway.callRows(model, 1);
  const charged = objectAt(row ?? {}, 'charged');
  assert.equal(numberAt(charged, 'images'), 2);
  assert.equal(numberAt(charged, 'web_searches'), 4);
  const each = nanodollarsOfCall + nanodollarsOfPicture + 2 * nanodollarsOfSearch;
  assert.equal(await rig.spent(key), 2 * each + (80 + 93) * nanodollarsOfToken);
});

test('Q1 a round whose call and searches the budget does not pay for is not asked for', async () => {
  // The first round fits with all that it may find; the second one may find as much, and is a call of its own.
  const budget = 2 * nanodollarsOfCall + nanodollarsOfPicture + searching;
  const key = await rig.key({ budget: budget / 1e9, per: 'day' });
  const { model, reply, script } = askDear(key);
  assert.match((await reply).text, /budget/i);
  await rig.gateway.callRows(model, 1);
  assert.equal(script.requests.length, 1);
  const each = nanodollarsOfCall + nanodollarsOfPicture + 2 * nanodollarsOfSearch;
  assert.equal(await rig.spent(key), each + 80 * nanodollarsOfToken);
});

test('F72 F6 a client that leaves before a further round says anything pays for what it reads', async () => {
  const key = await rig.key({ budget: 10, per: 'day' });
  const abort = new AbortController();
  const silence: Answer = { body: '', mute: true, ending: 'hang' };
  const { model, reply, script } = askDear(key, silence, { signal: abort.signal });
  const request = await script.request(1);
  abort.abort();
  await reply.catch(() => undefined);
  assert.equal(await request.closed, 'gateway');
  const [row] = await rig.gateway.callRows(model, 1);
  assert.equal(row?.['usage_source'], 'estimated');
  assert.equal(numberAt(objectAt(row ?? {}, 'charged'), 'fresh_input_tokens'), 50 + 80);
  const both = 2 * (nanodollarsOfCall + nanodollarsOfPicture) + 2 * nanodollarsOfSearch;
  assert.equal(await rig.spent(key), both + (80 + 80) * nanodollarsOfToken);
});

test('L0 F6 a further round that its upstream refuses is not charged', async () => {
  const key = await rig.key({ budget: 10, per: 'day' });
  const { model, reply } = askDear(key, { status: 400, body: '{"type":"error"}' });
  assert.match((await reply).text, /error/);
  const [row] = await rig.gateway.callRows(model, 1);
  assert.equal(row?.['usage_source'], 'reported');
  const one = nanodollarsOfCall + nanodollarsOfPicture + 2 * nanodollarsOfSearch;
  assert.equal(await rig.spent(key), one + 80 * nanodollarsOfToken);
});

test('F6 L0 a round that did not tell its prompt is charged for it, also where the next one is refused', async () => {
  const key = await rig.key({ budget: 10, per: 'day' });
  asked += 1;
  const name = `untold-${asked}`;
  rig.upstreams.messages.script(
    name,
    round('Searching', 'pause_turn', usageOf(50, 30)),
    round(' further', 'pause_turn', {}),
    { status: 400, body: '{"type":"error"}' },
  );
  const model = `up-search/${name}`;
  const more = { max_tokens: cap, web_search_options: {} };
  await rig.call(key, 'chat', requestBody('chat', { model, stream: true, more }));
  const [row] = await rig.gateway.callRows(model, 1);
  const charged = objectAt(row ?? {}, 'charged');
  assert.equal(row?.['usage_source'], 'estimated');
  // What the second one read: at least the prompt and the answer of the first one.
  assert.ok(numberAt(charged, 'fresh_input_tokens') >= 50 + 80, JSON.stringify(charged));
});

test('F6 each round is charged at the tier of its own prompt', async () => {
  const key = await rig.key({ budget: 10, per: 'day' });
  asked += 1;
  const name = `tiered-${asked}`;
  rig.upstreams.messages.script(
    name,
    round('Searching', 'pause_turn', usageOf(150, 30)),
    round(' and found', 'end_turn', usageOf(185, 8)),
  );
  const model = `up-search/${name}`;
  const more = { max_tokens: cap, web_search_options: {} };
  await rig.call(key, 'chat', requestBody('chat', { model, stream: false, more }));
  const [row] = await rig.gateway.callRows(model, 1);
  const call = await rig.admin('GET', `/api/calls/${String(row?.['id'])}`);
  assert.equal(await rig.spent(key), (180 + 193) * nanodollarsOfToken);
  const tries = listAt(call, 'attempt_list');
  const read = tries.map((each) => numberAt(objectAt(each, 'reported'), 'fresh_input_tokens'));
  assert.deepEqual(read, [150, 185], 'each try tells its own');
});
