import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import * as fc from 'fast-check';
import type { JsonObject } from '../../../src/json/value.ts';
import type { Ask } from '../../../src/core/dialect.ts';
import { tryParseObject } from '../../../src/json/parse.ts';
import { parseBody } from '../../../src/core/client-body.ts';
import { chatTraits } from '../../../src/core/traits.ts';
import { openaiChatClient } from '../../../src/dialects/openai-chat/client.ts';
import { openaiChatUpstream } from '../../../src/dialects/openai-chat/upstream.ts';
import { answerContext, chunk, framesOf, role, usage, usageChunk } from './answer-context.ts';

const ask: Ask = { model: 'up', stream: false, traits: chatTraits, newId: (prefix) => prefix };

function relayed(body: string, changes: Partial<Ask> = {}): string {
  const source = parseBody(Buffer.from(body), openaiChatClient.ownedKeys);
  return openaiChatUpstream.relayRequest(source, { ...ask, ...changes }).toString();
}

describe('request', () => {
  test('unedited bodies are the same bytes', () => {
    const source = parseBody(
      Buffer.from('{ "model" : "up", "n": 1.0 }'),
      openaiChatClient.ownedKeys,
    );
    assert.equal(openaiChatUpstream.relayRequest(source, ask), source.pieces);
  });

  test('only the model is spliced; digits, order and spaces stay', () => {
    assert.equal(
      relayed('{ "z":1.0, "2":12345678901234567890,\n "model" : "alias" ,"a":[ ]}'),
      '{ "z":1.0, "2":12345678901234567890,\n "model" : "up" ,"a":[ ]}',
    );
  });

  test('a cap of the gateway stands in the place of the client’s own, in its spelling', () => {
    const capped = { maxOutputTokens: 7 };
    assert.equal(
      relayed('{"model":"up", "max_tokens" : 500,"n":1.0}', capped),
      '{"model":"up", "max_tokens" : 7,"n":1.0}',
    );
    assert.equal(
      relayed('{"max_completion_tokens":9,"max_tokens":9,"model":"up"}', capped),
      '{"max_completion_tokens":7,"max_tokens":7,"model":"up"}',
    );
    const traits = { ...chatTraits, maxTokensField: 'max_completion_tokens' as const };
    assert.equal(
      relayed('{"model":"up","max_tokens":null}', { ...capped, traits }),
      '{"max_completion_tokens":7,"model":"up","max_tokens":null}',
    );
  });

  test('E6 streams always ask for usage, other stream options stay', () => {
    const stream = { stream: true };
    assert.equal(
      relayed('{"model":"up","stream":true}', stream),
      '{"stream_options":{"include_usage":true},"model":"up","stream":true}',
    );
    assert.equal(
      relayed(
        '{"model":"up","stream_options":{"include_usage":false,"x":1},"stream":true}',
        stream,
      ),
      '{"model":"up","stream_options":{"include_usage":true,"x":1},"stream":true}',
    );
    const asked = '{"model":"up","stream":true,"stream_options":{"include_usage":true}}';
    assert.equal(relayed(asked, stream), asked);
  });

  const withoutOption = { traits: { ...chatTraits, usageOption: false }, stream: false };
  for (const [name, body, expected] of [
    ['last', '{"model":"up", "stream_options": {"include_usage":true} }', '{"model":"up" }'],
    ['first', '{"stream_options":{"a":"}"} , "model":"up"}', '{"model":"up"}'],
    ['escaped', '{"model":"alias","stream\\u005foptions":{}}', '{"model":"up"}'],
    ['between', '{"model":"alias","stream_options":{},"b":2}', '{"model":"up","b":2}'],
    ['absent', '{"model":"up","n":2}', '{"model":"up","n":2}'],
  ] as const) {
    test(`servers without the option never see it: ${name}`, () => {
      assert.equal(relayed(body, withoutOption), expected);
    });
  }

  test('B39 a body with a repeated key in depth is never passed on as it is', () => {
    assert.equal(relayed('{"model":"up","a":{"b":1,"b":2}}'), '{"model":"up","a":{"b":2}}');
  });
});

/** What the client gets of these frames; `data` of the frames that arrive. */
function answered(text: string, changes: Parameters<typeof answerContext>[0] = {}): string {
  const relay = openaiChatClient.answerRelay(answerContext(changes));
  const reader = openaiChatUpstream.streamReader(chatTraits);
  const pieces = framesOf(text).map((frame) => relay.frame(frame, reader.read(frame)));
  return pieces.filter((piece) => piece !== undefined).join('') + relay.ending();
}

function sse(...chunks: readonly unknown[]): string {
  return chunks
    .map((value) => `data: ${typeof value === 'string' ? value : JSON.stringify(value)}\n\n`)
    .join('');
}

const finish = chunk({}, 'stop');

