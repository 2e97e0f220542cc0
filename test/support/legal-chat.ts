/** A chat-completions stream as a state machine (wire/chat-completions.md §5, §6, §8.3). */
import assert from 'node:assert/strict';
import { isObject, type Json, type JsonObject } from '../../src/json/value.ts';
import {
  assertCount,
  assertHas,
  assertKeys,
  objectOf,
  type Origin,
  type WireFrame,
} from './legal-frames.ts';
import { listAt, objectAt, textAt } from './reading.ts';

const finishReasons = ['stop', 'length', 'tool_calls', 'content_filter', 'function_call'];
const chunkKeys = ['id', 'object', 'created', 'model', 'choices', 'usage', 'service_tier'];
const choiceKeys = ['index', 'delta', 'logprobs', 'finish_reason', 'stop_reason'];
const deltaKeys = [
  'role',
  'content',
  'refusal',
  'tool_calls',
  'function_call',
  'annotations',
  'reasoning_content',
  'reasoning_details',
];
const callKeys = ['index', 'id', 'type', 'function', 'custom', 'extra_content'];
/** Fields of extension entries that Python would concatenate: once per index. */
const constants = ['id', 'format'];

interface Call {
  readonly kind: string;
  text: string;
}

export class LegalChat {
  readonly #origin: Origin;
  readonly #usageChunk: boolean;
  /** What must be the same on all chunks. */
  #identity: JsonObject | undefined;
  #roleSeen = false;
  #finish: string | undefined;
  #usage: JsonObject | undefined;
  #over = false;
  #legacyCall = false;
  readonly #calls: Call[] = [];
  readonly #constants = new Set<string>();

  constructor(origin: Origin, usageChunk: boolean) {
    this.#origin = origin;
    this.#usageChunk = usageChunk;
  }

