/** Claude on Bedrock by InvokeModel: requests, streams in frames, betas, counts (wire/bedrock.md §13: 14, 15, 19, 24, 26, 47, 48, 50). */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import { clientKey } from '../support/keys.ts';
import { send, type Reply } from '../support/http.ts';
import { endpointOf, requestBody } from '../support/requests.ts';
import { awsError, eventStream, exceptionMessage, invokeChunk } from '../upstream/aws.ts';
import type { JsonObject } from '../../src/json/value.ts';
import {
  assertAsked,
  claude,
  claudeChunks,
  claudeDocument,
  claudeEvents,
  pathOf,
  startBedrock,
  withKeys,
  type BedrockScene,
} from './bedrock-scene.ts';

const clients = ['chat', 'messages', 'responses'] as const;
const version = 'bedrock-2023-05-31';
const arn = 'arn:aws:bedrock:eu-central-1:123456789012:application-inference-profile/abc123def456';
const hello = { role: 'user', content: 'Hello' };
const helloBlock = { role: 'user', content: [{ type: 'text', text: 'Hello' }] };

let scene: BedrockScene;

before(async () => {
  scene = await startBedrock(({ bedrock }) => ({
    providers: {
      bedrock: { ...withKeys(bedrock), deployments: { [arn]: 'claude-sonnet-4-5' } },
    },
    models: { safe: { targets: [`bedrock/${claude}`, `bedrock/us.${claude.slice(3)}`] } },
  }));
});
after(() => scene.stop());

interface Asking {
  readonly stream?: boolean;
  readonly model?: string;
  readonly more?: JsonObject;
  readonly headers?: { readonly [name: string]: string };
}

function ask(dialect: (typeof clients)[number], asking: Asking = {}): Promise<Reply> {
  const { stream = false, model = `bedrock/${claude}`, more = {}, headers = {} } = asking;
  const body = requestBody(dialect, { model, stream, more });
  return send(`${scene.gateway.url}${endpointOf[dialect]}`, body, { headers });
}

describe('bedrock 24: what goes up', () => {
  for (const stream of [false, true]) {
    const action = stream ? 'invoke-with-response-stream' : 'invoke';
    it(`relayed, stream ${stream}: the client's bytes without model and stream, signed as they are sent`, async () => {
      const answer = stream ? eventStream(claudeChunks(['ok'])) : claudeDocument();
      const script = scene.bedrock.script(pathOf(claude, action), answer);
      const reply = await ask('messages', { stream });
      assert.equal(reply.status, 200, reply.text);
      assert.equal(reply.headers['x-gateway-mode'], 'relay');
      await assertAsked(script.requests[0], {
        path: pathOf(claude, action),
        body: { messages: [hello], max_tokens: 100, anthropic_version: version },
      });
    });
  }

  it('bedrock 59 [1m] behind the name, as Claude Code writes it, is no part of the id', async () => {
    const script = scene.bedrock.script(pathOf(claude, 'invoke'), claudeDocument());
    const headers = { 'anthropic-beta': 'context-1m-2025-08-07' };
    const reply = await ask('messages', { model: `bedrock/${claude}[1m]`, headers });
    assert.equal(reply.status, 200, reply.text);
    const row = await scene.gateway.callRow(String(reply.headers['x-request-id']));
    assert.ok(Number(row['cost_usd']) > 0);
    await assertAsked(script.requests[0], {
      path: pathOf(claude, 'invoke'),
      body: {
        messages: [hello],
        max_tokens: 100,
        anthropic_version: version,
        anthropic_beta: ['context-1m-2025-08-07'],
      },
    });
  });

  it('the scope of a cache mark, which AWS refuses, is left out wherever it stands; the mark stays', async () => {
    const mark = { type: 'ephemeral', ttl: '1h' };
    const marked = (cache_control: JsonObject): JsonObject => {
      const schema = { type: 'object' };
      const result = [{ type: 'text', text: 'done', cache_control }];
      return {
        system: [{ type: 'text', text: 'Be brief.', cache_control }],
        tools: [{ name: 'w', input_schema: schema, cache_control }],
        messages: [
          { role: 'user', content: [{ type: 'text', text: 'A "scope".', cache_control }] },
          { role: 'assistant', content: [{ type: 'tool_use', id: 't', name: 'w', input: {} }] },
          {
            role: 'user',
            content: [{ type: 'tool_result', tool_use_id: 't', content: result, cache_control }],
          },
        ],
      };
    };
    const script = scene.bedrock.script(pathOf(claude, 'invoke'), claudeDocument());
    const more = marked({ ...mark, scope: 'global' });
    const reply = await ask('messages', { more });
    assert.equal(reply.status, 200, reply.text);
    const body = { max_tokens: 100, anthropic_version: version, ...marked(mark) };
    await assertAsked(script.requests[0], { path: pathOf(claude, 'invoke'), body });
    const notes = String(reply.headers['x-gateway-notes']);
    assert.equal(notes.match(/caches of that scope/g)?.length, 1, notes);
  });

  it('bedrock 49 an image by its address is refused by name, relayed or not', async () => {
    const url = 'https://a.example/1.png';
    const parts = {
      chat: { type: 'image_url', image_url: { url } },
      messages: { type: 'image', source: { type: 'url', url } },
    };
    for (const [dialect, part] of Object.entries(parts)) {
      const more = { messages: [{ role: 'user', content: [part] }] };
      const asked = scene.bedrock.all.length;
      const reply = await ask(dialect as keyof typeof parts, { more });
      assert.equal(reply.status, 400, reply.text);
      assert.match(reply.text, /messages\.0\.content\.0|messages\[0\]/);
      assert.equal(scene.bedrock.all.length, asked);
    }
  });

  for (const dialect of ['chat', 'responses'] as const) {
    it(`translated from ${dialect}: as a stream`, async () => {
      const path = pathOf(claude, 'invoke-with-response-stream');
      const script = scene.bedrock.script(path, eventStream(claudeChunks(['ok'])));
      const reply = await ask(dialect, { more: { max_tokens: 50 } });
      assert.equal(reply.status, 200, reply.text);
      assert.match(reply.text, /"ok"/);
      await assertAsked(script.requests[0], {
        path,
        body: { anthropic_version: version, max_tokens: 50, messages: [helloBlock] },
      });
    });
  }

  it('bedrock 26: an ARN is one segment of the path, and its model is what the config says', async () => {
    const path =
      '/model/arn%3Aaws%3Abedrock%3Aeu-central-1%3A123456789012%3Aapplication-inference-profile%2Fabc123def456/invoke';
    const script = scene.bedrock.script(path, claudeDocument());
    const reply = await ask('messages', { model: `bedrock/${arn}` });
    assert.equal(reply.status, 200, reply.text);
    await assertAsked(script.requests[0], {
      path,
      body: { messages: [hello], max_tokens: 100, anthropic_version: version },
    });
    const calls = await scene.gateway.callRows(`bedrock/${arn}`, 1);
    assert.equal(calls[0]?.['status'], 200);
  });

  it('bedrock 47: another version of a client goes up as it is', async () => {
    const path = pathOf(claude, 'invoke');
    for (const [said, sent] of [
      ['2023-06-01', version],
      ['2026-10-21', '2026-10-21'],
    ] as const) {
      const script = scene.bedrock.script(path, claudeDocument());
      await ask('messages', { headers: { 'anthropic-version': said } });
      assert.equal(script.requests[0]?.json['anthropic_version'], sent);
      assert.equal(script.requests[0]?.header('anthropic-version'), undefined);
    }
  });
});

