/** Issue 24: the calls of a filter as one file. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { tryParseObject } from '../../../src/json/parse.ts';
import { fullCall } from '../../store/rows.ts';
import { callRow, march } from '../store/call-rows.ts';
import { adminRig, adminToken, errorOf, listOf, textOf, type Rig } from './admin-rig.ts';

async function exported(rig: Rig, query: string): Promise<Response> {
  const headers = { authorization: `Bearer ${adminToken}` };
  return fetch(`${rig.url}/api/calls/export?${query}`, { headers });
}

/** The fields of a line without line breaks in its fields. */
function fieldsOf(line: string): readonly string[] {
  return [...line.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^,]*))/g)].map(
    ([, quoted, plain]) => quoted?.replaceAll('""', '"') ?? plain ?? '',
  );
}

async function lines(rig: Rig, query: string): Promise<readonly { [name: string]: string }[]> {
  const [head = '', ...rows] = (await (await exported(rig, query)).text()).split('\r\n');
  assert.equal(rows.pop(), '', 'the last line is whole');
  const names = fieldsOf(head);
  return rows.map((row) =>
    Object.fromEntries(fieldsOf(row).map((value, i) => [names[i] ?? '', value])),
  );
}

it('issue 24 an export has every call of its filter, over many pages, newest first', async (t) => {
  const rig = await adminRig(t);
  const total = 2300;
  for (let i = 0; i < total; i++) {
    const team = i % 2 === 0 ? { team: 'red' } : {};
    rig.ledger.record(callRow(`c${i}`, { startedAt: march + i, ...team }));
  }
  const rows = await lines(rig, 'format=csv');
  assert.deepEqual(
    rows.map(({ id }) => id),
    Array.from({ length: total }, (_, i) => `c${total - 1 - i}`),
  );
  assert.equal((await lines(rig, 'format=csv&team=red&min_ms=12')).length, total / 2);
  assert.equal((await lines(rig, 'format=csv&min_ms=13')).length, 0);
  const response = await exported(rig, 'team=red');
  assert.match(
    String(response.headers.get('content-disposition')),
    /^attachment; filename="calls-\d{4}-\d\d-\d\d\.json"$/,
  );
  const calls = listOf(tryParseObject(await response.text()) ?? {}, 'calls');
  assert.equal(calls.length, total / 2);
  const { body } = await rig.ask('/api/calls?team=red&limit=1000');
  assert.deepEqual(calls.slice(0, 1000), listOf(body, 'calls'));
  const none = await rig.ask('/api/calls/export?team=nobody');
  assert.deepEqual(none.body, { calls: [] });
});

it('S12 amounts of an export have every digit, and no field of it is a formula', async (t) => {
  const rig = await adminRig(t);
  rig.ledger.record(fullCall);
  const [row] = await lines(rig, 'format=csv');
  assert.ok(row !== undefined);
  assert.equal(row['cost_usd'], '0.000000028');
  assert.equal(row['cost_cache_read_usd'], '0.000000002');
  assert.equal(row['reserved_usd'], '0.00000002');
  assert.equal(row['tags'], 'b,a,b');
  assert.equal(row['metadata'], '{"trace":"ü"}');
  assert.equal(row['cache_read_tokens'], '2');
  for (const [i, sign] of ['=', '+', '-', '@', '\t', '＝'].entries()) {
    const text = `${sign}1"2,3`;
    rig.ledger.record(callRow(`f${i}`, { startedAt: march + 9, model: text, user: text }));
    const found = await lines(rig, `format=csv&user=${encodeURIComponent(text)}`);
    const texts = found.map(({ model, user, cost_usd: cost }) => [model, user, cost]);
    // Absent is not zero.
    assert.deepEqual(texts, [[`'${text}`, `'${text}`, '']]);
  }
});

it('an export that cannot begin says why, and one that cannot continue is cut', async (t) => {
  const rig = await adminRig(t);
  for (const query of ['format=xml', 'since=zz', 'status=9', 'limit=5']) {
    const answer = await rig.ask(`/api/calls/export?${query}`);
    assert.equal(answer.status, 400, query);
    assert.equal(errorOf(answer)['field'], query.slice(0, query.indexOf('=')));
  }
  assert.equal((await rig.ask('/api/calls/export', { token: undefined })).status, 401);
  for (let i = 0; i < 1001; i++) rig.ledger.record(callRow(`c${i}`, { startedAt: march + i }));
  await rig.ledger.flush();
  const { calls } = rig.deps.store;
  const list = calls.list.bind(calls);
  let pages = 0;
  Object.assign(calls, {
    list: async (query: Parameters<typeof list>[0]) => {
      pages += 1;
      if (pages === 2) throw new Error('the disk is gone');
      return list(query);
    },
  });
  const cut = await exported(rig, 'format=csv');
  assert.equal(cut.status, 200);
  await assert.rejects(cut.text(), 'what is not whole does not look whole');
  assert.equal(textOf((await rig.ask('/api/status')).body, 'version'), '1.2.3');
});
