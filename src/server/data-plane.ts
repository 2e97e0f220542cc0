/**
 * The endpoints that clients call: accept → read head → admit, then the gateway's path. Everything
 * under /v1 needs a key; nothing else tells more than that a gateway is here.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ClientDialect } from '../core/dialect.ts';
import { asGatewayError, GatewayError } from '../core/errors.ts';
import { LimitError } from '../core/grant.ts';
import type { JsonSource } from '../core/json.ts';
import type { Route } from '../core/provider.ts';
import { inTurns, isLong } from '../core/steps.ts';
import type { CallTrace, Tracer } from '../core/trace.ts';
import { countHeadReading, readCountHead } from '../dialects/anthropic-messages/count.ts';
import { leastOutputTokens, type Admission } from '../access/admission.ts';
import type { Call, Gateway } from '../gateway/call.ts';
import type { ClientSink } from '../gateway/client-sink.ts';
import { CallSize } from '../gateway/call-size.ts';
import { otherModels } from '../gateway/other-models.ts';
import { firstAble } from '../gateway/plan.ts';
import { handleCall } from '../gateway/handle.ts';
import type { Registry } from '../providers/registry.ts';
import type { CallRow } from '../store/store.ts';
import { keyRefusal } from '../access/keys.ts';
import { presentedKey } from '../access/presented-key.ts';
import type { Principal } from '../access/principal.ts';
import { clientLeft } from './body.ts';
import { nothingRead, type AskedSoFar } from './asked.ts';
import { callLabels, clientTags } from './call-labels.ts';
import { refusedRow } from './call-row.ts';
import { refusedSpan } from './call-spans.ts';
import { checkClientHeaders, headerValue } from './client-headers.ts';
import {
  allowedMethods,
  maxNameLength,
  MethodNotAllowed,
  notFound,
  requireModels,
  requireScope,
  unknownModel,
} from './door-errors.ts';
import { checkRequestHead } from './hygiene.ts';
import type { ContentLog } from './content/content-log.ts';
import type { IdempotentAnswers } from './idempotent-answers.ts';
import { answerCount } from './count-answer.ts';
import { answerOnce } from './idempotent-call.ts';
import { modelsAnswer } from './models-answer.ts';
import { parseTaken, roomToTranslate, takeBody } from './overload/body-door.ts';
import type { Overload } from './overload/overload.ts';
import { openAnswer, openPaths } from './open-paths.ts';
import { countPath, generatingPaths, modelsPath, type ClientDialects } from './called-paths.ts';
import { readPath, speaksMessages, type RequestPath } from './paths.ts';
import { refuse } from './refuse.ts';
import { idHeaders, ResponseSink, sendJson } from './send.ts';
import { whoCalls, type WhoCallsParts } from './who-calls.ts';

export interface DataPlaneOptions extends WhoCallsParts {
  readonly gateway: Gateway;
  readonly dialects: ClientDialects;
  /** The current one: a reload replaces it. */
  readonly registry: () => Registry;
  /** Why no traffic should come now, or undefined when ready. */
  readonly notReady: () => string | undefined;
  /** Whether the ledger takes rows; what it could not record is not served (E18). */
  readonly mayAdmit: () => boolean;
  /** What may be begun at all (G2, G5–G8). */
  readonly overload: Overload;
  readonly admission: Pick<Admission, 'admit'>;
  /** By `Idempotency-Key`. */
  readonly answers: IdempotentAnswers;
  /** Of keys whose content is logged; absent = of none. */
  readonly contents?: Pick<ContentLog, 'watch'>;
  /** Records a call that was refused before it reached the gateway's path (F8). */
  readonly record: (row: CallRow) => void;
  /** Absent = no traces. */
  readonly tracer?: Tracer | undefined;
  /** Told of each refusal that is no call, by its error code. */
  readonly refused?: (code: string) => void;
  readonly version: string;
}

/** One request as the handlers see it. */
interface Visit extends RequestPath {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly requestId: string;
  /** Dialect of errors. */
  readonly dialect: ClientDialect;
  readonly startedAt: number;
  readonly startedWall: number;
}

/** A call whose labels and route are known, and what it may use is not yet. */
interface LabelledCall extends Pick<
  Call,
  'dialect' | 'source' | 'head' | 'route' | 'labels' | 'header' | 'trace'
> {
  readonly principal: Principal;
  readonly tags: readonly string[];
}

