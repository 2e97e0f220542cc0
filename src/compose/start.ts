/**
 * The composition root: settings → store → keys → providers → gateway → servers. The only place that knows all
 * parts; each part receives its dependencies.
 */
import { randomBytes } from 'node:crypto';
import type { Server } from 'node:http';
import { isatty } from 'node:tty';
import { openAccess, type Access, type GatewayAdmin } from './access.ts';
import { DirectorySize, type LastReload, diagnosticsOf } from './diagnostics.ts';
import type { Events } from './events.ts';
import { localHost, type DataPlaneHost } from './host/data-plane-host.ts';
import type { LocalModels } from './local.ts';
import type { OpenedPool } from './host/parent.ts';
import type { Plane } from './plane.ts';
import { knownProviders, priceDeps, providerDeps } from './providers.ts';
import { statusJson } from './metrics.ts';
import { openTracer } from './traces.ts';
import { type Settings, needRestart, packSettings } from '../config/settings.ts';
import { withSecretFiles } from '../config/config-file.ts';
import { ConfigError } from '../config/errors.ts';
import { type LoadOptions, loadSettings, watchedConfig } from '../config/load.ts';
import { Referred } from '../config/referred.ts';
import { ConfigWatch, fingerprint, type Fingerprints } from '../config/watch.ts';
import { EventLoopBudget } from '../core/event-loop-budget.ts';
import { shippedModels } from '../local-models/model-folder.ts';
import { newId, systemClock } from '../observe/runtime.ts';
import { LineLog, prettyFor } from '../observe/log.ts';
import type { AdminModel, ReloadOutcome } from '../admin/handler.ts';
import { closeServer } from '../http/drain.ts';
import { listen } from '../http/listen.ts';
import { renewTls } from '../http/tls.ts';
import { scrapeText } from '../observe/metrics/metrics.ts';
import { loadOfProcess } from '../http/overload/load.ts';
import {
  type Environment,
  type RunningGateway,
  type StartOptions,
  type StopWay,
  version,
} from './options.ts';
import { HttpClient } from '../wire/http-client.ts';
import { programName } from '../cli/program.ts';
import { shellWord } from '../cli/shell-word.ts';
import { PlanePorts } from './ports.ts';

export type { RunningGateway, StartOptions } from './options.ts';

/** Starts everything; throws ConfigError, StoreError or the system's error of listening. */
export async function start(options: StartOptions): Promise<RunningGateway> {
  const env = withSecretFiles(options.env ?? process.env);
  const given = { flags: options.flags ?? {}, env, cwd: options.cwd ?? process.cwd() };
  const load: Load = (asked) => loadSettings({ ...given, knownProviders, ...asked });
  const configFile = watchedConfig(given);
  const read = new Map([[configFile, fingerprint(configFile)]]);
  const reading = (file: string): void =>
    void (read.has(file) || read.set(file, fingerprint(file)));
  const settings = await load({ reading });
  const pretty = prettyFor(isatty(2), env);
  const log = new LineLog({ fd: 2, level: settings.logLevel, clock: systemClock, pretty });
  for (const warning of settings.warnings) log.warn('config', { warning });
  const program = programName(env, given.cwd);
  const ports = new PlanePorts(settings, (flag, value) =>
    startCommandLine(program, { ...options.flags, [flag]: value }),
  );
  if (options.announce !== undefined) log.hold();
  try {
    return await startPlanes(options, { env, load, read, settings, pretty, log, ports });
  } catch (error) {
    log.flush();
    throw error;
  } finally {
    await ports.release();
  }
}

/** @param asked `configText`: replaces the text of the config file */
type Load = (asked?: Pick<LoadOptions, 'configText' | 'referred' | 'reading'>) => Promise<Settings>;

/** To be pasted. */
function startCommandLine(program: string, flags: NonNullable<StartOptions['flags']>): string {
  const given = Object.entries(flags).map(([name, value]) => `--${name} ${shellWord(value)}`);
  return [program, 'start', ...given].join(' ');
}

interface StartDeps {
  readonly env: Environment;
  readonly load: Load;
  /** Of the config file and of the files of TLS, from before they were read: they may be written while the gateway starts. */
  readonly read: Fingerprints;
  readonly settings: Settings;
  readonly pretty: ReturnType<typeof prettyFor>;
  readonly log: LineLog;
  readonly ports: PlanePorts;
}

