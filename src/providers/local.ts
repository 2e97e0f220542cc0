/**
 * The embedded engine as one more provider: a process for each local model, started at its first
 * call and ended when it is not needed or when another model needs the room.
 */
import { rmSync } from 'node:fs';
import { totalmem } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import type { UpstreamDialect } from '../core/dialect.ts';
import { GatewayError } from '../core/errors.ts';
import type { Provider } from '../core/provider.ts';
import type { Clock, Log } from '../core/runtime.ts';
import type { UpstreamTraits } from '../core/traits.ts';
import type { LocalModelFile } from '../local-models/model-file.ts';
import {
  createLocalEngine,
  type LocalEngine,
  type LocalEngineStatus,
  privateFolder,
  socketIn,
} from './local-engine.ts';
import { localProvider, localTraitsOf } from './http-provider.ts';

export { createLocalEngine, type LocalEngine } from './local-engine.ts';

interface LocalEnginesOptions {
  /** The first is the one that answers where nothing else is configured. */
  readonly models: readonly LocalModelFile[];
  readonly dialect: UpstreamDialect;
  readonly log: Log;
  readonly clock: Clock;
  readonly limits?: LocalLimits;
  /** The program to run; absent = the engine. */
  readonly entry?: string;
}

export interface LocalLimits extends Partial<RoomLimits> {
  /** For models that do not say it themselves; 0 = never. */
  readonly idleUnloadMs?: number;
  readonly startWaitMs?: number;
  readonly hangMs?: number;
  readonly loadLimitMs?: number;
}

export interface LocalModelStatus extends LocalEngineStatus {
  readonly name: string;
}

export interface LocalEngines {
  /** All local models; `forModel` leads to the engine of one. */
  readonly provider: Provider;
  /** What can be called now. */
  models(): readonly LocalModelFile[];
  /**
   * Replaces the set of callable models. The engine of a removed or changed model answers waiting calls, then
   * ends.
   */
  replace(models: readonly LocalModelFile[], limits?: LocalLimits): void;
  status(): readonly LocalModelStatus[];
  /** Starts a model's engine ahead of the first call. */
  prewarm(name: string): void;
  /** Ends all processes for good. */
  stop(): Promise<void>;
}

/** Ten minutes. */
const defaultIdleUnloadMs = 600_000;
const roomPollMs = 250;

/** Nothing is started until a model is called or prewarmed. */
export function createLocalEngines(options: LocalEnginesOptions): LocalEngines {
  return new EnginePool(options);
}

interface Member extends Tenant {
  /** All that its engine was made of, to see a change. */
  readonly ways: string;
  readonly model: LocalModelFile;
  readonly engine: LocalEngine;
  readonly traits: UpstreamTraits;
}

class EnginePool implements LocalEngines {
  readonly provider: Provider;
  readonly #options: LocalEnginesOptions;
  readonly #folder = privateFolder();
  readonly #members = new Map<string, Member>();
  readonly #retired = new Set<Member>();
  /** By model name; they outlive replacements, as the routes that hold them do. */
  readonly #providers = new Map<string, Provider>();
  /** How many engines were made; each has a socket of its own. */
  #made = 0;
  #limits: LocalLimits;
  /** Models take their room one after the other. */
  #line: Promise<void> = Promise.resolve();
  #stopped = false;

  constructor(options: LocalEnginesOptions) {
    this.#options = options;
    this.#limits = options.limits ?? {};
    this.provider = {
      ...this.#providerOf(''),
      forModel: (name) => this.#forModel(name),
    };
    this.replace(options.models);
  }

  models(): readonly LocalModelFile[] {
    return [...this.#members.values()].map(({ model }) => model);
  }

  replace(models: readonly LocalModelFile[], limits: LocalLimits = this.#limits): void {
    this.#limits = limits;
    const before = new Map(this.#members);
    this.#members.clear();
    for (const model of models) {
      const old = before.get(model.name);
      const same = old?.ways === this.#ways(model);
      if (same) before.delete(model.name);
      this.#members.set(model.name, old !== undefined && same ? old : this.#member(model));
    }
    for (const member of this.#retired) if (!member.engine.loaded) this.#retired.delete(member);
    for (const member of before.values()) {
      this.#retired.add(member);
      member.engine.retire();
    }
  }

  status(): readonly LocalModelStatus[] {
    return [...this.#members.values()].map(({ model, engine }) => ({
      name: model.name,
      ...engine.status(),
    }));
  }

  prewarm(name: string): void {
    this.#members.get(name)?.engine.prewarm();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    const all = [...this.#members.values(), ...this.#retired];
    await Promise.all(all.map(({ engine }) => engine.stop()));
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #forModel(name: string): Provider {
    const known = this.#providers.get(name);
    if (known !== undefined) return known;
    const provider = this.#providerOf(name);
    this.#providers.set(name, provider);
    return provider;
  }

  async #ready(name: string): Promise<void> {
    const member = this.#members.get(name);
    if (member !== undefined) return member.engine.ready();
    throw new GatewayError('model_not_found', `There is no local model "${name}".`);
  }

