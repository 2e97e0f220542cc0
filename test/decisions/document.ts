/** docs/user/translation.md, written from the tables. */
import type { Dialect } from '../support/reading.ts';
import { departures } from './elsewhere.ts';
import { knownModels, type KnownModel } from './known-models.ts';
import { answerTables, requestTables, rowId, type DecidedRow, type DecidedTable } from './rows.ts';

const intro = `# Translation

<!-- Written by scripts/write-translation.mjs from test/decisions; a test fails while this file is stale. -->

A provider speaks one of two APIs, chat completions or messages. A client of the same API is **relayed**: its bytes arrive as they were sent,
except for the model name, \`stream_options\` (usage is always requested), and what the target is known to refuse or ignore (last two sections).
A client of the other API is **translated**. The tables list every field that the official SDKs' types have. Tests send a request for each row
through every pair of APIs.

| word | meaning |
|---|---|
| **EXACT** | same meaning on both sides |
| **APPROX** | carried with a slightly different meaning |
| **WARN** | dropped, and noted |
| **IGNORE** | dropped without a note: a hint, or the default value |
| **REJECT** | refused with 400 and the field's path, before any model is called |

- **Notes** are in the answer's header \`x-gateway-notes\` (\`field: dropped, why; field: changed, why\`), in the call's record (\`GET /api/calls\`)
  and in the log. APPROX° is not noted.
- **Strict**, on a key (\`keys create --strict\`) or a route (\`strict: true\`): what would be noted is refused with 400.
- **Unknown members** are noted by their path in every object. JSON Schemas, arguments and inputs of calls are carried whole.
- **Defaults**: the API's default value and \`null\` are neither refused nor noted.
- **By model**: EXACT* and "noted at", "refused at" name known models that depart from the row. They are found by running the row's sample at
  every known model. "all but openai" leaves one vendor out, "openai (o1, o3)" names models, [set 1](#sets-of-models) is listed at the end.

\`messages[user].content[text].text\` is the field \`text\` of parts of the type \`text\` in messages of the role \`user\`; \`messages[]\` means any role.
A case narrows a row. Empty cells at the end of a row are left out. An object that is EXACT may have members that are not.
`;

const maxCellLength = 300;

function cell(text: string): string {
  return text.replaceAll('|', '\\|');
}

/** A line of a table; empty cells at its end are left out. */
function tableLine(cells: readonly string[]): string {
  const last = cells.findLastIndex((text) => text !== '');
  return `| ${cells
    .slice(0, last + 1)
    .map(cell)
    .join(' | ')} |`;
}

/** Names longer than this are told once, in the last section. */
const maxNamesLength = 80;

/** Sets of models with long names, each with its number: the text of one document. */
type ModelSets = Map<string, number>;

/** The models in few words: vendors with all of their models, `vendor (model, …)`, or `all but …` where that is shorter. */
function named(found: readonly KnownModel[], upstream: Dialect): string {
  const all = knownModels(upstream);
  if (found.length === all.length) return 'all';
  const others = all.filter((each) => !found.some(({ name }) => name === each.name));
  const names = byVendor(found, all);
  const allBut = `all but ${byVendor(others, all)}`;
  return allBut.length < names.length ? allBut : names;
}

function byVendor(found: readonly KnownModel[], all: readonly KnownModel[]): string {
  const vendors = [...new Set(found.map(({ vendor }) => vendor))];
  const names = vendors.map((vendor) => {
    const own = found.filter((each) => each.vendor === vendor);
    const whole = all.filter((each) => each.vendor === vendor).length === own.length;
    return whole ? vendor : `${vendor} (${own.map(({ model }) => model).join(', ')})`;
  });
  return names.join(', ');
}

/** The names, or the number of their set. */
function shown(names: string, sets: ModelSets): string {
  if (names.length <= maxNamesLength) return names;
  const number = sets.get(names) ?? sets.size + 1;
  sets.set(names, number);
  return `[set ${number}](#sets-of-models)`;
}

/** What known models do otherwise than an unknown one. */
function elsewhere(table: DecidedTable, row: DecidedRow, sets: ModelSets): string {
  if (table.what !== 'request' || row.outer) return '';
  const upstream = table.from === 'chat' ? 'messages' : 'chat';
  const { decision } = row.verdict;
  if (decision === 'REJECT') return '';
  const { told, refused } = departures(table.from, upstream, { id: rowId(row), path: row.path });
  const isTold = decision === 'WARN' || (decision === 'APPROX' && !('silent' in row.verdict));
  return [
    ...(isTold || told.length === 0 ? [] : [`noted at ${shown(named(told, upstream), sets)}`]),
    ...(refused.length === 0 ? [] : [`refused at ${shown(named(refused, upstream), sets)}`]),
  ].join('; ');
}

