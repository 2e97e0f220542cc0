/** What `start` prints. */
import {
  anthropicClientCode,
  chatCurl,
  claudeCodeVariables,
  messagesCurl,
  openaiClientCode,
  type Connection,
} from './connection.ts';
import { shellWord } from './shell-word.ts';
import { noScreen, paint, type Screen } from './screen.ts';
import { isLoopback } from '../config/errors.ts';
import { columns } from './table.ts';

const demonstrationModel = 'local/tiny';

export interface BannerFacts {
  /** Of the data plane, without `/v1`. */
  readonly url: string;
  readonly adminUrl: string;
  /** Only when this start made it: it is shown once. */
  readonly key?: string;
  /** The same for the admin plane. */
  readonly adminToken?: string;
  /** True when MODEL_GATEWAY_KEY sets the key. */
  readonly keyFromEnvironment?: boolean;
  /** The same for MODEL_GATEWAY_ADMIN_TOKEN. */
  readonly adminTokenFromEnvironment?: boolean;
  /** Ids of the providers that are configured or were found. */
  readonly providers: readonly string[];
  /** A model that can be called immediately; absent if there is none. */
  readonly defaultModel?: string;
  readonly dataDir: string;
  /** Absolute; absent when there is none. */
  readonly configFile?: string;
  /** How this program is called. */
  readonly program: string;
}

/**
 * The startup text. It ends with a line end and shows a secret only when it is new. Programs read the lines
 * `listening URL` and `admin URL`; at a terminal both are in the table.
 */
export function banner(facts: BannerFacts, screen: Screen = noScreen): string {
  const { key, defaultModel, url, adminUrl, program } = facts;
  const paste =
    key === undefined || defaultModel === undefined
      ? ''
      : pasteLines({ url: pasteUrl(url), key, model: defaultModel }, facts, screen);
  const head = screen.columns === undefined ? `listening ${url}\nadmin ${adminUrl}\n` : '';
  return `${head}\n${summary(facts, screen)}\n${exposure(url, screen)}${paste}More clients: ${program} connect CLIENT\n`;
}

function summary(facts: BannerFacts, screen: Screen): string {
  const { url, adminToken, adminUrl, providers, defaultModel, dataDir, configFile } = facts;
  const signIn = `sign in with ${signInText(facts)}`;
  return named(screen, [
    ...(screen.columns === undefined
      ? [['dashboard', `at the admin address; ${signIn}`]]
      : [
          ['listening', url],
          ['admin', `${pasteUrl(adminUrl)}   (dashboard; ${signIn})`],
        ]),
    ['key', keyText(facts)],
    ...(adminToken === undefined ? [] : [['admin token', `${adminToken}   (new, shown only now)`]]),
    ['providers', providers.length === 0 ? 'none' : providers.join(', ')],
    ['model to try', defaultModel ?? `none; list models with: ${facts.program} models`],
    ['config', configFile ?? 'none (gateway.yaml applies as soon as it exists)'],
    ['data', dataDir],
  ]);
}

/** Plain HTTP for other machines is allowed, but not in silence. */
function exposure(url: string, screen: Screen): string {
  const { protocol, hostname, host } = new URL(url);
  if (protocol === 'https:' || isLoopback(hostname)) return '';
  return `${paint(screen, 'yellow', 'Note')}: other machines can reach ${host}, and it speaks plain HTTP: the network can read keys and prompts.\nSet tls in the config, put a TLS proxy in front of it, or listen on 127.0.0.1.\n\n`;
}

/** With what finds this gateway from anywhere: without it, a command may act on another directory. */
function keyText({ key, keyFromEnvironment, dataDir, program }: BannerFacts): string {
  if (key !== undefined) return `${key}   (new, shown only now)`;
  if (keyFromEnvironment === true) return 'the one in MODEL_GATEWAY_KEY';
  return `shown at the first start; create another: ${program} keys create --name NAME --models '*' --data-dir ${shellWord(dataDir)}`;
}

/** Only the hash of the token is stored: a lost token cannot be recovered, only replaced. */
function signInText({ adminToken, adminTokenFromEnvironment }: BannerFacts): string {
  if (adminTokenFromEnvironment === true) return 'the token in MODEL_GATEWAY_ADMIN_TOKEN';
  if (adminToken !== undefined) return 'the admin token';
  return 'the admin token of the first start; if lost, set a new one in MODEL_GATEWAY_ADMIN_TOKEN and restart';
}

/** Rows are not truncated, since they are meant to be copied. */
function named({ colour }: Screen, rows: readonly (readonly string[])[]): string {
  const colourOf = (_: string, column: number): 'bold' | undefined =>
    column === 0 ? 'bold' : undefined;
  return columns(rows, { screen: { colour }, colourOf });
}

function pasteLines(connection: Connection, { program }: BannerFacts, screen: Screen): string {
  return `${chatCurl(connection)}

${messagesCurl(connection)}

${named(screen, [
  ['OpenAI SDK', openaiClientCode(connection)],
  ['Anthropic SDK', anthropicClientCode(connection)],
  ['Claude Code', claudeCodeText(connection, program)],
])}
`;
}

/** Prompts of coding agents are longer than the context of the demonstration model. */
function claudeCodeText(connection: Connection, program: string): string {
  if (connection.model === demonstrationModel) {
    return `needs a larger model than ${demonstrationModel}: set a provider's key, e.g. ANTHROPIC_API_KEY, or see ${program} pull --list`;
  }
  const variables = claudeCodeVariables(connection, true);
  return `${variables.map(([name, value]) => `${name}=${shellWord(value)}`).join(' ')} claude`;
}

/** A listener on all addresses is reached through loopback. */
function pasteUrl(url: string): string {
  return url.replace(/^(https?:\/\/)(0\.0\.0\.0|\[::\])(?=:|$)/, '$1127.0.0.1');
}
