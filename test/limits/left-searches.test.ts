/** F72 F73 F40: web searches of a stream that was not read to its end: the ones that it showed are charged. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { JsonObject } from '../../src/json/value.ts';
import { numberAt, objectAt, type Dialect } from '../support/reading.ts';
import { requestBody } from '../support/requests.ts';
import {
  blockDelta,
  blockStart,
  blockStop,
  messageDelta,
  messagesFrame,
  messageStart,
  messageStop,
  textBlock,
} from '../upstream/messages.ts';
import type { Answer } from '../upstream/scripted.ts';
import { searchingProvider, startLimitedRig, type LimitedRig } from './limited-rig.ts';

const nanodollarsOfSearch = 20_000_000;

let rig: LimitedRig;
before(async () => {
  rig = await startLimitedRig(({ messages }) => ({
    providers: { 'up-search': searchingProvider(messages) },
    prices: { 'up-search/*': { input: 0, output: 0, web_search: 0.02 } },
  }));
});
after(() => rig.stop());

const usage: JsonObject = {
  input_tokens: 50,
  cache_read_input_tokens: 0,
  cache_creation_input_tokens: 0,
  output_tokens: 8,
};

/** The search as the messages API shows it, in pieces. */
function searchBlocks(at: number): readonly JsonObject[] {
  const id = `srvtoolu_${at}`;
  const found = { type: 'web_search_tool_result', tool_use_id: id, content: [] };
  return [
    blockStart(at, { type: 'server_tool_use', id, name: 'web_search', input: {} }),
    blockDelta(at, { type: 'input_json_delta', partial_json: '{"query":"weather"}' }),
    blockStop(at),
    blockStart(at + 1, found),
    blockStop(at + 1),
  ];
}

/** Two searches, the second one still running, and behind them a text that the client waits for. */
const begun = [
  messageStart({ ...usage, server_tool_use: { web_search_requests: 0, web_fetch_requests: 0 } }),
  ...searchBlocks(0),
  blockStart(2, { type: 'server_tool_use', id: 'srvtoolu_2', name: 'web_search', input: {} }),
  ...textBlock(3, 'Sunny so far'),
];

function written(events: readonly JsonObject[], ending: Answer['ending'] = 'proper'): Answer {
  const body = events.map((event) => messagesFrame(event)).join('');
  return { body: [body], framing: 'chunked', ending };
}

let asked = 0;
async function search(dialect: Dialect, answer: Answer, leaving = false) {
  asked += 1;
  const name = `searched-${asked}`;
  const script = rig.upstreams.messages.script(name, answer);
  const model = `up-search/${name}`;
  const key = await rig.key({ budget: 1, per: 'day' });
  const input: { readonly [D in Dialect]: JsonObject } = {
    chat: { web_search_options: {} },
    messages: { tools: [{ type: 'web_search_20250305', name: 'web_search' }] },
  };
  const body = requestBody(dialect, { model, stream: true, more: input[dialect] });
  const abort = new AbortController();
  const onData = (chunk: Buffer): void => {
    if (leaving && chunk.includes('Sunny')) abort.abort();
  };
  const { signal } = abort;
  await rig.call(key, dialect, body, {}, { signal, onData }).catch(() => undefined);
  if (leaving) assert.equal(await (await script.request(0)).closed, 'gateway');
  const [row = {}] = await rig.gateway.callRows(model, 1);
  return { row, spent: await rig.spent(key) };
}

for (const dialect of ['chat', 'messages'] as const) {
  test(`F73 F6 searches that were begun when the client left are charged: ${dialect}`, async () => {
    const { row, spent } = await search(dialect, written(begun, 'hang'), true);
    assert.equal(row['outcome'], 'canceled');
    assert.equal(row['usage_source'], 'estimated');
    assert.equal(numberAt(objectAt(row, 'charged'), 'web_searches'), 2);
    assert.equal(spent, 2 * nanodollarsOfSearch);
  });

  test(`F40 F6 searches that were begun when the upstream broke off are charged: ${dialect}`, async () => {
    const { row, spent } = await search(dialect, written(begun, 'fin'));
    assert.equal(row['outcome'], 'failed');
    assert.equal(row['usage_source'], 'estimated');
    assert.equal(spent, 2 * nanodollarsOfSearch);
  });

  for (const ran of [0, 1]) {
    test(`F6 at the end the count of the upstream holds, ${ran} of 2 searches: ${dialect}`, async () => {
      const tools = { web_search_requests: ran, web_fetch_requests: 0 };
      const ended = messageDelta('end_turn', { ...usage, server_tool_use: tools });
      const events = [...begun, blockStop(2), ended, messageStop];
      const { row, spent } = await search(dialect, written(events));
      assert.equal(row['outcome'], 'ok');
      assert.equal(row['usage_source'], 'reported');
      assert.equal(spent, ran * nanodollarsOfSearch);
    });
  }
}
