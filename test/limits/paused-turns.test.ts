/** Q1 over turns that a messages upstream pauses (§7.3): each further round is paid for before it is asked for. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { JsonObject } from '../../src/core/conversation.ts';
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
import { startLimitedRig, type LimitedKey, type LimitedRig } from './limited-rig.ts';

/** 10 $ a million tokens of any kind. */
const nanodollarsOfToken = 10_000;
const cap = 40;

let rig: LimitedRig;
before(async () => {
  rig = await startLimitedRig(({ messages }) => ({
    providers: {
      'up-search': {
        dialect: 'anthropic-messages',
        base_url: `http://127.0.0.1:${messages.port}`,
        api_key: 'upstream-messages-key',
        server_tools: true,
      },
    },
    prices: { 'up-search/*': { input: 10, output: 10, web_search: 0 } },
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

function round(text: string, stop: string, usage: JsonObject): Answer {
  const search = { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: {} };
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
async function ask(key: LimitedKey, stream: boolean, prompt = 50) {
  asked += 1;
  const name = `paid-rounds-${asked}`;
  const script = rig.upstreams.messages.script(
    name,
    round('Searching', 'pause_turn', usageOf(prompt, 30)),
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
