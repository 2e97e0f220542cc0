/** AWS Signature Version 4 by hand: the vectors of AWS's library, and that library beside it (wire/bedrock.md §2.2). */
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { Secret } from '../../../src/core/secret.ts';
import { Pieces } from '../../../src/json/pieces.ts';
import {
  AwsSignature,
  type AwsKeys,
  encodedSegment,
} from '../../../src/providers/credentials/aws-signature.ts';
import { whyOmitted } from '../../recordings/recorded.ts';
import { assertSigned } from '../../upstream/aws.ts';
import { anyCharacter } from '../../support/any-character.ts';

const file = join(
  import.meta.dirname,
  '../../../../shared/recordings/bedrock-frames/sigv4-vectors.json',
);

interface Vectors {
  readonly credentials: { accessKeyId: string; secretAccessKey: string; sessionToken: string };
  readonly vectors: readonly {
    readonly region: string;
    readonly service: string;
    readonly host: string;
    readonly path: string;
    readonly body: string;
    readonly signature: string;
    readonly signedHeaders: string;
  }[];
}

test('bedrock 23: the three vectors', { skip: whyOmitted ?? false }, () => {
  const { credentials, vectors } = JSON.parse(readFileSync(file, 'utf8')) as Vectors;
  assert.equal(vectors.length, 3);
  for (const { region, service, host, path, body, signature, signedHeaders } of vectors) {
    const keys: AwsKeys = {
      accessKeyId: credentials.accessKeyId,
      secretAccessKey: new Secret(credentials.secretAccessKey),
      sessionToken: new Secret(credentials.sessionToken),
    };
    const request = {
      method: 'POST' as const,
      origin: `https://${host}`,
      path,
      headers: ['content-type', 'application/json', 'accept-encoding', 'identity'],
      body: Pieces.of(Buffer.from(body)),
    };
    const headers = new AwsSignature({ region, service }).headersFor(
      request,
      keys,
      Date.UTC(2026, 10, 23, 8),
    );
    assert.ok(headers[1]?.endsWith(`SignedHeaders=${signedHeaders}, Signature=${signature}`));
    assert.equal(headers[5], '20261123T080000Z');
  }
});

test('bedrock 23: whatever the path, the query, the keys, the time and the pieces, as the library signs it', async () => {
  const text = fc.string({ unit: anyCharacter, minLength: 1, maxLength: 40 });
  const property = fc.asyncProperty(
    fc.record({
      segments: fc.array(fc.oneof(text, fc.constantFrom("a(b)'c*", '..', 'arn:aws:x/y')), {
        minLength: 1,
        maxLength: 4,
      }),
      query: fc.dictionary(fc.stringMatching(/^[a-z]{1,8}$/), text, { maxKeys: 4 }),
      body: fc.array(fc.uint8Array({ maxLength: 200 }), { maxLength: 4 }),
      token: fc.option(fc.stringMatching(/^[A-Za-z0-9+/=]{1,60}$/), { nil: undefined }),
      atMs: fc.integer({ min: 946_684_800_000, max: 4_102_444_800_000 }),
      more: fc.dictionary(
        fc.stringMatching(/^x-amzn-bedrock-[a-z]{1,9}$/),
        fc.stringMatching(/^[a-z](?: {0,3}[a-z]){0,9}$/),
        { maxKeys: 3 },
      ),
    }),
    async ({ segments, query, body, token, atMs, more }) => {
      // A dot segment is normalized away by the library; ids of that form are refused before.
      const path = `/model/${segments.map((each) => encodedSegment(each).replace(/^\.+$/, 'x')).join('/')}`;
      const asked = Object.entries(query).map(
        ([name, value]) => `${name}=${encodedSegment(value)}`,
      );
      const request = {
        method: 'POST' as const,
        origin: 'http://127.0.0.1:8080',
        path: asked.length === 0 ? path : `${path}?${asked.join('&')}`,
        headers: [
          'Content-Type',
          'application/json',
          'user-agent',
          'x',
          ...Object.entries(more).flat(),
        ],
        body: new Pieces(body.map((each) => Buffer.from(each))),
      };
      const keys = {
        accessKeyId: 'AKIDEXAMPLE',
        secretAccessKey: new Secret('secret/key+'),
        ...(token === undefined ? {} : { sessionToken: new Secret(token) }),
      };
      const added = new AwsSignature({ region: 'eu-central-1', service: 'bedrock' }).headersFor(
        request,
        keys,
        atMs,
      );
      const lines = [...request.headers, ...added, 'host', '127.0.0.1:8080'];
      const headers = new Map(
        lines.flatMap((name, i) =>
          i % 2 === 0 ? [[name.toLowerCase(), lines[i + 1] ?? ''] as const] : [],
        ),
      );
      const sent = token === undefined ? {} : { sessionToken: token };
      await assertSigned(
        {
          method: 'POST',
          path: request.path,
          headerLines: [],
          body: request.body.whole(),
          json: {},
          header: (name) => headers.get(name),
          closed: Promise.resolve('upstream'),
          answered: Promise.resolve(),
        },
        { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'secret/key+', ...sent },
        { region: 'eu-central-1' },
      );
    },
  );
  await fc.assert(property, { numRuns: 100 });
});

test('bedrock 23: the key of the day is derived anew for another day and for other keys', () => {
  const signature = new AwsSignature({ region: 'us-east-1', service: 'bedrock' });
  const request = {
    method: 'GET' as const,
    origin: 'https://bedrock.us-east-1.amazonaws.com',
    path: '/foundation-models',
    headers: ['content-type', 'application/json'],
    body: undefined,
  };
  const keysOf = (secret: string): AwsKeys => ({
    accessKeyId: 'AKIDEXAMPLE',
    secretAccessKey: new Secret(secret),
  });
  const one = keysOf('one');
  const day = Date.UTC(2026, 10, 23, 8);
  const made = [
    [day, one],
    [day, keysOf('two')],
    [day + 86_400_000, one],
    [day, one],
  ] as const;
  const [first, second, third, again] = made.map(
    ([at, keys]) => signature.headersFor(request, keys, at)[1],
  );
  assert.equal(first, again);
  assert.equal(new Set([first, second, third]).size, 3);
  // Independent of the class: the chain as the documents of AWS tell it.
  const chain = ['20261123', 'us-east-1', 'bedrock', 'aws4_request'].reduce<Buffer | string>(
    (key, part) => createHmac('sha256', key).update(part).digest(),
    'AWS4one',
  );
  assert.ok(Buffer.isBuffer(chain));
});
