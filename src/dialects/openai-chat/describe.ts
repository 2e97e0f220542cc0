/** Describes chat bodies: what `BodyDescription` reads of both formats, and what only chat completions can be asked for. */
import { isObject, type Json, type JsonObject } from '../../json/value.ts';
import { BodyDescription } from '../shared/describe.ts';
import { isArray } from './fields.ts';
import { refuseUntranslatable } from './request-read.ts';

export class ChatDescription extends BodyDescription {
  override reasonsWithTools(): boolean {
    const { tools, functions, reasoning_effort: effort } = this.options;
    const offered = [...listOf(tools), ...listOf(functions)];
    if (offered.length === 0 || effort === 'none' || offered.some(isUntranslatableTool)) {
      return false;
    }
    return isTranslatable(this.options) && !listOf(this.body['messages']).some(isForChatOnly);
  }
}

function isTranslatable(body: JsonObject): boolean {
  try {
    refuseUntranslatable(body);
    return true;
  } catch {
    return false;
  }
}

/** A custom tool with a grammar, or a type that is not of chat completions. */
function isUntranslatableTool(tool: Json): boolean {
  if (!isObject(tool)) return true;
  const { type = 'function', custom } = tool;
  if (type !== 'custom') return type !== 'function';
  const format = isObject(custom) ? custom['format'] : undefined;
  return isObject(format) && format['type'] !== 'text';
}

/** Sounds, and files that lie at the provider. */
function isForChatOnly(message: Json): boolean {
  if (!isObject(message)) return false;
  return isObject(message['audio']) || listOf(message['content']).some(isPartForChatOnly);
}

function isPartForChatOnly(part: Json): boolean {
  if (!isObject(part)) return false;
  const { type, file } = part;
  if (type !== 'file') return type === 'input_audio';
  return isObject(file) && typeof file['file_data'] !== 'string';
}

function listOf(value: Json | undefined): readonly Json[] {
  return isArray(value) ? value : [];
}
