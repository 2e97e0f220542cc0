/**
 * Google's own client as the judge of the scripted server: what it sends is taken there, and what the server sends it reads
 * as the gateway does. It is loaded in this test only.
 */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import {
  ApiError,
  FunctionCallingConfigMode,
  GoogleGenAI,
  ServiceTier,
  ThinkingLevel,
  Type,
  type GenerateContentResponse,
} from '@google/genai';
import { geminiTraits } from '../../src/core/traits.ts';
import { collect, type Generation } from '../../src/core/generation.ts';
import { geminiUpstream } from '../../src/dialects/gemini/upstream.ts';
import { tryParseObject } from '../../src/json/parse.ts';
import { geminiAnswer, assertTaken, streamOf, type GeminiAnswer } from '../upstream/gemini.ts';
import { type Answer } from '../upstream/scripted.ts';
import { callGemini, geminiKey, startGemini, type GeminiScene } from './gemini-scene.ts';

const model = 'gemini-3-made';
let scene: GeminiScene;
let client: GoogleGenAI;
before(async () => {
  scene = await startGemini();
  const baseUrl = `http://127.0.0.1:${scene.gemini.port}`;
  client = new GoogleGenAI({ apiKey: geminiKey, httpOptions: { baseUrl } });
});
after(() => scene.stop());

const answers: readonly GeminiAnswer[] = [
  {},
  { parts: [{ text: 'Grü' }, { text: 'ße 🌍' }], finishReason: 'MAX_TOKENS' },
  {
    parts: [
      { text: 'Hm.', thought: true },
      { text: 'Let me see.' },
      {
        functionCall: { name: 'w', args: { place: 'Köln', n: [1, null] } },
        thoughtSignature: 'c2ln',
      },
      { functionCall: { name: 'w', id: 'b' } },
    ],
    usage: {
      promptTokenCount: 9,
      cachedContentTokenCount: 4,
      candidatesTokenCount: 6,
      thoughtsTokenCount: 3,
      totalTokenCount: 18,
    },
  },
  { parts: [{ text: 'so far' }], finishReason: 'SAFETY' },
];

/** What both readers see, in one form. */
interface Read {
  readonly thoughts: string;
  readonly text: string;
  readonly calls: readonly unknown[];
  readonly finish: string | undefined;
  readonly usage: readonly (number | undefined)[];
}

function ofGateway(made: Generation | undefined): Read {
  const parts = made?.parts ?? [];
  const { freshInputTokens = 0, cacheReadTokens, outputTokens } = made?.usage ?? {};
  return {
    thoughts: parts.map((part) => (part.type === 'reasoning' ? part.text : '')).join(''),
    text: parts.map((part) => (part.type === 'text' ? part.text : '')).join(''),
    calls: parts.flatMap((part) =>
      part.type === 'tool-call'
        ? [[part.name, JSON.parse(part.argumentsJson), part.extras?.gemini?.['thoughtSignature']]]
        : [],
    ),
    finish: made?.finish.raw,
    usage: [freshInputTokens + (cacheReadTokens ?? 0), cacheReadTokens, outputTokens],
  };
}

/** Puts the pieces of the client together. */
function ofClient(pieces: readonly GenerateContentResponse[]): Read {
  const parts = pieces.flatMap(({ candidates }) => candidates?.[0]?.content?.parts ?? []);
  const usage = pieces.at(-1)?.usageMetadata;
  const { candidatesTokenCount = 0, thoughtsTokenCount = 0 } = usage ?? {};
  return {
    thoughts: parts.map(({ text = '', thought }) => (thought === true ? text : '')).join(''),
    text: parts.map(({ text = '', thought }) => (thought === true ? '' : text)).join(''),
    calls: parts.flatMap(({ functionCall: call, thoughtSignature }) =>
      call === undefined ? [] : [[call.name, call.args ?? {}, thoughtSignature]],
    ),
    finish: pieces.map(({ candidates }) => candidates?.[0]?.finishReason).findLast(Boolean),
    usage: [
      usage?.promptTokenCount,
      usage?.cachedContentTokenCount ?? 0,
      candidatesTokenCount + thoughtsTokenCount,
    ],
  };
}

function readStream({ body }: Answer): Read {
  const reader = geminiUpstream.streamReader(geminiTraits);
  const events = (body as readonly string[]).flatMap((frame) => {
    const data = frame.replace(/^data: /, '').trim();
    return reader.read({ bytes: Buffer.from(frame), event: undefined, data });
  });
  return ofGateway(collect([...events, ...reader.end()]));
}

