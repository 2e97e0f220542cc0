/** Agents for a terminal. */
import type { Ask, Client, SettingsEdit } from './client.ts';
import {
  provider,
  title,
  fileKey,
  known,
  onlyIfMissing,
  home,
  configHome,
  claudeCodeNotes,
} from './entries.ts';
import {
  baseUrl,
  claudeCodeUnset,
  claudeCodeVariables,
  counted,
  shellValue,
  type Connection,
} from '../connection.ts';
import { shellWord } from '../shell-word.ts';

export const claudeCode: Client = {
  name: 'claude-code',
  title: 'Claude Code',
  calls: 'messages',
  longPrompts: true,
  ownModels: true,
  variables: ({ connection, modelGiven }) => claudeCodeVariables(connection, modelGiven),
  files: [
    {
      format: 'json',
      writtenOnly: true,
      path: (env) => `${env['CLAUDE_CONFIG_DIR'] ?? `${home(env)}/.claude`}/settings.json`,
      edits: ({ connection, modelGiven }) => [
        ...claudeCodeVariables(connection, modelGiven).map(([name, value]) => ({
          path: ['env', name],
          value,
          ...(name === 'ANTHROPIC_AUTH_TOKEN' ? ({ secret: true } as const) : {}),
        })),
        ...claudeCodeUnset(connection, modelGiven).map((name) => ({
          path: ['env', name],
          value: undefined,
        })),
      ],
    },
  ],
  lines: () => 'claude\n',
  notes: claudeCodeNotes,
};

export const codex: Client = {
  name: 'codex',
  title: 'Codex',
  calls: 'responses',
  longPrompts: true,
  lines: ({ connection }) => `In ~/.codex/config.toml:

model = ${JSON.stringify(connection.model)}
model_provider = "gateway"

[model_providers.gateway]
name = "gateway"
base_url = ${JSON.stringify(baseUrl(connection))}
env_key = "MODEL_GATEWAY_KEY"
wire_api = "responses"

In the shell:

export MODEL_GATEWAY_KEY=${shellValue(connection.key, connection)}
codex
`,
  unwritable: 'has settings in TOML, which are not edited; put the lines into ~/.codex/config.toml',
};

export const opencode: Client = {
  name: 'opencode',
  title: 'opencode',
  calls: 'chat',
  longPrompts: true,
  files: [
    {
      format: 'json',
      path: (env) => `${configHome(env)}/opencode/opencode.json`,
      edits: (ask) => opencodeEdits(ask, 'https://opencode.ai/config.json'),
    },
  ],
  notes: ({ connection }) => [
    `In opencode the model is called ${provider}/${connection.model}.`,
    'opencode sends it pictures once its entry has "modalities": {"input": ["text", "image"], "output": ["text"]}.',
  ],
};

/** Built on opencode; it reads the same members. */
export const kilo: Client = {
  name: 'kilo',
  title: 'Kilo Code CLI',
  calls: 'chat',
  longPrompts: true,
  files: [
    {
      format: 'json',
      path: (env) => `${configHome(env)}/kilo/kilo.json`,
      edits: (ask) => opencodeEdits(ask, 'https://app.kilo.ai/config.json'),
    },
  ],
  notes: ({ connection }) => [
    `In Kilo the model is called ${provider}/${connection.model}.`,
    'The extension for VS Code has the same fields under Settings, Providers, OpenAI Compatible.',
  ],
};

function opencodeEdits({ connection }: Ask, schema: string): readonly SettingsEdit[] {
  const root = ['provider', provider];
  const model = [...root, 'models', connection.model];
  const { window } = connection;
  return [
    { path: ['$schema'], value: schema },
    { path: [...root, 'npm'], value: '@ai-sdk/openai-compatible' },
    { path: [...root, 'name'], value: title },
    { path: [...root, 'options', 'baseURL'], value: baseUrl(connection) },
    { path: [...root, 'options', 'apiKey'], ...fileKey(connection, (name) => `{env:${name}}`) },
    { path: [...model, 'name'], value: connection.model },
    // It keeps room for a whole answer free of the window, and requests that many tokens.
    ...(window === undefined
      ? []
      : [
          { path: [...model, 'limit', 'context'], value: window },
          { path: [...model, 'limit', 'output'], value: answerRoom(connection, window) },
        ]),
  ];
}

const maxRoom = 32_000;

/** The share of a window for an answer whose maximum is unknown: a quarter. */
function answerRoom({ maxOutput }: Connection, window: number): number {
  return Math.min(maxOutput ?? maxRoom, Math.max(1, Math.floor(window / 4)));
}

