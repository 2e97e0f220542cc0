/** The worst chat servers, relayed: every mend holds in every frame, whatever else stands in it. */
import * as fc from 'fast-check';
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isObject, type JsonObject } from '../../src/json/value.ts';
import { tryParseObject } from '../../src/json/parse.ts';
import { framesOf } from '../unit/openai-chat/answer-context.ts';
import { listAt, readStream } from '../support/reading.ts';
import { checkAsync } from './checking.ts';
import { answerContext, halves, readEvents, writeStream } from './dialect-halves.ts';
import { framed, framing, type Framing, type SentEvent } from './framing.ts';
import { framesIn } from './frames.ts';
import { judge } from './judges.ts';
import { assertSame, chatUsage, oddChat, oddEvents, seenOf, type OddChat } from './odd-chat.ts';

/** The frames are the server's own, odd as they are. */
const relayedFrames = { oddFrames: true } as const;

interface Relayed {
  /** Of each choice. */
  readonly plans: readonly OddChat[];
  /** Whose chunk comes next. */
  readonly order: readonly number[];
  /** The completion does not count the reasoning (xAI). */
  readonly reasoningApart: boolean;
  readonly form: Framing;
}

const relayed: fc.Arbitrary<Relayed> = fc.record({
  plans: fc.array(oddChat, { minLength: 1, maxLength: 3 }),
  order: fc.array(fc.nat({ max: 2 }), { maxLength: 30 }),
  reasoningApart: fc.boolean(),
  form: framing,
});

/** The chunks of all choices in one stream; usage and end are those of the first. */
function eventsOf({ plans, order, reasoningApart }: Relayed): readonly SentEvent[] {
  const [first, ...others] = plans.map((plan, index) =>
    oddEvents(index === 0 ? plan : { ...plan, usagePlace: 'own chunk', doneMark: false }),
  );
  if (first === undefined) return [];
  const queues = [
    first.slice(0, finishAt(first)),
    ...others.map((events, at) =>
      events.filter(isChoice).map(({ data }) => ({ data: inChoice(data, at + 1) })),
    ),
  ].map((events) => [...events]);
  const turns = order.map((pick) => queues[pick % queues.length] ?? []);
  const mixed = [...turns.flatMap((queue) => queue.splice(0, 1)), ...queues.toReversed().flat()];
  const all = [...mixed, ...first.slice(finishAt(first))];
  return reasoningApart ? all.map((event) => ({ data: withoutReasoning(event.data) })) : all;
}

