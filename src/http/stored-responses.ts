/** What a request refers to is put into it before it is read any further, and its response is stored at its end. */
import type { ServerResponse } from 'node:http';
import type { Principal } from '../access/keys/principal.ts';
import type { JsonSource } from '../core/client-body.ts';
import type { ClientDialect, RequestState } from '../core/dialect.ts';
import { GatewayError, type FieldPath, invalidRequest } from '../core/errors.ts';
import type { EndedResponse, StoredResponseCodec, ItemPage } from '../core/stored-response.ts';
import {
  StoringSink,
  type LongEndCodec,
  type StoreOutcome,
} from '../features/stored-responses/storing-sink.ts';
import type {
  Referred,
  ResponseOwner,
  StoredResponses,
} from '../features/stored-responses/stored-responses.ts';
import { type ClientSink, streamHeaders } from '../gateway/answer/client-answer.ts';
import type { Gateway } from '../gateway/gateway.ts';
import { type BodyOfJob, LongBody } from '../gateway/long-bodies/body-thread.ts';
import { bufferOver, receivedPieces } from '../gateway/long-bodies/transfer.ts';
import { Pieces } from '../json/pieces.ts';
import type { JsonObject } from '../json/value.ts';
import { isReading, MethodNotAllowed, notFound, readingMethods } from './paths.ts';
import { idHeaders, sendJson } from './send.ts';

interface StateDeps {
  readonly responses: StoredResponses;
  readonly gateway: Pick<Gateway, 'bodies' | 'later'>;
}

/** A request with state, as it came. */
interface StatefulRequest {
  readonly dialect: ClientDialect;
  readonly codec: StoredResponseCodec;
  readonly source: JsonSource;
  readonly state: RequestState;
  readonly owner: ResponseOwner;
}

/** A request with all that it referred to. */
export interface ExpandedRequest {
  readonly pieces: Pieces;
  /** The array of its own items. */
  readonly input: Buffer;
}

export function ownerOf({ keyId }: Principal, secret: string): ResponseOwner {
  return { keyId, secret };
}

export function refersTo({ previousResponseId, itemReferences }: RequestState): boolean {
  return previousResponseId !== undefined || itemReferences.length > 0;
}

/** The limits of what a request may look up. */
interface Room {
  /** The longest request, with all that it refers to. */
  readonly maxBytes: number;
  /** Reserves memory for a request of this length in all. @throws GatewayError `overloaded` */
  hold(bytes: number): void;
}

/**
 * The request with the items that it refers to.
 * @throws GatewayError for what is unknown; `too_large`; `store_unavailable`; `overloaded`
 */
export async function expandRequest(
  { responses, gateway }: StateDeps,
  { dialect, codec, source, state, owner }: StatefulRequest,
  { maxBytes, hold }: Room,
): Promise<ExpandedRequest> {
  const { before, found } = await responses.resolve(owner, state, {
    dialect: codec,
    bytes: maxBytes,
    hold: (bytes) => hold(Math.min(source.pieces.length + bytes, maxBytes)),
  });
  const expanded = await expandedBy(gateway, { dialect, codec, source }, { before, found });
  if (expanded.pieces.length > maxBytes) {
    throw new GatewayError(
      'too_large',
      `The request with all that it refers to is larger than ${maxBytes} bytes.`,
    );
  }
  return expanded;
}

async function expandedBy(
  { bodies }: Pick<Gateway, 'bodies'>,
  { dialect, codec, source }: Pick<StatefulRequest, 'dialect' | 'codec' | 'source'>,
  { before, found }: Referred,
): Promise<ExpandedRequest> {
  if (source instanceof LongBody) {
    const job = { client: dialect.id, before, found };
    const { input, body } = await bodies.run('expand', job, source);
    return { input: bufferOver(input), pieces: receivedPieces(body, source.pieces) };
  }
  const input = codec.inputOf(source, found);
  return { input, pieces: codec.expand(source, [...before, input]) };
}

interface AnsweredRequest extends StatefulRequest {
  /** The array of its own items; absent where nothing was put into it. */
  readonly input: Buffer | undefined;
  /** Wall-clock ms. */
  readonly startedAt: number;
}

/** A sink that stores the response at the end of the answer. */
export function storingSink(
  { responses, gateway }: StateDeps,
  request: AnsweredRequest,
  sink: ClientSink,
): StoringSink {
  const { codec, owner, state, startedAt } = request;
  const keep = async (answer: EndedResponse): Promise<StoreOutcome> => {
    try {
      const input = request.input ?? (await inputOf(gateway, request));
      if (!responses.fits(input, answer.response)) return 'large';
      const { previousResponseId: previous, itemIds: inputIds = [] } = state;
      const response = { ...answer, input, inputIds, previous, startedAt };
      return (await responses.keep(owner, response)) ? 'kept' : 'dropped';
    } catch (error) {
      responses.failed(String(error));
      return 'failed';
    }
  };
  const late = (): void => responses.failed('the store did not answer in time');
  const long = longEnds(gateway, request);
  return new StoringSink({ sink, dialect: codec, long, later: gateway.later, keep, late });
}

/**
 * Reads ends in the worker thread. One that the thread has no time or room for is read here: the client must not
 * learn of a response that is not there.
 */
