/**
 * Tools that the messages API defines and the client runs, as the functions that they are. The
 * schemas are the published ones.
 */
import { createHash } from 'node:crypto';
import type { Conversation, Tool } from '../../../core/conversation.ts';
import type { AnswerContext } from '../../../core/dialect.ts';
import { type FieldPath, GatewayError, unsupported } from '../../../core/errors.ts';
import { type Notes, pathOf } from '../../../core/notes.ts';
import type { UpstreamTraits } from '../../../core/traits.ts';
import { tryParseInner, tryParseInnerObject } from '../../../json/parse.ts';
import { stringEnd } from '../../../json/scan.ts';
import { type JsonObject, isObject, type Json } from '../../../json/value.ts';

interface PublishedTool {
  readonly description: string;
  readonly schema: JsonObject;
}

const text = { type: 'string' };
const lineNumber = { type: 'integer' };
const lineRange = { type: 'array', items: { type: 'integer' } };

const bash: PublishedTool = {
  description: 'Runs a command in a persistent bash session and returns its output.',
  schema: {
    type: 'object',
    properties: {
      command: { type: 'string', description: 'The command to run.' },
      restart: { type: 'boolean', description: 'Restarts the session instead.' },
    },
  },
};

/** What the versions of the text editor differ in. */
interface EditorVersion {
  /** The last edit can be taken back. */
  readonly undo: boolean;
  /** The member that holds the text of `insert`. */
  readonly inserted: 'new_str' | 'insert_text';
}

function textEditor({ undo, inserted }: EditorVersion): PublishedTool {
  const commands = ['view', 'create', 'str_replace', 'insert'];
  return {
    description: 'Views, creates and edits text files.',
    schema: {
      type: 'object',
      properties: {
        command: { type: 'string', enum: undo ? [...commands, 'undo_edit'] : commands },
        path: { type: 'string', description: 'Absolute path of the file or directory.' },
        file_text: { type: 'string', description: 'The content of the file, for create.' },
        old_str: { type: 'string', description: 'The text to replace, for str_replace.' },
        new_str: {
          type: 'string',
          description:
            inserted === 'new_str'
              ? 'The new text, for str_replace and insert.'
              : 'The new text, for str_replace.',
        },
        insert_line: {
          type: 'integer',
          description: 'The line to insert after, 0 for the beginning of the file, for insert.',
        },
        ...(inserted === 'insert_text'
          ? { insert_text: { type: 'string', description: 'The text to insert, for insert.' } }
          : {}),
        view_range: {
          ...lineRange,
          description: 'First and last line, from 1; -1 is the end of the file, for view.',
        },
      },
      required: ['command', 'path'],
    },
  };
}

/**
 * The version of Claude 3.5 and 3.7 (`str_replace_editor`). The later one has no `undo_edit`, and its
 * models write the text of `insert` as `insert_text` (anthropics/anthropic-sdk-python#1155).
 */
const earlyTextEditor = textEditor({ undo: true, inserted: 'new_str' });
const lateTextEditor = textEditor({ undo: false, inserted: 'insert_text' });
const earlyTextEditors: ReadonlySet<string> = new Set([
  'text_editor_20241022',
  'text_editor_20250124',
]);

const memory: PublishedTool = {
  description: 'Reads and writes files in the memory directory, which outlives the conversation.',
  schema: {
    type: 'object',
    properties: {
      command: {
        type: 'string',
        enum: ['view', 'create', 'str_replace', 'insert', 'delete', 'rename'],
      },
      path: text,
      file_text: text,
      old_str: text,
      new_str: text,
      insert_line: lineNumber,
      insert_text: text,
      old_path: text,
      new_path: text,
      view_range: lineRange,
    },
    required: ['command'],
  },
};

/**
 * The function form of a client-run tool by its versioned type; undefined for all others. All versions
 * of bash and memory have one schema; a version that is not known yet is taken for the newest.
 */
export function publishedTool(type: string): PublishedTool | undefined {
  if (type.startsWith('bash_')) return bash;
  if (type.startsWith('text_editor_')) {
    return earlyTextEditors.has(type) ? earlyTextEditor : lateTextEditor;
  }
  return type.startsWith('memory_') ? memory : undefined;
}

// Servers of the Bedrock kind refuse a history with calls when no tools are offered.
// Only for those servers definitions are invented.

/** The tools to offer: the client's, else a placeholder for each tool that was called. */
export function toolsOf(
  { tools, turns }: Conversation,
  { historyNeedsTools }: UpstreamTraits,
  notes: Notes,
): readonly Tool[] {
  if (historyNeedsTools !== true || tools.length > 0) return tools;
  const calls = turns.flatMap(({ parts }) => parts.filter((part) => part.type === 'tool-call'));
  const [first] = calls;
  if (first === undefined) return tools;
  const names = new Set(calls.map(({ name }) => name));
  notes.changed(pathOf(first, ['messages']), 'tools of earlier calls are declared again');
  return [...names].map((name) => ({ name, schema: { type: 'object', properties: {} } }));
}

