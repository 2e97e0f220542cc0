import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Conversation, Part, Turn } from '../../../src/core/conversation.ts';
import { isObject, type Json, type JsonObject } from '../../../src/json/value.ts';
import type { UpstreamTraits } from '../../../src/core/traits.ts';
import { noted, refusalOf, writeWith } from './answer-context.ts';

const text = (words: string): Part => ({ type: 'text', text: words });
const call = (id: string, argumentsJson = '{}'): Part => ({
  type: 'tool-call',
  id,
  name: 'f',
  argumentsJson,
});
const result = (callId: string, ...parts: readonly Part[]): Part => ({
  type: 'tool-result',
  callId,
  parts,
  failed: false,
});
const user = (...parts: readonly Part[]): Turn => ({ role: 'user', parts });
const assistant = (...parts: readonly Part[]): Turn => ({ role: 'assistant', parts });
const system = (words: string): Turn => ({ role: 'system', parts: [text(words)] });
const hi = user(text('Hi'));

function messagesOf(turns: readonly Turn[], traits: Partial<UpstreamTraits> = {}): Json {
  return writeWith({ turns }, traits).body['messages'] ?? null;
}

describe('turns', () => {
  test('a plain conversation', () => {
    assert.deepEqual(writeWith({ system: [text('Be kind.'), text('Be brief.')] }).body, {
      model: 'claude',
      max_tokens: 8192,
      system: [
        { type: 'text', text: 'Be kind.' },
        { type: 'text', text: 'Be brief.' },
      ],
      messages: [{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }],
    });
  });

  test('B5 results right behind their calls, in call order, before all else', () => {
    const turns = [
      hi,
      assistant(call('a'), call('b')),
      user(result('b', text('2')), text('first')),
      user(result('a', text('1'))),
      user(text('second')),
    ];
    assert.deepEqual(messagesOf(turns), [
      { role: 'user', content: [{ type: 'text', text: 'Hi' }] },
      {
        role: 'assistant',
        content: [
          { type: 'tool_use', id: 'a', name: 'f', input: {} },
          { type: 'tool_use', id: 'b', name: 'f', input: {} },
        ],
      },
      {
        role: 'user',
        content: [
          { type: 'tool_result', tool_use_id: 'a', content: '1' },
          { type: 'tool_result', tool_use_id: 'b', content: '2' },
          { type: 'text', text: 'first' },
          { type: 'text', text: 'second' },
        ],
      },
    ]);
  });

  test('B3 empty text is dropped, and a message that has nothing left', () => {
    const turns = [hi, assistant(text(''), call('a')), user(result('a')), assistant(text(' \n'))];
    assert.deepEqual(messagesOf([...turns, user(text('Go'))]), [
      { role: 'user', content: [{ type: 'text', text: 'Hi' }] },
      { role: 'assistant', content: [{ type: 'tool_use', id: 'a', name: 'f', input: {} }] },
      {
        role: 'user',
        content: [
          { type: 'tool_result', tool_use_id: 'a' },
          { type: 'text', text: 'Go' },
        ],
      },
    ]);
    assert.match(
      refusalOf(() => messagesOf([user(text(' '))])),
      /^messages: /,
    );
  });

  test('3.7 a missing result and one without a call are refused', () => {
    const missing = [hi, assistant(call('a')), user(text('Go'))];
    assert.match(
      refusalOf(() => messagesOf(missing)),
      /^messages: .*no result/,
    );
    assert.match(
      refusalOf(() => messagesOf([hi, assistant(call('a')), assistant(text('x'))])),
      /^messages: .*no result/,
    );
    assert.match(
      refusalOf(() => messagesOf([user(result('a'))])),
      /^messages: .*does not answer/,
    );
  });

  test('A2 late instructions stay in place where the model takes them', () => {
    assert.deepEqual(messagesOf([hi, assistant(text('Yes?')), system('Note.'), user(text('Go'))]), [
      { role: 'user', content: [{ type: 'text', text: 'Hi' }] },
      { role: 'assistant', content: [{ type: 'text', text: 'Yes?' }] },
      { role: 'system', content: [{ type: 'text', text: 'Note.' }] },
      { role: 'user', content: [{ type: 'text', text: 'Go' }] },
    ]);
  });

  test('A2 A3 else they are tagged text of the user, never between a call and its result', () => {
    const turns = [hi, assistant(call('a')), system('Note.'), user(result('a'), text('Go'))];
    assert.deepEqual(messagesOf(turns, { systemAnywhere: false }), [
      { role: 'user', content: [{ type: 'text', text: 'Hi' }] },
      { role: 'assistant', content: [{ type: 'tool_use', id: 'a', name: 'f', input: {} }] },
      {
        role: 'user',
        content: [
          { type: 'tool_result', tool_use_id: 'a' },
          { type: 'text', text: '<system>Note.</system>' },
          { type: 'text', text: 'Go' },
        ],
      },
    ]);
  });

  test('A2 a turn more changes nothing of what was there', () => {
    for (const systemAnywhere of [true, false]) {
      const turns = [hi, assistant(call('a')), user(result('a')), system('One.')];
      const before = JSON.stringify(messagesOf(turns, { systemAnywhere }));
      const more = [...turns, assistant(text('Ok')), system('Two.'), user(text('Go'))];
      const after = JSON.stringify(messagesOf(more, { systemAnywhere }));
      assert.ok(after.startsWith(before.slice(0, -1)), after);
    }
  });

  test('B6 ids that are no ids here, or come again, are hashed on both sides', () => {
    const turns = [
      hi,
      assistant(call('call:0')),
      user(result('call:0')),
      assistant(call('x')),
      user(result('x')),
      assistant(call('x')),
      user(result('x')),
    ];
    const written = messagesOf(turns);
    assert.ok(Array.isArray(written));
    const ids = written
      .filter(isObject)
      .flatMap(({ content }) => (Array.isArray(content) ? content : []))
      .filter(isObject)
      .map((block) => block['id'] ?? block['tool_use_id'])
      .filter((id) => typeof id === 'string');
    assert.equal(new Set(ids).size, 3);
    assert.ok(ids.every((id) => /^[a-zA-Z0-9_-]+$/.test(id)));
    assert.deepEqual([ids[0], ids[2], ids[4]], [ids[1], ids[3], ids[5]]);
  });

  test('3.4 a last assistant turn is continued, or the model is asked to', () => {
    const turns = [hi, assistant(text('Once upon \n'))];
    const continued = messagesOf(turns);
    assert.ok(Array.isArray(continued));
    assert.deepEqual(continued.at(-1), {
      role: 'assistant',
      content: [{ type: 'text', text: 'Once upon' }],
    });
    const { body, notes } = writeWith({ turns }, { prefill: false });
    const asked = body['messages'];
    assert.ok(Array.isArray(asked));
    assert.deepEqual(asked.at(-1), {
      role: 'user',
      content: [{ type: 'text', text: 'Continue.' }],
    });
    assert.deepEqual(noted(notes), ['messages changed']);
  });

  test('3.1 instructions alone: the last becomes the question', () => {
    const { body, notes } = writeWith({ system: [text('One.'), text('Two.')], turns: [] });
    assert.deepEqual(body['system'], [{ type: 'text', text: 'One.' }]);
    assert.deepEqual(body['messages'], [
      { role: 'user', content: [{ type: 'text', text: 'Two.' }] },
    ]);
    assert.deepEqual(noted(notes), ['messages changed']);
  });

  test('B55 arguments: nothing, an object, another value, no JSON', () => {
    const turns = [
      hi,
      assistant(call('a', ''), call('b', '{"x":1}'), call('c', '[1]'), call('d', '{"x": tru')),
      user(...['a', 'b', 'c', 'd'].map((id) => result(id))),
    ];
    const { body, notes } = writeWith({ turns });
    const messages = body['messages'];
    assert.ok(Array.isArray(messages) && isObject(messages[1]));
    const { content } = messages[1];
    assert.ok(Array.isArray(content));
    assert.deepEqual(
      content.filter(isObject).map(({ input }) => input),
      [{}, { x: 1 }, { value: [1] }, { _raw: '{"x": tru' }],
    );
    assert.deepEqual(noted(notes), ['messages changed', 'messages changed']);
  });

  test('a name of a message is dropped and noted', () => {
    const { notes } = writeWith({ turns: [{ ...hi, name: 'Ann' }] });
    assert.deepEqual(noted(notes), ['messages.name lost']);
  });
});

