/** §7.3: a turn that a messages upstream pauses is one answer to a chat client. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { JsonObject } from '../../src/json/value.ts';
import type { Reply } from '../support/http.ts';
import {
  endingOf,
  framesOf,
  listAt,
  objectAt,
  readDocument,
  readStream,
  type Seen,
} from '../support/reading.ts';
import { requestBody } from '../support/requests.ts';
import { ask, startRig, type Rig } from '../support/rig.ts';
import {
  blockDelta,
  blockStart,
  blockStop,
  messageDelta,
  messagesError,
  messagesFrame,
  messageStart,
  messageStop,
  textBlock,
} from '../upstream/messages.ts';
import type { Answer, Script, Scripted } from '../upstream/scripted.ts';

let rig: Rig;
before(async () => {
  rig = await startRig();
  searching = await startSearching();
});
after(async () => {
  await searching.stop();
  await rig.stop();
});

/** A gateway whose messages provider may search the web for chat clients. */
let searching: Rig;
async function startSearching(): Promise<Rig> {
  const port = rig.upstreams.messages.port;
  return startRig({
    providers: {
      'up-search': {
        dialect: 'anthropic-messages',
        base_url: `http://127.0.0.1:${port}`,
        api_key: 'upstream-messages-key',
        server_tools: true,
      },
    },
  });
}

let played = 0;
function play(...answers: readonly Scripted[]): { model: string; script: Script } {
  played += 1;
  const name = `paused-${played}`;
  return {
    model: `up-search/${name}`,
    script: rig.upstreams.messages.script(name, ...answers),
  };
}

const usageOf = (input: number, read: number, output: number): JsonObject => ({
  input_tokens: input,
  cache_read_input_tokens: read,
  cache_creation_input_tokens: 0,
  output_tokens: output,
});

function searchCall(index: number): readonly JsonObject[] {
  const block = { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: {} };
  return [
    blockStart(index, block),
    blockDelta(index, { type: 'input_json_delta', partial_json: '{"query":' }),
    blockDelta(index, { type: 'input_json_delta', partial_json: '"q"}' }),
    blockStop(index),
  ];
}

