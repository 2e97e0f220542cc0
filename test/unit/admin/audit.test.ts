import assert from 'node:assert/strict';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { it } from 'node:test';
import { AuditLog, FileAnchor } from '../../../src/access/audit.ts';
import type { LogFields } from '../../../src/core/runtime.ts';
import { isObject } from '../../../src/json/value.ts';
import { auditCommand } from '../../../src/cli/commands/audit.ts';
import { memoryStore } from '../../support/memory-store.ts';
import { HeldClock, silentLog } from '../access/fakes.ts';
import { cliRig } from '../cli/cli-rig.ts';
import { adminRig, fileStore, listOf, textOf } from './admin-rig.ts';

it('S24 every change is noted: who, from where, what, before and after; no secret, no digest', async (t) => {
  const rig = await adminRig(t);
  const made = await rig.ask('/api/keys', { method: 'POST', body: { name: 'a', models: ['*'] } });
  const id = textOf(made.body, 'id');
  await rig.ask(`/api/keys/${id}`, { method: 'PATCH', body: { team: 'red' } });
  const rotated = await rig.ask(`/api/keys/${id}/rotate`, { method: 'POST' });
  await rig.ask(`/api/keys/${id}/revoke`, { method: 'POST', token: rig.control.reveal() });
  await rig.ask('/api/teams/red', { method: 'PUT', body: { rpm: 5 } });
  await rig.ask('/api/teams/red', { method: 'PUT', body: { rpm: 6 } });
  await rig.ask('/api/tags/x', { method: 'PUT', body: {} });
  await rig.ask('/api/tags/x', { method: 'DELETE' });
  await rig.ask('/api/reload', { method: 'POST' });
  // What is refused changes nothing, and is not noted.
  await rig.ask(`/api/keys/${id}`, { method: 'PATCH', body: { rpm: 0 } });
  await rig.ask('/api/keys', { method: 'POST', body: {} });
  const answer = await rig.ask('/api/audit');
  const entries = listOf(answer.body, 'entries').toReversed();
  assert.deepEqual(
    entries.map(({ seq, actor, action, subject }) => [seq, actor, action, subject]),
    [
      [1, 'admin', 'key.create', `key:${id}`],
      [2, 'admin', 'key.update', `key:${id}`],
      [3, 'admin', 'key.rotate', `key:${id}`],
      [4, 'command', 'key.revoke', `key:${id}`],
      [5, 'admin', 'team.set', 'team:red'],
      [6, 'admin', 'team.set', 'team:red'],
      [7, 'admin', 'tag.set', 'tag:x'],
      [8, 'admin', 'tag.delete', 'tag:x'],
      [9, 'admin', 'config.reload', 'config'],
    ],
  );
  const update = entries[1] ?? {};
  const stateOf = (state: unknown, name: string): unknown =>
    isObject(state) ? state[name] : undefined;
  assert.deepEqual(
    [stateOf(update['before'], 'team'), stateOf(update['after'], 'team'), update['ip']],
    [null, 'red', '127.0.0.1'],
  );
  assert.deepEqual(
    [stateOf(entries[5]?.['before'], 'rpm'), stateOf(entries[5]?.['after'], 'rpm')],
    [5, 6],
  );
  assert.deepEqual([entries[0]?.['before'], entries[7]?.['after']], [null, null]);
  const text = JSON.stringify(answer.body);
  for (const secret of [textOf(made.body, 'key'), textOf(rotated.body, 'key')]) {
    assert.ok(!text.includes(secret.slice(12)));
  }
  for (const { digest } of await rig.deps.store.keys.list()) assert.ok(!text.includes(digest));
});

