/** What the gateway wants to know about a request, whatever its format. */
import type { RaisedCost } from './policy.ts';
import type { JsonSource } from './client-body.ts';

/** A picture, a document or a sound of a prompt. */
export interface Medium {
  readonly kind: 'image' | 'document' | 'audio';
  /** Base64, or undefined when only an address is known. */
  readonly data: string | undefined;
  readonly lowDetail: boolean;
}

/** What a model reads of a request. */
export interface Prompt {
  readonly texts: readonly string[];
  readonly media: readonly Medium[];
  /** Tokens that the chat template adds around messages and parts. */
  readonly frameTokens: number;
}

/** What a public tokenizer has to count of a prompt. */
export interface Countable {
  readonly texts: readonly string[];
  readonly media: readonly Medium[];
  /** Tokens that need no tokenizer, without those of the media. */
  readonly constant: number;
}

/** Web searches that a member of a request lets the provider run. */
export interface SearchRequest {
  readonly member: string;
  /** The most that the provider may run. */
  readonly most: number;
  /** The number that counts where the provider reports none. */
  readonly unreported: number;
}

/** Models that a request names besides its own. */
export interface NamedModels {
  /** The first member of the request that names one. */
  readonly member: string;
  /** All of them, in the words of the request. */
  readonly names: readonly string[];
}

/** How many tokens reasoning and a text may take, for the cost that members add. */
export interface CostTerms {
  /** Reasoning tokens that the output cap includes, where the format says so. */
  readonly reasoningBudget?: number | undefined;
  /** An upper estimate of the tokens of a text. */
  readonly tokensOf: (text: string) => number;
}

/** The settings of a request as telemetry tells them; absent members were not sent. */
export interface RequestParameters {
  readonly maxTokens?: number | undefined;
  readonly temperature?: number | undefined;
  readonly topP?: number | undefined;
  readonly topK?: number | undefined;
  readonly frequencyPenalty?: number | undefined;
  readonly presencePenalty?: number | undefined;
  readonly seed?: number | undefined;
  readonly choices?: number | undefined;
  readonly stop?: readonly string[] | undefined;
  readonly json: boolean;
}

/** The parts of a parsed body that a description reads. */
export type DescribedSource = Pick<JsonSource, 'value' | 'skeleton'>;

/**
 * One request, described by its dialect. Code outside of a dialect names no member of a body: it asks here. Each answer
 * is computed when it is asked for, so that a call pays for nothing that it does not need.
 */
export interface RequestDescription {
  /** Texts, media and frames of the prompt. */
  prompt(): Prompt;
  /**
   * The instructions and the messages up to the first one of the user, as a short text. Requests of one conversation
   * have the same opening; cache marks do not change it.
   */
  opening(): string;
  /** The texts of the user, in order. */
  userTexts(): Iterable<string>;
  /**
   * Tools are offered to a model that is not kept from reasoning, and nothing is asked for that only chat completions
   * have: the model may be asked by the API in which it reasons beside tools.
   */
  reasonsWithTools(): boolean;
  /** The name that the client gives its prompt cache, which one session keeps. */
  cacheKey(): string | undefined;
  /** Models that a vendor may answer with instead. @throws GatewayError `invalid_request` for more than 20. */
  otherModels(): NamedModels | undefined;
  /** @param always the target searches for each request that asks for it. */
  searches(always: boolean): readonly SearchRequest[];
  /** What members add to the cost of the prompt and the output cap; undefined = nothing. */
  raisedCost(terms: CostTerms): RaisedCost | undefined;
  /** The service tier, or `fast`. */
  serviceTier(): string | undefined;
  /** The member that asks for a tier that vendors charge more for. */
  expensiveTierMember(): string | undefined;
  /** The member in which this request caps its output. */
  capMember(): string;
  /** The client's own name for its user. */
  endUser(): string | undefined;
  /** The client's own labels for the call. */
  metadata(): readonly (readonly [key: string, value: string])[] | undefined;
  parameters(): RequestParameters;
}
