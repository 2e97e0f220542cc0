/** Tools in the form of each endpoint. */
import { isRecord, type JsonRecord } from './request.ts';
import type { Endpoint } from './turns.ts';

const weather = {
  name: 'get_weather',
  description: 'The weather of a city.',
  schema: {
    type: 'object',
    properties: { city: { type: 'string' } },
    required: ['city'],
    additionalProperties: false,
  },
};

/** A tool to begin with. */
export function exampleTools(endpoint: Endpoint): string {
  return JSON.stringify([toolOf(endpoint, weather)], null, 2);
}

/** The tools in the form of another endpoint; what is not a function tool of the first stays as it is. */
export function translatedTools(text: string, to: Endpoint): string {
  try {
    const tools: unknown = JSON.parse(text);
    if (!Array.isArray(tools)) return text;
    return JSON.stringify(
      tools.map((tool: unknown) => translatedTool(tool, to)),
      null,
      2,
    );
  } catch {
    return text;
  }
}

function translatedTool(tool: unknown, to: Endpoint): unknown {
  const read = isRecord(tool) ? readTool(tool) : undefined;
  return read === undefined ? tool : toolOf(to, read);
}

/** A function tool of any endpoint; undefined for others. */
function readTool(tool: JsonRecord): JsonRecord | undefined {
  const { type, function: chat } = tool;
  if (isRecord(chat)) return { ...chat, schema: chat['parameters'] };
  if ('input_schema' in tool) return { ...tool, schema: tool['input_schema'] };
  return type === 'function' ? { ...tool, schema: tool['parameters'] } : undefined;
}

function toolOf(endpoint: Endpoint, tool: JsonRecord): JsonRecord {
  const { name, description, schema } = tool;
  const named = { name, ...(description === undefined ? {} : { description }) };
  if (endpoint === 'messages') return { ...named, input_schema: schema ?? { type: 'object' } };
  const definition = { ...named, ...(schema === undefined ? {} : { parameters: schema }) };
  return endpoint === 'chat'
    ? { type: 'function', function: definition }
    : { type: 'function', ...definition, strict: false };
}
