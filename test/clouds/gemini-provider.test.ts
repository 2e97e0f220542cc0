/** The provider `gemini`: addresses, keys, lists, counts, `check` (wire/gemini.md §11: 48, 55; wire/clouds-config.md). */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { geminiRow } from '../../src/providers/clouds/gemini.ts';
import { tryParseObject } from '../../src/json/parse.ts';
import type { JsonObject } from '../../src/json/value.ts';
import { listAt, textAt } from '../support/reading.ts';
import { send } from '../support/http.ts';
import { geminiAnswer, streamOf } from '../upstream/gemini.ts';
import {
  assertAsked,
  callGemini,
  geminiKey,
  startGemini,
  type GeminiScene,
} from './gemini-scene.ts';

async function withScene(
  use: (scene: GeminiScene) => Promise<void>,
  ...how: Parameters<typeof startGemini>
): Promise<void> {
  const scene = await startGemini(...how);
  try {
    await use(scene);
  } finally {
    await scene.stop();
  }
}

describe('addresses', () => {
  it('the model and the method stand in the path, the key in its header', () =>
    withScene(async (scene) => {
      const whole = await callGemini(scene, { model: 'gemini-3-pro' }, geminiAnswer());
      assertAsked(whole.received[0], '/v1beta/models/gemini-3-pro:generateContent');
      const stream = await callGemini(scene, { model: 'gemini-3-pro', stream: true }, streamOf({}));
      assertAsked(stream.received[0], '/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse');
      // Documents of the newest models are half as long.
      const newest = await callGemini(scene, { model: 'gemini-4-argon' }, streamOf({}));
      assertAsked(
        newest.received[0],
        '/v1beta/models/gemini-4-argon:streamGenerateContent?alt=sse',
      );
    }));

  it('a prefix of lists is cut, a tuned model keeps its own, other paths are refused', () =>
    withScene(async ({ gemini, gateway }) => {
      const ask = async (model: string): Promise<number> => {
        const body = { model: `gemini/${model}`, messages: [{ role: 'user', content: 'Hi' }] };
        return (await send(`${gateway.url}/v1/chat/completions`, body)).status;
      };
      gemini.script('gemini-3-pro', geminiAnswer());
      gemini.script('/v1beta/tunedModels/mine:streamGenerateContent?alt=sse', streamOf({}));
      assert.equal(await ask('models/gemini-3-pro'), 200);
      assert.equal(await ask('tunedModels/mine'), 200);
      const asked = gemini.all.map(({ path }) => path);
      assert.deepEqual(asked, [
        '/v1beta/models/gemini-3-pro:generateContent',
        '/v1beta/tunedModels/mine:streamGenerateContent?alt=sse',
      ]);
      for (const name of ['..', 'models/..', 'a/b', 'a%2fb', 'a;b', 'a?b', 'models/']) {
        assert.equal(await ask(name), 404, name);
      }
    }));

  it('the address of the environment has no version; that of the config is taken as it is', () => {
    const { cloud } = geminiRow;
    const address = (env: { readonly [name: string]: string }, baseUrl?: string): unknown =>
      cloud?.address({
        env,
        declared: {
          hasKey: true,
          hasHeaders: false,
          cloud: {},
          ...(baseUrl === undefined ? {} : { baseUrl }),
        },
      });
    assert.equal(address({}), 'https://generativelanguage.googleapis.com/v1beta');
    assert.equal(
      address({ GOOGLE_GEMINI_BASE_URL: 'https://p.example/g/' }),
      'https://p.example/g/v1beta',
    );
    assert.equal(
      address({ GOOGLE_GEMINI_BASE_URL: 'https://p.example/v1' }),
      'https://p.example/v1',
    );
    assert.equal(
      address({ GOOGLE_GEMINI_BASE_URL: 'https://p.example' }, 'https://q.example/v1/'),
      'https://q.example/v1',
    );
  });

  it('what cannot be is reported by its key', () => {
    const problems = (
      more: JsonObject,
      env: { readonly [name: string]: string } = {},
    ): readonly unknown[] =>
      (
        geminiRow.cloud?.problems({
          env,
          declared: { hasKey: false, hasHeaders: false, cloud: {}, ...more },
        }) ?? []
      ).map(({ key, message }) => `${key ?? ''}: ${message}`);
    const key = { GEMINI_API_KEY: 'k' };
    assert.deepEqual(problems({}, key), []);
    assert.deepEqual(problems({}, { GOOGLE_API_KEY: 'k' }), []);
    assert.match(String(problems({})[0]), /^: has no key: set GEMINI_API_KEY or GOOGLE_API_KEY/);
    assert.match(
      String(problems({ dialect: 'openai-chat' }, key)[0]),
      /^dialect: .*gemini-compatible/,
    );
    assert.match(
      String(problems({ baseUrl: 'https://x.example/v1beta/openai/' }, key)[0]),
      /^base_url: .*gemini-compatible/,
    );
    assert.match(
      String(problems({}, { ...key, GOOGLE_GEMINI_BASE_URL: 'ftp://x' })[0]),
      /GOOGLE_GEMINI_BASE_URL is neither/,
    );
  });
});