it('S24 the log is read page by page, and of one subject', async (t) => {
  const rig = await adminRig(t);
  for (const name of ['a', 'b', 'a', 'c', 'a']) {
    await rig.ask(`/api/teams/${name}`, { method: 'PUT', body: {} });
  }
  const seqs = async (query: string): Promise<readonly unknown[]> =>
    listOf((await rig.ask(`/api/audit?${query}`)).body, 'entries').map(({ seq }) => seq);
  assert.deepEqual(await seqs('limit=2'), [5, 4]);
  assert.deepEqual(await seqs('limit=2&before=4'), [3, 2]);
  assert.deepEqual(await seqs('subject=team:a'), [5, 3, 1]);
  assert.equal((await rig.ask('/api/audit?limit=2')).body['next'], 4);
  assert.equal((await rig.ask('/api/audit?limit=5')).body['next'], null);
  assert.deepEqual(await seqs('action=team&limit=2'), [5, 4]);
  assert.deepEqual(await seqs('action=key'), []);
  assert.deepEqual(await seqs('actor=admin&subject=team:b'), [2]);
  assert.deepEqual(await seqs('actor=command'), []);
  assert.deepEqual(await seqs('since=1h'), [5, 4, 3, 2, 1]);
  assert.deepEqual(await seqs('until=1h'), []);
  assert.equal((await rig.ask('/api/audit?since=soon')).status, 400);
  assert.equal((await rig.ask('/api/audit?limit=0')).status, 400);
  assert.equal((await rig.ask('/api/audit', { method: 'DELETE' })).status, 405);
});

it('S24 a key that is changed stays in the log, whatever becomes of it', async (t) => {
  const rig = await adminRig(t);
  const { id } = await rig.keys.create({ name: 'a', models: ['*'] });
  await rig.ask(`/api/keys/${id}/revoke`, { method: 'POST' });
  const entries = listOf((await rig.ask(`/api/audit?subject=key:${id}`)).body, 'entries');
  assert.equal(entries.length, 1);
});

/** How somebody with the file would try it, and the first entry that shows it. */
const tampering: readonly (readonly [string, string, number])[] = [
  ['another actor', `UPDATE audit SET actor = 'nobody' WHERE seq = 2`, 2],
  ['another time', 'UPDATE audit SET at = at + 1 WHERE seq = 3', 3],
  ['another state', `UPDATE audit SET became = '{}' WHERE seq = 1`, 1],
  ['an entry taken out', 'DELETE FROM audit WHERE seq = 2', 2],
  ['the first taken out', 'DELETE FROM audit WHERE seq = 1', 1],
  [
    'two changed places',
    'UPDATE audit SET seq = -seq; UPDATE audit SET seq = CASE seq WHEN -1 THEN 2 WHEN -2 THEN 1 ELSE -seq END',
    1,
  ],
  [
    'an entry put in',
    `INSERT INTO audit (seq, at, actor, action, subject, hash) VALUES (5, 1, 'x', 'y', 'z', 'ab')`,
    5,
  ],
];

for (const [name, sql, brokenAt] of tampering) {
  it(`S24 tampering shows: ${name}`, async (t) => {
    const { store, path } = await fileStore();
    const rig = await cliRig(t, { store });
    for (const team of ['a', 'b', 'c', 'd']) {
      await rig.ask(`/api/teams/${team}`, { method: 'PUT', body: { rpm: 1 } });
    }
    const intact = await rig.run(auditCommand, ['check']);
    assert.deepEqual([intact.code, intact.out.startsWith('4 entries')], [0, true]);
    const db = new DatabaseSync(path);
    for (const trigger of ['no_update', 'no_delete', 'no_gap']) {
      db.exec(`DROP TRIGGER IF EXISTS audit_${trigger}`);
    }
    db.exec(sql);
    db.close();
    const found = (await rig.ask('/api/audit/check')).body;
    assert.deepEqual([found['intact'], found['broken_at']], [false, brokenAt]);
    const told = await rig.run(auditCommand, ['check']);
    assert.equal(told.code, 1);
    assert.match(told.err, new RegExp(`entry ${brokenAt} does not match its hash`));
  });
}

