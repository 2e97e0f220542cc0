/** Content of calls between the answer and the store (docs/user/content.md): sealed, bounded, without secrets. */
import assert from 'node:assert/strict';
import { IncomingMessage } from 'node:http';
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { Socket } from 'node:net';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { contentKeyFile, contentKeyOf, keyOrNone } from '../../../src/access/keys/seal-key.ts';
import { ContentSweeper } from '../../../src/access/sweepers.ts';
import { isObject } from '../../../src/json/value.ts';
import { Pieces } from '../../../src/json/pieces.ts';
import { Secret } from '../../../src/core/secret.ts';
import {
  ContentLog,
  ContentThread,
  type WatchedCall,
} from '../../../src/features/content-log/content-log.ts';
import { loggedContent, mergedEvents } from '../../../src/features/content-log/logged-content.ts';
import {
  type SeenCall,
  openContent,
  sealContent,
} from '../../../src/features/content-log/sealed-content.ts';
import { overridden } from '../../../src/store/remote.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { memoryStore } from '../../support/memory-store.ts';
import { StoreError } from '../../../src/store/store-error.ts';
import { countingBytes, HeldClock, silentLog } from '../access/fakes.ts';

const key = new Uint8Array(32).fill(7);
const place = { id: 'req_1', keyId: 'k1' };

function seen(body: string): SeenCall {
  const bytes = new TextEncoder().encode(body);
  const request = { method: 'POST', path: '/v1/messages', headers: [] };
  return {
    ...place,
    request: { ...request, body: { bytes, length: bytes.length } },
    answer: undefined,
    attempts: [],
    secrets: [],
  };
}

describe('T6 the seal', () => {
  const sealed = sealContent(loggedContent(seen('{"a":"a word"}'), 1000), place, {
    key,
    iv: new Uint8Array(12).fill(1),
  });

  test('opens with its key, for its call alone, and shows no word without', () => {
    const opened = openContent(sealed, place, key);
    assert.ok(isObject(opened));
    assert.match(JSON.stringify(opened), /a word/);
    assert.ok(!sealed.includes('a word'));
    assert.equal(openContent(sealed, { ...place, id: 'req_2' }, key), 'unreadable');
    assert.equal(openContent(sealed, { ...place, keyId: 'k2' }, key), 'unreadable');
  });

  test('another key, no key and damage are distinguished', () => {
    assert.equal(openContent(sealed, place, new Uint8Array(32)), 'other key');
    assert.equal(openContent(sealed, place, undefined), 'other key');
    const damaged = Buffer.from(sealed);
    damaged[damaged.length - 1] = (damaged.at(-1) ?? 0) ^ 1;
    assert.equal(openContent(damaged, place, key), 'unreadable');
    assert.equal(openContent(sealed.subarray(0, 9), place, key), 'unreadable');
  });
});

describe('S15 the key', () => {
  test('lies in a file for its owner alone, made at the first need and the same from then on', () => {
    const folder = temporaryFolder('content');
    const path = join(folder, 'content.key');
    const file = contentKeyFile(path, countingBytes());
    assert.equal(file.find(), undefined);
    const made = file.need();
    assert.equal(statSync(path).mode & 0o777, 0o600);
    assert.deepEqual(contentKeyFile(path, countingBytes()).find(), Buffer.from(made ?? []));
    writeFileSync(path, 'no key');
    assert.throws(() => contentKeyFile(path, countingBytes()).find(), /content\.key/);
    assert.equal(readFileSync(path, 'utf8'), 'no key');
  });

  test('in a file that cannot be read is not made anew: the old one opens what is stored', () => {
    const folder = temporaryFolder('content');
    const path = join(folder, 'content.key');
    mkdirSync(path);
    const file = contentKeyFile(path, countingBytes());
    assert.throws(() => file.find(), { code: 'EISDIR' });
    assert.throws(() => file.need(), { code: 'EISDIR' });
    assert.ok(!existsSync(`${path}.new`));
  });

  test('where it cannot be read it is told and missed, and stops nothing; half a file of a full disk is none', () => {
    const folder = temporaryFolder('content');
    const path = join(folder, 'content.key');
    writeFileSync(`${path}.new`, 'half');
    assert.equal(contentKeyFile(path, countingBytes()).need()?.length, 32);
    assert.equal(existsSync(`${path}.new`), false);
    writeFileSync(path, 'no key');
    const told: string[] = [];
    const found = keyOrNone(contentKeyFile(path, countingBytes()), (reason) => told.push(reason));
    assert.equal(found, undefined);
    assert.match(told.join('\n'), /content\.key holds no key/);
  });

  test('of a secret is the same wherever that is given; a word is none', () => {
    const [one, two] = [
      contentKeyOf(new Secret('s'.repeat(16))),
      contentKeyOf(new Secret('s'.repeat(16))),
    ];
    assert.deepEqual(one.need(), two.find());
    assert.throws(() => contentKeyOf(new Secret('short')), /MODEL_GATEWAY_CONTENT_KEY/);
  });
});

