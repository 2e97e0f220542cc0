/**
 * Part of the composition root: the addresses of both planes. They are reserved before keys are made, and each error
 * says what to do.
 */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { basename } from 'node:path';
import { addressText, type Address } from '../config/errors.ts';
import { checkFree, reservePort, type ReservedPort } from '../http/listen.ts';

export interface PlaneAddresses {
  readonly listen: Address;
  readonly adminListen: Address;
}

type PlaneName = keyof PlaneAddresses;

const planes: { readonly [name in PlaneName]: { readonly label: string; readonly flag: string } } =
  {
    listen: { label: 'data plane', flag: 'listen' },
    adminListen: { label: 'admin plane', flag: 'admin-listen' },
  };

/**
 * Looks whether both addresses are free, before a key is made. The admin plane's is held against other programs until it
 * listens.
 */
export class PlanePorts {
  readonly #addresses: PlaneAddresses;
  readonly #start: (flag: string, value: string) => string;
  readonly #reserved = new Map<PlaneName, ReservedPort>();

  /** @param start the command of this start with another value of one flag, for texts */
  constructor(addresses: PlaneAddresses, start: (flag: string, value: string) => string) {
    this.#addresses = addresses;
    this.#start = start;
  }

  /** @throws Error that says what is wrong with an address and what to do */
  async reserve(): Promise<void> {
    for (const name of ['listen', 'adminListen'] as const) {
      const address = this.#addresses[name];
      if (name === 'listen' && address.port !== 0) {
        // Held by a socket, it would take calls and drop them until the data plane listens (G14).
        await this.explained(name, () => checkFree(address));
        continue;
      }
      const reserved = await this.explained(name, () => reservePort(address));
      // Any free port is another one each time.
      if (address.port === 0) await reserved.release();
      else this.#reserved.set(name, reserved);
    }
  }

  /** Frees the address for the listener that starts now. @throws Error as `reserve` does */
  async handOver<T>(name: PlaneName, listen: () => Promise<T>): Promise<T> {
    await this.#release(name);
    return this.explained(name, listen);
  }

  async release(): Promise<void> {
    await this.#release('listen');
    await this.#release('adminListen');
  }

  async #release(name: PlaneName): Promise<void> {
    const reserved = this.#reserved.get(name);
    this.#reserved.delete(name);
    await reserved?.release();
  }

  /** Runs what listens at the address. @throws Error as `reserve` does */
  async explained<T>(name: PlaneName, listen: () => Promise<T>): Promise<T> {
    try {
      return await listen();
    } catch (error) {
      const code = error instanceof Error && 'code' in error ? String(error.code) : '';
      const text = await this.#explain(name, code);
      if (text === undefined) throw error;
      throw new Error(text, { cause: error });
    }
  }

  async #explain(name: PlaneName, code: string): Promise<string | undefined> {
    const address = this.#addresses[name];
    const { label, flag } = planes[name];
    const listener = `${addressText(address)} (${label})`;
    const choose = (example: Address): string =>
      `choose another address, for example: ${this.#start(flag, addressText(example))}`;
    const onLoopback = (): string =>
      this.#start(flag, addressText({ ...address, host: '127.0.0.1' }));
    switch (code) {
      case 'EADDRINUSE': {
        const owner = portOwner(address.port);
        const by = owner === undefined ? '' : ` by ${owner}`;
        return `${listener} is in use${by}. Stop that program, or ${choose(await this.#free(address))}`;
      }
      case 'EACCES':
        return `${listener}: this user may not listen on port ${address.port}. Ports from 1024 on are open to all users: ${choose({ ...address, port: 8686 })}`;
      case 'EADDRNOTAVAIL':
        return `${listener}: this machine has no such address. Use 127.0.0.1 (this machine only), 0.0.0.0 (all) or one of its own, for example: ${onLoopback()}`;
      case 'ENOTFOUND':
      case 'EAI_AGAIN':
        return `${listener}: the host name cannot be resolved. Use an IP address, for example: ${onLoopback()}`;
      default:
        return undefined;
    }
  }

  /** The next port that is free, apart from those of both planes. */
  async #free({ host, port }: Address): Promise<Address> {
    const { listen, adminListen } = this.#addresses;
    for (let next = port + 1; next < port + 50 && next <= 65_535; next += 1) {
      if (next === listen.port || next === adminListen.port) continue;
      try {
        await (await reservePort({ host, port: next })).release();
        return { host, port: next };
      } catch {
        // It is taken, too.
      }
    }
    return { host, port: 0 };
  }
}

/** `node (pid 123)` of the program that listens on the port; undefined where this user cannot see it. Linux only. */
function portOwner(port: number): string | undefined {
  try {
    const sockets = listeningSockets(port);
    for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
      if (holdsOneOf(sockets, pid)) {
        return `${programOf(pid)} (pid ${pid})`;
      }
    }
  } catch {
    // Another system, or a process that ended meanwhile: the port is taken all the same.
  }
  return undefined;
}

/** Node calls the thread that `comm` names MainThread: the file of the program says more. */
function programOf(pid: string): string {
  try {
    return basename(readlinkSync(`/proc/${pid}/exe`));
  } catch {
    // Its file is hidden from other users.
    return readFileSync(`/proc/${pid}/comm`, 'utf8').trim();
  }
}

/** Links as /proc/PID/fd has them. */
function listeningSockets(port: number): ReadonlySet<string> {
  const local = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  const listening = '0A';
  const cells = ['tcp', 'tcp6'].flatMap((family) =>
    readFileSync(`/proc/net/${family}`, 'utf8')
      .split('\n')
      .map((line) => line.trim().split(/\s+/)),
  );
  return new Set(
    cells
      .filter(([, at = '', , state]) => at.endsWith(local) && state === listening)
      .map((row) => `socket:[${row[9]}]`),
  );
}

function holdsOneOf(sockets: ReadonlySet<string>, pid: string): boolean {
  try {
    return readdirSync(`/proc/${pid}/fd`).some((fd) => {
      try {
        return sockets.has(readlinkSync(`/proc/${pid}/fd/${fd}`));
      } catch {
        return false;
      }
    });
  } catch {
    return false;
  }
}