/** The cells of a row behind its path. */
function cellsOf(table: DecidedTable, row: DecidedRow, sets: ModelSets): readonly string[] {
  const { when, verdict } = row;
  const departing = elsewhere(table, row, sets);
  const kept = verdict.decision === 'EXACT' || verdict.decision === 'APPROX';
  const silent = kept && verdict.silent === true ? '°' : '';
  // What a known model departs from is not the same everywhere.
  const starred = departing !== '' && verdict.decision === 'EXACT' ? '*' : '';
  const remarks = [verdict.how ?? '', departing].filter((text) => text !== '').join('; ');
  return [when, verdict.decision + silent + starred, kept ? verdict.to : '', remarks];
}

interface Line {
  path: string;
  readonly cells: readonly string[];
}

/** Fields that are carried in every case, with nothing to be said of them. */
function isPlain({ cells: [when, decision, , remarks] }: Line): boolean {
  return when === '' && decision === 'EXACT' && remarks === '';
}

/** Fields in a row that are decided alike share a line. */
function tableLines(lines: readonly Line[]): readonly string[] {
  const joined: Line[] = [];
  for (const { path, cells } of lines) {
    const before = joined.at(-1);
    const alike = before?.cells.join('|') === cells.join('|');
    if (before !== undefined && alike && before.path.length + path.length < maxCellLength - 2) {
      before.path += `, ${path}`;
    } else joined.push({ path, cells });
  }
  return joined.map(({ path, cells }) => tableLine([path, ...cells]));
}

function section(table: DecidedTable, sets: ModelSets): string {
  const lines = table.rows.map((row) => ({
    path: `\`${row.path}\``,
    cells: cellsOf(table, row, sets),
  }));
  const plain = lines.filter(isPlain).map(({ path, cells: [, , to = ''] }) => {
    return to === '' ? path : `${path} → ${to}`;
  });
  return [
    `## ${table.title}`,
    '',
    '| field | case | decision | becomes | remarks |',
    '|---|---|---|---|---|',
    ...tableLines(lines.filter((line) => !isPlain(line))),
    '',
    wrapped(`All other fields are EXACT: ${plain.join('; ')}.`, ''),
    '',
  ].join('\n');
}

const relayIntro = `Fields of a relayed request that known models do not take as they are. Each change is noted, and refused under strict.`;

/** The models that do not take a row of a relayed request as it is; '' = none. */
function relayedAt(dialect: Dialect, row: DecidedRow): string {
  const { told, refused } = departures(dialect, dialect, { id: rowId(row), path: row.path });
  return [
    ...(told.length === 0 ? [] : [`changed at ${named(told, dialect)}`]),
    ...(refused.length === 0 ? [] : [`refused at ${named(refused, dialect)}`]),
  ].join('; ');
}

/** The changes of relayed requests, by the models that they are made for. */
function relaySection(dialect: Dialect): string {
  const rows = requestTables[dialect].rows
    .filter(({ outer }) => !outer)
    .map((row) => ({ path: row.path, when: row.when, models: relayedAt(dialect, row) }));
  const groups = new Map<string, Set<string>>();
  for (const { path, when, models } of rows) {
    if (models === '') continue;
    // Where all cases of a field are alike, its name says it.
    const isWhole = rows.every((each) => each.path !== path || each.models === models);
    const field = `\`${path}\`` + (isWhole || when === '' ? '' : ` (${when})`);
    groups.set(models, (groups.get(models) ?? new Set()).add(field));
  }
  const lines = [...groups].map(([models, fields]) =>
    wrapped(`- ${models}: ${[...fields].join(', ')}`),
  );
  const title = `## Relayed: ${dialect} request to a ${dialect} model`;
  return [title, '', relayIntro, '', ...lines, ''].join('\n');
}

/** Lines of at most 150 characters; those after the first have an indent. */
function wrapped(text: string, indent = '  '): string {
  const lines: string[] = [''];
  for (const word of text.split(' ')) {
    const line = lines.at(-1) ?? '';
    if (line.length + word.length < 150)
      lines[lines.length - 1] = line === '' ? word : `${line} ${word}`;
    else lines.push(indent + word);
  }
  return lines.join('\n');
}

export function translationText(): string {
  const tables: readonly DecidedTable[] = [
    ...Object.values(requestTables),
    ...Object.values(answerTables),
  ];
  const sets: ModelSets = new Map();
  const sections = tables.map((table) => section(table, sets));
  const relayed = (['chat', 'messages'] as const).map(relaySection);
  const setLines = [...sets].map(([names, number]) => wrapped(`- **Set ${number}**: ${names}`));
  return [intro, ...sections, ...relayed, '## Sets of models', '', ...setLines, ''].join('\n');
}
