/** One wire format, two halves. No I/O, no clock, no await: bytes and values in, values and text out. */
import type { Pieces } from '../json/pieces.ts';
import type { JsonObject } from '../json/value.ts';
import type { JsonSource, WholeDocument } from './client-body.ts';
import type { Conversation, DialectId, Origin } from './conversation.ts';
import type { Countable, DescribedSource, Prompt, RequestDescription } from './description.ts';
import type { ErrorCode, FieldPath, GatewayError } from './errors.ts';
import type { Generation, GenerationEvent, Usage } from './generation.ts';
import type { Recall } from './recall.ts';
import type { StoredResponseCodec } from './stored-response.ts';
import type { Notes } from './notes.ts';
import type { Standings } from './policy.ts';
import type { NewId } from './runtime.ts';
import type { Sealer } from './secret.ts';
import type { TwinNames } from './shape.ts';
import type { ModelTokenizer } from './provider.ts';
import type { UpstreamTraits } from './traits.ts';

/** The fields of a request that the gateway itself decides on. */
export interface RequestHead {
  readonly model: string;
  readonly stream: boolean;
  readonly maxOutputTokens?: number;
  /** The number of requested answers (chat `n`); absent = one. */
  readonly choices?: number;
  /** Reasoning tokens that the client demands: an output cap must leave room behind them. */
  readonly reasoningBudget?: number;
  /** The client requests reasoning, in whatever words: the first event may take its time (R7). */
  readonly reasons?: boolean;
  /** Chat `stream_options.include_usage`; always true for messages and responses. */
  readonly wantsUsageFrame: boolean;
  /** The stored responses that the request makes or refers to; absent = its dialect has none. */
  readonly state?: RequestState;
  /** The conversation is to be compacted and not answered. */
  readonly compacts?: true;
}

/** State on the side of the service, which some dialects have (docs/user/responses.md). */
export interface RequestState {
  /** The answer may be stored; later requests refer to it. */
  readonly store: boolean;
  /** The response that this request continues. */
  readonly previousResponseId?: string;
  /** Ids of stored items that are in the request by their id only, in their order. */
  readonly itemReferences: readonly string[];
  /**
   * Ids of its own items, or references, by which later requests may name them; absent = none has one, or nothing is
   * stored.
   */
  readonly itemIds?: readonly string[];
  /** How many items it has. */
  readonly items?: number;
  /** How many items of earlier responses were put before its own; absent = none. */
  readonly earlierItems?: number;
}

/** The data about a call that the writer of its answer needs. */
export interface AnswerContext {
  /** The model name that the client used; the answer repeats it. */
  readonly model: string;
  readonly requestId: string;
  /** Unix seconds, for `created`. */
  readonly createdSeconds: number;
  /** Unix time when it is read. */
  readonly nowSeconds: number;
  readonly wantsUsageFrame: boolean;
  /** The response that the request referred to, and whether the answer is stored. The answer repeats both. */
  readonly state?: RequestState;
  /** The answer is a compacted conversation. */
  readonly compacts?: true;
  /** A guess of the prompt's tokens, for `message_start` when the upstream has not said yet. */
  readonly promptTokensEstimate: number;
  readonly newId: NewId;
  readonly notes: Notes;
  /** Present when the request was translated; answers may depend on how tools were declared. */
  readonly conversation?: Conversation;
  /** Present when the upstream speaks another dialect: marks what must find its way back to it. */
  readonly sealing?: Sealing;
  /** The call has a cap at which the gateway may end the stream itself (F63). */
  readonly mayBeCut?: boolean;
  /** Present when the answer to the client began before the upstream's. */
  readonly opening?: StreamOpening;
}

/** A stream that began before any upstream answered, since clients count events and not comments. */
export interface StreamOpening {
  /** The next event for a silent time. */
  keepAlive(): string;
  /** The frames that end the stream in failure. */
  fail(error: GatewayError, requestId: string): string;
}

/** How an answer is marked for the way back. */
export interface Sealing {
  readonly sealer: Sealer;
  readonly upstream: Origin;
  /** Called for each call whose id the client gets in another form than the upstream wrote. */
  callShown?(id: string, shown: string): void;
}

