/** Reads a whole chat-completions answer (wire/chat-completions.md §4, wire/upstreams.md §6). */
import type { Json, JsonObject, Part, TextPart, ToolCallPart } from '../../core/conversation.ts';
import { GatewayError } from '../../core/errors.ts';
import type { Generation } from '../../core/generation.ts';
import { isObject } from '../../core/json.ts';
import { atOnce, Pace, textWeight, type Steps } from '../../core/steps.ts';
import type { UpstreamTraits } from '../../core/traits.ts';
import { readCitations } from './citations.ts';
import { readErrorValue } from './error-read.ts';
import { isArray } from './fields.ts';
import { readFailedFinish, readFinish } from './finish.ts';
import { readReasoning, reasoningParts, thinkingText } from './reasoning-read.ts';
import { derivedCallId, readCall, type AnswerIdentity, type SeenCall } from './tool-call-read.ts';
import { findUsage } from './usage.ts';

/**
 * @throws GatewayError the upstream's error if the document is one (F24), `upstream_invalid` if it is
 * no answer at all.
 */
export function readResponse(body: JsonObject, traits: UpstreamTraits): Generation {
  return atOnce(responseReading(body, traits));
}

/** The same in steps: arguments that are no text become one. */
export function* responseReading(body: JsonObject, traits: UpstreamTraits): Steps<Generation> {
  if (isPresent(body['error'])) throw readErrorValue(body);
  const choice = firstChoice(body);
  if (choice === undefined) {
    if (body['choices'] === undefined && looksLikeError(body)) throw readErrorValue(body);
    throw new GatewayError('upstream_invalid', 'The upstream answered without a choice.');
  }
  if (isPresent(choice['error'])) throw readErrorValue(choice['error']);
  const failure = readFailedFinish(choice['finish_reason']);
  if (failure !== undefined) throw failure;
  const message = choice['message'];
  if (!isObject(message)) {
    throw new GatewayError('upstream_invalid', 'The upstream answered without a message.');
  }
  const parts = yield* readMessage(message, { id: body['id'], created: body['created'] });
  const usage = findUsage(body, traits);
  return {
    id: stringOr(body['id'], ''),
    model: stringOr(body['model'], ''),
    parts,
    finish: readFinish({
      raw: choice['finish_reason'],
      stopReason: choice['stop_reason'],
      hasToolCalls: parts.some((part) => part.type === 'tool-call'),
    }),
    ...(usage === undefined ? {} : { usage }),
  };
}

/** Error shapes without an `error` member, as they stand in 200 answers. */
export function looksLikeError(body: JsonObject): boolean {
  if (body['object'] === 'error' || body['type'] === 'error') return true;
  return typeof body['message'] === 'string' || isPresent(body['detail']);
}

export function isPresent(value: Json | undefined): boolean {
  return value !== undefined && value !== null && value !== '' && value !== false;
}

function firstChoice(body: JsonObject): JsonObject | undefined {
  const choices = body['choices'];
  if (!isArray(choices)) return undefined;
  const objects = choices.filter(isObject);
  return objects.find((choice) => choice['index'] === 0) ?? objects[0];
}

function* readMessage(message: JsonObject, answer: AnswerIdentity): Steps<readonly Part[]> {
  const parts: Part[] = [...reasoningParts(readReasoning(message))];
  readContent(message, parts);
  const { refusal } = message;
  if (typeof refusal === 'string' && refusal !== '') parts.push({ type: 'refusal', text: refusal });
  const pace = new Pace();
  for (const value of callsOf(message)) {
    const call = readCall(value);
    if (call.name !== '') parts.push(callPart(call, answer, parts.length));
    if (pace.dueWith(textWeight(call.arguments.length))) yield;
  }
  return parts;
}

/** Text of the message; Mistral's part arrays are split by kind. */
function readContent(message: JsonObject, parts: Part[]): void {
  const { content } = message;
  const citations = readCitations(message['annotations']);
  const from = parts.length;
  if (typeof content === 'string') pushText(parts, content);
  else if (isArray(content)) {
    for (const piece of content) if (isObject(piece)) readPiece(piece, parts);
  } else if (isObject(message['audio'])) {
    pushText(parts, stringOr(message['audio']['transcript'], ''));
  }
  if (citations.length === 0) return;
  const at = parts.findLastIndex((part, i) => i >= from && part.type === 'text');
  const last = parts[at];
  if (last?.type === 'text') parts[at] = { ...last, citations };
}

function readPiece(piece: JsonObject, parts: Part[]): void {
  if (piece['type'] === 'thinking') {
    const text = thinkingText(piece);
    if (text !== '') parts.push({ type: 'reasoning', text });
  } else if (piece['type'] === 'text') {
    pushText(parts, stringOr(piece['text'], ''));
  }
}

function pushText(parts: Part[], text: string): void {
  const last: Part | undefined = parts.at(-1);
  if (text === '') return;
  if (last?.type === 'text') {
    const merged: TextPart = { ...last, text: last.text + text };
    parts[parts.length - 1] = merged;
  } else {
    parts.push({ type: 'text', text });
  }
}

function callsOf(message: JsonObject): readonly JsonObject[] {
  const calls = message['tool_calls'];
  if (isArray(calls) && calls.length > 0) {
    return calls.filter(isObject);
  }
  const legacy = message['function_call'];
  return isObject(legacy) ? [{ function: legacy }] : [];
}

function callPart(call: SeenCall, answer: AnswerIdentity, place: number): ToolCallPart {
  return {
    type: 'tool-call',
    id: call.id === '' ? derivedCallId(answer, place) : call.id,
    name: call.name,
    argumentsJson: call.freeText ? JSON.stringify({ input: call.arguments }) : call.arguments,
    ...(call.extras === undefined ? {} : { extras: { 'openai-chat': call.extras } }),
  };
}

function stringOr(value: Json | undefined, otherwise: string): string {
  return typeof value === 'string' ? value : otherwise;
}
