/** docs/user/translation.md, written from the tables. */
import { upstreamOnlyDialects, type Pair, type UpstreamDialect } from '../support/dialects.ts';
import { allDialects, type AnyDialect } from '../support/reading.ts';
import { firstUpstream } from '../corpus/sample.ts';
import { departures } from './elsewhere.ts';
import { knownModels, type KnownModel } from './known-models.ts';
import {
  answerTables,
  requestTables,
  rowId,
  type DecidedRow,
  type RequestTable,
  type Row,
} from './rows.ts';

const intro = `# Translation

<!-- Written by scripts/write-translation.mjs from test/decisions; a test fails while this file is stale. -->

A provider speaks chat completions, messages or responses, Gemini's API or Bedrock's Converse. A client of the same API is **relayed**: its bytes arrive as they were sent, except
for the model name, \`stream_options\` (chat: usage is always requested), \`store\` and \`include\` (responses: nothing is kept at the provider),
and what the target is known to refuse or ignore (last sections). A client of another API is **translated**. Tests send a request for each
field that the official SDKs' types have through every pair of APIs, and an answer with each field back.

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
- **Not listed**: fields that are EXACT everywhere. A stream carries what a document does.
- **Unknown members** are noted by their path in every object. JSON Schemas, arguments and inputs of calls are carried whole.
- **Defaults**: the API's default value and \`null\` are neither refused nor noted.
- **By model**: EXACT* and "noted at", "refused at" name known models that depart from the row. They are found by running the row's sample at
  every known model. "all but openai" leaves one vendor out, "openai (o1, o3)" names models, [set 1](#sets-of-models) is listed at the end.
  "To a responses model" means OpenAI's, "to a Gemini model" its own API, "to a Converse model" Claude by Bedrock's Converse; others depart from it.

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

/** Longer names are listed once, in the last section. */
const maxNamesLength = 40;

/** Sets of models with long names, each with its number: the text of one document. */
type ModelSets = Map<string, number>;

/** The models in few words: vendors with all of their models, `vendor (model, …)`, or `all but …` where that is shorter. */
function named(found: readonly KnownModel[], all: readonly KnownModel[]): string {
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
function elsewhere(
  { client, upstream }: Pair,
  row: DecidedRow,
  sets: ModelSets,
): readonly string[] {
  const { decision } = row.verdict;
  // A hint is of no use where what it is about is refused.
  if (row.outer || decision === 'REJECT' || decision === 'IGNORE') return [];
  const all = knownModels(upstream);
  const { told, refused } = departures(client, all, { id: rowId(row), path: row.path });
  const isTold = decision === 'WARN' || (decision === 'APPROX' && !('silent' in row.verdict));
  return [
    ...(isTold || told.length === 0 ? [] : [`noted at ${shown(named(told, all), sets)}`]),
    ...(refused.length === 0 ? [] : [`refused at ${shown(named(refused, all), sets)}`]),
  ];
}

/** A verdict in one cell: the word, what an approximation becomes, and remarks. */
function verdictCell({ verdict }: DecidedRow, departing: readonly string[] = []): string {
  const { decision, how = '' } = verdict;
  const approximate = decision === 'APPROX';
  const silent = approximate && verdict.silent === true ? '°' : '';
  // What a known model departs from is not the same everywhere.
  const starred = departing.length > 0 && decision === 'EXACT' ? '*' : '';
  const becomes = approximate && how === '' ? verdict.to : '';
  const remarks = [becomes, how, ...departing].filter((text) => text !== '').join('; ');
  return [decision + silent + starred, remarks].filter((text) => text !== '').join(': ');
}

interface Line {
  readonly path: string;
  readonly when: string;
  /** One for each dialect on the other side. */
  readonly cells: readonly string[];
}

const untold: ReadonlySet<string> = new Set(['', 'EXACT', 'IGNORE: the default']);

/** Whether a line says more than that everything is carried, or that a value is a default. */
function isTelling({ cells }: Line): boolean {
  return cells.some((text) => !untold.has(text));
}

/** A cell that says what the one before it says. */
function shortened(cells: readonly string[]): readonly string[] {
  return cells.map((text, i) => (i > 0 && text === cells[0] && text.includes(' ') ? 'same' : text));
}

/** Developer and system messages are decided alike, so one line tells of both. */
function ofBothRoles(lines: readonly Line[]): readonly Line[] {
  const known = new Set(lines.map((line) => JSON.stringify(line)));
  return lines.flatMap((line) => {
    const developer = { ...line, path: line.path.replace('[system]', '[developer]') };
    if (developer.path !== line.path && known.has(JSON.stringify(developer))) return [];
    const system = { ...line, path: line.path.replace('[developer]', '[system]') };
    if (system.path === line.path || !known.has(JSON.stringify(system))) return [line];
    return [{ ...line, path: line.path.replace('[developer]', '[developer, system]') }];
  });
}

/** Fields of one member of the body that are decided alike share a line. */
function tableLines(lines: readonly Line[]): readonly string[] {
  const joined: { paths: string; readonly rest: readonly string[]; readonly top: string }[] = [];
  for (const { path, when, cells } of ofBothRoles(lines)) {
    const [top = ''] = path.split(/[.[]/);
    const rest = [when, ...shortened(cells)];
    const text = `\`${path}\``;
    const alike = joined.find(
      (each) =>
        each.top === top &&
        each.rest.join('|') === rest.join('|') &&
        each.paths.length + text.length < maxCellLength - 2,
    );
    if (alike === undefined) joined.push({ paths: text, rest, top });
    else alike.paths += `, ${text}`;
  }
  return joined.map(({ paths, rest }) => tableLine([paths, ...rest]));
}

