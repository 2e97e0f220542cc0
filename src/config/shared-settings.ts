/**
 * Settings as one text, for another process of the same gateway: with their secrets, so it is for no log. What
 * the other process reads is what this one has read, whatever became of the file since.
 */
import { parseOwn } from '../json/parse.ts';
import { Secret } from '../core/secret.ts';
import type { LimitSettings } from './sections.ts';
import { HeaderSettings, type Settings } from './settings.ts';

/** No setting has a member of this name. */
const kind = '\u0000kind';

export function packSettings(settings: Settings): string {
  // `toJSON` of what hides itself was called already: the holder has the value.
  return JSON.stringify(settings, function packed(this: object, name: string, value: unknown) {
    const raw: unknown = Reflect.get(this, name);
    if (raw instanceof Secret) return { [kind]: 'secret', text: raw.reveal() };
    if (raw instanceof HeaderSettings) return { [kind]: 'headers', entries: [...raw.entries()] };
    if (raw === Number.POSITIVE_INFINITY) return { [kind]: 'infinity' };
    return value;
  });
}

export function unpackSettings(text: string): Settings {
  return parseOwn<Settings>(text, unpacked);
}

function unpacked(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || !(kind in value)) return value;
  if ('text' in value) return new Secret(String(value.text));
  if (!('entries' in value)) return Number.POSITIVE_INFINITY;
  const { entries } = value;
  return new HeaderSettings(Array.isArray(entries) ? entries : []);
}

/**
 * @param number 1, 2, …
 * @param memoryBytes what all may use where the settings do not say it
 */
export function workerShare(settings: Settings, number: number, memoryBytes: number): Settings {
  const { workers, limits } = settings;
  const share: LimitSettings = {
    ...limits,
    streams: partOf(limits.streams, { number, workers }),
    memoryBytes: Math.floor((limits.memoryBytes ?? memoryBytes) / workers),
    connections:
      limits.connections === undefined
        ? undefined
        : partOf(limits.connections, { number, workers }),
  };
  return { ...settings, limits: share };
}

/** The parts of all workers make the whole; none is nothing, since the config refuses less than one for each. */
function partOf(
  whole: number,
  { number, workers }: { readonly number: number; readonly workers: number },
): number {
  return Math.floor(whole / workers) + (number <= whole % workers ? 1 : 0);
}

function fixed(settings: Settings): object {
  const { listen, adminListen, dataDir, storage, ledger, workers, traces } = settings;
  return {
    listen,
    admin_listen: adminListen,
    data_dir: dataDir,
    storage,
    ledger,
    workers,
    traces: traces ?? null,
  };
}

/** Names of settings that differ and are read at start only. */
export function needRestart(running: Settings, wanted: Settings): readonly string[] {
  const before = new Map(Object.entries(fixed(running)));
  return Object.entries(fixed(wanted))
    .filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(before.get(name)))
    .map(([name]) => name);
}
