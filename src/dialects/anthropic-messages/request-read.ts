/** Reads a whole messages request into a conversation (wire/translation.md §2, §3, §4.2). */
import type { Conversation, Json, JsonObject, Part, Sampling } from '../../core/conversation.ts';
import { isObject } from '../../core/json.ts';
import type { Notes } from '../../core/notes.ts';
import type { Sealer } from '../../core/sealer.ts';
import { atOnce, type Steps } from '../../core/steps.ts';
import { isArray, isPresent } from './fields.ts';
import { readOutput, readReasoning } from './request-read-options.ts';
import {
  nativeExtras,
  readMark,
  requestReading as readingOf,
  without,
  type Reading,
} from './request-reading.ts';
import { readToolChoice, readTools } from './request-read-tools.ts';
import { readTurns } from './request-read-turns.ts';

/** Top-level fields that have a canonical slot, or that the head has read. */
const knownFields: ReadonlySet<string> = new Set([
  'model',
  'max_tokens',
  'messages',
  'system',
  'stop_sequences',
  'stream',
  'temperature',
  'top_p',
  'top_k',
  'thinking',
  'output_config',
  'output_format',
  'tools',
  'tool_choice',
  'metadata',
]);

/** Claude Code puts a line that changes with each request first; it would defeat prompt caches (A6). */
const billingLine = 'x-anthropic-billing-header:';

/**
 * The body has passed `readHead`.
 * @throws GatewayError `invalid_request` for what no other dialect can carry.
 */
export function readRequest(body: JsonObject, notes: Notes, sealer?: Sealer): Conversation {
  return atOnce(requestReading(body, notes, sealer));
}

/** The same in steps. */
export function requestReading(
  body: JsonObject,
  notes: Notes,
  sealer?: Sealer,
): Steps<Conversation> {
  return readConversation(body, readingOf(notes, sealer));
}

/** The conversation of a request or of a token count. */
export function* readConversation(body: JsonObject, reading: Reading): Steps<Conversation> {
  const reasoning = readReasoning(body, reading.notes);
  const endUser = readEndUser(body['metadata']);
  const parallel = isObject(body['tool_choice'])
    ? body['tool_choice']['disable_parallel_tool_use']
    : undefined;
  const toolChoice = readToolChoice(body['tool_choice']);
  return {
    system: readSystem(body['system'], reading),
    turns: yield* readTurns(body['messages'], reading),
    tools: readTools(body, reading),
    ...(toolChoice === undefined ? {} : { toolChoice }),
    ...(parallel === true ? { parallelTools: false } : {}),
    sampling: readSampling(body),
    output: readOutput(body),
    ...(reasoning === undefined ? {} : { reasoning }),
    ...(endUser === undefined ? {} : { endUser }),
    extras: readExtras(body),
  };
}

/** One part per block, never joined: joining changes cache keys. */
function readSystem(system: Json | undefined, reading: Reading): readonly Part[] {
  if (typeof system === 'string') return system === '' ? [] : [{ type: 'text', text: system }];
  if (!isArray(system)) return [];
  const parts: Part[] = [];
  system.forEach((block, i) => {
    if (!isObject(block)) return;
    const { type, text } = block;
    if (type !== 'text' || typeof text !== 'string') {
      reading.refuse(['system', i, 'type'], 'Only text blocks are supported here.');
    } else if (!text.startsWith(billingLine)) {
      parts.push({ type: 'text', text, ...readMark(block) });
    }
  });
  return parts;
}

function readSampling(body: JsonObject): Sampling {
  const { stop_sequences: stops } = body;
  const stop = isArray(stops) ? stops.filter((each) => typeof each === 'string') : [];
  const cap = numberOf(body['max_tokens']);
  const temperature = numberOf(body['temperature']);
  const topP = numberOf(body['top_p']);
  const topK = numberOf(body['top_k']);
  return {
    ...(cap === undefined ? {} : { maxOutputTokens: cap }),
    ...(temperature === undefined ? {} : { temperature }),
    ...(topP === undefined ? {} : { topP }),
    ...(topK === undefined ? {} : { topK }),
    ...(stop.length === 0 ? {} : { stop }),
  };
}

function readEndUser(metadata: Json | undefined): string | undefined {
  const userId = isObject(metadata) ? metadata['user_id'] : undefined;
  return typeof userId === 'string' && userId !== '' ? userId : undefined;
}

const userIdKey: ReadonlySet<string> = new Set(['user_id']);
const outputConfigKeys: ReadonlySet<string> = new Set(['effort', 'format']);

/** What has no canonical slot keeps its name; the writer of the other dialect notes or refuses it. */
function readExtras(body: JsonObject): Conversation['extras'] {
  const extras: { [key: string]: Json | undefined } = { ...without(body, knownFields) };
  const leftovers = [
    ['metadata', userIdKey],
    ['output_config', outputConfigKeys],
  ] as const;
  for (const [key, read] of leftovers) {
    const value = body[key];
    const rest = isObject(value) ? without(value, read) : {};
    if (isPresent(value) && Object.keys(rest).length > 0) extras[key] = rest;
  }
  return nativeExtras(extras).extras ?? {};
}

function numberOf(value: Json | undefined): number | undefined {
  return typeof value === 'number' ? value : undefined;
}
