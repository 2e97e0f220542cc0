/** Kept responses: sealed, bound to their key, and never the fault of an answer (docs/user/responses.md). */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { GatewayError } from '../../../src/core/errors.ts';
import type { EndedResponse } from '../../../src/core/stored-response.ts';
import { storedResponses as dialect } from '../../../src/dialects/openai-responses/stored.ts';
import {
  type LongEndCodec,
  StoringSink,
} from '../../../src/features/stored-responses/storing-sink.ts';
import { openBytes, sealKey } from '../../../src/features/sealed-bytes.ts';
import type { ClientSink } from '../../../src/gateway/answer/client-answer.ts';
import { StoreError } from '../../../src/store/store-error.ts';
import { altered, memoryStore } from '../../support/memory-store.ts';
import { silent, storedResponses } from '../../support/stored-responses.ts';
import {
  openResponse,
  responseKey,
  type ResponseToStore,
  sealResponse,
} from '../../../src/features/stored-responses/stored-responses.ts';

const owner = { keyId: 'key', secret: 'sk-one' };
const roomy = { dialect, bytes: 1e6, hold: () => undefined };

function response(id: string, more: Partial<ResponseToStore> = {}): ResponseToStore {
  const text = JSON.stringify({ id, output: [{ id: `msg_${id}`, text: `said ${id}` }] });
  return {
    id,
    items: [`msg_${id}`],
    response: Buffer.from(text),
    input: Buffer.from(`[{"asked":"${id}"}]`),
    inputIds: [],
    previous: undefined,
    startedAt: 1,
    ...more,
  };
}

function textOf(buffers: readonly Buffer[]): string {
  return buffers.map(String).join('');
}

const asks = (previousResponseId: string, itemReferences: readonly string[] = []) => ({
  store: true,
  previousResponseId,
  itemReferences,
});

test('R-27 a chain is told from its beginning, items and answers', async () => {
  const stored = storedResponses();
  await stored.keep(owner, response('a'));
  await stored.keep(owner, response('b', { previous: 'a' }));
  const { before } = await stored.resolve(owner, asks('b'), roomy);
  assert.equal(
    textOf(before),
    '[{"asked":"a"}][{"id":"msg_a","text":"said a"}][{"asked":"b"}][{"id":"msg_b","text":"said b"}]',
  );
});

test('R-28 another key, an unknown id and a removed one are reported alike', async () => {
  const stored = storedResponses();
  await stored.keep(owner, response('a'));
  const other = { ...owner, keyId: 'other' };
  const refusals = [];
  refusals.push(await stored.resolve(other, asks('a'), roomy).catch(String));
  await stored.remove(owner, 'a', false);
  refusals.push(await stored.resolve(owner, asks('a'), roomy).catch(String));
  assert.deepEqual(new Set(refusals).size, 1);
  assert.match(String(refusals[0]), /Previous response with id 'a' not found\./);
});

test('R-34 R-31 a response that the store cannot delete is told to be there still', async () => {
  const full = (): Promise<never> => Promise.reject(new StoreError('full', 'the disk is full'));
  const { responses } = altered(memoryStore(), { responses: { remove: full } });
  const warned: string[] = [];
  const stored = storedResponses({
    store: responses,
    log: { ...silent, warn: (event) => void warned.push(event) },
  });
  await stored.keep(owner, response('resp_a'));
  await assert.rejects(stored.remove(owner, 'resp_a', false), (error) => {
    assert.ok(error instanceof GatewayError);
    assert.equal(error.code, 'store_unavailable');
    assert.match(error.message, /cannot delete .*'resp_a' is still kept/);
    return true;
  });
  assert.deepEqual(warned, ['response_not_removed']);
  assert.ok((await stored.find(owner, 'resp_a', roomy)) !== undefined);
});

test('R-34 of ids without a response, a thousand of a key are remembered for an hour', async () => {
  const asked: unknown[] = [];
  const remove = (...args: readonly unknown[]): Promise<boolean> => {
    asked.push(args);
    return Promise.resolve(false);
  };
  const { responses } = altered(memoryStore(), { responses: { remove } });
  const stored = storedResponses({ store: responses, keepMs: 86_400_000 });
  await stored.remove(owner, 'resp_a', true);
  await stored.remove(owner, 'resp_b', false);
  assert.deepEqual(asked, [
    ['key', 'resp_a', { ms: 3_600_000, most: 1000 }],
    ['key', 'resp_b', undefined],
  ]);
});

