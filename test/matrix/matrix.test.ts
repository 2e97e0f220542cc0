/**
 * The matrix: {client dialect} × {every recorded answer} × {how the upstream sends it} × {how the
 * client asks}. All cells of one answer say the same, count the same and cost the same.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { withRecordedIds } from '../recordings/recorded.ts';
import { isInSample } from '../support/depth.ts';
import { clientDialects, type ClientDialect } from '../support/dialects.ts';
import { endingOf, readDocument, readStream, type Seen } from '../support/reading.ts';
import { ask, type Rig } from '../support/rig.ts';
import { requestBody, shown } from '../support/requests.ts';
import { whyOmitted } from '../recordings/recorded.ts';
import type { Answer } from '../upstream/scripted.ts';
import { bookedCost, bookedUsage, samples, startVendorRig, type Sample } from './cells.ts';

let rig: Rig;
before(async () => {
  rig = await startVendorRig();
});
after(() => rig.stop());

if (whyOmitted !== undefined) test('matrix', { skip: whyOmitted }, () => undefined);

interface Cell {
  readonly seen: Seen;
  readonly cost: unknown;
}

async function cell(
  dialect: ClientDialect,
  { upstream, vendor, expected }: Sample,
  { answer, stream }: { readonly answer: Answer; readonly stream: boolean },
): Promise<Cell> {
  const { model: name } = rig.play(upstream, answer);
  const model = name.replace(/^[^/]+/, vendor);
  const reply = await ask(
    rig,
    dialect,
    requestBody(dialect, { model, stream, more: shown(dialect) }),
  );
  assert.equal(reply.status, 200, reply.text);
  if (stream) assert.equal(endingOf(dialect, reply.text), 'proper', reply.text.slice(-300));
  const seen = stream ? readStream(dialect, reply.text) : readDocument(dialect, reply.json);
  assert.equal(seen.model, model, 'C4');
  const row = await rig.gateway.callRow(String(reply.headers['x-request-id']));
  assert.equal(row['outcome'], 'ok');
  const { usage } = expected(dialect);
  if (usage === undefined) assert.equal(row['usage_source'], 'estimated');
  else {
    assert.equal(row['usage_source'], 'reported');
    assert.deepEqual(bookedUsage(row), usage, 'the ledger');
  }
  return { seen: { ...seen, model: '' }, cost: bookedCost(row) };
}

for (const [i, dialect] of clientDialects.entries()) {
  describe(`${dialect} client`, () => {
    // `npm test` plays three samples in five, each with one client.
    for (const sample of samples().filter((_, j) => isInSample(i + j, 5))) {
      test(`F1 F2 F3 F4 E11 ${sample.name}`, async () => {
        const answers = [sample.stream, sample.document].filter((answer) => answer !== undefined);
        const cells: Cell[] = [];
        for (const answer of answers) {
          for (const stream of [true, false])
            cells.push(await cell(dialect, sample, { answer, stream }));
        }
        const { usage, ...expected } = sample.expected(dialect);
        for (const { seen, cost } of cells) {
          const { usage: told, ...said } = seen;
          const calls = withRecordedIds(said.calls, expected.calls);
          assert.deepEqual(
            { ...said, calls },
            {
              ...expected,
              model: '',
              finish: expected.calls.length > 0 ? 'tools' : expected.finish,
            },
          );
          if (usage !== undefined) assert.deepEqual(told, usage, 'the client');
          assert.deepEqual(cost, cells[0]?.cost, 'the cost');
        }
      });
    }
  });
}
