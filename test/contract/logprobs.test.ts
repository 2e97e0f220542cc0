/**
 * Log probabilities between the APIs of OpenAI: what is requested, and each token of documents and streams. APIs without
 * them refuse the request by name.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { tryParseObject } from '../../src/json/parse.ts';
import { isObject, type JsonObject } from '../../src/json/value.ts';
import { framesOf, listAt, objectAt, textAt } from '../support/reading.ts';
import { requestBody } from '../support/requests.ts';
import { ask, startRig, type Rig } from '../support/rig.ts';
import { chatChunk, chatDocument, chatDone, chatFrame } from '../upstream/chat.ts';
import { replying } from '../upstream/reply.ts';
import {
  responsesAnswer,
  responsesDocument,
  responsesEvents,
  responsesFrame,
  textItem,
} from '../upstream/responses.ts';
import type { Answer, Scripted } from '../upstream/scripted.ts';

let rig: Rig;
before(async () => {
  rig = await startRig();
});
after(() => rig.stop());

function token(text: string, logprob: number): JsonObject {
  const own = { token: text, logprob, bytes: [...Buffer.from(text)] };
  const other = { token: 'É', logprob: -4.25, bytes: [195, 137] };
  return { ...own, top_logprobs: [own, other] };
}

const tokens = [token('Hé', -0.000123), token('llo', -1.5), token(' world', -0.25)];
const text = 'Héllo world';
const included = { include: ['message.output_text.logprobs'], top_logprobs: 2 };
const requested = { logprobs: true, top_logprobs: 2 };

/** A chat stream with a token in each chunk. */
function chatStream(pieces: readonly JsonObject[]): Answer {
  const scored = (delta: JsonObject, logprobs: JsonObject): string =>
    chatFrame(
      chatChunk(delta, null, { choices: [{ index: 0, delta, logprobs, finish_reason: null }] }),
    );
  const chunks = pieces.map((each) =>
    scored({ content: textAt(each, 'token') }, { content: [each], refusal: null }),
  );
  const first = scored({ role: 'assistant', content: '' }, { content: [], refusal: null });
  const body = [first, ...chunks, chatFrame(chatChunk({}, 'stop')), chatDone];
  return { body: body.join(''), framing: 'chunked' };
}

function chatWhole(logprobs: JsonObject, more: JsonObject = { content: text }): Answer {
  const document = chatDocument({ text });
  const [choice = {}] = listAt(document, 'choices').filter(isObject);
  const message = { ...objectAt(choice, 'message'), ...more };
  return { body: JSON.stringify({ ...document, choices: [{ ...choice, message, logprobs }] }) };
}

function scoredItem(): JsonObject {
  const content = [{ type: 'output_text', text, annotations: [], logprobs: tokens }];
  return { ...textItem(text), content };
}

/** A Responses stream with the tokens in deltas, or only in the events that repeat the whole text. */
function responsesStream(where: 'deltas' | 'done' | 'item'): Answer {
  const item = where === 'item' || where === 'done' ? scoredItem() : textItem(text);
  const events = responsesEvents([item]).flatMap((event): readonly JsonObject[] => {
    const { delta: _, ...rest } = event;
    if (event['type'] === 'response.output_text.done' && where === 'done') {
      return [{ ...event, logprobs: tokens }];
    }
    if (event['type'] !== 'response.output_text.delta' || where !== 'deltas') return [event];
    if (!text.startsWith(textAt(event, 'delta'))) return [];
    return tokens.map((each) => ({ ...rest, delta: textAt(each, 'token'), logprobs: [each] }));
  });
  return { body: events.map(responsesFrame).join(''), framing: 'chunked' };
}

function textOfItem(response: JsonObject): JsonObject {
  const [item = {}] = listAt(response, 'output').filter(isObject);
  const [part = {}] = listAt(item, 'content').filter(isObject);
  return part;
}

function eventsOf(stream: string): readonly JsonObject[] {
  return framesOf(stream).map(({ data }) => tryParseObject(data) ?? {});
}

async function asked(
  client: 'chat' | 'responses',
  upstream: 'chat' | 'responses',
  {
    answer,
    stream,
    more,
  }: { readonly answer: Scripted; readonly stream: boolean; readonly more: JsonObject },
): Promise<{ readonly reply: Awaited<ReturnType<typeof ask>>; readonly sent: JsonObject }> {
  const { model, script } = rig.play(upstream, answer);
  const reply = await ask(rig, client, requestBody(client, { model, stream, more }));
  assert.equal(reply.status, 200, reply.text);
  assert.equal(reply.headers['x-gateway-notes'], undefined);
  return { reply, sent: (await script.request(0)).json };
}

