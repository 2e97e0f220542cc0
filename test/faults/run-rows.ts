/** Runs fault rows: client dialect × upstream dialect × stream or document, raw and by the SDKs. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { JsonObject } from '../../src/core/conversation.ts';
import { isObject } from '../../src/core/json.ts';
import type { Reply } from '../support/http.ts';
import { assertErrorBody } from '../support/legality.ts';
import {
  dialects,
  endingOf,
  numberAt,
  objectAt,
  readDocument,
  readStream,
  streamError,
  textAt,
  type Dialect,
  type Seen,
} from '../support/reading.ts';
import { ask, startRig, type Played, type Rig } from '../support/rig.ts';
import { requestBody } from '../support/requests.ts';
import { sdks } from '../support/sdks.ts';
import type { Answer } from '../upstream/scripted.ts';
import type { ErrorLooks, FaultRow, Outcome, Shape } from './fault-row.ts';

interface Case {
  readonly row: FaultRow;
  readonly dialect: Dialect;
  readonly upstream: Dialect;
  readonly shape: Shape;
}

function outcomeOf({ row, shape }: Case): Outcome {
  return (shape === 'document' ? row.documentOutcome : undefined) ?? row.outcome;
}

/** Registers the tests of all rows. */
export function runRows(rows: readonly FaultRow[]): void {
  let rig: Rig;
  before(async () => {
    // Rows are about answers: how often and when is asked again is told in retries.test.ts.
    rig = await startRig({}, { random: () => 0 });
  });
  after(() => rig.stop());

  const play = ({ row, upstream, shape }: Case, seen: Promise<void>): Played => {
    const script = (): Answer => row.play(upstream, shape === 'stream', seen);
    return row.impatient ? rig.playImpatient(upstream, script) : rig.play(upstream, script);
  };

  for (const dialect of dialects) {
    for (const upstream of dialects) {
      const mode = dialect === upstream ? 'relay' : 'translate';
      describe(`${dialect}, ${mode}`, () => {
        for (const row of rows) {
          if (row.upstream !== undefined && row.upstream !== upstream) continue;
          if (row.mode !== undefined && row.mode !== mode) continue;
          for (const shape of row.shapes ?? (['stream', 'document'] as const)) {
            const at: Case = { row, dialect, upstream, shape };
            test(`${row.id} ${row.name}, ${shape}`, async () => {
              const seen = Promise.withResolvers<void>();
              const played = play(at, seen.promise);
              await runRaw(rig, at, played.model, seen.resolve);
              if (row.hangs) {
                const request = await played.script.request(0);
                assert.equal(await request.closed, 'gateway');
              }
              if (outcomeOf(at).kind !== 'served') await runSdks(rig, at, played.model);
              else if (row.impatient !== true) await serveSdks(rig, at, played.model);
            });
          }
        }
      });
    }
  }
}

function oddFrames({ row, dialect, upstream }: Case): { oddFrames?: true } {
  return dialect === upstream && row.unusualFrames === true ? { oddFrames: true } : {};
}

async function runRaw(rig: Rig, at: Case, model: string, onContent: () => void): Promise<void> {
  const { row, dialect, shape } = at;
  const outcome = outcomeOf(at);
  const body = requestBody(dialect, { model, stream: shape === 'stream' });
  const reply = await ask(rig, dialect, body, { onData: onContent, ...oddFrames(at) });
  assert.ok(reply.complete, 'the HTTP message is complete');
  assert.notEqual(String(reply.headers['x-request-id'] ?? ''), '');
  for (const [name, pattern] of Object.entries(row.headers ?? {})) {
    assert.match(String(reply.headers[name]), pattern, name);
  }
  if (row.hidden !== undefined) assert.ok(!reply.text.includes(row.hidden), reply.text);
  const ledger = await rig.gateway.callRow(String(reply.headers['x-request-id']));
  assert.equal(ledger['status'], reply.status);
  assert.equal(ledger['model'], model);
  switch (outcome.kind) {
    case 'refused':
      assertRefused(at, outcome.as, reply);
      assertFree(ledger);
      break;
    case 'broken':
      assertBroken(at, outcome.as, reply);
      assertPartlyCharged(ledger);
      break;
    case 'served':
      assertServed(at, outcome.seen, reply);
      assert.equal(ledger['outcome'], 'ok');
      assert.equal(ledger['usage_source'], row.usageSource ?? 'reported');
      break;
    default:
      outcome satisfies never;
  }
}

