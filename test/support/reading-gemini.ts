/** Reads Gemini's answers into the form that tests compare, written from wire/gemini.md §3 and §5. */
import assert from 'node:assert/strict';
import { tryParseObject } from '../../src/json/parse.ts';
import { isObject, type Json, type JsonObject } from '../../src/json/value.ts';
import { listAt, numberAt, objectAt, textAt } from './members.ts';
import type { Seen, SeenCall, SeenFrame, SeenUsage } from './reading.ts';

const finishNames: { readonly [reason: string]: string } = { STOP: 'stop', MAX_TOKENS: 'length' };
const filters =
  'SAFETY RECITATION BLOCKLIST PROHIBITED_CONTENT SPII LANGUAGE IMAGE_SAFETY MODEL_ARMOR'.split(
    ' ',
  );

/** The counts of a `usageMetadata`. */
export function geminiUsageOf(usage: JsonObject): SeenUsage {
  const cacheRead = numberAt(usage, 'cachedContentTokenCount');
  const reasoning = numberAt(usage, 'thoughtsTokenCount');
  const prompt = numberAt(usage, 'promptTokenCount') + numberAt(usage, 'toolUsePromptTokenCount');
  return {
    fresh: prompt - cacheRead,
    cacheRead,
    cacheWrite: 0,
    output: numberAt(usage, 'candidatesTokenCount') + reasoning,
    reasoning,
  };
}

/** A whole GenerateContentResponse. */
export function readGeminiDocument(body: JsonObject): Seen {
  return readResponses([body]);
}

/** A stream of them, each with the parts that are new. */
export function foldGemini(frames: readonly SeenFrame[]): Seen {
  return readResponses(frames.map(({ data }) => tryParseObject(data) ?? {}));
}

function readResponses(bodies: readonly JsonObject[]): Seen {
  const candidates = bodies.flatMap((body) => listAt(body, 'candidates').slice(0, 1));
  const parts = candidates.flatMap((candidate) => listAt(objectAt(candidate, 'content'), 'parts'));
  const texts = (thought: boolean): string =>
    parts
      .filter((part) => (part['thought'] === true) === thought)
      .map((part) => textAt(part, 'text'))
      .join('');
  const calls = callsOf(parts.map((part) => part['functionCall']).filter(isObject));
  const blocked = bodies.some((body) => textAt(objectAt(body, 'promptFeedback'), 'blockReason'));
  const reason = candidates.map((each) => textAt(each, 'finishReason')).findLast(Boolean) ?? '';
  const filtered = blocked || filters.includes(reason);
  const named = finishNames[reason] ?? reason;
  const usages = bodies.map((body) => objectAt(body, 'usageMetadata'));
  const usage = usages.findLast((each) => each['promptTokenCount'] !== undefined);
  return {
    model: bodies.map((body) => textAt(body, 'modelVersion')).find(Boolean) ?? '',
    text: texts(false),
    reasoning: texts(true),
    calls,
    finish: filtered ? 'filter' : reason === 'STOP' && calls.length > 0 ? 'tools' : named,
    usage: usage === undefined ? undefined : geminiUsageOf(usage),
  };
}

/** Calls, whole or in pieces: what has no name goes on with the call before it. */
function callsOf(pieces: readonly JsonObject[]): readonly SeenCall[] {
  const calls: { id: string; name: string; arguments: { [name: string]: Json | undefined } }[] = [];
  for (const piece of pieces) {
    const name = textAt(piece, 'name');
    if (name !== '') {
      calls.push({ id: textAt(piece, 'id'), name, arguments: { ...objectAt(piece, 'args') } });
    }
    const args = calls.at(-1)?.arguments;
    for (const partial of listAt(piece, 'partialArgs')) {
      const member = /^\$\.(\w+)$/.exec(textAt(partial, 'jsonPath'))?.[1];
      assert.ok(args !== undefined && member !== undefined, 'a member of a call');
      args[member] = textAt(args, member) + textAt(partial, 'stringValue');
    }
  }
  return calls;
}
