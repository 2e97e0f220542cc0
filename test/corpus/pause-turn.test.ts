/** Translation §7.3: a chat client never sees that its model paused; the gateway lets it go on. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { JsonObject } from '../../src/json/value.ts';
import { send } from '../support/http.ts';
import { listAt, readDocument, readStream, type Seen } from '../support/reading.ts';
import { endpointOf, requestBody } from '../support/requests.ts';
import type { Received } from '../upstream/scripted.ts';
import { answering } from './answer-sample.ts';
import { startCorpusRig, type CorpusRig } from './corpus.ts';

let rig: CorpusRig;
before(async () => {
  rig = await startCorpusRig();
});
after(() => rig.stop());

/** What the provider is at while it pauses. */
const searching = {
  type: 'server_tool_use',
  id: 'srvtoolu_1',
  name: 'web_search',
  input: { query: 'cats' },
} as const;

function round(text: string, stop: string): JsonObject {
  return {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'up',
    content: [{ type: 'text', text }, ...(stop === 'pause_turn' ? [searching] : [])],
    stop_reason: stop,
    stop_sequence: null,
    usage: { input_tokens: 10, output_tokens: 2 },
  };
}

interface Turn {
  readonly seen: Seen;
  readonly requests: readonly Received[];
}

async function ask(model: string, stream: boolean, rounds: readonly JsonObject[]): Promise<Turn> {
  const script = rig.upstreams.messages.script(
    model,
    ...rounds.map((each) => answering('messages', each)),
  );
  // Only tools that the provider runs itself make it pause.
  const more = {
    web_search_options: {},
    ...(stream ? { stream_options: { include_usage: true } } : {}),
  };
  const body = requestBody('chat', { model: `generous-messages/${model}`, stream, more });
  const reply = await send(rig.gateway.url + endpointOf.chat, body);
  assert.equal(reply.status, 200, reply.text);
  const seen = stream ? readStream('chat', reply.text) : readDocument('chat', reply.json);
  return { seen, requests: script.requests };
}

for (const stream of [false, true]) {
  const mode = stream ? 'stream' : 'document';

  test(`§7.3 pause_turn: the turn continues where it stood, one answer, summed usage (${mode})`, async () => {
    const rounds = [round('One, ', 'pause_turn'), round('two.', 'end_turn')];
    const { seen, requests } = await ask(`pausing-${mode}`, stream, rounds);
    assert.equal(seen.text, 'One, two.');
    assert.equal(seen.finish, 'stop');
    assert.equal(seen.usage?.output, 4);
    assert.equal(seen.usage?.fresh, 20);
    assert.equal(requests.length, 2);
    const last = listAt(requests[1]?.json ?? {}, 'messages').at(-1) ?? {};
    assert.equal(last['role'], 'assistant');
    assert.deepEqual(last['content'], [{ type: 'text', text: 'One, ' }, searching]);
  });

  test(`§7.3 pause_turn: after five more rounds the turn is cut off (${mode})`, async () => {
    const { seen, requests } = await ask(`endless-${mode}`, stream, [round('x', 'pause_turn')]);
    assert.equal(seen.finish, 'length');
    assert.equal(seen.text, 'xxxxxx');
    assert.equal(requests.length, 6);
  });
}
