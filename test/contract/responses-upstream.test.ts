/** Chat and messages clients of a Responses upstream: tools over turns, endings, repairs. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { isObject, type JsonObject } from '../../src/json/value.ts';
import type { Reply } from '../support/http.ts';
import { assertErrorBody } from '../support/legality.ts';
import {
  dialects,
  endingOf,
  listAt,
  readDocument,
  readStream,
  type Dialect,
  type Seen,
} from '../support/reading.ts';
import { requestBody } from '../support/requests.ts';
import { ask, startRig, type Rig } from '../support/rig.ts';
import { chatAnswer } from '../upstream/chat.ts';
import {
  callItem,
  reasoningItem,
  responsesAnswer,
  responsesEvents,
  responsesFrame,
  textItem,
} from '../upstream/responses.ts';
import { ScriptedUpstream, type Scripted, type Script } from '../upstream/scripted.ts';

let rig: Rig;
let upstream: ScriptedUpstream;
let played = 0;

before(async () => {
  upstream = await ScriptedUpstream.start();
  const base_url = `http://127.0.0.1:${upstream.port}/v1`;
  rig = await startRig({
    providers: {
      openai: { dialect: 'openai-responses', base_url, api_key: 'key-of-openai' },
      engine: { dialect: 'openai-responses', base_url },
      both: { dialect: 'openai-chat', base_url },
    },
    models: {
      'by-responses': { targets: ['both/by-responses'], api: 'responses' },
      'by-chat': { targets: ['engine/by-chat'], api: 'chat' },
    },
  });
});
after(async () => {
  await rig.stop();
  await upstream.close();
});

function play(
  provider: string,
  ...answers: readonly Scripted[]
): { model: string; script: Script } {
  played += 1;
  const name = `gpt-x-${played}`;
  return { model: `${provider}/${name}`, script: upstream.script(name, ...answers) };
}

async function call(
  dialect: Dialect,
  model: string,
  stream: boolean,
  more: JsonObject = {},
): Promise<Reply> {
  return ask(rig, dialect, requestBody(dialect, { model, stream, more }));
}

function seenOf(dialect: Dialect, stream: boolean, reply: Reply): Seen {
  assert.equal(reply.status, 200, reply.text);
  if (!stream) return readDocument(dialect, reply.json);
  assert.equal(endingOf(dialect, reply.text), 'proper', reply.text.slice(-300));
  return readStream(dialect, reply.text);
}

for (const dialect of dialects) {
  describe(`${dialect} client`, () => {
    for (const stream of [true, false]) {
      test(`R-62 tools and reasoning over three turns, ${stream ? 'stream' : 'document'}`, async () => {
        const first = [reasoningItem('Look it up.', 'blob1'), callItem('call_1', 'w', '{"a":1}')];
        const second = [reasoningItem('', 'blob2'), callItem('call_2', 'w', '{"a":2}')];
        const last = [textItem('Sunny.')];
        const { model, script } = play(
          'openai',
          ...[first, second, last].map((items) => responsesAnswer(items, { stream })),
        );
        const history: JsonObject[] = [{ role: 'user', content: 'Weather?' }];
        const tools = toolOf(dialect);
        for (const turn of [1, 2]) {
          const reply = await call(dialect, model, stream, { messages: history, ...tools });
          const seen = seenOf(dialect, stream, reply);
          assert.equal(seen.finish, 'tools');
          assert.deepEqual(
            seen.calls.map(({ id, name, arguments: args }) => [id, name, args]),
            [[`call_${turn}`, 'w', { a: turn }]],
          );
          assert.deepEqual(seen.usage, {
            fresh: 5,
            cacheRead: 4,
            cacheWrite: 0,
            output: 5,
            reasoning: 2,
          });
          history.push(...turnOf(dialect, seen));
        }
        const reply = await call(dialect, model, stream, { messages: history, ...tools });
        assert.equal(seenOf(dialect, stream, reply).text, 'Sunny.');
        const { json } = await script.request(2);
        assert.equal(json['store'], false);
        assert.deepEqual(json['include'], ['reasoning.encrypted_content']);
        assert.equal(listAt(json, 'tools')[0]?.['strict'], false);
        // What the client dropped is restored from what was kept of its calls.
        assert.deepEqual(listAt(json, 'input').slice(1), [
          {
            type: 'reasoning',
            id: 'rs_blob1',
            summary: [{ type: 'summary_text', text: 'Look it up.' }],
            encrypted_content: 'blob1',
          },
          { type: 'function_call', call_id: 'call_1', name: 'w', arguments: '{"a":1}' },
          { type: 'function_call_output', call_id: 'call_1', output: 'found 1' },
          { type: 'reasoning', id: 'rs_blob2', summary: [], encrypted_content: 'blob2' },
          { type: 'function_call', call_id: 'call_2', name: 'w', arguments: '{"a":2}' },
          { type: 'function_call_output', call_id: 'call_2', output: 'found 2' },
        ]);
      });
    }

    test('R-63 a stop sequence ends the answer, and the upstream is not told of it', async () => {
      const { model, script } = play(
        'openai',
        responsesAnswer([textItem('One. STOP Two.')], { stream: true }),
      );
      const stop =
        dialect === 'chat' ? { stop: ['STOP'] } : { stop_sequences: ['a', 'b', 'c', 'd', 'STOP'] };
      const reply = await call(dialect, model, true, stop);
      assert.equal(seenOf(dialect, true, reply).text, 'One. ');
      assert.equal((await script.request(0)).json['stop'], undefined);
    });

    test('R-75 the answer is complete with its last event, though the upstream does not close', async () => {
      const body = responsesEvents([textItem('Hello')]).map(responsesFrame);
      const { model, script } = play('engine', { body, framing: 'chunked', ending: 'hang' });
      const reply = await call(dialect, model, true);
      assert.equal(seenOf(dialect, true, reply).text, 'Hello');
      await (
        await script.request(0)
      ).closed;
    });

    test('R-60 refused reasoning is omitted, and the call is made again', async () => {
      const refusal = {
        status: 400,
        body: JSON.stringify({
          error: {
            message: 'The encrypted content could not be verified.',
            type: 'invalid_request_error',
            param: null,
            code: 'invalid_encrypted_content',
          },
        }),
      };
      const items = [reasoningItem('Thought.', 'b'), callItem('call_9', 'w', '{"a":9}')];
      const { model, script } = play(
        'openai',
        responsesAnswer(items, { stream: false }),
        refusal,
        responsesAnswer([textItem('Done.')], { stream: false }),
      );
      const user = { role: 'user', content: 'Weather?' };
      const tools = toolOf(dialect);
      const first = await call(dialect, model, false, { messages: [user], ...tools });
      const messages = [user, ...turnOf(dialect, seenOf(dialect, false, first))];
      const reply = await call(dialect, model, false, { messages, ...tools });
      assert.equal(seenOf(dialect, false, reply).text, 'Done.');
      assert.match(JSON.stringify((await script.request(1)).json), /"encrypted_content":"b"/);
      assert.doesNotMatch(JSON.stringify((await script.request(2)).json), /"encrypted_content"/);
    });

    test('§5.3 a cut answer, a refusal and a filter are reported as such', async () => {
      const cut = responsesAnswer([textItem('Half')], {
        stream: true,
        status: 'incomplete',
        incomplete_details: { reason: 'max_output_tokens' },
      });
      const reply = await call(dialect, play('engine', cut).model, true);
      assert.equal(seenOf(dialect, true, reply).finish, 'length');
      const filtered = responsesAnswer([textItem('Half')], {
        stream: false,
        status: 'incomplete',
        incomplete_details: { reason: 'content_filter' },
      });
      const other = await call(dialect, play('engine', filtered).model, false);
      assert.equal(seenOf(dialect, false, other).finish, 'filter');
    });

    test('a route says by which of the two APIs its targets are asked', async () => {
      const asked = upstream.script(
        'by-responses',
        responsesAnswer([textItem('Hi')], { stream: false }),
      );
      const reply = await call(dialect, 'by-responses', false);
      assert.equal(seenOf(dialect, false, reply).text, 'Hi');
      assert.equal((await asked.request(0)).path, '/v1/responses');
      const other = upstream.script('by-chat', chatAnswer({ text: 'Hi' }, false));
      assert.equal(seenOf(dialect, false, await call(dialect, 'by-chat', false)).text, 'Hi');
      assert.equal((await other.request(0)).path, '/v1/chat/completions');
    });

    test('R-77 a base address of another dialect is named', async () => {
      const chat = { id: 'x', object: 'chat.completion', choices: [{ index: 0, message: {} }] };
      const { model } = play('engine', { body: JSON.stringify(chat) });
      const reply = await call(dialect, model, false);
      assert.equal(reply.status, 502);
      assertErrorBody(dialect, reply.json);
    });
  });
}

const schema = { type: 'object', properties: { a: { type: 'number' } } };

function toolOf(dialect: Dialect): JsonObject {
  return dialect === 'chat'
    ? { tools: [{ type: 'function', function: { name: 'w', parameters: schema } }] }
    : { tools: [{ name: 'w', input_schema: schema }] };
}

/** The answer and the result of its call as a client sends them that drops all reasoning. */
function turnOf(dialect: Dialect, { calls }: Seen): readonly JsonObject[] {
  const [only] = calls;
  assert.ok(only !== undefined);
  const { id, name, arguments: args } = only;
  const found = `found ${String(isObject(args) ? args['a'] : '')}`;
  return dialect === 'chat'
    ? [
        {
          role: 'assistant',
          content: null,
          tool_calls: [
            { id, type: 'function', function: { name, arguments: JSON.stringify(args) } },
          ],
        },
        { role: 'tool', tool_call_id: id, content: found },
      ]
    : [
        { role: 'assistant', content: [{ type: 'tool_use', id, name, input: args }] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content: found }] },
      ];
}
