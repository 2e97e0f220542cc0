/** The engine's forms through the gateway, as clients of each dialect see them. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { tryParseObject } from '../../src/json/parse.ts';
import { startTestGateway, type TestGateway } from '../support/gateway.ts';
import { send } from '../support/http.ts';
import { whenLoaded } from '../support/loaded.ts';
import { allDialects, readDocument } from '../support/reading.ts';
import { endpointOf, requestBody } from '../support/requests.ts';
import { at, reasonToSkip } from './engine-client.ts';

const skip = await reasonToSkip();
const model = 'local/tiny';

describe('through the gateway', { skip }, () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await startTestGateway({});
  });
  after(() => gateway.stop());

  test('a prompt that does not fit is a 400 with the numbers, in the words of each dialect', async () => {
    const words = {
      messages: /prompt is too long: \d{4,} tokens > 2048 maximum/,
      chat: /maximum context length is 2048 tokens.*\d{4,} tokens/,
      responses: /maximum context length is 2048 tokens.*\d{4,} tokens/,
    };
    for (const dialect of allDialects) {
      const messages = [{ role: 'user', content: 'word '.repeat(5000) }];
      const more = { max_tokens: 16, messages };
      const body = requestBody(dialect, { model, stream: false, more });
      const reply = await whenLoaded(() => send(`${gateway.url}${endpointOf[dialect]}`, body));
      assert.equal(reply.status, 400, reply.text);
      assert.match(String(at(reply.json, 'error', 'message')), words[dialect]);
    }
  });

  test('a schema holds the answer on each endpoint', async () => {
    const schema = {
      type: 'object',
      properties: {
        mood: { enum: ['good', 'bad'] },
        count: { type: 'integer', maximum: 9, minimum: 1 },
      },
      required: ['mood', 'count'],
      additionalProperties: false,
    };
    const more = {
      messages: { output_config: { format: { type: 'json_schema', schema } } },
      chat: {
        response_format: { type: 'json_schema', json_schema: { name: 'a', schema, strict: true } },
      },
      responses: { text: { format: { type: 'json_schema', name: 'a', schema, strict: true } } },
    };
    for (const dialect of allDialects) {
      const settings = { ...more[dialect], temperature: 0, max_tokens: 64 };
      const body = requestBody(dialect, { model, stream: false, more: settings });
      const reply = await whenLoaded(() => send(`${gateway.url}${endpointOf[dialect]}`, body));
      assert.equal(reply.status, 200, reply.text);
      const value = tryParseObject(readDocument(dialect, reply.json).text);
      assert.ok(value !== undefined && ['good', 'bad'].includes(String(value['mood'])), reply.text);
      assert.ok(Number(value['count']) >= 1 && Number(value['count']) <= 9);
    }
  });
});
