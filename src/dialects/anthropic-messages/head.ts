/**
 * The head of a request: what the gateway decides on, and what no provider could take. Both modes
 * pass here, so unknown fields and unknown block types are left alone: in relay they are the
 * upstream's business (reliability.md B42–B58; clients.md §2.5; wire/messages.md §2).
 */
import type { Json, JsonObject } from '../../core/conversation.ts';
import type { RequestHead } from '../../core/dialect.ts';
import { GatewayError, invalidRequest } from '../../core/errors.ts';
import { isObject } from '../../core/json.ts';
import type { Steps } from '../../core/steps.ts';
import {
  isArray,
  isPresent,
  pathOf,
  readArray,
  readBoolean,
  readInteger,
  readNumber,
  readObject,
  readString,
  required,
  requireString,
  wrongType,
  type Field,
} from './fields.ts';
import { threadRefusal } from './errors.ts';
import { checkMessages, checkTextBlocks, messagesChecking } from './head-messages.ts';
import { checkTools } from './head-tools.ts';

/** Keys that may not stand twice in a body (B39). */
export const ownedKeys: ReadonlySet<string> = new Set([
  'model',
  'messages',
  'system',
  'stream',
  'max_tokens',
  'tools',
  'thread',
]);

const maxModelLength = 512;
const maxStops = 8192;
const maxStopLength = 4096;
const maxUserIdLength = 512;
const maxSchemaLength = 512 * 1024;
// Names with control characters would forge log lines.
// oxlint-disable-next-line no-control-regex
const controlCharacter = /[\u0000-\u001f\u007f]/;

/**
 * Reads the head of a messages request.
 * @throws GatewayError `invalid_request` or `too_large` with the path of the field.
 */
export function readHead(body: JsonObject): RequestHead {
  const begun = readOptions(body);
  return finished(begun, checkRequest(body), body);
}

/** The same in steps. */
export function* headReading(body: JsonObject): Steps<RequestHead> {
  const begun = readOptions(body);
  return finished(begun, yield* requestChecking(body), body);
}

function readOptions(body: JsonObject): Pick<RequestHead, 'model' | 'stream' | 'maxOutputTokens'> {
  const model = readModel(body);
  const maxOutputTokens = readMaxTokens(body);
  const stream = readBoolean({ of: body, key: 'stream' }) ?? false;
  if (isPresent(body['thread'])) throw threadRefusal();
  return { model, stream, maxOutputTokens };
}

function finished(
  begun: ReturnType<typeof readOptions>,
  reasoningBudget: number | undefined,
  body: JsonObject,
): RequestHead {
  return {
    ...begun,
    wantsUsageFrame: true,
    ...(reasoningBudget === undefined ? {} : { reasoningBudget }),
    ...(asksThinking(body['thinking']) ? { reasons: true } : {}),
  };
}

function asksThinking(thinking: Json | undefined): boolean {
  return isObject(thinking) && thinking['type'] !== 'disabled';
}

/**
 * Everything that a request and a token count have in common.
 * @returns the tokens that are set aside for thinking.
 * @throws GatewayError as `readHead`.
 */
export function checkRequest(body: JsonObject): number | undefined {
  checkSystem(body);
  checkMessages(body['messages']);
  return checkOptions(body);
}

/** The same in steps. */
export function* requestChecking(body: JsonObject): Steps<number | undefined> {
  checkSystem(body);
  yield* messagesChecking(body['messages']);
  return checkOptions(body);
}

/** What stands behind the messages. */
function checkOptions(body: JsonObject): number | undefined {
  checkTools(body);
  checkSampling(body);
  checkStops(body);
  checkMetadata(body);
  checkFormats(body);
  return checkThinking(body);
}

/** @throws GatewayError `invalid_request`. */
export function readModel(body: JsonObject): string {
  const model = requireString({ of: body, key: 'model' });
  const path = ['model'];
  if (model === '') throw invalidRequest('String should have at least 1 character', path);
  if (model.length > maxModelLength) {
    throw invalidRequest(`String should have at most ${maxModelLength} characters`, path);
  }
  if (controlCharacter.test(model)) {
    throw invalidRequest('String should not contain control characters', path);
  }
  return model;
}

