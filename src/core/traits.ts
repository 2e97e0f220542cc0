/** How upstreams differ, as data instead of code. One record a model. */
import type { Effort } from './conversation.ts';
import type { JsonObject } from '../json/value.ts';

/**
 * The member that controls reasoning:
 * - `effort`: `reasoning_effort: "…"` (OpenAI and most others)
 * - `openrouter`: `reasoning: {effort}` or `{max_tokens}`
 * - `thinking-type`: `thinking: {type: "enabled" | "disabled"}` (DeepSeek, Z.ai, Moonshot), plus the effort
 * where the model knows effort words
 * - `template`: `chat_template_kwargs: {enable_thinking}` (vLLM, SGLang, llama.cpp), and the effort
 * - `qwen`: `enable_thinking` and `thinking_budget`
 * - `gemini`: `reasoning_effort`, or a budget in `extra_body.google.thinking_config`
 * - `none`: reasoning cannot be controlled
 */
export type ReasoningControl =
  'effort' | 'openrouter' | 'thinking-type' | 'template' | 'qwen' | 'gemini' | 'none';

/**
 * Which parts of JSON Schema a server refuses in tools. `resolved`: references and `const`, and
 * objects without `properties`; `openapi`: all but the OpenAPI subset that Gemini takes.
 */
export type SchemaRules = 'resolved' | 'openapi';

