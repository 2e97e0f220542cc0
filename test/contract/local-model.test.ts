/** The official SDKs on the real engine: the same prompt and reply cost the same on both endpoints. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { tryParseObject } from '../../src/json/parse.ts';
import { startTestGateway, type TestGateway } from '../support/gateway.ts';
import { send } from '../support/http.ts';
import { assertLegalStream } from '../support/legality.ts';
import { whenLoaded } from '../support/loaded.ts';
import {
  dialects,
  endingOf,
  listAt,
  objectAt,
  readDocument,
  readStream,
  type Dialect,
  type Seen,
} from '../support/reading.ts';
import { endpointOf, requestBody } from '../support/requests.ts';
import { sdks } from '../support/sdks.ts';

const library = join(import.meta.dirname, '../../node_modules/node-llama-cpp/package.json');
const leftOut = existsSync(library)
  ? false
  : 'left out: the engine library (node-llama-cpp) is not installed for this platform';

const model = 'local/tiny';
const greedy = { temperature: 0, max_tokens: 24 } as const;

describe('local/tiny', { skip: leftOut }, () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await startTestGateway({});
  });
  after(() => gateway.stop());

  const ask = async (dialect: Dialect, stream: boolean): Promise<Seen> => {
    const body = requestBody(dialect, { model, stream, more: greedy });
    const reply = await whenLoaded(() => send(`${gateway.url}${endpointOf[dialect]}`, body));
    assert.equal(reply.status, 200, reply.text);
    const row = await gateway.callRow(String(reply.headers['x-request-id']));
    assert.equal(row['outcome'], 'ok');
    if (!stream) return readDocument(dialect, reply.json);
    assert.equal(endingOf(dialect, reply.text), 'proper', reply.text);
    assertLegalStream(dialect, reply.text, true);
    return readStream(dialect, reply.text);
  };

  test('both endpoints, streamed and whole, say the same and count the same', async () => {
    const answers: Seen[] = [];
    for (const dialect of dialects) {
      for (const stream of [false, true]) answers.push(await ask(dialect, stream));
    }
    const [first, ...others] = answers;
    assert.ok(first !== undefined && first.text.length > 0);
    assert.ok((first.usage?.fresh ?? 0) > 0 && (first.usage?.output ?? 0) > 0);
    for (const other of others) assert.deepEqual(other, first);
    assert.equal(first.model, model);
  });

  test('F8 the ledger holds the same numbers', async () => {
    const body = requestBody('chat', { model, stream: false, more: greedy });
    const reply = await send(`${gateway.url}${endpointOf.chat}`, body);
    const row = await gateway.callRow(String(reply.headers['x-request-id']));
    const seen = readDocument('chat', reply.json);
    const charged = objectAt(row, 'charged');
    assert.equal(charged['output_tokens'], seen.usage?.output);
    const input = Number(charged['fresh_input_tokens']) + Number(charged['cache_read_tokens'] ?? 0);
    assert.equal(input, (seen.usage?.fresh ?? 0) + (seen.usage?.cacheRead ?? 0));
  });

  test('several choices are relayed and charged together, streamed and whole', async () => {
    for (const stream of [false, true]) {
      const body = requestBody('chat', { model, stream, more: { ...greedy, n: 2 } });
      const reply = await send(`${gateway.url}${endpointOf.chat}`, body);
      assert.equal(reply.status, 200, reply.text);
      assert.equal(reply.text.match(/"finish_reason":"(stop|length)"/g)?.length, 2);
      const row = await gateway.callRow(String(reply.headers['x-request-id']));
      const single = requestBody('chat', { model, stream: false, more: greedy });
      const one = await send(`${gateway.url}${endpointOf.chat}`, single);
      const output = readDocument('chat', one.json).usage?.output ?? 0;
      assert.equal(row['outcome'], 'ok');
      assert.equal(objectAt(row, 'charged')['output_tokens'], 2 * output);
    }
  });

  test('the deprecated functions are called, too', async () => {
    const parameters = { type: 'object', properties: { city: { type: 'string' } } };
    const functions = [{ name: 'weather', parameters }];
    const more = { ...greedy, max_tokens: 60, functions, function_call: { name: 'weather' } };
    const body = requestBody('chat', { model, stream: false, more });
    const reply = await send(`${gateway.url}${endpointOf.chat}`, body);
    assert.equal(reply.status, 200, reply.text);
    const [choice = {}] = listAt(reply.json, 'choices');
    assert.equal(choice['finish_reason'], 'function_call');
    assert.equal(objectAt(objectAt(choice, 'message'), 'function_call')['name'], 'weather');
  });

  test('max_tokens is honoured exactly and told as the reason', async () => {
    for (const dialect of dialects) {
      const body = requestBody(dialect, {
        model,
        stream: false,
        more: { temperature: 0, max_tokens: 3 },
      });
      const reply = await send(`${gateway.url}${endpointOf[dialect]}`, body);
      const seen = readDocument(dialect, reply.json);
      assert.equal(seen.usage?.output, 3, reply.text);
      assert.equal(seen.finish, 'length');
    }
  });

  test('A7 F5 count_tokens equals the prompt count of the call itself', async () => {
    const body = requestBody('messages', { model, stream: false, more: greedy });
    const { max_tokens: _, ...counted } = body;
    const count = await send(`${gateway.url}/v1/messages/count_tokens`, counted);
    assert.equal(count.status, 200, count.text);
    const reply = await send(`${gateway.url}${endpointOf.messages}`, body);
    const usage = readDocument('messages', reply.json).usage;
    assert.equal(
      count.json['input_tokens'],
      (usage?.fresh ?? 0) + (usage?.cacheRead ?? 0) + (usage?.cacheWrite ?? 0),
    );
  });

  test('F1 F5 message_start reports the exact prompt, as count_tokens does', async () => {
    const body = requestBody('messages', { model, stream: true, more: greedy });
    const { max_tokens: _, ...counted } = body;
    const count = await send(`${gateway.url}/v1/messages/count_tokens`, counted);
    assert.equal(count.headers['x-gateway-usage'], 'reported');
    const reply = await send(`${gateway.url}${endpointOf.messages}`, body);
    const start = /^data: (\{"type":"message_start".*)$/m.exec(reply.text)?.[1] ?? '';
    const usage = objectAt(objectAt(tryParseObject(start) ?? {}, 'message'), 'usage');
    const prompt = ['input_tokens', 'cache_read_input_tokens', 'cache_creation_input_tokens'].map(
      (key) => Number(usage[key] ?? 0),
    );
    assert.equal(
      prompt.reduce((sum, tokens) => sum + tokens, 0),
      count.json['input_tokens'],
    );
  });

  for (const sdk of sdks) {
    test(`${sdk.name}: plain, iterated, and the final message`, async () => {
      const client = sdk.connect({ url: gateway.url });
      const question = { model, text: 'Hello', maxTokens: 16 };
      const plain = await client.plain(question);
      assert.ok(plain.text.length > 0);
      assert.ok((plain.usage?.fresh ?? 0) + (plain.usage?.cacheRead ?? 0) > 0);
      assert.ok((await client.iterate(question)).length > 0);
      const final = await client.final(question);
      assert.ok(final.text.length > 0);
      assert.ok((final.usage?.output ?? 0) > 0);
      assert.ok((await client.models()).includes(model));
    });

    test(`E10 ${sdk.name}: an abort frees the engine for the next call`, async () => {
      const client = sdk.connect({ url: gateway.url });
      const abort = new AbortController();
      const question = { model, text: 'Tell me a long story.', maxTokens: 64 };
      await client
        .iterate(question, () => abort.abort(), { signal: abort.signal })
        .catch(() => undefined);
      assert.ok(abort.signal.aborted);
      assert.ok((await client.plain(question)).text.length > 0);
    });
  }
});
