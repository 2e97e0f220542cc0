import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createHttpProvider } from '../../../src/providers/http-provider.ts';
import type { Route } from '../../../src/core/provider.ts';
import { TargetHealth } from '../../../src/gateway/health.ts';
import { plan } from '../../../src/gateway/plan.ts';

const timeouts = { connectMs: 1, firstEventMs: 1, documentMs: 1, idleMs: 1, totalMs: 1 };
const provider = createHttpProvider({ id: 'p', dialect: 'openai-chat', baseUrl: 'http://h/v1' });

function route(order: Route['order'], weights: readonly number[]): Route {
  const targets = weights.map((weight, i) => ({ provider, model: `m${i}`, weight, timeouts }));
  return { name: 'r', order, targets };
}

const quiet = (): void => undefined;
const log = { debug: quiet, info: quiet, warn: quiet, error: quiet };
const health = new TargetHealth({ clock: { now: () => 0, wall: () => 0 }, log });
const means = (value: number): Parameters<typeof plan>[1] => ({ random: () => value, health });

const names = (chosen: ReturnType<typeof plan>) => chosen.map((target) => target.model);

test('the listed order is kept', () => {
  assert.deepEqual(names(plan(route('listed', [1, 2, 1, 3]), means(0.9))), [
    'm0',
    'm1',
    'm2',
    'm3',
  ]);
});

test('weighted order draws each target once, the heavier ones earlier', () => {
  assert.deepEqual(names(plan(route('weighted', [1, 3]), means(0.5))), ['m1', 'm0']);
  assert.deepEqual(names(plan(route('weighted', [1, 3]), means(0.1))), ['m0', 'm1']);
  assert.deepEqual(names(plan(route('weighted', [0, 0]), means(0.99))).length, 2);
});
