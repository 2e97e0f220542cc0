/** Values at and beyond the edges of what is taken (reliability.md B38–B66). */
import type { ClientDialect } from '../support/dialects.ts';
import {
  adding,
  field,
  messagesWith,
  same,
  tool,
  tools,
  user,
  type BadRow,
  type Change,
} from './bad-row.ts';

const megabyte = 1024 * 1024;

function large(dialect: ClientDialect): Change {
  const schema = { type: 'object', description: 'd'.repeat(megabyte) };
  return {
    chat: { response_format: { type: 'json_schema', json_schema: { name: 'x', schema } } },
    messages: { output_config: { format: { type: 'json_schema', schema } } },
    responses: { text: { format: { type: 'json_schema', name: 'x', schema } } },
  }[dialect];
}

export const limitRows: readonly BadRow[] = [
  { id: 'B37', name: '300,000 keys', raw: adding(`"x":{${keys(300_000)}}`), status: 413 },
  {
    id: 'B37',
    name: '2 million items',
    raw: adding(`"x":[${'0,'.repeat(2_000_000)}0]`),
    status: 413,
  },
  {
    id: 'B34',
    name: 'cut off in a long string',
    raw: (legal) => `${legal.slice(0, -1)},"x":"${'SECRET'.repeat(megabyte / 2)}`,
    status: 400,
    message: /line 1, column/,
  },
  {
    id: 'B34',
    name: 'cut off behind a million escaped quotes',
    raw: (legal) => `${legal.slice(0, -1)},"x":"${'\\"'.repeat(megabyte)}`,
    status: 400,
    message: /line 1, column/,
  },
  { id: 'B34', name: 'only commas', raw: () => ','.repeat(3 * megabyte), status: 400 },
  { id: 'B34', name: 'a control character in a string', raw: adding('"x":"a\nb"'), status: 400 },
  { id: 'B34', name: 'an escape that is none', raw: adding('"x":"\\x41"'), status: 400 },
  { id: 'B34', name: 'a number with a leading zero', raw: adding('"x":01'), status: 400 },
  {
    id: 'B31',
    name: 'an overlong character',
    raw: bytes(0xc0, 0xaf),
    status: 400,
    message: /UTF-8/,
  },
  {
    id: 'B31',
    name: 'a surrogate in UTF-8',
    raw: bytes(0xed, 0xa0, 0x80),
    status: 400,
    message: /UTF-8/,
  },
  {
    id: 'B31',
    name: 'beyond Unicode',
    raw: bytes(0xf4, 0x90, 0x80, 0x80),
    status: 400,
    message: /UTF-8/,
  },
  { id: 'B31', name: 'half a character', raw: bytes(0xe4, 0xbd), status: 400, message: /UTF-8/ },
  { id: 'B33', name: 'two byte order marks', raw: (legal) => `\ufeff\ufeff${legal}`, status: 400 },
  {
    id: 'B41',
    name: 'a digit run beyond sense',
    raw: adding(`"seed":${'9'.repeat(5000)}`),
    status: 400,
    message: /digits/,
  },
  {
    id: 'B41',
    name: 'an integer beyond double range, in depth',
    raw: adding(`"x":[{"y":${'9'.repeat(400)}}]`),
    status: 400,
    path: { all: 'x.0.y' },
  },
  {
    id: 'B41',
    name: '−1e400 in depth',
    raw: adding('"x":[0,-1e400]'),
    status: 400,
    path: { all: 'x.1' },
  },
  {
    id: 'B41',
    name: 'max_tokens beyond 2^53',
    raw: (legal) =>
      legal
        .replace(/"max_tokens":\d+/, '')
        .replace(/,?}$/, ',"max_tokens":9007199254740993}')
        .replace(',,', ','),
    notCounted: true,
    status: 400,
    path: { all: 'max_tokens' },
  },
  { id: 'B45', name: 'temperature null in a list', ...field(same('temperature'), [1]) },
  {
    id: 'B47',
    name: 'a stop string of 1 MB',
    ...field({ chat: 'stop', messages: 'stop_sequences' }, ['s'.repeat(megabyte)]),
  },
  { id: 'B49', name: 'a model name of 10 KB', ...field(same('model'), 'm'.repeat(10 * 1024)) },
  { id: 'B49', name: 'a model name with a line end', ...field(same('model'), 'a\nb') },
  { id: 'B49', name: 'a model name with NUL', ...field(same('model'), 'a\u0000b') },
  { id: 'B49', name: 'a model name with an escape', ...field(same('model'), '\u001b[31mSECRET') },
  {
    id: 'B50',
    name: 'a name that would keep an expression busy',
    change: { all: { model: `${'a'.repeat(500)}!` } },
    status: 404,
  },
  {
    id: 'B51',
    name: '101,000 items',
    change: { all: { messages: Array.from({ length: 101_000 }, () => user) } },
    status: 413,
  },
  { id: 'B51', name: 'messages is an object', ...field(same('messages'), {}) },
  {
    id: 'B51',
    name: 'a number among them',
    change: { all: { messages: [user, 5] } },
    status: 400,
    path: { all: 'messages.1' },
  },
  {
    id: 'B52',
    name: 'role is a number',
    change: { all: messagesWith({ role: 5, content: 'x' }) },
    status: 400,
    path: { all: 'messages.0.role' },
  },
  {
    id: 'B52',
    name: 'system holds a number',
    ...field({ messages: 'system', responses: 'instructions' }, [5]),
  },
  {
    id: 'B56',
    name: 'a schema that is text',
    change: {
      chat: { tools: [{ type: 'function', function: { name: 'f', parameters: 'x' } }] },
      messages: { tools: [{ name: 'f', input_schema: 'x' }] },
      responses: { tools: [{ type: 'function', name: 'f', parameters: 'x' }] },
    },
    status: 400,
    path: { all: 'tools.0' },
  },
  {
    id: 'B56',
    name: 'a tool name of 200 characters',
    change: tools((dialect) => [tool(dialect, 'f'.repeat(200))]),
    status: 400,
    path: { all: 'tools.0' },
  },
  {
    id: 'B58',
    name: 'a schema of 1 MB',
    change: {
      chat: large('chat'),
      messages: large('messages'),
      responses: large('responses'),
    },
    status: 413,
  },
  {
    id: 'B66',
    name: 'a user of 1 MB',
    change: {
      chat: { user: 'u'.repeat(megabyte) },
      messages: { metadata: { user_id: 'u'.repeat(megabyte) } },
      responses: { safety_identifier: 'u'.repeat(megabyte) },
    },
    status: 400,
    path: { chat: 'user', messages: 'metadata.user_id', responses: 'safety_identifier' },
  },
  {
    id: 'B66',
    name: 'a user that is a number',
    change: {
      chat: { user: 5 },
      messages: { metadata: { user_id: 5 } },
      responses: { user: 5 },
    },
    status: 400,
    path: { chat: 'user', messages: 'metadata.user_id', responses: 'user' },
  },
  { id: 'B66', name: 'metadata is a list', ...field(same('metadata'), []) },
  {
    id: 'B66',
    name: 'nested metadata',
    ...field({ chat: 'metadata', responses: 'metadata' }, { a: { b: 'c' } }),
  },
  {
    id: 'B66',
    name: 'a number in metadata',
    ...field({ chat: 'metadata', responses: 'metadata' }, { a: 1 }),
  },
  { id: 'B66', name: '17 pairs', ...field({ chat: 'metadata', responses: 'metadata' }, pairs(17)) },
  {
    id: 'B66',
    name: 'a key of 65 characters',
    ...field({ chat: 'metadata', responses: 'metadata' }, { ['k'.repeat(65)]: 'v' }),
  },
  {
    id: 'B66',
    name: 'a value of 513 characters',
    ...field({ chat: 'metadata', responses: 'metadata' }, { k: 'v'.repeat(513) }),
  },
  header('B69', '51 betas', {
    'anthropic-beta': Array.from({ length: 51 }, (_, i) => `b${i}`).join(','),
  }),
  header('B67', 'a beta that is no name', { 'anthropic-beta': 'a b' }),
  header('B67', 'a beta of 200 characters', { 'anthropic-beta': 'b'.repeat(200) }),
  header('B67', 'a beta in another script', {
    'anthropic-beta': Buffer.from('bêta').toString('latin1'),
  }),
  header('B67', 'a version that is none', { 'anthropic-version': '2023-06-01 x' }),
  header('B67', 'a version in another script', {
    'anthropic-version': Buffer.from('２０２３').toString('latin1'),
  }),
  header('B71', 'an empty idempotency key', { 'idempotency-key': '' }),
  header('B71', 'an idempotency key of 300 characters', { 'idempotency-key': 'k'.repeat(300) }),
  header('B71', 'an idempotency key in another script', {
    'idempotency-key': Buffer.from('schlüssel').toString('latin1'),
  }),
];

/** A good body under a header that is refused. */
function header(id: string, name: string, headers: BadRow['headers'] & {}): BadRow {
  return {
    id,
    name,
    raw: (legal) => legal,
    headers,
    status: 400,
    message: new RegExp(Object.keys(headers)[0] ?? ''),
  };
}

function keys(count: number): string {
  return Array.from({ length: count }, (_, i) => `"k${i}":1`).join(',');
}

function pairs(count: number): { readonly [key: string]: string } {
  return Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, 'v']));
}

/** A string with these bytes in it. */
function bytes(...values: readonly number[]): (legal: string) => Buffer {
  return (legal) =>
    Buffer.concat([
      Buffer.from(`${legal.slice(0, -1)},"x":"`),
      Buffer.from(values),
      Buffer.from('"}'),
    ]);
}
