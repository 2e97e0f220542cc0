/**
 * The countable form of a prompt: the body in its upstream's dialect, its texts and media. It uses the same
 * translation as a real request, so that tools and system prompts count; parts that a real request would be
 * refused for are left out. Runs on the event loop for short bodies and in the worker thread for long ones.
 */
import type { JsonObject } from '../json/value.ts';
import type { Conversation } from '../core/conversation.ts';
import type { Countable, Prompt } from '../core/description.ts';
import type { Ask, ClientDialect, UpstreamDialect } from '../core/dialect.ts';
import { type FieldPath, GatewayError } from '../core/errors.ts';
import type { JsonSource } from '../core/client-body.ts';
import { NoteList, type Notes } from '../core/notes.ts';
import { Pieces } from '../json/pieces.ts';
import type { ModelTokenizer } from '../core/tokenizer.ts';
import { leftOut } from '../dialects/shared/prompt.ts';
import { mediumTokens } from '../tokens/media.ts';
import { countPrompt } from '../tokens/prompt.ts';

export interface CountedBody {
  /** The upstream body; undefined if it cannot be made. */
  readonly bytes: Pieces | undefined;
  /** JSON of a member of the body; undefined if there is none of that name. */
  member(name: string): Buffer | undefined;
  /** Images, audio and documents; tokens are estimated. */
  readonly media: { readonly count: number; readonly tokens: number };
  /** Prompt tokens estimated from characters. */
  readonly guess: number;
  /** The input of a public tokenizer; undefined if the model's prompt format is unknown. */
  countable(tokenizer: ModelTokenizer): Countable | undefined;
}

export interface CountInput {
  readonly client: ClientDialect;
  readonly upstream: UpstreamDialect;
  readonly source: JsonSource;
  readonly ask: Ask;
  /** A count request, which needs no cap; otherwise a call. */
  readonly counting: boolean;
  readonly random: () => number;
}

export class CountingBody implements CountedBody {
  readonly #input: CountInput;
  readonly #body: JsonObject | undefined;
  #prompt: Prompt | undefined;

  /** @throws GatewayError `invalid_request` for a body that no provider could accept. */
  constructor(input: CountInput) {
    this.#input = input;
    this.#body = this.#native ? input.source.value : rendered(input);
  }

  get #native(): boolean {
    return this.#input.client.id === this.#input.upstream.id;
  }

  get bytes(): Pieces | undefined {
    const { upstream, source, ask } = this.#input;
    if (this.#native) return upstream.relayRequest(source, ask);
    return this.#body && Pieces.of(Buffer.from(JSON.stringify(this.#body)));
  }

  member(name: string): Buffer | undefined {
    const value = this.#body?.[name];
    return value === undefined ? undefined : Buffer.from(JSON.stringify(value));
  }

  get media(): CountedBody['media'] {
    const { media } = this.#asked;
    return {
      count: media.length,
      tokens: media.reduce((sum, each) => sum + mediumTokens(each), 0),
    };
  }

  get guess(): number {
    return countPrompt(this.#asked, this.#input.random);
  }

  countable(tokenizer: ModelTokenizer): Countable | undefined {
    return this.#body && this.#input.upstream.countable?.(this.#body, tokenizer);
  }

  get #asked(): Prompt {
    const { client, upstream, source } = this.#input;
    this.#prompt ??=
      this.#body === undefined ? client.describe(source).prompt() : upstream.promptOf(this.#body);
    return this.#prompt;
  }
}

const maxLeftOut = 50;

/** The upstream's body without what it refuses; undefined if it cannot be made. */
function rendered({ client, upstream, source, ask, counting }: CountInput): JsonObject | undefined {
  const endpoint = (counting ? client.count : undefined) ?? client;
  const read = (body: JsonObject, notes: Notes): Conversation =>
    endpoint.readRequest(body, notes, ask.sealer);
  let body = source.value;
  for (let tries = 0; tries < maxLeftOut; tries++) {
    try {
      const notes = new NoteList();
      return upstream.writeRequest(read(body, notes), ask, notes);
    } catch (error) {
      const refused = refusedPath(error);
      if (refused === undefined) throw error;
      const rest = leftOut(body, refused);
      if (rest === undefined) return undefined;
      body = rest;
    }
  }
  return undefined;
}

function refusedPath(error: unknown): FieldPath | undefined {
  const refused = error instanceof GatewayError && error.reason === 'unsupported_parameter';
  return refused ? (error.path ?? []) : undefined;
}
