/** The vendors, one record each: what they know, and how they refuse the rest. */
import type { Json, JsonObject } from '../../src/json/value.ts';
import { listAt, objectAt, textAt } from '../support/reading.ts';
import type { Fault, Path, Refusal, VendorRules } from './rules.ts';

const dotted = (path: Path): string => path.join('.');
const bracketed = (path: Path): string =>
  path.map((key, i) => (typeof key === 'number' ? `[${key}]` : i === 0 ? key : `.${key}`)).join('');

function openaiError(message: string, code: string | null, path: Path): Refusal {
  const param = path.length === 0 ? null : bracketed(path);
  return { status: 400, body: { error: { message, type: 'invalid_request_error', param, code } } };
}

function openaiRefuses({ kind, path, taken }: Fault): Refusal {
  const name = bracketed(path);
  switch (kind) {
    case 'unknown':
      return path.length === 1
        ? openaiError(`Unrecognized request argument supplied: ${name}`, null, [])
        : openaiError(`Unknown parameter: '${name}'.`, 'unknown_parameter', path);
    case 'unsupported': {
      const hint = name === 'max_tokens' ? " Use 'max_completion_tokens' instead." : '';
      const text = `Unsupported parameter: '${name}' is not supported with this model.${hint}`;
      return openaiError(text, 'unsupported_parameter', path);
    }
    case 'many': {
      const text = `Invalid '${name}': array too long. Expected an array with maximum length ${taken}, but got an array with length 5 instead.`;
      return openaiError(text, 'array_above_max_length', path);
    }
    case 'id': {
      const text = `Invalid '${name}': string too long. Expected a string with maximum length 40, but got a string with length 43 instead.`;
      return openaiError(text, 'string_above_max_length', path);
    }
    case 'media': {
      const text = `Invalid '${name}'. Image URLs are only allowed for messages with role 'user'.`;
      return openaiError(text, 'invalid_value', path);
    }
    default:
      return openaiError(
        `Unsupported value: '${name}' does not support this value with this model. Supported values are: ${taken ?? 'others'}.`,
        'unsupported_value',
        path,
      );
  }
}

/** A list of names. */
function words(names: string): readonly string[] {
  return names.split(' ');
}

const sampling = ['temperature', 'top_p', 'presence_penalty', 'frequency_penalty'] as const;
const output = ['max_tokens', 'max_completion_tokens', 'stop', 'n', 'response_format'] as const;
const tooling = ['tools', 'tool_choice', 'parallel_tool_calls'] as const;
const streaming = ['stream', 'stream_options'] as const;
const base = ['model', 'messages', ...streaming, ...tooling, ...output, ...sampling] as const;
const standardRoles = ['system', 'user', 'assistant', 'tool'] as const;
const allChoices = ['auto', 'none', 'required', 'function', 'allowed_tools', 'custom'] as const;

const openaiMembers = [
  ...base,
  ...words('logit_bias logprobs top_logprobs modalities prediction audio seed'),
  ...words('service_tier user safety_identifier prompt_cache_key prompt_cache_retention'),
  ...words('function_call functions reasoning_effort verbosity web_search_options'),
  ...words('metadata store'),
];
const openaiMessages = {
  system: ['role', 'content', 'name'],
  developer: ['role', 'content', 'name'],
  user: ['role', 'content', 'name'],
  assistant: [
    ...words('role content name refusal audio annotations'),
    ...words('tool_calls function_call'),
  ],
  tool: ['role', 'content', 'tool_call_id', 'name'],
};

const openai = {
  provider: 'openai',
  members: openaiMembers,
  roles: [...standardRoles, 'developer', 'function'],
  messageMembers: openaiMessages,
  partMembers: [],
  functionMembers: ['name', 'description', 'parameters', 'strict'],
  system: 'anywhere',
  callIds: /^.{1,40}$/,
  images: 'url',
  toolChoices: allChoices,
  maxStops: 4,
  formats: ['text', 'json_object', 'json_schema'],
  refuse: openaiRefuses,
} as const;

