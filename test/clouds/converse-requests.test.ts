/**
 * What Converse is asked (wire/bedrock.md §13: 5, 7, 22, 32–46, 60). The scripted server refuses what the service would,
 * and works each signature out anew.
 */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { isObject, type JsonObject } from '../../src/json/value.ts';
import { clientDialects, type ClientDialect } from '../support/dialects.ts';
import { send, type Reply } from '../support/http.ts';
import { listAt, objectAt, textAt } from '../support/reading.ts';
import { eventStream } from '../upstream/aws.ts';
import { converseAnswer, streamOf } from '../upstream/converse.ts';
import type { Received } from '../upstream/scripted.ts';
import { claudeChunks, claudeDocument, pathOf, type BedrockScene } from './bedrock-scene.ts';
import { callConverse, claude, nova, startConverse, type ConverseCall } from './converse-scene.ts';

const opus48 = 'us.anthropic.claude-opus-4-8';
const nova2 = 'us.amazon.nova-2-lite-v1:0';
const llama = 'us.meta.llama3-3-70b-instruct-v1:0';
const mistral = 'mistral.mistral-large-2407-v1:0';
const gptOss = 'openai.gpt-oss-120b-1:0';

let scene: BedrockScene;
before(async () => {
  scene = await startConverse();
});
after(() => scene.stop());

interface Asked {
  readonly sent: JsonObject;
  readonly notes: string;
  readonly reply: Reply;
  readonly received: readonly Received[];
}

/** The request that a call led to. */
async function asked(call: ConverseCall): Promise<Asked> {
  const answer = call.stream === true ? streamOf({}) : converseAnswer();
  const { reply, received } = await callConverse(scene, call, answer);
  const notes = String(reply.headers['x-gateway-notes'] ?? '');
  return { sent: received[0]?.json ?? {}, notes, reply, received };
}

async function taken(call: ConverseCall): Promise<Asked> {
  const all = await asked(call);
  assert.equal(all.reply.status, 200, all.reply.text);
  return all;
}

async function refused(call: ConverseCall, words: RegExp): Promise<void> {
  const { reply, received } = await asked(call);
  assert.equal(reply.status, 400, reply.text);
  assert.match(reply.text, words);
  assert.equal(received.length, 0);
}

/** The blocks of each message, with its role in front. */
function messagesOf(sent: JsonObject): readonly (readonly unknown[])[] {
  return listAt(sent, 'messages').map((message) => [
    textAt(message, 'role'),
    ...listAt(message, 'content'),
  ]);
}

const parameters = { type: 'object', properties: { a: { type: 'integer' } } } as const;
const weather = {
  type: 'function',
  function: { name: 'w', description: 'Weather.', parameters },
} as const;
const spec = { name: 'w', description: 'Weather.', inputSchema: { json: parameters } };
const hello = { role: 'user', content: 'Hello' };

const chatCall = (id: string, name = 'w', args = '{"a":1}'): JsonObject => ({
  id,
  type: 'function',
  function: { name, arguments: args },
});

/** A history with calls and results, as a chat client has it. */
function history(
  calls: readonly JsonObject[],
  results: readonly JsonObject[],
  ...rest: readonly JsonObject[]
): JsonObject {
  const called = { role: 'assistant', content: null, tool_calls: calls };
  return { messages: [hello, called, ...results, ...rest] };
}

/** The same as a messages client has it, with one call and its result. */
function answered(result: JsonObject, more: JsonObject = {}): JsonObject {
  return {
    tools: [{ name: 'w', input_schema: parameters }],
    messages: [
      hello,
      { role: 'assistant', content: [{ type: 'tool_use', id: 't1', name: 'w', input: {} }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't1', ...result }] },
    ],
    ...more,
  };
}

const png =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const pdf = Buffer.from('%PDF-1.4 made for a test').toString('base64');

