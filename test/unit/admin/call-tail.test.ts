/** Issue 24: calls as they end, for a page that watches. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { EndedCalls } from '../../../src/access/ended-calls.ts';
import type { JsonObject } from '../../../src/json/value.ts';
import { costing, fullCall } from '../../store/rows.ts';
import { HeldClock } from '../access/fakes.ts';
import { callRow, march } from '../store/call-rows.ts';
import { adminRig, listOf, textOf } from './admin-rig.ts';

it('issue 24 a look has the calls that ended since the one before, the last one first, also long ones', async (t) => {
  const clock = new HeldClock();
  const ended = new EndedCalls(clock);
  const rig = await adminRig(t, { ended });
  const look = async (query: string) => {
    const { status, body } = await rig.ask(`/api/calls/tail?${query}`);
    assert.equal(status, 200, query);
    const ids = listOf(body, 'calls').map(({ id }) => id);
    const { ended: count, lost, continued } = body;
    return { ids, count, lost, continued, next: textOf(body, 'next') };
  };
  ended.add([callRow('before')]);
  const first = await look('');
  assert.deepEqual([first.ids, first.count, first.continued], [[], 0, false]);
  ended.add([callRow('short'), callRow('long', { startedAt: march - 600_000 })]);
  const second = await look(`after=${first.next}`);
  assert.deepEqual([second.ids, second.count, second.continued], [['long', 'short'], 2, true]);
  assert.deepEqual((await look(`after=${second.next}`)).ids, []);
  const { ids, count } = await look(`after=${first.next}&limit=1`);
  assert.deepEqual([ids, count], [['long'], 2], 'what is not told is counted');
  assert.deepEqual((await look(`after=${first.next}&model=other`)).ids, []);
  assert.equal((await rig.ask('/api/calls/tail?limit=1001')).status, 400);
  for (const after of ['', 'zz', '1.1', `${first.next}9`]) {
    assert.equal((await look(`after=${after}`)).continued, false, after);
  }
});

it('nothing is kept while nobody watches, and what is too much is reported as a number', () => {
  const clock = new HeldClock();
  const ended = new EndedCalls(clock);
  const look = (after?: string) => ended.look({ after, filter: {}, limit: 1000 });
  const { next } = look();
  for (let i = 0; i < 4500; i++) ended.add([callRow(`c${i}`)]);
  const many = look(next);
  assert.equal(many.ended + many.lost, 4500);
  assert.ok(many.lost > 0 && many.lost <= 2500, String(many.lost));
  assert.equal(many.calls.length, 1000);
  assert.equal(many.calls[0]?.id, 'c4499');
  clock.time += 59_000;
  assert.equal(look(many.next).continued, true);
  clock.time += 61_000;
  ended.add([callRow('unseen')]);
  const later = look(many.next);
  assert.deepEqual([later.ended, later.continued], [0, false]);
});

it('a look finds by each filter the calls that the list of the ledger finds', async (t) => {
  const ended = new EndedCalls(new HeldClock());
  const rig = await adminRig(t, { ended });
  const { next } = ended.look({ after: undefined, filter: {}, limit: 1 });
  const rows = [
    fullCall,
    callRow('c3', { tags: ['a'], user: 'ana', status: 200, mode: 'relay', notes: 'seed: dropped' }),
    callRow('c4', { team: 'blue', provider: 'p', endpoint: 'anthropic-messages', totalMs: 900 }),
    callRow('c5', { ...costing(5_000_000), outcome: 'canceled', startedAt: march + 50 }),
  ];
  for (const row of rows) rig.ledger.record(row);
  ended.add(rows);
  const ids = (body: JsonObject): readonly string[] =>
    listOf(body, 'calls')
      .map(({ id }) => String(id))
      .toSorted();
  let narrow = 0;
  for (const query of [
    'key=k1',
    'key=k2',
    'team=red',
    'team=',
    'model=local%2Ftiny',
    'model=x',
    'provider=p',
    'provider=',
    'tag=a',
    'tag=',
    'outcome=failed',
    'endpoint=openai-chat',
    'user=ana',
    'status=200',
    'status=502',
    'mode=translate',
    'mode=relay',
    'notes=SEED',
    'notes=x',
    'fault=provider',
    'fault=limit',
    'error=upstream_invalid',
    'reason=bad_answer',
    'upstream_model=gpt-5-mini',
    'min_cost_usd=0.005',
    'min_cost_usd=0',
    'min_ms=900',
    `since=${new Date(march + 1).toISOString()}`,
    `until=${new Date(march + 1).toISOString()}`,
    'user=ana&tag=a&outcome=ok',
  ]) {
    const listed = ids((await rig.ask(`/api/calls?${query}`)).body);
    const found = ids((await rig.ask(`/api/calls/tail?after=${next}&${query}`)).body);
    assert.deepEqual(found, listed, query);
    if (found.length > 0 && found.length < rows.length) narrow += 1;
  }
  assert.ok(narrow >= 20, String(narrow));
});
