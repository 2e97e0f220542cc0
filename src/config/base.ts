/** The options that a flag or a variable may give, too: flag before variable before file before default. */
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { type Address, ConfigError, type ConfigIssue, isLoopback, readAddress } from './errors.ts';
import { nearest } from '../core/nearest.ts';
import type { CheckedFile, Environment } from './config-file.ts';
import { choice, onOff, text, whole, type Options, type TextKind } from './options.ts';
import { logLevels, type LogLevel, type OriginLine } from './settings.ts';

/** Each worker is a process with memory of its own. */
const maxWorkers = 64;

/** Keys of the file that are flags, too: `--admin-listen` and MODEL_GATEWAY_ADMIN_LISTEN of `admin_listen`. */
export const baseOptions = {
  listen: {
    key: 'listen',
    kind: text,
    default: '127.0.0.1:8686',
    about: 'Address of the data plane: HOST:PORT, PORT or :PORT (loopback) or [::1]:PORT.',
  },
  adminListen: {
    key: 'admin_listen',
    kind: text,
    default: '127.0.0.1:8687',
    about: 'Address of the admin plane (dashboard, admin API, metrics).',
  },
  adminPublic: {
    key: 'admin_public',
    kind: onOff,
    default: false,
    about:
      'Whether admin_listen may be an address that other machines can reach. Set admin_tls, too, or put a TLS proxy in front of it.',
  },
  dataDir: {
    key: 'data_dir',
    kind: text,
    default: '.model-gateway',
    about: 'Directory for keys and ledger; relative to this file.',
  },
  logLevel: {
    key: 'log_level',
    kind: choice(logLevels),
    default: 'info',
    about: 'Lowest level that is logged.',
  },
  workers: {
    key: 'workers',
    kind: whole(1, maxWorkers),
    default: 1,
    about: 'Processes that serve calls; each uses one core.',
  },
} as const satisfies Options;

/** Values as given, by the names of the flags. */
export interface Flags {
  readonly listen?: string;
  readonly 'admin-listen'?: string;
  readonly 'admin-public'?: string;
  readonly config?: string;
  readonly 'data-dir'?: string;
  readonly 'log-level'?: string;
  readonly workers?: string;
  readonly storage?: string;
}

type FlagName = keyof Flags;

export interface ParsedFlags {
  readonly flags: Flags;
  /** `--help` was among them. */
  readonly help: boolean;
  /** `--json` was among them; only where the caller allows it. */
  readonly json: boolean;
  readonly ask: boolean;
}

/** Every flag with its value and its line of help. */
const flagForms: readonly {
  readonly name: FlagName;
  readonly value: string;
  readonly help: string;
}[] = [
  {
    name: 'listen',
    value: 'HOST:PORT',
    help: 'data plane (127.0.0.1:8686; port 0: any free one)',
  },
  { name: 'admin-listen', value: 'HOST:PORT', help: 'admin plane (127.0.0.1:8687)' },
  {
    name: 'admin-public',
    value: 'yes|no',
    help: 'allow a non-loopback admin address (no)',
  },
  { name: 'config', value: 'FILE', help: 'config file (gateway.yaml if it exists)' },
  { name: 'data-dir', value: 'DIR', help: 'keys and ledger (.model-gateway)' },
  { name: 'log-level', value: 'LEVEL', help: 'debug, info, warn, error or silent (info)' },
  { name: 'workers', value: 'N', help: 'processes that serve calls, one core each (1)' },
  {
    name: 'storage',
    value: 'WHERE',
    help: 'sqlite, memory, or "postgres://… redis://…" (sqlite)',
  },
];

/** Help text of the flags, one line each. */
export function flagsHelp(): string {
  return flagForms
    .map(({ name, value, help }) => `  ${`--${name} ${value}`.padEnd(26)}${help}\n`)
    .join('');
}

/** Wrong flags of `start` or `check`, as sentences in `message`. */
export class FlagError extends ConfigError {
  constructor(issues: readonly ConfigIssue[]) {
    super(issues);
    this.name = 'FlagError';
    this.message = issues
      .map(({ path, message }) => `${path}${path.startsWith('-') ? ' ' : ': '}${message}`)
      .join('\n');
  }
}

/**
 * Reads the flags of `start` (and of `check`, which also takes `--json` and `--ask`).
 * @throws FlagError that names each flag which is unknown, repeated or lacks its value.
 */
