/**
 * R2–R4, G12: what is asked again, how often and where. Backoffs take no time here (`random` is 0);
 * every test has a provider of its own, since the retry budget is counted per provider.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { JsonObject } from '../../src/json/value.ts';
import { clientDialects, upstreamDialects, type UpstreamDialect } from '../support/dialects.ts';
import {
  endingOf,
  listAt,
  numberAt,
  objectAt,
  readDocument,
  readStream,
  type AnyDialect,
} from '../support/reading.ts';
import { adminToken } from '../support/keys.ts';
import { ask, startRig, type Rig } from '../support/rig.ts';
import { providerAt } from '../support/gateway.ts';
import { requestBody } from '../support/requests.ts';
import type { Reply } from '../support/http.ts';
import { chatError, chatFrame } from '../upstream/chat.ts';
import { blockStart, messagesError, messagesFrame, messageStart } from '../upstream/messages.ts';
import { answerIn, errorIn } from '../upstream/reply.ts';
import { wantsStream, type Answer, type Script, type Scripted } from '../upstream/scripted.ts';
import { begun } from './stream-pieces.ts';

const providers = 160;
const text = 'Back again.';
let rig: Rig;
let used = 0;

before(async () => {
  rig = await startRig(
    (upstreams) => ({
      providers: Object.fromEntries(
        Array.from({ length: providers }, (_, index) =>
          upstreamDialects.map((upstream): [string, JsonObject] => [
            `${upstream}-${index + 1}`,
            providerAt(upstream, upstreams[upstream].port),
          ]),
        ).flat(),
      ),
      models: Object.fromEntries(
        Array.from({ length: providers }, (_, index): [string, JsonObject][] => [
          [`pair-${index + 1}`, { targets: [`chat-${index + 1}/a`, `messages-${index + 1}/b`] }],
          [`only-${index + 1}`, { targets: [`chat-${index + 1}/m-${index + 1}`] }],
          [
            `hasty-${index + 1}`,
            {
              targets: [`chat-${index + 1}/h-${index + 1}`],
              timeouts: { first_event: '200ms', document: '200ms', total: '3s' },
            },
          ],
        ]).flat(),
      ),
    }),
    { random: () => 0 },
  );
});
after(() => rig.stop());

/** The number of an unused pair of providers. */
function fresh(): number {
  used += 1;
  assert.ok(used <= providers, 'more providers are needed');
  return used;
}

interface Asked {
  readonly dialect?: AnyDialect;
  readonly upstream?: UpstreamDialect;
  readonly stream?: boolean;
}

interface Told {
  readonly reply: Reply;
  readonly script: Script;
}

/** One call of a model whose upstream answers like this, one after the other. */
async function call(answers: readonly Scripted[], asked: Asked = {}): Promise<Told> {
  const { dialect = 'chat', upstream = 'chat', stream = false } = asked;
  const number = fresh();
  const script = rig.upstreams[upstream].script(`m-${number}`, ...answers);
  const model = `${upstream}-${number}/m-${number}`;
  const reply = await ask(rig, dialect, requestBody(dialect, { model, stream }));
  return { reply, script };
}

/** The tries of a call as the ledger has them: status and error of each. */
async function tries(reply: Reply): Promise<readonly JsonObject[]> {
  const id = String(reply.headers['x-request-id']);
  await rig.gateway.callRow(id);
  const response = await fetch(`${rig.gateway.adminUrl}/api/calls/${id}`, {
    headers: { authorization: `Bearer ${adminToken}` },
  });
  const row: JsonObject = JSON.parse(await response.text());
  assert.equal(numberAt(row, 'attempts'), Number(reply.headers['x-gateway-attempts']));
  return listAt(row, 'attempt_list');
}

function fine(upstream: UpstreamDialect): Scripted {
  return (request) => answerIn(upstream, { text }, wantsStream(request));
}

type Fault = (upstream: UpstreamDialect, stream: boolean) => Answer;

const passing: readonly (readonly [string, Fault])[] = [
  ...[408, 409, 500, 502, 503, 504, 529].map((status): [string, Fault] => [
    `R2 status ${status}`,
    (upstream) => errorIn(upstream, status, 'not now'),
  ]),
  ['R2 429 without a word', (upstream) => errorIn(upstream, 429, 'slow down')],
  [
    'R2 R4 429 with a short wait',
    (upstream) => errorIn(upstream, 429, 'slow down', { 'retry-after-ms': '30' }),
  ],
  ['F29 an empty answer', () => ({ body: '' })],
  ['F30 status 999', () => ({ status: 999, body: '' })],
];

