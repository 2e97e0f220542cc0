import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Clock } from '../../../src/core/runtime.ts';
import { GatewayError } from '../../../src/core/errors.ts';
import type { ClientSink } from '../../../src/gateway/answer/client-answer.ts';
import {
  type IdempotentAnswers,
  type IdempotentRequest,
  type StoredAnswer,
  answerOf,
  openAnswer,
  sealAnswer,
  sealRequest,
} from '../../../src/features/idempotency/idempotent-answers.ts';
import { AnswerTee } from '../../../src/features/answer-tee.ts';
import { createSealer } from '../../../src/core/secret.ts';
import type { AnswerStore } from '../../../src/store/sealed.ts';
import { memoryStore } from '../../support/memory-store.ts';
import { StoreError } from '../../../src/store/store-error.ts';
import { idempotentAnswers, keepLimits } from '../../support/idempotency.ts';

function request(more: Partial<IdempotentRequest> = {}): IdempotentRequest {
  return {
    keyId: 'a',
    secret: 'the API key',
    idempotencyKey: '1',
    method: 'POST',
    path: '/v1/messages',
    body: Buffer.from('x'),
    ...more,
  };
}

const answer: StoredAnswer = { status: 200, headers: ['a', 'b'], body: Buffer.from('answered') };

let calls = 0;
async function claimed(answers: IdempotentAnswers, asked: IdempotentRequest) {
  calls += 1;
  const claim = await answers.claim(asked, `call ${calls}`);
  assert.ok(claim.kept === undefined, 'it was answered before');
  return claim;
}

/** Asks and answers; whether it had been answered before. */
async function serve(answers: IdempotentAnswers, asked: IdempotentRequest): Promise<boolean> {
  calls += 1;
  const claim = await answers.claim(asked, `call ${calls}`);
  if (claim.kept !== undefined) return true;
  await claim.finish(answer);
  return false;
}

async function refusal(asked: Promise<unknown>): Promise<string> {
  try {
    await asked;
  } catch (error) {
    return error instanceof GatewayError ? error.code : String(error);
  }
  return 'none';
}

/** A store that a test takes away. */
class AwayAnswers implements AnswerStore {
  readonly #inner: AnswerStore;
  away = false;
  /** What is claimed is taken, and nobody is told. */
  mute = false;
  /** It answers no sooner to what shall be kept. */
  until: Promise<void> | undefined;
  readonly renewed: number[] = [];
  released = 0;

  constructor(clock: Pick<Clock, 'now' | 'wall'>) {
    this.#inner = memoryStore(clock).answers;
  }

  async claim(...args: Parameters<AnswerStore['claim']>) {
    this.#requireHere();
    const claimed = await this.#inner.claim(...args);
    if (this.mute) throw new StoreError('unavailable', 'db.test: no answer in time');
    return claimed;
  }

  async keep(...args: Parameters<AnswerStore['keep']>) {
    await this.until;
    this.#requireHere();
    return this.#inner.keep(...args);
  }

  async release(...args: Parameters<AnswerStore['release']>) {
    this.#requireHere();
    this.released += 1;
    return this.#inner.release(...args);
  }

  async renew(...args: Parameters<AnswerStore['renew']>) {
    this.#requireHere();
    this.renewed.push(args[0].length);
    return this.#inner.renew(...args);
  }

  releaseAll(): Promise<void> {
    return this.#inner.releaseAll();
  }

  sweep(...args: Parameters<AnswerStore['sweep']>): Promise<number> {
    return this.#inner.sweep(...args);
  }

  #requireHere(): void {
    if (this.away) throw new StoreError('unavailable', 'db.test: away');
  }
}

function held() {
  const clock = { at: 0, now: () => clock.at, wall: () => clock.at };
  const store = new AwayAnswers(clock);
  const answers = idempotentAnswers({ clock, store });
  /** Another gateway on the same store. */
  const other = idempotentAnswers({ clock, store });
  return { clock, store, answers, other };
}

