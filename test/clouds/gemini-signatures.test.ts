/** Thought signatures: from an answer through a client and back to the part that they came on (wire/gemini.md §11: 4, 6–10, 12). */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { tryParseObject } from '../../src/json/parse.ts';
import { isObject, type Json, type JsonObject } from '../../src/json/value.ts';
import { clientDialects, type ClientDialect } from '../support/dialects.ts';
import { framesOf, listAt, objectAt, textAt } from '../support/reading.ts';
import { toolsOf } from '../support/requests.ts';
import { geminiAnswer, streamOf, type GeminiAnswer } from '../upstream/gemini.ts';
import { callGemini, startGemini, type GeminiScene } from './gemini-scene.ts';

let scene: GeminiScene;
before(async () => {
  scene = await startGemini();
});
after(() => scene.stop());

const filler = 'skip_thought_signature_validator';
const signature = 'U2lnbmF0dXJlIG9mIGEgY2FsbA==';
const call = (a: number, thoughtSignature?: string): JsonObject => ({
  functionCall: { name: 'w', args: { a } },
  ...(thoughtSignature === undefined ? {} : { thoughtSignature }),
});

/** The assistant's turn of an answer as a client keeps it; of a stream, put together. */
function turnOf(dialect: ClientDialect, text: string, stream: boolean): readonly JsonObject[] {
  if (dialect === 'responses') {
    const whole = stream
      ? objectAt(tryParseObject(framesOf(text).at(-1)?.data ?? '') ?? {}, 'response')
      : (tryParseObject(text) ?? {});
    return listAt(whole, 'output');
  }
  if (dialect === 'messages') {
    const content = stream ? streamedBlocks(text) : listAt(tryParseObject(text) ?? {}, 'content');
    return [{ role: 'assistant', content }];
  }
  const message = stream
    ? streamedMessage(text)
    : objectAt(listAt(tryParseObject(text) ?? {}, 'choices')[0] ?? {}, 'message');
  return [message];
}

function streamedBlocks(text: string): readonly JsonObject[] {
  const blocks: { [key: string]: Json | undefined }[] = [];
  for (const { data } of framesOf(text)) {
    const event = tryParseObject(data) ?? {};
    const index = Number(event['index']);
    if (event['type'] === 'content_block_start')
      blocks[index] = { ...objectAt(event, 'content_block') };
    const block = blocks[index];
    if (event['type'] !== 'content_block_delta' || block === undefined) continue;
    const delta = objectAt(event, 'delta');
    for (const name of ['text', 'thinking', 'signature']) {
      if (delta[name] !== undefined) block[name] = textAt(block, name) + textAt(delta, name);
    }
    const json = textAt(delta, 'partial_json');
    if (json !== '') block['input'] = tryParseObject(json) ?? {};
  }
  return blocks;
}

function streamedMessage(text: string): JsonObject {
  const calls: JsonObject[] = [];
  const details: JsonObject[] = [];
  let content = '';
  for (const { data } of framesOf(text)) {
    const delta = objectAt(listAt(tryParseObject(data) ?? {}, 'choices')[0] ?? {}, 'delta');
    content += textAt(delta, 'content');
    calls.push(...listAt(delta, 'tool_calls').map(({ index: _index, ...rest }) => rest));
    details.push(...listAt(delta, 'reasoning_details'));
  }
  return {
    role: 'assistant',
    content,
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
    ...(details.length === 0 ? {} : { reasoning_details: details }),
  };
}

const question = (dialect: ClientDialect, content: string): JsonObject =>
  dialect === 'responses' ? { type: 'message', role: 'user', content } : { role: 'user', content };

