/** One wire format, two halves. No I/O, no clock, no await: bytes and values in, values and text out. */
import type { Conversation, DialectId, JsonObject, Origin } from './conversation.ts';
import type { ErrorCode, GatewayError } from './errors.ts';
import type { Generation, GenerationEvent, Usage } from './generation.ts';
import type { Standings } from './grant.ts';
import type { JsonSource } from './json.ts';
import type { WholeDocument } from './json-answer.ts';
import type { Recall } from './kept-turn.ts';
import type { Notes } from './notes.ts';
import type { Pieces } from './pieces.ts';
import type { NewId } from './runtime.ts';
import type { Sealer } from './sealer.ts';
import type { Steps } from './steps.ts';
import type { UpstreamTraits } from './traits.ts';

/** The fields of a request that the gateway itself decides on. */
export interface RequestHead {
  readonly model: string;
  readonly stream: boolean;
  readonly maxOutputTokens?: number;
  /** How many answers are asked for (chat `n`); absent = one. */
  readonly choices?: number;
  /** Reasoning tokens that the client demands: an output cap must leave room behind them. */
  readonly reasoningBudget?: number;
  /** The client asks for reasoning, in whatever words: the first event may take its time (R7). */
  readonly reasons?: boolean;
  /** Chat `stream_options.include_usage`; always true for messages. */
  readonly wantsUsageFrame: boolean;
}

/** What a writer needs to know about the call that it answers. */
export interface AnswerContext {
  /** The model name that the client used; the answer repeats it (C4). */
  readonly model: string;
  readonly requestId: string;
  /** Unix seconds, for `created`. */
  readonly createdSeconds: number;
  readonly wantsUsageFrame: boolean;
  /** A guess of the prompt's tokens, for `message_start` when the upstream has not said yet. */
  readonly promptTokensEstimate: number;
  readonly newId: NewId;
  readonly notes: Notes;
  /** Present when the request was translated; answers may depend on how tools were declared. */
  readonly conversation?: Conversation;
  /** Present when the upstream speaks another dialect: marks what must find its way back to it. */
  readonly sealing?: Sealing;
}

/** How an answer is marked for the way back. */
export interface Sealing {
  readonly sealer: Sealer;
  readonly upstream: Origin;
  /** Told of each call whose id is not shown as the upstream wrote it. */
  callShown?(id: string, shown: string): void;
}

/** One server-sent event as it stood on the wire. `bytes` includes its blank line. */
export interface Frame {
  readonly bytes: Buffer;
  readonly event: string | undefined;
  /** Joined `data:` lines; undefined for comments and empty events. */
  readonly data: string | undefined;
}

/** Upstream frames in, events out; state of one stream. Throws GatewayError `upstream_invalid`. */
export interface StreamReader {
  read(frame: Frame): readonly GenerationEvent[];
  /** The upstream closed. Yields what is still owed; an `error` event if no finish was seen. */
  end(): readonly GenerationEvent[];
  /** A finish was read but its event is held back for a usage report that may follow (F58). */
  readonly finishPending: boolean;
  /** The frame that was read last went on with a text, and said nothing else. */
  readonly plain?: boolean;
  /** Characters of all answers but the first, where several were asked for; no event tells of them. */
  readonly besideLength?: number;
}

/** Events in, wire text out; state of one stream. Text may be '' when nothing is due yet. */
export interface StreamWriter {
  write(event: GenerationEvent): string;
  /** The terminator. Called once, only after a `finish` was written. */
  end(): string;
}

