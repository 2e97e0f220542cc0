/** E8: code that throws while it reads or writes an answer ends that answer, and nothing else. */
import assert from 'node:assert/strict';
import type { JsonObject } from '../../src/json/value.ts';
import { after, before, test } from 'node:test';
import type { ClientDialect, StreamReader, StreamWriter } from '../../src/core/dialect.ts';
import { parseBody } from '../../src/core/client-body.ts';
import type { Provider, Target } from '../../src/core/provider.ts';
import { createSealer } from '../../src/core/secret.ts';
import { anthropicMessagesClient } from '../../src/dialects/anthropic-messages/client.ts';
import { openaiChatClient } from '../../src/dialects/openai-chat/client.ts';
import type { Call, Receipt } from '../../src/core/call.ts';
import type { Gateway } from '../../src/gateway/gateway.ts';
import type { ClientObserver, ClientSink } from '../../src/gateway/answer/client-answer.ts';
import { handleCall } from '../../src/gateway/handle.ts';
import { TargetHealth } from '../../src/gateway/targets/health.ts';
import { LearnedParameters } from '../../src/gateway/learned-parameters.ts';
import { ReasoningMemory, ReasoningStore } from '../../src/gateway/reasoning-memory.ts';
import { RetryBudget } from '../../src/gateway/targets/retries.ts';
import { Routing } from '../../src/gateway/targets/routing.ts';
import { Sweeper } from '../../src/gateway/deadlines.ts';
import { TokenEstimator } from '../../src/gateway/call-size.ts';
import { later, newId, systemClock } from '../../src/observe/runtime.ts';
import { createHttpProvider } from '../../src/providers/http-provider.ts';
import { HttpClient } from '../../src/wire/http-client.ts';
import { endingOf, readStream, type Dialect } from '../support/reading.ts';
import { requestBody } from '../support/requests.ts';
import { chatFrames } from '../upstream/chat.ts';
import { ScriptedUpstream } from '../upstream/scripted.ts';
import { InlineBodies } from '../support/inline-bodies.ts';

let upstream: ScriptedUpstream;
let provider: Provider;
const client = new HttpClient();
const strays: unknown[] = [];
const stray = (reason: unknown): void => {
  strays.push(reason);
};

before(async () => {
  process.on('unhandledRejection', stray);
  upstream = await ScriptedUpstream.start();
  provider = createHttpProvider({
    id: 'up',
    dialect: 'openai-chat',
    baseUrl: `http://127.0.0.1:${upstream.port}/v1`,
  });
});
after(async () => {
  process.off('unhandledRejection', stray);
  await client.close();
  await upstream.close();
});

const timeouts = {
  connectMs: 2000,
  firstEventMs: 10_000,
  documentMs: 10_000,
  idleMs: 10_000,
  totalMs: 20_000,
};
const quiet = (): void => undefined;
const dialects: { readonly [D in Dialect]: ClientDialect } = {
  chat: openaiChatClient,
  messages: anthropicMessagesClient,
};

interface Served {
  readonly text: string;
  readonly receipts: readonly Receipt[];
}

class Recorder implements ClientSink {
  text = '';
  readonly #onContent: () => void;
  constructor(onContent: () => void) {
    this.#onContent = onContent;
  }
  start(): void {
    this.text = '';
  }
  write(bytes: Buffer | string): boolean {
    this.text += bytes.toString();
    this.#onContent();
    return true;
  }
  end(bytes: Buffer | string = ''): void {
    this.text += bytes.toString();
  }
  cut(): void {
    this.text += '(cut)';
  }
  observe(_observer: ClientObserver): void {
    // This client never leaves and is never full.
  }
}

/** It leaves while the last bytes are written to it. */
class LastMoment extends Recorder {
  #observer: ClientObserver | undefined;
  override observe(observer: ClientObserver): void {
    this.#observer = observer;
  }
  override end(bytes: Buffer | string = ''): void {
    super.end(bytes);
    this.#observer?.left();
  }
}

const sweeper = new Sweeper(systemClock);
const memory = new ReasoningMemory(
  createSealer(Buffer.alloc(32, 1)),
  new ReasoningStore({ clock: systemClock }),
);
const estimator = new TokenEstimator();
const learned = new LearnedParameters(systemClock);

/** Serves one streamed call of a client whose dialect and provider may be spoiled. */
async function serve(name: Dialect, spoil: Spoiled, model: string): Promise<Served> {
  const dialect = spoil.client(dialects[name]);
  const receipts: Receipt[] = [];
  const log = { debug: quiet, info: quiet, warn: quiet, error: quiet };
  const gateway: Gateway = {
    client,
    clock: systemClock,
    later,
    log,
    health: new TargetHealth({ clock: systemClock, log }),
    retryBudget: new RetryBudget(),
    routing: new Routing({ clock: systemClock, random: () => 0.5, priceOf: () => undefined }),
    newId,
    random: () => 0.5,
    estimator,
    textCounter: { count: () => Promise.resolve(undefined) },
    bodies: new InlineBodies(),
    learned,
    memory,
    sweeper,
    settlement: {
      running: () => undefined,
      settle: (_call, receipt) => void receipts.push(receipt),
    },
  };
  const body = Buffer.from(
    JSON.stringify(requestBody(name, { model, stream: true, more: spoil.more ?? {} })),
  );
  const source = parseBody(body, dialect.ownedKeys);
  const target: Target = { provider: spoil.provider(provider), model, weight: 1, timeouts };
  const call: Call = {
    id: newId('req_'),
    dialect,
    source,
    head: dialect.readHead(source.value),
    route: { name: model, targets: [target], order: 'listed' },
    strict: false,
    caller: { keyId: 'k', revoked: () => false },
    labels: { tags: [] },
    grant: undefined,
    startedAt: systemClock.now(),
    startedWall: systemClock.wall(),
    header: () => undefined,
  };
  const sink = new (spoil.sink ?? Recorder)(spoil.onContent ?? quiet);
  await handleCall(gateway, call, sink);
  return { text: sink.text, receipts };
}

