import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { JsonObject } from '../../../src/json/value.ts';
import type { Frame } from '../../../src/core/dialect.ts';
import { tryParseObject } from '../../../src/json/parse.ts';
import { parseBody } from '../../../src/core/client-body.ts';
import { messagesTraits } from '../../../src/core/traits.ts';
import { anthropicMessagesClient } from '../../../src/dialects/anthropic-messages/client.ts';
import { anthropicMessagesUpstream } from '../../../src/dialects/anthropic-messages/upstream.ts';
import { NoteList } from '../../../src/core/notes.ts';
import { sealed as sealedRecord, testSealer } from '../../support/sealing.ts';
import { answerContext, framesOf, frameText, noted } from './answer-context.ts';

function relayed(body: string, model = 'claude-real'): string {
  const source = parseBody(Buffer.from(body), new Set());
  const ask = { model, stream: false, traits: messagesTraits, newId: (prefix: string) => prefix };
  const bytes = anthropicMessagesUpstream.relayRequest(source, ask);
  if (source.value['model'] === model) assert.equal(bytes, source.pieces, 'the same bytes');
  return bytes.toString();
}

describe('requests', () => {
  test('only the model changes, in the bytes', () => {
    const body = '{ "max_tokens": 1.0, "model" : "alias","z":{"2":1,"1":12345678901234567890} }';
    assert.equal(relayed(body), body.replace('"alias"', '"claude-real"'));
    assert.equal(relayed(body, 'alias'), body);
  });

  test('a cap of the gateway stands in the place of the client’s own', () => {
    const source = parseBody(Buffer.from('{"model":"up", "max_tokens" : 500,"x":1.0}'), new Set());
    const newId = (prefix: string): string => prefix;
    const ask = { model: 'up', stream: false, traits: messagesTraits, newId, maxOutputTokens: 7 };
    const bytes = anthropicMessagesUpstream.relayRequest(source, ask);
    assert.equal(bytes.toString(), '{"model":"up", "max_tokens" : 7,"x":1.0}');
  });

  test('5.4 reasoning that the gateway sealed never reaches a messages server', () => {
    const call = { type: 'tool_use', id: 'a', name: 'f', input: {} };
    const native = { type: 'thinking', thinking: 'mine', signature: 'sig' };
    const body = (thinking: JsonObject, ...blocks: readonly JsonObject[]): string =>
      JSON.stringify({
        model: 'claude-real',
        thinking,
        messages: [
          { role: 'user', content: 'Hi' },
          { role: 'assistant', content: [...blocks, call] },
          { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a' }] },
        ],
      });
    const sealed = { type: 'thinking', thinking: 'foreign', signature: sealedRecord({}) };
    const redacted = { type: 'redacted_thinking', data: sealedRecord({ encrypted: 'e' }) };
    const adaptive = { type: 'adaptive' };
    const source = parseBody(Buffer.from(body(adaptive, native, sealed, redacted)), new Set());
    const ask = {
      model: 'claude-real',
      stream: false,
      traits: messagesTraits,
      newId: (prefix: string) => prefix,
    };
    const bytes = anthropicMessagesUpstream.relayRequest(source, ask).toString();
    assert.equal(bytes, body(adaptive, native));
    const budget = { type: 'enabled', budget_tokens: 2000 };
    const notes = new NoteList();
    const onBudget = parseBody(Buffer.from(body(budget, sealed)), new Set());
    const cleaned = anthropicMessagesUpstream.relayRequest(onBudget, ask, notes).toString();
    assert.equal(cleaned, body({ type: 'disabled' }), 'D3');
    assert.deepEqual(noted(notes), ['messages.1.content.0 lost', 'thinking changed']);
  });

  test('5.4 D3 sealed reasoning that came back changed is noted as such, and not as that of another provider', () => {
    const why = (signature: string): string | undefined => {
      const block = { type: 'thinking', thinking: 'mine', signature };
      const body = {
        model: 'claude-real',
        messages: [
          { role: 'user', content: 'Hi' },
          { role: 'assistant', content: [block, { type: 'text', text: 'Yes.' }] },
          { role: 'user', content: 'Go on' },
        ],
      };
      const source = parseBody(Buffer.from(JSON.stringify(body)), new Set());
      const newId = (prefix: string): string => prefix;
      const ask = { model: 'claude-real', stream: false, traits: messagesTraits, newId };
      const notes = new NoteList();
      anthropicMessagesUpstream.relayRequest(source, { ...ask, sealer: testSealer }, notes);
      return notes.all[0]?.why;
    };
    const intact = sealedRecord({ signature: 'sig' });
    assert.equal(why(intact), 'reasoning of another provider is not shown to this one');
    assert.equal(why(`${intact}x`), 'reasoning came back changed or incomplete');
  });

  test('text that only mentions the mark is left alone', () => {
    const body = JSON.stringify({ model: 'claude-real', messages: [{ content: '"gw1.' }] });
    assert.equal(relayed(body), body);
  });
});

describe('streams', () => {
  const start = {
    type: 'message_start',
    message: {
      id: 'msg_1',
      model: 'claude-real',
      content: [],
      usage: { input_tokens: 3, output_tokens: 1 },
    },
  };
  const rest: readonly JsonObject[] = [
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
    {
      type: 'content_block_delta',
      index: 0,
      delta: { type: 'text_delta', text: '"model":"x"' },
    },
    { type: 'content_block_stop', index: 0 },
    { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 5 } },
    { type: 'message_stop' },
  ];

  /** What goes to the client for these frames, and whether they were passed untouched. */
  function pass(frames: readonly Frame[], model = 'alias') {
    const reader = anthropicMessagesUpstream.streamReader(messagesTraits);
    const relay = anthropicMessagesClient.answerRelay(answerContext({ model }));
    const sent = frames.map((frame) => relay.frame(frame, reader.read(frame)));
    return { sent, relay, text: sent.map((bytes) => bytes?.toString() ?? '').join('') };
  }

  test('C4 the model of message_start is the client’s, all other frames are the same buffers', () => {
    const text = [start, ...rest].map(frameText).join('');
    const frames = framesOf(text);
    const { sent, relay, text: passed } = pass(frames);
    assert.equal(passed, text.replace('"claude-real"', '"alias"'));
    sent.slice(1).forEach((bytes, i) => assert.equal(bytes, frames[i + 1]?.bytes));
    assert.equal(relay.ended, true);
    assert.equal(relay.ending(), '');
  });

  test('nothing changes when the names are equal', () => {
    const frames = framesOf([start, ...rest].map(frameText).join(''));
    pass(frames, 'claude-real').sent.forEach((bytes, i) => assert.equal(bytes, frames[i]?.bytes));
  });

  test('the model is found among other members, and in data over several lines', () => {
    const odd = {
      type: 'message_start',
      extra: { model: 'inner', message: { model: 'deep' } },
      message: {
        container: { model: 'other' },
        stop: '}"model":"no"',
        model: 'claude-real',
        usage: { input_tokens: 1 },
      },
    };
    const expected = frameText(odd).replace('"claude-real"', '"alias"');
    assert.equal(pass(framesOf(frameText(odd))).text, expected);
    const lines = frameText(start).replaceAll(',"', ',\ndata: "');
    const [only] = framesOf(pass(framesOf(lines)).text);
    const message = tryParseObject(only?.data ?? '')?.['message'];
    assert.equal(Reflect.get(Object(message), 'model'), 'alias');
  });

  /** Wherever a later frame may name the model of the upstream. */
  const named: readonly (readonly [string, JsonObject])[] = [
    ['a second start', start],
    ['a second start without a type', { message: start.message }],
    ['a ping', { type: 'ping', model: 'claude-real' }],
    ['an event of another kind', { type: 'progress', message: { model: 'claude-real' } }],
    [
      'a block',
      {
        type: 'content_block_start',
        index: 1,
        model: 'claude-real',
        content_block: { type: 'text', text: '' },
      },
    ],
    [
      'the end of a block',
      { type: 'content_block_stop', index: 0, message: { model: 'claude-real' } },
    ],
    [
      'the report',
      { type: 'message_delta', model: 'claude-real', delta: {}, usage: { output_tokens: 2 } },
    ],
    ['the end', { type: 'message_stop', model: 'claude-real', message: start.message }],
  ];
  for (const [what, frame] of named) {
    test(`D5 no frame names the model of the upstream: ${what}`, () => {
      for (let at = 0; at <= rest.length; at += 1) {
        const name = typeof frame['type'] === 'string' ? frame['type'] : 'message_start';
        const odd = `event: ${name}\ndata: ${JSON.stringify(frame)}\n\n`;
        const texts = [start, ...rest].map(frameText);
        const { text } = pass(framesOf(texts.toSpliced(at + 1, 0, odd).join('')));
        assert.ok(!text.includes('claude-real'), text);
        assert.equal(text.match(/event: message_start/g)?.length, 1);
        assert.ok(text.includes('"model\\":\\"x'), 'what the model says is its own');
      }
      const early = `event: ping\ndata: {"type":"ping","model":"claude-real"}\n\n`;
      const { text } = pass(framesOf(early + [start, ...rest].map(frameText).join('')));
      assert.ok(!text.includes('claude-real'));
    });
  }

  test('F53 frames behind the end are dropped; F52 a missing end is owed', () => {
    const all = [start, ...rest, ...rest].map(frameText).join('');
    const { text } = pass(framesOf(all));
    assert.equal(text.split('message_stop').length, 3, 'its event line and its data');
    const cut = pass(framesOf([start, ...rest.slice(0, -1)].map(frameText).join('')));
    assert.equal(cut.relay.ended, false);
    assert.equal(cut.relay.ending(), frameText({ type: 'message_stop' }));
  });

  test('F49 F51 comments pass, events without data do not, blank lines are completed', () => {
    const relay = anthropicMessagesClient.answerRelay(answerContext());
    const [comment, nameless] = framesOf(': hi\n\nevent: ping\n\n');
    assert.ok(comment !== undefined && nameless !== undefined);
    assert.equal(relay.frame(comment, []), comment.bytes);
    assert.equal(relay.frame(nameless, []), undefined);
    const [last] = framesOf('event: message_stop\ndata: {"type":"message_stop"}');
    assert.ok(last !== undefined);
    assert.equal(pass([last]).text, frameText({ type: 'message_stop' }));
  });

  test('F55 a start without usage gets the estimate', () => {
    const bare = { type: 'message_start', message: { id: 'm', model: 'alias', content: [] } };
    const [frame] = framesOf(pass(framesOf(frameText(bare))).text);
    const message = tryParseObject(frame?.data ?? '')?.['message'];
    const usage: unknown = Reflect.get(Object(message), 'usage');
    assert.equal(Reflect.get(Object(usage), 'input_tokens'), 11);
  });
});

