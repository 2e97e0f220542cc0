/**
 * The body of a request to one target: a pure function of the client's body and of what is known of the target. It runs
 * on the event loop for short bodies and in the worker thread for long ones (`long-bodies/`).
 */
import type { JsonObject } from '../json/value.ts';
import { withAutoMarks } from '../dialects/shared/auto-marks.ts';
import type { Conversation, Part } from '../core/conversation.ts';
import { withDemandAsFormat } from '../dialects/shared/demanded-call.ts';
import type { Ask, ClientDialect, UpstreamDialect } from '../core/dialect.ts';
import type { JsonSource } from '../core/client-body.ts';
import type { Notes } from '../core/notes.ts';
import { Pieces } from '../json/pieces.ts';
import { withPathOf } from '../core/paths.ts';
import { plannedStops } from '../core/stops.ts';
import type { UpstreamTraits } from '../core/traits.ts';
import { restoreReasoning, withoutReasoning } from './reasoning-memory.ts';

const none: readonly string[] = [];

export interface UpstreamBodyInput {
  readonly client: ClientDialect;
  readonly upstream: UpstreamDialect;
  readonly source: JsonSource;
  readonly ask: Ask & Required<Pick<Ask, 'recall' | 'provider'>>;
  readonly notes: Notes;
  /** The beginning of the answer, where the upstream is asked to go on with it. */
  readonly answered?: readonly Part[] | undefined;
}

export interface UpstreamBody {
  readonly body: Pieces;
  /** A stream is asked for. */
  readonly stream: boolean;
  /** Stop sequences that the upstream is not told: the path looks for them. */
  readonly scanned: readonly string[];
  /** Headers that the rendered body needs. */
  readonly needed: readonly string[];
  /** Absent where the client's own bytes go up. */
  readonly conversation: Conversation | undefined;
}

/**
 * The client's own bytes with the owned members spliced when client and upstream speak the same
 * dialect; else the conversation, read once and rendered in the upstream's dialect.
 * @throws GatewayError `invalid_request` for what this upstream cannot be asked.
 */
export function upstreamBody(input: UpstreamBodyInput): UpstreamBody {
  return input.client.id === input.upstream.id ? relayedBody(input) : translatedBody(input);
}

function relayedBody({ upstream, source, ask, notes }: UpstreamBodyInput): UpstreamBody {
  const { scanned } = plannedStops(upstream.stopsOf?.(source), ask.traits);
  const stream = isRelayedAsStream(ask, scanned);
  const own = stream === ask.stream ? ask : { ...ask, stream };
  const body = upstream.relayRequest(source, own, notes);
  return { body, stream, scanned, needed: none, conversation: undefined };
}

function translatedBody(input: UpstreamBodyInput): UpstreamBody {
  const { upstream, ask, notes } = input;
  const conversation = readConversation(input);
  const restored =
    ask.traits.historyReasoning === false
      ? withoutReasoning(conversation)
      : restoreReasoning(conversation, { id: ask.provider, dialect: upstream }, ask.recall);
  const { scanned } = plannedStops(conversation.sampling.stop, ask.traits);
  const stream = goesAsStream(ask, scanned);
  const whole = withAnswer(restored, input.answered);
  const rendered = upstream.writeRequest(whole, { ...ask, stream }, notes);
  const taken = withoutRefused(rendered, ask.traits, notes);
  const body = Pieces.of(Buffer.from(JSON.stringify(taken)));
  return { body, stream, scanned, needed: upstream.headersOf?.(taken) ?? none, conversation };
}

function readConversation({ client, source, ask, notes }: UpstreamBodyInput): Conversation {
  const read = client.readRequest(source.value, notes, ask.sealer);
  const marked = ask.cache === 'auto' && ask.traits.cacheMarks ? withAutoMarks(read) : read;
  return withDemandAsFormat(capped(marked, ask.maxOutputTokens), ask.traits, notes);
}

/** Without what this model is known to refuse, whatever it says; mostly the body itself. */
function withoutRefused(
  body: JsonObject,
  { refuses = none }: UpstreamTraits,
  notes: Notes,
): JsonObject {
  const refused = refuses.filter((name) => body[name] !== undefined);
  if (refused.length === 0) return body;
  for (const name of refused) notes.lost([name], 'the model does not take it');
  return Object.fromEntries(Object.entries(body).filter(([name]) => !refused.includes(name)));
}

/** As the client asked, where the upstream can answer so and no stop sequence is looked for. */
function isRelayedAsStream({ stream, traits }: Ask, scanned: readonly string[]): boolean {
  if (traits.streams === 'never') return false;
  return stream || traits.streams === 'only' || scanned.length > 0;
}

/** Only a stream can be cut where a stop sequence is found, before all of it is paid for. */
function goesAsStream({ stream, traits }: Ask, scanned: readonly string[]): boolean {
  if (traits.streams === 'never') return false;
  return stream || traits.streams !== undefined || scanned.length > 0;
}

/** The conversation under a cap that holds instead of the client's own. */
function capped(conversation: Conversation, maxOutputTokens: number | undefined): Conversation {
  if (maxOutputTokens === undefined) return conversation;
  const { sampling } = conversation;
  return { ...conversation, sampling: withPathOf(sampling, { ...sampling, maxOutputTokens }) };
}

function withAnswer(
  conversation: Conversation,
  answered: readonly Part[] | undefined,
): Conversation {
  if (answered === undefined) return conversation;
  const turns = [...conversation.turns, { role: 'assistant', parts: answered } as const];
  return { ...conversation, turns };
}

/** What the writers of an answer look at: no texts, no schemas, of the turns the ids of calls only. */
export function conversationForAnswer(conversation: Conversation): Conversation {
  const { output, turns, tools } = conversation;
  const ids = turns.flatMap(({ parts }) =>
    parts.flatMap((part) => (part.type === 'tool-call' ? [part.id] : [])),
  );
  const calls = ids.map((id) => ({ type: 'tool-call', id, name: '', argumentsJson: '' }) as const);
  return {
    ...conversation,
    system: [],
    turns: calls.length === 0 ? [] : [{ role: 'assistant', parts: calls }],
    tools: tools.map(({ name, freeText, native, extras }) => ({
      name,
      schema: {},
      ...(extras === undefined ? {} : { extras }),
      ...(freeText === undefined ? {} : { freeText }),
      ...(native === undefined ? {} : { native: { dialect: native.dialect, value: {} } }),
    })),
    output:
      output.type === 'json' && output.schema !== undefined ? { ...output, schema: {} } : output,
  };
}
