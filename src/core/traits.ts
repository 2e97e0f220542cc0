/** How upstreams differ, as data instead of code (wire/upstreams.md §6.1). One record a model. */
import type { Effort } from './conversation.ts';

export interface UpstreamTraits {
  /** The field that caps the output. */
  readonly maxTokensField: 'max_completion_tokens' | 'max_tokens';
  /** How instructions are addressed in chat. */
  readonly systemRole: 'system' | 'developer';
  /** Whether a system message may stand after the first turn; else it is tagged in a user turn. */
  readonly systemAnywhere: boolean;
  /** Whether `stream_options.include_usage` may be sent. */
  readonly usageOption: boolean;
  readonly toolChoice: boolean;
  readonly parallelFlag: boolean;
  readonly imageInput: 'none' | 'base64' | 'url';
  readonly fileInput: boolean;
  /** Images inside tool messages are accepted (not in the chat standard). */
  readonly toolResultMedia: boolean;
  readonly topK: boolean;
  readonly seed: boolean;
  readonly stopMax: number | undefined;
  readonly responseFormat: 'schema' | 'object' | 'none';
  /** `reasoning_effort` values that are known; empty = the field is never sent. */
  readonly efforts: readonly Effort[];
  /** Function tools are refused unless reasoning is switched off (OpenAI's newer chat models). */
  readonly toolsExcludeReasoning?: boolean;
  /** Messages upstreams: how thinking is asked for. */
  readonly thinking: 'adaptive' | 'budget' | 'none';
  /** Messages upstreams: temperature, top_p and top_k are accepted. */
  readonly samplingAllowed: boolean;
  /** `temperature` and `top_p` are refused together. */
  readonly temperatureExcludesTopP?: boolean;
  /** Where `metadata.user_id` goes in chat. */
  readonly endUserField: 'safety_identifier' | 'user' | undefined;
  /** `cache_control` marks are understood (Anthropic, OpenRouter). */
  readonly cacheMarks: boolean;
  /** A trailing assistant message is continued, not answered. */
  readonly prefill: boolean;
  /** Reasoning text of earlier turns is wanted back as `reasoning_content`. */
  readonly reasoningReplay: boolean;
  /** Sealed reasoning of earlier turns is wanted back as `reasoning_details` (OpenRouter). */
  readonly reasoningDetails?: boolean;
  /** Tool-call ids must be exactly nine letters and digits (Mistral). */
  readonly nineCharacterToolIds?: boolean;
  /** `completion_tokens` leaves reasoning out (xAI). */
  readonly completionExcludesReasoning: boolean;
  /** Output cap to send when the client set none and the dialect demands one. */
  readonly defaultMaxOutputTokens: number;
}

const allEfforts: readonly Effort[] = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'];

/** A generous reading of an unknown chat-completions server. */
export const chatTraits: UpstreamTraits = {
  maxTokensField: 'max_tokens',
  systemRole: 'system',
  systemAnywhere: true,
  usageOption: true,
  toolChoice: true,
  parallelFlag: true,
  imageInput: 'url',
  fileInput: true,
  toolResultMedia: false,
  topK: false,
  seed: true,
  stopMax: 4,
  responseFormat: 'schema',
  efforts: allEfforts,
  thinking: 'none',
  samplingAllowed: true,
  endUserField: 'user',
  cacheMarks: false,
  prefill: false,
  reasoningReplay: false,
  completionExcludesReasoning: false,
  defaultMaxOutputTokens: 8192,
};

/** A current messages server. */
export const messagesTraits: UpstreamTraits = {
  ...chatTraits,
  topK: true,
  seed: false,
  stopMax: undefined,
  thinking: 'adaptive',
  cacheMarks: true,
  prefill: true,
  endUserField: undefined,
};
