/** A messages stream as a state machine (wire/messages.md §4.2, §6, §7, §11.3). */
import assert from 'node:assert/strict';
import { tryParseObject } from '../../src/json/parse.ts';
import { isObject, type JsonObject } from '../../src/json/value.ts';
import {
  assertCount,
  assertHas,
  assertKeys,
  objectOf,
  type Origin,
  type WireFrame,
} from './legal-frames.ts';
import { objectAt, textAt } from './reading.ts';

const counts = [
  'input_tokens',
  'cache_creation_input_tokens',
  'cache_read_input_tokens',
  'output_tokens',
];
/** The members of a recorded native stream (F1), and what the types know besides. */
const startUsage = [...counts, 'cache_creation', 'service_tier', 'inference_geo'];
const moreUsage = ['output_tokens_details', 'server_tool_use'];
const startKeys = [
  'id',
  'type',
  'role',
  'model',
  'content',
  'stop_reason',
  'stop_sequence',
  'stop_details',
  'container',
  'usage',
];
const stopKeys = ['stop_reason', 'stop_sequence', 'stop_details', 'container'];
const stopReasons = [
  'end_turn',
  'max_tokens',
  'stop_sequence',
  'tool_use',
  'pause_turn',
  'refusal',
  'model_context_window_exceeded',
  'compaction',
];
const errorTypes = [
  'invalid_request_error',
  'authentication_error',
  'billing_error',
  'permission_error',
  'not_found_error',
  'rate_limit_error',
  'timeout_error',
  'overloaded_error',
  'api_error',
  'request_too_large',
];

/** What a block starts with (§7.3), the members that may stand besides, and the deltas it takes. */
interface BlockRule {
  readonly start: JsonObject;
  readonly keys: readonly string[];
  readonly deltas: readonly string[];
}

const input: readonly string[] = ['input_json_delta'];
const blockRules: { readonly [type: string]: BlockRule } = {
  text: { start: { text: '' }, keys: ['citations'], deltas: ['text_delta', 'citations_delta'] },
  thinking: {
    start: { thinking: '', signature: '' },
    keys: [],
    deltas: ['thinking_delta', 'signature_delta'],
  },
  redacted_thinking: { start: {}, keys: ['data'], deltas: [] },
  tool_use: { start: { input: {} }, keys: ['id', 'name', 'caller'], deltas: input },
  server_tool_use: { start: { input: {} }, keys: ['id', 'name', 'caller'], deltas: input },
  mcp_tool_use: { start: { input: {} }, keys: ['id', 'name', 'server_name'], deltas: input },
  compaction: {
    start: { content: null },
    keys: ['encrypted_content'],
    deltas: ['compaction_delta'],
  },
};

interface OpenBlock {
  readonly type: string;
  readonly deltas: readonly string[] | undefined;
  signed: boolean;
  text: string;
  seen: number;
}

export class LegalMessages {
  readonly #origin: Origin;
  #state: 'before' | 'content' | 'delta' | 'over' = 'before';
  #next = 0;
  #open: OpenBlock | undefined;
  #stop: string | undefined;
  readonly #toolIds = new Set<string>();
  #toolUses = 0;
  /** A call's arguments that are no object: legal only where the answer was cut off. */
  #brokenInput: string | undefined;

  constructor(origin: Origin) {
    this.#origin = origin;
  }

