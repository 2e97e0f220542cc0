import assert from 'node:assert/strict';
import { test } from 'node:test';
import { scene } from './scene.ts';

const models = (rest: string): string => `providers:
  ollama: {}
models:
  quick: { targets: [ollama/a, ollama/b]${rest} }
`;

test('a name hedges only where it says so, and where that stands is reported', async () => {
  const plain = await scene(models('')).load();
  assert.equal(plain.routes[0]?.hedge, undefined);
  const { routes, origins } = await scene(models(', hedge: { after: 800ms }')).load();
  assert.deepEqual(routes[0]?.hedge, { afterMs: 800 });
  const [line] = origins.filter(({ path }) => path.includes('hedge'));
  assert.equal(line?.path, 'models.quick.hedge.after');
  assert.equal(line.value, '800ms');
  assert.match(line.origin, /gateway\.yaml:4$/);
});

test('R5 a hedge beside after_sent: false, or without a time, is refused with its line', async () => {
  const both = models(', hedge: { after: 1s }, retry: { after_sent: false }');
  assert.match((await scene(both).errors()).join('\n'), /:4.*hedge.*after_sent: false/);
  const all = `retry: { after_sent: false }\n${models(', hedge: { after: 1s }')}`;
  assert.match((await scene(all).errors()).join('\n'), /:5.*after_sent: false/);
  const own = `retry: { after_sent: false }\n${models(', hedge: { after: 1s }, retry: { after_sent: true }')}`;
  assert.deepEqual((await scene(own).load()).routes[0]?.hedge, { afterMs: 1000 });
  assert.match((await scene(models(', hedge: {}')).errors()).join('\n'), /:4.*needs after/);
});
