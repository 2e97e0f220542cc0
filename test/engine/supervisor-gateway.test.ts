/** What callers of the gateway see of an engine that starts, dies, or is not asked. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import type { JsonObject } from '../../src/json/value.ts';
import { legalFrames } from '../faults/stream-pieces.ts';
import { startTestGateway } from '../support/gateway.ts';
import { type ClientDialect, clientDialects } from '../support/dialects.ts';
import { send, type Reply } from '../support/http.ts';
import { whenLoaded } from '../support/loaded.ts';
import { assertErrorBody } from '../support/legality.ts';
import { endingOf, framesOf, readDocument, readStream, streamError } from '../support/reading.ts';
import { endpointOf, requestBody } from '../support/requests.ts';
import { ask as askOnce, startRig, type Rig } from '../support/rig.ts';
import { reasonToSkip } from './engine-client.ts';
import { computes, enginePids, environmentOf } from './engine-processes.ts';

const skip =
  process.platform === 'linux' ? await reasonToSkip() : 'left out: it looks for processes in /proc';
const model = 'local/tiny';
const ask: typeof askOnce = (...call) => whenLoaded(() => askOnce(...call));

/** A list that the model cannot end before it has 1500 tokens, whatever it would like to say. */
const longList = {
  type: 'object',
  properties: { words: { type: 'array', items: { enum: ['no'] }, minItems: 500 } },
  required: ['words'],
  additionalProperties: false,
};

/** Asks for an answer that goes on until something ends it. */
function longBody(dialect: ClientDialect, more: JsonObject = {}): JsonObject {
  const named = { name: 'list', schema: longList };
  const format: { readonly [D in ClientDialect]: JsonObject } = {
    chat: { response_format: { type: 'json_schema', json_schema: named } },
    messages: { output_config: { format: { type: 'json_schema', schema: longList } } },
    responses: { text: { format: { type: 'json_schema', ...named } } },
  };
  return requestBody(dialect, {
    model,
    stream: true,
    more: { temperature: 0, max_tokens: 1500, ...format[dialect], ...more },
  });
}

function without(body: JsonObject, ...names: readonly string[]): JsonObject {
  return Object.fromEntries(Object.entries(body).filter(([name]) => !names.includes(name)));
}

function onlyEngine(): number {
  const [pid, ...others] = enginePids();
  assert.ok(pid !== undefined && others.length === 0, `${others.length} more`);
  return pid;
}

/** Until the gateway has seen its end, too: who waits for a process takes it out of the list. */
async function gone(pid: number): Promise<void> {
  while (existsSync(`/proc/${pid}`)) await new Promise((resolve) => setTimeout(resolve, 5));
}

/** Sends and does something as soon as the first words are there. */
function askAndThen(rig: Rig, dialect: ClientDialect, act: () => void): Promise<Reply> {
  let text = '';
  let done = false;
  return ask(rig, dialect, longBody(dialect), {
    onData: (chunk) => {
      text += chunk.toString('utf8');
      if (done || !/"(content|text|delta)":"[^"]+"/.test(text)) return;
      done = true;
      act();
    },
  });
}

/** Each starts an engine anew. The engine speaks chat: one is relayed to it, one translated. */
const documents = ['chat', 'responses'] as const;
const stopped = ['messages', 'responses'] as const;

