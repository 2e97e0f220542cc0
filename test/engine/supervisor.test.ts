/** The engine's process: start, failure, crash, end. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { describe, test } from 'node:test';
import { GatewayError } from '../../src/core/errors.ts';
import { tryParse } from '../../src/json/parse.ts';
import { isObject } from '../../src/json/value.ts';
import { tinyModel } from '../../src/local-models/model-folder.ts';
import { createLocalEngine, type LocalEngine } from '../../src/providers/local.ts';
import { testsOf } from '../support/depth.ts';
import { temporaryFolder } from '../support/folders.ts';
import {
  clock,
  endlessBody,
  firstText,
  EngineClient,
  memoryLog,
  messageOf,
  patient,
  readAll,
  reasonToSkip,
  tinyEngine,
  waitForText,
} from './engine-client.ts';

const skip = await reasonToSkip();
const folder = temporaryFolder('engine-test');

async function failure(engine: LocalEngine): Promise<GatewayError> {
  try {
    await engine.ready();
  } catch (error) {
    assert.ok(error instanceof GatewayError);
    return error;
  }
  return assert.fail('the engine started');
}

async function assertFails(modelPath: string, reason: RegExp, sha256?: string): Promise<void> {
  const shared = { modelPath, clock, log: memoryLog().log, ...patient };
  const engine = createLocalEngine(sha256 === undefined ? shared : { ...shared, sha256 });
  const error = await failure(engine);
  assert.equal(error.code, 'upstream_unavailable');
  assert.match(error.message, reason);
  assert.ok(!error.message.includes(folder), 'paths are not for callers');
  assert.deepEqual(engine.status(), { phase: 'failed', reason: error.message });
  await engine.stop();
}

describe('files', () => {
  test('F93 a missing model file is reported', () =>
    assertFails(join(folder, 'none.gguf'), /none\.gguf cannot be read/));

  test('F93 a file that is no model is told', () => {
    const path = join(folder, 'text.gguf');
    writeFileSync(path, 'this is text');
    return assertFails(path, /text\.gguf is not a GGUF model/);
  });

  test('S25 a model with another hash is refused', () =>
    assertFails(tinyModel.path, /damaged/, '0'.repeat(64)));

  test('F93 a cut model file is reported', { skip }, () => {
    const path = join(folder, 'cut.gguf');
    writeFileSync(path, readFileSync(tinyModel.path).subarray(0, 300_000));
    return assertFails(path, /cut\.gguf could not be loaded/);
  });

  test('without the library the engine says what to install', async () => {
    const copy = join(folder, 'engine');
    cpSync(join(import.meta.dirname, '..', '..', 'src', 'engine'), copy, { recursive: true });
    const flags = ['--socket', join(folder, 'engine.sock'), '--model', tinyModel.path];
    const child = spawn(process.execPath, [join(copy, 'main.ts'), ...flags], {
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    });
    const [message] = await once(child, 'message');
    assert.equal(isObject(message) && message['state'], 'failed');
    assert.match(String(isObject(message) && message['reason']), /npm install node-llama-cpp/);
    const health = await new EngineClient(join(folder, 'engine.sock')).call('/health');
    assert.equal(health.status, 503);
    assert.equal(health.body['status'], 'failed');
    const exit = once(child, 'exit');
    child.disconnect();
    await exit;
  });
});

/** Of `npm test`, and of the rest: each starts an engine or two. */
const [shortTest, restTest] = [testsOf(true), testsOf(false)];

