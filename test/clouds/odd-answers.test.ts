/** Odd things that clouds answer: cut frames, errors with status 200, equal ids of calls, files in results (issue 22). */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { converseTraits, messagesTraits } from '../../src/core/traits.ts';
import type { UpstreamDialect } from '../../src/core/dialect.ts';
import type { GenerationEvent } from '../../src/core/generation.ts';
import { anthropicMessagesUpstream } from '../../src/dialects/anthropic-messages/upstream.ts';
import { bedrockConverseUpstream } from '../../src/dialects/bedrock-converse/upstream.ts';
import { readAwsError } from '../../src/providers/clouds/aws/errors.ts';
import { EventFrames } from '../../src/providers/clouds/aws/event-frames.ts';
import { isObject, type JsonObject } from '../../src/json/value.ts';
import { clientDialects } from '../support/dialects.ts';
import { startTestGateway, type TestGateway } from '../support/gateway.ts';
import { send, type Reply } from '../support/http.ts';
import { listAt, objectAt, readDocument, textAt } from '../support/reading.ts';
import { endpointOf, requestBody, toolsOf } from '../support/requests.ts';
import { converseAnswer, converseFrame } from '../upstream/converse.ts';
import { geminiAnswer, streamOf } from '../upstream/gemini.ts';
import { ScriptedUpstream, type Received, type Scripted } from '../upstream/scripted.ts';
import { claudeChunks } from './bedrock-scene.ts';

const google = '/v1/projects/acme-ml/locations/global/publishers';
const claude = 'anthropic.claude-sonnet-4-5-20250929-v1:0';
const nova = 'amazon.nova-pro-v1:0';
const at = (model: string, action: string): string =>
  `/model/${encodeURIComponent(model)}/${action}`;

let upstream: ScriptedUpstream;
let gateway: TestGateway;
before(async () => {
  upstream = await ScriptedUpstream.start();
  const base = `http://127.0.0.1:${upstream.port}`;
  const bedrock = {
    like: 'bedrock',
    region: 'eu-central-1',
    endpoint: base,
    api_key: 'bedrock-key',
  };
  gateway = await startTestGateway(
    {
      providers: {
        bedrock,
        converse: { ...bedrock, door: 'converse' },
        gemini: { base_url: `${base}/v1beta`, api_key: 'gemini-key' },
        vertex: { base_url: base, project: 'acme-ml', auth: 'metadata' },
        azure: { base_url: base, api_key: 'azure-key' },
      },
    },
    { env: { GCE_METADATA_HOST: `127.0.0.1:${upstream.port}` }, random: () => 0 },
  );
  upstream.script(
    '/computeMetadata/v1/instance/service-accounts/default/token?scopes=https://www.googleapis.com/auth/cloud-platform',
    {
      headers: { 'metadata-flavor': 'Google' },
      body: JSON.stringify({ access_token: 'machine-token', expires_in: 3600 }),
    },
  );
});
after(async () => {
  await gateway.stop();
  await upstream.close();
});

type Client = (typeof clientDialects)[number];

interface Asked {
  readonly reply: Reply;
  readonly received: readonly Received[];
}

async function ask(
  {
    model,
    path,
    dialect = 'chat',
    stream = false,
    more = {},
  }: {
    readonly model: string;
    readonly path: string;
    readonly dialect?: Client;
    readonly stream?: boolean;
    readonly more?: JsonObject;
  },
  ...answers: readonly Scripted[]
): Promise<Asked> {
  const { requests } = upstream.script(path, ...answers);
  const body = requestBody(dialect, { model, stream, more });
  const reply = await send(`${gateway.url}${endpointOf[dialect]}`, body);
  return { reply, received: requests };
}

