/** What Gemini is asked (wire/gemini.md §11: 32–46, 53, 56). The scripted server refuses what the service would. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { isObject, type JsonObject } from '../../src/json/value.ts';
import { clientDialects } from '../support/dialects.ts';
import type { Reply } from '../support/http.ts';
import { listAt, objectAt, textAt } from '../support/reading.ts';
import { geminiAnswer, streamOf } from '../upstream/gemini.ts';
import type { Received } from '../upstream/scripted.ts';
import { callGemini, startGemini, type GeminiCall, type GeminiScene } from './gemini-scene.ts';

let scene: GeminiScene;
before(async () => {
  scene = await startGemini();
});
after(() => scene.stop());

interface Asked {
  readonly sent: JsonObject;
  readonly notes: string;
  readonly reply: Reply;
  readonly received: readonly Received[];
}

/** The request that a call led to. */
async function asked(call: GeminiCall): Promise<Asked> {
  const { reply, received } = await callGemini(
    scene,
    call,
    call.stream === true ? streamOf({}) : geminiAnswer(),
  );
  return {
    sent: received[0]?.json ?? {},
    notes: String(reply.headers['x-gateway-notes'] ?? ''),
    reply,
    received,
  };
}

async function configOf(call: GeminiCall): Promise<JsonObject> {
  const { sent, reply } = await asked(call);
  assert.equal(reply.status, 200, reply.text);
  return objectAt(sent, 'generationConfig');
}

/** The parts of each content, with its role in front. */
function contentsOf(sent: JsonObject): readonly (readonly unknown[])[] {
  return listAt(sent, 'contents').map((content) => [
    textAt(content, 'role'),
    ...listAt(content, 'parts'),
  ]);
}

const weather = {
  type: 'function',
  function: {
    name: 'w',
    description: 'Weather.',
    parameters: { type: 'object', properties: { a: { type: 'integer' } } },
  },
} as const;

/** A history with two calls, as a chat client has it. @param results what answers them */
function twoCalls(results: readonly JsonObject[], ...after: readonly JsonObject[]): JsonObject {
  const call = (id: string, args: string): JsonObject => ({
    id,
    type: 'function',
    function: { name: 'w', arguments: args },
  });
  return {
    tools: [weather],
    messages: [
      { role: 'user', content: 'Compare.' },
      {
        role: 'assistant',
        content: null,
        tool_calls: [call('c1', '{"a":1}'), call('c2', '{"a":2}')],
      },
      ...results,
      ...after,
    ],
  };
}

const image =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

