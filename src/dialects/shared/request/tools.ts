/**
 * Tools of a request: those that the messages API defines and the client runs, as the functions that they are (the
 * schemas are the published ones), and the arguments of earlier calls.
 */
import type { Conversation, Tool } from '../../../core/conversation.ts';
import { type FieldPath, GatewayError, unsupported } from '../../../core/errors.ts';
import { type Notes, pathOf } from '../../../core/notes.ts';
import type { UpstreamTraits } from '../../../core/traits.ts';
import { tryParseInner, tryParseInnerObject } from '../../../json/parse.ts';
import { stringEnd } from '../../../json/scan.ts';
import { type JsonObject, isObject } from '../../../json/value.ts';

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
    'Web search is not allowed for this model. If its provider has one, the operator can allow it with `server_tools: true` at the provider or the route.',
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

/** The text of `{"input": text}`; any other arguments as they are. */
export function freeText(argumentsJson: string): string {
  const input = tryParseInnerObject(argumentsJson)?.['input'];
  return typeof input === 'string' ? input : argumentsJson;
}

const beforeText = /^\s*\{\s*"input"\s*:\s*"/;
/** Of an escaped character. */
const longestEscape = 6;

/** The text of `{"input": text}` as far as it came, of a call that was cut; any other arguments as they are. */
export function begunText(argumentsJson: string): string {
  const head = beforeText.exec(argumentsJson)?.[0];
  if (head === undefined) return argumentsJson;
  // The last character may be half of an escape.
  for (let less = 0; less < longestEscape; less++) {
    const text = tryParseInner(
      `${argumentsJson.slice(head.length - 1, argumentsJson.length - less)}"`,
    );
    if (typeof text === 'string') return text;
  }
  return freeText(`${argumentsJson}}`);
}
