/** Checks the messages of a request as strictly as the native service, and no further (B51–B54). */
import type { Json, JsonObject } from '../../core/conversation.ts';
import { type FieldPath, GatewayError, invalidRequest } from '../../core/errors.ts';
import { isObject } from '../../core/json.ts';
import { Pace, type Steps } from '../../core/steps.ts';
import {
  isArray,
  isPresent,
  pathOf,
  readObject,
  readString,
  required,
  requireString,
  wrongType,
} from './fields.ts';
import { checkBlock } from './head-blocks.ts';
import { ToolPairing } from './head-pairing.ts';

const maxMessages = 100_000;

/** @throws GatewayError `invalid_request` or `too_large` with the path of the first fault. */
export function checkMessages(messages: Json | undefined): void {
  const pairing = new ToolPairing();
  listed(messages).forEach((message, i) => check(message, i, pairing));
  pairing.end();
}

/** The same in steps. */
export function* messagesChecking(messages: Json | undefined): Steps<void> {
  const pairing = new ToolPairing();
  const pace = new Pace();
  for (const [i, message] of listed(messages).entries()) {
    if (pace.dueWith(1 + check(message, i, pairing))) yield;
  }
  pairing.end();
}

function listed(messages: Json | undefined): readonly Json[] {
  if (messages === undefined) throw required(['messages']);
  if (!isArray(messages)) throw wrongType(['messages'], 'a valid list');
  if (messages.length === 0) {
    throw invalidRequest('at least one message is required', ['messages']);
  }
  if (messages.length > maxMessages) {
    throw new GatewayError('too_large', `The request has more than ${maxMessages} messages.`, {
      path: ['messages'],
    });
  }
  return messages;
}

/** @returns how many blocks it has. */
function check(message: Json, i: number, pairing: ToolPairing): number {
  if (!isObject(message)) throw wrongType(['messages', i], 'a valid dictionary');
  const content = checkMessage(message, ['messages', i]);
  if (i === 0 && message['role'] === 'assistant') {
    throw invalidRequest('the first message must use the user role', ['messages', 0, 'role']);
  }
  pairing.see(message['role'], content, i);
  return content.length;
}

/** Text blocks only, as in `system`; other types are the upstream's business. */
export function checkTextBlocks(blocks: readonly Json[], path: FieldPath): void {
  blocks.forEach((block, j) => {
    if (!isObject(block)) throw wrongType([...path, j], 'a valid dictionary');
    const type = requireString({ of: block, key: 'type', at: [...path, j] });
    if (type === 'text') requireString({ of: block, key: 'text', at: [...path, j] });
  });
}

/** A system turn in mid-conversation is legal (A1). */
function checkMessage(message: JsonObject, path: FieldPath): readonly JsonObject[] {
  const { role, content } = message;
  if (role === undefined) throw required([...path, 'role']);
  if (role !== 'user' && role !== 'assistant' && role !== 'system') {
    throw wrongType([...path, 'role'], "'user', 'assistant' or 'system'");
  }
  const configured = role === 'system' && hasEffort(message, path);
  if (typeof content === 'string') return [];
  // An instruction may set the effort of what follows and say nothing else.
  if (!isPresent(content) && configured) return [];
  if (!isPresent(content)) throw required([...path, 'content']);
  if (!isArray(content)) {
    throw wrongType([...path, 'content'], 'a valid string or a list of content blocks');
  }
  return content.map((block, j) => checkBlock(block, { path: [...path, 'content', j], role }));
}

/** @throws GatewayError `invalid_request` for a configuration of the wrong type. */
function hasEffort(message: JsonObject, at: FieldPath): boolean {
  const field = { of: message, key: 'output_config', at };
  const config = readObject(field);
  if (config === undefined) return false;
  return readString({ of: config, key: 'effort', at: pathOf(field) }) !== undefined;
}
