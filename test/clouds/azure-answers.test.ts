/** What Azure answers, through all clients: recordings, filters, streams in pieces (wire/azure.md §9: 1–12, 48). */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { GatewayError } from '../../src/core/errors.ts';
import { chatTraits } from '../../src/core/traits.ts';
import { openaiChatUpstream } from '../../src/dialects/openai-chat/upstream.ts';
import { SseSplitter } from '../../src/wire/sse.ts';
import { isObject, type Json, type JsonObject } from '../../src/json/value.ts';
import { tryParseObject } from '../../src/json/parse.ts';
import { send, type Reply } from '../support/http.ts';
import { listAt, type AnyDialect } from '../support/reading.ts';
import { endpointOf, requestBody } from '../support/requests.ts';
import { everyBytes, randomSplit, type Answer } from '../upstream/scripted.ts';
import {
  azureKey,
  eventsOf,
  noRecordings,
  recording,
  startAzure,
  type AzureScene,
} from './azure-scene.ts';

const clients = ['chat', 'messages', 'responses'] as const;

let scene: AzureScene;
before(async () => {
  scene = await startAzure(({ azure }) => ({
    providers: {
      azure: { base_url: azure, api_key: azureKey, deployments: { router: 'gpt-5-nano' } },
      responses: {
        like: 'azure',
        base_url: azure,
        api_key: azureKey,
        dialect: 'openai-responses',
      },
    },
  }));
});
after(() => scene.stop());

let asked = 0;

/** Asks a deployment of its own that answers so. */
function askWith(
  answer: Answer,
  dialect: AnyDialect,
  { stream = false, provider = 'azure' }: { stream?: boolean; provider?: string } = {},
): Promise<Reply> {
  const name = `deployment-${++asked}`;
  scene.azure.script(name, answer);
  const body = requestBody(dialect, { model: `${provider}/${name}`, stream });
  return send(`${scene.gateway.url}${endpointOf[dialect]}`, body);
}

function at(value: Json | undefined, ...path: readonly (string | number)[]): Json | undefined {
  let found = value;
  for (const key of path) {
    if (Array.isArray(found) && typeof key === 'number') found = found[key];
    else if (isObject(found) && typeof key === 'string') found = found[key];
    else return undefined;
  }
  return found;
}

/** All input, all output, and the part of it that is reasoning, of a ledger row. */
function countsOf(row: JsonObject): readonly (Json | undefined)[] {
  const {
    fresh_input_tokens: input,
    output_tokens: output,
    reasoning_tokens: reasoning,
  } = row['reported'] as JsonObject;
  return [input, output, reasoning];
}

/** All text of an answer, whatever its client. */
function textOf(dialect: AnyDialect, reply: Reply): string {
  const { json } = reply;
  if (dialect === 'chat') return String(at(json, 'choices', 0, 'message', 'content'));
  const list = dialect === 'messages' ? at(json, 'content') : at(json, 'output');
  const parts = Array.isArray(list) ? list.filter(isObject) : [];
  const spoken = dialect === 'messages' ? parts : parts.flatMap(({ content }) => contents(content));
  return spoken
    .map(({ type, text }) => (type === 'text' || type === 'output_text' ? String(text) : ''))
    .join('');
}

function contents(value: Json | undefined): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}

/** The frames of a recorded stream, one event a line. */
function frames(name: string, done = true): readonly string[] {
  const lines = recording(name)
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => `data: ${line}\n\n`);
  return done ? [...lines, 'data: [DONE]\n\n'] : lines;
}

/** The same of a Responses stream, whose events are named. */
function namedFrames(name: string): readonly string[] {
  return recording(name)
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => `event: ${String(tryParseObject(line)?.['type'])}\ndata: ${line}\n\n`);
}

/** The text that a stream says to its client. */
function streamedText(dialect: AnyDialect, text: string): string {
  return eventsOf(text)
    .map((event) => {
      if (dialect === 'chat') return at(event, 'choices', 0, 'delta', 'content');
      if (dialect === 'messages') return at(event, 'delta', 'text');
      return event['type'] === 'response.output_text.delta' ? event['delta'] : undefined;
    })
    .filter((piece) => typeof piece === 'string')
    .join('');
}

