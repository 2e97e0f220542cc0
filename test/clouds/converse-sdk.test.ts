/**
 * AWS's own client as the judge of the scripted server: what it sends is taken there, and what the server sends it reads as
 * the gateway does. It is loaded in this test only.
 */
import assert from 'node:assert/strict';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { after, before, describe, it } from 'node:test';
import {
  BedrockRuntimeClient,
  ConverseCommand,
  ConverseStreamCommand,
  InvokeModelWithResponseStreamCommand,
  type BedrockRuntimeClientConfig,
  type CitationsDelta,
  type ConverseStreamOutput,
} from '@aws-sdk/client-bedrock-runtime';
import type { Citation } from '../../src/core/conversation.ts';
import { GatewayError } from '../../src/core/errors.ts';
import { collect, type Generation } from '../../src/core/generation.ts';
import { converseTraits } from '../../src/core/traits.ts';
import { bedrockConverseUpstream } from '../../src/dialects/bedrock-converse/upstream.ts';
import { EventFrames } from '../../src/providers/clouds/aws/event-frames.ts';
import { tryParseObject } from '../../src/json/parse.ts';
import type { JsonObject } from '../../src/json/value.ts';
import { assertSigned, eventStream } from '../upstream/aws.ts';
import {
  assertTaken,
  converseAnswer,
  streamOf,
  type ConverseAnswer,
} from '../upstream/converse.ts';
import { ScriptedUpstream, type Answer } from '../upstream/scripted.ts';
import { claude, claudeChunks, claudeEvents, fixedKeys, pathOf, region } from './bedrock-scene.ts';

const model = 'eu.amazon.nova-pro-v1:0';

interface SentBySdk {
  readonly method: string;
  readonly hostname: string;
  readonly port?: number;
  readonly path: string;
  readonly headers: { readonly [name: string]: string };
  readonly body?: string | Uint8Array;
}

/** HTTP/1.1: the client's own handler speaks HTTP/2. */
function send(sent: SentBySdk): Promise<{ readonly response: object }> {
  return new Promise((resolve, reject) => {
    const { method, hostname, port, path, headers, body } = sent;
    const made = httpRequest({ method, hostname, port, path, headers }, (got: IncomingMessage) => {
      resolve({ response: { statusCode: got.statusCode, headers: got.headers, body: got } });
    });
    made.on('error', reject);
    made.end(body);
  });
}

let server: ScriptedUpstream;
let client: BedrockRuntimeClient;
before(async () => {
  server = await ScriptedUpstream.start();
  const requestHandler = { handle: send, metadata: { handlerProtocol: 'http/1.1' } };
  client = new BedrockRuntimeClient({
    region,
    endpoint: `http://127.0.0.1:${server.port}`,
    credentials: fixedKeys,
    maxAttempts: 1,
    requestHandler: requestHandler as unknown as NonNullable<
      BedrockRuntimeClientConfig['requestHandler']
    >,
  });
});
after(async () => {
  client.destroy();
  await server.close();
});

const answers: readonly ConverseAnswer[] = [
  {},
  { content: [{ text: 'Grüße 🌍' }], stopReason: 'max_tokens' },
  {
    content: [
      { reasoningContent: { reasoningText: { text: 'Hm.', signature: 'c2ln' } } },
      { text: 'Let me see.' },
      { toolUse: { toolUseId: 'a', name: 'w', input: { place: 'Köln', n: [1, null] } } },
      { toolUse: { toolUseId: 'b', name: 'w', input: {} } },
    ],
    stopReason: 'tool_use',
    usage: { inputTokens: 3, outputTokens: 9, totalTokens: 12, cacheReadInputTokens: 4 },
  },
  {
    content: [{ reasoningContent: { redactedContent: 'aGlkZGVu' } }, { text: 'ok' }],
    stopReason: 'guardrail_intervened',
  },
  {
    content: [
      { text: 'It says: ' },
      {
        citationsContent: {
          content: [{ text: 'once' }],
          citations: [
            {
              title: 'A',
              sourceContent: [{ text: 'Once ' }, { text: 'upon' }],
              location: { documentChar: { documentIndex: 0, start: 0, end: 9 } },
            },
            {
              title: 'B',
              sourceContent: [{ text: 'once' }],
              location: { documentPage: { documentIndex: 1, start: 3, end: 4 } },
            },
            {
              title: 'C',
              sourceContent: [{ text: 'again' }],
              location: { documentChunk: { documentIndex: 2, start: 5, end: 6 } },
            },
          ],
        },
      },
    ],
  },
];

/** A citation: its title, what it quotes, and its place in a document. */
type Cited = readonly [string, string, ...(string | number | undefined)[]];

