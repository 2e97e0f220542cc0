/**
 * Tools that the messages API defines and the client runs, as the functions that they are. The
 * schemas are the published ones (wire/translation.md §2.2).
 */
import type { JsonObject } from '../../core/conversation.ts';

export interface PublishedTool {
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

const textEditor: PublishedTool = {
  description: 'Views, creates and edits text files.',
  schema: {
    type: 'object',
    properties: {
      command: { type: 'string', enum: ['view', 'create', 'str_replace', 'insert', 'undo_edit'] },
      path: { type: 'string', description: 'Absolute path of the file or directory.' },
      file_text: text,
      old_str: text,
      new_str: text,
      insert_line: lineNumber,
      insert_text: text,
      view_range: lineRange,
    },
    required: ['command', 'path'],
  },
};

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

/** The function form of a client-run tool by its versioned type; undefined for all others. */
export function publishedTool(type: string): PublishedTool | undefined {
  if (type.startsWith('bash_')) return bash;
  if (type.startsWith('text_editor_')) return textEditor;
  return type.startsWith('memory_') ? memory : undefined;
}
