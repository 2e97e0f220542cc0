/** Answers by `Idempotency-Key`, sealed, and how many bytes each API key has of them. */
export const keptAnswers = `
CREATE TABLE kept_answers (
  id TEXT PRIMARY KEY,
  key_id TEXT NOT NULL,
  owner TEXT NOT NULL,
  mark TEXT NOT NULL,
  until INTEGER NOT NULL,
  done INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  answer BLOB
) STRICT;
CREATE INDEX kept_answers_until ON kept_answers (until);
CREATE INDEX kept_answers_key ON kept_answers (key_id, until);

CREATE TABLE kept_answer_sums (
  key_id TEXT PRIMARY KEY,
  answers INTEGER NOT NULL,
  bytes INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
`;