export interface UpstreamTraits {
  /** A row describes this server; else the traits are a generous guess, and relayed members that it may know stay. */
  readonly known?: true;
  /** Top-level members of chat requests that are refused, or skipped although they mean something. */
  readonly refuses?: readonly string[];
  /**
   * Members of other vendors that are known as well, of a server that refuses all others
   * (`dialects/openai-chat/shape.ts`); absent = unknown members are skipped.
   */
  readonly extensions?: readonly string[];
  /** The field that caps the output. */
  readonly maxTokensField: 'max_completion_tokens' | 'max_tokens';
  /** The other spelling of the cap is refused or skipped. */
  readonly oneCapField?: true;
  /** How instructions are addressed in chat. */
  readonly systemRole: 'system' | 'developer';
  /** Instructions may be sent as `developer` messages; else they are sent as `system`. */
  readonly developerRole?: boolean;
  /** Messages with the role `system` are refused; else they are taken, whatever `systemRole` says. */
  readonly refusesSystemRole?: true;
  /**
   * Whether a system message may be after the first turn; else there is one in front, and what comes
   * after the first answer is tagged in a user turn.
   */
  readonly systemAnywhere: boolean;
  /** Whether `stream_options.include_usage` may be sent. */
  readonly usageOption: boolean;
  readonly toolChoice: boolean;
  readonly parallelFlag: boolean;
  /** `tool_choice` may be `allowed_tools` (OpenAI); else only the allowed tools are offered. */
  readonly allowedTools?: true;
  /** `tool_choice` may be `any` as well as `required` (Mistral). */
  readonly anyToolWord?: true;
  /** Tools with free text as their input are known (OpenAI). */
  readonly customTools?: true;
  readonly imageInput: 'none' | 'base64' | 'url';
  readonly fileInput: boolean;
  /** A Converse model takes audio. Other dialects carry audio without this trait. */
  readonly audioInput?: boolean;
  /** Images inside tool messages are accepted (not in the chat standard). */
  readonly toolResultMedia: boolean;
  readonly topK: boolean;
  readonly seed: boolean;
  /** Its name, where it is another one (Mistral). */
  readonly seedField?: 'random_seed';
  /** Stop strings in one request; undefined = any number, 0 = the field is not known. */
  readonly stopMax: number | undefined;
  /** Stop strings of white space alone are refused: the gateway searches for them itself. */
  readonly refusesBlankStops?: boolean;
  /**
   * Translated calls go up as streams even where the client wants a document (`always`), or never do;
   * absent = as the client requested. A stream outlives the limits that providers set for documents.
   * `only`: documents are refused, so that relayed calls go up as streams as well.
   */
  readonly streams?: 'always' | 'only' | 'never';
  readonly responseFormat: 'schema' | 'object' | 'none';
  /** Chat upstreams: in which members reasoning is requested and switched off. */
  readonly reasoningControl: ReasoningControl;
  /** Words of effort that are known; empty = none is ever sent. */
  readonly efforts: readonly Effort[];
  /** Gemini upstreams: a long answer may be paused, and continues in a further request. */
  readonly continuation?: boolean;
  /** It may reason for minutes before its first event, whether reasoning was requested or not (R7). */
  readonly reasonsFirst?: boolean;
  /** Responses upstreams: ids of items must begin with the prefix of their type, or are refused. */
  readonly itemIdPrefixes?: true;
  /** Responses upstreams: takes the members in which Codex describes its session. */
  readonly clientMetadata?: true;
  /** Responses upstreams: values of `include` that are refused. */
  readonly refusedIncludes?: readonly string[];
  /** Responses upstreams: `/responses/compact` is known. */
  readonly compaction?: true;
  /** The least cap on output tokens that the server takes: a smaller one is raised to it. Absent = any. */
  readonly minOutputTokens?: number;
  /** Responses upstreams: a summary of the reasoning may be requested. */
  readonly reasoningSummary?: boolean;
  /** A budget of reasoning tokens is taken as it is, in the form of `reasoningControl`. */
  readonly reasoningBudget?: boolean;
  /** Function tools are refused unless reasoning is switched off (OpenAI's newer chat models). */
  readonly toolsExcludeReasoning?: boolean;
  /** Messages upstreams: how thinking is requested. */
  readonly thinking: 'adaptive' | 'budget' | 'none';
  /** The value of `thinking.type` that switches it off (messages upstreams); `never` = nothing does. */
  readonly thinkingOff?: 'disabled' | 'between_tools' | 'never';
  /** Messages upstreams: a budget of thinking is refused; `adaptive` is the only way to request it. */
  readonly refusesBudgets?: boolean;
  /**
   * Messages upstreams: thinking is refused together with sampling parameters, a forced tool call or a prefill,
   * and a turn with answered tool calls must begin with signed thinking.
   */
  readonly strictThinking?: boolean;
  /** Messages upstreams: thinking is on unless it is switched off. */
  readonly thinksByDefault?: boolean;
  /** Messages upstreams: a tool call cannot be demanded. */
  readonly refusesForcedTools?: boolean;
  /** Messages upstreams: temperature, top_p and top_k are accepted. */
  readonly samplingAllowed: boolean;
  /** The least temperature that is taken; absent = 0. */
  readonly minTemperature?: number;
  /** `temperature` and `top_p` are refused together. */
  readonly temperatureExcludesTopP?: boolean;
  /** Where `metadata.user_id` goes in chat. */
  readonly endUserField: 'safety_identifier' | 'user' | undefined;
  /** OpenAI's `service_tier` is understood; others call their tiers otherwise or have none. */
  readonly serviceTiers?: boolean;
  /** Messages upstreams: `speed: "fast"` is open to this account. */
  readonly fastMode?: boolean;
  /** Where the provider promises to run the model; what `inference_geo` may request. */
  readonly region?: string;
  /** `cache_control` marks are understood (Anthropic, OpenRouter). */
  readonly cacheMarks: boolean;
  /** False: a `scope` of a mark is refused, as the clouds do; absent = it goes up. */
  readonly cacheScopes?: boolean;
  /** Marks are understood as `prompt_cache_breakpoint` of text parts (OpenAI's newest models). */
  readonly cacheBreakpoints?: boolean;
  /** False for a call whose provider refused the reasoning of earlier turns: it goes without. */
  readonly historyReasoning?: false;
  /** A trailing assistant message is continued, not answered. */
  readonly prefill: boolean;
  /** Where the member for it is: on the request (vLLM), or on the message (Mistral, DeepSeek). */
  readonly prefillSwitch?: 'continue_final_message' | 'prefix';
  /**
   * Messages upstreams: the first line of Claude Code's instructions, which changes with each call,
   * means nothing here and would defeat the prompt cache.
   */
  readonly dropsBillingHeader?: boolean;
  /** Members that each translated request must have. */
  readonly always?: JsonObject;
  /** Reasoning text of earlier turns is wanted back as `reasoning_content`. */
  readonly reasoningReplay: boolean;
  /**
   * What must be in `reasoning_content` where nothing is known; absent = nothing need. Kimi refuses
   * the empty string.
   */
  readonly reasoningFiller?: '' | ' ';
  /** Reasoning text of earlier turns is taken back as `reasoning`, where there is some (Groq). */
  readonly reasoningField?: 'reasoning' | undefined;
  /** Sealed reasoning of earlier turns is wanted back as `reasoning_details` (OpenRouter). */
  readonly reasoningDetails?: boolean;
  /**
   * The format of `reasoning_details` that this model's maker reads, by OpenRouter's names; absent = entries
   * without a seal only.
   */
  readonly reasoningFormat?: string;
  /** Reasoning of earlier turns may be among the parts of a content (Mistral). */
  readonly thinkingParts?: true;
  /**
   * Members that messages may have, `role.member` where only one role has it. Absent: the server ignores unknown
   * members, so none are removed. A server that refuses unknown ones refuses cache marks on parts, too.
   */
  readonly messageMembers?: ReadonlySet<string>;
  /** The deprecated `functions`, their calls and messages with the role `function` are known. */
  readonly legacyFunctions?: true;
  /** An assistant message must be between the result of a tool and a message of the user (Mistral). */
  readonly assistantAfterTools?: true;
  /** Gemini: tools and formats may be said in JSON Schema; else in a subset of OpenAPI's. */
  readonly jsonSchemas?: boolean;
  /** Gemini: calls and their results have ids; else they are paired by their order. */
  readonly callIds?: true;
  /** Gemini: the tokens of thinking that may be requested, and whether none may; absent = it knows levels (`efforts`). */
  readonly thinkingBudget?: {
    readonly least: number;
    readonly most: number;
    readonly off: boolean;
  };
  /** Gemini: web search works together with functions that the client runs. */
  readonly searchBesideTools?: true;
  /** Gemini: a format works together with functions. */
  readonly jsonBesideTools?: true;
  /** Gemini, Converse: false = the model takes no instructions; they are put at the beginning of the first turn. */
  readonly instructions?: false;
  /** Converse: the answer can cite documents of the request (Claude). */
  readonly citesDocuments?: true;
  /** Converse: results of tools have a status of failure; else the text says it. */
  readonly resultStatus?: true;
  /** Converse: false = cache marks are refused among tools. */
  readonly toolCacheMarks?: false;
  /** Converse: reasoning is requested in `reasoningConfig`, and `high` excludes a cap on the output (Nova). */
  readonly reasoningConfig?: true;
  /** Converse: `topK` is in the model's own `inferenceConfig` (Nova). */
  readonly topKInConfig?: true;
  /** Converse: the answer can report which stop sequence matched (Claude). */
  readonly reportsStopSequence?: true;
  /** Tool calls must come back with the signature that they were answered with (Gemini). */
  readonly callSignatures?: boolean;
  /** The vendor's placeholder for a missing signature in a history. */
  readonly callSignatureFiller?: string;
  /** Tool-call ids must be exactly nine letters and digits (Mistral). */
  readonly nineCharacterToolIds?: boolean;
  /** Characters of a tool-call id at most (OpenAI). */
  readonly toolIdMax?: number;
  /** Schemas of tools are cleaned by these rules; absent = they go as the client wrote them. */
  readonly schemaRules?: SchemaRules;
  /** `strict` in a tool or schema definition is refused. */
  readonly strictSchemas?: false;
  /** Arguments of calls are held until they are whole, since they may be no JSON. */
  readonly bufferToolArguments?: boolean;
  /** Calls in the history need a tool of their name among the tools (Bedrock). */
  readonly historyNeedsTools?: boolean;
  /**
   * Messages upstreams: false = tools, blocks and sources that Anthropic's service defines or runs itself
   * are not known: versioned tools, server tools and what they found, files, search results.
   */
  readonly nativeTools?: boolean;
  /**
   * Messages upstreams: top-level members that are skipped, or refused as unknown. Relayed requests go
   * without them, with a note.
   */
  readonly skippedFields?: readonly string[];
  /** How the model searches the web by itself; absent = it cannot. */
  readonly webSearch?: 'tool' | 'options' | 'plugin';
  /** The operator lets calls use what the provider runs itself and charges for (`server_tools`). */
  readonly serverTools?: boolean;
  /** The operator shows reasoning to clients that did not request it, too (`reasoning: shown`). */
  readonly showsReasoning?: boolean;
  /** `completion_tokens` leaves reasoning out (xAI). */
  readonly completionExcludesReasoning: boolean;
  /** A higher output cap is refused; absent = none is known. */
  readonly maxOutputTokens?: number;
  /** Output cap to send when the client set none and the dialect demands one. */
  readonly defaultMaxOutputTokens: number;
}

