/** Bodies that look odd and must be served, with nothing lost on the way to the upstream. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { tryParseObject } from '../../src/json/parse.ts';
import { isObject, type JsonObject } from '../../src/json/value.ts';
import {
  pairs,
  upstreamDialects,
  clientDialects,
  type Pair,
  type UpstreamDialect,
} from '../support/dialects.ts';
import { listAt, objectAt } from '../support/reading.ts';
import { ask, startRig, type Rig } from '../support/rig.ts';
import { requestBody } from '../support/requests.ts';
import { send, type Reply, type Sending } from '../support/http.ts';
import { rawPost } from '../support/raw-post.ts';
import { replying } from '../upstream/reply.ts';
import { modelIn } from '../upstream/scripted.ts';
import { messagesWith, tool, user } from './bad-row.ts';
import { goodImages } from './media-rows.ts';

let rig: Rig;
before(async () => {
  rig = await startRig();
});
after(() => rig.stop());

interface Served {
  readonly reply: Reply;
  /** What the upstream got. */
  readonly sent: JsonObject;
  readonly text: string;
  /** The name that it was asked for by. */
  readonly model: string;
}

/** What a request calls its turns. */
const turnsOf: { readonly [D in UpstreamDialect]: string } = {
  chat: 'messages',
  messages: 'messages',
  responses: 'input',
  gemini: 'contents',
  converse: 'messages',
};

/** Sends a body (its model name filled in for `MODEL`) and expects it to be answered. */
async function serve(
  { client, upstream }: Pair,
  body: (model: string) => unknown,
  sending: Sending = {},
): Promise<Served> {
  const { model, script } = rig.play(upstream, replying(upstream, { text: 'Hello' }));
  const reply = await ask(rig, client, body(model), sending);
  assert.equal(reply.status, 200, reply.text);
  const request = script.requests[0];
  assert.ok(request !== undefined, 'the upstream was asked');
  const text = request.body.toString('utf8');
  return { reply, sent: request.json, text, model: modelIn(request) };
}

/** What the gateway would add to a relayed request (wire/responses.md §3.12). */
const complete = {
  chat: {},
  messages: {},
  responses: { store: false, include: ['reasoning.encrypted_content'] },
} as const;

