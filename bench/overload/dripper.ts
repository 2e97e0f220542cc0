/**
 * Connections that send a byte a second, in a process of their own: the process that measures good calls shall not
 * wait for their five thousand timers. Each message of the parent is a `Drip` to begin or `{}`; it answers with what
 * became of all so far.
 */
import { connect } from 'node:net';

/** Retains `count` connections open that have sent `opening` (latin-1). */
export interface Drip {
  readonly name: string;
  readonly port: number;
  readonly count: number;
  readonly opening: string;
}

export interface Ends {
  opened: number;
  answered408: number;
  refused: number;
  closed: number;
  maxMs: number;
}

const all: { [name: string]: Ends } = {};

function drip({ port, count, opening }: Drip, ends: Ends): void {
  const open = (): void => {
    const socket = connect({ port, host: '127.0.0.1' });
    let text = '';
    let since = performance.now();
    const timer = setInterval(() => socket.writable && socket.write('a'), 1000);
    socket.on('connect', () => {
      since = performance.now();
      ends.opened += 1;
      socket.write(opening, 'latin1');
    });
    socket.on('data', (bytes: Buffer) => (text += bytes.toString('latin1', 0, 12)));
    socket.on('error', () => undefined);
    socket.on('close', () => {
      clearInterval(timer);
      ends.maxMs = Math.max(ends.maxMs, performance.now() - since);
      if (text.includes(' 408')) ends.answered408 += 1;
      else if (text.includes(' 503')) ends.refused += 1;
      else ends.closed += 1;
      setTimeout(open, 100);
    });
  };
  // In a second: a listener's queue is finite.
  for (let i = 0; i < count; i++) setTimeout(open, (i * 1000) / count);
}

process.on('message', (message: Drip | Record<string, never>) => {
  if ('name' in message) {
    const ends = { opened: 0, answered408: 0, refused: 0, closed: 0, maxMs: 0 };
    all[message.name] = ends;
    drip(message as Drip, ends);
  }
  process.send?.(all);
});
process.on('disconnect', () => process.exit(0));
