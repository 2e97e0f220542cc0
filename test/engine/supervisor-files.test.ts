/** Real engines that hang, and files that are no models: reported, without an effect on other calls. */
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { GatewayError } from '../../src/core/errors.ts';
import { openaiChatUpstream } from '../../src/dialects/openai-chat/upstream.ts';
import type { LocalModelFile } from '../../src/local-models/model-file.ts';
import { tinyModel } from '../../src/local-models/model-folder.ts';
import { createLocalEngines, type LocalEngines } from '../../src/providers/local.ts';
import { temporaryFolder } from '../support/folders.ts';
import {
  clock,
  endlessBody,
  EngineClient,
  firstText,
  memoryLog,
  messageOf,
  patient,
  readAll,
  reasonToSkip,
  waitForText,
} from './engine-client.ts';

const skip = await reasonToSkip();
const folder = temporaryFolder('files-test');
const { log, entries } = memoryLog();

function copyOfTiny(name: string): LocalModelFile {
  return { name, path: tinyModel.path, bytes: tinyModel.bytes, settings: {} };
}

function engines(models: readonly LocalModelFile[], hangMs: number): LocalEngines {
  return createLocalEngines({
    models,
    log,
    clock,
    dialect: openaiChatUpstream,
    limits: { hangMs, ...patient },
  });
}

async function clientOf(local: LocalEngines, name: string): Promise<EngineClient> {
  const provider = local.provider.forModel?.(name);
  await provider?.wake?.();
  return new EngineClient(String(provider?.generate.socketPath));
}

describe('a hang', { skip: process.platform === 'win32' ? 'no SIGSTOP there' : skip }, () => {
  test('F93 a stopped engine is ended, its callers get errors, another model answers meanwhile', async () => {
    const local = engines([copyOfTiny('one'), copyOfTiny('other')], 6000);
    const one = await clientOf(local, 'one');
    const other = await clientOf(local, 'other');
    const response = await one.open(
      '/v1/chat/completions',
      endlessBody({ model: 'one', stream: true }),
    ).response;
    await waitForText(response, firstText);
    const pid = entries.find(({ event, model }) => event === 'engine_ready' && model === 'one')?.[
      'pid'
    ];
    process.kill(Number(pid), 'SIGSTOP');
    const rest = assert.rejects(readAll(response));
    const answer = await other.chat('Who are you?', { model: 'other' });
    assert.match(String(messageOf(answer)['content']), /Tiny/);
    await rest;
    while (local.status()[0]?.phase === 'ready') await new Promise(setImmediate);
    assert.match(local.status()[0]?.reason ?? '', /"one" gave no sign of life/);
    const again = await clientOf(local, 'one');
    assert.match(
      String(messageOf(await again.chat('Who are you?', { model: 'one' }))['content']),
      /Tiny/,
    );
    await local.stop();
  });
});

/** Whole but for what is changed. */
function changed(change: (bytes: Buffer) => Buffer): () => Buffer {
  return () => change(Buffer.from(readFileSync(tinyModel.path)));
}

function overwritten(at: number, bytes: Buffer): () => Buffer {
  return changed((all) => {
    bytes.copy(all, at);
    return all;
  });
}

const u64max = Buffer.alloc(8, 0xff);
/** magic, version, tensor count, count of key-value pairs, then the pairs. */
const foreign: { readonly [name: string]: () => Buffer } = {
  empty: () => Buffer.alloc(0),
  'magic-only': () => Buffer.from('GGUF'),
  'magic-and-zeros': () => Buffer.concat([Buffer.from('GGUF'), Buffer.alloc(4096)]),
  'magic-and-noise': () =>
    Buffer.concat([
      Buffer.from('GGUF'),
      Buffer.from(Array.from({ length: 4096 }, (_, i) => (i * 151) % 256)),
    ]),
  page: () => Buffer.from('<!doctype html><title>Not found</title>'),
  'other-version': overwritten(4, Buffer.from([99, 0, 0, 0])),
  'endless-tensors': overwritten(8, u64max),
  'endless-pairs': overwritten(16, u64max),
  'endless-key': overwritten(24, u64max),
  'cut-in-header': changed((all) => all.subarray(0, 5000)),
  'cut-in-tensors': changed((all) => all.subarray(0, all.length - 1000)),
  'torn-header': changed((all) => all.fill(0x5a, 200, 3000)),
};

describe('files that are no models', { skip }, () => {
  const names = Object.keys(foreign);
  let local: LocalEngines;
  before(() => {
    const bad = names.map((name) => {
      const path = join(folder, `${name}.gguf`);
      const bytes = foreign[name]?.() ?? Buffer.alloc(0);
      writeFileSync(path, bytes);
      return { name, path, bytes: bytes.length, settings: {} };
    });
    mkdirSync(join(folder, 'folder.gguf'));
    const strange = { name: 'folder', path: join(folder, 'folder.gguf'), bytes: 0, settings: {} };
    local = engines([copyOfTiny('good'), ...bad, strange], 60_000);
  });
  after(() => local.stop());

  for (const name of [...names, 'folder']) {
    test(`F93 ${name}: a clear error, and the others continue`, async () => {
      const error = await clientOf(local, name).catch((thrown: unknown) => thrown);
      assert.ok(error instanceof GatewayError, 'it was loaded');
      assert.equal(error.code, 'upstream_unavailable');
      assert.match(error.message, /model file|GGUF|local engine/);
      assert.ok(!error.message.includes(folder), error.message);
      const good = await clientOf(local, 'good');
      assert.equal((await good.chat('Hello', { model: 'good' })).status, 200);
    });
  }
});
