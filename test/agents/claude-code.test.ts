/** Claude Code itself, driven through the gateway (clients.md §5). */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { tryParseObject } from '../../src/json/parse.ts';
import { dialects, listAt, numberAt, objectAt, textAt } from '../support/reading.ts';
import { startRig, type Rig } from '../support/rig.ts';
import { chatFrame, chatChunk, chatError } from '../upstream/chat.ts';
import { messagesError } from '../upstream/messages.ts';
import { ScriptedUpstream } from '../upstream/scripted.ts';
import { claudeCode, claudeCodeByFile } from './agents.ts';
import { reported } from './turn.ts';
import { hasNamespaces } from './box.ts';
import { withAgent } from './installed.ts';
import { play, resultsIn, roles, systemText, type Cast } from './scene.ts';
import { assertSaid, assertServed, picture, toolTurns } from './tool-turns.ts';

/** It comes first in the system text and varies from session to session. */
const billing = 'x-anthropic-billing-header';
/** Names that Claude Code knows, each with a form of request of its own. */
const known = ['claude-sonnet-4-5', 'claude-opus-4-8', 'claude-opus-5-5'] as const;

withAgent('claude-code', (command) => {
  let rig: Rig;
  let vendor: ScriptedUpstream;
  before(async () => {
    vendor = await ScriptedUpstream.start();
    const base_url = `http://127.0.0.1:${vendor.port}`;
    rig = await startRig({
      providers: {
        anthropic: { base_url, api_key: 'vendor-key' },
        deepseek: { base_url, api_key: 'vendor-key' },
        'up-known': { dialect: 'openai-chat', base_url, api_key: 'vendor-key' },
      },
      models: Object.fromEntries(known.map((name) => [name, `up-known/${name}`])),
    });
  });
  after(async () => {
    await rig.stop();
    await vendor.close();
  });
  const agent = claudeCode(command);
  const cast = (asked: string, upstream: string): Cast => ({ asked, upstream, server: vendor });

  toolTurns(() => rig, agent);

  test('A1 A2 A6 C2.7 what a chat upstream gets of its first request', async () => {
    const scene = await play(rig, { agent, upstream: 'chat', steps: () => [{ text: 'Ready.' }] });
    assertSaid(scene, 'Ready.');
    const [body] = scene.main;
    // An unknown server gets all instructions in front (C1).
    assert.deepEqual(roles(body), ['system', 'user']);
    const text = JSON.stringify(body);
    assert.match(systemText(body), /^\s*You are a Claude agent/);
    for (const foreign of [billing, 'cache_control', 'defer_loading', 'context_management']) {
      assert.ok(!text.includes(foreign), foreign);
    }
    assert.match(systemText(body), /\n# Environment/);
    const tools = listAt(body ?? {}, 'tools').map((tool) =>
      textAt(objectAt(tool, 'function'), 'name'),
    );
    for (const name of ['Agent', 'Bash', 'Edit', 'Read', 'ToolSearch', 'Write']) {
      assert.ok(tools.includes(name), `${name} of ${tools.join()}`);
    }
    assert.ok(!tools.includes('DeferredToolPlaceholder'));
    assert.equal(body?.['max_tokens'], 32_000);
    assert.equal(body['reasoning_effort'], 'high');
    const notes = textAt(scene.calls[0] ?? {}, 'notes').split('; ');
    assert.deepEqual(
      notes.map((note) => note.split(':')[0]).sort(),
      ['context_management', 'messages.1', 'tools'],
      notes.join('\n'),
    );
  });

  for (const [asked, keepsBilling] of [
    ['anthropic/claude-next', true],
    ['', false],
  ] as const) {
    const name = keepsBilling ? "Anthropic's own" : 'a foreign messages';
    test(`A4 A6 ${name} upstream gets the fields of its first request as they are`, async () => {
      const scene = await play(rig, {
        agent,
        upstream: 'messages',
        steps: () => [{ text: 'Ready.' }],
        ...(asked === '' ? {} : { model: cast(asked, 'claude-next') }),
      });
      assertSaid(scene, 'Ready.');
      const body = scene.main[0] ?? {};
      assert.deepEqual(roles(body), ['user', keepsBilling ? 'system' : 'user']);
      assert.equal(systemText(body).includes(billing), keepsBilling);
      const marked = [
        ...listAt(body, 'system'),
        ...listAt(listAt(body, 'messages')[1] ?? {}, 'content'),
      ]
        .filter((block) => block['cache_control'] !== undefined)
        .map((block) => objectAt(block, 'cache_control'));
      const mark = { type: 'ephemeral' };
      assert.deepEqual(marked, [mark, mark, mark]);
      assert.deepEqual(body['thinking'], { type: 'adaptive', display: 'omitted' });
      assert.deepEqual(body['output_config'], { effort: 'high' });
      assert.ok(body['context_management'] !== undefined);
      assert.match(scene.received[0]?.header('anthropic-beta') ?? '', /claude-code-20250219/);
      const notes = textAt(scene.calls[0] ?? {}, 'notes');
      assert.match(notes, keepsBilling ? /^$/ : /^messages\.1: changed, [^;]*$/);
    });
  }

  test('D1 D2 reasoning of a chat upstream comes back to it as it was', async () => {
    const thinking = 'First the note; then "say" it. 東京';
    const scene = await play(rig, {
      agent,
      upstream: 'chat',
      model: cast('deepseek/deepseek-reasoner', 'deepseek-reasoner'),
      files: { 'note.txt': 'N1\n' },
      steps: (at) => [
        { thinking, text: 'I look.', calls: [agent.read('call_1', at('note.txt'))] },
        { thinking: 'Good.', text: 'Seen.' },
      ],
    });
    assertSaid(scene, 'Seen.');
    const turn = listAt(scene.main[1] ?? {}, 'messages').find((m) => m['role'] === 'assistant');
    assert.equal(turn?.['reasoning_content'], thinking);
    assert.equal(turn['content'], 'I look.');
    assertServed(scene);
  });

  test('D3 a signed thought of a messages upstream comes back byte by byte', async () => {
    const [thinking, signature] = ['Perhaps "so"\nor 東京.', 'EqQBCkYIBxgCKkB+/=='] as const;
    const scene = await play(rig, {
      agent,
      upstream: 'messages',
      files: { 'note.txt': 'N1\n' },
      steps: (at) => [
        { thinking, signature, text: 'I look.', calls: [agent.read('toolu_1', at('note.txt'))] },
        { text: 'Seen.' },
      ],
    });
    assertSaid(scene, 'Seen.');
    const turn = listAt(scene.main[1] ?? {}, 'messages').find((m) => m['role'] === 'assistant');
    assert.deepEqual(listAt(turn ?? {}, 'content')[0], { type: 'thinking', thinking, signature });
  });

  test('B4 a picture that its tool reads reaches the chat upstream behind the result', async () => {
    const scene = await play(rig, {
      agent,
      upstream: 'chat',
      files: { 'p.png': picture },
      steps: (at) => [{ calls: [agent.read('call_1', at('p.png'))] }, { text: 'A dot.' }],
    });
    assertSaid(scene, 'A dot.');
    assert.deepEqual(roles(scene.main[1]).slice(-3), ['assistant', 'tool', 'user']);
    const last = listAt(scene.main[1] ?? {}, 'messages').at(-1) ?? {};
    const url = listAt(last, 'content').map((part) => textAt(objectAt(part, 'image_url'), 'url'));
    assert.match(url.join(''), /^data:image\/png;base64,iVBOR/);
  });

  test('C2.7 a tool that it finds by its search is offered to the chat upstream', async () => {
    const search = { query: 'select:WebFetch', max_results: 5 };
    const scene = await play(rig, {
      agent,
      upstream: 'chat',
      steps: () => [
        { calls: [{ id: 'call_1', name: 'ToolSearch', input: search }] },
        { text: 'Found.' },
      ],
    });
    assertSaid(scene, 'Found.');
    assert.match(resultsIn('chat', scene.main[1])[0]?.text ?? '', /WebFetch/);
    const names = scene.main.map((body) =>
      listAt(body, 'tools').map((tool) => textAt(objectAt(tool, 'function'), 'name')),
    );
    assert.deepEqual(
      names.map((list) => list.includes('WebFetch')),
      [false, true],
    );
  });

  test('A10 its web search, which a chat upstream has not, says so to the model, and it continues', async () => {
    const search = { query: 'select:WebSearch', max_results: 5 };
    const scene = await play(rig, {
      agent,
      upstream: 'chat',
      options: ['--allowedTools', 'WebSearch'],
      steps: () => [
        { calls: [{ id: 'call_1', name: 'ToolSearch', input: search }] },
        { calls: [{ id: 'call_2', name: 'WebSearch', input: { query: 'quince jam' } }] },
        { text: 'Without the web, then.' },
      ],
    });
    assertSaid(scene, 'Without the web, then.');
    const refusal = resultsIn('chat', scene.main[2])[1]?.text ?? '';
    assert.match(refusal, /400 tools\.0[^]*Web search is not allowed/);
  });

  test('§3 its sub-agent holds a conversation of its own on the chat upstream', async () => {
    const input = {
      description: 'Look at it',
      prompt: 'Look at quince.',
      subagent_type: 'general-purpose',
      run_in_background: false,
    };
    const scene = await play(rig, {
      agent,
      upstream: 'chat',
      steps: () => [
        { calls: [{ id: 'call_1', name: 'Agent', input }] },
        { text: 'The helper saw quince.' },
        { text: 'All seen.' },
      ],
    });
    assertSaid(scene, 'All seen.');
    assert.equal(scene.main.length, 3);
    assert.deepEqual(
      roles(scene.main[1]).filter((role) => role === 'assistant'),
      [],
    );
    assert.match(resultsIn('chat', scene.main[2])[0]?.text ?? '', /The helper saw quince\./);
  });

  for (const upstream of dialects) {
    test(`H1 it understands that a ${upstream} upstream's context is too small`, async () => {
      const body =
        upstream === 'chat'
          ? chatError(
              "This model's maximum context length is 8192 tokens. However, your messages resulted in 10042 tokens.",
              'invalid_request_error',
              'context_length_exceeded',
            )
          : messagesError(
              'prompt is too long: 10042 tokens > 8192 maximum',
              'invalid_request_error',
            );
      const steps = () => [{ answer: { status: 400, body } }];
      const scene = await play(rig, { agent, upstream, steps });
      assert.equal(scene.ran.code, 1);
      assert.match(
        scene.ran.out,
        /Prompt is too long · the request is ~10042 tokens \(limit 8192\)/,
      );
      assert.equal(scene.main.length, 1, 'it is not asked again');
    });
  }

  test('E1 an answer that is cut off is asked for again, not taken as whole', async () => {
    const half = chatFrame(chatChunk({ role: 'assistant', content: 'Half an ans' }));
    const scene = await play(rig, {
      agent,
      upstream: 'chat',
      steps: () => [{ answer: { body: [half], ending: 'reset' } }, { text: 'Whole now.' }],
    });
    assertSaid(scene, 'Whole now.');
    assert.equal(scene.main.length, 2);
    assert.equal(scene.calls[0]?.['error'], 'stream_interrupted');
  });

  test('F1 F3 it reports the usage that the chat upstream reported', async () => {
    const options = ['--output-format', 'json'];
    const steps = () => [{ text: 'Counted.' }];
    const scene = await play(rig, { agent, upstream: 'chat', options, steps });
    const result = tryParseObject(scene.ran.out) ?? {};
    assert.equal(result['result'], 'Counted.');
    const usage = objectAt(result, 'usage');
    assert.equal(numberAt(usage, 'input_tokens'), reported.fresh);
    assert.equal(numberAt(usage, 'cache_read_input_tokens'), reported.cacheRead);
    assert.equal(numberAt(usage, 'output_tokens'), reported.output);
    assert.equal(result['stop_reason'], 'end_turn');
  });

  test('A7 its /context counts tokens by the gateway, for a chat upstream too', async () => {
    const scene = await play(rig, {
      agent,
      upstream: 'chat',
      question: '/context',
      steps: () => [{ text: 'unused' }],
    });
    assertSaid(scene, '## Context Usage');
    assert.match(scene.ran.out, /\| System tools \| [1-9][\d.]*k \|/);
    assert.deepEqual(scene.received, [], 'nobody behind a chat upstream counts');
    if (hasNamespaces) {
      const counts = scene.asked.filter((line) => line.includes('/count_tokens'));
      assert.ok(counts.length > 0, scene.asked.join('\n'));
    }
  });

  for (const name of known) {
    test(`B14 as ${name}, in the form that it keeps for that name`, async () => {
      const scene = await play(rig, {
        agent,
        upstream: 'chat',
        model: cast(name, name),
        files: { 'note.txt': 'The word is quince-4711.\n' },
        steps: (at) => [{ calls: [agent.read('call_1', at('note.txt'))] }, { text: 'Seen.' }],
      });
      assertSaid(scene, 'Seen.');
      assert.match(resultsIn('chat', scene.main[1])[0]?.text ?? '', /quince-4711/);
      assert.ok(typeof scene.main[0]?.['reasoning_effort'] === 'string');
      assertServed(scene);
    });
  }

  test('§3 it is connected by the settings file that connect --write makes', async () => {
    const scene = await play(rig, {
      agent: claudeCodeByFile(command),
      upstream: 'chat',
      steps: () => [{ text: 'Read from the file.' }],
    });
    assertSaid(scene, 'Read from the file.');
    assertServed(scene);
  });

  test('A3 a system message behind the tool result stays the last', async () => {
    const scene = await play(rig, {
      agent,
      upstream: 'chat',
      model: cast('claude-opus-4-8', 'claude-opus-4-8'),
      files: { 'note.txt': 'N1\n' },
      steps: (at) => [{ calls: [agent.read('call_1', at('note.txt'))] }, { text: 'Seen.' }],
    });
    // What stood behind the user's first message is in front (C1); what follows an answer keeps its place.
    const order = ['system', 'user', 'assistant', 'tool', 'user'];
    assert.deepEqual(roles(scene.main[1]), order);
  });
});
