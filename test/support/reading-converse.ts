/** Reads Converse's answers into the form that tests compare, written from wire/bedrock.md. */
import { tryParse, tryParseObject } from '../../src/json/parse.ts';
import { isObject, type JsonObject } from '../../src/json/value.ts';
import { listAt, numberAt, objectAt, textAt } from './members.ts';
import type { Seen, SeenFrame, SeenUsage } from './reading.ts';

const finishNames: { readonly [reason: string]: string } = {
  end_turn: 'stop',
  stop_sequence: 'stop',
  max_tokens: 'length',
  tool_use: 'tools',
  guardrail_intervened: 'filter',
  content_filtered: 'filter',
};

export function converseUsageOf(usage: JsonObject): SeenUsage {
  return {
    fresh: numberAt(usage, 'inputTokens'),
    cacheRead: numberAt(usage, 'cacheReadInputTokens'),
    cacheWrite: numberAt(usage, 'cacheWriteInputTokens'),
    output: numberAt(usage, 'outputTokens'),
    reasoning: 0,
  };
}

export function readConverseDocument(body: JsonObject): Seen {
  const content = listAt(objectAt(objectAt(body, 'output'), 'message'), 'content');
  const reason = textAt(body, 'stopReason');
  return {
    model: '',
    text: content.map((block) => textAt(block, 'text')).join(''),
    reasoning: content
      .map((block) =>
        textAt(objectAt(objectAt(block, 'reasoningContent'), 'reasoningText'), 'text'),
      )
      .join(''),
    calls: content
      .map((block) => block['toolUse'])
      .filter(isObject)
      .map((call) => ({
        id: textAt(call, 'toolUseId'),
        name: textAt(call, 'name'),
        arguments: call['input'] ?? {},
      })),
    finish: finishNames[reason] ?? reason,
    usage: isObject(body['usage']) ? converseUsageOf(body['usage']) : undefined,
  };
}

/** A stream: its blocks put together as a document has them. */
export function foldConverse(frames: readonly SeenFrame[]): Seen {
  const blocks: JsonObject[] = [];
  let end: JsonObject = {};
  for (const { event, data } of frames) {
    const payload = tryParseObject(data) ?? {};
    const at = numberAt(payload, 'contentBlockIndex');
    if (event === 'contentBlockStart') blocks[at] = objectAt(payload, 'start');
    if (event === 'contentBlockDelta') {
      blocks[at] = withDelta(blocks[at] ?? {}, objectAt(payload, 'delta'));
    }
    if (event === 'messageStop' || event === 'metadata') end = { ...end, ...payload };
  }
  const content = blocks.filter(isObject).map(whole);
  return readConverseDocument({ ...end, output: { message: { content } } });
}

function withDelta(block: JsonObject, delta: JsonObject): JsonObject {
  if (isObject(delta['toolUse'])) {
    const call = objectAt(block, 'toolUse');
    const input = textAt(call, 'input') + textAt(delta['toolUse'], 'input');
    return { toolUse: { ...call, input } };
  }
  if (isObject(delta['reasoningContent'])) {
    const told = objectAt(objectAt(block, 'reasoningContent'), 'reasoningText');
    const text = textAt(told, 'text') + textAt(delta['reasoningContent'], 'text');
    return { reasoningContent: { reasoningText: { text } } };
  }
  return { text: textAt(block, 'text') + textAt(delta, 'text') };
}

/** Arguments come as pieces of their JSON. */
function whole(block: JsonObject): JsonObject {
  const { toolUse } = block;
  if (!isObject(toolUse)) return block;
  return { toolUse: { ...toolUse, input: tryParse(textAt(toolUse, 'input') || '{}') ?? {} } };
}