/** What answers the calls of a turn. */
function resultsOf(dialect: ClientDialect, turn: readonly JsonObject[]): readonly JsonObject[] {
  switch (dialect) {
    case 'chat':
      return listAt(turn[0] ?? {}, 'tool_calls').map(({ id = null }) => ({
        role: 'tool',
        tool_call_id: id,
        content: 'sunny',
      }));
    case 'messages': {
      const uses = listAt(turn[0] ?? {}, 'content').filter(({ type }) => type === 'tool_use');
      const content = uses.map(({ id = null }) => ({
        type: 'tool_result',
        tool_use_id: id,
        content: 'sunny',
      }));
      return [{ role: 'user', content }];
    }
    case 'responses':
      return turn
        .filter(({ type }) => type === 'function_call')
        .map(({ call_id = null }) => ({ type: 'function_call_output', call_id, output: 'sunny' }));
    default:
      return dialect satisfies never;
  }
}

interface Played {
  readonly turn: readonly JsonObject[];
  readonly sent: JsonObject;
}

/** One call with this history. */
async function play(
  dialect: ClientDialect,
  model: string,
  history: readonly JsonObject[],
  answer: GeminiAnswer,
  stream = false,
): Promise<Played> {
  const { reply, received } = await callGemini(
    scene,
    { dialect, model, stream, more: { ...toolsOf(dialect), messages: history } },
    stream ? streamOf(answer) : geminiAnswer(answer),
  );
  assert.equal(reply.status, 200, reply.text);
  return { turn: turnOf(dialect, reply.text, stream), sent: received[0]?.json ?? {} };
}

/** The parts of the turns of the model in a request. */
function modelTurns(sent: JsonObject): readonly (readonly JsonObject[])[] {
  return listAt(sent, 'contents')
    .filter(({ role }) => role === 'model')
    .map((content) => listAt(content, 'parts'));
}

function signaturesOf(sent: JsonObject): readonly (readonly unknown[])[] {
  return modelTurns(sent).map((parts) => parts.map((part) => part['thoughtSignature']));
}

for (const dialect of clientDialects) {
  for (const stream of [false, true]) {
    const form = stream ? 'streams' : 'documents';
    describe(`a ${dialect} client, ${form}`, () => {
      it('4 the signature of a text comes back on the text', async () => {
        const asked = [question(dialect, 'Hi')];
        const first = await play(
          dialect,
          `gemini-3-text-${dialect}-${form}`,
          asked,
          {
            parts: [
              { text: 'Hello ' },
              { text: 'there' },
              { text: '', thoughtSignature: signature },
            ],
          },
          stream,
        );
        const history = [...asked, ...first.turn, question(dialect, 'And?')];
        const { sent } = await play(dialect, `gemini-3-text2-${dialect}-${form}`, history, {});
        assert.deepEqual(modelTurns(sent), [
          [{ text: 'Hello there', thoughtSignature: signature }],
        ]);
      });

      if (dialect === 'responses') {
        it('R-57 the signature of a call stands sealed in an item of its own before the call', async () => {
          const asked = [question(dialect, 'Weather?')];
          const model = `gemini-3-sealed-${form}`;
          const call = { functionCall: { name: 'weather', args: {} }, thoughtSignature: signature };
          const { turn } = await play(dialect, model, asked, { parts: [call] }, stream);
          assert.deepEqual(
            turn.map(({ type }) => type),
            ['reasoning', 'function_call'],
          );
          assert.deepEqual(turn[0]?.['summary'], []);
          assert.match(textAt(turn[0] ?? {}, 'encrypted_content'), /^gw1\./);
          assert.ok(!JSON.stringify(turn[1]).includes(signature));
          const history = [...asked, ...turn, ...resultsOf(dialect, turn)];
          const { sent } = await play(dialect, model, history, {});
          assert.deepEqual(signaturesOf(sent), [[signature]]);
        });
      }

      it('6 7 8 signatures of calls come back on the same calls, siblings have none, each step has its own', async () => {
        const asked = [question(dialect, 'Compare.')];
        const model = `gemini-3-calls-${dialect}-${form}`;
        const first = await play(
          dialect,
          model,
          asked,
          { parts: [call(1, signature), call(2)] },
          stream,
        );
        const one = [...asked, ...first.turn, ...resultsOf(dialect, first.turn)];
        const second = await play(
          dialect,
          `${model}-2`,
          one,
          { parts: [call(3, 'U3RlcDI=')] },
          stream,
        );
        assert.deepEqual(signaturesOf(second.sent), [[signature, undefined]]);
        const two = [...one, ...second.turn, ...resultsOf(dialect, second.turn)];
        const third = await play(dialect, `${model}-3`, two, {}, stream);
        assert.deepEqual(signaturesOf(third.sent), [[signature, undefined], ['U3RlcDI=']]);
      });
    });
  }
}