async function startPlanes(options: StartOptions, deps: StartDeps): Promise<RunningGateway> {
  const { env, load, read, settings, pretty, log, ports } = deps;
  const pool = await openPool(settings, log, ports);
  const access = await openAccess({
    settings,
    env,
    log,
    ...(pool && { followers: pool.pool }),
    whenLocked: () => ports.reserve(),
    whileOpening: loadServing,
  });
  const [{ Plane }, { Events }, { createLocalModels }] = await loadServing();
  const tracer = await openTracer(settings.traces, { log, clock: systemClock, newId, version });
  const turns = new EventLoopBudget();
  const client = new HttpClient({ turns });
  const events = new Events({
    client,
    log,
    hooks: () => plane.settings.webhooks,
    storeFailure: () => access.failure(),
  });
  const localModels = createLocalModels(settings, log);
  const { fetchesCredentials = true } = options;
  const plane: Plane = new Plane({
    settings,
    env,
    log,
    access,
    random: options.random ?? Math.random,
    pressure: options.load ?? loadOfProcess(turns),
    // Beside workers this plane serves the playground alone, whose first call may wait.
    fetchesCredentials: fetchesCredentials && pool === undefined,
    tracer,
    client,
    events: pool === undefined ? events : pool.eventsOver(events),
    localModels,
    ...(pool && { peers: pool.pool }),
  });
  const watchesLoad = options.load === undefined;
  const own = {
    settings,
    env,
    log,
    access,
    plane,
    localModels,
    pretty,
    watchesLoad,
    fetchesCredentials,
  };
  const host = pool?.host(own) ?? localHost(plane, () => access.ledger.flush());
  const served = { access, plane, host, events, localModels };
  const running = new Runtime({ load, read, env, log, ports, ...served });
  try {
    options.beforeListening?.();
    await running.listen();
  } catch (error) {
    await running.abandon();
    throw error;
  }
  options.announce?.(running);
  await access.secretsShown();
  log.release();
  running.logStart();
  return running;
}

/** What serves calls, more than half of the modules: the thread of the store opens its file meanwhile. */
function loadServing() {
  return Promise.all([import('./plane.ts'), import('./events.ts'), import('./local.ts')]);
}

/** Undefined = this process serves alone, and loads nothing for workers. */
async function openPool(
  { workers, listen: { host } }: Settings,
  log: LineLog,
  ports: PlanePorts,
): Promise<OpenedPool | undefined> {
  if (workers === 1) return undefined;
  const { canShareSockets } = await import('../http/worker-sockets.ts');
  if (!(await ports.explained('listen', () => canShareSockets(host)))) {
    log.warn('workers_unsupported', {
      workers,
      reason:
        'Processes cannot share a port with this system and version of Node (SO_REUSEPORT): one process serves.',
    });
    return undefined;
  }
  const { openPool: open } = await import('./host/parent.ts');
  return open();
}

interface RuntimeDeps {
  readonly load: Load;
  readonly read: Fingerprints;
  readonly env: Environment;
  readonly log: LineLog;
  readonly ports: PlanePorts;
  readonly access: Access;
  /** Of this process. */
  readonly plane: Plane;
  readonly host: DataPlaneHost;
  readonly events: Events;
  readonly localModels: LocalModels;
}

class Runtime implements RunningGateway {
  url = '';
  adminUrl = '';
  readonly newKey?: string;
  readonly newAdminToken?: string;
  readonly #deps: RuntimeDeps;
  readonly #admin: Server;
  #startedAt = 0;
  /** Settings that are read at the start only have their first values, however often the file was read since. */
  readonly #atStart: Settings;
  /** The error of the last reload; undefined: it was applied. */
  #refusal: string | undefined;
  #lastReload: LastReload | undefined;
  readonly #watch = new ConfigWatch(() => void this.reload());
  #reloading: Promise<ReloadOutcome> = Promise.resolve({ applied: true, problems: [] });
  #stopped: Promise<void> | undefined;