describe('process', { skip }, () => {
  shortTest(
    'S25 no secret of the gateway is in its environment, and its socket is private',
    async () => {
      process.env['OPENAI_API_KEY'] = 'sk-a-secret';
      const { log, entries } = memoryLog();
      const engine = createLocalEngine({ modelPath: tinyModel.path, clock, log, ...patient });
      await engine.ready();
      assert.ok(engine.socketPath.length <= 100);
      assert.equal(statSync(dirname(engine.socketPath)).mode & 0o777, 0o700);
      if (process.platform === 'linux') {
        const pid = entries.find((entry) => entry.event === 'engine_ready')?.['pid'];
        assert.ok(!readFileSync(`/proc/${String(pid)}/environ`, 'utf8').includes('sk-a-secret'));
      }
      await engine.stop();
      assert.ok(!existsSync(dirname(engine.socketPath)));
      assert.equal(engine.status().phase, 'stopped');
      assert.match((await failure(engine)).message, /stopped/);
    },
  );

  shortTest('F93 a call does not wait for a slow start: it gets a retry-after', async () => {
    const { log } = memoryLog();
    const engine = createLocalEngine({ modelPath: tinyModel.path, clock, log, startWaitMs: 0 });
    const error = await failure(engine);
    assert.equal(error.code, 'overloaded');
    assert.equal(error.retryAfterMs, 5000);
    assert.equal(engine.status().phase, 'starting');
    await engine.stop();
  });

  shortTest(
    'F93 an engine that is killed cuts its streams, starts again, and backs off when it dies again',
    async () => {
      const { log, entries } = memoryLog();
      const engine = createLocalEngine({ modelPath: tinyModel.path, clock, log, ...patient });
      const client = new EngineClient(engine.socketPath);
      const kill = async (): Promise<void> => {
        await engine.ready();
        const pid = entries.findLast((entry) => entry.event === 'engine_ready')?.['pid'];
        const open = client.open('/v1/chat/completions', endlessBody({ stream: true }));
        const response = await open.response;
        await waitForText(response, firstText);
        process.kill(Number(pid), 'SIGKILL');
        await assert.rejects(readAll(response));
        while (engine.status().phase === 'ready') await new Promise(setImmediate);
        assert.match(engine.status().reason ?? '', /SIGKILL/);
      };
      await kill();
      await engine.ready();
      assert.match(String(messageOf(await client.chat('Who are you?'))['content']), /Tiny/);
      await kill();
      const error = await failure(engine);
      assert.equal(error.code, 'upstream_unavailable');
      assert.ok(error.retryAfterMs !== undefined && error.retryAfterMs <= 500);
      await engine.stop();
    },
  );

  restTest('an engine ends with its parent, also in the middle of an answer', async () => {
    const parent = spawn(process.execPath, [join(import.meta.dirname, 'parent.ts')], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [line] = await once(createInterface({ input: parent.stdout }), 'line');
    const socketPath = String(tryParse(String(line)));
    const client = new EngineClient(socketPath);
    const open = client.open('/v1/chat/completions', endlessBody({ stream: true }));
    const response = await open.response;
    await waitForText(response, firstText);
    parent.kill('SIGKILL');
    await assert.rejects(readAll(response));
    assert.ok(!existsSync(dirname(socketPath)));
  });

  restTest('signals to the group leave the engine to its parent', async (t) => {
    if (process.platform === 'win32') return t.skip('Windows has no groups of processes');
    const { log, entries } = memoryLog();
    const engine = createLocalEngine({ modelPath: tinyModel.path, clock, log, ...patient });
    await engine.ready();
    const pid = Number(entries.find((entry) => entry.event === 'engine_ready')?.['pid']);
    process.kill(pid, 'SIGINT');
    process.kill(pid, 'SIGTERM');
    assert.equal((await new EngineClient(engine.socketPath).chat('Hello')).status, 200);
    await engine.stop();
  });

  restTest('two engines run side by side', async () => {
    const engines = [tinyEngine(), tinyEngine()];
    await Promise.all(engines.map((engine) => engine.ready()));
    const answers = await Promise.all(
      engines.map((engine) => new EngineClient(engine.socketPath).chat('Who are you?')),
    );
    assert.deepEqual(messageOf(at(answers, 0)), messageOf(at(answers, 1)));
    await Promise.all(engines.map((engine) => engine.stop()));
  });
});

function at<T>(list: readonly T[], index: number): T {
  const item = list[index];
  assert.ok(item !== undefined);
  return item;
}
