/** Step 2 of a call: its body, its head, and the stored responses that it refers to. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { keyRefusal } from '../access/keys/keys.ts';
import type { Principal } from '../access/keys/principal.ts';
import type { CallTrace } from '../core/call.ts';
import type { JsonSource } from '../core/client-body.ts';
import type { Pieces } from '../json/pieces.ts';
import type { ClientDialect, RequestHead, RequestState } from '../core/dialect.ts';
import { GatewayError } from '../core/errors.ts';
import { checkMedia, mayHoldMedia } from '../dialects/shared/body/body-media.ts';
import type { WatchedCall } from '../features/content-log/content-log.ts';
import type { StoredResponses } from '../features/stored-responses/stored-responses.ts';
import type { Gateway } from '../gateway/gateway.ts';
import { LongBody } from '../gateway/long-bodies/body-thread.ts';
import { secretOf } from './authenticate-request.ts';
import {
  holdBody,
  parseRequestBody,
  readRequestBody,
  reserveBody,
  type TakenBody,
} from './body.ts';
import type { BodyShare } from './overload/body-budget.ts';
import type { Overload } from './overload/overload.ts';
import { MethodNotAllowed, requireScope } from './paths.ts';
import { checkClientHeaders } from './request-headers.ts';
import { expandRequest, ownerOf, refersTo } from './stored-responses.ts';

/** The scope of a key that allows token counts. */
const countScope = 'count_tokens';

interface ReaderOptions {
  readonly gateway: Gateway;
  readonly overload: Overload;
  readonly responses: StoredResponses;
}

interface ReadContext {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly path: string;
}

/** A call as far as it was read, for the row of its refusal. */
export interface RequestProgress {
  readonly principal: Principal;
  readonly dialect: ClientDialect;
  readonly trace: CallTrace | undefined;
  head: RequestHead | undefined;
  tags: readonly string[];
  /** What its body holds of the memory for bodies. */
  body: BodyShare | undefined;
  /** Id of a long body in the worker thread. */
  longBody?: number;
  /** Absent unless the key's content is logged. */
  content: WatchedCall | undefined;
}

export function newRequestProgress(
  principal: Principal,
  dialect: ClientDialect,
  trace?: CallTrace,
): RequestProgress {
  return {
    principal,
    dialect,
    trace,
    head: undefined,
    tags: [],
    body: undefined,
    content: undefined,
  };
}

/** A call's request as it is served. */
export interface ReadCall {
  /** As it came. */
  readonly sent: JsonSource;
  /** With all that it refers to. */
  readonly source: JsonSource;
  readonly head: RequestHead;
  /** The request's own input, if items of stored responses were put before it. */
  readonly input: Buffer | undefined;
}

interface StatefulCall {
  readonly sent: JsonSource;
  readonly head: RequestHead;
  readonly state: RequestState;
}

interface RequestToExpand {
  readonly sent: JsonSource;
  readonly state: RequestState;
  readonly counting: boolean;
}

export class RequestReader {
  readonly #options: ReaderOptions;

  constructor(options: ReaderOptions) {
    this.#options = options;
  }

  /**
   * The body of a call. Its memory is released with that of the request (`RequestProgress.body`).
   * @throws GatewayError, at once or as a rejection
   */
  receiveCall(context: ReadContext, asked: RequestProgress): Promise<Pieces> {
    return this.#receive(context, asked, asked.dialect.scope);
  }

  /**
   * The request of a call with its head, and with all that it refers to. A promise only for a long body and for a request
   * with stored responses: a promise for each step would cost a tenth of a call's memory.
   * @throws GatewayError, at once or as a rejection
   */
  readCall(
    context: ReadContext,
    asked: RequestProgress,
    pieces: Pieces,
  ): ReadCall | Promise<ReadCall> {
    const sent = this.#parseReceived(context, asked, { pieces, counting: false });
    return sent instanceof Promise
      ? sent.then((long) => this.#withHead(context, asked, long))
      : this.#withHead(context, asked, sent);
  }

  #withHead(
    context: ReadContext,
    asked: RequestProgress,
    sent: JsonSource,
  ): ReadCall | Promise<ReadCall> {
    const head = headOf(sent, asked.dialect);
    asked.head = head;
    const { state } = head;
    if (state === undefined) return { sent, source: sent, head, input: undefined };
    return this.#withStored(context, asked, { sent, head, state });
  }

