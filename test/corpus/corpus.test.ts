/**
 * Issue 3: each field of both APIs, through all four pairs of dialects. The table of decisions says
 * what must become of it; the published schemas and the SDKs' types judge what upstreams get.
 */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import type { JsonObject } from '../../src/json/value.ts';
import { rowId, requestTables, type DecidedRow } from '../decisions/rows.ts';
import { dialects, objectAt, textAt, type Dialect } from '../support/reading.ts';
import { schemaJudge, typeComplaints, whyNoSchemas, type Typed } from '../support/schemas.ts';
import { sendSample, startCorpusRig, type CorpusRig, type Sent, relayedModel } from './corpus.ts';
import { dotted, locate, speaksOf } from './locate.ts';
import { holds, type Sample } from './sample.ts';
import { corpus } from './samples.ts';
import { shownElsewhere } from './shown-elsewhere.ts';

const other: { readonly [D in Dialect]: Dialect } = { chat: 'messages', messages: 'chat' };

let rig: CorpusRig;
before(async () => {
  rig = await startCorpusRig();
});
after(() => rig.stop());

function rowsOf(dialect: Dialect): ReadonlyMap<string, DecidedRow> {
  return new Map(requestTables[dialect].rows.map((row) => [rowId(row), row]));
}

/** Rows that a sample shows, its own first. */
function rowsShown(dialect: Dialect, id: string, { also = [] }: Sample<object>): DecidedRow[] {
  const rows = rowsOf(dialect);
  return [id, ...also].map((each) => {
    const row = rows.get(each);
    assert.ok(row !== undefined, `the table has no row ${each}`);
    return row;
  });
}

function concrete(request: JsonObject, row: DecidedRow, named: string | undefined): string {
  if (named !== undefined && !named.includes('[')) return named;
  return locate(request, named ?? row.path)[0] ?? row.path;
}

/** The field that a refusal names, as a dotted path. */
function refusedField(dialect: Dialect, { answer }: Sent): string {
  const error = objectAt(answer, 'error');
  if (dialect === 'chat') return dotted(textAt(error, 'param'));
  return /^([\w.]+): /.exec(textAt(error, 'message'))?.[1] ?? '';
}

function assertRefused(dialect: Dialect, sent: Sent, path: string): void {
  assert.equal(sent.status, 400, sent.text);
  assert.equal(sent.arrived.length, 0, 'an upstream was asked');
  assert.equal(textAt(objectAt(sent.answer, 'error'), 'type'), 'invalid_request_error');
  const named = refusedField(dialect, sent);
  assert.ok(speaksOf(named, path), `${named} is named instead of ${path}: ${sent.text}`);
}

/** A reported row is in the notes, any other is not, and nothing else is noted. */
function assertNotes(rows: readonly DecidedRow[], sent: Sent, sample: Sample<object>): void {
  const expected = rows
    .filter(({ verdict }) => isReported(verdict))
    .map((row) => concrete(sent.request, row, sample.named));
  for (const path of expected) {
    assert.ok(
      sent.notes.some((note) => speaksOf(note, path)),
      `${path} is not noted: ${sent.notes.join(' ')}`,
    );
  }
  const allowed = [
    ...expected,
    ...(sample.noted ?? []).flatMap((path) => locate(sent.request, path)),
  ];
  const surplus = sent.notes.filter((note) => !allowed.some((path) => speaksOf(note, path)));
  assert.deepEqual(surplus, [], 'noted without need');
}

function isReported(verdict: DecidedRow['verdict']): boolean {
  return verdict.decision === 'WARN' || (verdict.decision === 'APPROX' && !('silent' in verdict));
}

const judgeChatRequest = schemaJudge('CreateChatCompletionRequest');
const messagesBodies: Typed[] = [];

function judge(upstream: Dialect, name: string, body: JsonObject | undefined): void {
  assert.ok(body !== undefined, 'no upstream was asked');
  if (upstream === 'chat') assert.equal(judgeChatRequest(body), '', JSON.stringify(body));
  else messagesBodies.push({ name, type: 'Request', value: body });
}

