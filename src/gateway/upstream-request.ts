/** Step 5, first half: the bytes and headers that go to one target. */
import type { Ask } from '../core/dialect.ts';
import type { Conversation, Part } from '../core/conversation.ts';
import type { Notes } from '../core/notes.ts';
import type { Provider, Target } from '../core/provider.ts';
import { plannedStops } from '../core/stops.ts';
import type { UpstreamTraits } from '../core/traits.ts';
import type { UpstreamRequest } from '../wire/exchange.ts';
import type { Call } from './call.ts';
import type { ReasoningMemory, TurnWatch } from './reasoning-memory.ts';
import type { Mode } from './receipt.ts';
import { restoreReasoning, withoutReasoning } from './restore-reasoning.ts';

const none: readonly string[] = [];

export interface PreparedRequest {
  readonly request: UpstreamRequest;
  readonly mode: Mode;
  readonly conversation: Conversation | undefined;
  /** Present where the upstream may want back what it is about to answer. */
  readonly watch: TurnWatch | undefined;
  readonly traits: UpstreamTraits;
  /** A stream was asked for, whatever the client wants. */
  readonly streamed: boolean;
  /** Stop sequences that the upstream was not told: the path looks for them. */
  readonly scanned: readonly string[];
}

export interface RequestMeans {
  readonly ask: Ask;
  readonly notes: Notes;
  readonly memory: ReasoningMemory;
  /** The beginning of the answer, where the upstream is asked to go on with it. */
  readonly answered?: readonly Part[] | undefined;
  /** Of the span of this request, where the call is traced. */
  readonly spanId?: string | undefined;
}

/**
 * The client's own bytes with the owned members spliced when client and upstream speak the same
 * dialect; else the conversation, read once and rendered in the upstream's dialect.
 * @throws GatewayError `invalid_request` for what this upstream cannot be asked.
 */
export function prepareRequest(call: Call, target: Target, means: RequestMeans): PreparedRequest {
  const { provider } = target;
  const { memory, notes } = means;
  const recall = memory.recallFor(call.caller.keyId);
  const ask = { ...means.ask, provider: provider.id, recall };
  const relay = provider.dialect.id === call.dialect.id;
  let conversation: Conversation | undefined;
  let body: Buffer;
  let { stream } = ask;
  let scanned: readonly string[] = [];
  let needed: readonly string[] = [];
  if (relay) {
    stream ||= ask.traits.streams === 'only';
    const own = stream === ask.stream ? ask : { ...ask, stream };
    body = provider.dialect.relayRequest(call.source, own, notes);
  } else {
    const read = call.dialect.readRequest(call.source.value, notes, memory.sealer);
    conversation = capped(read, ask.maxOutputTokens);
    const upstream = { provider: provider.id, dialect: provider.dialect.id };
    const restored =
      ask.traits.historyReasoning === false
        ? withoutReasoning(conversation)
        : restoreReasoning(conversation, upstream, recall);
    scanned = plannedStops(conversation.sampling.stop, ask.traits).scanned;
    stream = goesAsStream(ask, scanned);
    const whole = withAnswer(restored, means.answered);
    const rendered = provider.dialect.writeRequest(whole, { ...ask, stream }, notes);
    body = Buffer.from(JSON.stringify(rendered));
    needed = provider.dialect.headersOf?.(rendered) ?? needed;
  }
  return {
    request: {
      endpoint: provider.generate,
      method: 'POST',
      headers: [
        ...forwardedHeaders(provider, relay ? call : undefined),
        ...needed,
        ...traceHeaders(call, provider, means.spanId),
      ],
      body,
      connectMs: target.timeouts.connectMs,
    },
    mode: relay ? 'relay' : 'translate',
    conversation,
    watch: memory.watch(call, target, conversation),
    traits: ask.traits,
    streamed: stream,
    scanned,
  };
}

/** Only a stream can be cut where a stop sequence is found, before all of it is paid for. */
function goesAsStream({ stream, traits }: Ask, scanned: readonly string[]): boolean {
  if (traits.streams === 'never') return false;
  return stream || traits.streams !== undefined || scanned.length > 0;
}

/** The conversation under a cap that holds instead of the client's own. */
function capped(conversation: Conversation, maxOutputTokens: number | undefined): Conversation {
  if (maxOutputTokens === undefined) return conversation;
  return { ...conversation, sampling: { ...conversation.sampling, maxOutputTokens } };
}

function withAnswer(
  conversation: Conversation,
  answered: readonly Part[] | undefined,
): Conversation {
  if (answered === undefined) return conversation;
  const turns = [...conversation.turns, { role: 'assistant', parts: answered } as const];
  return { ...conversation, turns };
}

/** Upstream headers are built from nothing; only allow-listed client headers go up (S17). */
export function forwardedHeaders(
  provider: Provider,
  client: { header(name: string): string | undefined } | undefined,
): readonly string[] {
  if (provider.forwardedHeaders.length === 0) return [];
  const headers: string[] = [];
  for (const { name, otherwise, allowed } of provider.forwardedHeaders) {
    const value = permitted(client?.header(name), allowed) ?? otherwise;
    if (value !== undefined && value !== '') headers.push(name, value);
  }
  return headers;
}

/** Where calls come from is told only to those who are to know (docs/traces.md). */
function traceHeaders(
  { trace }: Call,
  { traceContext }: Provider,
  spanId: string | undefined,
): readonly string[] {
  if (traceContext !== true || trace === undefined || spanId === undefined) return none;
  return trace.headers(spanId);
}

/** The values of a comma list that the upstream takes, each once (B69). */
function permitted(
  list: string | undefined,
  allowed: ReadonlySet<string> | undefined,
): string | undefined {
  if (list === undefined || (allowed === undefined && !list.includes(','))) return list;
  const values = new Set(list.split(',').map((value) => value.trim()));
  return [...values]
    .filter((value) => value !== '' && (allowed === undefined || allowed.has(value)))
    .join(',');
}