describe('azure 1, 37: a recorded document', { skip: noRecordings }, () => {
  for (const dialect of clients) {
    it(`for ${dialect}: its text, and 8 tokens in, 271 out, 192 of them reasoning`, async () => {
      const body = recording('azure/envoy-azure-chat-basic.json');
      const headers = tryParseObject(recording('azure/envoy-azure-chat-basic.headers.json')) ?? {};
      const own = ['x-ms-region', 'apim-request-id', 'x-ratelimit-limit-tokens', 'x-request-id'];
      const sent = Object.fromEntries(own.map((name) => [name, String(headers[name])]));
      const reply = await askWith({ body, headers: sent }, dialect);
      assert.equal(reply.status, 200, reply.text);
      assert.match(textOf(dialect, reply), /^Hi there! How can I help today\?/);
      const row = await scene.gateway.callRow(String(reply.headers['x-request-id']));
      const [input, output, reasoning] = countsOf(row);
      assert.deepEqual([input, output, reasoning], [8, 271, 192]);
      // Limits and names of the service are read, and not passed.
      for (const name of own.slice(0, 3)) assert.equal(reply.headers[name], undefined, name);
      assert.notEqual(reply.headers['x-request-id'], headers['x-request-id']);
    });
  }
});

describe('azure 2–4: the recorded stream of the model router', { skip: noRecordings }, () => {
  const name = 'openai-chat/azure-model-router.1.chunks.txt';
  const said = (dialect: AnyDialect, pieces: Answer): Promise<Reply> =>
    askWith(pieces, dialect, { stream: true });

  for (const dialect of clients) {
    it(`for ${dialect}, in one, by bytes and in random pieces`, async () => {
      const body = frames(name);
      const whole = await said(dialect, { body });
      assert.equal(whole.status, 200, whole.text);
      const text = streamedText(dialect, whole.text);
      assert.match(text, /\S/);
      for (const split of [everyBytes(1), randomSplit(7, 900)]) {
        const cut = await said(dialect, { body, split });
        assert.equal(streamedText(dialect, cut.text), text);
        assert.ok(cut.complete);
      }
      const row = await scene.gateway.callRow(String(whole.headers['x-request-id']));
      const [input, output, reasoning] = countsOf(row);
      assert.deepEqual([input, output, reasoning], [15, 78, 64]);
    });

    it(`for ${dialect}: cut anywhere before its finish, it is no success`, async () => {
      const bytes = Buffer.from(frames(name).join(''));
      const finish = bytes.indexOf('"finish_reason":"stop"');
      for (let end = 0; end < finish; end += 97) {
        const pieces = [bytes.subarray(0, end)];
        const reply = await said(dialect, {
          body: pieces,
          ending: end % 2 === 0 ? 'reset' : 'fin',
        });
        assert.doesNotMatch(reply.text, /\[DONE\]|message_stop|response\.completed/, `at ${end}`);
        if (reply.status === 200) assert.match(reply.text, /error|response\.failed/, `at ${end}`);
      }
    });
  }

  it('3: read up to any byte before its finish, it ends in an error', () => {
    const bytes = Buffer.from(frames(name).join(''));
    const finish = bytes.indexOf('"finish_reason":"stop"');
    assert.ok(finish > 1000);
    for (let end = 0; end < finish; end++) {
      const splitter = new SseSplitter();
      const reader = openaiChatUpstream.streamReader(chatTraits);
      const last = (): string | undefined => {
        const rest = splitter.push(bytes.subarray(0, end));
        const half = splitter.end();
        const read = half === undefined ? rest : [...rest, half];
        const events = read.flatMap((frame) => reader.read(frame));
        return [...events, ...reader.end()].at(-1)?.type;
      };
      try {
        assert.equal(last(), 'error', `at ${end}`);
      } catch (error) {
        // Half a frame is no JSON.
        if (!(error instanceof GatewayError)) throw error;
        assert.equal(error.code, 'upstream_invalid');
      }
    }
  });

  it('a first chunk without id starts nothing: the answer has the id of the next one', async () => {
    const reply = await said('messages', { body: frames(name) });
    const [start] = eventsOf(reply.text);
    assert.equal(start?.['type'], 'message_start');
    assert.match(String(at(start, 'message', 'id')), /\S/);
    assert.equal(eventsOf(reply.text).filter(({ type }) => type === 'message_start').length, 1);
  });

  it('4: to a chat client the chunks go as they came, but for the name of the model', async () => {
    const reply = await said('chat', { body: frames(name) });
    assert.equal(reply.headers['x-gateway-mode'], 'relay');
    const sent = frames(name)
      .slice(0, -1)
      .map((frame) => tryParseObject(frame.slice(6)) ?? {});
    const got = eventsOf(reply.text);
    const withoutModel = (event: JsonObject): JsonObject => ({ ...event, model: '' });
    assert.deepEqual(got.map(withoutModel), sent.map(withoutModel));
  });
});

