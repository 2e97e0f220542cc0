/**
 * Everything that reads what others wrote: whatever it is given, it answers or throws the gateway's own error,
 * and never takes long. What the dialects read is in any-input.test.ts.
 */
import * as fc from 'fast-check';
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { makeKey, readKey, presentedKey } from '../../src/access/keys/key-format.ts';
import { ConfigError, readAddress } from '../../src/config/errors.ts';
import { loadSettings } from '../../src/config/load.ts';
import { readPostgres, readRedis } from '../../src/config/storage.ts';
import {
  AddressRange,
  rangeProblem,
  isForbiddenAddress,
  isForbiddenHost,
} from '../../src/core/addresses.ts';
import { GatewayError } from '../../src/core/errors.ts';
import { parseClientBody } from '../../src/core/client-body.ts';
import { knownProviders } from '../../src/compose/providers.ts';
import { decompressor, maxDecompressedBytes } from '../../src/wire/decompress.ts';
import { readRetryAfterMs } from '../../src/wire/upstream-error.ts';
import { SseSplitter } from '../../src/wire/sse.ts';
import { temporaryFolder } from '../support/folders.ts';
import { countingBytes } from '../unit/access/fakes.ts';
import { json, text } from './arbitraries.ts';
import { check, checkAsync } from './checking.ts';
import { pieces } from './frames.ts';
import { anyCharacter } from '../support/any-character.ts';

/** Far more than any of them needs, also on a busy machine; what goes by the square takes minutes. */
const longMs = 20_000;

function quick<T>(action: () => T): T {
  const began = performance.now();
  const result = action();
  const took = performance.now() - began;
  assert.ok(took < longMs, `${took} ms`);
  return result;
}

const number = fc.oneof(fc.integer(), fc.double(), fc.constantFrom('1e400', '-0', '0x10', '٣', ''));
const waits = fc.oneof(
  text,
  number.map(String),
  fc.date().map((date) => (Number.isNaN(date.getTime()) ? 'never' : date.toUTCString())),
  fc.constantFrom('Fri, 31 Dec 9999 23:59:59 GMT', 'soon', '86400', ' 5 ', '5,5', '٣'),
);

test('F16 retry-after: any header is a wait from now on, or none', (context) => {
  check(context, fc.tuple(waits, waits, fc.nat()), ([seconds, milliseconds, now]) => {
    const headers = { 'retry-after': seconds, 'retry-after-ms': milliseconds };
    for (const given of [headers, { 'retry-after': seconds }]) {
      const wait = quick(() => readRetryAfterMs(given, now));
      assert.ok(wait === undefined || (Number.isFinite(wait) && wait >= 0), String(wait));
    }
  });
});

const made = makeKey(countingBytes()).key.reveal();

test('S1 keys: any text has an id or none; a key with any other character has none', (context) => {
  const spoiled = fc
    .tuple(
      fc.nat({ max: made.length - 1 }),
      fc.string({ unit: anyCharacter, minLength: 1, maxLength: 2 }),
    )
    .map(([at, by]) => made.slice(0, at) + by + made.slice(at + 1));
  check(context, fc.oneof(text, spoiled, fc.constant(made.repeat(2000))), (presented) => {
    const read = quick(() => readKey(presented));
    assert.equal(read !== undefined, presented === made, presented.slice(0, 100));
  });
});

test('B16 two headers give one key or none', (context) => {
  const header = fc.option(
    fc.oneof(
      text,
      text.map((value) => `Bearer ${value}`),
      fc.constant(`bearer\t${made}`),
    ),
    { nil: undefined },
  );
  check(context, fc.tuple(header, header), ([authorization, apiKey]) => {
    const key = quick(() => presentedKey(authorization, apiKey));
    const given = `${authorization ?? ''} ${apiKey ?? ''}`;
    assert.ok(key === '' || given.includes(key));
  });
});

const byte = fc.integer({ min: 0, max: 255 });
const four = fc.tuple(byte, byte, byte, byte);
const ranges = fc.oneof(
  text,
  fc
    .tuple(four, fc.integer({ min: -1, max: 40 }))
    .map(([ip, length]) => `${ip.join('.')}/${length}`),
  fc.tuple(fc.ipV6(), fc.integer({ min: 0, max: 130 })).map(([ip, length]) => `${ip}/${length}`),
  fc.constantFrom('::/0', '1.2.3', '::ffff:1.2.3.4/96', '1:2:3:4:5:6:7:8:9', ':::', '/'),
);

