/** R7 F42 F49: the clocks of one try, with a clock that the test holds. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { GatewayError } from '../../../src/core/errors.ts';
import type { Timeouts } from '../../../src/core/provider.ts';
import { chatTraits } from '../../../src/core/traits.ts';
import { Attempt } from '../../../src/gateway/attempt.ts';
import { Meter } from '../../../src/gateway/answer/meter.ts';
import { TokenEstimator } from '../../../src/gateway/call-size.ts';
import { createHttpProvider } from '../../../src/providers/http-provider.ts';
import type { UpstreamHandler } from '../../../src/wire/exchange.ts';
import { HttpClient } from '../../../src/wire/http-client.ts';
import { chatChunk, chatFrame } from '../../upstream/chat.ts';
import { InlineBodies } from '../../support/inline-bodies.ts';

const second = 1000;
const usual: Timeouts = {
  connectMs: second,
  firstEventMs: 60 * second,
  reasoningMs: 300 * second,
  documentMs: 600 * second,
  idleMs: 60 * second,
  totalMs: 1800 * second,
};
const provider = createHttpProvider({
  id: 'up',
  dialect: 'openai-chat',
  baseUrl: 'http://127.0.0.1:1/v1',
});

/** The upstream is the test itself. */
class NoClient extends HttpClient {
  handler: UpstreamHandler | undefined;
  aborted = 0;

  override send(...[, handler]: Parameters<HttpClient['send']>): ReturnType<HttpClient['send']> {
    this.handler = handler;
    const nothing = (): void => undefined;
    return { pause: nothing, resume: nothing, abort: () => (this.aborted += 1) };
  }
}

class Scene {
  at = 0;
  readonly client = new NoClient();
  readonly failures: GatewayError[] = [];
  readonly attempt: Attempt;

  constructor({
    reasons = false,
    timeouts = {},
  }: {
    reasons?: boolean;
    timeouts?: Partial<Timeouts>;
  }) {
    this.attempt = new Attempt({
      target: { provider, model: 'm', weight: 1, timeouts: { ...usual, ...timeouts } },
      meter: new Meter(new TokenEstimator(), 'up/m', () => 0),
      clock: { now: () => this.at, wall: () => 0 },
      client: this.client,
      bodies: new InlineBodies(),
    });
    const { generate: endpoint } = provider;
    const request = { endpoint, method: 'POST', headers: [], connectMs: second } as const;
    this.attempt.prepared = {
      request,
      mode: 'relay',
      conversation: undefined,
      watch: undefined,
      traits: chatTraits,
      streamed: true,
      scanned: [],
    };
    const answer = this.attempt.send(request, reasons);
    answer.catch((error: GatewayError) => this.failures.push(error));
    const frames = (): void => undefined;
    const failed = (error: GatewayError): void => void this.failures.push(error);
    this.attempt.attach({ frames, ended: frames, failed });
    this.client.handler?.head(200, { 'content-type': 'text/event-stream' });
  }

  hear(text: string): void {
    this.client.handler?.data(Buffer.from(text));
  }

  /** Lets so much time pass, looking every second; what failed by then. */
  async wait(seconds: number, every: (at: number) => void = () => undefined): Promise<string[]> {
    for (let i = 0; i < seconds; i += 1) {
      this.at += second;
      every(i);
      this.attempt.check(this.at);
    }
    await Promise.resolve();
    await Promise.resolve();
    return this.failures.map(({ code }) => code);
  }
}

const word = chatFrame(chatChunk({ content: 'word' }));
const ping = ': ping\n\n';

test('R7 a model that reasons first has five minutes, any other has one', async () => {
  const quick = new Scene({});
  assert.deepEqual(await quick.wait(60), []);
  assert.deepEqual(await quick.wait(1), ['timeout']);
  assert.equal(quick.client.aborted, 1);
  const slow = new Scene({ reasons: true });
  assert.deepEqual(await slow.wait(300), []);
  assert.deepEqual(await slow.wait(1), ['timeout']);
});

test('F9 F49 neither bytes nor pings are a first event', async () => {
  const scene = new Scene({});
  assert.deepEqual(await scene.wait(60, () => scene.hear(ping)), []);
  assert.deepEqual(await scene.wait(1, () => scene.hear(':')), ['timeout']);
});

test('F49 pings keep a stream that began alive for five minutes, and no longer', async () => {
  const scene = new Scene({});
  scene.hear(word);
  assert.deepEqual(await scene.wait(300, () => scene.hear(ping)), []);
  assert.deepEqual(await scene.wait(1, () => scene.hear(ping)), ['timeout']);
});

test('F41 silence in a stream ends it after the idle time', async () => {
  const scene = new Scene({});
  scene.hear(word);
  assert.deepEqual(await scene.wait(60), []);
  assert.deepEqual(await scene.wait(1), ['timeout']);
});

test('R7 F42 a model that says that it is there, and then reasons unseen, has its time for that', async () => {
  const timeouts = { minBytesPerS: 1000, rateWindowMs: 10 * second };
  const role = chatFrame(chatChunk({ role: 'assistant', content: '' }));
  const slow = new Scene({ reasons: true, timeouts });
  slow.hear(role);
  assert.deepEqual(await slow.wait(300), []);
  slow.hear(word);
  assert.deepEqual(await slow.wait(10), [], 'its rate counts from the first word on');
  assert.deepEqual(await slow.wait(1), ['timeout']);
  const silent = new Scene({ reasons: true });
  silent.hear(role);
  silent.hear(word);
  assert.deepEqual(
    await silent.wait(61),
    ['timeout'],
    'behind its first word it has the idle time',
  );
  const quick = new Scene({});
  quick.hear(role);
  assert.deepEqual(await quick.wait(61), ['timeout']);
});

test('F42 a stream below the lowest rate ends, one above it continues', async () => {
  const timeouts = { minBytesPerS: 2 * word.length, rateWindowMs: 10 * second };
  const steady = new Scene({ timeouts });
  const say = (scene: Scene, times: number): void => scene.hear(word.repeat(times));
  say(steady, 1);
  assert.deepEqual(await steady.wait(60, () => say(steady, 3)), []);
  const drip = new Scene({ timeouts });
  say(drip, 1);
  assert.deepEqual(await drip.wait(10, () => say(drip, 1)), []);
  assert.deepEqual(await drip.wait(1, () => say(drip, 1)), ['timeout']);
  assert.equal((await new Scene({}).wait(10)).length, 0);
});

test('F42 G9 while the client takes nothing, the rate is not looked at', async () => {
  const scene = new Scene({ timeouts: { minBytesPerS: 1000, rateWindowMs: 10 * second } });
  scene.hear(word);
  assert.deepEqual(await scene.wait(300, () => scene.attempt.touch()), []);
});
