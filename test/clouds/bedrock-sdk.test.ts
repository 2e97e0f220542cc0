/**
 * Anthropic's own client for Bedrock as the judge of the scripted server and of the gateway: what it sends is what the
 * gateway sends for the same call, and it reads the same as a client behind the gateway. It is loaded in this test only.
 */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import AnthropicBedrock from '@anthropic-ai/bedrock-sdk';
import type { JsonObject } from '../../src/json/value.ts';
import { clientKey } from '../support/keys.ts';
import {
  assertSigned,
  awsError,
  eventStream,
  exceptionMessage,
  invokeChunk,
} from '../upstream/aws.ts';
import type { Answer, Received } from '../upstream/scripted.ts';
import {
  claude,
  claudeChunks,
  claudeDocument,
  fixedKeys,
  pathOf,
  region,
  startBedrock,
  withKeys,
  type BedrockScene,
} from './bedrock-scene.ts';

let scene: BedrockScene;
let own: AnthropicBedrock;
let behind: Anthropic;
before(async () => {
  scene = await startBedrock(({ bedrock }) => ({ providers: { bedrock: withKeys(bedrock) } }));
  own = new AnthropicBedrock({
    awsAccessKey: fixedKeys.accessKeyId,
    awsSecretKey: fixedKeys.secretAccessKey,
    awsRegion: region,
    baseURL: `http://127.0.0.1:${scene.bedrock.port}`,
    maxRetries: 0,
  });
  behind = new Anthropic({ apiKey: clientKey, baseURL: scene.gateway.url, maxRetries: 0 });
});
after(() => scene.stop());

/** The client leaves the colon of the model as it is; AWS takes both. */
function scripted(action: string, answer: Answer): readonly (readonly Received[])[] {
  const paths = [decodeURIComponent(pathOf(claude, action)), pathOf(claude, action)];
  return paths.map((path) => scene.bedrock.script(path, answer).requests);
}

const invoke = 'invoke';
const invokeStream = 'invoke-with-response-stream';
const question = { max_tokens: 100, messages: [{ role: 'user', content: 'Hello' }] } as const;

/** The request of the SDK and the one of the gateway for the same call. */
async function bothRequests(
  body: Omit<Anthropic.MessageCreateParamsNonStreaming, 'model'>,
): Promise<readonly [sdk: Received, gateway: Received]> {
  const [ofSdk, ofGateway] = scripted(invoke, claudeDocument());
  await own.messages.create({ ...body, model: claude });
  await behind.messages.create({ ...body, model: `bedrock/${claude}` });
  const [sdk, gateway] = [ofSdk?.[0], ofGateway?.[0]];
  assert.ok(sdk !== undefined && gateway !== undefined);
  return [sdk, gateway];
}

/** A client's tools, its cache marks and a turn of calls. */
const long: Omit<Anthropic.MessageCreateParamsNonStreaming, 'model'> = {
  max_tokens: 2000,
  stop_sequences: ['END'],
  system: [{ type: 'text', text: 'Be short.', cache_control: { type: 'ephemeral' } }],
  tools: [{ name: 'w', description: 'Weather.', input_schema: { type: 'object' } }],
  tool_choice: { type: 'any' },
  messages: [
    { role: 'user', content: [{ type: 'text', text: 'Grüße 🌍' }] },
    {
      role: 'assistant',
      content: [{ type: 'tool_use', id: 'toolu_1', name: 'w', input: { x: 1 } }],
    },
    {
      role: 'user',
      content: [
        { type: 'tool_result', tool_use_id: 'toolu_1', is_error: true, content: 'no luck' },
      ],
    },
  ],
};

