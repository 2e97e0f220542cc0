/** The waits between two tries: how long they are (R4), and what is left of one whose client leaves: nothing, no timer either (F37). */
import assert from 'node:assert/strict';
import { createHttpProvider } from '../../src/providers/http-provider.ts';
import { test } from 'node:test';
import { parseBody } from '../../src/core/client-body.ts';
import { createSealer } from '../../src/core/secret.ts';
import { openaiChatClient } from '../../src/dialects/openai-chat/client.ts';
import type { Gateway } from '../../src/gateway/gateway.ts';
import type { ClientObserver, ClientSink } from '../../src/gateway/answer/client-answer.ts';
import { handleCall } from '../../src/gateway/handle.ts';
import { TargetHealth } from '../../src/gateway/targets/health.ts';
import { LearnedParameters } from '../../src/gateway/learned-parameters.ts';
import { ReasoningMemory, ReasoningStore } from '../../src/gateway/reasoning-memory.ts';
import type { Receipt } from '../../src/core/call.ts';
import type { Clock } from '../../src/core/runtime.ts';
import { RetryBudget } from '../../src/gateway/targets/retries.ts';
import { Routing } from '../../src/gateway/targets/routing.ts';
import { Sweeper } from '../../src/gateway/deadlines.ts';
import { TokenEstimator } from '../../src/gateway/call-size.ts';
import { newId, systemClock } from '../../src/observe/runtime.ts';
import { HttpClient } from '../../src/wire/http-client.ts';
import { requestBody } from '../support/requests.ts';
import { chatDocument } from '../upstream/chat.ts';
import { errorIn } from '../upstream/reply.ts';
import { ScriptedUpstream, type Answer } from '../upstream/scripted.ts';
import { InlineBodies } from '../support/inline-bodies.ts';
import { type BodyOfJob, openLongBody } from '../../src/gateway/long-bodies/body-thread.ts';
import type { JobName, Jobs } from '../../src/gateway/long-bodies/jobs.ts';
import { Pieces } from '../../src/json/pieces.ts';

const quiet = (): void => undefined;
const log = { debug: quiet, info: quiet, warn: quiet, error: quiet };
const second = 1000;
const timeouts = {
  connectMs: second,
  firstEventMs: 20 * second,
  documentMs: 20 * second,
  idleMs: 20 * second,
  totalMs: 20 * second,
};

interface Waited {
  readonly waits: readonly number[];
  readonly canceled: number;
  readonly left: number;
  readonly receipts: readonly Receipt[];
  readonly asked: number;
}

interface Means {
  readonly random?: () => number;
  /** Called in the place of each wait, which ends at once by default. */
  readonly wait?: (over: () => void, leave: () => void) => void;
  /** Called when the target is to be made ready; it is by default. */
  readonly wake?: (leave: () => void) => Promise<void>;
  /** Called when a request has reached the upstream. */
  readonly arrived?: (leave: () => void) => void;
  /** The request is so long that it is translated off the event loop; called while it is. */
  readonly translated?: (leave: () => void) => void;
  /** Called when a long document of the upstream is about to be read off the event loop. */
  readonly reading?: (leave: () => void) => void;
  /** Called when the call is to be recorded while it runs. */
  readonly running?: Gateway['settlement']['running'];
  readonly clock?: Clock;
  /** What another target answers that is asked beside the first one, which is slow. */
  readonly secondary?: Answer;
}

/** Reports documents that are to be read. */
class ToldBodies extends InlineBodies {
  readonly #reading: () => void;

  constructor(reading: () => void) {
    super();
    this.#reading = reading;
  }

