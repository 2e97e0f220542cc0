/** Responses that are stored so that later requests may refer to them. Arrays and objects are JSON bytes. */
import type { Spliceable } from '../json/edit.ts';
import type { Pieces } from '../json/pieces.ts';
import type { JsonObject } from '../json/value.ts';
import type { RequestState } from './dialect.ts';
import type { GatewayError } from './errors.ts';

/** The response at the end of an answer. */
export interface EndedResponse {
  readonly id: string;
  /** Ids of its output items. */
  readonly items: readonly string[];
  /** The response object. */
  readonly response: Buffer;
}

/** A response with the items of its request. */
export interface StoredResponse {
  readonly id: string;
  /** The array of the request's own items. */
  readonly input: Buffer;
  /** The response object. */
  readonly response: Buffer;
}

/** Which items of a list are wanted. */
export interface ItemPage {
  readonly limit: number;
  readonly order: 'asc' | 'desc';
  /** The id of the item before the first one. */
  readonly after: string | undefined;
}

/** The codec of stored responses, for a dialect with state at the service. */
export interface StoredResponseCodec {
  /** The state that a request refers to. @throws GatewayError for state that is never stored */
  stateOf(body: JsonObject): RequestState;
  /**
   * The request's own items as one array.
   * @param found the items that references name, by their ids
   */
  inputOf(source: Pick<Spliceable, 'pieces' | 'spans'>, found: ReadonlyMap<string, Buffer>): Buffer;
  /** The request with the items of these arrays, which refers to nothing any more. */
  expand(source: Spliceable, arrays: readonly Buffer[]): Pieces;
  /** The response in the last bytes of an answer, document or stream; undefined for an answer that failed. */
  answered(last: Buffer): EndedResponse | undefined;
  /** The last bytes of an answer that says that its response was not stored. */
  markUnstored(last: Buffer): Buffer;
  /** The array of a response's output items. */
  outputOf(response: Buffer): Buffer;
  /** Items of a response by each id that names one: its own, and the one that `list` makes where that names no other. */
  itemsOf(kept: StoredResponse): ReadonlyMap<string, Buffer>;
  /** The response in which an id that `list` made names an item; undefined for an id of another form. */
  responseOf(item: string): string | undefined;
  /** The error by the client's own count of its items. @param earlier how many were put before them */
  ownError(error: GatewayError, earlier: number): GatewayError;
  /** The value of `x-gateway-notes` likewise. */
  ownNotes(notes: string, earlier: number): string;
  /** @param keeps whether the gateway stores responses; so below */
  unknownItem(id: string, keeps: boolean): GatewayError;
  /** The error of a request that continues from it. */
  unknownResponse(id: string, keeps: boolean): GatewayError;
  /** The error of a request for the items before a response, if they were removed. */
  brokenChain(id: string, previous: string): GatewayError;
  /** The error of a request for the response itself. */
  unknownId(id: string, keeps: boolean): GatewayError;
  deleted(id: string): JsonObject;
  /** Whether the id may be that of a response whose stream still runs. */
  mayBeRunning(id: string): boolean;
  /**
   * The response as the events of a stream. @param after events up to this `sequence_number` are omitted, but for the
   * last one
   */
  events(response: Buffer, after: number | undefined): string;
  /**
   * One page of the items that the last response of a chain answers, each with an id that names it in later requests.
   * @returns undefined when `after` names none of them
   */
  list(chain: readonly StoredResponse[], page: ItemPage): JsonObject | undefined;
}
