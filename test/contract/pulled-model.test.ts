/** A model that is fetched beside a running gateway can be called at once, and is gone when removed. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { tryParse } from '../../src/json/parse.ts';
import { isObject } from '../../src/json/value.ts';
import { tinyModel } from '../../src/local-models/model-folder.ts';
import { startGateway } from '../../src/main.ts';
import type { RunningGateway } from '../../src/compose/start.ts';
import { temporaryFolder } from '../support/folders.ts';
import { listAt, objectAt, textAt } from '../support/reading.ts';
import { send, type Reply } from '../support/http.ts';
import { adminToken, clientKey } from '../support/keys.ts';
import { whenLoaded } from '../support/loaded.ts';
import { fileServer, sha256 } from '../unit/local-models/file-server.ts';
import { nodeEnvironment } from '../support/program.ts';

const root = join(import.meta.dirname, '../..');
const library = join(root, 'node_modules/node-llama-cpp/package.json');
const leftOut = existsSync(library)
  ? false
  : 'left out: the engine library (node-llama-cpp) is not installed for this platform';

interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

describe('§4 models beside a running gateway', () => {
  const directory = temporaryFolder('pulled');
  const env = { MODEL_GATEWAY_DATA_DIR: join(directory, 'data') };
  let gateway: RunningGateway;

  before(async () => {
    gateway = await startGateway({
      flags: { listen: '127.0.0.1:0', 'admin-listen': '127.0.0.1:0', 'log-level': 'silent' },
      env: { ...env, MODEL_GATEWAY_KEY: clientKey, MODEL_GATEWAY_ADMIN_TOKEN: adminToken },
      cwd: directory,
    });
  });
  after(() => gateway.stop());

  const command = async (...args: readonly string[]): Promise<Ran> => {
    const child = spawn(join(root, 'bin/model-gateway'), args, {
      cwd: directory,
      env: { ...nodeEnvironment, PATH: process.env['PATH'], ...env },
    });
    let [out, err] = ['', ''];
    child.stdout.on('data', (piece) => (out += String(piece)));
    child.stderr.on('data', (piece) => (err += String(piece)));
    const [code] = await once(child, 'close');
    return { code: Number(code), out, err };
  };

  const entry = (id: string): Promise<Reply> =>
    send(`${gateway.url}/v1/models/${encodeURIComponent(id)}`, undefined, {
      anonymous: true,
      headers: { authorization: `Bearer ${clientKey}` },
    });

  const ask = (model: string): Promise<Reply> =>
    whenLoaded(() =>
      send(`${gateway.url}/v1/chat/completions`, {
        model,
        messages: [{ role: 'user', content: 'Who are you?' }],
        temperature: 0,
        max_tokens: 16,
      }),
    );

  test('pull, list, call, remove, without a restart', { skip: leftOut }, async (t) => {
    const server = await fileServer(t);
    const content = readFileSync(tinyModel.path);
    server.serve('/Second-Q8_0.gguf', { content });
    assert.equal((await ask('local/second-q8_0')).status, 404);

    const pulled = await command('pull', `${server.url}/Second-Q8_0.gguf`, '--json');
    assert.equal(pulled.code, 0, pulled.err);
    const report = tryParse(pulled.out);
    assert.ok(isObject(report));
    assert.equal(report['id'], 'local/second-q8_0');
    assert.equal(report['sha256'], sha256(content));
    assert.equal(report['gateway'], 'knows it');

    const { json } = await entry('local/second-q8_0');
    assert.deepEqual([json['owned_by'], json['max_input_tokens']], ['local', 2048]);
    assert.deepEqual(objectAt(json, 'local'), {
      size_bytes: content.length,
      parameters: 2_152_480,
      quantization: 'Q8_0',
      architecture: 'llama',
      context: 2048,
      trained_context: 2048,
      chat_template: true,
      reasoning: 'none',
      parallel: 4,
      demonstration: false,
    });

    const answers = await Promise.all([ask('local/second-q8_0'), ask('local/tiny')]);
    const texts = answers.map((reply) => {
      assert.equal(reply.status, 200, reply.text);
      const [choice] = listAt(reply.json, 'choices');
      assert.ok(choice !== undefined);
      return textAt(objectAt(choice, 'message'), 'content');
    });
    assert.equal(texts[0], texts[1], 'the same file says the same under both names');

    const table = await command('models');
    assert.match(
      table.out,
      /local\/second-q8_0 +local\/second-q8_0 +healthy +2\.34 MB +2\.15M +2048 +Q8_0\n/,
    );

    const removed = await command('models', 'remove', 'second-q8_0');
    assert.deepEqual([removed.code, removed.out], [0, 'Removed local/second-q8_0 (2.34 MB).\n']);
    assert.equal((await ask('local/second-q8_0')).status, 404);
    assert.equal((await entry('local/second-q8_0')).status, 404);
  });

  test('a pull that is killed is gone on with by the next', async (t) => {
    const server = await fileServer(t);
    const content = readFileSync(tinyModel.path);
    // The server falls silent there.
    server.serve('/killed.gguf', { content, cuts: [500_000] });
    const part = join(env.MODEL_GATEWAY_DATA_DIR, 'models', 'killed.gguf.part');
    const child = spawn(
      join(root, 'bin/model-gateway'),
      ['pull', `${server.url}/killed.gguf`, '--sha256', sha256(content)],
      {
        cwd: directory,
        env: { ...nodeEnvironment, PATH: process.env['PATH'], ...env },
        stdio: 'ignore',
      },
    );
    while ((statSync(part, { throwIfNoEntry: false })?.size ?? 0) < 500_000) {
      assert.equal(child.exitCode, null, 'the pull ended by itself');
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    child.kill('SIGKILL');
    await once(child, 'close');
    const ran = await command('pull', `${server.url}/killed.gguf`, '--json');
    assert.equal(ran.code, 0, ran.err);
    assert.equal(server.asked.at(-1)?.range, 'bytes=500000-');
    assert.match(ran.out, new RegExp(sha256(content)));
  });

  test('the model that ships is marked', async () => {
    const { json } = await entry('local/tiny');
    assert.equal(json['display_name'], 'tiny (demonstration model)');
    assert.equal(json['max_input_tokens'], 2048);
    assert.equal(objectAt(json, 'local')['demonstration'], true);
  });

  test('a damaged file ends neither pull nor the gateway', async () => {
    const path = join(directory, 'damaged.gguf');
    writeFileSync(path, readFileSync(tinyModel.path).subarray(0, 20_000));
    const ran = await command('pull', path);
    assert.equal(ran.code, 1);
    assert.match(ran.err, /damaged|cut off/);
    assert.doesNotMatch(ran.err, / {4}at /, 'no stack');
    assert.equal((await entry('local/damaged')).status, 404);
  });

  test('a file that was put there by hand is found when models are asked for', async () => {
    writeFileSync(
      join(env.MODEL_GATEWAY_DATA_DIR, 'models', 'by-hand.gguf'),
      readFileSync(tinyModel.path),
    );
    writeFileSync(join(env.MODEL_GATEWAY_DATA_DIR, 'models', 'foreign.gguf'), 'PK');
    const ran = await command('models', '--json');
    const models = tryParse(ran.out);
    assert.ok(Array.isArray(models));
    assert.ok(models.some((model) => isObject(model) && model['id'] === 'local/by-hand'));
    assert.match(ran.err, /left out: foreign.gguf is not a GGUF file/);
    assert.equal((await entry('local/by-hand')).status, 200);
  });
});