describe('azure 6: recorded Responses', { skip: noRecordings }, () => {
  for (const kind of ['text', 'tool-call'] as const) {
    for (const dialect of clients) {
      it(`${kind} as a document and as a stream for ${dialect}`, async () => {
        const body = recording(`azure/azure-${kind}.1.json`);
        const model = 'responses';
        const document = await askWith({ body }, dialect, { provider: model });
        assert.equal(document.status, 200, document.text);
        const pieces = namedFrames(`azure/azure-${kind}.1.chunks.txt`);
        for (const split of [everyBytes(1), randomSplit(3, 700)]) {
          const answer = { body: pieces, split };
          const reply = await askWith(answer, dialect, { provider: model, stream: true });
          assert.equal(reply.status, 200, reply.text);
          assert.ok(reply.complete);
          assert.match(reply.text, /\[DONE\]|message_stop|response\.completed/);
          if (kind === 'text') {
            assert.match(streamedText(dialect, reply.text), /\S/);
          } else assert.match(reply.text, /weather/);
        }
        if (kind === 'tool-call') assert.match(document.text, /weather/);
        else assert.match(textOf(dialect, document), /\S/);
      });
    }
  }
});

// Of other hosts of the same API: Azure's own are held out.
describe('azure 5: hosted tools and sealed reasoning of Responses', { skip: noRecordings }, () => {
  for (const [name, counts] of [
    ['openai-reasoning-encrypted-content.1', [865, 163, 128]],
    ['xai-web-search-tool.1', [994, 583, 380]],
  ] as const) {
    for (const dialect of clients) {
      it(`${name} for ${dialect}`, async () => {
        const body = recording(`openai-responses/${name}.json`);
        const reply = await askWith({ body }, dialect, { provider: 'responses' });
        assert.equal(reply.status, 200, reply.text);
        assert.match(textOf(dialect, reply), /\S/);
        const [input, output, reasoning] = countsOf(
          await scene.gateway.callRow(String(reply.headers['x-request-id'])),
        );
        assert.deepEqual([input, output, reasoning], counts);
        if (dialect !== 'responses') return;
        const upstream = listAt(tryParseObject(body) ?? {}, 'output');
        const told = listAt(reply.json, 'output');
        assert.deepEqual(
          told.map(({ type }) => type),
          upstream.map(({ type }) => type),
        );
        const sealed = (items: readonly JsonObject[]): readonly (Json | undefined)[] =>
          items.map(({ encrypted_content: own }) => own);
        assert.deepEqual(sealed(told), sealed(upstream));
      });
    }
  }
});

describe('azure 7: recorded DeepSeek', { skip: noRecordings }, () => {
  for (const dialect of clients) {
    it(`for ${dialect}: reasoning, then text; filters that are null`, async () => {
      const body = recording('azure/azure-deepseek-reasoning.1.json');
      const reply = await askWith({ body }, dialect);
      assert.equal(reply.status, 200, reply.text);
      assert.match(textOf(dialect, reply), /^Absolutely! Based on the most recent Knicks game/);
      const row = await scene.gateway.callRow(String(reply.headers['x-request-id']));
      const [input, output, reasoning] = countsOf(row);
      assert.deepEqual([input, output], [19, 1969]);
      // Not reported: absent is not zero.
      assert.notEqual(reasoning, 0);
    });
  }
});