describe('turns', () => {
  it('a whole request: instructions, turns, tools and the cap', async () => {
    const { sent } = await taken({
      more: {
        max_tokens: 50,
        messages: [{ role: 'system', content: 'Be short.' }, hello],
        tools: [weather],
        tool_choice: 'auto',
        temperature: 0.5,
        top_p: 0.9,
        stop: ['END'],
      },
    });
    assert.deepEqual(sent, {
      messages: [{ role: 'user', content: [{ text: 'Hello' }] }],
      system: [{ text: 'Be short.' }],
      toolConfig: { tools: [{ toolSpec: spec }], toolChoice: { auto: {} } },
      inferenceConfig: { maxTokens: 50, temperature: 0.5, topP: 0.9, stopSequences: ['END'] },
    });
  });

  it('results stand in the order of their calls, what the user says behind them', async () => {
    const { sent } = await taken({
      more: {
        tools: [weather],
        ...history(
          [chatCall('c1'), chatCall('c2', 'w', '{"a":2}')],
          [
            { role: 'tool', tool_call_id: 'c2', content: 'two' },
            { role: 'tool', tool_call_id: 'c1', content: 'one' },
          ],
          { role: 'user', content: 'And now?' },
        ),
      },
    });
    assert.deepEqual(messagesOf(sent), [
      ['user', { text: 'Hello' }],
      [
        'assistant',
        { toolUse: { toolUseId: 'c1', name: 'w', input: { a: 1 } } },
        { toolUse: { toolUseId: 'c2', name: 'w', input: { a: 2 } } },
      ],
      [
        'user',
        { toolResult: { toolUseId: 'c1', content: [{ text: 'one' }] } },
        { toolResult: { toolUseId: 'c2', content: [{ text: 'two' }] } },
        { text: 'And now?' },
      ],
    ]);
  });

  it('bedrock 32 blank texts are omitted of a deep history', async () => {
    const { sent } = await taken({
      more: {
        messages: [
          hello,
          { role: 'assistant', content: ' ' },
          { role: 'user', content: 'again' },
          { role: 'assistant', content: 'Yes.' },
          {
            role: 'user',
            content: [
              { type: 'text', text: '\n' },
              { type: 'text', text: 'x' },
            ],
          },
        ],
      },
    });
    assert.deepEqual(messagesOf(sent), [
      ['user', { text: 'Hello' }, { text: 'again' }],
      ['assistant', { text: 'Yes.' }],
      ['user', { text: 'x' }],
    ]);
  });

  it('bedrock 33 a prefill is trimmed, or asked to be gone on with', async () => {
    const more = { messages: [hello, { role: 'assistant', content: 'It is  ' }] };
    const prefilled = await taken({ model: claude, more });
    assert.deepEqual(messagesOf(prefilled.sent).at(-1), ['assistant', { text: 'It is' }]);
    const told = await taken({ model: llama, more });
    assert.deepEqual(messagesOf(told.sent).at(-1), ['user', { text: 'Continue.' }]);
    assert.match(told.notes, /asked to continue its last message/);
  });

  it('a history that begins with the model gets a turn of the user in front', async () => {
    const more = { messages: [{ role: 'assistant', content: 'Hi.' }, hello] };
    const { sent, notes } = await taken({ more });
    assert.equal(messagesOf(sent)[0]?.[0], 'user');
    assert.match(notes, /must begin with the user/);
  });

  it('instructions in mid-conversation are told at their place', async () => {
    const { sent, notes } = await taken({
      more: {
        messages: [
          hello,
          { role: 'assistant', content: 'Hi.' },
          { role: 'system', content: 'Be short.' },
          { role: 'user', content: 'Go on.' },
        ],
      },
    });
    assert.deepEqual(messagesOf(sent).at(-1), [
      'user',
      { text: '<system>Be short.</system>' },
      { text: 'Go on.' },
    ]);
    assert.match(notes, /told in a message of the user/);
  });

  it('bedrock 60 the same conversation is the same bytes each time, for each client', async () => {
    for (const dialect of clientDialects) {
      const first = await taken({ dialect });
      const second = await taken({ dialect });
      assert.ok(first.received[0]?.body.equals(second.received[0]?.body ?? Buffer.alloc(0)));
    }
  });
});

