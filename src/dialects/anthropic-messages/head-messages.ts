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
import { blocksChecking, checkBlock } from './head-blocks.ts';
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
    yield* checking(message, i, { pairing, pace });
    if (pace.due) yield;
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

function check(message: Json, i: number, pairing: ToolPairing): void {
  const { role, content } = checkMessage(message, i);
  const blocks = content.map((block, j) =>
    checkBlock(block, { path: ['messages', i, 'content', j], role }),
  );
  pair(role, blocks, { pairing, i });
}

/** Block by block: one message may hold very many, and one result, too. */
function* checking(
  message: Json,
  i: number,
  { pairing, pace }: { readonly pairing: ToolPairing; readonly pace: Pace },
): Steps<void> {
  const { role, content } = checkMessage(message, i);
  const blocks = yield* blocksChecking(content, { path: ['messages', i, 'content'], role }, pace);
  pair(role, blocks, { pairing, i });
}

function pair(
  role: CheckedMessage['role'],
  blocks: readonly JsonObject[],
  { pairing, i }: { readonly pairing: ToolPairing; readonly i: number },
): void {
  if (i === 0 && role === 'assistant') {
    throw invalidRequest('the first message must use the user role', ['messages', 0, 'role']);
  }
  pairing.see(role, blocks, i);
}

/** Text blocks only, as in `system`; other types are the upstream's business. */
export function checkTextBlocks(blocks: readonly Json[], path: FieldPath): void {
  blocks.forEach((block, j) => {
    if (!isObject(block)) throw wrongType([...path, j], 'a valid dictionary');
    const type = requireString({ of: block, key: 'type', at: [...path, j] });
    if (type === 'text') requireString({ of: block, key: 'text', at: [...path, j] });
  });
}

interface CheckedMessage {
  readonly role: 'user' | 'assistant' | 'system';
  /** Its blocks, still to be checked; none where it is a text. */
  readonly content: readonly Json[];
}

const noBlocks: readonly Json[] = [];

/** All but its blocks. A system turn in mid-conversation is legal (A1). */
function checkMessage(message: Json, i: number): CheckedMessage {
  const path = ['messages', i];
  if (!isObject(message)) throw wrongType(path, 'a valid dictionary');
  const { role, content } = message;
  if (role === undefined) throw required([...path, 'role']);
  if (role !== 'user' && role !== 'assistant' && role !== 'system') {
    throw wrongType([...path, 'role'], "'user', 'assistant' or 'system'");
  }
  const configured = role === 'system' && hasEffort(message, path);
  if (typeof content === 'string') return { role, content: noBlocks };
  // An instruction may set the effort of what follows and say nothing else.
  if (!isPresent(content) && configured) return { role, content: noBlocks };
  if (!isPresent(content)) throw required([...path, 'content']);
  if (!isArray(content)) {
    throw wrongType([...path, 'content'], 'a valid string or a list of content blocks');
  }
  return { role, content };
}

/** @throws GatewayError `invalid_request` for a configuration of the wrong type. */
function hasEffort(message: JsonObject, at: FieldPath): boolean {
  const field = { of: message, key: 'output_config', at };
  const config = readObject(field);
  if (config === undefined) return false;
  return readString({ of: config, key: 'effort', at: pathOf(field) }) !== undefined;
}
