/** F46, F52: what is torn off behind the answer, and bytes that are no text in a document. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import {
  clientDialects,
  type SseUpstream,
  sseUpstreams,
  upstreamDialects,
} from '../support/dialects.ts';
import { endingOf, framesOf, listAt } from '../support/reading.ts';
import { requestBody } from '../support/requests.ts';
import { ask, startRig, type Rig } from '../support/rig.ts';
import { chatDone, chatFrame } from '../upstream/chat.ts';
import { geminiChunk, geminiFrame, usualUsage } from '../upstream/gemini.ts';
import { answerIn, joined } from '../upstream/reply.ts';
import { begun, endMark, frame, frameOf, legalFrames, stream, textPiece } from './stream-pieces.ts';

let rig: Rig;
before(async () => {
  rig = await startRig();
});
after(() => rig.stop());

const terminators = {
  chat: 'data: [DONE]\n\n',
  messages: 'event: message_stop\n',
  responses: 'event: response.completed\n',
} as const;

for (const dialect of clientDialects) {
  test(`F52 ${dialect}: an upstream that is cut within the name of its last line has ended well`, async () => {
    const frames = legalFrames(dialect).filter((each) => each !== endMark[dialect]);
    for (const torn of ['da', 'data', 'event', 'event: mess', ':']) {
      const body = frames.join('') + torn;
      const headers = { 'content-type': 'text/event-stream' };
      const { model } = rig.play(dialect, { body, headers, framing: 'close' });
      const reply = await ask(rig, dialect, requestBody(dialect, { model, stream: true }));
      assert.ok(reply.text.includes(`\n\n${terminators[dialect]}`), `${torn}: ${reply.text}`);
    }
  });

  test(`F52 ${dialect}, relay: a stream that is cut within its last line ends is read by clients`, async () => {
    const frames = legalFrames(dialect).filter((each) => each !== endMark[dialect]);
    const body = frames.join('').replaceAll('\n', '\r\n');
    for (const missing of [2, 3, 4]) {
      const headers = { 'content-type': 'text/event-stream' };
      const { model } = rig.play(dialect, {
        body: body.slice(0, -missing),
        headers,
        framing: 'close',
      });
      const reply = await ask(rig, dialect, requestBody(dialect, { model, stream: true }));
      assert.equal(endingOf(dialect, reply.text), 'proper', reply.text);
      for (const { data } of framesOf(reply.text))
        if (data !== undefined && data !== '[DONE]') assert.doesNotThrow(() => JSON.parse(data));
    }
  });

  for (const upstream of upstreamDialects) {
    const mode = `${dialect === upstream ? 'relay' : 'translate'} from ${upstream}`;
    test(`F45 ${dialect}, ${mode}: what one read brought before a broken event is the client's`, async () => {
      const seen = Promise.withResolvers<void>();
      const more = frame(upstream, textPiece(upstream, 'And more.'));
      const { model } = rig.play(
        upstream,
        stream(begun(upstream), seen.promise, joined([more, frameOf(upstream, '{')])),
      );
      const body = requestBody(dialect, { model, stream: true });
      const reply = await ask(rig, dialect, body, { onData: () => seen.resolve() });
      assert.ok(reply.text.includes('And more.'), reply.text);
      assert.equal(endingOf(dialect, reply.text), 'error', reply.text);
    });
  }

  test(`F46 ${dialect}: a document whose bytes are no UTF-8 is not passed on`, async () => {
    const text = 'Good \u00ff day.';
    const { body: document } = answerIn(dialect, { text }, false);
    assert.ok(typeof document === 'string');
    const body = Buffer.from(document, 'latin1');
    const { model } = rig.play(dialect, { body });
    const reply = await ask(rig, dialect, requestBody(dialect, { model, stream: false }));
    assert.equal(reply.status, 502, reply.text);
  });
}

/** Frames up to the first with content, that one without the end of its line: no frame is complete before the stream ends. */
function tornAtContent(upstream: SseUpstream): string {
  const frames = legalFrames(upstream);
  const content = frames.findIndex((each) => each.includes('Hell'));
  return frames
    .slice(0, content + 1)
    .join('')
    .trimEnd();
}

