import assert from 'node:assert/strict';
import { test } from 'node:test';
import { countTokens as cl100k } from 'gpt-tokenizer/encoding/cl100k_base';
import { countTokens as o200k } from 'gpt-tokenizer/encoding/o200k_base';
import { promptOf } from '../../../src/dialects/shared/body/prompt.ts';
import { TokenEstimator } from '../../../src/gateway/call-size.ts';
import {
  countPrompt,
  estimatePrompt,
  estimateText,
  sampleJson,
  samplePrompt,
} from '../../../src/tokens/prompt.ts';
import { samples } from './samples.ts';

/** The stated bound (docs/user/counting.md): a guess is at most 10 % below a tokenizer's count. */
const lowest = 0.9;
/** Not promised, but a guess that is far too high is of no use: prose, code and JSON. */
const highestOfCommon = 1.6;
const common = ['English prose', 'licence', 'TypeScript', 'JSON, minified', 'JSON, indented'];

const guess = (text: string): number =>
  new TokenEstimator().promptAtMost('p/unlearned', estimateText(text));

for (const [kind, text] of Object.entries(samples)) {
  test(`F5 the guess for ${kind} is at most 10 % below two public tokenizers`, () => {
    const counts = [o200k(text), cl100k(text)];
    const counted = Math.max(...counts);
    const guessed = guess(text);
    assert.ok(guessed >= lowest * counted, `${guessed} for ${counts.join(' and ')}`);
    if (common.includes(kind)) {
      assert.ok(
        guessed <= highestOfCommon * Math.min(...counts),
        `${guessed} for ${counts.join()}`,
      );
    }
  });
}

test('F5 bytes / 4 would break the bound for CJK and base64', () => {
  for (const kind of ['Japanese', 'base64']) {
    const text = samples[kind] ?? '';
    assert.ok(Buffer.byteLength(text) / 4 < lowest * cl100k(text), kind);
  }
});

test('a guess of a mixture holds as well, and grows with the text', () => {
  const all = Object.values(samples).join('\n');
  assert.ok(guess(all) >= lowest * Math.max(o200k(all), cl100k(all)));
  assert.equal(estimateText(''), 0);
  let before = 0;
  for (let length = 0; length < all.length; length += 997) {
    const now = estimateText(all.slice(0, length));
    assert.ok(now >= before - 1);
    before = now;
  }
});

test('F5 B30 a count looks at a part of what no model could read, and at all of the rest', () => {
  const all = Object.values(samples).join('\n');
  const promptOfTexts = (...texts: string[]) => ({ texts, media: [], frameTokens: 9 });
  const long = promptOfTexts(all.repeat(Math.ceil(5_000_000 / all.length)), all);
  const [counted, whole] = [countPrompt(long, Math.random), estimatePrompt(long)];
  assert.notEqual(counted, whole);
  assert.ok(Math.abs(counted / whole - 1) < 0.02, `${counted} for ${whole}`);
  const usual = promptOfTexts(all.repeat(Math.floor(1_900_000 / all.length)));
  assert.equal(countPrompt(usual, Math.random), estimatePrompt(usual));
});

test('F1 a sample of a long prompt is close to the whole, and looks at a part only', () => {
  const all = Object.values(samples).join('\n');
  const messages = Array.from({ length: 12 }, (_, i) => ({
    role: i % 2 === 0 ? 'user' : 'assistant',
    content: all.slice(i * 997) + all,
  }));
  const prompt = promptOf({ messages });
  const whole = estimatePrompt(prompt);
  const sampled = samplePrompt(prompt);
  assert.ok(Math.abs(sampled - whole) < 0.15 * whole, `${sampled} of ${whole}`);
  const short = promptOf({ messages: [{ role: 'user', content: 'Hello' }] });
  assert.equal(samplePrompt(short), estimatePrompt(short));
});

test('a prompt is all of its parts, wherever they stand, in their order', () => {
  const parts = (from: number) =>
    Array.from({ length: 5000 }, (_, i) => ({ type: 'text', text: `part ${from + i}` }));
  const result = { type: 'tool_result', tool_use_id: 't', content: parts(10_000) };
  const body = {
    system: parts(0),
    messages: [
      { role: 'user', content: parts(5000) },
      { role: 'assistant', content: [{ type: 'tool_use', id: 't', name: 'f', input: { a: [1] } }] },
      { role: 'user', content: [result, 'last', ''] },
    ],
    tools: [{ name: 'f' }],
  };
  const { texts, media, frameTokens } = promptOf(body);
  const told = texts.filter((text) => !text.startsWith('part '));
  assert.deepEqual(told, ['user', 'assistant', 'f', '{"a":[1]}', 'user', 'last', '{"name":"f"}']);
  const places = texts.filter((text) => text.startsWith('part ')).map((text) => text.slice(5));
  assert.deepEqual(
    places,
    Array.from({ length: 15_000 }, (_, i) => String(i)),
  );
  // The frames of the prompt, three messages, a tool, and all parts, of which messages are some.
  assert.deepEqual([media.length, frameTokens], [0, 8 + 3 * 5 + 12 + 2 * (15_000 + 3 + 2)]);
});