describe('E17 answers by Idempotency-Key', () => {
  test('an answer is kept for its time and no longer, and comes back as it was', async () => {
    const { clock, answers, other } = held();
    assert.equal(await serve(answers, request()), false);
    clock.at = keepLimits.keepMs - 1;
    const again = await other.claim(request(), 'later');
    assert.deepEqual(again.kept, answer);
    clock.at = keepLimits.keepMs;
    assert.equal(await serve(other, request()), false);
    assert.deepEqual([answers.tallies.kept, other.tallies.replayed], [1, 1]);
  });

  test('path, method and body tell requests apart, clients have keys of their own', async () => {
    const { answers } = held();
    await serve(answers, request());
    for (const more of [
      { body: Buffer.from('y') },
      { path: '/v1/chat/completions' },
      { method: 'GET' },
    ]) {
      assert.equal(await refusal(answers.claim(request(more), 'z')), 'idempotency_conflict');
    }
    assert.equal(await serve(answers, request({ keyId: 'b', body: Buffer.from('y') })), false);
    assert.equal(answers.tallies.conflict, 3);
  });

  test('another body is told to be another while the first is answered, too', async () => {
    const { answers, other } = held();
    await claimed(answers, request());
    assert.equal(await refusal(other.claim(request(), 'z')), 'idempotency_busy');
    const body = Buffer.from('y');
    assert.equal(await refusal(other.claim(request({ body }), 'z')), 'idempotency_conflict');
  });

  test('what was not kept may be asked again, with another body too', async () => {
    const { answers, other } = held();
    const claim = await claimed(answers, request());
    await claim.finish(undefined);
    assert.equal(await serve(other, request({ body: Buffer.from('y') })), false);
  });

  test('an answer that was too long is told to be gone', async () => {
    const { answers, other } = held();
    const claim = await claimed(answers, request());
    await claim.finish('too long');
    assert.equal(await refusal(other.claim(request(), 'z')), 'idempotency_expired');
    assert.deepEqual([answers.tallies.unkept, other.tallies.expired], [1, 1]);
  });

  test('an answer opens with the secret that asked for it: with the other one of a rotation it is gone', async () => {
    const { answers, other } = held();
    await serve(answers, request());
    const rotated = request({ secret: 'its second secret' });
    assert.equal(await refusal(other.claim(rotated, 'z')), 'idempotency_expired');
    await claimed(answers, request({ idempotencyKey: '2' }));
    const second = request({ idempotencyKey: '2', secret: 'its second secret' });
    assert.equal(await refusal(other.claim(second, 'z')), 'idempotency_busy');
  });

  test('a gateway renews what it answers; one that died loses it to the next sending', async () => {
    const { clock, answers, other, store } = held();
    const claim = await claimed(answers, request());
    clock.at = 20_000;
    await answers.renew();
    clock.at = 49_999;
    assert.equal(await refusal(other.claim(request(), 'z')), 'idempotency_busy');
    clock.at = 50_000;
    const taken = await claimed(other, request());
    await claim.finish(answer);
    assert.equal(answers.tallies.lost, 1);
    assert.equal(
      await refusal(answers.claim(request(), 'z')),
      'idempotency_busy',
      'the other has it',
    );
    await taken.finish({ ...answer, status: 201 });
    assert.equal((await answers.claim(request(), 'z')).kept?.status, 201);
    await answers.renew();
    assert.deepEqual(store.renewed, [1], 'nothing runs, nothing is renewed');
  });

  test('G17 E17 a call that runs keeps its key when the clock jumps ahead', async () => {
    const clock = { time: 0, now: () => 0, wall: () => clock.time };
    const answers = idempotentAnswers({ clock });
    const running = await claimed(answers, request());
    clock.time = 3_600_000;
    assert.equal(await refusal(answers.claim(request(), 'again')), 'idempotency_busy');
    const other = request({ body: Buffer.from('y') });
    assert.equal(await refusal(answers.claim(other, 'other')), 'idempotency_conflict');
    await running.finish(answer);
    assert.equal(await serve(answers, request()), true);
  });

  test('F88 while the store is away nothing is begun', async () => {
    const { answers, store } = held();
    store.away = true;
    assert.equal(await refusal(answers.claim(request(), 'z')), 'store_unavailable');
    store.away = false;
    assert.equal(await serve(answers, request()), false);
    assert.equal(answers.tallies.refused, 1);
  });

  test('E17 a claim that the store took without an answer is given up: nothing was begun', async () => {
    const { answers, other, store } = held();
    store.mute = true;
    assert.equal(await refusal(claimed(answers, request())), 'store_unavailable');
    store.mute = false;
    await (await claimed(other, request())).finish(undefined);
  });

  test('E17 the same while the store is away: given up here at once, for others soon', async () => {
    const { answers, other, store } = held();
    const [first, second] = [request(), request({ idempotencyKey: '2' })];
    for (const each of [first, second]) {
      store.mute = true;
      const asked = claimed(answers, each);
      store.away = true;
      assert.equal(await refusal(asked), 'store_unavailable');
      store.away = store.mute = false;
    }
    // The other gateway cannot know; the one that was refused asks again and is served.
    assert.equal(await refusal(other.claim(first, 'z')), 'idempotency_busy');
    assert.equal(await serve(answers, first), false);
    assert.equal(await serve(other, first), true);
    assert.equal(await refusal(other.claim(second, 'z')), 'idempotency_busy');
    await answers.renew();
    assert.equal(await serve(other, second), false);
  });

  test('E17 what was given up is asked for no longer than its lease, and takes nothing from others', async () => {
    const { answers, other, store, clock } = held();
    store.mute = true;
    assert.equal(await refusal(claimed(answers, request())), 'store_unavailable');
    store.mute = false;
    const running = await claimed(other, request());
    await answers.renew();
    assert.equal(await refusal(answers.claim(request(), 'z')), 'idempotency_busy');
    clock.at = 30_000;
    await other.renew();
    await answers.renew();
    store.released = 0;
    await answers.renew();
    assert.equal(store.released, 0);
    await running.finish(answer);
    assert.equal(await serve(answers, request()), true);
  });

  test('F88 an answer that was given while the store was away is kept when it is back', async () => {
    const { answers, other, store, clock } = held();
    const claim = await claimed(answers, request());
    assert.equal(claim.hold(500), true);
    store.away = true;
    await claim.finish(answer);
    assert.deepEqual([answers.memory, answers.claims], [500, 1]);
    await answers.renew();
    store.away = false;
    assert.equal(await refusal(other.claim(request(), 'z')), 'idempotency_busy');
    // Its lease ran out, and nobody took it.
    clock.at = 40_000;
    await answers.renew();
    assert.equal(await serve(other, request()), true);
    assert.deepEqual([answers.memory, answers.claims], [0, 0]);
  });

  test('F88 an answer is kept that waited for a store which was slow to fail, though nobody calls any more', async (t) => {
    t.mock.timers.enable({ apis: ['setInterval'] });
    const { answers, other, store } = held();
    const claim = await claimed(answers, request());
    const gate = Promise.withResolvers<void>();
    store.until = gate.promise;
    store.away = true;
    const finished = claim.finish(answer);
    t.mock.timers.tick(10_000);
    gate.resolve();
    await finished;
    store.away = false;
    t.mock.timers.tick(10_000);
    await new Promise(setImmediate);
    assert.equal(await serve(other, request()), true);
    assert.equal(answers.claims, 0);
  });

  test('F88 it is not kept waiting for ever; what was given up is free by itself', async () => {
    const { answers, other, store, clock } = held();
    const claim = await claimed(answers, request());
    claim.hold(500);
    const failed = await claimed(answers, request({ idempotencyKey: '2' }));
    store.away = true;
    await claim.finish(answer);
    await failed.finish(undefined);
    clock.at = 600_000;
    await answers.close();
    assert.deepEqual([answers.memory, answers.claims], [0, 0]);
    store.away = false;
    assert.equal(await serve(other, request()), false);
    assert.equal(await serve(other, request({ idempotencyKey: '2' })), false);
  });

  test('answers that are being given take of the memory, and give it back', async () => {
    const { answers } = held();
    const keys = Array.from({ length: 5 }, (_, i) => request({ idempotencyKey: `${i}` }));
    const claims = await Promise.all(keys.map((each) => claimed(answers, each)));
    assert.deepEqual(
      claims.map((claim) => claim.hold(4000)),
      [true, true, true, true, true],
    );
    assert.equal(answers.memory, keepLimits.memoryBytes);
    const more = await claimed(answers, request({ idempotencyKey: 'more' }));
    assert.equal(more.hold(1), false);
    await Promise.all(claims.map((claim, i) => claim.finish(i % 2 === 0 ? undefined : answer)));
    assert.equal(answers.memory, 0);
    assert.equal(more.hold(1), true);
  });

  test('who keeps much lets it be swept before the minute is over', async () => {
    const { clock } = held();
    const answers = idempotentAnswers({ clock, limits: { totalBytes: 16 * 1024 } });
    let swept = 0;
    answers.onManyStored(() => (swept += 1));
    for (let i = 0; i < 4; i++) await serve(answers, request({ idempotencyKey: `${i}` }));
    assert.equal(swept, 2);
  });
});