for (const pair of pairs) {
  const { client: dialect, upstream } = pair;
  const mode = dialect === upstream ? 'relay' : 'translate';
  const legal = (model: string, more: JsonObject = {}): JsonObject =>
    requestBody(dialect, { model, stream: false, more });

  describe(`${dialect} on ${upstream}`, () => {
    test('B27 no content-type is read as JSON', async () => {
      const { model } = rig.play(upstream, replying(upstream, { text: 'Hello' }));
      const body = JSON.stringify(legal(model));
      const text = await rawPost(rig.gateway.url, { dialect, body, contentType: undefined });
      assert.match(text, /^HTTP\/1\.1 200 /);
    });

    test('B28 charset utf-8', async () => {
      await serve(pair, (model) => legal(model), {
        headers: { 'content-type': 'application/json; charset=UTF-8' },
      });
    });

    test('B32 a byte order mark', async () => {
      const { text } = await serve(pair, (model) => `\ufeff${JSON.stringify(legal(model))}`);
      assert.ok(text.startsWith('{'), 'the mark does not go on');
    });

    test('B39 a key that stands twice in depth reaches the upstream once', async () => {
      const { text } = await serve(pair, (model) =>
        JSON.stringify(legal(model)).replace('"role":"user"', '"role":"user","role":"user"'),
      );
      assert.equal(text.match(/"role"/g)?.length, 1, text);
    });

    test('B40 __proto__ and constructor are data', async () => {
      const schema =
        '{"type":"object","properties":{"__proto__":{"type":"string"},"constructor":{"type":"string"}}}';
      const { text } = await serve(pair, (model) =>
        JSON.stringify(legal(model, { tools: [tool(dialect, 'f', { here: true })] })).replace(
          '{"here":true}',
          schema,
        ),
      );
      assert.ok(text.includes('"__proto__":{"type":"string"}'), text);
      assert.ok(text.includes('"constructor":{"type":"string"}'), text);
      assert.equal(Reflect.get({}, 'type'), undefined);
    });

    test('B41 integers keep their digits, and numbers that doubles hold stay numbers', async () => {
      const numbers = '{"a":9007199254740993,"b":-0,"c":1E-400,"d":5.0,"e":18446744073709551616}';
      const { text } = await serve(pair, (model) =>
        JSON.stringify(legal(model, { tools: [tool(dialect, 'f', { here: true })] })).replace(
          '{"here":true}',
          `{"type":"object","properties":{},"x-numbers":${numbers}}`,
        ),
      );
      for (const exact of ['9007199254740993', '18446744073709551616']) {
        assert.ok(text.includes(exact), text);
      }
      assert.ok(!text.includes('null'), text);
    });

    for (const bytes of [20_000, 100_000, 300_000]) {
      test(`B39 of a long body nothing is lost, and its bytes stay, ${bytes / 1000} KB`, async () => {
        const said = 'Said "so"\\n\u{1f600} in ä line. '.repeat(60);
        const history = Array.from({ length: Math.ceil(bytes / said.length) }, (_, i) => ({
          role: i % 2 === 0 ? 'user' : 'assistant',
          content: `${said}${i}`,
        }));
        history.push({ role: 'user', content: `${said}the last` });
        const schema = { type: 'object', properties: { place: { type: 'string' } } };
        const many = Array.from({ length: 30 }, (_, i) => tool(dialect, `tool_${i}`, schema));
        let client = '';
        const { text, sent } = await serve(pair, (model) => {
          const more = { messages: history, tools: many, ...complete[dialect] };
          client = JSON.stringify(legal(model, more), null, 1);
          return client;
        });
        const written = `"model": ${JSON.stringify(sent['model'])}`;
        const expected = client.replace(/"model": "[^"]*"/, () => written);
        if (mode === 'relay') assert.equal(text, expected);
        for (const { content } of history) {
          assert.ok(text.includes(JSON.stringify(content).slice(1, -1)), content.slice(-10));
        }
        for (let i = 0; i < 30; i++) assert.ok(text.includes(`"tool_${i}"`), `tool_${i}`);
        assert.equal(text.split('"place"').length, 31);
      });
    }

    test('B65 signs that turn or hide text are data', async () => {
      const odd = 'a\u202eb\u200bc\u001b[31md';
      const { text } = await serve(pair, (model) =>
        legal(model, messagesWith({ role: 'user', content: odd })),
      );
      assert.ok(text.includes(JSON.stringify(odd).slice(1, -1)), text);
    });

    test('B64 a lone surrogate stays an escape', async () => {
      const { text } = await serve(pair, (model) =>
        JSON.stringify(legal(model)).replace('Hello', 'a\\ud800b'),
      );
      assert.ok(/a\\ud800b/i.test(text), text);
    });

    test('E1 G2 text of any script arrives as it is', async () => {
      const said = '你好🦀 \u0000\u001b[31m \u202e "quoted" \\ back';
      const { sent } = await serve(pair, (model) =>
        legal(model, messagesWith({ role: 'user', content: said })),
      );
      const [turn] = listAt(sent, turnsOf[upstream]);
      const content = turn?.['content'] ?? turn?.['parts'];
      const first = Array.isArray(content) ? content.find(isObject)?.['text'] : content;
      assert.equal(first, said);
    });

    test('A4 an unknown top-level field: forwarded to the same dialect, else dropped and noted', async () => {
      const { sent, reply } = await serve(pair, (model) =>
        legal(model, { brand_new_field: { a: 1 } }),
      );
      if (mode === 'relay') {
        assert.deepEqual(sent['brand_new_field'], { a: 1 });
      } else {
        assert.equal(sent['brand_new_field'], undefined);
        assert.match(String(reply.headers['x-gateway-notes']), /brand_new_field/);
      }
    });

    test('C4 the model name: upstream gets its own, the client its own', async () => {
      const { model, reply } = await serve(pair, (name) => legal(name));
      assert.match(model, /^model-\d+$/);
      assert.equal(reply.json['model'], `up-${upstream}/${model}`);
      assert.equal(reply.headers['x-gateway-mode'], mode);
      assert.equal(reply.headers['x-gateway-attempts'], '1');
      assert.equal(reply.headers['x-gateway-target'], reply.json['model']);
    });

    // Converse takes no addresses (wire/bedrock.md).
    const images = goodImages.filter((url) => upstream !== 'converse' || url.startsWith('data:'));
    for (const url of images) {
      test(`B59 B61 an image is passed on: ${url.slice(0, 40)}`, async () => {
        const [, mediaType = '', data = ''] = /^data:([^;]*);base64,(.*)$/.exec(url) ?? [];
        const source =
          data === '' ? { type: 'url', url } : { type: 'base64', media_type: mediaType, data };
        const image = {
          chat: { type: 'image_url', image_url: { url } },
          messages: { type: 'image', source },
          responses: { type: 'input_image', image_url: url },
        }[dialect];
        const { text } = await serve(pair, (model) =>
          legal(model, messagesWith({ role: 'user', content: [image] })),
        );
        assert.ok(text.includes(data === '' ? url : data), text);
      });
    }

    test('S17 only headers that are meant for it go up', async () => {
      const { model, script } = rig.play(upstream, replying(upstream, { text: 'Hello' }));
      await ask(rig, dialect, legal(model), {
        headers: {
          cookie: 'a=b',
          'x-forwarded-for': '1.2.3.4',
          'x-api-key': 'test-key-0123456789abcdef',
        },
      });
      const request = script.requests[0];
      assert.equal(request?.header('cookie'), undefined);
      assert.equal(request?.header('x-forwarded-for'), undefined);
      const sent =
        request?.headerLines.map(([name, value]) => `${name}: ${value}`).join('\n') ?? '';
      assert.ok(!sent.includes('test-key-0123456789abcdef'), 'the client key stays here');
      assert.ok(sent.includes(`upstream-${upstream}-key`), 'the upstream key is sent');
    });
  });
}

