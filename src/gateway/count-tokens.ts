/**
 * How many tokens a prompt has (translation.md §11, A7, F5): by the upstream's own counter, else by the
 * model's public tokenizer, else guessed and marked so. The body is translated by the same code as a
 * real request, so that tools and system prompts count; what a real request would be refused for is
 * left out.
 */
import type { Ask } from '../core/dialect.ts';
import type { Conversation, Json, JsonObject } from '../core/conversation.ts';
import { GatewayError, type FieldPath } from '../core/errors.ts';
import { tryParseInnerObject } from '../core/json-inner.ts';
import { isObject, type JsonSource } from '../core/json.ts';
import { jsonInSteps } from '../core/json-write.ts';
import { NoteList, type Notes } from '../core/notes.ts';
import { Pieces } from '../core/pieces.ts';
import type { CounterStep, Provider, Target, TokenCounter } from '../core/provider.ts';
import { atOnce, inTurns, isLong, type Steps } from '../core/steps.ts';
import { chatCountable } from '../tokens/chat-recipe.ts';
import { mediumTokens } from '../tokens/media.ts';
import { promptCounting, promptReading, type Prompt } from '../tokens/prompt.ts';
import { requestWhole } from '../wire/whole-answer.ts';
import type { Gateway } from './call.ts';
import type { UsageSource } from './receipt.ts';
import { forwardedHeaders } from './upstream-request.ts';

export interface TokenCount {
  readonly tokens: number;
  /** `reported` by the upstream, `counted` by the model's tokenizer, or `estimated`. */
  readonly source: UsageSource;
}

export interface CountRequest {
  readonly target: Target;
  readonly source: JsonSource;
  /** Dialect of the body. */
  readonly dialect: Provider['dialect']['id'];
  /** Reads the body, or what is left of it, in steps; for translation only. */
  reading(body: JsonObject, notes: Notes): Steps<Conversation>;
  header(name: string): string | undefined;
  /** The target takes no calls now: what can be told without it is told. */
  readonly unasked?: boolean;
  /** Aborted when the client leaves. */
  readonly signal: AbortSignal;
}

const limits = { timeoutMs: 10_000, maxBytes: 32 * 1024 * 1024 } as const;

/** @throws GatewayError `invalid_request` for a body that no provider could take, `canceled`. */
export async function countTokens(gateway: Gateway, request: CountRequest): Promise<TokenCount> {
  const { target, source } = request;
  const { provider, model } = target;
  const native = provider.dialect.id === request.dialect;
  const ask: Ask = { model, stream: false, traits: provider.traits(model), newId: gateway.newId };
  const rendered = native ? source.value : await paced(source, rendering(request, ask));
  const bytes = native ? provider.dialect.relayRequest(source, ask) : undefined;
  const asked = rendered === undefined ? undefined : { gateway, request, body: rendered, bytes };
  const body = rendered ?? source.value;
  return (
    (asked === undefined ? undefined : await byCounter(asked)) ??
    (asked === undefined ? undefined : await byTokenizer(asked)) ?? {
      tokens: gateway.estimator.promptAtMost(
        `${provider.id}/${model}`,
        await paced(source, promptCounting(await promptIn(source, body), gateway.random)),
      ),
      source: 'estimated',
    }
  );
}

/**
 * Tokens of the prompt by the target's public tokenizer, off the event loop; undefined where there is
 * none, or it does not answer in time. No provider is asked.
 */
export async function tokenizedPrompt(
  gateway: Gateway,
  request: Omit<CountRequest, 'header' | 'signal'>,
): Promise<number | undefined> {
  const { provider, model } = request.target;
  const tokenizer = provider.tokenizer?.(model);
  if (tokenizer === undefined || provider.dialect.id !== 'openai-chat') return undefined;
  const ask: Ask = { model, stream: false, traits: provider.traits(model), newId: gateway.newId };
  const native = provider.dialect.id === request.dialect;
  const { source } = request;
  const body = native ? source.value : await paced(source, rendering(request, ask));
  if (body === undefined) return undefined;
  const { texts, constant } = await paced(source, chatCountable(body, tokenizer));
  const tokens = await gateway.textCounter.count(tokenizer.encoding, texts);
  return tokens === undefined ? undefined : tokens + constant;
}

/** Where the client's body is long, all others have their turn between the steps (G11). */
function paced<T>(source: JsonSource, steps: Steps<T>): T | Promise<T> {
  return isLong(source) ? inTurns(steps) : atOnce(steps);
}

function promptIn(source: JsonSource, body: JsonObject): Prompt | Promise<Prompt> {
  return paced(source, promptReading(body));
}

const maxLeftOut = 50;