describe('turns', () => {
  it('33 34 results stand in the order of their calls, alone; what the user says follows', async () => {
    const { sent } = await asked({
      model: 'gemini-2.5-pro',
      more: twoCalls(
        [
          { role: 'tool', tool_call_id: 'c2', content: 'two' },
          { role: 'tool', tool_call_id: 'c1', content: 'one' },
        ],
        { role: 'user', content: 'And now?' },
      ),
    });
    assert.deepEqual(contentsOf(sent), [
      ['user', { text: 'Compare.' }],
      [
        'model',
        { functionCall: { name: 'w', args: { a: 1 }, id: 'c1' } },
        { functionCall: { name: 'w', args: { a: 2 }, id: 'c2' } },
      ],
      [
        'user',
        { functionResponse: { name: 'w', response: { output: 'one' }, id: 'c1' } },
        { functionResponse: { name: 'w', response: { output: 'two' }, id: 'c2' } },
      ],
      ['user', { text: 'And now?' }],
    ]);
  });

  it('35 36 a picture in a result, and a failed one, on Gemini 3 and before it', async () => {
    const source = { type: 'base64', media_type: 'image/png', data: image };
    const messages = {
      messages: [
        { role: 'user', content: 'Look.' },
        { role: 'assistant', content: [{ type: 'tool_use', id: 't1', name: 'w', input: {} }] },
        {
          role: 'user',
          content: [
            {
              type: 'tool_result',
              tool_use_id: 't1',
              is_error: true,
              content: [
                { type: 'text', text: 'no luck' },
                { type: 'image', source },
              ],
            },
          ],
        },
      ],
      tools: [{ name: 'w', input_schema: { type: 'object' } }],
    };
    const inlineData = { mimeType: 'image/png', data: image };
    const newer = await asked({ dialect: 'messages', model: 'gemini-3-pro', more: messages });
    assert.deepEqual(contentsOf(newer.sent).slice(2), [
      [
        'user',
        {
          functionResponse: {
            name: 'w',
            response: { error: 'no luck' },
            parts: [{ inlineData }],
            id: 't1',
          },
        },
      ],
    ]);
    const older = await asked({ dialect: 'messages', model: 'gemini-2.5-pro', more: messages });
    assert.deepEqual(contentsOf(older.sent).slice(2), [
      [
        'user',
        {
          functionResponse: {
            name: 'w',
            response: { error: 'no luck\n[file 1 attached below]' },
            id: 't1',
          },
        },
      ],
      ['user', { text: 'File 1 from tool result t1:' }, { inlineData }],
    ]);
  });

  it('instructions come first; those after the first answer are sent as the user', async () => {
    const { sent, notes } = await asked({
      model: 'gemini-3-pro',
      more: {
        messages: [
          { role: 'system', content: 'Be brief.' },
          { role: 'user', content: 'Hi' },
          { role: 'assistant', content: 'Hello' },
          { role: 'system', content: 'Now in German.' },
          { role: 'user', content: 'Go on' },
        ],
      },
    });
    assert.deepEqual(sent['systemInstruction'], { parts: [{ text: 'Be brief.' }] });
    assert.deepEqual(contentsOf(sent).at(-1), [
      'user',
      { text: '<system>\nNow in German.\n</system>' },
      { text: 'Go on' },
    ]);
    assert.match(notes, /messages\.3/);
  });

  it('46 Gemma has no instructions: they begin the first turn', async () => {
    const { sent, notes } = await asked({
      model: 'gemma-3-27b-it',
      more: {
        messages: [
          { role: 'system', content: 'Be brief.' },
          { role: 'user', content: 'Hi' },
        ],
      },
    });
    assert.equal(sent['systemInstruction'], undefined);
    assert.deepEqual(contentsOf(sent), [['user', { text: 'Be brief.' }, { text: 'Hi' }]]);
    assert.match(notes, /no instructions/);
  });

  it('instructions alone become the question; a last turn of the model is asked to be gone on with', async () => {
    const only = await asked({
      model: 'gemini-3-pro',
      more: { messages: [{ role: 'system', content: 'Say hi.' }] },
    });
    assert.deepEqual(contentsOf(only.sent), [['user', { text: 'Say hi.' }]]);
    const begun = await asked({
      dialect: 'messages',
      model: 'gemini-3-pro',
      more: {
        messages: [
          { role: 'user', content: 'Hi' },
          { role: 'assistant', content: 'Hel' },
        ],
      },
    });
    assert.deepEqual(contentsOf(begun.sent).at(-1), ['user', { text: 'Continue.' }]);
    assert.match(begun.notes, /asked to continue/);
  });

  it('the one resolution of a request is low where only such images are shown; else each that differs is noted', async () => {
    const url = `data:image/png;base64,${image}`;
    const at = (detail?: string): JsonObject => ({
      type: 'input_image',
      image_url: url,
      ...(detail === undefined ? {} : { detail }),
    });
    const file = (name: string, data: string): JsonObject => ({
      type: 'input_file',
      filename: name,
      file_data: data,
    });
    const pdf = file('a.pdf', `data:application/pdf;base64,${btoa('%PDF-1.4')}`);
    const text = file('a.txt', `data:text/plain;base64,${btoa('Hi')}`);
    const high = 'changed, the provider has one detail for all media: high';
    const open = 'changed, the provider has one detail for all media: the model decides';
    const rows: readonly (readonly [
      user: readonly JsonObject[],
      result: readonly JsonObject[],
      resolution: string | undefined,
      notes: { readonly [path: string]: string },
    ])[] = [
      [[at('low'), at('low'), text], [], 'LOW', {}],
      [[at('high')], [], 'HIGH', {}],
      [[at()], [at('auto')], undefined, {}],
      [[at('low'), at('high')], [], 'HIGH', { 'input.2.content.1': high }],
      [[at('low'), at()], [], undefined, { 'input.2.content.1': open }],
      [[at('low'), pdf], [], undefined, { 'input.2.content.1': open }],
      [[at('high'), pdf], [], 'HIGH', { 'input.2.content.2': high }],
      [[], [at('low')], 'LOW', {}],
      [[at('low')], [at('high')], 'HIGH', { 'input.2.content.1': high }],
      [[at('high')], [at('low')], 'HIGH', { 'input.1.output.0': high }],
      [[at('medium')], [], undefined, { 'input.2.content.1': open }],
    ];
    for (const [user, result, resolution, expected] of rows) {
      const { sent, notes, reply } = await asked({
        dialect: 'responses',
        model: 'gemini-3-pro-preview',
        more: {
          input: [
            { type: 'function_call', call_id: 'c', name: 'w', arguments: '{}' },
            {
              type: 'function_call_output',
              call_id: 'c',
              output: [...result, { type: 'input_text', text: 'x' }],
            },
            { role: 'user', content: [{ type: 'input_text', text: 'See' }, ...user] },
          ],
        },
      });
      assert.equal(reply.status, 200, reply.text);
      const config = isObject(sent['generationConfig']) ? sent['generationConfig'] : {};
      assert.equal(
        config['mediaResolution'],
        resolution === undefined ? undefined : `MEDIA_RESOLUTION_${resolution}`,
      );
      const told = notes.split('; ').filter((note) => note.includes('one detail'));
      assert.deepEqual(
        told,
        Object.entries(expected).map(([path, note]) => `${path}: ${note}`),
      );
    }
  });

  it('media go inline, or by an address that the model reads', async () => {
    const parts = (...content: readonly JsonObject[]): JsonObject => ({
      messages: [{ role: 'user', content }],
    });
    const url = (address: string): JsonObject => ({
      type: 'image_url',
      image_url: { url: address },
    });
    const inline = await asked({
      model: 'gemini-2.5-flash',
      more: parts(
        url(`data:image/png;base64,${image}`),
        {
          type: 'file',
          file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,JVBERi0=' },
        },
        { type: 'input_audio', input_audio: { data: 'UklGRg==', format: 'wav' } },
      ),
    });
    assert.equal(inline.reply.status, 200, inline.reply.text);
    assert.deepEqual(contentsOf(inline.sent)[0]?.slice(1), [
      { inlineData: { mimeType: 'image/png', data: image } },
      { inlineData: { mimeType: 'application/pdf', data: 'JVBERi0=' } },
      { inlineData: { mimeType: 'audio/wav', data: 'UklGRg==' } },
    ]);
    assert.equal(
      inline.notes,
      'messages.0.content.1: dropped, only the name of the file, for which the model has no place: the file is sent',
    );
    const address = 'https://pictures.example/a.jpg?x=1';
    const byAddress = await asked({ model: 'gemini-3-pro', more: parts(url(address)) });
    assert.deepEqual(contentsOf(byAddress.sent)[0]?.slice(1), [
      { fileData: { mimeType: 'image/jpeg', fileUri: address } },
    ]);
    const refused = await asked({ model: 'gemini-2.5-pro', more: parts(url(address)) });
    assert.equal(refused.reply.status, 400);
    assert.equal(refused.received.length, 0);
  });
});

