/** E17: a request that is sent again, to another gateway on the same store, or after a kill. */
import assert from 'node:assert/strict';
import { after, afterEach, before, describe, it, test } from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import type { JsonObject } from '../../src/json/value.ts';
import { send, type Reply, type Sending } from '../support/http.ts';
import { noPostgres, startPostgres, type TestPostgres } from '../support/postgres.ts';
import { until } from '../support/postgres-store.ts';
import { chatDocument } from '../upstream/chat.ts';
import { ScriptedUpstream, type Answer, type Piece, type Script } from '../upstream/scripted.ts';
import { Instance, type InstanceOptions, type MadeKey } from './instance.ts';

/** Stand in no store and no log. */
const prompt = 'canary-prompt-81c2';
const said = 'canary-answer-77aa';
const callName = 'canary-key-5d10';

const paths = {
  chat: '/v1/chat/completions',
  messages: '/v1/messages',
  responses: '/v1/responses',
} as const;
const whole = JSON.stringify(chatDocument({ text: said }));
const document: Answer = { body: whole };
const frame = (choice: object): string =>
  `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', choices: [{ index: 0, ...choice }] })}\n\n`;
const begin = frame({ delta: { role: 'assistant', content: said } });
const rest = [frame({ delta: {}, finish_reason: 'stop' }), 'data: [DONE]\n\n'];

function streamed(...pieces: readonly Piece[]): Answer {
  return { headers: { 'content-type': 'text/event-stream' }, body: pieces };
}

interface Asked {
  readonly at: Instance;
  readonly key: MadeKey;
  readonly path?: string;
  readonly name?: string;
  readonly sending?: Sending;
}

function ask({ at, key, path = paths.chat, name = callName, sending }: Asked, body: JsonObject) {
  const headers = { authorization: `Bearer ${key.key}`, 'idempotency-key': name };
  const messages = [{ role: 'user', content: prompt }];
  const asked =
    path === paths.responses
      ? { input: messages, max_output_tokens: 50 }
      : { messages, max_tokens: 50 };
  return send(at.url + path, { ...asked, ...body }, { ...sending, headers });
}

function assertReplayed(again: Reply, first: Reply): void {
  assert.equal(first.status, 200, first.text);
  assert.equal(again.status, 200, again.text);
  assert.equal(first.headers['idempotent-replayed'], undefined);
  assert.equal(again.headers['idempotent-replayed'], 'true');
  assert.ok(again.bytes.equals(first.bytes), again.text);
  assert.equal(again.headers['content-type'], first.headers['content-type']);
  assert.notEqual(again.headers['x-request-id'], first.headers['x-request-id']);
}

/** Gateways of a test, and the upstream that they all ask. */
class Scene {
  readonly upstream: ScriptedUpstream;
  readonly #instances: Instance[] = [];

  constructor(upstream: ScriptedUpstream) {
    this.upstream = upstream;
  }

  async start(storage: InstanceOptions['storage'], directory?: string): Promise<Instance> {
    const where = directory === undefined ? {} : { directory };
    const instance = await Instance.start({ storage, upstream: this.upstream.port, ...where });
    this.#instances.push(instance);
    return instance;
  }

  async end(): Promise<void> {
    const ended = this.#instances.splice(0);
    for (const instance of ended) {
      instance.signal('SIGCONT');
      await instance.kill();
      for (const canary of [prompt, said]) assert.ok(!instance.log.includes(canary), instance.log);
    }
  }
}

describe('E17 on SQLite', () => {
  let scene: Scene;
  before(async () => {
    scene = new Scene(await ScriptedUpstream.start());
  });
  after(() => scene.upstream.close());
  afterEach(() => scene.end());

  for (const stream of [false, true]) {
    it(`F81 a ${stream ? 'stream' : 'document'} that its client has seen survives the kill of its gateway`, async () => {
      const first = await scene.start('sqlite');
      const key = await first.makeKey();
      const script = scene.upstream.script('m', stream ? streamed(begin, ...rest) : document);
      const body = { model: 'up/m', stream };
      const given = await ask({ at: first, key }, body);
      await first.kill();
      const second = await scene.start('sqlite', first.directory);
      assertReplayed(await ask({ at: second, key }, body), given);
      const other = await ask({ at: second, key }, { ...body, max_tokens: 51 });
      assert.equal(other.status, 422, other.text);
      assert.equal(script.requests.length, 1);
    });
  }

  it('F81 what was being answered when its gateway was killed is free at the next start', async () => {
    const first = await scene.start('sqlite');
    const key = await first.makeKey();
    const script = scene.upstream.script('m', { ...streamed(begin), ending: 'hang' }, document);
    const cut = ask({ at: first, key }, { model: 'up/m', stream: true }).catch(() => undefined);
    await script.request(0);
    await first.kill();
    await cut;
    const second = await scene.start('sqlite', first.directory);
    const again = await ask({ at: second, key }, { model: 'up/m' });
    assert.equal(again.status, 200, again.text);
    assert.equal(again.headers['idempotent-replayed'], undefined);
  });
});

