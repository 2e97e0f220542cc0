/**
 * The client programs that `connect` knows (clients.md). Nothing here is Node's own: the dashboard's page Setup
 * shows the same texts.
 */
import type { Json } from '../core/conversation.ts';
import {
  anthropicClientCode,
  baseUrl,
  chatCurl,
  claudeCodeVariables,
  exports,
  messagesCurl,
  openaiClientCode,
  quoted,
  type Connection,
} from './connection.ts';

/** A value to set at a path of keys. */
export interface SettingsEdit {
  readonly path: readonly string[];
  readonly value: Json;
  /** The value is never printed. */
  readonly secret?: true;
}

export type Environment = { readonly [name: string]: string | undefined };

export interface Ask {
  readonly connection: Connection;
  /** False when nobody named a model and the connection holds the one that always answers. */
  readonly modelGiven: boolean;
  readonly env: Environment;
}

export interface Client {
  readonly name: string;
  /** What to print: ready to paste. */
  text(ask: Ask): string;
  /** What the user should know besides; printed after `text` and after `--write`. */
  notes?(ask: Ask): readonly string[];
  /** Absent where the client has no settings file to write. */
  readonly settings?: ClientSettings;
  /** Why `--write` cannot work. */
  readonly unwritable?: string;
}

export interface ClientSettings {
  path(env: Environment): string;
  edits(ask: Ask): readonly SettingsEdit[];
}

const claudeCode: Client = {
  name: 'claude-code',
  text: ({ connection, modelGiven }) =>
    `${exports(claudeCodeVariables(connection, modelGiven))}claude\n`,
  notes: ({ connection, modelGiven, env }) => [
    ...(isSet(env, 'ANTHROPIC_API_KEY')
      ? [
          'ANTHROPIC_API_KEY is set here: Claude Code would send both keys and the gateway refuses two different ones; unset it.',
        ]
      : []),
    ...(modelGiven
      ? [
          `Claude Code assumes a large context window for names that it does not know (${connection.model}).`,
        ]
      : [
          'Where no model is named, Claude Code asks for its own model names, which some provider must have.',
        ]),
  ],
  settings: {
    path: (env) => `${env['CLAUDE_CONFIG_DIR'] ?? `${home(env)}/.claude`}/settings.json`,
    edits: ({ connection, modelGiven }) =>
      claudeCodeVariables(connection, modelGiven).map(([name, value]) => ({
        path: ['env', name],
        value,
        ...(name === 'ANTHROPIC_AUTH_TOKEN' ? ({ secret: true } as const) : {}),
      })),
  },
};

const codex: Client = {
  name: 'codex',
  text: () =>
    `Codex speaks POST /v1/responses only, and this gateway does not have that endpoint yet:
Codex cannot be connected today.
`,
  unwritable: 'Codex needs POST /v1/responses, which is not there yet; nothing was written',
};

const provider = 'model-gateway';

const opencode: Client = {
  name: 'opencode',
  text: (ask) =>
    `In ${opencodePath(ask.env)}:\n${JSON.stringify(nested(opencodeEdits(ask)), null, 2)}\n`,
  notes: ({ connection }) => [
    `In opencode the model is called ${provider}/${connection.model}.`,
    'opencode sends it pictures once its entry has "modalities": {"input": ["text", "image"], "output": ["text"]}.',
  ],
  settings: { path: opencodePath, edits: opencodeEdits },
};

function opencodePath(env: Environment): string {
  const root = env['XDG_CONFIG_HOME'];
  const base = root === undefined || root === '' ? `${home(env)}/.config` : root;
  return `${base}/opencode/opencode.json`;
}

function opencodeEdits({ connection }: Ask): readonly SettingsEdit[] {
  const root = ['provider', provider];
  return [
    { path: ['$schema'], value: 'https://opencode.ai/config.json' },
    { path: [...root, 'npm'], value: '@ai-sdk/openai-compatible' },
    { path: [...root, 'name'], value: 'Model Gateway' },
    { path: [...root, 'options', 'baseURL'], value: baseUrl(connection) },
    { path: [...root, 'options', 'apiKey'], value: connection.key, secret: true },
    { path: [...root, 'models', connection.model, 'name'], value: connection.model },
  ];
}

/** The edits as the object that they make of an empty file. */
function nested(edits: readonly SettingsEdit[]): object {
  const root: Record<string, unknown> = {};
  for (const { path, value } of edits) {
    let at = root;
    path.forEach((key, i) => {
      if (i === path.length - 1) {
        at[key] = value;
        return;
      }
      const child: Record<string, unknown> = isRecord(at[key]) ? at[key] : {};
      at[key] = child;
      at = child;
    });
  }
  return root;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

const noFile = 'has no settings file; set the variables where it runs';

const openaiSdk: Client = {
  name: 'openai-sdk',
  text: ({ connection }) => `# both SDKs read these
${exports([
  ['OPENAI_BASE_URL', baseUrl(connection)],
  ['OPENAI_API_KEY', connection.key],
])}
// TypeScript
const client = ${openaiClientCode(connection)};
await client.chat.completions.create({
  model: ${quoted(connection.model)},
  messages: [{ role: 'user', content: 'Say hello.' }],
});

# Python
client = OpenAI(base_url=${quoted(baseUrl(connection))}, api_key=${quoted(connection.key)})
client.chat.completions.create(
    model=${quoted(connection.model)},
    messages=[{'role': 'user', 'content': 'Say hello.'}],
)
`,
  unwritable: noFile,
};

const anthropicSdk: Client = {
  name: 'anthropic-sdk',
  text: ({ connection }) => `# both SDKs read these; they append /v1/messages themselves
${exports([
  ['ANTHROPIC_BASE_URL', connection.url],
  ['ANTHROPIC_API_KEY', connection.key],
])}
// TypeScript
const client = ${anthropicClientCode(connection)};
await client.messages.create({
  model: ${quoted(connection.model)},
  max_tokens: 256,
  messages: [{ role: 'user', content: 'Say hello.' }],
});

# Python
client = Anthropic(base_url=${quoted(connection.url)}, api_key=${quoted(connection.key)})
client.messages.create(
    model=${quoted(connection.model)},
    max_tokens=256,
    messages=[{'role': 'user', 'content': 'Say hello.'}],
)
`,
  unwritable: noFile,
};

const curl: Client = {
  name: 'curl',
  text: ({ connection }) => `${chatCurl(connection)}\n\n${messagesCurl(connection)}\n`,
  unwritable: 'has no settings file; paste the lines',
};

export const clients: readonly Client[] = [
  claudeCode,
  codex,
  opencode,
  openaiSdk,
  anthropicSdk,
  curl,
];

/** `connect` sees to it that it is set. */
function home(env: Environment): string {
  return env['HOME'] ?? '~';
}

function isSet(env: Environment, name: string): boolean {
  return (env[name] ?? '') !== '';
}
