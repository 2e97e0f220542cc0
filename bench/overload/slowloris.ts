/** G10: half-open heads and bodies of a byte a second, during ordinary calls of another client. */
import { join } from 'node:path';
import { startHelper } from '../child.ts';
import { chatBody, chatCall, chatHead, percentile } from './client.ts';
import type { Drip, Ends } from './dripper.ts';
import { floodKey, goodKey, openStage, sleep, type Figure, type Stage } from './stage.ts';

const half = 2500;

async function goodCalls(stage: Stage, seconds: number): Promise<{ ms: number[]; failed: number }> {
  const request = chatCall(goodKey, chatBody('unary', { stream: false }));
  const ms: number[] = [];
  let failed = 0;
  const until = performance.now() + seconds * 1000;
  const calls: Promise<void>[] = [];
  const call = async (): Promise<void> => {
    const outcome = await stage.callers.send(request);
    if (outcome.status === 200 && outcome.whole) ms.push(outcome.ms);
    else failed += 1;
  };
  while (performance.now() < until) {
    calls.push(call());
    await sleep(20);
  }
  await Promise.all(calls);
  return { ms, failed };
}

export async function slowloris(seconds: number, say: (line: string) => void): Promise<Figure[]> {
  const stage = await openStage({});
  const dripper = startHelper(join(import.meta.dirname, 'dripper.ts'));
  try {
    await goodCalls(stage, 3);
    const alone = await goodCalls(stage, 8);
    const { port } = stage;
    const headOpening = 'POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-a: ';
    const bodyOpening = chatHead(floodKey, 1_000_000).toString('latin1');
    const begin = (drip: Drip): Promise<unknown> => dripper.ask(drip);
    await begin({ name: 'heads', port, count: half, opening: headOpening });
    await begin({ name: 'bodies', port, count: half, opening: bodyOpening });
    await sleep(3000);
    const beside = await goodCalls(stage, Math.max(10, seconds));
    say(`  ${JSON.stringify(await stage.status())}`);
    const { nowMb } = stage.memory();
    const { heads, bodies } = (await dripper.ask({})) as {
      readonly heads: Ends;
      readonly bodies: Ends;
    };
    const [usual, loaded] = [percentile(alone.ms, 0.99), percentile(beside.ms, 0.99)];
    const told = ({ opened, answered408, refused, closed }: Ends): string =>
      `${opened} opened: ${answered408} × 408, ${refused} × 503, ${closed} closed`;
    const seconds1 = (ms: number): string => `${(ms / 1000).toFixed(1)} s`;
    return [
      { what: `${half} half-open heads`, value: told(heads) },
      {
        what: 'longest life of a head',
        value: seconds1(heads.maxMs),
        bound: '≤ 10 s (+ 2 s of looking)',
        kept: heads.maxMs <= 12_000,
      },
      { what: `${half} bodies of a byte a second`, value: told(bodies) },
      {
        what: 'longest life of such a body',
        value: seconds1(bodies.maxMs),
        bound: '5 s of grace (+ 5 s of looking and closing)',
        kept: bodies.maxMs <= 10_000,
      },
      {
        what: 'good client, p50 / p99 (alone)',
        value: `${percentile(beside.ms, 0.5).toFixed(1)} / ${loaded.toFixed(1)} ms (${percentile(alone.ms, 0.5).toFixed(1)} / ${usual.toFixed(1)})`,
        bound: 'p99 ≤ 2 ×',
        kept: loaded <= 2 * usual,
      },
      {
        what: 'good calls that failed',
        value: `${beside.failed} of ${beside.failed + beside.ms.length}`,
        bound: '0',
        kept: beside.failed === 0,
      },
      { what: 'resident memory', value: `${nowMb.toFixed(0)} MB` },
    ];
  } finally {
    await dripper.stop();
    await stage.stop();
  }
}
