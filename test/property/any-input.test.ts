/** Readers may refuse whatever comes, in GatewayErrors only: no TypeError, no RangeError. */
import * as fc from 'fast-check';
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { isObject, type JsonObject } from '../../src/json/value.ts';
import { GatewayError } from '../../src/core/errors.ts';
import { parseBody } from '../../src/core/client-body.ts';
import { NoteList } from '../../src/core/notes.ts';
import { allDialects, type AnyDialect } from '../support/reading.ts';
import { requestBody } from '../support/requests.ts';
import { chatChunks, chatDocument } from '../upstream/chat.ts';
import { messagesDocument, messagesEvents } from '../upstream/messages.ts';
import {
  callItem,
  reasoningItem,
  responsesDocument,
  responsesEvents,
  textItem,
} from '../upstream/responses.ts';
import { json } from './arbitraries.ts';
import { check } from './checking.ts';
import { answerContext, countingIds, halves } from './dialect-halves.ts';
import { framesIn } from './frames.ts';
import { odd, spoil, way } from './spoil.ts';

function onlyGatewayErrors(action: () => void): void {
  try {
    action();
  } catch (error) {
    assert.ok(error instanceof GatewayError, error instanceof Error ? error.stack : String(error));
    assert.notEqual(error.code, 'internal', error.message);
  }
}

const calls = [{ id: 'a', name: 'f', arguments: '{"x":1}' }];

/** Bodies with something of everything, to be spoiled at one place. */
const requests: { readonly [D in AnyDialect]: JsonObject } = {
  chat: requestBody('chat', {
    model: 'm',
    stream: true,
    more: {
      messages: [
        { role: 'system', content: [{ type: 'text', text: 'Be good.' }] },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'Hi' },
            { type: 'image_url', image_url: { url: 'data:image/png;base64,aGk=' } },
          ],
        },
        {
          role: 'assistant',
          content: null,
          tool_calls: [{ id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } }],
        },
        { role: 'tool', tool_call_id: 'a', content: 'done' },
        { role: 'user', content: 'And?' },
      ],
      tools: [
        {
          type: 'function',
          function: { name: 'f', description: 'd', parameters: { type: 'object', properties: {} } },
        },
      ],
      tool_choice: { type: 'function', function: { name: 'f' } },
      response_format: {
        type: 'json_schema',
        json_schema: { name: 'o', schema: { type: 'object' } },
      },
      reasoning_effort: 'low',
      stop: ['x'],
      max_completion_tokens: 5,
      temperature: 1,
    },
  }),
  messages: requestBody('messages', {
    model: 'm',
    stream: true,
    more: {
      system: [{ type: 'text', text: 'Be good.', cache_control: { type: 'ephemeral' } }],
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'Hi' },
            { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'aGk=' } },
          ],
        },
        {
          role: 'assistant',
          content: [
            { type: 'thinking', thinking: 't', signature: 's' },
            { type: 'tool_use', id: 'a', name: 'f', input: {} },
          ],
        },
        {
          role: 'user',
          content: [
            { type: 'tool_result', tool_use_id: 'a', content: [{ type: 'text', text: 'done' }] },
          ],
        },
      ],
      tools: [{ name: 'f', description: 'd', input_schema: { type: 'object', properties: {} } }],
      tool_choice: { type: 'tool', name: 'f', disable_parallel_tool_use: true },
      thinking: { type: 'enabled', budget_tokens: 1024 },
      output_config: { effort: 'low' },
      stop_sequences: ['x'],
      metadata: { user_id: 'u' },
    },
  }),
  responses: requestBody('responses', {
    model: 'm',
    stream: true,
    more: {
      instructions: 'Be good.',
      input: [
        {
          role: 'user',
          content: [
            { type: 'input_text', text: 'Hi' },
            { type: 'input_image', image_url: 'data:image/png;base64,aGk=', detail: 'low' },
          ],
        },
        { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'blob' },
        {
          type: 'message',
          role: 'assistant',
          content: [{ type: 'output_text', text: 'So', annotations: [] }],
        },
        { type: 'function_call', call_id: 'a', name: 'f', arguments: '{}' },
        { type: 'custom_tool_call', call_id: 'b', name: 'g', input: 'x' },
        { type: 'function_call_output', call_id: 'a', output: 'done' },
        {
          type: 'custom_tool_call_output',
          call_id: 'b',
          output: [{ type: 'input_text', text: 'done' }],
        },
        { role: 'user', content: 'And?' },
      ],
      tools: [
        { type: 'function', name: 'f', parameters: { type: 'object', properties: {} } },
        {
          type: 'custom',
          name: 'g',
          format: { type: 'grammar', syntax: 'lark', definition: 'start: "x"' },
        },
        {
          type: 'namespace',
          name: 'n',
          description: 'd',
          tools: [{ type: 'function', name: 'h', parameters: { type: 'object' } }],
        },
        { type: 'web_search' },
      ],
      tool_choice: { type: 'function', name: 'f' },
      text: { format: { type: 'json_schema', name: 'o', schema: { type: 'object' } } },
      reasoning: { effort: 'low', summary: 'auto' },
      include: ['reasoning.encrypted_content'],
      max_output_tokens: 16,
      metadata: { a: 'b' },
      store: false,
    },
  }),
};

