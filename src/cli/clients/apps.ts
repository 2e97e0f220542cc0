/** Editors, their extensions, and applications for the browser. */
import type { Client } from './client.ts';
import { provider, title, fileKey, known, onlyIfMissing, configHome, form } from './entries.ts';
import { baseUrl, counted } from '../connection.ts';

export const rooCode: Client = {
  name: 'roo-code',
  title: 'Roo Code',
  calls: 'chat',
  longPrompts: true,
  lines: ({ connection }) => `In Roo Code: Settings, Providers, API Provider "OpenAI Compatible":
${form([
  ['Base URL', baseUrl(connection)],
  ['API Key', connection.key],
  ['Model', connection.model],
  ...counted('Context Window Size', connection.window),
  ...counted('Max Output Tokens', connection.maxOutput),
])}`,
  unwritable: 'keeps its settings inside VS Code; fill in the form',
};

export const cursor: Client = {
  name: 'cursor',
  title: 'Cursor',
  calls: 'chat',
  lines: ({ connection }) => `In Cursor: Settings, Models, API Keys:
${form([
  ['OpenAI API Key', connection.key],
  ['Override OpenAI Base URL', baseUrl(connection)],
  ['Add a custom model', connection.model],
])}`,
  notes: () => [
    'Cursor calls from its own servers: the address must be reachable from the internet, over https://.',
  ],
  unwritable: 'keeps its settings in a database of its own; fill in the form',
};

export const zed: Client = {
  name: 'zed',
  title: 'Zed',
  calls: 'chat',
  // Its name for the key of a provider of that name; it takes none from its settings.
  variables: ({ connection }) => [['MODEL_GATEWAY_API_KEY', connection.key]],
  files: [
    {
      format: 'json',
      path: (env) => `${configHome(env)}/zed/settings.json`,
      edits: ({ connection }) => {
        const root = ['language_models', 'openai_compatible', provider];
        const model = [...root, 'available_models', { name: connection.model }];
        return [
          { path: [...root, 'api_url'], value: baseUrl(connection) },
          { path: [...model, 'max_tokens'], value: connection.window ?? zedWindow },
          ...known([...model, 'max_output_tokens'], connection.maxOutput),
        ];
      },
    },
  ],
  notes: ({ connection }) => [
    'Zed takes the key from MODEL_GATEWAY_API_KEY where it is started, or from its Agent Settings; not from this file.',
    ...(connection.window === undefined
      ? [`max_tokens is the context window, which Zed has to know; ${zedWindow} is a guess.`]
      : []),
  ],
};

const zedWindow = 128_000;

export const openWebUi: Client = {
  name: 'open-webui',
  title: 'Open WebUI',
  calls: 'chat',
  variables: ({ connection }) => [
    ['ENABLE_OPENAI_API', 'true'],
    ['OPENAI_API_BASE_URL', baseUrl(connection)],
    ['OPENAI_API_KEY', connection.key],
    ['DEFAULT_MODELS', connection.model],
  ],
  notes: () => [
    'They count at its first start only; later: Admin Settings, Connections. It lists the models that the key may use.',
    'In a container, 127.0.0.1 is the container: give the address of this machine with --base-url.',
  ],
};

export const libreChat: Client = {
  name: 'librechat',
  title: 'LibreChat',
  calls: 'chat',
  files: [
    {
      format: 'yaml',
      path: () => 'librechat.yaml',
      edits: ({ connection }) => {
        const entry = ['endpoints', 'custom', { name: title }];
        const { model } = connection;
        return [
          ...onlyIfMissing(['version'], '1.2.1'),
          { path: [...entry, 'apiKey'], ...fileKey(connection, (name) => `\${${name}}`) },
          { path: [...entry, 'baseURL'], value: baseUrl(connection) },
          { path: [...entry, 'models', 'default'], value: [model] },
          { path: [...entry, 'models', 'fetch'], value: true },
          { path: [...entry, 'titleConvo'], value: true },
          { path: [...entry, 'titleModel'], value: 'current_model' },
          { path: [...entry, 'modelDisplayLabel'], value: title },
        ];
      },
    },
  ],
  notes: () => [
    'librechat.yaml is next to its compose file: name it with --file.',
    'In a container, 127.0.0.1 is the container: give the address of this machine with --base-url.',
  ],
};
