/**
 * The composition root: settings → store → keys → providers → gateway → servers. The one place that
 * knows everybody; every part gets what it needs handed in.
 */
import type { Server } from 'node:http';
import { openAccess, type Access, type GatewayAdmin } from './start-access.ts';
import { createIdempotency, type Idempotency } from './start-idempotency.ts';
import { createLimits, type Limits } from './start-limits.ts';
import { createMetrics, type FactSources } from './start-metrics.ts';
import { createOverload, guardConnections, type OverloadOptions } from './start-overload.ts';
import { Events } from './start-events.ts';
import { adminModel } from './start-models.ts';
import { statusJson } from './start-status.ts';
import { createLocalModels, type LocalModels } from './start-local.ts';
import { lastSpansMs, openTracer, traced } from './start-traces.ts';
import { priceBook, priceParts, priceToCompare } from './start-prices.ts';
import type { PriceBook } from './access/prices.ts';
import { readUpstreamClient } from './config/upstream-client.ts';
import type { KnownProvider, KnownProviders } from './config/known-provider.ts';
import { needRestart } from './config/fixed-settings.ts';
import { loadSettings } from './config/load.ts';
import type { Settings } from './config/settings.ts';
import { watchConfig } from './config/watch.ts';
import { anthropicMessagesClient } from './dialects/anthropic-messages/client.ts';
import { openaiChatClient } from './dialects/openai-chat/client.ts';
import type { Gateway } from './gateway/call.ts';
import { TargetHealth } from './gateway/health.ts';
import { LearnedParameters } from './gateway/learned-parameters.ts';
import { LeftStreams } from './gateway/left-streams.ts';
import { ReasoningMemory } from './gateway/reasoning-memory.ts';
import { ReasoningStore } from './gateway/reasoning-store.ts';
import { RetryBudget } from './gateway/retry-budget.ts';
import { Routing } from './gateway/routing/routing.ts';
import { Sweeper } from './gateway/sweeper.ts';
import { TokenEstimator } from './gateway/token-estimator.ts';
import { providerParts } from './start-providers.ts';
import { tinyModel } from './local-models/tiny.ts';
import { later, systemClock } from './observe/clock.ts';
import { LineLog, prettyFor } from './observe/log.ts';
import { newId } from './observe/random.ts';
import type { SpanTracer } from './observe/traces/tracer.ts';
import { providerRows } from './providers/compatible.ts';
import type { LocalEngines } from './providers/local.ts';
import { ModelLists } from './providers/model-list.ts';
import { Registry } from './providers/registry.ts';
import type { AdminModel, ReloadOutcome } from './server/admin.ts';
import { callLogFields } from './server/call-log.ts';
import { DataPlane, type DataPlaneOptions } from './server/data-plane.ts';
import { ClientAddresses } from './server/client-address.ts';
import { closeServer, Drain } from './server/drain.ts';
import { createListener, listen } from './server/listen.ts';
import { createPlayground } from './server/playground.ts';
import { systemLoad, type LoadSource } from './server/overload/load.ts';
import type { Overload } from './server/overload/overload.ts';
import type { Metrics } from './server/metrics/metrics.ts';
import type { CallRow } from './store/store.ts';
import { HttpClient } from './wire/http-client.ts';
import { TokenizerThread } from './tokens/tokenizer.ts';
import { version } from './version.ts';
import type { Environment, RunningGateway, StartOptions } from './start-options.ts';

export type { Environment, RunningGateway, StartOptions } from './start-options.ts';

/** Providers that the config may name without declaring them. */
export const knownProviders: KnownProviders = new Map<string, KnownProvider>([
  ['local', { embedded: true }],
  ...providerRows.map((row): [string, KnownProvider] => [row.id, row]),
]);

/** The price package takes some ten milliseconds to load: not while the first calls are awaited. */
const pricesAfterMs = 1000;

