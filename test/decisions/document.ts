/** docs/translation.md, written from the tables. */
import { answerTables, requestTables, type DecidedRow, type DecidedTable } from './rows.ts';

const intro = `# What becomes of each field

<!-- Written by scripts/write-translation.mjs from test/decisions; a test fails while this file is stale. -->

A model behind the gateway speaks one of two formats, chat completions or messages. A client that speaks the same
format is **relayed**: its body arrives as it was sent, apart from the model's name (and \`stream_options\`, since usage
is always asked for). Otherwise the gateway **translates**, and these tables say what becomes of each field that the
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
- A value that equals the API's default is never an error and never noted, nor is \`null\`.
- What a model can do is known by vendor and model (\`src/providers\`); where a row depends on it, its case says so.

Paths: \`messages[user].content[text].text\` is the field \`text\` of parts of the type \`text\` in messages of the role
\`user\`; \`messages[]\` means any role. A case in the second column narrows a row.
`;

function cell(text: string): string {
  return text.replaceAll('|', '\\|');
}

function line({ path, when, verdict }: DecidedRow): string {
  const kept = verdict.decision === 'EXACT' || verdict.decision === 'APPROX';
  const to = kept && verdict.to !== '' ? verdict.to : '';
  const word = kept && verdict.silent === true ? `${verdict.decision}°` : verdict.decision;
  const cells = [`\`${path}\``, when, word, to, verdict.how ?? ''];
  return `| ${cells.map(cell).join(' | ')} |`;
}

function section(table: DecidedTable): string {
  return [
    `## ${table.title}`,
    '',
    '| field | case | decision | becomes | remarks |',
    '|---|---|---|---|---|',
    ...table.rows.map(line),
    '',
  ].join('\n');
}

export function translationText(): string {
  const tables: readonly DecidedTable[] = [
    ...Object.values(requestTables),
    ...Object.values(answerTables),
  ];
  return [intro, ...tables.map(section)].join('\n');
}
