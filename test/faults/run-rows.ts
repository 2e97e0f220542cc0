/**
 * Runs fault rows: client dialect × upstream dialect × stream or document, raw and by the SDKs. What
 * each call left in the ledger is looked at as well.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { JsonObject } from '../../src/json/value.ts';
import { isInSample } from '../support/depth.ts';
import type { Reply } from '../support/http.ts';
import { assertErrorBody } from '../support/legality.ts';
import {
  endingOf,
  readDocument,
  readStream,
  streamError,
  textAt,
  type AnyDialect,
  type Seen,
} from '../support/reading.ts';
import { ask, type Rig } from '../support/rig.ts';
import { requestBody } from '../support/requests.ts';
import { allSdks, type Question } from '../support/sdks.ts';
import { lookOf, type ErrorLooks, type FaultRow } from './fault-row.ts';
import {
  attemptsOf,
  cap,
  casesOf,
  outcomeOf,
  playCase,
  startCases,
  type Case,
  type PlayedCase,
} from './row-case.ts';
import { assertRow, assertSettled } from './row-ledger.ts';

/**
 * Rows do not touch each other, and most of a row is waiting. Short times are not looked at while others make
 * the event loop busy.
 */
const atOnce = { usual: 16, impatient: 16, heavy: 1 } as const;

function kindOf({ heavy, impatient }: FaultRow): keyof typeof atOnce {
  if (heavy === true) return 'heavy';
  return impatient === undefined ? 'usual' : 'impatient';
}

/** What an SDK sees does not depend on the upstream's dialect: of megabytes it is sent those of two. */
function hasSdkCalls({ row, dialect, upstream }: Case): boolean {
  return row.heavy !== true || upstream === dialect || upstream === 'chat';
}

/**
 * The cases that run now. `npm test` plays one in eleven of a row, of a short row one in seven, and at least one. The steps
 * are odd and begin elsewhere in each row, so rows that follow each other meet other clients, modes and shapes.
 */
function casesNow(rows: readonly FaultRow[]): readonly Case[] {
  const ofRows = [...Map.groupBy(casesOf(rows), ({ row }) => row).values()];
  return ofRows.flatMap((cases, number) => {
    const step = Math.min(cases.length > 20 ? 11 : 7, cases.length);
    return cases.filter((_case, i) => isInSample(number + i, step));
  });
}

/** Registers the tests of all rows. */
export function runRows(rows: readonly FaultRow[]): void {
  const cases = casesNow(rows);
  let rig: Rig;
  before(async () => {
    rig = await startCases(cases);
  });
  after(() => rig.stop());

  for (const [name, concurrency] of Object.entries(atOnce)) {
    const some = cases.filter(({ row }) => kindOf(row) === name);
    if (some.length === 0) continue;
    describe(name, { concurrency }, () => {
      for (const at of some) {
        const { row, dialect, upstream, mode, shape } = at;
        test(`${row.id} ${row.name}, ${dialect}, ${mode} from ${upstream}, ${shape}`, () =>
          runCase(rig, at));
      }
    });
  }
}

async function runCase(rig: Rig, at: Case): Promise<void> {
  const seen = Promise.withResolvers<void>();
  const played = await playCase(rig, at, seen.promise);
  await runRaw(rig, at, played, seen.resolve);
  if (at.row.hangs) {
    const request = await played.script.request(0);
    assert.equal(await request.closed, 'gateway');
  }
  const run = outcomeOf(at).kind === 'served' ? serveSdks : runSdks;
  const bySdks = hasSdkCalls(at) ? await run(rig, at, played) : 0;
  await assertSettled(rig, at, { ...played, calls: 1 + bySdks });
}

function oddFrames({ row, dialect, upstream }: Case): { oddFrames?: true } {
  return dialect === upstream && row.unusualFrames === true ? { oddFrames: true } : {};
}

async function runRaw(
  rig: Rig,
  at: Case,
  { model, key }: PlayedCase,
  onContent: () => void,
): Promise<void> {
  const { row, dialect, shape } = at;
  const outcome = outcomeOf(at);
  const messages = [{ role: 'user', content: row.prompt ?? 'Hello' }];
  const more = { max_tokens: cap, messages, ...row.more };
  const body = requestBody(dialect, { model, stream: shape === 'stream', more });
  const headers = { authorization: `Bearer ${key}` };
  const reply = await ask(rig, dialect, body, { onData: onContent, headers, ...oddFrames(at) });
  assert.ok(reply.complete, 'the HTTP message is complete');
  assert.notEqual(String(reply.headers['x-request-id'] ?? ''), '');
  for (const [name, pattern] of Object.entries(row.headers ?? {})) {
    assert.match(String(reply.headers[name]), pattern, name);
  }
  if (row.hidden !== undefined) assert.ok(!reply.text.includes(row.hidden), reply.text);
  switch (outcome.kind) {
    case 'refused':
      assertRefused(at, outcome.as, reply);
      break;
    case 'broken':
      assertBroken(at, outcome.as, reply);
      break;
    case 'served':
      assertServed(at, outcome.seen, reply);
      break;
    default:
      outcome satisfies never;
  }
  const ledger = await rig.gateway.callRow(String(reply.headers['x-request-id']));
  assert.equal(ledger['status'], reply.status);
  assert.equal(ledger['model'], model);
  assertRow(at, ledger);
  assert.equal(reply.headers['x-gateway-attempts'], String(attemptsOf(at)));
}

