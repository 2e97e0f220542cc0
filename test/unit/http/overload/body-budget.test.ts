import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BodyBudget, type BodyShare } from '../../../../src/http/overload/body-budget.ts';

const mebibyte = 1024 ** 2;

function budget(bytes: number): BodyBudget {
  return new BodyBudget({
    bytes: () => bytes,
    hasLeft: () => true,
    shareOf: () => 1,
  });
}

function taken(share: BodyShare | undefined): BodyShare {
  assert.ok(share !== undefined);
  return share;
}

test('G5 a body costs four times its length, then twice, then nothing', () => {
  const bodies = budget(256 * mebibyte);
  const share = taken(bodies.take('a', 32 * mebibyte));
  assert.equal(bodies.taken, 128 * mebibyte);
  assert.equal(bodies.longest, 64 * mebibyte);
  share.parsed(32 * mebibyte, 100);
  assert.equal(bodies.taken, 64 * mebibyte + 6400);
  share.release();
  share.release();
  assert.equal(bodies.taken, 0);
});

test('G5 what has no room is refused at once, and again served when there is room', () => {
  const bodies = budget(256 * mebibyte);
  const first = taken(bodies.take('a', 40 * mebibyte));
  assert.equal(bodies.take('a', 32 * mebibyte), undefined);
  assert.equal(bodies.taken, 160 * mebibyte);
  taken(bodies.take('a', mebibyte));
  first.release();
  taken(bodies.take('a', 32 * mebibyte));
});

test('G5 a body without a length takes as it grows, and is refused where the room ends', () => {
  const bodies = budget(mebibyte);
  const share = taken(bodies.take('a', undefined));
  assert.equal(bodies.taken, 256 * 1024);
  assert.equal(share.grow(64 * 1024), true);
  assert.equal(bodies.taken, 256 * 1024);
  assert.equal(share.grow(64 * 1024 + 1), true);
  assert.equal(bodies.taken, 512 * 1024);
  const other = taken(bodies.take('a', 100 * 1024));
  // Twice as much is not there any more; what is needed is.
  assert.equal(share.grow(150 * 1024), true);
  assert.equal(bodies.taken, 4 * 250 * 1024);
  assert.equal(share.grow(160 * 1024), false);
  assert.equal(bodies.taken, 4 * 250 * 1024);
  share.parsed(150 * 1024, 0);
  other.release();
  share.release();
  assert.equal(bodies.taken, 0);
});

test('G5 a small body that came without a length costs what it is once it is there', () => {
  const bodies = budget(mebibyte);
  const share = taken(bodies.take('a', undefined));
  share.parsed(100, 0);
  assert.equal(bodies.taken, 200);
});

test('G5 a large body needs room that the process really has, a small one does not ask', () => {
  let left = 300 * mebibyte;
  const bodies = new BodyBudget({
    bytes: () => 1024 * mebibyte,
    hasLeft: ({ cost, added }) => cost + added <= left,
    shareOf: () => 1,
  });
  const first = taken(bodies.take('a', 50 * mebibyte));
  assert.equal(bodies.take('a', 50 * mebibyte), undefined);
  // By the next look the first one's memory is seen in the process.
  left = 100 * mebibyte;
  bodies.looked();
  taken(bodies.take('a', 25 * mebibyte));
  assert.equal(bodies.take('a', 2 * mebibyte), undefined);
  assert.equal(bodies.take('a', mebibyte), undefined);
  taken(bodies.take('a', 128 * 1024));
  first.release();
  assert.equal(bodies.take('a', 26 * mebibyte), undefined);
});

test('G5 what was given back since the last look is garbage, and still in the way', () => {
  const asked: string[] = [];
  const bodies = new BodyBudget({
    bytes: () => 1024 * mebibyte,
    hasLeft: ({ cost, added, size }) => {
      asked.push(size);
      return cost + added <= 100 * mebibyte;
    },
    shareOf: () => 1,
  });
  for (let i = 0; i < 2; i++) taken(bodies.take('a', 10 * mebibyte)).release();
  assert.equal(bodies.take('a', 10 * mebibyte), undefined);
  assert.equal(bodies.take('a', 6 * mebibyte), undefined);
  assert.equal(asked.at(-1), 'large');
  // What is of middling size asks as well, what is small does not.
  taken(bodies.take('a', mebibyte)).release();
  assert.equal(asked.at(-1), 'medium');
  for (let i = 0; i < 100; i++) taken(bodies.take('a', 128 * 1024)).release();
  assert.equal(bodies.take('a', mebibyte), undefined);
  bodies.looked();
  taken(bodies.take('a', 10 * mebibyte));
});

test('G5 G8 a key that announces much leaves room for the others', () => {
  let share = 1;
  const bodies = new BodyBudget({
    bytes: () => 400 * mebibyte,
    hasLeft: () => true,
    shareOf: () => share,
  });
  taken(bodies.take('a', 40 * mebibyte));
  share = 0.5;
  assert.equal(bodies.take('a', 20 * mebibyte), undefined);
  const more = taken(bodies.take('a', 10 * mebibyte));
  // One body has room, whatever the share.
  const other = taken(bodies.take('b', 49 * mebibyte));
  assert.equal(bodies.take('b', 2 * mebibyte), undefined);
  more.release();
  other.release();
  taken(bodies.take('b', 50 * mebibyte));
  assert.equal(bodies.taken, 360 * mebibyte);
});

test('G8 a key that was alone and took all leaves room for small bodies of others', () => {
  const bodies = budget(256 * mebibyte);
  const first = taken(bodies.take('a', 32 * mebibyte));
  const second = taken(bodies.take('a', 32 * mebibyte));
  assert.equal(bodies.take('a', 1024), undefined, 'a key that holds much waits');
  const others = Array.from({ length: 6 }, (_, i) => taken(bodies.take(`key ${i}`, mebibyte)));
  assert.equal(bodies.take('b', 7 * mebibyte), undefined, 'no small one');
  assert.equal(bodies.take('c', mebibyte), undefined, 'the spare is bounded, too');
  for (const share of [first, second, ...others]) share.release();
  assert.equal(bodies.taken, 0);
});

test('G5 values that cost more than their text are counted once they are known', () => {
  const bodies = budget(64 * mebibyte);
  const share = taken(bodies.take('a', mebibyte));
  assert.equal(share.parsed(mebibyte, 500_000), true);
  assert.equal(bodies.taken, 2 * mebibyte + 32_000_000);
  const second = taken(bodies.take('a', mebibyte));
  assert.equal(second.parsed(mebibyte, 500_000), false);
  for (const each of [share, second]) each.release();
  assert.equal(bodies.taken, 0);
});
