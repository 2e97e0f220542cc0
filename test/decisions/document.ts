/** docs/user/translation.md, written from the tables. */
import type { Dialect } from '../support/reading.ts';
import { departures } from './elsewhere.ts';
import { answerTables, requestTables, rowId, type DecidedRow, type DecidedTable } from './rows.ts';

const intro = `# What becomes of each field

<!-- Written by scripts/write-translation.mjs from test/decisions; a test fails while this file is stale. -->

A model behind the gateway speaks one of two formats, chat completions or messages. A client that speaks the same
format is **relayed**: its body arrives as it was sent, apart from the model's name (and \`stream_options\`, since usage
is always asked for) and what the model is known to refuse or skip, told at the end. Otherwise the gateway **translates**, and these tables say what becomes of each field that the
official clients' types know. They are what the tests read: a field of a newer client that is missing here fails the
type check, and a request for each row is sent through every pair of formats.

| word | meaning |
|---|---|
| **EXACT** | the same meaning on both sides |
| **APPROX** | carried with a slightly different meaning |
| **WARN** | dropped, and you are told |
| **IGNORE** | dropped without a word: a hint, or its value is the default |
| **REJECT** | refused with a 400 that names the field, before any model is asked |

- **You are told** in the answer's header \`x-gateway-notes\`, as \`field: dropped, why; field: changed, why\`, in the
  call's record (\`GET /api/calls\`) and in the log. APPROX rows marked ° are not noted: they cannot surprise.
- **Strict**: with a key made by \`model-gateway keys create --strict\`, or on a route with \`strict: true\`, whatever would
  be noted is a 400 instead.
- A member that no table knows is noted by its path, in whatever object it stands. Schemas, arguments and inputs of calls
  are carried whole; what stands inside a field that is ignored or told of as a whole goes with it.
- A value that equals the API's default is never an error and never noted, nor is \`null\`.
- What a model can do is known by vendor and model (\`src/providers\`); where a row depends on it, its case says so.
- **Otherwise at** names known models at which the row's sample is noted or refused though the decision does not say so; EXACT* has
  such models. It is found by running the samples through the readers and writers at all known models.

Paths: \`messages[user].content[text].text\` is the field \`text\` of parts of the type \`text\` in messages of the role
\`user\`; \`messages[]\` means any role. A case in the second column narrows a row.
`;

function cell(text: string): string {
  return text.replaceAll('|', '\\|');
}

/** What known models do otherwise than an unknown one. */
function elsewhere(table: DecidedTable, row: DecidedRow): string {
  if (table.what !== 'request' || row.outer) return '';
  const upstream = table.from === 'chat' ? 'messages' : 'chat';
  const { decision } = row.verdict;
  if (decision === 'REJECT') return '';
  const { told, refused } = departures(table.from, upstream, { id: rowId(row), path: row.path });
  const isTold = decision === 'WARN' || (decision === 'APPROX' && !('silent' in row.verdict));
  return [
    ...(isTold || told.length === 0 ? [] : [`noted at ${told.join(', ')}`]),
    ...(refused.length === 0 ? [] : [`refused at ${refused.join(', ')}`]),
  ].join('; ');
}

function requestLine(table: DecidedTable, row: DecidedRow): string {
  const departing = elsewhere(table, row);
  const { decision } = row.verdict;
  // What a known model departs from is not the same everywhere.
  const starred = departing !== '' && decision === 'EXACT' ? `${line(row, '*')}` : line(row);
  return `${starred} ${cell(departing)} |`;
}

function line({ path, when, verdict }: DecidedRow, mark = ''): string {
  const kept = verdict.decision === 'EXACT' || verdict.decision === 'APPROX';
  const to = kept && verdict.to !== '' ? verdict.to : '';
  const word = kept && verdict.silent === true ? `${verdict.decision}°` : verdict.decision;
  const cells = [`\`${path}\``, when, word + mark, to, verdict.how ?? ''];
  return `| ${cells.map(cell).join(' | ')} |`;
}

function section(table: DecidedTable): string {
  const asks = table.what === 'request';
  return [
    `## ${table.title}`,
    '',
    `| field | case | decision | becomes | remarks |${asks ? ' otherwise at |' : ''}`,
    `|---|---|---|---|---|${asks ? '---|' : ''}`,
    ...table.rows.map((row) => (asks ? requestLine(table, row) : line(row))),
    '',
  ].join('\n');
}

const relayIntro = `What a relayed request is changed in, by the samples of the tests at the same models. Everything else arrives as it was sent.
Whatever is named here is in \`x-gateway-notes\`, and refused under strict.`;

/** The changes of relayed requests, by field. */
function relaySection(dialect: Dialect): string {
  const rows = requestTables[dialect].rows
    .filter(({ outer }) => !outer)
    .map((row) => ({ row, ...departures(dialect, dialect, { id: rowId(row), path: row.path }) }))
    .filter(({ told, refused }) => told.length + refused.length > 0);
  return [
    `## Relayed: ${dialect} request to a ${dialect} model`,
    '',
    relayIntro,
    '',
    '| field | case | changed at | refused at |',
    '|---|---|---|---|',
    ...rows.map(({ row, told, refused }) => {
      const cells = [`\`${row.path}\``, row.when, told.join(', '), refused.join(', ')];
      return `| ${cells.map(cell).join(' | ')} |`;
    }),
    '',
  ].join('\n');
}

export function translationText(): string {
  const tables: readonly DecidedTable[] = [
    ...Object.values(requestTables),
    ...Object.values(answerTables),
  ];
  const relayed = (['chat', 'messages'] as const).map(relaySection);
  return [intro, ...tables.map(section), ...relayed].join('\n');
}