describe('results of tools', () => {
  it('bedrock 34 an empty failed result says that nothing came', async () => {
    const { sent } = await taken({ dialect: 'messages', more: answered({ is_error: true }) });
    assert.deepEqual(messagesOf(sent).at(-1), [
      'user',
      { toolResult: { toolUseId: 't1', content: [{ text: '(no output)' }], status: 'error' } },
    ]);
  });

  it('a failure is told in words where the model knows no status', async () => {
    const more = answered({ is_error: true, content: 'no luck' });
    const { sent, notes } = await taken({ dialect: 'messages', model: llama, more });
    assert.deepEqual(messagesOf(sent).at(-1), [
      'user',
      { toolResult: { toolUseId: 't1', content: [{ text: 'Error: no luck' }] } },
    ]);
    assert.match(notes, /told in words that it failed/);
  });

  it('a picture in a result, where the model takes it there and where it does not', async () => {
    const source = { type: 'base64', media_type: 'image/png', data: png };
    const content = [
      { type: 'text', text: 'seen' },
      { type: 'image', source },
    ];
    const image = { image: { format: 'png', source: { bytes: png } } };
    const inside = await taken({ dialect: 'messages', more: answered({ content }) });
    assert.deepEqual(messagesOf(inside.sent).at(-1), [
      'user',
      { toolResult: { toolUseId: 't1', content: [{ text: 'seen' }, image] } },
    ]);
    const pixtral = 'us.mistral.pixtral-large-2502-v1:0';
    const behind = await taken({
      dialect: 'messages',
      model: pixtral,
      more: answered({ content }),
    });
    const [, result, label, shown] = messagesOf(behind.sent).at(-1) ?? [];
    assert.match(JSON.stringify(result), /\[file 1 attached below\]/);
    assert.match(JSON.stringify(label), /File 1 from tool result/);
    assert.deepEqual(shown, image);
    assert.match(behind.notes, /shown behind the result/);
    const blind = await taken({ dialect: 'messages', model: gptOss, more: answered({ content }) });
    assert.match(JSON.stringify(messagesOf(blind.sent).at(-1)), /\[image omitted/);
    assert.match(blind.notes, /cannot see it/);
  });

  it('bedrock 37 ids and names that are not taken there, and back to the client', async () => {
    const id = `${'x'.repeat(66)}.:`;
    const name = `${'long.name.'.repeat(5)}end`;
    const tool = { ...weather, function: { ...weather.function, name } };
    const more = {
      tools: [tool],
      ...history([chatCall(id, name)], [{ role: 'tool', tool_call_id: id, content: 'ok' }]),
    };
    const { sent } = await taken({ more });
    const use = objectAt(listAt(listAt(sent, 'messages')[1] ?? {}, 'content')[0] ?? {}, 'toolUse');
    const toolUseId = textAt(use, 'toolUseId');
    assert.match(toolUseId, /^call_[A-Za-z0-9]{24}$/);
    const short = textAt(use, 'name');
    assert.ok(short.length <= 64);
    const call = { toolUse: { toolUseId: 'a1', name: short, input: {} } };
    const answer = converseAnswer({ content: [call], stopReason: 'tool_use' });
    const back = await callConverse(scene, { more: { tools: [tool] } }, answer);
    assert.match(back.reply.text, new RegExp(`"name":"${name.replaceAll('.', '\\.')}"`));
    const nine = await taken({ model: mistral, more });
    assert.match(JSON.stringify(nine.sent), /"toolUseId":"[A-Za-z0-9]{9}"/);
  });

  it('bedrock 38 a name of 90 characters with dots', async () => {
    const name = 'a.b'.repeat(30);
    const tool = { ...weather, function: { ...weather.function, name } };
    const more = { tools: [tool], tool_choice: { type: 'function', function: { name } } };
    const { sent } = await taken({ more });
    const config = objectAt(sent, 'toolConfig');
    const declared = textAt(objectAt(listAt(config, 'tools')[0] ?? {}, 'toolSpec'), 'name');
    assert.deepEqual(config['toolChoice'], { tool: { name: declared } });
  });

  it('bedrock 39 tools of a history without tools are declared again', async () => {
    const results = [{ role: 'tool', tool_call_id: 'c1', content: 'ok' }];
    const { sent, notes } = await taken({ more: history([chatCall('c1')], results) });
    const tools = listAt(objectAt(sent, 'toolConfig'), 'tools');
    assert.deepEqual(tools, [
      { toolSpec: { name: 'w', inputSchema: { json: { type: 'object', properties: {} } } } },
    ]);
    assert.match(notes, /tools of earlier calls are declared again/);
  });
});

describe('media', () => {
  it('bedrock 49 a picture of the user; by address, and where none is taken, it is refused by name', async () => {
    const picture = (url: string): JsonObject => ({
      messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }],
    });
    const data = await taken({ more: picture(`data:image/jpg;base64,${png}`) });
    assert.deepEqual(messagesOf(data.sent), [
      ['user', { image: { format: 'png', source: { bytes: png } } }],
    ]);
    assert.match(data.notes, /sent as image\/png/);
    await refused({ more: picture('https://a.example/1.png') }, /messages\.0|messages\[0\]/);
    await refused(
      { model: gptOss, more: picture(`data:image/png;base64,${png}`) },
      /does not take an image/,
    );
  });

  it('bedrock 35 names of documents: letters, digits, single spaces, and each once', async () => {
    const names: readonly (readonly [string | undefined, string])[] = [
      ['Q3..report  v2.final.pdf', 'Q3 report v2 final'],
      [`${'x'.repeat(300)}.pdf`, 'x'.repeat(190)],
      ['报告.pdf', 'document 3'],
      ['same.pdf', 'same'],
      ['same.pdf', 'same 5'],
      [undefined, 'document 6'],
    ];
    const content = names.map(([filename]) => ({
      type: 'document',
      source: { type: 'base64', media_type: 'application/pdf', data: pdf },
      ...(filename === undefined ? {} : { title: filename }),
    }));
    const { sent } = await taken({
      dialect: 'messages',
      more: { messages: [{ role: 'user', content: [...content, { type: 'text', text: 'Sum.' }] }] },
    });
    const blocks = listAt(listAt(sent, 'messages')[0] ?? {}, 'content');
    const documents = blocks.filter(({ document }) => isObject(document));
    assert.deepEqual(
      documents.map((block) => objectAt(block, 'document')['name']),
      names.map(([, name]) => name),
    );
    assert.deepEqual(objectAt(documents[0] ?? {}, 'document'), {
      format: 'pdf',
      name: 'Q3 report v2 final',
      source: { bytes: pdf },
    });
  });

  it('bedrock 36 a document without text beside it gets one', async () => {
    const file = { filename: 'a.pdf', file_data: `data:application/pdf;base64,${pdf}` };
    const content = [{ type: 'file', file }];
    const { sent, notes } = await taken({ more: { messages: [{ role: 'user', content }] } });
    assert.deepEqual(messagesOf(sent), [
      [
        'user',
        { document: { format: 'pdf', name: 'a', source: { bytes: pdf } } },
        { text: 'See the attached document.' },
      ],
    ]);
    assert.match(notes, /a document needs a text beside it/);
  });

  it('a document of text, with what it is about', async () => {
    const source = { type: 'text', media_type: 'text/plain', data: 'Once.' };
    const document = { type: 'document', source, title: 'Tale', context: 'By A.' };
    const content = [document, { type: 'text', text: 'Sum.' }];
    const { sent } = await taken({
      dialect: 'messages',
      more: { messages: [{ role: 'user', content }] },
    });
    assert.deepEqual(messagesOf(sent)[0]?.[1], {
      document: { format: 'txt', name: 'Tale', source: { text: 'Once.' }, context: 'By A.' },
    });
  });

  it('sound reaches a model that hears, and is refused by name elsewhere', async () => {
    const content = [
      { type: 'text', text: 'Listen.' },
      { type: 'input_audio', input_audio: { data: 'UklGRgAAAAA=', format: 'wav' } },
    ];
    const more = { messages: [{ role: 'user', content }] };
    await refused({ more }, /does not take an audio/);
    const { sent } = await taken({ model: 'mistral.voxtral-small-24b-2507', more });
    assert.deepEqual(listAt(sent, 'messages')[0]?.['content'], [
      { text: 'Listen.' },
      { audio: { format: 'wav', source: { bytes: 'UklGRgAAAAA=' } } },
    ]);
  });
});