describe('T6 what the store knows of a request and its answer', () => {
  const sealer = createSealer(Buffer.alloc(32, 7));
  const iv = Buffer.alloc(12, 1);
  const asked = sealRequest(request({ body: Buffer.from('the prompt') }), sealer);

  test('nothing of either can be read, or be found by guessing, without the secret', () => {
    const sealed = sealAnswer(asked, answer, iv);
    const known = `${asked.id} ${asked.fingerprint} ${sealed.toString('latin1')}`;
    for (const word of ['answered', 'prompt', 'API key']) assert.ok(!known.includes(word), word);
    const guess = sealRequest(
      request({ body: Buffer.from('the prompt'), secret: 'a guess' }),
      sealer,
    );
    assert.equal(guess.id, asked.id);
    assert.notEqual(guess.fingerprint.slice(0, 16), asked.fingerprint.slice(0, 16));
    assert.notEqual(guess.fingerprint.slice(16), asked.fingerprint.slice(16));
    assert.equal(openAnswer(guess, sealed), undefined);
  });

  test('what was changed, cut, moved to another row or sealed in another form does not open', () => {
    const sealed = sealAnswer(asked, answer, iv);
    assert.deepEqual(openAnswer(asked, sealed), answer);
    for (let i = 0; i < sealed.length; i++) {
      const changed = Buffer.from(sealed);
      changed[i] = (changed[i] ?? 0) ^ 1;
      assert.equal(openAnswer(asked, changed), undefined, `byte ${i}`);
      assert.equal(openAnswer(asked, sealed.subarray(0, i)), undefined, `${i} bytes`);
    }
    const elsewhere = sealRequest(request({ idempotencyKey: '2' }), sealer);
    assert.equal(openAnswer({ ...asked, id: elsewhere.id }, sealed), undefined);
    assert.equal(openAnswer({ ...asked, fingerprint: elsewhere.fingerprint }, sealed), undefined);
  });

  test('another installation makes other ids of the same keys', () => {
    const other = createSealer(Buffer.alloc(32, 8));
    assert.notEqual(sealRequest(request(), other).id, sealRequest(request(), sealer).id);
  });
});

