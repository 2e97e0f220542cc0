/** N2: the upgrade that adds columns without reading the book (migration 7). */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, test } from 'node:test';
import { migrate } from '../../../src/store/migrate.ts';
import { keysAndCalls } from '../../../src/store/migrations/0001-keys-and-calls.ts';
import { strictKeys } from '../../../src/store/migrations/0002-strict-keys.ts';
import { policiesAndAudit } from '../../../src/store/migrations/0003-policies-and-audit.ts';
import { ledger } from '../../../src/store/migrations/0004-ledger.ts';
import { attemptCredential } from '../../../src/store/migrations/0005-attempt-credential.ts';
import { keptAnswers } from '../../../src/store/migrations/0006-kept-answers.ts';
import { keptContents } from '../../../src/store/migrations/0008-kept-contents.ts';
import { forgottenContents } from '../../../src/store/migrations/0009-forgotten-contents.ts';

const folder = mkdtempSync(join(tmpdir(), 'gateway-pieces-'));
after(() => rmSync(folder, { recursive: true, force: true }));

/** As the version before it left one. */
function bookOfSchema6(name: string): DatabaseSync {
  const db = new DatabaseSync(join(folder, name));
  db.exec(`${keysAndCalls} ${strictKeys} ${policiesAndAudit} ${ledger} ${attemptCredential} ${keptAnswers}
    PRAGMA application_id = 0x4d475759; PRAGMA user_version = 6;`);
  db.exec(`INSERT INTO usage_days (${names(db, 'usage_days').join(', ')})
    VALUES (${names(db, 'usage_days')
      .map(() => '7')
      .join(', ')})`);
  return db;
}

function names(db: DatabaseSync, table: string): readonly string[] {
  return db
    .prepare(`SELECT name FROM pragma_table_info('${table}')`)
    .all()
    .map(({ name }) => String(name));
}

function schemaOf(db: DatabaseSync): readonly unknown[] {
  return db.prepare('SELECT type, name, sql FROM sqlite_schema ORDER BY name').all();
}

const pieces = [
  'audio_input_tokens',
  'image_input_tokens',
  'video_input_tokens',
  'audio_output_tokens',
  'image_output_tokens',
  'web_searches',
  'images',
];

function addOneByOne(db: DatabaseSync): void {
  for (const piece of pieces) {
    db.exec(`ALTER TABLE calls ADD COLUMN reported_${piece} INTEGER;
      ALTER TABLE calls ADD COLUMN charged_${piece} INTEGER;
      ALTER TABLE attempts ADD COLUMN reported_${piece} INTEGER;
      ALTER TABLE usage_hours ADD COLUMN ${piece} INTEGER NOT NULL DEFAULT 0;
      ALTER TABLE usage_days ADD COLUMN ${piece} INTEGER NOT NULL DEFAULT 0;`);
  }
  db.exec(`${keptContents} ${forgottenContents}`);
}

test('N2 the schema is the one that SQLite would write, and what is in the book stays', () => {
  const plain = bookOfSchema6('plain.db');
  addOneByOne(plain);
  const db = bookOfSchema6('pieces.db');
  const reader = new DatabaseSync(join(folder, 'pieces.db'));
  assert.equal(reader.prepare('SELECT * FROM usage_days').all().length, 1);
  migrate(db, 'pieces.db');
  assert.deepEqual(schemaOf(db), schemaOf(plain));
  const found = db.prepare('SELECT at, web_searches, images FROM usage_days').get();
  assert.deepEqual({ ...found }, { at: 7, web_searches: 0, images: 0 });
  assert.deepEqual({ ...db.prepare('PRAGMA integrity_check').get() }, { integrity_check: 'ok' });
  assert.equal(reader.prepare('SELECT images FROM usage_days').all().length, 1, 'others see it');
  for (const each of [plain, db, reader]) each.close();
});

test('N2 a table that is not as it should be stops the upgrade, and nothing is recorded', () => {
  const db = bookOfSchema6('other.db');
  db.exec('DROP TABLE attempts; CREATE TABLE attempts (call_n INTEGER) STRICT;');
  const before = schemaOf(db);
  assert.throws(() => migrate(db, 'other.db'), /no such column/);
  assert.deepEqual(schemaOf(db), before);
  assert.deepEqual({ ...db.prepare('PRAGMA user_version').get() }, { user_version: 6 });
  db.close();
});