  see({ event, data }: WireFrame): void {
    const value = objectOf(data);
    assert.notEqual(event, undefined, 'every event has its name');
    assert.equal(value['type'], event, 'the data repeats the name');
    assert.notEqual(this.#state, 'over', 'nothing follows message_stop');
    switch (event) {
      case 'ping':
        if (this.#origin === 'own') assert.notEqual(this.#state, 'before', 'ping before the start');
        return;
      case 'message_start':
        return this.#start(objectAt(value, 'message'));
      case 'content_block_start':
        return this.#blockStart(value);
      case 'content_block_delta':
        return this.#blockDelta(value);
      case 'content_block_stop':
        return this.#blockStop(value);
      case 'message_delta':
        return this.#messageDelta(value);
      case 'message_stop':
        assert.equal(this.#state, 'delta', 'message_delta stands before message_stop');
        assert.notEqual(this.#stop, undefined, 'a stop reason was told');
        this.#state = 'over';
        return;
      default:
        assert.ok(this.#origin === 'relayed' && event !== 'error', `unexpected event ${event}`);
    }
  }

  /** The stream is complete. */
  end(): void {
    assert.equal(this.#state, 'over', 'message_stop is last');
    if (this.#stop === 'tool_use') assert.ok(this.#toolUses > 0, 'B11: tool_use without a call');
    if (this.#stop === 'end_turn') assert.equal(this.#toolUses, 0, 'B11: calls end in tool_use');
    const cut = this.#stop !== 'tool_use' && this.#stop !== 'end_turn';
    assert.ok(cut || this.#brokenInput === undefined, `no object: ${this.#brokenInput}`);
  }

  /** The stream failed: this is its last frame (translation.md §9.3). */
  fail({ event, data }: WireFrame): void {
    assert.notEqual(this.#state, 'over', 'no message_stop in a failed stream');
    if (this.#origin === 'own')
      assert.equal(this.#stop, undefined, 'no stop reason before an error');
    assert.equal(event, 'error');
    const body = objectOf(data);
    assert.deepEqual(Object.keys(body).sort(), ['error', 'request_id', 'type']);
    assert.equal(body['type'], 'error');
    assert.ok(textAt(body, 'request_id') !== '', 'request_id is there');
    const error = objectAt(body, 'error');
    assert.deepEqual(Object.keys(error).sort(), ['message', 'type']);
    assert.ok(errorTypes.includes(textAt(error, 'type')), `no type: ${textAt(error, 'type')}`);
    assert.ok(textAt(error, 'message') !== '', 'an error says what happened');
  }

  #start(message: JsonObject): void {
    assert.equal(this.#state, 'before', 'one message_start');
    this.#state = 'content';
    const { type, role, content, stop_reason: stop, stop_sequence: sequence } = message;
    assert.deepEqual([type, role, content, stop], ['message', 'assistant', [], null]);
    assert.equal(sequence, null);
    assert.ok(textAt(message, 'id') !== '' && textAt(message, 'model') !== '');
    const { usage } = message;
    assert.ok(isObject(usage), 'message_start has usage');
    assertHas(usage, ['input_tokens', 'output_tokens'], 'usage of message_start');
    if (this.#origin === 'relayed') return;
    assertHas(message, startKeys, 'message_start');
    assertKeys(message, startKeys, 'message_start');
    assert.match(textAt(message, 'id'), /^msg_/);
    assertHas(usage, startUsage, 'usage of message_start');
    assertKeys(usage, [...startUsage, ...moreUsage], 'usage of message_start');
    const total = ['input_tokens', 'cache_read_input_tokens', 'cache_creation_input_tokens']
      .map((key) => assertCount(usage[key] ?? 0, key))
      .reduce((sum, count) => sum + count, 0);
    assert.ok(total > 0, 'F1: the input of message_start is never zero');
  }

  #blockStart(value: JsonObject): void {
    assert.equal(this.#state, 'content', 'blocks stand between start and message_delta');
    assert.equal(this.#open, undefined, 'C3: one block open at a time');
    assert.equal(value['index'], this.#next, 'C3: indexes are dense');
    const block = objectAt(value, 'content_block');
    const type = textAt(block, 'type');
    assert.notEqual(type, '', 'a block has a type');
    const rule = blockRules[type];
    if (rule !== undefined) {
      for (const [key, start] of Object.entries(rule.start)) {
        // Older recordings start thinking without a signature; the clients bear that.
        if (this.#origin === 'relayed' && key === 'signature') continue;
        assert.equal(typeof block[key], typeof start, `${type} starts with its ${key}`);
        if (this.#origin === 'relayed') continue;
        assert.deepEqual(block[key], start, `${type} starts with its ${key} empty`);
      }
      const keys = ['type', ...Object.keys(rule.start), ...rule.keys];
      if (this.#origin === 'own') assertKeys(block, keys, type);
    }
    if (type === 'redacted_thinking') assert.ok(textAt(block, 'data') !== '', 'redacted data');
    if (type === 'tool_use') this.#toolUse(block);
    this.#open = { type, deltas: rule?.deltas, signed: false, text: '', seen: 0 };
  }

  #toolUse(block: JsonObject): void {
    const id = textAt(block, 'id');
    assert.match(id, /^[a-zA-Z0-9_-]+$/, 'B6: an id that can be sent back');
    assert.ok(!this.#toolIds.has(id), 'B6: ids are unique');
    assert.ok(textAt(block, 'name') !== '', 'a call has a name');
    this.#toolIds.add(id);
    this.#toolUses += 1;
  }

  #blockDelta(value: JsonObject): void {
    const open = this.#open;
    assert.ok(open !== undefined, 'B1: a delta has an open block');
    assert.equal(value['index'], this.#next, 'B1: a delta has the index of the open block');
    const delta = objectAt(value, 'delta');
    const type = textAt(delta, 'type');
    if (open.deltas === undefined) {
      assert.equal(this.#origin, 'relayed', `${open.type} takes no delta`);
    } else assert.ok(open.deltas.includes(type), `C2: ${type} in ${open.type}`);
    assert.ok(!open.signed, 'nothing follows the signature');
    open.seen += 1;
    const key = {
      text_delta: 'text',
      thinking_delta: 'thinking',
      input_json_delta: 'partial_json',
    };
    const piece = Reflect.get(key, type);
    if (typeof piece === 'string') {
      assert.ok(typeof delta[piece] === 'string', `${type} holds ${piece}`);
      if (this.#origin === 'own') assert.notEqual(delta[piece], '', `no empty ${type}`);
      open.text += textAt(delta, piece);
    }
    if (type === 'signature_delta') {
      assert.ok(textAt(delta, 'signature') !== '', 'D1: a signature is not empty');
      open.signed = true;
    }
  }

  #blockStop(value: JsonObject): void {
    const open = this.#open;
    assert.ok(open !== undefined, 'a block is open');
    assert.equal(value['index'], this.#next, 'the open block is stopped');
    if (open.deltas === input && open.text !== '' && tryParseObject(open.text) === undefined) {
      this.#brokenInput ??= open.text;
    }
    if (this.#origin === 'own' && (open.type === 'text' || open.type === 'thinking')) {
      assert.ok(open.seen > 0, `B3: an empty ${open.type} block`);
    }
    this.#open = undefined;
    this.#next += 1;
  }

  #messageDelta(value: JsonObject): void {
    assert.equal(this.#open, undefined, 'all blocks are closed');
    const { delta, usage } = value;
    assert.ok(isObject(delta) && isObject(usage), 'message_delta has delta and usage');
    if (this.#origin === 'relayed') {
      assert.ok(this.#state === 'content' || this.#state === 'delta');
      this.#stop = textAt(delta, 'stop_reason') || this.#stop;
    } else {
      assert.equal(this.#state, 'content', 'one message_delta');
      this.#ownStop(delta);
      assertHas(usage, counts, 'usage of message_delta');
      assertKeys(usage, [...counts, ...moreUsage], 'usage of message_delta');
      assertCount(usage['input_tokens'], 'input_tokens');
      assertCount(usage['output_tokens'], 'output_tokens');
      for (const key of counts) if (usage[key] !== null) assertCount(usage[key], key);
    }
    this.#state = 'delta';
  }

  #ownStop(delta: JsonObject): void {
    assertHas(delta, stopKeys, 'message_delta');
    assertKeys(delta, stopKeys, 'message_delta');
    const reason = textAt(delta, 'stop_reason');
    assert.ok(stopReasons.includes(reason), `no stop reason of this dialect: ${reason}`);
    const { stop_sequence: sequence, stop_details: details } = delta;
    assert.equal(typeof sequence === 'string', reason === 'stop_sequence', 'the matched sequence');
    assert.equal(isObject(details), reason === 'refusal', 'details of a refusal');
    this.#stop = reason;
  }
}