async function assertTranslated(
  dialect: Dialect,
  id: string,
  sample: Sample<object>,
): Promise<void> {
  const rows = rowsShown(dialect, id, sample);
  const [row] = rows;
  assert.ok(row !== undefined);
  const sent = await sendSample(rig, sample, { client: dialect, upstream: other[dialect] });
  if (row.verdict.decision === 'REJECT') {
    return assertRefused(dialect, sent, concrete(sent.request, row, sample.named));
  }
  assert.equal(sent.status, 200, sent.text);
  if (sample.unasked === true) {
    assert.equal(sent.arrived.length, 0, 'an upstream was asked');
    return assertNotes(rows, sent, sample);
  }
  const [body] = sent.arrived;
  if (sample.arrives !== undefined) {
    assert.ok(
      holds(body, sample.arrives),
      `${JSON.stringify(body)} does not hold ${JSON.stringify(sample.arrives)}`,
    );
  }
  for (const key of sample.absent ?? []) assert.ok(!(key in (body ?? {})), `${key} is there`);
  judge(other[dialect], `${dialect} ${id}`, body);
  assertNotes(rows, sent, sample);
}

/** Relayed: every field arrives as it was sent. */
async function assertRelayed(dialect: Dialect, id: string, sample: Sample<object>): Promise<void> {
  const sent = await sendSample(rig, sample, { client: dialect, upstream: dialect });
  if (sample.refusedByAll === true) {
    return assertRefused(
      dialect,
      sent,
      concrete(sent.request, rowsShown(dialect, id, sample)[0] ?? never(), sample.named),
    );
  }
  assert.equal(sent.status, 200, sent.text);
  const [body] = sent.arrived;
  const usage = dialect === 'chat' && sent.request['stream'] === true;
  const options = objectAt(sent.request, 'stream_options');
  assert.deepEqual(body, {
    ...sent.request,
    model: relayedModel(dialect, sample).slice(relayedModel(dialect, sample).indexOf('/') + 1),
    ...(sample.relayed === undefined ? {} : { messages: sample.relayed }),
    ...(usage ? { stream_options: { ...options, include_usage: true } } : {}),
  });
  assert.equal(sent.notes.length > 0, sample.relayed !== undefined, sent.notes.join(' '));
  if (sample.beyondSchema !== true) judge(dialect, `${dialect} relayed ${id}`, body);
}

function never(): never {
  throw new Error('no row');
}

test('issue 3: rows that need more than one request are shown by tests that exist', () => {
  for (const file of Object.values({ ...shownElsewhere.chat, ...shownElsewhere.messages })) {
    assert.ok(existsSync(join(import.meta.dirname, '../..', file)), file);
  }
});

for (const dialect of dialects) {
  const leaves = requestTables[dialect].rows.filter(({ outer }) => !outer).map(rowId);
  test(`issue 3: each row of the ${dialect} requests has a sample, and each sample its field`, () => {
    const shown = new Set([
      ...Object.entries(corpus[dialect]).flatMap(([id, { also = [] }]) => [id, ...also]),
      ...Object.keys(shownElsewhere[dialect]),
    ]);
    assert.deepEqual(
      leaves.filter((id) => !shown.has(id)),
      [],
      'rows without a sample',
    );
    for (const [id, sample] of Object.entries(corpus[dialect])) {
      for (const row of rowsShown(dialect, id, sample)) {
        const found = locate({ model: '', messages: [], max_tokens: 1, ...sample.sends }, row.path);
        const inHeaders = sample.headers !== undefined;
        assert.ok(
          found.length > 0 || inHeaders || sample.named !== undefined,
          `${id}: no ${row.path}`,
        );
      }
    }
  });

  suite(`issue 3: ${dialect} requests to ${other[dialect]} upstreams`, () => {
    for (const [id, sample] of Object.entries(corpus[dialect])) {
      const decision = rowsOf(dialect).get(id)?.verdict.decision ?? 'no row';
      test(`${id}: ${decision}`, () => assertTranslated(dialect, id, sample));
    }
  });

  suite(`issue 3: ${dialect} requests to ${dialect} upstreams`, () => {
    for (const [id, sample] of Object.entries(corpus[dialect])) {
      test(id, () => assertRelayed(dialect, id, sample));
    }
  });
}

test('issue 3: every messages body that arrived is one by the types of the SDK', () => {
  assert.deepEqual(
    typeComplaints(
      messagesBodies,
      "type Request = Beta.MessageCreateParamsBase & Pick<Older.MessageCreateParamsBase, 'temperature' | 'top_p' | 'top_k'>;\n",
    ),
    [],
  );
});

if (whyNoSchemas !== undefined) test(`chat bodies against the published schemas: ${whyNoSchemas}`);
