/**
 * An OTLP collector on a real socket: reads the protobuf that came, by the field numbers of
 * opentelemetry-proto (trace/v1), with nothing of the packages that wrote it.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createSecureServer, type ServerOptions } from 'node:https';
import type { AddressInfo } from 'node:net';
import { gunzipSync } from 'node:zlib';

export type AttributeValue = string | number | boolean | readonly AttributeValue[];

export interface SeenEvent {
  readonly name: string;
  readonly at: number;
  readonly attributes: { readonly [name: string]: AttributeValue };
}

export interface SeenSpan {
  readonly traceId: string;
  readonly spanId: string;
  /** Empty = none. */
  readonly parentId: string;
  readonly state: string;
  readonly name: string;
  /** 2 = server, 3 = client. */
  readonly kind: number;
  /** Ms since the epoch. */
  readonly start: number;
  readonly end: number;
  readonly attributes: { readonly [name: string]: AttributeValue };
  readonly events: readonly SeenEvent[];
  /** 0 = unset, 2 = error. */
  readonly status: number;
  readonly message: string;
  readonly resource: { readonly [name: string]: AttributeValue };
  readonly scope: string;
}

/** What the collector does with a request. */
export type Manner = 'takes' | 'refuses' | 'hangs';

const waitMs = 60_000;

export class Collector {
  readonly spans: SeenSpan[] = [];
  readonly headers: { readonly [name: string]: string | string[] | undefined }[] = [];
  readonly paths: string[] = [];
  manner: Manner = 'takes';
  readonly #server: Server;
  readonly #scheme: string;
  readonly #waiting = new Set<() => void>();

  /** @param tls for https */
  constructor(tls?: ServerOptions) {
    const answer = (request: IncomingMessage, response: ServerResponse): void => {
      const pieces: Buffer[] = [];
      request.on('data', (piece: Buffer) => pieces.push(piece));
      request.on('end', () => {
        if (this.manner === 'hangs') return;
        this.headers.push(request.headers);
        this.paths.push(request.url ?? '');
        if (this.manner === 'refuses') {
          response.writeHead(400).end();
          return;
        }
        const all = Buffer.concat(pieces);
        const body = request.headers['content-encoding'] === 'gzip' ? gunzipSync(all) : all;
        this.spans.push(...readRequest(body));
        response.writeHead(200, { 'content-type': 'application/x-protobuf' }).end();
        for (const wake of this.#waiting) wake();
      });
    };
    this.#server = tls === undefined ? createServer(answer) : createSecureServer(tls, answer);
    this.#scheme = tls === undefined ? 'http://127.0.0.1' : 'https://localhost';
  }

  async listen(port = 0): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(port, '127.0.0.1', resolve));
    const address = this.#server.address() as AddressInfo;
    return `${this.#scheme}:${address.port}`;
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  /** The spans of the call with this id, its own first and the others by time, once all are there. */
  async ofCall(callId: string): Promise<readonly SeenSpan[]> {
    return this.until(() => {
      const own = this.spans.find(({ attributes }) => attributes['gateway.call_id'] === callId);
      if (own === undefined) return undefined;
      const under = this.spans.filter(({ parentId }) => parentId === own.spanId);
      if (under.length < Number(own.attributes['gateway.attempts'])) return undefined;
      return [own, ...under.toSorted((a, b) => a.start - b.start)];
    });
  }

  /** Resolves with the first thing that is found in what came. */
  until<T>(find: () => T | undefined): Promise<T> {
    return new Promise((resolve, reject) => {
      const look = (): void => {
        const found = find();
        if (found === undefined) return;
        clearTimeout(timer);
        this.#waiting.delete(look);
        resolve(found);
      };
      const timer = setTimeout(() => {
        this.#waiting.delete(look);
        const names = this.spans.map(({ name }) => name).join(', ');
        reject(new Error(`it did not come; these did: ${names}`));
      }, waitMs);
      this.#waiting.add(look);
      look();
    });
  }
}