describe('a stream that ends anywhere', () => {
  const converseEvents: readonly JsonObject[] = [
    { messageStart: { role: 'assistant' } },
    { contentBlockDelta: { contentBlockIndex: 0, delta: { text: 'Let me see: ü.' } } },
    { contentBlockStop: { contentBlockIndex: 0 } },
    {
      contentBlockStart: {
        contentBlockIndex: 1,
        start: { toolUse: { toolUseId: 't1', name: 'w' } },
      },
    },
    { contentBlockDelta: { contentBlockIndex: 1, delta: { toolUse: { input: '{"a":' } } } },
    { contentBlockDelta: { contentBlockIndex: 1, delta: { toolUse: { input: '1}' } } } },
    { contentBlockStop: { contentBlockIndex: 1 } },
    { messageStop: { stopReason: 'tool_use' } },
    { metadata: { usage: { inputTokens: 12, outputTokens: 5, totalTokens: 17 } } },
  ];
  const streams: readonly (readonly [string, UpstreamDialect, readonly Buffer[], number])[] = [
    // The number of events up to the one that says why the answer ended.
    ['Converse', bedrockConverseUpstream, converseEvents.map(converseFrame), 8],
    ['InvokeModel', anthropicMessagesUpstream, claudeChunks(['Good ', 'day.']), 6],
  ];
  for (const [name, dialect, frames, ending] of streams) {
    it(`${name}: at no byte before its ending is it told as finished`, () => {
      const whole = Buffer.concat(frames);
      const enough = Buffer.concat(frames.slice(0, ending)).length;
      for (let cut = 0; cut <= whole.length; cut++) {
        const splitter = new EventFrames((type, body) =>
          readAwsError({ status: 200, type, body }, dialect.readError),
        );
        const traits = dialect === bedrockConverseUpstream ? converseTraits : messagesTraits;
        const reader = dialect.streamReader(traits);
        const events: GenerationEvent[] = splitter.push(whole.subarray(0, cut)).flatMap((frame) => {
          assert.equal(frame.failure, undefined);
          return [...reader.read(frame)];
        });
        events.push(...reader.end());
        const types = events.map(({ type }) => type);
        const isWhole = cut >= enough;
        assert.equal(types.includes('finish'), isWhole, `cut at ${cut} of ${whole.length}`);
        assert.equal(types.includes('error'), !isWhole, `cut at ${cut} of ${whole.length}`);
      }
    });
  }
});

describe('an answer with status 200 that is none', () => {
  const geminiPath = '/v1beta/models/gemini-2.5-pro:generateContent';
  const bodies: readonly (readonly [string, string, string, string])[] = [
    [
      'an unknown operation',
      `converse/${nova}`,
      at(nova, 'converse'),
      '{"Output":{"__type":"com.amazon.coral.service#UnknownOperationException"},"Version":"1.0"}',
    ],
    ['a message', `converse/${nova}`, at(nova, 'converse'), '{"message":"Too many requests"}'],
    ['an empty object', `converse/${nova}`, at(nova, 'converse'), '{}'],
    [
      'an answer without a reason',
      `converse/${nova}`,
      at(nova, 'converse'),
      '{"output":{"message":{"role":"assistant","content":[{"text":"half"}]}}}',
    ],
    [
      'a message',
      `bedrock/${claude}`,
      at(claude, 'invoke'),
      '{"message":"The model returned the following errors"}',
    ],
    [
      "Anthropic's error",
      `bedrock/${claude}`,
      at(claude, 'invoke'),
      '{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}',
    ],
    ['a page', `bedrock/${claude}`, at(claude, 'invoke'), '<html>Sign in</html>'],
    [
      'no candidates',
      'gemini/gemini-2.5-pro',
      geminiPath,
      '{"candidates":[],"usageMetadata":{"promptTokenCount":3}}',
    ],
    [
      'a candidate without content',
      'gemini/gemini-2.5-pro',
      geminiPath,
      '{"candidates":[{"index":0}]}',
    ],
    [
      'an error',
      'gemini/gemini-2.5-pro',
      geminiPath,
      '{"error":{"code":503,"status":"UNAVAILABLE","message":"The model is overloaded."}}',
    ],
    [
      'a list of an error',
      'gemini/gemini-2.5-pro',
      geminiPath,
      '[{"error":{"code":400,"status":"INVALID_ARGUMENT","message":"no"}}]',
    ],
    [
      "Google's error",
      'vertex/claude-opus-4-6',
      `${google}/anthropic/models/claude-opus-4-6:rawPredict`,
      '{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"Quota exceeded"}}',
    ],
    [
      'an error',
      'azure/fast',
      '/openai/v1/chat/completions',
      '{"error":{"code":"429","message":"Too many requests"}}',
    ],
    [
      "the layer's in front",
      'azure/fast',
      '/openai/v1/chat/completions',
      '{"statusCode":401,"message":"Unauthorized."}',
    ],
  ];
  for (const [name, model, path, body] of bodies) {
    it(`${model}: ${name} is an error for each client`, async () => {
      for (const dialect of clientDialects) {
        const { reply } = await ask({ model, path, dialect }, { body });
        assert.ok(reply.status >= 400, `${dialect}: ${reply.text}`);
        assert.ok(isObject(reply.json['error']), reply.text);
      }
    });
  }
});

