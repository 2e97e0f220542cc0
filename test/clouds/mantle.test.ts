/** The hosts of Bedrock that speak the APIs of OpenAI and Anthropic (wire/bedrock.md §1, §7.4, §13: 58). */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import type { JsonObject } from '../../src/json/value.ts';
import { send, type Reply } from '../support/http.ts';
import { clientKey } from '../support/keys.ts';
import { endpointOf, requestBody } from '../support/requests.ts';
import { assertSigned } from '../upstream/aws.ts';
import { chatAnswer } from '../upstream/chat.ts';
import { messagesAnswer } from '../upstream/messages.ts';
import { responsesAnswer, textItem } from '../upstream/responses.ts';
import type { Answer, Received, Scripted } from '../upstream/scripted.ts';
import { fixedKeys, region, startBedrock, withKeys, type BedrockScene } from './bedrock-scene.ts';

const claude = 'anthropic.claude-opus-4-8';
const gpt = 'openai.gpt-oss-120b';
const bearer = 'bedrock-api-key-canary-0123456789';
const service = 'bedrock-mantle';
const clients = ['chat', 'messages', 'responses'] as const;

let scene: BedrockScene;
before(async () => {
  scene = await startBedrock(({ bedrock }) => ({
    providers: {
      'bedrock-mantle': withKeys(bedrock),
      keyed: { like: service, region, endpoint: `${bedrock}/openai`, api_key: bearer },
      items: {
        like: service,
        region,
        endpoint: bedrock,
        api_key: bearer,
        dialect: 'openai-responses',
      },
      named: { like: service, ...withKeys(bedrock), deployments: { mine: claude } },
    },
    models: { 'by-responses': { targets: [`bedrock-mantle/${gpt}`], api: 'responses' } },
  }));
});
after(() => scene.stop());

interface Asking {
  readonly dialect?: (typeof clients)[number];
  readonly stream?: boolean;
  readonly more?: JsonObject;
  readonly headers?: { readonly [name: string]: string };
}

interface Asked {
  readonly reply: Reply;
  readonly received: Received;
}

/** Plays one call of `provider/model`. */
async function ask(called: string, answer: Scripted, asking: Asking = {}): Promise<Asked> {
  const { dialect = 'chat', stream = false, more = {}, headers = {} } = asking;
  const { requests } = scene.bedrock.script(called.slice(called.indexOf('/') + 1), answer);
  const body = requestBody(dialect, { model: called, stream, more });
  const reply = await send(`${scene.gateway.url}${endpointOf[dialect]}`, body, { headers });
  const [received] = requests;
  assert.ok(received !== undefined, reply.text);
  return { reply, received };
}

const wanted: ReadonlySet<string> = new Set([
  'authorization',
  'x-api-key',
  'anthropic-version',
  'anthropic-beta',
]);

/** Path and the headers that say who asks and how. */
function headOf(received: Received): readonly [string, JsonObject] {
  const headers = received.headerLines.map(([name, value]) => [name.toLowerCase(), value] as const);
  return [received.path, Object.fromEntries(headers.filter(([name]) => wanted.has(name)))];
}

const said = (stream: boolean): Answer => messagesAnswer({ text: 'ok' }, stream);

describe('bedrock 58: Claude by the API of Anthropic', () => {
  for (const stream of [false, true]) {
    it(`is relayed, signed in the name of the service${stream ? ', as a stream' : ''}`, async () => {
      const answer = said(stream);
      const { reply, received } = await ask(`bedrock-mantle/${claude}`, answer, {
        dialect: 'messages',
        stream,
        more: { metadata: { user_id: 'u' } },
        headers: { 'anthropic-beta': 'context-1m-2025-08-07,oauth-2025-04-20' },
      });
      assert.equal(reply.status, 200, reply.text);
      assert.equal(reply.headers['x-gateway-mode'], 'relay');
      assert.equal(received.path, '/anthropic/v1/messages');
      assert.equal(received.header('anthropic-version'), '2023-06-01');
      assert.equal(received.header('anthropic-beta'), 'context-1m-2025-08-07');
      await assertSigned(received, fixedKeys, { region, service });
      assert.deepEqual(received.json, {
        ...requestBody('messages', { model: claude, stream, more: { metadata: { user_id: 'u' } } }),
      });
    });
  }

  it('a key goes as a bearer token, and a newer version as it is', async () => {
    const { received } = await ask(`keyed/${claude}`, said(false), {
      dialect: 'messages',
      headers: { 'anthropic-version': '2026-10-21' },
    });
    assert.deepEqual(headOf(received), [
      '/anthropic/v1/messages',
      { authorization: `Bearer ${bearer}`, 'anthropic-version': '2026-10-21' },
    ]);
  });

  it('answers clients of the other APIs', async () => {
    for (const dialect of ['chat', 'responses'] as const) {
      const { reply, received } = await ask(`bedrock-mantle/${claude}`, said(true), { dialect });
      assert.equal(reply.status, 200, reply.text);
      assert.match(reply.text, /"ok"/);
      assert.equal(received.path, '/anthropic/v1/messages');
    }
  });

  it('tokens are counted at its address', async () => {
    const answer = { body: JSON.stringify({ input_tokens: 42 }) };
    const { requests } = scene.bedrock.script(claude, answer);
    const body = { model: `bedrock-mantle/${claude}`, messages: [{ role: 'user', content: 'Hi' }] };
    const reply = await send(`${scene.gateway.url}/v1/messages/count_tokens`, body);
    assert.equal(reply.json['input_tokens'], 42, reply.text);
    assert.equal(requests[0]?.path, '/anthropic/v1/messages/count_tokens');
  });

  it('the official SDK reads the relay', async () => {
    scene.bedrock.script(claude, said(true));
    const client = new Anthropic({ apiKey: clientKey, baseURL: scene.gateway.url, maxRetries: 0 });
    const messages = [{ role: 'user' as const, content: 'Hi' }];
    const stream = client.messages.stream({ model: `named/${claude}`, max_tokens: 9, messages });
    assert.equal(await stream.finalText(), 'ok');
  });

  it('a name of the operator stands for it', async () => {
    const { received } = await ask('named/mine', said(false), { dialect: 'messages' });
    assert.equal(received.path, '/anthropic/v1/messages');
    assert.equal(received.json['model'], 'mine');
  });
});

