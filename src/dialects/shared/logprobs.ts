/**
 * Log probabilities of tokens. Both APIs of OpenAI write a token alike (`token`, `logprob`, `bytes`, `top_logprobs`), so
 * that form is also the canonical one.
 */
import type { Conversation, RequestedLogprobs, TokenLogprob } from '../../core/conversation.ts';
import { unsupported } from '../../core/errors.ts';
import { pathOf } from '../../core/notes.ts';
import { isArray, isObject, type Json, type JsonObject } from '../../json/value.ts';

const none: readonly TokenLogprob[] = [];

/** @throws GatewayError for a request of log probabilities, which this upstream has none of */
export function refuseLogprobs({ logprobs }: Pick<Conversation, 'logprobs'>): void {
  if (logprobs !== undefined) throw noLogprobs(logprobs);
}

/** The refusal of a request of log probabilities, by the client's name of the member. */
export function noLogprobs(requested: RequestedLogprobs): Error {
  return unsupported(
    pathOf(requested, ['logprobs']),
    'This model does not report log probabilities.',
  );
}

/** The tokens of a list of an answer. A value in another form is no list of tokens. */
export function readLogprobs(list: Json | undefined): readonly TokenLogprob[] {
  if (!isArray(list) || list.length === 0) return none;
  return list.filter(isObject).filter(isToken);
}

function isToken({ token, logprob }: JsonObject): boolean {
  return typeof token === 'string' && typeof logprob === 'number';
}

/** The members of chat completions for tokens of a text and of a refusal. Null where there are none. */
export function chatLogprobs(
  content: readonly TokenLogprob[],
  refusal: readonly TokenLogprob[],
): JsonObject | null {
  if (content.length === 0 && refusal.length === 0) return null;
  return { content: chatTokens(content), refusal: chatTokens(refusal) };
}

function chatTokens(tokens: readonly TokenLogprob[]): readonly JsonObject[] | null {
  if (tokens.length === 0) return null;
  return tokens.map((token) => written(token, ({ bytes }) => bytes ?? null));
}

/** The tokens as the Responses API writes them, where each has its bytes. */
export function responsesLogprobs(tokens: readonly TokenLogprob[]): readonly JsonObject[] {
  return tokens.map((token) => written(token, bytesOf));
}

function bytesOf({ token, bytes }: JsonObject): Json {
  return isArray(bytes) ? bytes : [...Buffer.from(String(token))];
}

/** A token with the members that clients demand. */
function written(entry: TokenLogprob, bytes: (token: JsonObject) => Json): JsonObject {
  const { top_logprobs: top } = entry;
  const alternatives = isArray(top) ? top.filter(isObject) : [];
  return {
    ...entry,
    bytes: bytes(entry),
    top_logprobs: alternatives.map((each) => ({ ...each, bytes: bytes(each) })),
  };
}

/**
 * Whether an answer shows log probabilities: the client asked for them. A relayed request is not read, and its answer has
 * what the upstream sent.
 */
export function showsLogprobs(conversation: Conversation | undefined): boolean {
  return conversation === undefined || conversation.logprobs !== undefined;
}
