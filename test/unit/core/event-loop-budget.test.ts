/** What one turn of the event loop does of the work that may wait (G6). */
import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { EventLoopBudget } from '../../../src/core/event-loop-budget.ts';

let now: number;
/** What is done behind the sockets of this turn. */
let behind: (() => void)[];
let turns: EventLoopBudget;
let done: string[];

beforeEach(() => {
  now = 0;
  behind = [];
  done = [];
  turns = new EventLoopBudget({ now: () => now, behind: (callback) => void behind.push(callback) });
});

function turn(): void {
  for (const callback of behind.splice(0)) callback();
}

/** As a connection does it with what it read. */
function piece(name: string, ms: number): void {
  const work = (): void => {
    now += ms;
    done.push(name);
  };
  if (turns.exhausted) turns.defer({ runDeferred: work });
  else work();
}

test('G6 a turn with little to do puts nothing off, and many such turns neither', () => {
  for (let i = 0; i < 1000; i++) {
    piece('a', 0.1);
    if (i % 20 === 19) turn();
  }
  assert.equal(done.length, 1000);
  assert.equal(turns.waitedMs, 0);
});

test('G6 what a turn has no time for waits, in its order, and takes a part of each turn', () => {
  for (let i = 0; i < 200; i++) piece(String(i), 1);
  const atOnce = done.length;
  assert.ok(atOnce >= 4 && atOnce <= 32, `${atOnce} at once`);
  for (let last = atOnce; done.length < 200; last = done.length) {
    // Who comes now is behind those who wait.
    turn();
    const inTurn = done.length - last;
    assert.ok(inTurn >= 1 && inTurn <= 8, `${inTurn} in a turn`);
  }
  assert.deepEqual(
    done,
    Array.from({ length: 200 }, (_, i) => String(i)),
  );
  turn();
  assert.deepEqual(behind, []);
  piece('later', 1);
  assert.equal(done.at(-1), 'later');
});

test('G6 what comes while others wait is put off behind them', () => {
  for (let i = 0; i < 40; i++) piece('before', 1);
  turn();
  piece('behind', 1);
  assert.ok(!done.includes('behind'));
  while (behind.length > 0) turn();
  assert.equal(done.at(-1), 'behind');
  assert.equal(done.length, 41);
});

test('G6 how long the next one has waited is how late the gateway is', () => {
  for (let i = 0; i < 40; i++) piece('a', 1);
  now += 100;
  assert.ok(turns.waitedMs >= 100);
  while (behind.length > 0) turn();
  assert.equal(turns.waitedMs, 0);
});

test('G6 those who are through are not kept while others keep coming', () => {
  for (let i = 0; i < 40; i++) piece('a', 1);
  for (let i = 0; i < 20_000; i++) {
    piece('b', 1);
    if (i % 4 === 3) turn();
  }
  while (behind.length > 0) turn();
  assert.equal(done.length, 20_040);
});

test('G6 F94 one that throws holds up none after it', () => {
  for (let i = 0; i < 40; i++) piece('before', 1);
  turns.defer({
    runDeferred: () => {
      throw new Error('a bug');
    },
  });
  for (let i = 0; i < 20; i++) piece('behind', 1);
  let thrown = 0;
  while (behind.length > 0) {
    try {
      turn();
    } catch {
      thrown += 1;
    }
  }
  assert.equal(thrown, 1);
  assert.equal(done.filter((name) => name === 'behind').length, 20);
});

test('G6 however many are put off, one turn at a time is awaited', () => {
  let through = 0;
  for (let i = 0; i < 1024; i++) turns.defer({ runDeferred: () => void (through += 1) });
  turn();
  assert.equal(through, 1024);
  for (let i = 0; i < 40; i++) turns.defer({ runDeferred: () => void (now += 1) });
  assert.equal(behind.length, 1);
});
