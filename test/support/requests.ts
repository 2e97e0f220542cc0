/** Legal requests of all dialects, and where they go. */
import type { JsonObject } from '../../src/json/value.ts';
import type { AnyDialect } from './reading.ts';

export const endpointOf: { readonly [D in AnyDialect]: string } = {
  chat: '/v1/chat/completions',
  messages: '/v1/messages',
  responses: '/v1/responses',
};

/** What a Responses request calls members that tests give by their names in the other dialects. */
export const responsesNames: { readonly [name: string]: string } = {
  messages: 'input',
  max_tokens: 'max_output_tokens',
};

/** A minimal legal request of a dialect. Of `more`, the cap and simple messages fit every dialect. */
export function requestBody(
  dialect: AnyDialect,
  { model, stream, more = {} }: { model: string; stream: boolean; more?: JsonObject },
): JsonObject {
  const body = {
    model,
    messages: [{ role: 'user', content: 'Hello' }],
    ...(dialect === 'messages' ? { max_tokens: 100 } : {}),
    ...(stream ? { stream: true } : {}),
    ...(stream && dialect === 'chat' ? { stream_options: { include_usage: true } } : {}),
    ...more,
  };
  if (dialect !== 'responses') return body;
  return Object.fromEntries(
    Object.entries(body).map(([name, value]) => [responsesNames[name] ?? name, value]),
  );
}

/** Members with which a client is shown the text of reasoning. */
export function shown(dialect: AnyDialect): JsonObject {
  return dialect === 'responses' ? { reasoning: { summary: 'auto' } } : {};
}

/** One tool, as the dialect declares it. */
export function toolsOf(dialect: AnyDialect): JsonObject {
  const schema = { type: 'object', properties: { a: { type: 'integer' } } };
  const tool = { name: 'w', description: 'Weather.' };
  if (dialect === 'messages') return { tools: [{ ...tool, input_schema: schema }] };
  const definition = { ...tool, parameters: schema };
  if (dialect === 'chat') return { tools: [{ type: 'function', function: definition }] };
  return { tools: [{ type: 'function', ...definition }] };
}