export const allEfforts: readonly Effort[] = [
  'none',
  'minimal',
  'low',
  'medium',
  'high',
  'xhigh',
  'max',
];

/**
 * A generous reading of an unknown chat-completions server. The three words of effort are those that
 * every server with the field knows; a vendor's row has further ones, and a server
 * without the field says so in a 400 that the gateway learns from.
 */
export const chatTraits: UpstreamTraits = {
  maxTokensField: 'max_tokens',
  systemRole: 'system',
  // Templates of open models refuse it, and so do the servers that apply them.
  systemAnywhere: false,
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
  reasoningControl: 'effort',
  efforts: ['low', 'medium', 'high'],
  thinking: 'none',
  samplingAllowed: true,
  endUserField: 'user',
  cacheMarks: false,
  prefill: false,
  reasoningReplay: false,
  completionExcludesReasoning: false,
  defaultMaxOutputTokens: 8192,
};

/**
 * An unknown server of the Responses API: functions are the only tools, reasoning of earlier turns goes back to the
 * provider that made it, and stop sequences are the gateway's to find.
 */
export const responsesTraits: UpstreamTraits = {
  ...chatTraits,
  toolResultMedia: true,
  usageOption: false,
  seed: false,
  stopMax: 0,
  toolIdMax: 64,
  endUserField: undefined,
  // The service answers 400 to a smaller `max_output_tokens` (published schema).
  minOutputTokens: 16,
  reasoningSummary: true,
  webSearch: 'tool',
};

/** A current messages server. */
export const messagesTraits: UpstreamTraits = {
  ...chatTraits,
  systemAnywhere: true,
  topK: true,
  seed: false,
  stopMax: undefined,
  refusesBlankStops: true,
  streams: 'always',
  reasoningControl: 'none',
  efforts: allEfforts,
  thinking: 'adaptive',
  thinkingOff: 'disabled',
  cacheMarks: true,
  prefill: true,
  endUserField: undefined,
  webSearch: 'tool',
};

/** An unknown server of Gemini's `generateContent`. */
export const geminiTraits: UpstreamTraits = {
  ...chatTraits,
  usageOption: false,
  parallelFlag: false,
  toolResultMedia: true,
  topK: true,
  stopMax: 5,
  reasoningControl: 'none',
  reasonsFirst: true,
  endUserField: undefined,
  webSearch: 'tool',
};

/** An unknown model behind Converse. The service itself refuses calls in a history without tools. */
export const converseTraits: UpstreamTraits = {
  ...chatTraits,
  usageOption: false,
  parallelFlag: false,
  imageInput: 'base64',
  seed: false,
  responseFormat: 'none',
  reasoningControl: 'none',
  efforts: [],
  endUserField: undefined,
  historyNeedsTools: true,
};