describe('tools', () => {
  const choices: readonly (readonly [string, JsonObject[string], JsonObject | undefined])[] = [
    ['auto', 'auto', { auto: {} }],
    ['required', 'required', { any: {} }],
    ['one', { type: 'function', function: { name: 'w' } }, { tool: { name: 'w' } }],
  ];
  for (const [name, choice, wanted] of choices) {
    it(`bedrock 40 the choice ${name}`, async () => {
      const { sent } = await taken({ more: { tools: [weather], tool_choice: choice } });
      assert.deepEqual(objectAt(sent, 'toolConfig')['toolChoice'], wanted);
    });
  }

  it('bedrock 40 none: the tools are not offered; with calls in the history they are, and it is noted', async () => {
    const more = { tools: [weather], tool_choice: 'none' };
    const { sent } = await taken({ more });
    assert.equal(sent['toolConfig'], undefined);
    const results = [{ role: 'tool', tool_call_id: 'c1', content: 'ok' }];
    const late = await taken({ more: { ...more, ...history([chatCall('c1')], results) } });
    assert.deepEqual(objectAt(late.sent, 'toolConfig'), { tools: [{ toolSpec: spec }] });
    assert.match(late.notes, /cannot be kept from calling/);
  });

  it('bedrock 40 a demand that the model does not know is noted', async () => {
    const other = { ...weather, function: { ...weather.function, name: 'v' } };
    const more = { tools: [weather, other], tool_choice: 'required' };
    const { sent, notes } = await taken({ model: llama, more });
    assert.equal(objectAt(sent, 'toolConfig')['toolChoice'], undefined);
    assert.match(notes, /cannot be made to call a tool/);
  });

  it('bedrock 40 a demanded call and thinking: the call holds', async () => {
    const more = { tools: [weather], tool_choice: 'required', reasoning_effort: 'high' };
    const { sent, notes } = await taken({ model: claude, more });
    assert.deepEqual(objectAt(sent, 'toolConfig')['toolChoice'], { any: {} });
    assert.equal(sent['additionalModelRequestFields'], undefined);
    assert.match(notes, /thinking is off/);
  });

  it('bedrock 41 one call at most: the first is kept', async () => {
    const calls = ['a', 'b'].map((toolUseId) => ({ toolUse: { toolUseId, name: 'w', input: {} } }));
    const answer = converseAnswer({ content: calls, stopReason: 'tool_use' });
    const more = { tools: [weather], parallel_tool_calls: false };
    const { reply } = await callConverse(scene, { more }, answer);
    assert.equal(reply.text.match(/"type":"function"/g)?.length, 1, reply.text);
    assert.match(String(reply.headers['x-gateway-notes']), /only the first call is kept/);
  });

  it('tools that another provider runs are refused by name; what a client runs is a function', async () => {
    const search = { type: 'web_search_20250305', name: 'web_search' };
    await refused({ dialect: 'messages', more: { tools: [search] } }, /Web search/);
    const bash = { type: 'bash_20250124', name: 'bash' };
    const { sent, notes } = await taken({ dialect: 'messages', more: { tools: [bash] } });
    const [tool] = listAt(objectAt(sent, 'toolConfig'), 'tools');
    assert.equal(objectAt(tool ?? {}, 'toolSpec')['name'], 'bash');
    assert.match(notes, /offered as an ordinary function tool/);
  });
});

