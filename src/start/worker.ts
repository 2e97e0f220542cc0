/**
 * What a worker process is: one data plane, whose store, counters and engines are its parent's. It does what
 * the parent says, and ends with it.
 */
import { Socket } from 'node:net';
import { unpackSettings } from '../config/packed-settings.ts';
import { readUpstreamClient } from '../config/upstream-client.ts';
import { TurnShare } from '../core/turn-share.ts';
import { systemClock } from '../observe/clock.ts';
import { LineLog } from '../observe/log.ts';
import type { Family } from '../observe/metrics/family.ts';
import { newId } from '../observe/random.ts';
import { loadOfProcess } from '../server/overload/load.ts';
import type { PlaneEvents } from './events.ts';
import { talliesOf } from './front.ts';
import { Plane, type Peers } from './plane.ts';
import { openTracer } from './traces.ts';
import { WorkerAccess } from './worker-access.ts';
import { EnginesOfParent } from './worker-engines.ts';
import type {
  ParentOperations,
  StopOfWorker,
  Welcome,
  WorkerOperations,
} from './worker-protocol.ts';
import { version } from '../version.ts';
import { HttpClient } from '../wire/http-client.ts';
import { Link } from '../workers/link.ts';
import { streamFd } from '../workers/processes.ts';

interface Served {
  readonly plane: Plane;
  readonly access: WorkerAccess;
  readonly engines: EnginesOfParent;
  readonly log: LineLog;
}

const beatMs = 1000;

class WorkerGateway {
  readonly #link: Link<ParentOperations, WorkerOperations>;
  /** What changes while it gets ready is not in what it began with. */
  readonly #ready = Promise.withResolvers<Served>();
  #served: Served | undefined;
  #stopped: Promise<void> | undefined;
  #leaving = false;

  constructor(stream: Socket) {
    this.#link = new Link({ stream, serve: this.#operations() });
  }

  async run(): Promise<void> {
    try {
      const welcome = await this.#link.ask('hello', [], Number.POSITIVE_INFINITY);
      const served = await this.#serve(welcome);
      this.#served = served;
      this.#ready.resolve(served);
      await served.access.begin();
      await this.#link.ask('mayListen', []);
      const url = await served.plane.listen();
      served.plane.begin();
      if (welcome.stillMs !== undefined) this.#beat(welcome.stillMs);
      this.#link.tell('listening', [url]);
    } catch (error) {
      this.#link.tell('failed', [error instanceof Error ? error.message : String(error)]);
      this.#link.close();
      process.exitCode = 1;
    }
  }

  /** An unknown state serves nobody well: running calls may finish, then the process ends (F94); again: they are ended. */
  async leave(): Promise<void> {
    if (this.#leaving) return this.#served?.plane.cut();
    this.#leaving = true;
    this.#link.tell('leaving', []);
    await this.#stop({ announced: false, watched: false, alone: true });
    this.#link.flush();
    process.exit(1);
  }

  async #serve(welcome: Welcome): Promise<Served> {
    const { env, state, stillMs, pretty, watchesLoad, contentKey } = welcome;
    const link = this.#link;
    const settings = unpackSettings(welcome.settings);
    const log = new LineLog({ fd: 2, level: settings.logLevel, clock: systemClock, pretty });
    const still = stillMs === undefined ? {} : { stillMs };
    const access = new WorkerAccess({ link, settings, env, log, state, contentKey, ...still });
    const engines = new EnginesOfParent(link, welcome.localModels);
    const tracer = await openTracer(settings.traces, { log, clock: systemClock, newId, version });
    const turns = new TurnShare();
    const plane = new Plane({
      settings,
      env,
      log,
      access,
      random: Math.random,
      pressure: watchesLoad ? loadOfProcess(turns) : () => () => undefined,
      tracer,
      client: new HttpClient({ transport: readUpstreamClient(env), turns }),
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
      turnKept: (turn) => this.#served?.plane.heard.turnKept(turn),
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
      health: () => this.#served?.plane.health.words() ?? new Map(),
      flush: async () => {
        await this.#served?.plane.flushContents();
        await this.#served?.access.ledger.flush();
      },
    };
  }

  /** Webhooks are the parent's, and so is what budgets have to tell. */
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
      turnKept: (turn) => link.tell('turnKept', [turn]),
      noteBudget: (note) => link.tell('noteBudget', [note]),
    };
  }

  /** Whoever asks again waits for the same end. */
  #stop(how: StopOfWorker): Promise<void> {
    this.#stopped ??= this.#end(how);
    return this.#stopped;
  }

  async #end(how: StopOfWorker): Promise<void> {
    if (this.#served === undefined) return;
    const { plane, access, log } = this.#served;
    if (how.watched) plane.probed();
    await plane.drain(how);
    await plane.close();
    await access.close();
    log.flush();
  }

  /**
   * A parent that says nothing renews nothing: what the calls of this worker hold may be spent by another
   * gateway by now (Q1). Both may have stood still together; then the next beat is answered.
   */
  #beat(stillMs: number): void {
    let heardAt = performance.now();
    let lookedAt = heardAt;
    const heard = (): void => {
      heardAt = performance.now();
    };
    setInterval(() => {
      const now = performance.now();
      if (now - lookedAt > 2 * beatMs) heardAt = now;
      lookedAt = now;
      if (now - heardAt > stillMs) process.exit(1);
      this.#link.ask('ping', []).then(heard, () => undefined);
    }, beatMs).unref();
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
  // Nobody counts any more, or this one was told to go.
  stream.on('close', () => process.exit());
  const worker = new WorkerGateway(stream);
  process.on('uncaughtException', (error) => {
    process.stderr.write(`model-gateway: ${error.stack ?? error.message}\n`);
    void worker.leave();
  });
  await worker.run();
}
