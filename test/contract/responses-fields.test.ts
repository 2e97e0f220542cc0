/** Requirements of wire/responses.md §11 about single members of a request: what each upstream is sent for them. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { isObject, type Json, type JsonObject } from '../../src/json/value.ts';
import { upstreamDialects, type UpstreamDialect } from '../support/dialects.ts';
import type { Reply } from '../support/http.ts';
import { listAt, objectAt } from '../support/reading.ts';
import { requestBody } from '../support/requests.ts';
import { ask, startRig, type Rig } from '../support/rig.ts';
import { replying } from '../upstream/reply.ts';

let rig: Rig;
before(async () => {
  rig = await startRig();
});
after(() => rig.stop());

interface Sent {
  readonly reply: Reply;
  /** What the upstream was asked; undefined where it was not. */
  readonly body: JsonObject | undefined;
}

/** @param name of the model, where its traits matter */
async function sendTo(upstream: UpstreamDialect, more: JsonObject, name?: string): Promise<Sent> {
  const answer = replying(upstream, { text: 'ok' });
  const played =
    name === undefined
      ? rig.play(upstream, answer)
      : {
          model: `up-${upstream}/${name}`,
          script: rig.upstreams[upstream].script(name, answer),
        };
  const asked = requestBody('responses', { model: played.model, stream: false, more });
  const reply = await ask(rig, 'responses', asked);
  return { reply, body: played.script.requests.at(-1)?.json };
}

async function served(
  upstream: UpstreamDialect,
  more: JsonObject,
  name?: string,
): Promise<JsonObject> {
  const { reply, body } = await sendTo(upstream, more, name);
  assert.equal(reply.status, 200, reply.text);
  return body ?? {};
}

async function assertRefused(
  upstream: UpstreamDialect,
  more: JsonObject,
  param: string,
): Promise<void> {
  const { reply, body } = await sendTo(upstream, more);
  assert.equal(reply.status, 400, reply.text);
  assert.equal(objectAt(reply.json, 'error')['param'], param);
  assert.equal(body, undefined, 'the upstream was asked');
}

test('a prompt template needs no input: its vendor is asked, other APIs refuse it by name', async () => {
  const template = { prompt: { id: 'pmpt_1', variables: { city: 'Paris' } }, input: null };
  const { prompt } = await served('responses', template);
  assert.deepEqual(prompt, template.prompt);
  for (const upstream of upstreamDialects) {
    if (upstream !== 'responses') await assertRefused(upstream, template, 'prompt');
  }
});

const png = Buffer.from('a picture').toString('base64');
const pdf = Buffer.from('%PDF-1.4').toString('base64');

describe('R-44 a result with a text, a picture and a file', () => {
  const output: Json = [
    { type: 'input_text', text: 'seen' },
    { type: 'input_image', image_url: `data:image/png;base64,${png}`, detail: 'original' },
    { type: 'input_file', filename: 'a.pdf', file_data: `data:application/pdf;base64,${pdf}` },
  ];
  const input: Json = [
    { role: 'user', content: 'Look.' },
    { type: 'function_call', call_id: 'call_1', name: 'look', arguments: '{}' },
    { type: 'function_call_output', call_id: 'call_1', output },
  ];

  test('chat: a text in the result, and the media in the message of the user behind it', async () => {
    const messages = listAt(await served('chat', { input }), 'messages');
    assert.deepEqual(messages.slice(-2), [
      {
        role: 'tool',
        tool_call_id: 'call_1',
        content: 'seen\n[image 1 attached below]\n[document 1 attached below]',
      },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'Image 1 from tool result call_1:' },
          {
            type: 'image_url',
            image_url: { url: `data:image/png;base64,${png}`, detail: 'high' },
          },
          { type: 'text', text: 'Document 1 from tool result call_1:' },
          {
            type: 'file',
            file: { filename: 'a.pdf', file_data: `data:application/pdf;base64,${pdf}` },
          },
        ],
      },
    ]);
  });

  test('messages: blocks of the result', async () => {
    const [result] = listAt(
      listAt(await served('messages', { input }), 'messages').at(-1) ?? {},
      'content',
    );
    assert.deepEqual(result, {
      type: 'tool_result',
      tool_use_id: 'call_1',
      content: [
        { type: 'text', text: 'seen' },
        { type: 'image', source: { type: 'base64', media_type: 'image/png', data: png } },
        {
          type: 'document',
          source: { type: 'base64', media_type: 'application/pdf', data: pdf },
          title: 'a.pdf',
        },
      ],
    });
  });

  test('responses: as it came', async () => {
    assert.deepEqual((await served('responses', { input }))['input'], input);
  });

  test('gemini: parts of the result', async () => {
    const [part = {}] = listAt(
      listAt(await served('gemini', { input }), 'contents').at(-1) ?? {},
      'parts',
    );
    assert.deepEqual(objectAt(part, 'functionResponse'), {
      id: 'call_1',
      name: 'look',
      response: { output: 'seen' },
      parts: [
        { inlineData: { mimeType: 'image/png', data: png } },
        { inlineData: { mimeType: 'application/pdf', data: pdf } },
      ],
    });
  });
});