/** Mistral lists what it forbids as its validator does; other faults are one message. */
function mistralRefuses({ kind, path }: Fault): Refusal {
  if (kind === 'order') {
    const message = `Unexpected role at ${dotted(path)}`;
    return { status: 400, body: mistralBody(message, '3230') };
  }
  if (kind === 'id') {
    const message = `Tool call id was x but must be a-z, A-Z, 0-9, with a length of 9.`;
    return { status: 400, body: mistralBody(message, '3280') };
  }
  const type = kind === 'unknown' || kind === 'unsupported' ? 'extra_forbidden' : 'literal_error';
  const msg = type === 'extra_forbidden' ? 'Extra inputs are not permitted' : 'Input is not valid';
  const detail = [{ type, loc: ['body', ...path], msg, input: null }];
  return { status: 422, body: mistralBody({ detail }, null) };
}

function mistralBody(message: Json, code: string | null): JsonObject {
  return { object: 'error', message, type: 'invalid_request_error', param: null, code };
}

function groqRefuses({ kind, path }: Fault): Refusal {
  const last = String(path.at(-1));
  const where = `'${dotted(path.slice(0, -1))}'`;
  const said: { readonly [kind: string]: string } = {
    unknown:
      path.length === 1
        ? `property '${last}' is unsupported`
        : `${where} : for 'role:assistant' the following must be satisfied[(${where} : property '${last}' is unsupported)]`,
    unsupported: `\`${dotted(path)}\` is not supported with this model`,
    role: `${where} : discriminator property 'role' has invalid value`,
    many: `'stop' : maximum number of items is 4`,
    media: `'${dotted(path)}' : value must be a string`,
  };
  const message = said[kind] ?? `'${dotted(path)}' : value is not one of the allowed values`;
  return { status: 400, body: { error: { message, type: 'invalid_request_error' } } };
}

function deepseekRefuses({ kind, path }: Fault): Refusal {
  const name = bracketed(path);
  const said: { readonly [kind: string]: string } = {
    role: `Failed to deserialize the JSON body into the target type: ${name}: unknown variant \`developer\`, expected one of \`system\`, \`user\`, \`assistant\`, \`tool\`, \`latest_reminder\` at line 1 column 120`,
    media: `Failed to deserialize the JSON body into the target type: ${name}: unknown variant \`image_url\`, expected \`text\` at line 1 column 120`,
    value: 'This response_format type is unavailable now',
    missing: 'The `reasoning_content` in the thinking mode must be passed back to the API.',
  };
  const message = said[kind] ?? `Invalid ${name}`;
  const body = { error: { message, type: 'invalid_request_error', param: null, code: null } };
  return { status: kind === 'role' || kind === 'media' ? 422 : 400, body };
}

function xaiRefuses({ kind, path }: Fault): Refusal {
  const name = bracketed(path).replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
  const error =
    kind === 'unsupported'
      ? `Argument not supported on this model: ${name}`
      : `Invalid request content: ${name}`;
  return {
    status: 400,
    body: { code: 'Client specified an invalid argument', error },
  };
}

function cerebrasRefuses({ kind, path }: Fault): Refusal {
  const name = dotted(path.length === 1 ? ['body', ...path] : path);
  const said = kind === 'unknown' || kind === 'unsupported' ? 'is unsupported' : 'is not valid';
  const message = `${name}: property '${name}' ${said}`;
  return {
    status: 400,
    body: {
      message,
      type: 'invalid_request_error',
      param: 'validation_error',
      code: 'wrong_api_format',
    },
  };
}

function ollamaRefuses({ kind, path }: Fault): Refusal {
  const message =
    kind === 'media'
      ? 'invalid image input'
      : kind === 'system'
        ? 'System message must be at the beginning.'
        : `json: invalid ${bracketed(path)}`;
  const body = { error: { message, type: 'invalid_request_error', param: null, code: null } };
  return { status: 400, body };
}

function vllmRefuses({ kind, path }: Fault): Refusal {
  const message =
    kind === 'system' || kind === 'role'
      ? kind === 'system'
        ? 'System message must be at the beginning.'
        : 'Unexpected message role.'
      : `1 validation error: ${bracketed(path)}`;
  return {
    status: 400,
    body: { error: { message, type: 'BadRequestError', param: null, code: 400 } },
  };
}

