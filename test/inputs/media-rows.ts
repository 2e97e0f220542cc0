/** Images and their addresses (reliability.md B59–B61), for the place where each dialect has them. */
import type { JsonObject } from '../../src/json/value.ts';
import { messagesWith, type BadRow } from './bad-row.ts';

const png =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

function chatImage(url: string): JsonObject {
  return messagesWith({ role: 'user', content: [{ type: 'image_url', image_url: { url } }] });
}

function responsesImage(image_url: string): JsonObject {
  return messagesWith({ role: 'user', content: [{ type: 'input_image', image_url }] });
}

function messagesImage(source: JsonObject): JsonObject {
  return messagesWith({ role: 'user', content: [{ type: 'image', source }] });
}

const path = {
  chat: 'messages.0.content.0.image_url.url',
  messages: 'messages.0.content.0.source',
  responses: 'input.0.content.0.image_url',
} as const;

/** An image of bytes: media type and base64. */
function bytes(name: string, mediaType: string, data: string): BadRow {
  return {
    id: 'B59',
    name,
    status: 400,
    change: {
      chat: chatImage(`data:${mediaType};base64,${data}`),
      messages: messagesImage({ type: 'base64', media_type: mediaType, data }),
      responses: responsesImage(`data:${mediaType};base64,${data}`),
    },
    path,
  };
}

function address(id: string, url: string, name = url): BadRow {
  return {
    id,
    name,
    status: 400,
    change: {
      chat: chatImage(url),
      messages: messagesImage({ type: 'url', url }),
      responses: responsesImage(url),
    },
    path,
  };
}

const notInside: readonly string[] = [
  'localhost',
  'LOCALHOST',
  'localhost.',
  'a.localhost',
  'printer.local',
  'db.internal',
  'metadata.google.internal',
  'metadata',
  'redis:6379',
  'ip6-localhost',
  'kubernetes.default.svc',
  'wiki.corp',
  'ⓛocalhost',
  'ⓛⓞⓒⓐⓛⓗⓞⓢⓣ',
  'loc\u00adalhost',
  '127.0.0.1',
  '127.0.0.1.',
  '127.1',
  '0x7f.1',
  '0177.0.0.1',
  '2130706433',
  '0x7f000001',
  '0',
  '%31%32%37.0.0.1',
  '１２７.0.0.1',
  '127。0。0。1',
  '10.1.2.3',
  '172.31.255.255',
  '192.168.0.1',
  '100.64.0.1',
  '169.254.169.254',
  '2852039166',
  '0xa9fea9fe',
  '0251.0376.0251.0376',
  '224.0.0.1',
  '255.255.255.255',
  '198.18.0.1',
  '168.63.129.16',
  '100.100.100.200',
  '[::1]',
  '[::]',
  '[::ffff:a9fe:a9fe]',
  '[::ffff:127.0.0.1]',
  '[::7f00:1]',
  '[fe80::1]',
  '[fd00:ec2::254]',
  '[fec0::1]',
  '[ff02::1]',
  '[64:ff9b::a9fe:a9fe]',
  '[64:ff9b:1::a00:1]',
  '[2002:a9fe:a9fe::1]',
  '[2001:0:a9fe:a9fe::1]',
  '[0:0:0:0:0:ffff:7f00:1]',
];

export const mediaRows: readonly BadRow[] = [
  bytes('no base64', 'image/png', 'not base64!'),
  bytes('no bytes', 'image/png', ''),
  bytes('other bytes', 'image/png', Buffer.from('<html>SECRET</html>').toString('base64')),
  bytes(
    'a program',
    'image/jpeg',
    Buffer.from('MZ\u0090\u0000 a program of some kind').toString('base64'),
  ),
  bytes('SVG', 'image/svg+xml', Buffer.from('<svg xmlns="x"/>').toString('base64')),
  {
    id: 'B59',
    name: 'a data URL without base64',
    status: 400,
    change: {
      chat: chatImage('data:image/png,abc'),
      responses: responsesImage('data:image/png,abc'),
    },
    path,
  },
  {
    id: 'B59',
    name: 'other bytes in the result of a tool',
    status: 400,
    change: {
      messages: messagesWith(
        { role: 'user', content: 'x' },
        { role: 'assistant', content: [{ type: 'tool_use', id: 'a', name: 'f', input: {} }] },
        {
          role: 'user',
          content: [
            {
              type: 'tool_result',
              tool_use_id: 'a',
              content: [
                {
                  type: 'image',
                  source: { type: 'base64', media_type: 'image/png', data: `SECRET${png}` },
                },
              ],
            },
          ],
        },
      ),
      responses: messagesWith(
        { role: 'user', content: 'x' },
        { type: 'function_call', call_id: 'a', name: 'f', arguments: '{}' },
        {
          type: 'function_call_output',
          call_id: 'a',
          output: [{ type: 'input_image', image_url: `data:image/png;base64,SECRET${png}` }],
        },
      ),
    },
    path: {
      messages: 'messages.2.content.0.content.0.source',
      responses: 'input.2.output.0.image_url',
    },
  },
  {
    id: 'B61',
    name: 'an address inside a document of blocks',
    status: 400,
    change: {
      messages: messagesWith({
        role: 'user',
        content: [
          {
            type: 'document',
            source: {
              type: 'content',
              content: [{ type: 'image', source: { type: 'url', url: 'http://127.1/a.png' } }],
            },
          },
        ],
      }),
    },
    path: { messages: 'messages.0.content.0.source.content.0.source' },
  },
  {
    id: 'B61',
    name: 'a document inside',
    status: 400,
    change: {
      messages: messagesWith({
        role: 'user',
        content: [{ type: 'document', source: { type: 'url', url: 'https://[::1]/a.pdf' } }],
      }),
      responses: messagesWith({
        role: 'user',
        content: [{ type: 'input_file', file_url: 'https://[::1]/a.pdf' }],
      }),
    },
    path: {
      messages: 'messages.0.content.0.source',
      responses: 'input.0.content.0.file_url',
    },
  },
  ...[
    'file:///etc/passwd',
    'ftp://example.com/a.png',
    'gopher://example.com/a',
    'javascript:1',
  ].map((url) => address('B60', url)),
  address('B60', 'https://user:SECRET@example.com/a.png'),
  address('B60', `https://example.com/${'a'.repeat(2048)}`, 'an address of 2 KiB'),
  {
    id: 'B60',
    name: 'data in an address',
    status: 400,
    change: { messages: messagesImage({ type: 'url', url: `data:image/png;base64,${png}` }) },
    path,
  },
  ...notInside.map((host) => address('B61', `http://${host}/a.png`)),
  address('B61', 'https://', 'no host'),
];

/** What must go on: bytes of each format, and addresses that only look odd. */
export const goodImages: readonly string[] = [
  `data:image/png;base64,${png}`,
  'data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAACAkQBADs=',
  'https://example.com/a.png',
  'http://93.184.215.14/a.png',
  'https://localhost.example.com/a.png',
  'https://[2606:2800:21f::1]/a.png',
];
