/** R6, G13, H2: when a target is left out, when it is tried again, and what is told meanwhile. */
import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { GatewayError, type ErrorCode } from '../../../src/core/errors.ts';
import type { Route, Target } from '../../../src/core/provider.ts';
import { TargetHealth } from '../../../src/gateway/targets/health.ts';
import { plan } from '../../../src/gateway/targets/routing.ts';
import { callOf, means } from './planning.ts';
import { createHttpProvider } from '../../../src/providers/http-provider.ts';

const timeouts = { connectMs: 1, firstEventMs: 1, documentMs: 1, idleMs: 1, totalMs: 1 };
const provider = createHttpProvider({ id: 'p', dialect: 'openai-chat', baseUrl: 'http://h/v1' });
const target = (model: string): Target => ({ provider, model, weight: 1, timeouts });
const [a, b] = [target('a'), target('b')];
const route: Route = { name: 'r', targets: [a, b], order: 'listed' };

let now = 0;
let lines: string[] = [];
let health: TargetHealth;
beforeEach(() => {
  now = 1000;
  lines = [];
  const note = (event: string): void => void lines.push(event);
  const log = { debug: note, info: note, warn: note, error: note };
  const wall = (): number => Date.UTC(2030, 0, 1) + now;
  health = new TargetHealth({ clock: { now: () => now, wall }, log });
});

const failure = (code: ErrorCode = 'upstream_unavailable'): GatewayError =>
  new GatewayError(code, 'broken');

function fail(which: Target, times: number): void {
  for (let time = 0; time < times; time += 1) health.failed(which, failure());
}

function planned(): readonly string[] {
  return plan(callOf(route), means(health)).map(({ model }) => model);
}

describe('F12 money that is short', () => {
  const spent = (options: { retryAfterMs?: number; ofRequest?: boolean }): GatewayError =>
    new GatewayError('upstream_auth', 'no money', {
      upstream: { status: 402, body: '' },
      ...options,
    });

  test('a credential without money is out, as one that is refused', () => {
    health.failed(a, spent({}));
    assert.ok(health.isOut(a));
    assert.ok(health.isOut(b), 'it is that of all its models');
  });

  test('too little for so many tokens says nothing of others', () => {
    health.failed(a, spent({ ofRequest: true }));
    assert.ok(health.isReady(a));
    assert.ok(!health.isOut(a));
  });

  test('what comes back in its time is waited for', () => {
    health.failed(a, spent({ retryAfterMs: 5000 }));
    assert.ok(!health.isReady(a));
    assert.ok(!health.isOut(a));
    now += 5001;
    assert.ok(health.isReady(a));
  });
});