for (const [name, sql] of [
  ['its end cut off', 'DELETE FROM audit WHERE seq > 2'],
  ['all of it', 'DELETE FROM audit'],
] as const) {
  it(`S24 a log that lost ${name} shows, at the check and at the next start, and for ever`, async (t) => {
    const { store, path } = await fileStore();
    const rig = await cliRig(t, { store });
    for (const team of ['a', 'b', 'c', 'd']) {
      await rig.ask(`/api/teams/${team}`, { method: 'PUT', body: { rpm: 1 } });
    }
    const head = textOf((await rig.ask('/api/audit/check')).body, 'head');
    const db = new DatabaseSync(path);
    db.exec('DROP TRIGGER audit_no_delete');
    db.exec(sql);
    db.close();
    const found = (await rig.ask('/api/audit/check')).body;
    assert.deepEqual([found['intact'], found['broken_at']], [false, null]);
    assert.deepEqual(found['missing'], { seq: 4, hash: head });
    const told = await rig.run(auditCommand, ['check']);
    assert.deepEqual([told.code, told.err.includes(`entry 4 with the hash ${head}`)], [1, true]);

    const lines: string[] = [];
    const log = { ...silentLog, error: (event: string) => void lines.push(event) };
    const anchor = new FileAnchor(join(rig.folder, 'audit.head'));
    const start = new AuditLog({ store: store.audit, clock: new HeldClock(), log, anchor });
    await start.checkEnd();
    await start.checkEnd();
    assert.deepEqual(lines, ['audit_cut'], 'it is told once');
    const [newest] = await store.audit.list({ limit: 1 });
    assert.equal(newest?.action, 'audit.cut');
    assert.ok(newest.before?.includes(head));
    assert.equal((await start.check()).missing, undefined);
  });
}

it('S24 a start notes how far a log goes that has no note yet; a note that cannot be read is none', async (t) => {
  const rig = await adminRig(t);
  const path = join(rig.folder, 'audit.head');
  await rig.ask('/api/teams/a', { method: 'PUT', body: {} });
  const { store } = rig.deps;
  for (const text of ['', '{"seq":"1"}', undefined]) {
    if (text === undefined) rmSync(path);
    else writeFileSync(path, text);
    const audit = new AuditLog({
      store: store.audit,
      clock: new HeldClock(),
      log: silentLog,
      anchor: new FileAnchor(path),
    });
    await audit.checkEnd();
    assert.match(readFileSync(path, 'utf8'), /^\{"seq":1,"hash":"[0-9a-f]{64}"\}\n$/);
  }
});

it('S24 a backup has its own entry, also one that could not be written', async (t) => {
  const { store } = await fileStore();
  const rig = await adminRig(t, { store });
  const body = { path: join(rig.folder, 'copy.db') };
  assert.equal((await rig.ask('/api/backup', { method: 'POST', body })).status, 200);
  const copy = new DatabaseSync(body.path, { readOnly: true });
  const inCopy = copy.prepare('SELECT action FROM audit').all();
  copy.close();
  assert.deepEqual(
    inCopy.map(({ action }) => action),
    ['store.backup'],
  );
  assert.equal((await rig.ask('/api/backup', { method: 'POST', body })).status, 409);
  const entries = listOf((await rig.ask('/api/audit')).body, 'entries');
  assert.deepEqual(
    entries.map(({ action }) => action),
    ['store.backup_failed', 'store.backup', 'store.backup'],
  );
});

it('S24 the store itself takes no change of the log', async (t) => {
  const { store, path } = await fileStore();
  const rig = await adminRig(t, { store });
  await rig.ask('/api/teams/a', { method: 'PUT', body: {} });
  const db = new DatabaseSync(path);
  for (const sql of [`UPDATE audit SET actor = 'x'`, 'DELETE FROM audit']) {
    assert.throws(() => db.exec(sql), /append-only/);
  }
  db.close();
});

it('S24 a log that was cut off at its end shows by the hash that went to the log of the gateway', async () => {
  const told: { readonly event: string; readonly fields: LogFields | undefined }[] = [];
  const log = {
    ...silentLog,
    info: (event: string, fields?: LogFields) => void told.push({ event, fields }),
  };
  const audit = new AuditLog({ store: memoryStore().audit, clock: new HeldClock(), log });
  for (const subject of ['a', 'b']) {
    await audit.note({ actor: { name: 'config' }, action: 'x', subject });
  }
  const { head, entries } = await audit.check();
  assert.deepEqual(
    [told.at(-1)?.event, told.at(-1)?.fields?.['hash'], entries],
    ['audit', head, 2],
  );
});

