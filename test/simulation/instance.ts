/** One process of the gateway in a history: everything real but time, chance, connections and the disk. */
import type { Server } from 'node:http';
import { KeyRing } from '../../src/access/keys/keys.ts';
import { Ledger } from '../../src/access/ledger.ts';
import { noPolicies } from '../../src/access/policies.ts';
import { PriceTable } from '../../src/access/prices.ts';
import { createSealer } from '../../src/core/secret.ts';
import type { Log } from '../../src/core/runtime.ts';
import { clientDialects } from '../../src/dialects/registry.ts';
import type { Gateway } from '../../src/gateway/gateway.ts';
import { nameOf, TargetHealth } from '../../src/gateway/targets/health.ts';
import { LearnedParameters } from '../../src/gateway/learned-parameters.ts';
import { ReasoningMemory, ReasoningStore } from '../../src/gateway/reasoning-memory.ts';
import { RetryBudget } from '../../src/gateway/targets/retries.ts';
import { Routing } from '../../src/gateway/targets/routing.ts';
import { Sweeper } from '../../src/gateway/deadlines.ts';
import { TokenEstimator } from '../../src/gateway/call-size.ts';
import { createHttpProvider } from '../../src/providers/http-provider.ts';
import { Credentials } from '../../src/providers/credentials/credentials.ts';
import { ModelLists } from '../../src/providers/model-list.ts';
import { Registry, type RegistryOptions } from '../../src/providers/registry.ts';
import { DataPlane } from '../../src/http/data-plane.ts';
import { Overload } from '../../src/http/overload/overload.ts';
import { createListener } from '../../src/http/listen.ts';
import { createLimits, openCounters } from '../../src/compose/limits.ts';
import type { CallRow } from '../../src/store/calls.ts';
import { idempotentAnswers } from '../support/idempotency.ts';
import { memoryStore } from '../support/memory-store.ts';
import { storedResponses } from '../support/stored-responses.ts';
import { HttpClient } from '../../src/wire/http-client.ts';
import type { Dice } from './dice.ts';
import { Disk } from './disk.ts';
import { Link, type End } from './link.ts';
import { CheckedCounters } from './checked-counters.ts';
import { declared, models, priceSettings, routes, timeouts } from './scene.ts';
import type { Sabotage } from './history.ts';
import type { Upstream } from './upstream.ts';
import type { VirtualTime } from './virtual-time.ts';
import { InlineBodies } from '../support/inline-bodies.ts';

export interface World {
  readonly time: VirtualTime;
  readonly dice: Dice;
  readonly upstream: Upstream;
  readonly disk: Disk;
  readonly newId: (prefix: string) => string;
  readonly random: (count: number) => Uint8Array;
  /** Called with impossible events: an internal error, a lost row. */
  readonly complain: (what: string) => void;
  readonly sabotage: Sabotage | undefined;
}

/** The upstream's report of a call, for the account of the history. */
export interface Told {
  /** Calls that came as far as a row is due. */
  due: number;
  /** When each row was handed to the ledger. */
  readonly recorded: Map<string, number>;
  /** When calls were first said to run. */
  readonly running: Map<string, number>;
}

/** No history keeps a response or an answer: one store for all of them, since to make one takes milliseconds. */
const unused = memoryStore();

export class Instance {
  readonly keys: KeyRing;
  readonly checkedCounters: CheckedCounters;
  readonly told: Told = { due: 0, recorded: new Map(), running: new Map() };
  readonly sweeper: Sweeper;
  readonly ledger: Ledger;
  /** Ends of connections that are this process's. */
  readonly ends = new Set<End>();
  readonly client: HttpClient;
  readonly routing: Routing;
  /** The store behind it answers no more once it is dead. */
  alive = true;
  readonly #world: World;
  readonly #server: Server;
  readonly #health: TargetHealth;
  readonly #lists: ModelLists;
  readonly #log: Log;
  #registry: Registry;
  #prices: PriceTable;

  static async start(world: World): Promise<Instance> {
    const log = logOf(world);
    const store = world.disk.open();
    const keys = new KeyRing({ store, clock: world.time, random: world.random });
    await keys.load();
    const { counters, spent } = await openCounters({ store: store.calls, clock: world.time, log });
    return new Instance(world, {
      keys,
      store,
      checkedCounters: new CheckedCounters(counters, world),
      spent,
    });
  }

  private constructor(
    world: World,
    parts: {
      readonly keys: KeyRing;
      readonly store: ReturnType<Disk['open']>;
      readonly checkedCounters: CheckedCounters;
      readonly spent: Awaited<ReturnType<typeof openCounters>>['spent'];
    },
  ) {
    const { time, upstream } = world;
    this.#world = world;
    this.#log = logOf(world);
    this.keys = parts.keys;
    this.checkedCounters = parts.checkedCounters;
    this.client = new HttpClient({
      connector: (connectMs) => upstream.connector(connectMs),
      now: () => time.now(),
    });
    const random = (): number => world.dice.next();
    this.routing = new Routing({ clock: time, random, priceOf: () => 1 });
    this.sweeper = new Sweeper(time);
    this.ledger = new Ledger({ store: parts.store, clock: time, log: this.#log });
    this.#health = new TargetHealth({ clock: time, log: this.#log });
    this.#lists = new ModelLists({
      client: this.client,
      clock: time,
      log: this.#log,
      connectMs: 1,
    });
    this.#registry = this.#registryOf(routes(0));
    this.#prices = priceTable(this.#log, 0);
    const plane = this.#dataPlane(parts.spent);
    this.#server = createListener((request, response) => void plane.handle(request, response));
  }

