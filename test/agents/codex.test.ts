/** Codex itself, driven through the gateway over `/v1/responses` (wire/responses.md §9). */
import assert from 'node:assert/strict';
import { dirname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { clientKey } from '../support/keys.ts';
import { startRig, type Rig } from '../support/rig.ts';
import { chatChunk, chatFrame } from '../upstream/chat.ts';
import { messagesFrames } from '../upstream/messages.ts';
import type { Agent } from './agents.ts';
import { withAgent } from './installed.ts';
import { play, resultsIn } from './scene.ts';
import { assertSaid, assertServed } from './tool-turns.ts';

const id = { chat: 'call_Zk3v', messages: 'toolu_01Zk3v' } as const;

const half = {
  chat: [chatFrame(chatChunk({ role: 'assistant', content: 'Half an ans' }))],
  messages: messagesFrames({ text: 'Half an answer' }).slice(0, 4),
} as const;

/** With a provider of its own, as the page for users says. */
function codex(program: readonly string[], more = ''): Agent {
  return {
    name: 'codex',
    dialect: 'chat',
    // Its plugins and experiments.
    tries: ['github.com:443', 'api.github.com:443', 'chatgpt.com:443', 'ab.chatgpt.com:443'],
    connect: async (box, { url, model }) => {
      const settings = `
model = "${model}"
model_provider = "gateway"
[model_providers.gateway]
name = "gateway"
base_url = "${url}/v1"
env_key = "GATEWAY_KEY"
wire_api = "responses"
${more}
`;
      await box.write(join(box.home, '.codex', 'config.toml'), settings);
      return {
        command: (question, options = []) =>
          [...program, 'exec', '--skip-git-repo-check'].concat(
            ['--dangerously-bypass-approvals-and-sandbox', ...options],
            question,
          ),
        env: {
          GATEWAY_KEY: clientKey,
          CODEX_HOME: join(box.home, '.codex'),
          PATH: `${dirname(program[0] ?? '')}:${dirname(process.execPath)}:/usr/bin:/bin`,
        },
      };
    },
    read: (callId, path) => shell(callId, `cat ${path}`),
    write: (callId, path, text) => shell(callId, `printf %s '${text}' > ${path}`),
    shell,
  };
}

function shell(callId: string, cmd: string) {
  return { id: callId, name: 'exec_command', input: { cmd } };
}

withAgent('codex', (command) => {
  let rig: Rig;
  before(async () => {
    rig = await startRig({ models: { 'gpt-5.5': { targets: ['up-chat/patching'] } } });
  });
  after(() => rig.stop());
  const agent = codex(command);

  for (const upstream of ['chat', 'messages'] as const) {
    test(`R-1 R-2 codex on a ${upstream} upstream: its own shell tool runs`, async () => {
      const scene = await play(rig, {
        agent,
        upstream,
        question: 'What does note.txt say?',
        files: { 'note.txt': 'The word is quince-4711.\n' },
        steps: () => [
          { text: 'I shall look.', calls: [shell(id[upstream], 'cat note.txt')] },
          { text: 'It says that the word is quince.' },
        ],
      });
      assertSaid(scene, 'It says that the word is quince.');
      assert.equal(scene.main.length, 2);
      const [result] = resultsIn(upstream, scene.main[1]);
      assert.match(result?.text ?? '', /The word is quince-4711\./);
      assertServed(scene);
    });

    test(`R-10 codex on a ${upstream} upstream: two calls at once`, async () => {
      const [first, second] = [`${id[upstream]}a`, `${id[upstream]}b`];
      const scene = await play(rig, {
        agent,
        upstream,
        files: { 'one.txt': 'uno-1\n', 'two.txt': 'dos-2\n' },
        steps: () => [
          { calls: [shell(first, 'cat one.txt'), shell(second, 'cat two.txt')] },
          { text: 'Both were read.' },
        ],
      });
      assertSaid(scene, 'Both were read.');
      const results = resultsIn(upstream, scene.main[1]);
      assert.deepEqual(
        results.map((result) => result.id),
        [first, second],
      );
    });

    test(`R-11 codex on a ${upstream} upstream: a stream that breaks in mid-text is asked for again`, async () => {
      const scene = await play(rig, {
        agent,
        upstream,
        steps: () => [
          { answer: { body: half[upstream], ending: 'reset' } },
          { text: 'Whole at last.' },
        ],
      });
      assertSaid(scene, 'Whole at last.');
    });
  }

  test('R-4 codex, offered as a free text: it applies the patch of a chat model', async () => {
    const patch = '*** Begin Patch\n*** Add File: made.txt\n+quince-4711\n*** End Patch\n';
    const scene = await play(rig, {
      agent,
      upstream: 'chat',
      model: { asked: 'gpt-5.5', upstream: 'patching', server: rig.upstreams.chat },
      steps: () => [
        { calls: [{ id: 'call_patch', name: 'apply_patch', input: { input: patch } }] },
        { text: 'Patched.' },
      ],
    });
    assertSaid(scene, 'Patched.');
    assert.equal(scene.files['made.txt'], 'quince-4711\n');
  });
});