describe('the engine dies', { skip }, () => {
  let rig: Rig;
  beforeEach(async () => {
    rig = await startRig();
  });
  afterEach(() => rig.stop());

  for (const dialect of clientDialects) {
    test(`F93 E4 kill -9 in the middle of a ${dialect} stream: an error, no success, and the next call works`, async () => {
      const frames = legalFrames('chat');
      const gate = Promise.withResolvers<void>();
      const begun = Promise.withResolvers<void>();
      const foreign = rig.play('chat', {
        body: [frames.slice(0, 2).join(''), gate.promise, frames.slice(2).join('')],
      });
      const other = ask(
        rig,
        dialect,
        requestBody(dialect, { model: foreign.model, stream: true }),
        {
          onData: () => begun.resolve(),
        },
      );
      await begun.promise;
      let killed = 0;
      const cut = await askAndThen(rig, dialect, () => {
        killed = onlyEngine();
        process.kill(killed, 'SIGKILL');
      });
      assert.equal(cut.status, 200);
      assert.equal(endingOf(dialect, cut.text), 'error', cut.text.slice(-300));
      const error = streamError(cut.text);
      assert.equal(error['type'], dialect === 'messages' ? 'api_error' : 'server_error');
      const row = await rig.gateway.callRow(String(cut.headers['x-request-id']));
      assert.equal(row['outcome'], 'failed');
      gate.resolve();
      assert.equal(endingOf(dialect, (await other).text), 'proper');
      await gone(killed);
      const next = await ask(rig, dialect, requestBody(dialect, { model, stream: false }));
      assert.equal(next.status, 200, next.text);
      assert.ok(readDocument(dialect, next.json).text.length > 0);
    });
  }

  for (const dialect of documents) {
    test(`F93 kill -9 under a ${dialect} document: asked again of a new engine`, async () => {
      await ask(rig, dialect, requestBody(dialect, { model, stream: false }));
      const pid = onlyEngine();
      const reply = ask(rig, dialect, without(longBody(dialect), 'stream', 'stream_options'));
      await computes(pid);
      process.kill(pid, 'SIGKILL');
      const { status, json, headers } = await reply;
      assert.equal(status, 200);
      assert.ok(readDocument(dialect, json).text.length > 0);
      // Nothing of it was sent yet (R2); E11 would follow when the new engine died too.
      assert.equal(headers['x-gateway-attempts'], '2');
      const row = await rig.gateway.callRow(String(headers['x-request-id']));
      assert.equal(row['outcome'], 'ok');
      assert.notEqual(onlyEngine(), pid);
    });
  }
});

describe('the engine hangs', { skip }, () => {
  for (const dialect of stopped) {
    test(`F93 a stopped engine under a ${dialect} stream: an error in time, and the next call works`, async () => {
      const rig = await startRig({ local: { hang: '6s' } });
      const cut = await askAndThen(rig, dialect, () => process.kill(onlyEngine(), 'SIGSTOP'));
      assert.equal(endingOf(dialect, cut.text), 'error', cut.text.slice(-300));
      const row = await rig.gateway.callRow(String(cut.headers['x-request-id']));
      assert.equal(row['outcome'], 'failed');
      for (const pid of enginePids()) await gone(pid);
      const next = await ask(rig, dialect, requestBody(dialect, { model, stream: false }));
      assert.equal(next.status, 200, next.text);
      await rig.stop();
    });
  }
});

describe('nobody asks for it', { skip }, () => {
  let rig: Rig;
  before(async () => {
    rig = await startRig(({ chat }) => ({
      models: {
        failing: { targets: ['up-chat/down', 'up-messages/down'] },
        // Of its own: what fails five times is not asked any more.
        last: { targets: ['up-chat/down-too', model] },
        nowhere: { targets: ['closed/any'] },
      },
      providers: {
        closed: { dialect: 'openai-chat', base_url: 'http://127.0.0.1:9/v1', api_key: 'any' },
        again: {
          dialect: 'openai-chat',
          base_url: `http://127.0.0.1:${chat.port}/v1`,
          api_key: 'any',
        },
      },
    }));
    const down = { status: 503, body: '{"error":{"message":"down"}}' };
    rig.upstreams.chat.script('down', down);
    rig.upstreams.chat.script('down-too', down);
    rig.upstreams.messages.script('down', down);
  });
  after(() => rig.stop());

  test('local/tiny is no silent fallback: what fails elsewhere fails, and no engine is started', async () => {
    const names = ['failing', 'nowhere', 'up-chat/down', 'again/down', 'down', 'default', 'gpt-5'];
    for (const dialect of clientDialects) {
      for (const name of names) {
        for (const stream of [false, true]) {
          const reply = await ask(rig, dialect, requestBody(dialect, { model: name, stream }));
          assert.ok(reply.status >= 400, `${name}: ${reply.text}`);
          assertErrorBody(dialect, reply.json);
          assert.ok(!String(reply.headers['x-gateway-target']).startsWith('local/'), name);
        }
      }
    }
    assert.deepEqual(enginePids(), []);
  });

  test('a route that lists it reaches it behind those that failed, and says so', async () => {
    for (const dialect of clientDialects) {
      const reply = await ask(rig, dialect, requestBody(dialect, { model: 'last', stream: false }));
      assert.equal(reply.status, 200, reply.text);
      assert.equal(reply.headers['x-gateway-target'], model);
      assert.equal(reply.headers['x-gateway-attempts'], '2');
    }
  });
});

