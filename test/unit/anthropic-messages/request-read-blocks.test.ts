import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { NoteList } from '../../../src/core/notes.ts';
import { chatUpstream, sealed, testSealer } from '../../support/sealing.ts';
import { noted, refusalOf } from './answer-context.ts';
import { parts, read, user } from './reading-requests.ts';

describe('blocks', () => {
  test('text with citations and a cache mark', () => {
    const citation = { type: 'page_location', cited_text: 'c', document_title: 'D' };
    const block = {
      type: 'text',
      text: 'x',
      citations: [citation],
      cache_control: { type: 'ephemeral' },
    };
    assert.deepEqual(parts([block], 'assistant'), [
      {
        type: 'text',
        text: 'x',
        citations: [
          {
            title: 'D',
            citedText: 'c',
            native: { dialect: 'anthropic-messages', value: citation },
          },
        ],
        cacheUntilHere: {},
      },
    ]);
  });

  test('images by bytes and by address', () => {
    const base64 = { type: 'base64', media_type: 'image/png', data: 'AAAA' };
    const url = { type: 'url', url: 'https://host.example/x.png' };
    assert.deepEqual(
      parts([
        { type: 'image', source: base64 },
        { type: 'image', source: url },
      ]),
      [
        { type: 'media', kind: 'image', mediaType: 'image/png', source: { base64: 'AAAA' } },
        {
          type: 'media',
          kind: 'image',
          mediaType: '',
          source: { url: 'https://host.example/x.png' },
        },
      ],
    );
  });

  test('documents: PDF, text, address; those made of blocks become the blocks', () => {
    const notes = new NoteList();
    const pdf = { type: 'base64', media_type: 'application/pdf', data: 'JVBE' };
    const text = { type: 'text', media_type: 'text/plain', data: 'words' };
    const content = { type: 'content', content: [{ type: 'text', text: 'inner' }] };
    const read_ = parts(
      [
        { type: 'document', source: pdf, title: 'T', context: 'C', citations: { enabled: true } },
        { type: 'document', source: text },
        { type: 'document', source: { type: 'url', url: 'https://host.example/x.pdf' } },
        { type: 'document', source: content, title: 'Made of blocks' },
      ],
      'user',
      notes,
    );
    assert.deepEqual(read_, [
      {
        type: 'media',
        kind: 'document',
        mediaType: 'application/pdf',
        source: { base64: 'JVBE' },
        name: 'T',
        citedAs: 0,
        extras: { 'anthropic-messages': { context: 'C' } },
      },
      { type: 'media', kind: 'document', mediaType: 'text/plain', source: { text: 'words' } },
      {
        type: 'media',
        kind: 'document',
        mediaType: 'application/pdf',
        source: { url: 'https://host.example/x.pdf' },
      },
      { type: 'text', text: 'Made of blocks' },
      { type: 'text', text: 'inner' },
    ]);
    assert.deepEqual(noted(notes), [
      'messages.1.content.0.context lost',
      'messages.1.content.3 changed',
    ]);
  });

  test('files of one provider and unknown blocks are refused with their path', () => {
    const file = { type: 'file', file_id: 'f' };
    for (const type of ['image', 'document']) {
      assert.match(
        refusalOf(() => parts([{ type, source: file }])),
        /^messages\.1\.content\.0\.source\.type: /,
      );
    }
    assert.match(
      refusalOf(() => parts([{ type: 'hologram' }])),
      /^messages\.1\.content\.0\.type: /,
    );
  });

  test('B2 tool results with text, images, search results and references', () => {
    const notes = new NoteList();
    const image = {
      type: 'image',
      source: { type: 'base64', media_type: 'image/png', data: 'AAAA' },
    };
    const search = {
      type: 'search_result',
      source: 'https://s',
      title: 'T',
      content: [{ type: 'text', text: 'found' }],
    };
    const reference = { type: 'tool_reference', tool_name: 'WebFetch' };
    const call = (id: string) => ({ type: 'tool_use', id, name: 'f', input: { a: 1 } });
    const conversation = read(
      {
        messages: [
          user,
          { role: 'assistant', content: [call('a'), call('b'), call('c')] },
          {
            role: 'user',
            content: [
              { type: 'tool_result', tool_use_id: 'a', content: 'plain', is_error: true },
              {
                type: 'tool_result',
                tool_use_id: 'b',
                content: [{ type: 'text', text: 'see' }, image, search, reference],
                cache_control: { type: 'ephemeral' },
              },
              { type: 'tool_result', tool_use_id: 'c' },
              { type: 'text', text: 'and now' },
            ],
          },
        ],
      },
      notes,
    );
    assert.deepEqual(conversation.turns[2]?.parts, [
      {
        type: 'tool-result',
        callId: 'a',
        parts: [{ type: 'text', text: 'plain' }],
        failed: true,
      },
      {
        type: 'tool-result',
        callId: 'b',
        parts: [
          { type: 'text', text: 'see' },
          { type: 'media', kind: 'image', mediaType: 'image/png', source: { base64: 'AAAA' } },
          { type: 'text', text: 'T\nhttps://s\nfound' },
          { type: 'text', text: 'The tool "WebFetch" is available.' },
        ],
        failed: false,
        cacheUntilHere: {},
      },
      { type: 'tool-result', callId: 'c', parts: [], failed: false },
      { type: 'text', text: 'and now' },
    ]);
    assert.deepEqual(noted(notes), [
      'messages.2.content.1.content.2 changed',
      'messages.2.content.1.content.3 changed',
    ]);
  });

  test('what server tools found in earlier turns stays as text', () => {
    const notes = new NoteList();
    const blocks = [
      { type: 'server_tool_use', id: 's', name: 'web_search', input: { query: 'cats' } },
      {
        type: 'web_search_tool_result',
        tool_use_id: 's',
        content: [
          { type: 'web_search_result', title: 'Cat', url: 'https://cat', encrypted_content: 'x' },
          { type: 'web_search_result', title: 'Kit', url: 'https://kit', encrypted_content: 'y' },
        ],
      },
      { type: 'mcp_tool_use', id: 'm', name: 'feed', server_name: 'zoo', input: {} },
      { type: 'mcp_tool_result', tool_use_id: 'm', is_error: true, content: 'closed' },
      { type: 'fallback' },
      { type: 'compaction', content: 'Earlier: cats.' },
    ];
    assert.deepEqual(parts(blocks, 'assistant', notes), [
      { type: 'text', text: '[web_search "cats" → 2 results: Cat https://cat, Kit https://kit]' },
      { type: 'text', text: '\n\n[feed {} → error: closed]' },
      { type: 'text', text: '\n\nEarlier: cats.' },
    ]);
    assert.deepEqual(
      notes.all.map(({ what }) => what),
      ['changed', 'changed', 'lost', 'changed'],
    );
  });

  test('D1 D2 thinking keeps its signature, also without text; an unsigned empty one is nothing', () => {
    const blocks = [
      { type: 'thinking', thinking: 'hm', signature: 'sig==' },
      { type: 'thinking', thinking: '', signature: 'only' },
      { type: 'thinking', thinking: '', signature: '' },
      { type: 'redacted_thinking', data: 'secret' },
      { type: 'text', text: 'So.' },
    ];
    assert.deepEqual(parts(blocks, 'assistant').slice(0, -1), [
      { type: 'reasoning', text: 'hm', signature: 'sig==' },
      { type: 'reasoning', text: '', signature: 'only' },
      { type: 'reasoning', text: '', encrypted: 'secret' },
    ]);
  });

  test('§5.4 reasoning that the gateway sealed comes back as its upstream wrote it', () => {
    const extras = { format: 'google-gemini-v1' };
    const origin = chatUpstream;
    const digest = testSealer.digest('mine');
    const blocks = [
      { type: 'thinking', thinking: 'hm', signature: sealed({}) },
      { type: 'redacted_thinking', data: sealed({ encrypted: 'e', extras }) },
      { type: 'thinking', thinking: '', signature: sealed({ text: 'hidden' }) },
      { type: 'thinking', thinking: 'mine', signature: sealed({ signature: 's', digest }) },
      { type: 'text', text: 'So.' },
    ];
    assert.deepEqual(parts(blocks, 'assistant').slice(0, -1), [
      { type: 'reasoning', text: 'hm', origin },
      { type: 'reasoning', text: '', encrypted: 'e', extras: { 'openai-chat': extras }, origin },
      { type: 'reasoning', text: 'hidden', origin },
      { type: 'reasoning', text: 'mine', signature: 's', origin },
    ]);
  });

  test('§5.4 a forged, damaged or older record and a changed text are nothing to anybody', () => {
    const whole = sealed({ signature: 's' });
    const forged = `gw1.${Buffer.from('{"v":1,"from":"openai-chat","by":"x"}').toString('base64url')}`;
    const digest = testSealer.digest('as it was');
    const blocks = [
      { type: 'thinking', thinking: 'a', signature: forged },
      { type: 'thinking', thinking: 'b', signature: `${forged}.${'A'.repeat(22)}` },
      { type: 'thinking', thinking: 'c', signature: whole.slice(0, -1) },
      { type: 'thinking', thinking: 'd', signature: whole.replace('gw1.', 'gw1.A') },
      { type: 'thinking', thinking: 'e', signature: sealed({ signature: 's', digest }) },
      { type: 'redacted_thinking', data: 'gw1.' },
      { type: 'text', text: 'So.' },
    ];
    const broken = { type: 'reasoning', text: '', broken: true };
    const read = parts(blocks, 'assistant');
    assert.deepEqual(read.slice(0, -1), [broken, broken, broken, broken, broken, broken]);
  });

  test('D5 what an upstream signed of a call finds its call again', () => {
    const extras = { extra_content: { google: { thought_signature: 's' } } };
    const messages = [
      user,
      {
        role: 'assistant',
        content: [
          { type: 'redacted_thinking', data: sealed({ extras, callId: 'a' }) },
          { type: 'tool_use', id: 'a', name: 'f', input: {} },
        ],
      },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a' }] },
    ];
    assert.deepEqual(read({ messages }).turns[1]?.parts, [
      {
        type: 'tool-call',
        id: 'a',
        name: 'f',
        argumentsJson: '{}',
        extras: { 'openai-chat': extras },
        origin: chatUpstream,
      },
    ]);
  });
});
