/** Real answers of real providers (../shared/recordings), read, written again and cut. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { tryParseObject } from '../../../src/json/parse.ts';
import { isObject, type Json, type JsonObject } from '../../../src/json/value.ts';
import { collect, type Generation } from '../../../src/core/generation.ts';
import { chatTraits } from '../../../src/core/traits.ts';
import { GatewayError } from '../../../src/core/errors.ts';
import { openaiChatClient } from '../../../src/dialects/openai-chat/client.ts';
import { openaiChatUpstream } from '../../../src/dialects/openai-chat/upstream.ts';
import { SseSplitter } from '../../../src/wire/sse.ts';
import { answerContext, framesOf, readAll, writeStream } from './answer-context.ts';

const root = new URL('../../../../shared/recordings/', import.meta.url);

interface Expected {
  readonly text: string;
  readonly reasoning: string;
  readonly calls: readonly { readonly id: string; readonly name: string; readonly args: unknown }[];
  readonly finish: string;
}

function summary(generation: Generation): Expected {
  const { parts, finish } = generation;
  return {
    text: parts.map((part) => (part.type === 'text' ? part.text : '')).join(''),
    reasoning: parts.map((part) => (part.type === 'reasoning' ? part.text : '')).join(''),
    calls: parts.flatMap((part) =>
      part.type === 'tool-call'
        ? [{ id: part.id, name: part.name, args: tryParseObject(part.argumentsJson) }]
        : [],
    ),
    finish: finish.kind,
  };
}

const kinds: { readonly [word: string]: string } = { stop: 'stop', tool_calls: 'tool-calls' };

/** A plain fold of the deltas (or of one whole message), without the gateway's readers. */
function fold(messages: readonly JsonObject[], finish: Json | undefined): Expected {
  let text = '';
  let reasoning = '';
  const calls = new Map<unknown, { id: string; name: string; json: string }>();
  for (const message of messages) {
    const { content } = message;
    if (typeof content === 'string') text += content;
    for (const piece of Array.isArray(content) ? content : []) {
      if (piece.type === 'text') text += piece.text;
      else reasoning += piece.thinking[0].text;
    }
    reasoning += String(message['reasoning_content'] ?? message['reasoning'] ?? '');
    const deltas = message['tool_calls'];
    for (const delta of Array.isArray(deltas) ? deltas : []) {
      const index = delta.index ?? 0;
      const call = calls.get(index) ?? { id: '', name: '', json: '' };
      calls.set(index, call);
      call.id += delta.id ?? '';
      call.name += delta.function.name ?? '';
      call.json += delta.function.arguments ?? '';
    }
  }
  return {
    text,
    reasoning,
    calls: [...calls.values()].map(({ id, name, json }) => ({
      id,
      name,
      args: tryParseObject(json),
    })),
    finish: kinds[String(finish)] ?? 'unknown',
  };
}

/** prompt, completion (reasoning included), cached, reasoning. */
function usageNumbers(usage: JsonObject): readonly number[] {
  const number = (value: unknown): number => (typeof value === 'number' ? value : 0);
  const details = (key: string): JsonObject => {
    const value = usage[key];
    return isObject(value) ? value : {};
  };
  const prompt = number(usage['prompt_tokens']);
  return [
    prompt,
    number(usage['total_tokens']) - prompt,
    number(details('prompt_tokens_details')['cached_tokens']),
    number(details('completion_tokens_details')['reasoning_tokens']),
  ];
}

function writtenUsage(generation: Generation): readonly number[] {
  const usage = openaiChatClient.writeResponse(generation, answerContext())['usage'];
  assert.ok(isObject(usage));
  assert.equal(
    usage['total_tokens'],
    Number(usage['prompt_tokens']) + Number(usage['completion_tokens']),
  );
  return usageNumbers(usage);
}

function choiceOf(value: JsonObject): JsonObject | undefined {
  const choices = value['choices'];
  const first: unknown = Array.isArray(choices) ? choices[0] : undefined;
  return isObject(first) ? first : undefined;
}

if (!existsSync(root)) {
  test('recordings: omitted, ../shared/recordings is not there', { skip: true }, () => {});
} else {
  for (const folder of ['openai-chat', 'openai-compatible']) {
    for (const file of readdirSync(new URL(`${folder}/`, root))) {
      const text = readFileSync(new URL(`${folder}/${file}`, root), 'utf8');
      if (file.includes('error')) errorSuite(`${folder}/${file}`, text);
      else if (file.endsWith('.json')) documentSuite(`${folder}/${file}`, text);
      else streamSuite(`${folder}/${file}`, text.trim().split('\n'));
    }
  }
}