test('ST12 of a chain that is broken, the response that is not there any more is named', async () => {
  const stored = storedResponses();
  await stored.keep(owner, response('a'));
  await stored.keep(owner, response('b', { previous: 'a' }));
  await stored.keep(owner, response('c', { previous: 'b' }));
  await stored.remove(owner, 'a', false);
  const words =
    /with id 'a' not found: it was deleted, or it has expired\. The response 'b' continues/;
  await assert.rejects(stored.resolve(owner, asks('c'), roomy), words);
  await assert.rejects(stored.chain(owner, 'c', roomy), words);
  assert.equal(await stored.chain(owner, 'a', roomy), undefined);
});

test('ST10 items are found in the input and the output of what is kept', async () => {
  const stored = storedResponses();
  await stored.keep(owner, response('a'));
  const input = Buffer.from('[{"id":"msg_a","text":"said a"},{"asked":"b"}]');
  await stored.keep(owner, response('b', { input, inputIds: ['msg_a'] }));
  await stored.remove(owner, 'a', false);
  const state = { store: true, itemReferences: ['msg_a', 'msg_b'] };
  const { found } = await stored.resolve(owner, state, roomy);
  assert.deepEqual([...found.keys()].sort(), ['msg_a', 'msg_b']);
  await assert.rejects(
    stored.resolve(owner, { store: true, itemReferences: ['rs_none'] }, roomy),
    /Item with id 'rs_none' not found/,
  );
});

test('a response of a call that its key’s content was removed under is dropped, and says so', async () => {
  const store = memoryStore();
  const stored = storedResponses({ store: store.responses });
  await store.contents.forget(owner.keyId, 10);
  assert.equal(await stored.keep(owner, response('before', { startedAt: 9 })), false);
  assert.equal(await stored.keep(owner, response('after', { startedAt: 10 })), true);
  assert.equal(await stored.find(owner, 'before', roomy), undefined);
});

test('R-36 a chain that is too long is refused as too large', async () => {
  const stored = storedResponses();
  await stored.keep(owner, response('a', { input: Buffer.from(`["${'x'.repeat(5000)}"]`) }));
  await assert.rejects(
    stored.resolve(owner, asks('a'), { ...roomy, bytes: 1000 }),
    (error) => error instanceof GatewayError && error.code === 'too_large',
  );
});

test('G5 memory is reserved for a chain as it is unpacked, and for what is long before it is read', async () => {
  const store = memoryStore();
  const stored = storedResponses({ store: store.responses });
  const packed = Buffer.from(`["${'x'.repeat(100_000)}"]`);
  const unpackable = Buffer.from(JSON.stringify([randomBytes(500_000).toString('base64')]));
  await stored.keep(owner, response('a', { input: packed }));
  await stored.keep(owner, response('b', { input: packed, previous: 'a' }));
  await stored.keep(owner, response('c', { input: packed, previous: 'b' }));
  await stored.keep(owner, response('long', { input: unpackable }));
  const held: number[] = [];
  const room = (most: number) => ({
    ...roomy,
    hold: (bytes: number) => {
      if (bytes > most) throw new GatewayError('overloaded', 'no room');
      held.push(Math.floor(bytes / 100_000));
    },
  });
  const noRoom = { code: 'overloaded' };
  await stored.chain(owner, 'c', room(1e9));
  assert.deepEqual(held.splice(0), [1, 2, 3]);
  await assert.rejects(stored.resolve(owner, asks('c'), room(250_000)), noRoom);
  assert.deepEqual(held.splice(0), [1, 2], 'no more is unpacked');
  await assert.rejects(stored.find(owner, 'a', room(1000)), noRoom);
  const items = { store: true, itemReferences: ['msg_a', 'msg_b'] };
  await assert.rejects(stored.resolve(owner, items, room(150_000)), noRoom);
  assert.deepEqual(held.splice(0), [1]);
  await assert.rejects(stored.find(owner, 'long', room(1e6)), noRoom);
  assert.deepEqual(held, [], 'nothing long was read');
  assert.equal((await stored.find(owner, 'long', room(1e9)))?.input.length, unpackable.length);
});

