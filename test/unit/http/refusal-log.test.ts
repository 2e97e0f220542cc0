/** requests without a key cannot fill the log. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { linesAtOnce, linesPerSecond, RefusalLog } from '../../../src/http/send.ts';
import { HeldClock } from '../access/fakes.ts';

type Line = readonly [event: string, fields: object | undefined];

function rig() {
  const lines: Line[] = [];
  const keep =
    (event: string) =>
    (name: string, fields?: object): void =>
      void lines.push([`${event} ${name}`, fields]);
  const clock = new HeldClock();
  const refusals = new RefusalLog({ clock, log: { info: keep('info'), warn: keep('warn') } });
  return { lines, clock, refusals };
}

test('X-6 some of each kind have a line, the others are counted, and none is lost', () => {
  const { lines, clock, refusals } = rig();
  for (let second = 0; second < 5; second++) {
    for (let i = 0; i < 20_000; i++) refusals.note({ error: 'unauthenticated', status: 401 });
    clock.time += 1000;
    refusals.tell();
  }
  const own = lines.filter(([event]) => event === 'info refused').length;
  const counts = lines.flatMap(([event, fields]) =>
    event === 'warn refused_without_line' && fields !== undefined && 'requests' in fields
      ? [Number(fields.requests)]
      : [],
  );
  assert.equal(own, linesAtOnce + 4 * linesPerSecond);
  assert.equal(counts.length, 5);
  assert.equal(own + counts.reduce((sum, count) => sum + count, 0), 100_000);
});

test('X-6 a flood of one kind hides no other, and nothing is said of what is quiet', () => {
  const { lines, refusals } = rig();
  for (let i = 0; i < 1000; i++) refusals.note({ error: 'unauthenticated', status: 401 });
  refusals.note({ error: 'route_not_found', status: 404, path: '/x' });
  assert.deepEqual(lines.at(-1), [
    'info refused',
    { error: 'route_not_found', status: 404, path: '/x' },
  ]);
  refusals.tell();
  refusals.tell();
  const told = lines.filter(([event]) => event.startsWith('warn'));
  assert.deepEqual(told, [
    ['warn refused_without_line', { error: 'unauthenticated', requests: 900 }],
  ]);
});