describe('structured output', () => {
  const schema = { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] };
  const format = { type: 'json_schema', json_schema: { name: 'out', schema, strict: true } };

  it('bedrock 46 a model that knows formats gets the schema as text', async () => {
    const { sent } = await taken({ model: claude, more: { response_format: format } });
    const structure = objectAt(objectAt(objectAt(sent, 'outputConfig'), 'textFormat'), 'structure');
    const told = objectAt(structure, 'jsonSchema');
    assert.equal(told['name'], 'out');
    const closed = { ...schema, additionalProperties: false };
    assert.deepEqual(JSON.parse(textAt(told, 'schema')), closed);
  });

  it('bedrock 46 another one is made to call a tool, whose input is the answer', async () => {
    const call = { toolUse: { toolUseId: 'a', name: 'json', input: { a: 'x' } } };
    const answer = converseAnswer({ content: [call], stopReason: 'tool_use' });
    const { reply, received } = await callConverse(
      scene,
      { more: { response_format: format } },
      answer,
    );
    assert.deepEqual(objectAt(received[0]?.json ?? {}, 'toolConfig')['toolChoice'], {
      tool: { name: 'json' },
    });
    const message = objectAt(listAt(reply.json, 'choices')[0] ?? {}, 'message');
    assert.equal(message['content'], '{"a":"x"}');
    assert.match(String(reply.headers['x-gateway-notes']), /as the input of a tool/);
  });

  it('JSON without a schema is asked for in words; a strict schema that nothing holds is refused', async () => {
    const { sent, notes } = await taken({ more: { response_format: { type: 'json_object' } } });
    assert.match(JSON.stringify(sent['system']), /Answer with one JSON object/);
    assert.match(notes, /not enforced/);
    await refused(
      { more: { response_format: format, tools: [weather] } },
      /cannot be held to a JSON schema/,
    );
  });
});