describe('streams', () => {
  const frames = (...events: readonly object[]): Buffer =>
    Buffer.from(events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join(''));
  const chat = (delta: object, more: object = {}): object => ({
    id: 'c',
    choices: [{ index: 0, delta, ...more }],
  });

  test('pieces of one text become one event; what belongs elsewhere stays apart', () => {
    const merged = mergedEvents(
      frames(
        chat({ role: 'assistant', content: '' }),
        chat({ content: 'Hel' }),
        chat({ content: 'lo' }, { logprobs: { content: [{ token: 'lo' }] } }),
        chat({ tool_calls: [{ index: 0, function: { arguments: '{"a"' } }] }),
        chat({ tool_calls: [{ index: 1, function: { arguments: '{}' } }] }),
        chat({ tool_calls: [{ index: 0, function: { arguments: ':1}' } }] }),
        chat({}, { finish_reason: 'stop' }),
      ),
    );
    assert.deepEqual(merged, [
      chat({ role: 'assistant', content: '' }),
      chat({ content: 'Hello' }),
      chat({ tool_calls: [{ index: 0, function: { arguments: '{"a":1}' } }] }),
      chat({ tool_calls: [{ index: 1, function: { arguments: '{}' } }] }),
      chat({}, { finish_reason: 'stop' }),
    ]);
  });

  const secret = 'sk-proj-abcdefghijklmnop123456';
  const [begin, middle, end] = [secret.slice(0, 3), secret.slice(3, 9), secret.slice(9)];
  const tool = (more: object, args: string): object => ({
    tool_calls: [{ index: 0, ...more, function: { arguments: args } }],
  });
  const pieces: readonly (readonly [what: string, ...events: readonly object[]])[] = [
    [
      'beside a role and the reason of the end',
      chat({ role: 'assistant', content: begin }),
      chat({ content: middle }),
      chat({ content: end }, { finish_reason: 'stop' }),
    ],
    [
      'in events of which each has a number and an id of its own',
      { ...chat({ content: begin }), id: 'a', at: 1 },
      { ...chat({ content: middle }), id: 'b', at: 2 },
      { ...chat({ content: end }), id: 'c', at: 3 },
    ],
    [
      'in arguments of a tool that begin beside its name',
      chat(tool({ id: 't', type: 'function' }, begin)),
      chat(tool({}, middle)),
      chat(tool({}, end)),
    ],
    [
      'in a block that begins with a text',
      { type: 'content_block_start', index: 0, content_block: { type: 'text', text: begin } },
      { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: middle + end } },
    ],
  ];
  for (const [what, ...events] of pieces) {
    test(`S4 a key in pieces is whole where it begins: ${what}`, () => {
      const [first, ...rest] = mergedEvents(frames(...events));
      assert.ok(JSON.stringify(first).includes(secret));
      for (const each of [begin, middle, end]) assert.ok(!JSON.stringify(rest).includes(each));
    });
  }

  test('calls of tools that share an index, and citations, are not mixed', () => {
    const events = [
      chat(tool({ id: 'a' }, '{"x":1}')),
      chat(tool({ id: 'b' }, '{"y":2}')),
      chat({ citation: { title: 'One' } }),
    ];
    assert.deepEqual(mergedEvents(frames(...events)), events);
  });

  test('blocks of messages are distinguished by their index', () => {
    const delta = (index: number, text: string): object => ({
      type: 'content_block_delta',
      index,
      delta: { type: 'text_delta', text },
    });
    const stop = { type: 'content_block_stop', index: 0 };
    assert.deepEqual(
      mergedEvents(frames(delta(0, 'a'), delta(0, 'b'), stop, delta(1, 'c'), delta(1, 'd'))),
      [delta(0, 'ab'), stop, delta(1, 'cd')],
    );
  });
});

/** A store that can be away, and keeps in earnest when it is there. */
function moody() {
  const inner = memoryStore().contents;
  const state = { away: false };
  const keep: typeof inner.keep = async (contents) => {
    if (state.away) throw new StoreError('unavailable', 'away');
    return inner.keep(contents);
  };
  return { state, store: overridden(inner, { keep }) };
}

