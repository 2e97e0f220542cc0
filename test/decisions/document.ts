/** docs/user/translation.md, written from the tables. */
import { upstreamDialects, type Pair, type UpstreamDialect } from '../support/dialects.ts';
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

What becomes of each field of a request or an answer. A client whose API the provider speaks too is **relayed**: its bytes arrive as they were sent,
except for the model name, \`stream_options\` (chat: usage is always requested), \`store\` and \`include\` (responses: nothing is kept at the
provider), and what the target is known to refuse or ignore. A client of another API is **translated**. Tests send each field that the official SDKs'
types have through every pair of APIs, in both directions.

| word | meaning |
|---|---|
| **EXACT** | same meaning on both sides |
| **APPROX** | carried with a slightly different meaning, and noted; APPROX° is not noted |
| **WARN** | dropped, and noted |
| **IGNORE** | dropped without a note: a hint, or the default value |
| **REJECT** | refused with 400 and the field's path, before any model is called |

- **Notes** are in the answer's header \`x-gateway-notes\` (\`field: dropped, why; field: changed, why\`), in the call's record (\`GET /api/calls\`)
  and in the log. **Strict**, on a key (\`keys create --strict\`) or a route (\`strict: true\`), refuses with 400 what of a request would be noted.
- **Not listed**: fields that are EXACT everywhere. A stream carries what a document does. JSON Schemas, arguments and inputs of calls are carried
  whole. An API's default value and \`null\` are neither refused nor noted.
- **Unknown members** are noted by their path in every object, of requests and of translated answers; unknown events and pieces of a stream by their
  type. What vendors say of a call beside its answer (ids, times, reports of filters, counts of their own) is left out.
- **Empty cells**: an empty field is the field above, an empty verdict the one to its left. – means that the fields inside say it. What all other APIs
  decide alike is listed below the table.
- \`messages[user].content[text].text\` is the field \`text\` of parts of the type \`text\` in messages of the role \`user\`; \`messages[]\` means
  any role. A case narrows a row.
- **By model**: "responses" means OpenAI's models, "Gemini" its own API, "Converse" Claude by Bedrock's Converse. EXACT* and the lists below each
  table tell where known models differ. "all but openai" leaves one vendor out, "openai (o1, o3)" names models, [set 1](#sets-of-models) is listed
  at the end.
`;

const maxCellLength = 300;

/** Text that no reader of Markdown takes for a tag. */
function withoutTags(text: string): string {
  return text.replaceAll('<', '\\<');
}

function cell(text: string): string {
  return withoutTags(text).replaceAll('|', '\\|');
}

/** A line of a table; empty cells at its end are left out. */
function tableLine(cells: readonly string[]): string {
  const last = cells.findLastIndex((text) => text !== '');
  return `| ${cells
    .slice(0, last + 1)
    .map(cell)
    .join(' | ')} |`;
}

/** Longer names that several lines need are listed once, in the last section. */
const maxNamesLength = 40;

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

/** A field, the models that do not carry it as its row says, and what they do. */
interface Departure {
  readonly upstream: UpstreamDialect;
  readonly what: 'noted' | 'refused';
  readonly models: string;
  readonly path: string;
  readonly when: string;
}

/** What known models do otherwise than an unknown one. */
function elsewhere({ client, upstream }: Pair, row: DecidedRow): readonly Departure[] {
  const { decision } = row.verdict;
  // A hint is of no use where what it is about is refused.
  if (decision === 'REJECT' || decision === 'IGNORE') return [];
  const isTold = decision === 'WARN' || (decision === 'APPROX' && !('silent' in row.verdict));
  return departuresOf({ client, upstream }, row).filter(
    ({ what }) => what === 'refused' || !isTold,
  );
}

function departuresOf({ client, upstream }: Pair, row: Row): readonly Departure[] {
  if (row.outer) return [];
  const all = knownModels(upstream);
  const { path, when } = row;
  const { told, refused } = departures(client, all, { id: rowId(row), path });
  const found = [
    { what: 'noted', models: told },
    { what: 'refused', models: refused },
  ] as const;
  return found
    .filter(({ models }) => models.length > 0)
    .map(({ what, models }) => ({ upstream, what, models: named(models, all), path, when }));
}

/** Reasons that say no more than the word before them. */
const plainReasons: ReadonlySet<string> = new Set([
  'not known to the model',
  'no such field there',
  'no such option there',
  'no field there',
  'has no meaning there',
]);

