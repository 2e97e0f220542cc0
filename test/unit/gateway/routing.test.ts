/** Orders of routes, and where the calls of one conversation go (docs/user/routing.md). */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { assert as assertProperty, property, string } from 'fast-check';
import { GatewayError } from '../../../src/core/errors.ts';
import type { Route, Target } from '../../../src/core/provider.ts';
import { TargetHealth } from '../../../src/gateway/targets/health.ts';
import { Routing, Sticky, conversationKey, plan } from '../../../src/gateway/targets/routing.ts';
import { createHttpProvider } from '../../../src/providers/http-provider.ts';
import { type CallFacts, callOf, quietLog, stillClock } from './planning.ts';

const timeouts = { connectMs: 1, firstEventMs: 1, documentMs: 1, idleMs: 1, totalMs: 1 };
const provider = createHttpProvider({ id: 'p', dialect: 'openai-chat', baseUrl: 'http://h/v1' });
const target = (model: string, more: Partial<Target> = {}): Target => ({
  provider,
  model,
  weight: 1,
  timeouts,
  ...more,
});
const [a, b, c] = [target('a'), target('b'), target('c')];
const route = (order: Route['order'], targets: readonly Target[] = [a, b, c]): Route => ({
  name: 'r',
  order,
  targets,
});

interface Scene {
  now: number;
  random: number;
  prices: { readonly [model: string]: number };
}

function routing(scene: Partial<Scene> = {}): { routing: Routing; scene: Scene } {
  const full = { now: 1000, random: 0.5, prices: {}, ...scene };
  const made = new Routing({
    clock: { now: () => full.now },
    random: () => full.random,
    priceOf: ({ model }) => full.prices[model],
  });
  return { routing: made, scene: full };
}

const names = (targets: readonly Target[]): string =>
  targets.map(({ model, credential = '' }) => model + credential).join(' ');
const session = (name: string): CallFacts => ({ headers: { 'x-session-id': name } });

describe('affinity', () => {
  test('weighted: a conversation keeps its target, and conversations are spread by weight', () => {
    const weighted = route('weighted', [target('a', { weight: 3 }), target('b')]);
    let first = 0;
    for (let i = 0; i < 4000; i += 1) {
      const call = callOf(weighted, session(`s${i}`));
      const chosen = names(routing().routing.order(call));
      assert.equal(names(routing({ random: 0.1 }).routing.order(call)), chosen);
      if (chosen.startsWith('a')) first += 1;
    }
    assert.ok(first > 2850 && first < 3150, `${first} of 4000`);
  });

  test('a target that goes moves only its own conversations, and gets them back', () => {
    const all = route('weighted');
    const less = route('weighted', [a, b]);
    assertProperty(
      property(string({ minLength: 1, maxLength: 40 }), (name) => {
        const [before] = routing().routing.order(callOf(all, session(name)));
        const [after] = routing().routing.order(callOf(less, session(name)));
        return before?.model === 'c' || before?.model === after?.model;
      }),
    );
  });

  test('affinity: false draws each time', () => {
    const call = callOf({ ...route('weighted', [a, b]), affinity: false });
    const draws = [0.9, 0.1, 0.1, 0.9];
    const made = new Routing({
      clock: stillClock,
      random: () => draws.shift() ?? 0,
      priceOf: () => undefined,
    });
    assert.notEqual(names(made.order(call)), names(made.order(call)));
  });

  test('each header that agents send, and prompt_cache_key, names the conversation', () => {
    const key = (facts: CallFacts): string => conversationKey(callOf(route('listed'), facts));
    const opening = (content: string) => ({ messages: [{ role: 'user', content }] });
    const said = ['x-claude-code-session-id', 'x-session-id', 'x-session-affinity', 'session-id'];
    for (const header of said) {
      const one = key({ headers: { [header]: 's1' }, body: opening('one') });
      assert.equal(one, key({ headers: { [header]: 's1' }, body: opening('two') }), header);
      assert.notEqual(one, key({ headers: { [header]: 's2' }, body: opening('one') }), header);
    }
    const cached = (prompt_cache_key: string, text: string): string =>
      key({ body: { ...opening(text), prompt_cache_key } });
    assert.equal(cached('k', 'one'), cached('k', 'two'));
    assert.notEqual(cached('k', 'one'), cached('l', 'one'));
  });

  test('else its opening does: later turns and marks of caches change nothing, the first turn does', () => {
    const key = (messages: readonly object[], system = 'You are.'): string =>
      conversationKey(
        callOf(route('listed'), { body: JSON.parse(JSON.stringify({ system, messages })) }),
      );
    const user = (text: string, more = {}) => ({
      role: 'user',
      content: [{ type: 'text', text, ...more }],
    });
    const first = key([user('Hello')]);
    assert.equal(key([user('Hello'), { role: 'assistant', content: 'Hi' }, user('More')]), first);
    assert.equal(key([user('Hello', { cache_control: { type: 'ephemeral' } })]), first);
    assert.equal(key([{ role: 'user', content: 'Hello' }]), first, 'a text is one with its part');
    assert.notEqual(key([user('Bye')]), first);
    assert.notEqual(key([user('Hello')], 'You are not.'), first);
  });

  test('equal sessions of two keys are two conversations', () => {
    const of = (keyId: string): string =>
      conversationKey(callOf(route('listed'), { ...session('same'), keyId }));
    assert.notEqual(of('key_1'), of('key_2'));
  });

  test('what is remembered is bounded', () => {
    const sticky = new Sticky();
    for (let i = 0; i < 25_000; i += 1) sticky.keep(`c${i}`, { target: 't', at: 0 });
    assert.equal(sticky.size, 20_000);
    assert.equal(sticky.find('c0', 0), undefined);
    assert.equal(sticky.find('c24999', 0), 't');
    assert.equal(sticky.find('c24999', 3_600_001), undefined, 'no cache is warm any more');
  });
});

