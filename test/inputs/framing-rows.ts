/** Requests whose end is stated in two ways or in none (reliability.md B1–B11, B17–B19; S18). */
import { chunkedEnd, chunks, lengthEnd, smuggled, type RawRow } from './raw-row.ts';

/** Refused by the parser, before a path is known. */
function unparsed(id: string, name: string, ending: string, more: Partial<RawRow> = {}): RawRow {
  return {
    id,
    name,
    bytes: ({ head }) => `${head}${ending}${smuggled}`,
    status: 400,
    after: 'closed',
    beforeDialect: true,
    message: /not valid HTTP/,
    ...more,
  };
}

/** Refused by the gateway, which knows the dialect. */
function refused(id: string, name: string, ending: string, message: RegExp): RawRow {
  return {
    id,
    name,
    bytes: ({ head }) => `${head}${ending}${smuggled}`,
    status: 400,
    after: 'closed',
    message,
  };
}

/** Legal framing: the body `{}` arrives and is refused for what it is. */
function legal(id: string, name: string, ending: string): RawRow {
  return {
    id,
    name,
    bytes: ({ head }) => head + ending,
    status: 400,
    after: 'usable',
    message: /model/,
  };
}

const coding = /transfer-encoding/;

export const framingRows: readonly RawRow[] = [
  unparsed('B1', 'length and chunks', `Content-Length: 5\r\n${chunkedEnd}`),
  unparsed(
    'B1',
    'chunks and length',
    `Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n${chunks}`,
  ),
  refused('B2', 'coding xchunked', `Transfer-Encoding: xchunked\r\n\r\n${chunks}`, coding),
  refused('B2', 'coding identity', `Transfer-Encoding: identity\r\n\r\n${chunks}`, coding),
  refused('B2', 'coding in quotes', `Transfer-Encoding: "chunked"\r\n\r\n${chunks}`, coding),
  refused(
    'B2',
    'coding with a parameter',
    `Transfer-Encoding: chunked;q=1\r\n\r\n${chunks}`,
    coding,
  ),
  unparsed(
    'B2',
    'coding behind a vertical tab',
    `Transfer-Encoding: \u000bchunked\r\n\r\n${chunks}`,
  ),
  unparsed('B3', 'chunked, identity', `Transfer-Encoding: chunked, identity\r\n\r\n${chunks}`),
  unparsed('B3', 'chunked and nothing', `Transfer-Encoding: chunked,\r\n\r\n${chunks}`),
  unparsed(
    'B4',
    'two codings',
    `Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n${chunks}`,
  ),
  unparsed(
    'B4',
    'two different codings',
    `Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n${chunks}`,
  ),
  unparsed('B5', 'two equal lengths', 'Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}'),
  unparsed('B5', 'two different lengths', 'Content-Length: 2\r\nContent-Length: 40\r\n\r\n{}'),
  ...['+2', '2,2', '2, 2', '2 2', '-1', '0x2', '2.0', '', '99999999999999999999'].map((length) =>
    unparsed('B6', `length "${length}"`, `Content-Length: ${length}\r\n\r\n{}`),
  ),
  unparsed('B6', 'a length beyond 64 bits', 'Content-Length: 18446744073709551618\r\n\r\n{}'),
  unparsed('B7', 'bare line feeds', `X-A: b\nX-C: d\r\n${lengthEnd}`),
  unparsed('B7', 'a head that ends in a bare line feed', 'Content-Length: 2\n\n{}'),
  unparsed('B7', 'a bare carriage return', `X-A: b\rX-C: d\r\n${lengthEnd}`),
  unparsed('B8', 'space before a colon', `Transfer-Encoding : chunked\r\n\r\n${chunks}`),
  unparsed('B8', 'space before the colon of an unknown header', `X-A : b\r\n${lengthEnd}`),
  unparsed('B9', 'a folded header', `X-A: b\r\n c\r\n${lengthEnd}`),
  unparsed('B9', 'a folded coding', `Transfer-Encoding:\r\n chunked\r\n\r\n${chunks}`),
  unparsed('B10', 'NUL in a value', `X-A: b\u0000c\r\n${lengthEnd}`),
  unparsed('B10', 'a control character in a value', `X-A: b\u0001c\r\n${lengthEnd}`),
  unparsed('B10', 'NUL in a name', `X\u0000A: b\r\n${lengthEnd}`),
  unparsed('B10', 'a header without a name', `: b\r\n${lengthEnd}`),
  unparsed('B10', 'a header without a colon', `X-A\r\n${lengthEnd}`),
  refused('B11', 'gzip, chunked', `Transfer-Encoding: gzip, chunked\r\n\r\n${chunks}`, coding),
  {
    ...refused('B11', 'chunks in HTTP/1.0', '', coding),
    bytes: ({ head }) => `${head.replace('HTTP/1.1', 'HTTP/1.0')}${chunkedEnd}${smuggled}`,
  },
  ...['zz', '-2', '0x2', '2 ', '10000000000000002', ''].map((size) =>
    unparsed(
      'B19',
      `chunk size "${size}"`,
      `Transfer-Encoding: chunked\r\n\r\n${size}\r\n{}\r\n0\r\n\r\n`,
    ),
  ),
  unparsed('B19', 'chunks with bare line feeds', 'Transfer-Encoding: chunked\r\n\r\n2\n{}\n0\n\n'),
  unparsed(
    'B19',
    'an extension that ends in a line feed',
    'Transfer-Encoding: chunked\r\n\r\n2;a\n{}\r\n0\r\n\r\n',
  ),
  unparsed(
    'B19',
    'a chunk that is longer than it says',
    'Transfer-Encoding: chunked\r\n\r\n2\r\n{}{}\r\n0\r\n\r\n',
  ),
  unparsed(
    'B19',
    'an extension of 20 KB',
    `Transfer-Encoding: chunked\r\n\r\n2;${'a'.repeat(20 * 1024)}\r\n{}\r\n0\r\n\r\n`,
  ),
  unparsed(
    'B19',
    'trailers of 20 KB',
    `Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX-T: ${'a'.repeat(20 * 1024)}\r\n\r\n`,
    { status: 431, message: /16 KiB/ },
  ),
  unparsed('B17', 'a head of 17 KiB', `X-A: ${'a'.repeat(17 * 1024)}\r\n${lengthEnd}`, {
    status: 431,
    message: /16 KiB/,
  }),
  unparsed('B18', '2,100 headers', `${'a:b\r\n'.repeat(2100)}${lengthEnd}`, {
    status: 431,
    message: /16 KiB/,
  }),
  refused('B18', '101 headers', `${'a:b\r\n'.repeat(101)}${lengthEnd}`, /100 headers/),
  legal('B1', 'a length', lengthEnd),
  legal('B1', 'chunks', chunkedEnd),
  legal('B2', 'the coding in capitals', `Transfer-Encoding: CHUNKED\r\n\r\n${chunks}`),
  legal('B6', 'leading zeros of a length', 'Content-Length: 0002\r\n\r\n{}'),
  legal('B19', 'a short extension', 'Transfer-Encoding: chunked\r\n\r\n2;a=b\r\n{}\r\n0\r\n\r\n'),
  legal('B19', 'a trailer', 'Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX-T: a\r\n\r\n'),
];