/** A history that another model wrote: a turn that is over, and one that goes on with two steps. */
function foreignHistory(): readonly JsonObject[] {
  const step = (ids: readonly string[]): readonly JsonObject[] => [
    {
      role: 'assistant',
      content: null,
      tool_calls: ids.map((id) => ({
        id,
        type: 'function',
        function: { name: 'w', arguments: '{"a":1}' },
      })),
    },
    ...ids.map((id) => ({ role: 'tool', tool_call_id: id, content: 'sunny' })),
  ];
  return [
    { role: 'user', content: 'One.' },
    ...step(['o1']),
    { role: 'assistant', content: 'Sunny.' },
    { role: 'user', content: 'Two.' },
    ...step(['n1', 'n2']),
    ...step(['n3']),
  ];
}

describe('histories without signatures', () => {
  it('9 the stand-in stands on the first call of each step of the current turn only, and is noted', async () => {
    const { reply, received } = await callGemini(
      scene,
      { model: 'gemini-3-foreign', more: { ...toolsOf('chat'), messages: foreignHistory() } },
      geminiAnswer(),
    );
    assert.deepEqual(signaturesOf(received[0]?.json ?? {}), [
      [undefined],
      [undefined],
      [filler, undefined],
      [filler],
    ]);
    assert.match(String(reply.headers['x-gateway-notes']), /sent without a signature/);
    const older = await callGemini(
      scene,
      { model: 'gemini-2.5-pro', more: { ...toolsOf('chat'), messages: foreignHistory() } },
      geminiAnswer(),
    );
    assert.doesNotMatch(older.received[0]?.body.toString() ?? '', /thoughtSignature/);
  });

  it('10 what a client drops is found again by the id of the call', async () => {
    const asked = [question('chat', 'Hi')];
    const first = await play('chat', 'gemini-3-dropped', asked, { parts: [call(1, signature)] });
    const bare = first.turn.map(({ role = null, tool_calls: calls }) => ({
      role,
      content: null,
      tool_calls: (Array.isArray(calls) ? calls : []).map((each: Json) => {
        const { extra_content: _, ...rest } = isObject(each) ? each : {};
        return rest;
      }),
    }));
    const history = [...asked, ...bare, ...resultsOf('chat', first.turn)];
    const { sent } = await play('chat', 'gemini-3-dropped-2', history, {});
    assert.deepEqual(signaturesOf(sent), [[signature]]);
  });

  it('12 refused signatures are replaced once by stand-ins', async () => {
    for (const word of ['Invalid', 'Corrupted']) {
      const asked = [question('messages', 'Hi')];
      const model = `gemini-3-${word}`;
      const first = await play('messages', model, asked, { parts: [call(1, signature)] });
      const messages = [...asked, ...first.turn, ...resultsOf('messages', first.turn)];
      const refusal = {
        status: 400,
        body: JSON.stringify({
          error: { code: 400, message: `${word} thought signature.`, status: 'INVALID_ARGUMENT' },
        }),
      };
      const more = { ...toolsOf('messages'), messages };
      const again = await callGemini(
        scene,
        { dialect: 'messages', model: `${model}-2`, more },
        refusal,
        geminiAnswer(),
      );
      assert.equal(again.reply.status, 200, again.reply.text);
      assert.deepEqual(
        again.received.map(({ json }) => signaturesOf(json)),
        [[[signature]], [[filler]]],
      );
      const never = await callGemini(
        scene,
        { dialect: 'messages', model: `${model}-3`, more },
        refusal,
      );
      assert.equal(never.received.length, 2, 'once');
      assert.equal(never.reply.status, 400);
    }
  });
});