const server = await startPostgres();
if (server === undefined) test(noPostgres, () => {});
else onPostgres(server);

function onPostgres(postgres: TestPostgres): void {
  describe('E17 on PostgreSQL', () => {
    let scene: Scene;
    before(async () => {
      scene = new Scene(await ScriptedUpstream.start());
    });
    after(async () => {
      await scene.upstream.close();
      await postgres.close();
    });
    afterEach(() => scene.end());

    async function two() {
      const url = await postgres.makeDatabase();
      const [one, other] = await Promise.all([scene.start(url), scene.start(url)]);
      return { url, one, other, key: await one.makeKey() };
    }

    /** A stream, or a document, that goes on when the test says so; then a document. */
    function held(kind: 'stream' | 'document' = 'stream'): {
      readonly script: Script;
      goOn(): void;
    } {
      const gate = Promise.withResolvers<void>();
      const first =
        kind === 'stream'
          ? streamed(begin, gate.promise, ...rest)
          : { headers: { 'content-type': 'application/json' }, body: [gate.promise, whole] };
      const script = scene.upstream.script('m', first, document);
      return { script, goOn: gate.resolve };
    }

    it('a document and a stream of each dialect are replayed by the other gateway', async () => {
      const { url, one, other, key } = await two();
      for (const [dialect, path] of Object.entries(paths)) {
        for (const stream of [false, true]) {
          const name = `${dialect} ${stream}`;
          const script = scene.upstream.script('m', streamed(begin, ...rest));
          if (dialect === 'chat' && !stream) scene.upstream.script('m', document);
          const body = { model: 'up/m', stream };
          const given = await ask({ at: one, key, path, name }, body);
          assertReplayed(await ask({ at: other, key, path, name }, body), given);
          assertReplayed(await ask({ at: one, key, path, name }, body), given);
          assert.ok(script.requests.length <= 1);
        }
      }
      const rows = async (): Promise<unknown> =>
        (await postgres.query('SELECT count(*)::integer AS n FROM calls', url))[0]?.n;
      await until(async () => (await rows()) === 6, 'six calls are in the book');
    });

    it('T6 nothing in the database can be read: no prompt, no answer, no key', async () => {
      const { url, one, key } = await two();
      scene.upstream.script('m', document);
      assert.equal((await ask({ at: one, key }, { model: 'up/m' })).status, 200);
      const rows = await postgres.query(
        "SELECT *, encode(answer, 'escape') AS bytes FROM kept_answers",
        url,
      );
      assert.equal(rows.length, 1);
      assert.ok(rows[0]?.answer.length > 200);
      const all = JSON.stringify(rows);
      const secret = key.key.split('_')[2] ?? '';
      assert.ok(secret.length > 30);
      for (const word of [prompt, said, callName, secret]) assert.ok(!all.includes(word), word);
    });

    it('of two gateways that are asked at once one answers; the official SDKs come again by themselves', async () => {
      const { one, other, key } = await two();
      const { script, goOn } = held();
      const body = { model: 'up/m', stream: true };
      const first = ask({ at: one, key }, body);
      await script.request(0);
      const busy = await ask({ at: other, key }, body);
      assert.equal(busy.status, 409, busy.text);
      assert.equal(busy.headers['retry-after'], '1');
      const conflict = await ask({ at: other, key }, { ...body, max_tokens: 51 });
      assert.equal(conflict.status, 422, conflict.text);
      goOn();
      const given = await first;
      assertReplayed(await ask({ at: other, key }, body), given);
      assert.equal(script.requests.length, 1);

      const seen: number[] = [];
      let open = (): void => undefined;
      const watched: typeof fetch = async (input, init) => {
        const reply = await fetch(input, init);
        seen.push(reply.status);
        if (reply.status === 409) open();
        return reply;
      };
      const settings = { apiKey: key.key, maxRetries: 5, fetch: watched };
      const question = {
        messages: [{ role: 'user' as const, content: prompt }],
        max_tokens: 50,
        model: 'up/m',
      };
      const openai = new WithKey({ ...settings, baseURL: `${other.url}/v1` });
      const chat = held('document');
      open = chat.goOn;
      const options = { idempotencyKey: 'sdk' };
      const running = ask({ at: one, key, name: 'sdk' }, question);
      await chat.script.request(0);
      const completion = await openai.chat.completions.create(question, options);
      assert.equal(completion.choices[0]?.message.content, said);
      assert.equal(seen.at(0), 409);
      assert.equal(seen.at(-1), 200);
      assert.equal((await running).status, 200);
      assert.equal(chat.script.requests.length, 1);

      seen.length = 0;
      const anthropic = new Anthropic({ ...settings, baseURL: other.url });
      const messages = held('document');
      open = messages.goOn;
      const headers = { 'idempotency-key': 'sdk 2' };
      const going = ask({ at: one, key, path: paths.messages, name: 'sdk 2' }, question);
      await messages.script.request(0);
      const message = await anthropic.messages.create(question, { headers });
      assert.deepEqual(
        message.content.map((part) => part.type === 'text' && part.text),
        [said],
      );
      assert.equal(seen.at(0), 409);
      assert.equal((await going).status, 200);
      assert.equal(messages.script.requests.length, 1);
    });

    it('F81 when the gateway that answers is killed, another one answers once its lease is over', async () => {
      const { url, one, other, key } = await two();
      const { script } = held();
      const cut = ask({ at: one, key }, { model: 'up/m', stream: true }).catch(() => undefined);
      await script.request(0);
      await one.kill();
      await cut;
      const body = { model: 'up/m', stream: true };
      assert.equal((await ask({ at: other, key }, body)).status, 409);
      const [claim] = await postgres.query(
        'SELECT until - counter_now() AS left FROM kept_answers',
        url,
      );
      assert.ok(Number(claim?.left) > 0 && Number(claim?.left) <= 30_000, `${claim?.left}`);
      await postgres.query('UPDATE kept_answers SET until = until - 30000', url);
      const again = await ask({ at: other, key }, { model: 'up/m' });
      assert.equal(again.status, 200, again.text);
      assert.equal(again.headers['idempotent-replayed'], undefined);
      assert.equal(script.requests.length, 2);
    });

    it('F81 a client that has seen the end of an answer gets it again, though its gateway was killed at once', async () => {
      const { one, other, key } = await two();
      const script = scene.upstream.script('m', streamed(begin, ...rest));
      const body = { model: 'up/m', stream: true };
      let ended = '';
      const onData = (chunk: Buffer): void => {
        ended += chunk.toString();
        if (ended.includes('[DONE]')) one.signal('SIGKILL');
      };
      await ask({ at: one, key, sending: { onData } }, body);
      const again = await ask({ at: other, key }, body);
      assert.equal(again.headers['idempotent-replayed'], 'true', again.text);
      assert.equal(again.text, ended);
      assert.equal(script.requests.length, 1);
    });

    it('a gateway that stood still for too long does not write over the one that took over', async () => {
      const { url, one, other, key } = await two();
      const { script, goOn } = held();
      const body = { model: 'up/m', stream: true };
      const slow = ask({ at: one, key }, body);
      await script.request(0);
      one.signal('SIGSTOP');
      await postgres.query('UPDATE kept_answers SET until = until - 30000', url);
      scene.upstream.script('m', streamed(begin, begin, ...rest));
      const given = await ask({ at: other, key }, body);
      assert.equal(given.status, 200, given.text);
      one.signal('SIGCONT');
      goOn();
      assert.equal((await slow).status, 200);
      const again = await ask({ at: one, key }, body);
      assert.equal(again.headers['idempotent-replayed'], 'true');
      assert.equal(again.text, given.text);
      const status = await one.admin('GET', '/api/status');
      assert.equal(status.json['idempotency_lost'], 1);
    });

    it('F88 while the book is away such a call is refused, others continue; an answer given meanwhile is kept', async () => {
      const { url, one, other, key } = await two();
      const { script, goOn } = held();
      const body = { model: 'up/m', stream: true };
      const first = ask({ at: one, key }, body);
      await script.request(0);
      await postgres.stop();
      await until(async () => (await one.ready()) === 503, 'it is away');
      const refused = await ask({ at: one, key, name: 'another' }, body);
      assert.equal(refused.status, 503, refused.text);
      assert.match(refused.text, /store_unavailable/);
      assert.equal(script.requests.length, 1, 'nothing was sent to a model');
      const plain = await one.chat(key.key, { model: 'up/m' });
      assert.equal(plain.status, 200, plain.text);
      goOn();
      const given = await first;
      assert.equal(given.status, 200);
      assert.match(given.text, /\[DONE\]/);
      await postgres.start();
      // However long that took: the lease must not be over before its owner could tell of the answer.
      await postgres.query('UPDATE kept_answers SET until = until + 600000', url);
      await until(async () => (await other.ready()) === 200, 'it is back');
      let again: Reply | undefined;
      await until(
        async () => {
          again = await ask({ at: other, key }, body);
          assert.ok(again.status === 409 || again.status === 200, again.text);
          return again.status === 200;
        },
        'it is kept',
        120_000,
      );
      assert.ok(again !== undefined);
      assertReplayed(again, given);
    });
  });
}

/** As the SDK does where a service has such a header. */
class WithKey extends OpenAI {
  protected override idempotencyHeader = 'Idempotency-Key';
}