export function parseFlags(
  args: readonly string[],
  allow: { readonly switches: readonly ('json' | 'ask')[] } = { switches: [] },
): ParsedFlags {
  const { tokens } = parseArgs({
    args: [...args],
    options: {
      ...Object.fromEntries(flagForms.map(({ name }) => [name, { type: 'string' } as const])),
      help: { type: 'boolean', short: 'h' },
      json: { type: 'boolean' },
      ask: { type: 'boolean' },
    },
    // Errors are made below, all together and with a suggestion.
    strict: false,
    tokens: true,
  });
  const issues: ConfigIssue[] = [];
  const values = new Map<string, string>();
  const switches = new Set<string>();
  const switchNames: readonly string[] = ['help', ...allow.switches];
  let unknownFlag = false;
  for (const token of tokens) {
    if (token.kind === 'positional') {
      // After a flag that does not exist it is the value of that flag.
      if (!unknownFlag) issues.push({ path: token.value, message: 'unexpected argument.' });
      unknownFlag = false;
    } else if (token.kind === 'option') {
      const problem = switchNames.includes(token.name)
        ? readSwitch(token, switches)
        : readValue(token, values);
      if (problem !== undefined) issues.push({ path: token.rawName, message: problem });
      unknownFlag = problem?.startsWith(notAFlag) === true;
    }
  }
  if (issues.length > 0) throw new FlagError(issues);
  const flags: Flags = Object.fromEntries(values);
  return {
    flags,
    help: switches.has('help'),
    json: switches.has('json'),
    ask: switches.has('ask'),
  };
}

const notAFlag = 'is not a flag of this command';

/** The names of these flags in other programs. */
const otherNames: ReadonlyMap<string, string> = new Map([
  ['port', '--listen'],
  ['p', '--listen'],
  ['host', '--listen'],
  ['bind', '--listen'],
  ['address', '--listen'],
  ['admin-port', '--admin-listen'],
  ['dir', '--data-dir'],
  ['verbose', '--log-level'],
]);

interface OptionToken {
  readonly name: string;
  readonly value?: string | undefined;
}

function readSwitch(token: OptionToken, switches: Set<string>): string | undefined {
  if (token.value !== undefined) return 'takes no value.';
  switches.add(token.name);
  return undefined;
}

function readValue(token: OptionToken, values: Map<string, string>): string | undefined {
  const form = flagForms.find(({ name }) => name === token.name);
  if (form === undefined) {
    const known = [...flagForms.map(({ name }) => `--${name}`), '--help'];
    const meant = otherNames.get(token.name) ?? `--${token.name}`;
    const found = nearest(meant, known);
    return `${notAFlag}.${found === undefined ? '' : ` Did you mean ${found}?`}`;
  }
  const { value } = token;
  if (value === undefined || value === '' || value.startsWith('--')) {
    return `needs a value: --${form.name} ${form.value}.`;
  }
  if (values.has(token.name)) return 'is given more than once.';
  values.set(token.name, value);
  return undefined;
}

export interface BaseSources {
  readonly flags: Flags;
  readonly env: Environment;
  readonly cwd: string;
  readonly file: CheckedFile | undefined;
  report(issue: ConfigIssue): void;
  /** The admin address is called, and not listened on. */
  readonly calls?: true;
}

export interface BaseSettings {
  readonly listen: Address;
  readonly adminListen: Address;
  /** Absolute. */
  readonly dataDir: string;
  readonly logLevel: LogLevel;
  readonly workers: number;
  readonly origins: readonly OriginLine[];
}

export function readBaseSettings(sources: BaseSources): BaseSettings {
  const listen = choose(sources, 'listen', baseOptions.listen);
  const adminListen = choose(sources, 'admin-listen', baseOptions.adminListen);
  const adminPublic = choose(sources, 'admin-public', baseOptions.adminPublic);
  const dataDir = choose(sources, 'data-dir', baseOptions.dataDir);
  const logLevel = choose(sources, 'log-level', baseOptions.logLevel);
  const workers = choose(sources, 'workers', baseOptions.workers);
  const addresses = { listen: toAddress(listen), adminListen: toAddress(adminListen) };
  checkApart(addresses, adminListen);
  // S9: opening the admin plane to other machines must be said.
  const { host } = addresses.adminListen;
  if (!adminPublic.value && host !== '' && !isLoopback(host)) {
    const problem = exposure(sources, adminListen.value);
    if (problem !== undefined) adminListen.complain(problem);
  }
  if (/^~($|[/\\])/.test(dataDir.value)) {
    dataDir.complain(
      'begins with ~, which only a shell replaces: write the whole path, in the file also ${HOME}/…',
    );
  }
  const directory = resolve(dataDir.directory, dataDir.value);
  const line = (path: string, value: string, origin: string): OriginLine => ({
    path,
    value,
    origin,
  });
  return {
    ...addresses,
    dataDir: directory,
    logLevel: logLevel.value,
    workers: workers.value,
    origins: [
      line('listen', listen.value, listen.origin),
      line('admin_listen', adminListen.value, adminListen.origin),
      line('admin_public', adminPublic.value ? 'yes' : 'no', adminPublic.origin),
      line('data_dir', directory, dataDir.origin),
      line('log_level', logLevel.value, logLevel.origin),
      line('workers', String(workers.value), workers.origin),
    ],
  };
}

