import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CallSlots, minSlots, type SlotLimits } from '../../../../src/http/overload/overload.ts';
import { HeldClock } from '../../access/fakes.ts';

/** A sample of a loop that is so late, and has so much to do. */
const late = (delayMs: number, busy = 0) => ({ delayMs, busy });

function scene(limits: Partial<SlotLimits> = {}) {
  const clock = new HeldClock();
  const all = { streams: 100, keySharePercent: 50, loopDelayMs: 25, ...limits };
  const slots = new CallSlots({ limits: () => all, clock });
  /** How many of so many calls of a key got in. */
  const enter = (key: string, count: number): number => {
    let entered = 0;
    for (let i = 0; i < count; i++) if (slots.enter(key) === undefined) entered += 1;
    return entered;
  };
  return { slots, clock, enter };
}

test('G2 a key that is alone may hold every slot, and no more', () => {
  const { slots, enter } = scene();
  assert.equal(enter('a', 101), 100);
  assert.equal(slots.enter('a'), 'all');
  slots.leave('a');
  assert.equal(slots.enter('a'), undefined);
});

test('G8 a key that floods holds half of the slots once they are scarce, and others get in', () => {
  const { slots, clock, enter } = scene();
  assert.equal(enter('b', 1), 1);
  slots.leave('b');
  // Nothing is scarce yet: three quarters are everybody's.
  assert.equal(enter('flood', 1000), 75);
  assert.equal(slots.enter('flood'), 'key');
  assert.equal(enter('b', 30), 25);
  // As its calls end, others take their places, down to a half.
  for (let i = 0; i < 30; i++) slots.leave('flood');
  assert.equal(enter('flood', 100), 5);
  clock.time += 60_001;
  assert.equal(slots.enter('flood'), undefined);
});

test('G8 a key that filled the gateway while it was alone does not lock the next one out', () => {
  const { slots, enter } = scene();
  assert.equal(enter('flood', 200), 100);
  assert.equal(enter('b', 50), 10);
  assert.equal(slots.enter('b'), 'all');
  assert.equal(slots.enter('flood'), 'key');
});

test('G8 who holds little gets in also while more calls run than there are slots left', () => {
  const { slots, clock, enter } = scene({ streams: 3000 });
  assert.equal(enter('flood', 1000), 1000);
  slots.adapt(late(100));
  clock.time += 1000;
  slots.adapt(late(100));
  assert.equal(slots.slots, 900);
  assert.equal(slots.enter('flood'), 'all');
  assert.equal(enter('b', 100), 90);
  assert.equal(slots.enter('b'), 'all');
  // The places of the reserve come back as those who hold them leave.
  slots.leave('b');
  assert.equal(enter('c', 2), 1);
});

test('G8 key_share 100 leaves all slots to whoever comes first', () => {
  const { slots, enter } = scene({ keySharePercent: 100 });
  assert.equal(enter('b', 1), 1);
  slots.leave('b');
  assert.equal(enter('flood', 200), 100);
});

test('G6 a loop that stays late takes slots away, down to what is never too many', () => {
  const { slots, clock, enter } = scene({ streams: 3000 });
  const leave = (count: number): void => {
    for (let i = 0; i < count; i++) slots.leave('a');
  };
  assert.equal(enter('a', 1000), 1000);
  slots.adapt(late(100));
  clock.time += 999;
  slots.adapt(late(500));
  assert.equal(slots.slots, 3000);
  clock.time += 1;
  slots.adapt(late(25));
  assert.equal(slots.slots, 3000);
  slots.adapt(late(26));
  assert.equal(slots.slots, 900);
  assert.equal(slots.enter('a'), 'all');
  // What was taken has not come to bear yet: more calls run than may.
  slots.adapt(late(500));
  assert.equal(slots.slots, 900);
  leave(100);
  // Near the bound it stays as it is.
  slots.adapt(late(13));
  assert.equal(slots.slots, 900);
  slots.adapt(late(101));
  assert.equal(slots.slots, 675);
  for (let i = 0; i < 20; i++) {
    slots.adapt(late(500));
    leave(Math.max(0, slots.live - slots.slots));
  }
  assert.equal(slots.slots, minSlots);
});

test('G6 a burst takes no slots away, and calm gives them back', () => {
  const { slots, clock, enter } = scene({ streams: 3000 });
  enter('a', 1000);
  for (let i = 0; i < 5; i++) {
    slots.adapt(late(500));
    clock.time += 900;
    slots.adapt(late(500));
    slots.adapt(late(0));
  }
  assert.equal(slots.slots, 3000);
  for (let i = minSlots; i < 1000; i++) slots.leave('a');
  slots.adapt(late(500));
  clock.time += 1000;
  slots.adapt(late(500));
  assert.equal(slots.slots, minSlots);
  let looks = 0;
  while (slots.slots < 3000) {
    slots.adapt(late(0));
    looks += 1;
  }
  // Four looks a second: all of them within 5 s, what a load needs sooner.
  assert.ok(looks <= 20, `${looks} looks`);
});

