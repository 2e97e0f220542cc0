/**
 * Several calls in one turn, of the real engine and library. The tiny model makes one call by itself,
 * so its file is made to recommend a temperature at which it chooses evenly among all that is allowed:
 * what it says is then chance, what holds it to a form is not.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { JsonObject } from '../../src/json/value.ts';
import { temporaryFolder } from '../support/folders.ts';
import { startTestGateway, type TestGateway } from '../support/gateway.ts';
import { send } from '../support/http.ts';
import { whenLoaded } from '../support/loaded.ts';
import { assertLegalStream } from '../support/legality.ts';
import {
  dialects,
  endingOf,
  readDocument,
  readStream,
  type Dialect,
  type Seen,
} from '../support/reading.ts';
import { endpointOf, requestBody } from '../support/requests.ts';
import { writeAlteredModel } from './altered-model.ts';
import { reasonToSkip } from './engine-client.ts';

const skip = await reasonToSkip();
const model = 'local/even';
const cities = ['Paris', 'Oslo'];
const parameters = {
  type: 'object',
  properties: { city: { enum: cities } },
  required: ['city'],
  additionalProperties: false,
};
const names = ['get_weather', 'get_time'];

/** `one`: several calls are not allowed. */
function toolsOf(dialect: Dialect, one: boolean): JsonObject {
  if (dialect === 'chat') {
    return {
      tools: names.map((name) => ({ type: 'function', function: { name, parameters } })),
      tool_choice: 'required',
      ...(one ? { parallel_tool_calls: false } : {}),
    };
  }
  return {
    tools: names.map((name) => ({ name, input_schema: parameters })),
    tool_choice: { type: 'any', ...(one ? { disable_parallel_tool_use: true } : {}) },
  };
}

describe('§4 several calls in one turn', { skip }, () => {
  const folder = temporaryFolder('engine-test');
  let gateway: TestGateway;
  before(async () => {
    const path = join(folder, 'even.gguf');
    const recommended = { temp: 1000, top_k: 0, top_p: 1, min_p: 0 };
    const floats = Object.fromEntries(
      Object.entries(recommended).map(([key, value]) => [`general.sampling.${key}`, value]),
    );
    writeAlteredModel(path, { template: (original) => original, floats });
    gateway = await startTestGateway({ local: { models: { even: { path } } } });
  });
  after(() => gateway.stop());

  interface Asking {
    readonly stream: boolean;
    readonly more: JsonObject;
  }
  const ask = async (dialect: Dialect, { stream, more }: Asking): Promise<Seen> => {
    const body = requestBody(dialect, { model, stream, more: { max_tokens: 1500, ...more } });
    const reply = await whenLoaded(() => send(`${gateway.url}${endpointOf[dialect]}`, body));
    assert.equal(reply.status, 200, reply.text);
    if (!stream) return readDocument(dialect, reply.json);
    assert.equal(endingOf(dialect, reply.text), 'proper', reply.text);
    assertLegalStream(dialect, reply.text, true);
    return readStream(dialect, reply.text);
  };

  const assertCalls = (seen: Seen): void => {
    assert.equal(seen.finish, 'tools');
    assert.equal(seen.text, '');
    for (const call of seen.calls) {
      assert.ok(names.includes(call.name));
      const { city, ...rest } = Object(call.arguments);
      assert.ok(cities.includes(city), JSON.stringify(call));
      assert.deepEqual(rest, {});
    }
    assert.equal(new Set(seen.calls.map(({ id }) => id)).size, seen.calls.length);
  };

  /** Each answer has one call more with an even chance: of so many, one has several. */
  const tries = 40;

  for (const dialect of dialects) {
    for (const stream of [false, true]) {
      const form = stream ? 'stream' : 'document';
      test(`${dialect} ${form}: two or more whole calls, and their results in the next turn`, async () => {
        for (let i = 0; i < tries; i++) {
          const more = { ...toolsOf(dialect, false), ...(dialect === 'chat' ? { seed: i } : {}) };
          const seen = await ask(dialect, { stream, more });
          assertCalls(seen);
          if (seen.calls.length < 2) continue;
          const next = { messages: turnsOf(dialect, seen), max_tokens: 5 };
          const answered = await ask(dialect, {
            stream,
            more: { ...toolsOf(dialect, false), ...next, ...auto[dialect] },
          });
          assert.ok((answered.usage?.fresh ?? 0) > (seen.usage?.fresh ?? Infinity));
          return;
        }
        assert.fail(`no answer of ${tries} had two calls`);
      });
    }

    test(`${dialect}: exactly one where several are not allowed`, async () => {
      for (let i = 0; i < 12; i++) {
        const more = { ...toolsOf(dialect, true), ...(dialect === 'chat' ? { seed: i } : {}) };
        const seen = await ask(dialect, { stream: i % 2 === 0, more });
        assertCalls(seen);
        assert.equal(seen.calls.length, 1);
      }
    });
  }
});

const auto: { readonly [D in Dialect]: JsonObject } = {
  chat: { tool_choice: 'auto' },
  messages: { tool_choice: { type: 'auto' } },
};

/** The conversation so far, with a result for each call. */
function turnsOf(dialect: Dialect, { calls }: Seen): readonly JsonObject[] {
  const question = { role: 'user', content: 'Hello' };
  if (dialect === 'chat') {
    const tool_calls = calls.map(({ id, name, arguments: args }) => ({
      id,
      type: 'function',
      function: { name, arguments: JSON.stringify(args) },
    }));
    const results = calls.map(({ id }) => ({ role: 'tool', tool_call_id: id, content: 'sunny' }));
    return [question, { role: 'assistant', content: null, tool_calls }, ...results];
  }
  const uses = calls.map(({ id, name, arguments: input }) => ({
    type: 'tool_use',
    id,
    name,
    input,
  }));
  const results = calls.map(({ id }) => ({
    type: 'tool_result',
    tool_use_id: id,
    content: 'sunny',
  }));
  return [question, { role: 'assistant', content: uses }, { role: 'user', content: results }];
}