describe('bedrock 48: betas', () => {
  const path = pathOf(claude, 'invoke');
  const headers = { 'anthropic-beta': 'claude-code-20250219,interleaved-thinking-2025-05-14' };

  it('known ones move into the body, others are not sent', async () => {
    const script = scene.bedrock.script(path, claudeDocument());
    await ask('messages', { headers });
    assert.deepEqual(script.requests[0]?.json['anthropic_beta'], [
      'interleaved-thinking-2025-05-14',
    ]);
    assert.equal(script.requests[0]?.header('anthropic-beta'), undefined);
  });

  const refusals = {
    envelope: {
      message: 'The model returned the following errors: invalid beta flag',
    },
    'of Anthropic': {
      type: 'error',
      error: { type: 'invalid_request_error', message: 'invalid beta flag' },
    },
  };
  for (const [name, refusal] of Object.entries(refusals)) {
    it(`refused (${name}): once without them, and not again`, async () => {
      const model = `global.anthropic.claude-haiku-4-5-2025100${name.length % 10}-v1:0`;
      const script = scene.bedrock.script(
        pathOf(model, 'invoke'),
        awsError(400, 'ValidationException', refusal),
        claudeDocument(),
      );
      const reply = await ask('messages', { model: `bedrock/${model}`, headers });
      assert.equal(reply.status, 200, reply.text);
      assert.match(String(reply.headers['x-gateway-notes']), /anthropic_beta/);
      await ask('messages', { model: `bedrock/${model}`, headers });
      const sent = script.requests.map(({ json }) => json['anthropic_beta'] !== undefined);
      assert.deepEqual(sent, [true, false, false]);
    });
  }
});

