/** Step 5, first half: the bytes and headers that go to one target. */
import {
  type Ask,
  type ClientDialect,
  type UpstreamDialect,
  plannedStops,
} from '../core/dialect.ts';
import type { Conversation, Part } from '../core/conversation.ts';
import { type NoteList, type Notes, StrictNotes, withPathOf } from '../core/notes.ts';
import type { RecalledTurn } from '../core/recall.ts';
import type { Endpoint, Provider, Target } from '../core/provider.ts';
import type { UpstreamTraits } from '../core/traits.ts';
import type { UpstreamRequest } from '../wire/exchange.ts';
import type { Call, Mode } from '../core/call.ts';
import type { Gateway } from './gateway.ts';
import { type BodyOfJob, type LongBodies, LongBody } from './long-bodies/body-thread.ts';
import { addNotes, receivedError, receivedPieces } from './long-bodies/transfer.ts';
import type { NextRound } from './answer/translated-turn.ts';
import {
  type ReasoningMemory,
  type TurnWatch,
  restoreReasoning,
  withoutReasoning,
} from './reasoning-memory.ts';
import type { JsonObject } from '../json/value.ts';
import { withAutoMarks } from '../dialects/shared/request/auto-marks.ts';
import { withDemandAsFormat } from '../dialects/shared/request/demanded-call.ts';
import type { JsonSource } from '../core/client-body.ts';
import { Pieces } from '../json/pieces.ts';

const none: readonly string[] = [];

export interface PreparedRequest {
  readonly request: UpstreamRequest;
  readonly mode: Mode;
  readonly conversation: Conversation | undefined;
  /** Present where the upstream may want back what it is about to answer. */
  readonly watch: TurnWatch | undefined;
  readonly traits: UpstreamTraits;
  /** A stream was requested, whatever the client wants. */
  readonly streamed: boolean;
  /** Stop sequences that were not sent upstream: the path searches the answer for them. */
  readonly scanned: readonly string[];
}

/** A promise only where the body is long. */
export type Preparing = PreparedRequest | Promise<PreparedRequest>;

/** The plan of a request to one target. */
export interface TargetOptions {
  readonly traits: UpstreamTraits;
  readonly notes: NoteList;
  /** The round of a continued turn; absent = the first request. */
  readonly round?: NextRound | undefined;
  /** Of the span of this request, where the call is traced. */
  readonly spanId?: string | undefined;
  /** Whether the request may still be sent, where that can change while a long body waits; absent = it may. */
  readonly wanted?: () => boolean;
}

/** Holds nothing: shared by all calls. */
const strictNotes = new StrictNotes();

/**
 * The request of a call to one target, as it is sent, and as it is explained.
 * @throws GatewayError `invalid_request` for a request that this target cannot take, or that `strict` refuses.
 */
export function requestOf(
  gateway: Pick<Gateway, 'newId' | 'memory' | 'bodies'>,
  call: Call,
  target: Target,
  options: TargetOptions,
): Preparing {
  const { memory, bodies } = gateway;
  const { notes: own, round, spanId, wanted } = options;
  const ask = askOf(gateway, call, target, options);
  const strict = call.strict && round === undefined;
  const notes = strict ? strictNotes : own;
  const capNote = call.grant?.capNote;
  if (capNote !== undefined) own.changed([call.dialect.describe(call.source).capMember()], capNote);
  if (target.otherApi !== undefined) own.changed(['model'], target.otherApi);
  const answered = round?.resume === undefined ? round?.answered : undefined;
  return prepareRequest({ call, target, ask, memory, bodies, notes, answered, spanId, wanted });
}

/** What one target is asked for, member by member: spreads take three times the memory. */
type BodyAsk = { -readonly [K in keyof UpstreamBodyInput['ask']]: UpstreamBodyInput['ask'][K] };

function askOf(
  { newId, memory }: Pick<Gateway, 'newId' | 'memory'>,
  call: Call,
  target: Target,
  { traits, round }: TargetOptions,
): BodyAsk {
  const { grant, head, cache } = call;
  const { provider } = target;
  const { keyId } = call.caller;
  const resume = round?.resume;
  const ask: BodyAsk = {
    model: provider.body?.model ?? target.model,
    stream: head.stream,
    traits,
    newId,
    maxOutputTokens: round?.most ?? (grant?.sendsCap === true ? grant.outputCap : undefined),
    cache,
    provider: provider.id,
    recall: memory.recallFor(keyId),
    originOf: memory.originFor(keyId),
    sealer: memory.sealer,
  };
  if (head.compacts !== undefined) ask.compacts = head.compacts;
  if (resume !== undefined) ask.resume = resume;
  addBodyRules(ask, call, provider);
  return ask;
}

interface Asked {
  readonly call: Call;
  readonly target: Target;
  readonly ask: UpstreamBodyInput['ask'];
  readonly notes: Notes;
  readonly memory: ReasoningMemory;
  readonly bodies: LongBodies;
  /** The beginning of the answer, if this request continues it. */
  readonly answered?: readonly Part[] | undefined;
  /** Of the span of this request, where the call is traced. */
  readonly spanId?: string | undefined;
  readonly wanted?: (() => boolean) | undefined;
}

