/**
 * The endpoints for clients: accept → read head → admit, then the gateway's path. Everything under /v1 needs a
 * key; other paths reveal only that a gateway is here.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ClientDialect, RequestState } from '../core/dialect.ts';
import { asGatewayError, GatewayError } from '../core/errors.ts';
import { LimitError, type Grant } from '../core/policy.ts';
import type { JsonSource } from '../core/client-body.ts';
import type { Route, Target } from '../core/provider.ts';
import type { StoredResponseCodec } from '../core/stored-response.ts';
import type { Call, CallTrace, Labels, Tracer } from '../core/call.ts';
import type { RequestDescription } from '../core/description.ts';
import { minOutputTokens, type AdmissionRequest } from '../access/admission.ts';
import type { CallGrant } from '../access/call-grant.ts';
import type { Gateway } from '../gateway/gateway.ts';
import type { ClientSink } from '../gateway/answer/client-answer.ts';
import { CallSize, needsMeasuring, otherModels } from '../gateway/call-size.ts';
import { LongBody } from '../gateway/long-bodies/body-thread.ts';
import { compactingRoute, firstAble, routeByApi } from '../gateway/targets/routing.ts';
import { handleCall } from '../gateway/handle.ts';
import type { Registry } from '../providers/registry.ts';
import type { CallRow } from '../store/store.ts';
import type { Principal } from '../access/keys/principal.ts';
import { clientDisconnected, holdBody } from './body.ts';
import { callLabels, checkRequestHead, clientTags, headerValue } from './request-headers.ts';
import {
  newRequestProgress,
  RequestReader,
  type ReadCall,
  type RequestProgress,
} from './request-reader.ts';
import { refusedRow } from '../access/settle.ts';
import { refusedSpan } from '../observe/traces/call-spans.ts';
import {
  allowedMethods,
  type ClientDialects,
  compactingPaths,
  countingPaths,
  generatingPaths,
  greetingHeaders,
  greetingPage,
  isReading,
  maxNameLength,
  MethodNotAllowed,
  modelsPath,
  notFound,
  openAnswer,
  openPaths,
  readingMethods,
  readPath,
  type RequestPath,
  requireModels,
  requireScope,
  unknownModel,
  usableNames,
  wantsPage,
} from './paths.ts';
import type { ContentLog } from '../features/content-log/content-log.ts';
import { type IdempotentAnswers, answerOnce } from '../features/idempotency/idempotent-answers.ts';
import type { StoredResponses } from '../features/stored-responses/stored-responses.ts';
import { answerStoredResponse, ownerOf, storingSink } from './stored-responses.ts';
import { modelsAnswer } from './models.ts';
import type { Overload } from './overload/overload.ts';
import { idHeaders, onceWritten, RefusalLog, refuse, ResponseSink, sendJson } from './send.ts';
import { authenticateRequest, secretOf, type AuthenticationDeps } from './authenticate-request.ts';
import { countTokens } from '../gateway/count-tokens.ts';

export interface DataPlaneOptions extends AuthenticationDeps {
  readonly gateway: Gateway;
  readonly dialects: ClientDialects;
  /** The current registry: a reload replaces it. */
  readonly registry: () => Registry;
  /** Why the gateway should receive no traffic now; undefined when ready. */
  readonly notReady: () => string | undefined;
  /** Whether the ledger accepts rows; calls that it could not record are not served (E18). */
  readonly mayAdmit: () => boolean;
  /** Overload protection: what may be started at all (G2, G5–G8). */
  readonly overload: Overload;
  readonly admission: Admits;
  /** Serves an admitted call; absent = at its upstream. */
  readonly serve?: typeof handleCall;
  /** By `Idempotency-Key`. */
  readonly answers: IdempotentAnswers;
  /** Stored responses that later requests may refer to. */
  readonly responses: StoredResponses;
  /** Content log of keys with content logging; absent = none. */
  readonly contents?: Pick<ContentLog, 'watch'>;
  /** Records a call that was refused before it reached the gateway's path. */
  readonly record: (row: CallRow) => void;
  /** Absent = no traces. */
  readonly tracer?: Tracer | undefined;
  /** Called with the error code of each refusal that is not a call. */
  readonly refused?: (code: string) => void;
  readonly version: string;
}

/** The part of admission that the path needs: `Admission`, or its preview. */
interface Admits {
  admit(call: AdmissionRequest): CallGrant | undefined | Promise<CallGrant | undefined>;
}