/** 0 is legal here: it asks to warm the prompt cache and generate nothing. */
function readMaxTokens(body: JsonObject): number {
  const field = { of: body, key: 'max_tokens' };
  if (body['max_tokens'] === undefined) throw required(pathOf(field));
  const value = readInteger(field, { min: 0 });
  if (value === undefined) throw wrongType(pathOf(field), 'a valid integer');
  return value;
}

function checkSystem(body: JsonObject): void {
  const { system } = body;
  if (!isPresent(system) || typeof system === 'string') return;
  if (!isArray(system)) throw wrongType(['system'], 'a valid string or a list of text blocks');
  checkTextBlocks(system, ['system']);
}

function checkSampling(body: JsonObject): void {
  readNumber({ of: body, key: 'temperature' }, { min: 0, max: 1 });
  readNumber({ of: body, key: 'top_p' }, { min: 0, max: 1 });
  readInteger({ of: body, key: 'top_k' }, { min: 0 });
}

function checkStops(body: JsonObject): void {
  const field = { of: body, key: 'stop_sequences' };
  const stops = readArray(field);
  if (stops === undefined) return;
  if (stops.length > maxStops) {
    throw invalidRequest(`List should have at most ${maxStops} items`, pathOf(field));
  }
  stops.forEach((stop, i) => {
    const path = [...pathOf(field), i];
    if (typeof stop !== 'string') throw wrongType(path, 'a valid string');
    if (stop === '') throw invalidRequest('String should have at least 1 character', path);
    if (stop.length > maxStopLength) {
      throw invalidRequest(`String should have at most ${maxStopLength} characters`, path);
    }
  });
}

function checkMetadata(body: JsonObject): void {
  const metadata = readObject({ of: body, key: 'metadata' });
  if (metadata === undefined) return;
  const field = { of: metadata, key: 'user_id', at: ['metadata'] };
  const userId = readString(field);
  if (userId !== undefined && userId.length > maxUserIdLength) {
    throw invalidRequest(`String should have at most ${maxUserIdLength} characters`, pathOf(field));
  }
}

/** Unknown kinds of thinking pass: clients learn them before gateways do (clients.md §2.5). */
function checkThinking(body: JsonObject): number | undefined {
  const thinking = readObject({ of: body, key: 'thinking' });
  if (thinking === undefined) return undefined;
  const at = ['thinking'];
  const type = requireString({ of: thinking, key: 'type', at });
  const budget = { of: thinking, key: 'budget_tokens', at };
  const tokens = readInteger(budget, { min: 0 });
  if (type === 'enabled' && tokens === undefined) throw required(pathOf(budget));
  return type === 'enabled' ? tokens : undefined;
}

function checkFormats(body: JsonObject): void {
  const config = readObject({ of: body, key: 'output_config' });
  if (config !== undefined) {
    readString({ of: config, key: 'effort', at: ['output_config'] });
    checkFormat({ of: config, key: 'format', at: ['output_config'] });
  }
  checkFormat({ of: body, key: 'output_format' });
}

function checkFormat(field: Field): void {
  const format = readObject(field);
  if (format === undefined) return;
  const at = pathOf(field);
  if (requireString({ of: format, key: 'type', at }) !== 'json_schema') {
    throw wrongType([...at, 'type'], "'json_schema'");
  }
  const { schema } = format;
  if (!isPresent(schema)) throw required([...at, 'schema']);
  if (!isObject(schema)) throw wrongType([...at, 'schema'], 'a valid dictionary');
  if (JSON.stringify(schema).length > maxSchemaLength) {
    throw new GatewayError('too_large', 'The JSON schema is larger than 512 KiB.', {
      path: [...at, 'schema'],
    });
  }
}