describe('R2 a fault that passes is not seen', () => {
  for (const upstream of upstreamDialects) {
    for (const stream of [true, false]) {
      for (const [name, fault] of passing) {
        test(`${name}, ${upstream}, ${stream ? 'stream' : 'document'}`, async () => {
          const answers = [fault(upstream, stream), fine(upstream)];
          const { reply, script } = await call(answers, { upstream, stream });
          assert.equal(reply.status, 200, reply.text);
          const seen = stream ? readStream('chat', reply.text) : readDocument('chat', reply.json);
          assert.equal(seen.text, text);
          assert.equal(reply.headers['x-gateway-attempts'], '2');
          assert.equal(script.requests.length, 2);
          assert.deepEqual(
            (await tries(reply)).map((each) => each['outcome']),
            ['failed', 'ok'],
          );
        });
      }
    }
  }

  for (const ending of ['reset', 'fin'] as const) {
    test(`F6 ${ending} before the headers`, async () => {
      const gone: Answer = { body: '', mute: true, ending };
      const { reply, script } = await call([gone, gone, fine('chat')]);
      assert.equal(readDocument('chat', reply.json).text, text);
      // On a kept connection the first may have been the race of F7, which is no try of its own.
      assert.match(String(reply.headers['x-gateway-attempts']), /^[23]$/);
      assert.equal(script.requests.length, 3);
      const [first] = await tries(reply);
      assert.equal(first?.['maybe_billed'], true);
    });
  }

  test('F24 an error inside a 200 before content', async () => {
    const fault = {
      error: { message: 'Overloaded', type: 'server_error', param: null, code: 503 },
    };
    const answers = [{ body: [chatFrame(fault)] }, fine('chat')];
    const { reply } = await call(answers, { stream: true });
    assert.equal(readStream('chat', reply.text).text, text);
    assert.equal(reply.headers['x-gateway-attempts'], '2');
  });

  for (const dialect of clientDialects) {
    test(`R1 F24 an error behind a text that was opened and has no word yet, ${dialect}`, async () => {
      const opened = [messageStart(), blockStart(0, { type: 'text', text: '' })];
      const fault = messagesError('Overloaded', 'overloaded_error');
      const frames = [...opened.map(messagesFrame), `event: error\ndata: ${fault}\n\n`];
      const answers = [{ body: frames, framing: 'chunked' as const }, fine('messages')];
      const { reply } = await call(answers, { dialect, upstream: 'messages', stream: true });
      assert.equal(readStream(dialect, reply.text).text, text);
      assert.equal(reply.headers['x-gateway-attempts'], '2');
    });
  }

  test('F25 half a document', async () => {
    const half: Answer = {
      headers: { 'content-type': 'application/json' },
      body: '{"id":"x","choices":[',
      framing: 'close',
    };
    const { reply } = await call([half, fine('chat')]);
    assert.equal(readDocument('chat', reply.json).text, text);
    assert.equal(reply.headers['x-gateway-attempts'], '2');
  });

  test('F8 a stream that does not begin is asked for once more', async () => {
    const number = fresh();
    const silent: Answer = { body: '', mute: true, ending: 'hang' };
    const script = rig.upstreams.chat.script(`h-${number}`, silent);
    const body = requestBody('chat', { model: `hasty-${number}`, stream: true });
    const reply = await ask(rig, 'chat', body);
    assert.equal(reply.status, 504, reply.text);
    assert.equal(script.requests.length, 2);
    assert.deepEqual(
      (await tries(reply)).map((each) => [each['error'], each['maybe_billed']]),
      [
        ['timeout', true],
        ['timeout', true],
      ],
    );
  });
});

const lasting: readonly (readonly [string, Fault, readonly number[]])[] = [
  ...[400, 401, 402, 403, 404, 413, 422].map((status): [string, Fault, number[]] => [
    `R2 status ${status}`,
    (upstream) => errorIn(upstream, status, 'no such model'),
    [400, status],
  ]),
  ['R2 status 520, which nobody named', (upstream) => errorIn(upstream, 520, 'odd'), [502]],
  [
    'F17 429 that means billing',
    () => ({
      status: 429,
      body: chatError('Pay first', 'insufficient_quota', 'insufficient_quota'),
    }),
    [400],
  ],
  [
    'R2 429 with a wait beyond 5 s',
    (upstream) => errorIn(upstream, 429, 'slow down', { 'retry-after': '6' }),
    [429],
  ],
  ['F21 200 with HTML', () => ({ body: '<html></html>' }), [502]],
  ['F28 a redirect', () => ({ status: 302, headers: { location: '/x' }, body: '' }), [502]],
  ['F29 an object that is no answer', () => ({ body: '{}' }), [502]],
];

