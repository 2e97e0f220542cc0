/**
 * What a key may spend and who changed what. Keys that exist keep working: no limits, from anywhere.
 * Lists and policies stand as JSON text. `stamp` counts the changes of all keys (S6).
 */
export const policiesAndAudit = `
ALTER TABLE keys ADD COLUMN owner TEXT;
ALTER TABLE keys ADD COLUMN tags TEXT NOT NULL DEFAULT '[]';
ALTER TABLE keys ADD COLUMN cidrs TEXT NOT NULL DEFAULT '[]';
ALTER TABLE keys ADD COLUMN policy TEXT NOT NULL DEFAULT '{"limits":[],"budgets":[]}';
ALTER TABLE keys ADD COLUMN shrink INTEGER NOT NULL DEFAULT 1;
ALTER TABLE keys ADD COLUMN peppered INTEGER NOT NULL DEFAULT 0;
ALTER TABLE keys ADD COLUMN previous TEXT NOT NULL DEFAULT '[]';
ALTER TABLE keys ADD COLUMN last_used_at INTEGER;
ALTER TABLE keys ADD COLUMN previous_used_at INTEGER;
ALTER TABLE keys ADD COLUMN version INTEGER NOT NULL DEFAULT 1;
ALTER TABLE keys ADD COLUMN stamp INTEGER NOT NULL DEFAULT 0;
UPDATE keys SET stamp = rowid;
CREATE INDEX keys_stamp ON keys (stamp);

CREATE TABLE policies (
  kind TEXT NOT NULL,
  name TEXT NOT NULL,
  policy TEXT NOT NULL,
  PRIMARY KEY (kind, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE audit (
  seq INTEGER PRIMARY KEY,
  at INTEGER NOT NULL,
  actor TEXT NOT NULL,
  ip TEXT,
  action TEXT NOT NULL,
  subject TEXT NOT NULL,
  was TEXT,
  became TEXT,
  hash TEXT NOT NULL
) STRICT;
CREATE INDEX audit_subject ON audit (subject, seq);

CREATE TRIGGER audit_no_update BEFORE UPDATE ON audit
BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
CREATE TRIGGER audit_no_delete BEFORE DELETE ON audit
BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
CREATE TRIGGER audit_no_gap BEFORE INSERT ON audit
WHEN NEW.seq <> coalesce((SELECT max(seq) FROM audit), 0) + 1
BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
`;