test('G5 memory is reserved before a response is unpacked, for the size that it will have', async () => {
  const key = responseKey(randomBytes(32), 'key');
  const input = Buffer.from(JSON.stringify(['x'.repeat(1_000_000)]));
  for (const { length, parts } of [
    { length: 1_000_006, parts: { input, response: Buffer.from('{}') } },
    { length: 4, parts: { input: Buffer.from('[]'), response: Buffer.from('{}') } },
  ]) {
    const rowId = { id: 'a', keyId: 'key' };
    const sealed = await sealResponse(parts, rowId, { key, iv: randomBytes(12) });
    assert.ok(sealed.length < 10_000);
    const sizes: number[] = [];
    const opened = await openResponse({ ...rowId, previous: undefined, sealed }, key, (size) => {
      sizes.push(size);
    });
    assert.deepEqual(opened, parts);
    assert.deepEqual(sizes, [length]);
    const refused = openResponse({ ...rowId, previous: undefined, sealed }, key, () => {
      throw new GatewayError('overloaded', 'no room');
    });
    await assert.rejects(refused, { code: 'overloaded' });
  }
});

test('G5 items that a request names keep no other item of their response in memory', async () => {
  const stored = storedResponses();
  await stored.keep(owner, response('a', { input: Buffer.from(`["${'x'.repeat(100_000)}"]`) }));
  const items = { store: true, itemReferences: ['msg_a'] };
  const { found } = await stored.resolve(owner, items, roomy);
  const item = found.get('msg_a');
  assert.ok(item !== undefined && item.buffer.byteLength < 100_000);
});

test('R-36 items that are too long together are refused, however well they were packed', async () => {
  const stored = storedResponses();
  const ids = ['a', 'b', 'c'];
  for (const id of ids) {
    const output = [{ id: `msg_${id}`, text: 'x'.repeat(400_000) }];
    const bytes = Buffer.from(JSON.stringify({ id, output }));
    await stored.keep(owner, response(id, { response: bytes }));
  }
  const named = (count: number) => ({
    store: true,
    itemReferences: ids.slice(0, count).map((id) => `msg_${id}`),
  });
  assert.equal((await stored.resolve(owner, named(2), roomy)).found.size, 2);
  await assert.rejects(stored.resolve(owner, named(3), roomy), { code: 'too_large' });
});

test('R-33 what is kept opens with the gateway’s secret only, and survives the rotation of a key', async () => {
  const store = memoryStore();
  const stored = storedResponses({ store: store.responses });
  await stored.keep(owner, response('a'));
  const { responses } = await store.responses.chain('key', 'a', { links: 1, bytes: 1e6 });
  const sealed = Buffer.from(responses[0]?.sealed ?? []);
  assert.equal(sealed.includes('asked') || sealed.includes('said'), false);
  assert.equal(openBytes(sealed, 'response key a', sealKey(Buffer.alloc(32, 9))), 'other key');
  const rotated = { ...owner, secret: 'sk-two' };
  assert.ok(await stored.find(rotated, 'a', roomy));
});

test('without a secret of the gateway the client’s own key opens what is kept, and no other', async () => {
  const stored = storedResponses({ contentKey: () => undefined });
  await stored.keep(owner, response('a'));
  assert.ok(await stored.find(owner, 'a', roomy));
  assert.equal(await stored.find({ ...owner, secret: 'sk-two' }, 'a', roomy), undefined);
});

class Written implements ClientSink {
  readonly told: string[] = [];
  start(status: number, headers: readonly string[]): void {
    this.told.push(`${status} ${headers.join(' ')}`);
  }
  write(bytes: Buffer | string): boolean {
    this.told.push(String(bytes));
    return true;
  }
  end(bytes: Buffer | string = ''): void {
    this.told.push(`end ${String(bytes)}`);
  }
  cut(): void {
    this.told.push('cut');
  }
  observe(): void {}
}