const schemaWithRefs = {
  type: 'object',
  properties: {
    kind: { const: 'x' },
    name: { type: ['string', 'null'] },
    node: { $ref: '#/$defs/node' },
    any: { type: 'object', properties: {} },
  },
  required: ['kind', 'gone'],
  additionalProperties: false,
  $defs: { node: { type: 'object', properties: { next: { $ref: '#/$defs/node' } } } },
};

function toolWith(parameters: JsonObject, strict?: boolean): JsonObject {
  return {
    type: 'function',
    function: { name: 'f', parameters, ...(strict === undefined ? {} : { strict }) },
  };
}

describe('tools', () => {
  const declared = (sent: JsonObject): JsonObject =>
    listAt(listAt(sent, 'tools')[0] ?? {}, 'functionDeclarations')[0] ?? {};

  it('37 schemas go as they are where the model takes JSON Schema', async () => {
    const { sent } = await asked({
      model: 'gemini-2.5-pro',
      more: { tools: [toolWith(schemaWithRefs)] },
    });
    assert.deepEqual(declared(sent), {
      name: 'f',
      description: '',
      parametersJsonSchema: schemaWithRefs,
    });
  });

  it('37 and as a subset of OpenAPI elsewhere: references, constants, null, cycles, empty objects', async () => {
    const { sent, notes } = await asked({
      model: 'gemini-2.0-flash',
      more: { tools: [toolWith(schemaWithRefs), { ...weather, function: { name: 'none' } }] },
    });
    assert.deepEqual(declared(sent)['parameters'], {
      type: 'object',
      properties: {
        kind: { enum: ['x'], type: 'string' },
        name: { nullable: true, type: 'string' },
        node: { type: 'object', properties: { next: {} } },
        any: { type: 'object' },
      },
      required: ['kind'],
    });
    assert.match(notes, /knows no \$ref/);
    const [, none] = listAt(listAt(sent, 'tools')[0] ?? {}, 'functionDeclarations');
    assert.deepEqual(none, { name: 'none', description: '' });
  });

  it('37 a model that does not know JSON Schema after all is asked again with the subset', async () => {
    const { reply, received } = await callGemini(
      scene,
      {
        model: 'gemini-9-old',
        more: { tools: [toolWith({ type: 'object', properties: { a: { type: 'string' } } })] },
      },
      {
        status: 400,
        body: JSON.stringify({
          error: {
            code: 400,
            message:
              'Invalid JSON payload received. Unknown name "parametersJsonSchema" at \'tools[0].function_declarations[0]\': Cannot find field.',
            status: 'INVALID_ARGUMENT',
          },
        }),
      },
      streamOf({}),
    );
    assert.equal(reply.status, 200, reply.text);
    assert.ok(isObject(declared(received[1]?.json ?? {})['parameters']));
  });

  it('39 each choice of a tool has its mode', async () => {
    const named = { type: 'function', function: { name: 'w' } };
    const rows: readonly (readonly [JsonObject, unknown])[] = [
      [{}, undefined],
      [{ tool_choice: 'auto' }, { mode: 'AUTO' }],
      [{ tool_choice: 'none' }, { mode: 'NONE' }],
      [{ tool_choice: 'required' }, { mode: 'ANY' }],
      [{ tool_choice: named }, { mode: 'ANY', allowedFunctionNames: ['w'] }],
      [
        { tool_choice: { type: 'allowed_tools', allowed_tools: { mode: 'auto', tools: [named] } } },
        { mode: 'VALIDATED', allowedFunctionNames: ['w'] },
      ],
      [
        {
          tool_choice: {
            type: 'allowed_tools',
            allowed_tools: { mode: 'required', tools: [named] },
          },
        },
        { mode: 'ANY', allowedFunctionNames: ['w'] },
      ],
    ];
    for (const [more, wanted] of rows) {
      const tools = [weather, toolWith({ type: 'object', properties: {} })];
      const { sent } = await asked({ model: 'gemini-3-pro', more: { tools, ...more } });
      assert.deepEqual(objectAt(sent, 'toolConfig')['functionCallingConfig'], wanted);
      assert.equal(listAt(listAt(sent, 'tools')[0] ?? {}, 'functionDeclarations').length, 2);
    }
    const strict = await asked({
      model: 'gemini-3-pro',
      more: { tools: [toolWith({ type: 'object', properties: {} }, true)] },
    });
    assert.deepEqual(strict.sent['toolConfig'], { functionCallingConfig: { mode: 'VALIDATED' } });
  });

  it('39 D3 a strict tool is noted where the model enforces no schema', async () => {
    const tools = [toolWith({ type: 'object', properties: {} }, true)];
    const older = await asked({ model: 'gemini-2.0-flash', more: { tools } });
    assert.equal(older.sent['toolConfig'], undefined);
    assert.match(older.notes, /tools\.0\.function\.strict: dropped/);
    // A demanded call follows its schema.
    const more = { tools, tool_choice: 'required' };
    const forced = await asked({ model: 'gemini-2.0-flash', more });
    assert.equal(forced.notes, '');
  });

  it('40 of several calls the first is kept where one was asked for', async () => {
    const call = (a: number): JsonObject => ({ functionCall: { name: 'w', args: { a } } });
    for (const stream of [false, true]) {
      const answer = { parts: [call(1), call(2)] };
      const { reply } = await callGemini(
        scene,
        {
          model: `gemini-one-${String(stream)}`,
          stream,
          more: { tools: [weather], parallel_tool_calls: false },
        },
        stream ? streamOf(answer) : geminiAnswer(answer),
      );
      assert.match(reply.text, /\{\\"a\\":1\}/);
      assert.doesNotMatch(reply.text, /\{\\"a\\":2\}/);
      assert.match(String(reply.headers['x-gateway-notes']), /only the first call is kept/);
    }
  });

  it('a search of the provider is offered where the operator allows it', async () => {
    const search = { type: 'web_search_20250305', name: 'web_search' };
    const refused = await asked({
      dialect: 'messages',
      model: 'gemini-3-pro',
      more: { tools: [search] },
    });
    assert.equal(refused.reply.status, 400);
    const open = await startGemini((address) => ({
      providers: { gemini: { base_url: `${address}/v1beta`, api_key: 'k', server_tools: true } },
    }));
    try {
      const toolsOf = async (model: string, tools: readonly JsonObject[]): Promise<JsonObject> => {
        const more = { tools };
        const { received } = await callGemini(
          open,
          { dialect: 'messages', model, more },
          streamOf({}),
        );
        const { tools: sent = null, toolConfig = null } = received[0]?.json ?? {};
        return {
          tools: Array.isArray(sent)
            ? sent.map((tool) => (isObject(tool) ? Object.keys(tool) : []))
            : null,
          toolConfig,
        };
      };
      const own = { name: 'w', input_schema: { type: 'object' } };
      assert.deepEqual(await toolsOf('gemini-4-x', [search]), {
        tools: [['googleSearch']],
        toolConfig: null,
      });
      assert.deepEqual(await toolsOf('gemini-4-y', [own, search]), {
        tools: [['functionDeclarations'], ['googleSearch']],
        toolConfig: { includeServerSideToolInvocations: true },
      });
      const { received, reply } = await callGemini(
        open,
        { dialect: 'messages', model: 'gemini-2.5-z', more: { tools: [own, search] } },
        geminiAnswer(),
      );
      assert.equal(listAt(received[0]?.json ?? {}, 'tools').length, 1);
      assert.match(String(reply.headers['x-gateway-notes']), /does not search beside functions/);
    } finally {
      await open.stop();
    }
  });
});

