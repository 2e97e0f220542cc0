/**
 * Issues 3 and 21: each field of all APIs, through all pairs of dialects. The tables of decisions say what must
 * become of it; the published schemas and the SDKs' types judge what upstreams get.
 */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import type { JsonObject } from '../../src/json/value.ts';
import type { Verdict } from '../decisions/decision.ts';
import { requestTables, rowId, type DecidedRow } from '../decisions/rows.ts';
import { isInSample } from '../support/depth.ts';
import {
  clientDialects,
  upstreamDialects,
  upstreamOnlyDialects,
  type Pair,
  type UpstreamDialect,
} from '../support/dialects.ts';
import { allDialects, listAt, objectAt, textAt, type AnyDialect } from '../support/reading.ts';
import { assertTaken as assertTakenByConverse } from '../upstream/converse.ts';
import { assertTaken as assertTakenByGemini } from '../upstream/gemini.ts';
import { schemaJudge, typeComplaints, whyNoSchemas, type Typed } from '../support/schemas.ts';
import { sendSample, startCorpusRig, type CorpusRig, type Sent, relayedModel } from './corpus.ts';
import { dotted, locate, speaksOf, valuesAt } from './locate.ts';
import { firstUpstream, holds, shownAt, type Sample, type Shown } from './sample.ts';
import { corpus } from './samples.ts';
import { shownElsewhere } from './shown-elsewhere.ts';

let rig: CorpusRig;
before(async () => {
  rig = await startCorpusRig();
});
after(() => rig.stop());

/** Rows that a sample shows, its own first. */
function rowsShown(
  { client, upstream }: Pair,
  id: string,
  { also = [] }: Sample<object>,
): readonly [DecidedRow, ...DecidedRow[]] {
  const rows = new Map(requestTables[client].towards(upstream).map((row) => [rowId(row), row]));
  const find = (each: string): DecidedRow => {
    const row = rows.get(each);
    assert.ok(row !== undefined, `the table has no row ${each}`);
    return row;
  };
  // Of an object whose members are decided one by one, only the first upstream dialect's table says something.
  const told = also.map(find).filter(({ outer }) => !outer || upstream === firstUpstream[client]);
  return [find(id), ...told];
}

function concrete(request: JsonObject, row: DecidedRow, named: string | undefined): string {
  if (named !== undefined && !named.includes('[')) return named;
  return locate(request, named ?? row.path)[0] ?? row.path;
}

/** The field that a refusal names, as a dotted path. */
function refusedField(client: AnyDialect, { answer }: Sent): string {
  const error = objectAt(answer, 'error');
  if (client !== 'messages') return dotted(textAt(error, 'param'));
  return /^([\w.]+): /.exec(textAt(error, 'message'))?.[1] ?? '';
}

function assertRefused(client: AnyDialect, sent: Sent, path: string): void {
  assert.equal(sent.status, 400, sent.text);
  assert.equal(sent.arrived.length, 0, 'an upstream was asked');
  assert.equal(textAt(objectAt(sent.answer, 'error'), 'type'), 'invalid_request_error');
  const named = refusedField(client, sent);
  assert.ok(speaksOf(named, path), `${named} is named instead of ${path}: ${sent.text}`);
}

/** A reported row is in the notes, any other is not, and nothing else is noted. */
function assertNotes(rows: readonly DecidedRow[], sent: Sent, { named, noted = [] }: Shown): void {
  const expected = rows
    .filter(({ verdict }) => isReported(verdict))
    .map((row) => concrete(sent.request, row, named));
  for (const path of expected) {
    assert.ok(
      sent.notes.some((note) => speaksOf(note, path)),
      `${path} is not noted: ${sent.notes.join(' ')}`,
    );
  }
  const allowed = [...expected, ...noted.flatMap((path) => locate(sent.request, path))];
  const surplus = sent.notes.filter((note) => !allowed.some((path) => speaksOf(note, path)));
  assert.deepEqual(surplus, [], 'noted without need');
}

function isReported(verdict: Verdict): boolean {
  return verdict.decision === 'WARN' || (verdict.decision === 'APPROX' && !('silent' in verdict));
}

