/** A connection without a network: two ends, and bytes that take their time between them. */
import { Duplex } from 'node:stream';
import type { Dice } from './dice.ts';
import type { VirtualTime } from './virtual-time.ts';

/** Small, so that back-pressure is felt. */
const window = 2048;

export interface LinkDeps {
  readonly time: VirtualTime;
  readonly dice: Dice;
  /** Ms that bytes take at most. */
  readonly slowest: number;
}

export class Link {
  readonly near: End;
  readonly far: End;
  readonly #deps: LinkDeps;

  constructor(deps: LinkDeps) {
    this.#deps = deps;
    this.near = new End(this);
    this.far = new End(this);
    this.near.peer = this.far;
    this.far.peer = this.near;
  }

  /** Does something at an end when it arrives there, in the order in which it was sent; `lost` where nobody is. */
  carry(to: End, what: () => void, lost?: () => void): void {
    const { time, dice, slowest } = this.#deps;
    const arrival = Math.max(to.arrival, time.now() + dice.int(0, slowest));
    to.arrival = arrival;
    time.after(arrival - time.now(), () => {
      if (!to.frozen && !to.destroyed) what();
      else lost?.();
    });
  }

  get time(): VirtualTime {
    return this.#deps.time;
  }

  get dice(): Dice {
    return this.#deps.dice;
  }
}

interface Held {
  readonly chunk: Buffer;
  encoding?: BufferEncoding;
}

/** One end of it, in the place of a `net.Socket`. */
export class End extends Duplex {
  readonly remoteAddress = '127.0.0.1';
  readonly #link: Link;
  peer: End | undefined;
  /** When what was sent last arrives here. */
  arrival = 0;
  /** The process at this end was killed: nothing reaches it any more, and it says nothing. */
  frozen = false;
  #finished = false;
  #waiting: (() => void) | undefined;
  #idle: (() => void) | undefined;
  #idleMs = 0;

  constructor(link: Link) {
    super({ allowHalfOpen: true, readableHighWaterMark: window, writableHighWaterMark: window });
    this.#link = link;
    this.on('error', () => undefined);
  }

  override _read(): void {
    this.#taken();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.#send(chunk, done);
  }

  override _writev(chunks: Held[], done: () => void): void {
    this.#send(Buffer.concat(chunks.map(({ chunk }) => chunk)), done);
  }

  override _final(done: () => void): void {
    this.#finished = true;
    const { peer } = this;
    if (peer !== undefined) this.#link.carry(peer, () => peer.push(null));
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#idle?.();
    const { peer } = this;
    if (peer !== undefined && !(this.#finished && error === null)) {
      this.#finished = true;
      // What closes a socket sees only one side: the other one reads an end, or is told of a reset.
      const reset = error !== null || this.#link.dice.chance(0.5);
      this.#link.carry(peer, () => {
        if (reset) peer.reset();
        else if (!peer.readableEnded) peer.push(null);
      });
    }
    done(error);
  }

  /** The process here is killed; the other side sees its connection break. */
  freeze(): void {
    const { peer } = this;
    this.frozen = true;
    this.#idle?.();
    if (peer !== undefined && !peer.destroyed) this.#link.carry(peer, () => peer.reset());
  }

  reset(): void {
    this.destroy(Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' }));
  }

  resetAndDestroy(): this {
    this.reset();
    return this;
  }

  setTimeout(ms: number, listener?: () => void): this {
    this.#idleMs = ms;
    if (listener !== undefined) this.once('timeout', listener);
    this.#stir();
    return this;
  }

  setNoDelay(): this {
    return this;
  }

  setKeepAlive(): this {
    return this;
  }

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }

  #send(chunk: Buffer, done: () => void): void {
    const { peer } = this;
    if (peer === undefined || this.frozen) return;
    this.#stir();
    const refused = (): void => this.#link.carry(this, () => this.reset());
    this.#link.carry(peer, () => peer.arrive(chunk, done), refused);
  }

  /** Bytes that arrived; the sender goes on when there is room for more. */
  arrive(chunk: Buffer, done: () => void): void {
    this.#stir();
    if (this.push(chunk)) done();
    else this.#waiting = done;
  }

  #taken(): void {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    waiting?.();
  }

  #stir(): void {
    this.#idle?.();
    this.#idle = undefined;
    if (this.#idleMs <= 0 || this.destroyed || this.frozen) return;
    this.#idle = this.#link.time.after(this.#idleMs, () => {
      if (!this.frozen && !this.destroyed) this.emit('timeout');
    });
  }
}
