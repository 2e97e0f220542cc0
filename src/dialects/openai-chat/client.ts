/** The half of chat completions that faces the client. */
import type { ClientDialect } from '../../core/dialect.ts';
import type { Standing, Standings } from '../../core/policy.ts';
import { TwinNames } from '../../core/shape.ts';
import {
  shapedGeneration,
  shapedWriter,
  type ShapeWords,
} from '../shared/request/demanded-call.ts';
import { limitNames, type LimitNames } from '../shared/answers.ts';
import { writeError, writeStreamError } from './errors.ts';
import { badValue } from './fields.ts';
import { isArray, isObject, type Json, type JsonObject } from '../../json/value.ts';
import { ownedKeys, readHead } from './head.ts';
import { ChatAnswerRelay } from './relay/answer.ts';
import { readRequest, refuseUntranslatable } from './request/read.ts';
import { writeResponse } from './answer/response.ts';
import { requestShape } from './shape.ts';
import { ChatStreamWriter } from './answer/stream-write.ts';
import { BodyDescription } from '../shared/body/describe.ts';

const words: ShapeWords = { single: ['parallel_tool_calls'] };

export const openaiChatClient: ClientDialect = {
  id: 'openai-chat',
  paths: ['/v1/chat/completions'],
  scope: 'chat',
  ownedKeys,
  names: new TwinNames(requestShape, ownedKeys),
  fault: badValue,
  readHead,
  describe: (source) => new ChatDescription(source),
  readRequest,
  writeResponse: (generation, context) =>
    writeResponse(shapedGeneration(generation, context, words), context),
  streamWriter: (context) => shapedWriter(new ChatStreamWriter(context), context, words),
  answerRelay: (context) => new ChatAnswerRelay(context),
  writeError,
  writeStreamError,
  // A comment, the same before and after the first chunk: both official clients skip it.
  keepAlive: () => ': ping\n\n',
  limitHeaders,
};

// `x-ratelimit-*`, in which chat completions reports the state of a caller's limits.

const ofRequests = limitNames((part) => `x-ratelimit-${part}-requests`);
const ofTokens = limitNames((part) => `x-ratelimit-${part}-tokens`);

/** Flat headers; none for a caller without limits. */
export function limitHeaders({ requests, tokens }: Standings, wallMs: number): readonly string[] {
  const headers: string[] = [];
  if (requests !== undefined) add(headers, ofRequests, { standing: requests, wallMs });
  if (tokens !== undefined) add(headers, ofTokens, { standing: tokens, wallMs });
  return headers;
}

function add(
  headers: string[],
  names: LimitNames,
  { standing, wallMs }: { readonly standing: Standing; readonly wallMs: number },
): void {
  const { limit, remaining, fullAt } = standing;
  headers.push(
    names.limit,
    String(limit),
    names.remaining,
    String(remaining),
    names.reset,
    durationText(Math.max(0, Math.ceil(fullAt - wallMs))),
  );
}

/** As this dialect's service spells durations: `17ms`, `1.2s`, `6m0s`, `1h0m0s`. */
export function durationText(ms: number): string {
  if (ms < 1000) return `${ms}ms`;
  const minutes = Math.floor(ms / 60_000);
  const seconds = `${(ms % 60_000) / 1000}s`;
  if (minutes === 0) return seconds;
  return minutes < 60
    ? `${minutes}m${seconds}`
    : `${Math.floor(minutes / 60)}h${minutes % 60}m${seconds}`;
}

// What the gateway reads of a chat body beyond what `BodyDescription` reads of all formats.

export class ChatDescription extends BodyDescription {
  override reasonsWithTools(): boolean {
    const { tools, functions, reasoning_effort: effort } = this.options;
    const offered = [...listOf(tools), ...listOf(functions)];
    if (offered.length === 0 || effort === 'none' || offered.some(isUntranslatableTool)) {
      return false;
    }
    return isTranslatable(this.options) && !listOf(this.options['messages']).some(isForChatOnly);
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