function errorSuite(name: string, text: string): void {
  test(`${name}: F24 as a document, and as an HTTP error`, () => {
    const body = tryParseObject(text) ?? {};
    assert.throws(
      () => openaiChatUpstream.readResponse(body, chatTraits),
      (error) => error instanceof GatewayError && error.code === 'upstream_rejected',
    );
    const error = openaiChatUpstream.readError(400, text);
    assert.equal(error.code, 'upstream_rejected');
    assert.equal(error.status, 400);
    assert.equal(error.reason, 'unsupported_parameter');
    assert.match(error.message, /max_completion_tokens/);
  });
}

function documentSuite(name: string, text: string): void {
  const body = tryParseObject(text) ?? {};
  const choice = choiceOf(body);
  const message = isObject(choice?.['message']) ? choice['message'] : {};
  const expected = fold([message], choice?.['finish_reason']);
  const generation = openaiChatUpstream.readResponse(body, chatTraits);

  test(`${name}: text, reasoning, calls, finish and usage`, () => {
    assert.deepEqual(summary(generation), expected);
    assert.ok(isObject(body['usage']));
    assert.deepEqual(writtenUsage(generation), usageNumbers(body['usage']));
  });

  test(`${name}: written and read again it is the same`, () => {
    const written = openaiChatClient.writeResponse(generation, answerContext());
    const again = openaiChatUpstream.readResponse(written, chatTraits);
    assert.deepEqual(summary(again), expected);
    assert.deepEqual(writtenUsage(again), writtenUsage(generation));
  });
}

function streamSuite(name: string, lines: readonly string[]): void {
  const chunks = lines.map((line) => tryParseObject(line) ?? {});
  const choices = chunks.map(choiceOf).filter((choice) => choice !== undefined);
  const finish = choices.map((choice) => choice['finish_reason']).find(Boolean);
  const expected = fold(choices.map((choice) => choice['delta']).filter(isObject), finish);
  const framed = lines.map((line) => `data: ${line}\n\n`);
  const whole = `${framed.join('')}data: [DONE]\n\n`;
  const events = readAll(framesOf(whole));
  const generation = collect(events);

  test(`${name}: one ending, text, reasoning, calls and usage`, () => {
    assert.ok(generation !== undefined);
    const endings = events.filter((event) => event.type === 'finish' || event.type === 'error');
    assert.equal(endings.length, 1);
    assert.deepEqual(summary(generation), expected);
    const usage = chunks.map((chunk) => chunk['usage']).findLast(isObject);
    assert.ok(usage !== undefined);
    assert.deepEqual(writtenUsage(generation), usageNumbers(usage));
  });

  test(`${name}: rendered and read again it is the same`, () => {
    assert.ok(generation !== undefined);
    const again = collect(readAll(framesOf(writeStream(events))));
    assert.ok(again !== undefined);
    assert.deepEqual(summary(again), expected);
    assert.deepEqual(writtenUsage(again), writtenUsage(generation));
  });

  test(`${name}: F47 any split of the bytes gives the same events`, () => {
    const bytes = Buffer.from(whole);
    for (const size of bytes.length < 20_000 ? [1, 7, 100] : [13, 1000]) {
      const splitter = new SseSplitter();
      const frames = [];
      for (let i = 0; i < bytes.length; i += size) {
        frames.push(...splitter.push(bytes.subarray(i, i + size)));
      }
      assert.deepEqual(readAll(frames), events);
    }
  });

  test(`${name}: E4 F40 cut before the finish it is an error, never an end`, () => {
    const last = lines.findIndex((line) => /"finish_reason":"/.test(line));
    const step = Math.max(1, Math.floor(last / 20));
    for (let cut = 0; cut <= last; cut += step) {
      const cutEvents = readAll(framesOf(framed.slice(0, cut).join('')));
      assert.equal(cutEvents.at(-1)?.type, 'error');
      assert.equal(collect(cutEvents), undefined);
    }
  });

  test(`${name}: F52 without [DONE] it is complete`, () => {
    assert.deepEqual(collect(readAll(framesOf(framed.join('')))), generation);
  });
}