function assertLook(
  dialect: Dialect,
  as: readonly ErrorLooks[],
  found: JsonObject,
  status: number,
): void {
  const seen = {
    status,
    type: textAt(found, 'type'),
    ...(dialect === 'chat' ? { code: found['code'] ?? null } : {}),
  };
  const allowed = as.map((looks) => looks[dialect]);
  assert.ok(
    allowed.some((look) => JSON.stringify(look) === JSON.stringify(seen)),
    `${JSON.stringify(seen)} is none of ${JSON.stringify(allowed)}: ${JSON.stringify(found)}`,
  );
}

function assertRefused({ row, dialect }: Case, as: readonly ErrorLooks[], reply: Reply): void {
  assert.match(String(reply.headers['content-type']), /^application\/json/, reply.text);
  const error = assertErrorBody(dialect, reply.json);
  assertLook(dialect, as, error, reply.status);
  if (row.message !== undefined) assert.match(textAt(error, 'message'), row.message[dialect]);
}

function assertBroken({ row, dialect }: Case, as: readonly ErrorLooks[], reply: Reply): void {
  assert.equal(reply.status, 200, reply.text);
  assert.equal(endingOf(dialect, reply.text), 'error', reply.text.slice(-500));
  const error = streamError(reply.text);
  assertLook(dialect, as, error, 200);
  if (row.message !== undefined) assert.match(textAt(error, 'message'), row.message[dialect]);
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

/** L0: a call that no upstream answered costs nothing. */
function assertFree(ledger: JsonObject): void {
  assert.equal(ledger['outcome'], 'failed');
  assert.notEqual(textAt(ledger, 'error'), '');
  const charged = objectAt(ledger, 'charged');
  assert.equal(numberAt(charged, 'output_tokens'), 0);
  assert.equal(numberAt(charged, 'fresh_input_tokens'), 0);
}

/** LP: what was received is charged, estimated where it was not reported. */
function assertPartlyCharged(ledger: JsonObject): void {
  assert.equal(ledger['outcome'], 'failed');
  assert.notEqual(textAt(ledger, 'error'), '');
  assert.ok(isObject(ledger['charged']), JSON.stringify(ledger));
  const charged = objectAt(ledger, 'charged');
  assert.ok(numberAt(charged, 'output_tokens') > 0, JSON.stringify(ledger));
  assert.ok(numberAt(charged, 'fresh_input_tokens') > 0, JSON.stringify(ledger));
}

/** Every SDK must throw: neither loop nor final message may look like success. */
async function runSdks(rig: Rig, { dialect, shape }: Case, model: string): Promise<void> {
  for (const sdk of sdks.filter((candidate) => candidate.dialect === dialect)) {
    const client = sdk.connect({ url: rig.gateway.url });
    const question = { model, text: 'Hello' };
    const ways = shape === 'stream' ? (['iterate', 'final'] as const) : (['plain'] as const);
    for (const way of ways) {
      const outcome = await client[way](question).then(
        (value) => `succeeded with ${JSON.stringify(value)}`,
        (thrown: unknown) => (thrown instanceof Error ? 'threw' : `threw ${String(thrown)}`),
      );
      assert.equal(outcome, 'threw', `${sdk.name} ${way}`);
    }
  }
}

/** Every SDK must deliver what was served. */
async function serveSdks(rig: Rig, at: Case, model: string): Promise<void> {
  const outcome = outcomeOf(at);
  if (outcome.kind !== 'served') return;
  const { seen }: { seen: Partial<Seen> } = outcome;
  for (const sdk of sdks.filter((candidate) => candidate.dialect === at.dialect)) {
    const client = sdk.connect({ url: rig.gateway.url, ...oddFrames(at) });
    const question = { model, text: 'Hello' };
    const found =
      at.shape === 'stream' ? await client.final(question) : await client.plain(question);
    if (seen.text !== undefined) assert.equal(found.text, seen.text, sdk.name);
    if (seen.calls !== undefined) assert.deepEqual(found.calls, seen.calls, sdk.name);
  }
}
