/** Several local models: who is started, who stays, who goes; with a scripted engine. */
import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, afterEach, describe, test } from 'node:test';
import { GatewayError } from '../../src/core/errors.ts';
import { openaiChatUpstream } from '../../src/dialects/openai-chat/upstream.ts';
import type { LocalModelFile } from '../../src/local-models/model-file.ts';
import {
  createLocalEngines,
  defaultRoom,
  type LocalEngines,
  type LocalLimits,
  whoBlocks,
} from '../../src/providers/local.ts';
import { requestWhole } from '../../src/wire/exchange.ts';
import { HttpClient } from '../../src/wire/http-client.ts';
import { tryParseObject } from '../../src/json/parse.ts';
import { Watch } from '../../src/providers/local-engine.ts';
import { temporaryFolder } from '../support/folders.ts';
import { clock, EngineClient, memoryLog, readAll, type OpenRequest } from './engine-client.ts';
import type { EngineScript } from './scripted-engine.ts';

const folder = temporaryFolder('pool-test');
const entry = join(import.meta.dirname, 'scripted-engine.ts');

const running = new Set<Pool>();
afterEach(async () => {
  await Promise.all([...running].map((pool) => pool.engines.stop()));
  running.clear();
});

type More = Partial<LocalModelFile> & { readonly script?: EngineScript };

function file(name: string, { script = {}, ...more }: More = {}): LocalModelFile {
  const path = join(folder, `${name}-${Math.random()}`);
  writeFileSync(path, JSON.stringify(script));
  return { name, path, bytes: 100, settings: {}, ...more };
}

/** Engines with their log. */
class Pool {
  readonly #log = memoryLog();
  readonly engines: LocalEngines;

  constructor(models: readonly LocalModelFile[], limits: LocalLimits = {}) {
    const { log } = this.#log;
    const dialect = openaiChatUpstream;
    this.engines = createLocalEngines({ models, limits, log, clock, dialect, entry });
    running.add(this);
  }

  async wake(name: string): Promise<void> {
    await this.engines.provider.forModel?.(name).wake?.();
  }

  async refusal(name: string): Promise<GatewayError> {
    try {
      await this.wake(name);
    } catch (error) {
      assert.ok(error instanceof GatewayError);
      return error;
    }
    return assert.fail(`${name} was started`);
  }

  client(name: string): EngineClient {
    return new EngineClient(String(this.engines.provider.forModel?.(name).generate.socketPath));
  }

  /** Started without the patience of a call. */
  async start(name: string): Promise<void> {
    this.engines.prewarm(name);
    await this.told('engine_ready', name);
  }

  /** A call that is answered at once. */
  async call(name: string): Promise<void> {
    await this.wake(name);
    await this.client(name).call('/done', {});
  }

  /** A call that goes on until it is left. */
  async hold(name: string): Promise<OpenRequest> {
    await this.wake(name);
    const open = this.client(name).open('/held', {});
    await open.response;
    return open;
  }

  phase(name: string): string | undefined {
    return this.engines.status().find((engine) => engine.name === name)?.phase;
  }

  /** Resolves once a busy model has said that it stays: it is asked to leave again and again. */
  async stays(name: string): Promise<void> {
    while (this.phase(name) === 'unloading') await new Promise((resolve) => setTimeout(resolve, 5));
    assert.equal(this.phase(name), 'ready');
    assert.deepEqual(this.events('engine_unloaded', name), []);
  }

