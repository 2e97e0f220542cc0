/**
 * The official SDKs, oldest and newest, as clients over real sockets: every client dialect with every
 * upstream dialect, plain, streamed, tools, abort, errors and retries.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { JsonObject } from '../../src/json/value.ts';
import { begun } from '../faults/stream-pieces.ts';
import { errorIn, replying, seenOf, type Reply } from '../upstream/reply.ts';
import { clientDialects, type ClientDialect } from '../support/dialects.ts';
import { sampledTests } from '../support/depth.ts';
import { dialects, listAt, type Seen } from '../support/reading.ts';
import { startRig, type Rig } from '../support/rig.ts';
import { allSdks, type Sdk, type SdkClient, type SdkTool } from '../support/sdks.ts';

const weather: SdkTool = {
  name: 'weather',
  parameters: { type: 'object', properties: { city: { type: 'string' } } },
};

const greeting: Reply = { text: 'Hello, 你好🦀 and good day.' };
const oneCall: Reply = {
  calls: [{ id: 'call_one', name: 'weather', arguments: '{"city":"Łódź"}' }],
};
const twoCalls: Reply = {
  text: 'I will look.',
  calls: [
    { id: 'call_one', name: 'weather', arguments: '{"city":"Paris"}' },
    { id: 'call_two', name: 'weather', arguments: '{"city":"Oslo","days":[1,2]}' },
  ],
};

/** Models are compared by the caller; the final-message helpers must agree with the plain answer. */
function assertSeen(actual: Seen, expected: Seen): void {
  const { model, text, reasoning, calls, finish, usage } = actual;
  assert.deepEqual({ model, text, reasoning, calls, finish, usage }, expected);
}

interface SdkError {
  /** Its class and those that it extends: newer SDKs have a class of their own for overload. */
  readonly names: readonly string[];
  readonly status: number | undefined;
  readonly type: string | undefined;
  header(name: string): string | undefined;
}

function describeError(thrown: unknown): SdkError {
  assert.ok(thrown instanceof Error, `not an error: ${String(thrown)}`);
  const field = (name: string): unknown => Reflect.get(thrown, name);
  const headers = field('headers');
  const [status, type] = [field('status'), field('type')];
  return {
    names: classNames(thrown),
    status: typeof status === 'number' ? status : undefined,
    type: typeof type === 'string' ? type : undefined,
    header: (name) => {
      if (headers instanceof Headers) return headers.get(name) ?? undefined;
      const value: unknown = Reflect.get(Object(headers), name);
      return typeof value === 'string' ? value : undefined;
    },
  };
}

function classNames(thrown: Error): readonly string[] {
  const names: string[] = [];
  for (let at: object | null = thrown; at !== null; at = Object.getPrototypeOf(at)) {
    if (Object.hasOwn(at, 'constructor')) names.push(at.constructor.name);
  }
  return names;
}

async function failureOf(call: Promise<unknown>): Promise<SdkError> {
  const outcome = await call.then(
    (value) => ({ value }),
    (thrown: unknown) => ({ thrown }),
  );
  assert.ok('thrown' in outcome, `should have failed: ${JSON.stringify(outcome)}`);
  return describeError(outcome.thrown);
}

type AnySdk = Sdk<ClientDialect>;

let rig: Rig;
before(async () => {
  rig = await startRig({}, { random: () => 0 });
});
after(() => rig.stop());

function connect(sdk: AnySdk, maxRetries = 0): SdkClient {
  return sdk.connect({ url: rig.gateway.url, maxRetries });
}

function pairSuite(sdk: AnySdk, upstream: ClientDialect): void {
  for (const [name, reply] of Object.entries({ text: greeting, call: oneCall, calls: twoCalls })) {
    test(`C4 F1 F2 plain ${name}: text, calls, finish, usage and the client's model name`, async () => {
      const { model, script } = rig.play(upstream, replying(upstream, reply));
      const answer = await connect(sdk).plain({ model, text: 'Hi', tools: [weather] });
      assertSeen(answer, seenOf(reply, model));
      assert.notEqual(answer.requestId, '', 'the request id reaches the SDK');
      assert.equal(script.requests.length, 1);
    });

    test(`B1 C3 final-message helper ${name}: builds the same message`, async () => {
      const { model } = rig.play(upstream, replying(upstream, reply));
      const answer = await connect(sdk).final({ model, text: 'Hi', tools: [weather] });
      assertSeen(answer, seenOf(reply, model));
    });
  }

  test('A9 stream: iterating gives the whole text', async () => {
    const { model } = rig.play(upstream, replying(upstream, greeting));
    assert.equal(await connect(sdk).iterate({ model, text: 'Hi' }), greeting.text);
  });

  test('B4 B5 tools: the second turn carries calls and results to the upstream', async () => {
    const { model, script } = rig.play(
      upstream,
      replying(upstream, twoCalls),
      replying(upstream, greeting),
    );
    const client = connect(sdk);
    const first = await client.plain({ model, text: 'Weather?', tools: [weather] });
    const second = await client.plain({
      model,
      text: 'Weather?',
      tools: [weather],
      results: first.calls.map((call) => ({
        id: call.id,
        name: call.name,
        arguments: { city: 'x' },
        result: `sunny for ${call.id}`,
      })),
    });
    assert.equal(second.text, greeting.text);
    assertToolTurn(upstream, script.requests[1]?.json ?? {}, [
      ['call_one', 'sunny for call_one'],
      ['call_two', 'sunny for call_two'],
    ]);
  });

  test('E10 F73 abort in mid-stream: the upstream connection is closed', async () => {
    const { model, script } = rig.play(upstream, {
      body: [begun(upstream)],
      framing: 'chunked',
      ending: 'hang',
    });
    const abort = new AbortController();
    const reading = connect(sdk).iterate({ model, text: 'Hi' }, () => abort.abort(), {
      signal: abort.signal,
    });
    const request = await script.request(0);
    await reading.catch(() => undefined);
    assert.ok(abort.signal.aborted, 'text arrived before the abort');
    assert.equal(await request.closed, 'gateway');
    const [row] = await rig.gateway.callRows(model, 1);
    assert.equal(row?.['outcome'], 'canceled');
  });
}

