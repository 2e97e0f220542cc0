/** Who of the clients of `/v1/responses` reads reasoning: who asks for a summary, and all where the route shows it. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { tryParseObject } from '../../src/json/parse.ts';
import type { JsonObject } from '../../src/json/value.ts';
import { send, type Reply } from '../support/http.ts';
import { adminToken } from '../support/keys.ts';
import { framesOf, listAt, objectAt, textAt } from '../support/reading.ts';
import { requestBody, toolsOf } from '../support/requests.ts';
import { ask, startRig, type Rig } from '../support/rig.ts';
import { chatAnswer } from '../upstream/chat.ts';
import { geminiAnswer, streamOf } from '../upstream/gemini.ts';
import { messagesAnswer } from '../upstream/messages.ts';
import { reasoningItem, responsesAnswer, textItem } from '../upstream/responses.ts';
import { ScriptedUpstream, type Scripted } from '../upstream/scripted.ts';

const thought = 'It rains in Bern.';
const signature = 'c2lnbmF0dXJl';
const call = { id: 'call_1', name: 'w', arguments: '{"a":1}' };
const signedCall = { functionCall: { name: 'w', args: { a: 1 } }, thoughtSignature: signature };

/** A provider whose answers reason, and what it must get back of its reasoning with the next turn. */
interface Maker {
  readonly model: string;
  readonly answer: Scripted;
  readonly givenBack: RegExp;
}

const makers: { readonly [name: string]: Maker } = {
  chat: {
    model: 'deepseek-reasoner',
    answer: ({ json }) =>
      chatAnswer({ reasoning: thought, calls: [call] }, json['stream'] === true),
    givenBack: /"reasoning_content":"It rains in Bern\."/,
  },
  messages: {
    model: 'claude-opus-4-8',
    answer: ({ json }) =>
      messagesAnswer({ thinking: thought, signature, calls: [call] }, json['stream'] === true),
    givenBack: /"thinking":"It rains in Bern\.","signature":"c2lnbmF0dXJl"/,
  },
  gemini: {
    model: 'gemini-2.5-flash',
    answer: ({ path }) => {
      const parts = [{ text: thought, thought: true }, signedCall];
      return path.includes('stream') ? streamOf({ parts }) : geminiAnswer({ parts });
    },
    givenBack: /"thoughtSignature":"c2lnbmF0dXJl"/,
  },
};

let rig: Rig;
let server: ScriptedUpstream;

before(async () => {
  server = await ScriptedUpstream.start();
  const address = `http://127.0.0.1:${server.port}`;
  const base_url = `${address}/v1`;
  const routes = (name: string, model: string): JsonObject => ({
    [`${name}-asked`]: { targets: [`${name}/${model}`] },
    [`${name}-shown`]: { targets: [`${name}/${model}`], reasoning: 'shown' },
  });
  rig = await startRig({
    providers: {
      chat: { base_url, api_key: 'k', dialect: 'openai-chat', like: 'deepseek' },
      messages: {
        base_url: address,
        api_key: 'k',
        dialect: 'anthropic-messages',
        like: 'anthropic',
      },
      gemini: { base_url: `${address}/v1beta`, api_key: 'k' },
      responses: { base_url, api_key: 'k', dialect: 'openai-responses', like: 'openai' },
    },
    models: Object.assign(
      { plain: { targets: ['responses/gpt-4o'], reasoning: 'shown' } },
      ...Object.entries(makers).map(([name, { model }]) => routes(name, model)),
      routes('responses', 'gpt-5.5'),
    ),
  });
});
after(async () => {
  await rig.stop();
  await server.close();
});

/** The response object of a document, or of the last event of a stream. */
function responseOf({ text, json }: Reply, stream: boolean): JsonObject {
  if (!stream) return json;
  return objectAt(tryParseObject(framesOf(text).at(-1)?.data ?? '') ?? {}, 'response');
}

/** What stands in a stream's deltas, or in a document's items, of reasoning. */
function seenOf(reply: Reply, stream: boolean): string {
  const items = listAt(responseOf(reply, stream), 'output');
  const whole = items.flatMap((item) =>
    textAt(item, 'type') === 'reasoning' ? listAt(item, 'summary') : [],
  );
  const text = whole.map((part) => textAt(part, 'text')).join('');
  if (!stream) return text;
  const deltas = framesOf(reply.text)
    .map(({ data }) => tryParseObject(data) ?? {})
    .filter(({ type }) => type === 'response.reasoning_summary_text.delta');
  const streamed = deltas.map((event) => textAt(event, 'delta')).join('');
  assert.equal(streamed, text);
  return streamed;
}

const bySummary: readonly (readonly [route: string, reasoning: JsonObject, seen: boolean])[] = [
  ['asked', { effort: 'high' }, false],
  ['asked', { effort: 'high', summary: 'auto' }, true],
  ['shown', { effort: 'high' }, true],
  ['shown', { effort: 'high', summary: null }, true],
];

