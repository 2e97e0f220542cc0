/** A description of a request, independent of its format. */
import type { JsonSource } from './client-body.ts';
import type { Conversation, MediaPart, Part, Turn } from './conversation.ts';
import type { RaisedCost } from './policy.ts';

/** An image, a document or audio of a prompt. */
export interface Medium {
  readonly kind: 'image' | 'document' | 'audio';
  /** Base64, or undefined when only an address is known. */
  readonly data: string | undefined;
  readonly lowDetail: boolean;
}

/** The prompt of a request for token counting. */
export interface Prompt {
  readonly texts: readonly string[];
  readonly media: readonly Medium[];
  /** Tokens that the chat template adds around messages and parts. */
  readonly frameTokens: number;
}

/** The texts of a prompt that a public tokenizer counts. */
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

/** The settings of a request for telemetry; absent members were not sent. */
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
 * is computed when it is requested, so that a call pays for nothing that it does not need.
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
   * Tools are offered to a model that may reason, and the request has no member that only chat completions
   * have. The model may then be called by the API in which it reasons with tools.
   */
  reasonsWithTools(): boolean;
  /** The name that the client gives its prompt cache, which one session keeps. */
  cacheKey(): string | undefined;
  /** Models that a vendor may answer with instead. @throws GatewayError `invalid_request` for more than 20. */
  otherModels(): NamedModels | undefined;
  /** @param always the target searches for each request that requests it. */
  searches(always: boolean): readonly SearchRequest[];
  /** The cost that members add to that of the prompt and the output cap; undefined = none. */
  raisedCost(terms: CostTerms): RaisedCost | undefined;
  /** The service tier, or `fast`. */
  serviceTier(): string | undefined;
  /** The same, by the word with which another API is asked for it. */
  translatedTier(): string | undefined;
  /** The member that requests a tier that vendors charge more for. */
  expensiveTierMember(): string | undefined;
  /** The member in which this request caps its output. */
  capMember(): string;
  /** The client's own name for its user. */
  endUser(): string | undefined;
  /** The client's own labels for the call. */
  metadata(): readonly (readonly [key: string, value: string])[] | undefined;
  parameters(): RequestParameters;
}

// The prompt in a span: its instructions from their beginning and its turns from their end, under limits. A copy
// of it that is small is all that is kept of a long body, which is not read on the event loop.

/** Characters of one part; the rest of it is omitted. */
export const maxPartLength = 8192;
/** Characters of each attribute, as JSON: of a prompt the end is kept, of an answer the beginning. */
export const maxAttributeLength = 65_536;
/** So much more of a text is examined for keys, so that none is cut in two. */
export const keyMargin = 512;
/** The size of a part besides its texts. */
const partCost = 32;

export interface PromptExcerpt extends Pick<Conversation, 'system' | 'turns'> {
  /** Parts were omitted. */
  readonly cut: boolean;
}

/** At least what a span has room for, and not much more. */
export function excerptOf({
  system,
  turns,
}: Pick<Conversation, 'system' | 'turns'>): PromptExcerpt {
  const instructions = new Room(maxAttributeLength);
  const first = instructions.fill(system);
  const room = new Room(maxAttributeLength);
  const last: Turn[] = [];
  for (const { role, parts } of turns.toReversed()) {
    const own = room.fill(parts.toReversed()).toReversed();
    if (own.length > 0) last.unshift({ role, parts: own });
    if (room.cut) break;
  }
  return { system: first, turns: last, cut: instructions.cut || room.cut };
}

class Room {
  /** A part was omitted. */
  cut = false;
  #left: number;

  constructor(length: number) {
    this.#left = length;
  }

  /** The first ones, each of them short, up to the one that does not fit whole. */
  fill(parts: readonly Part[]): readonly Part[] {
    const kept: Part[] = [];
    for (const part of parts) {
      if (this.#left < 0) {
        this.cut = true;
        break;
      }
      this.#left -= partCost;
      kept.push(this.#short(part));
    }
    return kept;
  }

  #short(part: Part): Part {
    switch (part.type) {
      case 'text':
      case 'refusal':
      case 'reasoning':
        return { type: part.type, text: this.#text(part.text) };
      case 'tool-call': {
        const { type, id, name, argumentsJson } = part;
        const shown = this.#text(argumentsJson);
        return { type, id: this.#text(id), name: this.#text(name), argumentsJson: shown };
      }
      case 'tool-result': {
        const { type, callId, failed } = part;
        return { type, callId: this.#text(callId), parts: this.#results(part.parts), failed };
      }
      case 'media':
        return this.#media(part);
      case 'opaque':
        return { ...part, value: { type: part.value['type'] ?? null } };
      default:
        return part satisfies never;
    }
  }

  /** Their texts are shown as one. */
  #results(parts: readonly Part[]): readonly Part[] {
    const most = maxPartLength + keyMargin;
    const own = new Room(most);
    const kept = own.fill(parts);
    this.#left -= most - own.#left;
    this.cut ||= own.cut;
    return kept;
  }

  /** Its bytes are never shown. */
  #media({ type, kind, mediaType, source }: MediaPart): Part {
    if ('url' in source) return { type, kind, mediaType, source: { url: this.#text(source.url) } };
    if ('text' in source)
      return { type, kind, mediaType, source: { text: this.#text(source.text) } };
    return { type, kind, mediaType, source: { base64: '' } };
  }

  #text(text: string): string {
    const shown = text.slice(0, maxPartLength + keyMargin);
    this.#left -= shown.length;
    return shown;
  }
}