const effortRows: readonly (readonly [model: string, effort: string, config: JsonObject])[] = [
  ['gemini-2.5-pro', 'none', { thinkingBudget: 128 }],
  ['gemini-2.5-flash', 'none', { thinkingBudget: 0 }],
  ['gemini-2.5-flash-lite', 'none', { thinkingBudget: 0 }],
  ['gemini-2.5-pro', 'minimal', { thinkingBudget: 1024, includeThoughts: true }],
  ['gemini-2.5-pro', 'low', { thinkingBudget: 1000, includeThoughts: true }],
  ['gemini-2.5-pro', 'medium', { thinkingBudget: 3000, includeThoughts: true }],
  ['gemini-2.5-pro', 'high', { thinkingBudget: 6000, includeThoughts: true }],
  ['gemini-2.5-flash-lite', 'low', { thinkingBudget: 1000, includeThoughts: true }],
  ['gemini-3-pro-preview', 'none', { thinkingLevel: 'low' }],
  ['gemini-3-pro-preview', 'medium', { thinkingLevel: 'low', includeThoughts: true }],
  ['gemini-3-pro-preview', 'high', { thinkingLevel: 'high', includeThoughts: true }],
  ['gemini-3.1-pro', 'medium', { thinkingLevel: 'medium', includeThoughts: true }],
  ['gemini-3-flash', 'none', { thinkingLevel: 'minimal' }],
  ['gemini-3-flash', 'minimal', { thinkingLevel: 'minimal', includeThoughts: true }],
  ['gemini-3.1-flash-lite', 'minimal', { thinkingLevel: 'minimal', includeThoughts: true }],
  ['gemini-3.7-flash', 'minimal', { thinkingLevel: 'low', includeThoughts: true }],
  ['gemini-4-argon', 'xhigh', { thinkingLevel: 'high', includeThoughts: true }],
  ['gemini-7-unknown', 'medium', { thinkingLevel: 'medium', includeThoughts: true }],
];

