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

const add = (table: string, columns: readonly string[]): string =>
  `ALTER TABLE ${table} ${columns.map((column) => `ADD COLUMN ${column}`).join(', ')};`;
const counts = (kind: string): string[] => pieces.map((piece) => `${kind}_${piece} bigint`);
const sums = pieces.map((piece) => `${piece} bigint NOT NULL DEFAULT 0`);

// The calls that are there told of none: not known of a row, nothing in a sum. No table is written anew.
export const pieceCounts = [
  add('calls', [...counts('reported'), ...counts('charged')]),
  add('attempts', counts('reported')),
  add('usage_hours', sums),
  add('usage_days', sums),
].join('\n');
