/**
 * What a messages stream must look like, as a state machine that is written against wire/messages.md
 * §7 and §11.3, not against the writer: dense indexes, one block open, deltas that fit their block, one
 * signature last, `message_delta` with complete usage, `message_stop`, and nothing behind it.
 */
import assert from 'node:assert/strict';
import type { JsonObject } from '../../../src/core/conversation.ts';
import { isObject, tryParseObject } from '../../../src/core/json.ts';

export interface SeenEvent {
  readonly name: string;
  readonly data: JsonObject;
}

/** The events of a stream's text; each must have its `event:` and `data:` line. */
export function eventsOf(text: string): readonly SeenEvent[] {
  assert.ok(text === '' || text.endsWith('\n\n'), 'every event ends in a blank line');
  return text
    .split('\n\n')
    .slice(0, -1)
    .map((block) => {
      const lines = block.split('\n');
      assert.equal(lines.length, 2, `an event line and a data line: ${block}`);
      const name = /^event: (\w+)$/.exec(lines[0] ?? '')?.[1];
      const data = tryParseObject((lines[1] ?? '').replace(/^data: /, ''));
      assert.ok(name !== undefined && data !== undefined, block);
      assert.equal(data['type'], name, 'the data repeats the name');
      return { name, data };
    });
}

const usageKeys = [
  'input_tokens',
  'cache_creation_input_tokens',
  'cache_read_input_tokens',
  'output_tokens',
];

const deltasOf: { readonly [block: string]: readonly string[] } = {
  text: ['text_delta', 'citations_delta'],
  thinking: ['thinking_delta', 'signature_delta'],
  redacted_thinking: [],
  tool_use: ['input_json_delta'],
  server_tool_use: ['input_json_delta'],
  compaction: ['compaction_delta'],
};

/** Throws when the stream is not a complete, legal one. */
export function assertLegal(text: string): void {
  const checker = new Checker();
  for (const event of eventsOf(text)) checker.see(event);
  checker.end();
}

class Checker {
  #state: 'before' | 'content' | 'delta' | 'over' = 'before';
  #index = 0;
  #block: string | undefined;
  #signed = false;
  #input = '';

  see({ name, data }: SeenEvent): void {
    assert.notEqual(this.#state, 'over', 'nothing follows message_stop');
    switch (name) {
      case 'message_start':
        return this.#start(objectIn(data, 'message'));
      case 'ping':
        assert.notEqual(this.#state, 'before', 'no ping before message_start');
        return;
      case 'content_block_start':
        return this.#blockStart(data);
      case 'content_block_delta':
        return this.#blockDelta(data);
      case 'content_block_stop':
        return this.#blockStop(data);
      case 'message_delta':
        return this.#messageDelta(data);
      case 'message_stop':
        assert.equal(this.#state, 'delta', 'message_delta stands before message_stop');
        this.#state = 'over';
        return;
      default:
        assert.fail(`unknown event ${name}`);
    }
  }

  end(): void {
    assert.equal(this.#state, 'over', 'message_stop is last');
  }

  #start(message: JsonObject): void {
    assert.equal(this.#state, 'before');
    this.#state = 'content';
    const { type, role, content, stop_reason: stop } = message;
    assert.deepEqual([type, role, content, stop], ['message', 'assistant', [], null]);
    assert.ok(typeof message['id'] === 'string' && message['id'].startsWith('msg_'));
    assert.equal(typeof message['model'], 'string');
    const usage = objectIn(message, 'usage');
    for (const key of usageKeys) assert.ok(key in usage, `message_start has ${key}`);
    assert.ok(Number(usage['input_tokens']) >= 0);
  }

  #blockStart(data: JsonObject): void {
    assert.equal(this.#state, 'content');
    assert.equal(this.#block, undefined, 'one block is open at a time');
    assert.equal(data['index'], this.#index, 'indexes are dense');
    const block = objectIn(data, 'content_block');
    this.#block = String(block['type']);
    this.#signed = false;
    this.#input = '';
    if (this.#block === 'text') assert.equal(block['text'], '');
    if (this.#block === 'thinking') {
      assert.deepEqual([block['thinking'], block['signature']], ['', '']);
    }
    if (this.#block === 'tool_use') {
      assert.match(String(block['id']), /^[a-zA-Z0-9_-]+$/);
      assert.ok(typeof block['name'] === 'string' && block['name'] !== '');
      assert.deepEqual(block['input'], {});
    }
  }

  #blockDelta(data: JsonObject): void {
    assert.ok(this.#block !== undefined, 'a delta has an open block');
    assert.equal(data['index'], this.#index);
    const delta = objectIn(data, 'delta');
    const type = String(delta['type']);
    assert.ok(deltasOf[this.#block]?.includes(type), `${type} in ${this.#block}`);
    assert.ok(!this.#signed, 'nothing follows the signature');
    if (type === 'signature_delta') this.#signed = true;
    if (type === 'text_delta') assert.ok(delta['text'] !== '', 'no empty text delta');
    if (type === 'input_json_delta') {
      assert.ok(delta['partial_json'] !== '', 'no empty input delta');
      this.#input += String(delta['partial_json']);
    }
  }

  #blockStop(data: JsonObject): void {
    assert.ok(this.#block !== undefined, 'a block is open');
    assert.equal(data['index'], this.#index);
    if (this.#input !== '') {
      assert.ok(tryParseObject(this.#input) !== undefined, `an object: ${this.#input}`);
    }
    this.#block = undefined;
    this.#index += 1;
  }

  #messageDelta(data: JsonObject): void {
    assert.equal(this.#state, 'content');
    assert.equal(this.#block, undefined, 'all blocks are closed');
    this.#state = 'delta';
    const delta = objectIn(data, 'delta');
    assert.ok(typeof delta['stop_reason'] === 'string');
    assert.ok('stop_sequence' in delta && 'stop_details' in delta);
    const usage = objectIn(data, 'usage');
    for (const key of usageKeys) assert.ok(key in usage, `message_delta has ${key}`);
    assert.equal(typeof usage['input_tokens'], 'number');
    assert.equal(typeof usage['output_tokens'], 'number');
  }
}

function objectIn(value: JsonObject, key: string): JsonObject {
  const found = value[key];
  assert.ok(isObject(found), `${key} is an object`);
  return found;
}