interface Section {
  readonly title: string;
  /** Heads of the columns of verdicts. */
  readonly heads: readonly string[];
  readonly lines: readonly Line[];
}

function section({ title, heads, lines }: Section): string {
  const told = lines.filter(isTelling);
  return [
    `## ${title}`,
    '',
    tableLine(['field', 'case', ...heads]),
    `|${'---|'.repeat(heads.length + 2)}`,
    ...tableLines(told.filter((line) => !isIgnored(line))),
    '',
    ...ignoredLines(told.filter(isIgnored)),
  ].join('\n');
}

/** Whether the other API has no use for the field. */
function isIgnored({ cells }: Line): boolean {
  return cells.every((text) => text.startsWith('IGNORE') || text === '');
}

function ignoredLines(lines: readonly Line[]): readonly string[] {
  const fields = ofBothRoles(lines).map(({ path, when }) =>
    when === '' ? `\`${path}\`` : `\`${path}\` (${when})`,
  );
  return fields.length === 0 ? [] : [wrapped(`IGNORE: ${fields.join(', ')}.`, ''), ''];
}

const titles: { readonly [D in AnyDialect]: string } = {
  chat: 'Chat',
  messages: 'Messages',
  responses: 'Responses',
};

/** How a column names its upstream. */
const heads: { readonly [U in UpstreamDialect]: string } = {
  chat: 'to a chat model',
  messages: 'to a messages model',
  responses: 'to a responses model',
  gemini: 'to a Gemini model',
  converse: 'to a Converse model',
};

function requestSection(
  { client, rows, towards }: RequestTable,
  { title, upstreams }: { readonly title: string; readonly upstreams: readonly UpstreamDialect[] },
  sets: ModelSets,
): string {
  const columns = upstreams.map((upstream) => ({ upstream, decided: towards(upstream) }));
  return section({
    title,
    heads: upstreams.map((upstream) => heads[upstream]),
    lines: rows.map(({ path, when, outer }, i): Line => ({
      path,
      when,
      cells: columns.map(({ upstream, decided }) => {
        const row = decided[i];
        if (row === undefined || (outer && upstream !== firstUpstream[client])) return '';
        return verdictCell(row, elsewhere({ client, upstream }, row, sets));
      }),
    })),
  });
}

/** The upstreams whose dialects clients speak as well, and those of clouds. */
function requestSections(table: RequestTable, sets: ModelSets): readonly string[] {
  const ofClouds = new Set<UpstreamDialect>(upstreamOnlyDialects);
  const title = `${titles[table.client]} requests`;
  const upstreams = table.upstreams.filter((each) => !ofClouds.has(each));
  const clouds = table.upstreams.filter((each) => ofClouds.has(each));
  return [
    requestSection(table, { title, upstreams }, sets),
    requestSection(table, { title: `${title} to clouds`, upstreams: clouds }, sets),
  ];
}

function answerSection(upstream: AnyDialect): string {
  const tables = answerTables.filter(({ from, what }) => from === upstream && what === 'document');
  const [first] = tables;
  return section({
    title: `Answers of ${upstream} models`,
    heads: tables.map(({ client }) => `to a ${client} client`),
    lines: (first?.rows ?? []).map(({ path, when, outer }, i) => ({
      path,
      when,
      cells: tables.map(({ rows }, column) => {
        const row = rows[i];
        return row === undefined || (outer && column > 0) ? '' : verdictCell(row);
      }),
    })),
  });
}

const relayIntro = `Fields of a relayed request that known models do not take as they are. Each change is noted, and refused under strict.`;

/** The models that do not take a row of a relayed request as it is; '' = none. */
function relayedAt(dialect: AnyDialect, row: Row): string {
  const all = knownModels(dialect);
  const { told, refused } = departures(dialect, all, { id: rowId(row), path: row.path });
  return [
    ...(told.length === 0 ? [] : [`changed at ${named(told, all)}`]),
    ...(refused.length === 0 ? [] : [`refused at ${named(refused, all)}`]),
  ].join('; ');
}

/** The changes of relayed requests, by the models that they are made for. */
function relaySection(dialect: AnyDialect): string {
  const title = `## Relayed: ${dialect} request to a ${dialect} model`;
  const lines = modelLines(dialect, (row) => relayedAt(dialect, row));
  return [title, '', relayIntro, '', ...lines, ''].join('\n');
}

/** One line for each set of models, with the fields that it stands for. */
function modelLines(dialect: AnyDialect, modelsAt: (row: Row) => string): readonly string[] {
  const rows = requestTables[dialect].rows
    .filter(({ outer }) => !outer)
    .map((row) => ({ path: row.path, when: row.when, models: modelsAt(row) }));
  const groups = new Map<string, Set<string>>();
  for (const { path, when, models } of rows) {
    if (models === '') continue;
    // Where all cases of a field are alike, its name says it.
    const isWhole = rows.every((each) => each.path !== path || each.models === models);
    const field = `\`${path}\`` + (isWhole || when === '' ? '' : ` (${when})`);
    groups.set(models, (groups.get(models) ?? new Set()).add(field));
  }
  return [...groups].map(([models, fields]) => wrapped(`- ${models}: ${[...fields].join(', ')}`));
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
  const sets: ModelSets = new Map();
  const requests = allDialects.flatMap((dialect) => requestSections(requestTables[dialect], sets));
  const answers = allDialects.map(answerSection);
  const relayed = allDialects.map(relaySection);
  const setLines = [...sets].map(([names, number]) => wrapped(`- **Set ${number}**: ${names}`));
  return [
    intro,
    ...requests,
    ...answers,
    ...relayed,
    '## Sets of models',
    '',
    ...setLines,
    '',
  ].join('\n');
}
