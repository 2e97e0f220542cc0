/** `connect`: what a client program needs to talk to this gateway. */
import { homedir } from 'node:os';
import { isAbsolute } from 'node:path';
import { addressText, readAddress, suggestion } from '../../config/errors.ts';
import { nearest } from '../../core/nearest.ts';
import { nodeHttp } from '../../core/node-http.ts';
import { readArguments, UsageError, withUsage, type Arguments } from '../arguments.ts';
import { baseOptions } from '../../config/base.ts';
import { clientText, type Ask, type Client, type SettingsFile } from '../clients/client.ts';
import { clients } from '../clients/clients.ts';
import { placeholderKey, type Connection, answerLimits } from '../connection.ts';
import type { Command, CommandContext, AdminClient } from '../command.ts';
import { editSettings } from '../settings-file.ts';
import { columns, printable } from '../table.ts';
import { request as encrypted } from 'node:https';
import { isObject, type JsonObject } from '../../json/value.ts';
import { tryParseObject } from '../../json/parse.ts';
import { objectsOf, requireOk } from '../reply.ts';

const alwaysThere = 'local/tiny';
/** Of the model above, where no gateway can be asked for it. */
const smallestWindow = 2048;
/** The first prompt of a client with long prompts fills a smaller window. */
const leastForLongPrompts = 16_384;
const keyVariable = 'MODEL_GATEWAY_KEY';

const writable = clients.filter(({ files }) => files !== undefined).map(({ name }) => name);

const help = `Usage: model-gateway connect CLIENT [options]
       model-gateway connect --list

Prints what a client needs to talk to this gateway.
Clients:
${wrapped(clients.map(({ name }) => name))}

  --list              list the clients, their endpoints and how they are
                      connected
  --write             write it into the client's settings file and keep a backup
                      of the old file. For
${wrapped(writable, ' '.repeat(22))}
  --file PATH         the settings file, if it is not at its usual path
  --base-url URL      the gateway's address, with or without /v1
                      (http://${baseOptions.listen.default})
  --key KEY           the key to use; default: a reference to ${keyVariable},
                      if that is set
  --model NAME        the model to ask for (${alwaysThere}; coding agents need
                      a larger one)
  --window TOKENS     the model's context window, if the gateway does not know
                      it
  --max-output TOKENS the model's maximum output, likewise
`;

export const connectCommand: Command = {
  name: 'connect',
  summary: 'print or write what a client program needs',
  help,
  choices: clients.map(({ name }) => name),
  run: (args, context) => withUsage(context, 'connect', () => run(args, context)),
};

function wrapped(names: readonly string[], indent = '  '): string {
  const lines: string[] = [];
  for (const name of names) {
    const last = lines.at(-1);
    if (last === undefined || `${last} ${name},`.length > 79) lines.push(`${indent}${name},`);
    else lines[lines.length - 1] = `${last} ${name},`;
  }
  return lines.join('\n').replace(/,$/, '');
}

async function run(args: readonly string[], context: CommandContext): Promise<number> {
  const given = readArguments(args, {
    values: ['file', 'base-url', 'key', 'model', 'window', 'max-output'],
    switches: ['write', 'list'],
    optional: ['CLIENT'],
  });
  if (given.has('help') || given.has('list')) {
    context.stdout(given.has('help') ? help : listText(context));
    return 0;
  }
  const client = pickClient(given.positionals[0]);
  const needsModel = client.longPrompts === true && client.ownModels !== true;
  if (needsModel && given.value('model') === undefined) {
    throw new UsageError(
      `${client.name} needs a larger model than ${alwaysThere}: name one with --model NAME (model-gateway models lists them).`,
    );
  }
  const ask = await readAsk(given, context);
  if (given.has('write')) write(client, { ask, file: given.value('file') }, context);
  else print(client, ask, context);
  return 0;
}

function listText({ screen }: CommandContext): string {
  const rows = clients.map((client) => [client.name, client.title, client.calls, wayOf(client)]);
  return columns([['CLIENT', 'WHAT IT IS', 'CALLS', 'BY'], ...rows], {
    head: true,
    screen,
    whole: [0],
  });
}

function wayOf({ files, variables, unwritable }: Client): string {
  if (files !== undefined) return 'file (--write)';
  if (variables !== undefined) return 'variables';
  return unwritable === undefined ? 'code' : 'lines';
}

function pickClient(name: string | undefined): Client {
  const all = 'model-gateway connect --list names all clients.';
  if (name === undefined) throw new UsageError(`CLIENT is missing: ${all}`);
  const client = clients.find((each) => each.name === name);
  if (client !== undefined) return client;
  const meant = nearest(
    name,
    clients.map((each) => each.name),
  );
  const fitting = clientsFor(name);
  const hint =
    meant !== undefined
      ? ` Did you mean "${meant}"?`
      : fitting.length > 0
        ? ` For ${printable(name)}: ${fitting.join(', ')}.`
        : '';
  throw new UsageError(`${printable(name)}: unknown client.${hint} ${all}`);
}

