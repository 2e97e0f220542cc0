/** Step 5, first half: the bytes and headers that go to one target. */
import type { Ask } from '../core/dialect.ts';
import type { Conversation, JsonObject, Part } from '../core/conversation.ts';
import { jsonInSteps } from '../core/json-write.ts';
import type { Notes } from '../core/notes.ts';
import { Pieces } from '../core/pieces.ts';
import type { Provider, Target } from '../core/provider.ts';
import { atOnce, inTurns, isLong, nextTurn, type Steps } from '../core/steps.ts';
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

/** A promise only where the body is long and translated. */
export type Preparing = PreparedRequest | Promise<PreparedRequest>;

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
export function prepareRequest(call: Call, target: Target, means: RequestMeans): Preparing {
  const { provider } = target;
  const recall = means.memory.recallFor(call.caller.keyId);
  const ask = { ...means.ask, provider: provider.id, recall };
  const asked: Asked = { call, target, means, ask };
  if (provider.dialect.id !== call.dialect.id) return translate(asked);
  const stream = ask.stream || ask.traits.streams === 'only';
  const own = stream === ask.stream ? ask : { ...ask, stream };
  const body = provider.dialect.relayRequest(call.source, own, means.notes);
  return prepared(asked, { body, stream, scanned: none, needed: none, conversation: undefined });
}

interface Asked {
  readonly call: Call;
  readonly target: Target;
  readonly means: RequestMeans;
  readonly ask: Ask & Required<Pick<Ask, 'recall'>>;
}

/** What a request is made of, in either way. */
interface Made {
  readonly body: Pieces;
  readonly stream: boolean;
  readonly scanned: readonly string[];
  /** Headers that the rendered body needs. */
  readonly needed: readonly string[];
  /** Absent where the client's own bytes go up. */
  readonly conversation: Conversation | undefined;
}

/** A promise only where the body is long: all other calls have their turn between the steps (G11). */
function translate(asked: Asked): PreparedRequest | Promise<PreparedRequest> {
  if (isLong(asked.call.source)) return translateInSteps(asked);
  const conversation = atOnce(readConversation(asked));
  const { rendered, ...rest } = atOnce(render(asked, conversation));
  const body = Pieces.of(Buffer.from(JSON.stringify(rendered)));
  return prepared(asked, { ...rest, body, conversation });
}

async function translateInSteps(asked: Asked): Promise<PreparedRequest> {
  await nextTurn();
  const conversation = await inTurns(readConversation(asked));
  await nextTurn();
  const { rendered, ...rest } = await inTurns(render(asked, conversation));
  await nextTurn();
  const body = Pieces.of(await jsonInSteps(rendered));
  return prepared(asked, { ...rest, body, conversation });
}

function* readConversation({ call, means, ask }: Asked): Steps<Conversation> {
  const { dialect, source } = call;
  const read = yield* dialect.requestReading(source.value, means.notes, means.memory.sealer);
  return capped(read, ask.maxOutputTokens);
}

interface Rendered extends Pick<Made, 'stream' | 'scanned' | 'needed'> {
  readonly rendered: JsonObject;
}

function* render({ target, means, ask }: Asked, conversation: Conversation): Steps<Rendered> {
  const { id, dialect } = target.provider;
  const restored =
    ask.traits.historyReasoning === false
      ? withoutReasoning(conversation)
      : restoreReasoning(conversation, { provider: id, dialect: dialect.id }, ask.recall);
  const { scanned } = plannedStops(conversation.sampling.stop, ask.traits);
  const stream = goesAsStream(ask, scanned);
  const whole = withAnswer(restored, means.answered);
  yield;
  const rendered = yield* dialect.requestWriting(whole, { ...ask, stream }, means.notes);
  return { rendered, stream, scanned, needed: dialect.headersOf?.(rendered) ?? none };
}

function prepared({ call, target, means, ask }: Asked, made: Made): PreparedRequest {
  const { provider, timeouts } = target;
  const { body, stream, scanned, needed, conversation } = made;
  const relay = conversation === undefined;
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
      connectMs: timeouts.connectMs,
    },
    mode: relay ? 'relay' : 'translate',
    conversation,
    watch: means.memory.watch(call, target, conversation),
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