describe('the way to the store', () => {
  function rig(memoryBytes = 1_000_000) {
    const { store, state } = moody();
    const clock = new HeldClock();
    const log = new ContentLog({
      store,
      sealer: new ContentThread(),
      clock,
      log: silentLog,
      key: () => key,
      limits: () => ({ bodyBytes: 1000, memoryBytes }),
    });
    const call = (id: string, size: number, more = ''): void => {
      const request = new IncomingMessage(new Socket());
      const watched: WatchedCall | undefined = log.watch({
        ...place,
        id,
        startedAt: 1,
        path: '/v1/messages',
        request,
      });
      assert.ok(watched !== undefined);
      watched.asked(Pieces.of(Buffer.from(JSON.stringify({ text: 'x'.repeat(size) + more }))));
      watched.refused(400, { error: 'no' });
      watched.end();
    };
    return { store, state, clock, log, call };
  }

  test('F95 what has no room is dropped and counted; memory is given back', async () => {
    const { store, log, call } = rig(5000);
    for (let i = 0; i < 10; i += 1) call(`req_${i}`, 1900);
    assert.ok(log.memory <= 5000);
    await log.flush();
    assert.deepEqual(log.tallies, { kept: 2, dropped: 8, failed: 0 });
    assert.equal(log.memory, 0);
    assert.ok((await store.find('req_1')) !== undefined);
    await log.close();
  });

  test('calls with a key in their words are counted, others are not', async () => {
    const { log, call } = rig();
    call('req_1', 10);
    await log.flush();
    assert.equal(log.redacted, 0);
    call('req_2', 10, ` sk-proj-${'aB3'.repeat(12)}`);
    await log.flush();
    assert.equal(log.redacted, 1);
    await log.close();
  });

  test('a store that is away is waited for, a minute, and holds nobody up', async () => {
    const { state, clock, log, call } = rig();
    state.away = true;
    call('req_1', 10);
    await log.flush();
    assert.equal(log.tallies.kept, 0);
    state.away = false;
    await log.flush();
    assert.equal(log.tallies.kept, 1);
    state.away = true;
    call('req_2', 10);
    await log.flush();
    clock.time += 61_000;
    await log.flush();
    assert.deepEqual(log.tallies, { kept: 1, dropped: 1, failed: 0 });
    assert.equal(log.memory, 0);
    await log.close();
  });

  test('a stop waits five seconds for a store that does not answer, and counts what it lost', async (t) => {
    const { store, log, call } = rig();
    const asked = Promise.withResolvers<void>();
    store.keep = () => {
      asked.resolve();
      return new Promise<never>(() => undefined);
    };
    call('req_1', 10);
    await asked.promise;
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const closed = log.close();
    t.mock.timers.tick(5000);
    await closed;
    assert.deepEqual(log.tallies, { kept: 0, dropped: 1, failed: 0 });
  });

  test('without a key nothing is watched, and nothing thrown', () => {
    const { store } = rig();
    const parts = { store, sealer: new ContentThread(), clock: new HeldClock(), log: silentLog };
    const limits = { bodyBytes: 1000, memoryBytes: 1000 };
    const request = new IncomingMessage(new Socket());
    for (const none of [
      () => undefined,
      () => {
        throw new Error('no file');
      },
    ]) {
      const log = new ContentLog({ ...parts, key: none, limits: () => limits });
      assert.equal(log.watch({ ...place, startedAt: 1, path: '/', request }), undefined);
    }
  });
});

test('what is too old goes, and then the oldest until there is room', async () => {
  const store = memoryStore().contents;
  const clock = new HeldClock();
  const now = clock.wall();
  const sealed = new Uint8Array(744);
  await store.keep(
    [5000, 3000, 2000, 1000].map((age, i) => ({
      id: `c${i}`,
      keyId: 'k',
      startedAt: now - age,
      sealed,
    })),
  );
  const limits = { keepMs: 4000, totalBytes: 2500 };
  const sweeper = new ContentSweeper({
    store,
    clock,
    log: silentLog,
    limits: () => limits,
    pause: async () => undefined,
  });
  await sweeper.run();
  const left = await Promise.all(['c0', 'c1', 'c2', 'c3'].map((id) => store.find(id)));
  assert.deepEqual(
    left.map((each) => each?.id),
    [undefined, undefined, 'c2', 'c3'],
  );
  assert.equal(await store.bytes(), 2000);
});