for (const dialect of clientDialects) {
  for (const upstream of sseUpstreams) {
    for (const isStream of [true, false]) {
      const shape = isStream ? 'stream' : 'document';
      // A relayed document is never read as a stream.
      if (!isStream && upstream === dialect) continue;
      test(`F46 ${dialect} on ${upstream}, ${shape}: a stream that ends with the line of its first content is broken, and ends`, async () => {
        const headers = { 'content-type': 'text/event-stream' };
        const { model } = rig.play(upstream, {
          body: tornAtContent(upstream),
          headers,
          framing: 'chunked',
        });
        const reply = await ask(rig, dialect, requestBody(dialect, { model, stream: isStream }));
        if (!isStream) return assert.equal(reply.status, 502, reply.text);
        assert.ok(reply.text.includes('Hell'), reply.text);
        assert.equal(endingOf(dialect, reply.text), 'error', reply.text);
      });
    }
  }

  test(`F52 ${dialect}: an answer whose only frame lacks the end of its line has ended well`, async () => {
    const chunk = geminiChunk([{ text: 'Hello' }]);
    const candidates = [{ ...listAt(chunk, 'candidates')[0], finishReason: 'STOP' }];
    const body = geminiFrame({ ...chunk, candidates, usageMetadata: usualUsage }).trimEnd();
    const headers = { 'content-type': 'text/event-stream' };
    const { model } = rig.play('gemini', { body, headers, framing: 'chunked' });
    const reply = await ask(rig, dialect, requestBody(dialect, { model, stream: true }));
    assert.equal(endingOf(dialect, reply.text), 'proper', reply.text);
  });
}

function choice(index: number, content: string, reason: string | null): string {
  const delta = content === '' ? {} : { role: 'assistant', content };
  const choices = [{ index, delta, finish_reason: reason }];
  return chatFrame({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices });
}

for (const [ending, n, proper] of [
  ['stop', 2, true],
  [null, 2, false],
  // The second one was not requested.
  [null, 1, true],
  ['error', 2, false],
  ['error', 1, true],
] as const) {
  test(`F54 F62 a relayed stream of two answers, ${n} requested, of which the second ends with ${ending}: ${proper ? 'proper' : 'broken'}`, async () => {
    const frames = [choice(0, 'One', null), choice(1, 'Two', null), choice(0, '', 'stop')];
    // What comes after the finish of a choice does not open it again.
    const after = ending === null ? '' : choice(1, '', null);
    const body = [...frames, choice(1, '', ending), after, chatDone].join('');
    const headers = { 'content-type': 'text/event-stream' };
    const { model } = rig.play('chat', { body, headers, framing: 'chunked' });
    const request = requestBody('chat', { model, stream: true, more: { n } });
    const reply = await ask(rig, 'chat', request, { oddFrames: true });
    assert.equal(endingOf('chat', reply.text), proper ? 'proper' : 'error', reply.text);
  });
}

for (const failed of [{ finish_reason: 'error' }, { error: { message: 'Out of memory.' } }]) {
  for (const [n, expected] of [
    [2, 502],
    // The second one was not requested.
    [1, 200],
  ] as const) {
    test(`F62 a relayed document of two answers, ${n} requested, of which the second failed: ${JSON.stringify(failed)}`, async () => {
      const message = { role: 'assistant', content: 'One' };
      const choices = [
        { index: 0, message, finish_reason: 'stop' },
        { index: 1, message, ...failed },
      ];
      const body = JSON.stringify({ id: 'c', object: 'chat.completion', model: 'm', choices });
      const { model } = rig.play('chat', { body });
      const request = requestBody('chat', { model, stream: false, more: { n } });
      const { status, text } = await ask(rig, 'chat', request);
      assert.equal(status, expected, text);
    });
  }
}

for (const [form, length, second] of [
  ['of more than 1 MiB', 1.2 * 1024 ** 2, { index: 1 }],
  ['whose choices have no index', 1, {}],
] as const) {
  test(`F62 a relayed document ${form} fails with the second of two requested answers`, async () => {
    const message = { role: 'assistant', content: 'One'.repeat(length / 3 + 1) };
    const choices = [
      { message, finish_reason: 'stop' },
      { ...second, message, finish_reason: 'error' },
    ];
    const body = JSON.stringify({ id: 'c', object: 'chat.completion', model: 'm', choices });
    const { model } = rig.play('chat', { body });
    const request = requestBody('chat', { model, stream: false, more: { n: 2 } });
    assert.equal((await ask(rig, 'chat', request)).status, 502);
  });
}

test('F62 an answer that was not requested does not hold up the end of a stream without [DONE]', async () => {
  const frames = [choice(0, 'One', null), choice(1, 'Two', null), choice(0, '', 'stop')];
  const headers = { 'content-type': 'text/event-stream' };
  const { model } = rig.play('chat', { body: frames.join(''), headers, framing: 'chunked' });
  const request = requestBody('chat', { model, stream: true });
  const reply = await ask(rig, 'chat', request, { oddFrames: true });
  assert.equal(endingOf('chat', reply.text), 'proper', reply.text);
});
