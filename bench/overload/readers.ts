/** G9: five hundred clients that begin to read an endless answer and stop. */
import { connect, type Socket } from 'node:net';
import { chatBody, chatCall } from './client.ts';
import { floodKey, openStage, sleep, type Figure } from './stage.ts';

const readers = 500;
const stalledSeconds = 20;
/** Until the kernel's buffers are full: they grow while data is written into them. */
const fullSeconds = 10;

export async function slowReaders(seconds: number, say: (line: string) => void): Promise<Figure[]> {
  // All of them are let in, however late the loop is by what is poured into them.
  const limits = { loop_delay: '10s' };
  const stage = await openStage(limits, { clients: { stalled: `${stalledSeconds}s` } });
  const sockets: Socket[] = [];
  try {
    const warm = chatCall(floodKey, chatBody('unary', { stream: false }));
    for (let i = 0; i < 50; i++) await stage.callers.send(warm);
    const before = stage.memory().nowMb;
    const request = chatCall(floodKey, chatBody('flood', { stream: true }));
    for (let i = 0; i < readers; i++) {
      const socket = connect({ port: stage.port, host: '127.0.0.1' });
      socket.pause();
      socket.on('error', () => undefined);
      socket.write(request);
      sockets.push(socket);
      if (i % 50 === 49) await sleep(50);
    }
    await sleep(fullSeconds * 1000);
    const held = Number((await stage.status())['live_calls']);
    const { flooded } = await stage.counted();
    const { nowMb, peakMb } = stage.memory();
    await sleep(1500);
    const { flooded: later } = await stage.counted();
    await sleep(Math.max(seconds, stalledSeconds + 3) * 1000);
    const status = await stage.status();
    say(`  ${JSON.stringify(status)}`);
    const left = Number(status['live_calls']);
    const kbEach = ((peakMb - before) * 1024) / held;
    return [
      {
        what: 'clients that do not read',
        value: `${held} held of ${readers}`,
        bound: 'all',
        kept: held === readers,
      },
      {
        what: 'resident memory of each, at most',
        value: `${kbEach.toFixed(0)} KB (${before.toFixed(0)} → ${nowMb.toFixed(0)} MB)`,
        bound: '≤ 256 KB',
        kept: kbEach <= 256,
      },
      {
        what: 'what upstreams wrote into each, kernel buffers included',
        value: `${(flooded / readers / 1024).toFixed(0)} KB, ${((later - flooded) / readers / 1024).toFixed(0)} KB more 1.5 s later`,
        bound: 'no more',
        kept: later === flooded,
      },
      {
        what: `left after ${stalledSeconds} s without reading`,
        value: String(left),
        bound: '0',
        kept: left === 0,
      },
    ];
  } finally {
    for (const socket of sockets) socket.destroy();
    await stage.stop();
  }
}