const said = { text: 'Hi there', calls };
const items = [
  reasoningItem('Hm', 'blob'),
  textItem('Hi there'),
  callItem('a', 'f', '{"x":1}'),
  { id: 'ctc_1', type: 'custom_tool_call', call_id: 'b', name: 'g', input: 'x' },
];
const documents: { readonly [D in AnyDialect]: JsonObject } = {
  chat: chatDocument({ ...said, reasoning: 'Hm' }),
  messages: messagesDocument({ ...said, thinking: 'Hm' }),
  responses: responsesDocument(items),
};
const streams: { readonly [D in AnyDialect]: readonly JsonObject[] } = {
  chat: chatChunks({ ...said, reasoning: 'Hm' }),
  messages: messagesEvents({ ...said, thinking: 'Hm' }),
  responses: responsesEvents(items),
};

for (const dialect of allDialects) {
  const both = halves[dialect];
  describe(dialect, () => {
    test('a request spoiled at any place', (context) => {
      check(context, fc.tuple(way, odd), ([steps, value]) => {
        const body = spoil(requests[dialect], steps, value);
        if (!isObject(body)) return;
        onlyGatewayErrors(() => {
          both.client.readHead(body);
          const conversation = both.client.readRequest(body, new NoteList());
          for (const other of allDialects) {
            onlyGatewayErrors(() => {
              const { upstream, traits } = halves[other];
              const ask = { model: 'm', stream: true, traits, newId: countingIds() };
              JSON.stringify(upstream.writeRequest(conversation, ask, new NoteList()));
            });
          }
        });
      });
    });

    test('a document spoiled at any place', (context) => {
      check(context, fc.tuple(way, odd), ([steps, value]) => {
        const body = spoil(documents[dialect], steps, value);
        if (!isObject(body)) return;
        onlyGatewayErrors(() => {
          const generation = both.upstream.readResponse(body, both.traits);
          for (const other of allDialects) {
            JSON.stringify(halves[other].client.writeResponse(generation, answerContext()));
          }
        });
      });
    });

    test('a stream spoiled at any place', (context) => {
      check(context, fc.tuple(way, odd), ([steps, value]) => {
        const spoiled = spoil([...streams[dialect]], steps, value);
        if (!Array.isArray(spoiled)) return;
        const text = spoiled
          .map((event) => {
            const type = isObject(event) && typeof event['type'] === 'string' ? event['type'] : 'x';
            return `${dialect === 'chat' ? '' : `event: ${type}\n`}data: ${JSON.stringify(event)}\n\n`;
          })
          .join('');
        streamThrough(dialect, Buffer.from(text));
      });
    });

    test('a stream of any bytes', (context) => {
      check(context, fc.uint8Array({ maxLength: 200 }), (bytes) =>
        streamThrough(dialect, Buffer.from(bytes)),
      );
    });

    test('an error body of any shape', (context) => {
      check(
        context,
        fc.tuple(fc.integer({ min: 400, max: 599 }), fc.oneof(odd, json)),
        ([status, body]) => {
          const error = both.upstream.readError(status, JSON.stringify(body));
          assert.ok(error instanceof GatewayError);
          assert.notEqual(error.code, 'internal');
          for (const other of allDialects) {
            const written = halves[other].client.writeError(error, 'req_1');
            assert.ok(written.status >= 400 && written.status < 600);
          }
        },
      );
    });
  });
}

/** Reads frames and writes them for all clients, as the gateway would. */
function streamThrough(dialect: AnyDialect, bytes: Buffer): void {
  const { upstream, traits } = halves[dialect];
  onlyGatewayErrors(() => {
    const reader = upstream.streamReader(traits);
    const writers = allDialects.map((client) =>
      halves[client].client.streamWriter(answerContext()),
    );
    for (const frame of framesIn(bytes, [])) {
      for (const event of reader.read(frame)) {
        if (event.type === 'error' || event.type === 'finish') return;
        for (const writer of writers) writer.write(event);
      }
    }
    reader.end();
  });
}

test('a body of any bytes', (context) => {
  check(
    context,
    fc.oneof(
      fc.uint8Array(),
      json.map((value) => Buffer.from(JSON.stringify(value))),
    ),
    (bytes) => {
      onlyGatewayErrors(() => void parseBody(bytes, new Set(['model'])));
    },
  );
});
