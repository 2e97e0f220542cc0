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
export function banner(facts: BannerFacts): string {
  const { key, defaultModel } = facts;
  const paste =
    key === undefined || defaultModel === undefined
      ? ''
      : pasteLines({ url: pasteUrl(facts.url), key, model: defaultModel });
  return `\n${summary(facts)}\n${paste}More clients: ${program} connect CLIENT\n`;
}

function summary(facts: BannerFacts): string {
  const { adminToken, adminUrl, providers, defaultModel, dataDir, configFile } = facts;
  return columns([
    ['key', keyText(facts)],
    ...(adminToken === undefined
      ? []
      : [['admin token', `${adminToken}   (new, shown only now; for ${adminUrl})`]]),
    ['providers', providers.length === 0 ? 'none' : providers.join(', ')],
    ['model to try', defaultModel ?? `none; ask with: ${program} models`],
    ['config', configFile ?? 'none (gateway.yaml is read when it exists)'],
    ['data', dataDir],
  ]);
}

/** With what finds this gateway from anywhere: without it, a command may act on another directory. */
function keyText({ key, keyFromEnvironment, dataDir }: BannerFacts): string {
  if (key !== undefined) return `${key}   (new, shown only now)`;
  if (keyFromEnvironment === true) return 'the one in MODEL_GATEWAY_KEY';
  return `shown at the first start; another: ${program} keys create --name NAME --models '*' --data-dir ${shellWord(dataDir)}`;
}

function pasteLines(connection: Connection): string {
  const claude = claudeCodeVariables(connection, true)
    .map(([name, value]) => `${name}=${shellWord(value)}`)
    .join(' ');
  return `${chatCurl(connection)}

${messagesCurl(connection)}

${columns([
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
