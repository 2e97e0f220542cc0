/**
 * Part of the composition root: the data plane of a gateway whose calls are served by worker processes. What
 * there is once is this process's: store, counters, admin plane, engines.
 */
import { fileURLToPath } from 'node:url';
import { cannotRecord } from '../../access/ledger.ts';
import { keyOrNone } from '../../access/keys/seal-key.ts';
import { type Settings, packSettings, workerShare } from '../../config/settings.ts';
import { describeBy, describeProvider, worstOf } from '../../gateway/targets/health.ts';
import { systemClock } from '../../observe/runtime.ts';
import type { LineLog } from '../../observe/log.ts';
import { countedFamilies, type Family, single, sumFamilies } from '../../observe/metrics/family.ts';
import { defaultWaitMs } from '../../http/drain.ts';
import { memoryOfProcess } from '../../http/overload/load.ts';
import type { Access } from '../access.ts';
import { type Member, parentEvents, PoolEvents, Renewal, WorkerPool } from './worker-pool.ts';
import type { Events, PlaneEvents } from '../events.ts';
import { talliesOf, type DataPlaneHost, type Tallies } from './data-plane-host.ts';
import type { LocalModels } from '../local.ts';
import type { Environment } from '../options.ts';
import type { Plane } from '../plane.ts';
import type {
  ParentOperations,
  ParentState,
  StopOfWorker,
  Welcome,
  WorkerOperations,
} from './worker-protocol.ts';
import { StoreError } from '../../store/store-error.ts';
import { WorkerSession, Writes } from '../workers/session.ts';
import { WorkerSockets } from '../../http/worker-sockets.ts';
import {
  watchHeartbeat,
  type WorkerEnd,
  type WorkerProcess,
  WorkerProcesses,
} from '../workers/processes.ts';
import { Link } from '../workers/link.ts';

export interface ParentDeps {
  readonly settings: Settings;
  readonly env: Environment;
  readonly log: LineLog;
  readonly access: Access;
  /** The data plane of this process, which serves the playground. */
  readonly plane: Plane;
  readonly pool: WorkerPool;
  readonly events: PoolEvents;
  readonly localModels: LocalModels;
  readonly pretty: Welcome['pretty'];
  readonly watchesLoad: boolean;
  readonly fetchesCredentials: boolean;
}

/** Workers that are not started yet. */
export interface OpenedPool {
  readonly pool: WorkerPool;
  /** Events of the parent's own plane; those of workers go to the same. */
  eventsOver(events: Events): PlaneEvents;
  host(deps: Omit<ParentDeps, 'pool' | 'events'>): DataPlaneHost;
}

export function openPool(): OpenedPool {
  const pool = new WorkerPool();
  let poolEvents: PoolEvents | undefined;
  return {
    pool,
    eventsOver: (events) => {
      poolEvents = new PoolEvents(events);
      return parentEvents(events, poolEvents);
    },
    host: (deps) => {
      if (poolEvents === undefined)
        throw new Error('The pool of workers is made before their host.');
      return new WorkerHost({ ...deps, pool, events: poolEvents });
    },
  };
}

// The published program is JavaScript; in development Node runs the TypeScript file itself.
const entry = fileURLToPath(
  new URL(
    import.meta.url.endsWith('.ts') ? './worker-main.ts' : './worker-main.js',
    import.meta.url,
  ),
);
const lookEveryMs = 100;
/** A scrape waits no longer for a worker; then the worker's last values are used. */
const scrapeMs = 3000;
const applyMs = 30_000;
/** The time of a stop in addition to the wait for calls. */
const closingMs = 15_000;
const exitMs = 5000;
/** The kernel continues sending connections to a worker that stands still: after this time it is ended and replaced. */
const maxSilenceMs = 30_000;

class WorkerHost implements DataPlaneHost {
  readonly #deps: ParentDeps;
  readonly #processes: WorkerProcesses;
  readonly #writes = new Writes(systemClock);
  readonly #renewal: Renewal;
  readonly #started = Promise.withResolvers<string>();
  #settings: Settings;
  #state: ParentState;
  #looking: NodeJS.Timeout | undefined;
  #sockets: WorkerSockets | undefined;
  #departed: readonly Family[] = [];
  #deaths = 0;
  #running = false;
  #stopping = false;