describe('usage that the upstream never reported (F55)', () => {
  const gap = { freshInputTokens: 9, outputTokens: 4 };
  const finish = { type: 'finish', reason: { kind: 'stop', raw: 'end_turn' } } as const;

  test('a stream reports the estimate right before its end', () => {
    const relay = anthropicMessagesClient.answerRelay(answerContext());
    const [first, stop] = framesOf(
      frameText({ type: 'message_start', message: { id: 'm', usage: { input_tokens: 1 } } }) +
        frameText({ type: 'message_stop' }),
    );
    assert.ok(first !== undefined && stop !== undefined);
    relay.frame(first, []);
    const sent = relay.frame(stop, [finish], gap)?.toString() ?? '';
    const [delta, last] = framesOf(sent);
    assert.equal(delta?.event, 'message_delta');
    assert.equal(last?.event, 'message_stop');
    const usage: unknown = tryParseObject(delta?.data ?? '')?.['usage'];
    assert.equal(Reflect.get(Object(usage), 'output_tokens'), 4);
  });

  test('a document gets what was counted', () => {
    const relay = anthropicMessagesClient.answerRelay(answerContext({ model: 'alias' }));
    const body = { model: 'alias', content: [] };
    const bytes = relay.document({ bytes: Buffer.from(JSON.stringify(body)), body }, gap);
    const usage: unknown = tryParseObject(bytes.toString())?.['usage'];
    assert.equal(Reflect.get(Object(usage), 'input_tokens'), 9);
  });
});