describe('configuration', () => {
  it('41 effort is a budget before Gemini 3 and a level from there on', async () => {
    for (const [model, effort, wanted] of effortRows) {
      const more = { reasoning_effort: effort, max_completion_tokens: 10_000 };
      const stream = model.startsWith('gemini-4') || model.startsWith('gemini-7');
      const config = await configOf({ model, more, stream });
      assert.deepEqual(config['thinkingConfig'], wanted, `${model} ${effort}`);
    }
    assert.equal(
      (await configOf({ model: 'gemini-2.0-flash', more: { reasoning_effort: 'high' } }))[
        'thinkingConfig'
      ],
      undefined,
    );
    assert.equal((await configOf({ model: 'gemini-3-pro' }))['thinkingConfig'], undefined);
  });

  it('41 a budget of a messages client, its adaptive thinking, and thinking that it does not want to see', async () => {
    const thinking = async (model: string, wish: JsonObject): Promise<unknown> => {
      const more = { max_tokens: 40_000, ...wish };
      return (await configOf({ dialect: 'messages', model, more }))['thinkingConfig'];
    };
    const budget = (budget_tokens: number): JsonObject => ({
      thinking: { type: 'enabled', budget_tokens },
    });
    assert.deepEqual(await thinking('gemini-2.5-pro', budget(5000)), {
      thinkingBudget: 5000,
      includeThoughts: true,
    });
    assert.deepEqual(await thinking('gemini-2.5-pro', budget(39_000)), {
      thinkingBudget: 32_768,
      includeThoughts: true,
    });
    assert.deepEqual(await thinking('gemini-3-flash', budget(5000)), {
      thinkingLevel: 'medium',
      includeThoughts: true,
    });
    const adaptive = { thinking: { type: 'adaptive' } };
    assert.deepEqual(await thinking('gemini-2.5-pro', adaptive), {
      thinkingBudget: -1,
      includeThoughts: true,
    });
    assert.deepEqual(await thinking('gemini-3-pro', adaptive), { includeThoughts: true });
    const hidden = { thinking: { type: 'adaptive', display: 'omitted' } };
    assert.deepEqual(await thinking('gemini-2.5-pro', hidden), { thinkingBudget: -1 });
  });

  it('42 more stop sequences than are taken are looked for in the answer', async () => {
    const stop = ['a1', 'b2', 'c3', 'd4'];
    assert.deepEqual(
      (await configOf({ model: 'gemini-3-pro', more: { stop } }))['stopSequences'],
      stop,
    );
    const six = ['END', 'x1', 'x2', 'x3', 'x4', 'x5'];
    const { reply, received } = await callGemini(
      scene,
      {
        dialect: 'messages',
        model: 'gemini-3-stops',
        more: { stop_sequences: six },
      },
      streamOf({ parts: [{ text: 'one E' }, { text: 'ND two' }] }),
    );
    assert.match(received[0]?.path ?? '', /:streamGenerateContent\?alt=sse$/);
    assert.equal(objectAt(received[0]?.json ?? {}, 'generationConfig')['stopSequences'], undefined);
    assert.match(reply.text, /"text":"one "/);
    assert.match(reply.text, /"stop_sequence":"END"/);
  });

  it('43 a format beside tools is asked for in words before Gemini 3, or refused', async () => {
    const schema = {
      type: 'object',
      properties: { a: { type: 'string' } },
      required: ['a'],
      additionalProperties: false,
    };
    const format = (strict: boolean): JsonObject => ({
      response_format: { type: 'json_schema', json_schema: { name: 'x', schema, strict } },
    });
    const plain = await configOf({ model: 'gemini-2.5-pro', more: format(true) });
    assert.deepEqual(plain, { responseMimeType: 'application/json', responseJsonSchema: schema });
    const older = await configOf({ model: 'gemini-2.0-flash', more: format(true) });
    assert.equal(objectAt(older, 'responseSchema')['type'], 'object');
    const tools = [weather];
    const beside = await asked({ model: 'gemini-2.5-pro', more: { ...format(false), tools } });
    assert.equal(beside.sent['generationConfig'], undefined);
    assert.match(JSON.stringify(beside.sent['systemInstruction']), /JSON schema/);
    const refused = await asked({ model: 'gemini-2.5-pro', more: { ...format(true), tools } });
    assert.equal(refused.reply.status, 400);
    const newer = await configOf({ model: 'gemini-3-pro', more: { ...format(true), tools } });
    assert.equal(newer['responseMimeType'], 'application/json');
    const object = await configOf({
      model: 'gemini-3-pro',
      more: { response_format: { type: 'json_object' } },
    });
    assert.deepEqual(object, { responseMimeType: 'application/json' });
  });

  it('44 45 sampling is sent as it was asked for; seeds are of 32 bits', async () => {
    const more = {
      temperature: 2,
      top_p: 0.5,
      seed: 7,
      max_completion_tokens: 50,
      presence_penalty: 1,
      frequency_penalty: -1,
    };
    assert.deepEqual(await configOf({ model: 'gemini-3-pro', more }), {
      maxOutputTokens: 50,
      temperature: 2,
      topP: 0.5,
      seed: 7,
      presencePenalty: 1,
      frequencyPenalty: -1,
    });
    const big = await asked({ model: 'gemini-3-pro', more: { seed: 2 ** 40 + 5 } });
    const { seed } = objectAt(big.sent, 'generationConfig');
    assert.ok(typeof seed === 'number' && seed >= 0 && seed <= 0x7fff_ffff);
    assert.match(big.notes, /seeds of 32 bits/);
    const messages = await configOf({
      dialect: 'messages',
      model: 'gemini-3-pro',
      more: { top_k: 40 },
    });
    assert.equal(messages['topK'], 40);
  });

  it('the end user has no member there, which is noted; a tier has one', async () => {
    const model = 'gemini-3-pro';
    for (const member of ['user', 'safety_identifier']) {
      for (const dialect of ['chat', 'responses'] as const) {
        const { sent, notes } = await asked({ dialect, model, more: { [member]: 'canary-user' } });
        assert.doesNotMatch(JSON.stringify(sent), /canary-user/);
        assert.match(notes, new RegExp(`\\b${member}\\b`), `${dialect} ${member}`);
      }
    }
    const more = { metadata: { user_id: 'canary-user' } };
    const messages = await asked({ dialect: 'messages', model, more });
    assert.match(messages.notes, /metadata\.user_id/);
    for (const dialect of ['chat', 'responses'] as const) {
      const tierOf = async (tier: string): Promise<unknown> => {
        const { sent, notes } = await asked({ dialect, model, more: { service_tier: tier } });
        return [sent['serviceTier'], notes.includes('service_tier')];
      };
      assert.deepEqual(await tierOf('default'), ['standard', false]);
      assert.deepEqual(await tierOf('flex'), ['flex', false]);
      assert.deepEqual(await tierOf('priority'), ['priority', false]);
      assert.deepEqual(await tierOf('auto'), [undefined, false]);
      assert.deepEqual(await tierOf('scale'), [undefined, true]);
    }
  });

  it('53 a member that a model does not know is omitted from then on', async () => {
    const model = 'gemini-3-fixed';
    const refusal = {
      error: {
        code: 400,
        message:
          'Invalid JSON payload received. Unknown name "temperature" at \'generation_config\': Cannot find field.',
        status: 'INVALID_ARGUMENT',
        details: [
          {
            '@type': 'type.googleapis.com/google.rpc.BadRequest',
            fieldViolations: [{ field: 'generation_config' }],
          },
        ],
      },
    };
    const call = { model, more: { temperature: 0.5 } };
    const first = await callGemini(
      scene,
      call,
      { status: 400, body: JSON.stringify(refusal) },
      geminiAnswer(),
    );
    assert.equal(first.reply.status, 200, first.reply.text);
    assert.equal(first.received.length, 2);
    assert.equal(first.received[1]?.json['generationConfig'], undefined);
    const later = await callGemini(scene, call, geminiAnswer());
    assert.equal(later.received.length, 1);
    assert.equal(later.received[0]?.json['generationConfig'], undefined);
  });

  it('56 the same conversation gives the same bytes', async () => {
    for (const dialect of clientDialects) {
      const first = await asked({ dialect, model: 'gemini-3-pro' });
      const second = await asked({ dialect, model: 'gemini-3-pro' });
      assert.equal(first.received[0]?.body.toString(), second.received[0]?.body.toString());
    }
  });
});