test('address ranges: any text is one or has a problem, and no address breaks one', (context) => {
  check(context, fc.tuple(ranges, fc.oneof(text, fc.ipV6(), fc.ipV4())), ([range, address]) => {
    if (quick(() => rangeProblem(range)) !== undefined) return;
    const read = new AddressRange(range);
    assert.equal(typeof read.holds(address), 'boolean');
    assert.ok(read.holds(range.split('/')[0] ?? ''), range);
  });
});

/** Ways to write an IPv4 address that URLs or resolvers understand. */
function spellings([a, b, c, d]: readonly [number, number, number, number]): readonly string[] {
  const whole = ((a << 24) | (b << 16) | (c << 8) | d) >>> 0;
  const hex = (value: number): string => value.toString(16);
  const [high, low] = [hex((a << 8) | b), hex((c << 8) | d)];
  return [
    `${a}.${b}.${c}.${d}`,
    `${a}.${b}.${c}.${d}.`,
    String(whole),
    `0x${hex(whole)}`,
    `0${whole.toString(8)}`,
    `0x${hex(a)}.${b}.${(c << 8) | d}`,
    `[::ffff:${a}.${b}.${c}.${d}]`,
    `[::ffff:${high}:${low}]`,
    `[64:ff9b::${high}:${low}]`,
    `[2002:${high}:${low}::]`,
    `[64:ff9b:1::${high}:${low}]`,
    `[64:ff9b:1:${high}:${hex(c)}:${hex(d << 8)}::]`,
    `[::ffff:0:${high}:${low}]`,
    `[::${a}.${b}.${c}.${d}]`,
  ];
}

/** Those of metadata outside the link-local range: Alibaba, Oracle, Azure. */
const metadata = fc.constantFrom(
  [100, 100, 100, 200] as const,
  [192, 0, 0, 192] as const,
  [168, 63, 129, 16] as const,
);

test('S16 the address of cloud metadata is seen in every spelling, and no host breaks the guard', (context) => {
  const linkLocal = fc.tuple(byte, byte).map(([c, d]) => [169, 254, c, d] as const);
  check(context, fc.tuple(fc.oneof(linkLocal, metadata), text), ([address, host]) => {
    for (const spelling of spellings(address)) {
      const { hostname } = new URL(`http://${spelling}/`);
      assert.ok(isForbiddenHost(hostname), `${spelling} is ${hostname}`);
    }
    assert.equal(typeof quick(() => isForbiddenHost(host)), 'boolean');
    assert.equal(typeof quick(() => isForbiddenAddress(host)), 'boolean');
  });
});

test('addresses to listen on, of PostgreSQL and of Redis: any text is one or is complained about', (context) => {
  const form = fc.oneof(
    text,
    text.map((value) => `postgres://u:p@${value}`),
    text.map((value) => `rediss://:p@h/${value}`),
    fc.webUrl().map((url) => url.replace(/^https?/, 'redis')),
    fc.tuple(text, number).map(([host, port]) => `${host}:${String(port)}`),
  );
  check(context, form, (address) => {
    let complaints = 0;
    const scope = { directory: '/', complain: () => (complaints += 1) };
    for (const read of [readPostgres, readRedis]) {
      complaints = 0;
      const found = quick(() =>
        read(address, { ...scope, complain: () => void (complaints += 1) }),
      );
      assert.ok(found !== undefined || complaints > 0, address);
    }
    const listen = quick(() => readAddress(address));
    assert.ok(listen === undefined || (listen.port >= 0 && listen.port <= 65_535), address);
  });
});

test('S16 base_url: any text is taken or refused with its place', async (context) => {
  const folder = temporaryFolder('base-url');
  const config = join(folder, 'gateway.yaml');
  const urls = fc.oneof(
    text,
    fc.webUrl({ withQueryParameters: true, withFragments: true }),
    text.map((value) => `http://${value}/v1`),
    fc.constantFrom('http://', 'file:///etc/passwd', 'http://u:p@h/', 'http://169.254.169.254'),
  );
  await checkAsync(context, urls, async (baseUrl) => {
    const providers = { up: { dialect: 'openai-chat', base_url: baseUrl, api_key: 'k' } };
    writeFileSync(config, JSON.stringify({ providers }), { mode: 0o600 });
    try {
      const settings = await loadSettings({
        flags: { config },
        env: {},
        cwd: folder,
        knownProviders,
      });
      const read = new URL(settings.providers[0]?.baseUrl ?? '');
      assert.match(read.protocol, /^https?:$/);
      assert.ok(!isForbiddenHost(read.hostname), baseUrl);
    } catch (error) {
      assert.ok(error instanceof ConfigError, error instanceof Error ? error.stack : String(error));
    }
  });
});

