/** Between a client and its server: hands bytes on until it falls silent, as where a firewall swallows packets. */
import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';

export class SilentProxy {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #silent = false;

  private constructor(port: number) {
    // Nobody's end is answered but by the other side's.
    this.#server = createServer({ allowHalfOpen: true }, (client) => {
      this.#keep(client);
      if (this.#silent) return;
      const server = this.#keep(connect({ port, host: '127.0.0.1', allowHalfOpen: true }));
      this.#handOn(client, server);
      this.#handOn(server, client);
    });
  }

  static async start(port: number): Promise<SilentProxy> {
    const proxy = new SilentProxy(port);
    await once(proxy.#server.listen(0, '127.0.0.1'), 'listening');
    return proxy;
  }

  /** A URL of the server, as one that leads through here. */
  through(url: string): string {
    const address = this.#server.address();
    if (address === null || typeof address === 'string') throw new Error('it does not listen');
    const led = new URL(url);
    led.port = String(address.port);
    return led.href;
  }

  /** From now on nothing is handed on, and nothing is closed; also of new connections. */
  fallSilent(): void {
    this.#silent = true;
  }

  /** New connections are handed on again; those from before stay silent. */
  speak(): void {
    this.#silent = false;
    for (const socket of this.#sockets) socket.removeAllListeners('data').resume();
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
    await once(this.#server, 'close');
  }

  #keep(socket: Socket): Socket {
    this.#sockets.add(socket);
    socket.on('error', () => undefined);
    return socket.once('close', () => this.#sockets.delete(socket));
  }

  #handOn(from: Socket, to: Socket): void {
    from.on('data', (bytes) => {
      if (!this.#silent) to.write(bytes);
    });
    from.on('end', () => {
      if (!this.#silent) to.end();
    });
    from.on('close', () => {
      if (!this.#silent) to.destroy();
    });
  }
}