describe('reasoning of earlier turns', () => {
  const thought = (more: object): Part => ({ type: 'reasoning', text: 'hm', ...more });
  const blocks = (part: Part, traits: Partial<UpstreamTraits> = {}): Json => {
    const written = messagesOf([hi, assistant(part, text('So.')), hi], traits);
    assert.ok(Array.isArray(written) && isObject(written[1]));
    const { content } = written[1];
    return Array.isArray(content) ? content.slice(0, -1) : null;
  };

  test('D1 what a messages server signed or encrypted goes back byte for byte', () => {
    assert.deepEqual(blocks(thought({ signature: 'sig==' })), [
      { type: 'thinking', thinking: 'hm', signature: 'sig==' },
    ]);
    assert.deepEqual(blocks({ type: 'reasoning', text: '', encrypted: 'e' }), [
      { type: 'redacted_thinking', data: 'e' },
    ]);
  });

  test('5.3 5.4 what is unsigned, sealed by the gateway or of another provider is never sent', () => {
    const foreign = { 'openai-chat': { format: 'google-gemini-v1' } };
    for (const more of [
      {},
      { signature: '' },
      { signature: 'gw1.abc' },
      { signature: 'x', extras: foreign },
    ]) {
      assert.deepEqual(blocks(thought(more)), [], JSON.stringify(more));
    }
    assert.deepEqual(blocks({ type: 'reasoning', text: '', encrypted: 'gw1.abc' }), []);
    assert.deepEqual(blocks(thought({ signature: 's' }), { thinking: 'none' }), []);
  });
});