/**
 * The client's own bytes with the owned members spliced when client and upstream speak the same
 * dialect; else the conversation, read once and rendered in the upstream's dialect.
 * @throws GatewayError `invalid_request` for a request that this upstream cannot take.
 */
function prepareRequest(asked: Asked): Preparing {
  const { ask, notes, answered } = asked;
  const { source, dialect: client } = asked.call;
  if (source instanceof LongBody) return requestInThread(asked, source);
  const upstream = asked.target.provider.dialect;
  return prepared(asked, upstreamBody({ client, upstream, source, ask, notes, answered }));
}

/** The same for a long body. If the thread needs remembered turns, the job runs a second time with them. */
async function requestInThread(asked: Asked, source: LongBody): Promise<PreparedRequest> {
  const { call, target, ask, bodies, memory, wanted } = asked;
  const { newId: _, recall: __, originOf: ___, sealer: ____, ...plain } = ask;
  const input = {
    client: call.dialect.id,
    upstream: target.provider.dialect.id,
    ask: plain,
    strict: asked.notes instanceof StrictNotes,
    answered: asked.answered,
    keyId: call.caller.keyId,
    recalled: memory.empty ? undefined : new Map<string, RecalledTurn>(),
  };
  const body: BodyOfJob = {
    id: source.id,
    pieces: source.pieces,
    ...(wanted === undefined ? {} : { wanted }),
  };
  let made = await bodies.run('request', input, body);
  const recalled = memory.turnsOf('wanted' in made ? made.wanted : []);
  if (recalled.size > 0) made = await bodies.run('request', { ...input, recalled }, body);
  addNotes(asked.notes, made.notes);
  if ('refused' in made) throw receivedError(made.refused);
  const { conversation, body: sent, stream, scanned, needed } = made;
  const pieces = receivedPieces(sent, source.pieces);
  const { id, pieces: all } = source;
  const digest =
    made.asked ?? (() => bodies.run('asked', { client: input.client }, { id, pieces: all }));
  return prepared(asked, { body: pieces, stream, scanned, needed, conversation }, digest);
}

/** @param digest of what the users said, where it is known */
function prepared(
  { call, target, ask, memory, spanId }: Asked,
  made: UpstreamBody,
  digest?: string | (() => Promise<string>),
): PreparedRequest {
  const { provider, timeouts } = target;
  const { body, stream, scanned, needed, conversation } = made;
  const relay = conversation === undefined;
  return {
    request: {
      endpoint: endpointOf(provider, stream, ask.compacts === true),
      method: 'POST',
      headers: [
        ...forwardedHeaders(provider, relay ? call : undefined),
        ...needed,
        ...traceHeaders(call, provider, spanId),
      ],
      body,
      connectMs: timeouts.connectMs,
      ...sharerOf(provider.generate, call),
    },
    // An answer that is searched for stop sequences cannot be relayed byte for byte.
    mode: relay && scanned.length === 0 ? 'relay' : 'translate',
    conversation,
    watch: memory.watch(call, target, { conversation, digest }),
    traits: ask.traits,
    streamed: stream,
    scanned,
  };
}

function endpointOf(provider: Provider, stream: boolean, compacts: boolean): Endpoint {
  const special = compacts ? provider.compact : stream ? provider.stream : undefined;
  return special ?? provider.generate;
}

/** A key without a team shares with none. */
function sharerOf({ connections }: Endpoint, { caller }: Call): { readonly sharer?: string } {
  if (connections === undefined || connections === 'per-call') return {};
  const { keyId, team } = caller;
  const ofTeam = connections === 'per-team' && team !== undefined;
  return { sharer: ofTeam ? `team ${team}` : `key ${keyId}` };
}

/** Who sent the request; absent headers = nothing is forwarded. */
type HeaderReader = { header?(name: string): string | undefined } | undefined;

/** The changes of a body that the provider's addresses require. */
function addBodyRules(ask: BodyAsk, call: Call, provider: Provider): void {
  const inAddress = provider.body?.inAddress;
  if (inAddress !== undefined) ask.inAddress = inAddress;
  const client = call.dialect.id === provider.dialect.id ? call : undefined;
  const { added } = addedMembers(provider, client);
  if (added !== undefined) ask.added = added;
}

const noneAdded: Pick<Ask, 'added'> = {};

/** Members of the body instead of forwarded headers. @param client where it speaks the dialect of the provider */
export function addedMembers(provider: Provider, client: HeaderReader): Pick<Ask, 'added'> {
  if (provider.forwardedHeaders.length === 0) return noneAdded;
  const said = provider.forwardedHeaders.filter(({ member }) => member !== undefined);
  if (said.length === 0) return noneAdded;
  const members = said.map((header) =>
    header.member?.(permitted(client?.header?.(header.name), header.allowed) ?? header.otherwise),
  );
  return { added: Object.assign({}, ...members) };
}

