/** Documents that are cited, by Converse (wire/bedrock.md §5.1, §10.1; case 56). */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import { isObject, type JsonObject } from '../../src/json/value.ts';
import { clientDialects } from '../support/dialects.ts';
import { send, type Reply } from '../support/http.ts';
import { clientKey } from '../support/keys.ts';
import { listAt } from '../support/members.ts';
import { converseAnswer, streamOf, type ConverseAnswer } from '../upstream/converse.ts';
import { messagesDocument } from '../upstream/messages.ts';
import { pathOf, type BedrockScene } from './bedrock-scene.ts';
import { callConverse, claude, nova, startConverse } from './converse-scene.ts';

let scene: BedrockScene;
before(async () => {
  scene = await startConverse();
});
after(() => scene.stop());

const pdf = { type: 'base64', media_type: 'application/pdf', data: 'JVBERg==' } as const;
const plain = { type: 'text', media_type: 'text/plain', data: 'Once upon a time.' } as const;
const blocks = { type: 'content', content: [{ type: 'text', text: 'A chunk.' }] } as const;
const enabled = { citations: { enabled: true } } as const;
const question = { type: 'text', text: 'Who, and where?' } as const;

/** The notes in the record of a call. */
async function notesOf({ headers }: Reply): Promise<string> {
  return JSON.stringify(await scene.gateway.callRow(String(headers['x-request-id'])));
}

function userOf(...content: readonly JsonObject[]): JsonObject {
  return { messages: [{ role: 'user', content: [...content, question] }] };
}

/** The second is made of blocks, which Converse gets as texts: its documents are the first and the third. */
const three = userOf(
  { type: 'document', source: pdf, title: 'Report (2026).pdf', ...enabled },
  { type: 'document', source: blocks, title: 'Chunks' },
  { type: 'document', source: plain, ...enabled },
);

/** An answer with a place of each kind that Converse has. */
const answer: ConverseAnswer = {
  content: [
    { text: 'It says: ' },
    {
      citationsContent: {
        content: [{ text: 'Ann' }],
        citations: [
          {
            title: 'Report 2026',
            sourceContent: [{ text: 'Ann was ' }, { text: 'there.' }],
            location: { documentPage: { documentIndex: 0, start: 2, end: 3 } },
          },
        ],
      },
    },
    { text: ', ' },
    {
      citationsContent: {
        content: [{ text: 'once' }],
        citations: [
          {
            title: 'document 2',
            sourceContent: [{ text: 'Once' }],
            location: { documentChar: { documentIndex: 1, start: 0, end: 4 } },
          },
          {
            title: 'Unknown',
            sourceContent: [{ text: 'x' }],
            location: { documentChunk: { documentIndex: 7, start: 1, end: 2 } },
          },
        ],
      },
    },
  ],
};

const page = {
  type: 'page_location',
  cited_text: 'Ann was there.',
  document_index: 0,
  document_title: 'Report (2026).pdf',
  start_page_number: 2,
  end_page_number: 3,
  file_id: null,
};
const char = {
  type: 'char_location',
  cited_text: 'Once',
  document_index: 2,
  document_title: null,
  start_char_index: 0,
  end_char_index: 4,
  file_id: null,
};
/** Of a document that the request does not have: the numbers and the title of the provider. */
const chunk = {
  type: 'content_block_location',
  cited_text: 'x',
  document_index: 7,
  document_title: 'Unknown',
  start_block_index: 1,
  end_block_index: 2,
  file_id: null,
};
const cited = [
  ['It says: ', null],
  ['Ann', [page]],
  [', ', null],
  ['once', [char, chunk]],
] as const;

describe('bedrock 56: documents that are to be cited', () => {
  it('go to Claude with citations, whatever they are made of', async () => {
    const call = { dialect: 'messages', model: claude, more: three } as const;
    const { reply, received } = await callConverse(scene, call, converseAnswer());
    const [message = {}] = listAt(received[0]?.json ?? {}, 'messages');
    assert.deepEqual(
      listAt(message, 'content').filter((block) => isObject(block['document'])),
      [
        {
          document: {
            format: 'pdf',
            name: 'Report (2026)',
            source: { bytes: pdf.data },
            citations: { enabled: true },
          },
        },
        {
          document: {
            format: 'txt',
            name: 'document 2',
            source: { text: plain.data },
            citations: { enabled: true },
          },
        },
      ],
    );
    const notes = String(reply.headers['x-gateway-notes'] ?? '');
    assert.doesNotMatch(notes, /citations/);
  });

  it('without citations where the client asks for none', async () => {
    const off = { citations: { enabled: false } };
    const more = userOf(
      { type: 'document', source: pdf, ...off },
      { type: 'document', source: pdf },
    );
    const call = { dialect: 'messages', model: claude, more } as const;
    const { received } = await callConverse(scene, call, converseAnswer());
    assert.doesNotMatch(String(received[0]?.body), /citations/);
  });

  it('of blocks are shown as text, and a note says that they are not cited', async () => {
    const more = userOf({ type: 'document', source: blocks, ...enabled });
    const call = { dialect: 'messages', model: claude, more } as const;
    const { reply } = await callConverse(scene, call, converseAnswer());
    const notes = String(reply.headers['x-gateway-notes']);
    assert.match(notes, /messages\.0\.content\.0\.citations: dropped, what is shown as text/);
  });

  it('other models get them without citations, with a note', async () => {
    const call = { dialect: 'messages', model: nova, more: three } as const;
    const { reply, received } = await callConverse(scene, call, converseAnswer());
    assert.doesNotMatch(String(received[0]?.body), /citations/);
    const notes = String(reply.headers['x-gateway-notes']);
    for (const at of [0, 2]) {
      assert.ok(notes.includes(`messages.0.content.${at}.citations: dropped, this model`), notes);
    }
  });

  it('Claude by its own API gets the bytes of the client', async () => {
    const path = pathOf(claude, 'invoke');
    const { requests } = scene.bedrock.script(path, {
      body: JSON.stringify(messagesDocument({})),
    });
    const body = { model: `bedrock/${claude}`, max_tokens: 9, ...three };
    const reply = await send(`${scene.gateway.url}/v1/messages`, body);
    assert.equal(reply.status, 200, reply.text);
    assert.deepEqual(requests[0]?.json['messages'], three['messages']);
  });
});