describe('stream', () => {
  test('the same frame when the model has its name already', () => {
    const [one] = framesOf(sse(role));
    assert.ok(one !== undefined);
    const relay = openaiChatClient.answerRelay(answerContext({ model: 'upstream-model' }));
    assert.equal(relay.frame(one, []), one.bytes);
  });

  test('C4 every frame gets the name that the client used, and nothing else changes', () => {
    const text = sse(role, chunk({ content: 'a' }), chunk({ content: 'b' }), finish, '[DONE]');
    assert.equal(answered(text), text.replaceAll('"upstream-model"', '"my-model"'));
  });

  test('C4 any layout, and "model" at other places', () => {
    const layouts = [
      '{"choices":[{"index":0,"delta":{"content":"x \\"model\\":\\"upstream-model\\" y"}}],"model": "up"}',
      '{"moderation":{"model":"guard"},"choices":[],"model" :"up","id":"1"}',
      '{"model":"a\\"b","choices":[]}',
      '{"model":"","choices":[]}',
      '{"choices":[{"index":0,"delta":{"model":"inner"}}]}',
      '{"model":null,"choices":[]}',
      '{"model":"up","choices":[',
      'not json at all "choices" "model":"up"',
    ];
    const relay = openaiChatClient.answerRelay(answerContext());
    const sent = layouts.map((data) => {
      const [frame] = framesOf(`data: ${data}\n\n`);
      assert.ok(frame !== undefined);
      return String(relay.frame(frame, [])).slice(6, -2);
    });
    assert.deepEqual(sent, [
      '{"choices":[{"index":0,"delta":{"content":"x \\"model\\":\\"upstream-model\\" y"}}],"model":"my-model"}',
      '{"moderation":{"model":"guard"},"choices":[],"model":"my-model","id":"1"}',
      '{"model":"my-model","choices":[]}',
      '{"model":"my-model","choices":[]}',
      layouts[4],
      layouts[5],
      '{"model":"my-model","choices":[',
      layouts[7],
    ]);
  });

  test('C4 for any JSON, only the top-level model differs', () => {
    const value = fc.dictionary(fc.constantFrom('a', 'model', 'choices', '"x'), fc.jsonValue());
    fc.assert(
      fc.property(fc.array(fc.record({ body: value, model: fc.string() })), (frames) => {
        const relay = openaiChatClient.answerRelay(answerContext());
        for (const { body: any, model } of frames) {
          // Clients cannot read null choices: such a frame is dropped.
          const body = { ...any, choices: any['choices'] ?? [] };
          const [frame] = framesOf(`data: ${JSON.stringify({ ...body, model })}\n\n`);
          assert.ok(frame !== undefined);
          const sent = String(relay.frame(frame, [])).slice(6);
          assert.deepEqual(
            tryParseObject(sent),
            tryParseObject(JSON.stringify({ ...body, model: 'my-model' })),
          );
        }
      }),
    );
  });

  test('E6 the usage frame that the client did not ask for is dropped', () => {
    const text = sse(role, chunk({ content: 'a' }), finish, usageChunk, '[DONE]');
    const kept = answered(text, { wantsUsageFrame: false });
    assert.ok(!kept.includes('usage'));
    assert.ok(kept.endsWith('data: [DONE]\n\n'));
    assert.ok(answered(text).includes('"prompt_tokens":9'));
  });

  test('E6 usage that rides on another frame becomes null', () => {
    const text = sse(role, chunk({ content: 'a' }), chunk({}, 'stop', { usage }), '[DONE]');
    const kept = answered(text, { wantsUsageFrame: false });
    assert.ok(kept.includes('"usage":null') && kept.includes('"finish_reason":"stop"'));
    assert.ok(answered(text).includes('"usage":{"prompt_tokens":9'));
  });

  test('E6 a prompt count on the first frame is the gateway’s, one report is the client’s', () => {
    const early = chunk({ role: 'assistant' }, null, { usage: { prompt_tokens: 9 } });
    const kept = answered(sse(early, chunk({ content: 'a' }), finish, usageChunk, '[DONE]'));
    assert.equal(kept.match(/"usage":\{/g)?.length, 1);
  });

  test('E7 F55 usage in an odd place, or only known to the gateway, is told once, at the end', () => {
    const groq = sse(role, chunk({}, 'stop', { x_groq: { usage } }));
    const bare = sse(role, finish, { usage });
    for (const text of [groq, bare, groq + sse('[DONE]'), bare + sse('[DONE]')]) {
      const sent = framesOf(answered(text)).map((frame) => frame.data);
      assert.equal(sent.at(-1), '[DONE]');
      assert.deepEqual(tryParseObject(String(sent.at(-2))), {
        id: 'chatcmpl-1',
        object: 'chat.completion.chunk',
        created: 5,
        model: 'my-model',
        choices: [],
        usage,
      });
      assert.equal(
        sent.filter((data) => data?.includes('"usage":{"prompt_tokens":9,"c')).length,
        text.startsWith(groq) ? 2 : 1,
      );
      assert.ok(!answered(text, { wantsUsageFrame: false }).includes('"choices":[]'));
    }
  });

  test('calls without an index get one, with the type that clients need; others stay as they are', () => {
    const calls = (...tool_calls: readonly object[]) => chunk({ tool_calls });
    const call = (id: string, more: object = {}) => ({
      id,
      function: { name: 'f', arguments: '{}' },
      ...more,
    });
    const sent = framesOf(
      answered(
        sse(
          role,
          calls(call('a'), call('b')),
          calls(call('a')),
          calls({ function: { arguments: ' ' } }),
        ),
      ),
    ).flatMap((frame) => [
      ...String(frame.data).matchAll(/"index":(\d),(?:"type":"(\w+)",)?"(?:id|function)"/g),
    ]);
    assert.deepEqual(
      sent.map(([, index, type]) => [index, type]),
      [
        ['0', 'function'],
        ['1', 'function'],
        ['0', undefined],
        ['1', undefined],
      ],
    );
    const fine = sse(role, calls(call('a', { index: 0 })), '[DONE]');
    assert.equal(answered(fine), fine.replaceAll('"upstream-model"', '"my-model"'));
  });

  test('F49 frames without choices crash the clients: they are dropped', () => {
    const odd = [{ type: 'surprise' }, { choices: null, x: { choices: [] } }];
    assert.equal(answered(sse(...odd, role)), answered(sse(role)));
  });

  test('E3 comments pass, named events without data do not', () => {
    const text = `: OPENROUTER PROCESSING\n\nevent: ping\n\n${sse(role)}`;
    assert.ok(answered(text).startsWith(': OPENROUTER PROCESSING\n\ndata: {'));
    assert.ok(!answered(text).includes('event: ping'));
  });

  test('F52 a missing [DONE] is made up for, F53 what follows it is dropped', () => {
    assert.ok(answered(sse(role, finish)).endsWith('data: [DONE]\n\n'));
    const late = answered(sse(role, finish, '[DONE]', chunk({ content: 'late' }), '[DONE]'));
    assert.equal(late.match(/\[DONE\]/g)?.length, 1);
    assert.ok(!late.includes('late'));
  });

  for (const end of ['', '\n', '\r\n']) {
    test(`F51 a last frame that ends in ${JSON.stringify(end)} gets its blank line`, () => {
      const cut = `data: ${JSON.stringify(finish)}${end}`;
      const sent = answered(sse(role) + cut);
      assert.equal(framesOf(sent).length, 3);
      assert.ok(sent.endsWith('\n\ndata: [DONE]\n\n') || sent.endsWith('\r\n\ndata: [DONE]\n\n'));
      const done = answered(`${sse(role, finish)}data: [DONE]${end}`);
      assert.match(done, /data: \[DONE\]\r?\n\r?\n$/);
    });
  }

  test('F48 CR LF frames stay as they are', () => {
    const text = sse(role, finish, '[DONE]').replaceAll('\n', '\r\n');
    assert.equal(answered(text), text.replaceAll('"upstream-model"', '"my-model"'));
  });
});

describe('document', () => {
  const relay = () => openaiChatClient.answerRelay(answerContext());
  const document = (text: string) =>
    relay()
      .document({ bytes: Buffer.from(text), body: tryParseObject(text) ?? {} })
      .toString('utf8');

  test('C4 the model name, in the bytes', () => {
    assert.equal(
      document('{ "id":1.0, "model":"up", "choices":[{"model":"up"}] }'),
      '{ "id":1.0, "model":"my-model", "choices":[{"model":"up"}] }',
    );
  });

  test('F55 a usage that the gateway counted fills the gap', () => {
    const bytes = Buffer.from('{"id":"x","model":"my-model"}');
    const counted = { freshInputTokens: 3, outputTokens: 4 };
    assert.equal(
      relay()
        .document({ bytes, body: tryParseObject(bytes.toString()) ?? {} }, counted)
        .toString(),
      '{"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7},"id":"x","model":"my-model"}',
    );
    const told = Buffer.from('{"model":"my-model","usage":{"prompt_tokens":0}}');
    const body = tryParseObject(told.toString()) ?? {};
    assert.equal(
      relay().document({ bytes: told, body }, counted).toString(),
      '{"model":"my-model","usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}}',
    );
    assert.equal(relay().document({ bytes: told, body }), told);
  });

  test('nothing to change: the same buffer', () => {
    for (const body of [{ model: 'my-model' }, { id: 'x' }, { model: 5 }] as JsonObject[]) {
      const bytes = Buffer.from(JSON.stringify(body));
      assert.equal(relay().document({ bytes, body }), bytes);
    }
  });

  test('an answer too deep for the scan still gets its name', () => {
    const text = `{"model":"up","x":${'['.repeat(300)}${']'.repeat(300)}}`;
    assert.equal(tryParseObject(document(text))?.['model'], 'my-model');
  });
});