describe('chat', () => {
  for (const upstream of upstreamDialects) {
    test(`B42 null means absent, ${upstream} upstream`, async () => {
      const nulls = {
        max_tokens: null,
        max_completion_tokens: null,
        temperature: null,
        top_p: null,
        n: null,
        stop: null,
        stream: null,
        stream_options: null,
        tools: null,
        response_format: null,
        seed: null,
        user: null,
      };
      await serve({ client: 'chat', upstream }, (model) =>
        requestBody('chat', { model, stream: false, more: nulls }),
      );
    });

    test(`B41 a seed of 64 bits, ${upstream} upstream`, async () => {
      for (const seed of ['9007199254740993', '9223372036854775807', '-9223372036854775808']) {
        const { text } = await serve({ client: 'chat', upstream }, (model) =>
          JSON.stringify(requestBody('chat', { model, stream: false, more: { seed: 7 } })).replace(
            '"seed":7',
            `"seed":${seed}`,
          ),
        );
        if (upstream === 'chat') assert.ok(text.includes(`"seed":${seed}`), text);
      }
    });

    test(`A9 without "stream" the answer is one document, ${upstream} upstream`, async () => {
      const { reply } = await serve({ client: 'chat', upstream }, (model) =>
        requestBody('chat', { model, stream: false }),
      );
      assert.match(String(reply.headers['content-type']), /^application\/json/);
    });
  }

  const brokenTurn = messagesWith(
    user,
    {
      role: 'assistant',
      content: null,
      tool_calls: [{ id: 'a', type: 'function', function: { name: 'f', arguments: '{"x": tru' } }],
    },
    { role: 'tool', tool_call_id: 'a', content: 'x' },
  );

  test('B55 broken tool arguments of an old turn: wrapped and noted in translation', async () => {
    const { sent, reply } = await serve({ client: 'chat', upstream: 'messages' }, (model) =>
      requestBody('chat', { model, stream: false, more: brokenTurn }),
    );
    const blocks = listAt(sent, 'messages').flatMap((message) => listAt(message, 'content'));
    const call = blocks.find((block) => block['type'] === 'tool_use');
    assert.deepEqual(call?.['input'], { _raw: '{"x": tru' });
    assert.match(String(reply.headers['x-gateway-notes']), /messages/);
  });

  test('B55 broken tool arguments of an old turn: untouched on the same wire', async () => {
    const { sent } = await serve({ client: 'chat', upstream: 'chat' }, (model) =>
      requestBody('chat', { model, stream: false, more: brokenTurn }),
    );
    const call = listAt(listAt(sent, 'messages')[1] ?? {}, 'tool_calls')[0] ?? {};
    assert.equal(objectAt(call, 'function')['arguments'], '{"x": tru');
  });

  test('E6 the upstream is asked for usage even when the client did not ask', async () => {
    const { model, script } = rig.play('chat', replying('chat', { text: 'Hello' }));
    const body = { model, messages: [user], stream: true };
    const reply = await ask(rig, 'chat', body);
    assert.equal(objectAt(script.requests[0]?.json ?? {}, 'stream_options')['include_usage'], true);
    assert.ok(!/"usage":\{/.test(reply.text), 'no usage chunk for this client');
    const row = await rig.gateway.callRow(String(reply.headers['x-request-id']));
    assert.equal(objectAt(row, 'charged')['output_tokens'], 7);
  });
});

describe('messages', () => {
  for (const upstream of upstreamDialects) {
    test(`A1 a system message in mid-conversation reaches the upstream once, ${upstream}`, async () => {
      const { text } = await serve({ client: 'messages', upstream }, (model) =>
        requestBody('messages', {
          model,
          stream: false,
          more: {
            system: 'Top rule.',
            ...messagesWith(user, { role: 'system', content: 'Reminder in the middle.' }),
          },
        }),
      );
      assert.equal(text.split('Reminder in the middle.').length, 2, text);
      assert.equal(text.split('Top rule.').length, 2, text);
    });

    test(`A12 system as a list of blocks, ${upstream}`, async () => {
      const { text } = await serve({ client: 'messages', upstream }, (model) =>
        requestBody('messages', {
          model,
          stream: false,
          more: {
            system: [
              { type: 'text', text: 'One.' },
              { type: 'text', text: 'Two.' },
            ],
          },
        }),
      );
      assert.ok(text.includes('One.') && text.includes('Two.'));
    });

    test(`A8 ?beta=true and a doubled /v1, ${upstream}`, async () => {
      for (const path of [
        '/v1/messages?beta=true',
        '/v1/v1/messages',
        '/v1/v1/messages?beta=true',
      ]) {
        const { model } = rig.play(upstream, replying(upstream, { text: 'Hello' }));
        const reply = await send(
          `${rig.gateway.url}${path}`,
          requestBody('messages', { model, stream: false }),
        );
        assert.equal(reply.status, 200, `${path}: ${reply.text}`);
      }
    });
  }

  test('B42 max_tokens 0 never reaches a chat upstream as 0', async () => {
    const { model, script } = rig.play('chat', replying('chat', { text: 'Hello' }));
    const reply = await ask(rig, 'messages', {
      ...requestBody('messages', { model, stream: false }),
      max_tokens: 0,
    });
    assert.ok(reply.status === 200 || reply.status === 400, reply.text);
    assert.equal(script.requests.length, 0);
    if (reply.status === 200) assert.deepEqual(tryParseObject(reply.text)?.['content'], []);
  });

  test('B68 anthropic-version and anthropic-beta are passed on to a messages upstream', async () => {
    const { model, script } = rig.play('messages', replying('messages', { text: 'Hello' }));
    await ask(rig, 'messages', requestBody('messages', { model, stream: false }), {
      headers: { 'anthropic-version': '2026-10-21', 'anthropic-beta': 'one,two' },
    });
    assert.equal(script.requests[0]?.header('anthropic-version'), '2026-10-21');
    assert.equal(script.requests[0]?.header('anthropic-beta'), 'one,two');
  });

  test('B69 a beta that is named twice is passed on once', async () => {
    const { model, script } = rig.play('messages', replying('messages', { text: 'Hello' }));
    await ask(rig, 'messages', requestBody('messages', { model, stream: false }), {
      headers: { 'anthropic-beta': Array.from({ length: 200 }, (_, i) => `b${i % 7}`).join(', ') },
    });
    assert.equal(script.requests[0]?.header('anthropic-beta'), 'b0,b1,b2,b3,b4,b5,b6');
  });

  test('B68 a missing anthropic-version is filled in', async () => {
    for (const dialect of clientDialects) {
      const { model, script } = rig.play('messages', replying('messages', { text: 'Hello' }));
      await ask(rig, dialect, requestBody(dialect, { model, stream: false }));
      assert.equal(script.requests[0]?.header('anthropic-version'), '2023-06-01');
    }
  });
});