interface Field {
  readonly number: number;
  readonly value: bigint;
  readonly bytes: Buffer;
}

/** The fields of a message: wire types 0 (varint), 1 (64 bits), 2 (bytes), 5 (32 bits). */
function fields(message: Buffer): readonly Field[] {
  const found: Field[] = [];
  let at = 0;
  const varint = (): bigint => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = message.readUInt8(at);
      at += 1;
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  };
  while (at < message.length) {
    const tag = Number(varint());
    const type = tag & 7;
    let value = 0n;
    let bytes: Buffer = Buffer.alloc(0);
    if (type === 0) value = varint();
    else {
      const length = type === 2 ? Number(varint()) : type === 1 ? 8 : 4;
      if (![1, 2, 5].includes(type)) throw new Error(`wire type ${type}`);
      if (at + length > message.length) throw new Error('a field goes beyond its message');
      bytes = message.subarray(at, at + length);
      at += length;
    }
    found.push({ number: tag >> 3, value, bytes });
  }
  return found;
}

function all(message: Buffer, number: number): readonly Buffer[] {
  return fields(message)
    .filter((field) => field.number === number)
    .map(({ bytes }) => bytes);
}

function one(message: Buffer, number: number): Field | undefined {
  return fields(message).find((field) => field.number === number);
}

function text(message: Buffer, number: number): string {
  return one(message, number)?.bytes.toString('utf8') ?? '';
}

function hex(message: Buffer, number: number): string {
  return one(message, number)?.bytes.toString('hex') ?? '';
}

function time(message: Buffer, number: number): number {
  const nanoseconds = one(message, number)?.bytes.readBigUInt64LE() ?? 0n;
  return Number(nanoseconds / 1000n) / 1000;
}

function attributesOf(message: Buffer, number: number): { [name: string]: AttributeValue } {
  return Object.fromEntries(
    all(message, number).map((pair) => [
      text(pair, 1),
      anyValue(one(pair, 2)?.bytes ?? Buffer.alloc(0)),
    ]),
  );
}

function anyValue(message: Buffer): AttributeValue {
  const [field] = fields(message);
  switch (field?.number) {
    case 1:
      return field.bytes.toString('utf8');
    case 2:
      return field.value === 1n;
    case 3:
      return Number(BigInt.asIntN(64, field.value));
    case 4:
      return field.bytes.readDoubleLE();
    case 5:
      return all(field.bytes, 1).map(anyValue);
    default:
      throw new Error(`an attribute without a value: field ${String(field?.number)}`);
  }
}

function readRequest(body: Buffer): readonly SeenSpan[] {
  return all(body, 1).flatMap((ofResource) => {
    const resource = attributesOf(one(ofResource, 1)?.bytes ?? Buffer.alloc(0), 1);
    return all(ofResource, 2).flatMap((ofScope) => {
      const scope = text(one(ofScope, 1)?.bytes ?? Buffer.alloc(0), 1);
      return all(ofScope, 2).map((span) => readSpan(span, { resource, scope }));
    });
  });
}

function readSpan(span: Buffer, shared: Pick<SeenSpan, 'resource' | 'scope'>): SeenSpan {
  const status = one(span, 15)?.bytes ?? Buffer.alloc(0);
  return {
    ...shared,
    traceId: hex(span, 1),
    spanId: hex(span, 2),
    state: text(span, 3),
    parentId: hex(span, 4),
    name: text(span, 5),
    kind: Number(one(span, 6)?.value ?? 0n),
    start: time(span, 7),
    end: time(span, 8),
    attributes: attributesOf(span, 9),
    events: all(span, 11).map((event) => ({
      at: time(event, 1),
      name: text(event, 2),
      attributes: attributesOf(event, 3),
    })),
    status: Number(one(status, 3)?.value ?? 0n),
    message: text(status, 2),
  };
}