/** Where a verdict names a place in the body that arrives, something stands there: the same, where it is a plain value. */
function assertCarried(body: JsonObject, sent: Sent, { path, verdict }: DecidedRow): void {
  if (verdict.decision !== 'EXACT' && verdict.decision !== 'APPROX') return;
  const places = verdict.to.split(', ').filter((to) => /^[a-z_0-9[\].]+$/i.test(to));
  for (const to of places) {
    const found = valuesAt(body, to);
    assert.ok(found.length > 0, `${path}: nothing at ${to} in ${JSON.stringify(body)}`);
    const plain = valuesAt(sent.request, path).filter((value) => typeof value !== 'object');
    if (verdict.decision !== 'EXACT' || verdict.how !== undefined || path === 'model') continue;
    for (const value of plain) {
      const same = JSON.stringify(found).includes(JSON.stringify(value).replaceAll(/^"|"$/g, ''));
      assert.ok(same, `${path}: ${String(value)} is not at ${to} in ${JSON.stringify(body)}`);
    }
  }
}

/** The schema wants the probabilities of past tokens as well. */
function saidParts(item: JsonObject): JsonObject {
  if (!Array.isArray(item['content'])) return item;
  const parts = listAt(item, 'content').map((part) =>
    part['type'] === 'output_text' ? { logprobs: [], ...part } : part,
  );
  return { ...item, content: parts };
}

const judges = {
  chat: schemaJudge('CreateChatCompletionRequest'),
  responses: schemaJudge('CreateResponse'),
};
const messagesBodies: Typed[] = [];

/** The schema of the upstream's dialect, the types of its SDK, or the rules by which the service refuses requests. */
function judge(upstream: UpstreamDialect, name: string, { received: [first] }: Sent): void {
  assert.ok(first !== undefined, 'no upstream was asked');
  const { json: body } = first;
  switch (upstream) {
    case 'messages':
      messagesBodies.push({ name, type: 'Request', value: body });
      return;
    case 'chat':
      assert.equal(judges.chat(body), '', JSON.stringify(body));
      return;
    case 'responses':
      assert.equal(judges.responses(withNames(body)), '', JSON.stringify(body));
      return;
    case 'gemini':
      assertTakenByGemini(first);
      return;
    case 'converse':
      assertTakenByConverse(first);
      return;
    default:
      upstream satisfies never;
  }
}

/** The schema wants names on what a model said; the service takes it without, and no other provider's names. */
function withNames(body: JsonObject): JsonObject {
  return {
    ...body,
    ...(Array.isArray(body['input'])
      ? {
          input: listAt(body, 'input').map((item) =>
            item['role'] === 'assistant'
              ? { id: 'msg_1', status: 'completed', ...saidParts(item) }
              : item,
          ),
        }
      : {}),
  };
}

async function assertTranslated(pair: Pair, id: string, sample: Sample<object>): Promise<void> {
  const { client, upstream } = pair;
  const rows = rowsShown(pair, id, sample);
  const [row] = rows;
  const shown = shownAt(sample, upstream, client);
  const sent = await sendSample(rig, sample, pair);
  if (row.verdict.decision === 'REJECT') {
    return assertRefused(client, sent, concrete(sent.request, row, shown.named));
  }
  assert.equal(sent.status, 200, sent.text);
  if (shown.unasked === true) {
    assert.equal(sent.arrived.length, 0, 'an upstream was asked');
    return assertNotes(rows, sent, shown);
  }
  const [body = {}] = sent.arrived;
  if (shown.arrives !== undefined) {
    assert.ok(
      holds(body, shown.arrives),
      `${JSON.stringify(body)} does not hold ${JSON.stringify(shown.arrives)}`,
    );
  }
  // The first upstream dialect of a client has bodies written out; of further ones the verdict itself says enough.
  if (shown.arrives === undefined && upstream !== firstUpstream[client]) {
    for (const each of rows) assertCarried(body, sent, each);
  }
  for (const key of shown.absent ?? []) assert.ok(!(key in body), `${key} is there`);
  judge(upstream, `${client} ${id}`, sent);
  assertNotes(rows, sent, shown);
}

