/** The tables as flat rows: what tests ask about and docs/user/translation.md lists. */
import { firstUpstream } from '../corpus/sample.ts';
import { upstreamDialects, type UpstreamDialect } from '../support/dialects.ts';
import type { AnyDialect } from '../support/reading.ts';
import {
  chatStreamToResponses,
  chatToResponses,
  messagesStreamToResponses,
  messagesToResponses,
  responsesStreamToMessages,
  responsesToMessages,
} from './answer-columns.ts';
import { chatAnswer, chatAnswerExtensions, chatChunk } from './chat-answer.ts';
import { chatOnResponses } from './chat-on-responses.ts';
import { chatOnConverse, chatOnGemini } from './clouds/chat.ts';
import { messagesOnConverse, messagesOnGemini } from './clouds/messages.ts';
import { responsesOnConverse, responsesOnGemini } from './clouds/responses.ts';
import { chatMessageExtensions, chatRequest, chatRequestExtensions } from './chat-request.ts';
import type { AnyEntry, AnyFields, Column, Verdict } from './decision.ts';
import { messagesAnswer, messagesEvents } from './messages-answer.ts';
import { messagesOnResponses } from './messages-on-responses.ts';
import { messagesRequest, messagesRequestExtensions } from './messages-request.ts';
import { responsesAnswer, responsesEvents } from './responses-answer.ts';
import { responsesOnMessages } from './responses-on-messages.ts';
import { responsesRequest, responsesRequestExtensions } from './responses-request.ts';

/** A field, or one case of it. */
export interface Row {
  /** `messages[user].content[image_url].image_url.url`: brackets name the kind of object. */
  readonly path: string;
  /** When the verdicts hold; `''` = always. */
  readonly when: string;
  /** Has entries inside, which say more. */
  readonly outer: boolean;
}

export interface DecidedRow extends Row {
  readonly verdict: Verdict;
}

/** What clients of a dialect get of the answers of an upstream dialect. */
export interface AnswerTable {
  readonly from: AnyDialect;
  readonly client: AnyDialect;
  readonly what: 'document' | 'stream';
  readonly rows: readonly DecidedRow[];
  /** Keys of a column that decide no row. */
  readonly idle: readonly string[];
}

/** The requests of a client dialect, with a verdict a row for each foreign dialect of upstreams. */
export interface RequestTable {
  readonly client: AnyDialect;
  readonly rows: readonly Row[];
  readonly upstreams: readonly UpstreamDialect[];
  /** The rows as they are decided towards an upstream. @throws Error for a row without a verdict. */
  towards(upstream: UpstreamDialect): readonly DecidedRow[];
  /** Keys of columns that decide no row. */
  readonly idle: readonly string[];
}

function entryRows(path: string, entry: AnyEntry): readonly DecidedRow[] {
  const cases = 'cases' in entry ? Object.entries(entry.cases) : [['', verdictOf(entry)] as const];
  const outer = Object.keys({ ...entry.in, ...entry.one }).length > 0;
  return [
    ...cases.map(([when, verdict]) => ({ path, when, verdict, outer: outer && when === '' })),
    ...fieldRows(`${path}.`, entry.in ?? {}),
    ...Object.entries(entry.one ?? {}).flatMap(([tag, one]) => entryRows(`${path}[${tag}]`, one)),
  ];
}

function verdictOf(entry: Verdict): Verdict {
  const { decision, how } = entry;
  const said = how === undefined ? {} : { how };
  if (decision !== 'EXACT' && decision !== 'APPROX') return { decision, ...said };
  const { to, silent } = entry;
  return { decision, to, ...said, ...(silent === true ? { silent } : {}) };
}

function fieldRows(prefix: string, fields: AnyFields): readonly DecidedRow[] {
  return Object.entries(fields)
    .filter(
      ([key, entry]) => key !== 'type' || !('decision' in entry) || entry.decision !== 'EXACT',
    )
    .flatMap(([key, entry]) => entryRows(prefix + key, entry));
}

/** Blocks are decided alike in messages of every role, so one role is told of. */
function ofAnyRole(rows: readonly DecidedRow[]): readonly DecidedRow[] {
  return rows
    .filter(({ path }) => !/^messages\[(assistant|system)\]\.content/.test(path))
    .map((row) => ({
      ...row,
      path: row.path.replace(/^messages\[user\]\.content/, 'messages[].content'),
    }));
}

/** Every row has one identity: its path and its case. */
export function rowId({ path, when }: Pick<Row, 'path' | 'when'>): string {
  return when === '' ? path : `${path} (${when})`;
}

/** The key of a column that decides a row: the longest that fits; undefined where none does. */
function keyFor(row: Row, column: Column): string | undefined {
  const id = rowId(row);
  if (id in column) return id;
  if (row.path in column) return row.path;
  return Object.keys(column)
    .filter((key) => key.endsWith('*') && row.path.startsWith(key.slice(0, -1)))
    .toSorted((a, b) => b.length - a.length)[0];
}

