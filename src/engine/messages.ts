/** Reads `messages` into what chat templates expect: one string of content each, arguments as values. */
import { invalid, unsupported } from './engine-error.ts';
import { isArray, isObject, member, tryParse, type Json, type JsonObject } from './json.ts';

export interface ChatMessage {
  readonly role: 'system' | 'user' | 'assistant' | 'tool';
  readonly content: string;
  readonly name?: string;
  /** What an earlier answer was reasoned from; templates print it where their model wants it. */
  readonly reasoning_content?: string;
  readonly tool_calls?: readonly TemplateToolCall[];
  readonly tool_call_id?: string;
}

/** A call of an earlier turn. Templates print `arguments` with `tojson`, so it is not a string here. */
export interface TemplateToolCall {
  readonly id: string;
  readonly type: 'function';
  readonly function: { readonly name: string; readonly arguments: Json };
}

/** @throws EngineError 400 that names the message or the part. */
export function readMessages(value: Json | undefined): readonly ChatMessage[] {
  if (!isArray(value)) {
    throw invalid('"messages" must be an array.', 'messages', 'missing_required_parameter');
  }
  if (value.length === 0) throw invalid('"messages" must not be empty.', 'messages');
  return value.map((item, index) => readMessage(item, `messages[${index}]`));
}

function readMessage(value: Json, path: string): ChatMessage {
  if (!isObject(value)) throw invalid('A message must be an object.', path, 'invalid_type');
  const name = member(value, 'name');
  const shared = typeof name === 'string' ? { name } : {};
  const role = value['role'];
  switch (role) {
    case 'system':
    case 'developer':
      return { role: 'system', content: readContent(value, path), ...shared };
    case 'user':
      return { role: 'user', content: readContent(value, path), ...shared };
    case 'assistant':
      return { ...readAssistant(value, path), ...readReasoning(value), ...shared };
    case 'tool':
      return {
        role: 'tool',
        content: readContent(value, path),
        tool_call_id: requiredText(value, 'tool_call_id', path),
        ...shared,
      };
    default:
      throw invalid(
        'A message has the role system, developer, user, assistant or tool.',
        `${path}.role`,
      );
  }
}

function readAssistant(message: JsonObject, path: string): ChatMessage {
  const calls = member(message, 'tool_calls');
  if (member(message, 'function_call') !== undefined) {
    throw unsupported('"function_call" is not supported; use "tool_calls".', path);
  }
  const hasContent = member(message, 'content') !== undefined;
  const refusal = member(message, 'refusal');
  if (!hasContent && typeof refusal === 'string') return { role: 'assistant', content: refusal };
  if (calls === undefined || (isArray(calls) && calls.length === 0)) {
    return { role: 'assistant', content: readContent(message, path) };
  }
  if (!isArray(calls)) throw invalid('"tool_calls" must be an array.', `${path}.tool_calls`);
  return {
    role: 'assistant',
    content: hasContent ? readContent(message, path) : '',
    tool_calls: calls.map((call, index) => readCall(call, `${path}.tool_calls[${index}]`)),
  };
}

function readReasoning(message: JsonObject): { readonly reasoning_content?: string } {
  const text = member(message, 'reasoning_content') ?? member(message, 'reasoning');
  return typeof text === 'string' && text !== '' ? { reasoning_content: text } : {};
}

function readCall(value: Json, path: string): TemplateToolCall {
  const called = isObject(value) ? value['function'] : undefined;
  if (!isObject(value) || !isObject(called)) {
    throw invalid('A tool call must have the form {"id","type":"function","function"}.', path);
  }
  const text = called['arguments'] ?? '';
  if (typeof text !== 'string') {
    throw invalid('Arguments must be a string of JSON.', `${path}.function.arguments`);
  }
  return {
    id: requiredText(value, 'id', path),
    type: 'function',
    function: {
      name: requiredText(called, 'name', `${path}.function`),
      // An old turn with broken arguments must not end the conversation: the template gets the text.
      arguments: text === '' ? {} : (tryParse(text) ?? text),
    },
  };
}

function readContent(message: JsonObject, path: string): string {
  const content = member(message, 'content');
  if (typeof content === 'string') return content;
  if (!isArray(content)) {
    throw invalid('"content" must be a string or an array of parts.', `${path}.content`);
  }
  if (content.length === 0) throw invalid('"content" must not be empty.', `${path}.content`);
  // Parts are separate blocks: joined without a break, two instructions would run into each other.
  return content.map((part, index) => readPart(part, `${path}.content[${index}]`)).join('\n');
}

function readPart(part: Json, path: string): string {
  if (!isObject(part)) throw invalid('A content part must be an object.', path, 'invalid_type');
  const type = part['type'];
  if (type === 'text') return requiredText(part, 'text', path);
  if (type === 'refusal') return requiredText(part, 'refusal', path);
  if (typeof type !== 'string') throw invalid('A content part needs a "type".', path);
  throw unsupported(`The local model reads text only; a part of type "${type}" is refused.`, path);
}

function requiredText(object: JsonObject, key: string, path: string): string {
  const value = member(object, key);
  if (typeof value === 'string') return value;
  throw invalid(`"${key}" must be a string.`, `${path}.${key}`, 'invalid_type');
}