/** Edits that a relayed answer needs so that it is the client's and not the upstream's. */
export interface AnswerRelay {
  /**
   * The frame's bytes to send (the same object when unchanged), or undefined to drop it.
   * @param gap with the frame that carries the finish: usage that the upstream left out (F55).
   */
  frame(frame: Frame, events: readonly GenerationEvent[], gap?: Usage): Buffer | undefined;
  /** The same for a frame whose reader calls it plain. Absent = `frame` is asked for all of them. */
  plainFrame?(frame: Frame): Buffer | undefined;
  /**
   * A whole JSON answer with the client's model name.
   * @param usage stands in for a report that the upstream left out (F55).
   */
  document(answer: WholeDocument, usage?: Usage): Buffer;
  /** The terminator (`[DONE]`, `message_stop`) was forwarded; every later frame is dropped (F53). */
  readonly ended: boolean;
  /** What the upstream owes of a proper ending after its finish; '' when nothing (F52, F55). */
  ending(gap?: Usage): string;
  /**
   * The ending of an answer that is cut at its cap before the upstream finished it (F63).
   * @param choices how many answers were asked for.
   */
  cutShort(usage: Usage, choices: number): string;
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

/** The half that faces the client. */
export interface ClientDialect {
  readonly id: DialectId;
  /** Paths under the listener that speak this dialect, e.g. `/v1/messages`. */
  readonly paths: readonly string[];
  /** Name of the endpoint in a key's scope: `chat` or `messages`. */
  readonly scope: string;
  /** Keys that may not stand twice (B39). */
  readonly ownedKeys: ReadonlySet<string>;
  /**
   * Reads the head and refuses what no provider could take (reliability.md B42–B58), in both modes.
   * @throws GatewayError `invalid_request` with the path of the field.
   */
  readHead(body: JsonObject): RequestHead;
  /** The same in steps, for requests of many values. */
  headReading(body: JsonObject): Steps<RequestHead>;
  /**
   * Reads the whole request, for translation only.
   * @param sealer opens what the gateway sealed; without it, nothing opens.
   * @throws GatewayError `invalid_request` for what the canonical form cannot hold.
   */
  readRequest(body: JsonObject, notes: Notes, sealer?: Sealer): Conversation;
  /** The same in steps, for requests of many values. */
  requestReading(body: JsonObject, notes: Notes, sealer?: Sealer): Steps<Conversation>;
  writeResponse(generation: Generation, context: AnswerContext): JsonObject;
  /** The same in steps, for answers with long calls. */
  responseWriting(generation: Generation, context: AnswerContext): Steps<JsonObject>;
  streamWriter(context: AnswerContext): StreamWriter;
  answerRelay(context: AnswerContext): AnswerRelay;
  writeError(error: GatewayError, requestId: string): WrittenError;
  /** One frame that ends a committed stream in failure (EM); nothing may follow it. */
  writeStreamError(error: GatewayError, requestId: string): string;
  /** A harmless frame for silent times; `started` = something of the stream was already sent. */
  keepAlive(started: boolean): string;
  /** Flat headers that tell where the caller's limits stand; none without limits. */
  limitHeaders(standings: Standings, wallMs: number): readonly string[];
}

/** What is asked of an upstream besides the conversation. */
export interface Ask {
  readonly model: string;
  readonly stream: boolean;
  readonly traits: UpstreamTraits;
  readonly newId: NewId;
  /** A cap on the output that holds instead of the client's own (budgets). */
  readonly maxOutputTokens?: number | undefined;
  /** Who is asked: what another provider sealed is not sent. */
  readonly provider?: string;
  /** What earlier answers left for this key; for relayed requests of upstreams that want it back. */
  readonly recall?: Recall;
}

/** The half that faces the provider. */
export interface UpstreamDialect {
  readonly id: DialectId;
  /**
   * Renders a translated request, the same bytes for the same conversation each time.
   * @throws GatewayError `invalid_request` for what this upstream cannot honour (REJECT).
   */
  writeRequest(conversation: Conversation, ask: Ask, notes: Notes): JsonObject;
  /** The same in steps, for conversations of many values. */
  requestWriting(conversation: Conversation, ask: Ask, notes: Notes): Steps<JsonObject>;
  /** Headers that a rendered request needs, flat; none as a rule. */
  headersOf?(body: JsonObject): readonly string[];
  /** A same-dialect request: the client's bytes with the owned members spliced. */
  relayRequest(source: JsonSource, ask: Ask, notes?: Notes): Pieces;
  /** @throws GatewayError when the body is no answer (`upstream_invalid`) or is an error (F24). */
  readResponse(body: JsonObject, traits: UpstreamTraits): Generation;
  /** The same in steps, for answers with long calls. */
  responseReading(body: JsonObject, traits: UpstreamTraits): Steps<Generation>;
  streamReader(traits: UpstreamTraits): StreamReader;
  /** Any error body of this dialect's servers, whatever its shape (wire/upstreams.md §6.2). */
  readError(status: number, body: string): GatewayError;
}