/** A stream goes on until the last of its choices has finished. */
function finishAt(events: readonly SentEvent[]): number {
  return events.findIndex(({ data }) => /"finish_reason":"/.test(JSON.stringify(data)));
}

function isChoice(event: SentEvent): event is { data: JsonObject } {
  return typeof event.data !== 'string' && listAt(event.data, 'choices').length > 0;
}

function inChoice({ usage: _usage, ...chunk }: JsonObject, index: number): JsonObject {
  const choices = listAt(chunk, 'choices').map((choice) => ({ ...choice, index }));
  return { ...chunk, choices };
}

function withoutReasoning(data: JsonObject | string): JsonObject | string {
  if (typeof data === 'string') return data;
  const groq = data['x_groq'];
  return {
    ...data,
    ...(isObject(data['usage']) ? { usage: apart(data['usage']) } : {}),
    ...(isObject(groq) && isObject(groq['usage'])
      ? { x_groq: { ...groq, usage: apart(groq['usage']) } }
      : {}),
  };
}

function apart(usage: JsonObject): JsonObject {
  const details = usage['completion_tokens_details'];
  const reasoning = isObject(details) ? Number(details['reasoning_tokens']) : 0;
  return { ...usage, completion_tokens: Number(usage['completion_tokens']) - reasoning };
}

/** What a client gets, its usage asked for or not. */
function relay(sent: Relayed, wantsUsageFrame: boolean): string {
  const { bytes, places } = framed(eventsOf(sent), sent.form);
  const reader = halves.chat.upstream.streamReader(halves.chat.traits);
  const answer = halves.chat.client.answerRelay({ ...answerContext(), wantsUsageFrame });
  let text = '';
  for (const frame of framesIn(bytes, places)) {
    const events = reader.read(frame);
    const plain = reader.plain === true ? answer.plainFrame : undefined;
    const piece = plain === undefined ? answer.frame(frame, events) : plain.call(answer, frame);
    text += piece?.toString() ?? '';
  }
  reader.end();
  return text + answer.ending();
}

/** The usage objects of the dialect's own member. */
function usagesIn(text: string): readonly JsonObject[] {
  return chunksOf(text).flatMap(({ usage }) => (isObject(usage) ? [usage] : []));
}

function chunksOf(text: string): readonly JsonObject[] {
  return framesOf(text)
    .map(({ data = '' }) => tryParseObject(data))
    .filter((chunk) => chunk !== undefined);
}

/** The stream as if the choice had been the only one. */
function onlyChoice(text: string, index: number): string {
  const kept = chunksOf(text).flatMap((chunk) => {
    const choices = listAt(chunk, 'choices');
    const own = choices.filter((choice) => choice['index'] === index);
    if (choices.length > 0 && own.length === 0) return [];
    return [{ ...chunk, choices: own.map((choice) => ({ ...choice, index: 0 })) }];
  });
  return `${kept.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join('')}data: [DONE]\n\n`;
}

test('D2 D6 F56 the official SDKs read each choice as the server meant it, and one usage', async (context) => {
  await checkAsync(context, relayed, async (sent) => {
    const text = relay(sent, true);
    const [first] = sent.plans;
    assert.ok(first !== undefined);
    const [usage, ...more] = usagesIn(text);
    assert.equal(more.length, 0, `one usage: ${text}`);
    assert.ok(usage !== undefined, text);
    const { prompt_tokens: prompt, completion_tokens: completion } = chatUsage(first.usage);
    assert.deepEqual(
      [usage['prompt_tokens'], usage['completion_tokens']],
      [prompt, completion],
      text,
    );
    assert.equal(usage['total_tokens'], Number(prompt) + Number(completion));
    for (const [index, plan] of sent.plans.entries()) {
      const alone = onlyChoice(text, index);
      for (const { name, seen } of await judge('chat', alone, relayedFrames)) {
        const { reasoning, usage: counted } = seenOf({ ...plan, usage: first.usage });
        assertSame({ ...seen, reasoning }, plan, `${name}: ${text}`, {
          ...seenOf(plan),
          usage: counted,
        });
      }
    }
  });
});

test('D2 E6 usage that was not asked for is in no frame, and nothing else is missing', async (context) => {
  await checkAsync(context, relayed, async (sent) => {
    const text = relay(sent, false);
    assert.deepEqual(usagesIn(text), [], text);
    for (const [index, plan] of sent.plans.entries()) {
      for (const { name, seen } of await judge('chat', onlyChoice(text, index), relayedFrames)) {
        const { reasoning } = seenOf(plan);
        assertSame({ ...seen, reasoning }, plan, `${name}: ${text}`, {
          ...seenOf(plan),
          usage: undefined,
        });
      }
    }
  });
});

test('D2 relayed, an answer reads as it does translated', async (context) => {
  await checkAsync(context, relayed, async (sent) => {
    const { bytes, places } = framed(eventsOf(sent), sent.form);
    const events = readEvents(halves.chat, framesIn(bytes, places));
    const own = readStream('chat', writeStream(halves.chat, events));
    for (const { name, seen } of await judge(
      'chat',
      onlyChoice(relay(sent, true), 0),
      relayedFrames,
    )) {
      const { text, finish, usage, calls } = seen;
      const names = calls.map((call) => [call.name, call.arguments]);
      assert.deepEqual(
        { text, finish, usage, names },
        {
          text: own.text,
          finish: own.finish,
          usage: own.usage,
          names: own.calls.map((call) => [call.name, call.arguments]),
        },
        name,
      );
    }
  });
});
