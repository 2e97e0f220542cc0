/** What the bench's mock upstream answers as a cloud: streams that no client reads as they are. */
import { tryParseObject } from '../src/json/parse.ts';
import { isObject, type JsonObject } from '../src/json/value.ts';
import { converseEvent, invokeChunk } from '../test/upstream/aws.ts';
import { contentTexts, promptTokens, streamFrames } from './bodies.ts';
import type { CloudUpstream } from './protocol.ts';

/** The names of the mock's model there: they decide how the gateway asks. */
export const cloudModels: { readonly [U in CloudUpstream]: string } = {
  gemini: 'gemini-2.5-flash',
  'bedrock-converse': 'amazon.nova-pro-v1:0',
  'bedrock-invoke': 'anthropic.claude-sonnet-4-5-20250929-v1:0',
};

/** The path that requests a stream. */
export function cloudPathOf(upstream: CloudUpstream): string {
  const model = encodeURIComponent(cloudModels[upstream]);
  switch (upstream) {
    case 'gemini':
      return `/v1beta/models/${model}:streamGenerateContent?alt=sse`;
    case 'bedrock-converse':
      return `/model/${model}/converse-stream`;
    case 'bedrock-invoke':
      return `/model/${model}/invoke-with-response-stream`;
    default:
      return upstream satisfies never;
  }
}

export interface CloudFrames {
  readonly contentType: string;
  readonly opening: readonly Buffer[];
  readonly contents: readonly Buffer[];
  readonly closing: readonly Buffer[];
}

const eventStream = 'application/vnd.amazon.eventstream';

/** As `streamFrames`: what is before, between (used in turn) and after the chunks. */
export function cloudFrames(upstream: CloudUpstream, chunks: number): CloudFrames {
  switch (upstream) {
    case 'gemini':
      return geminiFrames(chunks);
    case 'bedrock-converse':
      return converseFrames(chunks);
    case 'bedrock-invoke':
      return invokeFrames(chunks);
    default:
      return upstream satisfies never;
  }
}

function geminiFrames(chunks: number): CloudFrames {
  const frame = (parts: readonly object[], usage: object, more: object = {}): Buffer =>
    Buffer.from(
      `data: ${JSON.stringify({
        candidates: [{ content: { parts, role: 'model' }, index: 0, ...more }],
        usageMetadata: { promptTokenCount: promptTokens, ...usage },
        modelVersion: cloudModels.gemini,
        responseId: 'B3nchB3nchB3nchB3nch01',
      })}\r\n\r\n`,
    );
  const last = { candidatesTokenCount: chunks, totalTokenCount: promptTokens + chunks };
  return {
    contentType: 'text/event-stream',
    opening: [],
    // Usage is in each response object.
    contents: contentTexts().map((text) => frame([{ text }], { totalTokenCount: promptTokens })),
    closing: [frame([{ text: '' }], last, { finishReason: 'STOP' })],
  };
}

function converseFrames(chunks: number): CloudFrames {
  const p = 'abcdefghijkl';
  const event = (type: string, payload: JsonObject): Buffer =>
    converseEvent(type, { ...payload, p });
  const usage = {
    inputTokens: promptTokens,
    outputTokens: chunks,
    totalTokens: promptTokens + chunks,
  };
  return {
    contentType: eventStream,
    opening: [event('messageStart', { role: 'assistant' })],
    contents: contentTexts().map((text) =>
      event('contentBlockDelta', { contentBlockIndex: 0, delta: { text } }),
    ),
    closing: [
      event('contentBlockStop', { contentBlockIndex: 0 }),
      event('messageStop', { stopReason: 'end_turn' }),
      event('metadata', { usage, metrics: { latencyMs: 700 } }),
    ],
  };
}

/** The events of the messages API, each wrapped in a frame; the last one has what AWS adds. */
function invokeFrames(chunks: number): CloudFrames {
  const { opening, contents, closing } = streamFrames('anthropic-messages', chunks);
  const metrics = { inputTokenCount: promptTokens, outputTokenCount: chunks };
  const wrapped = (frame: string): Buffer => {
    const event = tryParseObject(frame.slice(frame.indexOf('data: ') + 6));
    if (!isObject(event)) throw new Error('a frame without data');
    const added = event['type'] === 'message_stop';
    return invokeChunk({
      ...event,
      ...(added ? { 'amazon-bedrock-invocationMetrics': metrics } : {}),
    });
  };
  return {
    contentType: eventStream,
    opening: opening.map(wrapped),
    contents: contents.map(wrapped),
    closing: closing.map(wrapped),
  };
}