describe('keys', () => {
  const config = (): object => ({});
  it('appears by itself with a key, the first of the two variables before the second', async () => {
    const key = async (env: { readonly [name: string]: string }): Promise<string | undefined> => {
      let sent: string | undefined;
      await withScene(
        async (scene) => {
          const { received } = await callGemini(scene, { model: 'gemini-3-pro' }, geminiAnswer());
          sent = received[0]?.header('x-goog-api-key');
        },
        config,
        (address) => ({ ...env, GOOGLE_GEMINI_BASE_URL: address }),
      );
      return sent;
    };
    assert.equal(await key({ GEMINI_API_KEY: 'first', GOOGLE_API_KEY: 'second' }), 'first');
    assert.equal(await key({ GOOGLE_API_KEY: 'second' }), 'second');
  });

  it('a second one has another name', () =>
    withScene(
      async ({ gemini, gateway }) => {
        gemini.script('gemini-3-pro', geminiAnswer());
        const body = { model: 'other/gemini-3-pro', messages: [{ role: 'user', content: 'Hi' }] };
        const reply = await send(`${gateway.url}/v1/chat/completions`, body);
        assert.equal(reply.status, 200, reply.text);
        assert.equal(gemini.all[0]?.header('x-goog-api-key'), 'k2');
      },
      (address) => ({
        providers: { other: { like: 'gemini', base_url: `${address}/v1beta`, api_key: 'k2' } },
      }),
    ));
});

const listed = (
  name: string,
  methods: readonly string[] = ['generateContent', 'countTokens'],
): JsonObject => ({
  name: `models/${name}`,
  displayName: name.toUpperCase(),
  inputTokenLimit: 1_048_576,
  outputTokenLimit: 65_536,
  supportedGenerationMethods: methods,
});

describe('lists and counts', () => {
  it('55 the list is read page by page, models that do not answer are omitted', () =>
    withScene(async ({ gemini, gateway }) => {
      gemini.script('/v1beta/models?pageSize=1000', {
        body: JSON.stringify({
          models: [listed('gemini-3-pro'), listed('text-embedding-1', ['embedContent'])],
          nextPageToken: 'a+b',
        }),
      });
      gemini.script('/v1beta/models?pageSize=1000&pageToken=a%2Bb', {
        body: JSON.stringify({ models: [listed('gemini-3-flash')] }),
      });
      const reply = await send(`${gateway.url}/v1/models`, undefined);
      const ids = listAt(tryParseObject(reply.text) ?? {}, 'data').map((model) =>
        textAt(model, 'id'),
      );
      assert.deepEqual(
        ids.filter((id) => id.startsWith('gemini/')),
        ['gemini/gemini-3-pro', 'gemini/gemini-3-flash'],
      );
      for (const [i, path] of ['', '&pageToken=a%2Bb'].entries()) {
        assertAsked(gemini.all[i], `/v1beta/models?pageSize=1000${path}`, 'GET');
      }
      // Its limit is known to calls of the model.
      assert.match(reply.text, /1048576/);
    }));

  it('48 counts name the model and hold all that shapes the prompt', () =>
    withScene(async ({ gemini, gateway }) => {
      gemini.script('gemini-3-pro', { body: JSON.stringify({ totalTokens: 31 }) });
      const reply = await send(`${gateway.url}/v1/messages/count_tokens`, {
        model: 'gemini/gemini-3-pro',
        system: 'Be brief.',
        messages: [{ role: 'user', content: 'Hi' }],
        tools: [{ name: 'w', input_schema: { type: 'object' } }],
        tool_choice: { type: 'any' },
      });
      assert.deepEqual(tryParseObject(reply.text), { input_tokens: 31 });
      const [asked] = gemini.all;
      assertAsked(asked, '/v1beta/models/gemini-3-pro:countTokens');
      assert.deepEqual(Object.keys(asked?.json ?? {}), ['generateContentRequest']);
      assert.deepEqual(asked?.json['generateContentRequest'], {
        contents: [{ role: 'user', parts: [{ text: 'Hi' }] }],
        systemInstruction: { parts: [{ text: 'Be brief.' }] },
        tools: [
          {
            functionDeclarations: [
              {
                name: 'w',
                description: '',
                parametersJsonSchema: { type: 'object', properties: {} },
              },
            ],
          },
        ],
        toolConfig: { functionCallingConfig: { mode: 'ANY' } },
        model: 'models/gemini-3-pro',
      });
    }));

  it('48 a count that is refused is an estimate', () =>
    withScene(async ({ gemini, gateway }) => {
      gemini.script('gemini-3-pro', { status: 400, body: '{"error":{"code":400,"message":"no"}}' });
      const body = { model: 'gemini/gemini-3-pro', messages: [{ role: 'user', content: 'Hi' }] };
      const reply = await send(`${gateway.url}/v1/messages/count_tokens`, body);
      assert.equal(reply.status, 200);
      assert.ok(Number(tryParseObject(reply.text)?.['input_tokens']) > 0);
    }));
});

it('the key is never shown', () => {
  assert.match(geminiKey, /canary/);
});
