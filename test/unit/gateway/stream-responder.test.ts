/** One ending a stream, and nothing behind it (EM, F53, R1). */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { AnswerRelay } from '../../../src/core/dialect.ts';
import { GatewayError } from '../../../src/core/errors.ts';
import type { GenerationEvent } from '../../../src/core/generation.ts';
import { openaiChatClient } from '../../../src/dialects/openai-chat/client.ts';
import { StreamResponder } from '../../../src/gateway/answer/client-answer.ts';
import type { ReadFrame } from '../../../src/gateway/answer/upstream-answer.ts';

const finish: GenerationEvent = { type: 'finish', reason: { kind: 'stop' } };
const late = new GatewayError('stream_interrupted', 'late');

function frame(text: string, events: readonly GenerationEvent[] = []): ReadFrame {
  return {
    frame: { bytes: Buffer.from(text), event: undefined, data: text },
    events,
    plain: false,
  };
}

function scene(mode: 'relay' | 'writer') {
  const told: string[] = [];
  let ended = false;
  const relay: AnswerRelay = {
    frame: ({ bytes, data }) => {
      if (data === '[DONE]') ended = true;
      return bytes;
    },
    document: ({ bytes }) => bytes,
    get ended() {
      return ended;
    },
    ending: () => '(ending)',
    cutShort: () => '(cut short)',
  };
  const writer = { write: ({ type }: GenerationEvent) => `${type} `, end: () => '(end)' };
  const responder = new StreamResponder({
    sink: {
      start: () => undefined,
      write: (bytes) => {
        told.push(`write ${bytes.toString()}`);
        return true;
      },
      end: (bytes = '') => told.push(`end ${bytes.toString().slice(0, 12)}`),
      cut: () => told.push('cut'),
      observe: () => undefined,
    },
    dialect: openaiChatClient,
    requestId: 'req_1',
    owner: {
      full: () => undefined,
      completed: () => told.push('completed'),
      broken: ({ code }) => told.push(`broken ${code}`),
    },
    output: mode === 'relay' ? { relay } : { writer },
    usageGap: () => undefined,
    choices: 1,
  });
  return { responder, told };
}

/** All that an upstream may still say. */
function goOn(responder: StreamResponder): void {
  responder.frames([frame('more'), frame('[DONE]', [finish])]);
  responder.cutShort([finish]);
  responder.ended([finish]);
  responder.ended([{ type: 'error', error: late }]);
  responder.failed(late);
}

for (const mode of ['relay', 'writer'] as const) {
  describe(`a stream by its ${mode}`, () => {
    test('F53 behind its terminator nothing is written, and its owner hears of one ending', () => {
      const { responder, told } = scene(mode);
      responder.frames([frame('a', [finish]), frame('[DONE]'), frame('behind')]);
      const before = [...told];
      assert.equal(before.at(-1), 'completed');
      assert.doesNotMatch(before.join(), /behind/);
      goOn(responder);
      assert.deepEqual(told, before);
    });

    test('EM behind its error nothing is written, and its owner hears of one failure', () => {
      const { responder, told } = scene(mode);
      responder.failed(new GatewayError('timeout', 'now'));
      assert.deepEqual(told, ['end data: {"erro', 'broken timeout']);
      goOn(responder);
      assert.equal(told.length, 2);
    });

    test('EM F54 an end with an error event is no success', () => {
      const { responder, told } = scene(mode);
      responder.ended([{ type: 'error', error: late }]);
      assert.deepEqual(told, ['end data: {"erro', 'broken stream_interrupted']);
    });

    test('F63 a cut answer has one ending', () => {
      const { responder, told } = scene(mode);
      responder.cutShort([finish]);
      assert.equal(told.at(-1), 'completed');
      const before = told.length;
      goOn(responder);
      assert.equal(told.length, before);
    });
  });
}

test('F54 a terminator without a finish ends nothing', () => {
  const { responder, told } = scene('relay');
  responder.frames([frame('[DONE]')]);
  assert.deepEqual(told, ['write [DONE]']);
});
