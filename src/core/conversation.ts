/** The canonical request: a superset of the wire formats, independent of any dialect. */
import type { JsonObject } from '../json/value.ts';

/** The wire formats that the gateway knows; a provider speaks one, a client endpoint speaks one. */
export type DialectId =
  'openai-chat' | 'anthropic-messages' | 'openai-responses' | 'gemini' | 'bedrock-converse';

/** Words of the configuration for OpenAI's two APIs. */
export const dialectOfApi = { chat: 'openai-chat', responses: 'openai-responses' } as const;

/** Fields that only one dialect knows, kept under that dialect's name so that nothing vanishes. */
export type Extras = { readonly [D in DialectId]?: JsonObject };

/** One call's question. Order is kept everywhere: prompt caches depend on it. */
export interface Conversation {
  /** Instructions before the first turn, one part per part that the client sent (never joined). */
  readonly system: readonly Part[];
  readonly turns: readonly Turn[];
  readonly tools: readonly Tool[];
  readonly toolChoice?: ToolChoice;
  /** `false` = at most one tool call in the answer; absent = the dialect's default (many). */
  readonly parallelTools?: boolean;
  readonly sampling: Sampling;
  readonly output: OutputFormat;
  readonly reasoning?: Reasoning;
  /** Opaque id of the end user (`metadata.user_id`, `safety_identifier`, `user`). */
  readonly endUser?: string;
  /** Top-level fields that have no canonical slot, by the dialect that sent them. */
  readonly extras: Extras;
}

/**
 * One turn. `system` turns are instructions given in mid-conversation; they stay at their position.
 * Tool results live in `user` turns, before any other part of that turn.
 */
export interface Turn {
  readonly role: 'user' | 'assistant' | 'system';
  readonly parts: readonly Part[];
  readonly name?: string;
}

/** A cache mark: the prompt up to and including the marked part (or tool) is worth caching. */
export interface CacheMark {
  readonly ttl?: string;
}

/** The members that every part may have besides its own. */
export interface PartBase {
  readonly cacheUntilHere?: CacheMark;
  /** Fields of this part that only the named dialect knows. */
  readonly extras?: Extras;
}

export interface TextPart extends PartBase {
  readonly type: 'text';
  readonly text: string;
  readonly citations?: readonly Citation[];
}

/** The model's own words of refusal (chat `refusal`; messages `stop_details.explanation`). */
export interface RefusalPart extends PartBase {
  readonly type: 'refusal';
  readonly text: string;
}

/** Where media comes from: an address, bytes, or (documents only) plain text. */
export type MediaSource =
  { readonly url: string } | { readonly base64: string } | { readonly text: string };

export interface MediaPart extends PartBase {
  readonly type: 'media';
  readonly kind: 'image' | 'document' | 'audio';
  /** `image/png`, `application/pdf`, …; `''` when only an address is known. */
  readonly mediaType: string;
  readonly source: MediaSource;
  readonly name?: string;
  /**
   * Documents only: the client wants the answer to cite this one (messages `citations.enabled`). The number is its index
   * among the documents of the client's request, by which the answer names it.
   */
  readonly citedAs?: number;
}

/** Which provider made something that only it understands. */
export interface Origin {
  readonly provider: string;
  readonly dialect: DialectId;
}

export interface ToolCallPart extends PartBase {
  readonly type: 'tool-call';
  readonly id: string;
  readonly name: string;
  /** The arguments as the model wrote them: usually a JSON object, possibly `''` or broken. */
  readonly argumentsJson: string;
  /** The provider that wrote `extras`, if known: they are sent to no other. */
  readonly origin?: Origin;
}

export interface ToolResultPart extends PartBase {
  readonly type: 'tool-result';
  readonly callId: string;
  readonly parts: readonly Part[];
  readonly failed: boolean;
}

/**
 * The model's reasoning. `signature` seals `text` and must come back byte for byte;
 * `encrypted` is reasoning that only the provider can read (redacted_thinking.data).
 */
