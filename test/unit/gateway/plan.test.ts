import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Route } from '../../../src/core/provider.ts';
import { plan } from '../../../src/gateway/targets/routing.ts';
import { createHttpProvider } from '../../../src/providers/http-provider.ts';
import { callOf, means } from './planning.ts';

const timeouts = { connectMs: 1, firstEventMs: 1, documentMs: 1, idleMs: 1, totalMs: 1 };
const provider = createHttpProvider({ id: 'p', dialect: 'openai-chat', baseUrl: 'http://h/v1' });

function route(order: Route['order'], weights: readonly number[]): Route {
  const targets = weights.map((weight, i) => ({ provider, model: `m${i}`, weight, timeouts }));
  return { name: 'r', order, targets, affinity: false };
}

function planned(of: Route, ...randoms: readonly number[]): readonly string[] {
  const left = [...randoms];
  const random = (): number => left.shift() ?? 0.5;
  return plan(callOf(of), means(undefined, random)).map(({ model }) => model);
}

test('the listed order is kept', () => {
  assert.deepEqual(planned(route('listed', [1, 2, 1, 3])), ['m0', 'm1', 'm2', 'm3']);
});

test('weighted order draws each target once, the heavier ones earlier', () => {
  assert.deepEqual(planned(route('weighted', [1, 3]), 0.5, 0.5), ['m1', 'm0']);
  assert.deepEqual(planned(route('weighted', [1, 3]), 0.9, 0.5), ['m0', 'm1']);
  assert.deepEqual(planned(route('weighted', [0, 0]), 0.99, 0.99).length, 2);
});