describe('media', () => {
  const png = {
    type: 'media',
    kind: 'image',
    mediaType: 'image/png',
    source: { base64: 'AA' },
  } as const;
  const content = (part: Part, traits: Partial<UpstreamTraits> = {}): Json => {
    const written = messagesOf([user(part)], traits);
    assert.ok(Array.isArray(written) && isObject(written[0]));
    const blocks = written[0]['content'];
    return Array.isArray(blocks) ? (blocks[0] ?? null) : null;
  };

  test('images and documents in all their sources', () => {
    assert.deepEqual(content({ ...png, mediaType: 'image/jpg' }), {
      type: 'image',
      source: { type: 'base64', media_type: 'image/jpeg', data: 'AA' },
    });
    assert.deepEqual(content({ ...png, source: { url: 'https://x' } }), {
      type: 'image',
      source: { type: 'url', url: 'https://x' },
    });
    const document = { ...png, kind: 'document', mediaType: 'application/pdf' } as const;
    assert.deepEqual(content({ ...document, name: 'T' }), {
      type: 'document',
      source: { type: 'base64', media_type: 'application/pdf', data: 'AA' },
      title: 'T',
    });
    const plain = { type: 'text', media_type: 'text/plain', data: 'words' };
    const source = { text: 'words' };
    assert.deepEqual(content({ ...document, mediaType: 'text/csv', source }), {
      type: 'document',
      source: plain,
    });
    const base64 = Buffer.from('words').toString('base64');
    assert.deepEqual(content({ ...document, mediaType: 'text/csv', source: { base64 } }), {
      type: 'document',
      source: plain,
    });
  });

  test('what the upstream cannot take is refused in a turn', () => {
    const rows: readonly (readonly [Part, Partial<UpstreamTraits>])[] = [
      [png, { imageInput: 'none' }],
      [{ ...png, source: { url: 'https://x' } }, { imageInput: 'base64' }],
      [{ ...png, mediaType: 'image/tiff' }, {}],
      [{ ...png, kind: 'document', mediaType: 'application/zip' }, {}],
      [{ ...png, kind: 'document', mediaType: 'application/pdf' }, { fileInput: false }],
      [{ ...png, kind: 'audio' }, {}],
    ];
    for (const [part, traits] of rows) {
      assert.match(
        refusalOf(() => content(part, traits)),
        /^messages: This model does not take an? /,
      );
    }
  });

  test('3.8 an image in a result: native, or a placeholder where the model is blind', () => {
    const turns = [hi, assistant(call('a')), user(result('a', text('see'), png))];
    const inner = (traits: Partial<UpstreamTraits>): Json => {
      const written = messagesOf(turns, traits);
      assert.ok(Array.isArray(written) && isObject(written[2]));
      const blocks = written[2]['content'];
      assert.ok(Array.isArray(blocks) && isObject(blocks[0]));
      const inside = blocks[0]['content'];
      return Array.isArray(inside) ? (inside[1] ?? null) : null;
    };
    assert.deepEqual(inner({}), {
      type: 'image',
      source: { type: 'base64', media_type: 'image/png', data: 'AA' },
    });
    assert.deepEqual(inner({ imageInput: 'none' }), {
      type: 'text',
      text: '[image omitted: the model cannot see it]',
    });
  });
});