/** @param address other machines reach it, or it is one of them */
function exposure({ file, calls }: BaseSources, address: string): string | undefined {
  const isEncrypted = file?.isSet(['admin_tls', 'cert']) === true;
  // To call all interfaces means to call this machine.
  const isAnywhere = /^(0\.0\.0\.0|\[::\]):/.test(address);
  if (calls === true && !isAnywhere) {
    return isEncrypted
      ? undefined
      : `is an address of another machine: write https://${address}, or http://${address} to send the admin token unencrypted`;
  }
  return isEncrypted
    ? 'exposes the admin plane to other machines: set admin_public: true (--admin-public yes) if that is meant'
    : 'exposes the unencrypted admin plane to other machines: listen on 127.0.0.1 behind a TLS proxy, or set admin_public: true (--admin-public yes)';
}

/** The text of a flag or its variable, without looking at the file: for `--config` itself. */
export function outerChoice(
  flag: FlagName,
  { flags, env }: Pick<BaseSources, 'flags' | 'env'>,
): { readonly text: string; readonly origin: string; readonly path: string } | undefined {
  const fromFlag = flags[flag];
  if (fromFlag !== undefined)
    return { text: fromFlag, origin: `flag --${flag}`, path: `--${flag}` };
  // `MODEL_GATEWAY_DATA_DIR` of `data-dir`.
  const variable = `MODEL_GATEWAY_${flag.toUpperCase().replaceAll('-', '_')}`;
  const fromEnv = env[variable];
  if (fromEnv === undefined || fromEnv === '') return undefined;
  return { text: fromEnv, origin: `env ${variable}`, path: variable };
}

/** A value, where it is, and how to complain about it. */
interface Choice<T> {
  readonly value: T;
  readonly origin: string;
  /** Relative paths start here. */
  readonly directory: string;
  complain(message: string): void;
}

interface BaseOption<T> {
  readonly key: 'listen' | 'admin_listen' | 'admin_public' | 'data_dir' | 'log_level' | 'workers';
  readonly kind: TextKind<T>;
  readonly default: T;
}

function choose<T>(
  sources: BaseSources,
  flag: FlagName,
  { key, kind, default: usual }: BaseOption<T>,
): Choice<T> {
  const { file, cwd, report } = sources;
  const outer = outerChoice(flag, sources);
  const given = outer?.text ?? file?.content[key];
  const complain = (message: string): void => {
    if (outer !== undefined) report({ path: outer.path, message });
    else if (file?.isSet([key]) === true) report(file.issue([key], message));
    else report({ path: key, message });
  };
  if (given === undefined) return { value: usual, origin: 'default', directory: cwd, complain };
  const read = kind.read(String(given));
  if ('problem' in read) complain(read.problem);
  const value = 'problem' in read ? usual : read.value;
  if (outer !== undefined) return { value, origin: outer.origin, directory: cwd, complain };
  return {
    value,
    origin: file?.where([key]) ?? 'default',
    directory: resolve(file?.location.path ?? cwd, '..'),
    complain,
  };
}

const unreadAddress: Address = { host: '', port: 0 };

function toAddress({ value, complain }: Choice<string>): Address {
  const address = readAddress(value);
  if (address !== undefined) return address;
  const hint = value.includes('://') ? ', without http://' : '';
  complain(`is not an address. Use HOST:PORT, PORT (loopback) or [::1]:PORT${hint}`);
  return unreadAddress;
}

/** A key of one plane is refused by the other: they cannot share a listener. */
function checkApart(
  { listen, adminListen }: { readonly listen: Address; readonly adminListen: Address },
  { complain }: Choice<string>,
): void {
  if (listen.port === 0 || listen.port !== adminListen.port || listen.host !== adminListen.host) {
    return;
  }
  complain('is also the address of the data plane; the admin plane needs its own');
}
