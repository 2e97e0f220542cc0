/** What a client needs to reach the gateway, and how that is said for each kind of client. */
import { shellWord } from './shell-word.ts';

export interface Connection {
  /** `http://HOST:PORT`, without `/v1` and without a final slash. */
  readonly url: string;
  readonly key: string;
  /** The environment variable that holds the key: texts name it instead of the key. Absent = there is none. */
  readonly keyVariable?: string;
  /** As clients request it: `provider/model` or a name of `models:`. */
  readonly model: string;
  /** Tokens of prompt and answer together; absent = not known. */
  readonly window?: number;
  /** Tokens of an answer at most; absent = not known. */
  readonly maxOutput?: number;
}

/**
 * What a list of models says of one, as clients should see it: an answer may take half of the window at
 * most, since some lists have the window both times.
 */
export function answerLimits(
  window: unknown,
  output: unknown,
): Pick<Connection, 'window' | 'maxOutput'> {
  if (typeof window !== 'number') return typeof output === 'number' ? { maxOutput: output } : {};
  if (typeof output !== 'number') return { window };
  return { window, maxOutput: Math.min(output, Math.floor(window / 2)) };
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
  return curl(connection, '/chat/completions', [`authorization: Bearer ${key}`], body);
}

export function messagesCurl(connection: Connection): string {
  const { key, model } = connection;
  const body = { model, max_tokens: 256, messages: [{ role: 'user', content: question }] };
  return curl(
    connection,
    '/messages',
    [`x-api-key: ${key}`, 'anthropic-version: 2023-06-01'],
    body,
  );
}

function curl(
  connection: Connection,
  path: string,
  headers: readonly string[],
  body: object,
): string {
  const all = [...headers, 'content-type: application/json'];
  return [
    `curl ${shellWord(`${baseUrl(connection)}${path}`)}`,
    ...all.map((header) => `-H ${shellValue(header, connection)}`),
    `-d ${shellWord(JSON.stringify(body))}`,
  ].join(' \\\n  ');
}

/** One word for the shell; the key is the variable's where one holds it. */
export function shellValue(text: string, { key, keyVariable }: Connection): string {
  if (keyVariable === undefined || key === '' || !text.includes(key)) return shellWord(text);
  const around = text.split(key).map((part) => part.replace(/["\\$`]/g, '\\$&'));
  return `"${around.join(`$${keyVariable}`)}"`;
}

export function openaiClientCode(connection: Connection): string {
  return `new OpenAI({ baseURL: ${quoted(baseUrl(connection))}, apiKey: ${keyCode(connection)} })`;
}

/** The messages SDKs append `/v1/messages` themselves. */
export function anthropicClientCode(connection: Connection): string {
  return `new Anthropic({ baseURL: ${quoted(connection.url)}, apiKey: ${keyCode(connection)} })`;
}

/** The key as an expression of JavaScript. */
export function keyCode({ key, keyVariable }: Connection): string {
  return keyVariable === undefined ? quoted(key) : `process.env.${keyVariable}`;
}

/** The same of Python. */
export function pythonKey({ key, keyVariable }: Connection): string {
  return keyVariable === undefined ? quoted(key) : `os.environ['${keyVariable}']`;
}

/** A literal that JavaScript and Python read alike. */
export function quoted(text: string): string {
  return /^[\w./:@ -]*$/.test(text) ? `'${text}'` : JSON.stringify(text);
}

/** Name and value. */
export type Variable = readonly [string, string];

/**
 * Variables of Claude Code 2.1.329. It appends `/v1/messages` itself, and sends the token as a bearer. Without
 * a model it requests the names of its own. With one, every name that it may request stands for that model:
 * those of its four sizes, which its subagents use, and of its background tasks. The window holds for names
 * that it does not know.
 */
export function claudeCodeVariables(
  connection: Connection,
  withModel: boolean,
): readonly Variable[] {
  const { url, key, model, window, maxOutput } = connection;
  return [
    ['ANTHROPIC_BASE_URL', url],
    ['ANTHROPIC_AUTH_TOKEN', key],
    ...(withModel ? claudeCodeModels.map((name): Variable => [name, model]) : []),
    ...(withModel ? counted('CLAUDE_CODE_MAX_CONTEXT_TOKENS', window) : []),
    ...(withModel ? counted('CLAUDE_CODE_MAX_OUTPUT_TOKENS', maxOutput) : []),
  ];
}

/** Variables that an earlier model may have left behind, and that do not hold for this one. */
export function claudeCodeUnset(connection: Connection, withModel: boolean): readonly string[] {
  const set = new Set(claudeCodeVariables(connection, withModel).map(([name]) => name));
  const all = [
    ...claudeCodeModels,
    'CLAUDE_CODE_MAX_CONTEXT_TOKENS',
    'CLAUDE_CODE_MAX_OUTPUT_TOKENS',
  ];
  return withModel ? all.filter((name) => !set.has(name)) : [];
}

const claudeCodeModels = [
  'ANTHROPIC_MODEL',
  'ANTHROPIC_DEFAULT_OPUS_MODEL',
  'ANTHROPIC_DEFAULT_SONNET_MODEL',
  'ANTHROPIC_DEFAULT_HAIKU_MODEL',
  'ANTHROPIC_DEFAULT_FABLE_MODEL',
  // Older than the one for haiku and before it where both are set.
  'ANTHROPIC_SMALL_FAST_MODEL',
  'CLAUDE_CODE_SUBAGENT_MODEL',
] as const;

/** A variable with a number, where that is known. */
export function counted(name: string, tokens: number | undefined): readonly Variable[] {
  return tokens === undefined ? [] : [[name, String(tokens)]];
}

/** `export NAME=value`, one a line. */
export function exports(variables: readonly Variable[], connection: Connection): string {
  return variables
    .map(([name, value]) => `export ${name}=${shellValue(value, connection)}\n`)
    .join('');
}