describe('R-45 a file by its address', () => {
  const url = 'https://files.example/a.pdf';
  const file: JsonObject = { type: 'input_file', file_url: url };
  const input: Json = [{ role: 'user', content: [file] }];
  const lastPart = (body: JsonObject, turns: string, parts: string): JsonObject =>
    listAt(listAt(body, turns).at(-1) ?? {}, parts).at(-1) ?? {};

  test('messages, gemini and responses take the address', async () => {
    const block = lastPart(await served('messages', { input }), 'messages', 'content');
    assert.deepEqual(block, { type: 'document', source: { type: 'url', url } });
    const part = lastPart(await served('gemini', { input }), 'contents', 'parts');
    assert.deepEqual(part, { fileData: { mimeType: 'application/pdf', fileUri: url } });
    assert.deepEqual(lastPart(await served('responses', { input }), 'input', 'content'), file);
  });

  test('chat has no addresses of files: it is refused, and nothing is fetched', () =>
    assertRefused('chat', { input }, 'input[0].content[0]'));
});

describe('R-47 the choice among tools', () => {
  const fn = (name: string): JsonObject => ({
    type: 'function',
    name,
    parameters: { type: 'object', properties: {} },
    strict: false,
  });
  const tools: Json = [
    fn('a'),
    fn('b'),
    { type: 'custom', name: 'free' },
    { type: 'shell' },
    { type: 'apply_patch' },
  ];
  const every = ['a', 'b', 'free', 'shell', 'apply_patch'];
  const named = (name: string): JsonObject => ({ type: 'function', function: { name } });
  const mode = (word: string, names?: readonly string[]): JsonObject => {
    return { mode: word, ...(names === undefined ? {} : { allowedFunctionNames: [...names] }) };
  };
  const ofNames = (kind: string, ...names: readonly string[]): readonly JsonObject[] =>
    names.map((name) => ({ type: kind, name }));

  interface Row {
    readonly asked: Json;
    readonly chat: Json;
    readonly messages: Json;
    readonly gemini: JsonObject;
    /** The tools that a messages upstream is offered; default: all. */
    readonly offered?: readonly string[];
  }
  const forced = (name: string, asked: JsonObject): Row => ({
    asked,
    chat: named(name),
    messages: { type: 'tool', name },
    gemini: mode('ANY', [name]),
  });
  const rows: readonly Row[] = [
    { asked: 'none', chat: 'none', messages: { type: 'none' }, gemini: mode('NONE') },
    { asked: 'auto', chat: 'auto', messages: { type: 'auto' }, gemini: mode('AUTO') },
    { asked: 'required', chat: 'required', messages: { type: 'any' }, gemini: mode('ANY') },
    forced('b', { type: 'function', name: 'b' }),
    forced('free', { type: 'custom', name: 'free' }),
    forced('shell', { type: 'shell' }),
    forced('apply_patch', { type: 'apply_patch' }),
    {
      asked: { type: 'allowed_tools', mode: 'auto', tools: ofNames('function', 'a', 'b') },
      chat: {
        type: 'allowed_tools',
        allowed_tools: { mode: 'auto', tools: [named('a'), named('b')] },
      },
      messages: { type: 'auto' },
      gemini: mode('VALIDATED', ['a', 'b']),
      offered: ['a', 'b'],
    },
    {
      asked: { type: 'allowed_tools', mode: 'required', tools: ofNames('custom', 'free') },
      chat: {
        type: 'allowed_tools',
        allowed_tools: { mode: 'required', tools: [named('free')] },
      },
      messages: { type: 'any' },
      gemini: mode('ANY', ['free']),
      offered: ['free'],
    },
  ];

  for (const { asked, chat, messages, gemini, offered = every } of rows) {
    test(`${JSON.stringify(asked)} is said in the words of each upstream`, async () => {
      const more = { tools, tool_choice: asked };
      assert.deepEqual((await served('chat', more))['tool_choice'], chat);
      const blocks = await served('messages', more);
      assert.deepEqual(blocks['tool_choice'], messages);
      assert.deepEqual(
        listAt(blocks, 'tools').map(({ name }) => name),
        offered,
      );
      const config = objectAt(await served('gemini', more), 'toolConfig');
      assert.deepEqual(config['functionCallingConfig'], gemini);
      assert.deepEqual((await served('responses', more))['tool_choice'], asked);
    });
  }

  const hosted = [
    'file_search',
    'image_generation',
    'code_interpreter',
    'computer',
    'computer_use_preview',
    'mcp',
    'programmatic_tool_calling',
  ];
  test('a tool of the service that is forced is refused where no such tool runs, and relayed', async () => {
    for (const type of hosted) {
      const more: JsonObject = { tools, tool_choice: { type } };
      for (const upstream of ['chat', 'messages', 'gemini'] as const) {
        await assertRefused(upstream, more, 'tool_choice.type');
      }
      assert.deepEqual((await served('responses', more))['tool_choice'], { type });
    }
    for (const tool_choice of [{ type: 'web_search_preview' }, { type: 'function', name: 'c' }]) {
      for (const upstream of ['chat', 'messages', 'gemini'] as const) {
        await assertRefused(upstream, { tools, tool_choice }, 'tool_choice');
      }
    }
  });

  test('parallel_tool_calls: false', async () => {
    const more = { tools, parallel_tool_calls: false };
    for (const upstream of ['chat', 'responses'] as const) {
      assert.equal((await served(upstream, more))['parallel_tool_calls'], false);
    }
    assert.deepEqual((await served('messages', more))['tool_choice'], {
      type: 'auto',
      disable_parallel_tool_use: true,
    });
  });
});