export interface ReasoningPart extends PartBase {
  readonly type: 'reasoning';
  readonly text: string;
  readonly signature?: string;
  readonly encrypted?: string;
  /** The origin, if the gateway knows it; else the client's dialect says it. */
  readonly origin?: Origin;
  /** It came back changed or incomplete. Its author would refuse it, so it is not sent. */
  readonly broken?: true;
}

/** A block that only its own dialect knows; survives the round trip within that dialect. */
export interface OpaquePart extends PartBase {
  readonly type: 'opaque';
  readonly dialect: DialectId;
  readonly value: JsonObject;
}

export type Part =
  TextPart | RefusalPart | MediaPart | ToolCallPart | ToolResultPart | ReasoningPart | OpaquePart;

/** A piece of a text, in UTF-16 units. */
export interface TextSpan {
  readonly start: number;
  readonly end: number;
}

/**
 * Where the cited words are in a document of the request. `start` and `end` are the provider's numbers, of characters,
 * pages or blocks of content.
 */
export interface DocumentPlace {
  /** The index among the documents of the request. */
  readonly document: number;
  readonly unit: 'char' | 'page' | 'block';
  readonly start: number;
  readonly end: number;
}

/** A source that a text part cites. `native` is the citation as its dialect wrote it. */
export interface Citation {
  readonly url?: string;
  readonly title?: string;
  readonly citedText?: string;
  /** The words of the answer that rest on the source, in UTF-16 units of their text part; absent: all of it. */
  readonly span?: TextSpan;
  /** The place in a document of the request, if the reader of the answer knows it. */
  readonly place?: DocumentPlace;
  readonly native: { readonly dialect: DialectId; readonly value: JsonObject };
}

export interface Tool {
  readonly name: string;
  readonly description?: string;
  /** JSON Schema of the arguments, an object schema. */
  readonly schema: JsonObject;
  readonly strict?: boolean;
  readonly cacheUntilHere?: CacheMark;
  /** Chat `custom` tool: the argument is one free text, canonically `{"input": string}`. */
  readonly freeText?: boolean;
  /** A tool that its dialect defines or runs itself (web_search_…, bash_…); `schema` is then `{}`. */
  readonly native?: { readonly dialect: DialectId; readonly value: JsonObject };
  readonly extras?: Extras;
}

export type ToolChoice =
  | { readonly type: 'auto' | 'none' | 'required' }
  | { readonly type: 'tool'; readonly name: string }
  | {
      readonly type: 'allowed';
      readonly mode: 'auto' | 'required';
      readonly names: readonly string[];
    };

export interface Sampling {
  /** Cap on all generated tokens, reasoning included. */
  readonly maxOutputTokens?: number;
  readonly temperature?: number;
  readonly topP?: number;
  readonly topK?: number;
  readonly stop?: readonly string[];
  readonly seed?: number;
}

export type OutputFormat =
  | { readonly type: 'text' }
  | {
      readonly type: 'json';
      readonly schema?: JsonObject;
      readonly name?: string;
      readonly description?: string;
      readonly strict?: boolean;
      /** The answer is the input of this tool, and is shown as a call of it (dialects/shared/request/demanded-call.ts). */
      readonly asCallOf?: string;
    };

export type Effort = 'none' | 'minimal' | 'low' | 'medium' | 'high' | 'xhigh' | 'max';

/** How much the model may think. All absent = nothing was requested. */
export interface Reasoning {
  readonly effort?: Effort;
  readonly budgetTokens?: number;
  /** The model decides how much (messages `thinking.type: "adaptive"`). */
  readonly adaptive?: boolean;
  /**
   * True: the client is not shown the text of it (`display: "omitted"`, `exclude: true`). False: the client asked to see
   * it, whether or not it requested more or less of it. Absent: it said nothing, and its dialect shows it.
   */
  readonly hidden?: boolean;
  /** It is hidden only since the client did not request it: a route may show it all the same (`reasoning: shown`). */
  readonly unasked?: true;
}
