/** Ports of programs that cannot tell which one they got. */
import type { ChildProcess } from 'node:child_process';
import { connect, createServer } from 'node:net';

const checkEveryMs = 25;

/** A port that was free a moment ago. */
export async function freePort(): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const server = createServer();
  server.listen(0, '127.0.0.1', () => {
    const address = server.address();
    server.close(() => {
      if (typeof address === 'object' && address !== null) resolve(address.port);
      else reject(new Error('no free port'));
    });
  });
  return promise;
}

/** @throws Error when the program ends, or accepts no connection within `limitMs` */
export async function untilListening(
  child: ChildProcess,
  port: number,
  limitMs: number,
): Promise<void> {
  const until = performance.now() + limitMs;
  while (performance.now() < until) {
    if (child.exitCode !== null || child.signalCode !== null) break;
    if (await accepts(port)) return;
    await new Promise((resolve) => setTimeout(resolve, checkEveryMs));
  }
  throw new Error('it did not start');
}

function accepts(port: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const socket = connect(port, '127.0.0.1', () => {
    socket.destroy();
    resolve(true);
  });
  socket.on('error', () => resolve(false));
  return promise;
}
