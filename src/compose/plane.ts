/**
 * Part of the composition root: the data plane of one process and everything that serves calls. Access and
 * accounting are passed in, so that a worker serves as a single process does.
 */
import type { Server } from 'node:http';
import type { BudgetNote } from '../access/budget-watch.ts';
import { PriceHistory } from '../access/price-history.ts';
import type { PriceTable } from '../access/prices.ts';
import type { LimitSettings } from '../config/sections.ts';
import type { Settings } from '../config/settings.ts';
import type { RequestCredential } from '../core/credential.ts';
import { GatewayError } from '../core/errors.ts';
import type { Clock, Log } from '../core/runtime.ts';
import { clientDialects } from '../dialects/registry.ts';
import type { Gateway } from '../gateway/gateway.ts';
import { TargetHealth } from '../gateway/targets/health.ts';
import { LearnedParameters } from '../gateway/learned-parameters.ts';
import { BodyThread } from '../gateway/long-bodies/body-thread.ts';
import { ReasoningMemory, ReasoningStore, type SharedTurn } from '../gateway/reasoning-memory.ts';
import { RetryBudget } from '../gateway/targets/retries.ts';
import { Routing } from '../gateway/targets/routing.ts';
import { DetachedStreams, Sweeper } from '../gateway/deadlines.ts';
import { TokenEstimator } from '../gateway/call-size.ts';
import { callLogFields } from '../http/call-log.ts';
import { ClientAddresses } from '../http/request-headers.ts';
import { DataPlane, type DataPlaneOptions } from '../http/data-plane.ts';
import { Drain, type DrainWay } from '../http/drain.ts';
import { createListener, listenInherited, listenWidely } from '../http/listen.ts';
import { renewTls } from '../http/tls.ts';
import { capConnections, connectionsOfProcess } from '../http/overload/connection-limits.ts';
import {
  collectGarbage,
  heapOfProcess,
  type LoadSource,
  memoryOfProcess,
} from '../http/overload/load.ts';
import { Overload } from '../http/overload/overload.ts';
import { RefusalLog } from '../http/send.ts';
import type { LineLog } from '../observe/log.ts';
import type { Metrics } from '../observe/metrics/metrics.ts';
import { later, newId, systemClock } from '../observe/runtime.ts';
import type { SpanTracer } from '../observe/traces/tracer.ts';
import { Credentials } from '../providers/credentials/credentials.ts';
import { ModelLists } from '../providers/model-list.ts';
import { Registry } from '../providers/registry.ts';
import { TokenizerThread } from '../tokens/tokenizer.ts';
import type { HttpClient } from '../wire/http-client.ts';
import type { Access } from './access.ts';
import type { PlaneEvents } from './events.ts';
import {
  type Contents,
  createContents,
  createIdempotency,
  createResponses,
  type Idempotency,
  type Responses,
} from './features.ts';
import { createLimits, type Limits } from './limits.ts';
import type { LocalModels } from './local.ts';
import { createMetrics, type FactSources } from './metrics.ts';
import { type Environment, version } from './options.ts';
import { listedWindows, priceTable, priceToCompare } from './providers.ts';
import { lastSpansMs, recordSpans } from './traces.ts';

// The published program is JavaScript; in development Node runs the TypeScript file itself.
const longBodyThread = new URL(
  import.meta.url.endsWith('.ts') ? './long-body-thread.ts' : './long-body-thread.js',
  import.meta.url,
);

/** The price package takes some ten milliseconds to load: not while the first calls are awaited. */
const pricesAfterMs = 1000;

/** Authentication, admission and accounting of calls. */
export type PlaneAccess = Pick<
  Access,
  | 'keys'
  | 'ledger'
  | 'counting'
  | 'policies'
  | 'sealer'
  | 'answers'
  | 'contents'
  | 'contentKey'
  | 'responses'
  | 'stillMs'
  | 'mayAdmit'
  | 'failure'
  | 'watchSpending'
  | 'status'
  | 'storeFacts'
> & { readonly authenticator: Pick<Access['authenticator'], 'declare'> };

/** Other processes that serve at the same address. */
export interface Peers {
  /** A refused key counts for its address everywhere. */
  keyRefused(address: string | undefined): void;
  keyForgiven(address: string | undefined): void;
  /** The next turn of the conversation may go to any of them. */
  turnShared(turn: SharedTurn): void;
  /** Absent = this process watches what budgets spend. */
  noteBudget?(note: BudgetNote): void;
}