describe('cache marks', () => {
  const marked = (words: string, ttl?: string): Part => ({
    type: 'text',
    text: words,
    cacheUntilHere: ttl === undefined ? {} : { ttl },
  });
  const marksIn = (value: Json | undefined): number =>
    JSON.stringify(value ?? null).split('"cache_control"').length - 1;

  test('G1 marks stay at their places with their time', () => {
    const { body } = writeWith({
      system: [marked('s', '1h')],
      turns: [user(marked('u', '24h'), marked('v', '30m'))],
      tools: [{ name: 'f', schema: {}, cacheUntilHere: {} }],
    });
    const control = (value: Json | undefined): unknown =>
      Array.isArray(value) ? value.map((each) => isObject(each) && each['cache_control']) : value;
    assert.deepEqual(control(body['system']), [{ type: 'ephemeral', ttl: '1h' }]);
    assert.deepEqual(control(body['tools']), [{ type: 'ephemeral' }]);
    const messages = body['messages'];
    assert.ok(Array.isArray(messages) && isObject(messages[0]));
    assert.deepEqual(control(messages[0]['content']), [
      { type: 'ephemeral', ttl: '1h' },
      { type: 'ephemeral' },
    ]);
  });

  test('8 at most four: tools and system first, then the latest of the messages', () => {
    const turns = [1, 2, 3, 4].map((i) => user(marked(`u${i}`)));
    const { body, notes } = writeWith({ system: [marked('s')], turns });
    assert.equal(marksIn(body), 4);
    assert.equal(marksIn(body['system']), 1);
    const messages = body['messages'];
    assert.ok(Array.isArray(messages) && isObject(messages[0]));
    const { content } = messages[0];
    assert.ok(Array.isArray(content));
    assert.equal(marksIn(content[0]), 0);
    assert.equal(marksIn(content[3]), 1);
    assert.deepEqual(noted(notes), ['cache_control lost']);
  });

  test('a mark for the whole request counts too, and none is sent where none is known', () => {
    const system_ = [1, 2, 3, 4].map((i) => marked(`s${i}`));
    const extras = { 'anthropic-messages': { cache_control: { type: 'ephemeral' } } };
    assert.equal(marksIn(writeWith({ system: system_, extras }).body), 4);
    assert.equal(marksIn(writeWith({ system: system_, extras }, { cacheMarks: false }).body), 0);
  });
});

describe('G2 the same conversation gives the same bytes', () => {
  test('twice', () => {
    const conversation: Partial<Conversation> = {
      system: [text('s')],
      turns: [hi, assistant(call('call:0')), user(result('call:0'))],
      tools: [{ name: 'f', schema: { type: 'object' } }],
    };
    const [one, two] = [writeWith(conversation), writeWith(conversation)];
    assert.equal(JSON.stringify(one.body), JSON.stringify(two.body));
  });

  test('other dialects’ parts leave a note', () => {
    const value: JsonObject = { type: 'thing' };
    const { notes } = writeWith({
      turns: [user(text('x'), { type: 'opaque', dialect: 'gemini', value })],
    });
    assert.deepEqual(noted(notes), ['messages lost']);
  });
});