function chunk(delta: JsonObject, more: JsonObject = {}, whole: JsonObject = {}): string {
  const choice = { index: 0, delta, finish_reason: null, ...more };
  const base = { id: 'c1', object: 'chat.completion.chunk', created: 1, model: 'gpt-4.1' };
  return `data: ${JSON.stringify({ ...base, choices: [choice], ...whole })}\n\n`;
}

const harmful = {
  hate: { filtered: true, severity: 'high' },
  sexual: { filtered: false, severity: 'safe' },
  jailbreak: { filtered: true, detected: true },
};
const filtered = chunk({}, { finish_reason: 'content_filter', content_filter_results: harmful });
const done = 'data: [DONE]\n\n';

describe('azure 8: JSON where reasoning stands', () => {
  const document = (message: JsonObject): string =>
    JSON.stringify({
      id: 'c',
      object: 'chat.completion',
      created: 1,
      model: 'deepseek-v3.1',
      choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', ...message } }],
      usage: { prompt_tokens: 8, completion_tokens: 2, total_tokens: 10 },
    });
  const json = '{"city":"Bern"}';
  for (const dialect of ['messages', 'responses'] as const) {
    it(`is the answer for ${dialect}, and no reasoning`, async () => {
      const body = document({ content: '', reasoning_content: json });
      const reply = await askWith({ body }, dialect);
      assert.equal(reply.status, 200, reply.text);
      assert.equal(textOf(dialect, reply), json);
      assert.doesNotMatch(reply.text, /"type":"(thinking|reasoning)"/);
    });

    it(`stays reasoning for ${dialect} where it is none, or where text stands behind it`, async () => {
      const none = document({ content: null, reasoning_content: 'I think {"city"}.' });
      assert.equal(textOf(dialect, await askWith({ body: none }, dialect)), '');
      const both = document({ content: 'Bern', reasoning_content: json });
      assert.equal(textOf(dialect, await askWith({ body: both }, dialect)), 'Bern');
    });
  }
});

describe('azure 9, 10: an answer that the filter stops', () => {
  for (const before of [[], [chunk({ role: 'assistant', content: 'It begins' })]]) {
    const when = before.length === 0 ? 'before any text' : 'behind text that was sent';
    it(`messages, ${when}: a refusal that names the categories`, async () => {
      const reply = await askWith({ body: [...before, filtered, done] }, 'messages', {
        stream: true,
      });
      const ended = eventsOf(reply.text).find(({ type }) => type === 'message_delta');
      assert.equal(at(ended, 'delta', 'stop_reason'), 'refusal');
      assert.deepEqual(at(ended, 'delta', 'stop_details'), {
        type: 'refusal',
        category: null,
        explanation: "The provider's content filter stopped the answer: hate, jailbreak.",
      });
      assert.match(reply.text, /message_stop/);
    });

    it(`chat, ${when}: content_filter, with the categories as they came`, async () => {
      const reply = await askWith({ body: [...before, filtered, done] }, 'chat', { stream: true });
      const last = eventsOf(reply.text).find(
        (event) => at(event, 'choices', 0, 'finish_reason') !== null,
      );
      assert.equal(at(last, 'choices', 0, 'finish_reason'), 'content_filter', reply.text);
      assert.deepEqual(at(last, 'choices', 0, 'content_filter_results'), harmful);
    });

    it(`responses, ${when}: incomplete by content_filter`, async () => {
      const reply = await askWith({ body: [...before, filtered, done] }, 'responses', {
        stream: true,
      });
      const last = eventsOf(reply.text).at(-1);
      assert.equal(last?.['type'], 'response.incomplete', reply.text);
      assert.equal(at(last, 'response', 'incomplete_details', 'reason'), 'content_filter');
    });
  }

  it('a document says the same', async () => {
    const body = JSON.stringify({
      id: 'c1',
      object: 'chat.completion',
      created: 1,
      model: 'gpt-4.1',
      choices: [
        {
          index: 0,
          message: { role: 'assistant' },
          finish_reason: 'content_filter',
          content_filter_results: harmful,
        },
      ],
    });
    const reply = await askWith({ body }, 'messages');
    assert.equal(reply.json['stop_reason'], 'refusal', reply.text);
    assert.match(String(at(reply.json, 'stop_details', 'explanation')), /hate, jailbreak/);
  });
});

