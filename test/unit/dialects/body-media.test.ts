import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Json, JsonObject } from '../../../src/json/value.ts';
import { checkMedia } from '../../../src/dialects/shared/body/body-media.ts';
import { GatewayError, invalidRequest, type FieldPath } from '../../../src/core/errors.ts';

const png =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const fault = (path: FieldPath, rule: string): GatewayError =>
  invalidRequest(`${path.join('.')} ${rule}`, path);

/** The path that is refused; undefined where nothing is. */
function refused(body: JsonObject): string | undefined {
  try {
    checkMedia(body, fault);
    return undefined;
  } catch (error) {
    assert.ok(error instanceof GatewayError, String(error));
    return error.path?.join('.');
  }
}

/** A place for an address, and how bodies hold it. */
interface Place {
  readonly path: string;
  /** Bare base64 may stand there. */
  readonly base64?: true;
  /** Nothing but an address of the web. */
  readonly web?: true;
  /** Of a member that nothing is known of, only what may not travel is refused. */
  readonly unknown?: true;
  body(text: string): JsonObject;
}

function parts(part: JsonObject): JsonObject {
  return { messages: [{ role: 'user', content: [{ type: 'text', text: 'See' }, part] }] };
}

const inPart = 'messages.0.content.1';
const named = (name: string): readonly Place[] => [
  { path: `${inPart}.${name}.url`, body: (url) => parts({ type: name, [name]: { url } }) },
  { path: `${inPart}.${name}`, body: (url) => parts({ type: name, [name]: url }) },
];
const places: readonly Place[] = [
  ...['image_url', 'video_url', 'audio_url', 'document_url'].flatMap(named),
  {
    path: `${inPart}.file.file_data`,
    base64: true,
    body: (text) => parts({ type: 'file', file: { file_data: text } }),
  },
  {
    path: `${inPart}.file.file_url`,
    body: (text) => parts({ type: 'file', file: { file_url: text } }),
  },
  {
    path: `${inPart}.file.url`,
    unknown: true,
    body: (url) => parts({ type: 'file', file: { url } }),
  },
  {
    path: `${inPart}.input_audio.data`,
    base64: true,
    body: (data) => parts({ type: 'input_audio', input_audio: { data, format: 'wav' } }),
  },
  {
    path: `${inPart}.video.0`,
    unknown: true,
    body: (text) => parts({ type: 'video', video: [text] }),
  },
  ...['image', 'document'].map((type): Place => ({
    path: `${inPart}.source.url`,
    web: true,
    body: (url) => parts({ type, source: { type: 'url', url } }),
  })),
  {
    path: `${inPart}.content.0.source.url`,
    web: true,
    body: (url) =>
      parts({
        type: 'tool_result',
        content: [{ type: 'image', source: { type: 'url', url } }],
      }),
  },
  {
    path: 'tools.0.server_url',
    web: true,
    body: (url) => ({ tools: [{ type: 'mcp', server_url: url }] }),
  },
  {
    path: 'mcp_servers.0.url',
    web: true,
    body: (url) => ({ mcp_servers: [{ type: 'url', url }] }),
  },
  {
    path: 'search_parameters.sources.0.links.0',
    unknown: true,
    body: (url) => ({ search_parameters: { sources: [{ type: 'rss', links: [url] }] } }),
  },
  { path: 'callbackUrl', unknown: true, body: (callbackUrl) => ({ callbackUrl }) },
];

/** Each of them reaches this machine, its network or its files in some reader. */
const insiders: readonly string[] = [
  'http://127.0.0.1/a.png',
  ' http://127.0.0.1/a.png',
  '\u0000\u001f http://127.0.0.1/a.png',
  `${' '.repeat(5000)}http://127.0.0.1/a.png`,
  'ht\ttp://127.0.0.1/a.png',
  'h\nttp://localhost/a.png',
  'http:\\\\127.0.0.1\\a.png',
  'http:/127.0.0.1/a.png',
  'http:127.0.0.1/a.png',
  'HTTP://127.1/',
  'http://127.0.0.1\t/',
  'https://[::1]/',
  '//127.0.0.1/x',
  '\\\\127.0.0.1\\x',
  ' //localhost/x',
  'file:///etc/passwd',
  ' file:///etc/passwd',
  'fi\nle:///etc/passwd',
];
const elsewhere: readonly string[] = [
  'ftp://example.com/a',
  'gopher://example.com/',
  'https://me:pw@example.com/',
  'https://example.com\\@127.0.0.1/',
  'https://exa\u0001mple.com/',
  'https://',
  `https://example.com/${'a'.repeat(2048)}`,
  'a.png',
  '/etc/passwd.png',
  'data:image/png,abc',
  'data:image/png;base64,a$b',
  'data:image/png;base64,abcde',
  'data:image/png;base64,',
  '',
];
const outside: readonly string[] = [
  'https://example.com/a.png',
  ' https://example.com/a.png\n',
  'http://93.184.215.14/a b.png?c=http://127.0.0.1/',
  'https://localhost.example.com/a@b',
];

