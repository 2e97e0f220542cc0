/** Hedging through the whole gateway: a second request beside a first one that is slow to begin. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { JsonObject } from '../../src/json/value.ts';
import { nanodollarsOfOutput, startLimitedRig, type LimitedRig } from '../limits/limited-rig.ts';
import type { Reply } from '../support/http.ts';
import {
  listAt,
  numberAt,
  objectAt,
  readDocument,
  readStream,
  textAt,
} from '../support/reading.ts';
import { clientDialects, type ClientDialect, type UpstreamDialect } from '../support/dialects.ts';
import { providerAt } from '../support/gateway.ts';
import { requestBody } from '../support/requests.ts';
import { ask, type Asking } from '../support/rig.ts';
import { allSdks } from '../support/sdks.ts';
import { answerIn, replying } from '../upstream/reply.ts';
import { wantsStream, type Answer, type Script, type Scripted } from '../upstream/scripted.ts';

/**
 * Names of routes, each with a first target of one dialect and a second one of another, and with
 * providers of its own: a hedge takes from the retry budget of its provider.
 */
const routesOf: { readonly [D in ClientDialect]: string[] } = {
  chat: [],
  messages: [],
  responses: [],
};
for (const first of clientDialects) {
  for (let i = 0; i < 24; i += 1) routesOf[first].push(`hedged-${first}-${i}`);
}

const other: { readonly [D in ClientDialect]: UpstreamDialect } = {
  chat: 'messages',
  messages: 'responses',
  responses: 'gemini',
};

/** Input costs 1 $, output 10 $ a million tokens; what the second target asks is ten times as much. */
const prices = {
  '*/*-1': { input: 1, output: 10 },
  '*/*-2': { input: 10, output: 100 },
};

const targetsOf = (name: string): string[] => [`${name}-a/${name}-1`, `${name}-b/${name}-2`];

function models(): JsonObject {
  const found: { [name: string]: JsonObject } = {};
  for (const name of clientDialects.flatMap((first) => routesOf[first])) {
    found[name] = { targets: targetsOf(name), hedge: { after: '30ms' } };
  }
  const total = { targets: ['up-chat/total-1', 'up-messages/total-2'], hedge: { after: '30ms' } };
  return {
    ...found,
    never: { targets: ['up-chat/never-1', 'up-messages/never-2'] },
    keyed: { targets: ['keyed/keyed-1'], hedge: { after: '30ms' } },
    total: { ...total, timeouts: { total: '4s' } },
  };
}

function providers(upstreams: LimitedRig['upstreams']): JsonObject {
  const at = (upstream: UpstreamDialect): JsonObject =>
    providerAt(upstream, upstreams[upstream].port);
  const { api_key: _one, ...keyless } = at('chat');
  const keys = { one: 'upstream-key-one', two: 'upstream-key-two' };
  const found: { [name: string]: JsonObject } = { keyed: { ...keyless, credentials: keys } };
  for (const first of clientDialects) {
    for (const name of routesOf[first]) {
      found[`${name}-a`] = at(first);
      found[`${name}-b`] = at(other[first]);
    }
  }
  return found;
}

let rig: LimitedRig;
before(async () => {
  rig = await startLimitedRig((upstreams) => ({
    models: models(),
    prices,
    providers: providers(upstreams),
  }));
});
after(() => rig.stop());

const silence: Answer = { body: '', mute: true, ending: 'hang' };

/** The same answer as pieces, the first of which waits. */
function behind(gate: Promise<unknown>, make: Scripted): Scripted {
  return (request) => {
    const answer = typeof make === 'function' ? make(request) : make;
    const { body } = answer;
    const pieces = typeof body === 'string' || Buffer.isBuffer(body) ? [body] : body;
    const type = wantsStream(request) ? 'text/event-stream' : 'application/json';
    const headers = { ...answer.headers, 'content-type': type };
    return { ...answer, headers, framing: 'chunked', body: [gate, ...pieces] };
  };
}

interface Pair {
  readonly model: string;
  readonly first: Script;
  readonly second: Script;
}

function pair(
  first: ClientDialect,
  answers: { readonly first: Scripted; readonly second: Scripted },
): Pair {
  const model = routesOf[first].pop();
  assert.ok(model !== undefined, 'more routes are needed');
  return {
    model,
    first: rig.upstreams[first].script(`${model}-1`, answers.first),
    second: rig.upstreams[other[first]].script(`${model}-2`, answers.second),
  };
}