describe('cache points', () => {
  const marked = (text: string, ttl?: string): JsonObject => ({
    type: 'text',
    text,
    cache_control: { type: 'ephemeral', ...(ttl === undefined ? {} : { ttl }) },
  });
  const point = { cachePoint: { type: 'default' } };

  it('bedrock 42 stand behind what they mark, at most four', async () => {
    const { sent, notes } = await taken({
      dialect: 'messages',
      model: claude,
      more: {
        tools: [{ name: 'w', input_schema: parameters, cache_control: { type: 'ephemeral' } }],
        system: [marked('a')],
        messages: [{ role: 'user', content: ['1', '2', '3'].map((text) => marked(text)) }],
      },
    });
    assert.deepEqual(sent['system'], [{ text: 'a' }, point]);
    assert.deepEqual(listAt(objectAt(sent, 'toolConfig'), 'tools')[1], point);
    assert.deepEqual(messagesOf(sent), [
      ['user', { text: '1' }, { text: '2' }, point, { text: '3' }, point],
    ]);
    assert.match(notes, /at most 4 cache marks/);
  });

  it('bedrock 42 the mark of a result stands behind it', async () => {
    const more = answered({ content: [marked('seen')] });
    const { sent } = await taken({ dialect: 'messages', model: claude, more });
    assert.deepEqual(messagesOf(sent).at(-1), [
      'user',
      { toolResult: { toolUseId: 't1', content: [{ text: 'seen' }] } },
      point,
    ]);
  });

  it('bedrock 42 Nova gets none among its tools, others none at all', async () => {
    const more = {
      tools: [{ name: 'w', input_schema: parameters, cache_control: { type: 'ephemeral' } }],
      system: [marked('a')],
    };
    const onNova = await taken({ dialect: 'messages', model: nova, more });
    assert.deepEqual(onNova.sent['system'], [{ text: 'a' }, point]);
    assert.equal(listAt(objectAt(onNova.sent, 'toolConfig'), 'tools').length, 1);
    const onLlama = await taken({ dialect: 'messages', model: llama, more });
    assert.deepEqual(onLlama.sent['system'], [{ text: 'a' }]);
  });

  it('bedrock 42 an hour behind five minutes is written as five minutes', async () => {
    const { sent, notes } = await taken({
      dialect: 'messages',
      model: claude,
      more: {
        system: [marked('a', '1h'), marked('b')],
        messages: [{ role: 'user', content: [marked('c', '1h')] }],
      },
    });
    const long = { cachePoint: { type: 'default', ttl: '1h' } };
    assert.deepEqual(sent['system'], [{ text: 'a' }, long, { text: 'b' }, point]);
    assert.deepEqual(messagesOf(sent), [['user', { text: 'c' }, point]]);
    assert.match(notes, /kept as long as what is marked before it/);
  });
});

