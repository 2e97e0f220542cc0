/** The providers of a history, behind connections that are made in its time. They keep their own account. */
import type { Connector } from '../../src/wire/connect.ts';
import { tryParseObject } from '../../src/json/parse.ts';
import { isObject } from '../../src/json/value.ts';
import type { Dialect } from '../support/reading.ts';
import type { Dice } from './dice.ts';
import { Link, type End } from './link.ts';
import { faults, play, type Act, type Fault, type Said } from './replies.ts';
import type { VirtualTime } from './virtual-time.ts';

/** One request as a provider saw it. */
export interface Served {
  /** Of the client's call. */
  readonly call: number;
  readonly host: string;
  readonly fault: Fault;
  readonly said: Said;
  /** All bytes were sent. */
  done: boolean;
}

export interface UpstreamDeps {
  readonly time: VirtualTime;
  readonly dice: Dice;
  /** Share of requests and connections that fail. */
  readonly faulty: number;
  /** It says something else than it says that it says. */
  readonly liar: boolean;
  /** Called with each end that belongs to the gateway. */
  readonly opened: (end: End) => void;
}

const dialects: { readonly [host: string]: Dialect } = {
  'alpha.test': 'chat',
  'beta.test': 'messages',
  'gamma.test': 'chat',
};

export class Upstream {
  readonly served: Served[] = [];
  /** From now on nothing fails. */
  healed = false;
  readonly #deps: UpstreamDeps;
  #serial = 0;

  constructor(deps: UpstreamDeps) {
    this.#deps = deps;
  }

  /** Makes connections, or fails as networks and name servers do. */
  connector(connectMs: number): Connector {
    const { time, dice, opened } = this.#deps;
    return ({ hostname }, callback) => {
      const fail = (code: string, ms: number): void => {
        const error = Object.assign(new Error(code), { code });
        time.after(ms, () => callback(error, undefined));
      };
      if (this.#fails(0.3)) {
        const code = dice.pick(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'CERT_HAS_EXPIRED', '']);
        if (code === '') fail('CONNECT_TIMEOUT', connectMs);
        else fail(code, dice.int(0, 20));
        return;
      }
      const link = new Link({ time, dice, slowest: dice.pick([0, 5, 40]) });
      opened(link.near);
      this.#serve(link.far, hostname);
      // The client uses what a `Duplex` has; its types know sockets of `net` only.
      const socket = link.near as unknown as Parameters<typeof callback>[1];
      time.after(dice.int(0, 30), () => {
        if (!link.near.frozen) callback(null, socket);
      });
    };
  }

  #fails(share: number): boolean {
    const { dice, faulty } = this.#deps;
    return dice.chance(faulty * share) && !this.healed;
  }

  #serve(end: End, host: string): void {
    let bytes: Buffer = Buffer.alloc(0);
    let busy = false;
    const next = (): void => {
      if (busy) return;
      const request = readRequest(bytes);
      if (request === undefined) return;
      bytes = bytes.subarray(request.length);
      busy = true;
      this.#answer(end, host, request.body, () => {
        busy = false;
        next();
      });
    };
    end.on('data', (chunk: Buffer) => {
      bytes = Buffer.concat([bytes, chunk]);
      next();
    });
    end.on('end', () => end.end());
  }

  #answer(end: End, host: string, body: Buffer, free: () => void): void {
    const { dice } = this.#deps;
    const json = tryParseObject(body.toString()) ?? {};
    const dialect = dialects[host] ?? 'chat';
    const cap = Number(json['max_tokens'] ?? json['max_completion_tokens'] ?? 12);
    const fault = this.#fails(1) ? dice.weighed(faults) : 'ok';
    this.#serial += 1;
    const asked = { dialect, stream: json['stream'] === true, cap };
    const { said, acts } = play(fault, asked, this.#serial, dice);
    const account = this.#deps.liar ? { ...said, text: `${said.text}!` } : said;
    const call = callOf(json['messages']);
    const served: Served = { call, host, fault, said: account, done: false };
    this.served.push(served);
    this.#act(end, acts, () => {
      served.done = true;
      free();
    });
  }

  #act(end: End, acts: readonly Act[], done: () => void): void {
    const { time } = this.#deps;
    const [act, ...rest] = acts;
    if (act === undefined || end.destroyed) return;
    if ('wait' in act) {
      time.after(act.wait, () => this.#act(end, rest, done));
    } else if ('send' in act) {
      end.write(act.send);
      this.#act(end, rest, done);
    } else if (act.last === 'reset') end.reset();
    else if (act.last === 'fin') end.end();
    else if (act.last === 'done') done();
  }
}

/** The client writes the number of its call into its message. */
function callOf(messages: unknown): number {
  const last: unknown = Array.isArray(messages) ? messages.at(-1) : undefined;
  const content = isObject(last) ? JSON.stringify(last['content']) : '';
  return Number(/call (\d+)/.exec(content)?.[1] ?? -1);
}

function readRequest(
  bytes: Buffer,
): { readonly body: Buffer; readonly length: number } | undefined {
  const headEnd = bytes.indexOf('\r\n\r\n');
  if (headEnd === -1) return undefined;
  const size = /content-length: (\d+)/i.exec(bytes.toString('latin1', 0, headEnd))?.[1];
  const length = headEnd + 4 + Number(size ?? 0);
  if (bytes.length < length) return undefined;
  return { body: bytes.subarray(headEnd + 4, length), length };
}
