/** Database servers for tests: programs of this machine, in a directory of their own, never as root. */
import { spawn, type ChildProcess } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { accessSync, chownSync, constants, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { delimiter, join } from 'node:path';
import { temporaryFolder } from './folders.ts';

/** The first of these programs that is there. */
export function findProgram(
  names: readonly string[],
  folders: readonly string[] = [],
): string | undefined {
  const path = (process.env['PATH'] ?? '').split(delimiter);
  const places = [...folders, ...path, '/usr/local/bin', '/usr/bin', '/usr/sbin'];
  return names
    .flatMap((name) => places.map((folder) => join(folder, name)))
    .find((program) => canRun(program));
}

function canRun(program: string): boolean {
  try {
    accessSync(program, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** Database servers refuse to run as root: undefined if this process is another user. */
export interface Identity {
  readonly uid: number;
  readonly gid: number;
}

export function notRoot(): Identity | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const users = readFileSync('/etc/passwd', 'utf8').split('\n');
  const user = ['postgres', 'nobody'].flatMap((name) =>
    users.filter((line) => line.startsWith(`${name}:`)),
  )[0];
  const [, , uid, gid] = user?.split(':') ?? [];
  if (uid === undefined || gid === undefined) throw new Error('no user to run a server as');
  return { uid: Number(uid), gid: Number(gid) };
}

/** A temporary folder of the user that servers run as. Its path is short: that of a Unix socket may have 107 characters. */
export function serverFolder(name: string): string {
  const path = temporaryFolder(name);
  const owner = notRoot();
  if (owner !== undefined) chownSync(path, owner.uid, owner.gid);
  return path;
}

/**
 * Not one of those that the system gives to connections: a server that stops and starts again would now and then
 * find its port taken by one of them, most likely of a client that tries to reach it.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(10_000, 32_000);
    if (await isFree(port)) return port;
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer().listen(port, '127.0.0.1');
  try {
    await once(server, 'listening');
  } catch {
    return false;
  }
  server.close();
  await once(server, 'close');
  return true;
}

/** Runs a program to its end. @throws Error with what it said when it fails. */
export async function runToEnd(program: string, args: readonly string[]): Promise<void> {
  const child = spawn(program, args, { ...notRoot(), stdio: ['ignore', 'pipe', 'pipe'] });
  let said = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => (said += text));
  }
  const [code]: unknown[] = await once(child, 'close');
  if (code !== 0) throw new Error(`${program} ended with ${String(code)}: ${said}`);
}

/** A server that runs until it is ended; `said` is what it wrote so far. */
export class ServerProcess {
  readonly #child: ChildProcess;
  readonly #ended: Promise<unknown>;
  #said = '';

  constructor(program: string, args: readonly string[]) {
    this.#child = spawn(program, args, { ...notRoot(), stdio: ['ignore', 'pipe', 'pipe'] });
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => (this.#said += text));
    }
    this.#ended = once(this.#child, 'close');
    // The test process must not wait for a server that a failed test left behind.
    const kill = (): boolean => this.#child.kill('SIGKILL');
    process.prependOnceListener('exit', kill);
    this.#child.once('close', () => process.off('exit', kill));
  }

  get said(): string {
    return this.#said;
  }

  get running(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  async end(signal: NodeJS.Signals): Promise<void> {
    if (this.running) this.#child.kill(signal);
    await this.#ended;
  }

  /** Asks until the server answers. @throws Error with its last words when it does not. */
  async untilReady(isReady: () => Promise<boolean>): Promise<void> {
    const deadline = performance.now() + 120_000;
    while (!(await isReady())) {
      if (!this.running || performance.now() > deadline) {
        throw new Error(`the server did not start: ${this.#said}`);
      }
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}