/** The context of one request. */
interface RequestContext extends RequestPath {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly requestId: string;
  /** Dialect of error answers. */
  readonly dialect: ClientDialect;
  readonly startedAt: number;
  readonly startedWall: number;
}

/** A request that was read, before its route is known. */
interface LabelledRequest {
  readonly context: RequestContext;
  readonly asked: RequestProgress;
  readonly read: ReadCall;
  readonly header: (name: string) => string | undefined;
  readonly asks: RequestDescription;
  readonly labels: Labels;
}

/** A call with known labels and route. Its grant is added when it is admitted. */
interface LabelledCall extends Call {
  readonly caller: Principal;
  grant: CallGrant | undefined;
}

/** A call with all that it is served with. */
interface ServedCall {
  readonly context: RequestContext;
  readonly call: LabelledCall;
  /** The client's own. */
  readonly tags: readonly string[];
  readonly read: ReadCall;
  readonly sink: ClientSink;
}

export class DataPlane {
  readonly #options: DataPlaneOptions;
  readonly #refusals: RefusalLog;
  readonly #reader: RequestReader;
  readonly #generating: ReadonlyMap<string, ClientDialect>;
  readonly #counting: ReadonlyMap<string, ClientDialect>;

  constructor(options: DataPlaneOptions) {
    this.#options = options;
    this.#refusals = new RefusalLog(options.gateway);
    this.#reader = new RequestReader(options);
    this.#generating = new Map([
      ...generatingPaths(options.dialects),
      ...compactingPaths(options.dialects),
    ]);
    this.#counting = countingPaths(options.dialects);
  }

  /** Handles one request; never throws. A promise only where something waits, here and in the steps below. */
  handle(request: IncomingMessage, response: ServerResponse): Promise<void> | undefined {
    const { gateway } = this.#options;
    const { path, query } = readPath(request.url ?? '');
    const context: RequestContext = {
      request,
      response,
      path,
      query,
      requestId: gateway.newId('req_'),
      dialect: this.#generating.get(path) ?? this.#errorDialect(request, path, query),
      startedAt: gateway.clock.now(),
      startedWall: gateway.clock.wall(),
    };
    try {
      checkRequestHead(request, response);
      return this.#route(context)?.catch((error: unknown) => this.#answerRefusal(context, error));
    } catch (error) {
      this.#answerRefusal(context, error);
      return undefined;
    }
  }

  /** A refusal that is not a call: it gets a log line and no row. */
  #answerRefusal(context: RequestContext, thrown: unknown): void {
    const { request, requestId, path } = context;
    const error = asGatewayError(thrown);
    const status = this.#refuse(context, error);
    this.#options.refused?.(error.code);
    this.#refusals.note({
      id: requestId,
      status,
      error: error.code,
      method: request.method,
      path: path.slice(0, maxNameLength),
      address: this.#options.clientAddress(request),
    });
  }

  #route(context: RequestContext): Promise<void> | undefined {
    const { path, request } = context;
    // TRACE would echo the caller's headers.
    if (request.method === 'TRACE') throw new MethodNotAllowed(allowedMethods(path));
    const dialect = this.#generating.get(path);
    if (asksForWebSocket(request)) this.#refuseWebSocket(context);
    else if (dialect !== undefined) return this.#generate(context, dialect);
    else if (path.startsWith('/v1/')) return this.#otherEndpoint(context);
    else this.#open(context);
    return undefined;
  }

  /** Before the key is examined: clients of the Responses API then continue POST at once. */
  #refuseWebSocket({ request, response, requestId, dialect }: RequestContext): void {
    const error = new GatewayError(
      'invalid_request',
      'WebSockets are not supported here; send a POST instead.',
      {
        reason: 'websocket_not_supported',
      },
    );
    const { body } = dialect.writeError(error, requestId);
    const headers = [...idHeaders(requestId), 'connection', 'close'];
    request.resume();
    sendJson(response, { status: 426, body, headers });
  }

  async #otherEndpoint(context: RequestContext): Promise<void> {
    const { path } = context;
    const found = this.#authenticate(context);
    const principal = found instanceof Promise ? await found : found;
    const counting = this.#counting.get(path);
    if (counting !== undefined) {
      return this.#count(context, newRequestProgress(principal, counting));
    }
    const stateful = this.#stateful(path);
    if (stateful?.stored !== undefined) return this.#stored(context, principal, stateful);
    if (path === modelsPath || path.startsWith(`${modelsPath}/`))
      return this.#models(context, principal);
    throw notFound(path);
  }

  /** The dialect with stored responses that this path belongs to. */
  #stateful(path: string): ClientDialect | undefined {
    const { dialects } = this.#options;
    return dialects.find(
      ({ stored, paths }) =>
        stored !== undefined && paths.some((own) => path.startsWith(`${own}/`)),
    );
  }

  async #stored(
    { request, response, requestId, path, query }: RequestContext,
    principal: Principal,
    { stored, scope, paths }: ClientDialect,
  ): Promise<void> {
    requireScope(principal, scope);
    if (stored === undefined) throw notFound(path);
    const { overload, responses } = this.#options;
    const { maxBodyBytes: maxBytes } = overload;
    const rest = path.slice((paths[0] ?? '').length + 1);
    const owner = ownerOf(principal, secretOf(request));
    const { method } = request;
    const { keyId } = principal;
    await overload.within(keyId, async () => {
      const share = overload.bodies.take(keyId, 0);
      const hold = (bytes: number): void => holdBody(share, Math.min(bytes, maxBytes), overload);
      const exchange = { method, rest, path, query, response, requestId };
      const asked = { ...exchange, owner, codec: stored, maxBytes, hold };
      try {
        await answerStoredResponse(responses, asked);
      } catch (error) {
        share?.release();
        throw error;
      }
      overload.answered(response);
      // What was read for it is garbage by now: only the answer waits for its client.
      share?.parsed(response.writableLength, 0);
      onceWritten(response, () => share?.release());
    });
  }

  /** Probes and the greeting: the only paths without a key. */
  #open({ request, response, path, requestId }: RequestContext): void {
    if (!openPaths.includes(path)) throw notFound(path);
    if (!isReading(request)) throw new MethodNotAllowed(readingMethods);
    const { version, notReady, overload } = this.#options;
    if (wantsPage(path, request.headers.accept)) {
      const bytes = Buffer.from(greetingPage(version));
      response.writeHead(200, [
        ...idHeaders(requestId),
        ...greetingHeaders,
        'content-length',
        String(bytes.length),
      ]);
      response.end(bytes);
      return;
    }
    const answer = openAnswer(path, { version, notReady, step: overload.step });
    sendJson(response, { ...answer, headers: idHeaders(requestId) });
  }

  #generate(context: RequestContext, dialect: ClientDialect): Promise<void> | undefined {
    const found = this.#authenticate(context);
    return found instanceof Promise
      ? found.then((principal) => this.#generateFor(context, principal, dialect))
      : this.#generateFor(context, found, dialect);
  }

  #generateFor(
    context: RequestContext,
    principal: Principal,
    dialect: ClientDialect,
  ): Promise<void> | undefined {
    // No ledger row: the queue of rows is what is full.
    if (!this.#options.mayAdmit()) {
      throw new GatewayError('store_unavailable', 'The gateway cannot record calls; retry later.');
    }
    const asked = newRequestProgress(principal, dialect, this.#trace(context.request));
    try {
      this.#options.overload.enter(principal.keyId);
    } catch (error) {
      const refusal = asGatewayError(error);
      this.#recordRefusal(context, asked, { refusal, status: this.#refuse(context, refusal) });
      return undefined;
    }
    if (principal.logsContent) asked.content = this.#watch(context, principal);
    return this.#serveInSlot(context, asked);
  }

  /** Gives the slot and the body's memory back at the end. */
  async #serveInSlot(context: RequestContext, asked: RequestProgress): Promise<void> {
    const { overload } = this.#options;
    const { principal, dialect } = asked;
    try {
      const pieces = await this.#reader.receiveCall(context, asked);
      const reading = this.#reader.readCall(context, asked, pieces);
      await this.#serve(context, asked, reading instanceof Promise ? await reading : reading);
      overload.answered(context.response);
    } catch (error) {
      const refusal = asGatewayError(error);
      const status = this.#refuse(context, refusal);
      asked.content?.refused(status, dialect.writeError(refusal, context.requestId).body);
      this.#recordRefusal(context, asked, { refusal, status });
    } finally {
      asked.content?.end();
      asked.body?.release();
      this.#reader.forget(asked);
      overload.calls.leave(principal.keyId);
    }
  }

  /** The whole cost of tracing when it is not configured. */
  #trace(request: IncomingMessage): CallTrace | undefined {
    const { tracer } = this.#options;
    if (tracer === undefined) return undefined;
    return tracer.begin(headerValue(request, 'traceparent'), headerValue(request, 'tracestate'));
  }

  #watch(
    { requestId: id, startedWall: startedAt, path, request }: RequestContext,
    { keyId }: Principal,
  ): RequestProgress['content'] {
    return this.#options.contents?.watch({ id, keyId, startedAt, path, request });
  }

  #recordRefusal(
    context: RequestContext,
    { principal, dialect, tags, head, trace, content }: RequestProgress,
    { refusal, status }: { readonly refusal: GatewayError; readonly status: number | undefined },
  ): void {
    const { record, gateway, tracer, overload } = this.#options;
    // Only some calls of a flood get a row, and logged content belongs to a row.
    if (refusal.code === 'overloaded' && !overload.noteShed() && content === undefined) return;
    const row = refusedRow({
      id: context.requestId,
      startedWall: context.startedWall,
      principal,
      trace,
      tags,
      endpoint: dialect.id,
      model: head?.model ?? '',
      stream: head?.stream ?? false,
      error: refusal,
      status,
      totalMs: gateway.clock.now() - context.startedAt,
    });
    record(row);
    if (trace?.sampled === true) tracer?.record(refusedSpan(row, trace));
  }

  #serve(context: RequestContext, asked: RequestProgress, read: ReadCall): Promise<void> {
    const { principal, dialect } = asked;
    const { model } = read.head;
    const { request } = context;
    const header = (name: string): string | undefined => headerValue(request, name);
    const tags = clientTags(header, principal.tags);
    asked.tags = tags;
    const asks = dialect.describe(read.source);
    const labels = callLabels(asks, header, { ofKey: principal.tags, ofClient: tags });
    const labelled = { context, asked, read, header, asks, labels };
    const known = this.#knownRoute(principal, model);
    return known === undefined
      ? this.#searchRoute(principal, model).then((found) => this.#serveBy(found, labelled))
      : this.#serveBy(known, labelled);
  }

  #serveBy(
    found: Route,
    { context, asked, read, header, asks, labels }: LabelledRequest,
  ): Promise<void> {
    const { principal, dialect, tags, trace, content } = asked;
    const { source, head } = read;
    const { requestId: id, startedAt, startedWall } = context;
    const byApi = routeByApi(found, { dialect, source }, asks);
    const route = head.compacts === true ? compactingRoute(byApi) : byApi;
    const others = otherModels(asks, { dialect, route });
    if (others !== undefined) requireModels(principal, others.names);
    // Member by member: a spread takes three times the memory and time.
    const call: LabelledCall = {
      id,
      dialect,
      source,
      head,
      route,
      strict: principal.strict || route.strict === true,
      cache: principal.cache ?? route.cache,
      caller: principal,
      labels,
      grant: undefined,
      trace,
      startedAt,
      startedWall,
      header,
    };
    const socket = new ResponseSink(context.response);
    const served = { context, call, tags, read, sink: content?.watch(socket) ?? socket };
    return header('idempotency-key') === undefined
      ? this.#callAndStore(served)
      : this.#callOnce(served);
  }

  /** Repeats of a request get the answer of the first. */
  #callOnce(served: ServedCall): Promise<void> {
    const { context, call, read, sink } = served;
    const { request, requestId, path } = context;
    const { method = '' } = request;
    const { keyId } = call.caller;
    const idempotencyKey = call.header('idempotency-key') ?? '';
    const secret = secretOf(request);
    // What the client sent: what the request refers to may be another thing by now.
    const sent = { keyId, secret, idempotencyKey, method, path, body: read.sent.bytes };
    const { answers, gateway } = this.#options;
    const asked = { answers, request: sent, gateway, sink, requestId };
    return answerOnce(asked, async (other) => this.#callAndStore({ ...served, sink: other }));
  }

  /** A call whose response may be stored; resolves when its end was passed on. */
  #callAndStore(served: ServedCall): Promise<void> {
    const { dialect } = served.call;
    const { state } = served.read.head;
    const { stored } = dialect;
    return stored === undefined || state?.store !== true
      ? this.#call(served, served.sink)
      : this.#callStored(served, state, stored);
  }

  async #callStored(
    served: ServedCall,
    state: RequestState,
    stored: StoredResponseCodec,
  ): Promise<void> {
    const { context, call, read, sink } = served;
    const { dialect, caller: principal } = call;
    const owner = ownerOf(principal, secretOf(context.request));
    const { source, input } = read;
    const { startedWall: startedAt } = context;
    const request = { dialect, codec: stored, source, state, owner, input, startedAt };
    const storing = storingSink(this.#options, request, sink);
    await this.#call(served, storing);
    await storing.finished();
  }

  #call({ context, call, tags }: ServedCall, sink: ClientSink): Promise<void> {
    const { source, caller, route, dialect } = call;
    const { response } = context;
    const mayBeLimited = tags.length > 0 || caller.policies().length > 0;
    const measuring = needsMeasuring(source, route, mayBeLimited)
      ? source.measure(this.#options.gateway.bodies, dialect.id, () => !response.destroyed)
      : undefined;
    const admitted =
      measuring === undefined
        ? this.#admit(call, tags)
        : measuring.then(() => this.#admit(call, tags));
    return admitted instanceof Promise
      ? admitted.then((grant) => this.#serveAdmitted(call, grant, { response, sink }))
      : this.#serveAdmitted(call, admitted, { response, sink });
  }

  #serveAdmitted(
    call: LabelledCall,
    grant: CallGrant | undefined,
    { response, sink }: { readonly response: ServerResponse; readonly sink: ClientSink },
  ): Promise<void> {
    if (response.destroyed) {
      // The client disconnected while the call waited for a route or for the counters: no request is sent
      // upstream (F71).
      grant?.settle({ tokens: 0, nanodollars: 0 });
      throw clientDisconnected();
    }
    call.grant = grant;
    const { gateway, serve = handleCall } = this.#options;
    return serve(gateway, call, sink);
  }

  /** Reserves what the call may use; without limits nothing is checked. */
  #admit(call: LabelledCall, tags: readonly string[]): ReturnType<Admits['admit']> {
    const { gateway, admission } = this.#options;
    const { id, caller: principal, head, route, strict } = call;
    const registry = this.#options.registry();
    return admission.admit({
      id,
      principal,
      tags,
      model: head.model,
      route,
      registry,
      endpoint: call.dialect.id,
      size: new CallSize(gateway, call, (target) =>
        head.compacts === true ? registry.maxAnswer(target) : registry.outputLimit(target),
      ),
      // A request that takes no cap cannot be made smaller.
      mayShrink: principal.shrink && !strict && head.compacts !== true,
      minOutput: (head.reasoningBudget ?? 0) + minOutputTokens,
    });
  }

  /** A token count takes a slot and memory as a call does. */
  async #count(context: RequestContext, asked: RequestProgress): Promise<void> {
    await this.#options.overload.within(asked.principal.keyId, () =>
      this.#countIn(context, asked).finally(() => {
        asked.body?.release();
        this.#reader.forget(asked);
      }),
    );
  }

  async #countIn(context: RequestContext, asked: RequestProgress): Promise<void> {
    const { gateway } = this.#options;
    const { principal, dialect } = asked;
    const source = await this.#reader.readCount(context, asked);
    const model = countedModel(source, dialect);
    const found = this.#knownRoute(principal, model) ?? (await this.#searchRoute(principal, model));
    const route = routeByApi(found, { dialect, source }, dialect.describe(source));
    const able = firstAble(route.targets, gateway.health);
    const target = able ?? route.targets[0];
    if (target === undefined) throw unknownModel(model);
    const header = (name: string): string | undefined => headerValue(context.request, name);
    const tags = clientTags(header, principal.tags);
    // It counts as a request, without tokens and cost.
    const { requestId: id } = context;
    const registry = this.#options.registry();
    const wanted = { id, principal, tags, model, route, registry };
    const grant = await this.#options.admission.admit(wanted);
    try {
      const { request, response } = context;
      const unasked = able === undefined;
      const counted = { request, response, requestId: id, dialect, source, target, unasked, grant };
      await answerCount(gateway, counted);
    } finally {
      grant?.settle({ tokens: 0, nanodollars: 0 });
    }
  }

  /** It takes a slot, since the lists of providers may have to be read. */
  async #models(context: RequestContext, principal: Principal): Promise<void> {
    if (!isReading(context.request)) throw new MethodNotAllowed(readingMethods);
    requireScope(principal, 'models');
    const { overload, registry } = this.#options;
    const { path, query, requestId, response } = context;
    const name = path === modelsPath ? undefined : path.slice(modelsPath.length + 1);
    const asked = { name, query };
    const answer = overload.within(principal.keyId, () =>
      modelsAnswer(registry(), principal, asked),
    );
    sendJson(response, { status: 200, body: await answer, headers: idHeaders(requestId) });
  }

  /**
   * The route of a name, as far as it is known without asking a provider. Unknown and out-of-scope models get
   * the same answer: a key cannot find out what else exists (E6).
   */
  #knownRoute(principal: Principal, model: string): Route | undefined {
    if (!principal.allowsModel(model)) throw this.#unknownModel(principal, model);
    return this.#options.registry().find(model);
  }

  async #searchRoute(principal: Principal, model: string): Promise<Route> {
    const route = await this.#options.registry().search(model);
    if (route === undefined) throw this.#unknownModel(principal, model);
    return route;
  }

  #unknownModel(principal: Principal, model: string): GatewayError {
    const registry = this.#options.registry();
    return unknownModel(model, usableNames(registry, principal), registry.hasEngine);
  }

  #authenticate({ request }: RequestContext): Principal | Promise<Principal> {
    return authenticateRequest(this.#options, request, headerValue(request, 'x-api-key'));
  }

  #errorDialect(request: IncomingMessage, path: string, query: string): ClientDialect {
    const { dialects } = this.#options;
    const isBelow = ({ paths }: ClientDialect): boolean =>
      paths.some((each) => path.startsWith(`${each}/`));
    // What a path says goes before what headers and queries let guess.
    const own = dialects.find(isBelow);
    if (own !== undefined) return own;
    const header = (name: string): string | undefined => headerValue(request, name);
    return dialects.find(({ claims }) => claims?.({ query, header }) === true) ?? dialects[0];
  }

  /** Sends the error unless the answer has begun; the status, if one was sent. */
  #refuse(context: RequestContext, error: GatewayError): number | undefined {
    const { request, response, requestId, dialect } = context;
    const { random, log, clock } = this.#options.gateway;
    if (error.code === 'internal') {
      const cause =
        error.cause instanceof Error
          ? (error.cause.stack ?? error.cause.message)
          : String(error.cause);
      log.error('request_failed', { id: requestId, cause });
    }
    if (response.headersSent || response.destroyed || error.code === 'canceled') {
      response.destroy();
      return undefined;
    }
    const headers =
      error instanceof MethodNotAllowed
        ? ['allow', error.allow]
        : error instanceof LimitError
          ? dialect.limitHeaders(error.standings, clock.wall())
          : [];
    return refuse(request, response, { error, dialect, requestId, random, headers });
  }
}