/** A verdict in one cell: the word, what an approximation becomes, and remarks. */
function verdictCell({ verdict }: DecidedRow, departs = false): string {
  const { decision, how = '' } = verdict;
  const approximate = decision === 'APPROX';
  const silent = approximate && verdict.silent === true ? '°' : '';
  // What a known model departs from is not the same everywhere.
  const starred = departs && decision === 'EXACT' ? '*' : '';
  const becomes = approximate && how === '' ? verdict.to : '';
  const remarks = [becomes, how]
    .filter((text) => text !== '' && !plainReasons.has(text))
    .join('; ');
  return [decision + silent + starred, remarks].filter((text) => text !== '').join(': ');
}

interface Line {
  readonly path: string;
  readonly when: string;
  /** One for each dialect on the other side. */
  readonly cells: readonly string[];
}

const untold: ReadonlySet<string> = new Set(['–', 'EXACT', 'EXACT*', 'IGNORE: the default']);

/** Whether a line says more than that everything is carried, or that a value is a default. */
function isTelling({ cells }: Line): boolean {
  return cells.some((text) => !untold.has(text));
}

/** A cell that says what the one to its left says is empty. */
function shortened(cells: readonly string[]): readonly string[] {
  return cells.map((text, i) => (i > 0 && text === cells[i - 1] ? '' : text));
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

/** Cases of a field that are decided alike share a line. */
function withCasesJoined(lines: readonly Line[]): readonly Line[] {
  const alike = Map.groupBy(lines, ({ path, cells }) => JSON.stringify([path, cells]));
  return [...alike.values()].flatMap((group) => {
    const [first] = group;
    const whens = group.map(({ when }) => when);
    return first === undefined ? [] : [{ ...first, when: whens.join('; ') }];
  });
}

/** Fields of one member of the body that are decided alike share a line. */
function tableLines(lines: readonly Line[]): readonly string[] {
  const joined: { paths: string; readonly rest: readonly string[]; readonly top: string }[] = [];
  for (const { path, when, cells } of withCasesJoined(ofBothRoles(lines))) {
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
  return joined.map(({ paths, rest }, i) =>
    tableLine([paths === joined[i - 1]?.paths ? '' : paths, ...rest]),
  );
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
    ...tableLines(told.filter((line) => !isIgnored(line) && !isUniform(line))),
    '',
    ...uniformLines(told.filter((line) => !isIgnored(line) && isUniform(line))),
    ...ignoredLines(told.filter(isIgnored)),
    '',
  ].join('\n');
}

/** Whether the other API has no use for the field. */
function isIgnored({ cells }: Line): boolean {
  return cells.every((text) => text.startsWith('IGNORE') || text === '–');
}

/** Whether all other APIs decide alike. */
function isUniform({ cells }: Line): boolean {
  return cells.every((text) => text === cells[0]);
}

function uniformLines(lines: readonly Line[]): readonly string[] {
  const alike = Map.groupBy(ofBothRoles(lines), ({ cells }) => cells[0] ?? '');
  return [...alike].map(([verdict, own]) =>
    wrapped(`- ${withoutTags(verdict)}: ${fieldsOf(own).join(', ')}`),
  );
}

function ignoredLines(lines: readonly Line[]): readonly string[] {
  return lines.length === 0
    ? []
    : [wrapped(`- IGNORE: ${fieldsOf(ofBothRoles(lines)).join(', ')}`)];
}

/** Each field once, with its cases. */
function fieldsOf(lines: readonly Line[]): readonly string[] {
  return [...Map.groupBy(lines, ({ path }) => path)].map(([path, own]) => {
    const whens = own.map(({ when }) => when).filter((when) => when !== '');
    return `\`${path}\`${whens.length === 0 ? '' : ` (${whens.join('; ')})`}`;
  });
}

const titles: { readonly [D in AnyDialect]: string } = {
  chat: 'Chat',
  messages: 'Messages',
  responses: 'Responses',
};

/** How a column names its upstream. */
const heads: { readonly [U in UpstreamDialect]: string } = {
  chat: 'to chat',
  messages: 'to messages',
  responses: 'to responses',
  gemini: 'to Gemini',
  converse: 'to Converse',
};

interface RequestSection {
  readonly text: string;
  readonly client: AnyDialect;
  readonly departing: readonly Departure[];
}

function requestSection({ client, rows, upstreams, towards }: RequestTable): RequestSection {
  const departing: Departure[] = [];
  const columns = upstreams.map((upstream) => ({ upstream, decided: towards(upstream) }));
  const lines = rows.map((row, i): Line => {
    const cells = columns.map(({ upstream, decided }) => {
      const found = decided[i];
      if (found === undefined || (row.outer && upstream !== firstUpstream[client])) return '–';
      const departs = elsewhere({ client, upstream }, found);
      departing.push(...departs);
      return verdictCell(found, departs.length > 0);
    });
    return { path: row.path, when: row.when, cells };
  });
  departing.push(...rows.flatMap((row) => departuresOf({ client, upstream: client }, row)));
  const title = `${titles[client]} requests`;
  const text = section({ title, heads: upstreams.map((each) => heads[each]), lines });
  return { text, client, departing };
}

function answerSection(upstream: AnyDialect): string {
  const tables = answerTables.filter(({ from, what }) => from === upstream && what === 'document');
  const [first] = tables;
  return section({
    title: `Answers of ${upstream} models`,
    heads: tables.map(({ client }) => `to ${client}`),
    lines: (first?.rows ?? []).map(({ path, when, outer }, i) => ({
      path,
      when,
      cells: tables.map(({ rows }, column) => {
        const row = rows[i];
        return row === undefined || (outer && column > 0) ? '–' : verdictCell(row);
      }),
    })),
  });
}

/** The fields of an upstream that the same models carry otherwise. */
interface Group extends Pick<Departure, 'upstream' | 'what' | 'models'> {
  readonly fields: readonly string[];
}

function groupsOf({ client, departing }: RequestSection): readonly Group[] {
  const cases = Map.groupBy(requestTables[client].rows, ({ path }) => path);
  const alike = Map.groupBy(departing, ({ upstream, what, models }) =>
    JSON.stringify([upstream, what, models]),
  );
  return [...alike.values()].flatMap((group) => {
    const [first] = group;
    if (first === undefined) return [];
    const fields = [...Map.groupBy(group, ({ path }) => path)].map(([path, own]) => {
      // Where all cases of a field are alike, its name says it.
      const isWhole = own.length === (cases.get(path) ?? []).filter(({ outer }) => !outer).length;
      const whens = own.map(({ when }) => when).filter((when) => when !== '');
      return `\`${path}\`${isWhole || whens.length === 0 ? '' : ` (${whens.join('; ')})`}`;
    });
    return [{ upstream: first.upstream, what: first.what, models: first.models, fields }];
  });
}

/** Sets of models that several lines name, each with its number. */
function setsOf(groups: readonly Group[]): ReadonlyMap<string, number> {
  const uses = Map.groupBy(groups, ({ models }) => models);
  const names = [...uses].filter(([name, own]) => name.length > maxNamesLength && own.length > 1);
  return new Map(names.map(([name], i) => [name, i + 1]));
}

/** For each upstream of a client one line for each set of models, with the fields that it stands for. */
function differing(
  client: AnyDialect,
  groups: readonly Group[],
  sets: ReadonlyMap<string, number>,
): string {
  const lists = upstreamDialects.flatMap((upstream) => {
    const own = groups.filter((group) => group.upstream === upstream);
    if (own.length === 0) return [];
    const head = upstream === client ? `${heads[upstream]}, relayed` : heads[upstream];
    const lines = own.map(({ what, models, fields }) => {
      const number = sets.get(models);
      const names = number === undefined ? models : `[set ${number}](#sets-of-models)`;
      return wrapped(`- ${what} at ${names}: ${fields.join(', ')}`);
    });
    return [`**${titles[client]} ${head}**`, '', ...lines, ''];
  });
  return [`### Models that differ for ${client} requests`, '', ...lists].join('\n');
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
  const sections = allDialects.map((dialect) => requestSection(requestTables[dialect]));
  const parts = sections.map((each) => ({ ...each, groups: groupsOf(each) }));
  const sets = setsOf(parts.flatMap(({ groups }) => groups));
  const requests = parts.flatMap(({ text, client, groups }) => [
    text,
    differing(client, groups, sets),
  ]);
  const setLines = [...sets].map(([names, number]) => wrapped(`- **Set ${number}**: ${names}`));
  return [
    intro,
    ...requests,
    ...allDialects.map(answerSection),
    '## Sets of models',
    '',
    ...setLines,
    '',
  ].join('\n');
}