export const pi: Client = {
  name: 'pi',
  title: 'pi',
  calls: 'chat',
  files: [
    {
      format: 'json',
      path: (env) => `${env['PI_CODING_AGENT_DIR'] ?? `${home(env)}/.pi/agent`}/models.json`,
      edits: ({ connection }) => {
        const root = ['providers', provider];
        const model = [...root, 'models', { id: connection.model }];
        return [
          { path: [...root, 'baseUrl'], value: baseUrl(connection) },
          { path: [...root, 'api'], value: 'openai-completions' },
          { path: [...root, 'apiKey'], ...fileKey(connection, (name) => `$${name}`) },
          { path: [...model, 'name'], value: connection.model },
          ...known([...model, 'contextWindow'], connection.window),
          ...known([...model, 'maxTokens'], connection.maxOutput),
        ];
      },
    },
  ],
  notes: ({ connection }) => [
    `Start it with: pi --model ${shellWord(`${provider}/${connection.model}`)}`,
    'pi sends it pictures once its entry has "input": ["text", "image"].',
  ],
};

export const qwenCode: Client = {
  name: 'qwen-code',
  title: 'Qwen Code',
  calls: 'chat',
  longPrompts: true,
  files: [
    {
      format: 'json',
      path: (env) => `${home(env)}/.qwen/settings.json`,
      edits: ({ connection }) => {
        const { key, keyVariable, model, window, maxOutput } = connection;
        const entry = ['modelProviders', 'openai', { id: model }];
        const variable = keyVariable ?? 'MODEL_GATEWAY_KEY';
        return [
          ...(keyVariable === undefined
            ? [{ path: ['env', variable], value: key, secret: true } as const]
            : []),
          { path: [...entry, 'name'], value: model },
          { path: [...entry, 'baseUrl'], value: baseUrl(connection) },
          { path: [...entry, 'envKey'], value: variable },
          ...known([...entry, 'generationConfig', 'contextWindowSize'], window),
          ...known([...entry, 'generationConfig', 'samplingParams', 'max_tokens'], maxOutput),
          { path: ['security', 'auth', 'selectedType'], value: 'openai' },
          { path: ['model', 'name'], value: model },
        ];
      },
    },
  ],
};

export const cline: Client = {
  name: 'cline',
  title: 'Cline CLI',
  calls: 'chat',
  longPrompts: true,
  lines: ({ connection }) =>
    `cline auth --provider openai-compatible --baseurl ${shellWord(baseUrl(connection))} --apikey ${shellValue(connection.key, connection)} --modelid ${shellWord(connection.model)}\n`,
  notes: ({ connection }) => [
    ...extensionFields(connection, 'Cline for VS Code: Settings, API Provider "OpenAI Compatible"'),
  ],
  unwritable: 'has its own command that writes its file: run the line',
};

/** What is filled into the form of an extension, in one sentence. */
function extensionFields(connection: Connection, place: string): readonly string[] {
  const { model, window } = connection;
  const limit = window === undefined ? '' : `, Context Window ${window}`;
  return [`${place}: Base URL ${baseUrl(connection)}, Model ID ${model}${limit}.`];
}

export const continueDev: Client = {
  name: 'continue',
  title: 'Continue (CLI and extensions)',
  calls: 'chat',
  files: [
    {
      format: 'yaml',
      path: (env) => `${env['CONTINUE_GLOBAL_DIR'] ?? `${home(env)}/.continue`}/config.yaml`,
      edits: ({ connection }) => {
        const { key, model, window, maxOutput } = connection;
        const entry = ['models', { name: `${title} ${model}` }];
        return [
          ...onlyIfMissing(['name'], 'Local Config'),
          ...onlyIfMissing(['version'], '1.0.0'),
          ...onlyIfMissing(['schema'], 'v1'),
          { path: [...entry, 'provider'], value: 'openai' },
          { path: [...entry, 'model'], value: model },
          { path: [...entry, 'apiBase'], value: baseUrl(connection) },
          { path: [...entry, 'apiKey'], value: key, secret: true },
          { path: [...entry, 'roles'], value: ['chat', 'edit', 'apply'] },
          { path: [...entry, 'capabilities'], value: ['tool_use'] },
          ...known([...entry, 'contextLength'], window),
          ...known([...entry, 'defaultCompletionOptions', 'maxTokens'], maxOutput),
        ];
      },
    },
  ],
  notes: () => ['Continue sends it images once its entry lists "image_input" next to "tool_use".'],
};

