/** Part of the composition root: the data directory and access: store, keys, ledger, admin. */
import { randomBytes } from 'node:crypto';
import type { Server } from 'node:http';
import { join } from 'node:path';
import {
  makeRunToken,
  type TokenCheck,
  metricsToken,
  metricsTokenVariable,
} from '../access/keys/admin-token.ts';
import { EndedCalls } from '../access/ended-calls.ts';
import type { KeyRing } from '../access/keys/keys.ts';
import { cannotRecord, Ledger } from '../access/ledger.ts';
import { SharedUpkeep } from '../access/shared-upkeep.ts';
import type { PolicySource } from '../access/policies.ts';
import type { ContentKey } from '../access/keys/seal-key.ts';
import { RetentionTask } from '../access/sweepers.ts';
import type { OidcSettings } from '../config/oidc.ts';
import type { Settings } from '../config/settings.ts';
import type { ListenerTls } from '../core/addresses.ts';
import type { Log } from '../core/runtime.ts';
import { type Sealer, Secret } from '../core/secret.ts';
import { newId, systemClock } from '../observe/runtime.ts';
import type { AdminDeps } from '../admin/handler.ts';
import type { MetricsSource } from '../admin/operations.ts';
import { removeRunFile, writeRunFile } from '../admin/run-file.ts';
import { createAdminServer } from '../admin/server.ts';
import type { GatewayFacts } from '../observe/metrics/gateway-families.ts';
import type { AdminHandler } from '../admin/route.ts';
import { LoggedContents } from '../features/content-log/sealed-content.ts';
import { contentKeyFor } from './features.ts';
import { Boot, type Made } from './boot.ts';
import { makeAuthenticator, openAuthenticator, type Authenticator } from './keys.ts';
import { type OpenedStorage, openStorage } from './storage.ts';
import { openCounters, type OpenedCounters } from './limits.ts';
import { leaseMs } from '../store/counters/counters.ts';
import type { PostgresStore } from '../store/postgres/postgres-store.ts';
import { lockDataDir, type DataDirLock } from '../store/data-dir.ts';
import { overridden } from '../store/remote.ts';
import type { AnswerStore, ContentStore, ResponseStore, Spent, Store } from '../store/store.ts';
import { version } from './options.ts';

export interface AccessOptions {
  readonly settings: Settings;
  readonly env: { readonly [name: string]: string | undefined };
  readonly log: Log;
  /** Components that must learn of changes of keys and policies. */
  readonly followers?: Followers;
  /** Runs once the directory is this process's, before anything is made in its store. */
  readonly whenLocked?: () => Promise<void>;
  /** Runs while the store opens, in a thread of its own. */
  readonly whileOpening?: () => Promise<unknown>;
}

/** Other processes that serve calls by the keys of this one. */
export interface Followers {
  /** The store, telling them of what is changed in it. */
  over(store: Store): Store;
  /** Something may have changed in it. */
  tell(): void;
}

/** The parts of the admin API that only a running gateway has. */
export type GatewayAdmin = Pick<
  AdminDeps,
  | 'models'
  | 'modelProblems'
  | 'prices'
  | 'defaultPrice'
  | 'status'
  | 'config'
  | 'editing'
  | 'diagnostics'
  | 'providers'
  | 'providerHealth'
  | 'downloads'
  | 'events'
  | 'reload'
  | 'playground'
  | 'explainer'
>;

/** Metrics of the store and the counters. */
export type StoreFacts = Pick<GatewayFacts, 'store' | 'countersUp'>;

/** The data that the admin API needs from the processes that serve calls. */
export interface ServedCalls {
  /** Writes the ledger rows that wait. @throws StoreError */
  flush(): Promise<void>;
  /** The text of a scrape. */
  readonly metrics: MetricsSource['text'];
  /** Of the admin plane. */
  readonly tls: ListenerTls | undefined;
  /** The sign-in of people. */
  readonly oidc: OidcSettings | undefined;
}

