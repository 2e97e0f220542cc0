import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Conversation, ReasoningPart } from '../../../src/core/conversation.ts';
import { GatewayError } from '../../../src/core/errors.ts';
import { NoteList } from '../../../src/core/notes.ts';
import { openaiResponsesClient as client } from '../../../src/dialects/openai-responses/client.ts';
import type { Json, JsonObject } from '../../../src/json/value.ts';
import { halves } from '../../property/dialect-halves.ts';
import { chatUpstream, messagesUpstream, sealed, testSealer } from '../../support/sealing.ts';

interface Read {
  readonly conversation: Conversation;
  readonly notes: readonly string[];
}

function read(more: JsonObject): Read {
  const body = { model: 'm', input: 'Hi', ...more };
  client.readHead(body);
  const notes = new NoteList();
  const conversation = client.readRequest(body, notes, testSealer);
  return { conversation, notes: notes.all.map(({ path, what }) => `${path} ${what}`) };
}

/** The message of the refusal and what it names. */
function refused(more: JsonObject): string {
  try {
    read(more);
  } catch (error) {
    assert.ok(error instanceof GatewayError, String(error));
    const { body } = client.writeError(error, 'req_1');
    const told = body['error'];
    assert.ok(typeof told === 'object' && told !== null && 'param' in told && 'message' in told);
    return `${String(told['param'])}: ${String(told['message'])}`;
  }
  return assert.fail('should be refused');
}

const call = (id: string, name = 'f'): JsonObject => ({
  type: 'function_call',
  call_id: id,
  name,
  arguments: '{}',
});
const output = (id: string, text: Json = 'done'): JsonObject => ({
  type: 'function_call_output',
  call_id: id,
  output: text,
});
const user = (content: string): JsonObject => ({ role: 'user', content });

/** Roles with the kinds of their parts. */
function outline({ conversation }: Read): readonly string[] {
  return conversation.turns.map(
    ({ role, parts }) =>
      `${role}: ${parts.map((part) => (part.type === 'tool-result' ? `result ${part.callId}` : part.type === 'text' ? part.text : part.type)).join(', ')}`,
  );
}

