/** How the held-back cases of the demonstration model are asked and judged. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '../../../src/json/value.ts';
import {
  describeAnswer,
  isRight,
  readCases,
  requestOf,
  type Case,
} from '../../../models/tiny/train/evaluation/cases.ts';

const tool = { type: 'function', function: { name: 'get_weather', parameters: {} } };
const head = '# Tools\n\nYou may call…\n<tools>\n';
const tail = '\n</tools>\n\nFor each call, <tool_call>\n{"name": …}\n</tool_call>';
const call = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>';

function only(...messages: readonly (readonly [string, string])[]): Case {
  const [one] = readCases(JSON.stringify([{ cat: 'tool', messages, want: call }]));
  assert.ok(one !== undefined);
  return one;
}

function completion(message: JsonObject): JsonObject {
  return { choices: [{ message }] };
}

function calling(...calls: readonly (readonly [string, string])[]): JsonObject {
  const made = calls.map(([name, text]) => ({ function: { name, arguments: text } }));
  return { content: null, tool_calls: made };
}

test('§4 tools, calls and results are asked as a client sends them', () => {
  const one = only(
    ['system', `Be brief.\n\n${head}${JSON.stringify(tool)}${tail}`],
    ['user', 'Weather in Oslo?'],
    ['assistant', call],
    ['user', '<tool_response>\nsunny\n</tool_response>'],
  );
  const { messages, tools, temperature } = requestOf(one);
  assert.deepEqual(tools, [tool]);
  assert.equal(temperature, 0);
  const made = { name: 'get_weather', arguments: '{"city":"Oslo"}' };
  assert.deepEqual(messages, [
    { role: 'system', content: 'Be brief.' },
    { role: 'user', content: 'Weather in Oslo?' },
    {
      role: 'assistant',
      content: null,
      tool_calls: [{ id: 'call_1', type: 'function', function: made }],
    },
    { role: 'tool', tool_call_id: 'call_1', content: 'sunny' },
  ]);
});

test('§4 a system turn of tools alone is no message, and without tools there is no list', () => {
  const tooled = requestOf(only(['system', head + JSON.stringify(tool) + tail], ['user', 'Hi']));
  assert.deepEqual(tooled['messages'], [{ role: 'user', content: 'Hi' }]);
  const plain = requestOf(only(['system', 'Be brief.'], ['user', 'Hi']));
  assert.equal(plain['tools'], undefined);
});

test('§4 a call is right by name and arguments, whatever their order and spacing', () => {
  const one = only(['user', 'Weather in Oslo?']);
  assert.ok(isRight(one, completion(calling(['get_weather', '{ "city":"Oslo" }']))));
  for (const wrong of [
    calling(['weather', '{"city":"Oslo"}']),
    calling(['get_weather', '{"city":"Osl"}']),
    calling(['get_weather', '{"city":"Oslo"}'], ['get_weather', '{"city":"Oslo"}']),
    { content: call },
  ]) {
    assert.ok(!isRight(one, completion(wrong)), JSON.stringify(wrong));
  }
});

test('§4 a text is right when it is equal, and wrong beside a call', () => {
  const one: Case = { category: 'greet', turns: [{ role: 'user', text: 'Hi' }], want: 'Hello!' };
  assert.ok(isRight(one, completion({ content: 'Hello!' })));
  assert.ok(!isRight(one, completion({ content: 'Hello' })));
  assert.ok(!isRight(one, completion({ ...calling(['x', '{}']), content: 'Hello!' })));
  assert.equal(describeAnswer(completion({ content: 'Hello' })), 'Hello');
});