export const crush: Client = {
  name: 'crush',
  title: 'Crush',
  calls: 'chat',
  longPrompts: true,
  files: [
    {
      format: 'json',
      path: (env) => `${configHome(env)}/crush/crush.json`,
      edits: ({ connection }) => {
        const root = ['providers', provider];
        const model = [...root, 'models', { id: connection.model }];
        return [
          { path: ['$schema'], value: 'https://charm.land/crush.json' },
          { path: [...root, 'name'], value: title },
          { path: [...root, 'type'], value: 'openai-compat' },
          { path: [...root, 'base_url'], value: baseUrl(connection) },
          { path: [...root, 'api_key'], ...fileKey(connection, (name) => `$${name}`) },
          { path: [...model, 'name'], value: connection.model },
          ...known([...model, 'context_window'], connection.window),
          ...known([...model, 'default_max_tokens'], connection.maxOutput),
        ];
      },
    },
  ],
};

export const goose: Client = {
  name: 'goose',
  title: 'goose',
  calls: 'chat',
  variables: ({ connection }) => [
    ['GOOSE_PROVIDER', 'openai'],
    ['GOOSE_MODEL', connection.model],
    ['OPENAI_HOST', connection.url],
    ['OPENAI_BASE_PATH', 'v1/chat/completions'],
    ['OPENAI_API_KEY', connection.key],
    ...counted('GOOSE_CONTEXT_LIMIT', connection.window),
    ...counted('GOOSE_MAX_TOKENS', connection.maxOutput),
  ],
  lines: () => 'goose session\n',
  unwritable: 'takes no key from its settings file; set the variables where it runs',
};

export const grokCli: Client = {
  name: 'grok-cli',
  title: 'Grok CLI (@vibe-kit/grok-cli)',
  calls: 'chat',
  variables: ({ connection }) => [
    ['GROK_BASE_URL', baseUrl(connection)],
    ['GROK_API_KEY', connection.key],
    ['GROK_MODEL', connection.model],
    ...counted('GROK_MAX_TOKENS', connection.maxOutput),
  ],
  lines: () => 'grok\n',
  unwritable: 'takes the model of each project before that of its settings file; set the variables',
};

export const claudeCodeRouter: Client = {
  name: 'claude-code-router',
  title: 'Claude Code Router',
  calls: 'chat',
  longPrompts: true,
  files: [
    {
      format: 'json',
      path: (env) => `${home(env)}/.claude-code-router/config.json`,
      edits: ({ connection }) => {
        const entry = ['Providers', { name: provider }];
        return [
          { path: [...entry, 'api_base_url'], value: `${baseUrl(connection)}/chat/completions` },
          { path: [...entry, 'api_key'], ...fileKey(connection, (name) => `$${name}`) },
          { path: [...entry, 'models'], value: [connection.model] },
          { path: ['Router', 'default'], value: `${provider},${connection.model}` },
        ];
      },
    },
  ],
  notes: () => [
    'The gateway answers /v1/messages itself: Claude Code needs no router for it (connect claude-code).',
    'After a change: ccr restart',
  ],
};

export const aider: Client = {
  name: 'aider',
  title: 'Aider',
  calls: 'chat',
  files: [
    {
      format: 'yaml',
      path: (env) => `${home(env)}/.aider.conf.yml`,
      edits: ({ connection }) => [
        { path: ['openai-api-base'], value: baseUrl(connection) },
        { path: ['openai-api-key'], value: connection.key, secret: true },
        { path: ['model'], value: `openai/${connection.model}` },
        { path: ['weak-model'], value: `openai/${connection.model}` },
      ],
    },
    {
      format: 'json',
      path: (env) => `${home(env)}/.aider.model.metadata.json`,
      edits: ({ connection }) => {
        const entry = [`openai/${connection.model}`];
        return [
          ...known([...entry, 'max_input_tokens'], connection.window),
          ...known([...entry, 'max_output_tokens'], connection.maxOutput),
          { path: [...entry, 'litellm_provider'], value: 'openai' },
          { path: [...entry, 'mode'], value: 'chat' },
        ];
      },
    },
  ],
};

export const llm: Client = {
  name: 'llm',
  title: 'llm (command line)',
  calls: 'chat',
  files: [
    {
      format: 'yaml',
      path: (env) =>
        `${env['LLM_USER_PATH'] ?? `${configHome(env)}/io.datasette.llm`}/extra-openai-models.yaml`,
      edits: ({ connection }) => {
        const entry = [{ model_id: connection.model }];
        return [
          { path: [...entry, 'model_name'], value: connection.model },
          { path: [...entry, 'api_base'], value: baseUrl(connection) },
          { path: [...entry, 'api_key_name'], value: provider },
          { path: [...entry, 'supports_tools'], value: true },
        ];
      },
    },
  ],
  lines: ({ connection }) =>
    `llm keys set ${provider} --value ${shellValue(connection.key, connection)}
llm -m ${shellWord(connection.model)} 'Say hello.'
`,
  notes: () => [
    'Where that folder is elsewhere, as on macOS: dirname "$(llm logs path)"; give the file with --file.',
  ],
};