/** Short answers are none of its concern. */
const long: LongEndCodec = {
  answered: async () => assert.fail('it is short'),
  markUnstored: async () => assert.fail('it is short'),
};

const document = '{"id":"r","status":"completed","output":[],"store":true}';
const terminal = `data: {"type":"response.completed","response":${document}}\n\n`;
const later = (ms: number, run: () => void): (() => void) => {
  const timer = setTimeout(run, ms / 100);
  return () => clearTimeout(timer);
};

test('ST6 the last event waits for the store, and goes out saying so when it was not kept', async () => {
  for (const [kept, end] of [
    ['kept', terminal],
    ['failed', terminal.replace('"store":true', '"store":false')],
  ] as const) {
    const sink = new Written();
    const keeping = Promise.withResolvers<'kept' | 'failed'>();
    const late = (): void => assert.fail('it came in time');
    const parts = { sink, dialect, long, later, keep: () => keeping.promise, late };
    const keeper = new StoringSink(parts);
    keeper.start(200, ['content-type', 'text/event-stream']);
    keeper.write('data: 1\n\n');
    keeper.end(terminal);
    await Promise.resolve();
    assert.equal(sink.told.length, 2);
    keeping.resolve(kept);
    await keeper.finished();
    assert.equal(sink.told[2], `end ${end}`);
  }
});

test('R-31 a store that is silent holds an answer up for a while, and R-32 a note reports what is too large', async () => {
  const silent = new Written();
  let late = 0;
  const never = new Promise<'kept'>(() => undefined);
  const keeper = new StoringSink({
    sink: silent,
    dialect,
    long,
    later,
    keep: () => never,
    late: () => void (late += 1),
  });
  keeper.start(200, ['content-length', String(document.length)]);
  keeper.end(document);
  await keeper.finished();
  assert.deepEqual(silent.told, [
    `200 content-length ${document.length + 1}`,
    `end ${document.replace('true', 'false')}`,
  ]);
  assert.equal(late, 1);
  const large = new Written();
  const keep = async () => 'large' as const;
  const other = new StoringSink({ sink: large, dialect, long, later, keep, late: () => undefined });
  other.start(200, ['content-length', '1', 'x-gateway-notes', 'a: dropped, b']);
  other.end(document);
  await other.finished();
  assert.match(large.told[0] ?? '', /a: dropped, b; store: dropped, too large/);
});

test('an error and a failed stream are passed on at once', () => {
  const keep = async () => assert.fail('nothing is to be kept');
  for (const [status, last] of [
    [400, '{"error":{}}'],
    [200, 'data: {"type":"response.failed","response":{"id":"r","status":"failed"}}\n\n'],
  ] as const) {
    const sink = new Written();
    const keeper = new StoringSink({ sink, dialect, long, later, keep, late: () => undefined });
    keeper.start(status, ['content-length', '1']);
    keeper.end(last);
    assert.equal(sink.told.at(-1), `end ${last}`);
  }
});

test('G11 R-32 an answer beyond 1 MiB is not read on the event loop, kept or not', async () => {
  const onLoop = {
    answered: () => assert.fail('read on the event loop'),
    markUnstored: () => assert.fail('written on the event loop'),
  };
  const elsewhere: LongEndCodec = {
    answered: async (last) => dialect.answered(last),
    markUnstored: async (last) => dialect.markUnstored(last),
  };
  const said = JSON.stringify('x'.repeat(1024 * 1024));
  const text = document.replace('[]', `[${said}]`);
  for (const outcome of ['kept', 'large'] as const) {
    const sink = new Written();
    let seen = 0;
    const keep = async (answer: EndedResponse): Promise<typeof outcome> => {
      seen = answer.response.length;
      return outcome;
    };
    const late = (): void => assert.fail('it came in time');
    const keeper = new StoringSink({ sink, dialect: onLoop, long: elsewhere, later, keep, late });
    keeper.start(200, ['content-length', String(text.length)]);
    keeper.end(text);
    await keeper.finished();
    assert.equal(seen, text.length);
    const told = outcome === 'kept' ? text : text.replace('"store":true', '"store":false');
    assert.ok(sink.told[1] === `end ${told}`);
  }
});
