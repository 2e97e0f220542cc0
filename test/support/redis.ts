/**
 * A Redis or Valkey server for tests, from the machine's own packages. Where there is none, tests say so:
 * `TEST_REDIS_PROGRAM` names another one than those on the PATH.
 * `const server = await startRedis(); if (server === undefined) test(noRedis, () => {});`
 */
import { once } from 'node:events';
import { connect } from 'node:net';
import { findProgram, freePort, serverFolder, ServerProcess } from './server-process.ts';

export const noRedis =
  'Neither Redis nor Valkey is on this machine (apt-get install redis-server): its tests are left out';

/** A password that must stand nowhere. */
export const redisPassword = 'canary-redis-93d0';

/**
 * Undefined where it is not installed.
 * @param options further ones of its command line
 */
export async function startRedis(options: readonly string[] = []): Promise<TestRedis | undefined> {
  const program =
    process.env['TEST_REDIS_PROGRAM'] ?? findProgram(['redis-server', 'valkey-server']);
  if (program === undefined) return undefined;
  const port = await freePort();
  const server = new TestRedis({ program, folder: serverFolder('redis'), port, options });
  await server.start();
  return server;
}

interface Parts {
  readonly program: string;
  readonly folder: string;
  readonly port: number;
  readonly options: readonly string[];
}

export class TestRedis {
  readonly port: number;
  readonly #parts: Parts;
  #process: ServerProcess | undefined;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.port = parts.port;
  }

  get url(): string {
    return `redis://:${redisPassword}@127.0.0.1:${this.port}/0`;
  }

  /** Nothing is kept on disk: every start is an empty one. */
  async start(): Promise<void> {
    const { program, folder, port, options } = this.#parts;
    const place = ['--port', String(port), '--bind', '127.0.0.1', '--dir', folder];
    const forgetful = ['--save', '', '--appendonly', 'no'];
    const access = ['--requirepass', redisPassword];
    const server = new ServerProcess(program, [...place, ...forgetful, ...access, ...options]);
    this.#process = server;
    await server.untilReady(() => this.#answers());
  }

  /** Ends like a crash: all counters are lost. */
  async stop(): Promise<void> {
    // A stopped process sees no other signal.
    this.#process?.signal('SIGCONT');
    await this.#process?.end('SIGKILL');
    this.#process = undefined;
  }

  /** Takes connections and answers nothing, until `resume`. */
  pause(): void {
    this.#process?.signal('SIGSTOP');
  }

  resume(): void {
    this.#process?.signal('SIGCONT');
  }

  /** One command, its answer as it stands on the wire: `+OK`, `:1`, `$-1`. */
  async command(...words: readonly string[]): Promise<string> {
    const socket = connect(this.port, '127.0.0.1');
    await once(socket, 'connect');
    let answer = '';
    socket.setEncoding('utf8').on('data', (text: string) => (answer += text));
    for (const each of [['AUTH', redisPassword], words, ['QUIT']]) socket.write(encode(each));
    await once(socket, 'close');
    return answer.split('\r\n').slice(1, -2).join('\r\n');
  }

  close(): Promise<void> {
    return this.stop();
  }

  async #answers(): Promise<boolean> {
    try {
      return (await this.command('PING')) === '+PONG';
    } catch {
      return false;
    }
  }
}

function encode(words: readonly string[]): string {
  const parts = words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`);
  return `*${words.length}\r\n${parts.join('')}`;
}