  /** A client's connection to it. */
  connect(): Link {
    const { time, dice } = this.#world;
    const link = new Link({ time, dice, slowest: dice.pick([0, 5, 60]) });
    this.ends.add(link.far);
    this.#server.emit('connection', link.far);
    return link;
  }

  /** Targets at which calls are said to run. */
  get busy(): readonly string[] {
    const targets = models.flatMap((name) => this.#registry.find(name)?.targets ?? []);
    return [...new Set(targets.map(nameOf))].filter((name) => this.routing.load.of(name) !== 0);
  }

  /** Other prices, another order of targets: as `#apply` of src/compose/start.ts does it. */
  reload(version: number): void {
    this.#registry = this.#registryOf(routes(version));
    this.#health.forget();
    this.#prices = priceTable(this.#log, version);
  }

  /** kill -9: nothing of it is heard any more. */
  kill(): void {
    this.alive = false;
    this.#world.disk.abandon();
    for (const end of this.ends) end.freeze();
    this.#world.time.forgetTimers();
  }

  #registryOf(declaredRoutes: RegistryOptions['routes']): Registry {
    const lists = this.#lists;
    const credentials = new Credentials(this.#world.time);
    return new Registry({
      declared,
      routes: declaredRoutes,
      timeouts,
      retry: {},
      env: {},
      lists,
      credentials,
      local,
    });
  }

  #dataPlane(spent: Awaited<ReturnType<typeof openCounters>>['spent']): DataPlane {
    const { time, dice, newId } = this.#world;
    const log = this.#log;
    const running = (id: string, row: () => CallRow): void => {
      if (!this.told.running.has(id)) this.told.running.set(id, time.now());
      this.ledger.running(id, row);
    };
    const record = (row: CallRow): void => {
      if (this.told.recorded.has(row.id)) this.#world.complain(`two rows of ${row.id}`);
      // A kill before that would leave nothing of it (F81).
      if (row.attempts > 0 && !this.told.running.has(row.id))
        this.#world.complain(`${row.id} was sent upstream and never said to run`);
      if (this.#world.sabotage === 'a row that is lost' && dice.chance(0.2)) return;
      this.told.recorded.set(row.id, time.now());
      this.ledger.record(row);
      if (this.#world.sabotage === 'a timer that is left') setInterval(() => undefined, 1000);
    };
    const random = (): number => dice.next();
    const limits = createLimits({
      counters: this.checkedCounters,
      clock: time,
      spent,
      policies: noPolicies,
      prices: () => this.#prices,
      random,
      log,
      tell: () => undefined,
      ledger: { record, running },
      observe: () => undefined,
    });
    const gateway: Gateway = {
      client: this.client,
      clock: time,
      later: time.later,
      log,
      newId,
      random,
      estimator: new TokenEstimator(),
      textCounter: { count: async () => undefined },
      bodies: new InlineBodies(),
      learned: new LearnedParameters(time),
      memory: new ReasoningMemory(
        createSealer(Buffer.alloc(32, 7)),
        new ReasoningStore({ clock: time }),
      ),
      health: this.#health,
      retryBudget: new RetryBudget(),
      routing: this.routing,
      sweeper: this.sweeper,
      settlement: limits.settlement,
    };
    const overload = this.#overload(log);
    return new DataPlane({
      gateway,
      dialects: clientDialects,
      authenticate: (authorization, apiKey) => this.keys.authenticate(authorization, apiKey),
      refreshKey: () => undefined,
      clientAddress: () => '127.0.0.1',
      registry: () => this.#registry,
      notReady: () => undefined,
      mayAdmit: () => {
        const may = this.ledger.healthy();
        if (may) this.told.due += 1;
        return may;
      },
      overload,
      badKeys: overload.badKeys,
      admission: limits.admission,
      responses: storedResponses({ store: unused.responses }),
      answers: idempotentAnswers({
        clock: time,
        random: this.#world.random,
        store: unused.answers,
      }),
      record,
      version: 'simulated',
    });
  }

  #overload(log: Log): Overload {
    const limits = {
      streams: 50,
      keySharePercent: 100,
      loopDelayMs: 25,
      bodyBytes: 1_000_000,
      memoryBytes: undefined,
      bodyRate: 1,
      badKeys: 1_000_000,
    };
    return new Overload({
      clock: this.#world.time,
      log,
      random: () => this.#world.dice.next(),
      limits: () => limits,
      load: () => () => undefined,
      slowReaders: this.sweeper,
      memory: { process: 1e9, heap: 1e9 },
      collectGarbage: () => undefined,
    });
  }
}

/** Replaces the embedded engine, which is not called here. */
const local: RegistryOptions['local'] = {
  models: () => [],
  provider: createHttpProvider({
    id: 'local',
    dialect: 'openai-chat',
    baseUrl: 'http://local.test/v1',
    headers: new Map(),
  }),
};

function priceTable(log: Log, version: number): PriceTable {
  const list = { find: () => undefined, load: () => undefined };
  return new PriceTable({ settings: priceSettings(version), list, origin: () => undefined, log });
}

/** What the store refuses for a while is written again; a refused credential is the operator's to know. */
const expected: ReadonlySet<string> = new Set([
  'ledger_write_failed',
  'credential_out',
  'upstream_not_trusted',
]);

function logOf({ complain }: World): Log {
  return {
    debug() {},
    info() {},
    warn() {},
    error: (event, fields) => {
      if (expected.has(event)) return;
      complain(`log: ${event} ${JSON.stringify(fields)}`);
    },
  };
}
