/** Rate limits over real sockets: what refuses, what it says, and the headers of every answer (K6, K7, H5). */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { JsonObject } from '../../src/json/value.ts';
import { send, type Reply as HttpReply } from '../support/http.ts';
import { clientDialects } from '../support/dialects.ts';
import { type AnyDialect } from '../support/reading.ts';
import { requestBody } from '../support/requests.ts';
import { replying, type Reply } from '../upstream/reply.ts';
import { errorOf, startLimitedRig, type LimitedKey, type LimitedRig } from './limited-rig.ts';

let rig: LimitedRig;
before(async () => {
  rig = await startLimitedRig();
});
after(() => rig.stop());

const usage = { fresh: 20, cacheRead: 0, cacheWrite: 0, output: 30, reasoning: 0 };
const answer: Reply = { text: 'Good day.', usage };

function bodyOf(dialect: AnyDialect, model: string, more: JsonObject = {}): JsonObject {
  return requestBody(dialect, { model, stream: false, more });
}

function header(reply: HttpReply, name: string): string {
  return String(reply.headers[name]);
}

const remaining: { readonly [D in AnyDialect]: string } = {
  chat: 'x-ratelimit-remaining-requests',
  messages: 'anthropic-ratelimit-requests-remaining',
  responses: 'x-ratelimit-remaining-requests',
};

for (const dialect of clientDialects) {
  test(`K7 E8 H5 the limit is reached exactly, remaining falls strictly: ${dialect}`, async () => {
    const { model, script } = rig.play(dialect, replying(dialect, answer));
    const key = await rig.key({ rpm: 5 });
    const left: number[] = [];
    for (let i = 0; i < 5; i++) {
      const reply = await rig.call(key, dialect, bodyOf(dialect, model));
      assert.equal(reply.status, 200);
      left.push(Number(header(reply, remaining[dialect])));
    }
    assert.deepEqual(left, [4, 3, 2, 1, 0]);
    const refused = await rig.call(key, dialect, bodyOf(dialect, model));
    assert.equal(refused.status, 429);
    assert.equal(script.requests.length, 5);
    const { type, message } = errorOf(refused);
    assert.equal(type, 'rate_limit_error');
    const text = `Rate limit of this key (${key.id}): 5 requests per minute, 0 left. Try again in `;
    assert.ok(String(message).startsWith(text), String(message));
    assert.equal(header(refused, remaining[dialect]), '0');
    // One of five a minute flows back in 12 s; a little later, so that not all come at once.
    const wait = Number(header(refused, 'retry-after-ms'));
    assert.ok(wait > 0 && wait <= 12_500, String(wait));
    assert.equal(Number(header(refused, 'retry-after')), Math.ceil(wait / 1000));
  });
}

test('E8 one request a minute may be waited for', async () => {
  const { model } = rig.play('chat', replying('chat', answer));
  const key = await rig.key({ rpm: 1 });
  await rig.call(key, 'chat', bodyOf('chat', model));
  const refused = await rig.call(key, 'chat', bodyOf('chat', model));
  assert.match(String(errorOf(refused)['message']), /: 1 request per minute, 0 left/);
  assert.equal(refused.headers['x-should-retry'], undefined);
  assert.ok(Number(header(refused, 'retry-after')) <= 60);
});

test('E8 a limit that is lowered makes no client wait longer than it would itself', async () => {
  const { model } = rig.play('chat', replying('chat', answer));
  // Little of it comes back while they are made: one a second.
  const key = await rig.key({ rpm: 60 });
  const body = bodyOf('chat', model);
  for (let i = 0; i < 60; i++) await rig.call(key, 'chat', body);
  await rig.admin('PATCH', `/api/keys/${key.id}`, { rpm: 6 });
  const refused = await rig.call(key, 'chat', body);
  assert.equal(refused.status, 429);
  assert.ok(Number(header(refused, 'retry-after')) <= 11, header(refused, 'retry-after'));
});

