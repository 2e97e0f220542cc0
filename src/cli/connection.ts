/** What a client needs to reach the gateway, and how that is said for each kind of client. */
import { shellWord } from './shell.ts';

export interface Connection {
  /** `http://HOST:PORT`, without `/v1` and without a final slash. */
  readonly url: string;
  readonly key: string;
  /** As clients ask for it: `provider/model` or a name of `models:`. */
  readonly model: string;
}

/** Stands where the person puts the key. */
export const placeholderKey = 'YOUR_KEY';

const question = 'Say hello.';

/** The address as chat clients and most tools want it. */
export function baseUrl({ url }: Connection): string {
  return `${url}/v1`;
}

export function chatCurl(connection: Connection): string {
  const { key, model } = connection;
  const body = { model, messages: [{ role: 'user', content: question }] };
  return curl(`${baseUrl(connection)}/chat/completions`, [`authorization: Bearer ${key}`], body);
}

export function messagesCurl(connection: Connection): string {
  const { key, model } = connection;
  const body = { model, max_tokens: 256, messages: [{ role: 'user', content: question }] };
  const headers = [`x-api-key: ${key}`, 'anthropic-version: 2023-06-01'];
  return curl(`${baseUrl(connection)}/messages`, headers, body);
}

function curl(url: string, headers: readonly string[], body: object): string {
  const all = [...headers, 'content-type: application/json'];
  return [
    `curl ${shellWord(url)}`,
    ...all.map((header) => `-H ${shellWord(header)}`),
    `-d ${shellWord(JSON.stringify(body))}`,
  ].join(' \\\n  ');
}

export function openaiClientCode(connection: Connection): string {
  return `new OpenAI({ baseURL: ${quoted(baseUrl(connection))}, apiKey: ${quoted(connection.key)} })`;
}

/** The messages SDKs append `/v1/messages` themselves. */
export function anthropicClientCode({ url, key }: Connection): string {
  return `new Anthropic({ baseURL: ${quoted(url)}, apiKey: ${quoted(key)} })`;
}

/** A literal that JavaScript and Python read alike. */
export function quoted(text: string): string {
  return /^[\w./:@ -]*$/.test(text) ? `'${text}'` : JSON.stringify(text);
}

/**
 * Variables of Claude Code. It appends `/v1/messages` itself, and sends the token as a bearer. Without
 * a model it asks for the names of its own; the second name is for its background tasks.
 */
export function claudeCodeVariables(
  connection: Connection,
  withModel: boolean,
): readonly (readonly [string, string])[] {
  const { url, key, model } = connection;
  return [
    ['ANTHROPIC_BASE_URL', url],
    ['ANTHROPIC_AUTH_TOKEN', key],
    ...(withModel
      ? ([
          ['ANTHROPIC_MODEL', model],
          ['ANTHROPIC_DEFAULT_HAIKU_MODEL', model],
        ] as const)
      : []),
  ];
}

/** `export NAME=value`, one a line. */
export function exports(variables: readonly (readonly [string, string])[]): string {
  return variables.map(([name, value]) => `export ${name}=${shellWord(value)}\n`).join('');
}
