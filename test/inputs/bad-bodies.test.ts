/**
 * Bodies that no provider could take (reliability.md B26–B58), in each dialect and mode: a
 * clear error that names the place, in the caller's dialect, and no upstream call.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { assertErrorBody } from '../support/legality.ts';
import {
  clientDialects,
  pairs,
  upstreamDialects,
  type ClientDialect,
} from '../support/dialects.ts';
import { runsNow } from '../support/depth.ts';
import { listAt, textAt } from '../support/reading.ts';
import { ask, startRig, type Rig } from '../support/rig.ts';
import { send, type Reply } from '../support/http.ts';
import { adminToken } from '../support/keys.ts';
import { endpointOf } from '../support/requests.ts';
import type { JsonObject } from '../../src/json/value.ts';
import { bodyOf, isFor, pathOf, type BadRow } from './bad-row.ts';
import { byteRows } from './byte-rows.ts';
import {
  conversationRows,
  foreignRows,
  itemRows,
  statefulRows,
  toolRows,
} from './conversation-rows.ts';
import { fieldRows } from './field-rows.ts';
import { limitRows } from './limit-rows.ts';
import { mediaRows } from './media-rows.ts';

const badRows: readonly BadRow[] = [
  ...byteRows,
  ...fieldRows,
  ...conversationRows,
  ...itemRows,
  ...foreignRows,
  ...toolRows,
  ...statefulRows,
  ...mediaRows,
  ...limitRows,
];

/** Each refused call that must have a row, and the status of its answer. */
const refused = new Map<string, number>();
let rig: Rig;
before(async () => {
  rig = await startRig();
});
after(() => rig.stop());

/** Calls to upstreams so far; a refused body must add none. Asking for a list of models is no call. */
function upstreamCalls(): number {
  return upstreamDialects
    .flatMap((upstream) => rig.upstreams[upstream].all)
    .filter((request) => request.method === 'POST').length;
}

/** The path that an error names, written with dots in all dialects; '' for none. */
function namedPath(dialect: ClientDialect, error: JsonObject): string {
  if (dialect !== 'messages') return textAt(error, 'param').replace(/\[(\d+)\]/g, '.$1');
  return /^([\w$-]+(?:\.[\w$-]+)*): /.exec(textAt(error, 'message'))?.[1] ?? '';
}

for (const [at, { client, upstream }] of pairs.entries()) {
  const mode = client === upstream ? 'relay' : 'translate';
  describe(`${client} on ${upstream}`, () => {
    for (const [i, row] of badRows.entries()) {
      if (!isFor(row, client) || (row.mode ?? mode) !== mode) continue;
      // What holds in both modes is asked in each relay; `npm test` takes a sample of it elsewhere.
      const inSample = mode === 'relay' || row.mode !== undefined || (i + at) % 13 === 0;
      if (!runsNow(inSample)) continue;
      test(`${row.id} ${row.name}`, async () => {
        const before = upstreamCalls();
        const model = `up-${upstream}/bad-input`;
        const sending = row.headers === undefined ? {} : { headers: row.headers };
        const reply = await ask(rig, client, bodyOf(row, client, model), sending);
        assertRefused(row, client, reply);
        assert.equal(upstreamCalls(), before, 'no upstream call');
        refused.set(String(reply.headers['x-request-id']), row.status);
      });
    }
  });
}

const counts = { messages: 'count_tokens', responses: 'input_tokens' } as const;
for (const client of ['messages', 'responses'] as const) {
  for (const [at, upstream] of upstreamDialects.entries()) {
    describe(`${counts[client]}, ${upstream} upstream`, () => {
      for (const [i, row] of badRows.entries()) {
        if (row.notCounted === true || !isFor(row, client) || row.mode !== undefined) continue;
        if (!runsNow((i + at) % 13 === 0)) continue;
        test(`${row.id} ${row.name}`, async () => {
          const before = upstreamCalls();
          const body = bodyOf(row, client, `up-${upstream}/bad-input`);
          const url = `${rig.gateway.url}${endpointOf[client]}/${counts[client]}`;
          assertRefused(row, client, await send(url, body, { headers: row.headers ?? {} }));
          assert.equal(upstreamCalls(), before, 'no upstream call');
        });
      }
    });
  }
}

function assertRefused(row: BadRow, dialect: ClientDialect, reply: Reply): void {
  assert.equal(reply.status, row.status, reply.text);
  assert.match(reply.headers['content-type'] ?? '', /^application\/json/);
  const error = assertErrorBody(dialect, reply.json);
  assert.notEqual(reply.headers['x-request-id'] ?? '', '');
  assert.equal(reply.headers['request-id'], reply.headers['x-request-id']);
  assert.equal(reply.headers['x-should-retry'] ?? 'false', 'false', 'the SDKs do not ask again');
  if (row.status === 400) assert.equal(error['type'], 'invalid_request_error');
  const path = pathOf(row, dialect);
  if (path !== undefined) {
    const named = namedPath(dialect, error);
    assert.ok(
      named === path || named.startsWith(`${path}.`),
      `names ${path}, not "${named}": ${reply.text}`,
    );
  }
  if (row.message !== undefined) assert.match(textAt(error, 'message'), row.message);
  assert.ok(!reply.text.includes('SECRET'), 'content is not echoed');
}

test('F8 each refused call has its row: failed, without cost, nothing of the body', async () => {
  // The rows are written in order: the last one is there when all are.
  await rig.gateway.callRow([...refused.keys()].at(-1) ?? '');
  const rows = new Map<string, JsonObject>();
  for (let cursor = ''; rows.size < refused.size;) {
    const reply = await send(`${rig.gateway.adminUrl}/api/calls?limit=1000${cursor}`, undefined, {
      anonymous: true,
      headers: { authorization: `Bearer ${adminToken}` },
    });
    assert.ok(!reply.text.includes('SECRET'), 'no content is kept');
    for (const row of listAt(reply.json, 'calls')) rows.set(textAt(row, 'id'), row);
    const next = reply.json['next'];
    if (typeof next !== 'string') break;
    cursor = `&after=${encodeURIComponent(next)}`;
  }
  for (const [id, status] of refused) {
    const row = rows.get(id);
    assert.ok(row !== undefined, `no row of ${id}`);
    assert.deepEqual(
      [row['outcome'], row['status'], row['cost_usd']],
      ['failed', status, 0],
      JSON.stringify(row),
    );
  }
});

test('E2 a body beyond the limit is refused, by length and while it comes in', async () => {
  const before = upstreamCalls();
  const huge = Buffer.alloc(33 * 1024 * 1024, ' ');
  for (const dialect of clientDialects) {
    const reply = await ask(rig, dialect, huge).catch((error: unknown) => error);
    // The gateway closes at once; a client that is still sending may see only the closed connection.
    if (reply instanceof Error) assert.match(String(reply), /ECONNRESET|EPIPE|socket hang up/);
    else assert.equal(Reflect.get(Object(reply), 'status'), 413);
  }
  assert.equal(upstreamCalls(), before);
});