describe('a Responses client at chat completions', () => {
  test('requests them', async () => {
    const answer = chatWhole({ content: tokens, refusal: null });
    const rows = [
      { more: included, sent: requested },
      { more: { include: included.include }, sent: { logprobs: true } },
      { more: { top_logprobs: 2 }, sent: requested },
      { more: { top_logprobs: 0, include: [] }, sent: {} },
    ];
    for (const { more, sent: wanted } of rows) {
      const { sent } = await asked('responses', 'chat', { answer, stream: false, more });
      const { logprobs, top_logprobs: top } = sent;
      const found = {
        ...(logprobs === undefined ? {} : { logprobs }),
        ...(top === undefined ? {} : { top_logprobs: top }),
      };
      assert.deepEqual(found, wanted);
      assert.equal(sent['include'], undefined);
    }
  });

  test('gets each token of a document, with its bytes', async () => {
    const bare = tokens.map((each) => ({ ...each, bytes: null }));
    for (const content of [tokens, bare]) {
      const answer = chatWhole({ content, refusal: null });
      const { reply } = await asked('responses', 'chat', { answer, stream: false, more: included });
      assert.deepEqual(textOfItem(reply.json)['logprobs'], tokens);
      assert.equal(textOfItem(reply.json)['text'], text);
      assert.equal(reply.json['top_logprobs'], 2);
    }
  });

  test('gets each token of a stream with its piece of text, and all of them at its end', async () => {
    const answer = chatStream(tokens);
    const { reply } = await asked('responses', 'chat', { answer, stream: true, more: included });
    const events = eventsOf(reply.text);
    const deltas = events.filter(({ type }) => type === 'response.output_text.delta');
    assert.deepEqual(
      deltas.map(({ delta, logprobs }) => ({ delta, logprobs })),
      tokens.map((each) => ({ delta: each['token'], logprobs: [each] })),
    );
    const ofType = (type: string): JsonObject => events.find((each) => each['type'] === type) ?? {};
    assert.deepEqual(ofType('response.output_text.done')['logprobs'], tokens);
    assert.deepEqual(objectAt(ofType('response.content_part.done'), 'part')['logprobs'], tokens);
    const last = objectAt(ofType('response.completed'), 'response');
    assert.deepEqual(textOfItem(last)['logprobs'], tokens);
  });

  test('keeps tokens whose text comes in another chunk', async () => {
    const [first = {}, ...others] = tokens;
    const delta = { content: text };
    const late = [chatChunk({ content: '' }), chatChunk({})];
    const chunks = [
      chatChunk(delta, null, {
        choices: [{ index: 0, delta, logprobs: { content: [first] }, finish_reason: null }],
      }),
      ...late.map((chunk, i) => ({
        ...chunk,
        choices: [
          { index: 0, delta: {}, logprobs: { content: [others[i] ?? {}] }, finish_reason: null },
        ],
      })),
      chatChunk({}, 'stop'),
    ];
    const body = [...chunks.map(chatFrame), chatDone].join('');
    const { reply } = await asked('responses', 'chat', {
      answer: { body, framing: 'chunked' },
      stream: true,
      more: included,
    });
    const last = eventsOf(reply.text).at(-1) ?? {};
    assert.deepEqual(textOfItem(objectAt(last, 'response'))['logprobs'], tokens);
  });

  test('is told in the log of those of a refusal, which this API does not have', async () => {
    const refusal = { content: null, refusal: 'No.' };
    const answer = chatWhole({ content: null, refusal: [token('No.', -1)] }, refusal);
    const { model } = rig.play('chat', answer);
    const reply = await ask(
      rig,
      'responses',
      requestBody('responses', { model, stream: false, more: included }),
    );
    assert.match(String(reply.headers['x-gateway-notes']), /logprobs\.refusal: dropped/);
    assert.deepEqual(textOfItem(reply.json), { type: 'refusal', refusal: 'No.' });
  });

  test('gets none that it did not request', async () => {
    for (const stream of [false, true]) {
      const answer = stream ? chatStream(tokens) : chatWhole({ content: tokens });
      const { reply } = await asked('responses', 'chat', { answer, stream, more: {} });
      assert.ok(!reply.text.includes('-0.000123'), reply.text);
    }
  });

  test('a form of a vendor is noted', async () => {
    const answer = chatWhole({ tokens: ['Héllo'], token_logprobs: [-1] });
    const { model } = rig.play('chat', answer);
    const reply = await ask(
      rig,
      'responses',
      requestBody('responses', { model, stream: false, more: included }),
    );
    assert.match(String(reply.headers['x-gateway-notes']), /choices\.logprobs: dropped/);
  });
});