/** One server-sent event as it stood on the wire. `bytes` includes its blank line. */
export interface Frame {
  readonly bytes: Buffer;
  readonly event: string | undefined;
  /** Joined `data:` lines; undefined for comments and empty events. */
  readonly data: string | undefined;
  /** The stream failed here, in the words of its framing and not of its dialect. */
  readonly failure?: GatewayError;
}

/** Splits the bytes of one stream into frames. */
export interface FrameSplitter {
  /** Chunks in order. @throws GatewayError `upstream_invalid` */
  push(chunk: Buffer): readonly Frame[];
  /** The rest when the upstream closed. */
  end(): Frame | undefined;
}

/** Upstream frames in, events out; state of one stream. Throws GatewayError `upstream_invalid`. */
export interface StreamReader {
  read(frame: Frame): readonly GenerationEvent[];
  /** The upstream closed. Returns the missing end events; an `error` event if no finish was read. */
  end(): readonly GenerationEvent[];
  /** A finish was read but its event is held back for a usage report that may follow (F58). */
  readonly finishPending: boolean;
  /** The frame that was read last went on with a text, and said nothing else. */
  readonly plain?: boolean;
  /** Characters of all answers but the first, where several were requested; they have no events. */
  readonly otherChoicesLength?: number;
}

/** Events in, wire text out; state of one stream. Text may be '' when nothing is due yet. */
export interface StreamWriter {
  write(event: GenerationEvent): string;
  /** The terminator. Called once, only after a `finish` was written. */
  end(): string;
  /**
   * The frames that end the stream in failure; absent = the dialect's `writeStreamError`.
   * @param usage that the upstream reported with the failure
   */
  fail?(error: GatewayError, requestId: string, usage?: Usage): string;
  /** A harmless frame for silent times; absent = the dialect's `keepAlive`. */
  keepAlive?(): string;
}

/** Edits that a relayed answer needs so that it is the client's and not the upstream's. */
export interface AnswerRelay {
  /**
   * The frame's bytes to send (the same object when unchanged), or undefined to drop it.
   * @param gap with the frame that carries the finish: usage that the upstream omitted, or that cannot be (F55).
   */
  frame(frame: Frame, events: readonly GenerationEvent[], gap?: Usage): Buffer | undefined;
  /** The same for a frame whose reader calls it plain. Absent = `frame` is called for all of them. */
  plainFrame?(frame: Frame): Buffer | undefined;
  /**
   * A whole JSON answer with the client's model name.
   * @param gap stands in for a report that the upstream omitted, or that cannot be (F55).
   */
  document(answer: WholeDocument, gap?: Usage): Buffer;
  /** The terminator (`[DONE]`, `message_stop`) was forwarded; every later frame is dropped. */
  readonly ended: boolean;
  /** The missing frames of a proper ending after the upstream's finish; '' = none (F55). */
  ending(gap?: Usage): string;
  /**
   * The ending of an answer that is cut at its cap before the upstream finished it (F63).
   * @param choices how many answers were requested.
   */
  cutShort(usage: Usage, choices: number): string;
  /** As a writer's. */
  fail?(error: GatewayError, requestId: string, usage?: Usage): string;
  keepAlive?(): string;
}

/** How this dialect shows each error code. */
export interface ErrorForm {
  readonly status: number;
  readonly type: string;
  readonly code: string | null;
}
export type ErrorTable = { readonly [C in ErrorCode]: ErrorForm };

export interface WrittenError {
  readonly status: number;
  readonly body: JsonObject;
}

/** Says what is wrong in the words of a dialect. @param rule the end of a sentence: `must not be empty`. */
export type Fault = (path: FieldPath, rule: string) => GatewayError;

/** How the dialect of a client is recognised on a path that no dialect owns, such as the list of models. */
export interface SharedRequest {
  /** Without the question mark. */
  readonly query: string;
  header(name: string): string | undefined;
}

