/** The stop of a gateway process (G14) as clients, balancers and the ledger see it. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, before, describe, test } from 'node:test';
import type { JsonObject } from '../../src/json/value.ts';
import { Instance } from '../cluster/instance.ts';
import { legalFrames, text } from '../faults/stream-pieces.ts';
import { send, type Reply } from '../support/http.ts';
import { until } from '../support/postgres-store.ts';
import { clientDialects, type ClientDialect } from '../support/dialects.ts';
import { endingOf, readStream, streamError } from '../support/reading.ts';
import { endpointOf, requestBody } from '../support/requests.ts';
import { ScriptedUpstream } from '../upstream/scripted.ts';

let upstream: ScriptedUpstream;
before(async () => {
  upstream = await ScriptedUpstream.start();
});
after(() => upstream.close());

interface Stage {
  readonly instance: Instance;
  readonly key: string;
  /** Each call has an Idempotency-Key of its own. */
  readonly once?: true;
}

async function started(drain: JsonObject): Promise<Stage> {
  const instance = await Instance.start({ storage: 'sqlite', upstream: upstream.port, drain });
  const { key } = await instance.makeKey();
  return { instance, key };
}

interface Open {
  readonly dialect: ClientDialect;
  readonly reply: Promise<Reply>;
}

let models = 0;

/** One stream of each dialect, each with its first content; they go on when `gate` opens. */
async function openStreams(stage: Stage, gate: Promise<void>): Promise<readonly Open[]> {
  const frames = legalFrames('chat');
  return Promise.all(
    clientDialects.map(async (dialect): Promise<Open> => {
      models += 1;
      const model = `drained-${models}`;
      upstream.script(model, {
        body: [frames.slice(0, 2).join(''), gate, frames.slice(2).join('')],
      });
      const begun = Promise.withResolvers<void>();
      const body = requestBody(dialect, { model: `up/${model}`, stream: true });
      const reply = call(stage, dialect, body, () => begun.resolve());
      await Promise.race([begun.promise, reply]);
      return { dialect, reply };
    }),
  );
}

function call(
  { instance, key, once: isOnce }: Stage,
  dialect: ClientDialect,
  body: JsonObject,
  onData: () => void = () => undefined,
): Promise<Reply> {
  const headers = {
    authorization: `Bearer ${key}`,
    connection: 'keep-alive',
    ...(isOnce ? { 'idempotency-key': String(body['model']) } : {}),
  };
  return send(instance.url + endpointOf[dialect], body, { headers, onData });
}

/** How each call ended, as the ledger has it on disk. */
function outcomes({ instance }: Stage): readonly string[] {
  const db = new DatabaseSync(join(instance.directory, 'data', 'gateway.db'), { readOnly: true });
  try {
    const open = db.prepare('SELECT count(*) AS open FROM open_calls').get();
    assert.equal(open?.['open'], 0);
    const rows = db.prepare('SELECT outcome, error FROM calls ORDER BY id').all();
    return rows.map((row) => `${String(row['outcome'])} ${String(row['error'])}`);
  } finally {
    db.close();
  }
}

async function accepts(url: string): Promise<boolean> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

/** The error of a stream that a stop cuts, in each client's dialect. */
const cut: {
  readonly [D in ClientDialect]: { readonly type: string; readonly code: string | undefined };
} = {
  chat: { type: 'service_unavailable_error', code: 'shutting_down' },
  messages: { type: 'overloaded_error', code: undefined },
  responses: { type: 'service_unavailable_error', code: 'shutting_down' },
};