function llamaCppRefuses({ kind, path }: Fault): Refusal {
  const why =
    kind === 'system' ? 'System message must be at the beginning.' : 'Unexpected message role.';
  const message =
    kind === 'system' || kind === 'role'
      ? `Unable to generate parser for this template. Automatic parser generation failed: \n------------\nError: Jinja Exception: ${why}`
      : `Invalid ${bracketed(path)}`;
  return { status: 400, body: { error: { code: 400, message, type: 'invalid_request_error' } } };
}

function openrouterRefuses({ path }: Fault): Refusal {
  const raw = JSON.stringify({
    type: 'error',
    error: { type: 'invalid_request_error', message: `${dotted(path)}: invalid signature` },
  });
  const metadata = { provider_name: 'Anthropic', raw };
  return {
    status: 400,
    body: { error: { code: 400, message: 'Provider returned error', metadata } },
  };
}

function geminiRefuses({ kind, path }: Fault): Refusal {
  const last = String(path.at(-1));
  const place = path.length === 1 ? '' : ` at '${bracketed(path.slice(0, -1))}'`;
  const message =
    kind === 'unknown' || kind === 'unsupported'
      ? `Invalid JSON payload received. Unknown name "${last}"${place}: Cannot find field.`
      : kind === 'missing'
        ? 'Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly.'
        : `Invalid value at '${bracketed(path)}'`;
  const error = { code: 400, message, status: 'INVALID_ARGUMENT' };
  return { status: 400, body: [{ error }] };
}

const groqMembers = [
  ...base,
  ...words('seed user metadata store service_tier reasoning_effort reasoning_format'),
  ...words('include_reasoning logprobs top_logprobs logit_bias function_call functions'),
  ...words('citation_options documents disable_tool_validation search_settings'),
];
const groqMessages = {
  system: ['role', 'content'],
  user: ['role', 'content'],
  assistant: ['role', 'content', 'tool_calls', 'function_call', 'reasoning'],
  tool: ['role', 'content', 'tool_call_id'],
  function: ['role', 'content', 'name'],
};
const groq = {
  provider: 'groq',
  members: groqMembers,
  values: { n: [1] },
  roles: [...standardRoles, 'function'],
  messageMembers: groqMessages,
  partMembers: [],
  system: 'anywhere',
  images: 'none',
  toolChoices: ['auto', 'none', 'required', 'function'],
  maxStops: 4,
  refuse: groqRefuses,
} as const;

const cerebrasMembers = [
  ...streaming,
  ...tooling,
  ...words('model messages temperature top_p'),
  ...words('max_tokens max_completion_tokens stop n response_format seed user'),
  ...words('logprobs top_logprobs reasoning_effort service_tier prediction prompt_cache_key'),
  ...words('logit_bias presence_penalty frequency_penalty disable_reasoning clear_thinking'),
];
const cerebrasMessages = {
  system: ['role', 'content', 'name'],
  user: ['role', 'content', 'name'],
  assistant: ['role', 'content', 'name', 'tool_calls', 'reasoning'],
  tool: ['role', 'content', 'name', 'tool_call_id'],
};
const cerebras = {
  provider: 'cerebras',
  members: cerebrasMembers,
  values: { n: [1] },
  roles: standardRoles,
  messageMembers: cerebrasMessages,
  partMembers: [],
  system: 'anywhere',
  images: 'none',
  maxStops: 4,
  refuse: cerebrasRefuses,
} as const;

const engine = {
  roles: standardRoles,
  system: 'first',
} as const;

/** Thinking models refuse a call of theirs that comes back without what they thought. */
function deepseekHistory(message: JsonObject, path: Path): readonly Fault[] {
  return typeof message['reasoning_content'] === 'string' ? [] : [{ kind: 'missing', path }];
}

/** What this very model signed begins so in the answers of these upstreams. */
export const openrouterSignature = 'b3BlbnJvdXRlci1zaWduZWQ';
export const anthropicSignature = 'YW50aHJvcGljLXNpZ25lZA';
export const geminiSignature = 'Z2VtaW5pLXNpZ25lZA';

