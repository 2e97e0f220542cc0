/** What `start` prints below its two `listening` lines. */
import {
  anthropicClientCode,
  chatCurl,
  claudeCodeVariables,
  messagesCurl,
  openaiClientCode,
  type Connection,
} from './connection.ts';
import { shellWord } from './shell.ts';
import { noScreen, type Screen } from './screen.ts';
import { columns } from './table.ts';

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
  /** A model that can be asked at once; absent when nothing can. */
  readonly defaultModel?: string;
  readonly dataDir: string;
  /** Absolute; absent when there is none. */
  readonly configFile?: string;
}

const program = './bin/model-gateway';

/** The startup text. It ends with a line end and shows a secret only when it is new. */
export function banner(facts: BannerFacts, screen: Screen = noScreen): string {
  const { key, defaultModel } = facts;
  const paste =
    key === undefined || defaultModel === undefined
      ? ''
      : pasteLines({ url: pasteUrl(facts.url), key, model: defaultModel }, screen);
  return `\n${summary(facts, screen)}\n${paste}More clients: ${program} connect CLIENT\n`;
}

function summary(facts: BannerFacts, screen: Screen): string {
  const { adminToken, adminUrl, providers, defaultModel, dataDir, configFile } = facts;
  return named(screen, [
    ['key', keyText(facts)],
    ...(adminToken === undefined ? [] : [['admin token', `${adminToken}   (new, shown only now)`]]),
    ['dashboard', `${pasteUrl(adminUrl)}   (sign in with ${signInText(facts)})`],
    ['providers', providers.length === 0 ? 'none' : providers.join(', ')],
    ['model to try', defaultModel ?? `none; list models with: ${program} models`],
    ['config', configFile ?? 'none (gateway.yaml is read if it exists)'],
    ['data', dataDir],
  ]);
}

/** With what finds this gateway from anywhere: without it, a command may act on another directory. */
function keyText({ key, keyFromEnvironment, dataDir }: BannerFacts): string {
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

function pasteLines(connection: Connection, screen: Screen): string {
  const claude = claudeCodeVariables(connection, true)
    .map(([name, value]) => `${name}=${shellWord(value)}`)
    .join(' ');
  return `${chatCurl(connection)}

${messagesCurl(connection)}

${named(screen, [
  ['OpenAI SDK', openaiClientCode(connection)],
  ['Anthropic SDK', anthropicClientCode(connection)],
  ['Claude Code', `${claude} claude`],
])}
`;
}

/** A listener on all addresses is reached through loopback. */
function pasteUrl(url: string): string {
  return url.replace(/^(https?:\/\/)(0\.0\.0\.0|\[::\])(?=:|$)/, '$1127.0.0.1');
}
