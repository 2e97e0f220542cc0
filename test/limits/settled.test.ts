/** F7, F8, Q2, Q3: after any mix of outcomes there is a row a call, and the budget has what the rows cost. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { isObject, type JsonObject } from '../../src/json/value.ts';
import { caseCount } from '../support/depth.ts';
import { send } from '../support/http.ts';
import { clientDialects, upstreamDialects, type UpstreamDialect } from '../support/dialects.ts';
import { type AnyDialect } from '../support/reading.ts';
import { endpointOf, requestBody } from '../support/requests.ts';
import { piecesIn } from '../upstream/aws.ts';
import { answerIn, joined } from '../upstream/reply.ts';
import { wantsStream, type Answer, type Received, type Scripted } from '../upstream/scripted.ts';
import { startLimitedRig, type LimitedKey, type LimitedRig } from './limited-rig.ts';

let rig: LimitedRig;
before(async () => {
  rig = await startLimitedRig();
});
after(() => rig.stop());

const calls = caseCount(5_000, 500);
const atOnce = 40;

/** The same numbers in each run. */
function dice(seed: number): (sides: number) => number {
  let state = seed;
  return (sides) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return (state >>> 8) % sides;
  };
}

function whole(upstream: UpstreamDialect, request: Received, output: number): Answer {
  const usage = { fresh: 12, cacheRead: 0, cacheWrite: 0, output, reasoning: 0 };
  return answerIn(upstream, { text: 'Good day to you.', usage }, wantsStream(request));
}

/** The first half of an answer, and then the end that it is given. */
function broken(upstream: UpstreamDialect, request: Received, ending: 'reset' | 'hang'): Answer {
  const { body, ...rest } = whole(upstream, request, 9);
  const bytes = joined(body);
  const framing = wantsStream(request) ? ('chunked' as const) : ('close' as const);
  return { ...rest, framing, body: [bytes.slice(0, bytes.length / 2)], ending };
}

const outcomes: { readonly [name: string]: (upstream: UpstreamDialect) => Scripted } = {
  ok: (upstream) => (request) => whole(upstream, request, 20),
  unreported: (upstream) => (request) => {
    const { body, ...rest } = whole(upstream, request, 20);
    if (Buffer.isBuffer(body)) return { ...rest, body: joined(piecesIn(body).slice(0, -1)) };
    return { ...rest, body: String(body).replaceAll('usage', 'unusual') };
  },
  failed: () => ({ status: 500, body: '{}' }),
  refused: () => ({ status: 400, body: '{"error":{"message":"no"}}' }),
  reset: (upstream) => (request) => broken(upstream, request, 'reset'),
  left: (upstream) => (request) => {
    const name = /call-\d+-/.exec(request.body.toString())?.[0] ?? '';
    // A little later: half of the answer is on its way by then.
    setTimeout(() => leaving.get(name)?.abort(), 5);
    return broken(upstream, request, 'hang');
  },
};

/** Clients that leave as soon as the upstream has their call. */
const leaving = new Map<string, AbortController>();

interface Planned {
  readonly name: string;
  readonly dialect: AnyDialect;
  readonly body: JsonObject;
}

function plan(models: ReadonlyMap<string, string>): readonly Planned[] {
  const roll = dice(20_261_121);
  const names = [...models.keys()];
  return Array.from({ length: calls }, (_, i): Planned => {
    const dialect = clientDialects[roll(clientDialects.length)] ?? 'chat';
    const name = names[roll(names.length)] ?? '';
    const stream = roll(2) === 0;
    const kind = roll(12);
    const model = kind === 0 ? 'nobody/knows' : (models.get(name) ?? '');
    const more = kind === 1 ? { temperature: 'hot' } : { max_tokens: 100 + roll(400) };
    const own = `call-${i}-`;
    const messages = [{ role: 'user', content: own }];
    return {
      name: own,
      dialect,
      body: requestBody(dialect, { model, stream, more: { ...more, messages } }),
    };
  });
}

async function run({ name, dialect, body }: Planned, key: LimitedKey): Promise<void> {
  const client = new AbortController();
  leaving.set(name, client);
  await send(rig.gateway.url + endpointOf[dialect], body, {
    headers: key.headers,
    signal: client.signal,
  }).catch((error: unknown) => {
    assert.ok(client.signal.aborted, String(error));
  });
}

test(`F7 F8 Q2 Q3 ${calls} calls of mixed outcomes: rows = calls, the sum of their costs = the budget`, async () => {
  const models = new Map<string, string>();
  for (const upstream of upstreamDialects) {
    for (const [name, script] of Object.entries(outcomes)) {
      models.set(`${name} ${upstream}`, rig.play(upstream, script(upstream)).model);
    }
  }
  const key = await rig.key({ budget: 20, per: 'ever', rpm: 1_000_000, concurrent: 1000 });
  const planned = [...plan(models)];
  const workers = Array.from({ length: atOnce }, async () => {
    for (let next = planned.pop(); next !== undefined; next = planned.pop()) await run(next, key);
  });
  await Promise.all(workers);
  await rig.gateway.noneLeft();
  const usage = await rig.admin('GET', '/api/usage?by=key');
  const rows = Array.isArray(usage['rows']) ? usage['rows'].filter(isObject) : [];
  const row = rows.find((each) => each['key'] === key.id);
  assert.equal(row?.['calls'], calls);
  const spent = await rig.spent(key);
  assert.ok(spent > 0 && spent <= 20e9);
  assert.equal(Math.round(Number(row['cost_usd']) * 1e9), spent);
  // Nothing is held any more: the whole rest of the budget can be reserved at once.
  const rest = Math.floor((20e9 - spent) / 10_000);
  const { model } = rig.play('chat', (request) => whole('chat', request, 1));
  const last = { model, stream: false, more: { max_tokens: rest } };
  const strict = await rig.call(key, 'chat', requestBody('chat', last));
  assert.equal(strict.status, 200, strict.text);
  assert.equal(strict.headers['x-gateway-notes'], undefined);
});
