/**
 * A worker process: one data plane, whose store, counters and engines are its parent's. It does what
 * the parent says, and ends with it.
 */
import { randomBytes } from 'node:crypto';
import { Socket } from 'node:net';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { loadSealKey, type ContentKey } from '../../access/keys/seal-key.ts';
import { cannotRecord, Ledger } from '../../access/ledger.ts';
import { type Settings, unpackSettings } from '../../config/settings.ts';
import { EventLoopBudget } from '../../core/event-loop-budget.ts';
import type { Provider } from '../../core/provider.ts';
import type { Log } from '../../core/runtime.ts';
import { createSealer, type Sealer } from '../../core/secret.ts';
import { openaiChatUpstream } from '../../dialects/openai-chat/upstream.ts';
import { collectGarbageOfStart, loadOfProcess } from '../../http/overload/load.ts';
import type { LocalModelFile } from '../../local-models/model-file.ts';
import { LineLog } from '../../observe/log.ts';
import type { Family } from '../../observe/metrics/family.ts';
import { newId, systemClock } from '../../observe/runtime.ts';
import { localProvider, localTraitsOf } from '../../providers/http-provider.ts';
import type { LocalEngines } from '../../providers/local.ts';
import { StoreError } from '../../store/store-error.ts';
import type { AnswerStore, Store } from '../../store/store.ts';
import { HttpClient } from '../../wire/http-client.ts';
import { talliesOf } from './data-plane-host.ts';
import type { PlaneEvents } from '../events.ts';
import { type Authenticator, makeAuthenticator } from '../keys.ts';
import type { OpenedCounters } from '../limits.ts';
import type { LocalModels } from '../local.ts';
import { type Environment, version } from '../options.ts';
import { type Peers, Plane, type PlaneAccess } from '../plane.ts';
import { openTracer } from '../traces.ts';
import type {
  ParentOperations,
  ParentState,
  StopOfWorker,
  Welcome,
  WorkerOperations,
} from './worker-protocol.ts';
import { Link } from '../workers/link.ts';
import { streamFd, watchHeartbeat } from '../workers/processes.ts';
import { RemoteCounters, remoteStore, type StoreLink } from '../workers/session.ts';

interface Served {
  readonly plane: Plane;
  readonly access: WorkerAccess;
  readonly engines: EnginesOfParent;
  readonly log: LineLog;
}

export class WorkerGateway {
  readonly #link: Link<ParentOperations, WorkerOperations>;
  /** Changes while the worker starts are not in its initial data. */
  readonly #ready = Promise.withResolvers<Served>();
  #served: Served | undefined;
  /** It begins to listen: what follows a stop waits for that. */
  #opening: Promise<string> | undefined;
  #stopped: Promise<void> | undefined;
  #leaving = false;

  constructor(stream: Duplex) {
    this.#link = new Link({ stream, serve: this.#operations() });
  }

