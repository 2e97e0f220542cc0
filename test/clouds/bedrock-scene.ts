/** A gateway on Bedrock, played by a server that works each signature out anew (wire/bedrock.md). */
import assert from 'node:assert/strict';
import type { JsonObject } from '../../src/json/value.ts';
import { startTestGateway, type TestConfig, type TestGateway } from '../support/gateway.ts';
import { assertSigned, invokeChunk, type TestKeys } from '../upstream/aws.ts';
import { ScriptedUpstream, type Answer, type Received } from '../upstream/scripted.ts';
import { TokenServer } from '../upstream/token-server.ts';

export const region = 'eu-central-1';
export const claude = 'eu.anthropic.claude-sonnet-4-5-20250929-v1:0';

/** The keys that the config of each scene names. */
export const fixedKeys: TestKeys = {
  accessKeyId: 'AKIACANARY0123456789',
  secretAccessKey: 'aws-secret-canary/0123456789+abc',
};

export interface BedrockScene {
  readonly bedrock: ScriptedUpstream;
  readonly tokens: TokenServer;
  readonly gateway: TestGateway;
  stop(): Promise<void>;
}

interface Servers {
  readonly bedrock: string;
  readonly tokens: TokenServer;
}

export async function startBedrock(
  config: (servers: Servers) => TestConfig,
  env: (servers: Servers) => { readonly [name: string]: string } = () => ({}),
): Promise<BedrockScene> {
  const bedrock = await ScriptedUpstream.start();
  const tokens = await TokenServer.start();
  const servers = { bedrock: `http://127.0.0.1:${bedrock.port}`, tokens };
  const close = async (): Promise<void> => {
    await bedrock.close();
    await tokens.close();
  };
  const means = { env: env(servers), random: () => 0 };
  const gateway = await startTestGateway(config(servers), means).catch(async (error: unknown) => {
    await close();
    throw error;
  });
  return {
    bedrock,
    tokens,
    gateway,
    stop: async () => {
      await gateway.stop();
      await close();
    },
  };
}

/** The provider of most scenes. */
export function withKeys(bedrock: string): JsonObject {
  return {
    region,
    endpoint: bedrock,
    access_key_id: fixedKeys.accessKeyId,
    secret_access_key: fixedKeys.secretAccessKey,
  };
}

/** Where requests for a model come in. */
export function pathOf(model: string, action: string): string {
  const id = encodeURIComponent(model).replace(
    /[!'()*]/g,
    (each) => `%${each.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  return `/model/${id}/${action}`;
}

/** A messages document, as Claude answers by InvokeModel. */
export function claudeDocument(text = 'ok'): Answer {
  return {
    body: JSON.stringify({
      id: 'msg_bdrk_1',
      type: 'message',
      role: 'assistant',
      model: 'claude-sonnet-4-5-20250929',
      content: [{ type: 'text', text }],
      stop_reason: 'end_turn',
      stop_sequence: null,
      usage: { input_tokens: 8, output_tokens: 2 },
    }),
  };
}

const metrics = {
  inputTokenCount: 8,
  outputTokenCount: 2,
  invocationLatency: 990,
  firstByteLatency: 400,
};

/** The messages of a stream of Claude. */
export function claudeEvents(texts: readonly string[]): readonly JsonObject[] {
  const usage = { input_tokens: 8, output_tokens: 1 };
  return [
    {
      type: 'message_start',
      message: {
        id: 'msg_bdrk_2',
        type: 'message',
        role: 'assistant',
        model: 'claude-sonnet-4-5-20250929',
        content: [],
        stop_reason: null,
        stop_sequence: null,
        usage,
      },
    },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
    ...texts.map((text) => ({
      type: 'content_block_delta',
      index: 0,
      delta: { type: 'text_delta', text },
    })),
    { type: 'content_block_stop', index: 0 },
    {
      type: 'message_delta',
      delta: { stop_reason: 'end_turn', stop_sequence: null },
      usage: { output_tokens: 2 },
    },
    { type: 'message_stop', 'amazon-bedrock-invocationMetrics': metrics },
  ];
}

export function claudeChunks(texts: readonly string[]): readonly Buffer[] {
  return claudeEvents(texts).map(invokeChunk);
}

const ofHttp: ReadonlySet<string> = new Set(['host', 'content-length', 'connection']);
const ofSignature: ReadonlySet<string> = new Set([
  'authorization',
  'x-amz-date',
  'x-amz-content-sha256',
  'x-amz-security-token',
]);

export interface Wanted {
  readonly path: string;
  readonly body: JsonObject;
  readonly keys?: TestKeys;
}

/** Path, body, all headers and the signature are as wanted, and nothing else is there. */
export async function assertAsked(received: Received | undefined, wanted: Wanted): Promise<void> {
  assert.ok(received !== undefined, 'nothing was asked');
  assert.equal(`${received.method} ${received.path}`, `POST ${wanted.path}`);
  assert.deepEqual(received.json, wanted.body);
  const sent = received.headerLines
    .map(([name, value]) => [name.toLowerCase(), value] as const)
    .filter(([name]) => !ofHttp.has(name) && !ofSignature.has(name));
  assert.deepEqual(Object.fromEntries(sent), {
    'content-type': 'application/json',
    'accept-encoding': 'identity',
  });
  await assertSigned(received, wanted.keys ?? fixedKeys, { region });
}