/**
 * @param rows decided towards the first upstream, by tables that the types make complete.
 * @param columns the verdicts towards each further upstream.
 */
function requestTable(
  client: AnyDialect,
  rows: readonly DecidedRow[],
  columns: { readonly [U in UpstreamDialect]?: Column },
): RequestTable {
  const first = firstUpstream[client];
  const others = upstreamDialects.filter((dialect) => columns[dialect] !== undefined);
  const decided = new Map(
    others.map((upstream) => {
      const column = columns[upstream] ?? {};
      return [upstream, rows.map((row) => decidedBy(row, column, `${client} on ${upstream}`))];
    }),
  );
  return {
    client,
    rows,
    upstreams: [first, ...others],
    towards: (upstream) => (upstream === first ? rows : (decided.get(upstream) ?? [])),
    idle: others.flatMap((upstream) => {
      const column = columns[upstream] ?? {};
      const used = new Set(rows.map((row) => keyFor(row, column)));
      return Object.keys(column).filter((key) => !used.has(key));
    }),
  };
}

function decidedBy(row: DecidedRow, column: Column, table: string): DecidedRow {
  // Of an object whose members are decided one by one, nothing is said.
  if (row.outer) return row;
  const key = keyFor(row, column);
  const verdict = key === undefined ? undefined : column[key];
  if (verdict === undefined) throw new Error(`${table}: no verdict for ${rowId(row)}`);
  return { ...row, verdict };
}

export const requestTables: { readonly [D in AnyDialect]: RequestTable } = {
  chat: requestTable(
    'chat',
    fieldRows('', { ...chatRequest, ...chatRequestExtensions, ...chatMessageExtensions }),
    { responses: chatOnResponses, gemini: chatOnGemini, converse: chatOnConverse },
  ),
  messages: requestTable(
    'messages',
    ofAnyRole(fieldRows('', { ...messagesRequest, ...messagesRequestExtensions })),
    { responses: messagesOnResponses, gemini: messagesOnGemini, converse: messagesOnConverse },
  ),
  responses: requestTable(
    'responses',
    fieldRows('', { ...responsesRequest, ...responsesRequestExtensions }),
    { messages: responsesOnMessages, gemini: responsesOnGemini, converse: responsesOnConverse },
  ),
};

const messagesRows = Object.entries(messagesEvents).flatMap(([type, entry]) =>
  entryRows(type, entry),
);
// Paths have no dots in a name.
const responsesRows = Object.entries(responsesEvents).flatMap(([type, entry]) =>
  entryRows(eventPath(type), entry),
);

/** The name of a stream's event as it stands in paths. */
export function eventPath(type: string): string {
  return type.replaceAll('.', '_');
}

function answerTable(
  { from, client, what }: Omit<AnswerTable, 'rows' | 'idle'>,
  rows: readonly DecidedRow[],
  column?: Column,
): AnswerTable {
  if (column === undefined) return { from, client, what, rows, idle: [] };
  const name = `${from} answers to ${client}`;
  const used = new Set(rows.filter(({ outer }) => !outer).map((row) => keyFor(row, column)));
  return {
    from,
    client,
    what,
    rows: rows.map((row) => decidedBy(row, column, name)),
    idle: Object.keys(column).filter((key) => !used.has(key)),
  };
}

const chatRows = fieldRows('', { ...chatAnswer, ...chatAnswerExtensions });
const chunkRows = fieldRows('', chatChunk);
const messageRows = fieldRows('', messagesAnswer);
const responseRows = fieldRows('', responsesAnswer);

/** The tables that the types make complete stand first of each upstream dialect. */
export const answerTables: readonly AnswerTable[] = [
  answerTable({ from: 'messages', client: 'chat', what: 'document' }, messageRows),
  answerTable({ from: 'messages', client: 'chat', what: 'stream' }, messagesRows),
  answerTable({ from: 'chat', client: 'messages', what: 'document' }, chatRows),
  answerTable({ from: 'chat', client: 'messages', what: 'stream' }, chunkRows),
  answerTable({ from: 'responses', client: 'chat', what: 'document' }, responseRows),
  answerTable({ from: 'responses', client: 'chat', what: 'stream' }, responsesRows),
  answerTable(
    { from: 'messages', client: 'responses', what: 'document' },
    messageRows,
    messagesToResponses,
  ),
  answerTable(
    { from: 'messages', client: 'responses', what: 'stream' },
    messagesRows,
    messagesStreamToResponses,
  ),
  answerTable({ from: 'chat', client: 'responses', what: 'document' }, chatRows, chatToResponses),
  answerTable(
    { from: 'chat', client: 'responses', what: 'stream' },
    chunkRows,
    chatStreamToResponses,
  ),
  answerTable(
    { from: 'responses', client: 'messages', what: 'document' },
    responseRows,
    responsesToMessages,
  ),
  answerTable(
    { from: 'responses', client: 'messages', what: 'stream' },
    responsesRows,
    responsesStreamToMessages,
  ),
];
