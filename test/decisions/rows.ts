/** The tables as flat rows: what tests ask about and docs/user/translation.md lists. */
import { chatAnswer, chatAnswerExtensions, chatChunk } from './chat-answer.ts';
import { chatMessageExtensions, chatRequest, chatRequestExtensions } from './chat-request.ts';
import type { AnyEntry, AnyFields, Verdict } from './decision.ts';
import { messagesAnswer, messagesEvents } from './messages-answer.ts';
import { messagesRequest, messagesRequestExtensions } from './messages-request.ts';

export interface DecidedRow {
  /** `messages[user].content[image_url].image_url.url`: brackets name the kind of object. */
  readonly path: string;
  /** When the verdict holds; `''` = always. */
  readonly when: string;
  readonly verdict: Verdict;
  /** Has entries inside, which say more. */
  readonly outer: boolean;
}

export interface DecidedTable {
  readonly title: string;
  readonly from: 'chat' | 'messages';
  readonly what: 'request' | 'answer';
  readonly rows: readonly DecidedRow[];
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
export function rowId({ path, when }: Pick<DecidedRow, 'path' | 'when'>): string {
  return when === '' ? path : `${path} (${when})`;
}

export const requestTables = {
  chat: {
    title: 'Chat request to a messages model',
    from: 'chat',
    what: 'request',
    rows: fieldRows('', { ...chatRequest, ...chatRequestExtensions, ...chatMessageExtensions }),
  },
  messages: {
    title: 'Messages request to a chat model',
    from: 'messages',
    what: 'request',
    rows: ofAnyRole(fieldRows('', { ...messagesRequest, ...messagesRequestExtensions })),
  },
} as const satisfies { readonly [dialect: string]: DecidedTable };

export const answerTables = {
  messages: {
    title: 'Answer of a messages model to a chat client',
    from: 'messages',
    what: 'answer',
    rows: fieldRows('', messagesAnswer),
  },
  messagesStream: {
    title: 'Stream of a messages model to a chat client',
    from: 'messages',
    what: 'answer',
    rows: Object.entries(messagesEvents).flatMap(([type, entry]) => entryRows(type, entry)),
  },
  chat: {
    title: 'Answer of a chat model to a messages client',
    from: 'chat',
    what: 'answer',
    rows: fieldRows('', { ...chatAnswer, ...chatAnswerExtensions }),
  },
  chatStream: {
    title: 'Stream of a chat model to a messages client',
    from: 'chat',
    what: 'answer',
    rows: fieldRows('', chatChunk),
  },
} as const satisfies { readonly [name: string]: DecidedTable };
