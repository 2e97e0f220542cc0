/** The agents: how each is connected with what `connect` prints, asked once, and how its tools are called. */
import assert from 'node:assert/strict';
import { dirname, join } from 'node:path';
import { connectCommand } from '../../src/cli/commands/connect.ts';
import { isObject, type JsonObject } from '../../src/json/value.ts';
import { tryParseObject } from '../../src/json/parse.ts';
import { clientKey } from '../support/keys.ts';
import { objectAt } from '../support/reading.ts';
import type { AgentCall, Wire } from './turn.ts';
import type { Box } from './box.ts';

export interface Connection {
  readonly url: string;
  readonly model: string;
}

export interface Agent {
  readonly name: string;
  /** The endpoint that it calls. */
  readonly dialect: Wire;
  /** Prepares the box; gives the command that asks a question, answers it and ends. */
  connect(box: Box, connection: Connection): Promise<Asker>;
  /** What it asks its makers for whatever its settings say; the box refuses all of it. */
  readonly tries?: readonly string[];
  /** It requests a title in parallel and cancels that call when its run ends. */
  readonly titles?: true;
  /** A call of its tool that reads a file. */
  readonly read: (id: string, path: string) => AgentCall;
  readonly write: (id: string, path: string, text: string) => AgentCall;
  readonly shell: (id: string, command: string) => AgentCall;
}

export interface Asker {
  /** The command line for a question; options go before it. */
  command(question: string, options?: readonly string[]): readonly string[];
  readonly env: { readonly [name: string]: string };
}

/** What `connect CLIENT` prints on its standard output. */
export async function connectLines(client: string, { url, model }: Connection): Promise<string> {
  return printed([client, '--base-url', url, '--key', clientKey, '--model', model], {});
}

/** Runs `connect` as the command line does. */
export async function printed(
  args: readonly string[],
  env: { readonly [name: string]: string },
): Promise<string> {
  let out = '';
  let err = '';
  const code = await connectCommand.run(args, {
    stdout: (text) => (out += text),
    stderr: (text) => (err += text),
    env,
    admin: () => Promise.reject(new Error('no gateway runs here')),
    gatewayUrl: () => Promise.resolve(undefined),
  });
  assert.equal(code, 0, err);
  return out;
}

/** What it does for itself only, off. */
export const quietClaudeCode = {
  CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
  // Ten retries of a failure that stays would take minutes.
  CLAUDE_CODE_MAX_RETRIES: '2',
} as const;
export const claudeCodeOptions = ['--allowedTools', 'Read,Write,Bash,Agent', '-p'] as const;

/** Claude Code, started by the lines that `connect claude-code` prints. */
export function claudeCode([program = '']: readonly string[]): Agent {
  return {
    name: 'claude-code',
    dialect: 'messages',
    connect: async (_box, connection) => {
      const lines = await connectLines('claude-code', connection);
      assert.match(lines, /^claude$/m);
      const script = lines.replace(/^claude$/m, 'exec claude "$@"');
      return {
        command: (question, options = []) =>
          ['sh', '-c', `PATH="${dirname(program)}:$PATH"\n${script}`, 'claude'].concat(
            [...options, ...claudeCodeOptions],
            question,
          ),
        env: quietClaudeCode,
      };
    },
    read: (id, path) => ({ id, name: 'Read', input: { file_path: path } }),
    write: (id, path, text) => ({ id, name: 'Write', input: { file_path: path, content: text } }),
    shell: (id, command) => ({ id, name: 'Bash', input: { command, description: 'Run it' } }),
  };
}

/** The same, connected by what `connect claude-code --write` puts into its settings. */
export function claudeCodeByFile(program: readonly string[]): Agent {
  return {
    ...claudeCode(program),
    connect: async (box, { url, model }) => {
      const args = ['claude-code', '--write', '--base-url', url, '--key', clientKey];
      await printed([...args, '--model', model], { HOME: box.home });
      return {
        command: (question, options = []) =>
          [...program, ...options, ...claudeCodeOptions].concat(question),
        env: quietClaudeCode,
      };
    },
  };
}

/**
 * What it does for itself only, off: it fetches a list of models, reads that of its makers, and installs a library for
 * plugins at each start in an empty home. The last compiler of its engine costs more than it gains in a few turns.
 */
export async function quietOpencode(box: Box): Promise<Asker['env']> {
  const catalog = join(box.home, 'models.json');
  await box.write(catalog, '{}');
  const folder = join(box.home, '.config', 'opencode');
  const installed = { packages: { '': { dependencies: { '@opencode-ai/plugin': '*' } } } };
  await box.write(join(folder, 'package-lock.json'), JSON.stringify(installed));
  await box.write(join(folder, 'node_modules', '.keep'), '');
  return {
    OPENCODE_DISABLE_MODELS_FETCH: '1',
    OPENCODE_MODELS_PATH: catalog,
    npm_config_offline: 'true',
    BUN_JSC_useFTLJIT: '0',
  };
}

const opencodePackages = {
  chat: '@ai-sdk/openai-compatible',
  messages: '@ai-sdk/anthropic',
  responses: '@ai-sdk/openai',
} as const;

