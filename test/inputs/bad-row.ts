/** One bad request, and what makes one of a legal body. */
import type { JsonObject } from '../../src/json/value.ts';
import type { ClientDialect } from '../support/dialects.ts';
import { requestBody, responsesNames } from '../support/requests.ts';

export type Change = JsonObject | ((body: JsonObject) => JsonObject);

/** `all`: for each dialect that has no entry, in the names of chat. */
export type PerDialect<T> = { readonly [D in ClientDialect | 'all']?: T };

export interface BadRow {
  readonly id: string;
  readonly name: string;
  /** Only this mode. */
  readonly mode?: 'relay' | 'translate';
  /** About a field that a count of tokens does not have. */
  readonly notCounted?: true;
  /** The body's bytes, from a legal body's text. */
  readonly raw?: (legal: string) => string | Buffer;
  /** Members that replace those of a legal body; the row is for the dialects that have an entry. */
  readonly change?: PerDialect<Change>;
  readonly headers?: { readonly [name: string]: string };
  readonly status: number;
  /** The place that the error names, with dots; deeper is fine. */
  readonly path?: PerDialect<string>;
  readonly message?: RegExp;
}

/** Whether a row says something about this dialect. */
export function isFor({ raw, change = {} }: BadRow, dialect: ClientDialect): boolean {
  return raw !== undefined || change.all !== undefined || change[dialect] !== undefined;
}

/** The body that a row sends. */
export function bodyOf(row: BadRow, dialect: ClientDialect, model: string): string | Buffer {
  const base = requestBody(dialect === 'responses' ? 'chat' : dialect, { model, stream: false });
  if (row.raw !== undefined) {
    const text = row.raw(JSON.stringify(base));
    return dialect === 'responses' && typeof text === 'string' ? inResponses(text) : text;
  }
  const own = row.change?.[dialect];
  const change = own ?? row.change?.all ?? {};
  const changed = typeof change === 'function' ? change(base) : { ...base, ...change };
  return JSON.stringify(dialect === 'responses' ? renamed(changed) : changed);
}

/** The place that a row's error names. */
export function pathOf({ path = {} }: BadRow, dialect: ClientDialect): string | undefined {
  const own = path[dialect];
  if (own !== undefined || path.all === undefined || dialect !== 'responses') {
    return own ?? path.all;
  }
  const [first = '', ...rest] = path.all.split('.');
  return [responsesNames[first] ?? first, ...rest].join('.');
}

function renamed(body: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(body).map(([name, value]) => [responsesNames[name] ?? name, value]),
  );
}

function inResponses(text: string): string {
  return Object.entries(responsesNames).reduce(
    (so, [name, other]) => so.replaceAll(`"${name}":`, `"${other}":`),
    text,
  );
}

/** A field that has a value of its own in each dialect's spelling. */
export function field(
  names: { readonly [D in ClientDialect]?: string },
  value: JsonObject[string],
): Pick<BadRow, 'change' | 'path' | 'status'> {
  const changes = Object.entries(names).map(([dialect, name]) => [dialect, { [name]: value }]);
  return { status: 400, change: Object.fromEntries(changes) as PerDialect<Change>, path: names };
}

/** The same name in each dialect, as far as they have one for it. */
export function same(name: string): { readonly [D in ClientDialect]: string } {
  return { chat: name, messages: name, responses: responsesNames[name] ?? name };
}

export function messagesWith(...messages: readonly JsonObject[]): JsonObject {
  return { messages };
}

export function without(key: string): Change {
  return (body) => Object.fromEntries(Object.entries(body).filter(([name]) => name !== key));
}

export const user = { role: 'user', content: 'Hello' } as const;

export function tool(
  dialect: ClientDialect,
  name: string,
  schema: JsonObject = { type: 'object', properties: {} },
): JsonObject {
  return {
    chat: { type: 'function', function: { name, parameters: schema } },
    messages: { name, input_schema: schema },
    responses: { type: 'function', name, parameters: schema, strict: false },
  }[dialect];
}

export function tools(make: (dialect: ClientDialect) => readonly JsonObject[]): PerDialect<Change> {
  return {
    chat: { tools: make('chat') },
    messages: { tools: make('messages') },
    responses: { tools: make('responses') },
  };
}

export function nested(depth: number): string {
  return `${'['.repeat(depth)}${']'.repeat(depth)}`;
}

/** Adds a member to the text of an object. */
export function adding(member: string): (legal: string) => string {
  return (legal) => `${legal.slice(0, -1)},${member}}`;
}