it('S24 an entry that the store does not take is an error, and in the log', async () => {
  const told: string[] = [];
  const store = memoryStore();
  await store.close();
  const log = { ...silentLog, error: (event: string) => void told.push(event) };
  const audit = new AuditLog({ store: store.audit, clock: new HeldClock(), log });
  await assert.rejects(audit.note({ actor: { name: 'admin' }, action: 'x', subject: 'y' }), {
    name: 'StoreError',
  });
  assert.deepEqual(told, ['audit_not_written']);
});

it('S24 a change whose entry cannot be written is not made; a revocation holds, and is in the log', async (t) => {
  const { store, path } = await fileStore();
  const rig = await adminRig(t, { store });
  const made = await rig.ask('/api/keys', { method: 'POST', body: { name: 'a', models: ['*'] } });
  const id = textOf(made.body, 'id');
  const db = new DatabaseSync(path);
  db.exec(`CREATE TRIGGER no_audit BEFORE INSERT ON audit BEGIN SELECT RAISE(ABORT, 'no'); END`);
  db.close();
  const refusals = [
    await rig.ask('/api/keys', { method: 'POST', body: { name: 'b', models: ['*'] } }),
    await rig.ask(`/api/keys/${id}`, { method: 'PATCH', body: { name: 'c' } }),
    await rig.ask(`/api/keys/${id}/rotate`, { method: 'POST' }),
    await rig.ask('/api/teams/red', { method: 'PUT', body: { rpm: 5 } }),
    await rig.ask(`/api/keys/${id}/revoke`, { method: 'POST' }),
  ];
  assert.deepEqual(
    refusals.map(({ status }) => status),
    [503, 503, 503, 503, 503],
  );
  const [kept, ...others] = await rig.deps.store.keys.list();
  assert.deepEqual([kept?.name, kept?.version, kept?.revokedAt, others], ['a', 1, undefined, []]);
  assert.deepEqual(await rig.deps.store.policies.list(), []);
  assert.equal(rig.keys.find(id)?.state, 'revoked');
});

it('audit list distinguishes a reload that was applied from one that was refused', async (t) => {
  const rig = await cliRig(t);
  const actor = { name: 'config' } as const;
  for (const applied of [true, false]) {
    const after = { applied, problems: applied ? [] : ['gateway.yaml:1: unknown key'] };
    await rig.deps.audit.note({ actor, action: 'config.reload', subject: 'config', after });
  }
  const { out } = await rig.run(auditCommand, ['list']);
  assert.match(
    out,
    /^2 .* config\.reload \(refused\) +config\n1 .* config\.reload \(applied\) +config$/m,
  );
});

it('audit list shows who changed what; --json with before and after', async (t) => {
  const rig = await cliRig(t);
  assert.equal((await rig.run(auditCommand, ['list'])).out, 'There are no entries.\n');
  await rig.ask('/api/teams/red', { method: 'PUT', body: { rpm: 1 } });
  const { out } = await rig.run(auditCommand, ['list', '--subject', 'team:red']);
  assert.match(
    out,
    /^SEQ +AT +ACTOR +IP +ACTION +SUBJECT\n1 .*admin +127\.0\.0\.1 +team\.set +team:red\n$/,
  );
  assert.match((await rig.run(auditCommand, ['list', '--json'])).out, /"rpm": 1/);
  const bad = await rig.run(auditCommand, ['list', '--limit', 'x']);
  assert.deepEqual([bad.code, bad.err.startsWith('--limit: ')], [2, true]);
  assert.equal((await rig.run(auditCommand, ['check', '--json'])).code, 0);
});

it('S24 an expired key that is given more time was expired before and is active after', async (t) => {
  const rig = await adminRig(t);
  const body = { name: 'a', models: ['*'], expires_in: '1h' };
  const id = textOf((await rig.ask('/api/keys', { method: 'POST', body })).body, 'id');
  rig.clock.time += 7_200_000;
  await rig.ask(`/api/keys/${id}`, { method: 'PATCH', body: { expires_at: null } });
  const [entry] = listOf((await rig.ask('/api/audit')).body, 'entries');
  const { before, after } = entry ?? {};
  assert.ok(isObject(before) && isObject(after));
  assert.deepEqual([before['state'], after['state']], ['expired', 'active']);
});