  see({ event, data }: WireFrame): void {
    assert.ok(!this.#over, '[DONE] is last');
    assert.equal(event, undefined, 'chat events have no name');
    if (data === '[DONE]') {
      assert.notEqual(this.#finish, undefined, 'E4: [DONE] without a finish');
      this.#over = true;
      return;
    }
    const chunk = objectOf(data);
    assert.ok(!isObject(chunk['error']), `an error within: ${data}`);
    this.#chunk(chunk);
  }

  /** The stream is complete. */
  end(): void {
    assert.ok(this.#over, 'B15: [DONE] is last');
    assert.equal(this.#usage !== undefined, this.#usageChunk, 'E6: usage exactly when asked for');
    const wordOfCalls = this.#legacyCall ? 'function_call' : 'tool_calls';
    const called = this.#calls.length > 0 || this.#legacyCall;
    if (this.#finish === 'stop') assert.ok(!called, `B11: calls end in ${wordOfCalls}`);
    if (this.#finish === 'tool_calls' || this.#finish === 'function_call') {
      assert.ok(called, 'B11: the finish tells of calls that are not there');
      assert.equal(this.#finish, wordOfCalls);
      for (const { kind, text } of this.#calls) {
        assert.ok(kind === 'custom' || text !== '', 'a call without arguments');
      }
    }
  }

  /** The stream failed: this is its last frame (translation.md §9.3). */
  fail({ event, data }: WireFrame): void {
    assert.ok(!this.#over, 'no [DONE] in a failed stream');
    assert.equal(event, undefined, 'chat events have no name');
    if (this.#origin === 'own')
      assert.equal(this.#finish, undefined, 'E4: no finish before an error');
    const body = objectOf(data);
    assert.deepEqual(Object.keys(body), ['error']);
    const error = objectAt(body, 'error');
    assert.deepEqual(Object.keys(error).sort(), ['code', 'message', 'param', 'type']);
    assert.ok(textAt(error, 'message') !== '' && textAt(error, 'type') !== '');
    assert.ok(error['code'] === null || typeof error['code'] === 'string');
  }

  #chunk(chunk: JsonObject): void {
    const { choices } = chunk;
    assert.ok(Array.isArray(choices) && choices.every(isObject), 'choices is a list of objects');
    // Metadata of Azure's filters: the clients see no choice and no report in it.
    const isBare = choices.length === 0 && !isObject(chunk['usage']);
    if (this.#origin === 'own' || !isBare) this.#identityOf(chunk);
    this.#usageOf(chunk, choices);
    for (const choice of listAt(chunk, 'choices')) this.#choice(choice);
    if (this.#origin === 'own') assert.ok(choices.length <= 1, 'one choice');
  }

  #identityOf(chunk: JsonObject): void {
    assertHas(chunk, ['id', 'object', 'created', 'model'], 'a chunk');
    assert.equal(chunk['object'], 'chat.completion.chunk');
    assert.ok(textAt(chunk, 'id') !== '', 'the id is no text');
    assert.ok(textAt(chunk, 'model') !== '', 'the model is no text');
    assertCount(chunk['created'], 'created');
    const { id, model } = chunk;
    if (this.#origin === 'own') assertKeys(chunk, chunkKeys, 'a chunk');
    // Groq and xAI count the seconds on; no client minds.
    const created = this.#origin === 'own' ? chunk['created'] : 0;
    this.#identity ??= { id, created, model };
    assert.deepEqual({ id, created, model }, this.#identity, 'id, created, model are constant');
  }

  #usageOf({ usage }: JsonObject, choices: readonly Json[]): void {
    const isReport = isObject(usage);
    if (this.#origin === 'own') {
      assert.equal(this.#usage, undefined, 'E6: nothing follows the usage chunk');
      if (this.#usageChunk) assert.ok(isReport || usage === null, 'usage is null before its chunk');
      else assert.equal(usage, undefined, 'E6: usage that nobody asked for');
      assert.equal(choices.length === 0, isReport, 'E6: usage stands in a chunk without choices');
      if (isReport) assert.notEqual(this.#finish, undefined, 'usage comes behind the finish');
    }
    if (!isReport) return;
    assert.ok(this.#usageChunk, 'E6: usage that nobody asked for');
    this.#usage = usage;
    if (this.#origin === 'own') assertChatUsage(usage);
  }

  #choice(choice: JsonObject): void {
    assertHas(choice, ['index', 'delta'], 'a choice');
    if (this.#origin === 'own') {
      assertKeys(choice, choiceKeys, 'a choice');
      assertHas(choice, ['finish_reason'], 'a choice');
    }
    assert.equal(choice['index'], 0, 'the only choice has the index 0');
    const { delta } = choice;
    assert.ok(isObject(delta), 'the delta is an object');
    if (this.#origin === 'own') assert.equal(this.#finish, undefined, 'nothing after the finish');
    this.#delta(delta);
    const reason = choice['finish_reason'] ?? null;
    if (reason === null) return;
    assert.equal(this.#finish, undefined, 'one finish');
    assert.ok(typeof reason === 'string' && reason !== '', 'the finish is a word');
    if (this.#origin === 'own') {
      assert.ok(finishReasons.includes(reason), `no finish of this dialect: ${reason}`);
      assert.deepEqual(delta, {}, 'the finish has an empty delta');
    }
    this.#finish = reason;
  }

  #delta(delta: JsonObject): void {
    if (this.#origin === 'own') assertKeys(delta, deltaKeys, 'a delta');
    if (delta['role'] !== undefined && (this.#origin === 'own' || !this.#roleSeen)) {
      assert.ok(!this.#roleSeen, 'the role comes once');
      assert.equal(delta['role'], 'assistant');
      this.#roleSeen = true;
    } else assert.ok(this.#roleSeen, 'B15: the role comes first');
    const isRole = delta['role'] !== undefined;
    if (this.#origin === 'own') {
      for (const key of ['content', 'refusal', 'reasoning_content']) {
        const value = delta[key];
        if (value === undefined || (isRole && (value === null || value === ''))) continue;
        assert.ok(typeof value === 'string' && value !== '', `${key} is a piece of text`);
      }
    }
    for (const key of ['annotations', 'reasoning_details']) this.#entries(key, delta[key]);
    const legacy = delta['function_call'];
    if (isObject(legacy)) {
      assert.equal('name' in legacy, !this.#legacyCall, 'the name comes once');
      this.#legacyCall = true;
    }
    const calls = delta['tool_calls'];
    if (calls === undefined || calls === null) return;
    assert.ok(Array.isArray(calls) && calls.every(isObject), 'tool_calls is a list of objects');
    if (this.#origin === 'own') assert.ok(calls.length > 0, 'no empty list of calls');
    for (const call of listAt(delta, 'tool_calls')) this.#call(call);
  }

  #entries(key: string, value: Json | undefined): void {
    if (value === undefined || value === null || this.#origin === 'relayed') return;
    assert.ok(Array.isArray(value) && value.length > 0, `${key} is a list`);
    for (const entry of value) {
      assert.ok(isObject(entry) && Number.isSafeInteger(entry['index']), `${key} lacks an index`);
      for (const name of constants) {
        if (entry[name] === undefined) continue;
        const once = `${key} ${String(entry['index'])} ${name}`;
        assert.ok(!this.#constants.has(once), `${once} comes once`);
        this.#constants.add(once);
      }
    }
  }

  #call(call: JsonObject): void {
    if (this.#origin === 'own') assertKeys(call, callKeys, 'a tool call');
    const index = assertCount(call['index'], 'the index of a call');
    const known = this.#calls[index];
    const body = objectAt(call, call['custom'] === undefined ? 'function' : 'custom');
    const text = body[call['custom'] === undefined ? 'arguments' : 'input'];
    assert.ok(text === undefined || typeof text === 'string', 'arguments are text');
    if (known === undefined) {
      assert.equal(index, this.#calls.length, 'indexes are dense');
      assert.ok(textAt(call, 'id') !== '', 'B15: the first fragment has the id');
      assert.ok(textAt(body, 'name') !== '', 'B15: the first fragment has the name');
      const kind = textAt(call, 'type');
      if (this.#origin === 'own') assert.ok(kind === 'function' || kind === 'custom', 'B15: type');
      this.#calls.push({ kind, text: text ?? '' });
      return;
    }
    if (this.#origin === 'own') {
      assert.equal(call['id'], undefined, 'B6: the id comes once');
      assert.equal(call['type'], undefined, 'the type comes once');
      assert.equal(body['name'], undefined, 'the name comes once');
      assert.ok(typeof text === 'string' && text !== '', 'a fragment holds arguments');
    }
    known.text += text ?? '';
  }
}

/** wire/chat-completions.md §6. */
export function assertChatUsage(usage: JsonObject): void {
  const count = (value: JsonObject, key: string): number => assertCount(value[key] ?? 0, key);
  const prompt = assertCount(usage['prompt_tokens'], 'prompt_tokens');
  const completion = assertCount(usage['completion_tokens'], 'completion_tokens');
  const total = assertCount(usage['total_tokens'], 'total_tokens');
  assert.equal(total, prompt + completion, 'total = prompt + completion');
  const details = objectAt(usage, 'prompt_tokens_details');
  const cached = count(details, 'cached_tokens') + count(details, 'cache_write_tokens');
  assert.ok(cached <= prompt, 'the cache is a part of the prompt');
  const reasoning = count(objectAt(usage, 'completion_tokens_details'), 'reasoning_tokens');
  assert.ok(reasoning <= completion, 'reasoning is a part of the completion');
}