// The refusal of a web search that a model cannot make here, in either dialect.

/** A 400 with this path that names the option with which an operator allows it. */
export function searchRefusal(path: FieldPath): GatewayError {
  return unsupported(
    path,
    'The gateway has no web search of this model that it may use. Where its provider has one, the operator of the gateway allows it with `server_tools: true`, of the provider or of the route.',
  );
}

// Arguments of tool calls that are not a JSON object (F59).

interface ToolInput {
  readonly input: JsonObject;
  /** The text was not an object and had to be wrapped. */
  readonly wrapped: boolean;
}

/**
 * Nothing becomes `{}`, other values `{value}`, and what is not JSON, or too deep or long to be parsed,
 * `{_raw}`, so that the next request is valid.
 */
export function toolInput(argumentsJson: string): ToolInput {
  if (argumentsJson.trim() === '') return { input: {}, wrapped: false };
  const parsed = tryParseInner(argumentsJson);
  if (isObject(parsed)) return { input: parsed, wrapped: false };
  return {
    input: parsed === undefined ? { _raw: argumentsJson } : { value: parsed },
    wrapped: true,
  };
}

/** Arguments that begin like an object are an object or broken; others can be wrapped. */
export function beginsObject(argumentsJson: string): boolean {
  return argumentsJson.trimStart().startsWith('{');
}

export function brokenArguments(name: string): GatewayError {
  const why = `The model called the tool "${name}" with arguments that are not a JSON object.`;
  return new GatewayError('upstream_invalid', why);
}

/** The same as text, unchanged if the arguments are an object. */
export function wrappedArguments(argumentsJson: string): string {
  const { input, wrapped } = toolInput(argumentsJson);
  return wrapped ? JSON.stringify(input) : argumentsJson;
}

/**
 * Arguments that the token limit cut off, without their incomplete last member, as the native service
 * shows them; undefined when they do not begin like an object, or are too deep or long to be parsed.
 */
export function truncatedInput(argumentsJson: string): JsonObject | undefined {
  const bytes = Buffer.from(argumentsJson);
  const open: string[] = [];
  let safeEnd: number | undefined;
  for (let i = 0; i < bytes.length; i++) {
    const char = String.fromCharCode(bytes[i] ?? 0);
    if (char === '"') i = stringEnd(bytes, i + 1);
    else if (char === '{' || char === '[') {
      open.push(char === '{' ? '}' : ']');
      safeEnd = i + 1;
    } else if (char === '}' || char === ']') {
      open.pop();
      safeEnd = i + 1;
    } else if (char === ',') safeEnd = i;
  }
  if (safeEnd === undefined) return undefined;
  return tryParseInnerObject(bytes.toString('utf8', 0, safeEnd) + open.toReversed().join(''));
}

// Tool-call ids and tool names that the other side accepts.
// Everything here is a pure function of the request, so that the same history always renders to the
// same bytes and a result finds its call again without any state in the gateway.

const allowedId = /^[a-zA-Z0-9_-]{1,64}$/;
const allowedName = /^[a-zA-Z0-9_-]+$/;
const base62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
/** 24 base62 characters keep 142 bits: two different ids do not meet. */
const hashLength = 24;
/** The shortest limit on tool names among the wire formats (chat, Bedrock). */
const shortNameLength = 64;

/**
 * The id itself when it is 1…64 ASCII letters, digits, `_` and `-` and is new in the conversation, else a hash of the
 * whole id and its occurrence. A shared prefix never makes two ids equal.
 * @param occurrence how many calls of this conversation had the same id before, from 0.
 */
export function allowedToolId(id: string, occurrence: number): string {
  if (occurrence === 0 && allowedId.test(id)) return id;
  return `call_${hashText(`${occurrence}:${id}`, hashLength)}`;
}

/**
 * The ids of one conversation, in order. Engines reuse `call_0` each turn, so calls are numbered per
 * id, and a result belongs to the latest call before it that has its id.
 */
export class ToolIdMap {
  readonly #calls = new Map<string, number>();
  readonly #spell: (id: string, occurrence: number) => string;

  /** @param spell the rule of the target, where it is stricter than `allowedToolId`. */
  constructor(spell: (id: string, occurrence: number) => string = allowedToolId) {
    this.#spell = spell;
  }

