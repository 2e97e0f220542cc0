/**
 * Counts the tokens of a prompt: by the upstream's own counter, else by the model's public tokenizer, else
 * by an estimate that is marked as such.
 */
import type { Countable, Prompt } from '../core/description.ts';
import type { Ask, ClientDialect, UpstreamDialect } from '../core/dialect.ts';
import type { JsonObject } from '../json/value.ts';
import { GatewayError, type FieldPath } from '../core/errors.ts';
import { tryParseInnerObject } from '../json/parse.ts';
import type { JsonSource } from '../core/client-body.ts';
import { Pieces } from '../json/pieces.ts';
import type { CounterStep, ModelTokenizer, Target, TokenCounter } from '../core/provider.ts';
import { countPrompt, mediumTokens } from '../tokens/prompt.ts';
import { requestWhole } from '../wire/exchange.ts';
import type { Gateway } from './gateway.ts';
import type { UsageSource } from '../core/call.ts';
import { type BodyOfJob, LongBody } from './long-bodies/body-thread.ts';
import type { CountedLong } from './long-bodies/jobs.ts';
import { bufferOver, receivedPieces } from './long-bodies/transfer.ts';
import { addedMembers, forwardedHeaders } from './upstream-request.ts';
import type { Conversation } from '../core/conversation.ts';
import { NoteList, type Notes } from '../core/notes.ts';
import { withoutMember } from '../dialects/shared/body/prompt.ts';

// The countable form of a prompt: the body in its upstream's dialect, its texts and media. It uses the same
// translation as a real request, so that tools and system prompts count; parts that a real request would be
// refused for are omitted. Runs on the event loop for short bodies and in the worker thread for long ones.

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

