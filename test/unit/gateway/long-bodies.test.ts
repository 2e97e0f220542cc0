/** G11 E10: the worker thread for long bodies gives what the event loop would, and its failures are those of one call. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { GatewayError } from '../../../src/core/errors.ts';
import { chatTraits } from '../../../src/core/traits.ts';
import { NoteList, StrictRefusal } from '../../../src/core/notes.ts';
import {
  type BodyOfJob,
  BodyThread,
  openLongBody,
} from '../../../src/gateway/long-bodies/body-thread.ts';
import type { RequestInput } from '../../../src/gateway/long-bodies/jobs.ts';
import {
  packed,
  receivedError,
  receivedPieces,
  unpacked,
} from '../../../src/gateway/long-bodies/transfer.ts';
import { upstreamBody } from '../../../src/gateway/upstream-request.ts';
import { parseBody } from '../../../src/core/client-body.ts';
import { PromptTrail } from '../../../src/core/recall.ts';
import { Pieces } from '../../../src/json/pieces.ts';
import { samplePrompt } from '../../../src/tokens/prompt.ts';
import { ask, halves, upstreamHalves } from '../../property/dialect-halves.ts';
import { clientDialects, upstreamDialects } from '../../support/dialects.ts';
import { requestBody } from '../../support/requests.ts';

const entry = new URL('../../../src/compose/long-body-thread.ts', import.meta.url);
const data = () => ({ sealKey: new Uint8Array(32).fill(7) });
const memoryBytes = 2 ** 30;
const thread = new BodyThread({ entry, data, memoryBytes });
after(() => thread.close());

const wanted = (): boolean => true;
const bytesOf = (value: object): Pieces => Pieces.of(Buffer.from(JSON.stringify(value)));
const codeOf = (settled: PromiseSettledResult<unknown>): string =>
  settled.status === 'rejected' && settled.reason instanceof GatewayError
    ? settled.reason.code
    : settled.status;
const canceled = (error: unknown): boolean =>
  error instanceof GatewayError && error.code === 'canceled';

for (const from of clientDialects) {
  for (const to of upstreamDialects) {
    test(`G2 a ${from} request for ${to} is what the event loop would make of it`, async () => {
      const [client, upstream] = [halves[from].client, upstreamHalves[to].upstream];
      const messages = Array.from({ length: 99 }, (_, i) => {
        return { role: i % 2 === 0 ? 'user' : 'assistant', content: `turn ${i}` };
      });
      const body = requestBody(from, { model: 'm', stream: false, more: { messages, top_k: 5 } });
      const pieces = bytesOf(body);
      const asked = { ...ask(upstreamHalves[to]), model: 'other', provider: 'p' };
      const notes = new NoteList();
      const here = upstreamBody({
        client,
        upstream,
        source: parseBody(pieces.whole(), client.ownedKeys),
        ask: { ...asked, recall: () => undefined },
        notes,
      });
      const long = await openLongBody(thread, pieces, {
        client: client.id,
        counting: false,
        traced: false,
        wanted,
      });
      assert.deepEqual(long.head, client.readHead({ ...body }));
      const list = from === 'responses' ? 'input' : 'messages';
      assert.deepEqual(long.skeleton, { ...body, [list]: [] });
      const { newId: _, ...plain } = asked;
      const input: RequestInput = {
        client: client.id,
        upstream: upstream.id,
        ask: plain,
        strict: false,
        keyId: 'k',
      };
      // The second one sends the bytes again.
      for (let attempt = 0; attempt < 2; attempt += 1) {
        const made = await thread.run('request', input, long);
        assert.ok('body' in made);
        assert.equal(receivedPieces(made.body, pieces).toString(), here.body.toString());
        assert.deepEqual(made.notes, notes.all);
        assert.deepEqual(
          [made.stream, made.scanned, made.needed],
          [here.stream, here.scanned, here.needed],
        );
        assert.equal(made.conversation === undefined, from === to);
      }
      if (notes.all.length === 0) return;
      const strict = await thread.run('request', { ...input, strict: true }, long);
      assert.ok('refused' in strict);
      assert.ok(receivedError(strict.refused) instanceof StrictRefusal);
    });
  }
}

test('F3 F55 the prompt of a long body is measured for the calls that need it, and sampled for all', async () => {
  const messages = Array.from({ length: 300 }, (_, i) => {
    return {
      role: i % 2 === 0 ? 'user' : 'assistant',
      content: `line ${i}\n\t"quoted"; é\n`.repeat(200),
    };
  });
  const value = requestBody('chat', { model: 'm', stream: false, more: { messages } });
  const pieces = bytesOf(value);
  assert.ok(pieces.length > 1024 * 1024);
  const open = { client: 'openai-chat', counting: false, traced: false, wanted } as const;
  const body = await openLongBody(thread, pieces, open);
  const asks = halves.chat.client.describe(parseBody(pieces.whole(), new Set()));
  const whole = samplePrompt(asks.prompt());
  assert.ok(Math.abs(body.sample / whole - 1) < 0.1, `${body.sample} of ${whole}`);
  assert.throws(() => body.guess, TypeError);
  await body.measure(thread, 'openai-chat', wanted);
  assert.equal(body.sample, whole);
  assert.equal(body.opening, asks.opening());
  assert.deepEqual([body.images, body.guess > 0], [0, true]);
  const trail = new PromptTrail();
  for (const text of asks.userTexts()) trail.add(text);
  assert.equal(await thread.run('asked', { client: 'openai-chat' }, body), trail.digest());
});

test('G11 the jobs of a call find its body in the thread, also while other bodies wait', async (t) => {
  const seen: string[] = [];
  const told = new BodyThread({
    entry: new URL(
      `data:text/javascript,import { parentPort } from 'node:worker_threads';
      parentPort.on('message', ({ id, bytes }) => parentPort.postMessage({ output: [id, bytes?.length] }));`,
    ),
    data,
    memoryBytes,
  });
  t.after(() => told.close());
  const open = { client: 'openai-chat', counting: false, traced: false } as const;
  const call = async (): Promise<void> => {
    const body = { id: told.nextId(), pieces: bytesOf({}) };
    for (const job of [
      () => told.run('open', open, body),
      () => told.run('size', open, body),
      () => told.run('asked', open, body),
    ]) {
      seen.push(JSON.stringify(await job()));
    }
  };
  await Promise.all([call(), call()]);
  assert.deepEqual(seen, ['[1,2]', '[1,null]', '[1,null]', '[2,2]', '[2,null]', '[2,null]']);
});

test('B51 a refusal names its field, as on the event loop', async () => {
  const opening = openLongBody(thread, bytesOf({ model: 'm', messages: [{ role: 'user' }, 7] }), {
    client: 'openai-chat',
    counting: false,
    traced: false,
    wanted,
  });
  await assert.rejects(opening, (error) => {
    assert.ok(error instanceof GatewayError);
    assert.deepEqual(error.path?.[0], 'messages');
    return true;
  });
});

test('B40 numbers of many digits cross to the thread and back', () => {
  const text = '{"a":[12345678901234567890,{"b":1}],"c":[1,2]}';
  const { value } = parseBody(Buffer.from(text), new Set());
  const cloned: unknown = structuredClone(packed(value));
  assert.equal(JSON.stringify(unpacked(cloned)), text);
  const plain = { list: [1, { a: 'x' }], map: new Map([['k', { y: 2 }]]) };
  assert.equal(packed(plain), plain);
});

test('S20 no JSON of a client or an upstream can pass for what packing makes', () => {
  const text = '{"\\u0000number":"nope","a":{"\\u0000number":"5"},"b":["x"]}';
  const { value } = parseBody(Buffer.from(text), new Set());
  assert.equal(packed(value), value);
  assert.deepEqual(unpacked(structuredClone(packed(value))), value);
});

test('R-32 G11 the thread finds a response at the end of an answer, and says in it that it was not kept', async () => {
  const client = 'openai-responses';
  const response = '{"id":"r","status":"completed","output":[{"id":"msg_1","n":1.0}],"store":true}';
  const stream = `data: {"type":"response.completed","response":${response}}\n\n`;
  const body = (text: string): BodyOfJob => {
    return { id: thread.nextId(), pieces: Pieces.of(Buffer.from(text)) };
  };
  for (const text of [response, stream]) {
    const found = await thread.run('answered', { client }, body(text));
    assert.deepEqual([found?.id, found?.items], ['r', ['msg_1']]);
    assert.equal(text.slice(found?.start, found?.end), response);
    const { bytes } = await thread.run('markUnstored', { client }, body(text));
    assert.equal(Buffer.from(bytes).toString(), text.replace('true', 'false'));
  }
  assert.equal(await thread.run('answered', { client }, body('{"error":{}}')), undefined);
});

test('F72 a job whose client left is not done', async () => {
  const left = {
    client: 'openai-chat',
    counting: false,
    traced: false,
    wanted: () => false,
  } as const;
  await assert.rejects(openLongBody(thread, bytesOf({}), left), canceled);
});

test('E10 a thread that fails fails the call that it works on, and starts again for the next', async (t) => {
  const failures: string[] = [];
  let starts = 0;
  const crashing = new BodyThread({
    entry: new URL('data:text/javascript,setTimeout(() => process.exit(1), 20)'),
    data: () => {
      starts += 1;
      return data();
    },
    failed: (reason) => failures.push(reason),
    memoryBytes,
  });
  t.after(() => crashing.close());
  const open = { client: 'openai-chat', counting: false, traced: false, wanted } as const;
  const jobs = [1, 2].map(() => openLongBody(crashing, bytesOf({}), open));
  for (const job of await Promise.allSettled(jobs)) {
    assert.equal(job.status, 'rejected');
    assert.ok(job.reason instanceof GatewayError && job.reason.code === 'internal');
  }
  assert.deepEqual([starts, failures.length], [2, 2]);
});

test('G5 a thread ends on request when it has no job, and never during one', async (t) => {
  let starts = 0;
  const ended = new BodyThread({
    entry,
    data: () => {
      starts += 1;
      return data();
    },
    memoryBytes,
  });
  t.after(() => ended.close());
  const open = { client: 'openai-chat', counting: false, traced: false, wanted } as const;
  const body = bytesOf(requestBody('chat', { model: 'm', stream: false }));
  const first = openLongBody(ended, body, open);
  ended.endIdle();
  const long = await first;
  assert.equal(starts, 1);
  ended.endIdle();
  // The thread that had kept the body is gone: another one gets its bytes.
  await long.measure(ended, 'openai-chat', wanted);
  assert.deepEqual([long.images, starts], [0, 2]);
});

test('E10 a thread without memory fails the call in the name of who sent the body', async (t) => {
  const fatal = `import { workerData } from 'node:worker_threads';
    setTimeout(() => { const all = []; for (;;) all.push(new Array(1e5).fill(1.5)); }, 20);`;
  const small = new BodyThread({
    entry: new URL(`data:text/javascript,${encodeURIComponent(fatal)}`),
    data,
    memoryBytes: 2 ** 25,
  });
  t.after(() => small.close());
  const open = { client: 'openai-chat', counting: false, traced: false, wanted } as const;
  const body = (): BodyOfJob => ({ id: small.nextId(), pieces: bytesOf({}) });
  const read = { upstream: 'openai-chat', traits: chatTraits } as const;
  const failures = await Promise.allSettled([
    openLongBody(small, bytesOf({}), open),
    small.run('read', read, body()),
  ]);
  assert.deepEqual(failures.map(codeOf), ['too_large', 'upstream_invalid']);
});

test('G5 a body beyond what the thread has room for is refused by name, and does not end the process', async (t) => {
  const tight = new BodyThread({ entry, data, memoryBytes: 2 ** 26 });
  t.after(() => tight.close());
  const long = (bytes: number): Pieces => bytesOf({ model: 'm', text: '你'.repeat(bytes / 3) });
  const open = { client: 'openai-chat', counting: false, traced: false, wanted } as const;
  const read = { upstream: 'openai-chat', traits: chatTraits } as const;
  const refused = await Promise.allSettled([
    openLongBody(tight, long(5 * 2 ** 20), open),
    tight.run('read', read, { id: tight.nextId(), pieces: long(5 * 2 ** 20) }),
  ]);
  assert.deepEqual(refused.map(codeOf), ['too_large', 'upstream_invalid']);
  const [first] = refused;
  assert.ok(first.status === 'rejected');
  assert.match(String(first.reason), /5\.0 MiB; .* at most 4\.0 MiB \(limits\.memory\)/);
  // One that is as long as may be is read.
  const whole = { model: 'm', messages: [{ role: 'user', content: '你'.repeat(2 ** 20) }] };
  assert.equal((await openLongBody(tight, bytesOf(whole), open)).model, 'm');
});

test('G8 what waits has a bound in bytes', async () => {
  const idle = new BodyThread({
    entry: new URL('data:text/javascript,setInterval(() => {}, 1e6)'),
    data,
    memoryBytes: 2 ** 26,
  });
  const pieces = Pieces.of(Buffer.alloc(2 ** 22));
  const open = { client: 'openai-chat', counting: false, traced: false, wanted } as const;
  // One is worked on; sixteen of 4 MiB are twice the heap of 32 MiB.
  const jobs = Array.from({ length: 18 }, () => openLongBody(idle, pieces, open));
  const settling = Promise.allSettled(jobs);
  const [last] = await Promise.allSettled([jobs.at(-1)]);
  assert.equal(last && codeOf(last), 'overloaded');
  await idle.close();
  const codes = (await settling).map(codeOf);
  assert.equal(codes.filter((code) => code === 'overloaded').length, 1);
});

test('F72 no job is done whose result is not awaited', async () => {
  const body = { id: thread.nextId(), pieces: bytesOf({}), wanted: () => false };
  const read = { upstream: 'openai-chat', traits: chatTraits } as const;
  await assert.rejects(thread.run('read', read, body), canceled);
});

test('B51 what was noted before a refusal comes with it', async () => {
  const more = {
    thinking: { type: 'enabled', budget_tokens: 1024 },
    mcp_servers: [{ type: 'url', url: 'https://tools.example', name: 'tools' }],
  };
  const pieces = bytesOf(requestBody('messages', { model: 'm', stream: false, more }));
  const open = { client: 'anthropic-messages', counting: false, traced: false, wanted } as const;
  const long = await openLongBody(thread, pieces, open);
  const { newId: _, ...plain } = ask(halves.chat);
  const made = await thread.run(
    'request',
    {
      client: 'anthropic-messages',
      upstream: 'openai-chat',
      ask: { ...plain, provider: 'p' },
      strict: false,
      keyId: 'k',
    },
    long,
  );
  assert.ok('refused' in made, 'no chat upstream takes servers of tools');
  assert.ok(made.notes.length > 0);
});

test('G8 more jobs than may wait are refused, and a thread that is closed does none', async () => {
  const idle = new BodyThread({
    entry: new URL('data:text/javascript,setInterval(() => {}, 1e6)'),
    data,
    memoryBytes,
  });
  const open = { client: 'openai-chat', counting: false, traced: false, wanted } as const;
  const jobs = Array.from({ length: 300 }, () => openLongBody(idle, bytesOf({}), open));
  const settling = Promise.allSettled(jobs);
  await assert.rejects(
    async () => jobs.at(-1),
    // Retryable it would count against the target.
    (error) => error instanceof GatewayError && error.code === 'overloaded' && !error.retryable,
  );
  await idle.close();
  const codes = (await settling).map(codeOf);
  assert.deepEqual(new Set(codes), new Set(['shutting_down', 'overloaded']));
});