describe('orders', () => {
  test('cheapest: by price, what has none last', () => {
    const { routing: made } = routing({ prices: { b: 1, c: 2 } });
    assert.equal(names(made.order(callOf(route('cheapest')))), 'b c a');
  });

  test('least-busy: the fewest calls by weight; a conversation stays where it was answered', () => {
    const busy = route('least-busy', [a, target('b', { weight: 2 })]);
    const { routing: made } = routing();
    made.order(callOf(busy, session('ask')));
    made.load.begin('p/a');
    made.load.begin('p/b');
    assert.equal(names(made.order(callOf(busy, session('new')))), 'b a', 'half as busy');
    made.answered(callOf(busy, session('old')), a);
    assert.equal(names(made.order(callOf(busy, session('old')))), 'a b');
    made.load.end('p/a');
    assert.equal(names(made.order(callOf(busy, session('new')))), 'a b');
  });

  test('a session that asks two names by turns stays where each of them was answered', () => {
    const { routing: made } = routing();
    const large = callOf({ ...route('least-busy', [a, b]), name: 'large' }, session('s'));
    const small = callOf({ ...route('least-busy', [b, c]), name: 'small' }, session('s'));
    made.order(large);
    for (const busy of ['p/a', 'p/b', 'p/b', 'p/c', 'p/c', 'p/c']) made.load.begin(busy);
    made.answered(large, b);
    made.answered(small, c);
    assert.equal(names(made.order(large)), 'b a');
    assert.equal(names(made.order(small)), 'c b');
  });

  test('fastest: one that only fails is not first again and again because nobody knows it', () => {
    const { routing: made, scene } = routing();
    const call = callOf(route('fastest', [a, b]), session('s'));
    assert.equal(names(made.order(call)), 'a b');
    const how = { streamed: true, now: scene.now };
    made.speed.failed('p/a', how);
    made.speed.saw('p/b', { ...how, ms: 500 });
    assert.equal(names(made.order(call)), 'b a');
    made.speed.saw('p/a', { ...how, ms: 100 });
    assert.equal(names(made.order(call)), 'a b', 'its first answer is all that counts');
    made.speed.failed('p/a', how);
    assert.equal(names(made.order(call)), 'a b', 'health is about single failures');
  });

  test('fastest: by the time to the first event lately, unknown ones first', () => {
    const { routing: made, scene } = routing();
    const fast = route('fastest');
    const call = (name: string) => callOf(fast, session(name));
    made.order(call('ask'));
    const saw = (which: string, ms: number): void =>
      made.speed.saw(which, { streamed: true, now: scene.now, ms });
    saw('p/a', 300);
    saw('p/b', 100);
    assert.equal(names(made.order(call('1'))), 'c b a');
    saw('p/c', 200);
    assert.equal(names(made.order(call('2'))), 'b c a');
    scene.now += 60_000;
    saw('p/b', 500);
    assert.equal(names(made.order(call('3'))), 'c a b', 'old samples count for little');
    scene.random = 0.01;
    assert.equal(names(made.order(call('4'))), 'a c b', 'now and then another one is asked');
  });
});