/** What a client of that dialect reads of an answer. */
const textOf = (dialect: ClientDialect, stream: boolean, reply: Reply): string =>
  stream ? readStream(dialect, reply.text).text : readDocument(dialect, reply.json).text;

interface Tries {
  readonly row: JsonObject;
  /** `target outcome`, then `maybe billed` where it is so. */
  readonly tries: readonly string[];
}

async function triesOf(id: string): Promise<Tries> {
  await rig.gateway.callRow(id);
  const row = await rig.admin('GET', `/api/calls/${id}`);
  const tries = listAt(row, 'attempt_list').map((each) => {
    const place = textAt(each, 'upstream_model').slice(-1);
    const error = textAt(each, 'error');
    const billed = each['maybe_billed'] === true ? ' maybe billed' : '';
    return `${place} ${textAt(each, 'outcome')} ${error}${billed}`.trim().replace('  ', ' ');
  });
  return { row, tries };
}

const idOf = (reply: Reply): string => String(reply.headers['x-request-id']);

/** 100 tokens at most. */
function capOf(dialect: ClientDialect): JsonObject {
  return { [dialect === 'responses' ? 'max_output_tokens' : 'max_tokens']: 100 };
}

function call(
  dialect: ClientDialect,
  model: string,
  stream: boolean,
  asking?: Asking,
): Promise<Reply> {
  return ask(rig, dialect, requestBody(dialect, { model, stream }), asking);
}

