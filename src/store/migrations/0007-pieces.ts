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

const add = (table: string, column: string): string =>
  `ALTER TABLE ${table} ADD COLUMN ${column} INTEGER`;

// The calls that are there told of none: not known of a row, nothing in a sum.
export const pieceCounts = pieces
  .flatMap((piece) => [
    add('calls', `reported_${piece}`),
    add('calls', `charged_${piece}`),
    add('attempts', `reported_${piece}`),
    `${add('usage_hours', piece)} NOT NULL DEFAULT 0`,
    `${add('usage_days', piece)} NOT NULL DEFAULT 0`,
  ])
  .map((statement) => `${statement};`)
  .join('\n');