describe('R6 what speaks against a target', () => {
  test('five failures in a row take it out, not four', () => {
    fail(a, 4);
    assert.deepEqual(planned(), ['a', 'b']);
    assert.equal(health.describe('p/a'), 'degraded: 4 failed in a row (upstream_unavailable)');
    fail(a, 1);
    assert.deepEqual(planned(), ['b']);
    assert.equal(health.describe('p/a'), 'down: until 2030-01-01T00:00:06Z (upstream_unavailable)');
    assert.deepEqual(lines, ['target_out']);
  });

  test('its state is unknown until it was called, healthy after an answer, and unknown in a new config', () => {
    assert.equal(health.describe('p/a'), undefined);
    health.succeeded(a);
    assert.equal(health.describe('p/a'), 'healthy');
    assert.ok(health.calm, 'a call still compares one number');
    assert.deepEqual([...health.descriptions()], [['p/a', 'healthy']]);
    fail(a, 1);
    assert.match(health.describe('p/a') ?? '', /^degraded: /);
    health.succeeded(a);
    assert.equal(health.describe('p/a'), 'healthy');
    health.forget();
    assert.equal(health.describe('p/a'), undefined);
  });

  test('an answer in between begins the count anew', () => {
    fail(a, 4);
    health.succeeded(a);
    assert.ok(health.calm);
    fail(a, 4);
    assert.deepEqual(planned(), ['a', 'b']);
  });

  for (const code of ['overloaded', 'timeout', 'upstream_invalid', 'stream_interrupted'] as const) {
    test(`${code} counts`, () => {
      for (let time = 0; time < 5; time += 1) health.failed(a, failure(code));
      assert.deepEqual(planned(), ['b']);
    });
  }

  test('what the request or the client did wrong does not', () => {
    const upstream = { status: 400, body: '' };
    const harmless = [
      new GatewayError('upstream_rejected', 'no', { upstream }),
      new GatewayError('context_overflow', 'long', { upstream }),
      new GatewayError('upstream_invalid', 'odd', { upstream: { status: 404, body: '' } }),
      new GatewayError('upstream_auth', 'flagged', { upstream: { status: 403, body: '' } }),
      new GatewayError('canceled', 'left'),
      new GatewayError('shutting_down', 'bye'),
      new GatewayError('internal', 'bug'),
      new GatewayError('timeout', 'the call was long', { retryable: false }),
    ];
    for (const error of harmless) {
      for (let time = 0; time < 6; time += 1) health.failed(a, error);
    }
    assert.ok(health.calm);
  });

  test('F4 TLS that is refused is reported once a minute for each provider, however many models', () => {
    const cause = Object.assign(new Error('certificate has expired'), { code: 'CERT_HAS_EXPIRED' });
    const refused = new GatewayError('upstream_unavailable', 'no trust', { cause });
    const told = (): number => lines.filter((line) => line === 'upstream_not_trusted').length;
    health.failed(a, failure());
    assert.equal(told(), 0);
    for (const which of [a, b, a]) health.failed(which, refused);
    assert.equal(told(), 1);
    now += 59_000;
    health.failed(a, refused);
    assert.equal(told(), 1);
    now += 1000;
    health.failed(b, refused);
    assert.equal(told(), 2);
    health.forget();
    health.failed(b, refused);
    assert.equal(told(), 3);
  });

  test('R3 a dead credential is out for ten minutes, or until the configuration changes', () => {
    const elsewhere = createHttpProvider({
      id: 'q',
      dialect: 'openai-chat',
      baseUrl: 'http://i/v1',
    });
    const other = { ...target('c'), provider: elsewhere };
    const all: Route = { name: 'r', targets: [a, b, other], order: 'listed' };
    const left = (): readonly string[] =>
      plan(callOf(all), means(health)).map(({ model }) => model);
    health.failed(
      a,
      new GatewayError('upstream_auth', 'no', { upstream: { status: 401, body: '' } }),
    );
    assert.deepEqual(left(), ['c'], 'it is the key of all models of the provider');
    now += 599_000;
    assert.deepEqual(left(), ['c']);
    now += 1000;
    assert.deepEqual(left(), ['a', 'b', 'c']);
    health.forget();
    assert.ok(health.calm);
  });
});