describe("Google's own client", () => {
  for (const [i, answer] of answers.entries()) {
    it(`reads the stream ${i} as the gateway does`, async () => {
      const played = streamOf(answer);
      scene.gemini.script(model, played);
      const pieces: GenerateContentResponse[] = [];
      const stream = await client.models.generateContentStream({ model, contents: 'Hi' });
      for await (const piece of stream) pieces.push(piece);
      assert.deepEqual(ofClient(pieces), readStream(played));
    });

    it(`reads the document ${i} as the gateway does`, async () => {
      const played = geminiAnswer(answer);
      scene.gemini.script(model, played);
      const told = await client.models.generateContent({ model, contents: 'Hi' });
      const body = tryParseObject(String(played.body)) ?? {};
      assert.deepEqual(
        ofClient([told]),
        ofGateway(geminiUpstream.readResponse(body, geminiTraits)),
      );
    });
  }

  it('sends what the scripted server takes, to where the gateway sends it', async () => {
    const { requests } = scene.gemini.script(model, geminiAnswer());
    await client.models.generateContent({
      model,
      contents: [
        {
          role: 'user',
          parts: [{ text: 'Look.' }, { inlineData: { mimeType: 'image/png', data: 'cG5n' } }],
        },
        {
          role: 'model',
          parts: [
            { functionCall: { name: 'w', args: { x: 1 }, id: 'a' }, thoughtSignature: 'c2ln' },
          ],
        },
        {
          role: 'user',
          parts: [{ functionResponse: { name: 'w', response: { error: 'no luck' }, id: 'a' } }],
        },
      ],
      config: {
        systemInstruction: 'Be short.',
        tools: [
          {
            functionDeclarations: [
              {
                name: 'w',
                description: 'Weather.',
                parameters: { type: Type.OBJECT, properties: { x: { type: Type.INTEGER } } },
              },
            ],
          },
        ],
        toolConfig: { functionCallingConfig: { mode: FunctionCallingConfigMode.ANY } },
        maxOutputTokens: 9,
        temperature: 0.5,
        topK: 3,
        seed: 7,
        stopSequences: ['END'],
        thinkingConfig: { includeThoughts: true, thinkingLevel: ThinkingLevel.LOW },
        serviceTier: ServiceTier.FLEX,
      },
    });
    const [received] = requests;
    assert.ok(received !== undefined);
    assertTaken(received);
    assert.equal(received.header('x-goog-api-key'), geminiKey);
    const more = { service_tier: 'flex' };
    const { received: ours } = await callGemini(scene, { model, more }, geminiAnswer());
    assert.equal(received.path, ours[0]?.path);
    assert.equal(received.json['serviceTier'], ours[0]?.json['serviceTier']);
  });

  it('streams where the gateway does', async () => {
    const { requests } = scene.gemini.script(model, streamOf({}));
    const stream = await client.models.generateContentStream({ model, contents: 'Hi' });
    for await (const piece of stream) assert.equal(piece.text, 'ok');
    const { received } = await callGemini(scene, { model, stream: true }, streamOf({}));
    assert.equal(requests[0]?.path, received[0]?.path);
  });

  it('asks Vertex AI in express mode where the gateway does, and reads the stream alike', async () => {
    const name = 'gemini-2.5-flash';
    const path = `/v1/publishers/google/models/${name}:streamGenerateContent?alt=sse`;
    const [answer] = answers;
    assert.ok(answer !== undefined);
    const { requests } = scene.gemini.script(name, streamOf(answer));
    const vertex = new GoogleGenAI({
      vertexai: true,
      apiKey: geminiKey,
      apiVersion: 'v1',
      httpOptions: { baseUrl: `http://127.0.0.1:${scene.gemini.port}` },
    });
    const pieces: GenerateContentResponse[] = [];
    const stream = await vertex.models.generateContentStream({ model: name, contents: 'Hi' });
    for await (const piece of stream) pieces.push(piece);
    assert.deepEqual(ofClient(pieces), readStream(streamOf(answer)));
    assert.equal(requests[0]?.path, path);
    assert.equal(requests[0].header('x-goog-api-key'), geminiKey);
  });

  it('fails where a client behind the gateway fails', async () => {
    const error = { code: 429, message: 'Quota exceeded.', status: 'RESOURCE_EXHAUSTED' };
    const refused = { status: 429, body: JSON.stringify({ error }) };
    scene.gemini.script(model, refused);
    await assert.rejects(client.models.generateContent({ model, contents: 'Hi' }), (thrown) => {
      assert.ok(thrown instanceof ApiError);
      return thrown.status === 429;
    });
    const { reply } = await callGemini(scene, { model: `${model}-limited` }, refused);
    assert.equal(reply.status, 429);
  });
});
