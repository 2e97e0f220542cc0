/**
 * The head of a request: what the gateway decides on, and what no provider could take. Both modes
 * pass here, so unknown fields and unknown part types are left alone: in relay they are the
 * upstream's business (reliability.md B42–B58, B66; wire/chat-completions.md §2).
 */
import type { JsonObject } from '../../core/conversation.ts';
import type { RequestHead } from '../../core/dialect.ts';
import { GatewayError, invalidRequest } from '../../core/errors.ts';
import { isObject } from '../../core/json.ts';
import type { Steps } from '../../core/steps.ts';
import {
  badValue,
  isArray,
  missing,
  readBoolean,
  readInteger,
  readNumber,
  readObject,
  readString,
  wrongType,
} from './fields.ts';
import { checkMessages, messagesChecking } from './head-messages.ts';
import { checkTools } from './head-tools.ts';

/** Keys that may not stand twice in a body (B39). */
export const ownedKeys: ReadonlySet<string> = new Set([
  'model',
  'messages',
  'stream',
  'stream_options',
  'max_tokens',
  'max_completion_tokens',
  'tools',
  'n',
]);

const anyPositive = { min: 1, max: Number.MAX_SAFE_INTEGER };
const anyInteger = { min: Number.MIN_SAFE_INTEGER, max: Number.MAX_SAFE_INTEGER };
const maxModelLength = 512;
/** One call with n choices reserves n times the money (B46). */
const maxChoices = 8;
/** Chat allows 4, other servers more; the writer of a translated request knows the real limit. */
const maxStops = 64;
const maxStopLength = 4096;
const maxSchemaLength = 512 * 1024;
const maxIdentityLength = 512;
/** Those of the API and those that engines add to it. */
const formats: ReadonlySet<string> = new Set([
  'text',
  'json_object',
  'json_schema',
  'grammar',
  'regex',
  'structural_tag',
]);
const controlCharacter = /\p{Cc}/u;

/**
 * Reads the head of a chat-completions request.
 * @throws GatewayError `invalid_request` or `too_large` with the path of the field.
 */
export function readHead(body: JsonObject): RequestHead {
  const begun = readOptions(body);
  checkMessages(body['messages']);
  return finished(begun, body);
}

/** The same in steps. */
export function* headReading(body: JsonObject): Steps<RequestHead> {
  const begun = readOptions(body);
  yield* messagesChecking(body['messages']);
  return finished(begun, body);
}

interface ReadOptions extends Pick<RequestHead, 'model' | 'stream' | 'wantsUsageFrame'> {
  readonly maxOutputTokens: number | undefined;
  readonly choices: number;
}

/** What stands beside messages and tools. */
function readOptions(body: JsonObject): ReadOptions {
  const model = readModel(body);
  const stream = readBoolean(body, 'stream') ?? false;
  const maxOutputTokens = readMaxTokens(body);
  const wantsUsageFrame = readIncludeUsage(body);
  const choices = checkSampling(body);
  checkStop(body);
  checkIdentity(body);
  checkMetadata(body);
  checkResponseFormat(body);
  return { model, stream, wantsUsageFrame, maxOutputTokens, choices };
}

function finished(
  { model, stream, wantsUsageFrame, maxOutputTokens, choices }: ReadOptions,
  body: JsonObject,
): RequestHead {
  checkTools(body);
  return {
    model,
    stream,
    wantsUsageFrame,
    ...(maxOutputTokens === undefined ? {} : { maxOutputTokens }),
    ...(choices > 1 ? { choices } : {}),
    ...(asksReasoning(body) ? { reasons: true } : {}),
  };
}

/** In the vendors' words for it; what says "none" in one of them is not looked at closely. */
function asksReasoning(body: JsonObject): boolean {
  const effort = body['reasoning_effort'];
  if (typeof effort === 'string') return effort !== 'none' && effort !== 'minimal';
  return (
    isObject(body['reasoning']) || isObject(body['thinking']) || body['enable_thinking'] === true
  );
}

function readModel(body: JsonObject): string {
  const model = readString(body, 'model');
  if (model === undefined) throw missing(['model']);
  if (model === '') throw badValue(['model'], 'must not be empty');
  if (model.length > maxModelLength) throw badValue(['model'], 'is too long to be a model name');
  if (controlCharacter.test(model)) {
    throw badValue(['model'], 'must not contain control characters');
  }
  return model;
}

