import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { GatewayError } from '../../../src/core/errors.ts';
import type { ClientSink } from '../../../src/gateway/client-sink.ts';
import {
  IdempotentAnswers,
  type IdempotentRequest,
  type KeptAnswer,
} from '../../../src/server/idempotent-answers.ts';
import { RecordingSink } from '../../../src/server/recording-sink.ts';

const limits = { ageMs: 1000, bytes: 20_000, bytesOfOne: 8000, answersOfOne: 4 };

function answers(): { readonly kept: IdempotentAnswers; at: number } {
  const clock = { at: 0, now: () => clock.at, wall: () => 0 };
  return Object.assign(clock, { kept: new IdempotentAnswers(clock, limits) });
}

function request(idempotencyKey: string, keyId = 'a', body = 'x'): IdempotentRequest {
  return { keyId, idempotencyKey, method: 'POST', path: '/v1/messages', body: Buffer.from(body) };
}

function answer(length = 10): KeptAnswer {
  return { status: 200, headers: [], body: Buffer.alloc(length) };
}

/** Asks and answers; whether it had been answered before. */
function serve(kept: IdempotentAnswers, asked: IdempotentRequest, given = answer()): boolean {
  const claim = kept.claim(asked);
  if (claim.kept !== undefined) return true;
  claim.finish(given);
  return false;
}

function refusal(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    return error instanceof GatewayError ? error.code : String(error);
  }
  return 'none';
}

describe('E17 answers by Idempotency-Key', () => {
  test('an answer is kept for its time and no longer', () => {
    const time = answers();
    assert.equal(serve(time.kept, request('1')), false);
    time.at = 999;
    assert.equal(serve(time.kept, request('1')), true);
    time.at = 1000;
    assert.equal(serve(time.kept, request('1')), false);
  });

  test('the time begins with the answer, and what is being answered is never forgotten', () => {
    const time = answers();
    const claim = time.kept.claim(request('1'));
    time.at = 5000;
    assert.equal(
      refusal(() => time.kept.claim(request('1'))),
      'idempotency_busy',
    );
    assert.ok(claim.kept === undefined);
    claim.finish(answer());
    time.at = 5999;
    assert.equal(serve(time.kept, request('1')), true);
  });

  test('path and body tell requests apart, clients have keys of their own', () => {
    const { kept } = answers();
    serve(kept, request('1'));
    assert.equal(
      refusal(() => kept.claim(request('1', 'a', 'y'))),
      'idempotency_conflict',
    );
    const elsewhere = { ...request('1'), path: '/v1/chat/completions' };
    assert.equal(
      refusal(() => kept.claim(elsewhere)),
      'idempotency_conflict',
    );
    assert.equal(serve(kept, request('1', 'b', 'y')), false);
  });

  test('what was not kept may be asked again, with another body too', () => {
    const { kept } = answers();
    const claim = kept.claim(request('1'));
    assert.ok(claim.kept === undefined);
    claim.finish(undefined);
    assert.equal(serve(kept, request('1', 'a', 'y')), false);
  });

  test('the oldest answers of a client make room for its newest', () => {
    const { kept } = answers();
    for (const key of ['1', '2', '3', '4', '5']) serve(kept, request(key));
    assert.equal(serve(kept, request('5')), true);
    assert.equal(serve(kept, request('1')), false);
    serve(kept, request('large', 'a', 'x'), answer(7000));
    assert.equal(serve(kept, request('5')), false, 'seven kilobytes put the others out');
  });

  test('where all have no more room, whoever has most gives of the oldest', () => {
    const { kept } = answers();
    for (const key of ['1', '2', '3']) serve(kept, request(key, 'a'), answer(1800));
    serve(kept, request('1', 'b'), answer(3000));
    for (const client of ['c', 'd', 'e']) serve(kept, request('1', client), answer(3000));
    assert.ok(kept.bytes <= limits.bytes);
    for (const client of ['b', 'c', 'd', 'e']) {
      assert.equal(serve(kept, request('1', client)), true, client);
    }
    assert.equal(serve(kept, request('3', 'a')), true, 'its newest');
    assert.equal(serve(kept, request('1', 'a')), false, 'the oldest of whoever had most');
  });

  test('an answer that makes room by old ones is kept itself', () => {
    const time = answers();
    for (const client of ['a', 'b']) serve(time.kept, request('1', client), answer(7000));
    const claim = time.kept.claim(request('1', 'c'));
    time.at = 1000;
    assert.ok(claim.kept === undefined);
    claim.finish(answer(7000));
    assert.equal(serve(time.kept, request('1', 'c')), true);
    time.at = 2000;
    for (const client of ['a', 'b', 'c']) serve(time.kept, request('2', client));
    time.at = 3000;
    for (const client of ['a', 'b', 'c']) time.kept.claim(request('3', client));
    assert.equal(time.kept.bytes, 0, 'nothing is forgotten without its bytes');
  });

  test('answers that are being given take of the room, and give it back', () => {
    const { kept } = answers();
    const claims = Array.from({ length: 5 }, (_, i) => kept.claim(request('1', `client ${i}`)));
    const held = claims.map((claim) => claim.kept === undefined && claim.hold(4000));
    assert.deepEqual(held, [true, true, true, true, true]);
    assert.equal(kept.bytes, limits.bytes);
    const more = kept.claim(request('2'));
    assert.equal(more.kept === undefined && more.hold(1), false);
    for (const claim of claims) if (claim.kept === undefined) claim.finish(undefined);
    assert.equal(kept.bytes, 0);
    assert.equal(more.kept === undefined && more.hold(1), true);
  });
});

describe('E17 what is passed on is kept', () => {
  const sink: ClientSink = {
    start: () => undefined,
    write: () => true,
    end: () => undefined,
    cut: () => undefined,
    observe: () => undefined,
  };

  test('byte for byte, in pieces of any size, in no more room than was given', () => {
    let room = 0;
    const recording = new RecordingSink(sink, {
      hold: (bytes) => {
        room += bytes;
        return true;
      },
    });
    recording.start(200, ['x-request-id', '1', 'a', 'b']);
    const piece = Buffer.from('é!');
    for (let i = 0; i < 5000; i++) recording.write(i % 2 === 0 ? piece : 'é!');
    piece.fill(0);
    recording.end('end');
    assert.equal(recording.answer?.body?.toString(), `${'é!'.repeat(5000)}end`);
    assert.deepEqual(recording.answer?.headers, ['a', 'b']);
    assert.ok(room >= 15_003 && room <= 2 * 15_003, `${room}`);
  });

  test('what finds no room, or is longer than 1 MiB, is passed on and not kept', () => {
    const none = new RecordingSink(sink, { hold: () => false });
    none.start(200, []);
    none.end('a');
    assert.deepEqual(none.answer, { status: 200, headers: [], body: undefined });
    const long = new RecordingSink(sink, { hold: () => true });
    long.start(200, []);
    long.write(Buffer.alloc(1024 * 1024));
    long.end('a');
    assert.equal(long.answer?.body, undefined);
  });
});