describe('R2 a fault that stays is reported at once', () => {
  for (const [name, fault, statuses] of lasting) {
    test(name, async () => {
      const { reply, script } = await call([fault('chat', false), fine('chat')]);
      assert.ok(statuses.includes(reply.status), reply.text);
      assert.equal(script.requests.length, 1);
      assert.equal(reply.headers['x-gateway-attempts'], '1');
    });
  }

  test('R1 nothing is asked again once content was sent', async () => {
    const cut: Answer = { body: [begun('chat')], framing: 'chunked', ending: 'fin' };
    const { reply, script } = await call([cut, fine('chat')], { stream: true });
    assert.equal(endingOf('chat', reply.text), 'error');
    assert.equal(script.requests.length, 1);
  });
});

describe('how often', () => {
  for (const dialect of clientDialects) {
    test(`G12 three tries at most, ${dialect}`, async () => {
      const { reply, script } = await call([errorIn('chat', 500, 'broken')], { dialect });
      assert.equal(reply.status, 502);
      assert.equal(reply.headers['x-gateway-attempts'], '3');
      assert.equal(script.requests.length, 3);
      assert.deepEqual(
        (await tries(reply)).map((each) => each['status']),
        [500, 500, 500],
      );
    });
  }

  test('F29 an empty answer is given one more chance only', async () => {
    const { script } = await call([{ body: '' }]);
    assert.equal(script.requests.length, 2);
  });

  test('G12 of a provider that fails, a fifth more is asked, and three', async () => {
    const number = fresh();
    let requests = 0;
    for (let index = 0; index < 30; index += 1) {
      // A model each: none fails often enough to be left out.
      const name = `g12-${index}`;
      const script = rig.upstreams.chat.script(name, errorIn('chat', 503, 'down'));
      const body = requestBody('chat', { model: `chat-${number}/${name}`, stream: false });
      assert.equal((await ask(rig, 'chat', body)).status, 503);
      requests += script.requests.length;
    }
    assert.ok(requests > 30, `${requests} requests`);
    assert.ok(requests <= 30 + 6, `${requests} requests`);
  });

  test('R4 a wait that ends behind the time limit of the call is not begun', async () => {
    const number = fresh();
    const limited = errorIn('chat', 429, 'slow down', { 'retry-after': '4' });
    const script = rig.upstreams.chat.script(`h-${number}`, limited);
    const body = requestBody('chat', { model: `hasty-${number}`, stream: false });
    const reply = await ask(rig, 'chat', body);
    assert.equal(reply.status, 429, reply.text);
    assert.equal(reply.headers['retry-after'], '4');
    assert.equal(script.requests.length, 1);
  });
});

describe('where', () => {
  /** Asks a pair whose second target is of the other dialect. */
  async function askPair(first: Scripted, second: Scripted): Promise<readonly string[]> {
    const number = fresh();
    rig.upstreams.chat.script('a', first);
    rig.upstreams.messages.script('b', second);
    const body = requestBody('chat', { model: `pair-${number}`, stream: false });
    const reply = await ask(rig, 'chat', body);
    return (await tries(reply)).map(
      (each) => `${String(each['upstream_model'])} ${String(each['status'])}`,
    );
  }

  test('G13 R3 another target is asked before the same one again', async () => {
    const found = await askPair(errorIn('chat', 500, 'broken'), fine('messages'));
    assert.deepEqual(found, ['a 500', 'b 200']);
  });

  test('R2 when none is left, the first that may be asked again is', async () => {
    const found = await askPair(
      errorIn('chat', 500, 'broken'),
      errorIn('messages', 529, 'overloaded'),
    );
    assert.deepEqual(found, ['a 500', 'b 529', 'a 500']);
  });

  test('R3 a target whose credential is dead is not asked again, the other one is', async () => {
    const found = await askPair(errorIn('chat', 401, 'no'), errorIn('messages', 500, 'broken'));
    assert.deepEqual(found, ['a 401', 'b 500', 'b 500']);
  });

  test('R3 a mistake of the client is sent to no other target', async () => {
    const found = await askPair(errorIn('chat', 422, 'no'), fine('messages'));
    assert.deepEqual(found, ['a 422']);
  });
});

test('F37 R4 a client that leaves ends the wait, and is charged nothing', async () => {
  const number = fresh();
  const limited = errorIn('chat', 429, 'slow down', { 'retry-after': '5' });
  const script = rig.upstreams.chat.script(`m-${number}`, limited);
  const model = `only-${number}`;
  const leaving = new AbortController();
  const asking = ask(rig, 'chat', requestBody('chat', { model, stream: false }), {
    signal: leaving.signal,
  }).catch(() => undefined);
  // It waits once it has read the answer.
  await rig.gateway.trouble(model, `chat-${number}/m-${number}`);
  leaving.abort();
  await asking;
  await rig.gateway.noneLeft();
  const [row] = await rig.gateway.callRows(model, 1);
  assert.equal(row?.['outcome'], 'canceled');
  assert.equal(row?.['attempts'], 1);
  assert.equal(objectAt(row ?? {}, 'charged')['output_tokens'], null);
  assert.equal(script.requests.length, 1);
});