describe('E17 what is passed on is kept', () => {
  const sent: string[] = [];
  const sink: ClientSink = {
    start: () => undefined,
    write: () => true,
    end: (bytes) => sent.push(`end ${bytes?.toString() ?? ''}`),
    cut: () => sent.push('cut'),
    observe: () => undefined,
  };
  const maxBytes = 1024 * 1024;
  const teeOf = (hold: (bytes: number) => boolean): AnswerTee =>
    new AnswerTee(sink, { maxBytes, hold, holdsEnd: true });

  test('byte for byte, in pieces of any size, in no more room than was given', () => {
    let room = 0;
    const hold = (bytes: number): boolean => {
      room += bytes;
      return true;
    };
    const recording = teeOf(hold);
    recording.start(200, ['x-request-id', '1', 'a', 'b']);
    const piece = Buffer.from('é!');
    for (let i = 0; i < 5000; i++) recording.write(i % 2 === 0 ? piece : 'é!');
    piece.fill(0);
    recording.end('end');
    const kept = answerOf(recording);
    assert.ok(typeof kept === 'object');
    assert.equal(kept.body.toString(), `${'é!'.repeat(5000)}end`);
    assert.deepEqual(kept.headers, ['a', 'b']);
    assert.ok(room >= 15_003 && room <= 2 * 15_003, `${room}`);
  });

  test('what finds no room, or is longer than it may be, is passed on and not kept', () => {
    const none = teeOf(() => false);
    none.start(200, []);
    none.end('a');
    assert.equal(answerOf(none), 'too long');
    const long = teeOf(() => true);
    long.start(200, []);
    long.write(Buffer.alloc(maxBytes));
    assert.equal(answerOf(long), undefined, 'not before its end');
    long.end('a');
    assert.equal(answerOf(long), 'too long');
  });

  test('the end waits until it is let go, a cut does not', () => {
    const recording = teeOf(() => true);
    sent.length = 0;
    recording.start(200, []);
    recording.end('last');
    assert.deepEqual(sent, []);
    recording.release();
    recording.release();
    assert.deepEqual(sent, ['end last']);
    const cut = teeOf(() => true);
    cut.start(200, []);
    cut.cut();
    cut.release();
    assert.deepEqual(sent, ['end last', 'cut']);
    const late = teeOf(() => true);
    late.release();
    late.end();
    assert.deepEqual(sent, ['end last', 'cut', 'end ']);
  });
});
