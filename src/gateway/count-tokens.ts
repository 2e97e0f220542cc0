/**
 * How many tokens a prompt has: by the upstream's own counter where it has one, else an estimate that
 * says so (translation.md §11, F5). The body is translated by the same code as a real request, so that
 * tools and system prompts count.
 */
import type { Ask } from '../core/dialect.ts';
import type { Conversation } from '../core/conversation.ts';
import { tryParseObject, type JsonSource } from '../core/json.ts';
import type { Notes } from '../core/notes.ts';
import type { Provider, Target, TokenCounter } from '../core/provider.ts';
import { requestWhole } from '../wire/whole-answer.ts';
import type { Gateway } from './call.ts';
import { forwardedHeaders } from './upstream-request.ts';

export interface TokenCount {
  readonly tokens: number;
  readonly source: 'reported' | 'estimated';
}

export interface CountRequest {
  readonly target: Target;
  readonly source: JsonSource;
  /** Dialect of the body. */
  readonly dialect: Provider['dialect']['id'];
  readonly conversation: Conversation;
  readonly notes: Notes;
  header(name: string): string | undefined;
}

const limits = { timeoutMs: 10_000, maxBytes: 1024 * 1024 } as const;

/** @throws GatewayError `invalid_request` when the body cannot be rendered for the upstream. */
export async function countTokens(gateway: Gateway, request: CountRequest): Promise<TokenCount> {
  const { provider, model } = request.target;
  const ask: Ask = { model, stream: false, traits: provider.traits(model), newId: gateway.newId };
  const native = provider.dialect.id === request.dialect;
  const body = native
    ? provider.dialect.relayRequest(request.source, ask)
    : Buffer.from(
        JSON.stringify(provider.dialect.writeRequest(request.conversation, ask, request.notes)),
      );
  if (provider.counter !== undefined) {
    await provider.wake?.();
    const headers = forwardedHeaders(provider, native ? request : undefined);
    const tokens = await askCounter(gateway, provider.counter, {
      body,
      headers,
      connectMs: request.target.timeouts.connectMs,
    });
    if (tokens !== undefined) return { tokens, source: 'reported' };
  }
  return {
    tokens: gateway.estimator.input(`${provider.id}/${model}`, body.length),
    source: 'estimated',
  };
}

async function askCounter(
  gateway: Gateway,
  counter: TokenCounter,
  request: { body: Buffer; headers: readonly string[]; connectMs: number },
): Promise<number | undefined> {
  try {
    const answer = await requestWhole(
      gateway.client,
      { endpoint: counter.endpoint, method: 'POST', ...request },
      limits,
    );
    const count =
      answer.status === 200 ? tryParseObject(answer.body)?.[counter.answerField] : undefined;
    if (typeof count === 'number' && Number.isInteger(count)) return count;
    gateway.log.warn('token counter failed', { status: answer.status });
  } catch (error) {
    gateway.log.warn('token counter failed', {
      why: error instanceof Error ? error.message : 'unknown',
    });
  }
  return undefined;
}