/** Models of one maker read what any of them signed. */
function isClaudes(signature: string): boolean {
  return signature.startsWith(openrouterSignature) || signature.startsWith(anthropicSignature);
}

function openrouterHistory(message: JsonObject, path: Path): readonly Fault[] {
  return listAt(message, 'reasoning_details')
    .filter((detail) => !isClaudes(textAt(detail, 'signature')))
    .map((): Fault => ({ kind: 'value', path: [...path, 'reasoning_details'] }));
}

function geminiHistory(message: JsonObject, path: Path): readonly Fault[] {
  const [first] = listAt(message, 'tool_calls');
  if (first === undefined) return [];
  const google = objectAt(objectAt(first, 'extra_content'), 'google');
  const signature = textAt(google, 'thought_signature');
  const taken =
    signature.startsWith(geminiSignature) || signature === 'skip_thought_signature_validator';
  return taken ? [] : [{ kind: 'missing', path }];
}

const geminiMembers = [
  ...streaming,
  ...tooling,
  ...words('model messages temperature top_p extra_body'),
  ...words('max_tokens max_completion_tokens stop n response_format reasoning_effort modalities'),
];
const gemini = {
  provider: 'gemini-compatible',
  members: geminiMembers,
  roles: standardRoles,
  messageMembers: {
    system: ['role', 'content', 'name'],
    user: ['role', 'content', 'name'],
    assistant: ['role', 'content', 'name', 'tool_calls', 'extra_content'],
    tool: ['role', 'content', 'name', 'tool_call_id'],
  },
  partMembers: [],
  functionMembers: ['name', 'description', 'parameters'],
  system: 'anywhere',
  images: 'url',
  toolChoices: ['auto', 'none', 'required', 'function'],
  maxStops: 5,
  refuse: geminiRefuses,
} as const;

