/** What a stream must look like so that every client of its dialect can read it (wire/*.md §5, §7). */
import assert from 'node:assert/strict';
import { isObject, tryParseObject } from '../../src/core/json.ts';
import type { JsonObject } from '../../src/core/conversation.ts';
import { framesOf, listAt, numberAt, objectAt, textAt, type Dialect } from './reading.ts';

/** A complete, properly ended stream. `usageChunk`: the client asked for one (chat only). */
export function assertLegalStream(dialect: Dialect, text: string, usageChunk: boolean): void {
  if (dialect === 'chat') assertLegalChat(text, usageChunk);
  else assertLegalMessages(text);
}

function assertLegalChat(text: string, usageChunk: boolean): void {
  const frames = framesOf(text);
  assert.equal(frames.at(-1)?.data, '[DONE]', 'B15: [DONE] is last');
  const chunks = frames.slice(0, -1).map(({ data }) => {
    const chunk = tryParseObject(data);
    assert.ok(chunk !== undefined, `not an object: ${data}`);
    return chunk;
  });
  for (const chunk of chunks) {
    assert.equal(chunk['object'], 'chat.completion.chunk');
    assert.ok(Array.isArray(chunk['choices']), 'choices is a list');
    assert.equal(typeof chunk['created'], 'number');
    assert.equal(chunk['id'], chunks[0]?.['id'], 'id is the same on all chunks');
    assert.equal(chunk['created'], chunks[0]?.['created'], 'created is the same on all chunks');
  }
  const choices = chunks.flatMap((chunk) => listAt(chunk, 'choices'));
  assert.ok(choices.every((choice) => choice['index'] === 0 && isObject(choice['delta'])));
  const roles = choices.filter((choice) => objectAt(choice, 'delta')['role'] !== undefined);
  assert.equal(roles.length, 1, 'the role comes once');
  assert.equal(roles[0], choices[0], 'B15: the role comes first');
  const finishes = choices.filter((choice) => typeof choice['finish_reason'] === 'string');
  assert.equal(finishes.length, 1, 'one finish');
  assert.equal(finishes[0], choices.at(-1), 'nothing after the finish');
  assertChatCalls(choices);
  const usages = chunks.filter((chunk) => isObject(chunk['usage']));
  assert.equal(usages.length, usageChunk ? 1 : 0, 'E6: a usage chunk exactly when asked for');
  if (usageChunk) {
    assert.equal(usages[0], chunks.at(-1), 'E6: usage comes last');
    assert.deepEqual(chunks.at(-1)?.['choices'], []);
    const usage = objectAt(chunks.at(-1) ?? {}, 'usage');
    assert.equal(
      usage['total_tokens'],
      numberAt(usage, 'prompt_tokens') + numberAt(usage, 'completion_tokens'),
    );
  }
}

function assertChatCalls(choices: readonly JsonObject[]): void {
  const seen = new Set<number>();
  for (const choice of choices) {
    for (const call of listAt(objectAt(choice, 'delta'), 'tool_calls')) {
      const index = numberAt(call, 'index');
      assert.equal(typeof call['index'], 'number');
      const fn = objectAt(call, 'function');
      if (seen.has(index)) {
        assert.equal(call['id'], undefined, 'B6: the id comes once');
        assert.equal(fn['name'], undefined, 'the name comes once');
      } else {
        assert.equal(index, seen.size, 'indexes are dense');
        assert.ok(textAt(call, 'id') !== '' && textAt(fn, 'name') !== '', 'B15: id and name first');
        assert.equal(call['type'], 'function');
        seen.add(index);
      }
    }
  }
}

const deltaOfBlock: { readonly [block: string]: readonly string[] } = {
  text: ['text_delta', 'citations_delta'],
  thinking: ['thinking_delta', 'signature_delta'],
  redacted_thinking: [],
  tool_use: ['input_json_delta'],
  server_tool_use: ['input_json_delta'],
  compaction: ['compaction_delta'],
};

/** C3: dense indexes, one block open at a time, then message_delta, then message_stop. */
function assertLegalMessages(text: string): void {
  const frames = framesOf(text);
  let open: string | undefined;
  let next = 0;
  let state: 'before' | 'content' | 'delta' | 'stopped' = 'before';
  for (const { event, data } of frames) {
    const value = tryParseObject(data);
    assert.ok(value !== undefined, `not an object: ${data}`);
    assert.equal(value['type'], event, 'the event line repeats the type');
    if (event === 'ping') continue;
    assert.notEqual(state, 'stopped', 'nothing after message_stop');
    switch (event) {
      case 'message_start':
        assert.equal(state, 'before');
        assertMessageStart(objectAt(value, 'message'));
        state = 'content';
        break;
      case 'content_block_start':
        assert.equal(state, 'content');
        assert.equal(open, undefined, 'one block open at a time');
        assert.equal(value['index'], next, 'indexes are dense');
        open = textAt(objectAt(value, 'content_block'), 'type');
        break;
      case 'content_block_delta': {
        assert.equal(value['index'], next);
        assert.ok(open !== undefined, 'a block is open');
        const kinds = deltaOfBlock[open];
        if (kinds !== undefined) {
          assert.ok(
            kinds.includes(textAt(objectAt(value, 'delta'), 'type')),
            `C2: ${textAt(objectAt(value, 'delta'), 'type')} in ${open}`,
          );
        }
        break;
      }
      case 'content_block_stop':
        assert.equal(value['index'], next);
        assert.ok(open !== undefined, 'a block is open');
        open = undefined;
        next += 1;
        break;
      case 'message_delta':
        assert.ok(state === 'content' || state === 'delta');
        assert.equal(open, undefined, 'all blocks are closed');
        assert.ok(isObject(value['usage']) && isObject(value['delta']));
        state = 'delta';
        break;
      case 'message_stop':
        assert.equal(state, 'delta', 'message_delta comes before message_stop');
        state = 'stopped';
        break;
      default:
        assert.fail(`unknown event ${event}`);
    }
  }
  assert.equal(state, 'stopped', 'message_stop is last');
}

function assertMessageStart(message: JsonObject): void {
  assert.deepEqual(message['content'], []);
  assert.equal(message['type'], 'message');
  assert.equal(message['role'], 'assistant');
  assert.equal(message['stop_reason'], null);
  assert.ok(numberAt(objectAt(message, 'usage'), 'input_tokens') >= 0);
}

/** An error body in the caller's dialect (reliability.md §0, H1). */
export function assertErrorBody(dialect: Dialect, body: JsonObject): JsonObject {
  const error = objectAt(body, 'error');
  assert.ok(textAt(error, 'message') !== '', `no message: ${JSON.stringify(body)}`);
  assert.ok(textAt(error, 'type') !== '', `no type: ${JSON.stringify(body)}`);
  if (dialect === 'chat') {
    assert.deepEqual(Object.keys(error).sort(), ['code', 'message', 'param', 'type']);
  } else {
    assert.equal(body['type'], 'error');
    assert.ok(textAt(body, 'request_id') !== '', 'request_id is there');
    assert.equal(error['param'], undefined);
  }
  return error;
}