  constructor(deps: RuntimeDeps) {
    this.#deps = deps;
    this.#atStart = deps.plane.settings;
    const { access, host } = deps;
    if (access.newKey !== undefined) this.newKey = access.newKey;
    if (access.newAdminToken !== undefined) this.newAdminToken = access.newAdminToken;
    this.#admin = access.adminServer(this.#adminDeps(), {
      flush: () => host.flush(),
      metrics: async (format) => scrapeText(await host.families(), format),
      tls: this.settings.adminTls,
      oidc: this.settings.oidc,
    });
  }

  get settings(): Settings {
    return this.#deps.plane.settings;
  }

  get providers(): readonly string[] {
    return this.#deps.plane.registry.providerIds();
  }

  async listen(): Promise<void> {
    const { access, events, host, localModels, plane, ports, read } = this.#deps;
    const { adminListen, local } = this.settings;
    await localModels.refresh(local);
    events.start();
    this.url = await ports.handOver('listen', () => host.listen());
    this.adminUrl = await ports.handOver('adminListen', () => listen(this.#admin, adminListen));
    access.announce(this.adminUrl, this.settings.adminTls?.cert);
    this.#watch.follow(filesOf(this.settings), read);
    // The engine takes 120 MB: it starts ahead only where nothing else would answer.
    if (this.providers.length === 1) {
      for (const { name } of shippedModels) localModels.engines.prewarm(name);
    }
    plane.begin();
  }

  /** @returns settings that differ from those that run, and are read at start only */
  async #apply(): Promise<readonly string[]> {
    const { access, load, log, host } = this.#deps;
    const settings = await load();
    refuseUnfinished(this.settings, settings);
    await host.apply(settings);
    if (renewTls(this.#admin, settings.adminTls)) {
      access.announce(this.adminUrl, settings.adminTls?.cert);
    }
    this.#watch.follow(filesOf(settings));
    const waiting = needRestart(this.#atStart, settings);
    for (const name of waiting) log.warn('config_needs_restart', { name });
    log.info('config_applied', { providers: this.providers.join(',') });
    return waiting;
  }

  logStart(): void {
    const { configFile, dataDir, storage, workers } = this.settings;
    this.#startedAt = systemClock.now();
    this.#deps.events.note('gateway.started', { version });
    this.#deps.log.info('gateway_started', {
      version,
      node: process.version,
      pid: process.pid,
      url: this.url,
      admin_url: this.adminUrl,
      config: configFile ?? null,
      data_dir: dataDir,
      storage: storage.database,
      workers,
      providers: this.providers.join(','),
    });
  }

  stop({ announced, reason = 'request' }: StopWay = { announced: false }): Promise<void> {
    this.#stopped ??= this.#stopAndTell(announced, reason);
    return this.#stopped;
  }

  /** Closes what a start that failed has opened. */
  abandon(): Promise<void> {
    this.#stopped ??= this.#stop({ announced: false });
    return this.#stopped;
  }

  async runningCalls(): Promise<number> {
    return (await this.#deps.host.tallies())['live_calls'] ?? 0;
  }

  async #stopAndTell(announced: boolean, reason: string): Promise<void> {
    const { host, log } = this.#deps;
    const begun = systemClock.now();
    // Asking workers must not delay the stop.
    const logged = host
      .tallies()
      .then(({ live_calls: calls = 0 }) => log.info('gateway_stopping', { reason, calls }));
    await this.#stop({ announced });
    await logged;
    const now = systemClock.now();
    log.info('gateway_stopped', {
      reason,
      took_ms: Math.round(now - begun),
      up_s: Math.round((now - this.#startedAt) / 1000),
    });
    log.flush();
  }

  async renew(): Promise<void> {
    const { host, log } = this.#deps;
    if (host.renew === undefined) log.warn('no_workers_to_replace', {});
    else await host.renew();
  }

  cut(): void {
    this.#deps.host.cut();
  }

  async #stop(how: { readonly announced: boolean }): Promise<void> {
    const { access, events, host, localModels, log, plane } = this.#deps;
    this.#watch.close();
    // Before the drain: workers end within it, and what they wait for is asked here.
    access.stopping();
    try {
      await host.drain(how);
    } finally {
      await closeServer(this.#admin);
      await localModels.engines.stop();
      events.close();
      await plane.close();
      // Its log line names what could not be saved.
      await access.close().finally(() => log.flush());
    }
  }

  async reload(): Promise<ReloadOutcome> {
    const outcome = await this.#reloadNext();
    await this.#deps.access.authenticator.noteReload(outcome);
    return outcome;
  }

  /** One at a time: the last edit must be the one that holds. */
  #reloadNext(): Promise<ReloadOutcome> {
    this.#reloading = this.#reloading.then(async () => {
      const outcome = await this.#tryReload();
      this.#lastReload = { at: systemClock.wall(), outcome };
      return outcome;
    });
    return this.#reloading;
  }

  async #tryReload(): Promise<ReloadOutcome> {
    const { events, log, plane } = this.#deps;
    try {
      const before = this.settings;
      const needsRestart = await this.#apply();
      plane.metrics.reloads.add(['applied']);
      // A written file is read by the watch, and again by a reload that is requested: one event reports both.
      if (this.#refusal !== undefined || packSettings(before) !== packSettings(this.settings)) {
        events.tell('config.applied', { needs_restart: [...needsRestart] });
      }
      this.#refusal = undefined;
      return { applied: true, problems: [], needsRestart };
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      // Events and diagnostics are shown to people who may not read the file.
      const { withoutValuesOf } = await import('../config/edit/masked-file.ts');
      const why = withoutValuesOf(this.settings.configFile, message);
      plane.metrics.reloads.add(['refused']);
      log.error('config_rejected', { reason: why });
      const problems = why.split('\n');
      if (why !== this.#refusal) events.tell('config.refused', { problems });
      this.#refusal = why;
      return { applied: false, problems };
    }
  }

  async #models(): Promise<readonly AdminModel[]> {
    const { localModels, plane, host } = this.#deps;
    const { adminModel } = await import('./local.ts');
    await localModels.refresh(this.settings.local);
    const [listings, health] = await Promise.all([plane.registry.list(), host.health()]);
    const engines = localModels.engines.status();
    return listings.map((listing) => adminModel(listing, { engines, health }));
  }

  /** The changes that a text of the config file would make. @throws ConfigError */
  async #preview(texts: { readonly before: string; readonly after: string }) {
    const { changesBetween, consequences } = await import('../config/edit/preview.ts');
    const referred = new Referred();
    const running = this.settings;
    const wanted = await this.#deps.load({ configText: texts.after, referred });
    refuseUnfinished(running, wanted);
    const warnings = [...consequences(running, wanted), ...wanted.warnings];
    return {
      changes: changesBetween(running, wanted, { ...texts, referred }),
      warnings: warnings.map((each) => referred.scrub(each)),
      needsRestart: needRestart(this.#atStart, wanted),
    };
  }

  #adminDeps(): GatewayAdmin {
    const { access, env, events, host, localModels, plane } = this.#deps;
    const dataSize = new DirectorySize(this.settings.dataDir, systemClock);
    return {
      events: events.source,
      models: () => this.#models(),
      modelProblems: () => localModels.problems(),
      ...priceDeps(() => ({ registry: plane.registry, prices: plane.prices, clock: systemClock })),
      status: async () => {
        const tallies = await host.tallies();
        const { url, adminUrl, providers } = this;
        return statusJson(plane.facts(), { url, adminUrl, providers, tallies });
      },
      diagnostics: async () => {
        const { url, adminUrl } = this;
        const upMs = systemClock.now() - this.#startedAt;
        const tallies = await host.tallies();
        const own = { facts: plane.facts(), access, tallies, url, adminUrl, dataSize };
        return diagnosticsOf({ ...own, upMs, lastReload: this.#lastReload });
      },
      config: () => this.settings,
      editing: {
        tagKey: randomBytes(32),
        isShared: this.settings.storage.database === 'postgres',
        preview: (texts) => this.#preview(texts),
      },
      ...providerDeps(this, env),
      providerHealth: async () => {
        const health = await host.health();
        return (id) => health.ofProvider(id);
      },
      reload: () => this.#reloadNext(),
      playground: {
        keys: access.keys,
        makePlane: (authenticator) => plane.servedFor(authenticator),
      },
      explainer: async () => {
        const { explainerOf } = await import('../admin/explain.ts');
        return explainerOf({
          keys: access.keys,
          options: plane.options,
          admission: plane.admission,
          prices: () => plane.prices,
          store: access.store.calls,
        });
      },
    };
  }
}

/**
 * Some editors and scripts empty or remove a file before they write it: all calls would fail in between.
 * @throws ConfigError
 */
function refuseUnfinished(before: Settings, settings: Settings): void {
  if (before.configFile === undefined || before.configIsEmpty) return;
  if (settings.configFile === undefined) {
    const message = `${before.configFile} is gone, or its directory cannot be read. For a config without settings write {} into it.`;
    throw new ConfigError([{ path: '', message }]);
  }
  if (!settings.configIsEmpty) return;
  const message = `${settings.configFile} is empty, which is taken for an unfinished write. For a config without settings write {} into it.`;
  throw new ConfigError([{ path: '', message }]);
}

/** A change of one of them is a change of the config. */
function filesOf({ watchedConfig, tls, adminTls }: Settings): readonly string[] {
  return [watchedConfig, ...(tls?.files ?? []), ...(adminTls?.files ?? [])];
}
