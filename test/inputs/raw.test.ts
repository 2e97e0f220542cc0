/**
 * HTTP that is wrong or ambiguous, on raw sockets (reliability.md B1–B25, S18): one answer in the
 * caller's dialect, no upstream call, and a connection that is closed or goes on in step.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { tryParseObject } from '../../src/json/parse.ts';
import { assertErrorBody } from '../support/legality.ts';
import { clientDialects, upstreamDialects, type ClientDialect } from '../support/dialects.ts';
import { textAt } from '../support/reading.ts';
import { startRig, type Rig } from '../support/rig.ts';
import { framingRows } from './framing-rows.ts';
import { talkRaw, type RawAnswer } from './raw-client.ts';
import { rawRequest, type RawRow } from './raw-row.ts';
import { requestRows } from './request-rows.ts';

let rig: Rig;
before(async () => {
  rig = await startRig();
});
after(() => rig.stop());

function upstreamCalls(): number {
  return upstreamDialects
    .flatMap((upstream) => rig.upstreams[upstream].all)
    .filter((request) => request.method === 'POST').length;
}

function assertRefusal(row: RawRow, dialect: ClientDialect, answer: RawAnswer): void {
  const json = tryParseObject(answer.body);
  assert.ok(json !== undefined, answer.body);
  const error =
    row.beforeDialect === true
      ? (tryParseObject(JSON.stringify(json['error'] ?? null)) ?? {})
      : assertErrorBody(dialect, json);
  if (answer.status === 400) assert.equal(error['type'], 'invalid_request_error');
  if (row.message !== undefined) assert.match(textAt(error, 'message'), row.message);
  assert.ok(!answer.body.includes('SECRET'));
}

for (const dialect of clientDialects) {
  describe(dialect, () => {
    for (const row of [...framingRows, ...requestRows]) {
      if (row.notFor === dialect) continue;
      test(`${row.id} ${row.name}`, async () => {
        const before = upstreamCalls();
        const expected = [row.status, ...(row.behind ?? [])];
        const talk = await talkRaw(
          rig.gateway.url,
          row.bytes(rawRequest(dialect)),
          expected.length,
        );
        assert.deepEqual(
          talk.answers.map(({ status }) => status),
          expected,
          JSON.stringify(talk.answers),
        );
        assert.equal(talk.usable ? 'usable' : 'closed', row.after);
        const [answer] = talk.answers;
        assert.ok(answer !== undefined);
        assert.match(answer.headers.get('content-type') ?? '', /^application\/json/);
        if (row.after === 'closed') assert.equal(answer.headers.get('connection'), 'close');
        if (row.status >= 400) {
          assertRefusal(row, dialect, answer);
          const id = answer.headers.get('x-request-id') ?? '';
          assert.match(id, /^req_\w+$/);
          assert.equal(answer.headers.get('request-id'), id);
        }
        assert.equal(upstreamCalls(), before, 'no upstream call');
      });
    }
  });
}