interface CountInput {
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
    if (this.#body === undefined) return undefined;
    const { countedMembers } = upstream;
    const members = Object.entries(this.#body).filter(
      ([name]) => countedMembers?.has(name) !== false,
    );
    const body = { ...ask.added, ...Object.fromEntries(members) };
    return Pieces.of(Buffer.from(JSON.stringify(body)));
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
      const rest = withoutMember(body, refused);
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

export interface TokenCount {
  readonly tokens: number;
  /** `reported` by the upstream, `counted` by the model's tokenizer, or `estimated`. */
  readonly source: UsageSource;
}

export interface CountRequest {
  readonly target: Target;
  readonly source: JsonSource;
  /** Dialect of the body. */
  readonly dialect: ClientDialect;
  /** The body is a request to count; else a call. */
  readonly counting: boolean;
  header(name: string): string | undefined;
  /** The target accepts no calls now: the count must not ask it. */
  readonly unasked?: boolean;
  /** Aborted when the client disconnects. */
  readonly signal: AbortSignal;
}

type CountedRequest = Omit<CountRequest, 'header' | 'signal'> &
  Partial<Pick<CountRequest, 'header'>>;

const limits = { timeoutMs: 10_000, maxBytes: 32 * 1024 * 1024 } as const;

/** @throws GatewayError `invalid_request` for a body that no provider could take, `canceled`. */
export async function countTokens(gateway: Gateway, request: CountRequest): Promise<TokenCount> {
  const { provider, model } = request.target;
  const body = await countedBody(gateway, request, () => !request.signal.aborted);
  const asked = { gateway, request, body };
  return (
    (await byCounter(asked)) ??
    (await byTokenizer(asked)) ?? {
      tokens: gateway.estimator.promptAtMost(`${provider.id}/${model}`, body.guess),
      source: 'estimated',
    }
  );
}

/**
 * Prompt tokens by the target's public tokenizer, off the event loop; undefined if there is none, or it does
 * not answer in time. No provider is called.
 */
export async function tokenizedPrompt(
  gateway: Gateway,
  request: CountedRequest,
): Promise<number | undefined> {
  if (tokenizerOf(request.target) === undefined) return undefined;
  return tokenized(gateway, request.target, await countedBody(gateway, request));
}

function tokenizerOf({ provider, model }: Target): ModelTokenizer | undefined {
  return provider.dialect.countable === undefined ? undefined : provider.tokenizer?.(model);
}

async function tokenized(
  { textCounter }: Gateway,
  target: Target,
  body: CountedBody,
): Promise<number | undefined> {
  const tokenizer = tokenizerOf(target);
  const counted = tokenizer && body.countable(tokenizer);
  if (tokenizer === undefined || counted === undefined) return undefined;
  const { texts, media, constant } = counted;
  const tokens = await textCounter.count(tokenizer.encoding, texts);
  if (tokens === undefined) return undefined;
  const { image } = tokenizer;
  return media.reduce((sum, medium) => sum + mediumTokens(medium, image), tokens + constant);
}

/** The counted part of the body. @param wanted whether its client is still there @throws GatewayError `invalid_request` */
async function countedBody(
  { newId, random, memory, bodies }: Gateway,
  request: CountedRequest,
  wanted?: () => boolean,
): Promise<CountedBody> {
  const { target, source, dialect: client, counting } = request;
  const { provider, model } = target;
  const upstream = provider.dialect;
  const plain = {
    model: provider.body?.model ?? model,
    stream: false,
    traits: provider.traits(model),
    ...addedMembers(provider, client.id === upstream.id ? request : undefined),
  };
  if (!(source instanceof LongBody)) {
    const ask: Ask = { ...plain, newId, sealer: memory.sealer };
    return new CountingBody({ client, upstream, source, ask, counting, random });
  }
  const members = (provider.counter?.steps ?? []).flatMap((step) => step.members ?? []);
  const input = {
    client: client.id,
    upstream: upstream.id,
    ask: plain,
    counting,
    members: [...new Set(members)],
    tokenizer: tokenizerOf(target),
  };
  const body: BodyOfJob = {
    id: source.id,
    pieces: source.pieces,
    ...(wanted === undefined ? {} : { wanted }),
  };
  return new CountedLongBody(await bodies.run('count', input, body), source);
}

/** A count from the worker thread. */
class CountedLongBody implements CountedBody {
  readonly bytes: Pieces | undefined;
  readonly media: CountedBody['media'];
  readonly guess: number;
  readonly #counted: CountedLong;

  constructor(counted: CountedLong, source: LongBody) {
    this.bytes = counted.bytes && receivedPieces(counted.bytes, source.pieces);
    this.media = counted.media;
    this.guess = counted.guess;
    this.#counted = counted;
  }

  member(name: string): Buffer | undefined {
    const text = this.#counted.members.get(name);
    return text && bufferOver(text);
  }

  countable(): Countable | undefined {
    return this.#counted.countable;
  }
}

interface Asked {
  readonly gateway: Gateway;
  readonly request: CountRequest;
  readonly body: CountedBody;
}

async function byCounter(asked: Asked): Promise<TokenCount | undefined> {
  const { gateway, request, body } = asked;
  const { counter, wake } = request.target.provider;
  if (counter === undefined || request.unasked === true) return undefined;
  if (body.bytes === undefined || gateway.learned.lacksCounter(request.target)) return undefined;
  try {
    await wake?.();
    const tokens = await askCounter(asked, counter);
    if (tokens === undefined) return undefined;
    const { media } = body;
    if (counter.countsMedia || media.count === 0) return { tokens, source: 'reported' };
    return { tokens: tokens + media.tokens, source: 'estimated' };
  } catch (error) {
    if (request.signal.aborted) throw error;
    const reason = error instanceof Error ? error.message : 'unknown';
    gateway.log.warn('token_counter_failed', { reason });
    return undefined;
  }
}

async function askCounter(asked: Asked, counter: TokenCounter): Promise<number | undefined> {
  let answer: JsonObject | undefined;
  for (const step of counter.steps) {
    answer = await askStep(asked, { counter, step }, answer);
    if (answer === undefined) return undefined;
  }
  const count = answer === undefined ? undefined : counter.read(answer);
  return typeof count === 'number' && Number.isInteger(count) && count >= 0 ? count : undefined;
}

async function askStep(
  { gateway, request, body }: Asked,
  { counter, step }: { readonly counter: TokenCounter; readonly step: CounterStep },
  before: JsonObject | undefined,
): Promise<JsonObject | undefined> {
  const { provider, timeouts } = request.target;
  const question = questionOf(body, step, before);
  if (question === undefined) return undefined;
  const native = request.dialect.id === provider.dialect.id;
  const answer = await requestWhole(
    gateway.client,
    {
      endpoint: step.endpoint,
      method: 'POST',
      headers: forwardedHeaders(provider, native ? request : undefined),
      body: question,
      connectMs: timeouts.connectMs,
    },
    { ...limits, signal: request.signal },
  );
  if (answer.status === 200) return tryParseInnerObject(answer.body);
  if (counter.lacks?.(answer.status, answer.body) === true) {
    gateway.learned.rememberCounterless(request.target);
  }
  gateway.log.warn('token_counter_failed', { status: answer.status });
  return undefined;
}

/**
 * The body of a counting step: the whole request, or some members of it and more; undefined if there is nothing
 * to ask.
 */
function questionOf(
  body: CountedBody,
  { members, more, inside, wrap }: CounterStep,
  before: JsonObject | undefined,
): Pieces | undefined {
  if (members === undefined) {
    return wrap === undefined ? body.bytes : body.bytes && wrap(body.bytes);
  }
  const added = more === undefined ? {} : more(before);
  if (added === undefined) return undefined;
  const pieces: Buffer[] = [];
  const add = (name: string, value: Buffer): void => {
    pieces.push(Buffer.from(`${pieces.length === 0 ? '{' : ','}${JSON.stringify(name)}:`), value);
  };
  for (const name of members) {
    const value = body.member(name);
    if (value !== undefined) add(name, value);
  }
  for (const [name, value] of Object.entries(added)) add(name, Buffer.from(JSON.stringify(value)));
  const all = [...pieces, Buffer.from(pieces.length === 0 ? '{}' : '}')];
  if (inside === undefined) return new Pieces(all);
  return new Pieces([Buffer.from(`{${JSON.stringify(inside)}:`), ...all, Buffer.from('}')]);
}

async function byTokenizer({ gateway, request, body }: Asked): Promise<TokenCount | undefined> {
  const tokens = await tokenized(gateway, request.target, body);
  if (request.signal.aborted) throw new GatewayError('canceled', 'The client disconnected.');
  return tokens === undefined ? undefined : { tokens, source: 'counted' };
}
