/** The bounded store of what clients drop (wire/translation.md §5.3; D3, D5, D6). */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { PromptTrail, type KnownCall } from '../../../src/core/recall.ts';
import {
  ReasoningMemory,
  ReasoningStore,
  type StoredTurn,
} from '../../../src/gateway/reasoning-memory.ts';
import { openaiChatClient } from '../../../src/dialects/openai-chat/client.ts';
import { createHttpProvider } from '../../../src/providers/http-provider.ts';
import { testSealer } from '../../support/sealing.ts';

const origin = { provider: 'deepseek', dialect: 'openai-chat' } as const;
const random: KnownCall = { id: 'call_a1B2c3D4e5F6', name: 'f', argumentsJson: '{"x":1}' };
const counted: KnownCall = { id: 'functions.f:0', name: 'f', argumentsJson: '{"x":1}' };

function turn(text: string, ...known: readonly KnownCall[]): StoredTurn {
  const reasoning = [{ callsBefore: 0, part: { type: 'reasoning', text, origin } as const }];
  return { origin, reasoning, calls: new Map(), known };
}

function asked(...texts: readonly string[]): PromptTrail {
  const trail = new PromptTrail();
  for (const text of texts) trail.add(text);
  return trail;
}

function makeStore(limits: { maxBytes?: number; maxTurns?: number; ttlMs?: number } = {}) {
  let now = 0;
  const clock = { now: () => now, wall: () => 0 };
  const store = new ReasoningStore({ clock, ...limits });
  const found = (call: KnownCall, trail = asked(), keyId = 'key') =>
    store.recall(keyId, call, trail)?.reasoning[0]?.part.text;
  return { store, found, pass: (ms: number) => (now += ms) };
}

describe('§5.3 the store of turns', () => {
  test('gives a turn back by each of its calls, to its own key only', () => {
    const { store, found } = makeStore();
    const second = { ...random, id: 'call_z9Y8x7W6v5U4' };
    store.keep('key', turn('hm', random, second), asked('hi'));
    assert.equal(found(random), 'hm');
    assert.equal(found(second), 'hm');
    assert.equal(found(random, asked(), 'other'), undefined);
    assert.equal(found({ ...random, id: 'call_unknown1234' }), undefined);
  });

  test('forgets after an hour', () => {
    const { store, found, pass } = makeStore();
    store.keep('key', turn('hm', random), asked());
    pass(3_600_000);
    assert.equal(found(random), 'hm');
    pass(1);
    assert.equal(found(random), undefined);
    assert.equal(store.size, 0);
    assert.equal(store.bytes, 0);
  });

  test('the oldest go first when there are too many, or too much of them', () => {
    const calls = Array.from({ length: 5 }, (_, i) => ({ ...random, id: `call_a1B2c3D4e5F${i}` }));
    const many = makeStore({ maxTurns: 3 });
    for (const call of calls) many.store.keep('key', turn(call.id, call), asked());
    assert.deepEqual(
      calls.map((call) => many.found(call)),
      [undefined, undefined, ...calls.slice(2).map(({ id }) => id)],
    );
    const large = makeStore({ maxBytes: 60_000 });
    for (const call of calls) large.store.keep('key', turn('x'.repeat(10_000), call), asked());
    assert.ok(large.store.bytes <= 60_000 && large.store.size === 2);
    assert.equal(large.found(calls[4] ?? random)?.length, 10_000);
    large.store.keep('key', turn('x'.repeat(40_000), random), asked());
    assert.equal(large.found(random), undefined, 'what fits nowhere is not kept');
    assert.equal(large.store.size, 2);
  });

  test('an id that comes again in each conversation needs the same conversation', () => {
    const { store, found } = makeStore();
    store.keep('key', turn('of one', counted), asked('first question'));
    store.keep('key', turn('of another', counted), asked('second question'));
    assert.equal(found(counted, asked('first question')), 'of one');
    assert.equal(found(counted, asked('second question')), 'of another');
    assert.equal(found(counted, asked('first ', 'question')), undefined);
    const spaced = { ...counted, argumentsJson: '{ "x": 1 }' };
    assert.equal(found(spaced, asked('first question')), 'of one', 'parsed and written again');
    const other = { ...counted, argumentsJson: '{"x":2}' };
    assert.equal(found(other, asked('first question')), undefined);
  });

  test('a turn that is answered again replaces the one before', () => {
    const { store, found } = makeStore();
    store.keep('key', turn('one', counted), asked('q'));
    store.keep('key', turn('two', counted), asked('q'));
    assert.equal(found(counted, asked('q')), 'two');
    assert.equal(store.size, 1);
  });
});

describe('the turn of a relayed long body', () => {
  const part = { type: 'reasoning', text: 'hm', signature: 's' } as const;
  const relayed = async (call: KnownCall, digest: () => Promise<string>) => {
    const { store, found } = makeStore();
    const memory = new ReasoningMemory(testSealer, store);
    const provider = createHttpProvider({
      id: 'deepseek',
      dialect: 'openai-chat',
      baseUrl: 'http://127.0.0.1:9',
    });
    const watch = memory.watch(
      // What the user said is in the worker thread.
      { caller: { keyId: 'key' }, dialect: openaiChatClient, source: { value: {}, skeleton: {} } },
      { provider, model: 'm' },
      { conversation: undefined, digest },
    );
    watch?.see({ type: 'part-start', index: 0, part });
    watch?.see({ type: 'part-start', index: 1, part: { type: 'tool-call', ...call } });
    watch?.see({ type: 'finish', reason: { kind: 'tool-calls' } });
    watch?.keep();
    await setImmediate();
    return found(call, asked('hi'));
  };

  test('F60 asks the thread for what the user said, where the ids of calls come again', async () => {
    assert.equal(await relayed(counted, async () => asked('hi').digest()), 'hm');
    assert.equal(await relayed(counted, async () => asked('other').digest()), undefined);
    assert.equal(await relayed(counted, () => Promise.reject(new Error('busy'))), undefined);
    assert.equal(await relayed(random, () => assert.fail('a random id needs no digest')), 'hm');
  });
});