describe('R-53 each effort', () => {
  const efforts = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const;
  type Efforts = { readonly [E in (typeof efforts)[number]]: Json | undefined };
  const asked = (effort: string): JsonObject => ({
    reasoning: { effort },
    max_output_tokens: 10_000,
  });
  const adaptive = (effort: string): JsonObject => ({
    thinking: { type: 'adaptive', display: 'omitted' },
    output_config: { effort },
  });
  const budget = (budget_tokens: number): JsonObject => ({
    thinking: { type: 'enabled', budget_tokens, display: 'omitted' },
  });

  interface Row {
    readonly upstream: UpstreamDialect;
    readonly model: string;
    readonly sent: (body: JsonObject) => Json | undefined;
    readonly efforts: Efforts;
  }
  const thinkingOf = ({ thinking, output_config }: JsonObject): JsonObject => ({
    ...(thinking === undefined ? {} : { thinking }),
    ...(output_config === undefined ? {} : { output_config }),
  });
  const rows: readonly Row[] = [
    {
      upstream: 'chat',
      model: 'three-efforts',
      sent: (body) => body['reasoning_effort'],
      efforts: {
        none: 'low',
        minimal: 'low',
        low: 'low',
        medium: 'medium',
        high: 'high',
        xhigh: 'high',
        max: 'high',
      },
    },
    {
      upstream: 'messages',
      model: 'claude-opus-5',
      sent: thinkingOf,
      efforts: {
        none: { thinking: { type: 'disabled' } },
        minimal: adaptive('low'),
        low: adaptive('low'),
        medium: adaptive('medium'),
        high: adaptive('high'),
        xhigh: adaptive('xhigh'),
        max: adaptive('max'),
      },
    },
    {
      // Of the cap: 10, 30, 60, 80 and 90 %, and never less than 1,024 tokens.
      upstream: 'messages',
      model: 'claude-sonnet-4-5',
      sent: thinkingOf,
      efforts: {
        none: {},
        minimal: budget(1024),
        low: budget(1024),
        medium: budget(3000),
        high: budget(6000),
        xhigh: budget(8000),
        max: budget(9000),
      },
    },
    {
      upstream: 'gemini',
      model: 'gemini-3-pro',
      sent: (body) =>
        objectAt(objectAt(body, 'generationConfig'), 'thinkingConfig')['thinkingLevel'],
      efforts: {
        none: 'low',
        minimal: 'low',
        low: 'low',
        medium: 'low',
        high: 'high',
        xhigh: 'high',
        max: 'high',
      },
    },
    {
      upstream: 'converse',
      model: 'openai.gpt-oss-120b-1:0',
      sent: (body) => objectAt(body, 'additionalModelRequestFields')['reasoning_effort'],
      efforts: {
        none: 'low',
        minimal: 'low',
        low: 'low',
        medium: 'medium',
        high: 'high',
        xhigh: 'high',
        max: 'high',
      },
    },
    {
      upstream: 'responses',
      model: 'any',
      sent: ({ reasoning }) => (isObject(reasoning) ? reasoning['effort'] : undefined),
      efforts: {
        none: 'none',
        minimal: 'minimal',
        low: 'low',
        medium: 'medium',
        high: 'high',
        xhigh: 'xhigh',
        max: 'max',
      },
    },
  ];

  for (const { upstream, model, sent, efforts: wanted } of rows) {
    test(`${upstream}, ${model}: what it knows, and a note where it is another one`, async () => {
      for (const effort of efforts) {
        const { reply, body = {} } = await sendTo(upstream, asked(effort), model);
        assert.equal(reply.status, 200, reply.text);
        assert.deepEqual(sent(body), wanted[effort], effort);
        const isName = typeof wanted[effort] === 'string';
        const noted = /reasoning\.effort: changed/.test(
          String(reply.headers['x-gateway-notes'] ?? ''),
        );
        assert.equal(noted, isName && wanted[effort] !== effort, effort);
      }
    });
  }

  test('there is a row for each upstream dialect', () => {
    assert.deepEqual(
      [...new Set(rows.map(({ upstream }) => upstream))].toSorted(),
      [...upstreamDialects].toSorted(),
    );
  });
});
