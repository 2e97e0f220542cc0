/** Checks the messages of a request as strictly as every provider does, and no further (B51–B55). */
import type { Json, JsonObject } from '../../core/conversation.ts';
import { type FieldPath, GatewayError, invalidRequest } from '../../core/errors.ts';
import { isObject } from '../../core/json.ts';
import { Pace, perStep, type Steps } from '../../core/steps.ts';
import { badValue, isArray, lengthOf, missing, wrongType } from './fields.ts';
import { checkMediaUrl } from './media-url.ts';

const maxMessages = 50_000;

/** @throws GatewayError `invalid_request` or `too_large` with the path of the first fault. */
export function checkMessages(messages: Json | undefined): void {
  const all = listed(messages);
  const calls = new OpenCalls();
  for (let i = 0; i < all.length; i++) check(all[i], i, calls);
  calls.end();
}

/** The same in steps. */
export function* messagesChecking(messages: Json | undefined): Steps<void> {
  const all = listed(messages);
  const calls = new OpenCalls();
  const pace = new Pace();
  for (let i = 0; i < all.length; i++) {
    const message = all[i];
    const pieces = isObject(message)
      ? lengthOf(message['content']) + lengthOf(message['tool_calls'])
      : 0;
    if (isObject(message) && pieces > perStep) yield* checking(message, i, { calls, pace });
    else check(message, i, calls);
    if (pace.dueWith(1 + (pieces > perStep ? 0 : pieces))) yield;
  }
  calls.end();
}

function listed(messages: Json | undefined): readonly Json[] {
  if (messages === undefined || messages === null) throw missing(['messages']);
  if (!isArray(messages)) throw wrongType(['messages'], 'an array', messages);
  if (messages.length === 0) throw badValue(['messages'], 'must hold at least one message');
  if (messages.length > maxMessages) {
    throw new GatewayError('too_large', `The request has more than ${maxMessages} messages.`, {
      path: ['messages'],
    });
  }
  return messages;
}

function check(message: Json | undefined, i: number, calls: OpenCalls): void {
  if (!isObject(message)) throw wrongType(['messages', i], 'an object', message);
  checkMessage(message, i);
  calls.see(message, i);
}

/** Part by part and call by call, where one message holds many: the first fault is the same. */
function* checking(
  message: JsonObject,
  i: number,
  { calls, pace }: { readonly calls: OpenCalls; readonly pace: Pace },
): Steps<void> {
  const { role, content, tool_calls: called } = message;
  const parts = isArray(content) ? content : [];
  // No part at all would be a fault of its own.
  const first = parts.length === 0 ? {} : { content: parts.slice(0, 1) };
  checkMessage({ ...message, ...first, tool_calls: null }, i);
  for (const [j, part] of parts.entries()) {
    checkPart(part, ['messages', i, 'content', j]);
    if (pace.due) yield;
  }
  if (role === 'assistant') yield* callsChecking(called, i, pace);
  calls.see(message, i);
}

function* callsChecking(calls: Json | undefined, i: number, pace: Pace): Steps<void> {
  if (!isArray(calls)) return checkCalls(calls, i);
  for (const [j, call] of calls.entries()) {
    checkCall(call, ['messages', i, 'tool_calls', j]);
    if (pace.due) yield;
  }
}

/**
 * An assistant message with calls is followed by one tool message per call, before anything else;
 * a tool message answers a call of that assistant message (wire/chat-completions.md §3).
 */
class OpenCalls {
  #open: Set<string> | undefined;
  #at = 0;

  see(message: JsonObject, i: number): void {
    if (message['role'] === 'tool') return this.#answer(message, i);
    this.end();
    const calls = message['tool_calls'];
    if (message['role'] !== 'assistant' || !isArray(calls) || calls.length === 0) return;
    this.#open = new Set();
    this.#at = i;
    for (let j = 0; j < calls.length; j++) {
      const call = calls[j];
      const id = isObject(call) ? call['id'] : undefined;
      if (typeof id !== 'string') continue;
      if (this.#open.has(id)) {
        throw badValue(['messages', i, 'tool_calls', j, 'id'], 'stands twice in one message');
      }
      this.#open.add(id);
    }
  }