/** The endpoint that counts the tokens of a request's prompt. */
export interface CountEndpoint {
  readonly path: string;
  /**
   * The model that the body names; the body is checked as far as a real request's.
   * @throws GatewayError `invalid_request` or `too_large` for a body that no provider could take.
   */
  readModel(body: JsonObject): string;
  /** The prompt of a checked body. What a real request would be refused for is omitted and noted. */
  readRequest(body: JsonObject, notes: Notes, sealer?: Sealer): Conversation;
  write(tokens: number): JsonObject;
}

/** The half that faces the client. */
export interface ClientDialect {
  readonly id: DialectId;
  /** Paths under the listener that speak this dialect, e.g. `/v1/messages`. */
  readonly paths: readonly string[];
  /** Where its clients have conversations compacted; absent = nowhere. */
  readonly compactPath?: string;
  /** Absent = requests of the dialect refer to nothing that is stored. */
  readonly stored?: StoredResponseCodec;
  /** Absent = the dialect has no endpoint that counts tokens. */
  readonly count?: CountEndpoint;
  /** Whether a request on a shared path comes from a client of this dialect; absent = never. */
  claims?(request: SharedRequest): boolean;
  /** Name of the endpoint in a key's scope: `chat`, `messages` or `responses`. */
  readonly scope: string;
  /** Keys that may not occur twice. */
  readonly ownedKeys: ReadonlySet<string>;
  /** Refuses names that another reader may take for members that are read here. */
  readonly names: TwinNames;
  /** A 400 for a value that may not travel; `rule` is the end of a sentence. */
  readonly fault: Fault;
  /**
   * Reads the head and refuses what no provider could take (B42–B58), in both modes.
   * @throws GatewayError `invalid_request` with the path of the field.
   */
  readHead(body: JsonObject): RequestHead;
  /** The description of a request for code outside of the dialect. */
  describe(source: DescribedSource): RequestDescription;
  /**
   * Reads the whole request, for translation only.
   * @param sealer opens what the gateway sealed; without it, nothing opens.
   * @throws GatewayError `invalid_request` for what the canonical form cannot hold.
   */
  readRequest(body: JsonObject, notes: Notes, sealer?: Sealer): Conversation;
  writeResponse(generation: Generation, context: AnswerContext): JsonObject;
  streamWriter(context: AnswerContext): StreamWriter;
  /** Begins a stream in silence; absent = `keepAlive` says all. */
  openStream?(
    context: Pick<AnswerContext, 'model' | 'createdSeconds' | 'newId' | 'state'>,
  ): StreamOpening;
  answerRelay(context: AnswerContext): AnswerRelay;
  writeError(error: GatewayError, requestId: string): WrittenError;
  /** One frame that ends a committed stream in failure (EM); nothing may follow it. */
  writeStreamError(error: GatewayError, requestId: string): string;
  /** A harmless frame for silent times; `started` = something of the stream was already sent. */
  keepAlive(started: boolean): string;
  /** Flat headers with the state of the caller's limits; none without limits. */
  limitHeaders(standings: Standings, wallMs: number): readonly string[];
}

/** The options of an upstream request besides the conversation. */
export interface Ask {
  readonly model: string;
  readonly stream: boolean;
  readonly traits: UpstreamTraits;
  readonly newId: NewId;
  /** A cap on the output that holds instead of the client's own (budgets). */
  readonly maxOutputTokens?: number | undefined;
  /** The token with which a further request continues an answer that the upstream paused (`FinishReason.resume`). */
  readonly resume?: string;
  /** The conversation is to be compacted; relay only. */
  readonly compacts?: true;
  /** Members that are in the address. The body must not have them. */
  readonly inAddress?: readonly ('model' | 'stream')[];
  /** Members that the server wants in the body besides those of the dialect. */
  readonly added?: JsonObject;
  /** Where the client sets no cache marks, the gateway does (`cache: auto`). */
  readonly cache?: 'auto' | undefined;
  /** The provider of this request: data that another provider sealed is not sent. */
  readonly provider?: string;
  /** The remembered turns of this key, for relayed requests to upstreams that require them back. */
  readonly recall?: Recall;
  /** The origin of reasoning by its text, for this key; undefined = not remembered. */
  readonly originOf?: (reasoning: string) => Origin | undefined;
  /** Proves what the gateway marked itself. */
  readonly sealer?: Sealer;
}