/** The results as the upstream must get them, in call order, behind their calls. */
function assertToolTurn(
  upstream: ClientDialect,
  body: JsonObject,
  expected: readonly (readonly [id: string, result: string])[],
): void {
  if (upstream === 'responses') {
    const items = listAt(body, 'input');
    const called = items.filter(({ type }) => type === 'function_call');
    const made = items.filter(({ type }) => type === 'function_call_output');
    assert.deepEqual(
      called.map((item) => item['call_id']),
      expected.map(([id]) => id),
    );
    assert.deepEqual(
      made.map((item) => [item['call_id'], item['output']]),
      expected,
    );
    return;
  }
  const messages = listAt(body, 'messages');
  if (upstream === 'chat') {
    const calls = messages.flatMap((message) => listAt(message, 'tool_calls'));
    assert.deepEqual(
      calls.map((call) => call['id']),
      expected.map(([id]) => id),
    );
    assert.deepEqual(
      messages
        .filter((message) => message['role'] === 'tool')
        .map((message) => [message['tool_call_id'], message['content']]),
      expected,
    );
    return;
  }
  const blocks = messages.flatMap((message) => listAt(message, 'content'));
  assert.deepEqual(
    blocks.filter((block) => block['type'] === 'tool_use').map((block) => block['id']),
    expected.map(([id]) => id),
  );
  assert.deepEqual(
    blocks
      .filter((block) => block['type'] === 'tool_result')
      .map((block) => [block['tool_use_id'], resultText(block)]),
    expected,
  );
  const turns = messages.filter((message) =>
    listAt(message, 'content').some((block) => block['type'] === 'tool_result'),
  );
  assert.equal(turns.length, 1, 'B5: all results in one user turn');
}

function resultText(block: JsonObject): unknown {
  const content = block['content'];
  return typeof content === 'string' ? content : listAt(block, 'content')[0]?.['text'];
}

/** Errors of chat completions and responses have one form. */
interface ErrorRow {
  readonly upstreamStatus: number;
  readonly status: { readonly chat: number; readonly messages: number };
  readonly name: string;
  readonly type: { readonly chat: string; readonly messages: string };
}

const errorRows: readonly ErrorRow[] = [
  {
    upstreamStatus: 400,
    status: { chat: 400, messages: 400 },
    name: 'BadRequestError',
    type: { chat: 'invalid_request_error', messages: 'invalid_request_error' },
  },
  {
    upstreamStatus: 401,
    status: { chat: 400, messages: 400 },
    name: 'BadRequestError',
    type: { chat: 'invalid_request_error', messages: 'billing_error' },
  },
  {
    upstreamStatus: 404,
    status: { chat: 404, messages: 404 },
    name: 'NotFoundError',
    type: { chat: 'invalid_request_error', messages: 'not_found_error' },
  },
  {
    upstreamStatus: 429,
    status: { chat: 429, messages: 429 },
    name: 'RateLimitError',
    type: { chat: 'rate_limit_error', messages: 'rate_limit_error' },
  },
  {
    upstreamStatus: 500,
    status: { chat: 502, messages: 502 },
    name: 'InternalServerError',
    type: { chat: 'server_error', messages: 'api_error' },
  },
  {
    upstreamStatus: 529,
    status: { chat: 503, messages: 529 },
    name: 'InternalServerError',
    type: { chat: 'service_unavailable_error', messages: 'overloaded_error' },
  },
];

/** `npm test` plays one in five of these: a cell has 18. */
const errorTest = sampledTests(5);

