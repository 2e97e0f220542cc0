/** issue 8.3: prompts and answers in spans, where the operator wants them, in the conventions' own form. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { JsonObject } from '../../src/json/value.ts';
import { clientKey } from '../support/keys.ts';
import { Collector, type SeenSpan } from '../support/otlp.ts';
import { allDialects, type AnyDialect } from '../support/reading.ts';
import { requestBody } from '../support/requests.ts';
import { ask, startRig, type Rig } from '../support/rig.ts';
import { answerIn, errorIn } from '../upstream/reply.ts';
import { assertConventions } from './conventions.ts';

const soon = { OTEL_BSP_SCHEDULE_DELAY: '10' };
const collector = new Collector();
let rig: Rig;
let endpoint = '';
before(async () => {
  endpoint = await collector.listen();
  rig = await startRig({ traces: { endpoint, content: true } }, { env: soon });
});
after(async () => {
  await rig.stop();
  collector.close();
});

async function spansOf(dialect: AnyDialect, body: JsonObject): Promise<readonly SeenSpan[]> {
  const reply = await ask(rig, dialect, body);
  const spans = await collector.ofCall(String(reply.headers['x-request-id']));
  for (const span of spans) assertConventions(span);
  return spans;
}

function contentOf(span: SeenSpan | undefined, which: 'input' | 'output'): unknown {
  const text = span?.attributes[`gen_ai.${which}.messages`];
  return text === undefined ? undefined : JSON.parse(String(text));
}

const asked = (text: string): JsonObject => ({ messages: [{ role: 'user', content: text }] });

for (const dialect of allDialects) {
  for (const upstream of allDialects) {
    for (const stream of [true, false]) {
      const shape = stream ? 'stream' : 'document';
      test(`issue 8.3 prompt and answer: ${dialect} on ${upstream}, ${shape}`, async () => {
        const { model } = rig.play(upstream, answerIn(upstream, { text: 'Hello there.' }, stream));
        const system =
          dialect === 'messages'
            ? { ...asked('What is it?'), system: 'Be brief.' }
            : {
                messages: [
                  { role: 'system', content: 'Be brief.' },
                  { role: 'user', content: 'What is it?' },
                ],
              };
        const [call, attempt] = await spansOf(
          dialect,
          requestBody(dialect, { model, stream, more: system }),
        );
        assert.deepEqual(contentOf(call, 'input'), [
          { role: 'user', parts: [{ type: 'text', content: 'What is it?' }] },
        ]);
        assert.deepEqual(JSON.parse(String(call?.attributes['gen_ai.system_instructions'])), [
          { type: 'text', content: 'Be brief.' },
        ]);
        assert.deepEqual(contentOf(call, 'output'), [
          {
            role: 'assistant',
            parts: [{ type: 'text', content: 'Hello there.' }],
            finish_reason: 'stop',
          },
        ]);
        assert.equal(call?.attributes['gateway.content_cut'], undefined);
        assert.equal(contentOf(attempt, 'input'), undefined, 'once a call');
      });
    }
  }
}

test('issue 8.3 a call that no provider answered has its prompt and no answer', async () => {
  const { model } = rig.play('chat', errorIn('chat', 400, 'no'));
  const body = requestBody('chat', { model, stream: false, more: asked('What is it?') });
  const [call] = await spansOf('chat', body);
  assert.deepEqual(contentOf(call, 'input'), [
    { role: 'user', parts: [{ type: 'text', content: 'What is it?' }] },
  ]);
  assert.equal(contentOf(call, 'output'), undefined);
});

test('issue 8.3 tools, results and media: calls with their arguments, never bytes', async () => {
  const { model } = rig.play('chat', answerIn('chat', { text: 'Hello.' }, false));
  const messages = [
    {
      role: 'user',
      content: [
        { type: 'text', text: 'Look' },
        {
          type: 'image_url',
          image_url: { url: 'https://pictures.example.com/a.png?sig=signature-of-it' },
        },
        {
          type: 'image_url',
          image_url: {
            url: 'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
          },
        },
      ],
    },
    {
      role: 'assistant',
      content: null,
      tool_calls: [
        { id: 'call_1', type: 'function', function: { name: 'find', arguments: '{"q":"x"}' } },
      ],
    },
    { role: 'tool', tool_call_id: 'call_1', content: 'found' },
  ];
  const [call] = await spansOf(
    'chat',
    requestBody('chat', { model, stream: false, more: { messages } }),
  );
  assert.deepEqual(contentOf(call, 'input'), [
    {
      role: 'user',
      parts: [
        { type: 'text', content: 'Look' },
        { type: 'uri', modality: 'image', uri: 'https://pictures.example.com/a.png' },
        { type: 'blob', modality: 'image', mime_type: 'image/png', content: '' },
      ],
    },
    {
      role: 'assistant',
      parts: [{ type: 'tool_call', id: 'call_1', name: 'find', arguments: { q: 'x' } }],
    },
    { role: 'tool', parts: [{ type: 'tool_call_response', id: 'call_1', response: 'found' }] },
  ]);
});

test('S13 what looks like a key is in no span, nor the keys of this call', async () => {
  const secrets = [
    'sk-proj-0123456789abcdef',
    'AKIAABCDEFGHIJKLMNOP',
    'ghp_0123456789abcdefghij',
    'eyJhbGciOiJIUzI1.eyJzdWIiOiIxMjM0.c2lnbmF0dXJl',
    clientKey,
    'upstream-chat-key',
  ];
  const text = `${secrets.join(' and ')}, Bearer abcdef-123456 .`;
  const { model } = rig.play('chat', answerIn('chat', { text }, true));
  const [call] = await spansOf(
    'chat',
    requestBody('chat', { model, stream: true, more: asked(text) }),
  );
  const all = JSON.stringify(call?.attributes);
  for (const secret of [...secrets, 'abcdef-123456']) assert.ok(!all.includes(secret), secret);
  assert.match(all, /\[redacted\] and \[redacted\]/);
});

test('issue 8.3 long prompts and answers are cut: of a prompt the end stays, of an answer the beginning', async () => {
  const long = 'word '.repeat(4000);
  const messages = Array.from({ length: 40 }, (_, i) => ({
    role: i % 2 === 0 ? 'user' : 'assistant',
    content: `turn ${i} ${long}`,
  }));
  messages.push({ role: 'user', content: 'the last one' });
  const { model } = rig.play('chat', answerIn('chat', { text: `begin ${long.repeat(10)}` }, true));
  const [call] = await spansOf(
    'chat',
    requestBody('chat', { model, stream: true, more: { messages } }),
  );
  const input = String(call?.attributes['gen_ai.input.messages']);
  const output = String(call?.attributes['gen_ai.output.messages']);
  assert.ok(input.length <= 70_000 && input.length > 30_000, `${input.length}`);
  assert.ok(output.length <= 9000, `${output.length}`);
  assert.ok(input.includes('the last one') && !input.includes('turn 0 '));
  assert.ok(output.includes('begin word'));
  assert.equal(call?.attributes['gateway.content_cut'], true);
});

for (const dialect of allDialects) {
  test(`issue 8.3 G11 the end of a prompt that is not read on the event loop is reported, ${dialect}`, async () => {
    const messages = Array.from({ length: 400 }, (_, i) => ({
      role: i % 2 === 0 ? 'user' : 'assistant',
      content: `turn ${i} ${'word '.repeat(1000)}`,
    }));
    messages.push({ role: 'user', content: 'the last one' });
    const { model } = rig.play(dialect, answerIn(dialect, { text: 'Hello.' }, false));
    const body = requestBody(dialect, { model, stream: false, more: { messages } });
    assert.ok(JSON.stringify(body).length > 2 ** 20);
    const [call] = await spansOf(dialect, body);
    const input = String(call?.attributes['gen_ai.input.messages']);
    assert.ok(input.length <= 70_000 && input.length > 30_000, `${input.length}`);
    assert.ok(input.includes('the last one') && !input.includes('turn 0 '));
    assert.equal(call?.attributes['gateway.content_cut'], true);
  });
}

for (const word of [
  'true',
  'SPAN_ONLY',
  'span_and_event',
  'no_content',
  'event_only',
  '',
] as const) {
  test(`issue 8.3 OpenTelemetry's own switch: ${word === '' ? 'nothing' : word}`, async () => {
    const env = {
      ...soon,
      OTEL_EXPORTER_OTLP_ENDPOINT: endpoint,
      OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT: word,
    };
    const own = await startRig({}, { env });
    try {
      const { model } = own.play('chat', answerIn('chat', { text: 'Hello.' }, false));
      const reply = await ask(own, 'chat', requestBody('chat', { model, stream: false }));
      const [call] = await collector.ofCall(String(reply.headers['x-request-id']));
      const wanted = ['true', 'SPAN_ONLY', 'span_and_event'].includes(word);
      assert.equal(call?.attributes['gen_ai.input.messages'] !== undefined, wanted);
      assert.equal(call?.attributes['gen_ai.output.messages'] !== undefined, wanted);
    } finally {
      await own.stop();
    }
  });
}