function asksForWebSocket({ headers, method }: IncomingMessage): boolean {
  return method === 'GET' && headers.upgrade?.toLowerCase() === 'websocket';
}

function countedModel(source: JsonSource, { count }: ClientDialect): string {
  if (source instanceof LongBody) return source.model;
  if (count === undefined) throw new TypeError('The dialect counts no tokens.');
  return count.readModel(source.value);
}

// The answer to a token count (`/v1/messages/count_tokens`, `/v1/responses/input_tokens`), once it is known who counts.

interface AskedCount {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly requestId: string;
  /** Of the body. */
  readonly dialect: ClientDialect;
  readonly source: JsonSource;
  readonly target: Target;
  /** The target takes no calls now. */
  readonly unasked: boolean;
  /** Absent where nothing limits who asks. */
  readonly grant: Pick<Grant, 'standings'> | undefined;
}

/** Counts and sends the number, with who counted it. Rejects as `countTokens` does. */
async function answerCount(gateway: Gateway, asked: AskedCount): Promise<void> {
  const { request, response, requestId, dialect, source, target, unasked, grant } = asked;
  const left = new AbortController();
  response.once('close', () => left.abort());
  const count = await countTokens(gateway, {
    target,
    unasked,
    source,
    dialect,
    counting: true,
    header: (name) => headerValue(request, name),
    signal: left.signal,
  });
  sendJson(response, {
    status: 200,
    body: dialect.count?.write(count.tokens) ?? {},
    headers: [
      ...idHeaders(requestId),
      'x-gateway-usage',
      count.source,
      ...(grant === undefined ? [] : dialect.limitHeaders(grant.standings, gateway.clock.wall())),
    ],
  });
}
