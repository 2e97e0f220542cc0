/** Chat requests, one for each field and case of tools and formats. */
import type { ChatCompletionCreateParamsBase } from 'openai/resources/chat/completions/completions';
import type { FunctionDefinition } from 'openai/resources/shared';
import { objectSchema, type Samples } from './sample.ts';

type Sent = Partial<ChatCompletionCreateParamsBase>;
type JsonSchema = Extract<
  NonNullable<ChatCompletionCreateParamsBase['response_format']>,
  { type: 'json_schema' }
>['json_schema'];

function tool(definition: FunctionDefinition): Sent {
  return { tools: [{ type: 'function', function: definition }] };
}

function format(definition: JsonSchema): Sent {
  return { response_format: { type: 'json_schema', json_schema: definition } };
}

const formatAt = 'response_format[json_schema].json_schema';
const enforced = { output_config: { format: { type: 'json_schema', schema: objectSchema } } };

export const chatToolSamples: Samples<Sent> = {
  'tools[function].function.name': {
    sends: tool({ name: 'weather', description: 'Tells.', parameters: objectSchema, strict: true }),
    arrives: {
      tools: [{ name: 'weather', description: 'Tells.', input_schema: objectSchema, strict: true }],
    },
    also: [
      'tools[function].function.description',
      'tools[function].function.parameters (schema of an object)',
      'tools[function].function.strict',
    ],
  },
  'tools[function].function.parameters (absent)': {
    sends: tool({ name: 'weather' }),
    arrives: { tools: [{ input_schema: { type: 'object', properties: {} } }] },
    named: 'tools[function].function',
  },
  'tools[function].function.parameters (schema of something else)': {
    sends: tool({ name: 'weather', parameters: { type: 'string' } }),
  },
  'tools[custom].custom.name': {
    sends: {
      tools: [
        {
          type: 'custom',
          custom: { name: 'shell', description: 'Runs.', format: { type: 'text' } },
        },
      ],
    },
    arrives: {
      tools: [
        {
          name: 'shell',
          description: 'Runs.',
          input_schema: { properties: { input: { type: 'string' } } },
        },
      ],
    },
    also: ['tools[custom].custom.description', 'tools[custom].custom.format[text]'],
  },
  'tools[custom].custom.format[grammar]': {
    sends: {
      tools: [
        {
          type: 'custom',
          custom: {
            name: 'shell',
            format: { type: 'grammar', grammar: { definition: 'a', syntax: 'regex' } },
          },
        },
      ],
    },
  },
  'response_format[text]': {
    sends: { response_format: { type: 'text' } },
    absent: ['output_config'],
  },
  [`${formatAt}.schema (keywords that the model enforces)`]: {
    sends: format({ name: 'place', description: 'A place.', schema: objectSchema, strict: true }),
    arrives: enforced,
    also: [`${formatAt}.name`, `${formatAt}.description`, `${formatAt}.strict (true)`],
  },
  [`${formatAt}.schema (other keywords)`]: {
    sends: format({
      name: 'place',
      schema: {
        ...objectSchema,
        properties: { city: { type: 'string', minLength: 2 } },
      },
    }),
    arrives: {
      output_config: {
        format: { schema: { properties: { city: { description: '(minLength: 2)' } } } },
      },
    },
  },
  [`${formatAt}.schema (model that enforces none)`]: {
    sends: format({ name: 'place', schema: objectSchema }),
    behind: 'anthropic/claude-3-5-haiku-20241022',
    arrives: { tools: [{ input_schema: objectSchema }], tool_choice: { type: 'tool' } },
    named: 'response_format',
    absent: ['output_config'],
  },
  [`${formatAt}.schema (absent)`]: {
    sends: format({ name: 'place' }),
    named: 'response_format.json_schema.schema',
    refusedByAll: true,
  },
  [`${formatAt}.strict (false)`]: {
    sends: format({ name: 'place', schema: objectSchema, strict: false }),
    arrives: enforced,
  },
  'response_format[json_object]': {
    sends: { response_format: { type: 'json_object' } },
    absent: ['output_config'],
  },
};
