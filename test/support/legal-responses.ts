/** A Responses stream as a state machine (wire/responses.md §5, §6.3, §6.6). */
import assert from 'node:assert/strict';
import { isObject, type JsonObject } from '../../src/json/value.ts';
import { assertCount, assertHas, objectOf, type Origin, type WireFrame } from './legal-frames.ts';
import { listAt, numberAt, objectAt, textAt } from './reading.ts';

const lifecycle = ['response.created', 'response.in_progress'];
const endings = ['response.completed', 'response.incomplete'];
const responseKeys = [
  'id',
  'object',
  'created_at',
  'status',
  'error',
  'incomplete_details',
  'instructions',
  'model',
  'output',
  'parallel_tool_calls',
  'metadata',
  'tool_choice',
  'tools',
  'temperature',
  'top_p',
  'usage',
];
/** What each kind of item needs so that clients can read it and send it back. */
const itemKeys: { readonly [type: string]: readonly string[] } = {
  message: ['id', 'role', 'status', 'content'],
  reasoning: ['id', 'summary'],
  function_call: ['id', 'call_id', 'name', 'arguments'],
  custom_tool_call: ['id', 'call_id', 'name', 'input'],
};
/** The event that ends a text that came in pieces, and the member that repeats it. */
const wholes: { readonly [delta: string]: readonly [done: string, member: string] } = {
  'response.output_text.delta': ['response.output_text.done', 'text'],
  'response.refusal.delta': ['response.refusal.done', 'refusal'],
  'response.reasoning_summary_text.delta': ['response.reasoning_summary_text.done', 'text'],
  'response.function_call_arguments.delta': ['response.function_call_arguments.done', 'arguments'],
  'response.custom_tool_call_input.delta': ['response.custom_tool_call_input.done', 'input'],
};
const parts = {
  'response.content_part.added': 'content_index',
  'response.reasoning_summary_part.added': 'summary_index',
} as const;

interface OpenItem {
  readonly id: string;
  readonly type: string;
  parts: number;
  /** By the event that ends each text. */
  readonly texts: Map<string, string>;
}

export class LegalResponses {
  readonly #origin: Origin;
  #state: 'before' | 'running' | 'failing' | 'over' = 'before';
  #id = '';
  #next = 0;
  #outputs = 0;
  readonly #open = new Map<number, OpenItem>();
  readonly #done = new Map<number, JsonObject>();
  readonly #ids = new Set<string>();

  constructor(origin: Origin) {
    this.#origin = origin;
  }