export class DataPlane {
  readonly #options: DataPlaneOptions;
  readonly #generating: ReadonlyMap<string, ClientDialect>;

  constructor(options: DataPlaneOptions) {
    this.#options = options;
    this.#generating = generatingPaths(options.dialects);
  }

  /** Handles one request; never throws. */
  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { gateway } = this.#options;
    const { path, query } = readPath(request.url ?? '');
    const visit: Visit = {
      request,
      response,
      path,
      query,
      requestId: gateway.newId('req_'),
      dialect: this.#errorDialect(request, path, query),
      startedAt: gateway.clock.now(),
      startedWall: gateway.clock.wall(),
    };
    try {
      checkRequestHead(request, response);
      await this.#route(visit);
    } catch (error) {
      this.#tell(visit, asGatewayError(error));
    }
  }

  /** A refusal that is no call: it has a line in the log and no row. */
  #tell(visit: Visit, error: GatewayError): void {
    const { request, requestId, path } = visit;
    const status = this.#refuse(visit, error);
    this.#options.refused?.(error.code);
    this.#options.gateway.log.info('refused', {
      id: requestId,
      status,
      error: error.code,
      method: request.method,
      path: path.slice(0, maxNameLength),
      address: this.#options.clientAddress(request),
    });
  }

  #route(visit: Visit): Promise<void> | void {
    const { path, request } = visit;
    // Whoever may ask what, nobody is shown his own headers (B23).
    if (request.method === 'TRACE') throw new MethodNotAllowed(allowedMethods(path));
    const dialect = this.#generating.get(path);
    if (dialect !== undefined) return this.#generate(visit, dialect);
    if (!path.startsWith('/v1/')) return this.#open(visit);
    return this.#beside(visit);
  }

  async #beside(visit: Visit): Promise<void> {
    const { path } = visit;
    const found = this.#authenticate(visit);
    const principal = found instanceof Promise ? await found : found;
    if (path === countPath) return this.#count(visit, principal);
    if (path === modelsPath || path.startsWith(`${modelsPath}/`))
      return this.#models(visit, principal);
    throw notFound(path);
  }

  /** Probes and the greeting: the only paths without a key. */
  #open({ request, response, path, requestId }: Visit): void {
    const reading = request.method === 'GET' || request.method === 'HEAD';
    if (!openPaths.includes(path)) throw notFound(path);
    if (!reading) throw new MethodNotAllowed('GET, HEAD');
    const { version, notReady, overload } = this.#options;
    const answer = openAnswer(path, { version, notReady, step: overload.step });
    sendJson(response, { ...answer, headers: idHeaders(requestId) });
  }

  async #generate(visit: Visit, dialect: ClientDialect): Promise<void> {
    const { overload } = this.#options;
    const found = this.#authenticate(visit);
    const principal = found instanceof Promise ? await found : found;
    // No row of it: the queue of rows is what is full.
    if (!this.#options.mayAdmit()) {
      throw new GatewayError('store_unavailable', 'The gateway cannot record calls; retry later.');
    }
    const asked = nothingRead(principal, dialect, this.#trace(visit.request));
    try {
      overload.enter(principal.keyId);
    } catch (error) {
      const refusal = asGatewayError(error);
      this.#recordRefusal(visit, asked, { refusal, status: this.#refuse(visit, refusal) });
      return;
    }
    if (principal.logsContent) asked.content = this.#watch(visit, principal);
    try {
      await this.#serve(visit, asked);
      overload.answered(visit.response);
    } catch (error) {
      const refusal = asGatewayError(error);
      const status = this.#refuse(visit, refusal);
      asked.content?.refused(status, dialect.writeError(refusal, visit.requestId).body);
      this.#recordRefusal(visit, asked, { refusal, status });
    } finally {
      asked.content?.end();
      asked.body?.release();
      overload.calls.leave(principal.keyId);
    }
  }

  /** Where traces are not configured this is all that they cost. */
  #trace(request: IncomingMessage): CallTrace | undefined {
    const { tracer } = this.#options;
    if (tracer === undefined) return undefined;
    return tracer.begin(headerValue(request, 'traceparent'), headerValue(request, 'tracestate'));
  }

  #watch(
    { requestId: id, startedWall: startedAt, path, request }: Visit,
    { keyId }: Principal,
  ): AskedSoFar['content'] {
    return this.#options.contents?.watch({ id, keyId, startedAt, path, request });
  }

  #recordRefusal(
    visit: Visit,
    { principal, dialect, tags, head, trace, content }: AskedSoFar,
    { refusal, status }: { readonly refusal: GatewayError; readonly status: number | undefined },
  ): void {
    const { record, gateway, tracer, overload } = this.#options;
    // A flood has some rows only; what is kept of a call's content belongs to one.
    if (refusal.code === 'overloaded' && !overload.noteShed() && content === undefined) return;
    const row = refusedRow({
      id: visit.requestId,
      startedWall: visit.startedWall,
      principal,
      trace,
      tags,
      endpoint: dialect.id,
      model: head?.model ?? '',
      stream: head?.stream ?? false,
      error: refusal,
      status,
      totalMs: gateway.clock.now() - visit.startedAt,
    });
    record(row);
    if (trace?.sampled === true) tracer?.record(refusedSpan(row, trace));
  }

  async #serve(visit: Visit, asked: AskedSoFar): Promise<void> {
    const { principal, dialect, trace, content } = asked;
    const gateway = content?.listening(this.#options.gateway) ?? this.#options.gateway;
    const source = await this.#readBody(visit, asked, dialect.scope);
    const head = isLong(source)
      ? await inTurns(dialect.headReading(source.outline))
      : dialect.readHead(source.outline);
    asked.head = head;
    const { request, response, requestId, path } = visit;
    const header = (name: string): string | undefined => headerValue(request, name);
    const tags = clientTags(header, principal.tags);
    asked.tags = tags;
    const labels = callLabels(source.outline, header, { ofKey: principal.tags, ofClient: tags });
    const route = this.#knownRoute(principal, head.model) ?? (await this.#searchRoute(head.model));
    const others = otherModels(source.outline, { dialect, route });
    if (others !== undefined) requireModels(principal, others.names);
    const labelled = { principal, dialect, source, head, tags, labels, route, header, trace };
    roomToTranslate(asked.body, labelled, this.#options.overload);
    const socket = new ResponseSink(response);
    const sink = content?.watch(socket) ?? socket;
    const idempotencyKey = header('idempotency-key');
    if (idempotencyKey === undefined) return this.#call(visit, labelled, { gateway, sink });
    const { method = '' } = request;
    const { keyId } = principal;
    const secret = presentedKey(header('authorization'), header('x-api-key'));
    const sent = { keyId, secret, idempotencyKey, method, path, body: source.bytes };
    await answerOnce(
      { answers: this.#options.answers, request: sent, gateway, sink, requestId },
      (watched, recording) => this.#call(visit, labelled, { gateway: watched, sink: recording }),
    );
  }

  async #call(
    { requestId, response, startedAt, startedWall }: Visit,
    { principal, tags, ...asked }: LabelledCall,
    { gateway, sink }: { readonly gateway: Gateway; readonly sink: ClientSink },
  ): Promise<void> {
    const { route } = asked;
    const admitted = this.#admit({ ...asked, principal, tags, id: requestId });
    const grant = admitted instanceof Promise ? await admitted : admitted;
    if (response.destroyed) {
      // It left while it waited for a route or for the counters: no upstream is asked (F71).
      grant?.settle({ tokens: 0, nanodollars: 0 });
      throw clientLeft();
    }
    const call = {
      ...asked,
      id: requestId,
      strict: principal.strict || route.strict === true,
      caller: principal,
      grant,
      startedAt,
      startedWall,
    };
    await handleCall(gateway, call, sink);
  }

  /** What the call may use; without limits nothing is looked at. */
  #admit(call: LabelledCall & { readonly id: string }): ReturnType<Admission['admit']> {
    const { gateway, admission } = this.#options;
    const { id, principal, tags, head, route } = call;
    const registry = this.#options.registry();
    const strict = principal.strict || route.strict === true;
    return admission.admit({
      id,
      principal,
      tags,
      model: head.model,
      route,
      registry,
      endpoint: call.dialect.id,
      size: new CallSize(gateway, call, (target) => registry.outputLimit(target)),
      mayShrink: principal.shrink && !strict,
      leastOutput: (head.reasoningBudget ?? 0) + leastOutputTokens,
    });
  }

  /** It takes a slot and memory as a call does. */
  async #count(visit: Visit, principal: Principal): Promise<void> {
    const { overload, dialects } = this.#options;
    const asked = nothingRead(principal, dialects.messages);
    await overload.within(principal.keyId, () =>
      this.#countIn(visit, asked).finally(() => asked.body?.release()),
    );
  }

  async #countIn(visit: Visit, asked: AskedSoFar): Promise<void> {
    const { gateway } = this.#options;
    const { principal, dialect } = asked;
    const source = await this.#readBody(visit, asked, 'count_tokens');
    const model = isLong(source)
      ? await inTurns(countHeadReading(source.value))
      : readCountHead(source.value);
    const route = this.#knownRoute(principal, model) ?? (await this.#searchRoute(model));
    const able = firstAble(route.targets, gateway.health);
    const target = able ?? route.targets[0];
    if (target === undefined) throw unknownModel(model);
    const header = (name: string): string | undefined => headerValue(visit.request, name);
    const tags = clientTags(header, principal.tags);
    // It counts as a request, and takes neither tokens nor money.
    const { requestId: id } = visit;
    const registry = this.#options.registry();
    const wanted = { id, principal, tags, model, route, registry };
    const grant = await this.#options.admission.admit(wanted);
    try {
      const { request, response } = visit;
      const unasked = able === undefined;
      const counted = { request, response, requestId: id, dialect, source, target, unasked, grant };
      await answerCount(gateway, counted);
    } finally {
      grant?.settle({ tokens: 0, nanodollars: 0 });
    }
  }

  /** It takes a slot: providers may have to be asked what they have. */
  async #models(visit: Visit, principal: Principal): Promise<void> {
    if (visit.request.method !== 'GET') throw new MethodNotAllowed('GET');
    requireScope(principal, 'models');
    const { overload, registry } = this.#options;
    const { path, query, requestId, response } = visit;
    const name = path === modelsPath ? undefined : path.slice(modelsPath.length + 1);
    const asked = { name, query };
    const answer = overload.within(principal.keyId, () =>
      modelsAnswer(registry(), principal, asked),
    );
    sendJson(response, { status: 200, body: await answer, headers: idHeaders(requestId) });
  }

  async #readBody(visit: Visit, asked: AskedSoFar, scope: string): Promise<JsonSource> {
    const { request } = visit;
    const { principal, dialect } = asked;
    if (request.method !== 'POST') throw new MethodNotAllowed('POST');
    requireScope(principal, scope);
    checkClientHeaders((name) => headerValue(request, name));
    const { overload } = this.#options;
    const taken = await takeBody(visit, principal.keyId, overload);
    asked.body = taken.share;
    // A body may take minutes; the key of a call that begins only now must still be one (S6).
    if (principal.revoked()) throw new GatewayError('unauthenticated', keyRefusal);
    asked.content?.asked(taken.pieces);
    const parsed = parseTaken(taken, dialect.ownedKeys, { overload, response: visit.response });
    return parsed instanceof Promise ? await parsed : parsed;
  }

  /**
   * The route of a name as far as it is known without asking a provider. One answer for unknown and
   * out of scope: a key cannot find out what else there is (E6).
   */
  #knownRoute(principal: Principal, model: string): Route | undefined {
    if (!principal.allowsModel(model)) throw unknownModel(model);
    return this.#options.registry().find(model);
  }

  async #searchRoute(model: string): Promise<Route> {
    const route = await this.#options.registry().search(model);
    if (route === undefined) throw unknownModel(model);
    return route;
  }

  #authenticate({ request }: Visit): Principal | Promise<Principal> {
    return whoCalls(this.#options, request, headerValue(request, 'x-api-key'));
  }

  #errorDialect(request: IncomingMessage, path: string, query: string): ClientDialect {
    const { chat, messages } = this.#options.dialects;
    const own = this.#generating.get(path);
    if (own !== undefined) return own;
    return path.startsWith('/v1/messages') || speaksMessages(request.headers, query)
      ? messages
      : chat;
  }

  /** Sends the error unless the answer has begun; the status, if one was sent. */
  #refuse(visit: Visit, error: GatewayError): number | undefined {
    const { request, response, requestId, dialect } = visit;
    const { random, log, clock } = this.#options.gateway;
    if (error.code === 'internal') {
      const cause =
        error.cause instanceof Error
          ? (error.cause.stack ?? error.cause.message)
          : String(error.cause);
      log.error('request failed', { id: requestId, cause });
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
