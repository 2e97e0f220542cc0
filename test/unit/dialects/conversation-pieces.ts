/** Pieces of conversations in both dialects, for tables of tests. */
import { isObject, type Json, type JsonObject } from '../../../src/json/value.ts';
import type { UpstreamTraits } from '../../../src/core/traits.ts';
import { translate, type From } from './translating.ts';

export const hi = { role: 'user', content: 'hi' };
export const use = (id: string, input: JsonObject = {}): JsonObject => ({
  type: 'tool_use',
  id,
  name: 'f',
  input,
});
export const result = (id: string, content?: Json, more: JsonObject = {}): JsonObject => ({
  type: 'tool_result',
  tool_use_id: id,
  ...(content === undefined ? {} : { content }),
  ...more,
});
export const says = (role: string, ...content: readonly JsonObject[]): JsonObject => ({
  role,
  content,
});
export const text = (words: string): JsonObject => ({ type: 'text', text: words });
export const calls = (...ids: readonly string[]): JsonObject => ({
  role: 'assistant',
  content: null,
  tool_calls: ids.map((id) => ({ id, type: 'function', function: { name: 'f', arguments: '{}' } })),
});
export const answer = (id: string, content: Json): JsonObject => ({
  role: 'tool',
  tool_call_id: id,
  content,
});
export const png = {
  type: 'image',
  source: { type: 'base64', media_type: 'image/png', data: 'AAAA' },
};
export const pngPart = { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } };
export const pdfData = 'JVBERi0xLjQ=';
export const pdf = {
  type: 'document',
  source: { type: 'base64', media_type: 'application/pdf', data: pdfData },
};
export const pdfPart = (filename = 'document.pdf'): JsonObject => ({
  type: 'file',
  file: { filename, file_data: `data:application/pdf;base64,${pdfData}` },
});

/** The messages that the upstream gets. */
export function messagesOf(
  from: From,
  messages: readonly JsonObject[],
  traits: Partial<UpstreamTraits> = {},
): readonly JsonObject[] {
  const written = translate(from, { messages }, traits).body['messages'];
  return Array.isArray(written) ? written.filter(isObject) : [];
}
