import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { it } from 'node:test';
import { backupCommand } from '../../../src/cli/commands/backup.ts';
import { openSqliteStore } from '../../../src/store/sqlite/sqlite-store.ts';
import { silentLog } from '../access/fakes.ts';
import { fileStore } from '../admin/admin-rig.ts';
import { callRow } from '../store/call-rows.ts';
import { cliRig } from './cli-rig.ts';

it('backup copies the store to a file beside where it is called, and never over one', async (t) => {
  const { store } = await fileStore();
  const rig = await cliRig(t, { store });
  rig.ledger.record(callRow('c1'));
  await rig.ledger.flush();
  const cwd = join(rig.folder, '..');
  const file = `${rig.folder.slice(cwd.length + 1)}/copy.db`;
  const command = backupCommand({ cwd });
  const path = join(rig.folder, 'copy.db');
  const ran = await rig.run(command, [file]);
  assert.deepEqual(ran, { code: 0, out: `The copy is complete: ${path}\n`, err: '' });
  const copy = await openSqliteStore({ path, log: silentLog });
  assert.equal((await copy.calls.find('c1'))?.id, 'c1');
  await copy.close();
  await assert.rejects(rig.run(command, [file]), /exists already; a backup never overwrites/);
  assert.ok(!readdirSync(rig.folder).some((name) => name.endsWith('.unfinished')));
});

it('backup without a file is a mistake; --help says how to restore', async (t) => {
  const rig = await cliRig(t);
  const command = backupCommand({ cwd: rig.folder });
  const ran = await rig.run(command, []);
  assert.equal(ran.code, 2);
  assert.match(ran.err, /FILE is missing/);
  const told = await rig.run(command, ['--help']);
  assert.deepEqual([told.code, told.out], [0, command.help]);
  assert.match(told.out, /To restore the copy/);
});
