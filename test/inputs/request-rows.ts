/** What a request asks for, and of whom, in ways that no client does (reliability.md B12–B25). */
import { clientKey } from '../support/keys.ts';
import { keyLine, lengthEnd, smuggled, typeLine, type RawRow } from './raw-row.ts';

function target(
  name: string,
  change: (path: string) => string,
  more: Partial<RawRow> = {},
): RawRow {
  return {
    id: 'B25',
    name,
    bytes: ({ path, headWith }) => headWith([keyLine, typeLine], change(path)) + lengthEnd,
    status: 404,
    after: 'usable',
    ...more,
  };
}

const notAPath = { id: 'B13', status: 400, after: 'closed', message: /must be a path/ } as const;

function line(id: string, name: string, bytes: string, more: Partial<RawRow> = {}): RawRow {
  return {
    id,
    name,
    bytes: () => bytes,
    status: 400,
    after: 'closed',
    beforeDialect: true,
    ...more,
  };
}

const host = 'Host: gateway\r\n';

export const requestRows: readonly RawRow[] = [
  {
    id: 'B12',
    name: 'two hosts',
    bytes: ({ headWith }) => headWith([keyLine, typeLine, 'Host: other']) + lengthEnd + smuggled,
    status: 400,
    after: 'closed',
    message: /host stands more than once/,
  },
  {
    id: 'B12',
    name: 'a host that is none',
    bytes: ({ path }) => `POST ${path} HTTP/1.1\r\nHost: a/b@c\r\n${keyLine}\r\n${lengthEnd}`,
    status: 400,
    after: 'closed',
    message: /host/,
  },
  target('an absolute target', (path) => `http://evil${path}`, notAPath),
  target('an absolute target of the admin API', () => 'http://evil/api/keys', notAPath),
  target('a target with an authority', (path) => `//evil${path}`, notAPath),
  target('a doubled slash', (path) => path.replace('/v1/', '/v1//')),
  target('a parent folder', (path) => path.replace('/v1/', '/v1/../v1/')),
  target('the admin API behind a parent folder', () => '/v1/../api/keys'),
  target('the admin API', () => '/api/keys'),
  target('an escaped parent folder', (path) => path.replace('/v1/', '/v1/%2e%2e/v1/')),
  target('an escaped letter', (path) => path.replace('s', '%73')),
  target('an escaped slash', (path) => path.replace('/v1/', '/v1%2f')),
  target('an escaped NUL', (path) => `${path}%00`),
  target('a broken escape', (path) => `${path}%zz`),
  target('a parameter', (path) => `${path};x`),
  target('a fragment', (path) => `${path}#x`),
  target('capitals', (path) => path.toUpperCase()),
  target('a trailing slash', (path) => `${path}/`),
  target('a dot behind', (path) => `${path}/.`),
  target('backslashes', (path) => path.replaceAll('/', '\\'), {
    status: 400,
    after: 'closed',
    beforeDialect: true,
  }),
  target('NUL', (path) => `${path}\u0000`, { status: 400, after: 'closed', beforeDialect: true }),
  target('a space', (path) => `${path} x`, { status: 400, after: 'closed', beforeDialect: true }),
  target('17 KiB', () => `/${'a'.repeat(17 * 1024)}`, {
    status: 431,
    after: 'closed',
    beforeDialect: true,
  }),
  line('B14', 'HTTP/0.9', 'GET /healthz\r\n\r\n', { message: /HTTP\/1\.1/ }),
  line('B14', 'HTTP/0.9 by name', `GET /healthz HTTP/0.9\r\n${host}\r\n`, {
    message: /HTTP\/1\.1/,
  }),
  line('B14', 'HTTP/1.2', `GET /healthz HTTP/1.2\r\n${host}\r\n`),
  line('B14', 'HTTP/2.0', `GET /healthz HTTP/2.0\r\n${host}\r\n`, { message: /HTTP\/1\.1/ }),
  line('B14', 'no host', 'GET /healthz HTTP/1.1\r\n\r\n', { message: /host is missing/ }),
  line('B14', 'no host in HTTP/1.0', 'GET /healthz HTTP/1.0\r\n\r\n', { status: 200 }),
  line('B14', 'a space before the method', ` GET /healthz HTTP/1.1\r\n${host}\r\n`),
  line('B14', 'tabs between', `GET\t/healthz\tHTTP/1.1\r\n${host}\r\n`),
  line('B14', 'an unknown method', `BANANA /healthz HTTP/1.1\r\n${host}\r\n`),
  line('B14', 'a method in small letters', `get /healthz HTTP/1.1\r\n${host}\r\n`),
  line('B14', 'words behind the version', `GET /healthz HTTP/1.1 x\r\n${host}\r\n`),
  ...['Authorization: Bearer other', 'Content-Type: text/plain'].map((twin): RawRow => ({
    id: 'B15',
    name: `twice: ${twin}`,
    bytes: ({ headWith }) => headWith([keyLine, typeLine, twin]) + lengthEnd,
    status: 400,
    after: 'closed',
    message: /more than once/,
  })),
  {
    id: 'B15',
    name: 'two keys of the other form',
    bytes: ({ headWith }) =>
      headWith([`x-api-key: ${clientKey}`, `x-api-key: ${clientKey}`, typeLine]) + lengthEnd,
    status: 400,
    after: 'closed',
    message: /x-api-key stands more than once/,
  },
  {
    id: 'B20',
    name: 'another expectation',
    bytes: ({ headWith }) => headWith([keyLine, typeLine, 'Expect: banana']) + lengthEnd,
    status: 417,
    after: 'closed',
    beforeDialect: true,
    message: /100-continue/,
  },
  {
    id: 'B21',
    name: '100-continue and a body that is too large',
    bytes: ({ headWith }) =>
      `${headWith([keyLine, typeLine, 'Expect: 100-continue'])}Content-Length: 99999999999\r\n\r\n`,
    status: 413,
    after: 'closed',
  },
  {
    id: 'B21',
    name: '100-continue and a bad key',
    bytes: ({ headWith }) =>
      `${headWith(['x-api-key: other', typeLine, 'Expect: 100-continue'])}Content-Length: 2\r\n\r\n`,
    status: 401,
    after: 'closed',
  },
  {
    id: 'B21',
    name: '100-continue in HTTP/1.0',
    bytes: ({ headWith }) =>
      `${headWith([keyLine, typeLine, 'Expect: 100-continue']).replace('HTTP/1.1', 'HTTP/1.0')}${lengthEnd}`,
    status: 400,
    after: 'closed',
    message: /model/,
  },
  {
    id: 'B22',
    name: 'an upgrade to a web socket is served as it is',
    notFor: 'responses',
    bytes: ({ headWith }) =>
      headWith([keyLine, typeLine, 'Connection: Upgrade', 'Upgrade: websocket']) + lengthEnd,
    status: 400,
    after: 'usable',
    message: /model/,
  },
  line(
    'B22',
    'an upgrade to HTTP/2 is served as it is',
    `GET /healthz HTTP/1.1\r\n${host}Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n`,
    { status: 200, after: 'usable' },
  ),
  line('B23', 'CONNECT', `CONNECT a:1 HTTP/1.1\r\n${host}\r\n`, { status: 405 }),
  line('B23', 'HTTP/2 preface', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
  {
    ...line('B23', 'TLS', ''),
    bytes: () => Buffer.from('16030100c8010000c40303', 'hex'),
  },
  {
    id: 'B23',
    name: 'TRACE, with and without a key',
    bytes: ({ path }) => `TRACE ${path} HTTP/1.1\r\n${host}X-Secret: SECRET\r\n\r\n`,
    status: 405,
    after: 'usable',
  },
  {
    id: 'B23',
    name: 'OPTIONS without a key',
    bytes: ({ path }) => `OPTIONS ${path} HTTP/1.1\r\n${host}Origin: http://evil\r\n\r\n`,
    status: 401,
    after: 'usable',
  },
  line('B23', 'OPTIONS of everything', `OPTIONS * HTTP/1.1\r\n${host}\r\n`, {
    message: /must be a path/,
  }),
  line(
    'B24',
    'GET with a short body',
    `GET /healthz HTTP/1.1\r\n${host}Content-Length: 5\r\n\r\nhello`,
    {
      status: 200,
      after: 'usable',
    },
  ),
  line(
    'B24',
    'GET with a long body',
    `GET /healthz HTTP/1.1\r\n${host}Content-Length: 70000\r\n\r\n${'h'.repeat(1000)}`,
    { status: 200 },
  ),
  line(
    'B24',
    'GET with chunks',
    `GET /healthz HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\n\r\n${smuggled.length.toString(16)}\r\n${smuggled}\r\n`,
    { status: 200 },
  ),
  {
    id: 'B24',
    name: 'DELETE with a short body',
    bytes: ({ path }) =>
      `DELETE ${path} HTTP/1.1\r\n${host}${keyLine}\r\nContent-Length: ${smuggled.length}\r\n\r\n${smuggled}`,
    status: 405,
    after: 'usable',
  },
  {
    id: 'B24',
    name: 'a refused key and a short body',
    bytes: ({ headWith }) =>
      `${headWith(['x-api-key: other', typeLine])}Content-Length: ${smuggled.length}\r\n\r\n${smuggled}`,
    status: 401,
    after: 'usable',
  },
  {
    id: 'S18',
    name: 'two requests in one packet have two answers in order',
    bytes: ({ headWith }) =>
      `${headWith(['x-api-key: other', typeLine])}${lengthEnd}GET /readyz HTTP/1.1\r\n${host}\r\n`,
    status: 401,
    behind: [200],
    after: 'usable',
  },
  {
    id: 'S18',
    name: 'garbage behind a good request ends the connection with one answer',
    bytes: ({ head }) => `${head}${lengthEnd}garbage\r\n\r\n`,
    status: 400,
    after: 'closed',
    beforeDialect: true,
  },
  {
    id: 'S18',
    name: 'a key in a trailer opens nothing',
    bytes: ({ headWith }) =>
      `${headWith([typeLine])}Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n${keyLine}\r\n\r\n`,
    status: 401,
    after: 'closed',
  },
];
