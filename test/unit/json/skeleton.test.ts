import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import * as fc from 'fast-check';
import { isObject, type Json, type JsonObject } from '../../../src/json/value.ts';
import {
  parseBody,
  parseClientBody,
  parseLongBody,
  type JsonSource,
} from '../../../src/core/client-body.ts';
import { featureBits, featureTexts, walkOver } from '../../../src/json/skeleton.ts';
import { Pieces } from '../../../src/json/pieces.ts';
import { anthropicMessagesClient } from '../../../src/dialects/anthropic-messages/client.ts';
import { openaiChatClient } from '../../../src/dialects/openai-chat/client.ts';
import { anyCharacter } from '../../support/any-character.ts';

/** A body that is short enough to be parsed here. */
function parsed(...given: Parameters<typeof parseClientBody>): JsonSource {
  const source = parseClientBody(...given);
  assert.ok(source !== undefined);
  return source;
}

/** Short bodies have no skeleton: this makes them long, and says nothing. */
const space = ' '.repeat(16_384);
const long =
  'a text that is long enough to be left out of a skeleton, and so it is: "é" \\ \n \u2028 😀';

function walked(text: string): Walked | undefined {
  return walkedIn(Pieces.of(Buffer.from(text + space)));
}

type Walked = Omit<NonNullable<ReturnType<typeof walkOver>>, 'skeleton'> & {
  readonly skeleton: JsonObject;
};

function walkedIn(pieces: Pieces): Walked | undefined {
  const found = walkOver(pieces);
  if (found === undefined) return undefined;
  const skeleton: JsonObject = JSON.parse(found.skeleton);
  return { ...found, skeleton };
}

function keys(): ReadonlySet<string> {
  return new Set();
}

/** What the contract of outlines says may be missing is missing in both. */
function without(value: Json | undefined, key: string, depth: number): Json | undefined {
  const texts = ['content', 'text', 'arguments', 'description', 'thinking'];
  if (typeof value === 'string') return texts.includes(key) && depth > 2 ? '' : value;
  const isInner = ['parameters', 'input_schema', 'input'].includes(key) && depth > 2;
  if (Array.isArray(value) && isInner) return [];
  if (Array.isArray(value)) return value.map((each: Json) => without(each, '', depth + 1) ?? null);
  if (!isObject(value)) return value;
  if (isInner) return {};
  return Object.fromEntries(
    Object.entries(value).map(([name, each]) => [name, without(each, name, depth + 1) ?? null]),
  );
}

const texts = fc.oneof(
  fc.constantFrom(long, '', '\\u0041', 'é', '\ud800', '"', '\u007f'),
  fc.string({ unit: anyCharacter, maxLength: 100 }),
);
const names = fc.constantFrom(
  'role',
  'content',
  'text',
  'type',
  'function',
  'name',
  'parameters',
  'input_schema',
  'input',
  'description',
  'arguments',
  'thinking',
  'messages',
  'tools',
  'model',
  '__proto__',
  'é',
  '',
);
const { tree } = fc.letrec<{ tree: Json }>((tie) => ({
  tree: fc.oneof(
    { maxDepth: 7, depthSize: 'small', withCrossShrink: true },
    fc.oneof(
      texts,
      fc.boolean(),
      fc.constant(null),
      fc.integer(),
      fc.constantFrom(0.5, -2.25, 1e21),
    ),
    fc.array(tie('tree'), { maxLength: 4 }),
    fc.dictionary(names, tie('tree'), { maxKeys: 5 }),
  ),
}));
const bodies = fc.record(
  { model: texts, messages: tree, tools: tree, metadata: tree, stop: tree },
  { requiredKeys: [] },
);

test('B39 B26 what has a skeleton is JSON, and its spans, tokens and values are those of a parse', () => {
  let found = 0;
  fc.assert(
    fc.property(bodies, fc.constantFrom(undefined, 1, '\t'), (body, indent) => {
      const text = JSON.stringify(body, null, indent);
      const skeleton = walked(text);
      if (skeleton === undefined) return;
      found += 1;
      const parsed = parseBody(Buffer.from(text + space), keys());
      assert.deepEqual([...skeleton.spans], [...parsed.spans]);
      assert.equal(skeleton.tokens, parsed.tokens);
      assert.equal(skeleton.bodyStart, parsed.bodyStart);
      assert.equal(parsed.unambiguous, true);
      for (const key of Object.keys(body)) {
        const mine: Json | undefined = skeleton.skeleton[key];
        const whole: Json | undefined = parsed.value[key];
        if (key !== 'messages' && key !== 'tools') assert.deepEqual(mine, whole);
        else assert.deepEqual(without(mine, key, 1), without(whole, key, 1));
      }
    }),
    { numRuns: 3000 },
  );
  assert.ok(found > 1000, `${found} had a skeleton`);
});