async function assertCut(streams: readonly Open[]): Promise<void> {
  for (const { dialect, reply } of streams) {
    const { text: sent, complete } = await reply;
    assert.equal(endingOf(dialect, sent), 'error', sent);
    const { type, code } = streamError(sent);
    assert.deepEqual({ type, code }, cut[dialect], sent);
    // Codex decides by this code whether to ask again.
    if (dialect === 'responses') assert.match(sent, /"error":\{"code":"server_is_overloaded"/);
    assert.equal(complete, true);
  }
}

describe('G14 SIGTERM', { timeout: 500_000 }, () => {
  test('refuses readiness at once, serves for a while, and finishes what runs', async () => {
    const stage = await started({ wait: '10s', limit: '5m' });
    const { instance } = stage;
    assert.equal(await instance.ready(), 200);
    const short = 'short';
    upstream.script(short, { body: legalFrames('chat').join(''), framing: 'chunked' });
    const body = requestBody('chat', { model: `up/${short}`, stream: true });
    assert.equal((await call(stage, 'chat', body)).headers.connection, 'keep-alive');

    const gate = Promise.withResolvers<void>();
    const streams = await openStreams(stage, gate.promise);
    instance.signal('SIGTERM');
    await until(async () => (await instance.ready()) === 503, 'it says that it drains');
    const late = await call(stage, 'chat', body);
    assert.equal(readStream('chat', late.text).text, text);
    assert.equal(late.headers.connection, 'close');

    await until(async () => !(await accepts(instance.url)), 'it takes no more connections');
    assert.equal(instance.running, true);
    gate.resolve();
    for (const { dialect, reply } of streams) {
      const { text: sent } = await reply;
      assert.equal(endingOf(dialect, sent), 'proper');
      assert.equal(readStream(dialect, sent).text, text);
    }
    assert.equal(await instance.stop(), 0);
    assert.deepEqual(outcomes(stage), Array(5).fill('ok null'));
  });

  for (const [kind, more] of [
    ['streams', {}],
    ['streams with an Idempotency-Key', { once: true }],
  ] as const) {
    test(`F80 ${kind} that run longer than the limit end in an error, and are settled`, async () => {
      const stage = { ...(await started({ wait: '0s', limit: '300ms' })), ...more };
      const streams = await openStreams(stage, new Promise(() => undefined));
      stage.instance.signal('SIGTERM');
      await assertCut(streams);
      assert.equal(await stage.instance.stop(), 0);
      assert.deepEqual(outcomes(stage), Array(3).fill('failed shutting_down'));
    });
  }

  for (const how of ['waits for it', 'a second one does not']) {
    test(`F73 a stream that is read on without its client costs what it costs: ${how}`, async () => {
      const base_url = `http://127.0.0.1:${upstream.port}/v1`;
      const up = { dialect: 'openai-chat', base_url, api_key: 'k', on_abort: 'drain' };
      const drain = { wait: '0s', limit: '1m' };
      const config = { providers: { up } };
      const options = { storage: 'sqlite', upstream: upstream.port, drain, config };
      const instance = await Instance.start(options);
      const { key } = await instance.makeKey();
      const gate = Promise.withResolvers<void>();
      const frames = legalFrames('chat');
      const script = upstream.script('left', {
        body: [frames.slice(0, 2).join(''), gate.promise, frames.slice(2).join('')],
      });
      const left = new AbortController();
      const body = requestBody('chat', { model: 'up/left', stream: true });
      const headers = { authorization: `Bearer ${key}` };
      const onData = (): void => left.abort();
      const sending = { headers, onData, signal: left.signal };
      await send(instance.url + endpointOf.chat, body, sending).catch(() => undefined);
      await until(async () => {
        const status = await instance.admin('GET', '/api/status');
        return status.json['live_calls'] === 1;
      }, 'it runs');
      instance.signal('SIGTERM');
      await until(async () => !(await accepts(instance.url)), 'it takes no more connections');
      if (how === 'waits for it') gate.resolve();
      else instance.signal('SIGTERM');
      assert.equal(await instance.stop(), 0);
      const closedBy = await (await script.request(0)).closed;
      assert.deepEqual(outcomes({ instance, key }), ['canceled canceled']);
      const db = new DatabaseSync(join(instance.directory, 'data', 'gateway.db'), {
        readOnly: true,
      });
      const row = db.prepare('SELECT usage_source FROM calls').get();
      db.close();
      const isWhole = how === 'waits for it';
      assert.equal(row?.['usage_source'], isWhole ? 'reported' : 'estimated', closedBy);
    });
  }

  for (const phase of ['while it still serves', 'while it waits for what runs'] as const) {
    test(`a second one ${phase} cuts at once`, async () => {
      const wait = phase === 'while it still serves' ? '1h' : '0s';
      const stage = await started({ wait, limit: '1h' });
      const { instance } = stage;
      const streams = await openStreams(stage, new Promise(() => undefined));
      instance.signal('SIGTERM');
      await until(
        async () =>
          wait === '1h' ? (await instance.ready()) === 503 : !(await accepts(instance.url)),
        'it drains',
      );
      instance.signal('SIGTERM');
      await assertCut(streams);
      assert.equal(await instance.stop(), 0);
      assert.deepEqual(outcomes(stage), Array(3).fill('failed shutting_down'));
    });
  }

  test('Ctrl-C waits for no balancer', async () => {
    const stage = await started({ wait: '1h' });
    stage.instance.signal('SIGINT');
    await until(() => !stage.instance.running, 'it has ended');
    assert.equal(await stage.instance.stop(), 0);
  });
});
