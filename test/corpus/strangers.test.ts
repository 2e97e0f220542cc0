/**
 * D3: nothing that a client sends is lost in silence. An unknown member in any object of any request of the corpus, which
 * has every field that the SDKs know, is named by a note, arrives, or is refused; `strict` refuses it.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { JsonObject } from '../../src/json/value.ts';
import { GatewayError } from '../../src/core/errors.ts';
import { NoteList, StrictNotes, StrictRefusal, type Notes } from '../../src/core/notes.ts';
import { ask as askOf, halves, upstreamHalves } from '../property/dialect-halves.ts';
import { pairs as allPairs, type Pair } from '../support/dialects.ts';
import type { AnyDialect } from '../support/reading.ts';
import { ask, startRig, type Rig } from '../support/rig.ts';
import { requestBody } from '../support/requests.ts';
import { replying } from '../upstream/reply.ts';
import { notedPaths } from './corpus.ts';
import { corpus } from './samples.ts';
import { dotted } from './locate.ts';
import { objectsIn, withMember } from './objects.ts';

const stranger = ['made_up_inside', { deep: 'nothing knows this' }] as const;
/** With everything on that a provider may be allowed. */
const generous = {
  serverTools: true,
  webSearch: { chat: 'options', messages: 'tool', responses: 'tool', gemini: 'tool' },
} as const;

function translated({ client, upstream }: Pair, body: JsonObject, notes: Notes): string {
  const target = upstreamHalves[upstream];
  const conversation = halves[client].client.readRequest(body, notes);
  const traits = {
    ...target.traits,
    serverTools: generous.serverTools,
    ...(upstream === 'converse' ? {} : { webSearch: generous.webSearch[upstream] }),
  };
  return JSON.stringify(
    target.upstream.writeRequest(conversation, { ...askOf(target), traits }, notes),
  );
}

/** Undefined where the request is refused. */
function outcome(pair: Pair, body: JsonObject): { sent: string; noted: string[] } | undefined {
  const notes = new NoteList();
  try {
    return { sent: translated(pair, body, notes), noted: notes.all.map(({ path }) => path) };
  } catch (error) {
    assert.ok(error instanceof GatewayError, String(error));
    return undefined;
  }
}

function isRefusedStrictly(pair: Pair, body: JsonObject): boolean {
  try {
    translated(pair, body, new StrictNotes());
    return false;
  } catch (error) {
    assert.ok(error instanceof StrictRefusal || error instanceof GatewayError, String(error));
    return true;
  }
}

/** Hints that are left out as a whole, by the table of decisions: what is inside has no meaning elsewhere. */
const ignored =
  /(^|\.)(prediction|audio|prompt_cache_options|citations|input_examples|client_metadata|output_schema)\./;

/** What the vendor of the dialect wrote itself is told of as a whole: a note names the block or field around it. */
function isNamed(path: string, noted: readonly string[]): boolean {
  return noted.some((note) => dotted(note) === path || path.startsWith(`${dotted(note)}.`));
}

const pairs = allPairs.filter(({ client, upstream }) => client !== upstream);

for (const pair of pairs) {
  const { client, upstream } = pair;
  test(`D3 ${client} to ${upstream}: a member that nothing knows, in each object of each request`, () => {
    let seen = 0;
    const silent: string[] = [];
    for (const [id, { sends }] of Object.entries(corpus[client])) {
      const more: JsonObject = { ...sends };
      const body = requestBody(client, { model: 'm', stream: false, more });
      if (outcome(pair, body) === undefined) continue;
      for (const { path } of objectsIn(body)) {
        const strange = withMember(body, path, stranger);
        const found = outcome(pair, strange);
        const name = [...path, stranger[0]].join('.');
        if (ignored.test(name)) continue;
        seen += 1;
        if (found === undefined) continue;
        const arrives = found.sent.includes(stranger[0]);
        if (!arrives && !isNamed(name, found.noted)) silent.push(`${id}: ${name}`);
        if (!arrives && !isRefusedStrictly(pair, strange)) silent.push(`${id}: ${name}, strict`);
      }
    }
    assert.deepEqual(silent, []);
    assert.ok(seen > 200, String(seen));
  });
}