describe('items and turns', () => {
  test('R-38 a string, a message without a type and an easy assistant text are read', () => {
    assert.deepEqual(outline(read({ input: 'Hi' })), ['user: Hi']);
    const items = [user('a'), { role: 'assistant', content: 'b' }, { type: null, ...user('c') }];
    assert.deepEqual(outline(read({ input: items })), ['user: a', 'assistant: b', 'user: c']);
  });

  test('R-38 a blank line is between the messages of one turn in chat completions, as in answers', () => {
    const said = (content: Json): JsonObject => ({ role: 'assistant', content });
    const text = (each: string): JsonObject => ({ type: 'output_text', text: each });
    const search = { type: 'web_search_call', action: { type: 'search', query: 'q' } };
    const { conversation } = read({
      input: [user('a'), said('I look.'), search, said([text('It '), text('is 4.')]), user('b')],
    });
    const { traits, upstream } = halves.chat;
    const ask = { model: 'm', stream: false, traits, newId: (prefix: string) => prefix };
    const { messages } = upstream.writeRequest(conversation, ask, new NoteList());
    assert.deepEqual(messages, [
      { role: 'user', content: 'a' },
      { role: 'assistant', content: 'I look.\n\n[web_search "q"]\n\nIt is 4.' },
      { role: 'user', content: 'b' },
    ]);
  });

  test('what the service found and made stays: queries, patterns, results and images', () => {
    const search = (action: JsonObject, more: JsonObject = {}): JsonObject => ({
      type: 'web_search_call',
      status: 'completed',
      action,
      ...more,
    });
    const sources = [{ type: 'url', url: 'https://a' }];
    const found = { type: 'search', queries: ['q'] };
    const input = [
      user('a'),
      search({ type: 'search', queries: ['p', 'q'], sources }),
      search({ type: 'find_in_page', pattern: 'tea', url: 'https://b' }),
      search(found, { results: [{ url: 'https://c' }] }),
      search(found, { status: 'failed' }),
      { type: 'image_generation_call', status: 'completed', result: '/9j/4AAQ' },
      user('b'),
    ];
    const { conversation, notes } = read({ input });
    const texts = conversation.turns[1]?.parts.map((part) => 'text' in part && part.text);
    assert.deepEqual(texts, [
      '[web_search "p", "q" → https://a]',
      '[web_search "tea" in https://b]',
      '[web_search "q" → [{"url":"https://c"}]]',
      '[web_search "q" → failed]',
      '[image_generation_call: an image was made]',
    ]);
    const [image, next] = conversation.turns[2]?.parts ?? [];
    const source = { base64: '/9j/4AAQ' };
    const media = { type: 'media', kind: 'image', mediaType: 'image/jpeg', source };
    assert.deepEqual([image, next], [media, { type: 'text', text: 'b' }]);
    assert.equal(notes.length, 5);
  });

  test('R-38 a reference without a type is one', () => {
    const body = { model: 'm', input: [{ id: 'msg_1', type: null }] };
    assert.deepEqual(client.readHead(body).state?.itemReferences, ['msg_1']);
  });

  test('R-39 a developer message in mid-conversation stays in place', () => {
    const developer = (content: string): JsonObject => ({ role: 'developer', content });
    const found = read({
      instructions: 'i',
      input: [developer('d'), user('u'), developer('later')],
    });
    assert.deepEqual(outline(found), ['user: u', 'system: later']);
    assert.equal(found.conversation.system.length, 2);
  });

  test('R-40 call, text, output: one turn of the model', () => {
    const text = { role: 'assistant', content: 't' };
    const found = read({ input: [user('u'), call('c'), text, output('c')] });
    assert.deepEqual(outline(found), ['user: u', 'assistant: tool-call, t', 'user: result c']);
  });

  test('R-41 a user message between a call and its output comes behind the output', () => {
    const found = read({ input: [call('a'), call('b'), user('u'), output('b'), output('a')] });
    assert.deepEqual(outline(found), [
      'assistant: tool-call, tool-call',
      'user: result a, result b, u',
    ]);
  });

  test('R-42 unpaired calls and outputs are refused in the words of the service', () => {
    assert.equal(
      refused({ input: [call('c')] }),
      'input: No tool output found for function call c.',
    );
    assert.equal(
      refused({ input: [output('c')] }),
      'input: No tool call found for function call output with call_id c.',
    );
    assert.match(refused({ input: [call('c'), call('c'), output('c')] }), /^input: /);
  });

  test('R-43 an output without a call is sent as text', () => {
    const { call_id: _id, ...injected } = output('c');
    const found = read({ input: [user('u'), { ...injected, name: 'wait' }] });
    assert.deepEqual(outline(found), ['user: u, [output of wait], done']);
    assert.deepEqual(found.notes, ['input.1 changed']);
  });

  test('R-44 R-45 R-46 pictures and files are media, ids of files are refused', () => {
    const image = { type: 'input_image', image_url: 'data:image/png;base64,AAAA', detail: 'high' };
    const found = read({ input: [call('c'), output('c', [image])] });
    const [result] = found.conversation.turns[1]?.parts ?? [];
    assert.ok(result?.type === 'tool-result');
    assert.equal(result.parts[0]?.type, 'media');
    const file = { type: 'input_file', file_url: 'https://example.com/a.pdf' };
    const parts = read({ input: [{ role: 'user', content: [file] }] }).conversation.turns[0]?.parts;
    assert.ok(parts?.[0]?.type === 'media' && parts[0].kind === 'document');
    const foreign = { type: 'input_image', file_id: 'file_1' };
    const told = refused({ input: [{ role: 'user', content: [foreign] }] });
    assert.match(told, /^input\[0\]\.content\[0\]\.file_id: /);
  });

  test('R-19 a compaction on a foreign upstream is refused by its type', () => {
    const told = refused({ input: [user('u'), { type: 'compaction_trigger' }] });
    assert.match(told, /^input\[1\]\.type: /);
  });
});

