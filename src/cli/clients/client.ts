/**
 * What a client program is to `connect`, and the text that says how it is connected. Nothing here is Node's
 * own: the dashboard's page Setup shows the same texts.
 */
import type { Json } from '../../json/value.ts';
import { exports, type Connection, type Variable } from '../connection.ts';

/** A member of an object, or the element of a list in which these members have these values. */
export type Step = string | { readonly [member: string]: string };

/** A value to set at a path of a settings file. */
export interface SettingsEdit {
  readonly path: readonly Step[];
  /** Undefined: what is there is of another model and goes; the path ends in the name of a member. */
  readonly value: Json | undefined;
  /** The value is never printed when it is written. */
  readonly secret?: true;
  /** What is there stays. */
  readonly onlyIfMissing?: true;
}

export type Environment = { readonly [name: string]: string | undefined };

export interface Ask {
  readonly connection: Connection;
  /** False when no model was given and the connection uses the built-in one. */
  readonly modelGiven: boolean;
  readonly env: Environment;
}

export interface SettingsFile {
  readonly format: 'json' | 'yaml';
  /** Where the client reads it; relative = it is where the client is installed, and `--file` says where. */
  path(env: Environment): string;
  edits(ask: Ask): readonly SettingsEdit[];
  /** The variables are printed instead. */
  readonly writtenOnly?: true;
}

/** A row of the table of clients. */
export interface Client {
  readonly name: string;
  readonly title: string;
  /** The endpoints that it calls, its default first. */
  readonly calls:
    | 'chat'
    | 'messages'
    | 'responses'
    | 'chat, messages'
    | 'chat, responses'
    | 'responses, chat'
    | 'chat, messages, responses'
    | 'responses, chat, messages';
  variables?(ask: Ask): readonly Variable[];
  readonly files?: readonly SettingsFile[];
  /** Code, a command, or what to fill in where: ready to paste as far as it can be. */
  lines?(ask: Ask): string;
  /** What the user should know besides; printed after the text and after `--write`. */
  notes?(ask: Ask): readonly string[];
  /** Its own prompts are longer than the context of the demonstration model. */
  readonly longPrompts?: true;
  /** It asks for models of its own where no model is named. */
  readonly ownModels?: true;
  /** Why `--write` cannot work, if there is a reason other than a missing file. */
  readonly unwritable?: string;
}

/** What to print: ready to paste. */
export function clientText(client: Client, ask: Ask): string {
  const variables = client.variables?.(ask) ?? [];
  const files = (client.files ?? []).filter(({ writtenOnly }) => writtenOnly !== true);
  return [
    ...(variables.length === 0 ? [] : [exports(variables, ask.connection)]),
    ...files.map((file) => `In ${file.path(ask.env)}:\n${settingsText(file, ask)}`),
    ...(client.lines === undefined ? [] : [client.lines(ask)]),
  ].join('\n');
}

/** The settings file that the edits make of an empty one. */
function settingsText({ format, edits }: SettingsFile, ask: Ask): string {
  const root = edits(ask).reduce<Json | undefined>(
    (node, { path, value }) => (value === undefined ? node : placed(node, path, value)),
    undefined,
  );
  return format === 'json' ? `${JSON.stringify(root, null, 2)}\n` : yamlText(root ?? {}, '');
}

/** The node with a value at a path below it; what is missing on the way is made. */
export function placed(node: Json | undefined, path: readonly Step[], value: Json): Json {
  const [step, ...rest] = path;
  if (step === undefined) return value;
  if (typeof step === 'string') {
    const members = isMembers(node) ? node : {};
    return {
      ...members,
      [step]: placed(Object.hasOwn(members, step) ? members[step] : undefined, rest, value),
    };
  }
  const list = Array.isArray(node) ? node : [];
  const at = list.findIndex((item) => isElement(item, step));
  if (at === -1) return [...list, placed({ ...step }, rest, value)];
  return list.with(at, placed(list[at], rest, value));
}

/** Whether it is the element that a step of a path means. */
export function isElement(item: Json, step: { readonly [member: string]: string }): boolean {
  return isMembers(item) && Object.entries(step).every(([name, value]) => item[name] === value);
}

function isMembers(value: Json | undefined): value is { readonly [name: string]: Json } {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** YAML in block style; what is not a plain word is in double quotes, as in JSON. */
function yamlText(node: Json, indent: string): string {
  if (Array.isArray(node)) {
    return node
      .map((item) => {
        const text = isNested(item) ? yamlText(item, `${indent}  `).trimStart() : yamlScalar(item);
        return `${indent}- ${text.trimEnd()}\n`;
      })
      .join('');
  }
  if (!isMembers(node)) return `${yamlScalar(node)}\n`;
  return Object.entries(node)
    .map(([name, value]) => {
      const head = `${indent}${yamlScalar(name)}:`;
      if (!isNested(value)) return `${head} ${yamlScalar(value)}\n`;
      return `${head}\n${yamlText(value, `${indent}  `)}`;
    })
    .join('');
}

function isNested(value: Json): boolean {
  return typeof value === 'object' && value !== null;
}

function yamlScalar(value: Json): string {
  const isPlain = typeof value === 'string' && /^[A-Za-z_][\w /.-]*\w$/.test(value);
  return isPlain && !/^(?:true|false|null|yes|no|on|off)$/i.test(value)
    ? value
    : JSON.stringify(value);
}