/** Starts everything; throws ConfigError, StoreError or the system's error of listening. */
export async function start(options: StartOptions): Promise<RunningGateway> {
  const env = options.env ?? process.env;
  const load = (): Promise<Settings> =>
    loadSettings({
      flags: options.flags ?? {},
      env,
      cwd: options.cwd ?? process.cwd(),
      knownProviders,
    });
  const settings = await load();
  const pretty = prettyFor(2, env);
  const log = new LineLog({ fd: 2, level: settings.logLevel, clock: systemClock, pretty });
  for (const warning of settings.warnings) log.warn('config', { warning });
  const access = await openAccess({ settings, env, log });
  const random = options.random ?? Math.random;
  const pressure = options.load ?? systemLoad;
  const tracer = await openTracer(settings.traces, { log, clock: systemClock, newId, version });
  const running = new Runtime({ settings, load, env, log, access, random, pressure, tracer });
  try {
    await running.listen();
  } catch (error) {
    await running.stop();
    throw error;
  }
  return running;
}

interface RuntimeOptions {
  readonly settings: Settings;
  readonly load: () => Promise<Settings>;
  readonly env: Environment;
  readonly log: LineLog;
  readonly access: Access;
  readonly random: () => number;
  readonly pressure: LoadSource;
  readonly tracer: SpanTracer | undefined;
}

class Runtime implements RunningGateway {
  url = '';
  adminUrl = '';
  readonly newKey?: string;
  readonly newAdminToken?: string;
  readonly #options: RuntimeOptions;
  readonly #client: HttpClient;
  readonly #sweeper: Sweeper;
  readonly #textCounter = new TokenizerThread();
  readonly #events: Events;
  readonly #localModels: LocalModels;
  readonly #lists: ModelLists;
  readonly #health: TargetHealth;
  readonly #data: Server;
  readonly #admin: Server;
  readonly #drain: Drain;
  readonly #overload: Overload;
  readonly #idempotency: Idempotency;
  readonly #limits: Limits;
  readonly #metrics: Metrics;
  #settings: Settings;
  #addresses: ClientAddresses;
  #registry: Registry;
  #prices: PriceBook;
  #watch: { close(): void } | undefined;
  #reloading: Promise<ReloadOutcome> = Promise.resolve({ applied: true, problems: [] });
  #stopped: Promise<void> | undefined;