describe('tools', () => {
  const fn = { type: 'function', name: 'f', parameters: null, strict: null };

  test('R-8 tools in namespaces have flat names, those of `functions` their own', () => {
    const tools = [
      { type: 'namespace', name: 'functions', description: 'Own.', tools: [fn] },
      { type: 'namespace', name: 'agents', description: 'Many.', tools: [fn] },
    ];
    const { conversation } = read({ tools });
    assert.deepEqual(
      conversation.tools.map(({ name }) => name),
      ['f', 'agents__f'],
    );
    assert.equal(conversation.tools[1]?.description, 'Many.');
  });

  test('R-6 R-7 tools of items join the list, behind all others', () => {
    const search = { type: 'tool_search', execution: 'client', description: 'Finds.' };
    const added = {
      type: 'additional_tools',
      role: 'developer',
      tools: [{ ...fn, name: 'added' }],
    };
    const asked = { type: 'tool_search_call', call_id: 's', arguments: { query: 'q' } };
    const found = { type: 'tool_search_output', call_id: 's', tools: [{ ...fn, name: 'found' }] };
    const { conversation } = read({ tools: [fn, search], input: [added, user('u'), asked, found] });
    assert.deepEqual(
      conversation.tools.map(({ name }) => name),
      ['f', 'tool_search', 'added', 'found'],
    );
  });

  test('R-47 each form of tool_choice', () => {
    const custom = { type: 'custom', name: 'c' };
    const choice = (tool_choice: Json): unknown =>
      read({ tools: [fn, custom], tool_choice }).conversation.toolChoice;
    for (const word of ['auto', 'none', 'required']) assert.deepEqual(choice(word), { type: word });
    assert.deepEqual(choice({ type: 'function', name: 'f' }), { type: 'tool', name: 'f' });
    assert.deepEqual(choice({ type: 'custom', name: 'c' }), { type: 'tool', name: 'c' });
    assert.deepEqual(
      choice({ type: 'allowed_tools', mode: 'required', tools: [{ type: 'function', name: 'f' }] }),
      { type: 'allowed', mode: 'required', names: ['f'] },
    );
    const hosted = refused({ tools: [fn], tool_choice: { type: 'mcp' } });
    assert.match(hosted, /^tool_choice\.type: /);
  });

  test('R-47 a hosted tool that the model lacks is left out of the allowed ones', () => {
    const named = { type: 'function', name: 'f' };
    const tools = [fn, { type: 'image_generation' }];
    const tool_choice = { type: 'allowed_tools', mode: 'required', tools: [named, tools[1] ?? {}] };
    const { conversation } = read({ tools, tool_choice });
    assert.deepEqual(conversation.toolChoice, { type: 'allowed', mode: 'required', names: ['f'] });
  });

  test('R-47 a choice that cannot be followed is refused', () => {
    const among = (more: JsonObject): string =>
      refused({ tools: [fn], tool_choice: { type: 'allowed_tools', mode: 'required', ...more } });
    const unknown = { type: 'function', name: 'unknown' };
    assert.match(
      among({ tools: [{ type: 'function', name: 'f' }, unknown] }),
      /^tool_choice\.tools\[1\]\.name: /,
    );
    assert.match(among({ tools: [] }), /^tool_choice\.tools: /);
    assert.match(among({ tools: [{ type: 'web_search' }] }), /^tool_choice\.tools: /);
    assert.match(among({ tools: ['f'] }), /^tool_choice\.tools\[0\]: /);
    assert.match(
      among({ tools: [{ type: 'function', name: 'f' }], mode: 'any' }),
      /^tool_choice\.mode: /,
    );
    assert.match(refused({ tool_choice: 'required' }), /^tool_choice: /);
  });

  test('R-48 R-49 hosted tools: omitted beside others, refused alone, always refused where data is relied on', () => {
    const image = { type: 'image_generation' };
    assert.deepEqual(read({ tools: [fn, image] }).notes, ['tools.1 lost']);
    assert.match(refused({ tools: [image] }), /^tools\[0\]\.type: /);
    for (const type of ['file_search', 'mcp', 'computer', 'unheard_of']) {
      assert.match(refused({ tools: [fn, { type }] }), /^tools\[1\]\.type: /);
    }
    const container = { type: 'shell', environment: { type: 'container_auto' } };
    assert.match(refused({ tools: [fn, container] }), /^tools\[1\]\.environment: /);
  });
});

test('R-47 R-50 a tool of its own type and a function of its name are two tools, whichever is first', () => {
  for (const type of ['apply_patch', 'local_shell', 'tool_search']) {
    const typed = { type, ...(type === 'tool_search' ? { execution: 'client' } : {}) };
    const named = { type: 'function', name: type };
    const again = { type: 'additional_tools', role: 'developer', tools: [typed, named] };
    const outputType = type === 'tool_search' ? 'tool_search_output' : `${type}_call_output`;
    const calls = [
      call('a', type),
      output('a'),
      { type: `${type}_call`, call_id: 'b', status: 'completed' },
      { type: outputType, call_id: 'b', tools: [], output: '' },
    ];
    for (const tools of [
      [typed, named],
      [named, typed],
    ]) {
      const flat = (choice: JsonObject): string => {
        const { toolChoice } = read({ tools, tool_choice: choice }).conversation;
        assert.ok(toolChoice?.type === 'tool');
        return toolChoice.name;
      };
      const { conversation } = read({ tools, input: [user('a'), again, ...calls] });
      const names = [flat(tools[0] ?? {}), flat(tools[1] ?? {})];
      assert.deepEqual(names, [type, `tool__${type}`]);
      assert.deepEqual(
        conversation.tools.map(({ name }) => name),
        names,
      );
      const parts = conversation.turns.flatMap((turn) => turn.parts);
      const called = parts.flatMap((part) => (part.type === 'tool-call' ? [part.name] : []));
      assert.deepEqual(called, [flat(named), flat({ type })]);
    }
  }
});