for (const [name, { model, answer, givenBack }] of Object.entries(makers)) {
  describe(`reasoning of a ${name} upstream`, () => {
    for (const stream of [false, true]) {
      for (const [route, reasoning, seen] of bySummary) {
        test(`reasoning: ${route}, ${JSON.stringify(reasoning)}, ${stream ? 'stream' : 'document'}`, async () => {
          const { requests } = server.script(model, answer, answer);
          const tools = toolsOf('responses');
          const asking = (more: JsonObject): Promise<Reply> => {
            const body = {
              model: `${name}-${route}`,
              stream,
              more: { ...tools, reasoning, ...more },
            };
            return ask(rig, 'responses', requestBody('responses', body));
          };
          const first = await asking({});
          assert.equal(first.status, 200, first.text);
          assert.equal(seenOf(first, stream), seen ? thought : '');
          if (!seen) assert.doesNotMatch(first.text, /It rains/, 'the seal is no text');
          // The thoughts find their way back whether or not they were read.
          const output = listAt(responseOf(first, stream), 'output');
          const made = output.find(({ type }) => type === 'function_call') ?? assert.fail();
          const result = {
            type: 'function_call_output',
            call_id: textAt(made, 'call_id'),
            output: 'wet',
          };
          const user = { role: 'user', content: 'Hello' };
          const second = await asking({ input: [user, ...output, result] });
          assert.equal(second.status, 200, second.text);
          assert.match(requests[1]?.body.toString() ?? '', givenBack);
        });
      }
    }
  });
}

/** The reasoning that a Responses upstream is asked for, by the client's own bytes. */
async function relayed(route: string, more: JsonObject, model = 'gpt-5.5'): Promise<unknown> {
  const items = [reasoningItem(thought, 'blob'), textItem('Wet.')];
  const { requests } = server.script(model, responsesAnswer(items, { stream: false }));
  const body = requestBody('responses', { model: route, stream: false, more });
  const reply = await ask(rig, 'responses', body);
  assert.equal(reply.status, 200, reply.text);
  assert.equal(reply.headers['x-gateway-mode'], 'relay');
  assert.equal(reply.headers['x-gateway-notes'], undefined, 'nothing is lost');
  return requests[0]?.json['reasoning'];
}

test('a Responses upstream is asked for a summary where the route shows reasoning', async () => {
  const auto = { summary: 'auto' };
  assert.equal(await relayed('responses-asked', {}), undefined);
  assert.deepEqual(await relayed('responses-shown', {}), auto);
  for (const [given, sent] of [
    [{ effort: 'low' }, { effort: 'low', ...auto }],
    [
      { effort: 'low', summary: null },
      { effort: 'low', ...auto },
    ],
    [{ effort: 'none' }, { effort: 'none' }],
    [{ summary: 'detailed' }, { summary: 'detailed' }],
    [{ generate_summary: 'concise' }, { generate_summary: 'concise' }],
  ] as const) {
    assert.deepEqual(await relayed('responses-shown', { reasoning: given }), sent);
  }
  assert.equal(await relayed('plain', {}, 'gpt-4o'), undefined, 'the model does not reason');
});

test('a server that shows this account no summaries is asked again without', async () => {
  const refusal = {
    status: 400,
    body: JSON.stringify({
      error: {
        message: "Unsupported parameter: 'reasoning.summary'. Your organization must be verified.",
        type: 'invalid_request_error',
        param: 'reasoning.summary',
        code: 'unsupported_value',
      },
    }),
  };
  const whole = responsesAnswer([textItem('Wet.')], { stream: false });
  const { requests } = server.script('gpt-5.5', refusal, whole);
  const body = { model: 'responses-shown', stream: false, more: { reasoning: { effort: 'low' } } };
  const reply = await ask(rig, 'responses', requestBody('responses', body));
  assert.equal(reply.status, 200, reply.text);
  assert.deepEqual(
    requests.map(({ json }) => json['reasoning']),
    [{ effort: 'low', summary: 'auto' }, { effort: 'low' }],
  );
});

test('Gemini thinks by itself, and is asked for its thoughts without an effort', async () => {
  const { answer, model } = makers['gemini'] ?? assert.fail();
  const thoughts = async (route: string, more: JsonObject): Promise<unknown> => {
    const { requests } = server.script(model, answer);
    await ask(rig, 'responses', requestBody('responses', { model: route, stream: false, more }));
    const config = objectAt(requests[0]?.json ?? {}, 'generationConfig');
    return config['thinkingConfig'];
  };
  const shown = { includeThoughts: true };
  assert.equal(await thoughts('gemini-asked', {}), undefined);
  assert.deepEqual(await thoughts('gemini-asked', { reasoning: { summary: 'auto' } }), shown);
  assert.deepEqual(await thoughts('gemini-shown', {}), shown);
});

test('clients of other dialects who want to see nothing see nothing', async () => {
  const { answer, model } = makers['messages'] ?? assert.fail();
  server.script(model, answer);
  const more = { reasoning: { effort: 'high', exclude: true } };
  const body = requestBody('chat', { model: 'messages-shown', stream: false, more });
  const reply = await ask(rig, 'chat', body);
  assert.equal(reply.status, 200, reply.text);
  assert.doesNotMatch(reply.text, /It rains/);
});

test('explain shows what the upstream would be asked', async () => {
  const more = { reasoning: { effort: 'high' } };
  const body = requestBody('responses', { model: 'messages-shown', stream: false, more });
  const reply = await send(`${rig.gateway.adminUrl}/api/explain?endpoint=responses`, body, {
    headers: { authorization: `Bearer ${adminToken}` },
  });
  assert.equal(reply.status, 200, reply.text);
  assert.match(JSON.stringify(listAt(reply.json, 'targets')[0]), /"display\W+summarized/);
});