for (const dialect of clientDialects) {
  for (const stream of [true, false]) {
    // The first target speaks the client's dialect, the second one another.
    const up = dialect;
    describe(`${dialect}, ${stream ? 'stream' : 'document'}`, () => {
      test('Q1 R5 hedging: the second answers sooner, and the first is let go', async () => {
        const here = replying(other[up], { text: 'Second.' });
        const { model, first, second } = pair(up, { first: silence, second: here });
        const reply = await call(dialect, model, stream);
        assert.equal(reply.status, 200, reply.text);
        assert.equal(textOf(dialect, stream, reply), 'Second.');
        assert.equal(reply.headers['x-gateway-attempts'], '2');
        assert.equal(reply.headers['x-gateway-target'], `${model}-b/${model}-2`);
        assert.equal(await (await first.request(0)).closed, 'gateway');
        assert.deepEqual([first.requests.length, second.requests.length], [1, 1]);
        const { row, tries } = await triesOf(idOf(reply));
        assert.deepEqual(tries, ['1 canceled canceled maybe billed', '2 ok']);
        assert.equal(row['outcome'], 'ok');
        assert.equal(row['attempts'], 2);
        assertBothCharged(row);
      });

      test('Q1 R5 hedging: the first answers sooner, and the second is let go', async () => {
        const gate = Promise.withResolvers<void>();
        const here = behind(gate.promise, replying(up, { text: 'First.' }));
        const { model, first, second } = pair(up, { first: here, second: silence });
        const answering = call(dialect, model, stream);
        const loser = await second.request(0);
        gate.resolve();
        const reply = await answering;
        assert.equal(textOf(dialect, stream, reply), 'First.', reply.text);
        assert.equal(reply.headers['x-gateway-target'], `${model}-a/${model}-1`);
        assert.equal(await loser.closed, 'gateway');
        assert.equal(first.requests.length, 1);
        const { row, tries } = await triesOf(idOf(reply));
        assert.deepEqual(tries, ['1 ok', '2 canceled canceled maybe billed']);
        assert.match(textAt(row, 'notes'), /cost: includes \S+-2, a second request/);
      });

      test('R2 R3 hedging: one fails and the other one answers', async () => {
        const gate = Promise.withResolvers<void>();
        const fails: Answer = { body: [gate.promise], rawHead: '', ending: 'reset' };
        const late = Promise.withResolvers<void>();
        const here = behind(late.promise, replying(other[up], { text: 'Second.' }));
        const { model, second } = pair(up, { first: fails, second: here });
        const answering = call(dialect, model, stream);
        await second.request(0);
        gate.resolve();
        // The gateway hears of it later than the upstream that did it.
        await rig.gateway.trouble(model, `${model}-a/${model}-1`);
        late.resolve();
        const reply = await answering;
        assert.equal(textOf(dialect, stream, reply), 'Second.', reply.text);
        const { row, tries } = await triesOf(idOf(reply));
        assert.match(tries[0] ?? '', /^1 failed/);
        assert.equal(tries[1], '2 ok');
        // A try that failed by itself is charged nothing (L0).
        assert.equal(row['notes'] ?? null, null);
      });

      test('G12 hedging: both fail, and the third try is the last one', async () => {
        const gate = Promise.withResolvers<void>();
        const broken: Answer = { body: '', mute: true, ending: 'reset' };
        const held: Answer = { body: [gate.promise], rawHead: '', ending: 'reset' };
        const { model, second } = pair(up, { first: held, second: broken });
        void second.request(0).then(() => gate.resolve());
        const reply = await call(dialect, model, stream);
        assert.equal(reply.status, 502, reply.text);
        assert.equal(reply.headers['x-gateway-attempts'], '3');
        const { row, tries } = await triesOf(idOf(reply));
        assert.equal(tries.length, 3);
        assert.ok(
          tries.every((each) => each.includes('failed upstream_unavailable')),
          String(tries),
        );
        assert.equal(row['outcome'], 'failed');
      });

      test('F72 R7 hedging: the client leaves, and both are let go', async () => {
        const { model, first, second } = pair(up, { first: silence, second: silence });
        const left = new AbortController();
        const answering = call(dialect, model, stream, { signal: left.signal });
        const gone = assert.rejects(answering);
        const both = [await first.request(0), await second.request(0)];
        left.abort();
        await gone;
        const closed = await Promise.all(both.map((request) => request.closed));
        assert.deepEqual(closed, ['gateway', 'gateway']);
        const [row] = await rig.gateway.callRows(model, 1);
        const { tries } = await triesOf(textAt(row ?? {}, 'id'));
        assert.deepEqual(tries, [
          '1 canceled canceled maybe billed',
          '2 canceled canceled maybe billed',
        ]);
        assert.equal(row?.['outcome'], 'canceled');
        await rig.gateway.noneLeft();
      });

      test('Q1 hedging: a budget with room for one is answered without a second request', async () => {
        const gate = Promise.withResolvers<void>();
        const here = behind(gate.promise, replying(up, { text: 'First.' }));
        const { model, second } = pair(up, { first: here, second: silence });
        // 100 tokens at the more expensive price are 0.01 $, twice that 0.02 $.
        const key = await rig.key({ budget: '0.015', per: 'day', shrink: false });
        const more = capOf(dialect);
        const body = requestBody(dialect, { model, stream, more });
        const answering = rig.call(key, dialect, body);
        setTimeout(gate.resolve, 150);
        const reply = await answering;
        assert.equal(reply.status, 200, reply.text);
        assert.equal(second.requests.length, 0);
        assert.equal(reply.headers['x-gateway-attempts'], '1');
      });

      test('Q1 hedging: a budget with room for two pays for both', async () => {
        const here = replying(other[up], { text: 'Second.' });
        const { model } = pair(up, { first: silence, second: here });
        const key = await rig.key({ budget: '0.1', per: 'day' });
        const more = capOf(dialect);
        const reply = await rig.call(key, dialect, requestBody(dialect, { model, stream, more }));
        assert.equal(reply.status, 200, reply.text);
        assert.equal(reply.headers['x-gateway-attempts'], '2');
        const { row } = await triesOf(idOf(reply));
        const cost = assertBothCharged(row);
        assert.equal(await rig.spent(key), Math.round(cost * 1e9));
        const reserved = Number(row['reserved_usd']);
        assert.ok(reserved >= 2 * 100 * nanodollarsOfOutput * 10 * 1e-9, String(reserved));
        assert.ok(cost <= reserved);
      });

      test('F53 hedging: late data of the canceled request reaches no client', async () => {
        const gate = Promise.withResolvers<void>();
        const late = behind(gate.promise, replying(up, { text: 'Too late.' }));
        const rest = Promise.withResolvers<void>();
        const begins = (request: Parameters<Extract<Scripted, Function>>[0]): Answer => {
          const answer = answerIn(other[up], { text: 'Second.' }, wantsStream(request));
          const bytes = Buffer.from(answer.body as string);
          const half = wantsStream(request) ? bytes.length - 20 : bytes.length;
          const type = wantsStream(request) ? 'text/event-stream' : 'application/json';
          return {
            ...answer,
            headers: { 'content-type': type },
            framing: 'chunked',
            body: [bytes.subarray(0, half), rest.promise, bytes.subarray(half)],
          };
        };
        const { model, first } = pair(up, { first: late, second: begins });
        const answering = call(dialect, model, stream);
        const loser = await first.request(0);
        if (stream) {
          await loser.closed;
          gate.resolve();
          rest.resolve();
        } else {
          rest.resolve();
          await loser.closed;
          gate.resolve();
        }
        const reply = await answering;
        assert.equal(textOf(dialect, stream, reply), 'Second.', reply.text);
        assert.ok(!reply.text.includes('Too late'));
        assert.ok(reply.complete);
      });
    });
  }
}