describe('F-1 B60 B61 addresses', () => {
  for (const { path, body, web, unknown, base64 } of places) {
    test(`F-1 ${path}${web === true ? ', of the web' : ''}`, () => {
      for (const text of insiders) assert.equal(refused(body(text)), path, JSON.stringify(text));
      for (const text of outside) assert.equal(refused(body(text)), undefined, text);
      for (const text of unknown === true ? [] : elsewhere) {
        assert.equal(refused(body(text)), path, JSON.stringify(text));
      }
      const data = `data:image/png;base64,${png}`;
      assert.equal(refused(body(data)), web === true ? path : undefined);
      const bare = base64 === true || unknown === true || path.includes('image_url');
      assert.equal(refused(body(png)), bare ? undefined : path);
    });
  }

  test('F-1 what is carried whole is not looked at', () => {
    const url = 'http://127.0.0.1/';
    assert.equal(
      refused({
        metadata: { url },
        tools: [
          { type: 'function', function: { parameters: { properties: { url: { default: url } } } } },
        ],
        messages: [
          {
            role: 'assistant',
            content: [{ type: 'tool_use', input: { url } }],
            annotations: [{ url }],
          },
          { role: 'user', content: `Look at ${url}` },
        ],
      }),
      undefined,
    );
  });
});

describe('D4 B59 base64', () => {
  const source = (data: string, type = 'application/pdf'): JsonObject =>
    parts({ type: 'document', source: { type: 'base64', media_type: type, data } });
  const rows: readonly (readonly [name: string, body: JsonObject, path: string | undefined])[] = [
    ['a PDF', source('JVBERi0='), undefined],
    ['no bytes', source(''), `${inPart}.source.data`],
    ['other characters', source('JVBE%i0='), `${inPart}.source.data`],
    ['an address', source('https://example.com/a.pdf'), `${inPart}.source.data`],
    ['one character too many', source('JVBER'), `${inPart}.source.data`],
    ['wrong padding', source('JVBERi0=='), `${inPart}.source.data`],
    ['padding in the middle', source('JV=ERi0='), `${inPart}.source.data`],
    ['the alphabet for URLs', source('_-_-'), undefined],
    [
      'another image',
      source(Buffer.from('<html>no image</html>').toString('base64'), 'image/png'),
      `${inPart}.source.data`,
    ],
    [
      'audio',
      parts({ type: 'input_audio', input_audio: { data: 'UklG%', format: 'wav' } }),
      `${inPart}.input_audio.data`,
    ],
    [
      'a file',
      parts({ type: 'file', file: { file_data: 'not base64!' } }),
      `${inPart}.file.file_data`,
    ],
    [
      'a data URL of a file',
      parts({ type: 'file', file: { file_data: 'data:application/pdf;base64,%' } }),
      `${inPart}.file.file_data`,
    ],
    [
      'an image by its name',
      parts({ type: 'image_url', image_url: { url: 'data:image/svg+xml;base64,PHN2Zz4=' } }),
      `${inPart}.image_url.url`,
    ],
  ];
  for (const [name, body, path] of rows) {
    test(`D4 ${name}`, () => assert.equal(refused(body), path));
  }

  test('D4 megabytes are looked at to their end', () => {
    const long = 'AAAA'.repeat(2_000_000);
    for (const [data, wrong] of [
      [long, false],
      [`${long.slice(0, -1)}%`, true],
      [`%${long.slice(1)}`, true],
    ] as const) {
      const check = (): void => checkMedia(source(data), fault);
      if (wrong) assert.throws(check, GatewayError);
      else check();
    }
  });
});

test('F-1 the path is found in lists of lists', () => {
  const deep: Json = [[{ x: [{ image_url: 'file:///a' }] }]];
  assert.equal(refused({ a: deep }), 'a.0.0.x.0.image_url');
});