interface PlaneDeps {
  readonly settings: Settings;
  readonly env: Environment;
  readonly log: LineLog;
  readonly access: PlaneAccess;
  readonly random: () => number;
  readonly pressure: LoadSource;
  /** Credentials of clouds are fetched before the first call. */
  readonly fetchesCredentials: boolean;
  readonly tracer: SpanTracer | undefined;
  readonly client: HttpClient;
  readonly events: PlaneEvents;
  readonly localModels: Pick<LocalModels, 'engines' | 'refresh'>;
  /** Absent = it serves alone. */
  readonly peers?: Peers;
}

export class Plane {
  readonly health: TargetHealth;
  readonly metrics: Metrics;
  /** The parts that also serve the playground's calls. */
  readonly options: DataPlaneOptions;
  readonly #deps: PlaneDeps;
  readonly #sweeper: Sweeper;
  readonly #textCounter = new TokenizerThread();
  readonly #bodies: BodyThread;
  readonly #lists: ModelLists;
  readonly #credentials = new Credentials(systemClock);
  readonly #server: Server;
  readonly #drain: Drain;
  readonly #overload: Overload;
  readonly #idempotency: Idempotency;
  readonly #contents: Contents;
  readonly #responses: Responses;
  readonly #limits: Limits;
  readonly #turns: ReasoningStore;
  #settings: Settings;
  #addresses: ClientAddresses;
  #registry: Registry;
  readonly #prices: PriceHistory;