describe('credentials', () => {
  const both = [target('a', { credential: 'k1' }), target('a', { credential: 'k2' })] as const;
  const several = route('listed', [...both, b]);
  const [k1] = both;
  const make = () => {
    let now = 1000;
    const clock = { now: () => now, wall: () => now };
    const told: unknown[] = [];
    const health = new TargetHealth({ clock, log: quietLog, alert: (dead) => told.push(dead) });
    const parts = { health, random: () => 0.5, routing: routing().routing };
    const of = (name: string): string => names(plan(callOf(several, session(name)), parts));
    return { health, of, told, pass: (ms: number) => (now += ms) };
  };
  const refused = (status: number, retryAfterMs?: number): GatewayError =>
    new GatewayError(status === 429 ? 'rate_limited' : 'upstream_auth', 'no', {
      upstream: { status, body: '' },
      ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    });

  test('conversations are spread over them, each keeps its own', () => {
    const { of } = make();
    const firsts = Array.from({ length: 200 }, (_, i) => of(`s${i}`).slice(0, 3));
    const ones = firsts.filter((first) => first === 'ak1').length;
    assert.ok(ones > 60 && ones < 140, String(ones));
    assert.deepEqual(
      Array.from({ length: 200 }, (_, i) => of(`s${i}`).slice(0, 3)),
      firsts,
    );
  });

  test('R6 a 429 cools one credential only, for as long as was asked', () => {
    const { health, of, pass } = make();
    health.failed(k1, refused(429, 20_000));
    assert.equal(of('s'), 'ak2 b');
    assert.match(health.describe('p/a', 'k1') ?? '', /^degraded: rate limited until/);
    assert.equal(health.describe('p/a', 'k2'), undefined);
    assert.match(health.ofProvider('p') ?? '', /^degraded: rate limited until .*, credential k1$/);
    assert.equal(health.ofProvider('other'), undefined);
    pass(20_000);
    assert.match(of('s'), /ak1/);
  });

  test('R6 a 429 without a wait makes the other one the first choice', () => {
    const { health, of } = make();
    health.failed(k1, refused(429));
    for (const name of ['1', '2', '3', '4']) assert.equal(of(name), 'ak2 ak1 b');
  });

  for (const status of [401, 402]) {
    test(`R3 a ${status} takes one credential out, and the operator is told once`, () => {
      const { health, of, told, pass } = make();
      health.failed(k1, refused(status));
      health.failed(k1, refused(status));
      assert.equal(of('s'), 'ak2 b');
      const retryAfterMs = 600_000;
      const error = 'upstream_auth';
      assert.deepEqual(told, [{ provider: 'p', credential: 'k1', error, status, retryAfterMs }]);
      pass(600_000);
      assert.match(of('s'), /ak1/);
      health.forget();
      assert.ok(health.calm);
    });
  }

  test('R6 what the target itself does wrong counts for all of them', () => {
    const { health, of } = make();
    for (let i = 0; i < 5; i += 1) {
      health.failed(both[i % 2 === 0 ? 0 : 1], new GatewayError('upstream_unavailable', 'no'));
    }
    assert.equal(of('s'), 'b');
  });
});
