/** G5: fifty bodies of 32 MB at once, again and again, under a limit of 512 MB. */
import { connect } from 'node:net';
import { chatHead } from './client.ts';
import { floodKey, openStage, sleep, type Figure, type Stage } from './stage.ts';

const atOnce = 50;
const limitMb = 512;

/** A body of 32 MiB: much text in few values, as an agent with pictures sends it. */
function largeBody(): Buffer {
  const text = 'The harbour lights came on. '.repeat(37_400);
  const messages = Array.from({ length: 31 }, (_, i) => ({
    role: i % 2 === 0 ? 'user' : 'assistant',
    content: text.slice(0, 1_048_400),
  }));
  return Buffer.from(JSON.stringify({ model: 'mock/unary', messages }));
}

/** Sends the body on a connection of its own; the status, 0 when the connection broke first. */
function sendLarge(stage: Stage, body: Buffer, chunked: boolean): Promise<number> {
  return new Promise((resolve) => {
    const socket = connect({ port: stage.port, host: '127.0.0.1' });
    let text = '';
    socket.on('data', (bytes: Buffer) => {
      text += bytes.toString('latin1', 0, 12);
      socket.end();
    });
    socket.on('error', () => undefined);
    socket.on('close', () => resolve(Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1] ?? 0)));
    socket.on('connect', () => {
      if (!chunked) {
        socket.write(chatHead(floodKey, body.length));
        socket.write(body);
        return;
      }
      const head = chatHead(floodKey, 0).toString();
      socket.write(head.replace('content-length: 0', 'transfer-encoding: chunked'));
      socket.write(`${body.length.toString(16)}\r\n`);
      socket.write(body);
      socket.write('\r\n0\r\n\r\n');
    });
  });
}

export async function largeBodies(seconds: number, say: (line: string) => void): Promise<Figure[]> {
  const stage = await openStage({ memory: `${limitMb}MiB` });
  const body = largeBody();
  const counts = new Map<number, number>();
  try {
    const before = stage.memory().nowMb;
    const until = performance.now() + seconds * 1000;
    const send = async (chunked: boolean): Promise<void> => {
      while (performance.now() < until && stage.alive()) {
        const status = await sendLarge(stage, body, chunked);
        counts.set(status, (counts.get(status) ?? 0) + 1);
        // A client that waits shorter than `retry-after`.
        if (status !== 200) await sleep(200);
      }
    };
    await Promise.all(Array.from({ length: atOnce }, (_, i) => send(i % 5 === 0)));
    const alive = stage.alive();
    const { peakMb } = stage.memory();
    say(`  ${JSON.stringify(await stage.status())}`);
    const probe = await fetch(`http://127.0.0.1:${stage.port}/healthz`);
    return [
      {
        what: 'bodies at once, a fifth of them chunked',
        value: `${atOnce} × ${(body.length / 1e6).toFixed(1)} MB`,
      },
      {
        what: 'answers by status (0 = broken on the way)',
        value: [...counts].map(([status, count]) => `${status}: ${count}`).join(', '),
      },
      {
        what: 'served',
        value: String(counts.get(200) ?? 0),
        bound: '> 0',
        kept: (counts.get(200) ?? 0) > 0,
      },
      {
        what: 'highest resident memory (at the start)',
        value: `${peakMb.toFixed(0)} MB (${before.toFixed(0)})`,
        bound: `≤ ${limitMb} MB`,
        kept: peakMb <= limitMb,
      },
      {
        what: 'the process lives and answers probes',
        value: alive && probe.status === 200 ? 'yes' : 'no',
        bound: 'yes',
        kept: alive && probe.status === 200,
      },
    ];
  } finally {
    await stage.stop();
  }
}