  async #withStored(
    context: ReadContext,
    asked: RequestProgress,
    { sent, head, state }: StatefulCall,
  ): Promise<ReadCall> {
    const { dialect } = asked;
    const compacts = context.path === dialect.compactPath;
    const store = state.store && this.#options.responses.on && !compacts;
    const own = { ...state, store };
    const { source, input } = await this.#expanded(context, asked, {
      sent,
      state: own,
      counting: false,
    });
    const whole = source === sent ? head : headOf(source, dialect);
    const earlierItems = (whole.state?.items ?? 0) - (state.items ?? 0);
    asked.head = {
      ...whole,
      state: earlierItems > 0 ? { ...own, earlierItems } : own,
      ...(compacts ? { compacts, stream: false } : {}),
    };
    return { sent, source, head: asked.head, input };
  }

  async #expanded(
    context: ReadContext,
    asked: RequestProgress,
    { sent, state, counting }: RequestToExpand,
  ): Promise<{ readonly source: JsonSource; readonly input: Buffer | undefined }> {
    const { dialect, principal, body: share } = asked;
    const { stored } = dialect;
    if (stored === undefined || share === undefined || !refersTo(state)) {
      return { source: sent, input: undefined };
    }
    const owner = ownerOf(principal, secretOf(context.request));
    const request = { dialect, codec: stored, source: sent, state, owner };
    const { overload } = this.#options;
    const { pieces, input } = await expandRequest(this.#options, request, {
      maxBytes: overload.maxBodyBytes,
      hold: (bytes) => holdBody(share, bytes, overload),
    });
    this.forget(asked);
    const source = await this.#parse(context, asked, { pieces, share, counting });
    return { source, input };
  }

  /** The request of a token count, with all that it refers to. @throws GatewayError */
  async readCount(context: ReadContext, asked: RequestProgress): Promise<JsonSource> {
    const pieces = await this.#receive(context, asked, countScope);
    const sent = await this.#parseReceived(context, asked, { pieces, counting: true });
    const state = asked.dialect.stored?.stateOf(sent.skeleton);
    if (state === undefined) return sent;
    return (await this.#expanded(context, asked, { sent, state, counting: true })).source;
  }

  /** Releases the body that the worker thread holds. */
  forget({ longBody }: RequestProgress): void {
    if (longBody !== undefined) this.#options.gateway.bodies.forget(longBody);
  }

  #receive(context: ReadContext, asked: RequestProgress, scope: string): Promise<Pieces> {
    const { request } = context;
    const { principal } = asked;
    if (request.method !== 'POST') throw new MethodNotAllowed('POST');
    requireScope(principal, scope);
    checkClientHeaders(request);
    const { overload } = this.#options;
    asked.body = reserveBody(request, principal.keyId, overload);
    return readRequestBody(context, asked.body, overload);
  }

  #parseReceived(
    context: ReadContext,
    asked: RequestProgress,
    { pieces, counting }: { readonly pieces: Pieces; readonly counting: boolean },
  ): JsonSource | Promise<JsonSource> {
    const { principal, body: share } = asked;
    if (share === undefined) throw new TypeError('No memory is reserved for the body.');
    // Receiving a body may take minutes; the key must still be valid when the call begins (S6).
    if (principal.revoked()) throw new GatewayError('unauthenticated', keyRefusal);
    asked.content?.asked(pieces);
    return this.#parse(context, asked, { pieces, share, counting });
  }

  #parse(
    { response }: ReadContext,
    asked: RequestProgress,
    taken: TakenBody & { readonly counting: boolean },
  ): JsonSource | Promise<JsonSource> {
    const { dialect } = asked;
    const { overload, gateway } = this.#options;
    const means = { overload, response, bodies: gateway.bodies };
    const traced = asked.trace?.content === true;
    const { counting } = taken;
    const parsed = parseRequestBody(taken, { dialect, counting, traced }, means);
    if (parsed instanceof Promise) {
      // It was checked where it was read.
      return parsed.then((long) => {
        asked.longBody = long.id;
        return long;
      });
    }
    dialect.names.check(parsed);
    if (mayHoldMedia(parsed)) checkMedia(parsed.skeleton, dialect.fault);
    return parsed;
  }
}

function headOf(source: JsonSource, dialect: ClientDialect): RequestHead {
  const known = source instanceof LongBody ? source.head : undefined;
  return known ?? dialect.readHead(source.skeleton);
}