function searchResult(index: number): readonly JsonObject[] {
  const block = { type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1', content: [] };
  return [blockStart(index, block), blockStop(index)];
}

function round(
  blocks: readonly JsonObject[],
  stop: string,
  usage: JsonObject = usageOf(10, 0, 5),
): Answer {
  const events = [messageStart(usage), ...blocks, messageDelta(stop, usage), messageStop];
  return { body: events.map((event) => messagesFrame(event)).join(''), framing: 'chunked' };
}

const first = round([...textBlock(0, 'Searching'), ...searchCall(1)], 'pause_turn');
const second = round(
  [...searchResult(0), ...textBlock(1, ' and found')],
  'end_turn',
  usageOf(20, 5, 7),
);

async function askSearch(model: string, stream: boolean, more: JsonObject = {}): Promise<Reply> {
  const options = { web_search_options: {}, ...more };
  return ask(searching, 'chat', requestBody('chat', { model, stream, more: options }));
}

function seen(reply: Reply, stream: boolean): Seen {
  return stream ? readStream('chat', reply.text) : readDocument('chat', reply.json);
}

for (const stream of [true, false]) {
  describe(stream ? 'streams' : 'documents', () => {
    test('§7.3 the rounds are one answer, and their costs one sum', async () => {
      const { model, script } = play(first, second);
      const reply = await askSearch(model, stream);
      assert.equal(reply.status, 200, reply.text);
      const shown = seen(reply, stream);
      assert.equal(shown.text, 'Searching and found');
      assert.equal(shown.finish, 'stop');
      assert.deepEqual(shown.usage, {
        fresh: 30,
        cacheRead: 5,
        cacheWrite: 0,
        output: 12,
        reasoning: 0,
      });
      if (stream) {
        const ids = framesOf(reply.text).map(({ data }) => /"id":"([^"]*)"/.exec(data)?.[1]);
        assert.equal(new Set(ids.filter((id) => id !== undefined)).size, 1);
        assert.equal(reply.text.split('"role":"assistant"').length, 2, 'one beginning');
      }
      const messages = listAt((await script.request(1)).json, 'messages');
      assert.deepEqual(messages.at(-1), {
        role: 'assistant',
        content: [
          { type: 'text', text: 'Searching' },
          { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'q' } },
        ],
      });
      const [row] = await searching.gateway.callRows(model, 1);
      assert.equal(row?.['outcome'], 'ok');
      assert.equal(row['usage_source'], 'reported');
      assert.equal(row['attempts'], 2);
      const charged = objectAt(row, 'charged');
      assert.deepEqual([charged['fresh_input_tokens'], charged['output_tokens']], [30, 12]);
    });

    test('§7.3 after five continuations the answer counts as cut off', async () => {
      const { model, script } = play(first);
      const shown = seen(await askSearch(model, stream), stream);
      assert.equal(shown.finish, 'length');
      assert.equal(shown.text, 'Searching'.repeat(6));
      assert.equal(shown.usage?.output, 30);
      assert.equal(script.requests.length, 6);
    });

    test('§7.3 a later round that fails fails the answer, and no other target is asked', async () => {
      const error = { status: 529, body: messagesError('Overloaded', 'overloaded_error') };
      const { model, script } = play(first, error);
      const reply = await askSearch(model, stream);
      assert.equal(script.requests.length, 2);
      if (stream) {
        assert.equal(endingOf('chat', reply.text), 'error');
        assert.match(reply.text, /Searching|"content":"Sear/);
      } else {
        assert.equal(reply.status, 503, reply.text);
      }
      const [row] = await searching.gateway.callRows(model, 1);
      assert.equal(row?.['outcome'], 'failed');
      assert.equal(row['error'], 'overloaded');
      assert.equal(objectAt(row, 'charged')['fresh_input_tokens'], 10, 'what was reported');
    });

    test('§7.3 a later round that breaks off fails the answer', async () => {
      const events = [messageStart(), ...textBlock(0, 'x')].map((event) => messagesFrame(event));
      const { model } = play(first, { body: events, framing: 'chunked', ending: 'reset' });
      const reply = await askSearch(model, stream);
      if (stream) assert.equal(endingOf('chat', reply.text), 'error');
      else assert.equal(reply.status, 502);
    });

    test('§7.3 §1.4 stop sequences are found across rounds', async () => {
      const { model, script } = play(
        round([...textBlock(0, 'One\n'), ...searchCall(1)], 'pause_turn'),
        round(textBlock(0, 'two\n\nthree'), 'end_turn'),
      );
      const shown = seen(await askSearch(model, stream, { stop: '\n\n' }), stream);
      assert.equal(shown.text, 'One\ntwo');
      assert.equal(shown.finish, 'stop');
      assert.equal(script.requests.length, 2);
    });

    test('§7.3 the upstream may answer rounds with documents', async () => {
      const whole = (text: string, stop: string): Answer => ({
        body: JSON.stringify({
          id: 'msg_1',
          type: 'message',
          role: 'assistant',
          model: 'm',
          content: [{ type: 'text', text }],
          stop_reason: stop,
          stop_sequence: null,
          usage: usageOf(10, 0, 5),
        }),
      });
      const { model } = play(whole('a', 'pause_turn'), whole('b', 'end_turn'));
      const shown = seen(await askSearch(model, stream), stream);
      assert.equal(shown.text, 'ab');
      assert.equal(shown.usage?.output, 10);
    });
  });
}

test('F7 §7.3 a client that leaves in a later round pays for both', async () => {
  const pieces = [messageStart(), ...textBlock(0, ' and found')].map((event) =>
    messagesFrame(event),
  );
  const { model, script } = play(first, { body: pieces, ending: 'hang' });
  const leaving = new AbortController();
  const more = { web_search_options: {} };
  let text = '';
  const asked = ask(searching, 'chat', requestBody('chat', { model, stream: true, more }), {
    signal: leaving.signal,
    onData: (chunk) => {
      text += chunk.toString();
      if (text.includes('found')) leaving.abort();
    },
  });
  await asked.catch(() => undefined);
  assert.equal(await (await script.request(1)).closed, 'gateway');
  const [row] = await searching.gateway.callRows(model, 1);
  assert.equal(row?.['outcome'], 'canceled');
  assert.equal(objectAt(row, 'charged')['fresh_input_tokens'], 19);
  await searching.gateway.noneLeft();
});

test('§7.3 a messages client sees the pause: that is its API', async () => {
  const { model, script } = play(first);
  const body = requestBody('messages', { model, stream: false });
  const reply = await ask(searching, 'messages', {
    ...body,
    stream: true,
    tools: [{ type: 'web_search_20250305', name: 'web_search' }],
  });
  assert.match(reply.text, /"stop_reason":"pause_turn"/);
  assert.equal(script.requests.length, 1);
});