/** Upstream headers are built from nothing; only allow-listed client headers go up (S17). */
export function forwardedHeaders(provider: Provider, client: HeaderReader): readonly string[] {
  if (provider.forwardedHeaders.length === 0) return none;
  const headers: string[] = [];
  for (const { name, otherwise, allowed, member } of provider.forwardedHeaders) {
    if (member !== undefined) continue;
    const value = permitted(client?.header?.(name), allowed) ?? otherwise;
    if (value !== undefined && value !== '') headers.push(name, value);
  }
  return headers;
}

/** Trace headers are sent only to configured providers (docs/operator/traces.md). */
function traceHeaders(
  { trace }: Call,
  { options }: Provider,
  spanId: string | undefined,
): readonly string[] {
  if (options?.traceContext !== true || trace === undefined || spanId === undefined) return none;
  return trace.headers(spanId);
}

/** The values of a comma list that the upstream takes, each once. */
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

// The body of a request to one target: a pure function of the client's body and of what is known of the target. It runs
// on the event loop for short bodies and in the worker thread for long ones (`long-bodies/`).

const noEdits: readonly string[] = [];

interface UpstreamBodyInput {
  readonly client: ClientDialect;
  readonly upstream: UpstreamDialect;
  readonly source: JsonSource;
  readonly ask: Ask & Required<Pick<Ask, 'recall' | 'provider'>>;
  readonly notes: Notes;
  /** The beginning of the answer, if this request continues it. */
  readonly answered?: readonly Part[] | undefined;
}

interface UpstreamBody {
  readonly body: Pieces;
  /** A stream is requested. */
  readonly stream: boolean;
  /** Stop sequences that are not sent upstream: the path searches the answer for them. */
  readonly scanned: readonly string[];
  /** Headers that the rendered body needs. */
  readonly needed: readonly string[];
  /** Absent where the client's own bytes go up. */
  readonly conversation: Conversation | undefined;
}

/**
 * The client's own bytes with the owned members spliced when client and upstream speak the same
 * dialect; else the conversation, read once and rendered in the upstream's dialect.
 * @throws GatewayError `invalid_request` for a request that this upstream cannot take.
 */
export function upstreamBody(input: UpstreamBodyInput): UpstreamBody {
  const { client, upstream, source, ask, notes } = input;
  const relays = client.id === upstream.id && !upstream.translates?.(source, ask.traits, notes);
  return relays ? relayedBody(input) : translatedBody(input);
}

function relayedBody({ upstream, source, ask, notes }: UpstreamBodyInput): UpstreamBody {
  const { scanned } = plannedStops(upstream.stopsOf?.(source), ask.traits);
  const stream = isRelayedAsStream(ask, scanned);
  const own = stream === ask.stream ? ask : { ...ask, stream };
  const body = upstream.relayRequest(source, own, notes);
  return { body, stream, scanned, needed: noEdits, conversation: undefined };
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
  const taken = addressed(withoutRefused(rendered, ask.traits, notes), ask);
  const body = Pieces.of(Buffer.from(JSON.stringify(taken)));
  return { body, stream, scanned, needed: upstream.headersOf?.(taken) ?? noEdits, conversation };
}

function readConversation({ client, source, ask, notes }: UpstreamBodyInput): Conversation {
  const read = shown(client.readRequest(source.value, notes, ask.sealer), ask.traits);
  const marked = ask.cache === 'auto' && ask.traits.cacheMarks ? withAutoMarks(read) : read;
  return withDemandAsFormat(capped(marked, ask.maxOutputTokens), ask.traits, notes);
}

/** With its reasoning shown, where only a client that does not request it hides it and the operator shows it. */
function shown(conversation: Conversation, { showsReasoning }: UpstreamTraits): Conversation {
  const { reasoning } = conversation;
  if (showsReasoning !== true || reasoning?.unasked !== true) return conversation;
  const { unasked: _, ...asked } = reasoning;
  return { ...conversation, reasoning: withPathOf(reasoning, { ...asked, hidden: false }) };
}

/** Without what this model is known to refuse, whatever it says; mostly the body itself. */
function withoutRefused(
  body: JsonObject,
  { refuses = noEdits }: UpstreamTraits,
  notes: Notes,
): JsonObject {
  const refused = refuses.filter((name) => body[name] !== undefined);
  if (refused.length === 0) return body;
  for (const name of refused) notes.lost([name], 'the model does not take it');
  return Object.fromEntries(Object.entries(body).filter(([name]) => !refused.includes(name)));
}

/** Removes members that the URL carries, and adds members that the server requires. */
function addressed(body: JsonObject, { inAddress, added }: Ask): JsonObject {
  if (inAddress === undefined && added === undefined) return body;
  const rest = Object.entries(body).filter(([name]) => !inAddress?.some((said) => said === name));
  return { ...added, ...Object.fromEntries(rest) };
}

/** As the client requested, if the upstream supports it and no stop sequence is searched for. */
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

/** The data that the writers of an answer read: no texts, no schemas, of the turns only the ids of calls. */
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