for (const sdk of allSdks) {
  for (const stream of [true, false]) {
    const shape = stream ? 'stream' : 'document';
    test(`Hedging: ${sdk.name} reads the sooner answer, ${shape}`, async () => {
      const here = replying(other[sdk.dialect], { text: 'Second.' });
      const { model } = pair(sdk.dialect, { first: silence, second: here });
      const client = sdk.connect({ url: rig.gateway.url, maxRetries: 0 });
      const question = { model, text: 'Hello' };
      const seen = stream ? await client.final(question) : await client.plain(question);
      assert.equal(seen.text, 'Second.');
      assert.equal(seen.finish, 'stop');
    });
  }
}

test('G12 hedging: a second request takes from the retry budget, and none is sent where it is spent', async () => {
  const paid = 3;
  let asked = 0;
  const slow: Scripted = (request) => {
    // The first ones answer when the second request is there, the others after several times its delay.
    const gate = asked < paid ? second.request(asked) : sleep(150);
    asked += 1;
    const answer = behind(gate, replying('chat', { text: 'First.' }));
    return typeof answer === 'function' ? answer(request) : answer;
  };
  const { model, second } = pair('chat', { first: slow, second: silence });
  const attempts: unknown[] = [];
  for (let i = 0; i < 5; i += 1) {
    const reply = await call('chat', model, true);
    assert.equal(reply.status, 200, reply.text);
    attempts.push(reply.headers['x-gateway-attempts']);
  }
  assert.deepEqual(attempts, ['2', '2', '2', '1', '1']);
  assert.equal(second.requests.length, paid);
});

test('Hedging is off by default', async () => {
  const gate = Promise.withResolvers<void>();
  rig.upstreams.chat.script('never-1', behind(gate.promise, replying('chat', { text: 'Here.' })));
  const second = rig.upstreams.messages.script('never-2', silence);
  setTimeout(gate.resolve, 150);
  const reply = await call('chat', 'never', true);
  assert.equal(reply.headers['x-gateway-attempts'], '1', reply.text);
  assert.equal(second.requests.length, 0);
});

test('Hedging goes to another credential where there is no other target', async () => {
  const script = rig.upstreams.chat.script(
    'keyed-1',
    silence,
    answerIn('chat', { text: 'Here.' }, false),
  );
  const reply = await call('chat', 'keyed', false);
  assert.equal(reply.status, 200, reply.text);
  const used = script.requests.map((request) => request.header('authorization'));
  assert.equal(new Set(used).size, 2);
});

test('R7 hedging: one time limit for the call ends both', async () => {
  const first = rig.upstreams.chat.script('total-1', silence);
  const second = rig.upstreams.messages.script('total-2', silence);
  const reply = await call('chat', 'total', false);
  assert.equal(reply.status, 504, reply.text);
  assert.equal(reply.headers['x-gateway-attempts'], '2');
  for (const script of [first, second]) {
    assert.equal(await (await script.request(0)).closed, 'gateway');
  }
});

/** The cost holds both requests, each at its own price. @returns it in dollars. */
function assertBothCharged(row: JsonObject): number {
  const cost = Number(row['cost_usd']);
  const charged = objectAt(row, 'charged');
  const own =
    (10 * (numberAt(charged, 'fresh_input_tokens') + numberAt(charged, 'cache_read_tokens')) +
      100 * numberAt(charged, 'output_tokens')) /
    1e6;
  const note = /cancelled after (\d+) input and (\d+) output tokens/.exec(textAt(row, 'notes'));
  assert.ok(note !== null, textAt(row, 'notes'));
  const beside = (Number(note[1]) * 1 + Number(note[2]) * 10) / 1e6;
  assert.ok(beside > 0);
  assert.ok(Math.abs(cost - own - beside) < 1e-8, `${cost} is not ${own} and ${beside}`);
  return cost;
}
