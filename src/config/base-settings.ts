/** The settings that a flag, a variable or the file may give, in this order, before the default. */
import { resolve } from 'node:path';
import { isLoopback, readAddress, type Address } from './address.ts';
import type { CheckedFile } from './config-file.ts';
import type { ConfigIssue } from './config-error.ts';
import { flagForms, type FlagName, type Flags } from './flags.ts';
import type { Environment } from './references.ts';
import { defaults, logLevels, mostWorkers, type LogLevel, type OriginLine } from './settings.ts';

export interface BaseSources {
  readonly flags: Flags;
  readonly env: Environment;
  readonly cwd: string;
  readonly file: CheckedFile | undefined;
  report(issue: ConfigIssue): void;
}

export interface BaseSettings {
  readonly listen: Address;
  readonly adminListen: Address;
  readonly dataDir: string;
  readonly logLevel: LogLevel;
  readonly workers: number;
  readonly origins: readonly OriginLine[];
}

/** A text, where it stands, and how to complain about it. */
interface Choice {
  readonly text: string;
  readonly origin: string;
  /** Relative paths start here. */
  readonly directory: string;
  complain(message: string): void;
}

type FileKey = 'listen' | 'admin_listen' | 'admin_public' | 'data_dir' | 'log_level' | 'workers';

export function readBaseSettings(sources: BaseSources): BaseSettings {
  const listen = choose(sources, { flag: 'listen', key: 'listen', otherwise: defaults.listen });
  const adminListen = choose(sources, {
    flag: 'admin-listen',
    key: 'admin_listen',
    otherwise: defaults.adminListen,
  });
  const adminPublic = choose(sources, {
    flag: 'admin-public',
    key: 'admin_public',
    otherwise: 'no',
  });
  const dataDir = choose(sources, {
    flag: 'data-dir',
    key: 'data_dir',
    otherwise: defaults.dataDir,
  });
  const logLevel = choose(sources, {
    flag: 'log-level',
    key: 'log_level',
    otherwise: defaults.logLevel,
  });
  const workers = choose(sources, {
    flag: 'workers',
    key: 'workers',
    otherwise: String(defaults.workers),
  });
  const addresses = { listen: toAddress(listen), adminListen: toAddress(adminListen) };
  checkApart(addresses, adminListen);
  checkClosed(addresses.adminListen, toSwitch(adminPublic), adminListen);
  const directory = resolve(dataDir.directory, dataDir.text);
  return {
    ...addresses,
    dataDir: directory,
    logLevel: toLogLevel(logLevel),
    workers: toWorkers(workers),
    origins: [
      { path: 'listen', value: listen.text, origin: listen.origin },
      { path: 'admin_listen', value: adminListen.text, origin: adminListen.origin },
      { path: 'admin_public', value: adminPublic.text, origin: adminPublic.origin },
      { path: 'data_dir', value: directory, origin: dataDir.origin },
      { path: 'log_level', value: logLevel.text, origin: logLevel.origin },
      { path: 'workers', value: workers.text, origin: workers.origin },
    ],
  };
}

/** The text of a flag or its variable, without looking at the file: for `--config` itself. */
export function outerChoice(
  flag: FlagName,
  { flags, env }: Pick<BaseSources, 'flags' | 'env'>,
): { readonly text: string; readonly origin: string; readonly path: string } | undefined {
  const fromFlag = flags[flag];
  if (fromFlag !== undefined)
    return { text: fromFlag, origin: `flag --${flag}`, path: `--${flag}` };
  const variable = flagForms.find(({ name }) => name === flag)?.variable ?? '';
  const fromEnv = env[variable];
  if (fromEnv === undefined || fromEnv === '') return undefined;
  return { text: fromEnv, origin: `env ${variable}`, path: variable };
}

function choose(
  sources: BaseSources,
  setting: { readonly flag: FlagName; readonly key: FileKey; readonly otherwise: string },
): Choice {
  const { file, cwd, report } = sources;
  const outer = outerChoice(setting.flag, sources);
  if (outer !== undefined) {
    const complain = (message: string): void => report({ path: outer.path, message });
    return { ...outer, directory: cwd, complain };
  }
  const inFile = file?.content[setting.key];
  if (file !== undefined && inFile !== undefined) {
    return {
      text: String(inFile),
      origin: file.where([setting.key]),
      directory: resolve(file.place.path, '..'),
      complain: (message) => report(file.issue([setting.key], message)),
    };
  }
  const complain = (message: string): void => report({ path: setting.key, message });
  return { text: setting.otherwise, origin: 'default', directory: cwd, complain };
}

const unreadAddress: Address = { host: '', port: 0 };

function toAddress(choice: Choice): Address {
  const address = readAddress(choice.text);
  if (address !== undefined) return address;
  const hint = choice.text.includes('://') ? ', without http://' : '';
  choice.complain(`is no address: HOST:PORT, :PORT or [::1]:PORT${hint}`);
  return unreadAddress;
}

/** A key of one plane is refused by the other: they cannot share a listener. */
function checkApart(
  { listen, adminListen }: { readonly listen: Address; readonly adminListen: Address },
  choice: Choice,
): void {
  if (listen.port === 0 || listen.port !== adminListen.port || listen.host !== adminListen.host) {
    return;
  }
  choice.complain('is the address of the data plane too; the admin plane needs its own');
}

/** S9: the admin plane has no TLS of its own, so it is opened to others by nobody's accident. */
function checkClosed({ host }: Address, mayBePublic: boolean, choice: Choice): void {
  if (mayBePublic || host === '' || isLoopback(host)) return;
  choice.complain(
    'lets other machines reach the admin plane, and nothing encrypts it: listen on 127.0.0.1 behind a TLS proxy, or say admin_public: true (--admin-public yes)',
  );
}

function toSwitch(choice: Choice): boolean {
  if (['yes', 'true', '1'].includes(choice.text)) return true;
  if (!['no', 'false', '0'].includes(choice.text)) choice.complain('expected yes or no');
  return false;
}

function toLogLevel(choice: Choice): LogLevel {
  const level = logLevels.find((each) => each === choice.text);
  if (level === undefined) choice.complain(`expected one of ${logLevels.join(', ')}`);
  return level ?? defaults.logLevel;
}

function toWorkers(choice: Choice): number {
  const workers = /^\d{1,4}$/.test(choice.text) ? Number(choice.text) : 0;
  if (workers < 1 || workers > mostWorkers) {
    choice.complain(`expected a whole number from 1 to ${mostWorkers}`);
  }
  return Math.max(1, workers);
}