/** The upstream's body of the prompt without what it refuses; undefined when that cannot be told. */
function* rendering(
  request: Pick<CountRequest, 'source' | 'reading' | 'target'>,
  ask: Ask,
): Steps<JsonObject | undefined> {
  let body = request.source.value;
  for (let tries = 0; tries < maxLeftOut; tries++) {
    try {
      const notes = new NoteList();
      const conversation = yield* request.reading(body, notes);
      return yield* request.target.provider.dialect.requestWriting(conversation, ask, notes);
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

/** Members without which there is nothing to count. */
const needed: ReadonlySet<string | number> = new Set(['model', 'messages', 'type', 'role']);

/** The value without the member at a path; undefined when it is not there or is needed. */
function leftOut(body: JsonObject, path: FieldPath): JsonObject | undefined {
  const [key, ...rest] = path;
  if (typeof key !== 'string') return undefined;
  const value = body[key];
  if (value === undefined) return undefined;
  if (rest.length === 0) {
    if (needed.has(key)) return undefined;
    const { [key]: _, ...left } = body;
    return left;
  }
  const inner = without(value, rest);
  return inner === undefined ? undefined : { ...body, [key]: inner };
}

function without(value: Json, path: FieldPath): Json | undefined {
  if (isObject(value)) return leftOut(value, path);
  const [index, ...rest] = path;
  if (!Array.isArray(value) || typeof index !== 'number' || !(index in value)) return undefined;
  const items: readonly Json[] = value;
  const item = items[index];
  // A block whose type is refused is left out as a whole.
  const inner = rest.length === 0 || item === undefined ? undefined : without(item, rest);
  return inner === undefined
    ? items.filter((_, i) => i !== index)
    : items.map((each, i) => (i === index ? inner : each));
}

interface Asked {
  readonly gateway: Gateway;
  readonly request: CountRequest;
  /** In the provider's dialect. */
  readonly body: JsonObject;
  /** The same as the client's own bytes, where nothing was translated. */
  readonly bytes: Pieces | undefined;
}

async function byCounter(asked: Asked): Promise<TokenCount | undefined> {
  const { gateway, request } = asked;
  const { counter, wake } = request.target.provider;
  if (counter === undefined || request.unasked === true) return undefined;
  try {
    await wake?.();
    const tokens = await askCounter(asked, counter);
    if (tokens === undefined) return undefined;
    if (counter.countsMedia) return { tokens, source: 'reported' };
    const { media } = await promptIn(request.source, asked.body);
    if (media.length === 0) return { tokens, source: 'reported' };
    const more = media.reduce((sum, medium) => sum + mediumTokens(medium), 0);
    return { tokens: tokens + more, source: 'estimated' };
  } catch (error) {
    if (request.signal.aborted) throw error;
    const why = error instanceof Error ? error.message : 'unknown';
    gateway.log.warn('token counter failed', { why });
    return undefined;
  }
}

async function askCounter(asked: Asked, counter: TokenCounter): Promise<number | undefined> {
  let answer: JsonObject | undefined;
  for (const step of counter.steps) {
    answer = await askStep(asked, step, answer);
    if (answer === undefined) return undefined;
  }
  const count = answer === undefined ? undefined : counter.read(answer);
  return typeof count === 'number' && Number.isInteger(count) && count >= 0 ? count : undefined;
}

async function askStep(
  { gateway, request, body, bytes }: Asked,
  step: CounterStep,
  before: JsonObject | undefined,
): Promise<JsonObject | undefined> {
  const { provider, timeouts } = request.target;
  const question = step.question === undefined ? body : step.question(body, before);
  if (question === undefined) return undefined;
  const own = step.question === undefined ? bytes : undefined;
  const answer = await requestWhole(
    gateway.client,
    {
      endpoint: step.endpoint,
      method: 'POST',
      headers: forwardedHeaders(provider, bytes === undefined ? undefined : request),
      body: own ?? Pieces.of(await written(request.source, question)),
      connectMs: timeouts.connectMs,
    },
    { ...limits, signal: request.signal },
  );
  if (answer.status === 200) return tryParseInnerObject(answer.body);
  gateway.log.warn('token counter failed', { status: answer.status });
  return undefined;
}

function written(source: JsonSource, question: JsonObject): Buffer | Promise<Buffer> {
  return isLong(source) ? jsonInSteps(question) : Buffer.from(JSON.stringify(question));
}

async function byTokenizer({ gateway, request, body }: Asked): Promise<TokenCount | undefined> {
  const { provider, model } = request.target;
  if (provider.dialect.id !== 'openai-chat') return undefined;
  const tokenizer = provider.tokenizer?.(model);
  if (tokenizer === undefined) return undefined;
  const countable = chatCountable(body, tokenizer);
  const { texts, constant } = await paced(request.source, countable);
  const tokens = await gateway.textCounter.count(tokenizer.encoding, texts);
  if (request.signal.aborted) throw new GatewayError('canceled', 'The client left.');
  return tokens === undefined ? undefined : { tokens: tokens + constant, source: 'counted' };
}