describe('options', () => {
  test('numbers that are too large are not called too small, and a tier has a name', () => {
    assert.match(refused({ max_output_tokens: 1e300 }), /^max_output_tokens: .* is too large/);
    assert.match(refused({ max_output_tokens: 0 }), /^max_output_tokens: .* at least 1/);
    assert.match(refused({ service_tier: 3 }), /^service_tier: .* a string/);
    assert.deepEqual(read({ service_tier: 'flex' }).notes, []);
  });

  test('R-52 log probabilities are refused', () => {
    assert.match(refused({ top_logprobs: 5 }), /^top_logprobs: /);
    const include = ['message.output_text.logprobs'];
    assert.match(refused({ include }), /^include\[0\]: /);
  });

  test('§3.1 an unknown value of include is noted, and none where only its items are missing', () => {
    const known = ['web_search_call.action.sources', 'file_search_call.results'];
    assert.deepEqual(read({ include: [...known, 'reasoning.encrypted_content'] }).notes, []);
    assert.deepEqual(read({ include: [...known, 'tea.leaves'] }).notes, ['include.2 lost']);
  });

  test('a truncation of any kind is noted, and none is not', () => {
    for (const truncation of ['auto', 'in the middle']) {
      assert.deepEqual(read({ truncation }).notes, ['truncation lost']);
    }
    for (const truncation of ['disabled', null]) assert.deepEqual(read({ truncation }).notes, []);
  });

  test('R-53 R-54 R-55 efforts are read, and reasoning is hidden without a summary', () => {
    for (const effort of ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max']) {
      const { reasoning } = read({ reasoning: { effort } }).conversation;
      assert.deepEqual(reasoning, { effort, hidden: true, unasked: true });
    }
    for (const asked of [{ summary: 'auto' }, { generate_summary: 'concise' }]) {
      assert.deepEqual(read({ reasoning: asked }).conversation.reasoning, { hidden: false });
    }
  });

  test('R-35 what is not kept here is refused with its member', () => {
    assert.match(refused({ background: true }), /^background: /);
    assert.match(refused({ conversation: 'conv_1' }), /^conversation: /);
  });

  test('R-82 what a client sends for its own service reaches no other', () => {
    const { notes } = read({ client_metadata: { path: '/home/me' } });
    assert.deepEqual(notes, []);
  });
});

describe('reasoning', () => {
  const item = (more: JsonObject): JsonObject => ({
    type: 'reasoning',
    id: 'rs_1',
    summary: [],
    ...more,
  });

  function reasoningOf(more: JsonObject): ReasoningPart | undefined {
    const { conversation } = read({
      input: [user('u'), item(more), { role: 'assistant', content: 't' }],
    });
    return conversation.turns[1]?.parts.find((part) => part.type === 'reasoning');
  }

  test('R-54 R-56 what was sealed comes back as its maker wrote it', () => {
    const blob = sealed({ text: 'hidden', signature: 'sig' }, messagesUpstream);
    assert.deepEqual(reasoningOf({ encrypted_content: blob }), {
      type: 'reasoning',
      text: 'hidden',
      signature: 'sig',
      origin: messagesUpstream,
    });
    const redacted = sealed({ encrypted: 'data' }, messagesUpstream);
    assert.equal(reasoningOf({ encrypted_content: redacted })?.encrypted, 'data');
  });

  test('R-55 a changed summary breaks what vouched for it', () => {
    const digest = testSealer.digest('thought');
    const blob = sealed({ signature: 'sig', digest }, messagesUpstream);
    const summary = (text: string): Json => [{ type: 'summary_text', text }];
    assert.equal(
      reasoningOf({ encrypted_content: blob, summary: summary('thought') })?.text,
      'thought',
    );
    assert.equal(reasoningOf({ encrypted_content: blob, summary: summary('other') })?.broken, true);
  });

  test('R-57 a signature of a call goes back to the call', () => {
    const extras = { extra_content: { google: { thought_signature: 's' } } };
    const blob = sealed({ extras, callId: 'c' }, chatUpstream);
    const input = [item({ encrypted_content: blob }), call('c'), output('c')];
    const [part] = read({ input }).conversation.turns[0]?.parts ?? [];
    assert.ok(part?.type === 'tool-call');
    assert.deepEqual(part.extras?.['openai-chat'], extras);
    assert.deepEqual(part.origin, chatUpstream);
  });

  test('R-59 what the service encrypted is nobody else’s, and a foreign seal is omitted', () => {
    const native = reasoningOf({ encrypted_content: 'gAAAA' });
    assert.equal(native?.origin?.dialect, 'openai-responses');
    assert.equal(reasoningOf({ encrypted_content: 'gw1.no.seal' }), undefined);
  });
});
