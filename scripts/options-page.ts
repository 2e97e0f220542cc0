/** The options of gateway.yaml as a page: one table a section, made from the published JSON Schema. */
import type { publishedSchema } from '../src/config/schema.ts';

type Schema = Exclude<ReturnType<typeof publishedSchema>, boolean>;

interface Row {
  readonly path: readonly string[];
  readonly type: string;
  readonly about: string;
}

const intro = `# Options of gateway.yaml

Every option, with its default. This page is made from \`src/config/\` by \`node scripts/write-schema.mjs\`; do not edit it.
The same as a JSON Schema for editors: [gateway.schema.json](gateway.schema.json). Durations are written \`500ms\`,
\`2s\`, \`30m\`, \`1h\`; sizes \`64B\`, \`10MB\`, \`32MiB\`; spans \`36h\`, \`90d\`, \`26w\`, \`forever\`. Values may be references:
\`\${NAME}\` of the environment, \`\${file:/path}\`. \`NAME\` in a key stands for a name of your own.
`;

/** @returns Markdown */
export function optionsPage(schema: Schema): string {
  const rows = rowsOf(schema, []);
  const sections = Map.groupBy(rows, ({ path }) => (path.length > 1 ? path[0] : ''));
  const tables = [...sections].map(([name, options]) => {
    const title = name === '' ? 'Of the file itself' : `\`${name}\``;
    const lines = options.map(
      ({ path, type, about }) => `| \`${path.join('.')}\` | ${type} | ${about} |`,
    );
    return [`## ${title}`, '', '| option | value | meaning |', '|---|---|---|', ...lines].join(
      '\n',
    );
  });
  return `${[intro.trim(), ...tables].join('\n\n')}\n`;
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
  ['integer', 'whole number'],
  ['number', 'number'],
  ['boolean', '`true`, `false`'],
  ['object', 'mapping'],
]);

/** The kinds of values in a word each: `duration`, `size`, `one of a, b`, `list`, `mapping`. */
function typeOf(form: Schema): string {
  const words = alternatives(form).map((each) => {
    if (each.const !== undefined) return `\`${String(each.const)}\``;
    if (each.enum !== undefined) return each.enum.map((value) => `\`${String(value)}\``).join(', ');
    if (each.type === 'string') return textType(each.examples ?? []);
    if (each.type === 'array') return 'list';
    return typeNames.get(String(each.type));
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
