/** The flags of `start` and `check`. */
import { parseArgs } from 'node:util';
import { ConfigError, type ConfigIssue } from './config-error.ts';
import { suggestion } from './nearest.ts';

/** Values as given; each has an environment variable and, but for `config`, a key in the file. */
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

export type FlagName = keyof Flags;

export interface ParsedFlags {
  readonly flags: Flags;
  /** `--help` was among them. */
  readonly help: boolean;
  /** `--json` was among them; only where the caller allows it. */
  readonly json: boolean;
}

interface FlagForm {
  readonly name: FlagName;
  readonly variable: string;
  readonly value: string;
  readonly help: string;
}

/** Every flag, with its variable and its line of help. */
export const flagForms: readonly FlagForm[] = [
  {
    name: 'listen',
    variable: 'MODEL_GATEWAY_LISTEN',
    value: 'HOST:PORT',
    help: 'data plane (127.0.0.1:8686; port 0 picks a free one)',
  },
  {
    name: 'admin-listen',
    variable: 'MODEL_GATEWAY_ADMIN_LISTEN',
    value: 'HOST:PORT',
    help: 'admin plane (127.0.0.1:8687)',
  },
  {
    name: 'admin-public',
    variable: 'MODEL_GATEWAY_ADMIN_PUBLIC',
    value: 'yes|no',
    help: 'other machines may reach the admin plane (no)',
  },
  {
    name: 'config',
    variable: 'MODEL_GATEWAY_CONFIG',
    value: 'FILE',
    help: 'config file (gateway.yaml where it exists)',
  },
  {
    name: 'data-dir',
    variable: 'MODEL_GATEWAY_DATA_DIR',
    value: 'DIR',
    help: 'keys and ledger (.model-gateway)',
  },
  {
    name: 'log-level',
    variable: 'MODEL_GATEWAY_LOG_LEVEL',
    value: 'LEVEL',
    help: 'debug, info, warn, error or silent (info)',
  },
  {
    name: 'workers',
    variable: 'MODEL_GATEWAY_WORKERS',
    value: 'N',
    help: 'processes that serve calls, each on a core (1)',
  },
  {
    name: 'storage',
    variable: 'MODEL_GATEWAY_STORAGE',
    value: 'WHERE',
    help: 'sqlite, memory, or postgres://… with redis://… behind a space (sqlite)',
  },
];

/** The help text of the flags, one line each. */
export function flagsHelp(): string {
  return flagForms
    .map(({ name, value, variable, help }) => {
      const flag = `--${name} ${value}`;
      return `  ${flag.padEnd(26)}${help}; ${variable}\n`;
    })
    .join('');
}

/**
 * Reads the flags of `start` (and of `check`, which also takes `--json`).
 * @throws ConfigError that names each flag which is unknown, repeated or lacks its value.
 */
export function parseFlags(
  args: readonly string[],
  allow: { readonly json: boolean } = { json: false },
): ParsedFlags {
  const { tokens } = parseArgs({
    args: [...args],
    options: {
      ...Object.fromEntries(flagForms.map(({ name }) => [name, { type: 'string' } as const])),
      help: { type: 'boolean', short: 'h' },
      json: { type: 'boolean' },
    },
    // Errors are made below, all together and with a suggestion.
    strict: false,
    tokens: true,
  });
  const issues: ConfigIssue[] = [];
  const values = new Map<string, string>();
  const switches = new Set<string>();
  const switchNames = allow.json ? ['help', 'json'] : ['help'];
  for (const token of tokens) {
    if (token.kind === 'positional') {
      issues.push({ path: token.value, message: 'unexpected argument' });
    } else if (token.kind === 'option') {
      const problem = switchNames.includes(token.name)
        ? readSwitch(token, switches)
        : readValue(token, values);
      if (problem !== undefined) issues.push({ path: token.rawName, message: problem });
    }
  }
  if (issues.length > 0) throw new ConfigError(issues);
  const flags: Flags = Object.fromEntries(values);
  return { flags, help: switches.has('help'), json: switches.has('json') };
}

interface OptionToken {
  readonly name: string;
  readonly value?: string | undefined;
}

function readSwitch(token: OptionToken, switches: Set<string>): string | undefined {
  if (token.value !== undefined) return 'takes no value';
  switches.add(token.name);
  return undefined;
}

function readValue(token: OptionToken, values: Map<string, string>): string | undefined {
  const form = flagForms.find(({ name }) => name === token.name);
  if (form === undefined) {
    const known = [...flagForms.map(({ name }) => `--${name}`), '--help'];
    return `unknown flag${suggestion(`--${token.name}`, known) || ' (see --help)'}`;
  }
  const { value } = token;
  if (value === undefined || value === '' || value.startsWith('--')) {
    return `needs a value: --${form.name} ${form.value}`;
  }
  if (values.has(token.name)) return 'given twice';
  values.set(token.name, value);
  return undefined;
}