describe('calls that cannot be told apart', () => {
  const call = (toolUseId: string, a: number): JsonObject => ({
    toolUse: { toolUseId, name: 'w', input: { a } },
  });
  const gemini = (a: number): JsonObject => ({ functionCall: { name: 'w', args: { a } } });
  const answers: readonly (readonly [string, string, string, Scripted])[] = [
    [
      'the same id twice',
      `converse/${nova}`,
      at(nova, 'converse'),
      converseAnswer({ stopReason: 'tool_use', content: [call('t1', 1), call('t1', 2)] }),
    ],
    [
      'no ids',
      `converse/${nova}`,
      at(nova, 'converse'),
      converseAnswer({ stopReason: 'tool_use', content: [call('', 1), call('', 2)] }),
    ],
    [
      'no ids',
      'gemini/gemini-2.5-pro',
      '/v1beta/models/gemini-2.5-pro:generateContent',
      geminiAnswer({ parts: [gemini(1), gemini(2)] }),
    ],
    [
      'no ids',
      'vertex/gemini-3-pro-preview',
      `${google}/google/models/gemini-3-pro-preview:generateContent`,
      geminiAnswer({ parts: [gemini(1), gemini(2)] }),
    ],
  ];
  for (const [name, model, path, answer] of answers) {
    for (const dialect of clientDialects) {
      it(`${model}: two of one name with ${name} are two calls for a ${dialect} client`, async () => {
        const { reply } = await ask({ model, path, dialect, more: toolsOf(dialect) }, answer);
        assert.equal(reply.status, 200, reply.text);
        const { calls } = readDocument(dialect, reply.json);
        assert.equal(calls.length, 2);
        assert.equal(new Set(calls.map(({ id }) => id)).size, 2, reply.text);
        assert.ok(calls.every(({ id }) => id !== ''));
      });
    }
  }

  it('their results go back in the order of the calls, however the client orders them', async () => {
    const model = 'vertex/gemini-3-pro-preview';
    const path = `${google}/google/models/gemini-3-pro-preview:generateContent`;
    const first = await ask(
      { model, path, more: toolsOf('chat') },
      geminiAnswer({ parts: [gemini(1), gemini(2)] }),
    );
    const [choice] = listAt(first.reply.json, 'choices');
    const message = objectAt(choice ?? {}, 'message');
    const ids = listAt(message, 'tool_calls').map((each) => textAt(each, 'id'));
    const results = ids.map((id, i) => ({
      role: 'tool',
      tool_call_id: id,
      content: `of ${i + 1}`,
    }));
    const messages = [{ role: 'user', content: 'Hello' }, message, ...results.toReversed()];
    const more = { ...toolsOf('chat'), messages };
    const { reply, received } = await ask({ model, path, more }, geminiAnswer({}));
    assert.equal(reply.status, 200, reply.text);
    const contents = listAt(received[0]?.json ?? {}, 'contents');
    const responses = listAt(contents.at(-1) ?? {}, 'parts').map((part) =>
      textAt(objectAt(objectAt(part, 'functionResponse'), 'response'), 'output'),
    );
    assert.deepEqual(responses, ['of 1', 'of 2']);
  });
});

describe('a PDF in the result of a call', () => {
  const pdf = Buffer.from('%PDF-1.4 made').toString('base64');
  const history = {
    tools: [{ name: 'w', input_schema: { type: 'object' } }],
    messages: [
      { role: 'user', content: 'Read it.' },
      { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'w', input: {} }] },
      {
        role: 'user',
        content: [
          {
            type: 'tool_result',
            tool_use_id: 'toolu_1',
            content: [
              {
                type: 'document',
                source: { type: 'base64', media_type: 'application/pdf', data: pdf },
              },
            ],
          },
        ],
      },
    ],
  };
  const llama = 'us.meta.llama3-3-70b-instruct-v1:0';
  const at3 = '/v1beta/models/gemini-3-pro-preview:generateContent';
  const at25 = '/v1beta/models/gemini-2.5-pro:generateContent';
  const last = (sent: JsonObject, list: string, parts: string): readonly JsonObject[] =>
    listAt(listAt(sent, list).at(-1) ?? {}, parts);

  it('Claude by Converse: in the result', async () => {
    const path = at(claude, 'converse');
    const { received } = await ask(
      { model: `converse/${claude}`, path, dialect: 'messages', more: history },
      converseAnswer(),
    );
    const [block] = last(received[0]?.json ?? {}, 'messages', 'content');
    assert.deepEqual(listAt(objectAt(block ?? {}, 'toolResult'), 'content'), [
      { document: { format: 'pdf', name: 'document 1', source: { bytes: pdf } } },
    ]);
  });

  it('another model of Bedrock: behind the result, with a text beside it and a note', async () => {
    const path = at(llama, 'converse');
    const { reply, received } = await ask(
      { model: `converse/${llama}`, path, dialect: 'messages', more: history },
      converseAnswer(),
    );
    assert.equal(reply.status, 200, reply.text);
    const [result, label, file] = last(received[0]?.json ?? {}, 'messages', 'content');
    assert.deepEqual(listAt(objectAt(result ?? {}, 'toolResult'), 'content'), [
      { text: '[file 1 attached below]' },
    ]);
    assert.match(textAt(label ?? {}, 'text'), /^File 1 from tool result toolu_1:$/);
    assert.ok(isObject(file?.['document']));
    assert.match(String(reply.headers['x-gateway-notes']), /shown behind the result/);
  });

  it('Gemini 3: in the result; before it behind the result', async () => {
    const of3 = await ask(
      { model: 'gemini/gemini-3-pro-preview', path: at3, dialect: 'messages', more: history },
      geminiAnswer({}),
    );
    const [result] = last(of3.received[0]?.json ?? {}, 'contents', 'parts');
    assert.deepEqual(listAt(objectAt(result ?? {}, 'functionResponse'), 'parts'), [
      { inlineData: { mimeType: 'application/pdf', data: pdf } },
    ]);
    const of25 = await ask(
      { model: 'gemini/gemini-2.5-pro', path: at25, dialect: 'messages', more: history },
      geminiAnswer({}),
    );
    const [label, file] = last(of25.received[0]?.json ?? {}, 'contents', 'parts');
    assert.match(textAt(label ?? {}, 'text'), /^File 1 from tool result/);
    assert.deepEqual(file, { inlineData: { mimeType: 'application/pdf', data: pdf } });
  });
});

