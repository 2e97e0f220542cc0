/**
 * Calls of each kind that a Responses client may offer: the kind and the name come back as they were offered, and in the
 * second turn the upstream gets its own call with the result, from the items or by `previous_response_id`.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { JsonObject } from '../../src/json/value.ts';
import { listAt, readDocument } from '../support/reading.ts';
import { requestBody } from '../support/requests.ts';
import { ask, startRig, type Rig } from '../support/rig.ts';
import { replying } from '../upstream/reply.ts';
import { question } from './histories.ts';

let rig: Rig;
before(async () => {
  rig = await startRig();
});
after(() => rig.stop());

interface Kind {
  readonly tool: JsonObject;
  /** What the upstream's model calls. */
  readonly name: string;
  readonly arguments: JsonObject;
  /** Of the item that the client gets. */
  readonly item: JsonObject;
  readonly output: JsonObject;
}

const parameters = { type: 'object', properties: { q: { type: 'string' } } };
const operation = { type: 'create_file', path: 'a.txt', diff: '+a' };
const find = { type: 'function', name: 'find', parameters, strict: false };
const kinds: { readonly [name: string]: Kind } = {
  'a free text': {
    tool: { type: 'custom', name: 'patch', format: { type: 'text' } },
    name: 'patch',
    arguments: { input: '*** Begin "1"\n' },
    item: { type: 'custom_tool_call', name: 'patch', input: '*** Begin "1"\n' },
    output: { type: 'custom_tool_call_output', output: 'done' },
  },
  'a function of a namespace': {
    tool: { type: 'namespace', name: 'crm', description: 'Customers.', tools: [find] },
    name: 'crm__find',
    arguments: { q: 'x' },
    item: { type: 'function_call', name: 'find', namespace: 'crm', arguments: '{"q":"x"}' },
    output: { type: 'function_call_output', output: 'done' },
  },
  'a search of tools': {
    tool: { type: 'tool_search', execution: 'client', description: 'Finds tools.', parameters },
    name: 'tool_search',
    arguments: { q: 'x' },
    item: { type: 'tool_search_call', execution: 'client', arguments: { q: 'x' } },
    output: { type: 'tool_search_output', execution: 'client', tools: [find] },
  },
  'a shell': {
    tool: { type: 'local_shell' },
    name: 'local_shell',
    arguments: { command: ['ls'], env: {} },
    item: { type: 'local_shell_call', action: { type: 'exec', command: ['ls'], env: {} } },
    output: { type: 'local_shell_call_output', output: 'done' },
  },
  'a patch': {
    tool: { type: 'apply_patch' },
    name: 'apply_patch',
    arguments: { operation },
    item: { type: 'apply_patch_call', operation },
    output: { type: 'apply_patch_call_output', status: 'completed', output: 'done' },
  },
};

for (const upstream of ['chat', 'messages'] as const) {
  describe(`a responses client on ${upstream}`, () => {
    for (const [kind, { tool, name, arguments: args, item, output }] of Object.entries(kinds)) {
      for (const refers of [false, true]) {
        const way = refers ? 'by previous_response_id' : 'as items';
        test(`R-4 R-6 R-8 R-50 ${kind} comes back ${way}`, async () => {
          const called = { id: 'call_1', name, arguments: JSON.stringify(args) };
          const { model, script } = rig.play(
            upstream,
            replying(upstream, { calls: [called] }),
            replying(upstream, { text: 'Good.' }),
          );
          const body = requestBody('responses', {
            model,
            stream: false,
            more: { input: [question], tools: [tool] },
          });
          const first = await ask(rig, 'responses', body);
          const [call = {}] = listAt(first.json, 'output');
          for (const [key, value] of Object.entries(item)) assert.deepEqual(call[key], value, key);
          const result = { ...output, call_id: call['call_id'] };
          const second = await ask(rig, 'responses', {
            ...body,
            ...(refers
              ? { input: [result], previous_response_id: first.json['id'] }
              : { input: [question, call, result] }),
          });
          assert.equal(second.status, 200, second.text);
          assert.equal(second.headers['x-gateway-notes'], first.headers['x-gateway-notes']);
          const sent = script.requests[1]?.json ?? {};
          const turns = listAt(sent, 'messages');
          const again = turns.find(({ role }) => role === 'assistant') ?? {};
          const whole = { chat: { choices: [{ message: again }] }, messages: again }[upstream];
          assert.deepEqual(readDocument(upstream, whole).calls, [
            { id: 'call_1', name, arguments: args },
          ]);
          const answered = JSON.stringify(turns.at(-1));
          assert.match(answered, kind === 'a search of tools' ? /find/ : /done/);
          assert.match(answered, /"(tool_call_id|tool_use_id)":"call_1"/);
        });
      }
    }
  });
}