  async run(): Promise<void> {
    try {
      const welcome = await this.#link.ask('hello', [], Number.POSITIVE_INFINITY);
      const served = await this.#serve(welcome);
      this.#served = served;
      this.#ready.resolve(served);
      await served.access.begin();
      collectGarbageOfStart();
      const sockets = await this.#link.ask('mayListen', []);
      if (this.#stopped !== undefined) return;
      this.#opening = served.plane.listen(sockets);
      const url = await this.#opening;
      if (this.#stopped !== undefined) return;
      served.plane.begin();
      const { stillMs } = welcome;
      // A parent that is silent renews no leases: another gateway may spend what this worker's calls hold (Q1).
      if (stillMs !== undefined) {
        const ping = (): Promise<void> => this.#link.ask('ping', []);
        watchHeartbeat({ ping, silentMs: stillMs, silent: () => process.exit(1) });
      }
      this.#link.tell('listening', [url]);
    } catch (error) {
      this.#link.tell('failed', [error instanceof Error ? error.message : String(error)]);
      this.#link.close();
      process.exitCode = 1;
    }
  }

  /**
   * After an unknown error the state is unknown: running calls may finish, then the process ends (F94); a
   * second call ends them.
   */
  async leave(): Promise<void> {
    if (this.#leaving) return this.#served?.plane.cut();
    this.#leaving = true;
    this.#link.tell('leaving', []);
    await this.#stop({ announced: false, watched: false, alone: true });
    this.#link.flush();
    process.exit(1);
  }

  async #serve(welcome: Welcome): Promise<Served> {
    const { env, state, stillMs, pretty, contentKey } = welcome;
    const { watchesLoad, fetchesCredentials } = welcome;
    const link = this.#link;
    const settings = unpackSettings(welcome.settings);
    const log = new LineLog({ fd: 2, level: settings.logLevel, clock: systemClock, pretty });
    const still = stillMs === undefined ? {} : { stillMs };
    const access = new WorkerAccess({ link, settings, env, log, state, contentKey, ...still });
    const engines = new EnginesOfParent(link, welcome.localModels);
    const tracer = await openTracer(settings.traces, { log, clock: systemClock, newId, version });
    const turns = new EventLoopBudget();
    const plane = new Plane({
      settings,
      env,
      log,
      access,
      random: Math.random,
      pressure: watchesLoad ? loadOfProcess(turns) : () => () => undefined,
      fetchesCredentials,
      tracer,
      client: new HttpClient({ turns }),
      events: this.#events(),
      localModels: engines,
      peers: this.#peers(),
    });
    return { plane, access, engines, log };
  }

  #operations(): WorkerOperations {
    return {
      keyRefused: (address) => this.#served?.plane.heard.keyRefused(address),
      keyForgiven: (address) => this.#served?.plane.heard.keyForgiven(address),
      turnShared: (turn) => this.#served?.plane.heard.turnShared(turn),
      apply: async (settings) => (await this.#ready.promise).plane.apply(unpackSettings(settings)),
      stateIs: (state) => void this.#ready.promise.then(({ access }) => access.heard(state)),
      localModels: (models) =>
        void this.#ready.promise.then(({ engines }) => engines.heard(models)),
      keysChanged: async () => this.#served?.access.keysChanged(),
      ping: () => undefined,
      watched: () => this.#served?.plane.watched ?? false,
      stop: (how) => this.#stop(how),
      cut: () => this.#served?.plane.cut(),
      families: async () => ((await this.#served?.plane.metrics.families()) ?? []).map(plain),
      tallies: () => (this.#served === undefined ? {} : talliesOf(this.#served.plane)),
      health: () => this.#served?.plane.health.descriptions() ?? new Map(),
      flush: async () => {
        await this.#served?.plane.flushContents();
        await this.#served?.access.ledger.flush();
      },
    };
  }

  /** Webhooks and budget events are the parent's. */
  #events(): PlaneEvents {
    const link = this.#link;
    return {
      credentialOut: (dead) => link.tell('credentialOut', [dead]),
      targetChanged: (change) => link.tell('targetChanged', [change]),
      pressureChanged: (step, facts) => link.tell('pressureChanged', [step, facts]),
      tell: () => undefined,
      counts: { dropped: 0, delivered: 0, pending: 0 },
    };
  }

  #peers(): Peers {
    const link = this.#link;
    return {
      keyRefused: (address) => link.tell('keyRefused', [address]),
      keyForgiven: (address) => link.tell('keyForgiven', [address]),
      turnShared: (turn) => link.tell('turnShared', [turn]),
      noteBudget: (note) => link.tell('noteBudget', [note]),
    };
  }

  /** Later callers wait for the same end. */
  #stop(how: StopOfWorker): Promise<void> {
    this.#stopped ??= this.#end(how);
    return this.#stopped;
  }

  async #end(how: StopOfWorker): Promise<void> {
    if (this.#served === undefined) return;
    const { plane, access, log } = this.#served;
    // `run` reports its failure.
    await this.#opening?.catch(() => undefined);
    if (how.watched) plane.probed();
    await plane.drain(how);
    await plane.close();
    try {
      await access.close();
    } finally {
      log.flush();
    }
  }
}

/** Without what only its own process has of it. */
function plain(family: Family): Family {
  if (family.type !== 'histogram') return family;
  const samples = family.samples.map(({ labels, data }) => {
    const { bounds, counts, sum, exemplars } = data;
    const seen = exemplars === undefined ? {} : { exemplars: { ...exemplars } };
    return { labels, data: { bounds, counts, sum, ...seen } };
  });
  return { ...family, samples };
}

/** Does what the parent says, from its first word on; resolves when it serves. */
export async function runWorker(): Promise<void> {
  const stream = new Socket({ fd: streamFd, readable: true, writable: true });
  // The parent, which counts, is gone, or it ended this worker.
  stream.on('close', () => process.exit());
  const worker = new WorkerGateway(stream);
  process.on('uncaughtException', (error) => {
    process.stderr.write(`model-gateway: ${error.stack ?? error.message}\n`);
    void worker.leave();
  });
  await worker.run();
}

// Part of the composition root: the embedded engine of the parent, as a worker calls it.

type ParentLink = Pick<Link<ParentOperations>, 'ask'>;

/** The address of an engine that was not started: nothing listens there. */
const nowhere = '/nonexistent/engine.sock';

/** A model is loaded once for all processes, and may take minutes for it. */
export class EnginesOfParent implements LocalEngines, Pick<LocalModels, 'engines' | 'refresh'> {
  readonly provider: Provider;
  readonly engines = this;
  readonly #link: ParentLink;
  #models: readonly LocalModelFile[];
  /** By model. */
  readonly #sockets = new Map<string, string>();
  readonly #providers = new Map<string, Provider>();

  constructor(link: ParentLink, models: readonly LocalModelFile[]) {
    this.#link = link;
    this.#models = models;
    this.provider = { ...this.#providerOf(''), forModel: (name) => this.#forModel(name) };
  }

  /** The parent has examined its folder. */
  heard(models: readonly LocalModelFile[]): void {
    this.#models = models;
  }

  models(): readonly LocalModelFile[] {
    return this.#models;
  }

  /** The parent reports its own. */
  status(): readonly [] {
    return [];
  }

  async refresh(): Promise<void> {}
  replace(): void {}
  prewarm(): void {}
  async stop(): Promise<void> {}

  #forModel(name: string): Provider {
    const known = this.#providers.get(name);
    if (known !== undefined) return known;
    const provider = this.#providerOf(name);
    this.#providers.set(name, provider);
    return provider;
  }

  #providerOf(name: string): Provider {
    return localProvider({
      dialect: openaiChatUpstream,
      socketPath: () => this.#sockets.get(name) ?? nowhere,
      traits: (model) => {
        const file = this.#models.find((each) => each.name === model);
        return file === undefined ? undefined : localTraitsOf(file);
      },
      wake: async () => {
        const path = await this.#link.ask('wakeEngine', [name], Number.POSITIVE_INFINITY);
        this.#sockets.set(name, path);
      },
    });
  }
}

// Part of the composition root: access and accounting of a worker, which its parent does.

interface WorkerAccessDeps {
  readonly link: StoreLink;
  readonly settings: Settings;
  readonly env: Environment;
  readonly log: Log;
  readonly state: ParentState;
  readonly stillMs?: number;
  readonly contentKey: Uint8Array | undefined;
}

const againMs = 500;

export class WorkerAccess implements PlaneAccess {
  readonly authenticator: Authenticator;
  readonly keys: PlaneAccess['keys'];
  readonly policies: PlaneAccess['policies'];
  readonly ledger: Ledger;
  readonly counting: OpenedCounters;
  readonly answers: AnswerStore;
  readonly contents: Store['contents'];
  readonly responses: Store['responses'];
  readonly contentKey: ContentKey;
  readonly sealer: Sealer;
  readonly stillMs?: number;
  readonly #store: Store;
  readonly #log: Log;
  #state: ParentState;
  #sealing: Sealer | undefined;
  #again: NodeJS.Timeout | undefined;
  #loading: Promise<void> | undefined;