  /** Resolves when the event is logged for the n-th time; returns that entry. */
  async told(
    event: string,
    model: string,
    times = 1,
  ): Promise<{ readonly [key: string]: unknown }> {
    for (;;) {
      const entries = this.events(event, model);
      const entry = entries[times - 1];
      if (entry !== undefined) return entry;
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }

  events(event: string, model: string): readonly { readonly [key: string]: unknown }[] {
    return this.#log.entries.filter((each) => each.event === event && each['model'] === model);
  }
}

describe('lazy and idle', () => {
  test('a model is started by its first call, once for all who wait', async () => {
    const pool = new Pool([file('a'), file('b')]);
    assert.deepEqual([pool.phase('a'), pool.phase('b')], ['stopped', 'stopped']);
    await Promise.all([pool.wake('a'), pool.wake('a'), pool.wake('a')]);
    assert.deepEqual([pool.phase('a'), pool.phase('b')], ['ready', 'stopped']);
    assert.equal(pool.events('engine_loading', 'a').length, 1);
    assert.equal(typeof (await pool.told('engine_ready', 'a'))['start_ms'], 'number');
  });

  test('an idle model is unloaded and started again by the next call; a busy one stays', async () => {
    const pool = new Pool([file('a'), file('b')], { idleUnloadMs: 300 });
    const held = await pool.hold('a');
    await pool.call('b');
    const { reason, idle_ms: idleMs } = await pool.told('engine_unloaded', 'b');
    assert.equal(reason, 'idle');
    assert.ok(Number(idleMs) >= 300);
    await pool.stays('a');
    held.leave();
    await pool.told('engine_unloaded', 'a');
    assert.equal(pool.phase('a'), 'stopped');
    await pool.call('a');
    assert.equal(pool.phase('a'), 'ready');
  });

  test('the model says itself how long it stays; the demonstration model stays', async () => {
    const own = file('own', { settings: { idleUnloadMs: 40 } });
    const demo = file('demo', { demo: true });
    const pool = new Pool([own, demo, file('never', { settings: { idleUnloadMs: 0 } })]);
    await Promise.all(['own', 'demo', 'never'].map((name) => pool.call(name)));
    await pool.told('engine_unloaded', 'own');
    assert.deepEqual([pool.phase('demo'), pool.phase('never')], ['ready', 'ready']);
  });

  test('a call that was let through is waited for', async () => {
    const pool = new Pool([file('a'), file('b')], { maxLoaded: 1, startWaitMs: 300 });
    await pool.start('a');
    await pool.wake('a');
    assert.equal((await pool.refusal('b')).code, 'overloaded');
    await pool.stays('a');
    await pool.client('a').call('/done', {});
    await pool.told('engine_ready', 'b');
    assert.equal(pool.phase('a'), 'stopped');
  });
});

describe('room', () => {
  test('the least recently used idle model makes room', async () => {
    const pool = new Pool([file('a'), file('b'), file('c')], { maxLoaded: 2 });
    await pool.call('a');
    await pool.call('b');
    await pool.call('a');
    await pool.call('c');
    assert.deepEqual(
      ['a', 'b', 'c'].map((name) => pool.phase(name)),
      ['ready', 'stopped', 'ready'],
    );
    assert.equal((await pool.told('engine_unloaded', 'b'))['reason'], 'room');
  });

  test('F93 a busy model is not ended for another: that call gets a retry-after', async () => {
    const pool = new Pool([file('a'), file('b')], { maxLoaded: 1, startWaitMs: 50 });
    await pool.start('a');
    const held = await pool.hold('a');
    const error = await pool.refusal('b');
    assert.equal(error.code, 'overloaded');
    assert.equal(error.retryAfterMs, 5000);
    assert.match(error.message, /"b" waits for others to be unloaded/);
    await pool.stays('a');
    held.leave();
    await pool.told('engine_ready', 'b');
    assert.equal(pool.phase('a'), 'stopped');
  });

  test('models that start at the same time do not take the same room', async () => {
    const pool = new Pool([file('a'), file('b'), file('c')], { maxLoaded: 1 });
    await Promise.all(['a', 'b', 'c'].map((name) => pool.call(name)));
    assert.equal(['a', 'b', 'c'].filter((name) => pool.phase(name) === 'ready').length, 1);
  });

  test('the demonstration model takes no room and gives none', async () => {
    const demo = file('demo', { demo: true });
    const pool = new Pool([demo, file('a'), file('b')], { maxLoaded: 1 });
    await pool.call('demo');
    await pool.call('a');
    await pool.call('b');
    assert.deepEqual(
      ['demo', 'a', 'b'].map((name) => pool.phase(name)),
      ['ready', 'stopped', 'ready'],
    );
  });

  test('files count by their size; one that is alone is tried whatever its size', async () => {
    const big = file('big', { bytes: 5000 });
    const pool = new Pool([file('a'), file('b'), big], { maxLoaded: 9, maxBytes: 250 });
    await pool.call('a');
    await pool.call('b');
    assert.deepEqual([pool.phase('a'), pool.phase('b')], ['ready', 'ready']);
    await pool.call('big');
    assert.deepEqual(
      ['a', 'b', 'big'].map((name) => pool.phase(name)),
      ['stopped', 'stopped', 'ready'],
    );
    assert.equal((await pool.told('engine_large', 'big'))['bytes'], 5000);
  });

  test('the limits as a rule: no other model, or the longest unused first', () => {
    const loaded = [3, 1, 2].map((lastUsedAt) => ({ bytes: 10, lastUsedAt }));
    const order = (bytes: number, maxLoaded: number, maxBytes: number): readonly number[] =>
      whoBlocks(loaded, bytes, { maxLoaded, maxBytes }).map(({ lastUsedAt }) => lastUsedAt);
    assert.deepEqual(order(10, 4, 40), []);
    assert.deepEqual(order(11, 4, 40), [1, 2, 3]);
    assert.deepEqual(order(1, 3, 40), [1, 2, 3]);
    assert.deepEqual(whoBlocks([], 99, { maxLoaded: 0, maxBytes: 0 }), []);
    assert.ok(defaultRoom().maxLoaded >= 1 && defaultRoom().maxBytes > 2 ** 20);
  });
});

describe('models come and go', () => {
  test('a removed model is unknown at once; who is waiting for its answer gets it', async () => {
    const [a, b] = [file('a'), file('b')];
    const pool = new Pool([a, b], { idleUnloadMs: 40 });
    const held = await pool.hold('a');
    const provider = pool.engines.provider.forModel?.('a');
    pool.engines.replace([b]);
    assert.deepEqual(pool.engines.models(), [b]);
    await assert.rejects(async () => provider?.wake?.(), { code: 'model_not_found' });
    const answer = readAll(await held.response).catch(() => 'cut');
    await pool.call('b');
    await pool.told('engine_unloaded', 'b');
    assert.deepEqual(pool.events('engine_unloaded', 'a'), []);
    held.leave();
    assert.equal(await answer, 'cut');
    assert.equal((await pool.told('engine_unloaded', 'a'))['reason'], 'removed');
  });

  test('an added model is there for providers that were made before it', async () => {
    const pool = new Pool([]);
    const provider = pool.engines.provider.forModel?.('a');
    await assert.rejects(async () => provider?.wake?.(), /no local model "a"/);
    pool.engines.replace([file('a')]);
    await provider?.wake?.();
    assert.equal(pool.phase('a'), 'ready');
  });

  test('a model that is run in another way is started anew; an unchanged one is left alone', async () => {
    const [a, b] = [file('a'), file('b')];
    const pool = new Pool([a, b]);
    await pool.call('a');
    await pool.call('b');
    pool.engines.replace([{ ...a, settings: { context: 512 } }, b]);
    await pool.told('engine_unloaded', 'a');
    await pool.call('a');
    await pool.call('b');
    assert.equal(pool.events('engine_loading', 'a').length, 2);
    assert.equal(pool.events('engine_loading', 'b').length, 1);
  });

  test('after a change calls reach the new engine, though the old one answers on and keeps its connections', async () => {
    const a = file('a');
    const pool = new Pool([a], { hangMs: 8000 });
    const http = new HttpClient();
    after(() => http.close());
    const provider = pool.engines.provider.forModel?.('a');
    assert.ok(provider !== undefined);
    const endpoint = { ...provider.generate, path: '/who' };
    Object.defineProperty(endpoint, 'socketPath', { get: () => provider.generate.socketPath });
    const ask = async (): Promise<unknown> => {
      await provider.wake?.();
      const request = { endpoint, method: 'POST', headers: [], connectMs: 10_000 } as const;
      const answer = await requestWhole(http, request, { timeoutMs: 10_000, maxBytes: 1000 });
      return tryParseObject(answer.body)?.['pid'];
    };
    const held = await pool.hold('a');
    const before = await ask();
    assert.equal(await ask(), before);
    pool.engines.replace([{ ...a, settings: { context: 512 } }]);
    const now = await ask();
    assert.ok(typeof now === 'number' && now !== before);
    assert.equal(await ask(), now);
    assert.deepEqual(pool.events('engine_unloaded', 'a'), [], 'the old one still answers');
    held.leave();
    await pool.told('engine_unloaded', 'a');
    assert.equal(await ask(), now);
  });
});

describe('trouble', () => {
  test('F93 an engine without a heartbeat is ended, logged, and started again', async () => {
    const pool = new Pool([file('a', { script: { mute: true } }), file('b')], { hangMs: 4000 });
    const held = await pool.hold('a');
    await pool.call('b');
    await assert.rejects(readAll(await held.response));
    const { reason, restart_in_ms: restartInMs } = await pool.told('engine_failed', 'a');
    assert.match(String(reason), /engine of "a" gave no sign of life for 4000 ms and was ended/);
    assert.equal(restartInMs, 0);
    assert.equal(pool.phase('b'), 'ready');
    await pool.wake('a');
    await pool.told('engine_failed', 'a', 2);
    const refused = await pool.refusal('a');
    assert.match(refused.message, /no sign of life/);
    assert.ok(refused.retryAfterMs !== undefined && refused.retryAfterMs <= 500);
  });

  test('F93 native code that hangs while a call waits is ended', async () => {
    const pool = new Pool([file('a', { script: { stands: true } })], { hangMs: 4000 });
    await pool.call('a');
    const held = await pool.hold('a');
    await assert.rejects(readAll(await held.response));
    assert.match(String((await pool.told('engine_hung', 'a'))['wrong']), /computed no token/);
  });

  test('F93 a model that does not finish loading is reported with its progress, and ended', async () => {
    const slow = file('a', { script: { start: 'slow' } });
    const pool = new Pool([slow], { startWaitMs: 30, hangMs: 8000, loadLimitMs: 10_000 });
    pool.engines.prewarm('a');
    assert.equal((await pool.told('engine_loading', 'a', 2))['percent'], 40);
    const error = await pool.refusal('a');
    assert.equal(error.code, 'overloaded');
    assert.match(error.message, /"a" is still loading \(40 %\)/);
    assert.match(
      String((await pool.told('engine_failed', 'a'))['reason']),
      /finish loading in 10000 ms/,
    );
  });

  test('F93 what cannot start says why and leaves the others alone', async () => {
    const bad = file('bad', { script: { start: 'failed' } });
    const gone = file('gone', { script: { start: 'exit' } });
    const pool = new Pool([bad, gone, file('a')]);
    const [one, other] = await Promise.all([
      pool.refusal('bad'),
      pool.refusal('gone'),
      pool.call('a'),
    ]);
    assert.match(one.message, /It is not a model/);
    assert.match(other.message, /engine of "gone" ended unexpectedly \(code 7\)/);
    assert.equal(pool.phase('a'), 'ready');
  });

  test('an engine that lost its socket is ended: it cannot be reached', async () => {
    const pool = new Pool([file('a')], { hangMs: 4000 });
    await pool.call('a');
    rmSync(String(pool.engines.provider.forModel?.('a').generate.socketPath));
    assert.match(String((await pool.told('engine_failed', 'a'))['reason']), /lost its socket/);
    await pool.call('a');
  });

  test('after the stop nothing starts', async () => {
    const pool = new Pool([file('a'), file('b')]);
    await pool.call('a');
    const starting = assert.rejects(pool.wake('b'), /stopped/);
    await pool.engines.stop();
    await starting;
    assert.match((await pool.refusal('a')).message, /stopped/);
  });
});

describe('what a hang is', () => {
  const beat = (steps: number, computing: number): Parameters<Watch['beat']>[0] => ({
    served: 1,
    active: 1,
    stays: false,
    steps,
    computing,
  });

  test('missing answers, one after the other', () => {
    const watch = new Watch(40, 10);
    const silence = (): (string | undefined)[] => Array.from({ length: 5 }, () => watch.tick());
    assert.deepEqual(silence(), Array.from({ length: 5 }));
    assert.match(String(watch.tick()), /no sign of life for 40 ms/);
    watch.beat(beat(0, 0));
    assert.deepEqual(silence(), Array.from({ length: 5 }));
  });

  test('tokens that do not advance while a call waits, not while none does', () => {
    const watch = new Watch(30, 10);
    const see = (steps: number, computing: number): string | undefined =>
      watch.beat(beat(steps, computing));
    assert.deepEqual([see(1, 1), see(1, 1), see(1, 1)], Array.from({ length: 3 }));
    assert.deepEqual([see(2, 1), see(2, 0), see(2, 1)], Array.from({ length: 3 }));
    assert.match([see(2, 1), see(2, 1), see(2, 1)].join(''), /computed no token for 30 ms/);
  });
});
