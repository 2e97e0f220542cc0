/** Whether work grows with the length of its input or with the square of it: by ratio, never by a time. */
import assert from 'node:assert/strict';

const factor = 16;
/** Between 16 and 256, nearer to the latter: other work of the machine must not look like a square. */
const mostRatio = 100;
const runs = 3;

/** Runs the work at a size and at sixteen times that, each a few times; the fastest of each count. */
export function assertLinear(work: (size: number) => unknown, size = 4000): void {
  for (let i = 0; i < 20; i += 1) work(size / 10);
  const small = fastest(() => work(size));
  const large = fastest(() => work(size * factor));
  const ratio = large / Math.max(small, 0.05);
  assert.ok(ratio < mostRatio, `${factor} times the text costs ${ratio.toFixed(0)} times as much`);
}

function fastest(work: () => unknown): number {
  let best = Infinity;
  for (let i = 0; i < runs; i += 1) {
    const began = performance.now();
    work();
    best = Math.min(best, performance.now() - began);
  }
  return best;
}