/** The opened data directory. */
export interface Access {
  readonly keys: KeyRing;
  readonly authenticator: Authenticator;
  readonly ledger: Ledger;
  /** The counters of limits and budgets. */
  readonly counting: OpenedCounters;
  /** Teams' and tags'. */
  readonly policies: PolicySource;
  /** Seals what clients carry for upstreams; the same over restarts. */
  readonly sealer: Sealer;
  /** Answers by `Idempotency-Key`, for all gateways on the store. */
  readonly answers: AnswerStore;
  /** The content of calls, and the key that seals it. */
  readonly contents: ContentStore;
  readonly contentKey: ContentKey;
  /** Responses that clients may refer to. */
  readonly responses: ResponseStore;
  /** Present when this start made them; shown once. */
  readonly newKey?: string;
  readonly newAdminToken?: string;
  /** Present if other gateways settle the calls of one that hung for this time. */
  readonly stillMs?: number;
  readonly store: Store;
  /** Notes that new secrets were shown: until then the next start makes them again. @throws StoreError */
  secretsShown(): Promise<void>;
  /** Whether keys and secrets were read. */
  readonly loaded: boolean;
  /** Whether new calls may begin; false is E18. */
  mayAdmit(): boolean;
  /** Why the gateway is not ready, for /readyz; undefined when it is. */
  failure(): string | undefined;
  /** Reports the spending of budgets from time to time, if other gateways spend from them too. */
  watchSpending(onSpent: (spent: readonly Spent[]) => void): void;
  /** Adds a writer beside the ledger whose failure is one of the store. */
  addWriter(writer: Pick<Ledger, 'failure'>): void;
  /** The state of the store, for /api/status. */
  status(): { readonly [name: string]: string | number | boolean | null };
  /** The same for metrics. */
  storeFacts(): StoreFacts;
  adminServer(gateway: GatewayAdmin, served: ServedCalls): Server;
  /** Lets the commands on this machine find the admin plane. */
  announce(adminUrl: string, certificate: string | undefined): void;
  /** The gateway stops: from now on a shared store that is silent is not waited for. */
  stopping(): void;
  close(): Promise<void>;
}

const random = (count: number): Uint8Array => randomBytes(count);

/**
 * Opens the data directory for a running gateway and makes the first key and the admin token.
 * @throws StoreError when the directory is in use, open to others, or its database is broken.
 */
export async function openAccess(options: AccessOptions): Promise<Access> {
  const { settings, env, log, followers } = options;
  const lock = lockDataDir(settings.dataDir);
  let opened: OpenedStorage | undefined;
  try {
    await options.whenLocked?.();
    // A secret that cannot serve is refused before a key is made.
    const contentKey = contentKeyFor(settings, env);
    const ended = new EndedCalls(systemClock);
    const opening = openStorage(settings, log);
    const meanwhile = options.whileOpening?.();
    // It is awaited below; until then its failure must not end the process.
    void meanwhile?.catch(() => undefined);
    opened = noting(followed(await opening, followers), ended);
    await meanwhile;
    const { store } = opened;
    const plain = makeAuthenticator({
      store,
      settings,
      env,
      log,
      shared: opened.shared !== undefined,
    });
    const authenticator = followers === undefined ? plain : tellingAuthenticator(plain, followers);
    const boot = new Boot({ ...opened, authenticator, env, log });
    const made = await boot.begin();
    const { shared } = opened;
    // With a store of its own, no other process can be answering any more.
    if (shared === undefined) await store.answers.releaseAll();
    const counting =
      shared === undefined
        ? await openCounters({ store: store.calls, clock: systemClock, log })
        : await openTogether(shared, options);
    const retention = new RetentionTask({
      store: store.calls,
      clock: systemClock,
      log,
      ...settings.ledger,
    });
    const { dataDir } = settings;
    const scraper = readMetricsToken(options, { authenticator, boot });
    const own = { contentKey, boot, retention, lock, dataDir, log, ended, metricsToken: scraper };
    const deps = { ...opened, counting, authenticator, ...own };
    return new OpenAccess(deps, made);
  } catch (error) {
    // An open store is a living thread: the process would not end.
    await opened?.store.close();
    lock.abandon();
    throw error;
  }
}

function followed(opened: OpenedStorage, followers: Followers | undefined): OpenedStorage {
  return followers === undefined ? opened : { ...opened, store: followers.over(opened.store) };
}

/** The counters that all gateways on the store share. */
async function openTogether(
  shared: PostgresStore,
  { settings, log }: AccessOptions,
): Promise<OpenedCounters> {
  const { openSharedCounters } = await import('./shared-counters.ts');
  return openSharedCounters({ shared, settings, clock: systemClock, log, newId });
}