  /** The outgoing id of the next call with this id. */
  call(id: string): string {
    const occurrence = (this.#calls.get(id) ?? -1) + 1;
    this.#calls.set(id, occurrence);
    return this.#spell(id, occurrence);
  }

  /** The outgoing id of the call that a result with this id answers. */
  result(id: string): string {
    return this.#spell(id, this.#calls.get(id) ?? 0);
  }
}

/** The rule of a target that is stricter than the dialect's; undefined = any id is sent unchanged. */
export function toolIdMapFor(traits: ToolIdTraits): ToolIdMap | undefined {
  if (traits.nineCharacterToolIds === true) return new ToolIdMap(nineCharacterToolId);
  const { toolIdMax } = traits;
  if (toolIdMax === undefined) return undefined;
  return new ToolIdMap((id, occurrence) => {
    return id.length <= toolIdMax ? id : allowedToolId(`${id} `, occurrence);
  });
}

interface ToolIdTraits {
  readonly nineCharacterToolIds?: boolean;
  readonly toolIdMax?: number;
}

/** Servers of the Mistral kind take ids of exactly nine letters and digits. */
export function nineCharacterToolId(id: string, occurrence: number): string {
  if (occurrence === 0 && /^[a-zA-Z0-9]{9}$/.test(id)) return id;
  return hashText(`${occurrence}:${id}`, 9);
}

interface Named {
  readonly name: string;
}

/**
 * The name itself when the target takes it, else its start, `_` and a hash of the whole, so that two
 * long names with a common prefix stay different. `originalToolName` undoes it.
 */
export function allowedToolName(name: string, maxLength: number): string {
  if (name.length <= maxLength && allowedName.test(name)) return name;
  return shortened(name, 0);
}

/** The same, but never the name of another tool of the request: names may look like short forms. */
export function sentToolName(name: string, maxLength: number, tools: readonly Named[]): string {
  let sent = allowedToolName(name, maxLength);
  if (sent === name) return name;
  for (let turn = 1; isNamed(tools, sent); turn++) sent = shortened(name, turn);
  return sent;
}

/** The client's own name for the one that the model used, by the tools of the request. */
export function originalToolName(name: string, tools: readonly Named[]): string {
  if (isNamed(tools, name)) return name;
  return tools.find((tool) => sentToolName(tool.name, 0, tools) === name)?.name ?? name;
}

function shortened(name: string, turn: number): string {
  const start = name.slice(0, shortNameLength - 11).replace(/[^a-zA-Z0-9_-]/g, '_');
  return `${start}_${hashText(turn === 0 ? name : `${turn}:${name}`, 10)}`;
}

function isNamed(tools: readonly Named[], name: string): boolean {
  return tools.some((tool) => tool.name === name);
}

/** The first `length` base62 digits of the SHA-256 of the text. */
function hashText(text: string, length: number): string {
  let value = BigInt(`0x${createHash('sha256').update(text).digest('hex')}`);
  let digits = '';
  while (digits.length < length) {
    digits += base62[Number(value % 62n)];
    value /= 62n;
  }
  return digits;
}

// Ids of tool calls in an answer: legal for the client and new to the conversation.

interface CallIdRule {
  /** The prefix of ids for calls without one. */
  readonly prefix: 'call_' | 'toolu_';
  /** The client takes any text as an id. */
  readonly anyText: boolean;
}

/** Engines start from `call_0` in each answer; the client's next request must hold each id once. */
export class AnswerCallIds {
  readonly #context: AnswerContext;
  readonly #rule: CallIdRule;
  #used: Set<string> | undefined;

  constructor(context: AnswerContext, rule: CallIdRule) {
    this.#context = context;
    this.#rule = rule;
  }

  /** The id to show for the upstream's; `''` when it sent none. */
  show(id: string): string {
    const used = (this.#used ??= this.#earlierIds());
    let shown = this.#first(id);
    for (let occurrence = 1; used.has(shown); occurrence++) shown = allowedToolId(id, occurrence);
    used.add(shown);
    if (shown !== id) this.#context.sealing?.callShown?.(id, shown);
    return shown;
  }

  #first(id: string): string {
    if (id === '') return this.#context.newId(this.#rule.prefix);
    return this.#rule.anyText ? id : allowedToolId(id, 0);
  }

  #earlierIds(): Set<string> {
    const ids = new Set<string>();
    for (const turn of this.#context.conversation?.turns ?? []) {
      for (const part of turn.parts) if (part.type === 'tool-call') ids.add(part.id);
    }
    return ids;
  }
}

/** The data that distinguishes the calls of an answer from those of other answers. */
export interface AnswerIdentity {
  readonly id: Json | undefined;
  readonly created: Json | undefined;
}

/**
 * An id for a call without one: the same for the same answer, another one for every other
 * answer and position.
 */
export function derivedCallId(answer: AnswerIdentity, index: number): string {
  const seed = JSON.stringify([answer.id ?? null, answer.created ?? null, index]);
  return `call_${createHash('sha256').update(seed).digest('hex').slice(0, 24)}`;
}
