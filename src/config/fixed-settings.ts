/** What a running gateway cannot change. */
import type { Settings } from './settings.ts';

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
