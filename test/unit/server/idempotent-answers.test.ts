import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { GatewayError } from '../../../src/core/errors.ts';
import {
  IdempotentAnswers,
  type IdempotentRequest,
  type KeptAnswer,
} from '../../../src/server/idempotent-answers.ts';

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

  test('one client puts out no other, and what finds no room is not kept', () => {
    const { kept } = answers();
    for (const client of ['a', 'b']) serve(kept, request('1', client), answer(7000));
    assert.equal(serve(kept, request('1', 'c'), answer(7000)), false);
    assert.equal(serve(kept, request('1', 'c'), answer(7000)), false, 'no room for it');
    for (const client of ['a', 'b']) assert.equal(serve(kept, request('1', client)), true);
  });
});