describe("Anthropic's own client for Bedrock", () => {
  for (const [name, body] of [
    ['a question', question],
    ['tools and marks', long],
  ] as const) {
    it(`asks for ${name} as the gateway does, with a signature that is right`, async () => {
      const [sdk, gateway] = await bothRequests({ ...body, messages: [...body.messages] });
      assert.equal(decodeURIComponent(sdk.path), decodeURIComponent(gateway.path));
      assert.deepEqual(sdk.json, gateway.json);
      for (const received of [sdk, gateway]) await assertSigned(received, fixedKeys, { region });
    });
  }

  const thought: readonly JsonObject[] = [
    {
      type: 'content_block_start',
      index: 0,
      content_block: { type: 'thinking', thinking: '', signature: '' },
    },
    { type: 'content_block_delta', index: 0, delta: { type: 'thinking_delta', thinking: 'Hm.' } },
    {
      type: 'content_block_delta',
      index: 0,
      delta: { type: 'signature_delta', signature: 'c2ln' },
    },
    { type: 'content_block_stop', index: 0 },
    {
      type: 'content_block_start',
      index: 1,
      content_block: { type: 'tool_use', id: 'toolu_1', name: 'w', input: {} },
    },
    {
      type: 'content_block_delta',
      index: 1,
      delta: { type: 'input_json_delta', partial_json: '{"place":' },
    },
    {
      type: 'content_block_delta',
      index: 1,
      delta: { type: 'input_json_delta', partial_json: '"Köln"}' },
    },
    { type: 'content_block_stop', index: 1 },
  ];
  const [start, , , , delta, stop] = claudeChunks(['']);
  const streams: readonly (readonly [string, Answer])[] = [
    ['text', eventStream(claudeChunks(['Hel', 'lo ', 'wörld 🌍']))],
    [
      'thoughts and a call',
      eventStream(
        [start, ...thought.map(invokeChunk), delta, stop].filter((each) => each !== undefined),
      ),
    ],
  ];
  for (const [name, answer] of streams) {
    it(`reads a stream of ${name} as a client behind the gateway does`, async () => {
      scripted(invokeStream, answer);
      const alone = await own.messages
        .stream({ ...question, messages: [...question.messages], model: claude })
        .finalMessage();
      const relayed = await behind.messages
        .stream({ ...question, messages: [...question.messages], model: `bedrock/${claude}` })
        .finalMessage();
      assert.ok(alone.content.length > 0);
      assert.deepEqual(told(relayed), told(alone));
    });
  }

  it('reads a document as a client behind the gateway does', async () => {
    scripted(invoke, claudeDocument('Grüße 🌍'));
    const alone = await own.messages.create({
      ...question,
      messages: [...question.messages],
      model: claude,
    });
    const relayed = await behind.messages.create({
      ...question,
      messages: [...question.messages],
      model: `bedrock/${claude}`,
    });
    assert.deepEqual(told(relayed), told(alone));
  });

  it('fails where a client behind the gateway fails', async () => {
    const throttled = { message: 'Too many tokens, please wait before trying again.' };
    scripted(invoke, awsError(429, 'ThrottlingException', throttled));
    const asked = { ...question, messages: [...question.messages] };
    await assert.rejects(own.messages.create({ ...asked, model: claude }), { status: 429 });
    await assert.rejects(behind.messages.create({ ...asked, model: `bedrock/${claude}` }), {
      status: 429,
    });
    const broken = eventStream([
      ...claudeChunks(['Hel']).slice(0, 3),
      exceptionMessage('throttlingException', throttled),
    ]);
    scripted(invokeStream, broken);
    await assert.rejects(own.messages.stream({ ...asked, model: claude }).finalMessage());
    await assert.rejects(
      behind.messages.stream({ ...asked, model: `bedrock/${claude}` }).finalMessage(),
    );
  });
});

/** All that a client acts upon. The gateway names the model as it was asked for. */
function told({ content, stop_reason, stop_sequence, usage, role }: Anthropic.Message): unknown {
  const { input_tokens, output_tokens } = usage;
  const blocks = JSON.parse(JSON.stringify(content)) as unknown;
  return { blocks, stop_reason, stop_sequence, role, input_tokens, output_tokens };
}