  constructor(deps: ParentDeps) {
    this.#deps = deps;
    this.#settings = deps.settings;
    deps.access.addWriter(this.#writes);
    this.#state = this.#stateNow();
    this.#processes = new WorkerProcesses({
      entry,
      sockets: (number) => this.#sockets?.of(number) ?? [],
      vacant: (number) => this.#vacant(number),
      started: (process) => this.#came(process),
      ended: (process, how) => this.#went(process, how),
    });
    this.#renewal = new Renewal({
      pool: deps.pool,
      log: deps.log,
      begin: ({ process }) => this.#processes.renew(process),
      end: (member) =>
        this.#end(member, { announced: false, watched: false, alone: true, replaced: true }),
      stopping: () => this.#stopping,
    });
    // The caller that starts the workers handles the rejection.
    this.#started.promise.catch(() => undefined);
  }

  async listen(): Promise<string> {
    const { settings, pool, localModels } = this.#deps;
    const { host } = settings.listen;
    this.#sockets = await WorkerSockets.open(settings.listen, settings.workers);
    this.#settings = { ...this.#settings, listen: { host, port: this.#sockets.port } };
    localModels.onLooked(() => pool.toAll('localModels', [localModels.engines.models()]));
    this.#looking = setInterval(() => this.#look(), lookEveryMs).unref();
    this.#processes.start(settings.workers);
    const url = await this.#started.promise;
    this.#running = true;
    return url;
  }

  async apply(settings: Settings): Promise<void> {
    const { plane, pool, log } = this.#deps;
    await plane.apply(settings);
    // Settings that are read at the start only do not change.
    const { listen, workers } = this.#settings;
    this.#settings = { ...settings, listen, workers };
    const applied = [...pool.members].map(async ({ link, process }) => {
      try {
        await link.ask('apply', [this.#shareOf(process)], applyMs);
      } catch (error) {
        // Two configs at one address must not serve together: the worker's replacement starts with the current
        // one.
        log.error('worker_out_of_step', { worker: process.number, reason: textOf(error) });
        process.kill('SIGKILL');
      }
    });
    await Promise.all(applied);
  }

  async drain(how: { readonly announced: boolean }): Promise<void> {
    const { pool, plane } = this.#deps;
    this.#stopping = true;
    this.#processes.stop();
    // The last worker that closes a socket leaves none listening, so no connection waits in a queue until this process
    // ends.
    await this.#sockets?.close();
    const members = [...pool.members];
    const asked = members.map(({ link }) => link.ask('watched', [], scrapeMs).catch(() => false));
    const watched = (await Promise.all(asked)).includes(true);
    const own = plane.drain({ announced: false });
    const ends = await Promise.all(members.map((member) => this.#end(member, { ...how, watched })));
    await own;
    clearInterval(this.#looking);
    const failures = ends.flatMap((error) => error?.message ?? []);
    if (failures.length > 0) throw new StoreError('failed', failures.join('\n'));
  }

  renew(): Promise<void> {
    return this.#renewal.run();
  }

  cut(): void {
    const { pool, plane } = this.#deps;
    pool.toAll('cut', []);
    plane.cut();
  }

  async families(): Promise<readonly Family[]> {
    const { pool, plane } = this.#deps;
    const all = await plane.metrics.families();
    // Calls of clients have none here.
    const own = all.filter(({ name }) => name !== 'model_gateway_call_slots');
    // Read with the members: a worker that dies during the scrape is summed as a member only.
    const departed = this.#departed;
    const ofWorkers = await Promise.all([...pool.members].map((member) => familiesOf(member)));
    return [...sumFamilies([own, ...ofWorkers, departed]), ...this.#workerFamilies()];
  }

  async tallies(): Promise<Tallies> {
    const { pool, plane, settings } = this.#deps;
    const asked = [...pool.members].map(({ link }) =>
      link.ask('tallies', [], scrapeMs).catch((): Tallies => ({})),
    );
    const sums: { [name: string]: number } = { ...talliesOf(plane), call_slots: 0 };
    for (const [name, value] of (await Promise.all(asked)).flatMap(Object.entries<number>)) {
      const before = sums[name] ?? 0;
      sums[name] = ofTheWorst.has(name) ? Math.max(before, value) : before + value;
    }
    return { ...sums, workers: settings.workers, worker_deaths: this.#deaths };
  }

  async health(): ReturnType<DataPlaneHost['health']> {
    const { pool, plane } = this.#deps;
    const asked = [...pool.members].map(({ link }) =>
      link.ask('health', [], scrapeMs).catch(() => new Map<string, string>()),
    );
    const known = [plane.health.descriptions(), ...(await Promise.all(asked))];
    const worst = new Map<string, string>();
    for (const [name, description] of known.flatMap((descriptions) => [...descriptions])) {
      worst.set(name, worstOf([worst.get(name), description]) ?? description);
    }
    return {
      describe: (name, credential) => describeBy((entry) => worst.get(entry), name, credential),
      ofProvider: (id) => describeProvider(worst, id),
    };
  }

  async flush(): Promise<void> {
    const { pool, access, plane } = this.#deps;
    const asked = [...pool.members].map(({ link }) => link.ask('flush', [], scrapeMs));
    await Promise.allSettled(asked);
    await plane.flushContents();
    await access.ledger.flush();
  }

  /** A worker that serves under this number, while its replacement cannot start, keeps the sockets. */
  #vacant(number: number): void {
    const serves = [...this.#deps.pool.members].some(
      (member) => member.process.number === number && member.listening,
    );
    if (!serves) this.#sockets?.release(number);
  }

  #came(process: WorkerProcess): void {
    const { access, pool, log } = this.#deps;
    const gone = Promise.withResolvers<void>();
    const session = new WorkerSession({
      store: access.store,
      counters: access.counting.counters,
      clock: systemClock,
      log,
      writes: this.#writes,
      allReported: () => pool.allReported(),
      keysUsed: (uses) => access.keys.heardUses(uses),
    });
    const serve = this.#operations(process, session, () => member);
    const failed = (op: string, error: unknown): void =>
      log.error('worker_message_lost', { worker: process.number, op, reason: textOf(error) });
    const link = new Link<WorkerOperations>({ stream: process.stream, serve, failed });
    const member: Member = {
      process,
      link,
      session,
      gone: gone.promise,
      stopHeartbeat: () => undefined,
      listening: false,
      replaced: false,
      renewed: false,
      counted: [],
    };
    this.#ends.set(process, gone.resolve);
    pool.members.add(member);
    passLines(process, log);
  }

  readonly #ends = new Map<WorkerProcess, () => void>();

  #went(process: WorkerProcess, end: WorkerEnd): void {
    const { pool, events, log } = this.#deps;
    const member = [...pool.members].find((each) => each.process === process);
    if (member === undefined) return;
    pool.members.delete(member);
    member.stopHeartbeat();
    member.link.close();
    this.#departed = sumFamilies([this.#departed, member.counted]);
    events.gone(process.pid);
    const { code, signal } = end;
    const asked = end.asked || member.renewed;
    if (!asked) {
      this.#deaths += 1;
      const { number: worker, pid } = process;
      log.error('worker_died', { worker, pid, code, signal, calls: member.session.calls });
      this.#started.reject(new Error(`Worker ${worker} ended before it took calls.`));
    }
    void member.session.end().then(() => this.#ends.get(process)?.());
    if (!asked && this.#running && !member.replaced) this.#processes.replaceLater(process);
  }

  #operations(
    process: WorkerProcess,
    session: WorkerSession,
    self: () => Member,
  ): ParentOperations {
    const { pool, events, plane, log } = this.#deps;
    return {
      ...session.operations,
      ...events.of(process.pid),
      ...pool.relay(plane.heard, self),
      noteBudget: (note) => plane.heard.noteBudget(note),
      hello: async () => {
        this.#watch(self());
        return this.#welcome(process);
      },
      mayListen: async () => {
        await this.#sockets?.unguard();
        return process.sockets;
      },
      listening: (url) => this.#listening(self(), url),
      failed: (reason) => {
        log.error('worker_failed', { worker: process.number, reason });
        this.#started.reject(new Error(reason));
      },
      leaving: () => {
        // Its `went` sees to one that leaves while the gateway starts.
        if (!this.#running || self().replaced) return;
        self().replaced = true;
        self().listening = false;
        this.#processes.replaceLater(process);
      },
      wakeEngine: (model) => this.#wake(model),
      ping: () => undefined,
    };
  }

  /** From its first word on: what it loads before that may take long on a busy machine. */
  #watch(member: Member): void {
    const { link, process } = member;
    member.stopHeartbeat = watchHeartbeat({
      ping: () => link.ask('ping', []),
      silentMs: maxSilenceMs,
      silent: () => {
        const reason = 'It does not answer.';
        this.#deps.log.error('worker_stuck', { worker: process.number, reason });
        process.kill('SIGKILL');
      },
    });
  }

  #listening(member: Member, url: string): void {
    const { pool, log, settings } = this.#deps;
    member.listening = true;
    log.info('worker_started', { worker: member.process.number, pid: member.process.pid });
    const listening = [...pool.members].filter((each) => each.listening);
    if (listening.length === settings.workers) this.#started.resolve(url);
  }

  #welcome(process: WorkerProcess): Welcome {
    const { access, env, localModels, log, pretty, watchesLoad, fetchesCredentials } = this.#deps;
    // Two workers that need it at once would make two.
    const contentKey = keyOrNone(access.contentKey, (reason) => {
      log.warn('contents_not_kept', { reason });
    });
    return {
      env: { ...env },
      settings: this.#shareOf(process),
      state: this.#state,
      localModels: localModels.engines.models(),
      watchesLoad,
      fetchesCredentials,
      ...(contentKey === undefined ? {} : { contentKey }),
      ...(pretty === undefined ? {} : { pretty }),
      ...(access.stillMs === undefined ? {} : { stillMs: access.stillMs }),
    };
  }

  #shareOf({ number }: WorkerProcess): string {
    return packSettings(workerShare(this.#settings, number, memoryOfProcess()));
  }

  async #wake(model: string): Promise<string> {
    const { provider } = this.#deps.localModels.engines;
    const found = provider.forModel?.(model) ?? provider;
    await found.wake?.();
    return found.generate.socketPath ?? '';
  }

  #stateNow(): ParentState {
    const { access } = this.#deps;
    const { counters } = access.counting;
    const written = this.#writes.healthy();
    const failure = access.failure() ?? (written ? undefined : cannotRecord);
    // The clock of a server is known to a few ms only.
    const aheadMs = Math.round(counters.wall() - systemClock.wall());
    return {
      loaded: access.loaded,
      mayAdmit: access.mayAdmit() && written,
      ...(failure === undefined ? {} : { failure }),
      aheadMs: Math.abs(aheadMs) < 2 ? 0 : aheadMs,
      countersUp: counters.healthy(),
    };
  }

  #look(): void {
    const state = this.#stateNow();
    if (JSON.stringify(state) === JSON.stringify(this.#state)) return;
    this.#state = state;
    this.#deps.pool.toAll('stateIs', [state]);
  }

  /** @returns the failure for the exit code */
  async #end(member: Member, how: StopOfWorker): Promise<Error | undefined> {
    const { link, process, gone } = member;
    const { waitMs = defaultWaitMs, limitMs } = this.#settings.drain;
    member.listening = false;
    let failed: Error | undefined;
    try {
      await link.ask('stop', [how], waitMs + limitMs + closingMs);
      // The worker counts nothing from now on.
      await familiesOf(member);
    } catch (error) {
      this.#deps.log.error('worker_stuck', { worker: process.number, reason: textOf(error) });
      process.kill('SIGKILL');
      // Calls that it could not save. A worker that is gone already has saved its own.
      if (error instanceof StoreError && error.kind === 'failed') failed = error;
    }
    link.close();
    const timer = setTimeout(() => process.kill('SIGKILL'), exitMs);
    await gone;
    clearTimeout(timer);
    return failed;
  }

  #workerFamilies(): readonly Family[] {
    const listening = [...this.#deps.pool.members].filter((member) => member.listening);
    return [
      {
        name: 'model_gateway_workers',
        type: 'gauge',
        help: 'Worker processes that accept calls.',
        samples: single(listening.length),
      },
      {
        name: 'model_gateway_worker_deaths',
        type: 'counter',
        help: 'Worker processes that ended unexpectedly; each was replaced (docs/operator/workers.md).',
        samples: single(this.#deaths),
      },
    ];
  }
}

/** Gauges whose sum over processes is meaningless. */
const ofTheWorst: ReadonlySet<string> = new Set(['pressure', 'memory_share', 'loop_delay_ms']);

async function familiesOf(member: Member): Promise<readonly Family[]> {
  try {
    const families = await member.link.ask('families', [], scrapeMs);
    member.counted = countedFamilies(families);
    return families;
  } catch {
    return member.counted;
  }
}

/** Whole lines: those of several workers would run into each other. */
function passLines({ lines }: WorkerProcess, log: LineLog): void {
  let rest = '';
  lines.setEncoding('utf8');
  lines.on('data', (text: string) => {
    const end = text.lastIndexOf('\n') + 1;
    if (end > 0) log.pass(rest + text.slice(0, end));
    rest = end > 0 ? text.slice(end) : rest + text;
  });
  lines.on('end', () => {
    if (rest !== '') log.pass(`${rest}\n`);
  });
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