  see(frame: WireFrame): void {
    const event = this.#eventOf(frame);
    const type = textAt(event, 'type');
    assert.notEqual(this.#state, 'over', `something follows the last event: ${frame.data}`);
    assert.notEqual(this.#state, 'failing', `not response.failed behind an error: ${frame.data}`);
    if (type === 'error') {
      assert.equal(this.#state, 'running', 'response.created stands before an error');
      assertTold(objectAt(event, 'error'));
      this.#state = 'failing';
    } else if (lifecycle.includes(type)) this.#begin(type, objectAt(event, 'response'));
    else if (endings.includes(type)) this.#end(type, objectAt(event, 'response'));
    else {
      assert.ok(type !== 'response.failed', 'a failure is told in two events');
      assert.equal(this.#state, 'running', 'response.created is first');
      this.#item(type, event);
    }
  }

  /** The stream is complete. */
  end(): void {
    assert.equal(this.#state, 'over', 'the stream ends in response.completed or .incomplete');
  }

  /** The stream failed: this is its last frame. */
  fail(frame: WireFrame): void {
    assert.equal(this.#state, 'failing', 'clients that know no response.failed need the error');
    const event = this.#eventOf(frame);
    assert.equal(event['type'], 'response.failed');
    const response = this.#response(event, 'failed');
    assertTold(objectAt(response, 'error'), ['code', 'message']);
    assert.equal(response['id'], this.#id, 'the id is constant');
    if (this.#origin === 'own') this.#outputOf(response);
  }

  #eventOf({ event, data }: WireFrame): JsonObject {
    const value = objectOf(data);
    assert.equal(value['type'], event, 'the data repeats the name');
    if (this.#origin === 'own') {
      assert.equal(value['sequence_number'], this.#next++, 'numbers have no gap');
    }
    return value;
  }

  #response(event: JsonObject, status: string): JsonObject {
    const { response } = event;
    assert.ok(isObject(response), 'the event has a response');
    assert.equal(response['object'], 'response');
    assert.equal(response['status'], status, 'the status is that of the event');
    assert.ok(textAt(response, 'id') !== '' && textAt(response, 'model') !== '');
    assert.ok(Array.isArray(response['output']), 'output is a list');
    if (this.#origin === 'own') {
      assertHas(response, responseKeys, 'a response');
      assert.match(textAt(response, 'id'), /^resp_/);
      assertCount(response['created_at'], 'created_at');
    }
    return response;
  }

  #begin(type: string, value: JsonObject): void {
    const first = type === 'response.created';
    assert.equal(this.#state, first ? 'before' : 'running', 'one response.created, and first');
    this.#state = 'running';
    const response = this.#response({ response: value }, 'in_progress');
    if (first) this.#id = textAt(response, 'id');
    assert.equal(response['id'], this.#id, 'the id is constant');
    assert.equal(response['usage'] ?? null, null, 'no usage before the end');
    if (this.#origin === 'own') this.#outputOf(response);
  }

  #end(type: string, value: JsonObject): void {
    assert.equal(this.#state, 'running', 'response.created is first');
    this.#state = 'over';
    const status = type.replace('response.', '');
    const response = this.#response({ response: value }, status);
    assert.equal(response['id'], this.#id, 'the id is constant');
    assert.equal(response['error'] ?? null, null, 'no error in a success');
    const { usage } = response;
    assert.ok(isObject(usage), 'the last event has the usage');
    assertResponsesUsage(usage);
    if (this.#origin === 'relayed') return;
    const reason = textAt(objectAt(response, 'incomplete_details'), 'reason');
    const cut = status === 'incomplete';
    assert.equal(reason !== '', cut, 'an incomplete response says why');
    this.#outputOf(response);
    for (const { type: kind } of this.#open.values()) {
      assert.ok(cut && kind.endsWith('_call'), `${kind} is never done`);
    }
  }

  /** The response repeats the items that are done, in order; of an incomplete one, also what was cut. */
  #outputOf(response: JsonObject): void {
    const done = [...this.#done].toSorted(([a], [b]) => a - b).map(([, item]) => item);
    const cut = new Set([...this.#open.values()].map(({ id }) => id));
    const whole = listAt(response, 'output').filter((item) => !cut.has(textAt(item, 'id')));
    assert.deepEqual(whole, done, 'the response repeats the items');
  }

  #item(type: string, event: JsonObject): void {
    const index = assertCount(event['output_index'] ?? 0, 'output_index');
    if (type === 'response.output_item.added') return this.#added(index, objectAt(event, 'item'));
    const open = this.#open.get(index);
    if (this.#origin === 'relayed') {
      if (type === 'response.output_item.done') this.#open.delete(index);
      return;
    }
    assert.ok(open !== undefined, `${type} has no open item`);
    if (type === 'response.output_item.done') return this.#itemDone(index, open, event);
    assert.equal(event['item_id'], open.id, 'an event names its item');
    this.#within(type, event, open);
  }

  #added(index: number, item: JsonObject): void {
    const type = textAt(item, 'type');
    if (this.#origin === 'own') {
      assert.equal(index, this.#outputs++, 'indexes are dense');
      const id = textAt(item, 'id');
      assert.match(id, /^[A-Za-z0-9_-]{1,64}$/, 'an id that can be sent back');
      assert.ok(!this.#ids.has(id), 'ids are unique');
      this.#ids.add(id);
      assertHas(item, itemKeys[type] ?? ['id'], type);
    }
    this.#open.set(index, { id: textAt(item, 'id'), type, parts: 0, texts: new Map() });
  }

  #within(type: string, event: JsonObject, open: OpenItem): void {
    if (
      type === 'response.content_part.added' ||
      type === 'response.reasoning_summary_part.added'
    ) {
      assert.equal(event[parts[type]], open.parts++, 'parts are counted from 0');
      return;
    }
    const whole = wholes[type];
    if (whole !== undefined) {
      const [done] = whole;
      if (!open.type.endsWith('_call')) assert.ok(open.parts > 0, 'a delta belongs to a part');
      assert.equal(typeof event['delta'], 'string');
      open.texts.set(done, (open.texts.get(done) ?? '') + textAt(event, 'delta'));
      return;
    }
    const ended = Object.values(wholes).find(([done]) => done === type);
    if (ended !== undefined) {
      const said = open.texts.get(type) ?? '';
      assert.equal(event[ended[1]], said, 'the end of a text repeats it');
      return;
    }
    const known = [
      'content_part.done',
      'reasoning_summary_part.done',
      'output_text.annotation.added',
      'web_search_call.in_progress',
      'web_search_call.searching',
      'web_search_call.completed',
    ];
    assert.ok(known.includes(type.replace('response.', '')), `clients throw on ${type}`);
  }

  #itemDone(index: number, open: OpenItem, event: JsonObject): void {
    const item = objectAt(event, 'item');
    assert.equal(item['id'], open.id, 'the item keeps its id');
    assert.equal(item['type'], open.type, 'the item keeps its kind');
    assertHas(item, itemKeys[open.type] ?? ['id'], open.type);
    if (open.type.endsWith('_call') && itemKeys[open.type] !== undefined) {
      assert.ok(textAt(item, 'call_id') !== '' && textAt(item, 'name') !== '', 'a call is named');
    }
    if (open.type === 'function_call') {
      const args = textAt(item, 'arguments');
      assert.equal(args, open.texts.get('response.function_call_arguments.done'), 'arguments');
      assert.notEqual(args, '', 'a call has arguments');
    }
    if (open.type === 'message') {
      const content = listAt(item, 'content');
      assert.equal(content.length, 1, 'a message has one part');
      const [part = {}] = content;
      const said = [...open.texts.values()].join('');
      assert.equal(
        textAt(part, 'text') + textAt(part, 'refusal'),
        said,
        'the item repeats its text',
      );
    }
    this.#open.delete(index);
    this.#done.set(index, item);
  }
}

/** All that clients read of an error are texts that say something. */
function assertTold(error: JsonObject, keys = ['type', 'code', 'message']): void {
  for (const key of keys) assert.ok(textAt(error, key) !== '', `an error says its ${key}`);
}

/** wire/responses.md §5.4. */
export function assertResponsesUsage(usage: JsonObject): void {
  const input = assertCount(usage['input_tokens'], 'input_tokens');
  const output = assertCount(usage['output_tokens'], 'output_tokens');
  const total = assertCount(usage['total_tokens'], 'total_tokens');
  assert.equal(total, input + output, 'total = input + output');
  const details = objectAt(usage, 'input_tokens_details');
  const cached = numberAt(details, 'cached_tokens') + numberAt(details, 'cache_write_tokens');
  assert.ok(cached <= input, 'the cache is a part of the input');
  const reasoning = numberAt(objectAt(usage, 'output_tokens_details'), 'reasoning_tokens');
  assert.ok(reasoning <= output, 'reasoning is a part of the output');
}