describe('azure 11, 12: reports of the filter are no part of the answer', () => {
  const report = chunk(
    {},
    {
      content_filter_offsets: { check_offset: 0, start_offset: 0, end_offset: 100 },
      content_filter_results: { hate: { filtered: false, severity: 'safe' } },
    },
    { id: '', model: '', object: '', created: 0 },
  );
  const failed = {
    content_filter_result: { error: { code: 'content_filter_error', message: 'timed out' } },
  };
  const body = [
    report,
    chunk({ role: 'assistant', content: 'One' }),
    report,
    chunk({ content: ' two' }, failed),
    report,
    chunk({}, { finish_reason: 'stop', ...failed }),
    done,
  ];
  for (const dialect of ['messages', 'responses'] as const) {
    it(`for ${dialect}`, async () => {
      const reply = await askWith({ body }, dialect, { stream: true });
      assert.equal(streamedText(dialect, reply.text), 'One two');
      assert.match(reply.text, /message_stop|response\.completed/);
      assert.doesNotMatch(reply.text, /content_filter/);
    });
  }
  it('for chat, whose chunks go as they came', async () => {
    const reply = await askWith({ body }, 'chat', { stream: true });
    assert.equal(streamedText('chat', reply.text), 'One two');
    assert.match(reply.text, /\[DONE\]/);
  });
});

describe('azure 47: data of the operator’s own', () => {
  const context = { citations: [{ content: 'x', title: 'own' }], intent: '["hello"]' };
  const choices = [
    { index: 0, finish_reason: 'stop', message: { role: 'assistant', content: 'Found', context } },
  ];
  const body = JSON.stringify({
    id: 'c',
    object: 'chat.completion',
    created: 1,
    model: 'gpt-4.1',
    choices,
    usage: { prompt_tokens: 8, completion_tokens: 2, total_tokens: 10 },
  });

  it('a chat client’s data_sources go up, and the context comes back as it is', async () => {
    const name = `deployment-${++asked}`;
    const script = scene.azure.script(name, { body });
    const sources = [{ type: 'azure_search', parameters: { index_name: 'own' } }];
    const more = { data_sources: sources };
    const request = requestBody('chat', { model: `azure/${name}`, stream: false, more });
    const reply = await send(`${scene.gateway.url}/v1/chat/completions`, request);
    assert.equal(reply.status, 200, reply.text);
    assert.deepEqual(script.requests[0]?.json['data_sources'], sources);
    assert.deepEqual(at(reply.json, 'choices', 0, 'message', 'context'), context);
  });

  for (const dialect of ['messages', 'responses'] as const) {
    it(`the context is no part of an answer for ${dialect}`, async () => {
      const reply = await askWith({ body }, dialect);
      assert.equal(reply.status, 200, reply.text);
      assert.equal(textOf(dialect, reply), 'Found');
      assert.doesNotMatch(reply.text, /citations"?:\s*\[\{|intent/);
    });
  }
});

describe('azure 48: an error object inside a stream', () => {
  const error = `data: ${JSON.stringify({ error: { code: 'server_error', message: 'The server had an error' } })}\n\n`;
  for (const dialect of clients) {
    it(`before content it is an error of its status for ${dialect}`, async () => {
      const reply = await askWith({ body: [error] }, dialect, { stream: true });
      assert.ok(reply.status >= 500, reply.text);
    });
    it(`behind content the stream of ${dialect} ends with an error and without its terminator`, async () => {
      const body = [chunk({ role: 'assistant', content: 'It begins' }), error];
      const reply = await askWith({ body }, dialect, { stream: true });
      assert.equal(reply.status, 200);
      assert.match(reply.text, /It begins[\s\S]*error/);
      assert.doesNotMatch(reply.text, /\[DONE\]|message_stop|response\.completed/);
    });
  }
});