  #providerOf(name: string): Provider {
    return localProvider({
      dialect: this.#options.dialect,
      socketPath: () =>
        this.#members.get(name)?.engine.socketPath ?? socketIn(this.#folder, 'none'),
      traits: (model) => this.#members.get(model)?.traits,
      wake: () => this.#ready(name),
    });
  }

  #member(model: LocalModelFile): Member {
    const { log, clock, entry } = this.#options;
    const { startWaitMs, hangMs, loadLimitMs } = this.#limits;
    const { context, threads, parallel } = model.settings;
    const engine = createLocalEngine({
      modelPath: model.path,
      name: model.name,
      socketPath: this.#newSocket(),
      log,
      clock,
      idleUnloadMs: this.#idleUnloadMs(model),
      ...(model.demo === true ? {} : { room: (take: () => void) => this.#takeRoom(model, take) }),
      ...defined({ sha256: model.sha256, contextSize: context, threads, parallel }),
      ...defined({ entry, startWaitMs, hangMs, loadLimitMs }),
    });
    return {
      model,
      engine,
      traits: localTraitsOf(model),
      ways: this.#ways(model),
      bytes: model.bytes,
      get lastUsedAt() {
        return engine.lastUsedAt;
      },
    };
  }

  #ways(model: LocalModelFile): string {
    const { startWaitMs, hangMs, loadLimitMs } = this.#limits;
    return JSON.stringify([model, this.#idleUnloadMs(model), startWaitMs, hangMs, loadLimitMs]);
  }

  #idleUnloadMs({ demo, settings }: LocalModelFile): number {
    if (settings.idleUnloadMs !== undefined) return settings.idleUnloadMs;
    return demo === true ? 0 : (this.#limits.idleUnloadMs ?? defaultIdleUnloadMs);
  }

  /**
   * Never one that was in use: behind kept-alive connections there may still be the engine before,
   * which answers who it has and would answer new calls as well. Numbered, since names hold what no
   * file name may, and more than fits into the address of a socket.
   */
  #newSocket(): string {
    this.#made += 1;
    return socketIn(this.#folder, `engine-${this.#made}`);
  }

  #takeRoom(model: LocalModelFile, take: () => void): Promise<void> {
    const turn = this.#line.then(() => this.#untilRoom(model)).then(take);
    this.#line = turn.catch(() => {});
    return turn;
  }

  async #untilRoom(model: LocalModelFile): Promise<void> {
    while (!this.#stopped && this.#members.get(model.name)?.model === model) {
      const room = this.#room();
      const blocking = whoBlocks(
        [...this.#members.values(), ...this.#retired].filter(
          ({ model, engine }) => model.demo !== true && engine.loaded,
        ),
        model.bytes,
        room,
      );
      if (blocking.length > 0) {
        if (!(await anyExited(blocking))) await delay(roomPollMs, undefined, { ref: false });
        continue;
      }
      const { name, bytes } = model;
      const { maxBytes } = room;
      if (bytes > maxBytes)
        this.#options.log.warn('engine_large', { model: name, bytes, max_bytes: maxBytes });
      return;
    }
  }

  #room(): RoomLimits {
    const standard = defaultRoom();
    const { maxLoaded = standard.maxLoaded, maxBytes = standard.maxBytes } = this.#limits;
    return { maxLoaded, maxBytes };
  }
}

/** Asks one after the other; the first that leaves is enough to look again. */
async function anyExited(members: readonly Member[]): Promise<boolean> {
  for (const { engine } of members) if (await engine.leave('room')) return true;
  return false;
}

function defined<T extends object>(fields: T): { [K in keyof T]?: Exclude<T[K], undefined> };
function defined(fields: object): object {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

// The rule by which models share the machine's memory.

interface RoomLimits {
  /** Models that may be loaded at once; the demonstration model does not count. */
  readonly maxLoaded: number;
  /** What their files may take together. */
  readonly maxBytes: number;
}

/** A model that is loaded, or wants to be. */
interface Tenant {
  readonly bytes: number;
  readonly lastUsedAt: number;
}

const defaultMaxLoaded = 3;
const shareOfMemory = 0.6;

/** Three models, whose files take at most 60 % of the memory that this process may use. */
export function defaultRoom(): RoomLimits {
  const constrained = process.constrainedMemory();
  const total = constrained > 0 ? Math.min(constrained, totalmem()) : totalmem();
  return { maxLoaded: defaultMaxLoaded, maxBytes: Math.floor(total * shareOfMemory) };
}

/**
 * Engines to unload, the least recently used first, before a model of `bytes` may be loaded; empty = there is
 * room. A single model is always tried, since the limit is only an estimate.
 */
export function whoBlocks<T extends Tenant>(
  loaded: readonly T[],
  bytes: number,
  { maxLoaded, maxBytes }: RoomLimits,
): readonly T[] {
  const taken = loaded.reduce((sum, tenant) => sum + tenant.bytes, 0);
  if (loaded.length === 0 || (loaded.length < maxLoaded && taken + bytes <= maxBytes)) return [];
  return loaded.toSorted((a, b) => a.lastUsedAt - b.lastUsedAt);
}