describe('Gemini', () => {
  const model = 'gemini/gemini-3-pro-preview';
  const document = '/v1beta/models/gemini-3-pro-preview:generateContent';
  const streamed = '/v1beta/models/gemini-3-pro-preview:streamGenerateContent?alt=sse';
  const thought = { text: 'Let me think.', thought: true };
  const sealed = { text: 'ok', thoughtSignature: 'c2lnbmF0dXJl' };

  it('thoughts that nobody signed have no format of a maker; what Gemini sealed has its own', async () => {
    const { reply } = await ask(
      { model, path: document },
      geminiAnswer({ parts: [thought, sealed] }),
    );
    const [choice] = listAt(reply.json, 'choices');
    const details = listAt(objectAt(choice ?? {}, 'message'), 'reasoning_details');
    assert.deepEqual(
      details.map(({ type, text, format, signature }) => ({ type, text, format, signature })),
      [
        { type: 'reasoning.text', text: 'Let me think.', format: undefined, signature: undefined },
        {
          type: 'reasoning.text',
          text: '',
          format: 'google-gemini-v1',
          signature: 'c2lnbmF0dXJl',
        },
      ],
    );
    const told = await ask(
      { model, path: streamed, stream: true },
      streamOf({ parts: [thought, sealed] }),
    );
    assert.doesNotMatch(told.reply.text + reply.text, /anthropic/);
    assert.match(told.reply.text, /"format":"google-gemini-v1"/);
  });

  it('a reason that was not set, written out in each piece, hides no later one', async () => {
    const parts = [{ functionCall: { name: 'w', args: {} } }];
    const unset = { finishReason: 'FINISH_REASON_UNSPECIFIED' };
    const chunks = [
      { candidates: [{ content: { role: 'model', parts }, index: 0, ...unset }] },
      { candidates: [{ content: { role: 'model', parts: [] }, index: 0, finishReason: 'STOP' }] },
    ];
    const body = chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\r\n\r\n`);
    const more = toolsOf('chat');
    const { reply } = await ask(
      { model, path: streamed, stream: true, more },
      { body, framing: 'chunked' },
    );
    assert.match(reply.text, /"finish_reason":"tool_calls"/);
  });
});

describe('Bedrock', () => {
  it('a client that numbers its files as the gateway does gives no name twice', async () => {
    const pdf = Buffer.from('%PDF-1.4').toString('base64');
    const source = { type: 'base64', media_type: 'application/pdf', data: pdf };
    const titles = ['document 2', undefined, 'document 1', undefined, 'document 1'];
    const content = [
      ...titles.map((title) => ({
        type: 'document',
        source,
        ...(title === undefined ? {} : { title }),
      })),
      { type: 'text', text: 'Sum up.' },
    ];
    const more = { messages: [{ role: 'user', content }] };
    const { received } = await ask(
      { model: `converse/${nova}`, path: at(nova, 'converse'), dialect: 'messages', more },
      converseAnswer(),
    );
    const [message] = listAt(received[0]?.json ?? {}, 'messages');
    const names = listAt(message ?? {}, 'content').flatMap((block) =>
      isObject(block['document']) ? [String(block['document']['name'])] : [],
    );
    assert.equal(names.length, titles.length);
    assert.equal(new Set(names).size, titles.length, names.join(', '));
  });

  it('a quota of a day is not asked for again soon', () => {
    const wait = (message: string): number | undefined =>
      readAwsError(
        { status: 429, type: 'ThrottlingException', body: JSON.stringify({ message }) },
        bedrockConverseUpstream.readError,
      ).retryAfterMs;
    assert.equal(wait('Too many tokens per day, please wait before trying again.'), 600_000);
    assert.equal(wait('Too many tokens, please wait before trying again.'), undefined);
  });
});
