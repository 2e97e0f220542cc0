/** The options of gateway.yaml as a page: one table a section, made from the published JSON Schema. */
import type { publishedSchema } from '../src/config/schema.ts';

type Schema = Exclude<ReturnType<typeof publishedSchema>, boolean>;

interface Row {
  readonly path: readonly string[];
  readonly type: string;
  readonly about: string;
}

const intro = `# Options of gateway.yaml

Every option, with its default. Made from \`src/config/\` by \`node scripts/write-schema.mjs\`; do not edit. For editors there is a JSON Schema,
[gateway.schema.json](gateway.schema.json): a first line \`# yaml-language-server: $schema=PATH\` names it, as \`model-gateway init\` writes it.

Durations: \`500ms\`, \`2s\`, \`30m\`, \`1h\`. Sizes: \`64B\`, \`10MB\`, \`32MiB\`. Spans: \`36h\`, \`90d\`, \`26w\`, \`forever\`. Values may be references:
\`\${NAME}\` of the environment, \`\${file:/path}\`. \`NAME\` in a key stands for a name of your own. Options that several sections share are
described once.
`;

/** From this number on, options that are the same elsewhere are described there only. */
const minShared = 3;

/** @returns Markdown */
export function optionsPage(schema: Schema): string {
  const rows = rowsOf(schema, []);
  const shared = sharedRows(rows);
  const sections = Map.groupBy(rows, ({ path }) => (path.length > 1 ? path[0] : ''));
  const tables = [...sections].map(([name, options]) => {
    const title = name === '' ? 'Top level' : `\`${name}\``;
    const lines = options.flatMap((row) => lineOf(row, shared.get(row)));
    return [`## ${title}`, '', '| option | value | meaning |', '|---|---|---|', ...lines].join(
      '\n',
    );
  });
  return `${[intro.trim(), ...tables].join('\n\n')}\n`;
}

/** Options of one mapping that are the same in an earlier one. */
interface Shared {
  /** The mapping that has them, and the earlier one. */
  readonly at: string;
  readonly as: string;
  readonly rows: readonly Row[];
}

function lineOf(row: Row, shared: Shared | undefined): readonly string[] {
  if (shared === undefined) return [`| \`${row.path.join('.')}\` | ${row.type} | ${row.about} |`];
  if (shared.rows[0] !== row) return [];
  const names = shared.rows.map(({ path }) => path.join('.').slice(`${shared.at}.`.length));
  // A list or a mapping stands for what is in it.
  const outer = names.filter(
    (name) =>
      !names.some((other) => /^(\[\])?\./.test(name.slice(other.length)) && name.startsWith(other)),
  );
  const listed = outer.map((name) => `\`${name}\``).join(', ');
  return [`| \`${shared.at}\`: ${listed} | | as in \`${shared.as}\` |`];
}

/** The rows that an earlier mapping has in the same words. */
function sharedRows(rows: readonly Row[]): ReadonlyMap<Row, Shared> {
  const shared = new Map<Row, Shared>();
  /** By mapping: its options that are described there. */
  const described = new Map<string, Row[]>();
  const options = rows.filter(({ path }) => path.length > 1 && path.at(-1) !== 'NAME');
  const mappings = new Set(options.map(({ path }) => path.slice(0, -1).join('.')));
  for (const at of mappings) {
    const own = optionsOf(rows, at).filter((row) => !shared.has(row));
    const candidates = [...described].map(([as, others]) => ({
      at,
      as,
      rows: own.filter((row) =>
        others.some((other) => saysSame({ at, row }, { at: as, row: other })),
      ),
    }));
    const best = candidates.toSorted((one, other) => other.rows.length - one.rows.length)[0];
    const found = best !== undefined && best.rows.length >= minShared ? best : undefined;
    for (const row of found?.rows ?? []) if (found !== undefined) shared.set(row, found);
    described.set(
      at,
      own.filter((row) => !shared.has(row)),
    );
  }
  return shared;
}

function optionsOf(rows: readonly Row[], mapping: string): readonly Row[] {
  return rows.filter(({ path }) => path.join('.').startsWith(`${mapping}.`));
}

interface PlacedRow {
  readonly at: string;
  readonly row: Row;
}

function saysSame(one: PlacedRow, other: PlacedRow): boolean {
  const nameOf = ({ at, row }: PlacedRow): string => row.path.join('.').slice(at.length);
  return (
    nameOf(one) === nameOf(other) &&
    one.row.type === other.row.type &&
    one.row.about === other.row.about
  );
}

/** Every option below a form, in the order of the schema. */
function rowsOf(schema: Schema, path: readonly string[]): readonly Row[] {
  return alternatives(schema).flatMap(({ properties = {}, additionalProperties: named, items }) => [
    ...Object.entries(properties).flatMap(([key, form]) => {
      if (typeof form === 'boolean') return [];
      const below = rowsOf(form, [...path, key]);
      const about = cell(form.description ?? '');
      return [{ path: [...path, key], type: typeOf(form), about }, ...below];
    }),
    ...(typeof named === 'object' ? rowsOf(named, [...path, 'NAME']) : []),
    ...(typeof items === 'object' && !Array.isArray(items)
      ? rowsOf(items, [...path.slice(0, -1), `${path.at(-1)}[]`])
      : []),
  ]);
}

function alternatives(schema: Schema): readonly Schema[] {
  if (schema.anyOf === undefined) return [schema];
  return schema.anyOf.flatMap((each) => (typeof each === 'boolean' ? [] : alternatives(each)));
}

const typeNames = new Map([
  ['array', 'list'],
  ['string', 'text'],
  ['integer', 'whole number'],
  ['number', 'number'],
  ['boolean', '`true`, `false`'],
  ['object', 'mapping'],
]);

/** The kinds of values in a word each: `duration`, `size`, `one of a, b`, `list`, `mapping`. */
function typeOf(form: Schema): string {
  const words = alternatives(form).flatMap((each) => {
    if (each.const !== undefined) return `\`${String(each.const)}\``;
    if (each.enum !== undefined) return each.enum.map((value) => `\`${String(value)}\``).join(', ');
    if (each.type === 'string') return textType(each.examples ?? []);
    return [each.type ?? []].flat().map((type) => typeNames.get(type));
  });
  return [...new Set(words.filter((word) => word !== undefined))].join(' or ');
}

function textType(examples: readonly unknown[]): string {
  return examples.length === 0
    ? 'text'
    : examples.map((example) => `\`${String(example)}\``).join(', ');
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('\n', ' ');
}
