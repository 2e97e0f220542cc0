/** Reads a whole messages answer (wire/messages.md §6, wire/translation.md §7). */
import type { Json, JsonObject, Part, ToolCallPart } from '../../core/conversation.ts';
import { GatewayError } from '../../core/errors.ts';
import type { Generation } from '../../core/generation.ts';
import { isObject } from '../../core/json.ts';
import { atOnce, Pace, textWeight, type Steps } from '../../core/steps.ts';
import { readCitations } from './citations.ts';
import { readErrorValue } from './error-read.ts';
import { isArray, isPresent, textOf } from './fields.ts';
import { readStop } from './stop-reason.ts';
import { readUsage } from './usage.ts';

/**
 * @throws GatewayError the upstream's error if the document is one (F24), `upstream_invalid` if it is
 * no answer at all.
 */
export function readResponse(body: JsonObject): Generation {
  return atOnce(responseReading(body));
}

/** The same in steps: the inputs of calls become texts. */
export function* responseReading(body: JsonObject): Steps<Generation> {
  const { content } = body;
  if (!isArray(content)) {
    if (looksLikeError(body)) throw readErrorValue(body);
    throw new GatewayError('upstream_invalid', 'The upstream answered without content.');
  }
  const pace = new Pace();
  const parts: Part[] = [];
  for (const block of content) {
    if (!isObject(block)) continue;
    const part = readBlock(block);
    parts.push(part);
    const length = part.type === 'tool-call' ? part.argumentsJson.length : 0;
    if (pace.dueWith(textWeight(length))) yield;
  }
  const usage = readUsage(body['usage']);
  return {
    id: textOf(body['id']),
    model: textOf(body['model']),
    parts,
    finish: readStop(body) ?? { kind: 'other' },
    ...(usage === undefined ? {} : { usage }),
  };
}

function looksLikeError(body: JsonObject): boolean {
  if (isPresent(body['error']) || body['type'] === 'error') return true;
  return typeof body['message'] === 'string' || isPresent(body['detail']);
}

/** A complete content block of an answer. */
function readBlock(block: JsonObject): Part {
  switch (block['type']) {
    case 'text': {
      const citations = readCitations(block['citations']);
      return {
        type: 'text',
        text: textOf(block['text']),
        ...(citations.length === 0 ? {} : { citations }),
      };
    }
    case 'thinking': {
      const signature = textOf(block['signature']);
      return {
        type: 'reasoning',
        text: textOf(block['thinking']),
        ...(signature === '' ? {} : { signature }),
      };
    }
    case 'redacted_thinking':
      return { type: 'reasoning', text: '', encrypted: textOf(block['data']) };
    case 'tool_use':
      return readToolUse(block, writeInput(block['input']));
    default:
      return { type: 'opaque', dialect: 'anthropic-messages', value: block };
  }
}

/** Some servers send the input as text. */
export function writeInput(input: Json | undefined): string {
  return typeof input === 'string' ? input : JSON.stringify(input ?? {});
}

/**
 * A call; `caller` is kept where it is not the plain `direct`.
 * @throws GatewayError `upstream_invalid` for a call of nothing: no client can run it.
 */
export function readToolUse(block: JsonObject, argumentsJson: string): ToolCallPart {
  const { caller } = block;
  const name = textOf(block['name']);
  if (name === '') {
    throw new GatewayError('upstream_invalid', 'The upstream sent a call without a name.');
  }
  const plain = !isObject(caller) || caller['type'] === 'direct';
  return {
    type: 'tool-call',
    id: textOf(block['id']),
    name,
    argumentsJson,
    ...(plain ? {} : { extras: { 'anthropic-messages': { caller } } }),
  };
}