/** The newer spelling wins; two that disagree are refused (B44). */
function readMaxTokens(body: JsonObject): number | undefined {
  const current = readInteger(body, 'max_completion_tokens', anyPositive);
  const deprecated = readInteger(body, 'max_tokens', anyPositive);
  if (current !== undefined && deprecated !== undefined && current !== deprecated) {
    throw invalidRequest(
      "'max_tokens' and 'max_completion_tokens' contradict each other; send only one of them.",
      ['max_tokens'],
      'invalid_value',
    );
  }
  return current ?? deprecated;
}

function readIncludeUsage(body: JsonObject): boolean {
  const include = readObject(body, 'stream_options')?.['include_usage'];
  if (include === undefined || include === null) return false;
  if (typeof include !== 'boolean') {
    throw wrongType(['stream_options', 'include_usage'], 'a boolean', include);
  }
  return include;
}

/** @returns how many answers are wanted. */
function checkSampling(body: JsonObject): number {
  readNumber(body, 'temperature', { min: 0, max: 2 });
  readNumber(body, 'top_p', { min: 0, max: 1 });
  // Engines take -1 and 0 for "off".
  readInteger(body, 'top_k', { min: -1, max: Number.MAX_SAFE_INTEGER });
  readNumber(body, 'frequency_penalty', { min: -2, max: 2 });
  readNumber(body, 'presence_penalty', { min: -2, max: 2 });
  const choices = readInteger(body, 'n', { min: 1, max: maxChoices }) ?? 1;
  readInteger(body, 'seed', anyInteger);
  readBoolean(body, 'parallel_tool_calls');
  readString(body, 'reasoning_effort');
  return choices;
}

function checkStop(body: JsonObject): void {
  const stop = body['stop'];
  if (stop === undefined || stop === null) return;
  if (typeof stop === 'string') return checkStopText(stop, ['stop']);
  if (!isArray(stop)) throw wrongType(['stop'], 'a string or an array of strings', stop);
  if (stop.length > maxStops) throw badValue(['stop'], `must hold at most ${maxStops} strings`);
  stop.forEach((entry, i) => {
    if (typeof entry !== 'string') throw wrongType(['stop', i], 'a string', entry);
    checkStopText(entry, ['stop', i]);
  });
}

function checkStopText(text: string, path: readonly (string | number)[]): void {
  if (text === '') throw badValue(path, 'must not be empty');
  if (text.length > maxStopLength) {
    throw badValue(path, `must have at most ${maxStopLength} characters`);
  }
}

function checkIdentity(body: JsonObject): void {
  for (const key of ['user', 'safety_identifier']) {
    const value = readString(body, key);
    if (value !== undefined && value.length > maxIdentityLength) {
      throw badValue([key], `must have at most ${maxIdentityLength} characters`);
    }
  }
}

/** At most 16 pairs, keys of 64 and string values of 512 characters (B66). */
function checkMetadata(body: JsonObject): void {
  const metadata = readObject(body, 'metadata');
  if (metadata === undefined) return;
  const entries = Object.entries(metadata);
  if (entries.length > 16) throw badValue(['metadata'], 'must hold at most 16 pairs');
  for (const [key, value] of entries) {
    if (key.length > 64) {
      throw badValue(['metadata'], 'must not have keys longer than 64 characters');
    }
    if (typeof value !== 'string') throw wrongType(['metadata', key], 'a string', value);
    if (value.length > 512) {
      throw badValue(['metadata', key], 'must have at most 512 characters');
    }
  }
}

function checkResponseFormat(body: JsonObject): void {
  const format = readObject(body, 'response_format');
  if (format === undefined) return;
  const type = format['type'];
  if (typeof type !== 'string') throw wrongType(['response_format', 'type'], 'a string', type);
  if (!formats.has(type)) throw badValue(['response_format', 'type'], 'is not a known format');
  if (type !== 'json_schema') return;
  const named = format['json_schema'];
  if (!isObject(named)) throw missing(['response_format', 'json_schema']);
  const schema = named['schema'];
  const path = ['response_format', 'json_schema', 'schema'];
  if (schema === undefined || schema === null) throw missing(path);
  if (!isObject(schema)) throw wrongType(path, 'an object', schema);
  if (JSON.stringify(schema).length > maxSchemaLength) {
    throw new GatewayError('too_large', 'The JSON schema is larger than 512 KiB.', { path });
  }
}