test('B26 B39 a spoiled body has no skeleton unless a parse takes it just as well', () => {
  const good = JSON.stringify({
    model: 'a',
    messages: [
      { role: 'user', content: long, tool_calls: [{ input: { a: [1, -2.5, true, null] } }] },
    ],
    tools: [
      { type: 'function', function: { name: 'f', description: long, parameters: { x: [] } } },
    ],
  });
  const bytes = Buffer.from(good);
  const spoilers = [...'{}[]",:\\0-.eE tfn\n\0é', '"model":1,', '\\u00', '1e999', ',,', '\ufeff'];
  const judge = (spoiled: Buffer): void => {
    const skeleton = walkedIn(Pieces.of(Buffer.concat([spoiled, Buffer.from(space)])));
    if (skeleton === undefined) return;
    const parsed = parseBody(spoiled, keys());
    assert.equal(parsed.unambiguous, true);
    assert.deepEqual([...skeleton.spans], [...parsed.spans]);
    assert.equal(skeleton.tokens, parsed.tokens);
    assert.deepEqual(Object.keys(skeleton.skeleton), Object.keys(parsed.value));
  };
  for (let at = 0; at <= bytes.length; at++) {
    judge(Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + 1)]));
    judge(bytes.subarray(0, at));
    for (const spoiler of spoilers) {
      const more = Buffer.from(spoiler);
      judge(Buffer.concat([bytes.subarray(0, at), more, bytes.subarray(at)]));
      judge(Buffer.concat([bytes.subarray(0, at), more, bytes.subarray(at + more.length)]));
    }
  }
});

describe('what is unsupported has no skeleton, and is read as ever', () => {
  const rows: readonly (readonly [string, string])[] = [
    ['B39 a key twice on the top level', '{"model":"a","model":"b"}'],
    ['B39 a key twice in depth', '{"x":[{"a":1,"b":2,"a":3}]}'],
    [
      'B39 a key twice inside of what is left out',
      '{"messages":[{"content":[{"input":{"a":1,"a":2}}]}]}',
    ],
    ['B39 a key that is written with an escape', '{"mod\\u0065l":"b"}'],
    ['B39 a key with an escape beside the plain one', '{"model":"a","\\u006dodel":"b"}'],
    [
      'B38 more than 64 keys in one object',
      JSON.stringify(Object.fromEntries(Array.from({ length: 65 }, (_, i) => [`k${i}`, i]))),
    ],
    ['B38 a long key', `{"${'k'.repeat(1025)}":1}`],
    ['B41 a number beyond double', '{"x":1e400}'],
    ['B41 more digits than a double holds', '{"x":12345678901234567}'],
    ['B26 a number with a leading zero', '{"x":01}'],
    ['B26 a number that ends in a point', '{"x":1.}'],
    ['B26 a lonely minus', '{"x":-}'],
    ['B26 a raw control character', '{"x":"a\u0001b"}'],
    ['B26 a raw line end in a text', `{"x":"${'a'.repeat(40)}\n"}`],
    ['B26 an escape that is none', '{"x":"\\x41"}'],
    ['B26 half an escape', '{"x":"\\u00g1"}'],
    ['B26 a comma too many', '{"x":[1,]}'],
    ['B26 a comma before all', '{"x":[,1]}'],
    ['B26 a colon in a list', '{"x":["a":1]}'],
    ['B26 brackets of two kinds', '{"x":[1}]'],
    ['B26 a word that is none', '{"x":nul}'],
    ['B26 two values', '{"x":1}{"x":1}'],
    ['B26 no object', '[1]'],
    ['B26 nothing', ''],
    ['B36 more than 128 levels', `{"x":${'['.repeat(128)}${']'.repeat(128)}}`],
    ['a zero byte behind it', '{"x":1}\0'],
  ];
  for (const [name, text] of rows) {
    test(name, () => assert.equal(walked(text), undefined));
  }

  test('B40 bytes that are no UTF-8, also in what is omitted', () => {
    const text = Buffer.from(
      `{"messages":[{"content":"${long.replaceAll(/["\\\n]/g, '')}~"}]}${space}`,
    );
    assert.notEqual(walkOver(Pieces.of(text)), undefined);
    text[text.indexOf('~')] = 0xff;
    assert.equal(walkOver(Pieces.of(text)), undefined);
  });

  test('G11 keys that are alike but for their end are not compared for long', () => {
    const object = `{${Array.from({ length: 60 }, (_, i) => `"${'k'.repeat(200)}${i + 10}":1`).join()}}`;
    assert.equal(walked(`{"x":[${Array.from({ length: 40 }, () => object).join()}]}`), undefined);
  });

  test('128 levels and 64 keys are not unsupported', () => {
    assert.notEqual(walked(`{"x":${'['.repeat(127)}${']'.repeat(127)}}`), undefined);
    const entries = Array.from({ length: 64 }, (_, i) => [`k${i}`, i]);
    assert.equal(walked(JSON.stringify(Object.fromEntries(entries)))?.spans.size, 64);
  });
});

