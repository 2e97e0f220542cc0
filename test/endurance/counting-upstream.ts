/** A provider of both dialects that answers, breaks now and then, and keeps its own account of every call. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tryParseObject } from '../../src/json/parse.ts';
import { isObject, type JsonObject } from '../../src/json/value.ts';
import type { Dialect } from '../support/reading.ts';
import { chatChunk, chatDocument, chatDone, chatFrame, chatUsageChunk } from '../upstream/chat.ts';
import {
  blockDelta,
  blockStart,
  blockStop,
  messageDelta,
  messagesDocument,
  messagesFrame,
  messageStart,
  messageStop,
} from '../upstream/messages.ts';

/** What was sent for a call at last. */
export interface Counted {
  readonly input: number;
  readonly output: number;
  /** Times that the call came here. */
  readonly tries: number;
  /** The last answer was written to its end, with its usage. */
  whole: boolean;
}

export interface UpstreamOptions {
  /** Share of requests that break. */
  readonly faulty: number;
  /** Ms between the pieces of a stream. */
  readonly paceMs: number;
  /** Pieces of a stream at most. */
  readonly longest: number;
  readonly random: () => number;
}

const word = ' day';

export class CountingUpstream {
  /** By the number that the client wrote into its message. */
  readonly calls = new Map<string, Counted>();
  readonly #options: UpstreamOptions;
  readonly #server: Server;

  private constructor(options: UpstreamOptions) {
    this.#options = options;
    this.#server = createServer((request, response) => void this.#serve(request, response));
    this.#server.keepAliveTimeout = 60_000;
  }

  static async start(options: UpstreamOptions): Promise<CountingUpstream> {
    const upstream = new CountingUpstream(options);
    await new Promise<void>((resolve) => upstream.#server.listen(0, '127.0.0.1', resolve));
    return upstream;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const pieces: Buffer[] = [];
    request.on('error', () => undefined);
    response.on('error', () => undefined);
    for await (const piece of request) pieces.push(Buffer.from(piece));
    const body = tryParseObject(Buffer.concat(pieces).toString()) ?? {};
    const { longest, random, faulty } = this.#options;
    const name = callOf(body['messages']);
    const cap = Number(body['max_tokens'] ?? body['max_completion_tokens'] ?? longest);
    const output = 1 + Math.floor(random() * Math.min(cap, longest));
    const input = 5 + Math.floor(random() * 5);
    const tries = (this.calls.get(name)?.tries ?? 0) + 1;
    const counted: Counted = { input, output, tries, whole: false };
    this.calls.set(name, counted);
    const dialect = request.url?.endsWith('/messages') === true ? 'messages' : 'chat';
    const fault = random() < faulty ? Math.floor(random() * 5) : -1;
    if (fault === 0) response.writeHead(500).end('{"error":{"message":"simulated"}}');
    else if (fault === 1) response.writeHead(429, { 'retry-after': '0' }).end('{}');
    else if (fault === 2) request.socket.resetAndDestroy();
    else if (body['stream'] === true) this.#stream(response, dialect, { counted, fault });
    else this.#document(response, dialect, { counted, fault });
  }

  #document(
    response: ServerResponse,
    dialect: Dialect,
    { counted, fault }: { readonly counted: Counted; readonly fault: number },
  ): void {
    const text = word.repeat(counted.output);
    const usage = usageOf(dialect, counted);
    const json = JSON.stringify(
      dialect === 'chat' ? chatDocument({ text, usage }) : messagesDocument({ text, usage }),
    );
    setTimeout(() => {
      if (response.destroyed) return;
      if (fault >= 3) {
        response.writeHead(200, { 'content-length': json.length }).write(json.slice(0, 40));
        setTimeout(() => response.destroy(), 10);
        return;
      }
      response.writeHead(200, { 'content-type': 'application/json' }).end(json);
      counted.whole = true;
    }, this.#options.random() * 100);
  }

  #stream(
    response: ServerResponse,
    dialect: Dialect,
    { counted, fault }: { readonly counted: Counted; readonly fault: number },
  ): void {
    const frames = framesOf(dialect, counted);
    const breaks = fault >= 3 ? 2 + Math.floor(this.#options.random() * frames.length) : Infinity;
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    let next = 0;
    const timer = setInterval(() => {
      const frame = frames[next];
      if (response.destroyed || next >= breaks) {
        clearInterval(timer);
        response.destroy();
      } else if (frame === undefined) {
        clearInterval(timer);
        response.end();
        counted.whole = true;
      } else response.write(frame);
      next += 1;
    }, this.#options.paceMs);
  }
}

function callOf(messages: unknown): string {
  const last: unknown = Array.isArray(messages) ? messages.at(-1) : undefined;
  const content = isObject(last) ? JSON.stringify(last['content']) : '';
  return /call (\w+)/.exec(content)?.[1] ?? '';
}

function usageOf(dialect: Dialect, { input, output }: Counted): JsonObject {
  return dialect === 'chat'
    ? { prompt_tokens: input, completion_tokens: output, total_tokens: input + output }
    : { input_tokens: input, output_tokens: output };
}

function framesOf(dialect: Dialect, counted: Counted): readonly string[] {
  const usage = usageOf(dialect, counted);
  const words = Array.from({ length: counted.output }, () => word);
  if (dialect === 'chat') {
    return [
      chatFrame(chatChunk({ role: 'assistant', content: '' })),
      ...words.map((content) => chatFrame(chatChunk({ content }))),
      chatFrame(chatChunk({}, 'stop')),
      chatFrame(chatUsageChunk(usage)) + chatDone,
    ];
  }
  const events = [
    messageStart(usage),
    blockStart(0, { type: 'text', text: '' }),
    ...words.map((text) => blockDelta(0, { type: 'text_delta', text })),
    blockStop(0),
    messageDelta('end_turn', usage),
    messageStop,
  ];
  return events.map((event) => messagesFrame(event));
}