/** Clients whose title has the word, e.g. a programming language. */
function clientsFor(word: string): readonly string[] {
  const wanted = word.toLowerCase();
  return clients
    .filter(({ title }) =>
      title
        .toLowerCase()
        .split(/[^a-z]+/)
        .includes(wanted),
    )
    .map(({ name }) => name);
}

async function readAsk(given: Arguments, context: CommandContext): Promise<Ask> {
  const { env } = context;
  const baseUrl = given.value('base-url');
  const running = baseUrl === undefined ? await context.gatewayUrl() : undefined;
  const flagKey = given.value('key');
  const key = flagKey ?? env[keyVariable] ?? '';
  const model = given.value('model');
  const connection: Connection = {
    url: readUrl(baseUrl ?? running ?? ownUrl(env)),
    key: key === '' ? placeholderKey : key,
    ...(flagKey === undefined && key !== '' ? { keyVariable } : {}),
    model: model ?? alwaysThere,
  };
  const said = {
    ...tokensOf('window', given.value('window')),
    ...tokensOf('maxOutput', given.value('max-output')),
  };
  const modelGiven = model !== undefined;
  const { problem, ...known } = modelGiven
    ? await knownModel(connection, running === undefined, context)
    : {};
  if (problem !== undefined) context.stderr(`note: ${printable(problem)}\n`);
  return {
    connection: { ...connection, ...known, ...said },
    modelGiven,
    env: {
      ...env,
      HOME: env['HOME'] === undefined || env['HOME'] === '' ? homedir() : env['HOME'],
    },
  };
}

function tokensOf(
  name: 'window' | 'maxOutput',
  text: string | undefined,
): Pick<Connection, 'window' | 'maxOutput'> {
  if (text === undefined) return {};
  if (/^[1-9]\d{0,8}$/.test(text)) return { [name]: Number(text) };
  const flag = name === 'window' ? '--window' : '--max-output';
  throw new UsageError(`${flag}: ${printable(text)} is not a whole number of tokens above 0.`);
}

/** What a gateway knows of the model. */
interface KnownModel extends ModelLimits {
  /** Why it cannot be called. */
  readonly problem?: string;
}

/** The key may see what the admin API of another gateway would not show. */
async function knownModel(
  connection: Connection,
  isElsewhere: boolean,
  context: CommandContext,
): Promise<KnownModel> {
  if (connection.key !== placeholderKey) return modelByKey(connection);
  return isElsewhere ? {} : modelByAdmin(await context.admin(), connection.model);
}

/** Where the gateway listens according to the environment. */
function ownUrl(env: CommandContext['env']): string {
  const address = readAddress(env['MODEL_GATEWAY_LISTEN'] ?? '');
  if (address === undefined || address.port === 0) return `http://${baseOptions.listen.default}`;
  const isEverywhere = address.host === '0.0.0.0' || address.host === '::';
  return `http://${addressText(isEverywhere ? { ...address, host: '127.0.0.1' } : address)}`;
}

/** The address without `/v1`: each client gets the form that it needs. */
function readUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:') {
    throw new UsageError(`--base-url: ${printable(text)} is not an http:// or https:// address.`);
  }
  return `${url.origin}${url.pathname.replace(/\/+$/, '').replace(/\/v1$/, '')}`;
}

function print(client: Client, ask: Ask, { stdout, stderr }: CommandContext): void {
  const text = clientText(client, ask);
  stdout(text);
  for (const note of notesOf(client, ask)) stderr(`note: ${note}\n`);
  if (text.includes(placeholderKey)) {
    stderr(`note: replace ${placeholderKey} by your key, or give it with --key.\n`);
  }
}

function notesOf(client: Client, ask: Ask): readonly string[] {
  const { connection, modelGiven } = ask;
  const small = smallWindowNote(client, ask);
  const own = [...small, ...(client.notes?.(ask) ?? [])];
  if (!modelGiven || connection.window !== undefined || small.length > 0) return own;
  const withWindow: Ask = { ...ask, connection: { ...connection, window: 1 } };
  const takesWindow = values(client, withWindow) !== values(client, ask);
  return takesWindow
    ? [...own, `The context window of ${connection.model} is unknown. Set it with --window TOKENS.`]
    : own;
}

