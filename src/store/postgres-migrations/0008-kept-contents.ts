/** Keys whose content is logged, and what their calls said, sealed. */
export const keptContents = `
ALTER TABLE keys ADD COLUMN log_content integer NOT NULL DEFAULT 0;

CREATE TABLE kept_contents (
  id text COLLATE "C" PRIMARY KEY,
  key_id text COLLATE "C" NOT NULL,
  started_at bigint NOT NULL,
  bytes bigint NOT NULL,
  content bytea NOT NULL
);
-- Sealed bytes do not get smaller.
ALTER TABLE kept_contents ALTER COLUMN content SET STORAGE EXTERNAL;
CREATE INDEX kept_contents_time ON kept_contents (started_at, bytes);
CREATE INDEX kept_contents_key ON kept_contents (key_id, started_at, bytes);
`;