  override run<N extends JobName>(
    name: N,
    input: Jobs[N]['input'],
    body: BodyOfJob,
  ): Promise<Jobs[N]['output']> {
    // Before the job, which is done in the turn behind it.
    if (name === 'read') setImmediate(this.#reading);
    return super.run(name, input, body);
  }
}

/** A call of a route with one target, which always answers so. */
async function callThatWaits(answer: Answer, means: Means): Promise<Waited> {
  const { random = () => 0.5, wait = setImmediate, clock = systemClock, running = quiet } = means;
  const { wake, arrived, translated, reading, secondary } = means;
  let observer: ClientObserver | undefined;
  const upstream = await ScriptedUpstream.start();
  const script = upstream.script('m', () => {
    arrived?.(() => observer?.left());
    return answer;
  });
  const client = new HttpClient();
  const waits: number[] = [];
  let canceled = 0;
  const receipts: Receipt[] = [];
  const sink: ClientSink = {
    start: quiet,
    write: () => true,
    end: quiet,
    cut: quiet,
    observe: (wanted) => {
      observer = wanted;
    },
  };
  const sweeper = new Sweeper(clock);
  const gateway: Gateway = {
    client,
    clock,
    log,
    newId,
    random,
    later: (ms, over) => {
      waits.push(ms);
      wait(over, () => observer?.left());
      return () => {
        canceled += 1;
      };
    },
    health: new TargetHealth({ clock, log }),
    retryBudget: new RetryBudget(),
    routing: new Routing({ clock, random: () => 0.5, priceOf: () => undefined }),
    estimator: new TokenEstimator(),
    textCounter: { count: () => Promise.resolve(undefined) },
    bodies: new ToldBodies(() => reading?.(() => observer?.left())),
    learned: new LearnedParameters(clock),
    memory: new ReasoningMemory(createSealer(Buffer.alloc(32, 1)), new ReasoningStore({ clock })),
    sweeper,
    settlement: { running, settle: (_call, receipt) => void receipts.push(receipt) },
  };
  const asked = requestBody('chat', { model: 'm', stream: false });
  const messages = Array.from({ length: 12_000 }, () => ({ role: 'user', content: 'word' }));
  const sent = translated === undefined ? asked : { ...asked, messages };
  const bytes = Buffer.from(JSON.stringify(sent));
  const source =
    translated === undefined
      ? parseBody(bytes, openaiChatClient.ownedKeys)
      : await openLongBody(gateway.bodies, Pieces.of(bytes), {
          client: 'openai-chat',
          counting: false,
          traced: false,
          wanted: () => true,
        });
  const dialect = translated === undefined ? 'openai-chat' : 'anthropic-messages';
  const baseUrl = `http://127.0.0.1:${upstream.port}/v1`;
  const provider = {
    ...createHttpProvider({ id: 'up', dialect, baseUrl }),
    ...(wake === undefined ? {} : { wake: () => wake(() => observer?.left()) }),
  };
  if (secondary !== undefined) upstream.script('beside', secondary);
  const other = createHttpProvider({ id: 'other', dialect, baseUrl });
  const first = { provider, model: 'm', weight: 1, timeouts };
  const beside = { provider: other, model: 'beside', weight: 1, timeouts };
  const route = {
    name: 'm',
    targets: secondary === undefined ? [first] : [first, beside],
    order: 'listed',
    ...(secondary === undefined ? {} : { hedge: { afterMs: 1 } }),
  } as const;
  const done = handleCall(
    gateway,
    {
      id: newId('req_'),
      dialect: openaiChatClient,
      source,
      head: openaiChatClient.readHead(asked),
      route,
      strict: false,
      caller: { keyId: 'k', revoked: () => false },
      labels: { tags: [] },
      grant: undefined,
      startedAt: clock.now(),
      startedWall: clock.wall(),
      header: () => undefined,
    },
    sink,
  );
  translated?.(() => observer?.left());
  await done;
  await client.close();
  await upstream.close();
  return { waits, canceled, left: sweeper.size, receipts, asked: script.requests.length };
}

test('F37 R4 a client that leaves takes the wait for the next try with it', async () => {
  const slow = errorIn('chat', 429, 'slow', { 'retry-after': '3' });
  // Never over: only the client can end this wait.
  const leaving = (_over: () => void, leave: () => void): void => void setImmediate(leave);
  const { waits, canceled, left, receipts, asked } = await callThatWaits(slow, { wait: leaving });
  assert.equal(waits.length, 1);
  assert.ok((waits[0] ?? 0) > 2 * second && (waits[0] ?? 0) <= 4 * second, String(waits[0]));
  assert.equal(canceled, 1);
  assert.equal(left, 0);
  assert.deepEqual(
    receipts.map(({ outcome, charged, attempts }) => [outcome, charged, attempts.length]),
    [['canceled', {}, 1]],
  );
  assert.equal(asked, 1);
});

test('F81 a call that is recorded before its request was sent is recorded again once it was', async () => {
  // Nothing is recorded again for its age.
  const clock: Clock = { now: () => 1000, wall: () => Date.now() };
  const recorded = Promise.withResolvers<void>();
  const prompts: (number | undefined)[] = [];
  let leaveNow = quiet;
  const { receipts } = await callThatWaits(
    { ending: 'hang', body: [] },
    {
      clock,
      // The first record is written while the target is made ready.
      wake: () => recorded.promise,
      running: (_call, soFar) => {
        prompts.push(soFar().charged.freshInputTokens);
        recorded.resolve();
        if (prompts.length > 1) leaveNow();
      },
      arrived: (leave) => {
        leaveNow = leave;
        if (prompts.length > 1) leave();
      },
    },
  );
  assert.equal(prompts.length, 2);
  assert.equal(prompts[0], undefined);
  assert.ok((prompts[1] ?? 0) > 0, 'the prompt was sent');
  assert.equal(receipts[0]?.charged.freshInputTokens, prompts[1]);
});

test('F71 F93 an engine that is ready only when the client has left is not asked', async () => {
  const { asked, receipts, left, waits } = await callThatWaits(errorIn('chat', 500, 'oops'), {
    wake: (leave) => {
      leave();
      return new Promise(setImmediate);
    },
  });
  assert.equal(asked, 0);
  assert.deepEqual(
    receipts.map(({ outcome, charged }) => [outcome, charged]),
    [['canceled', {}]],
  );
  assert.deepEqual([left, waits.length], [0, 0]);
});

test('F71 G11 no engine is woken for a client that left while its request was translated', async () => {
  let woken = 0;
  const { asked, receipts, left } = await callThatWaits(errorIn('messages', 500, 'oops'), {
    translated: (leave) => leave(),
    wake: () => {
      woken += 1;
      return Promise.resolve();
    },
  });
  // Many times as many turns as the steps have.
  for (let turn = 0; turn < 100; turn++) await new Promise(setImmediate);
  assert.deepEqual([asked, woken, left], [0, 0, 0]);
  assert.deepEqual(
    receipts.map(({ outcome, charged }) => [outcome, charged]),
    [['canceled', {}]],
  );
});

test('F71 LC a call that is left while its upstream works may cost, and is charged', async () => {
  const { receipts, asked } = await callThatWaits(errorIn('chat', 500, 'late'), {
    arrived: (leave) => leave(),
  });
  assert.equal(asked, 1);
  assert.deepEqual(
    receipts.map(({ outcome, charged }) => [outcome, (charged.freshInputTokens ?? 0) > 0]),
    [['canceled', true]],
  );
});

for (const drawn of [0.1, 0.5, 0.9]) {
  test(`R4 waits are drawn between nothing and 250, then 500 ms: ${drawn}`, async () => {
    const { waits, asked } = await callThatWaits(errorIn('chat', 500, 'oops'), {
      random: () => drawn,
    });
    assert.deepEqual(waits, [drawn * 250, drawn * 500]);
    assert.equal(asked, 3);
  });
}

const longDocument = JSON.stringify(
  chatDocument({
    text: 'word '.repeat(400_000),
    usage: { prompt_tokens: 12, completion_tokens: 400_000, total_tokens: 400_012 },
  }),
);

test('F73 L0 G11 a client that leaves while a whole document waits for the thread is charged what it says', async () => {
  const { asked, receipts, left } = await callThatWaits(
    { headers: { 'content-type': 'application/json' }, body: longDocument },
    { reading: (leave) => leave() },
  );
  assert.deepEqual([asked, left, receipts.length], [1, 0, 1]);
  const [receipt] = receipts;
  assert.deepEqual(
    [receipt?.outcome, receipt?.error, receipt?.usageSource, receipt?.readToEnd],
    ['canceled', 'canceled', 'reported', true],
  );
  assert.equal(receipt?.charged.freshInputTokens, 12);
  assert.equal(receipt.charged.outputTokens, 400_000);
});

test('F73 R3 a document that cannot be read is not asked for again for a client that left', async () => {
  const { asked, receipts, left, waits } = await callThatWaits(
    { headers: { 'content-type': 'application/json' }, body: longDocument.slice(0, -1) },
    { reading: (leave) => leave() },
  );
  assert.deepEqual([asked, left, waits.length], [1, 0, 0]);
  assert.deepEqual(
    receipts.map(({ outcome, charged, attempts }) => [outcome, charged, attempts.length]),
    [['canceled', {}, 1]],
  );
});

test('F73 R5 of two hedged requests the one counts whose document had come when the client left', async () => {
  const { asked, receipts, left } = await callThatWaits(
    { body: '', mute: true, ending: 'hang' },
    {
      secondary: { headers: { 'content-type': 'application/json' }, body: longDocument },
      reading: (leave) => leave(),
    },
  );
  assert.deepEqual([asked, left, receipts.length], [1, 0, 1]);
  const [receipt] = receipts;
  assert.deepEqual([receipt?.outcome, receipt?.target?.model], ['canceled', 'beside']);
  assert.equal(receipt?.charged.outputTokens, 400_000);
  assert.deepEqual(
    receipt.secondary.map(({ target }) => target.model),
    ['m'],
  );
});