function ofSdk({ title = '', sourceContent = [], location }: CitationsDelta): Cited {
  const { documentChar, documentPage, documentChunk } = location ?? {};
  const at = documentChar ?? documentPage ?? documentChunk;
  const unit = documentChar !== undefined ? 'char' : documentPage !== undefined ? 'page' : 'block';
  const quoted = sourceContent.map(({ text }) => text ?? '').join('');
  return [title, quoted, unit, at?.documentIndex, at?.start, at?.end];
}

function ofPart({ title = '', citedText = '', place }: Citation): Cited {
  return [title, citedText, place?.unit, place?.document, place?.start, place?.end];
}

/** What both readers see, in one form. */
interface Read {
  readonly content: readonly unknown[];
  readonly kind: string | undefined;
  readonly usage: readonly (number | undefined)[];
}

function ofGateway(made: Generation | undefined): Read {
  const content = (made?.parts ?? []).map((part) => {
    switch (part.type) {
      case 'text':
        return part.citations === undefined
          ? part.text
          : [part.text, ...part.citations.map(ofPart)];
      case 'tool-call':
        return [part.id, part.name, JSON.parse(part.argumentsJson) as unknown];
      case 'reasoning':
        return [part.text, part.signature ?? '', part.encrypted ?? ''];
      default:
        return part;
    }
  });
  const { freshInputTokens, outputTokens, cacheReadTokens } = made?.usage ?? {};
  return {
    content,
    kind: made?.finish.raw,
    usage: [freshInputTokens, outputTokens, cacheReadTokens],
  };
}

function base64(bytes: Uint8Array | undefined): string {
  return Buffer.from(bytes ?? []).toString('base64');
}

function usageOf(usage: JsonObject | undefined): Read['usage'] {
  const { inputTokens, outputTokens, cacheReadInputTokens = 0 } = usage ?? {};
  return [Number(inputTokens), Number(outputTokens), Number(cacheReadInputTokens)];
}

/** Puts the events of the client together. */
async function ofEvents(events: AsyncIterable<ConverseStreamOutput>): Promise<Read> {
  const blocks: {
    text: string;
    call?: readonly string[];
    sealed?: string[];
    cited?: Cited[];
  }[] = [];
  let kind: string | undefined;
  let usage: Read['usage'] = [];
  for await (const event of events) {
    const { contentBlockStart: start, contentBlockDelta: delta } = event;
    const tool = start?.start?.toolUse;
    if (tool !== undefined) {
      const call = [tool.toolUseId ?? '', tool.name ?? ''];
      blocks[start?.contentBlockIndex ?? 0] = { text: '', call };
    }
    if (delta?.delta !== undefined) {
      const block = (blocks[delta.contentBlockIndex ?? 0] ??= { text: '' });
      const { text, toolUse, reasoningContent: reasoning, citation } = delta.delta;
      if (citation !== undefined) (block.cited ??= []).push(ofSdk(citation));
      block.text += text ?? toolUse?.input ?? reasoning?.text ?? '';
      if (reasoning !== undefined) {
        const sealed = (block.sealed ??= ['', '']);
        sealed[0] += reasoning.signature ?? '';
        sealed[1] += base64(reasoning.redactedContent);
      }
    }
    kind ??= event.messageStop?.stopReason;
    if (event.metadata?.usage !== undefined) {
      usage = usageOf({ ...event.metadata.usage } as unknown as JsonObject);
    }
  }
  const content = blocks.map(({ text, call, sealed, cited }) => {
    if (cited !== undefined) return [text, ...cited];
    if (call !== undefined) return [...call, JSON.parse(text || '{}') as unknown];
    return sealed === undefined ? text : [text, ...sealed];
  });
  return { content, kind, usage };
}

/** The same by the gateway's own readers. */
function readStream({ body }: Answer): Read {
  const frames = new EventFrames((_, said) => new Error(said) as never);
  const reader = bedrockConverseUpstream.streamReader(converseTraits);
  const events = [Buffer.concat(body as readonly Buffer[])].flatMap((bytes) =>
    frames.push(bytes).flatMap((frame) => reader.read(frame)),
  );
  return ofGateway(collect([...events, ...reader.end()]));
}

