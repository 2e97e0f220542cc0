/** A gateway on Azure OpenAI and Foundry, played by a server that is strict about what it is asked (wire/azure.md). */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { JsonObject } from '../../src/json/value.ts';
import { tryParseObject } from '../../src/json/parse.ts';
import { whyOmitted } from '../recordings/recorded.ts';
import { startTestGateway, type TestConfig, type TestGateway } from '../support/gateway.ts';
import { ScriptedUpstream, type Answer, type Received } from '../upstream/scripted.ts';
import { TokenServer } from '../upstream/token-server.ts';

const folder = join(import.meta.dirname, '../../../shared/recordings');

/** The text of a recording: `azure/reported-401.json`. Tests that need one are left out where there is none. */
export function recording(name: string): string {
  return readFileSync(join(folder, name), 'utf8');
}

export const noRecordings = whyOmitted ?? false;

/** The key that the config of each scene names. */
export const azureKey = 'azure-key-canary-0123456789';

export interface AzureScene {
  readonly azure: ScriptedUpstream;
  readonly tokens: TokenServer;
  readonly gateway: TestGateway;
  /** Has the same config read again. */
  reload(): Promise<void>;
  stop(): Promise<void>;
}

interface Servers {
  /** Without paths. */
  readonly azure: string;
  readonly tokens: TokenServer;
}

export async function startAzure(
  config: (servers: Servers) => TestConfig,
  env: (servers: Servers) => { readonly [name: string]: string } = () => ({}),
): Promise<AzureScene> {
  const azure = await ScriptedUpstream.start();
  const tokens = await TokenServer.start();
  const servers = { azure: `http://127.0.0.1:${azure.port}`, tokens };
  const close = async (): Promise<void> => {
    await azure.close();
    await tokens.close();
  };
  const gateway = await startTestGateway(config(servers), {
    env: env(servers),
    random: () => 0,
  }).catch(async (error: unknown) => {
    await close();
    throw error;
  });
  return {
    azure,
    tokens,
    gateway,
    reload: () => gateway.reload(config(servers)),
    stop: async () => {
      await gateway.stop();
      await close();
    },
  };
}

/** A chat document as Azure sends it. */
export function chatDocument(model: string, text = 'ok', more: JsonObject = {}): Answer {
  const filter = { hate: { filtered: false, severity: 'safe' } };
  return {
    body: JSON.stringify({
      id: 'chatcmpl-1',
      object: 'chat.completion',
      created: 1_759_396_891,
      model,
      choices: [
        {
          index: 0,
          finish_reason: 'stop',
          message: { role: 'assistant', content: text, refusal: null },
          content_filter_results: filter,
        },
      ],
      prompt_filter_results: [{ prompt_index: 0, content_filter_results: filter }],
      usage: { prompt_tokens: 8, completion_tokens: 2, total_tokens: 10 },
      ...more,
    }),
  };
}

/** A messages document, as Claude on Foundry sends it. */
export function claudeDocument(model: string): Answer {
  return {
    body: JSON.stringify({
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      model,
      content: [{ type: 'text', text: 'ok' }],
      stop_reason: 'end_turn',
      stop_sequence: null,
      usage: { input_tokens: 8, output_tokens: 2 },
    }),
  };
}

export interface Wanted {
  readonly method?: 'GET';
  /** With its query. */
  readonly path: string;
  /** All headers besides those of HTTP itself. */
  readonly headers: { readonly [name: string]: string };
}

const ofHttp: ReadonlySet<string> = new Set(['host', 'content-length', 'connection']);

/** Nothing may be missing, and nothing may be there that was not asked for. */
export function assertAsked(received: Received | undefined, wanted: Wanted): void {
  assert.ok(received !== undefined, 'nothing was asked');
  assert.equal(`${received.method} ${received.path}`, `${wanted.method ?? 'POST'} ${wanted.path}`);
  const sent = received.headerLines
    .map(([name, value]) => [name.toLowerCase(), value] as const)
    .filter(([name]) => !ofHttp.has(name));
  assert.deepEqual(Object.fromEntries(sent), {
    'content-type': 'application/json',
    'accept-encoding': 'identity',
    ...wanted.headers,
  });
  assert.equal(sent.length, new Set(sent.map(([name]) => name)).size, 'a header came twice');
}

/** The objects of an event stream, `[DONE]` left out. */
export function eventsOf(text: string): readonly JsonObject[] {
  return text
    .split('\n')
    .filter((line) => line.startsWith('data: '))
    .map((line) => tryParseObject(line.slice(6)))
    .filter((event) => event !== undefined);
}