function errorSuite(sdk: AnySdk, upstream: ClientDialect): void {
  const form = sdk.dialect === 'messages' ? 'messages' : 'chat';
  for (const row of errorRows) {
    for (const how of ['plain', 'iterate', 'final'] as const) {
      errorTest()(`H1 H3 upstream ${row.upstreamStatus}, ${how}: ${row.name}`, async () => {
        const { model } = rig.play(upstream, errorIn(upstream, row.upstreamStatus, 'no such luck'));
        const error = await failureOf(connect(sdk)[how]({ model, text: 'Hi' }));
        assert.ok(error.names.includes(row.name), error.names.join(' < '));
        assert.equal(error.status, row.status[form]);
        // The oldest messages SDK leaves `type` inside `error.error`.
        if (error.type !== undefined) assert.equal(error.type, row.type[form]);
      });
    }
  }

  test('H2 F78 a short retry-after is obeyed: the SDK asks again, in a call of its own, and succeeds', async () => {
    const busy = errorIn(upstream, 429, 'slow down', { 'retry-after-ms': '5' });
    // One more than the gateway tries for one call.
    const { model, script } = rig.play(upstream, busy, busy, busy, replying(upstream, greeting));
    const answer = await connect(sdk, 5).plain({ model, text: 'Hi' });
    assert.equal(answer.text, greeting.text);
    assert.equal(script.requests.length, 4);
    const rows = await rig.gateway.callsAfter(model, 4);
    assert.ok(rows.length > 1);
    assert.equal(rows.filter((row) => row['outcome'] === 'ok').length, 1);
  });

  test('H2 the upstream wait is told to the client', async () => {
    const { model } = rig.play(
      upstream,
      errorIn(upstream, 429, 'slow down', { 'retry-after': '17' }),
    );
    const error = await failureOf(connect(sdk).plain({ model, text: 'Hi' }));
    assert.equal(error.header('retry-after'), '17');
  });

  test('E8 an hour of waiting is not passed on: the SDK fails at once', async () => {
    const { model, script } = rig.play(
      upstream,
      errorIn(upstream, 429, 'slow down', { 'retry-after': '3600' }),
    );
    const error = await failureOf(connect(sdk, 2).plain({ model, text: 'Hi' }));
    assert.ok(error.names.includes('RateLimitError'), error.names.join(' < '));
    assert.equal(script.requests.length, 1);
  });

  test('H4 a 400 is not asked again', async () => {
    const { model, script } = rig.play(upstream, errorIn(upstream, 400, 'bad value'));
    await failureOf(connect(sdk, 2).plain({ model, text: 'Hi' }));
    assert.equal(script.requests.length, 1);
  });
}

function gatewaySuite(sdk: AnySdk): void {
  test('E4 a wrong key is an authentication error', async () => {
    const client = sdk.connect({ url: rig.gateway.url, key: 'gw_not_a_key_of_this_gateway' });
    const error = await failureOf(client.plain({ model: 'up-chat/x', text: 'Hi' }));
    assert.ok(error.names.includes('AuthenticationError'), error.names.join(' < '));
    assert.equal(error.status, 401);
  });

  test('E6 an unknown model is not found', async () => {
    const error = await failureOf(connect(sdk).plain({ model: 'no-such-model', text: 'Hi' }));
    assert.ok(error.names.includes('NotFoundError'), error.names.join(' < '));
    assert.equal(error.status, 404);
  });

  test('A11 the model list can be read, and one model of it', async () => {
    const ids = await connect(sdk).models();
    const first = ids[0];
    assert.ok(first !== undefined, 'at least one model is listed');
    assert.equal(await connect(sdk).model(first), first);
  });

  test('A11 an unknown model id is not found', async () => {
    const error = await failureOf(connect(sdk).model('no-such-model'));
    assert.ok(error.names.includes('NotFoundError'), error.names.join(' < '));
  });

  if (sdk.dialect !== 'messages') return;
  const counts = { messages: { body: '{"input_tokens":23}' }, chat: { status: 404, body: '{}' } };
  for (const upstream of dialects) {
    test(`A7 F5 count_tokens for a ${upstream} upstream`, async () => {
      const { model, script } = rig.play(upstream, counts[upstream]);
      const text = 'How many tokens are these words?';
      const count = await connect(sdk).countTokens?.({ model, text });
      // A messages server has a counter; for others it is an estimate, which never asks them.
      if (upstream === 'messages') assert.equal(count, 23);
      else assert.ok((count ?? 0) >= 5 && (count ?? 0) < 100, String(count));
      assert.equal(script.requests.length, upstream === 'messages' ? 1 : 0);
    });
  }
}

for (const sdk of allSdks) {
  // The first one of a dialect is the newest.
  const isNewest = sdk === allSdks.find(({ dialect }) => dialect === sdk.dialect);
  for (const upstream of isNewest ? clientDialects : dialects) {
    describe(`${sdk.name} on a ${upstream} upstream`, () => {
      pairSuite(sdk, upstream);
      // Older ones read those of one upstream: the client's dialect writes them.
      if (isNewest || upstream !== sdk.dialect) errorSuite(sdk, upstream);
    });
  }
  describe(sdk.name, () => gatewaySuite(sdk));
}
