/** Keys whose content is logged, and what their calls said, sealed. */
export const keptContents = `
ALTER TABLE keys ADD COLUMN log_content INTEGER NOT NULL DEFAULT 0;

CREATE TABLE kept_contents (
  id TEXT PRIMARY KEY,
  key_id TEXT NOT NULL,
  started_at INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  content BLOB NOT NULL
) STRICT;
CREATE INDEX kept_contents_time ON kept_contents (started_at, bytes);
CREATE INDEX kept_contents_key ON kept_contents (key_id, started_at, bytes);
`;