describe('what the model is told of sampling and thinking', () => {
  const more = (
    dialect: ClientDialect,
    model: string,
    members: JsonObject,
  ): Promise<readonly [JsonObject[string], Asked]> =>
    taken({ dialect, model, more: members }).then((all) => [
      all.sent['additionalModelRequestFields'],
      all,
    ]);

  it('bedrock 43 top_k in the place of each maker', async () => {
    const wanted = { top_k: 7 };
    assert.deepEqual((await more('messages', claude, wanted))[0], wanted);
    assert.deepEqual((await more('messages', nova, wanted))[0], { inferenceConfig: { topK: 7 } });
    const [none, { notes }] = await more('messages', llama, wanted);
    assert.equal(none, undefined);
    assert.match(notes, /top_k/);
  });

  it('bedrock 43 59 an effort in the words of each maker', async () => {
    const [budget, asked45] = await more('chat', claude, {
      reasoning_effort: 'high',
      max_tokens: 10_000,
    });
    assert.deepEqual(budget, {
      thinking: { type: 'enabled', budget_tokens: 6000, display: 'summarized' },
    });
    assert.equal(asked45.sent['outputConfig'], undefined);
    const [adaptive, newer] = await more('chat', opus48, { reasoning_effort: 'high' });
    assert.deepEqual(adaptive, { thinking: { type: 'adaptive', display: 'summarized' } });
    assert.deepEqual(newer.sent['outputConfig'], { effort: 'high' });
    const low = { reasoningConfig: { type: 'enabled', maxReasoningEffort: 'low' } };
    assert.deepEqual((await more('chat', nova2, { reasoning_effort: 'minimal' }))[0], low);
    const high = await more('chat', nova2, { reasoning_effort: 'high', temperature: 0.3 });
    assert.deepEqual(high[0], {
      reasoningConfig: { type: 'enabled', maxReasoningEffort: 'high' },
    });
    assert.equal(high[1].sent['inferenceConfig'], undefined);
    assert.match(high[1].notes, /no cap on its output/);
    assert.equal((await more('chat', nova2, { reasoning_effort: 'none' }))[0], undefined);
    assert.deepEqual((await more('chat', gptOss, { reasoning_effort: 'medium' }))[0], {
      reasoning_effort: 'medium',
    });
    const [nothing, { notes }] = await more('chat', llama, { reasoning_effort: 'high' });
    assert.equal(nothing, undefined);
    assert.match(notes, /does not think/);
  });

  it('bedrock 44 45 the cap is always there, and a temperature above 1 is 1', async () => {
    const { sent, notes } = await taken({ more: { temperature: 1.5 } });
    assert.deepEqual(sent['inferenceConfig'], { maxTokens: 8192, temperature: 1 });
    assert.match(notes, /temperature/);
    const ofClaude = await taken({ model: opus48 });
    assert.deepEqual(ofClaude.sent['inferenceConfig'], { maxTokens: 32_768 });
  });

  it('bedrock 22 more stop sequences than a model takes are found by the gateway', async () => {
    const stop = ['a1', 'b2', 'c3', 'STOP', 'e5'];
    const answer = streamOf({ content: [{ text: 'before STOP behind' }] });
    const { reply, received } = await callConverse(
      scene,
      { dialect: 'messages', stream: true, more: { stop_sequences: stop } },
      answer,
    );
    const config = objectAt(received[0]?.json ?? {}, 'inferenceConfig');
    assert.equal(config['stopSequences'], undefined);
    assert.match(reply.text, /"stop_sequence":"STOP"/);
    assert.doesNotMatch(reply.text, /behind/);
  });

  it('a tier goes by its name; what has no place is noted, and what was promised refused', async () => {
    const { sent, notes } = await taken({
      more: { service_tier: 'flex', seed: 3, logit_bias: { 5: 1 }, user: 'u1' },
    });
    assert.deepEqual(sent['serviceTier'], { type: 'flex' });
    for (const name of ['seed', 'logit_bias', 'user']) assert.match(notes, new RegExp(name));
    await refused({ dialect: 'messages', more: { container: 'c1' } }, /container/);
  });
});