test('nothing of an earlier body is in a later one, whatever their lengths', () => {
  const first = walked(
    JSON.stringify({ model: 'first', messages: [{ content: long.repeat(500) }] }),
  );
  const second = walked('{"model":"second"');
  const third = walked('{"model":"third"}');
  assert.deepEqual(first?.skeleton, { model: 'first', messages: [{ content: '~' }] });
  assert.equal(second, undefined);
  assert.deepEqual(third?.skeleton, { model: 'third' });
});

test('G11 a body of megabytes is walked in the thread, and read as a parsed one is', () => {
  const message = { role: 'user', content: long.repeat(200) };
  const plain = { model: 'é', messages: Array.from({ length: 200 }, () => message), top_k: 5 };
  const bodies = [
    JSON.stringify(plain),
    // Little can be cut out, and a key occurs twice: both are parsed.
    JSON.stringify({ model: 'm', input: [message.content.repeat(90)] }),
    `{"x":[{"a":1,"a":2}],${JSON.stringify(plain).slice(1)}`,
  ];
  const isWalked = bodies.map((text) => {
    const bytes = Buffer.from(text);
    assert.ok(bytes.length > 1024 * 1024);
    assert.equal(walkOver(Pieces.of(bytes)), undefined, 'it is too long for the event loop');
    const [found, expected] = [parseLongBody(bytes, keys()), parseBody(bytes, keys())];
    for (const member of ['tokens', 'unambiguous', 'bodyStart', 'spans'] as const) {
      assert.deepEqual(found[member], expected[member]);
    }
    const skeleton = JSON.stringify(found.skeleton);
    assert.deepEqual(found.value, expected.value);
    return skeleton.length < text.length / 2;
  });
  assert.deepEqual(isWalked, [true, false, false]);
  // The memory has grown: a short one is still walked on its own.
  assert.deepEqual(walked('{"model":"short"}')?.skeleton, { model: 'short' });
});

test('a body is walked alike wherever it is cut into pieces', () => {
  const text = JSON.stringify({ model: 'é', messages: [{ role: 'user', content: long }] });
  const bytes = Buffer.from(text + space);
  const whole = walkOver(Pieces.of(bytes));
  assert.notEqual(whole, undefined);
  for (let at = 0; at <= text.length + 5; at++) {
    const pieces = new Pieces([bytes.subarray(0, at), bytes.subarray(at)]);
    assert.deepEqual(walkOver(pieces), whole);
  }
});

describe('the heads of both dialects are checked alike with a skeleton', () => {
  const outcome = (read: () => unknown): unknown => {
    try {
      return read();
    } catch (error) {
      return String(error);
    }
  };
  const part = fc.record(
    {
      type: fc.constantFrom('text', 'tool_use', 'tool_result', 'thinking', 'image_url', 'x'),
      text: texts,
      thinking: texts,
      id: texts,
      name: texts,
      tool_use_id: texts,
      input: tree,
      content: tree,
    },
    { requiredKeys: ['type'] },
  );
  const message = fc.record(
    {
      role: fc.constantFrom('user', 'assistant', 'tool', 'system', 'nobody'),
      content: fc.oneof(texts, fc.array(part, { maxLength: 3 }), tree),
      tool_calls: fc.array(
        fc.record(
          { id: texts, function: fc.record({ name: texts, arguments: fc.oneof(texts, tree) }) },
          { requiredKeys: ['id'] },
        ),
        { maxLength: 2 },
      ),
      tool_call_id: texts,
    },
    { requiredKeys: ['role'] },
  );
  const definition = fc.record(
    { name: fc.constantFrom('f', 'g', long), description: fc.oneof(texts, tree), parameters: tree },
    { requiredKeys: ['name'] },
  );
  const tool = fc.oneof(
    fc.record({ type: fc.constant('function'), function: definition }),
    fc.record({ name: fc.constantFrom('f', 'g'), description: texts, input_schema: tree }),
    tree,
  );
  const requests = fc.record(
    {
      model: fc.constantFrom('m', long),
      max_tokens: fc.constant(10),
      messages: fc.array(message, { maxLength: 4 }),
      tools: fc.array(tool, { maxLength: 3 }),
      tool_choice: fc.constantFrom('auto', 'required', 'x'),
    },
    { requiredKeys: ['model', 'messages', 'max_tokens'] },
  );
  for (const dialect of [openaiChatClient, anthropicMessagesClient]) {
    test(dialect.id, () => {
      fc.assert(
        fc.property(requests, (request) => {
          const skeleton = walked(JSON.stringify(request));
          if (skeleton === undefined) return;
          const body: Json = JSON.parse(JSON.stringify(request));
          assert.ok(isObject(body));
          assert.deepEqual(
            outcome(() => dialect.readHead(skeleton.skeleton)),
            outcome(() => dialect.readHead(body)),
          );
        }),
        { numRuns: 2000 },
      );
    });
  }
});

