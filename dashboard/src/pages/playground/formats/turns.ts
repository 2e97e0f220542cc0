/** A conversation of the playground in no format, so that all endpoints can be asked with it. */

export type Endpoint = 'chat' | 'messages' | 'responses';

export interface Picture {
  /** Of the file, for people. */
  readonly name: string;
  /** `image/png`. */
  readonly type: string;
  readonly base64: string;
}

export interface ToolCall {
  readonly id: string;
  readonly name: string;
  /** JSON text, as the model wrote it. */
  readonly arguments: string;
}

export interface UserTurn {
  readonly role: 'user';
  readonly text: string;
  readonly pictures: readonly Picture[];
}

export interface AssistantTurn {
  readonly role: 'assistant';
  readonly text: string;
  readonly reasoning: string;
  readonly calls: readonly ToolCall[];
}

export interface ToolTurn {
  readonly role: 'tool';
  readonly results: readonly { readonly id: string; readonly text: string }[];
}

export type Turn = UserTurn | AssistantTurn | ToolTurn;

/** What is sent besides the conversation. Empty texts are omitted. */
export interface CallSettings {
  readonly endpoint: Endpoint;
  readonly model: string;
  readonly stream: boolean;
  readonly system: string;
  /** Maximum tokens of the answer. */
  readonly maxTokens: string;
  readonly temperature: string;
  readonly topP: string;
  readonly topK: string;
  /** Stop sequences, one a line. */
  readonly stop: string;
  readonly seed: string;
  readonly frequencyPenalty: string;
  readonly presencePenalty: string;
  /** How much the model reasons: one of `efforts`. */
  readonly effort: string;
  /** Maximum tokens of reasoning. */
  readonly thinkingBudget: string;
  /** Form of the answer: one of `formats`. */
  readonly format: string;
  /** JSON Schema of the answer, for the format `schema`. */
  readonly schema: string;
  /** JSON list, in the endpoint's own form. */
  readonly tools: string;
  /** One of `toolChoices`. */
  readonly toolChoice: string;
  /** JSON object whose members are added to the request. */
  readonly more: string;
}

export const noSettings: CallSettings = {
  endpoint: 'chat',
  model: '',
  stream: true,
  system: '',
  maxTokens: '',
  temperature: '',
  topP: '',
  topK: '',
  stop: '',
  seed: '',
  frequencyPenalty: '',
  presencePenalty: '',
  effort: '',
  thinkingBudget: '',
  format: '',
  schema: '',
  tools: '',
  toolChoice: '',
  more: '',
};

type SomeEndpoints = readonly Endpoint[];

/** Settings that only some endpoints have. On others they are neither shown nor sent. */
const limited: { readonly [S in keyof CallSettings]?: SomeEndpoints } = {
  topK: ['messages'],
  stop: ['chat', 'messages'],
  seed: ['chat'],
  frequencyPenalty: ['chat'],
  presencePenalty: ['chat'],
  thinkingBudget: ['messages'],
};

export function hasSetting(endpoint: Endpoint, setting: keyof CallSettings): boolean {
  return limited[setting]?.includes(endpoint) ?? true;
}

const openaiEfforts = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh'] as const;

export const efforts: { readonly [E in Endpoint]: readonly string[] } = {
  chat: openaiEfforts,
  messages: ['none', 'low', 'medium', 'high', 'xhigh', 'max'],
  responses: openaiEfforts,
};

export const formats: { readonly [E in Endpoint]: readonly string[] } = {
  chat: ['json', 'schema'],
  messages: ['schema'],
  responses: ['json', 'schema'],
};

export const toolChoices = ['auto', 'required', 'none'] as const;

export const endpointPaths: { readonly [E in Endpoint]: string } = {
  chat: '/v1/chat/completions',
  messages: '/v1/messages',
  responses: '/v1/responses',
};

export const endpoints: readonly Endpoint[] = ['chat', 'messages', 'responses'];

/** Of the endpoints' ids in the ledger. */
export const callEndpoints: { readonly [id: string]: Endpoint } = {
  'openai-chat': 'chat',
  'anthropic-messages': 'messages',
  'openai-responses': 'responses',
};