/** One place of each kind that was silent. */
const places: { readonly [D in AnyDialect]: JsonObject } = {
  chat: {
    messages: [
      { role: 'user', content: [{ type: 'text', text: 'Hi', in_part: 1 }] },
      {
        role: 'assistant',
        content: null,
        tool_calls: [
          {
            id: 'a',
            type: 'function',
            in_call: 1,
            function: { name: 'f', arguments: '{"free":1}', in_called: 1 },
          },
        ],
      },
      { role: 'tool', tool_call_id: 'a', content: 'done' },
    ],
    tools: [
      {
        type: 'function',
        in_tool: 1,
        function: { name: 'f', in_function: 1, parameters: { type: 'object', free: 1 } },
      },
    ],
    tool_choice: { type: 'function', in_choice: 1, function: { name: 'f', in_chosen: 1 } },
    response_format: {
      type: 'json_schema',
      in_format: 1,
      json_schema: {
        name: 'o',
        in_json_schema: 1,
        schema: { type: 'object', properties: {}, additionalProperties: false },
      },
    },
    stream_options: { include_usage: true, in_stream_options: 1 },
    at_the_top: 1,
  },
  messages: {
    system: [{ type: 'text', text: 'Be good.', in_system: 1 }],
    messages: [
      { role: 'user', content: [{ type: 'text', text: 'Hi', in_block: 1 }], in_message: 1 },
      {
        role: 'assistant',
        content: [{ type: 'tool_use', id: 'a', name: 'f', input: { free: 1 }, in_call: 1 }],
      },
      {
        role: 'user',
        content: [
          {
            type: 'tool_result',
            tool_use_id: 'a',
            in_result: 1,
            content: [{ type: 'text', text: 'done', in_result_block: 1 }],
          },
        ],
      },
    ],
    tools: [{ name: 'f', in_tool: 1, input_schema: { type: 'object', free: 1 } }],
    tool_choice: { type: 'auto', in_choice: 1 },
    output_config: {
      in_config: 1,
      format: { type: 'json_schema', in_format: 1, schema: { type: 'object', free: 1 } },
    },
    at_the_top: 1,
  },
  responses: {
    input: [
      {
        role: 'user',
        in_message: 1,
        content: [{ type: 'input_text', text: 'Hi', in_part: 1 }],
      },
      {
        type: 'function_call',
        call_id: 'a',
        name: 'f',
        arguments: '{"free":1}',
        in_call: 1,
      },
      { type: 'function_call_output', call_id: 'a', output: 'done', in_result: 1 },
    ],
    tools: [
      {
        type: 'function',
        name: 'f',
        in_tool: 1,
        strict: false,
        parameters: { type: 'object', free: 1 },
      },
    ],
    tool_choice: { type: 'function', name: 'f', in_choice: 1 },
    text: {
      in_text: 1,
      format: {
        type: 'json_schema',
        name: 'o',
        in_format: 1,
        schema: { type: 'object', properties: {}, additionalProperties: false },
      },
    },
    reasoning: { in_reasoning: 1 },
    at_the_top: 1,
  },
};

let rig: Rig;
before(async () => {
  rig = await startRig({
    models: {
      'strict-chat': { targets: ['up-chat/strict'], strict: true },
      'strict-messages': { targets: ['up-messages/strict'], strict: true },
      'strict-responses': { targets: ['up-responses/strict'], strict: true },
      'strict-converse': { targets: ['up-converse/strict'], strict: true },
      // Newer models want signatures on calls, which a history of another model does not have.
      'strict-gemini': { targets: ['up-gemini/gemini-2.5-strict'], strict: true },
    },
  });
});
after(() => rig.stop());

function isStranger(key: string): boolean {
  return key.startsWith('in_') || key === 'at_the_top';
}

function strangersIn(body: JsonObject): readonly string[] {
  return objectsIn(body).flatMap(({ path, value }) =>
    Object.keys(value)
      .filter(isStranger)
      .map((key) => [...path, key].join('.')),
  );
}

for (const { client, upstream } of pairs) {
  test(`D3 ${client} to ${upstream}: the client is told of each, and what is free-form arrives`, async () => {
    const { model, script } = rig.play(upstream, replying(upstream, { text: 'Hello' }));
    const body = requestBody(client, { model, stream: false, more: places[client] });
    const reply = await ask(rig, client, body);
    assert.equal(reply.status, 200, reply.text);
    const noted = notedPaths(String(reply.headers['x-gateway-notes']));
    for (const name of strangersIn(body))
      assert.ok(noted.includes(name), `${name}: ${noted.join(' ')}`);
    assert.match(script.requests[0]?.body.toString() ?? '', /"free/);
  });

  test(`D3 ${client} to ${upstream}: a strict route refuses each alone, and no upstream is asked`, async () => {
    const model = upstream === 'gemini' ? 'gemini-2.5-strict' : 'strict';
    const script = rig.upstreams[upstream].script(model, replying(upstream, { text: 'Hello' }));
    const before = script.requests.length;
    const known: JsonObject = JSON.parse(JSON.stringify(places[client]), (key, value: unknown) =>
      isStranger(key) ? undefined : value,
    );
    // These models are told of a format in words, Gemini beside functions; that is a change.
    const { response_format: _chat, output_config: _messages, ...formless } = known;
    const more = upstream === 'gemini' || upstream === 'converse' ? formless : known;
    const whole = requestBody(client, { model: `strict-${upstream}`, stream: false, more });
    for (const { path } of objectsIn(whole)) {
      const reply = await ask(rig, client, withMember(whole, path, stranger));
      assert.equal(reply.status, 400, reply.text);
      assert.ok(reply.text.includes(stranger[0]), reply.text);
    }
    assert.equal(script.requests.length, before);
  });
}