test('S7 models that tools and members name are in a skeleton, also beside long texts', () => {
  const body = {
    model: 'a',
    models: ['b'],
    fallbacks: [{ model: 'c' }],
    tools: [
      { type: 'advisor', name: 'x', model: 'd', description: long },
      { type: 'server', parameters: { model: 'e', description: long } },
      { type: 'server', models: ['f'] },
    ],
    plugins: [{ id: 'fusion', model: 'g', parameters: { model: 'h' } }],
  };
  const skeleton = walked(JSON.stringify(body))?.skeleton ?? {};
  const short = (value: JsonObject): string =>
    JSON.stringify(value, (key, each: Json) => (key === 'description' ? '' : each));
  assert.equal(short(skeleton), short(body));
});

test('the value of an walked body is all of it, also when it was forgotten', async () => {
  const body = { model: 'a', messages: [{ role: 'user', content: long }] };
  const bytes = Buffer.from(JSON.stringify(body) + space);
  const source = parsed(bytes, new Set(['model']));
  assert.notDeepEqual(source.skeleton, body);
  assert.deepEqual(source.value, body);
  source.forget();
  assert.deepEqual(source.value, body);
  assert.deepEqual(source.skeleton, body);
});

test('a skeleton stays what it is when the value is forgotten', async () => {
  const body = { model: 'a', messages: [{ role: 'user', content: 'x'.repeat(20_000) }] };
  const source = parsed(Buffer.from(JSON.stringify(body)), new Set());
  const { skeleton } = source;
  source.forget();
  assert.deepEqual(source.skeleton, skeleton);
  assert.notDeepEqual(source.skeleton, body);
  assert.deepEqual(source.value, body);
});

test('G5 a skeleton with much in it is forgotten with the value, and read again', async () => {
  const body = { system: 'x'.repeat(20_000), messages: [{ role: 'user', content: long }] };
  const source = parsed(Buffer.from(JSON.stringify(body)), new Set());
  assert.notDeepEqual(source.skeleton, body);
  source.forget();
  assert.deepEqual(source.skeleton, body);
});

test('B39 texts of backslashes are no keys, whatever was parsed before', async () => {
  const messages = [{ eleven: 1, '~': ['\\', '\n', '"', '名'] }];
  // After that V8 reads some other keys with escapes as this one; what has a skeleton has none.
  for (let i = 0; i < 3; i++) JSON.parse('{"eleven":1,"\\\\":2}');
  const source = parsed(Buffer.from(JSON.stringify({ messages }) + space), new Set());
  source.forget();
  assert.deepEqual(source.value, { messages });
  for (const key of ['\\', '\n', '"', '\u0001']) {
    const unsupported = JSON.stringify({ messages: [{ eleven: 1, [key]: 2 }] });
    assert.equal(walked(unsupported), undefined);
    const read = parsed(Buffer.from(unsupported + space), new Set());
    assert.deepEqual(read.value, { messages: [{ eleven: 1, [key]: 2 }] });
  }
});

test('the assembled walk is the one of walk.wat', () => {
  const script = join(import.meta.dirname, '../../../scripts/assemble-walk.mjs');
  const { status, stderr } = spawnSync(process.execPath, [script, '--check'], { encoding: 'utf8' });
  assert.equal(status, 0, stderr);
});

test('walk.wat finds each text of `featureTexts`, as a value and as a name', () => {
  const bits = new Map<string, number>(Object.entries(featureBits));
  for (const [feature, texts] of Object.entries(featureTexts)) {
    for (const text of texts) {
      // An escape is whole with two more digits; the quotes of the others are those of the string.
      const inside = feature === 'escape' ? `${text}e9` : text.replaceAll('"', '');
      const bodies =
        feature === 'escape' ? [`{"a":"${inside}"}`] : [`{"a":"${inside}"}`, `{"${inside}":1}`];
      for (const body of bodies) {
        assert.ok(body.includes(text), body);
        assert.notEqual((walked(body)?.features ?? 0) & (bits.get(feature) ?? 0), 0, body);
      }
    }
  }
  assert.equal(walked('{"a":"b"}')?.features, 0);
});
