import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Json, JsonObject } from '../../../src/json/value.ts';
import type { UpstreamTraits } from '../../../src/core/traits.ts';
import {
  messagesOf,
  pdf,
  pdfData,
  pdfPart,
  png,
  pngPart,
  says,
  text,
} from './conversation-pieces.ts';
import { refusedAt, translate, type From } from './translating.ts';

describe('§6 media', () => {
  const user = (from: From, part: JsonObject, traits: Partial<UpstreamTraits> = {}): Json =>
    messagesOf(from, [says('user', text('t'), part)], traits)[0]?.['content'] ?? null;
  const image = (url: string): JsonObject => ({ type: 'image_url', image_url: { url } });
  const base64 = (type: string, media: string, data: string): JsonObject => ({
    type,
    source: { type: 'base64', media_type: media, data },
  });
  const file = (more: JsonObject): JsonObject => ({ type: 'file', file: more });
  const plain = (data: string, more: JsonObject = {}): JsonObject => ({
    type: 'document',
    source: { type: 'text', media_type: 'text/plain', data },
    ...more,
  });

  const rows: readonly (readonly [string, From, JsonObject, JsonObject])[] = [
    ['a data URL', 'chat', pngPart, png],
    [
      'image/jpg',
      'chat',
      image('data:image/jpg;base64,AAAA'),
      base64('image', 'image/jpeg', 'AAAA'),
    ],
    ['a PDF in an image part', 'chat', image(`data:application/pdf;base64,${pdfData}`), pdf],
    [
      'an address, its detail left out',
      'chat',
      { type: 'image_url', image_url: { url: 'https://x.example/a.png', detail: 'high' } },
      { type: 'image', source: { type: 'url', url: 'https://x.example/a.png' } },
    ],
    ['a PDF', 'chat', pdfPart('a.pdf'), { ...pdf, title: 'a.pdf' }],
    [
      'a PDF at an address (D4)',
      'chat',
      file({ filename: 'a.pdf', file_data: 'https://x.example/a.pdf?v=1' }),
      {
        type: 'document',
        source: { type: 'url', url: 'https://x.example/a.pdf?v=1' },
        title: 'a.pdf',
      },
    ],
    [
      'an image under the name of another (D4)',
      'chat',
      image(`data:image/png;base64,/9j/${'A'.repeat(20)}`),
      base64('image', 'image/jpeg', `/9j/${'A'.repeat(20)}`),
    ],
    [
      'bare base64 by its name',
      'chat',
      file({ filename: 'a.pdf', file_data: pdfData }),
      { ...pdf, title: 'a.pdf' },
    ],
    ['bare base64 by its first bytes', 'chat', file({ file_data: pdfData }), pdf],
    [
      'a text file',
      'chat',
      file({ filename: 'a.txt', file_data: Buffer.from('héllo').toString('base64') }),
      plain('héllo', { title: 'a.txt' }),
    ],
    ['an image', 'messages', png, pngPart],
    [
      'image/jpg',
      'messages',
      base64('image', 'image/jpg', 'AAAA'),
      image('data:image/jpeg;base64,AAAA'),
    ],
    [
      'an address',
      'messages',
      { type: 'image', source: { type: 'url', url: 'https://x.example/a.png' } },
      image('https://x.example/a.png'),
    ],
    ['a PDF', 'messages', pdf, pdfPart()],
    ['a PDF with a title', 'messages', { ...pdf, title: 'a.pdf' }, pdfPart('a.pdf')],
    [
      'a text document under its title and context',
      'messages',
      plain('body', { title: 'T', context: 'C' }),
      text('T — C\n\nbody'),
    ],
    [
      'a search result',
      'messages',
      { type: 'search_result', source: 's', title: 'T', content: [text('a'), text('b')] },
      text('T\ns\na\nb'),
    ],
  ];
  for (const [what, from, part, expected] of rows) {
    test(`§6 ${from}: ${what}`, () => assert.deepEqual(user(from, part), [text('t'), expected]));
  }

  test('§6 messages: a document of blocks', () => {
    const block = {
      type: 'document',
      title: 'T',
      source: { type: 'content', content: [text('a'), png] },
    };
    assert.deepEqual(user('messages', block), [text('t'), text('T'), text('a'), pngPart]);
  });

  const refusals: readonly (readonly [
    string,
    From,
    JsonObject,
    string,
    Partial<UpstreamTraits>?,
  ])[] = [
    ['another type of image', 'chat', image('data:image/tiff;base64,AAAA'), 'image_url.url'],
    ['a file id', 'chat', file({ file_id: 'x' }), 'file.file_id'],
    [
      'a text at an address (D4)',
      'chat',
      file({ file_data: 'https://x.example/a.txt' }),
      'file.file_data',
    ],
    ['another file', 'chat', file({ filename: 'a.zip', file_data: 'UEsDBA==' }), 'file.file_data'],
    [
      'audio',
      'chat',
      { type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } },
      'input_audio',
    ],
    [
      'a file id',
      'messages',
      { type: 'image', source: { type: 'file', file_id: 'x' } },
      'source.type',
    ],
    [
      'a file id of a document',
      'messages',
      { type: 'document', source: { type: 'file', file_id: 'x' } },
      'source.type',
    ],
    [
      'the address of a document',
      'messages',
      { type: 'document', source: { type: 'url', url: 'https://x.example/a.pdf' } },
      '',
    ],
    ['an image without vision', 'messages', png, '', { imageInput: 'none' }],
    [
      'an address that cannot be fetched',
      'messages',
      { type: 'image', source: { type: 'url', url: 'https://x.example/a.png' } },
      '',
      { imageInput: 'base64' },
    ],
    ['a PDF where no files are taken', 'messages', pdf, '', { fileInput: false }],
  ];
  for (const [what, from, part, path, traits] of refusals) {
    test(`§6 REJECT ${from}: ${what}`, () => {
      const messages = [says('user', text('t'), part)];
      const where = ['messages.0.content.1', path].filter((each) => each !== '').join('.');
      assert.equal(refusedAt(from, { messages }, traits), where);
    });
  }

  test('§6 chat: an image without vision is refused', () => {
    const request = { messages: [says('user', text('t'), pngPart)] };
    assert.match(refusedAt('chat', request, { imageInput: 'none' }), /^messages/);
  });

  test('§6 messages: what is dropped is noted', () => {
    const cited = { ...pdf, citations: { enabled: true } };
    const strictImage = { ...png, transformations: { oversized_image: 'error' } };
    const { notes } = translate('messages', { messages: [says('user', cited, strictImage)] });
    assert.deepEqual(notes, [
      'lost messages.0.content.1.transformations',
      'lost messages.0.content.0.citations',
    ]);
  });
});