describe('documents', () => {
  const relay = anthropicMessagesClient.answerRelay(answerContext({ model: 'alias' }));
  const document = (text: string): string => {
    const body = tryParseObject(text);
    assert.ok(body !== undefined);
    return relay.document({ bytes: Buffer.from(text), body }).toString();
  };

  test('C4 the model is replaced in the bytes', () => {
    const text =
      '{ "content":[{"type":"tool_use","input":{"model":"x","n":1.0}}], "model" : "claude", "usage":{"input_tokens":1} }';
    assert.equal(document(text), text.replace('"claude"', '"alias"'));
  });

  test('the same bytes when the names are equal; a missing model is added', () => {
    const same = Buffer.from('{"model":"alias","usage":{}}');
    assert.equal(relay.document({ bytes: same, body: { model: 'alias', usage: {} } }), same);
    assert.match(document('{"content":[],"usage":{}}'), /"model":"alias"/);
  });

  test('F55 missing usage is estimated', () => {
    const usage: unknown = tryParseObject(
      document('{"model":"alias","content":[{"type":"text","text":"Hello there"}]}'),
    )?.['usage'];
    assert.equal(Reflect.get(Object(usage), 'input_tokens'), 11);
    assert.ok(Number(Reflect.get(Object(usage), 'output_tokens')) > 0);
  });
});
