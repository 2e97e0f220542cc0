/** G10: half-open heads and bodies of a byte a second, while somebody makes ordinary calls. */
import { connect } from 'node:net';
import { chatBody, chatCall, chatHead, percentile } from './client.ts';
import { floodKey, goodKey, openStage, sleep, type Figure, type Stage } from './stage.ts';

const half = 2500;

interface Ends {
  opened: number;
  answered408: number;
  refused: number;
  closed: number;
  longestMs: number;
}

/** Keeps so many connections open that send a byte a second behind `opening`. */
function drip(port: number, count: number, opening: Buffer): { ends: Ends; stop(): void } {
  const ends: Ends = { opened: 0, answered408: 0, refused: 0, closed: 0, longestMs: 0 };
  let over = false;
  const open = (): void => {
    if (over) return;
    const socket = connect({ port, host: '127.0.0.1' });
    let text = '';
    let since = performance.now();
    const timer = setInterval(() => socket.writable && socket.write('a'), 1000);
    socket.on('connect', () => {
      since = performance.now();
      ends.opened += 1;
      socket.write(opening);
    });
    socket.on('data', (bytes: Buffer) => (text += bytes.toString('latin1', 0, 12)));
    socket.on('error', () => undefined);
    socket.on('close', () => {
      clearInterval(timer);
      if (over) return;
      ends.longestMs = Math.max(ends.longestMs, performance.now() - since);
      if (text.includes(' 408')) ends.answered408 += 1;
      else if (text.includes(' 503')) ends.refused += 1;
      else ends.closed += 1;
      setTimeout(open, 100);
    });
  };
  // In a second: a listener's queue is finite.
  for (let i = 0; i < count; i++) setTimeout(open, (i * 1000) / count);
  return { ends, stop: () => void (over = true) };
}

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
  try {
    await goodCalls(stage, 3);
    const alone = await goodCalls(stage, 8);
    const heads = drip(
      stage.port,
      half,
      Buffer.from('POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-a: '),
    );
    const bodies = drip(stage.port, half, chatHead(floodKey, 1_000_000));
    await sleep(3000);
    const beside = await goodCalls(stage, Math.max(10, seconds));
    say(`  ${JSON.stringify(await stage.status())}`);
    const { nowMb } = stage.memory();
    heads.stop();
    bodies.stop();
    const [usual, loaded] = [percentile(alone.ms, 0.99), percentile(beside.ms, 0.99)];
    const told = ({ opened, answered408, refused, closed }: Ends): string =>
      `${opened} opened: ${answered408} × 408, ${refused} × 503, ${closed} closed`;
    const seconds1 = (ms: number): string => `${(ms / 1000).toFixed(1)} s`;
    return [
      { what: `${half} half-open heads`, value: told(heads.ends) },
      {
        what: 'longest life of a head',
        value: seconds1(heads.ends.longestMs),
        bound: '≤ 10 s (+ 2 s of looking)',
        kept: heads.ends.longestMs <= 12_000,
      },
      { what: `${half} bodies of a byte a second`, value: told(bodies.ends) },
      {
        what: 'longest life of such a body',
        value: seconds1(bodies.ends.longestMs),
        bound: '5 s of grace (+ 5 s of looking and closing)',
        kept: bodies.ends.longestMs <= 10_000,
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
    await stage.stop();
  }
}