/** opencode with the settings that `connect opencode` prints, or with another of its AI SDK packages. */
export function opencode(program: readonly string[], dialect: Wire): Agent {
  const npm = opencodePackages[dialect];
  return {
    name: `opencode (${npm})`,
    dialect,
    titles: true,
    connect: async (box, connection) => {
      const lines = await printed(
        ['opencode', '--base-url', connection.url, '--key', clientKey, '--model', connection.model],
        { HOME: box.home },
      );
      const [, path = '', text = ''] = /^In (.*):\n([^]*)$/.exec(lines) ?? [];
      const settings = tryParseObject(text) ?? {};
      await box.write(path, JSON.stringify(settled(settings, { npm, model: connection.model })));
      const env = await quietOpencode(box);
      return {
        command: (question, options = []) =>
          [...program, 'run', '--model', `model-gateway/${connection.model}`].concat(
            options,
            question,
          ),
        env,
      };
    },
    read: (id, path) => ({ id, name: 'read', input: { filePath: path } }),
    write: (id, path, text) => ({ id, name: 'write', input: { filePath: path, content: text } }),
    shell: (id, command) => ({ id, name: 'bash', input: { command, description: 'Run it' } }),
  };
}

/** With the package of the test, and with what the note of `connect` says about pictures. */
function settled(settings: JsonObject, { npm, model }: { npm: string; model: string }): JsonObject {
  const provider = objectAt(objectAt(settings, 'provider'), 'model-gateway');
  assert.ok(isObject(provider['options']), 'the printed settings name the provider');
  assert.ok(isObject(objectAt(provider, 'models')[model]), 'and the model');
  const modalities = { input: ['text', 'image'], output: ['text'] };
  const models = { [model]: { ...objectAt(objectAt(provider, 'models'), model), modalities } };
  return { ...settings, provider: { 'model-gateway': { ...provider, npm, models } } };
}

/** Telemetry, and requests to the model for its memory after a turn, are off. */
export async function quietQwenCode(box: Box): Promise<Asker['env']> {
  const quiet = {
    privacy: { usageStatisticsEnabled: false },
    memory: { enableManagedAutoMemory: false, enableManagedAutoDream: false },
  };
  await box.write(join(box.home, '.qwen', 'settings.json'), JSON.stringify(quiet));
  return {};
}

/** Qwen Code with the variables that `connect openai-sdk` prints. */
export function qwenCode(program: readonly string[]): Agent {
  return {
    name: 'qwen-code',
    dialect: 'chat',
    connect: async (box, connection) => {
      const env = await quietQwenCode(box);
      const lines = await connectLines('openai-sdk', connection);
      const variables = lines.split('\n').filter((line) => line.startsWith('export '));
      return {
        command: (question, options = []) =>
          ['sh', '-c', `${variables.join('\n')}\nexec "$@"`, 'sh', ...program].concat(
            ['--auth-type', 'openai', '--model', connection.model, '--yolo'],
            [...options, '-p', question],
          ),
        env,
      };
    },
    read: (id, path) => ({ id, name: 'read_file', input: { file_path: path } }),
    write: (id, path, text) => ({
      id,
      name: 'write_file',
      input: { file_path: path, content: text },
    }),
    shell: (id, command) => ({
      id,
      name: 'run_shell_command',
      input: { command, is_background: false },
    }),
  };
}

/** A client that `connect NAME --write` gives its settings, and what else it is started with. */
interface WrittenClient {
  readonly name: string;
  readonly program: readonly string[];
  readonly args: (model: string) => readonly string[];
  readonly env: { readonly [name: string]: string };
}

function byWrittenSettings({ name, program, args, env }: WrittenClient): Pick<Agent, 'connect'> {
  return {
    connect: async (box, { url, model }) => {
      const where = ['--base-url', url, '--key', clientKey, '--model', model];
      await printed([name, ...where, '--write'], { HOME: box.home });
      return {
        command: (question, options = []) =>
          [...program, ...args(model), ...options].concat(['-p', question]),
        env,
      };
    },
  };
}

/** pi by the settings that `connect pi --write` makes. */
export function pi(program: readonly string[]): Agent {
  return {
    name: 'pi',
    dialect: 'chat',
    ...byWrittenSettings({
      name: 'pi',
      program,
      args: (model) => ['--model', `model-gateway/${model}`],
      env: { PI_OFFLINE: '1', PI_SKIP_VERSION_CHECK: '1', PI_TELEMETRY: '0' },
    }),
    read: (id, path) => ({ id, name: 'read', input: { path } }),
    write: (id, path, text) => ({ id, name: 'write', input: { path, content: text } }),
    shell: (id, command) => ({ id, name: 'bash', input: { command } }),
  };
}

/** Continue's command line by the settings that `connect continue --write` makes. */
export function continueCli(program: readonly string[]): Agent {
  return {
    name: 'continue',
    dialect: 'chat',
    ...byWrittenSettings({
      name: 'continue',
      program,
      args: () => ['--auto'],
      env: { CONTINUE_TELEMETRY_ENABLED: '0' },
    }),
    read: (id, path) => ({ id, name: 'Read', input: { filepath: path } }),
    write: (id, path, text) => ({ id, name: 'Write', input: { filepath: path, content: text } }),
    shell: (id, command) => ({ id, name: 'Bash', input: { command } }),
  };
}
