/** Several requests at once over one model: the real engine, over its real socket. */
import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import { after, before, describe, test } from 'node:test';
import type { JsonObject } from '../../src/json/value.ts';
import { tinyModel } from '../../src/local-models/model-folder.ts';
import { createLocalEngine, type LocalEngine } from '../../src/providers/local.ts';
import {
  at,
  chatBody,
  clock,
  endlessBody,
  EngineClient,
  firstText,
  memoryLog,
  messageOf,
  patient,
  readAll,
  readEvents,
  reasonToSkip,
  tinyEngine,
  waitForText,
  type OpenRequest,
} from './engine-client.ts';

const skip = await reasonToSkip();
let engine: LocalEngine;
let client: EngineClient;

const completions = '/v1/chat/completions';
const questions = ['Who are you?', 'Tell me a joke.', 'What is the capital of France?', 'Hello'];

before(async () => {
  if (skip !== false) return;
  engine = tinyEngine();
  await engine.ready();
  client = new EngineClient(engine.socketPath);
});

after(async () => {
  if (skip === false) await engine.stop();
});

interface Running {
  readonly open: OpenRequest;
  readonly response: IncomingMessage;
}

/** Starts an answer that goes on until the context ends, and waits for its first word. */
async function start(through = client): Promise<Running> {
  const open = through.open(completions, endlessBody({ stream: true }));
  const response = await open.response;
  await waitForText(response, firstText);
  return { open, response };
}

const startFour = (): Promise<Running[]> => Promise.all([0, 1, 2, 3].map(() => start()));

async function health(through = client): Promise<JsonObject> {
  return (await through.call('/health')).body;
}

/** Waits until nobody is being answered. */
async function untilIdle(through = client): Promise<void> {
  while ((await health(through))['running'] !== 0) await new Promise(setImmediate);
}

function leaveAll(running: readonly Running[]): void {
  for (const { open } of running) open.leave();
}

describe('at once', { skip }, () => {
  test('four requests are answered at once, each with the text that it has alone', async () => {
    const ask = async (question: string): Promise<unknown> =>
      messageOf(await client.chat(question))['content'];
    const alone: unknown[] = [];
    for (const question of questions) alone.push(await ask(question));
    // One round was right two times in three while answers still got tokens of others.
    for (let round = 0; round < 40; round += 1) {
      assert.deepEqual(await Promise.all(questions.map(ask)), alone);
    }
    const running = await startFour();
    assert.partialDeepStrictEqual(await health(), { parallel: 4, running: 4, waiting: 0 });
    leaveAll(running);
    await untilIdle();
  });

  test('a seed gives the same answer again, whatever else is being answered', async () => {
    const long = { role: 'system', content: 'You are a helpful assistant. '.repeat(120) };
    const messages = [long, { role: 'user', content: 'Tell me a story.' }];
    const wild = { messages, temperature: 1.6, top_p: 1, top_k: 0, min_p: 0, max_tokens: 60 };
    const ask = async (seed: number): Promise<unknown> =>
      messageOf(await client.chat('', { ...wild, seed }))['content'];
    const alone = await ask(5);
    const others = await Promise.all([start(), start()]);
    assert.deepEqual(await Promise.all([ask(5), ask(5)]), [alone, alone]);
    assert.equal(await ask(5), alone);
    assert.notEqual(await ask(6), alone);
    leaveAll(others);
    await untilIdle();
  });

  test('requests of the same kind that come together all end', async () => {
    const asked = Array.from({ length: 24 }, (_, index) =>
      client.chat(questions[index % 4] ?? '', { max_tokens: 12, seed: index % 2 === 0 ? 1 : null }),
    );
    for (const answer of await Promise.all(asked)) assert.equal(answer.status, 200);
  });
});

describe('a prompt of a megabyte', { skip }, () => {
  test('others are answered while it is tokenised', async () => {
    // Made of markers, each of which must stay text: the most expensive that there is.
    const body = chatBody('<|im_start|>'.repeat(100_000));
    for (const path of ['/v1/count_tokens', completions]) {
      const counted = { answers: 0, over: false };
      const whole = client.call(path, body).finally(() => (counted.over = true));
      while (!counted.over) {
        await health();
        counted.answers += 1;
      }
      assert.ok(counted.answers > 20, `${counted.answers} answers meanwhile`);
      const { status, text } = await whole;
      assert.match(
        text,
        path === completions ? /resulted in \d{6} tokens/ : /"prompt_tokens":\d{6}/,
      );
      assert.equal(status, path === completions ? 400 : 200);
    }
  });
});