/** The calls of all processes of this gateway pass here on their way into the ledger. */
function noting(opened: OpenedStorage, ended: EndedCalls): OpenedStorage {
  const { store } = opened;
  const { keys, policies, audit, answers, contents, responses, people, settings } = store;
  const calls = overridden(store.calls, {
    record: async (rows) => {
      await store.calls.record(rows);
      ended.add(rows);
    },
  });
  const parts = { keys, policies, audit, calls, answers, contents, responses, people, settings };
  const own = { backup: (path: string) => store.backup(path), close: () => store.close() };
  return { ...opened, store: { ...parts, ...own } };
}

/** Changes of other gateways in a shared store are passed on to followers, too. */
function tellingAuthenticator(authenticator: Authenticator, followers: Followers): Authenticator {
  const reload = (): void => {
    authenticator.reload();
    followers.tell();
  };
  return { ...authenticator, reload };
}

/** @throws Error when the token cannot serve. */
function readMetricsToken(
  { env }: AccessOptions,
  { authenticator, boot }: { readonly authenticator: Authenticator; readonly boot: Boot },
): TokenCheck | undefined {
  const text = env[metricsTokenVariable];
  if (text === undefined || text === '') return undefined;
  const isAdminToken = (token: string): boolean => boot.adminToken.verify(token);
  return metricsToken(new Secret(text), { keys: authenticator.keys, isAdminToken });
}

/** The admin API on the data directory itself, for commands while no gateway runs on it. */
export async function openAdminHandler(
  options: AccessOptions & { readonly gateway: GatewayAdmin },
): Promise<{ readonly handle: AdminHandler; close(): Promise<void> }> {
  const { settings, env, log, gateway } = options;
  const lock = settings.storage.database === 'memory' ? undefined : lockDataDir(settings.dataDir);
  let store: Store | undefined;
  try {
    ({ store } = await openStorage(settings, log));
    const opened = store;
    const { keys, policies, audit } = await openAuthenticator({ store, settings, env, log });
    const { createAdminHandler } = await import('../admin/handler.ts');
    const handle = createAdminHandler({
      ...gateway,
      keys,
      policies,
      audit,
      store: opened,
      contents: new LoggedContents({
        store: opened,
        key: contentKeyFor(settings, env),
        clock: systemClock,
      }),
      clock: systemClock,
      log,
      version,
    });
    const close = async (): Promise<void> => {
      await opened.close();
      lock?.release();
    };
    return { handle, close };
  } catch (error) {
    await store?.close();
    lock?.release();
    throw error;
  }
}

/**
 * Running calls are recorded every five seconds: this much of a lease may have passed when a gateway begins to
 * stall.
 */
const checkpointGraceMs = 10_000;

interface OpenAccessDeps extends OpenedStorage {
  readonly counting: OpenedCounters;
  readonly authenticator: Authenticator;
  readonly boot: Boot;
  readonly contentKey: ContentKey;
  readonly retention: RetentionTask;
  readonly lock: DataDirLock;
  readonly dataDir: string;
  readonly log: Log;
  readonly ended: EndedCalls;
  readonly metricsToken: TokenCheck | undefined;
}

class OpenAccess implements Access {
  readonly keys: KeyRing;
  readonly authenticator: Authenticator;
  readonly ledger: Ledger;
  readonly counting: OpenedCounters;
  readonly policies: PolicySource;
  readonly sealer: Sealer;
  readonly answers: AnswerStore;
  readonly store: Store;
  readonly contents: ContentStore;
  readonly contentKey: ContentKey;
  readonly responses: ResponseStore;
  readonly newKey?: string;
  readonly newAdminToken?: string;
  readonly stillMs?: number;
  readonly #deps: OpenAccessDeps;
  readonly #control = makeRunToken(random);
  readonly #writers: Pick<Ledger, 'failure'>[] = [];
  #upkeep: SharedUpkeep | undefined;

  constructor(deps: OpenAccessDeps, made: Made) {
    this.#deps = deps;
    this.authenticator = deps.authenticator;
    this.keys = deps.authenticator.keys;
    this.sealer = deps.boot.sealer;
    this.answers = deps.store.answers;
    this.store = deps.store;
    this.contents = deps.store.contents;
    this.responses = deps.store.responses;
    this.contentKey = deps.contentKey;
    this.counting = deps.counting;
    this.policies = deps.authenticator.policies;
    this.ledger = new Ledger({
      store: deps.store,
      clock: systemClock,
      log: deps.log,
      refusedFile: join(deps.dataDir, 'refused-calls.jsonl'),
    });
    this.#writers.push(this.ledger);
    deps.shared?.onWritten((rows) => deps.counting.counters.written?.(rows));
    if (deps.shared !== undefined) this.stillMs = leaseMs - checkpointGraceMs;
    deps.retention.start();
    if (made.key !== undefined) this.newKey = made.key;
    if (made.adminToken !== undefined) this.newAdminToken = made.adminToken;
  }