interface Spoiled {
  readonly name: string;
  /** What comes behind the first content comes when that was sent on: not in one read with it. */
  readonly behindContent?: true;
  readonly onContent?: () => void;
  readonly sink?: typeof Recorder;
  /** Members of the request. */
  readonly more?: JsonObject;
  client(dialect: ClientDialect): ClientDialect;
  provider(provider: Provider): Provider;
}

const fine: Spoiled = {
  name: 'nothing',
  client: (dialect) => dialect,
  provider: (same) => same,
};

function boom(): never {
  throw new TypeError("Cannot read properties of undefined (reading 'secret')");
}

function writerThatThrows(on: (writer: StreamWriter) => StreamWriter): Spoiled['client'] {
  return (dialect) => ({
    ...dialect,
    streamWriter: (context) => on(dialect.streamWriter(context)),
  });
}

function readerThatThrows(on: (reader: StreamReader) => StreamReader): Spoiled['provider'] {
  return (given) => ({
    ...given,
    dialect: { ...given.dialect, streamReader: (traits) => on(given.dialect.streamReader(traits)) },
  });
}

const spoiled: readonly Spoiled[] = [
  {
    ...fine,
    name: 'the writer at the first event',
    client: writerThatThrows((writer) => ({ write: boom, end: () => writer.end() })),
  },
  {
    ...fine,
    name: 'the writer in mid-stream',
    client: writerThatThrows((writer) => ({
      write: (event) => (event.type === 'part-delta' ? boom() : writer.write(event)),
      end: () => writer.end(),
    })),
  },
  {
    ...fine,
    name: 'the writer behind the search for stop sequences',
    more: { stop_sequences: ['Hello, all of them', '2', '3', '4', '5'] },
    client: writerThatThrows((writer) => ({
      write: (event) => (event.type === 'part-delta' ? boom() : writer.write(event)),
      end: () => writer.end(),
    })),
  },
  {
    ...fine,
    name: 'the writer where a stop sequence was found',
    more: { stop_sequences: ['all of', '2', '3', '4', '5'] },
    client: writerThatThrows((writer) => ({
      write: (event) => (event.type === 'finish' ? boom() : writer.write(event)),
      end: () => writer.end(),
    })),
  },
  {
    ...fine,
    name: 'the writer at the end',
    client: writerThatThrows((writer) => ({ write: (event) => writer.write(event), end: boom })),
  },
  {
    ...fine,
    name: 'the reader in mid-stream',
    behindContent: true,
    provider: readerThatThrows((reader) => {
      let frames = 0;
      return {
        read: (frame) => (++frames === 4 ? boom() : reader.read(frame)),
        end: () => reader.end(),
        get finishPending() {
          return reader.finishPending;
        },
      };
    }),
  },
  {
    ...fine,
    name: 'the reader at the end',
    provider: readerThatThrows((reader) => ({
      read: (frame) => (frame.data === '[DONE]' ? [] : reader.read(frame)),
      end: boom,
      finishPending: false,
    })),
  },
];

for (const name of ['chat', 'messages'] as const) {
  test(`Q3 F74 a client that leaves while its last bytes are written is settled once, ${name}`, async () => {
    const model = `last-moment-${name}`;
    upstream.script(model, { body: chatFrames({ text: 'Hello' }).join('') });
    const { text, receipts } = await serve(name, { ...fine, sink: LastMoment }, model);
    assert.equal(endingOf(name, text), 'proper');
    assert.equal(receipts.length, 1);
  });
}

for (const [at, spoil] of spoiled.entries()) {
  test(`E8 ${spoil.name} throws: a hundred others do not notice`, async () => {
    const model = `thrown-${at}`;
    const frames = chatFrames({ text: 'Hello, all of you' });
    const pause = (): Promise<unknown> => new Promise((resolve) => setTimeout(resolve, 20));
    upstream.script(model, () => ({
      body: frames.flatMap((frame) => [frame, pause()]),
      framing: 'chunked',
    }));
    const others = Array.from({ length: 100 }, () => serve('messages', fine, model));
    const seen = Promise.withResolvers<void>();
    const [role = '', first = '', ...rest] = frames;
    const own = `${model}-broken`;
    const gate = spoil.behindContent === true ? [seen.promise] : [];
    upstream.script(own, { body: [role, first, ...gate, ...rest], framing: 'chunked' });
    const broken = await serve('messages', { ...spoil, onContent: seen.resolve }, own);
    assert.equal(endingOf('messages', broken.text), 'error', broken.text);
    assert.ok(!broken.text.includes('secret'), 'what was thrown is told to nobody');
    assert.deepEqual(
      broken.receipts.map(({ outcome, error }) => [outcome, error]),
      [['failed', 'internal']],
    );
    for (const { text, receipts } of await Promise.all(others)) {
      assert.equal(endingOf('messages', text), 'proper');
      assert.equal(readStream('messages', text).text, 'Hello, all of you');
      assert.deepEqual(
        receipts.map(({ outcome }) => outcome),
        ['ok'],
      );
    }
    assert.deepEqual(strays, []);
  });
}