describe('the line', { skip }, () => {
  test('who does not find a place is answered in the order of asking', async () => {
    const [leaving, ...staying] = await startFour();
    const order: string[] = [];
    const note = async (name: string, response: IncomingMessage): Promise<void> => {
      await readAll(response);
      order.push(name);
    };
    const noted = staying.map(({ response }) => note('staying', response));
    for (const name of ['first', 'second', 'third']) {
      // With its head sent a request has its place in the line.
      const body = chatBody('Hello', { stream: true, max_tokens: 5 });
      noted.push(note(name, await client.open(completions, body).response));
    }
    // One place becomes free long before the others do, so they follow each other on it.
    leaving?.open.leave();
    await Promise.all(noted.slice(3));
    assert.deepEqual(order, ['first', 'second', 'third']);
    leaveAll(staying);
    await Promise.allSettled(noted);
    await untilIdle();
  });

  test('a client that leaves while its prompt is read or while it waits frees its slot', async () => {
    const reading = { max_tokens: 2000, temperature: 0 };
    const many = Array.from({ length: 40 }, (_, index) =>
      client.open(
        completions,
        chatBody(`${index} ${'word '.repeat(1200)}`, { ...reading, stream: true }),
      ),
    );
    const responses = await Promise.all(many.map((open) => open.response));
    assert.equal(responses.length, 40);
    assert.partialDeepStrictEqual(await health(), { running: 4, waiting: 36 });
    const last = client.chat(questions[0] ?? '');
    for (const open of many) open.leave();
    assert.match(String(messageOf(await last)['content']), /Tiny/);
    await untilIdle();
  });

  test('E10 a full line is a 503 with a time to come back, and is no trouble to those in it', async () => {
    const { path: modelPath } = tinyModel;
    const narrow = createLocalEngine({
      modelPath,
      clock,
      log: memoryLog().log,
      parallel: 1,
      ...patient,
    });
    await narrow.ready();
    const through = new EngineClient(narrow.socketPath);
    const first = await start(through);
    const line = Array.from({ length: 64 }, () =>
      through.open(completions, chatBody('Hello', { stream: true, max_tokens: 1 })),
    );
    const waiting = await Promise.all(line.map((open) => open.response));
    for (const stream of [true, false]) {
      const refused = await through.call(completions, chatBody('Hello', { stream }));
      assert.equal(refused.status, 503);
      assert.equal(at(refused.body, 'error', 'code'), 'server_is_overloaded');
      const seconds = Number(refused.headers['retry-after']);
      assert.ok(Number.isInteger(seconds) && seconds >= 1 && seconds <= 60);
    }
    first.open.leave();
    for (const response of waiting) assert.ok(readEvents(await readAll(response)).done);
    await narrow.stop();
  });
});

describe('what is read already', { skip }, () => {
  const cached = (answer: { readonly body: JsonObject }): unknown =>
    at(answer.body, 'usage', 'prompt_tokens_details', 'cached_tokens');
  const conversation = (name: string, turns: number): JsonObject[] => [
    { role: 'system', content: `You are ${name}.` },
    { role: 'user', content: `${name} says: ${'some words '.repeat(400)}` },
    ...Array.from({ length: turns }, (_, index): JsonObject[] => [
      { role: 'assistant', content: 'Yes.' },
      { role: 'user', content: `And ${index}?` },
    ]).flat(),
  ];
  const ask = (name: string, turns: number, more: JsonObject = {}) =>
    client.call(completions, {
      ...chatBody('', { max_tokens: 3, ...more }),
      messages: conversation(name, turns),
    });

  test('growing conversations are not read again, though others are answered between', async () => {
    for (const name of ['Anna', 'Bob', 'Carl']) assert.equal(cached(await ask(name, 0)), 0);
    for (const name of ['Bob', 'Anna', 'Carl', 'Anna']) {
      const answer = await ask(name, 2);
      assert.ok(Number(cached(answer)) >= 1024, JSON.stringify(answer.body['usage']));
    }
  });

  test('a seeded request keeps what was read in the same way, and nothing else', async () => {
    await ask('Dora', 0);
    const wild = { seed: 3, temperature: 1.5, max_tokens: 20 };
    const first = await ask('Dora', 1, wild);
    assert.equal(cached(first), 0);
    const again = await ask('Dora', 1, wild);
    assert.ok(Number(cached(again)) > 0);
    assert.deepEqual(messageOf(again), messageOf(first));
  });
});