test('G1 a thousand streams that come within two seconds all get in, while the loop is late for them', () => {
  const { slots, clock, enter } = scene({ streams: 1000 });
  // Some ten to thirty ms too late, as a process is that has just started.
  for (const delayMs of [5, 27, 60, 32, 36, 30, 52, 40]) {
    assert.equal(enter('a', 125), 125);
    clock.time += 250;
    slots.adapt(late(delayMs, 1));
  }
  assert.equal(slots.slots, 1000);
});

test('G6 a loop that is a little late takes slots away only where it stays so, and at once the next time', () => {
  const { slots, clock, enter } = scene({ streams: 3000 });
  enter('a', 1000);
  const looks = (count: number, delayMs: number): void => {
    for (let i = 0; i < count; i++) {
      clock.time += 250;
      slots.adapt(late(delayMs));
    }
  };
  looks(8, 50);
  assert.equal(slots.slots, 3000);
  looks(1, 50);
  assert.equal(slots.slots, 900);
  // It was in time for a moment; as before, a second is enough where slots are taken away already.
  for (let i = 0; i < 200; i++) slots.leave('a');
  looks(1, 0);
  const before = slots.slots;
  looks(4, 26);
  assert.equal(slots.slots, before);
  looks(1, 26);
  assert.equal(slots.slots, 720);
});

test('G6 a load beyond what the loop bears takes slots away within a second, however early it was at first', () => {
  const { slots, clock, enter } = scene({ streams: 3000 });
  enter('a', 1000);
  for (const delayMs of [5, 30, 60, 110, 160]) {
    clock.time += 250;
    slots.adapt(late(delayMs));
  }
  assert.equal(slots.slots, 3000);
  clock.time += 250;
  slots.adapt(late(210));
  assert.equal(slots.slots, 750);
});

test('G6 a loop that is in time and has no time left gets slots back one by one', () => {
  const { slots, clock, enter } = scene({ streams: 3000 });
  enter('a', 1000);
  slots.adapt(late(100));
  clock.time += 1000;
  slots.adapt(late(100));
  assert.equal(slots.slots, 900);
  slots.adapt(late(5, 0.95));
  assert.equal(slots.slots, 909);
  slots.adapt(late(5, 0.5));
  assert.equal(slots.slots, 955);
});

/** Looks, four a second: so many calls ask each time, a tenth of those that run end; the delay is what they cost. */
function play(
  { slots, clock }: Pick<ReturnType<typeof scene>, 'slots' | 'clock'>,
  looks: number,
  delayOf: (live: number) => number,
): readonly number[] {
  const seen: number[] = [];
  for (let look = 0; look < looks; look++) {
    const ended = Math.ceil(slots.live / 10);
    for (let i = 0; i < ended; i++) slots.leave('a');
    for (let i = 0; i < 1000; i++) slots.enter('a');
    clock.time += 250;
    slots.adapt(late(delayOf(slots.live)));
    seen.push(slots.slots);
  }
  return seen;
}

test('G6 a loop that is in time gives all slots back, also one that is never quite idle', () => {
  const all = scene({ streams: 3000 });
  play(all, 60, () => 200);
  assert.equal(all.slots.slots, minSlots);
  // A steady 15 of 25 ms, whatever runs: nothing is late, and yet it would have the fewest for ever.
  play(all, 12 + 400, () => 15);
  assert.equal(all.slots.slots, 3000);
});

test('G6 under a flood that stays, the slots stay where the loop is just in time', () => {
  const all = scene({ streams: 3000 });
  // 600 calls are what the loop bears.
  const settled = play(all, 1200, (live) => live / 24).slice(200);
  assert.ok(Math.min(...settled) >= 520, `down to ${Math.min(...settled)}`);
  assert.ok(Math.max(...settled) <= 620, `up to ${Math.max(...settled)}`);
});

test('G6 late moments far apart are no load that stays', () => {
  const { slots, clock, enter } = scene({ streams: 3000 });
  enter('a', 1000);
  for (let i = 0; i < 10; i++) {
    slots.adapt(late(26));
    for (let look = 0; look < 20; look++) {
      clock.time += 250;
      slots.adapt(late(20));
    }
  }
  assert.equal(slots.slots, 3000);
});

test('G6 a late look counts for the time since the look before it, which may have been in time', () => {
  const { slots, clock, enter } = scene({ streams: 3000 });
  enter('a', 1000);
  // Twice the bound, but once a second: half a second of lateness each, eight of them are a burst's.
  for (let i = 0; i < 8; i++) {
    for (const delayMs of [50, 20, 20, 20]) {
      clock.time += 250;
      slots.adapt(late(delayMs));
    }
  }
  assert.equal(slots.slots, 3000);
  clock.time += 250;
  slots.adapt(late(50));
  assert.equal(slots.slots, 900);
});

test('G8 what is held is counted exactly, and a key that holds nothing is forgotten', () => {
  const { slots, enter } = scene();
  enter('a', 3);
  enter('b', 2);
  assert.equal(slots.live, 5);
  for (const key of ['a', 'b', 'a', 'b', 'a']) slots.leave(key);
  assert.equal(slots.live, 0);
  assert.equal(enter('a', 200), 75);
});