const encodings = {
  gzip: gzipSync,
  'x-gzip': gzipSync,
  deflate: deflateSync,
  br: brotliCompressSync,
  zstd: zstdCompressSync,
} as const;
const names = Object.keys(encodings) as (keyof typeof encodings)[];

/** What comes out at last. */
function decompressed(encoding: string, parts: readonly Buffer[]): Promise<Buffer | GatewayError> {
  return new Promise((resolve) => {
    const out: Buffer[] = [];
    const reader = decompressor(encoding, {
      data: (chunk) => out.push(chunk),
      end: () => resolve(Buffer.concat(out)),
      failed: resolve,
    });
    for (const part of parts) reader?.write(part, () => undefined);
    reader?.end();
  });
}

test('F32 F33 compressed bodies: whole in any split; spoiled they end in the gateway’s own error', async (context) => {
  const cases = fc.tuple(
    fc.constantFrom(...names),
    fc.uint8Array({ maxLength: 2000 }),
    fc.array(fc.nat({ max: 2000 }), { maxLength: 5 }),
    fc.nat({ max: 1999 }),
  );
  await checkAsync(context, cases, async ([encoding, plain, cuts, at]) => {
    const packed = Buffer.from(encodings[encoding](plain));
    const whole = await decompressed(encoding, pieces(packed, cuts));
    assert.ok(Buffer.isBuffer(whole) && whole.equals(plain), encoding);
    for (const spoiled of [packed.subarray(0, at % packed.length), Buffer.from(plain)]) {
      const result = await decompressed(encoding, pieces(spoiled, cuts));
      if (Buffer.isBuffer(result)) assert.ok(result.length <= maxDecompressedBytes);
      else assert.equal(result.code, 'upstream_invalid');
    }
  });
});

test('encodings: any name is known or refused', (context) => {
  const silent = { data: () => undefined, end: () => undefined, failed: () => undefined };
  check(context, fc.oneof(text, fc.constantFrom('gzip, br', 'GZIP ', '')), (encoding) => {
    try {
      decompressor(encoding, silent)?.destroy();
    } catch (error) {
      assert.ok(error instanceof GatewayError && error.code === 'upstream_invalid');
    }
  });
});

/** Things said so often that whatever goes by their square is seen. */
const repeated = fc.tuple(
  fc.constantFrom(
    '[',
    '{"a":',
    '[[]],',
    '{"a":1},',
    '"',
    '\\',
    '\\u0000',
    ' ',
    '1',
    '-',
    ':',
    '\r',
    '\n',
    'data:',
    'data: x\n',
    ': c\n',
    'event',
    '\u00e9',
  ),
  fc.constantFrom(10, 1000, 100_000, 600_000),
);

test('G11 bodies of one thing said a thousand times are read or refused at once', async (context) => {
  const bodies = fc
    .tuple(repeated, json, fc.constantFrom('', '{"messages":[', '{"a":"', '['))
    .map(([[piece, times], value, begin]) => begin + piece.repeat(times) + JSON.stringify(value));
  await checkAsync(context, bodies, async (body) => {
    const began = performance.now();
    try {
      await parseClientBody(Buffer.from(body), new Set(['model', 'messages']));
    } catch (error) {
      assert.ok(
        error instanceof GatewayError,
        error instanceof Error ? error.stack : String(error),
      );
      assert.notEqual(error.code, 'internal');
    }
    assert.ok(performance.now() - began < longMs, body.slice(0, 40));
  });
});

test('S22 streams of one thing said a thousand times are split at once', (context) => {
  check(
    context,
    fc.tuple(repeated, fc.integer({ min: 500, max: 70_000 })),
    ([[piece, times], size]) => {
      const bytes = Buffer.from(piece.repeat(times));
      const splitter = new SseSplitter();
      quick(() => {
        try {
          let length = 0;
          for (let at = 0; at < bytes.length; at += size) {
            for (const frame of splitter.push(bytes.subarray(at, at + size)))
              length += frame.bytes.length;
          }
          length += splitter.end()?.bytes.length ?? 0;
          assert.equal(length, bytes.length);
        } catch (error) {
          if (!(error instanceof GatewayError)) throw error;
        }
      });
    },
  );
});
