/** One bad request, and what makes one of a legal body. */
import type { JsonObject } from '../../src/json/value.ts';
import type { Dialect } from '../support/reading.ts';

export type Change = JsonObject | ((body: JsonObject) => JsonObject);

export type PerDialect<T> = { readonly [D in Dialect | 'both']?: T };

export interface BadRow {
  readonly id: string;
  readonly name: string;
  /** Only this dialect, or only this mode. */
  readonly only?: Dialect;
  readonly mode?: 'relay' | 'translate';
  /** About a field that a count of tokens does not have. */
  readonly notCounted?: true;
  /** The body's bytes, from a legal body's text. */
  readonly raw?: (legal: string) => string | Buffer;
  /** Members that replace those of a legal body. */
  readonly change?: PerDialect<Change>;
  readonly headers?: { readonly [name: string]: string };
  readonly status: number;
  /** The place that the error names, with dots; deeper is fine. */
  readonly path?: PerDialect<string>;
  readonly message?: RegExp;
}

/** A field that has a value of its own in each dialect's spelling. */
export function field(
  names: { readonly chat?: string; readonly messages?: string },
  value: JsonObject[string],
): Pick<BadRow, 'change' | 'path' | 'status'> & { readonly only?: Dialect } {
  const { chat, messages } = names;
  return {
    status: 400,
    change: {
      ...(chat === undefined ? {} : { chat: { [chat]: value } }),
      ...(messages === undefined ? {} : { messages: { [messages]: value } }),
    },
    path: {
      ...(chat === undefined ? {} : { chat }),
      ...(messages === undefined ? {} : { messages }),
    },
    ...(chat === undefined ? { only: 'messages' } : {}),
    ...(messages === undefined ? { only: 'chat' } : {}),
  };
}

export function same(name: string): { readonly chat: string; readonly messages: string } {
  return { chat: name, messages: name };
}

export function messagesWith(...messages: readonly JsonObject[]): JsonObject {
  return { messages };
}

export function without(key: string): Change {
  return (body) => Object.fromEntries(Object.entries(body).filter(([name]) => name !== key));
}

export const user = { role: 'user', content: 'Hello' } as const;

export function tool(
  dialect: Dialect,
  name: string,
  schema: JsonObject = { type: 'object', properties: {} },
): JsonObject {
  return dialect === 'chat'
    ? { type: 'function', function: { name, parameters: schema } }
    : { name, input_schema: schema };
}

export function tools(make: (dialect: Dialect) => readonly JsonObject[]): PerDialect<Change> {
  return { chat: { tools: make('chat') }, messages: { tools: make('messages') } };
}

export function nested(depth: number): string {
  return `${'['.repeat(depth)}${']'.repeat(depth)}`;
}

/** Adds a member to the text of an object. */
export function adding(member: string): (legal: string) => string {
  return (legal) => `${legal.slice(0, -1)},${member}}`;
}
