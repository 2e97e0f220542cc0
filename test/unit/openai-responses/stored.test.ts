/** What is kept of a request and its response: items in their own bytes (wire/responses.md §2.4). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseBody } from '../../../src/core/client-body.ts';
import { elementsOf, storedResponses } from '../../../src/dialects/openai-responses/stored.ts';
import { ownedKeys } from '../../../src/dialects/openai-responses/head.ts';

const none: ReadonlyMap<string, Buffer> = new Map();

function source(text: string): ReturnType<typeof parseBody> {
  return parseBody(Buffer.from(text), ownedKeys);
}

function input(text: string, found: { readonly [id: string]: string } = {}): string {
  const items = new Map(Object.entries(found).map(([id, item]) => [id, Buffer.from(item)]));
  return storedResponses.inputOf(source(text), items).toString('utf8');
}

test('the own items of a request keep their bytes', () => {
  assert.equal(
    input('{"input":[ {"id":1.0,"b":[1,2]} , "x"],"model":"m"}'),
    '[ {"id":1.0,"b":[1,2]} , "x"]',
  );
  assert.equal(
    input('{"input":"say \\"hi\\""}'),
    '[{"type":"message","role":"user","content":"say \\"hi\\""}]',
  );
  assert.equal(input('{"model":"m"}'), '[]');
  assert.equal(input('{"input":null}'), '[]');
});

test('R-38 a reference is replaced by its item, also one with no type or a null one', () => {
  const body =
    '{"input":[{"role":"user","content":"a"},{"type":"item_reference","id":"x"},{"id":"y"},{"type":null,"id":"z"}]}';
  assert.equal(
    input(body, { x: '{"X":1}', y: '{"Y":1}', z: '{"Z":1}' }),
    '[{"role":"user","content":"a"},{"X":1},{"Y":1},{"Z":1}]',
  );
});

test('ST8 earlier items are put before the own ones, and all else keeps its bytes', () => {
  const body = '{"model":"m", "previous_response_id":"resp_1","input":"c","x":1e2}';
  const own = storedResponses.inputOf(source(body), none);
  const arrays = ['[{"a":1}]', '[ ]', '[ {"b":2.0} ]'].map((text) => Buffer.from(text));
  const expanded = storedResponses.expand(source(body), [...arrays, own]).toString();
  assert.equal(
    expanded,
    '{"model":"m","input":[{"a":1},{"b":2.0} ,{"type":"message","role":"user","content":"c"}],"x":1e2}',
  );
  const bare = storedResponses.expand(source('{"previous_response_id":"r"}'), [Buffer.from('[1]')]);
  assert.deepEqual(JSON.parse(bare.toString()), { input: [1] });
});

const response =
  '{"id":"resp_1","status":"completed","output":[{"id":"msg_1","n":1.0}],"store":true}';

test('the response of a document and of the last event of a stream is found', () => {
  const document = storedResponses.answered(Buffer.from(response));
  assert.deepEqual([document?.id, document?.items], ['resp_1', ['msg_1']]);
  for (const type of ['response.completed', 'response.incomplete']) {
    const stream = Buffer.from(
      `event: response.output_text.delta\ndata: {"type":"x","delta":"data: "}\n\nevent: ${type}\ndata: {"type":"${type}","response":${response}}\n\n`,
    );
    const found = storedResponses.answered(stream);
    assert.equal(found?.response.toString(), response);
    const told = storedResponses.unkept(stream).toString();
    assert.equal(told, stream.toString().replace('"store":true', '"store":false'));
  }
  assert.equal(
    storedResponses.unkept(Buffer.from(response)).toString(),
    response.replace('true', 'false'),
  );
});

test('ST1 a response that failed, and an error, is none that is kept', () => {
  const failed = response.replace('completed', 'failed');
  const event = `data: {"type":"response.failed","response":${failed}}\n\n`;
  for (const last of [failed, event, '{"error":{"message":"m"}}', 'data: [DONE]\n\n', '']) {
    assert.equal(storedResponses.answered(Buffer.from(last)), undefined, last);
  }
});

test('output items are found by their ids, in their own bytes', () => {
  const output = storedResponses.outputOf(Buffer.from(response));
  assert.deepEqual(
    [...storedResponses.itemsOf(output)].map(([id, item]) => [id, item.toString()]),
    [['msg_1', '{"id":"msg_1","n":1.0}']],
  );
  assert.deepEqual(elementsOf(Buffer.from('[]')), []);
});

test('R-32 an answer of more values than a request may have is found, and says that it was not kept', () => {
  const items = Array.from(
    { length: 100 },
    (_, i) => `{"id":"msg_${i}","output":[${'1,'.repeat(6000)}1]}`,
  );
  const large = response.replace('{"id":"msg_1","n":1.0}', items.join());
  const event = `data: {"type":"response.completed","response":${large}}\n\n`;
  for (const last of [large, event]) {
    const found = storedResponses.answered(Buffer.from(last));
    assert.equal(found?.items.length, 100);
    assert.ok(found.response.toString() === large);
    assert.equal(elementsOf(storedResponses.outputOf(found.response)).length, 100);
    const told = storedResponses.unkept(Buffer.from(last)).toString();
    assert.ok(told === last.replace('"store":true', '"store":false'));
  }
});