describe('bedrock 19: frames become the events of Anthropic', () => {
  const path = pathOf(claude, 'invoke-with-response-stream');
  const texts = ['Hel', 'lo ', 'wörld 🌍'];

  it('byte for byte, without what AWS measured', async () => {
    scene.bedrock.script(path, eventStream(claudeChunks(texts)));
    const reply = await ask('messages', { stream: true });
    const events = reply.text
      .split('\n\n')
      .filter((frame) => frame !== '')
      .map((frame) => JSON.parse(frame.slice(frame.indexOf('data: ') + 6)) as JsonObject);
    const wanted = claudeEvents(texts).map(({ type }) => type);
    assert.deepEqual(
      events.map(({ type }) => type),
      wanted,
    );
    assert.deepEqual(events.at(-1), { type: 'message_stop' });
    assert.doesNotMatch(reply.text, /amazon|"p"/);
  });

  for (const dialect of clients) {
    it(`cut at every byte, for ${dialect}`, async () => {
      const whole = Buffer.concat(claudeChunks(texts));
      const split = (bytes: Buffer): readonly Buffer[] =>
        Array.from(bytes, (_, i) => bytes.subarray(i, i + 1));
      scene.bedrock.script(path, eventStream([whole], { split }));
      const cut = await ask(dialect, { stream: true });
      scene.bedrock.script(path, eventStream([whole]));
      const atOnce = await ask(dialect, { stream: true });
      const plain = (reply: Reply): string =>
        reply.text.replace(
          /(?:chatcmpl|msg|resp|rs|fc)_?[\w-]+|"created(?:_at)?":\d+|"completed_at":\d+/g,
          '',
        );
      assert.equal(plain(cut), plain(atOnce));
      assert.match(cut.text, /w\u00f6rld/);
      assert.equal(cut.complete, true);
    });
  }

  it('the official SDK reads the relay', async () => {
    scene.bedrock.script(path, eventStream(claudeChunks(texts)));
    const sdk = new Anthropic({ apiKey: clientKey, baseURL: scene.gateway.url, maxRetries: 0 });
    const message = await sdk.messages
      .stream({
        model: `bedrock/${claude}`,
        max_tokens: 100,
        messages: [{ role: 'user', content: 'Hello' }],
      })
      .finalMessage();
    assert.deepEqual(
      message.content.map((part) => (part.type === 'text' ? part.text : part.type)),
      [texts.join('')],
    );
    assert.equal(message.usage.output_tokens, 2);
    const [call] = (await scene.gateway.callRows(`bedrock/${claude}`, 1)).slice(-1);
    assert.ok(call !== undefined);
  });
});

describe('bedrock 14 and 15: broken streams', () => {
  const path = pathOf(claude, 'invoke-with-response-stream');
  const throttled = exceptionMessage('throttlingException', {
    message: 'Too many tokens, please wait before trying again.',
  });
  const spoiled = Buffer.from(invokeChunk({ type: 'ping' }));
  spoiled[spoiled.length - 1] = (spoiled[spoiled.length - 1] ?? 0) ^ 1;

  for (const dialect of clients) {
    const endings = {
      'an exception': [throttled],
      'a wrong checksum': [spoiled],
      'half a message': [invokeChunk({ type: 'ping' }).subarray(0, 20)],
    };
    for (const [name, ending] of Object.entries(endings)) {
      it(`${name} behind content, for ${dialect}: an error and no ending`, async () => {
        const begun = claudeChunks(['half']).slice(0, 3);
        scene.bedrock.script(path, eventStream([Buffer.concat([...begun, ...ending])]));
        const reply = await ask(dialect, { stream: true });
        assert.equal(reply.status, 200);
        assert.match(reply.text, /half/);
        assert.match(reply.text, /error/);
        assert.doesNotMatch(reply.text, /\[DONE\]|"message_stop"|response\.completed/);
      });
    }
  }

  it('an exception before content is the failure of its target: the next one answers', async () => {
    const failing = scene.bedrock.script(path, eventStream([throttled]));
    const other = pathOf(`us.${claude.slice(3)}`, 'invoke-with-response-stream');
    scene.bedrock.script(other, eventStream(claudeChunks(['from the other'])));
    const reply = await ask('messages', { stream: true, model: 'safe' });
    assert.equal(reply.status, 200, reply.text);
    assert.match(reply.text, /from the other/);
    assert.equal(failing.requests.length > 0, true);
  });
});

describe('bedrock 50: counts', () => {
  it('the model behind the profile counts the body of a call', async () => {
    const path = pathOf(claude.slice(3), 'count-tokens');
    const script = scene.bedrock.script(path, { body: JSON.stringify({ inputTokens: 42 }) });
    const reply = await send(`${scene.gateway.url}/v1/messages/count_tokens`, {
      model: `bedrock/${claude}`,
      messages: [hello],
      system: 'Be short.',
    });
    assert.deepEqual(reply.json, { input_tokens: 42 });
    const input = script.requests[0]?.json['input'] as { invokeModel: { body: string } };
    assert.deepEqual(JSON.parse(Buffer.from(input.invokeModel.body, 'base64').toString('utf8')), {
      max_tokens: 1,
      anthropic_version: version,
      messages: [hello],
      system: 'Be short.',
    });
  });

  it('where it cannot count, the gateway estimates', async () => {
    const path = pathOf(claude.slice(3), 'count-tokens');
    const message = "The provided model doesn't support counting tokens.";
    scene.bedrock.script(path, awsError(400, 'ValidationException', { message }));
    const reply = await send(`${scene.gateway.url}/v1/messages/count_tokens`, {
      model: `bedrock/${claude}`,
      messages: [hello],
    });
    assert.equal(reply.status, 200);
    assert.equal(typeof reply.json['input_tokens'], 'number');
  });
});