describe('reasoning that comes back', () => {
  const told = [
    { reasoningContent: { reasoningText: { text: 'Hm.', signature: 'c2lnbmF0dXJl' } } },
    { reasoningContent: { redactedContent: 'aGlkZGVu' } },
    { toolUse: { toolUseId: 'a', name: 'w', input: { a: 1 } } },
  ];

  for (const dialect of clientDialects) {
    it(`bedrock 5 signed and hidden reasoning of Claude goes back as it came, by a ${dialect} client`, async () => {
      const declared = dialect === 'messages' ? { name: 'w', input_schema: parameters } : weather;
      const flat = { type: 'function', name: 'w', parameters };
      const tools = { tools: [dialect === 'responses' ? flat : declared] };
      const asks = {
        chat: { reasoning_effort: 'high' },
        messages: { max_tokens: 4000, thinking: { type: 'enabled', budget_tokens: 2000 } },
        responses: { reasoning: { effort: 'high', summary: 'auto' } },
      }[dialect];
      const answer = converseAnswer({ content: told, stopReason: 'tool_use' });
      const call = { dialect, model: claude, more: { ...tools, ...asks } };
      const { reply } = await callConverse(scene, call, answer);
      assert.equal(reply.status, 200, reply.text);
      const turns = {
        chat: () => {
          const message = objectAt(listAt(reply.json, 'choices')[0] ?? {}, 'message');
          return [message, { role: 'tool', tool_call_id: 'a', content: 'sunny' }];
        },
        messages: () => [
          { role: 'assistant', content: listAt(reply.json, 'content') },
          {
            role: 'user',
            content: [{ type: 'tool_result', tool_use_id: 'a', content: 'sunny' }],
          },
        ],
        responses: () => [
          ...listAt(reply.json, 'output'),
          { type: 'function_call_output', call_id: 'a', output: 'sunny' },
        ],
      }[dialect]();
      const second = await taken({
        ...call,
        more: { ...call.more, messages: [hello, ...turns] },
      });
      assert.deepEqual(messagesOf(second.sent)[1], ['assistant', ...told]);
      assert.ok(isObject(second.sent['additionalModelRequestFields']));
      // Another maker is not shown it.
      const other = await taken({
        ...call,
        model: nova,
        more: { ...call.more, messages: [hello, ...turns] },
      });
      assert.deepEqual(messagesOf(other.sent)[1], ['assistant', told[2]]);
    });

    it(`bedrock 7 unsigned reasoning is not sent back by a ${dialect} client`, async () => {
      const content = [
        { reasoningContent: { reasoningText: { text: 'Two and two.' } } },
        { text: 'Four.' },
      ];
      const { reply } = await callConverse(
        scene,
        { dialect, model: gptOss },
        converseAnswer({ content }),
      );
      const turns = {
        chat: () => [objectAt(listAt(reply.json, 'choices')[0] ?? {}, 'message')],
        messages: () => [{ role: 'assistant', content: listAt(reply.json, 'content') }],
        responses: () => listAt(reply.json, 'output'),
      }[dialect]();
      const { sent, notes } = await taken({
        dialect,
        model: gptOss,
        more: { messages: [hello, ...turns, { role: 'user', content: 'Sure?' }] },
      });
      assert.deepEqual(messagesOf(sent)[1], ['assistant', { text: 'Four.' }]);
      assert.equal(notes, '');
    });
  }

  it('what Claude signed behind Converse is taken by Claude behind InvokeModel', async () => {
    const more = { tools: [weather], reasoning_effort: 'high' };
    const answer = converseAnswer({ content: told, stopReason: 'tool_use' });
    const { reply } = await callConverse(scene, { model: claude, more }, answer);
    const message = objectAt(listAt(reply.json, 'choices')[0] ?? {}, 'message');
    const { requests } = scene.bedrock.script(
      pathOf(claude, 'invoke-with-response-stream'),
      eventStream(claudeChunks(['ok'])),
    );
    const second = await send(`${scene.gateway.url}/v1/chat/completions`, {
      model: `bedrock/${claude}`,
      ...more,
      messages: [hello, message, { role: 'tool', tool_call_id: 'a', content: 'sunny' }],
    });
    assert.equal(second.status, 200, second.text);
    const [, turn] = listAt(requests[0]?.json ?? {}, 'messages');
    assert.deepEqual(listAt(turn ?? {}, 'content').slice(0, 2), [
      { type: 'thinking', thinking: 'Hm.', signature: 'c2lnbmF0dXJl' },
      { type: 'redacted_thinking', data: 'aGlkZGVu' },
    ]);
  });

  for (const display of ['summarized', 'omitted']) {
    it(`the same by a messages client, which is relayed there, with its text ${display}`, async () => {
      const more = {
        tools: [{ name: 'w', input_schema: parameters }],
        max_tokens: 4000,
        thinking: { type: 'enabled', budget_tokens: 2000, display },
      };
      const answer = converseAnswer({ content: told, stopReason: 'tool_use' });
      const call = { dialect: 'messages', model: claude, more } as const;
      const { reply } = await callConverse(scene, call, answer);
      const content = listAt(reply.json, 'content');
      const result = { type: 'tool_result', tool_use_id: 'a', content: 'sunny' };
      const turns = [
        { role: 'assistant', content },
        { role: 'user', content: [result] },
      ];
      const { requests } = scene.bedrock.script(pathOf(claude, 'invoke'), claudeDocument());
      const second = await send(`${scene.gateway.url}/v1/messages`, {
        model: `bedrock/${claude}`,
        ...more,
        messages: [hello, ...turns],
      });
      assert.equal(second.headers['x-gateway-mode'], 'relay', second.text);
      assert.equal(second.headers['x-gateway-notes'], undefined);
      const [, turn] = listAt(requests[0]?.json ?? {}, 'messages');
      assert.deepEqual(listAt(turn ?? {}, 'content').slice(0, 2), [
        { type: 'thinking', thinking: 'Hm.', signature: 'c2lnbmF0dXJl' },
        { type: 'redacted_thinking', data: 'aGlkZGVu' },
      ]);
      assert.ok(isObject(requests[0]?.json['thinking']), 'it reasons on');
    });
  }
});