  constructor(deps: PlaneDeps) {
    const { settings, env, log, access, client, events } = deps;
    this.#deps = deps;
    this.#settings = settings;
    this.#addresses = new ClientAddresses(settings.trustedProxies);
    const { stillMs } = access;
    this.#bodies = new BodyThread({
      entry: longBodyThread,
      data: () => ({ sealKey: access.sealer.key() }),
      failed: (reason) => log.error('body_thread_failed', { reason }),
      memoryBytes: settings.limits.memoryBytes ?? memoryOfProcess(),
    });
    this.#sweeper = new Sweeper(systemClock, stillMs === undefined ? {} : { stillMs });
    access.ledger.onSettled((callIds) => this.#sweeper.endSettled(callIds));
    const { connectMs } = settings.timeouts;
    this.#lists = new ModelLists({ client, clock: systemClock, log, connectMs });
    this.health = new TargetHealth({
      clock: systemClock,
      log,
      alert: (dead) => events.credentialOut(dead),
      changed: (change) => events.targetChanged(change),
    });
    this.#registry = this.#buildRegistry(settings);
    this.#prices = new PriceHistory(priceTable(settings, env, log), systemClock);
    this.#overload = this.#createOverload();
    this.#idempotency = createIdempotency(deps, () => this.#settings.idempotency);
    this.#contents = createContents(deps, () => this.#settings.content);
    this.#responses = createResponses(deps, () => this.#settings.responses);
    this.metrics = createMetrics(() => this.facts());
    this.#limits = this.#createLimits();
    const { peers } = deps;
    const sharing =
      peers === undefined ? {} : { share: (turn: SharedTurn) => peers.turnShared(turn) };
    this.#turns = new ReasoningStore({ clock: systemClock, ...sharing });
    this.options = this.#planeOptions();
    const plane = new DataPlane(this.options);
    const unreadable = new RefusalLog({ log, clock: systemClock });
    this.#server = createListener((request, response) => void plane.handle(request, response), {
      lastAnswers: () => this.#drain.begun || this.#overload.step > 0,
      newId,
      refused: (refusal) => {
        this.metrics.refusedRequests.add(['not_http']);
        unreadable.note({ ...refusal });
      },
      tls: settings.tls,
      clock: systemClock,
    });
    guardConnections(this.#server, () => this.#settings.limits);
    this.#drain = new Drain({
      server: this.#server,
      clock: systemClock,
      times: () => this.#settings.drain,
      calls: this.#sweeper,
    });
  }

  get settings(): Settings {
    return this.#settings;
  }

  get registry(): Registry {
    return this.#registry;
  }

  get prices(): PriceTable {
    return this.#prices.current;
  }

  get admission(): Limits['admission'] {
    return this.#limits.admission;
  }

  /** Sources of the status of the gateway. */
  facts(): FactSources {
    const { access, client, localModels, log, tracer, events } = this.#deps;
    return {
      access,
      client,
      data: this.#server,
      engines: localModels.engines,
      health: this.health,
      idempotency: this.#idempotency,
      contents: this.#contents,
      responses: this.#responses,
      limits: this.#limits,
      log,
      overload: this.#overload,
      ready: this.#notReady() === undefined,
      settings: this.#settings,
      sweeper: this.#sweeper,
      tracer,
      webhooks: events,
    };
  }

  /** Observes the process, and the engines on the usual ports, from now on. */
  begin(): void {
    this.#overload.start();
    void this.#registry.probe();
    this.#fetchCredentials();
    const warm = (): void => this.prices.warm(this.#registry.providerIds());
    setTimeout(warm, pricesAfterMs).unref();
  }

  /**
   * Resolves with the address.
   * @param inherited descriptors of bound sockets; default: those of the configured address are made
   * @throws the system's error of listening
   */
  listen(inherited?: readonly number[]): Promise<string> {
    if (inherited !== undefined) return listenInherited(this.#server, inherited);
    return listenWidely(this.#server, this.#settings.listen);
  }

  /** Calls that begin from here on go by these. @throws Error that names a key which cannot be taken */
  async apply(settings: Settings): Promise<void> {
    const { log, env, access, localModels } = this.#deps;
    // First of all: it is the one that may still refuse.
    access.authenticator.declare(settings);
    await localModels.refresh(settings.local);
    this.#registry = this.#buildRegistry(settings);
    this.#fetchCredentials();
    this.health.forget();
    this.#prices.replace(priceTable(settings, env, log));
    this.#settings = settings;
    renewTls(this.#server, settings.tls);
    this.#addresses = new ClientAddresses(settings.trustedProxies);
    log.setLevel(settings.logLevel);
  }

  /** Tokens and keys of clouds, so that the first call does not wait for them. Those that are held are not fetched again. */
  #fetchCredentials(): void {
    const { log, fetchesCredentials } = this.#deps;
    if (!fetchesCredentials) return;
    const seen = new Set<RequestCredential>();
    for (const { id, generate } of this.#registry.configured) {
      const { credential } = generate;
      if (credential?.prepare === undefined || seen.has(credential)) continue;
      seen.add(credential);
      credential.prepare().catch((error: unknown) => {
        const reason = error instanceof GatewayError ? error.detail : String(error);
        log.warn('credential_failed', { provider: id, reason });
      });
    }
  }

  /** Messages of its peers. */
  readonly heard: Required<Peers> = {
    keyRefused: (address) => void this.#overload.badKeys.refused(address),
    keyForgiven: (address) => this.#overload.badKeys.forgive(address),
    turnShared: (turn) => this.#turns.adopt(turn),
    noteBudget: (note) => this.#limits.noted(note),
  };

  /** Whether /readyz of this process was polled recently. */
  get watched(): boolean {
    return this.#drain.watched;
  }

  /** /readyz of another process was polled. */
  probed(): void {
    this.#drain.probed();
  }

  /** Refuses new work and waits for running calls (G14). */
  async drain(how: DrainWay): Promise<void> {
    await this.#drain.run(how);
    this.#overload.stop();
  }

  /** Writes what calls said and what waits to be written. Never throws. */
  flushContents(): Promise<void> {
    return this.#contents.log.flush();
  }

  /** Ends running calls at once; `drain` then has nothing to wait for. */
  cut(): void {
    this.#drain.cut();
  }

  /** After `drain`: lets go of upstreams, and stores what is to be stored. */
  async close(): Promise<void> {
    await this.#deps.tracer?.close(lastSpansMs);
    await this.#deps.client.close();
    await this.#textCounter.close();
    await this.#bodies.close();
    await this.#idempotency.close();
    await this.#contents.close();
    await this.#responses.close();
  }

  #createLimits(): Limits {
    const { access, log, events, peers, tracer } = this.#deps;
    const limits = createLimits({
      ...access.counting,
      clock: systemClock,
      policies: access.policies,
      prices: (startedAt) => (startedAt === undefined ? this.prices : this.#prices.at(startedAt)),
      random: Math.random,
      log,
      tell: (type, data) => events.tell(type, data),
      metrics: this.metrics,
      ledger: access.ledger,
      observe: (row, call, receipt) => {
        this.metrics.calls.called(row);
        log.info('call', callLogFields(row));
        if (call !== undefined && receipt !== undefined)
          recordSpans(tracer, { call, receipt, row });
      },
      ...(peers?.noteBudget === undefined ? {} : { noteBudget: peers.noteBudget }),
    });
    access.watchSpending((spent) => limits.heard(spent));
    return limits;
  }

  #createOverload(): Overload {
    const { log, pressure, events } = this.#deps;
    return createOverload({
      clock: systemClock,
      log,
      random: Math.random,
      limits: () => this.#settings.limits,
      load: pressure,
      sweeper: this.#sweeper,
      bodies: this.#bodies,
      changed: (step, facts) => events.pressureChanged(step, facts),
    });
  }

  #buildRegistry(settings: Settings): Registry {
    const { env, localModels } = this.#deps;
    return new Registry({
      declared: settings.providers,
      routes: settings.routes,
      timeouts: settings.timeouts,
      retry: settings.retry,
      env,
      lists: this.#lists,
      credentials: this.#credentials,
      local: localModels.engines,
      listedWindow: listedWindows(settings, env),
    });
  }

  #gateway(): Gateway {
    const { access, log, random, client } = this.#deps;
    return {
      client,
      clock: systemClock,
      later,
      log,
      newId,
      random,
      estimator: new TokenEstimator(),
      textCounter: this.#textCounter,
      bodies: this.#bodies,
      learned: new LearnedParameters(systemClock),
      memory: new ReasoningMemory(access.sealer, this.#turns),
      health: this.health,
      retryBudget: new RetryBudget(),
      routing: new Routing({
        clock: systemClock,
        random,
        priceOf: (target) => priceToCompare(this.prices, target, systemClock.wall()),
      }),
      sweeper: this.#sweeper,
      clientTimes: () => this.#settings.clients,
      detachedStreams: new DetachedStreams(() => this.#settings.limits.streams),
      settlement: this.#limits.settlement,
    };
  }

  /** The same for calls that are authenticated in another way. */
  servedFor(authenticator: Pick<DataPlaneOptions, 'authenticate' | 'refreshKey'>): DataPlane {
    return new DataPlane({ ...this.options, ...authenticator });
  }

  #planeOptions(): DataPlaneOptions {
    const { access, tracer } = this.#deps;
    return {
      gateway: this.#gateway(),
      dialects: clientDialects,
      authenticate: (authorization, apiKey) => access.keys.authenticate(authorization, apiKey),
      refreshKey: (authorization, apiKey) => access.keys.refreshKey(authorization, apiKey),
      clientAddress: (request) => this.#addresses.of(request),
      registry: () => this.#registry,
      notReady: () => {
        this.#drain.probed();
        return this.#notReady();
      },
      mayAdmit: () => access.mayAdmit(),
      overload: this.#overload,
      badKeys: this.#badKeys(),
      admission: this.#limits.admission,
      answers: this.#idempotency.answers,
      contents: this.#contents.log,
      responses: this.#responses.stored,
      record: (row) => this.#limits.settlement.record(row),
      tracer,
      refused: (code) => this.metrics.refusedRequests.add([code]),
      version,
    };
  }

  #badKeys(): DataPlaneOptions['badKeys'] {
    const { badKeys } = this.#overload;
    const { peers } = this.#deps;
    if (peers === undefined) return badKeys;
    return {
      refused: (address) => {
        const waitMs = badKeys.refused(address);
        if (waitMs === undefined) peers.keyRefused(address);
        return waitMs;
      },
      forgive: (address) => {
        badKeys.forgive(address);
        peers.keyForgiven(address);
      },
    };
  }

  #notReady(): string | undefined {
    if (this.#drain.announced) return 'draining';
    return this.#deps.access.failure();
  }
}

// Part of the composition root: what guards the data plane from too much at once.

interface OverloadOptions {
  readonly clock: Clock;
  readonly log: Log;
  readonly random: () => number;
  /** The current ones: a reload changes them. */
  readonly limits: () => LimitSettings;
  readonly load: LoadSource;
  readonly sweeper: Sweeper;
  readonly bodies: Pick<BodyThread, 'endIdle'>;
  /** Called with each change of the pressure level, in addition to the log line. */
  readonly changed?: (step: number, facts: { readonly [name: string]: number }) => void;
}

/** It examines nothing until it is started. */
function createOverload({ sweeper, bodies, ...options }: OverloadOptions): Overload {
  return new Overload({
    ...options,
    slowReaders: sweeper,
    memory: { process: memoryOfProcess(), heap: heapOfProcess() },
    collectGarbage: (collection) => {
      // Garbage of the thread for long bodies counts as memory of the process. Only the end of the thread returns all of it.
      if (collection === 'compact') bodies.endIdle();
      collectGarbage(collection);
    },
  });
}

/** Holds the data plane's listener to its connections. */
function guardConnections(server: Server, limits: () => LimitSettings): void {
  const usual = connectionsOfProcess();
  capConnections(server, () => limits().connections ?? usual);
}
