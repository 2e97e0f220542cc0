/** The attributes of an inference span as OpenTelemetry's conventions for generative AI name and type them. */
import assert from 'node:assert/strict';
import type { AttributeValue, SeenSpan } from '../support/otlp.ts';

type Kind = 'string' | 'int' | 'double' | 'boolean' | 'string[]';

/** From the table of `gen_ai.inference.client` (docs/gen-ai/gen-ai-spans.md of semantic-conventions-genai). */
const known: { readonly [name: string]: Kind } = {
  'gen_ai.operation.name': 'string',
  'gen_ai.provider.name': 'string',
  'gen_ai.conversation.id': 'string',
  'gen_ai.output.type': 'string',
  'gen_ai.request.choice.count': 'int',
  'gen_ai.request.model': 'string',
  'gen_ai.request.seed': 'int',
  'gen_ai.request.stream': 'boolean',
  'gen_ai.request.top_k': 'double',
  'gen_ai.request.frequency_penalty': 'double',
  'gen_ai.request.max_tokens': 'int',
  'gen_ai.request.presence_penalty': 'double',
  'gen_ai.request.stop_sequences': 'string[]',
  'gen_ai.request.temperature': 'double',
  'gen_ai.request.top_p': 'double',
  'gen_ai.response.finish_reasons': 'string[]',
  'gen_ai.response.id': 'string',
  'gen_ai.response.model': 'string',
  'gen_ai.response.time_to_first_chunk': 'double',
  'gen_ai.usage.cache_creation.input_tokens': 'int',
  'gen_ai.usage.cache_read.input_tokens': 'int',
  'gen_ai.usage.input_tokens': 'int',
  'gen_ai.usage.output_tokens': 'int',
  'gen_ai.usage.reasoning.output_tokens': 'int',
  'gen_ai.input.messages': 'string',
  'gen_ai.output.messages': 'string',
  'gen_ai.system_instructions': 'string',
  'error.type': 'string',
  'server.address': 'string',
  'server.port': 'int',
  'http.response.status_code': 'int',
};

export function assertConventions(span: SeenSpan): void {
  const { name, attributes, traceId, spanId, status } = span;
  assert.match(traceId, /^[0-9a-f]{32}$/);
  assert.match(spanId, /^[0-9a-f]{16}$/);
  const model = attributes['gen_ai.request.model'];
  assert.equal(attributes['gen_ai.operation.name'], 'chat');
  assert.equal(typeof attributes['gen_ai.provider.name'], 'string', 'required');
  assert.equal(name, `chat ${String(model)}`);
  assert.ok(attributes['gen_ai.request.choice.count'] !== 1, 'only where it is not 1');
  assert.ok(attributes['gen_ai.request.stream'] !== false, 'only where it streams');
  assert.equal('server.address' in attributes, 'server.port' in attributes, 'both or none');
  // An error status has its type; a type may stand without one (4xx of a server).
  if (status === 2) assert.equal(typeof attributes['error.type'], 'string');
  for (const [attribute, value] of Object.entries(attributes)) {
    if (attribute.startsWith('gateway.')) continue;
    const kind = known[attribute];
    assert.ok(kind !== undefined, `${attribute} is no name of the conventions`);
    assert.ok(isOf(kind, value), `${attribute} is ${JSON.stringify(value)}, no ${kind}`);
  }
}

function isOf(kind: Kind, value: AttributeValue): boolean {
  switch (kind) {
    case 'int':
      return Number.isInteger(value);
    case 'double':
      return typeof value === 'number';
    case 'string[]':
      return Array.isArray(value) && value.every((each) => typeof each === 'string');
    default:
      return typeof value === kind;
  }
}