function assertLook(
  dialect: AnyDialect,
  as: readonly ErrorLooks[],
  found: JsonObject,
  status: number,
): void {
  const seen = {
    status,
    type: textAt(found, 'type'),
    ...(dialect !== 'messages' ? { code: found['code'] ?? null } : {}),
  };
  const allowed = as.map((looks) => lookOf(looks, dialect));
  assert.ok(
    allowed.some((look) => JSON.stringify(look) === JSON.stringify(seen)),
    `${JSON.stringify(seen)} is none of ${JSON.stringify(allowed)}: ${JSON.stringify(found)}`,
  );
}

function assertRefused({ row, dialect }: Case, as: readonly ErrorLooks[], reply: Reply): void {
  assert.match(String(reply.headers['content-type']), /^application\/json/, reply.text);
  const error = assertErrorBody(dialect, reply.json);
  assertLook(dialect, as, error, reply.status);
  if (row.message !== undefined)
    assert.match(textAt(error, 'message'), lookOf(row.message, dialect));
}

function assertBroken({ row, dialect }: Case, as: readonly ErrorLooks[], reply: Reply): void {
  assert.equal(reply.status, 200, reply.text);
  assert.equal(endingOf(dialect, reply.text), 'error', reply.text.slice(-500));
  const error = streamError(reply.text);
  assertLook(dialect, as, error, 200);
  if (row.message !== undefined)
    assert.match(textAt(error, 'message'), lookOf(row.message, dialect));
}

function assertServed({ dialect, shape }: Case, seen: Partial<Seen>, reply: Reply): void {
  assert.equal(reply.status, 200, reply.text);
  let found: Seen;
  if (shape === 'stream') {
    assert.match(String(reply.headers['content-type']), /^text\/event-stream/);
    assert.equal(endingOf(dialect, reply.text), 'proper', reply.text.slice(-500));
    found = readStream(dialect, reply.text);
  } else {
    assert.match(String(reply.headers['content-type']), /^application\/json/);
    found = readDocument(dialect, reply.json);
  }
  for (const [name, value] of Object.entries(seen)) {
    assert.deepEqual(Reflect.get(found, name), value, `${name}: ${reply.text.slice(-1500)}`);
  }
  assert.equal(reply.headers['content-encoding'], undefined, 'E9');
}

function questionOf({ row }: Case, model: string): Question {
  const said = row.more?.['max_tokens'];
  return { model, text: row.prompt ?? 'Hello', maxTokens: typeof said === 'number' ? said : cap };
}

/** Every SDK must throw: neither loop nor final message may look like success. How many calls it took. */
async function runSdks(rig: Rig, at: Case, { model, key }: PlayedCase): Promise<number> {
  let calls = 0;
  for (const sdk of allSdks.filter((candidate) => candidate.dialect === at.dialect)) {
    const client = sdk.connect({ url: rig.gateway.url, key });
    const ways = at.shape === 'stream' ? (['iterate', 'final'] as const) : (['plain'] as const);
    for (const way of ways) {
      calls += 1;
      const outcome = await client[way](questionOf(at, model)).then(
        (value) => `succeeded with ${JSON.stringify(value)}`,
        (thrown: unknown) => (thrown instanceof Error ? 'threw' : `threw ${String(thrown)}`),
      );
      assert.equal(outcome, 'threw', `${sdk.name} ${way}`);
    }
  }
  return calls;
}

/** Every SDK must deliver what was served. How many calls it took. */
async function serveSdks(rig: Rig, at: Case, { model, key }: PlayedCase): Promise<number> {
  const outcome = outcomeOf(at);
  if (outcome.kind !== 'served') return 0;
  const { seen }: { seen: Partial<Seen> } = outcome;
  const speaking = allSdks.filter((candidate) => candidate.dialect === at.dialect);
  for (const sdk of speaking) {
    const client = sdk.connect({ url: rig.gateway.url, key, ...oddFrames(at) });
    const question = questionOf(at, model);
    const found =
      at.shape === 'stream' ? await client.final(question) : await client.plain(question);
    if (seen.text !== undefined) assert.equal(found.text, seen.text, sdk.name);
    if (seen.calls !== undefined) assert.deepEqual(found.calls, seen.calls, sdk.name);
  }
  return speaking.length;
}