  constructor(options: RuntimeOptions) {
    const { settings, log, access } = options;
    this.#options = options;
    this.#settings = settings;
    this.#client = new HttpClient({ transport: readUpstreamClient(options.env) });
    this.#addresses = new ClientAddresses(settings.trustedProxies);
    if (access.newKey !== undefined) this.newKey = access.newKey;
    if (access.newAdminToken !== undefined) this.newAdminToken = access.newAdminToken;
    const { stillMs } = access;
    this.#sweeper = new Sweeper(systemClock, stillMs === undefined ? {} : { stillMs });
    access.ledger.onSettled((callIds) => this.#sweeper.endSettled(callIds));
    this.#events = new Events({
      client: this.#client,
      log,
      hooks: () => this.#settings.webhooks,
      storeTrouble: () => access.trouble(),
    });
    this.#localModels = createLocalModels(settings, log);
    this.#lists = new ModelLists({
      client: this.#client,
      clock: systemClock,
      log,
      connectMs: settings.timeouts.connectMs,
    });
    this.#health = new TargetHealth({
      clock: systemClock,
      log,
      alert: (dead) => this.#events.credentialOut(dead),
      changed: (change) => this.#events.targetChanged(change),
    });
    this.#registry = this.#buildRegistry(settings);
    this.#prices = priceBook(settings, log);
    this.#overload = createOverload(this.#guarded());
    this.#idempotency = createIdempotency(options, () => this.#settings.idempotency);
    this.#metrics = createMetrics(() => this.#facts());
    this.#limits = this.#createLimits();
    const parts = this.#planeParts();
    const plane = new DataPlane(parts);
    this.#data = createListener((request, response) => void plane.handle(request, response), {
      lastAnswers: () => this.#drain.begun || this.#overload.step > 0,
      newId,
      refused: (refusal) => {
        this.#metrics.refusedRequests.add(['not_http']);
        log.info('refused', { ...refusal });
      },
    });
    guardConnections(this.#data, () => this.#settings.limits);
    this.#drain = new Drain({
      server: this.#data,
      clock: systemClock,
      times: () => this.#settings.drain,
      calls: this.#sweeper,
    });
    this.#admin = access.adminServer(this.#adminParts(parts), (format) =>
      this.#metrics.text(format),
    );
  }

  /** Whom to ask how the gateway is. */
  #facts(): FactSources {
    return {
      access: this.#options.access,
      client: this.#client,
      data: this.#data,
      engines: this.#local,
      health: this.#health,
      idempotency: this.#idempotency,
      limits: this.#limits,
      log: this.#options.log,
      overload: this.#overload,
      ready: this.#notReady() === undefined,
      settings: this.#settings,
      sweeper: this.#sweeper,
      tracer: this.#options.tracer,
      webhooks: this.#events,
    };
  }

  #createLimits(): Limits {
    const { access, log } = this.#options;
    const limits = createLimits({
      ...access.counting,
      policies: access.policies,
      prices: () => this.#prices,
      random: Math.random,
      log,
      tell: (type, data) => this.#events.tell(type, data),
      metrics: this.#metrics,
    });
    access.watchSpending((spent) => limits.heard(spent));
    return limits;
  }

  get settings(): Settings {
    return this.#settings;
  }

  get providers(): readonly string[] {
    return this.#registry.providerIds();
  }

  async listen(): Promise<void> {
    const { listen: data, adminListen, configFile, local } = this.#settings;
    await this.#localModels.refresh(local);
    this.#overload.start();
    this.#events.start();
    this.url = await listen(this.#data, data);
    this.adminUrl = await listen(this.#admin, adminListen);
    this.#options.access.announce(this.adminUrl);
    if (configFile !== undefined) this.#watch = watchConfig(configFile, () => void this.reload());
    // The engine costs a second of CPU: it starts ahead only where nothing else would answer.
    if (this.providers.length === 1) this.#local.prewarm(tinyModel.name);
    void this.#registry.probe();
    setTimeout(() => this.#prices.warm(), pricesAfterMs).unref();
  }

  async #apply(): Promise<void> {
    const settings = await this.#options.load();
    const { log, access } = this.#options;
    // First of all: it is the one that may still refuse.
    access.door.declare(settings);
    await this.#localModels.refresh(settings.local);
    this.#registry = this.#buildRegistry(settings);
    this.#health.forget();
    this.#prices = priceBook(settings, log);
    for (const name of needRestart(this.#settings, settings)) {
      log.warn('config: this change takes effect at the next start', { name });
    }
    this.#settings = settings;
    this.#addresses = new ClientAddresses(settings.trustedProxies);
    log.setLevel(settings.logLevel);
    log.info('config applied', { providers: this.providers.join(',') });
  }

  stop(how = { announced: false }): Promise<void> {
    this.#stopped ??= this.#stop(how);
    return this.#stopped;
  }

  cut(): void {
    this.#drain.cut();
  }

  async #stop(how: { readonly announced: boolean }): Promise<void> {
    this.#watch?.close();
    await this.#drain.run(how);
    this.#overload.stop();
    await closeServer(this.#admin);
    await this.#local.stop();
    this.#events.close();
    await this.#options.tracer?.close(lastSpansMs);
    await this.#client.close();
    await this.#textCounter.close();
    await this.#idempotency.close();
    await this.#options.access.close();
    this.#options.log.flush();
  }

  async reload(): Promise<ReloadOutcome> {
    const outcome = await this.#reloadNext();
    await this.#options.access.door.noteReload(outcome);
    return outcome;
  }

  /** One at a time: the last edit must be the one that holds. */
  #reloadNext(): Promise<ReloadOutcome> {
    this.#reloading = this.#reloading.then(() => this.#tryReload());
    return this.#reloading;
  }

  async #tryReload(): Promise<ReloadOutcome> {
    try {
      await this.#apply();
      this.#metrics.reloads.add(['applied']);
      return { applied: true, problems: [] };
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      this.#metrics.reloads.add(['refused']);
      this.#options.log.error('config not applied, the old one stays', { why });
      return { applied: false, problems: why.split('\n') };
    }
  }

  async #models(): Promise<readonly AdminModel[]> {
    await this.#localModels.refresh(this.#settings.local);
    const listings = await this.#registry.list();
    const engines = this.#local.status();
    return listings.map((listing) => adminModel(listing, { engines, health: this.#health }));
  }

  get #local(): LocalEngines {
    return this.#localModels.engines;
  }

  #guarded(): OverloadOptions {
    const { log, pressure } = this.#options;
    return {
      clock: systemClock,
      log,
      random: Math.random,
      limits: () => this.#settings.limits,
      load: pressure,
      sweeper: this.#sweeper,
      changed: (step, facts) => this.#events.pressureChanged(step, facts),
    };
  }

  #buildRegistry(settings: Settings): Registry {
    return new Registry({
      declared: settings.providers,
      routes: settings.routes,
      timeouts: settings.timeouts,
      env: this.#options.env,
      lists: this.#lists,
      local: this.#local,
    });
  }

  #adminParts(plane: DataPlaneOptions): GatewayAdmin {
    return {
      models: () => this.#models(),
      modelProblems: () => this.#localModels.problems(),
      ...priceParts(() => ({ registry: this.#registry, book: this.#prices, clock: systemClock })),
      status: () => this.#status(),
      config: () => this.#settings,
      ...providerParts(this, this.#options.env),
      reload: () => this.#reloadNext(),
      playground: createPlayground(
        this.#options.access.keys,
        (door) => new DataPlane({ ...plane, ...door }),
      ),
    };
  }

  #planeParts(): DataPlaneOptions {
    const { access, log, random, tracer } = this.#options;
    const record = (row: CallRow): CallRow => {
      access.ledger.record(row);
      this.#metrics.calls.called(row);
      log.info('call', callLogFields(row));
      return row;
    };
    const limits = this.#limits;
    const gateway: Gateway = {
      client: this.#client,
      clock: systemClock,
      later,
      log,
      newId,
      random,
      estimator: new TokenEstimator(),
      textCounter: this.#textCounter,
      learned: new LearnedParameters(),
      memory: new ReasoningMemory(access.sealer, new ReasoningStore({ clock: systemClock })),
      health: this.#health,
      retryBudget: new RetryBudget(),
      routing: new Routing({
        clock: systemClock,
        random,
        priceOf: (target) => priceToCompare(this.#prices, target, systemClock.wall()),
      }),
      sweeper: this.#sweeper,
      clientTimes: () => this.#settings.clients,
      leftStreams: new LeftStreams(() => this.#settings.limits.streams),
      running: (call, soFar) => access.ledger.running(call.id, () => limits.running(call, soFar())),
      settle: traced(tracer, (call, receipt) => record(limits.settle(call, receipt))),
    };
    return {
      gateway,
      dialects: { chat: openaiChatClient, messages: anthropicMessagesClient },
      authenticate: (authorization, apiKey) => access.keys.authenticate(authorization, apiKey),
      lookAgain: (authorization, apiKey) => access.keys.lookAgain(authorization, apiKey),
      clientAddress: (request) => this.#addresses.of(request),
      registry: () => this.#registry,
      notReady: () => {
        this.#drain.probed();
        return this.#notReady();
      },
      mayAdmit: () => access.mayAdmit(),
      overload: this.#overload,
      badKeys: this.#overload.badKeys,
      admission: limits.admission,
      answers: this.#idempotency.answers,
      record,
      tracer,
      refused: (code) => this.#metrics.refusedRequests.add([code]),
      version,
    };
  }

  #notReady(): string | undefined {
    if (this.#drain.begun) return 'draining';
    return this.#options.access.trouble();
  }

  #status(): { readonly [name: string]: string | number | boolean | null } {
    return statusJson(this.#facts(), { url: this.url, providers: this.providers });
  }
}
