/** How chat servers refuse members of a request, in their own words. */
import type { JsonObject } from '../../../src/json/value.ts';
import type { UpstreamTraits } from '../../../src/core/traits.ts';

/** What a server says about a request, and what that teaches. */
export interface Row {
  readonly name: string;
  readonly status?: number;
  readonly body: unknown;
  readonly sent: JsonObject;
  readonly traits?: Partial<UpstreamTraits>;
  /** What is learned; undefined = nothing. */
  readonly learned: Partial<UpstreamTraits> | undefined;
}

export const openai = (message: string, param: string | null, code: string): unknown => ({
  error: { message, type: 'invalid_request_error', param, code },
});
const developer = [{ role: 'developer', content: 'x' }];

export const chatRows: readonly Row[] = [
  {
    name: 'OpenAI max_tokens',
    body: openai(
      "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
      'max_tokens',
      'unsupported_parameter',
    ),
    sent: { max_tokens: 100 },
    learned: { maxTokensField: 'max_completion_tokens', oneCapField: true },
  },
  {
    name: 'D13 OpenAI max_tokens, beside the name that it advises',
    body: openai(
      "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
      'max_tokens',
      'unsupported_parameter',
    ),
    sent: { max_tokens: 100, max_completion_tokens: 100 },
    learned: { maxTokensField: 'max_completion_tokens', oneCapField: true },
  },
  {
    name: 'D13 a server that advises max_tokens',
    body: openai(
      "Unsupported parameter: 'max_completion_tokens' is not supported with this model. Use 'max_tokens' instead.",
      'max_completion_tokens',
      'unsupported_parameter',
    ),
    sent: { max_tokens: 100, max_completion_tokens: 100 },
    traits: { maxTokensField: 'max_completion_tokens' },
    learned: { maxTokensField: 'max_tokens', oneCapField: true },
  },
  {
    name: 'an engine that only knows max_tokens',
    status: 422,
    body: {
      detail: [
        {
          type: 'extra_forbidden',
          loc: ['body', 'max_completion_tokens'],
          msg: 'Extra inputs are not permitted',
          input: 100,
        },
      ],
    },
    sent: { max_completion_tokens: 100 },
    traits: { maxTokensField: 'max_completion_tokens' },
    learned: { maxTokensField: 'max_tokens', oneCapField: true },
  },
  {
    name: 'OpenAI reasoning_effort, a value',
    body: openai(
      "Unsupported value: 'reasoning_effort' does not support 'xhigh' with this model. Supported values are: 'low', 'medium', and 'high'.",
      'reasoning_effort',
      'unsupported_value',
    ),
    sent: { reasoning_effort: 'xhigh' },
    traits: { efforts: ['high', 'xhigh'] },
    learned: { efforts: ['low', 'medium', 'high'] },
  },
  {
    name: 'OpenAI reasoning_effort, the field',
    body: openai(
      'Unrecognized request argument supplied: reasoning_effort',
      null,
      'invalid_request_error',
    ),
    sent: { reasoning_effort: 'low' },
    learned: { efforts: [] },
  },
  {
    name: 'Groq reasoning_effort',
    body: {
      error: {
        message: '`reasoning_effort` must be one of `none` or `default`',
        type: 'invalid_request_error',
      },
    },
    sent: { reasoning_effort: 'low' },
    learned: { efforts: ['none'] },
  },
  {
    name: 'OpenAI tools beside reasoning',
    body: openai(
      'Function tools with reasoning_effort are not supported for gpt-5.6 in /v1/chat/completions. Please use /v1/responses instead.',
      'reasoning_effort',
      'invalid_request_error',
    ),
    sent: { reasoning_effort: 'low', tools: [{}] },
    learned: { toolsExcludeReasoning: true },
  },
  {
    name: 'OpenAI temperature',
    body: openai(
      "Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value is supported.",
      'temperature',
      'unsupported_value',
    ),
    sent: { temperature: 0.2 },
    learned: { samplingAllowed: false },
  },
  {
    name: 'OpenAI stop',
    body: openai(
      "Unsupported parameter: 'stop' is not supported with this model.",
      'stop',
      'unsupported_parameter',
    ),
    sent: { stop: ['a'] },
    learned: { stopMax: 0 },
  },
  {
    name: 'too many stops',
    body: openai(
      "Invalid 'stop': array too long. Expected an array with maximum length 4, but got an array with length 5 instead.",
      'stop',
      'array_above_max_length',
    ),
    sent: { stop: ['a', 'b', 'c', 'd', 'e'] },
    traits: { stopMax: undefined },
    learned: { stopMax: 4 },
  },
  {
    name: 'xAI stop',
    body: {
      code: 'Client specified an invalid argument',
      error: 'Argument not supported on this model: stop',
    },
    sent: { stop: ['a'] },
    learned: { stopMax: 0 },
  },
  {
    name: 'Azure stream_options',
    body: openai('Unrecognized request argument supplied: stream_options', null, 'unknown'),
    sent: { stream: true, stream_options: { include_usage: true } },
    learned: { usageOption: false },
  },
  {
    name: 'Mistral stream_options',
    status: 422,
    body: {
      object: 'error',
      message: {
        detail: [
          {
            type: 'extra_forbidden',
            loc: ['body', 'stream_options'],
            msg: 'Extra inputs are not permitted',
            input: { include_usage: true },
          },
        ],
      },
      type: 'invalid_request_error',
      param: null,
      code: null,
    },
    sent: { stream: true, stream_options: { include_usage: true } },
    learned: { usageOption: false },
  },
  {
    name: 'vLLM seed',
    body: {
      object: 'error',
      message:
        "[{'type': 'extra_forbidden', 'loc': ('body', 'seed'), 'msg': 'Extra inputs are not permitted', 'input': 7}]",
      type: 'BadRequestError',
      param: null,
      code: 400,
    },
    sent: { seed: 7 },
    learned: { seed: false },
  },
  {
    name: 'Gemini seed',
    body: [
      {
        error: {
          code: 400,
          message: 'Invalid JSON payload received. Unknown name "seed": Cannot find field.',
          status: 'INVALID_ARGUMENT',
          details: [
            {
              '@type': 'type.googleapis.com/google.rpc.BadRequest',
              fieldViolations: [
                {
                  description:
                    'Invalid JSON payload received. Unknown name "seed": Cannot find field.',
                },
              ],
            },
          ],
        },
      },
    ],
    sent: { seed: 7 },
    learned: { seed: false },
  },
  {
    name: 'parallel_tool_calls',
    body: openai(
      "Unsupported parameter: 'parallel_tool_calls' is not supported with this model.",
      'parallel_tool_calls',
      'unsupported_parameter',
    ),
    sent: { parallel_tool_calls: false, tools: [{}] },
    learned: { parallelFlag: false },
  },
  {
    name: 'response_format of a schema',
    body: openai(
      "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model. Learn more about supported models at the Structured Outputs guide.",
      'response_format',
      'invalid_request_error',
    ),
    sent: { response_format: { type: 'json_schema', json_schema: {} } },
    learned: { responseFormat: 'object' },
  },
  {
    name: 'response_format at all (DeepSeek)',
    body: {
      error: {
        message: 'This response_format type is unavailable now',
        type: 'invalid_request_error',
        param: null,
        code: 'invalid_request_error',
      },
    },
    sent: { response_format: { type: 'json_object' } },
    traits: { responseFormat: 'object' },
    learned: { responseFormat: 'none' },
  },
  {
    name: 'vLLM tool_choice',
    body: {
      object: 'error',
      message:
        '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set; tool_choice is not supported',
      type: 'BadRequestError',
      code: 400,
    },
    sent: { tool_choice: 'auto', tools: [{}] },
    learned: { toolChoice: false },
  },
  {
    name: 'developer role',
    body: openai(
      "Invalid value: 'developer'. Supported values are: 'system', 'assistant', 'user', 'function', and 'tool'.",
      'messages[0].role',
      'invalid_value',
    ),
    sent: { messages: developer },
    traits: { systemRole: 'developer' },
    learned: { systemRole: 'system', developerRole: false },
  },
  {
    name: 'developer role, pydantic',
    status: 422,
    body: {
      detail: [
        {
          loc: ['body', 'messages', 0, 'role'],
          msg: "Input should be 'system', 'user', 'assistant' or 'tool'; unexpected developer",
          type: 'literal_error',
        },
      ],
    },
    sent: { messages: developer },
    traits: { systemRole: 'developer' },
    learned: { systemRole: 'system', developerRole: false },
  },
  {
    name: 'prompt_cache_breakpoint',
    body: openai(
      "Unknown parameter: 'messages[0].content[0].prompt_cache_breakpoint'.",
      'messages[0].content[0].prompt_cache_breakpoint',
      'unknown_parameter',
    ),
    sent: { messages: [] },
    traits: { cacheBreakpoints: true },
    learned: { cacheBreakpoints: false },
  },
  {
    name: 'safety_identifier (Azure)',
    body: openai(
      "Unknown parameter: 'safety_identifier'.",
      'safety_identifier',
      'unknown_parameter',
    ),
    sent: { safety_identifier: 'u' },
    traits: { endUserField: 'safety_identifier' },
    learned: { endUserField: 'user' },
  },
  {
    name: 'D13 members that have no trait of their own',
    body: {
      error: { message: "property 'logprobs' is unsupported, property 'store' is unsupported" },
    },
    sent: { logprobs: true, store: true },
    learned: { refuses: ['logprobs', 'store'] },
  },
  {
    name: 'D13 one more of them',
    body: openai('Unrecognized request argument supplied: metadata', null, 'x'),
    sent: { metadata: { a: 'b' } },
    traits: { refuses: ['store'] },
    learned: { refuses: ['store', 'metadata'] },
  },
  {
    name: 'D13 a value that is wrong is not left out',
    body: openai("Invalid 'metadata': too many properties.", 'metadata', 'x'),
    sent: { metadata: { a: 'b' } },
    learned: undefined,
  },
  {
    name: 'D13 an answer without the tools would be another one, in either spelling',
    body: openai("Unknown parameter: 'functions'.", 'functions', 'unknown_parameter'),
    sent: { functions: [{ name: 'f' }] },
    learned: undefined,
  },
  {
    name: 'strict tools',
    body: openai(
      "Unknown parameter: 'tools[0].function.strict'.",
      'tools[0].function.strict',
      'unknown_parameter',
    ),
    sent: { tools: [{ type: 'function', function: { name: 'f', strict: true } }] },
    learned: { schemaRules: 'resolved', strictSchemas: false },
  },
  {
    name: 'E11 an upstream that only streams',
    body: { detail: 'Stream must be set to true' },
    sent: {},
    learned: { streams: 'only' },
  },
  {
    name: 'E11 a model that never streams',
    body: openai(
      "Unsupported value: 'stream' does not support true with this model. Only the default (false) value is supported.",
      'stream',
      'unsupported_value',
    ),
    sent: { stream: true },
    learned: { streams: 'never' },
  },
  {
    name: 'a fault of the conversation itself',
    body: openai(
      "Invalid value for 'content': expected a string, got null.",
      'messages.[1].content',
      'invalid_value',
    ),
    sent: { max_tokens: 5, stop: ['a'], seed: 1, temperature: 0.5 },
    learned: undefined,
  },
  {
    name: 'the prompt is too long',
    body: openai(
      "This model's maximum context length is 8192 tokens, however you requested 9000 tokens (max_tokens).",
      'messages',
      'context_length_exceeded',
    ),
    sent: { max_tokens: 5000 },
    learned: undefined,
  },
  {
    name: 'a server that failed',
    status: 500,
    body: openai("'max_tokens' is not supported", 'max_tokens', 'unsupported_parameter'),
    sent: { max_tokens: 5 },
    learned: undefined,
  },
  {
    name: 'OpenAI top_k',
    body: openai('Unrecognized request argument supplied: top_k', null, ''),
    sent: { top_k: 5 },
    traits: { topK: true },
    learned: { topK: false },
  },
  {
    name: 'OpenAI system role',
    body: openai(
      "Unsupported value: 'messages[0].role' does not support 'system' with this model.",
      'messages[0].role',
      'unsupported_value',
    ),
    sent: { messages: [{ role: 'system', content: 'x' }] },
    learned: { systemRole: 'developer', developerRole: true, refusesSystemRole: true },
  },
  {
    name: 'C1 a late system message',
    body: { error: { message: 'System message must be at the beginning.', code: 400 } },
    sent: { messages: [] },
    traits: { systemAnywhere: true },
    learned: { systemAnywhere: false },
  },
  {
    name: 'Bedrock user',
    body: { message: 'Malformed input request: #: extraneous key [user] is not permitted' },
    sent: { user: 'u' },
    learned: { endUserField: undefined },
  },
];
