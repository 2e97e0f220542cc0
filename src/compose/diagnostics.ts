/** Part of the composition root: the state of the running gateway, for `/api/diagnostics`. */
import { X509Certificate } from 'node:crypto';
import { readdir, stat, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { getHeapStatistics } from 'node:v8';
import type { GatewayState } from '../admin/diagnostics.ts';
import type { ReloadOutcome } from '../admin/handler.ts';
import type { Settings, StorageSettings } from '../config/settings.ts';
import type { ListenerTls } from '../core/addresses.ts';
import type { Clock } from '../core/runtime.ts';
import { systemClock } from '../observe/runtime.ts';
import { schemaVersion } from '../store/schema.ts';
import type { Access } from './access.ts';
import { storeDown, type Tallies, unready } from './host/data-plane-host.ts';
import type { FactSources } from './metrics.ts';
import { version } from './options.ts';

/** The last reload, and when it ended: ms since the epoch. */
export interface LastReload {
  readonly at: number;
  readonly outcome: ReloadOutcome;
}

interface DiagnosticsInput {
  readonly facts: FactSources;
  readonly access: Pick<Access, 'store' | 'storeFacts' | 'status' | 'ledger'>;
  readonly tallies: Tallies;
  readonly url: string;
  readonly adminUrl: string;
  /** Of the gateway's own clock, which never goes back. */
  readonly upMs: number;
  readonly dataSize: DirectorySize;
  readonly lastReload: LastReload | undefined;
}

export async function diagnosticsOf(input: DiagnosticsInput): Promise<GatewayState> {
  const { facts, access, tallies, url, adminUrl, upMs, dataSize, lastReload } = input;
  const { [unready]: _unready, [storeDown]: _down, ...counts } = tallies;
  const { settings, engines, overload, sweeper } = facts;
  const now = systemClock.wall();
  const { used_heap_size: heap, heap_size_limit: limit } = getHeapStatistics();
  return {
    version,
    node: process.version,
    platform: `${process.platform} ${process.arch}`,
    pid: process.pid,
    workers: settings.workers,
    started_at: new Date(now - upMs).toISOString(),
    uptime_s: Math.round(upMs / 1000),
    url,
    admin_url: adminUrl,
    data: await dataOf(settings.dataDir, dataSize),
    store: await storeOf(access, settings.storage),
    counters: { ...countersOf(settings.storage), up: access.storeFacts().countersUp },
    process: {
      rss_bytes: process.memoryUsage.rss(),
      heap_bytes: heap,
      heap_limit_bytes: limit,
      memory_share: overload.load.memoryShare,
      loop_delay_ms: overload.load.loopDelayMs,
      pressure: overload.step,
    },
    calls: { live: tallies['live_calls'] ?? 0, streams: sweeper.streams },
    engines: engines.status().map(({ name, phase, reason }) => ({
      model: `local/${name}`,
      phase,
      reason: reason ?? null,
    })),
    certificates: certificatesOf(settings, now),
    last_reload: lastReload === undefined ? null : reloadOf(lastReload),
    tallies: counts,
  };
}

function reloadOf({ at, outcome }: LastReload): NonNullable<GatewayState['last_reload']> {
  const { applied, problems, needsRestart = [] } = outcome;
  return {
    at: new Date(at).toISOString(),
    applied,
    problems: [...problems],
    needs_restart: [...needsRestart],
  };
}

async function storeOf(
  access: DiagnosticsInput['access'],
  storage: StorageSettings,
): Promise<GatewayState['store']> {
  const { up, queued, spooled, waitMs, saved, failures, refused } = access.storeFacts().store;
  const reason = access.status()['store_reason'];
  return {
    kind: storage.database,
    server: storage.database === 'postgres' ? storage.postgres.shown : null,
    schema: schemaVersion,
    up,
    reason: typeof reason === 'string' ? reason : null,
    read_ms: await readMs(access),
    last_write_ms: access.ledger.lastWriteMs ?? null,
    waiting_ms: waitMs,
    queued,
    spooled,
    saved,
    failures,
    refused,
  };
}

/** A store that does not answer must not hold up the page that says so. */
const patienceMs = 3000;

async function readMs({ store }: Pick<Access, 'store'>): Promise<number | null> {
  const begun = systemClock.now();
  const late = Promise.withResolvers<null>();
  const timer = setTimeout(() => late.resolve(null), patienceMs).unref();
  const read = store.settings.read('diagnostics').then(
    () => systemClock.now() - begun,
    () => null,
  );
  const took = await Promise.race([read, late.promise]);
  clearTimeout(timer);
  return took;
}

function countersOf(storage: StorageSettings): Omit<GatewayState['counters'], 'up'> {
  if (storage.database !== 'postgres') return { kind: 'local', server: null };
  return storage.redis === undefined
    ? { kind: 'postgres', server: storage.postgres.shown }
    : { kind: 'redis', server: storage.redis.shown };
}

async function dataOf(directory: string, counted: DirectorySize): Promise<GatewayState['data']> {
  const [size, disk] = await Promise.all([
    counted.bytes(),
    statfs(directory).catch(() => undefined),
  ]);
  return {
    directory,
    bytes: size,
    free_bytes: disk === undefined ? null : disk.bavail * disk.bsize,
    total_bytes: disk === undefined ? null : disk.blocks * disk.bsize,
  };
}

const countedForMs = 60_000;

/** The bytes below a directory, counted once a minute: a page asks every five seconds, and models are many files. */
export class DirectorySize {
  readonly #directory: string;
  readonly #clock: Pick<Clock, 'now'>;
  #counted: { readonly at: number; readonly bytes: Promise<number | null> } | undefined;

  constructor(directory: string, clock: Pick<Clock, 'now'>) {
    this.#directory = directory;
    this.#clock = clock;
  }

  /** Null: it cannot be read. */
  bytes(): Promise<number | null> {
    const at = this.#clock.now();
    if (this.#counted === undefined || at - this.#counted.at >= countedForMs) {
      this.#counted = { at, bytes: sizeOf(this.#directory).catch(() => null) };
    }
    return this.#counted.bytes;
  }
}

/** Files may go while they are counted. */
async function sizeOf(directory: string): Promise<number> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  const sizes = entries
    .filter((entry) => entry.isFile())
    .map((entry) =>
      stat(join(entry.parentPath, entry.name)).then(
        ({ size }) => size,
        () => 0,
      ),
    );
  return (await Promise.all(sizes)).reduce((sum, each) => sum + each, 0);
}

function certificatesOf({ tls, adminTls }: Settings, now: number): GatewayState['certificates'] {
  return [...certificateOf('data', tls, now), ...certificateOf('admin', adminTls, now)];
}

function certificateOf(
  plane: 'data' | 'admin',
  tls: ListenerTls | undefined,
  now: number,
): GatewayState['certificates'] {
  if (tls === undefined) return [];
  const { subject, validToDate } = new X509Certificate(tls.cert);
  const days = Math.floor((validToDate.getTime() - now) / 86_400_000);
  const named = subject.replaceAll('\n', ', ');
  return [{ plane, subject: named, valid_to: validToDate.toISOString(), days_left: days }];
}