describe('a chat client at the Responses API', () => {
  test('requests them', async () => {
    const answer = responsesAnswer([scoredItem()], { stream: false });
    const rows = [
      { more: requested, top: 2 },
      { more: { logprobs: true }, top: undefined },
    ];
    for (const { more, top } of rows) {
      const { sent } = await asked('chat', 'responses', { answer, stream: false, more });
      assert.deepEqual(sent['include'], [
        'reasoning.encrypted_content',
        'message.output_text.logprobs',
      ]);
      assert.equal(sent['top_logprobs'], top);
      assert.equal(sent['logprobs'], undefined);
    }
  });

  test('gets each token of a document', async () => {
    const answer = { body: JSON.stringify(responsesDocument([scoredItem()])) };
    const { reply } = await asked('chat', 'responses', { answer, stream: false, more: requested });
    const [choice = {}] = listAt(reply.json, 'choices').filter(isObject);
    assert.deepEqual(choice['logprobs'], { content: tokens, refusal: null });
  });

  for (const where of ['deltas', 'done', 'item'] as const) {
    test(`gets each token of a stream that has them in its ${where}`, async () => {
      const answer = responsesStream(where);
      const { reply } = await asked('chat', 'responses', { answer, stream: true, more: requested });
      const choices = eventsOf(reply.text).flatMap((chunk) =>
        listAt(chunk, 'choices').filter(isObject),
      );
      const scored = choices.filter(({ logprobs }) => isObject(logprobs));
      const found = scored.flatMap((choice) => listAt(objectAt(choice, 'logprobs'), 'content'));
      assert.deepEqual(found, tokens);
      const said = choices.map((choice) => objectAt(choice, 'delta')['content'] ?? '');
      assert.equal(said.join(''), text);
      if (where === 'deltas') {
        assert.deepEqual(
          scored.map((choice) => objectAt(choice, 'delta')['content']),
          tokens.map((each) => each['token']),
        );
      }
    });
  }
});

test('a stop sequence that the gateway finds ends the tokens with the text', async () => {
  const stop = [' wor', 'b', 'c', 'd', 'e'];
  for (const stream of [false, true]) {
    const answer = stream ? chatStream(tokens) : chatWhole({ content: tokens, refusal: null });
    const { model } = rig.play('chat', answer);
    const more = { ...requested, stop };
    const reply = await ask(rig, 'chat', requestBody('chat', { model, stream, more }));
    assert.equal(reply.status, 200, reply.text);
    const bodies = stream ? eventsOf(reply.text) : [reply.json];
    const choices = bodies.flatMap((each) => listAt(each, 'choices').filter(isObject));
    const found = choices.flatMap(({ logprobs }) =>
      isObject(logprobs) ? listAt(logprobs, 'content') : [],
    );
    assert.deepEqual(found, tokens.slice(0, 2));
  }
});

describe('APIs without log probabilities refuse the request by name', () => {
  for (const upstream of ['messages', 'gemini', 'converse'] as const) {
    test(upstream, async () => {
      const rows = [
        { client: 'chat', more: requested, param: 'logprobs' },
        { client: 'responses', more: { top_logprobs: 2 }, param: 'top_logprobs' },
        {
          client: 'responses',
          more: { include: ['reasoning.encrypted_content', ...included.include] },
          param: 'include[1]',
        },
      ] as const;
      for (const { client, more, param } of rows) {
        const { model, script } = rig.play(upstream, replying(upstream, { text: 'ok' }));
        const reply = await ask(rig, client, requestBody(client, { model, stream: false, more }));
        assert.equal(reply.status, 400, reply.text);
        assert.equal(objectAt(reply.json, 'error')['param'], param);
        assert.equal(script.requests.length, 0);
      }
    });
  }
});

test('a model that refuses them: the request is refused by name, and no answer comes without them', async () => {
  const refusal = JSON.stringify({
    error: {
      message: "Unsupported parameter: 'logprobs' is not supported with this model.",
      type: 'invalid_request_error',
      param: 'logprobs',
      code: 'unsupported_parameter',
    },
  });
  const { model, script } = rig.play('chat', { status: 400, body: refusal });
  const body = requestBody('responses', { model, stream: false, more: included });
  for (let i = 0; i < 2; i += 1) {
    const reply = await ask(rig, 'responses', body);
    assert.equal(reply.status, 400, reply.text);
    assert.equal(objectAt(reply.json, 'error')['param'], 'top_logprobs');
  }
  assert.ok(script.requests.every(({ json }) => json['logprobs'] === true));
});