test('pictures count by a constant or their size, never by the letters of their base64', () => {
  const data = Buffer.alloc(600_000, 1).toString('base64');
  const source = { type: 'base64', media_type: 'image/png', data };
  const inMessages = promptOf({
    messages: [{ role: 'user', content: [{ type: 'image', source }] }],
  });
  const url = `data:image/png;base64,${data}`;
  const inChat = promptOf({
    messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }],
  });
  for (const prompt of [inMessages, inChat]) {
    assert.equal(prompt.media.length, 1);
    const tokens = estimatePrompt(prompt);
    assert.ok(tokens > 1000 && tokens < 2000, String(tokens));
  }
});

test('Q1 F5 nothing costs many times what it is guessed at, whatever it is made of', () => {
  const repeated = (make: (i: number) => string): string =>
    Array.from({ length: 4000 }, (_, i) => make(i)).join('');
  const from = (first: number, count: number): string =>
    repeated((i) => String.fromCodePoint(first + ((i * 7919) % count)));
  const odd: { readonly [kind: string]: string } = {
    newlines: '\n'.repeat(4000),
    blanks: repeated((i) => (i % 2 === 0 ? ' ' : '\t')),
    tabs: '\t'.repeat(4000),
    digits: repeated((i) => `${i % 10} `),
    controls: '\u0001\u007f'.repeat(2000),
    'rare Cyrillic': from(0x460, 0xc0),
    Syriac: from(0x700, 0x100),
    Arabic: from(0x600, 0x100),
    Braille: from(0x2800, 0x100),
    'rare Han': from(0x3400, 0x1900),
    Hangul: from(0xac00, 0x2b00),
    Greek: from(0x370, 0x8f),
    private: from(0xe000, 0x1900),
    capitals: repeated((i) => (i % 2 === 0 ? 'Q' : 'x')),
  };
  for (const [kind, text] of Object.entries(odd)) {
    const counted = Math.max(o200k(text), cl100k(text));
    assert.ok(counted <= 2 * guess(text), `${kind}: ${counted} for ${guess(text)}`);
  }
});

test('Q1 no text can be hidden between the pieces of a long prompt that are looked at', () => {
  const heavy = '\u3401'.repeat(800);
  const light = '\n'.repeat(800);
  const whole = 3000 * estimatePrompt({ texts: [light + heavy], media: [], frameTokens: 0 });
  for (const texts of [
    [(light + heavy).repeat(3000)],
    [(heavy + light).repeat(3000)],
    Array.from({ length: 6000 }, (_, i) => (i % 2 === 0 ? light : heavy)),
  ]) {
    const counted = countPrompt({ texts, media: [], frameTokens: 0 }, Math.random);
    assert.ok(Math.abs(counted / whole - 1) < 0.15, `${counted} of ${whole}`);
  }
});

test('F55 a sample of JSON reads its escapes, also where a client writes all of a script so', () => {
  for (const text of [
    '一段很长的文字。',
    'Ein längerer Text\n\t"mit Zeichen"\n',
    'plain words, and more of them ',
  ]) {
    const body = { messages: [{ role: 'user', content: text.repeat(20_000) }] };
    const json = JSON.stringify(body.messages);
    const ascii = json.replace(
      /[^\0-\x7f]/g,
      (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
    );
    const whole = samplePrompt(promptOf(body));
    for (const written of [json, ascii]) {
      const bytes = Buffer.from(written);
      const sampled = sampleJson([bytes.subarray(0, 1000), bytes.subarray(1000)]);
      assert.ok(Math.abs(sampled / whole - 1) < 0.1, `${text}: ${sampled} of ${whole}`);
    }
  }
});

test('F55: base64 of a file or of sealed reasoning is no text in the sample of a long body', () => {
  const text = 'plain words, and more of them '.repeat(2000);
  const sealed = 'aB3+/9'.repeat(200_000);
  const sampled = sampleJson([Buffer.from(JSON.stringify([{ text }, { signature: sealed }]))]);
  const whole = samplePrompt({ texts: [text], media: [], frameTokens: 0 });
  assert.ok(sampled < 2 * whole, `${sampled} of ${whole}`);
});
