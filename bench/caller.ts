/** One caller of the load generator: a keep-alive connection that sends one prepared request at a time. */
import { connect, type Socket } from 'node:net';
import { AnswerReader } from './answer-reader.ts';
import { pathOf, requestBody, unaryTokens } from './bodies.ts';
import type { Body, Target } from './protocol.ts';
import { faultOfStream, faultOfUnary } from './verify.ts';

/** Every answer is checked for status, ending and token count; every so many a unary one is parsed. */
const parsedShare = 16;
const unaryProof = `tokens":${unaryTokens}`;

/** A request whose bytes are made once and sent many times. */
export interface PreparedRequest {
  readonly bytes: Buffer;
  readonly target: Target;
  readonly body: Body;
}

export function prepareRequest(target: Target, body: Body): PreparedRequest {
  const text = requestBody(target.dialect, target.model, body);
  const version =
    target.dialect === 'anthropic-messages' ? 'anthropic-version: 2023-06-01\r\n' : '';
  const more = Object.entries(target.headers ?? {})
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('');
  const head = `POST ${target.path ?? pathOf(target.dialect)} HTTP/1.1\r\nhost: 127.0.0.1:${target.port}\r\nauthorization: Bearer ${target.key}\r\ncontent-type: application/json\r\naccept: application/json\r\nuser-agent: bench\r\n${version}${more}content-length: ${Buffer.byteLength(text)}\r\n\r\n`;
  return { bytes: Buffer.from(head + text), target, body };
}

/** What a caller reports to its run. */
export interface CallerEvents {
  /** The answer is complete; `fault` says what is wrong with it. */
  done(caller: Caller, fault: string | undefined): void;
  /** `count` content chunks arrived. */
  chunks(caller: Caller, count: number): void;
  /** Bytes arrived, before anything is made of them. */
  bytes?(caller: Caller, bytes: Buffer): void;
}

export class Caller {
  /** When the request in flight was due, in ms of `performance.now()`. */
  dueAt = 0;
  private readonly request: PreparedRequest;
  private readonly events: CallerEvents;
  private readonly reader = new AnswerReader();
  private socket: Socket | undefined;
  private inFlight = false;
  private answers = 0;

  constructor(request: PreparedRequest, events: CallerEvents) {
    this.request = request;
    this.events = events;
  }

  /** Sends the request, on a new connection if there is none. */
  send(dueAt: number): void {
    this.dueAt = dueAt;
    this.inFlight = true;
    this.reader.reset();
    this.socket ??= this.open();
    this.socket.write(this.request.bytes);
  }

  close(): void {
    this.inFlight = false;
    this.socket?.destroy();
  }

  private open(): Socket {
    const buffer = Buffer.allocUnsafe(65_536);
    const socket = connect({
      port: this.request.target.port,
      host: '127.0.0.1',
      noDelay: true,
      // One buffer a connection, no stream machinery: the generator must stay cheaper than its target.
      onread: {
        buffer,
        callback: (length) => {
          this.receive(buffer.subarray(0, length));
          return true;
        },
      },
    });
    socket.on('error', () => {});
    socket.on('close', () => {
      if (this.socket !== socket) return;
      this.socket = undefined;
      if (this.inFlight) this.finish('the connection was closed before the end of the answer');
    });
    return socket;
  }

  private receive(bytes: Buffer): void {
    if (!this.inFlight) return;
    this.events.bytes?.(this, bytes);
    const before = this.reader.marks;
    let complete: boolean;
    try {
      complete = this.reader.push(bytes);
    } catch (error) {
      this.drop(String(error));
      return;
    }
    const count = this.reader.marks - before;
    if (count > 0) this.events.chunks(this, count);
    if (!complete) return;
    if (this.reader.closes) this.leave();
    this.finish(this.fault());
  }

  /** A gateway in trouble says so: the next request would cross its close on the way (G7). */
  private leave(): void {
    this.socket?.destroy();
    this.socket = undefined;
  }

  private fault(): string | undefined {
    const { body, target } = this.request;
    if (this.reader.status !== 200) {
      return `status ${this.reader.status}: ${this.reader.text().slice(0, 200)}`;
    }
    const text = this.reader.text();
    if (body.kind === 'stream') return faultOfStream(target.dialect, text, body.chunks);
    this.answers += 1;
    if (this.answers % parsedShare === 1) return faultOfUnary(target.dialect, text);
    return text.includes(unaryProof) ? undefined : 'the token count is not in the answer';
  }

  private drop(fault: string): void {
    this.leave();
    this.finish(fault);
  }

  private finish(fault: string | undefined): void {
    this.inFlight = false;
    this.events.done(this, fault);
  }
}
