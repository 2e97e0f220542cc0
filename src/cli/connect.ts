/** `connect`: what a client program needs to talk to this gateway. */
import { homedir } from 'node:os';
import { parseArgs } from 'node:util';
import { addressText, readAddress } from '../config/address.ts';
import { suggestion } from '../config/nearest.ts';
import { defaults } from '../config/settings.ts';
import { clients, type Ask, type Client } from './clients.ts';
import { placeholderKey } from './connection.ts';
import type { Command, CommandContext } from './command.ts';
import { editSettings } from './json-settings.ts';

const alwaysThere = 'local/tiny';

const help = `Usage: model-gateway connect CLIENT [--write] [--base-url URL] [--key KEY] [--model NAME]

Prints what a client needs to talk to this gateway.
Clients: ${clients.map(({ name }) => name).join(', ')}

  --write         write it into the client's settings file (claude-code, opencode); a backup is kept
  --base-url URL  the gateway's address, with or without /v1 (http://${defaults.listen})
  --key KEY       the key to use; MODEL_GATEWAY_KEY
  --model NAME    the model to ask for (${alwaysThere})
`;

export const connectCommand: Command = {
  name: 'connect',
  summary: 'print or write what a client program needs',
  help,
  run,
};

async function run(args: readonly string[], context: CommandContext): Promise<number> {
  try {
    const { values, positionals } = parseArgs({ args: [...args], options, allowPositionals: true });
    if (values.help === true) {
      context.stdout(help);
      return 0;
    }
    const client = pickClient(positionals);
    const url = values['base-url'] ?? (await context.gatewayUrl()) ?? ownUrl(context.env);
    const ask = readAsk({ ...values, 'base-url': url }, context.env);
    if (values.write === true) write(client, ask, context);
    else print(client, ask, context);
    return 0;
  } catch (error) {
    context.stderr(`${error instanceof Error ? error.message : String(error)}\n`);
    return 1;
  }
}

const options = {
  write: { type: 'boolean' },
  'base-url': { type: 'string' },
  key: { type: 'string' },
  model: { type: 'string' },
  help: { type: 'boolean', short: 'h' },
} as const;

interface Values {
  readonly 'base-url': string;
  readonly key?: string | undefined;
  readonly model?: string | undefined;
}

function pickClient(positionals: readonly string[]): Client {
  const names = clients.map(({ name }) => name);
  const [name, extra] = positionals;
  if (name === undefined) throw new Error(`Which client? One of ${names.join(', ')}`);
  if (extra !== undefined) throw new Error(`${extra}: unexpected argument`);
  const client = clients.find((each) => each.name === name);
  if (client !== undefined) return client;
  const hint = suggestion(name, names);
  throw new Error(`${name}: unknown client${hint}; known: ${names.join(', ')}`);
}

function readAsk(values: Values, env: CommandContext['env']): Ask {
  const key = values.key ?? env['MODEL_GATEWAY_KEY'];
  return {
    connection: {
      url: readUrl(values['base-url']),
      key: key === undefined || key === '' ? placeholderKey : key,
      model: values.model ?? alwaysThere,
    },
    modelGiven: values.model !== undefined,
    env: {
      ...env,
      HOME: env['HOME'] === undefined || env['HOME'] === '' ? homedir() : env['HOME'],
    },
  };
}

/** Where the gateway listens as far as the environment tells. */
function ownUrl(env: CommandContext['env']): string {
  const address = readAddress(env['MODEL_GATEWAY_LISTEN'] ?? '');
  if (address === undefined || address.port === 0) return `http://${defaults.listen}`;
  const isEverywhere = address.host === '0.0.0.0' || address.host === '::';
  return `http://${addressText(isEverywhere ? { ...address, host: '127.0.0.1' } : address)}`;
}

/** The address without `/v1`: each client gets the form that it needs. */
function readUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:') {
    throw new Error('--base-url: is no http:// or https:// address');
  }
  return `${url.origin}${url.pathname.replace(/\/+$/, '').replace(/\/v1$/, '')}`;
}

function print(client: Client, ask: Ask, { stdout, stderr }: CommandContext): void {
  stdout(client.text(ask));
  for (const note of client.notes?.(ask) ?? []) stderr(`note: ${note}\n`);
  if (client.text(ask).includes(placeholderKey)) {
    stderr(`note: put your key in the place of ${placeholderKey}, or give it with --key.\n`);
  }
}

function write(client: Client, ask: Ask, { stdout, stderr }: CommandContext): void {
  const { settings } = client;
  if (settings === undefined) {
    throw new Error(`--write: ${client.name} ${client.unwritable ?? 'cannot be written'}`);
  }
  if (ask.connection.key === placeholderKey) {
    throw new Error('--write: needs a key: --key KEY or MODEL_GATEWAY_KEY');
  }
  const file = settings.path(ask.env);
  const { changes, backup } = editSettings(file, settings.edits(ask));
  if (changes.length === 0) stdout(`${file} has all of it already\n`);
  else stdout(`${file}\n${changes.map((change) => `  ${change}\n`).join('')}`);
  if (backup !== undefined) stdout(`The old content is in ${backup}\n`);
  for (const note of client.notes?.(ask) ?? []) stderr(`note: ${note}\n`);
}