function longEnds(
  { bodies }: Pick<Gateway, 'bodies'>,
  { dialect, codec }: Pick<StatefulRequest, 'dialect' | 'codec'>,
): LongEndCodec {
  const client = dialect.id;
  const bodyOf = (last: Buffer): BodyOfJob => ({ id: bodies.nextId(), pieces: Pieces.of(last) });
  return {
    answered: async (last) => {
      try {
        const found = await bodies.run('answered', { client }, bodyOf(last));
        return found && { ...found, response: last.subarray(found.start, found.end) };
      } catch {
        return codec.answered(last);
      }
    },
    markUnstored: async (last) => {
      try {
        return bufferOver((await bodies.run('markUnstored', { client }, bodyOf(last))).bytes);
      } catch {
        return codec.markUnstored(last);
      }
    },
  };
}

async function inputOf(
  { bodies }: Pick<Gateway, 'bodies'>,
  { dialect, codec, source }: AnsweredRequest,
): Promise<Buffer> {
  if (!(source instanceof LongBody)) return codec.inputOf(source, nothing);
  const job = { client: dialect.id, found: nothing };
  return bufferOver((await bodies.run('expand', job, source)).input);
}

const nothing: ReadonlyMap<string, Buffer> = new Map();

// The endpoints below `/v1/responses`: a stored response is read, listed and removed (docs/user/responses.md).

interface StoredResponseRequest extends Room {
  readonly method: string | undefined;
  /** After the path of the dialect and a slash. */
  readonly rest: string;
  /** Whole, for messages. */
  readonly path: string;
  readonly query: string;
  readonly owner: ResponseOwner;
  readonly codec: StoredResponseCodec;
  readonly response: ServerResponse;
  readonly requestId: string;
}

/** Ids of all vendors: letters, digits, `_` and `-`. */
const form = /^([A-Za-z0-9_-]{1,128})(?:\/(cancel|input_items))?$/;

/** @throws GatewayError for what is unknown or not offered; `store_unavailable`; `overloaded` */
export async function answerStoredResponse(
  stored: StoredResponses,
  request: StoredResponseRequest,
): Promise<void> {
  const { method, rest, path, owner, codec } = request;
  const [, id, what] = form.exec(rest) ?? [];
  if (id === undefined) throw notFound(path);
  if (what === 'cancel') {
    if (method !== 'POST') throw new MethodNotAllowed('POST');
    if ((await stored.find(owner, id, request)) === undefined) throw codec.unknownId(id, stored.on);
    throw invalidRequest('Only background responses can be cancelled.', ['response_id']);
  }
  if (what === 'input_items') {
    if (!isReading(request)) throw new MethodNotAllowed(readingMethods);
    return listItems(stored, request, id);
  }
  if (method === 'DELETE') {
    const removed = await stored.remove(owner, id, codec.mayBeRunning(id));
    if (!removed) throw codec.unknownId(id, stored.on);
    return send(request, codec.deleted(id));
  }
  if (!isReading(request)) throw new MethodNotAllowed('GET, HEAD, DELETE');
  return showResponse(stored, request, id);
}

async function showResponse(
  stored: StoredResponses,
  request: StoredResponseRequest,
  id: string,
): Promise<void> {
  const { codec, owner, query, response, requestId } = request;
  const wanted = new URLSearchParams(query);
  const stream = flagIn(wanted, 'stream');
  const after = numberIn(wanted, 'starting_after', { min: 0, max: Number.MAX_SAFE_INTEGER });
  const found = await stored.find(owner, id, request);
  if (found === undefined) throw codec.unknownId(id, stored.on);
  if (!stream) return send(request, found.response);
  response.writeHead(200, [...idHeaders(requestId), ...streamHeaders]);
  response.end(codec.events(found.response, after));
}

async function listItems(
  stored: StoredResponses,
  request: StoredResponseRequest,
  id: string,
): Promise<void> {
  const { codec, owner, query, maxBytes, hold } = request;
  const page = pageOf(new URLSearchParams(query));
  const lookUp = { dialect: codec, bytes: maxBytes, hold };
  const chain = await stored.chain(owner, id, lookUp);
  if (chain === undefined) throw codec.unknownId(id, stored.on);
  const list = codec.list(chain, page);
  if (list === undefined) throw badQuery('after', 'names no item of this response');
  send(request, list);
}

function pageOf(query: URLSearchParams): ItemPage {
  const order = query.get('order') ?? 'desc';
  if (order !== 'asc' && order !== 'desc') throw badQuery('order', 'must be asc or desc');
  return {
    order,
    limit: numberIn(query, 'limit', { min: 1, max: 100 }) ?? 20,
    after: query.get('after') ?? undefined,
  };
}

function flagIn(query: URLSearchParams, name: string): boolean {
  const text = query.get(name) ?? 'false';
  if (text !== 'true' && text !== 'false') throw badQuery(name, 'must be true or false');
  return text === 'true';
}

function numberIn(
  query: URLSearchParams,
  name: string,
  { min, max }: { readonly min: number; readonly max: number },
): number | undefined {
  const text = query.get(name);
  if (text === null) return undefined;
  const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
  if (value >= min && value <= max) return value;
  const range = max === Number.MAX_SAFE_INTEGER ? `of at least ${min}` : `from ${min} to ${max}`;
  throw badQuery(name, `must be a whole number ${range}`);
}

function badQuery(name: string, rule: string): GatewayError {
  const path: FieldPath = [name];
  return invalidRequest(`The parameter ${name} ${rule}.`, path);
}

function send({ response, requestId }: StoredResponseRequest, body: Buffer | JsonObject): void {
  sendJson(response, { status: 200, body, headers: idHeaders(requestId) });
}