/** What a relayed body has otherwise than the client's, by the dialect. */
const relayEdits: { readonly [D in AnyDialect]: (request: JsonObject) => JsonObject } = {
  chat: (request) =>
    request['stream'] === true
      ? { stream_options: { ...objectAt(request, 'stream_options'), include_usage: true } }
      : {},
  messages: () => ({}),
  // Nothing is kept at the provider, so its reasoning is asked for; what Codex tells its maker goes there only.
  responses: ({ include }) => ({
    store: false,
    include: [
      ...new Set([...(Array.isArray(include) ? include : []), 'reasoning.encrypted_content']),
    ],
    client_metadata: undefined,
  }),
};

/** Relayed: every field arrives as it was sent. */
async function assertRelayed(
  client: AnyDialect,
  id: string,
  sample: Sample<object>,
): Promise<void> {
  const pair = { client, upstream: client };
  const sent = await sendSample(rig, sample, pair);
  if (sample.refusedByAll === true) {
    const { path } = requestTables[client].rows.find((row) => rowId(row) === id) ?? never();
    return assertRefused(client, sent, sample.named ?? locate(sent.request, path)[0] ?? path);
  }
  assert.equal(sent.status, 200, sent.text);
  const [body] = sent.arrived;
  const model = relayedModel(client, sample);
  const expected = {
    ...sent.request,
    model: model.slice(model.indexOf('/') + 1),
    ...(sample.relayed === undefined ? {} : { messages: sample.relayed }),
    ...relayEdits[client](sent.request),
  };
  assert.deepEqual(body, JSON.parse(JSON.stringify(expected)));
  assert.equal(sent.notes.length > 0, sample.relayed !== undefined, sent.notes.join(' '));
  if (sample.beyondSchema !== true) judge(client, `${client} relayed ${id}`, sent);
}

function never(): never {
  throw new Error('no row');
}

/** The goldens have all of them in each run. */
const ofClouds = new Set<UpstreamDialect>(upstreamOnlyDialects);

test('issue 22: each client has a verdict for each row towards each other upstream: no hole', () => {
  for (const client of clientDialects) {
    const { rows, upstreams, towards } = requestTables[client];
    assert.deepEqual([client, ...upstreams].toSorted(), [...upstreamDialects].toSorted(), client);
    for (const upstream of upstreams) assert.equal(towards(upstream).length, rows.length);
  }
});

test('issue 3: rows that need more than one request are shown by tests that exist', () => {
  for (const file of Object.values(shownElsewhere).flatMap((rows) => Object.values(rows))) {
    assert.ok(existsSync(join(import.meta.dirname, '../..', file)), file);
  }
});

for (const client of allDialects) {
  const table = requestTables[client];
  const samples = Object.entries(corpus[client]);

  test(`issue 3: each row of the ${client} requests has a sample, and each sample its field`, () => {
    const shown = new Set([
      ...samples.flatMap(([id, { also = [] }]) => [id, ...also]),
      ...Object.keys(shownElsewhere[client]),
    ]);
    const leaves = table.rows.filter(({ outer }) => !outer).map(rowId);
    assert.deepEqual(
      leaves.filter((id) => !shown.has(id)),
      [],
      'rows without a sample',
    );
    const least: JsonObject = { model: '', messages: [], input: '', max_tokens: 1 };
    const [upstream = never()] = table.upstreams;
    for (const [id, sample] of samples) {
      for (const row of rowsShown({ client, upstream }, id, sample)) {
        const found = locate({ ...least, ...sample.sends }, row.path);
        assert.ok(
          found.length > 0 || sample.headers !== undefined || sample.named !== undefined,
          `${id}: no ${row.path}`,
        );
      }
    }
  });

  for (const [n, upstream] of table.upstreams.entries()) {
    const pair = { client, upstream };
    const every = ofClouds.has(upstream) ? 5 : 3;
    suite(`issue 3: ${client} requests to ${upstream} upstreams`, () => {
      for (const [i, [id, sample]] of samples.entries()) {
        // Another part at each upstream, so that `npm test` translates each sample for some of them.
        if (!isInSample(i + n, every)) continue;
        test(`${id}: ${rowsShown(pair, id, sample)[0].verdict.decision}`, () =>
          assertTranslated(pair, id, sample));
      }
    });
  }

  suite(`issue 3: ${client} requests to ${client} upstreams`, () => {
    for (const [id, sample] of samples) test(id, () => assertRelayed(client, id, sample));
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

if (whyNoSchemas !== undefined) test(`bodies against the published schemas: ${whyNoSchemas}`);