export const vendors: readonly VendorRules[] = [
  { ...openai, model: 'gpt-4o', refused: ['reasoning_effort', 'verbosity', 'web_search_options'] },
  {
    ...openai,
    model: 'o3',
    values: { temperature: [1], reasoning_effort: ['low', 'medium', 'high'] },
    refused: [
      ...words('max_tokens top_p presence_penalty frequency_penalty stop prediction verbosity'),
      ...words('logprobs top_logprobs logit_bias parallel_tool_calls web_search_options'),
    ],
  },
  {
    ...openai,
    model: 'gpt-5.1',
    values: { temperature: [1] },
    refused: [
      ...words('max_tokens top_p presence_penalty frequency_penalty stop prediction'),
      ...words('logprobs top_logprobs logit_bias'),
    ],
  },
  {
    provider: 'mistral',
    model: 'mistral-large-latest',
    members: [
      ...tooling,
      ...sampling,
      ...words('model messages stream max_tokens stop n'),
      ...words('response_format random_seed safe_prompt prediction prompt_mode'),
      ...words('reasoning_effort metadata'),
    ],
    refused: ['reasoning_effort'],
    roles: standardRoles,
    messageMembers: {
      system: ['role', 'content'],
      user: ['role', 'content'],
      assistant: ['role', 'content', 'tool_calls', 'prefix'],
      tool: ['role', 'content', 'tool_call_id', 'name'],
    },
    partMembers: [],
    functionMembers: ['name', 'description', 'parameters', 'strict'],
    system: 'anywhere',
    callIds: /^[a-zA-Z0-9]{9}$/,
    images: 'url',
    toolChoices: ['auto', 'none', 'any', 'required', 'function'],
    formats: ['text', 'json_object', 'json_schema'],
    order: {
      after: {
        system: ['system', 'user', 'assistant', 'prefix'],
        user: ['user', 'system', 'assistant', 'prefix'],
        assistant: ['user', 'assistant', 'tool', 'prefix'],
        tool: ['tool', 'assistant', 'prefix'],
      },
      last: ['user', 'tool', 'prefix'],
    },
    refuse: mistralRefuses,
  },
  {
    ...groq,
    model: 'llama-3.3-70b-versatile',
    messageMembers: {
      ...groqMessages,
      assistant: ['role', 'content', 'tool_calls', 'function_call'],
    },
    refused: ['logprobs', 'top_logprobs', 'logit_bias', 'reasoning_effort', 'reasoning_format'],
    formats: ['text', 'json_object'],
  },
  {
    ...groq,
    model: 'openai/gpt-oss-120b',
    wants: 'kept',
    refused: ['logprobs', 'top_logprobs', 'logit_bias'],
    values: { n: [1], reasoning_effort: ['low', 'medium', 'high'] },
  },
  {
    provider: 'deepseek',
    model: 'deepseek-v4',
    roles: [...standardRoles, 'latest_reminder'],
    system: 'anywhere',
    images: 'none',
    unread: words('max_completion_tokens functions reasoning enable_thinking chat_template_kwargs'),
    maxStops: 16,
    formats: ['text', 'json_object'],
    history: deepseekHistory,
    wants: 'always',
    refuse: deepseekRefuses,
  },
  {
    provider: 'xai',
    model: 'grok-4',
    roles: standardRoles,
    system: 'anywhere',
    images: 'url',
    refused: ['stop', 'presence_penalty', 'frequency_penalty', 'reasoning_effort'],
    unread: words('functions reasoning thinking enable_thinking chat_template_kwargs top_k'),
    refuse: xaiRefuses,
  },
  {
    ...cerebras,
    model: 'llama-3.3-70b',
    messageMembers: {
      ...cerebrasMessages,
      assistant: ['role', 'content', 'name', 'tool_calls'],
    },
    refused: ['reasoning_effort'],
  },
  {
    ...cerebras,
    model: 'gpt-oss-120b',
    wants: 'kept',
    values: { n: [1], reasoning_effort: ['low', 'medium', 'high'] },
  },
  {
    ...engine,
    provider: 'ollama',
    model: 'qwen3:8b',
    wants: 'kept',
    unread: [
      ...words('max_completion_tokens tool_choice parallel_tool_calls n logit_bias functions'),
      ...words('reasoning thinking enable_thinking chat_template_kwargs top_k'),
    ],
    images: 'base64',
    refuse: ollamaRefuses,
  },
  {
    ...engine,
    provider: 'vllm',
    model: 'Qwen/Qwen3-8B',
    unread: words('functions reasoning thinking enable_thinking'),
    wants: 'kept',
    images: 'url',
    refuse: vllmRefuses,
  },
  {
    ...engine,
    provider: 'llama-cpp',
    model: 'qwen3-8b.gguf',
    unread: words('max_completion_tokens functions reasoning thinking enable_thinking'),
    images: 'base64',
    refuse: llamaCppRefuses,
  },
  {
    // An address that no row knows.
    ...engine,
    provider: 'unknown',
    config: { dialect: 'openai-chat' },
    model: 'some-model',
    images: 'url',
    refuse: vllmRefuses,
  },
  {
    provider: 'openrouter',
    model: 'anthropic/claude-sonnet-4.5',
    roles: [...standardRoles, 'developer'],
    system: 'anywhere',
    images: 'url',
    history: openrouterHistory,
    reads: 'claude',
    wants: 'always',
    refuse: openrouterRefuses,
  },
  { ...gemini, model: 'gemini-2.5-flash' },
  { ...gemini, model: 'gemini-3-flash', history: geminiHistory, wants: 'always' },
];

/** A messages vendor: thinking that it did not sign is refused. */
export const anthropic: VendorRules = {
  provider: 'anthropic',
  model: 'claude-opus-5',
  roles: ['user', 'assistant', 'system'],
  system: 'anywhere',
  images: 'url',
  reads: 'claude',
  wants: 'always',
  history: (message, path) =>
    listAt(message, 'content')
      .filter(({ type }) => type === 'thinking' || type === 'redacted_thinking')
      .filter((block) => !isClaudes(textAt(block, 'signature')))
      .map((): Fault => ({ kind: 'value', path: [...path, 'content', 0] })),
  refuse: ({ path }) => ({
    status: 400,
    body: {
      type: 'error',
      error: {
        type: 'invalid_request_error',
        message: `${dotted(path)}: Invalid \`signature\` in \`thinking\` block`,
      },
    },
  }),
};
