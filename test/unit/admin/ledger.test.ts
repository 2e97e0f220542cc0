import assert from 'node:assert/strict';
import { readFileSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { it } from 'node:test';
import { openSqliteStore } from '../../../src/store/sqlite/sqlite-store.ts';
import { costing, fullCall } from '../../store/rows.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { silentLog } from '../access/fakes.ts';
import { callRow, day } from '../store/call-rows.ts';
import { adminRig, adminToken, errorOf, fileStore, listOf, textOf } from './admin-rig.ts';

/** Rows of tests without a `failure` are of no kind. */
const noFaults = { failed_limit: 0, failed_client: 0, failed_provider: 0, failed_gateway: 0 };

it('F8 usage holds every call that is over', async (t) => {
  const rig = await adminRig(t);
  const { id } = await rig.keys.create({ name: 'ci', models: ['*'] });
  const now = rig.clock.wall();
  rig.ledger.record(
    callRow('c1', { startedAt: now, keyId: id, provider: 'p', ...costing(1_500_000_000) }),
  );
  rig.ledger.record(
    callRow('c2', {
      startedAt: now - 2 * day,
      keyId: id,
      tags: ['x', 'y'],
      outcome: 'failed',
      status: 502,
      error: 'upstream_invalid',
      charged: { freshInputTokens: 1, cacheReadTokens: 2, cacheWriteTokens: 3 },
    }),
  );
  const byKey = await rig.ask('/api/usage');
  assert.deepEqual(byKey.body, {
    by: 'key',
    since: new Date(now - 30 * day).toISOString(),
    until: null,
    rows: [
      {
        key: id,
        key_name: 'ci',
        calls: 2,
        failed: 1,
        ...noFaults,
        input_tokens: 16,
        cache_read_tokens: 2,
        cache_write_tokens: 3,
        output_tokens: 5,
        cost_usd: 1.5,
        unpriced_calls: 1,
        audio_input_tokens: 0,
        image_input_tokens: 0,
        video_input_tokens: 0,
        audio_output_tokens: 0,
        image_output_tokens: 0,
        web_searches: 0,
        images: 0,
      },
    ],
    next: null,
  });
  const rows = async (query: string, name: string): Promise<unknown> =>
    listOf((await rig.ask(`/api/usage?${query}`)).body, 'rows').map((row) => [
      row[name],
      row['calls'],
      row['cost_usd'],
    ]);
  assert.deepEqual(await rows('by=provider&since=1d', 'provider'), [['p', 1, 1.5]]);
  assert.deepEqual(await rows('by=provider&until=1d', 'provider'), [[null, 1, null]]);
  assert.deepEqual(await rows('by=team&since=2026-01-01', 'team'), [[null, 2, 1.5]]);
  assert.deepEqual(await rows('by=tag&tag=x', 'tag'), [
    ['x', 1, null],
    ['y', 1, null],
  ]);
  assert.deepEqual(await rows(`by=day&key=${id}&provider=`, 'day'), [['2026-02-27', 1, null]]);
  assert.deepEqual(await rows('by=hour&since=3h', 'hour'), [['2026-03-01T00:00Z', 1, 1.5]]);
  for (const query of [
    'by=',
    'by=no',
    'since=yesterday',
    'since=-1d',
    'since=',
    'until=x',
    'to=1d',
  ]) {
    const answer = await rig.ask(`/api/usage?${query}`);
    assert.equal(answer.status, 400, query);
    assert.equal(errorOf(answer)['field'], query.slice(0, query.indexOf('=')));
  }
});

it('L5 groups of usage come in pages', async (t) => {
  const rig = await adminRig(t);
  const startedAt = rig.clock.wall();
  for (const team of ['', 'a', 'b', 'c'])
    rig.ledger.record(callRow(`c${team}`, { team, startedAt }));
  const seen: unknown[] = [];
  let after = '';
  for (;;) {
    const { body } = await rig.ask(`/api/usage?by=team&limit=3${after}`);
    seen.push(listOf(body, 'rows').map((row) => row['team']));
    if (body['next'] === null) break;
    after = `&after=${textOf(body, 'next')}`;
  }
  assert.deepEqual(seen, [[null, 'a', 'b'], ['c']]);
  assert.equal((await rig.ask('/api/usage?limit=10001')).status, 400);
});

it('a call is shown with its attempts, its price and what it cost', async (t) => {
  const rig = await adminRig(t);
  rig.ledger.record(callRow('c1'));
  rig.ledger.record(fullCall);
  const page = await rig.ask('/api/calls?limit=1');
  const [listed, ...others] = listOf(page.body, 'calls');
  assert.deepEqual(others, []);
  assert.deepEqual(
    [listed?.['id'], listed?.['tags'], listed?.['user'], listed?.['metadata']],
    ['c2', ['b', 'a', 'b'], 'ana', { trace: 'ü' }],
  );
  assert.equal(listed?.['cost_usd'], 0.000_000_028);
  assert.equal(listed?.['reserved_usd'], 0.000_000_02);
  assert.equal(listed?.['overrun'], true);
  assert.ok(listed !== undefined && !('attempt_list' in listed));
  const { status, body } = await rig.ask('/api/calls/c2');
  assert.equal(status, 200);
  const [first, second] = listOf(body, 'attempt_list');
  assert.deepEqual([first?.['error'], first?.['maybe_billed']], ['timeout', true]);
  assert.deepEqual([second?.['status'], second?.['outcome']], [200, 'ok']);
  const { attempt_list: _, price, ...rest } = body;
  assert.deepEqual(rest, listed);
  assert.ok(typeof price === 'object' && price !== null && 'source' in price);
  const plain = await rig.ask('/api/calls/c1');
  assert.deepEqual(
    [plain.body['price'], plain.body['cost_usd'], plain.body['cost']],
    [null, null, null],
  );
  const missing = await rig.ask('/api/calls/c3');
  assert.equal(missing.status, 404);
  assert.match(String(errorOf(missing)['message']), /no such call; it may have expired/);
});

it('L5 calls come in pages, and by everything that tells them apart', async (t) => {
  const rig = await adminRig(t);
  const now = rig.clock.wall();
  for (let i = 0; i < 5; i++) {
    rig.ledger.record(
      callRow(`c${i}`, {
        startedAt: now - i * 1000,
        ...(i % 2 === 0 ? { team: 'red', outcome: 'canceled' as const, user: 'ana' } : {}),
      }),
    );
  }
  const ids = async (query: string): Promise<readonly string[]> => {
    const found: string[] = [];
    let after = '';
    for (;;) {
      const { status, body } = await rig.ask(`/api/calls?${query}${after}`);
      assert.equal(status, 200, query);
      found.push(...listOf(body, 'calls').map((call) => String(call['id'])));
      if (body['next'] === null) return found;
      after = `&after=${encodeURIComponent(textOf(body, 'next'))}`;
    }
  };
  assert.deepEqual(await ids('limit=2'), ['c0', 'c1', 'c2', 'c3', 'c4']);
  for (const query of ['team=red', 'outcome=canceled', 'user=ana', 'team=red&limit=1']) {
    assert.deepEqual(await ids(query), ['c0', 'c2', 'c4'], query);
  }
  assert.deepEqual(await ids(`since=${new Date(now - 1000).toISOString()}`), ['c0', 'c1']);
  assert.deepEqual(await ids(`until=${new Date(now - 3000).toISOString()}`), ['c4']);
  const mistakes = ['limit=0', 'limit=1001', 'outcome=late', 'after=zz', 'since=zz', 'page=2'];
  for (const query of mistakes) {
    const answer = await rig.ask(`/api/calls?${query}`);
    assert.equal(answer.status, 400, query);
    assert.equal(errorOf(answer)['field'], query.slice(0, query.indexOf('=')));
  }
});

it('backup writes a complete private copy while calls continue, and never over a file', async (t) => {
  const { store } = await fileStore();
  const rig = await adminRig(t, { store });
  const folder = temporaryFolder('backup');
  const { record } = await rig.keys.create({ name: 'ci', models: ['*'] });
  for (let i = 0; i < 100; i++) rig.ledger.record(callRow(`c${i}`));
  await rig.ledger.flush();
  const path = join(folder, 'copy.db');
  const backup = (to: unknown) =>
    rig.ask('/api/backup', { method: 'POST', raw: JSON.stringify({ path: to }) });
  const copying = backup(path);
  for (let i = 100; i < 200; i++) rig.ledger.record(callRow(`c${i}`));
  await rig.ledger.flush();
  assert.deepEqual((await copying).body, { path });
  assert.deepEqual(readdirSync(folder), ['copy.db']);
  assert.equal(statSync(path).mode & 0o777, 0o600);
  const before = readFileSync(path);
  const again = await backup(path);
  assert.equal(again.status, 409);
  assert.match(String(errorOf(again)['message']), /exists already; a backup never overwrites/);
  assert.deepEqual(readFileSync(path), before);
  for (const wrong of ['copy.db', 7, '', null]) assert.equal((await backup(wrong)).status, 400);
  const nowhere = await backup(join(folder, 'no', 'such', 'folder'));
  const missing = join(folder, 'no', 'such');
  assert.ok(
    String(errorOf(nowhere)['message']).includes(`there is no folder ${missing}. Create it, or `),
  );
  assert.match(String(errorOf(nowhere)['message']), /cannot be written/);
  assert.deepEqual(readdirSync(folder), ['copy.db']);
  const entries = await rig.deps.store.audit.list({ limit: 9 });
  const first = entries.at(-1);
  assert.deepEqual([first?.action, first?.subject], ['store.backup', `file:${path}`]);

  const restored = await openSqliteStore({ path, log: silentLog });
  t.after(() => restored.close());
  assert.deepEqual(await restored.keys.list(), [record]);
  const [usage] = await restored.calls.usage({ by: 'key', since: 0 });
  assert.ok(usage !== undefined && usage.calls >= 100, String(usage?.calls));
  assert.equal((await restored.calls.list({ limit: 1000 })).calls.length, usage.calls);
});

it('backup of a store in memory says that there is no file', async (t) => {
  const rig = await adminRig(t);
  const raw = JSON.stringify({ path: '/tmp/never-written' });
  const answer = await rig.ask('/api/backup', { method: 'POST', raw });
  assert.equal(answer.status, 409);
  assert.match(String(errorOf(answer)['message']), /in memory: there is no file/);
});

it('usage comes as CSV, all of it, and no name in it is a formula', async (t) => {
  const rig = await adminRig(t);
  const { id } = await rig.keys.create({ name: '=1+1', models: ['*'] });
  const now = rig.clock.wall();
  rig.ledger.record(callRow('c1', { startedAt: now, keyId: id, provider: 'p', ...costing(5) }));
  const response = await fetch(`${rig.url}/api/usage?format=csv`, {
    headers: { authorization: `Bearer ${adminToken}` },
  });
  assert.equal(response.headers.get('content-type'), 'text/csv; charset=utf-8');
  assert.match(
    String(response.headers.get('content-disposition')),
    /^attachment; filename="usage-by-[a-z]+-\d{4}-\d\d-\d\d\.csv"$/,
  );
  const [head = '', row = '', ...others] = (await response.text()).split('\r\n');
  assert.deepEqual(others, ['']);
  assert.match(
    head,
    /^key,key_name,calls,failed,failed_limit,failed_client,failed_provider,failed_gateway,input_tokens,.*,cost_usd,unpriced_calls,audio_input_tokens,.*,web_searches,images$/,
  );
  assert.ok(row.startsWith(`${id},'=1+1,1,0,`), row);
  assert.equal((await rig.ask('/api/usage?format=xml')).status, 400);
});

it('issue 8 a series has sums and percentiles for each step and group', async (t) => {
  const rig = await adminRig(t);
  const { id } = await rig.keys.create({ name: 'ci', models: ['*'] });
  const now = rig.clock.wall();
  const hourMs = day / 24;
  const hour = Math.floor(now / hourMs) * hourMs;
  for (let i = 1; i <= 100; i++) {
    const startedAt = hour - 2 * hourMs + i;
    rig.ledger.record(
      callRow(`c${i}`, {
        startedAt,
        keyId: id,
        totalMs: i,
        firstEventMs: i / 10,
        stream: true,
        ...costing(10_000_000),
      }),
    );
  }
  const failed = { outcome: 'failed', status: 502, totalMs: 99_999 } as const;
  rig.ledger.record(callRow('bad', { startedAt: hour - 1, keyId: id, ...failed, charged: {} }));
  const { status, body } = await rig.ask('/api/series?since=12h&by=key');
  assert.equal(status, 200);
  const sums = {
    calls: 100,
    failed: 0,
    ...noFaults,
    input_tokens: 1000,
    output_tokens: 500,
    cache_read_tokens: 0,
    cost_usd: 1,
    unpriced_calls: 0,
    cache_saved_usd: 0,
  };
  // Five tokens in nine tenths of the time.
  const speed = { speed_p50: 108.9, speed_p5: 57.9 };
  const latency = { p50_ms: 50, p95_ms: 95, first_p50_ms: 5, first_p95_ms: 9.5, ...speed };
  const none = Object.fromEntries(Object.keys(latency).map((name) => [name, null]));
  assert.deepEqual(body, {
    since: new Date(now - day / 2).toISOString(),
    until: new Date(now + 1).toISOString(),
    step: 'hour',
    sampled: 100,
    percentiles: 'exact',
    groups: [
      {
        name: id,
        key_name: 'ci',
        ...sums,
        calls: 101,
        failed: 1,
        ...latency,
        points: [
          { at: new Date(hour - 2 * hourMs).toISOString(), ...sums, ...latency },
          {
            at: new Date(hour - hourMs).toISOString(),
            calls: 1,
            failed: 1,
            ...noFaults,
            input_tokens: 0,
            output_tokens: 0,
            cache_read_tokens: 0,
            cost_usd: null,
            unpriced_calls: 0,
            cache_saved_usd: null,
            ...none,
          },
        ],
      },
    ],
  });
  const { body: alone } = await rig.ask('/api/series?since=12h&by=key&points=0');
  const [withoutPoints] = listOf(alone, 'groups');
  assert.deepEqual([withoutPoints?.['calls'], withoutPoints?.['points']], [101, []]);
  const { body: both } = await rig.ask('/api/series?since=12h&by=key&with=total');
  const [first] = listOf(body, 'groups');
  assert.deepEqual(both['groups'], body['groups']);
  const { key_name: _, ...sumsOfKey } = first ?? {};
  assert.deepEqual(both['total'], { ...sumsOfKey, name: null });
  const all = listOf((await rig.ask('/api/series?since=1h')).body, 'groups');
  assert.deepEqual(
    all.map((group) => [group['name'], group['calls']]),
    [[null, 1]],
  );
  for (const [query, field] of [
    ['since=30d&step=minute', 'step'],
    ['since=2020-01-01&step=hour', 'step'],
    ['since=1h&until=2h', 'since'],
    ['by=nothing', 'by'],
    ['groups=51', 'groups'],
    ['points=51', 'points'],
    ['with=more', 'with'],
  ]) {
    const refused = await rig.ask(`/api/series?${query}`);
    assert.deepEqual([refused.status, errorOf(refused)['field']], [400, field], query);
  }
});

it('a period that ends before it begins is refused: an empty list would be taken for no calls', async (t) => {
  const rig = await adminRig(t);
  for (const list of ['usage', 'calls', 'audit', 'series']) {
    for (const period of ['since=1h&until=2h', 'since=1h&until=1h']) {
      const refused = await rig.ask(`/api/${list}?${period}`);
      const { field, message } = errorOf(refused);
      assert.deepEqual(
        [refused.status, field, message],
        [400, 'since', 'must be before until'],
        `${list} ${period}`,
      );
    }
  }
});

it('A4 a failed call says whose fault it was and why, and failed calls are counted by it', async (t) => {
  const rig = await adminRig(t);
  const { id } = await rig.keys.create({ name: 'ci', models: ['*'] });
  const now = rig.clock.wall();
  const limit = `key:${id}:requests`;
  const own = {
    fault: 'limit',
    message: 'Rate limit of this key (ci): 2 requests',
    limit,
  } as const;
  const vendor = { fault: 'provider', message: 'Slow down.' } as const;
  const failed = { keyId: id, outcome: 'failed', error: 'rate_limited', status: 429 } as const;
  for (let i = 1; i <= 3; i++) {
    rig.ledger.record(callRow(`own${i}`, { ...failed, startedAt: now - i, failure: own }));
  }
  rig.ledger.record(
    callRow('theirs', {
      ...failed,
      startedAt: now - 9,
      provider: 'openai',
      upstreamModel: 'gpt-5',
      failure: vendor,
    }),
  );
  const { body: shown } = await rig.ask('/api/calls/own1');
  assert.partialDeepStrictEqual(shown, { ...own, reason: null });
  const theirs = listOf((await rig.ask('/api/calls?fault=provider')).body, 'calls');
  assert.deepEqual(
    theirs.map((call) => call['id']),
    ['theirs'],
  );
  const { body } = await rig.ask('/api/errors?since=1h');
  const same = { error: 'rate_limited', reason: null, status: 429 };
  assert.partialDeepStrictEqual(body, {
    cut: false,
    groups: [
      { ...same, fault: 'limit', calls: 3, last_call: 'own1', last_message: own.message },
      { ...same, fault: 'provider', calls: 1, last_call: 'theirs', last_message: 'Slow down.' },
    ],
    next: null,
  });
  const { body: keys } = await rig.ask('/api/errors?since=1h&by=key');
  assert.partialDeepStrictEqual(keys, {
    groups: [{ name: id, key_name: 'ci', calls: 4, failed_limit: 3, failed_provider: 1 }],
  });
  const { body: facets } = await rig.ask('/api/errors?since=1h&facets=1');
  assert.partialDeepStrictEqual(facets, {
    groups: [{ fault: 'limit' }, { fault: 'provider' }],
    facets: {
      key: [{ name: id, key_name: 'ci', calls: 4 }],
      answered: [{ name: null, calls: 3 }],
      limit: [{ name: limit, calls: 3 }],
    },
  });
  const { body: answered } = await rig.ask('/api/errors?since=1h&by=answered');
  assert.partialDeepStrictEqual(answered, {
    groups: [
      { name: null, calls: 3 },
      { name: 'openai/gpt-5', calls: 1 },
    ],
  });
  const first = await rig.ask('/api/errors?since=1h&by=limit&limit=1');
  assert.partialDeepStrictEqual(first.body, { groups: [{ name: limit }], next: limit });
  const rest = await rig.ask(`/api/errors?since=1h&by=limit&limit=1&after=${limit}`);
  assert.partialDeepStrictEqual(rest.body, { groups: [{ name: null, calls: 1 }], next: null });
  const { status } = await rig.ask('/api/errors?since=1h', { token: 'wrong' });
  assert.equal(status, 401);
});
