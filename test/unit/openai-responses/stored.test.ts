/** What is kept of a request and its response: items in their own bytes (wire/responses.md §2.4). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type FieldPath, GatewayError } from '../../../src/core/errors.ts';
import { parseBody } from '../../../src/core/client-body.ts';
import type { StoredResponse } from '../../../src/core/stored-response.ts';
import { elementsOf, storedResponses } from '../../../src/dialects/openai-responses/stored.ts';
import { ownedKeys } from '../../../src/dialects/openai-responses/head.ts';
import { listAt, textAt } from '../../support/reading.ts';

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
    const told = storedResponses.markUnstored(stream).toString();
    assert.equal(told, stream.toString().replace('"store":true', '"store":false'));
  }
  assert.equal(
    storedResponses.markUnstored(Buffer.from(response)).toString(),
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

/** A kept response with these input items. */
function kept(id: string, items: readonly string[], output = '[]'): StoredResponse {
  const body = `{"id":"${id}","output":${output}}`;
  return { id, input: Buffer.from(`[${items.join()}]`), response: Buffer.from(body) };
}

function textsOf(items: ReadonlyMap<string, Buffer>): { readonly [id: string]: string } {
  return Object.fromEntries([...items].map(([id, item]) => [id, item.toString()]));
}

test('ST10 items are found by their own ids and by their places, in their own bytes', () => {
  const question = '{"role":"user", "content":"a"}';
  const call = '{"type":"function_call_output","id":"fco_of-a-client","call_id":"c","output":1.0}';
  const counted = '{"type":"message","id":"msg_1","role":"user","content":"b"}';
  const answer = '{"id":"msg_one","n":1.0}';
  const found = storedResponses.itemsOf(
    kept('resp_AbC1', [question, call, counted], `[ ${answer} ]`),
  );
  assert.deepEqual(textsOf(found), {
    msg_AbC1_i0: question,
    fco_AbC1_i1: call,
    msg_AbC1_i2: counted,
    msg_AbC1_o0: answer,
    'fco_of-a-client': call,
    msg_one: answer,
  });
  assert.equal(storedResponses.responseOf('fco_AbC1_i1'), 'resp_AbC1');
  assert.equal(storedResponses.responseOf('msg_one'), undefined);
  assert.deepEqual(elementsOf(Buffer.from('[]')), []);
});

test('ST10 each item of a list has an id that stands once, and finds it in a later request', () => {
  const answer = '[{"type":"message","id":"msg_of-each-answer","role":"assistant"}]';
  const message = (id: string): string =>
    `{"type":"message","id":"${id}","role":"user","content":"${id}"}`;
  const many = Array.from({ length: 600 }, (_, i) => message(`msg_of-the-client_${i}x`));
  const chain = [
    kept('resp_1a', [message('msg_twice'), message('msg_twice')], answer),
    kept('resp_2b', [message('msg_twice'), message('msg_1a_i0')], answer),
    kept('resp_3c', many, answer),
  ];
  const page = { limit: 1000, order: 'asc', after: undefined } as const;
  const list = storedResponses.list(chain, page) ?? {};
  const ids = listAt(list, 'data').map((item) => textAt(item, 'id'));
  assert.deepEqual(ids.slice(0, 8), [
    'msg_1a_i0',
    'msg_1a_i1',
    'msg_1a_o0',
    'msg_twice',
    'msg_2b_i1',
    'msg_of-each-answer',
    'msg_3c_i0',
    'msg_3c_i1',
  ]);
  // The store has an index of the last 100 of a request.
  assert.deepEqual(ids.slice(505, 507), ['msg_3c_i499', 'msg_of-the-client_500x']);
  assert.equal(new Set(ids).size, ids.length);
  const { itemIds = [] } = storedResponses.stateOf({ input: many.map((item) => JSON.parse(item)) });
  assert.equal(itemIds.length, 100);
  const indexed = new Set([...itemIds, 'msg_twice', 'msg_of-each-answer']);
  const found = new Set(chain.flatMap((each) => [...storedResponses.itemsOf(each).keys()]));
  for (const id of ids) {
    assert.ok(found.has(id), id);
    assert.ok(indexed.has(id) || storedResponses.responseOf(id) !== undefined, id);
  }
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
    const told = storedResponses.markUnstored(Buffer.from(last)).toString();
    assert.ok(told === last.replace('"store":true', '"store":false'));
  }
});

test('ST8 of an error that counts earlier items, its place is reported by the client’s own count, and no text of the client', () => {
  const own = (message: string, path?: FieldPath): readonly unknown[] => {
    const options = path === undefined ? {} : { path };
    const error = new GatewayError('upstream_rejected', message, options);
    const told = storedResponses.ownError(error, 3);
    return [told.message, ...(told.path ?? [])];
  };
  // The service's words, with and without `param`.
  assert.deepEqual(own("Invalid type for 'input[4].role'.", ['input', 4, 'role']), [
    "Invalid type for 'input[1].role'.",
    'input',
    1,
    'role',
  ]);
  assert.deepEqual(own("Unknown parameter: 'input[3].foo'.", ['input[3].foo']), [
    "Unknown parameter: 'input[0].foo'.",
    'input[0].foo',
  ]);
  assert.deepEqual(own("Invalid 'input[5].id': it begins with 'input[5]'."), [
    "Invalid 'input[2].id': it begins with 'input[5]'.",
  ]);
  assert.deepEqual(own('input[14].content: too long'), ['input[11].content: too long']);
  assert.deepEqual(own("Invalid type for 'input[2].role'.", ['input', 2, 'role']), [
    "Invalid type for 'previous_response_id'.",
    'previous_response_id',
  ]);
  // What a client wrote: values, ids of calls, names.
  for (const [message, ...path] of [
    ["Invalid value: 'input[4]'. Supported values are: 'a'.", 'input', 4, 'content', 0, 'type'],
    ["Invalid value: 'input[4].role'. Supported values are: 'a'."],
    ['No tool output found for function call input[4].', 'input'],
    ["The file 'input[4].pdf' is too long.", 'input', 4],
  ] as const) {
    const place = path.length > 1 ? ['input', 1, ...path.slice(2)] : path;
    assert.deepEqual(own(message, path.length === 0 ? undefined : path), [message, ...place]);
  }
  const longer = "Invalid 'input[4].content[1]': 'input[4]' and 'input[4].content[1].text' differ.";
  assert.deepEqual(own(longer, ['input', 4])[0], longer.replace('input[4]', 'input[1]'));
});
