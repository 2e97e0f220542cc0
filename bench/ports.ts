/** Ports for programs that cannot report the port they got. */
import type { ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';
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
  await poll(child, limitMs, async () => ((await accepts(port)) ? true : undefined));
}

/**
 * The port that a program printed into its log: the first group of `pattern`.
 * @throws Error when the program ends, or prints none within `limitMs`
 */
export function untilPrinted(
  child: ChildProcess,
  log: string,
  pattern: string,
  limitMs: number,
): Promise<number> {
  const expression = new RegExp(pattern);
  return poll(child, limitMs, () => {
    const port = expression.exec(readFileSync(log, 'utf8'))?.[1];
    return Promise.resolve(port === undefined ? undefined : Number(port));
  });
}

/** What `find` finds first. @throws Error when the program ends, or nothing is found within `limitMs` */
async function poll<T>(
  child: ChildProcess,
  limitMs: number,
  find: () => Promise<T | undefined>,
): Promise<T> {
  const until = performance.now() + limitMs;
  while (performance.now() < until) {
    if (child.exitCode !== null || child.signalCode !== null) break;
    const found = await find();
    if (found !== undefined) return found;
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