  /** @throws Error when a secret of the environment or a declared key cannot serve. */
  constructor({ link, settings, env, log, state, stillMs, contentKey }: WorkerAccessDeps) {
    this.#state = state;
    this.#log = log;
    const store = remoteStore(link);
    this.#store = store;
    this.authenticator = makeAuthenticator({ store, settings, env, log, shared: true });
    this.keys = this.authenticator.keys;
    this.policies = this.authenticator.policies;
    this.answers = store.answers;
    this.contents = store.contents;
    this.responses = store.responses;
    this.contentKey = { find: () => contentKey, need: () => contentKey };
    const refusedFile = join(settings.dataDir, 'refused-calls.jsonl');
    this.ledger = new Ledger({ store, clock: systemClock, log, refusedFile });
    const counters = new RemoteCounters({ link, clock: systemClock, state: () => this.#state });
    this.counting = { counters, spent: [] };
    this.sealer = {
      seal: (record) => this.#requireSealer().seal(record),
      open: (sealed) => this.#requireSealer().open(sealed),
      digest: (text) => this.#requireSealer().digest(text),
      key: () => this.#requireSealer().key(),
    };
    if (stillMs !== undefined) this.stillMs = stillMs;
  }

  heard(state: ParentState): void {
    this.#state = state;
    if (state.loaded && this.#sealing === undefined) void this.begin();
  }

  /** Reads keys and secrets; what the parent has not read yet is read when it has. Never rejects. */
  begin(): Promise<void> {
    this.#loading ??= this.#begin().finally(() => {
      this.#loading = undefined;
    });
    return this.#loading;
  }

  /** Resolves once keys and policies are up to date, or unchanged while the store is unavailable. */
  async keysChanged(): Promise<void> {
    await this.authenticator.policies.load();
    await this.authenticator.keys.loadAnew();
  }

  mayAdmit(): boolean {
    return this.#sealing !== undefined && this.#state.mayAdmit && this.ledger.healthy();
  }

  failure(): string | undefined {
    if (this.#sealing === undefined) return 'the store was not read yet';
    if (this.#state.failure !== undefined) return this.#state.failure;
    return this.ledger.healthy() ? undefined : cannotRecord;
  }

  /** The parent does. */
  watchSpending(): void {}

  status(): ReturnType<PlaneAccess['status']> {
    return {};
  }

  storeFacts(): ReturnType<PlaneAccess['storeFacts']> {
    const { queued, waitMs, counts } = this.ledger;
    const up = this.#state.failure === undefined && this.ledger.healthy();
    return {
      store: { up, queued, spooled: 0, waitMs, ...counts },
      countersUp: this.#state.countersUp,
    };
  }

  async close(): Promise<void> {
    clearTimeout(this.#again);
    try {
      await this.ledger.close();
    } finally {
      await this.keys.flushUses();
    }
  }

  async #begin(): Promise<void> {
    if (!this.#state.loaded || this.#sealing !== undefined) return;
    try {
      await this.authenticator.load();
      this.#sealing = createSealer(await loadSealKey(this.#store, (count) => randomBytes(count)));
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      this.#log.error('store_not_loaded', { reason });
      this.#again = setTimeout(() => void this.begin(), againMs).unref();
    }
  }

  #requireSealer(): Sealer {
    if (this.#sealing !== undefined) return this.#sealing;
    throw new StoreError('unavailable', 'The store was not read yet.');
  }
}
