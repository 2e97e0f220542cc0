/** Tokens that end: one fetch for all, ahead of their end, never on the path of a call while an old one holds (decision 0053). */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { GatewayError } from '../../../src/core/errors.ts';
import { Secret } from '../../../src/core/secret.ts';
import {
  BearerToken,
  credentialError,
  type Token,
} from '../../../src/providers/credentials/token-cache.ts';

const minute = 60_000;

/** A source whose fetches the test answers, and a clock that it moves. */
class Scene {
  now = 1_000_000;
  readonly fetches: PromiseWithResolvers<Token>[] = [];
  readonly token = new BearerToken(
    {
      identity: 'one',
      description: 'a test',
      fetch: () => {
        const fetching = Promise.withResolvers<Token>();
        this.fetches.push(fetching);
        return fetching.promise;
      },
    },
    { now: () => this.now },
  );

  answer(value: string, lifeMs: number): void {
    this.fetches.at(-1)?.resolve({ value: new Secret(value), lifeMs });
  }

  fail(): void {
    this.fetches.at(-1)?.reject(credentialError('the server is down'));
  }

  /** With a token at hand. */
  static async holding(value: string, lifeMs: number): Promise<Scene> {
    const scene = new Scene();
    const first = scene.token.headersFor();
    scene.answer(value, lifeMs);
    await first;
    return scene;
  }
}

const headers = (value: string): readonly string[] => ['authorization', `Bearer ${value}`];
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const refused = (status: number): GatewayError =>
  new GatewayError('upstream_auth', 'no', { upstream: { status, body: '' } });

describe('azure 26: refreshed early, one fetch for all', () => {
  it('100 calls that wait cause one fetch', async () => {
    const scene = new Scene();
    const calls = Array.from({ length: 100 }, () => scene.token.headersFor());
    assert.equal(scene.fetches.length, 1);
    scene.answer('t1', 60 * minute);
    assert.deepEqual(
      new Set((await Promise.all(calls)).map(String)),
      new Set([String(headers('t1'))]),
    );
  });

  it('a token at hand costs no promise', async () => {
    const scene = await Scene.holding('t1', 60 * minute);
    assert.deepEqual(scene.token.headersFor(), headers('t1'));
    scene.now += 55 * minute - 1;
    assert.deepEqual(scene.token.headersFor(), headers('t1'));
    assert.equal(scene.fetches.length, 1);
  });

  it('5 minutes before its end the next one is fetched, once, and no call waits for it', async () => {
    const scene = await Scene.holding('t1', 60 * minute);
    scene.now += 55 * minute;
    for (let i = 0; i < 10; i++) assert.deepEqual(scene.token.headersFor(), headers('t1'));
    assert.equal(scene.fetches.length, 2);
    scene.answer('t2', 60 * minute);
    await settled();
    assert.deepEqual(scene.token.headersFor(), headers('t2'));
    assert.equal(scene.fetches.length, 2);
  });

  it('a token that is shorter than that is used to its end', async () => {
    const scene = await Scene.holding('t1', 4 * minute);
    scene.now += 4 * minute - 1;
    assert.deepEqual(scene.token.headersFor(), headers('t1'));
    assert.equal(scene.fetches.length, 1);
    scene.now += 1;
    assert.ok(scene.token.headersFor() instanceof Promise);
    assert.equal(scene.fetches.length, 2);
    scene.answer('t2', minute);
  });
});

describe('azure 27: a refused token is dropped', () => {
  it('a 401 makes the next call fetch; calls that were sent with the same token share it', async () => {
    const scene = await Scene.holding('t1', 60 * minute);
    assert.equal(scene.token.renew(headers('t1'), refused(401)), true);
    const next = [scene.token.headersFor(), scene.token.headersFor()];
    scene.answer('t2', 60 * minute);
    await Promise.all(next);
    assert.equal(scene.fetches.length, 2);
    // One that comes back late was sent with the old one: the new one stays.
    assert.equal(scene.token.renew(headers('t1'), refused(401)), true);
    assert.deepEqual(scene.token.headersFor(), headers('t2'));
  });

  it('another status says nothing about the token', async () => {
    const scene = await Scene.holding('t1', 60 * minute);
    for (const status of [400, 403, 404, 429, 500]) {
      assert.equal(scene.token.renew(headers('t1'), refused(status)), false);
    }
    assert.deepEqual(scene.token.headersFor(), headers('t1'));
  });

  it('the values of both tokens are secrets', async () => {
    const scene = await Scene.holding('t1', 60 * minute);
    scene.token.renew(headers('t1'), refused(401));
    const next = scene.token.headersFor();
    scene.answer('t2', 60 * minute);
    await next;
    assert.deepEqual(scene.token.secrets, [...headers('t2'), ...headers('t1')]);
    assert.doesNotMatch(JSON.stringify(scene.token), /t1|t2/);
  });
});

