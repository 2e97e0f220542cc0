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

/** What is sent besides the conversation. Empty texts are left out. */
export interface CallSettings {
  readonly endpoint: Endpoint;
  readonly model: string;
  readonly stream: boolean;
  readonly system: string;
  /** Maximum tokens of the answer. */
  readonly maxTokens: string;
  readonly temperature: string;
  /** JSON list, in the endpoint's own form. */
  readonly tools: string;
  /** JSON object whose members are added to the request. */
  readonly more: string;
}

export const endpointPaths: { readonly [E in Endpoint]: string } = {
  chat: '/v1/chat/completions',
  messages: '/v1/messages',
  responses: '/v1/responses',
};
