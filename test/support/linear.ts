/** Whether work grows with the length of its input or with the square of it: by ratio, never by a time. */
import assert from 'node:assert/strict';

const factor = 16;
/** Between 16 and 256, nearer to the latter: memory and collections must not look like a square. */
const maxRatio = 110;
const runs = 5;
/** Of this thread; shorter times cannot be distinguished from noise. */
const minMicroseconds = 2000;

/** Runs the work at a size and at sixteen times that; the cheapest of some runs of each counts. */
export function assertLinear(work: (size: number) => unknown): void {
  let size = 2000;
  work(size);
  let small = cheapest(() => work(size));
  while (small < minMicroseconds && size < 64_000) {
    size *= 2;
    small = cheapest(() => work(size));
  }
  const large = cheapest(() => work(size * factor));
  const ratio = large / Math.max(small, minMicroseconds / 2);
  assert.ok(ratio < maxRatio, `${factor} times the text costs ${ratio.toFixed(0)} times as much`);
}

/** CPU time of this thread alone: what else the machine does is not in it. */
function cheapest(work: () => unknown): number {
  let best = Infinity;
  for (let i = 0; i < runs; i += 1) {
    const began = process.threadCpuUsage();
    work();
    const { user, system } = process.threadCpuUsage(began);
    best = Math.min(best, user + system);
  }
  return best;
}