describe('azure 50: the token server is down', () => {
  it('the old token serves to its end, with one try a second', async () => {
    const scene = await Scene.holding('t1', 60 * minute);
    scene.now += 55 * minute;
    scene.token.headersFor();
    scene.fail();
    await settled();
    for (let i = 0; i < 5; i++) assert.deepEqual(scene.token.headersFor(), headers('t1'));
    assert.equal(scene.fetches.length, 2);
    scene.now += 1000;
    assert.deepEqual(scene.token.headersFor(), headers('t1'));
    assert.equal(scene.fetches.length, 3);
    scene.fail();
    await settled();
  });

  it('without one, calls fail at once with the same error until the second is over', async () => {
    const scene = new Scene();
    const first = scene.token.headersFor();
    scene.fail();
    const isDown = { code: 'upstream_auth', detail: 'the server is down' };
    await assert.rejects(Promise.resolve(first), isDown);
    scene.now += 999;
    await assert.rejects(Promise.resolve(scene.token.headersFor()), {
      code: 'upstream_auth',
      detail:
        'the server is down This failed 1 s ago. A new one is requested in 1 s, or with the next call after that; until then calls fail at once.',
    });
    assert.equal(scene.fetches.length, 1);
    scene.now += 1;
    const next = scene.token.headersFor();
    assert.equal(scene.fetches.length, 2);
    scene.answer('t1', minute);
    assert.deepEqual(await next, headers('t1'));
  });

  it('a server that does not answer costs one call a wait, and then none for twice as long', async () => {
    const scene = new Scene();
    const waiting = [scene.token.headersFor(), scene.token.headersFor()];
    scene.now += 3000;
    scene.fail();
    for (const each of waiting) await assert.rejects(Promise.resolve(each));
    scene.now += 5999;
    await assert.rejects(Promise.resolve(scene.token.headersFor()), { detail: /failed 6 s ago/ });
    assert.equal(scene.fetches.length, 1);
    scene.now += 1;
    const probe = scene.token.headersFor();
    assert.equal(scene.fetches.length, 2);
    // One call tries. Others do not wait with it.
    for (let i = 0; i < 20; i++) {
      await assert.rejects(Promise.resolve(scene.token.headersFor()), {
        code: 'upstream_auth',
        detail: /A new one is being requested; until then calls fail at once\./,
      });
    }
    assert.equal(scene.fetches.length, 2);
    scene.answer('t1', 60 * minute);
    assert.deepEqual(await probe, headers('t1'));
    assert.deepEqual(scene.token.headersFor(), headers('t1'));
  });

  it('a pause is not longer than 30 s, and of an old failure nothing is left', async () => {
    const scene = new Scene();
    const first = scene.token.headersFor();
    scene.now += 20_000;
    scene.fail();
    await assert.rejects(Promise.resolve(first));
    scene.now += 60_000;
    const calls = [scene.token.headersFor(), scene.token.headersFor()];
    assert.equal(scene.fetches.length, 2);
    scene.answer('t1', minute);
    for (const each of calls) assert.deepEqual(await each, headers('t1'));
  });

  it('what is fetched ahead is at hand for the first call; if that failed, the first call tries again', async () => {
    const scene = new Scene();
    const ahead = scene.token.prepare();
    scene.fail();
    await assert.rejects(ahead, { detail: 'the server is down' });
    const again = scene.token.prepare();
    assert.equal(scene.fetches.length, 2);
    scene.answer('t1', 60 * minute);
    await again;
    assert.deepEqual(scene.token.headersFor(), headers('t1'));
    await scene.token.prepare();
    assert.equal(scene.fetches.length, 2);
  });
});