describe('bedrock 58: the other models by the APIs of OpenAI', () => {
  it('chat completions, relayed and signed', async () => {
    const { reply, received } = await ask(
      `bedrock-mantle/${gpt}`,
      chatAnswer({ text: 'ok' }, false),
    );
    assert.equal(reply.status, 200, reply.text);
    assert.equal(reply.headers['x-gateway-mode'], 'relay');
    assert.equal(received.path, '/v1/chat/completions');
    await assertSigned(received, fixedKeys, { region, service });
  });

  it('some are behind another prefix, which the endpoint names', async () => {
    const { received } = await ask(`keyed/${gpt}`, chatAnswer({ text: 'ok' }, false));
    assert.deepEqual(headOf(received), [
      '/openai/v1/chat/completions',
      { authorization: `Bearer ${bearer}` },
    ]);
  });

  it('Responses, where a route says so', async () => {
    const { requests } = scene.bedrock.script(
      gpt,
      responsesAnswer([textItem('ok')], { stream: false }),
    );
    const body = requestBody('responses', { model: 'by-responses', stream: false });
    const reply = await send(`${scene.gateway.url}/v1/responses`, body);
    assert.equal(reply.status, 200, reply.text);
    assert.equal(requests[0]?.path, '/v1/responses');
  });

  it('Responses, where the config says so', async () => {
    for (const dialect of clients) {
      const stream = dialect !== 'responses';
      const answer = responsesAnswer([textItem('ok')], { stream });
      const { reply, received } = await ask(`items/${gpt}`, answer, { dialect, stream });
      assert.equal(reply.status, 200, reply.text);
      assert.match(reply.text, /"ok"/);
      assert.equal(received.path, '/v1/responses');
    }
  });

  it('the official SDK reads a stream', async () => {
    scene.bedrock.script(gpt, chatAnswer({ text: 'ok' }, true));
    const client = new OpenAI({
      apiKey: clientKey,
      baseURL: `${scene.gateway.url}/v1`,
      maxRetries: 0,
    });
    const messages = [{ role: 'user' as const, content: 'Hi' }];
    const model = `bedrock-mantle/${gpt}`;
    const stream = await client.chat.completions.create({ model, stream: true, messages });
    let text = '';
    for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? '';
    assert.equal(text, 'ok');
  });
});

describe('bedrock 58: errors and lists', () => {
  it('each envelope is understood: that of AWS, of OpenAI and of Anthropic', async () => {
    const rows: readonly (readonly [string, Answer, number, RegExp])[] = [
      [
        gpt,
        {
          status: 429,
          headers: { 'x-amzn-errortype': 'ThrottlingException:http://x' },
          body: '{"message":"Too many requests"}',
        },
        429,
        /Too many requests/,
      ],
      [
        gpt,
        {
          status: 400,
          body: JSON.stringify({
            error: {
              message: `model ${gpt} isn't supported on this route`,
              type: 'invalid_request_error',
            },
          }),
        },
        400,
        /supported on this route/,
      ],
      [
        claude,
        {
          status: 400,
          body: JSON.stringify({
            type: 'error',
            error: { type: 'invalid_request_error', message: 'max_tokens: too large' },
          }),
        },
        400,
        /max_tokens: too large/,
      ],
      [
        claude,
        { status: 403, body: '{"Message":"Invalid API Key format"}' },
        400,
        /operator|credential/i,
      ],
    ];
    for (const [i, [model, answer, status, words]] of rows.entries()) {
      // What a failure does to a target must not meet the next row.
      const { reply } = await ask(
        `${i % 2 === 0 ? 'bedrock-mantle' : 'named'}/${model}-${i}`,
        answer,
      );
      assert.equal(reply.status, status, reply.text);
      assert.match(reply.text, words);
      assert.doesNotMatch(reply.text, /Invalid API Key/);
    }
  });

  it('the list of the service is shown, and names of the config in its place', async () => {
    const list = {
      object: 'list',
      data: [
        { id: gpt, object: 'model' },
        { id: claude, object: 'model' },
      ],
    };
    const plain = scene.bedrock.script('/v1/models', { body: JSON.stringify(list) });
    scene.bedrock.script('/openai/v1/models', { body: JSON.stringify(list) });
    const reply = await send(`${scene.gateway.url}/v1/models`, undefined);
    const ids = (reply.json['data'] as { id: string }[]).map(({ id }) => id);
    for (const id of [`bedrock-mantle/${gpt}`, `keyed/${claude}`, 'named/mine']) {
      assert.ok(ids.includes(id), ids.join());
    }
    const [signed] = plain.requests.filter((each) => each.header('x-amz-date') !== undefined);
    assert.ok(signed !== undefined);
    await assertSigned(signed, fixedKeys, { region, service });
  });
});