/** A coding agent reaches such a model, and its first prompt is refused as too long. */
function smallWindowNote(client: Client, { connection, modelGiven }: Ask): readonly string[] {
  if (client.longPrompts !== true || !modelGiven) return [];
  const { model, window = model === alwaysThere ? smallestWindow : undefined } = connection;
  if (window === undefined || window >= leastForLongPrompts) return [];
  return [
    `${printable(model)} takes ${window} tokens, and ${client.title} sends longer prompts: its calls will fail. Name a model with a larger context (model-gateway models lists them).`,
  ];
}

/** All settings that a client would get. */
function values(client: Client, ask: Ask): string {
  const edits = (client.files ?? []).flatMap((file) => file.edits(ask));
  return clientText(client, ask) + JSON.stringify(edits);
}

interface Target {
  readonly ask: Ask;
  /** Of `--file`. */
  readonly file: string | undefined;
}

function write(client: Client, { ask, file }: Target, { stdout, stderr }: CommandContext): void {
  const { name, files, unwritable } = client;
  if (files === undefined) {
    const why = unwritable ?? 'has no settings file; use the printed lines or code';
    throw new UsageError(`--write: ${name} ${why}.`);
  }
  if (file !== undefined && files.length > 1) {
    throw new UsageError(`--file: ${name} has several settings files. Leave --file out.`);
  }
  const targets = files.map((each) => ({ ...each, target: settingsPath(each, { ask, file }) }));
  const edits = files.flatMap((each) => each.edits(ask));
  const needsKey = edits.some(({ secret }) => secret === true);
  if (needsKey && ask.connection.key === placeholderKey) {
    throw new UsageError(`--write needs a key: give --key KEY or set ${keyVariable}.`);
  }
  for (const each of targets) {
    const { changes, backup } = editSettings(each.target, each.format, each.edits(ask));
    if (changes.length === 0) stdout(`${each.target} is up to date\n`);
    else stdout(`${each.target}\n${changes.map((change) => `  ${change}\n`).join('')}`);
    if (backup !== undefined) stdout(`Backup of the old file: ${backup}\n`);
  }
  for (const note of notesOf(client, ask)) stderr(`note: ${note}\n`);
}

function settingsPath(settings: SettingsFile, { ask, file }: Target): string {
  const target = file ?? settings.path(ask.env);
  if (file !== undefined || isAbsolute(target)) return target;
  throw new UsageError(`--write: give the path of ${target} with --file PATH.`);
}

// Asks a gateway what it knows of a model.

type ModelLimits = Pick<Connection, 'window' | 'maxOutput'>;

const timeoutMs = 3000;
const maxBytes = 1024 * 1024;

/** By `GET /v1/models/NAME` with the key; nothing is known where that is not answered with 200 or 404. Never throws. */
function modelByKey({ url, key, model }: Connection): Promise<KnownModel> {
  return new Promise((resolve) => {
    const nothing = (): void => resolve({});
    const send = url.startsWith('https:') ? encrypted : nodeHttp.request;
    const outgoing = send(`${url}/v1/models/${encodeURIComponent(model)}`, {
      agent: false,
      timeout: timeoutMs,
      headers: { authorization: `Bearer ${key}` },
    });
    outgoing.on('timeout', () => outgoing.destroy(new Error('too slow')));
    outgoing.on('error', nothing);
    outgoing.on('response', (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('error', nothing);
      response.on('data', (piece: string) => {
        text += piece;
        if (text.length > maxBytes) outgoing.destroy(new Error('too long'));
      });
      response.on('end', () => {
        const body = tryParseObject(text) ?? {};
        const { message } = isObject(body['error']) ? body['error'] : {};
        const problem = response.statusCode === 404 && typeof message === 'string';
        resolve(problem ? { problem: message } : response.statusCode === 200 ? limitsIn(body) : {});
      });
    });
    outgoing.end();
  });
}

/** By the admin API of the gateway that runs here. Never throws. */
async function modelByAdmin(admin: AdminClient, model: string): Promise<KnownModel> {
  try {
    const [models, providers] = await Promise.all(
      ['models', 'providers'].map(async (name) =>
        objectsOf(requireOk(await admin.request('GET', `/api/${name}`)), name),
      ),
    );
    const found = models?.find(({ id }) => id === model);
    if (found !== undefined) return limitsIn(found);
    // A model of a provider can be called, listed or not.
    const provider = model.slice(0, Math.max(0, model.indexOf('/')));
    if (providers?.some(({ id, there }) => id === provider && there === true)) return {};
    const ids = (models ?? []).map(({ id }) => String(id));
    const hint = suggestion(model, ids);
    return {
      problem: `this gateway has no model ${model}${hint}; model-gateway models lists what can be called`,
    };
  } catch {
    return {};
  }
}

function limitsIn({ max_input_tokens: window, max_tokens: output }: JsonObject): ModelLimits {
  return answerLimits(window, output);
}