  /** The messages end here, or another turn begins. */
  end(): void {
    if (this.#open === undefined || this.#open.size === 0) return;
    throw invalidRequest(
      "An assistant message with 'tool_calls' must be followed by tool messages that answer each " +
        "'tool_call_id', before any other message.",
      ['messages', this.#at],
      'invalid_value',
    );
  }

  #answer(message: JsonObject, i: number): void {
    const id = message['tool_call_id'];
    if (typeof id === 'string' && this.#open?.delete(id) === true) return;
    throw invalidRequest(
      "A message with role 'tool' must answer a call in 'tool_calls' of the preceding assistant " +
        'message, and each call only once.',
      ['messages', i, 'tool_call_id'],
      'invalid_value',
    );
  }
}

function checkMessage(message: JsonObject, i: number): void {
  const role = message['role'];
  const content = message['content'];
  switch (role) {
    case 'system':
    case 'developer':
    case 'user':
      return checkContent(content, i, true);
    case 'assistant':
      checkContent(content, i, false);
      return checkCalls(message['tool_calls'], i);
    case 'tool':
      if (typeof message['tool_call_id'] !== 'string') {
        throw missing(['messages', i, 'tool_call_id']);
      }
      return checkContent(content, i, true);
    case 'function':
      if (typeof message['name'] !== 'string') throw missing(['messages', i, 'name']);
      return checkContent(content, i, false);
    default:
      if (role === undefined || role === null) throw missing(['messages', i, 'role']);
      throw badValue(
        ['messages', i, 'role'],
        "must be one of 'system', 'developer', 'user', 'assistant', 'tool' and 'function'",
      );
  }
}

function checkContent(content: Json | undefined, i: number, required: boolean): void {
  if (typeof content === 'string') return;
  if (content === undefined || content === null) {
    if (required) throw wrongType(['messages', i, 'content'], 'a string or an array', content);
    return;
  }
  if (!isArray(content)) {
    throw wrongType(['messages', i, 'content'], 'a string or an array', content);
  }
  if (required && content.length === 0) {
    throw badValue(['messages', i, 'content'], 'must hold at least one part');
  }
  for (let j = 0; j < content.length; j++) checkPart(content[j], ['messages', i, 'content', j]);
}

function checkPart(part: Json | undefined, path: FieldPath): void {
  if (!isObject(part)) throw wrongType(path, 'an object', part);
  const type = part['type'];
  if (typeof type !== 'string') throw wrongType([...path, 'type'], 'a string', type);
  switch (type) {
    case 'text':
      return checkText(part['text'], [...path, 'text']);
    case 'refusal':
      return checkText(part['refusal'], [...path, 'refusal']);
    case 'image_url':
      return checkImage(part['image_url'], [...path, 'image_url']);
    case 'input_audio':
    case 'file':
      if (!isObject(part[type])) throw wrongType([...path, type], 'an object', part[type]);
      return;
    default:
      return;
  }
}

function checkText(value: Json | undefined, path: FieldPath): void {
  if (typeof value !== 'string') throw wrongType(path, 'a string', value);
}

/** `{url}`, or the bare string that many clients send. */
function checkImage(value: Json | undefined, path: FieldPath): void {
  if (typeof value === 'string') return checkMediaUrl(value, path);
  if (!isObject(value)) throw wrongType(path, 'an object', value);
  const url = value['url'];
  if (typeof url !== 'string') throw wrongType([...path, 'url'], 'a string', url);
  checkMediaUrl(url, [...path, 'url']);
}

function checkCalls(calls: Json | undefined, i: number): void {
  if (calls === undefined || calls === null) return;
  if (!isArray(calls)) throw wrongType(['messages', i, 'tool_calls'], 'an array', calls);
  for (let j = 0; j < calls.length; j++) checkCall(calls[j], ['messages', i, 'tool_calls', j]);
}

function checkCall(call: Json | undefined, path: FieldPath): void {
  if (!isObject(call)) throw wrongType(path, 'an object', call);
  if (typeof call['id'] !== 'string') throw missing([...path, 'id']);
  const kind = isObject(call['custom']) ? 'custom' : 'function';
  const called = call[kind];
  if (!isObject(called)) throw missing([...path, 'function']);
  const name = called['name'];
  if (typeof name !== 'string' || name === '') throw missing([...path, kind, 'name']);
  const field = kind === 'custom' ? 'input' : 'arguments';
  const text = called[field];
  if (text !== undefined && text !== null && typeof text !== 'string') {
    throw wrongType([...path, kind, field], 'a string', text);
  }
}