describe('bedrock 56: an answer that cites documents', () => {
  const model = `converse/${claude}`;
  const request = { model, max_tokens: 100, ...three } as unknown as Anthropic.MessageCreateParams;

  for (const stream of [false, true]) {
    const form = stream ? 'stream' : 'document';
    it(`the official SDK reads places in its own documents, in a ${form}`, async () => {
      const path = pathOf(claude, stream ? 'converse-stream' : 'converse');
      scene.bedrock.script(path, stream ? streamOf(answer) : converseAnswer(answer));
      const sdk = new Anthropic({ apiKey: clientKey, baseURL: scene.gateway.url, maxRetries: 0 });
      const message = stream
        ? await sdk.messages.stream({ ...request, stream: true }).finalMessage()
        : await sdk.messages.create({ ...request, stream: false });
      const seen = message.content.map((block) => {
        assert.equal(block.type, 'text');
        const { text, citations = null } = block as Anthropic.TextBlock;
        return [text, citations === null || citations.length === 0 ? null : citations];
      });
      assert.deepEqual(seen, cited);
    });

    it(`no place is named where results of tools have documents too, in a ${form}`, async () => {
      const content = [{ type: 'document', source: pdf, ...enabled }];
      const more: JsonObject = {
        tools: [{ name: 'read', input_schema: { type: 'object', properties: {} } }],
        messages: [
          { role: 'user', content: [{ type: 'document', source: plain, ...enabled }, question] },
          { role: 'assistant', content: [{ type: 'tool_use', id: 'a', name: 'read', input: {} }] },
          { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a', content }] },
        ],
      };
      const played = stream ? streamOf(answer) : converseAnswer(answer);
      const call = { dialect: 'messages', model: claude, stream, more } as const;
      const { reply } = await callConverse(scene, call, played);
      assert.equal(reply.status, 200, reply.text);
      assert.doesNotMatch(reply.text, /document_index/);
      assert.match(await notesOf(reply), /citations/);
    });

    for (const dialect of clientDialects.filter((each) => each !== 'messages')) {
      it(`${dialect} clients get the text, in a ${form}`, async () => {
        const played = stream ? streamOf(answer) : converseAnswer(answer);
        const { reply } = await callConverse(scene, { dialect, model: claude, stream }, played);
        assert.equal(reply.status, 200, reply.text);
        assert.doesNotMatch(reply.text, /location|url_citation|file_citation/);
        assert.match(await notesOf(reply), /a source without an address has no place/);
      });
    }

    it(`a source without its numbers has no place, in a ${form}`, async () => {
      const locations: readonly JsonObject[] = [
        { documentChar: { documentIndex: 0, start: 1 } },
        { documentPage: { documentIndex: -1, start: 1, end: 2 } },
        { documentChunk: { documentIndex: 0.5, start: 1, end: 2 } },
        { documentPage: 'first' },
        { searchResultLocation: { searchResultIndex: 0, start: 0, end: 1 } },
        {},
      ];
      const citations = locations.map((location) => ({ title: 'A', location }));
      const content = [{ citationsContent: { content: [{ text: 'Ann' }], citations } }];
      const played = stream ? streamOf({ content }) : converseAnswer({ content });
      const call = { dialect: 'messages', model: claude, stream, more: three } as const;
      const { reply } = await callConverse(scene, call, played);
      assert.match(reply.text, /Ann/);
      assert.doesNotMatch(reply.text, /_location/);
      assert.match(await notesOf(reply), /sources of this provider have no place/);
    });
  }

  it('a text that was cited goes back as text', async () => {
    const content = cited.map(([text, citations]) => ({ type: 'text', text, citations }));
    const [asked = {}] = listAt(three, 'messages');
    const messages = [
      asked,
      { role: 'assistant', content },
      { role: 'user', content: 'And then?' },
    ] as unknown as JsonObject['messages'];
    const call = {
      dialect: 'messages',
      model: claude,
      more: { messages: messages ?? [] },
    } as const;
    const { received } = await callConverse(scene, call, converseAnswer());
    const [, said = {}] = listAt(received[0]?.json ?? {}, 'messages');
    assert.deepEqual(
      listAt(said, 'content'),
      cited.map(([text]) => ({ text })),
    );
  });
});