  secretsShown(): Promise<void> {
    return this.#deps.boot.secretsShown();
  }

  get loaded(): boolean {
    return this.#deps.boot.done;
  }

  mayAdmit(): boolean {
    return this.#deps.boot.done && this.ledger.healthy();
  }

  failure(): string | undefined {
    const { boot, shared, counting } = this.#deps;
    if (!boot.done) return 'the store was not read yet';
    if (!counting.counters.healthy()) return 'limits and budgets cannot be counted';
    if (shared?.server.up === false) return 'the store does not answer';
    return this.ledger.healthy() ? undefined : cannotRecord;
  }

  watchSpending(onSpent: (spent: readonly Spent[]) => void): void {
    const { store, shared, log, counting } = this.#deps;
    const { expiry } = counting;
    this.#upkeep ??= new SharedUpkeep({
      store: store.calls,
      ...(expiry && { expiry }),
      clock: systemClock,
      log,
      // Only with a shared store can other gateways leave calls behind; with an own store a start settles them.
      upSince: () => shared?.server.upSince,
      // A gateway with its own store already knows all spending.
      onSpent: shared === undefined ? () => undefined : onSpent,
    });
  }

  addWriter(writer: Pick<Ledger, 'failure'>): void {
    this.#writers.push(writer);
  }

  status(): ReturnType<Access['status']> {
    const { shared } = this.#deps;
    const unwritten = this.#writers
      .map((writer) => writer.failure)
      .find((text) => text !== undefined);
    if (shared === undefined) return { store: 'local', store_reason: unwritten ?? null };
    const { up, failure } = shared.server;
    const { spooled } = shared;
    return {
      store: shared.shown,
      store_up: up,
      store_reason: failure ?? unwritten ?? null,
      spooled_calls: spooled,
    };
  }

  storeFacts(): StoreFacts {
    const { shared, counting } = this.#deps;
    const { ledger } = this;
    const { queued, waitMs, counts } = ledger;
    return {
      store: {
        up: shared?.server.up !== false && ledger.healthy(),
        queued,
        spooled: shared?.spooled ?? 0,
        waitMs,
        ...counts,
      },
      countersUp: counting.counters.healthy(),
    };
  }

  adminServer(gateway: GatewayAdmin, { flush, metrics, tls, oidc }: ServedCalls): Server {
    const { store, contentKey, authenticator, boot, log, ended } = this.#deps;
    const { metricsToken: scraper } = this.#deps;
    const { keys, policies, audit } = authenticator;
    return createAdminServer({
      ...gateway,
      keys,
      policies,
      audit,
      version,
      store,
      flushLedger: flush,
      ended,
      contents: new LoggedContents({ store, key: contentKey, clock: systemClock }),
      clock: systemClock,
      newId,
      random,
      log,
      tls,
      ...(oidc && {
        oidc: { settings: oidc, sealer: this.sealer },
        memberTeams: () => oidc.teams,
      }),
      adminToken: boot.adminToken,
      controlToken: this.#control,
      metrics: { opens: (token) => scraper?.verify(token) ?? false, text: metrics },
    });
  }

  announce(adminUrl: string, certificate: string | undefined): void {
    writeRunFile(this.#deps.dataDir, {
      pid: process.pid,
      admin: adminUrl,
      control: this.#control,
      ...(certificate === undefined ? {} : { certificate }),
    });
  }

  stopping(): void {
    this.#deps.shared?.stopping();
  }

  async close(): Promise<void> {
    removeRunFile(this.#deps.dataDir, process.pid);
    this.#deps.boot.close();
    await this.#upkeep?.close();
    this.#deps.retention.close();
    try {
      await this.ledger.close();
    } finally {
      await this.#deps.counting.counters.close();
      this.#deps.counting.release?.();
      await this.keys.flushUses();
      await this.#deps.store.close();
      this.#deps.lock.release();
    }
  }
}