describe('start and stop', { skip }, () => {
  test('S25 of everything in the environment of the gateway the engine gets what it needs by name', async () => {
    const canaries = [
      'OPENAI_API_KEY',
      'ANTHROPIC_API_KEY',
      'GEMINI_API_KEY',
      'AWS_SECRET_ACCESS_KEY',
      'HF_TOKEN',
      'MODEL_GATEWAY_KEY',
      'MODEL_GATEWAY_ADMIN_TOKEN',
      'NODE_OPTIONS_CANARY',
      'HTTPS_PROXY',
      'CANARY',
    ];
    const before = { ...process.env };
    for (const name of canaries) process.env[name] = `canary-${name}`;
    const gateway = await startTestGateway({});
    try {
      const body = requestBody('chat', { model, stream: false });
      const reply = await whenLoaded(() => send(gateway.url + endpointOf.chat, body));
      assert.equal(reply.status, 200, reply.text);
      const environment = environmentOf(onlyEngine());
      assert.deepEqual(
        environment.filter((entry) => entry.includes('canary-')),
        [],
      );
      const needed =
        /^(PATH|HOME|TMPDIR|TEMP|TMP|LANG|LC_\w+|TZ|LD_LIBRARY_PATH|OMP_NUM_THREADS|NODE_LLAMA_CPP_LOG_LEVEL|NODE_CHANNEL_\w+)=/;
      assert.deepEqual(
        environment.filter((entry) => !needed.test(entry)),
        [],
      );
    } finally {
      for (const name of canaries) {
        if (before[name] === undefined) delete process.env[name];
        else process.env[name] = before[name];
      }
      await gateway.stop();
    }
  });

  test('two gateways run the same model file; the end of one engine is not the end of the other', async () => {
    const gateways = [await startTestGateway({}), await startTestGateway({})] as const;
    const answers = async (): Promise<readonly string[]> => {
      const body = requestBody('chat', { model, stream: false, more: { temperature: 0 } });
      const replies = await Promise.all(
        gateways.map(({ url }) => send(url + endpointOf.chat, body)),
      );
      return replies.map(({ json }) => readDocument('chat', json).text);
    };
    const [one, other] = await answers();
    assert.ok(one !== undefined && one !== '' && one === other);
    const [pid] = enginePids();
    assert.ok(pid !== undefined && enginePids().length === 2);
    process.kill(pid, 'SIGKILL');
    await gone(pid);
    assert.equal(enginePids().length, 1);
    assert.deepEqual(await answers(), [one, one]);
    await Promise.all(gateways.map((gateway) => gateway.stop()));
    assert.deepEqual(enginePids(), []);
  });

  test('G14 a stop lets the engine finish what it answers, then ends it', async () => {
    for (const dialect of clientDialects) {
      const gateway = await startTestGateway({});
      const begun = Promise.withResolvers<void>();
      const reply = send(
        gateway.url + endpointOf[dialect],
        longBody(dialect, { max_tokens: 300 }),
        {
          onData: () => begun.resolve(),
        },
      );
      await begun.promise;
      const pid = onlyEngine();
      await gateway.stop();
      const { text } = await reply;
      assert.equal(endingOf(dialect, text), 'proper', text.slice(-300));
      assert.equal(readStream(dialect, text).usage?.output, 300);
      assert.ok(framesOf(text).length > 10);
      assert.deepEqual(enginePids(), []);
      assert.throws(() => process.kill(pid, 0), { code: 'ESRCH' });
    }
  });
});