describe('headers', () => {
  test('chat: x-ratelimit-*, durations as the service spells them; nothing of the other dialect', async () => {
    const { model } = rig.play('chat', replying('chat', answer));
    const key = await rig.key({ rpm: 60, tpm: 60_000 });
    const reply = await rig.call(key, 'chat', bodyOf('chat', model, { max_tokens: 100 }));
    assert.equal(header(reply, 'x-ratelimit-limit-requests'), '60');
    assert.equal(header(reply, 'x-ratelimit-remaining-requests'), '59');
    assert.match(header(reply, 'x-ratelimit-reset-requests'), /^(\d+ms|1s)$/);
    assert.equal(header(reply, 'x-ratelimit-limit-tokens'), '60000');
    const tokens = Number(header(reply, 'x-ratelimit-remaining-tokens'));
    assert.ok(tokens > 59_800 && tokens <= 59_900, String(tokens));
    assert.match(header(reply, 'x-ratelimit-reset-tokens'), /^\d+ms$/);
    const names = Object.keys(reply.headers);
    assert.deepEqual(
      names.filter((name) => name.startsWith('anthropic-')),
      [],
    );
  });

  test('messages: anthropic-ratelimit-*, times in RFC 3339; nothing of the other dialect', async () => {
    const { model } = rig.play('chat', replying('chat', answer));
    const key = await rig.key({ rpm: 1, tpm: 1000 });
    const reply = await rig.call(key, 'messages', bodyOf('messages', model, { max_tokens: 900 }));
    assert.equal(header(reply, 'anthropic-ratelimit-requests-limit'), '1');
    assert.equal(header(reply, 'anthropic-ratelimit-requests-remaining'), '0');
    const reset = header(reply, 'anthropic-ratelimit-requests-reset');
    assert.match(reset, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
    const ms = Date.parse(reset) - Date.now();
    assert.ok(ms <= 61_000, String(ms));
    assert.equal(header(reply, 'anthropic-ratelimit-tokens-limit'), '1000');
    const names = Object.keys(reply.headers);
    assert.deepEqual(
      names.filter((name) => name.startsWith('x-ratelimit-')),
      [],
    );
  });

  test('H5 K7 a refusal reports all limits of the key, whichever of them refused', async () => {
    const { model } = rig.play('chat', replying('chat', answer));
    const names = ['x-ratelimit-limit-requests', 'x-ratelimit-limit-tokens'];
    const told = (reply: HttpReply): readonly string[] => names.map((name) => header(reply, name));
    const body = bodyOf('chat', model, { max_tokens: 100 });
    const rated = await rig.key({ rpm: 1, tpm: 60_000 });
    await rig.call(rated, 'chat', body);
    const byRequests = await rig.call(rated, 'chat', body);
    assert.equal(byRequests.status, 429);
    assert.deepEqual(told(byRequests), ['1', '60000']);
    const left = Number(header(byRequests, 'x-ratelimit-remaining-tokens'));
    assert.ok(left > 59_000 && left <= 60_000, String(left));

    const small = await rig.key({ rpm: 7, tpm: 20 });
    const text = 'many words '.repeat(50);
    const large = { ...body, messages: [{ role: 'user', content: text }] };
    const never = await rig.call(small, 'chat', large);
    assert.match(String(errorOf(never)['message']), /can never fit/);
    assert.deepEqual(told(never), ['7', '20']);
    assert.equal(header(never, 'x-ratelimit-remaining-requests'), '7');
    assert.equal(header(never, 'x-should-retry'), 'false');

    const poor = await rig.key({ rpm: 9, tpm: 5000, budget: '0.000001', per: 'day' });
    const broke = await rig.call(poor, 'chat', body);
    assert.equal(errorOf(broke)['code'], 'insufficient_quota');
    assert.deepEqual(told(broke), ['9', '5000']);
    assert.equal(header(broke, 'x-ratelimit-remaining-requests'), '9');

    const busy = await rig.key({ concurrent: 1, rpm: 5, tpm: 5000 });
    const gate = Promise.withResolvers<void>();
    const held = rig.play('chat', { body: [gate.promise, '{}'] });
    const running = rig.call(busy, 'chat', bodyOf('chat', held.model));
    await held.script.request(0);
    const full = await rig.call(busy, 'chat', body);
    gate.resolve();
    await running;
    assert.equal(full.status, 429);
    assert.deepEqual(told(full), ['5', '5000']);
    assert.equal(header(full, 'x-ratelimit-remaining-requests'), '4');
  });

  test('streams and failures of the upstream have them too', async () => {
    const key = await rig.key({ rpm: 60 });
    const good = rig.play('chat', replying('chat', answer));
    const stream = await rig.call(key, 'chat', bodyOf('chat', good.model, { stream: true }));
    assert.equal(header(stream, 'x-ratelimit-limit-requests'), '60');
    const bad = rig.play('chat', { status: 500, body: '{}' });
    const failed = await rig.call(key, 'chat', bodyOf('chat', bad.model));
    assert.equal(failed.status, 502);
    assert.equal(header(failed, 'x-ratelimit-limit-requests'), '60');
  });

  test('of several limits the tightest is reported; a key without limits is told nothing', async () => {
    const { model } = rig.play('chat', replying('chat', answer));
    await rig.admin('PUT', '/api/teams/few', { rpm: 3 });
    const key = await rig.key({ rpm: 100, team: 'few' });
    const reply = await rig.call(key, 'chat', bodyOf('chat', model));
    assert.equal(header(reply, 'x-ratelimit-limit-requests'), '3');
    const free = await rig.call(await rig.key(), 'chat', bodyOf('chat', model));
    const told = Object.keys(free.headers).filter((name) => name.includes('ratelimit'));
    assert.deepEqual(told, []);
  });
});

describe('limits', () => {
  test('K6 a refused call takes nothing from any other counter', async () => {
    const { model } = rig.play('chat', replying('chat', answer));
    const limits = { rpm: 10, tpm: 100_000, budget: 5, per: 'day', shrink: false };
    const key = await rig.key(limits);
    await rig.admin('PUT', '/api/teams/closed', { rpm: 1 });
    const other = await rig.key({ rpm: 10, team: 'closed' });
    assert.equal((await rig.call(other, 'chat', bodyOf('chat', model))).status, 200);
    for (let i = 0; i < 5; i++) {
      assert.equal((await rig.call(other, 'chat', bodyOf('chat', model))).status, 429);
    }
    // What the team refused took none of the key's ten.
    await rig.admin('PUT', '/api/teams/closed', { rpm: 1000 });
    const open = await rig.call(other, 'chat', bodyOf('chat', model));
    assert.equal(header(open, 'x-ratelimit-remaining-requests'), '8');
    // A budget that refuses gives the request back.
    const dear = bodyOf('chat', model, { max_tokens: 900_000, n: 8 });
    assert.equal((await rig.call(key, 'chat', { ...dear })).status, 429);
    const fine = await rig.call(key, 'chat', bodyOf('chat', model));
    assert.equal(header(fine, 'x-ratelimit-remaining-requests'), '9');
  });

  test('K6 tokens are reserved, and what was not used comes back', async () => {
    const { model } = rig.play('chat', replying('chat', answer));
    const key = await rig.key({ tpm: 2000 });
    const body = bodyOf('chat', model, { max_tokens: 1500 });
    for (let i = 0; i < 5; i++) assert.equal((await rig.call(key, 'chat', body)).status, 200);
    const gate = Promise.withResolvers<void>();
    const held = rig.play('chat', () => ({ body: [gate.promise], framing: 'close' }));
    const waiting = rig.call(key, 'chat', bodyOf('chat', held.model, { max_tokens: 1500 }));
    await held.script.request(0);
    const refused = await rig.call(key, 'chat', body);
    assert.equal(refused.status, 429);
    assert.match(
      String(errorOf(refused)['message']),
      /2000 tokens per minute, \d+ left; about \d+ prompt tokens and up to 1500 output tokens/,
    );
    gate.resolve();
    await waiting;
    assert.equal((await rig.call(key, 'chat', body)).status, 200);
  });

  test('K6 a token limit demands no max_tokens', async () => {
    const { model, script } = rig.play('chat', replying('chat', answer));
    const key = await rig.key({ tpm: 5000 });
    assert.equal((await rig.call(key, 'chat', bodyOf('chat', model))).status, 200);
    assert.equal((await script.request(0)).json['max_tokens'], undefined);
  });

  test('a prompt that is larger than the limit is told that waiting does not help', async () => {
    const { model } = rig.play('chat', replying('chat', answer));
    const key = await rig.key({ tpm: 50 });
    const messages = [{ role: 'user', content: 'many words '.repeat(100) }];
    const reply = await rig.call(key, 'chat', bodyOf('chat', model, { messages }));
    assert.equal(reply.status, 429);
    assert.equal(header(reply, 'x-should-retry'), 'false');
    assert.match(String(errorOf(reply)['message']), /can never fit/);
  });

  test('calls at a time: a place is free again when a call is over, however it ends', async () => {
    const gate = Promise.withResolvers<void>();
    const { model, script } = rig.play('chat', () => ({ body: [gate.promise], framing: 'close' }));
    const quick = rig.play('chat', replying('chat', answer));
    const key = await rig.key({ concurrent: 2 });
    const leaving = new AbortController();
    const ask = (signal?: AbortSignal): Promise<HttpReply> =>
      send(`${rig.gateway.url}/v1/chat/completions`, bodyOf('chat', model), {
        headers: key.headers,
        ...(signal === undefined ? {} : { signal }),
      });
    const first = ask(leaving.signal).catch(() => undefined);
    const second = ask();
    await script.request(1);
    const refused = await rig.call(key, 'chat', bodyOf('chat', quick.model));
    assert.equal(refused.status, 429);
    assert.match(String(errorOf(refused)['message']), /2 calls at a time/);
    assert.ok(Number(header(refused, 'retry-after-ms')) <= 5000);
    leaving.abort();
    await first;
    await (
      await script.request(0)
    ).closed;
    await untilAdmitted(key, quick.model);
    gate.resolve();
    await second;
    await rig.gateway.noneLeft();
    for (let i = 0; i < 3; i++) await untilAdmitted(key, quick.model);
  });

  test('a limit for some models counts those alone', async () => {
    const small = rig.play('chat', replying('chat', answer));
    const large = rig.play('chat', replying('chat', answer));
    const limits = [{ kind: 'requests', amount: 1, model: large.model }];
    const key = await rig.key({ limits });
    assert.equal((await rig.call(key, 'chat', bodyOf('chat', large.model))).status, 200);
    const refused = await rig.call(key, 'chat', bodyOf('chat', large.model));
    assert.equal(refused.status, 429);
    assert.ok(String(errorOf(refused)['message']).includes(`for models ${large.model}`));
    assert.equal((await rig.call(key, 'chat', bodyOf('chat', small.model))).status, 200);
  });

  test('waits beyond a minute are not to be slept through', async () => {
    const { model } = rig.play('chat', replying('chat', { text: 'x', usage: hungry }));
    const key = await rig.key({ tpm: 100 });
    assert.equal((await rig.call(key, 'chat', bodyOf('chat', model))).status, 200);
    const reply = await rig.call(key, 'chat', bodyOf('chat', model));
    assert.equal(reply.status, 429);
    assert.equal(header(reply, 'x-should-retry'), 'false');
    assert.equal(reply.headers['retry-after'], undefined);
  });
});

/** As much as a debt can be: one minute's tokens below empty. */
const hungry = { fresh: 20, cacheRead: 0, cacheWrite: 0, output: 5000, reasoning: 0 };

/** The gateway hears of a client that left a moment later. */
async function untilAdmitted(key: LimitedKey, model: string): Promise<void> {
  const deadline = performance.now() + 60_000;
  for (;;) {
    const reply = await rig.call(key, 'chat', bodyOf('chat', model));
    if (reply.status === 200) return;
    assert.ok(performance.now() < deadline, reply.text);
  }
}

test('count_tokens counts as a request, and costs neither tokens nor money', async () => {
  const { model } = rig.play('chat', replying('chat', answer));
  const key = await rig.key({ rpm: 2, tpm: 1, budget: 0, per: 'day' });
  const count = (): Promise<HttpReply> =>
    send(`${rig.gateway.url}/v1/messages/count_tokens`, bodyOf('messages', model), {
      headers: key.headers,
    });
  const counted = await count();
  assert.equal(counted.status, 200, counted.text);
  assert.equal(header(counted, 'anthropic-ratelimit-requests-remaining'), '1');
  assert.equal((await count()).status, 200);
  const refused = await count();
  assert.equal(refused.status, 429);
  assert.equal(errorOf(refused)['type'], 'rate_limit_error');
});

test('Q2 count_tokens gives its place back', async () => {
  const { model } = rig.play('chat', replying('chat', answer));
  const { headers } = await rig.key({ concurrent: 1 });
  for (let i = 0; i < 2; i++) {
    const body = bodyOf('messages', model);
    const reply = await send(`${rig.gateway.url}/v1/messages/count_tokens`, body, { headers });
    assert.equal(reply.status, 200, reply.text);
  }
});

test('the list of models is not counted', async () => {
  const key = await rig.key({ rpm: 1 });
  for (let i = 0; i < 3; i++) {
    const reply = await send(`${rig.gateway.url}/v1/models`, undefined, { headers: key.headers });
    assert.equal(reply.status, 200);
  }
});