/** The half that faces the provider. */
export interface UpstreamDialect {
  readonly id: DialectId;
  /**
   * Every provider of this dialect accepts reasoning that another one of them made, since it carries a signature. Absent =
   * a provider takes back its own reasoning only.
   */
  readonly signsReasoning?: true;
  /** The texts, media and frames of a rendered or relayed body. */
  promptOf(body: JsonObject): Prompt;
  /** The texts of a body that a public tokenizer counts; absent = no recipe is known. */
  countable?(body: JsonObject, tokenizer: ModelTokenizer): Countable | undefined;
  /** The members of a rendered request that the counter of this API takes. Absent: all of them. */
  readonly countedMembers?: ReadonlySet<string>;
  /**
   * Renders a translated request, the same bytes for the same conversation each time.
   * @throws GatewayError `invalid_request` for what this upstream cannot honour (REJECT).
   */
  writeRequest(conversation: Conversation, ask: Ask, notes: Notes): JsonObject;
  /**
   * Whether a translated request carries this service tier, `fast` for fast mode. Absent = all of them, where the model
   * has service tiers.
   */
  takesTier?(tier: string, traits: UpstreamTraits): boolean;
  /** Headers that a rendered request needs, flat; usually none. */
  headersOf?(body: JsonObject): readonly string[];
  /** The stop sequences of a same-dialect request; absent = the upstream takes all that its clients may send. */
  stopsOf?(source: Pick<JsonSource, 'skeleton' | 'spans'>): readonly string[] | undefined;
  /**
   * Whether a same-dialect request is translated instead of relayed, with a note: it has a form of the dialect that the
   * upstream lacks, and the client expects its answer in this form. Absent = never.
   */
  translates?(
    source: Pick<JsonSource, 'skeleton' | 'spans'>,
    traits: UpstreamTraits,
    notes: Notes,
  ): boolean;
  /** A same-dialect request: the client's bytes, changed where the upstream would not take them. */
  relayRequest(source: JsonSource, ask: Ask, notes?: Notes): Pieces;
  /**
   * @param notes of what the generation cannot hold; absent where the upstream's own bytes go to the client
   * @param choices how many answers were requested; of one by default
   * @throws GatewayError when the body is not an answer (`upstream_invalid`) or is an error.
   */
  readResponse(
    body: JsonObject,
    traits: UpstreamTraits,
    notes?: Notes,
    choices?: number,
  ): Generation;
  /** @param notes, choices as of `readResponse` */
  streamReader(traits: UpstreamTraits, notes?: Notes, choices?: number): StreamReader;
  /** Any error body of this dialect's servers, whatever its shape. */
  readError(status: number, body: string): GatewayError;
}

// Which stop sequences an upstream searches for, and which the gateway must.

interface StopPlan {
  /** Sent upstream. */
  readonly native: readonly string[];
  /** Found by the gateway in the text of the answer, which it then cuts. */
  readonly scanned: readonly string[];
}

const noStops: StopPlan = { native: [], scanned: [] };

/**
 * The request writer sends `native`, the path scans for `scanned`; both use this plan, so that every sequence
 * is handled exactly once. If there are more than the upstream takes, the gateway scans for all of them, since
 * the choice of which to omit would be arbitrary.
 */
export function plannedStops(
  stop: readonly string[] | undefined,
  { stopMax, refusesBlankStops }: Pick<UpstreamTraits, 'stopMax' | 'refusesBlankStops'>,
): StopPlan {
  if (stop === undefined || stop.length === 0) return noStops;
  const wanted = stop;
  const usable = refusesBlankStops === true ? wanted.filter((text) => text.trim() !== '') : wanted;
  if (stopMax !== undefined && usable.length > stopMax) return { native: [], scanned: wanted };
  return { native: usable, scanned: wanted.filter((text) => !usable.includes(text)) };
}