describe("AWS's own client", () => {
  for (const [i, answer] of answers.entries()) {
    it(`reads the stream ${i} as the gateway does`, async () => {
      const played = streamOf(answer);
      server.script(pathOf(model, 'converse-stream'), played);
      const { stream } = await client.send(
        new ConverseStreamCommand({
          modelId: model,
          messages: [{ role: 'user', content: [{ text: 'Hi' }] }],
          inferenceConfig: { maxTokens: 9 },
        }),
      );
      assert.ok(stream !== undefined);
      assert.deepEqual(await ofEvents(stream), readStream(played));
    });

    it(`reads the document ${i} as the gateway does`, async () => {
      const played = converseAnswer(answer);
      server.script(pathOf(model, 'converse'), played);
      const told = await client.send(
        new ConverseCommand({
          modelId: model,
          messages: [{ role: 'user', content: [{ text: 'Hi' }] }],
          inferenceConfig: { maxTokens: 9 },
        }),
      );
      const content = (told.output?.message?.content ?? []).map((block) => {
        const { text, toolUse, reasoningContent: reasoning, citationsContent: cited } = block;
        if (cited !== undefined) {
          const pieces = (cited.content ?? []).map((piece) => piece.text ?? '');
          const sources = (cited.citations ?? []).map((each) => ofSdk(each as CitationsDelta));
          return [pieces.join(''), ...sources];
        }
        if (toolUse !== undefined) return [toolUse.toolUseId, toolUse.name, toolUse.input];
        if (reasoning === undefined) return text;
        const { text: thought = '', signature = '' } = reasoning.reasoningText ?? {};
        return [thought, signature, base64(reasoning.redactedContent)];
      });
      const body = tryParseObject(String(played.body)) ?? {};
      const made = bedrockConverseUpstream.readResponse(body, converseTraits);
      const usage = usageOf({ ...told.usage } as unknown as JsonObject);
      assert.deepEqual({ content, kind: told.stopReason, usage }, ofGateway(made));
    });
  }

  it('sends what the scripted server takes, with the signature that it works out', async () => {
    const arn = 'arn:aws:bedrock:eu-central-1:123456789012:application-inference-profile/a(b)';
    const { requests } = server.script(pathOf(arn, 'converse'), converseAnswer());
    await client.send(
      new ConverseCommand({
        modelId: arn,
        system: [{ text: 'Be short.' }, { cachePoint: { type: 'default' } }],
        messages: [
          {
            role: 'user',
            content: [
              { text: 'Look.' },
              { image: { format: 'png', source: { bytes: Buffer.from('png') } } },
              {
                document: {
                  format: 'pdf',
                  name: 'a b',
                  source: { bytes: Buffer.from('pdf') },
                  citations: { enabled: true },
                },
              },
            ],
          },
          {
            role: 'assistant',
            content: [
              { reasoningContent: { reasoningText: { text: 'Hm.', signature: 'c2ln' } } },
              { toolUse: { toolUseId: 'a', name: 'w', input: { x: 1 } } },
            ],
          },
          {
            role: 'user',
            content: [
              { toolResult: { toolUseId: 'a', status: 'error', content: [{ text: 'no luck' }] } },
            ],
          },
        ],
        toolConfig: {
          tools: [{ toolSpec: { name: 'w', inputSchema: { json: { type: 'object' } } } }],
          toolChoice: { any: {} },
        },
        inferenceConfig: { maxTokens: 9, temperature: 0.5, stopSequences: ['END'] },
        additionalModelRequestFields: { top_k: 3 },
        serviceTier: { type: 'flex' },
      }),
    );
    const [received] = requests;
    assert.ok(received !== undefined);
    assertTaken(received);
    const signed = received.headerLines.map(([name]) => name.toLowerCase());
    assert.ok(signed.includes('authorization'));
    await assertSigned(received, fixedKeys, { region });
  });

  it('reads the frames of InvokeModel as the gateway does', async () => {
    const path = pathOf(claude, 'invoke-with-response-stream');
    const chunks = claudeChunks(['Grü', 'ße 🌍']);
    const { requests } = server.script(path, eventStream(chunks));
    const body = JSON.stringify({ anthropic_version: 'bedrock-2023-05-31', max_tokens: 9 });
    const told = await client.send(
      new InvokeModelWithResponseStreamCommand({ modelId: claude, body }),
    );
    const events: unknown[] = [];
    for await (const { chunk } of told.body ?? []) {
      events.push(JSON.parse(Buffer.from(chunk?.bytes ?? []).toString('utf8')));
    }
    assert.deepEqual(events, claudeEvents(['Grü', 'ße 🌍']));
    const frames = new EventFrames(() => new GatewayError('upstream_invalid', 'No.'));
    const ofGateway = frames
      .push(Buffer.concat(chunks))
      .map(({ data }) => tryParseObject(data ?? ''));
    // The gateway leaves out the metrics that AWS adds to the last event.
    const plain = [...claudeEvents(['Grü', 'ße 🌍']).slice(0, -1), { type: 'message_stop' }];
    assert.deepEqual(ofGateway, plain);
    const [received] = requests;
    assert.ok(received !== undefined);
    await assertSigned(received, fixedKeys, { region });
  });
});
