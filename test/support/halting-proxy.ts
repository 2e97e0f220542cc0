/**
 * Between a client and its server: hands all bytes on until an answer holds a word; that one waits, and all
 * behind it: of every connection, or of that one alone.
 */
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';

export class HaltingProxy {
  /** Resolves when the answer is there that holds the word. */
  readonly halted: Promise<void>;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #waiting: (() => void)[] = [];
  #state: 'before' | 'halted' | 'behind' = 'before';

  private constructor(port: number, word: string, whose: 'all' | 'its own') {
    const halted = Promise.withResolvers<void>();
    this.halted = halted.promise;
    this.#server = createServer((client) => {
      const server = connect(port, '127.0.0.1');
      let isIt = false;
      for (const socket of [client, server]) {
        this.#sockets.add(socket);
        socket.on('error', () => undefined);
        socket.on('close', () => {
          client.destroy();
          server.destroy();
        });
      }
      client.on('data', (bytes) => server.write(bytes));
      server.on('data', (bytes) => {
        if (this.#state === 'before' && bytes.includes(word)) {
          this.#state = 'halted';
          isIt = true;
          halted.resolve();
        }
        if (this.#state === 'halted' && (isIt || whose === 'all'))
          this.#waiting.push(() => client.write(bytes));
        else client.write(bytes);
      });
    });
  }

  /** @param whose the answers that wait with the one that has the word. */
  static async start(
    port: number,
    word: string,
    whose: 'all' | 'its own' = 'all',
  ): Promise<HaltingProxy> {
    const proxy = new HaltingProxy(port, word, whose);
    await once(proxy.#server.listen(0, '127.0.0.1'), 'listening');
    return proxy;
  }

  get port(): number {
    const address: AddressInfo | string | null = this.#server.address();
    if (address === null || typeof address === 'string') throw new Error('it does not listen');
    return address.port;
  }

  /** From now on all answers wait. */
  halt(): void {
    this.#state = 'halted';
  }

  /** Hands on what waited, and everything from now on. */
  goOn(): void {
    this.#state = 'behind';
    for (const write of this.#waiting.splice(0)) write();
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
    await once(this.#server, 'close');
  }
}