describe('G13 a target that is out', () => {
  test('is tried by one call at a time when its time is over', () => {
    fail(a, 5);
    now += 5000;
    assert.deepEqual(planned(), ['a', 'b']);
    assert.ok(health.enter(a));
    assert.deepEqual(planned(), ['b'], 'another call goes elsewhere');
    assert.equal(health.enter(a), false);
    assert.match(health.describe('p/a') ?? '', /^down: a call is trying it/);
  });

  test('is back as soon as an answer begins', () => {
    fail(a, 5);
    now += 5000;
    health.enter(a);
    health.answered(a);
    assert.deepEqual(planned(), ['a', 'b']);
    assert.ok(health.calm);
    assert.deepEqual(lines, ['target_out', 'target_recovered']);
  });

  test('is not back because of streams that began before it failed and end well', () => {
    const began = now;
    now += 1000;
    fail(a, 5);
    health.succeeded(a, began);
    assert.deepEqual(planned(), ['b']);
    now += 1000;
    health.succeeded(a, now);
    assert.deepEqual(planned(), ['a', 'b']);
  });

  test('is out for twice as long when it fails again, a minute at most', () => {
    fail(a, 5);
    for (const ms of [5000, 10_000, 20_000, 40_000, 60_000, 60_000]) {
      now += ms - 1;
      assert.deepEqual(planned(), ['b'], `${ms}`);
      now += 1;
      assert.ok(health.enter(a));
      fail(a, 1);
    }
  });

  test('is tried by the next call when the first one left without finding out', () => {
    fail(a, 5);
    now += 5000;
    health.enter(a);
    health.release(a);
    assert.ok(health.enter(a));
  });

  test('is neither back nor kept busy by a call that could not be asked of it', () => {
    fail(a, 5);
    now += 5000;
    health.enter(a);
    health.failed(a, failure('invalid_request'));
    assert.deepEqual(lines, ['target_out']);
    assert.ok(health.enter(a), 'the next call finds out');
  });

  test('stays out no longer for calls that were under way when it was taken out', () => {
    fail(a, 12);
    now += 5000;
    assert.deepEqual(planned(), ['a', 'b']);
  });

  test('is asked all the same when all are out: that which is next to be tried', () => {
    fail(b, 5);
    now += 1000;
    fail(a, 5);
    assert.deepEqual(planned(), ['b']);
  });
});

describe('R6 H2 a provider that wants no calls for a while', () => {
  const limited = (retryAfterMs?: number): GatewayError =>
    new GatewayError('rate_limited', 'slow', {
      upstream: { status: 429, body: '' },
      ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    });

  test('gets none as long as it said, a minute at most', () => {
    health.failed(a, limited(2000));
    assert.deepEqual(planned(), ['b']);
    assert.equal(health.describe('p/a'), 'degraded: rate limited until 2030-01-01T00:00:03Z');
    now += 2000;
    assert.deepEqual(planned(), ['a', 'b']);
    health.failed(a, limited(86_400_000));
    now += 60_000;
    assert.deepEqual(planned(), ['a', 'b']);
  });

  test('makes calls wait, where the only other key is refused', () => {
    const keyed = (credential: string): Target => ({ ...a, credential });
    const [k1, k2] = [keyed('k1'), keyed('k2')];
    const keys: Route = { name: 'r', targets: [k1, k2], order: 'listed' };
    health.failed(
      k1,
      new GatewayError('upstream_auth', 'no', { upstream: { status: 401, body: '' } }),
    );
    health.failed(k2, limited(2000));
    assert.throws(
      () => plan(callOf(keys), means(health)),
      (error) =>
        error instanceof GatewayError &&
        error.code === 'rate_limited' &&
        error.retryAfterMs === 2000,
    );
  });

  test('gets them at once when it said nothing', () => {
    health.failed(a, limited());
    assert.deepEqual(planned(), ['a', 'b']);
  });

  test('an answer to an older call does not shorten it', () => {
    health.failed(a, limited(2000));
    health.succeeded(a);
    assert.deepEqual(planned(), ['b']);
    now += 2000;
    health.succeeded(a);
    assert.ok(health.calm);
  });

  test('when none is left, the client hears which, until when, and the shortest wait', () => {
    health.failed(a, limited(9000));
    health.failed(b, limited(4000));
    assert.throws(planned, (error: unknown) => {
      assert.ok(error instanceof GatewayError);
      assert.equal(error.code, 'rate_limited');
      assert.equal(error.retryAfterMs, 4000);
      assert.match(
        error.message,
        /p\/a until 2030-01-01T00:00:10Z, p\/b until 2030-01-01T00:00:05Z/,
      );
      return true;
    });
  });

  test('one that is only out is asked before all are given up', () => {
    health.failed(a, limited(9000));
    fail(b, 5);
    assert.deepEqual(planned(), ['b']);
  });
});

test('what is known of targets is bounded', () => {
  for (let index = 0; index < 1500; index += 1) fail(target(`m${index}`), 1);
  assert.equal(health.describe('p/m0'), undefined);
  assert.notEqual(health.describe('p/m1499'), undefined);
});
