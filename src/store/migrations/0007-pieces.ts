/** Tokens of sound, pictures and film, web searches and pictures: of calls, their attempts, and in the sums. */
const pieces = [
  'audio_input_tokens',
  'image_input_tokens',
  'video_input_tokens',
  'audio_output_tokens',
  'image_output_tokens',
  'web_searches',
  'images',
];

const columns = (names: readonly string[], type: string): string =>
  names.map((name) => `, ${name} ${type}`).join('');
const ofCalls = pieces.flatMap((piece) => [`reported_${piece}`, `charged_${piece}`]);
const ofAttempts = pieces.map((piece) => `reported_${piece}`);

/** Columns stand before a key of several columns, else at the end. */
const beforeKey = (added: string): string =>
  `replace(sql, char(44, 10) || '  PRIMARY KEY (', '${added}' || char(44, 10) || '  PRIMARY KEY (')`;
const atEnd = (added: string): string =>
  `substr(sql, 1, length(sql) - length(') STRICT')) || '${added}) STRICT'`;

const write = (table: string, sql: string): string =>
  `UPDATE sqlite_schema SET sql = ${sql} WHERE type = 'table' AND name = '${table}';`;
const sums = columns(pieces, 'INTEGER NOT NULL DEFAULT 0');

/**
 * The calls that are there told of none: not known of a row, nothing in a sum.
 *
 * The text is what ALTER TABLE ADD COLUMN would write 35 times; but for each of them SQLite reads a STRICT table
 * through, two minutes for two million calls. Nothing in the file changes but the text
 * (https://sqlite.org/lang_altertable.html#otheralter): a short row has the default in its later columns. A table
 * that comes and goes tells other connections; the questions fail where a column is not there.
 */
export const pieceCounts = `
PRAGMA writable_schema = ON;
${write('calls', atEnd(columns(ofCalls, 'INTEGER')))}
${write('attempts', beforeKey(columns(ofAttempts, 'INTEGER')))}
${write('usage_hours', beforeKey(sums))}
${write('usage_days', beforeKey(sums))}
CREATE TABLE schema_changed (n INTEGER) STRICT;
DROP TABLE schema_changed;
PRAGMA writable_schema = RESET;
SELECT ${ofCalls.join(', ')} FROM calls LIMIT 0;
SELECT ${ofAttempts.join(', ')} FROM attempts LIMIT 0;
SELECT ${pieces.join(', ')} FROM usage_hours LIMIT 0;
SELECT ${pieces.join(', ')} FROM usage_days LIMIT 0;`;
