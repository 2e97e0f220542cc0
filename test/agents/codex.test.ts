/** Codex itself, driven through the gateway over `/v1/responses` (wire/responses.md §9). */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { listAt, objectAt, textAt } from '../support/reading.ts';
import { brokenIn } from './answers.ts';
import { codex, shell } from './codex.ts';
import { withAgent } from './installed.ts';
import { play, resultsIn } from './scene.ts';
import { startStage, type FullStage } from './stage.ts';
import { assertSaid, assertServed } from './tool-turns.ts';
import { wires, type AgentCall, type Wire } from './turn.ts';

const id = { chat: 'call_Zk3v', messages: 'toolu_01Zk3v', responses: 'call_Zk3v' } as const;

/** A call of its tool that patches: a new file. */
function patching(callId: string): AgentCall {
  const input = '*** Begin Patch\n*** Add File: made.txt\n+quince-4711\n*** End Patch\n';
  return { id: callId, name: 'apply_patch', input: { input }, free: true };
}

withAgent('codex', (command) => {
  let stage: FullStage;
  before(async () => {
    const patching = wires.map((wire) => [`gpt-5.5-${wire}`, { targets: [`up-${wire}/patching`] }]);
    stage = await startStage({ models: Object.fromEntries(patching) });
  });
  after(() => stage.stop());
  const agent = codex(command);
  /** A model by a name for which Codex has its tool of patches. */
  const patchingOn = (wire: Wire) => ({
    asked: `gpt-5.5-${wire}`,
    upstream: 'patching',
    server: stage.upstreams[wire],
  });

  for (const upstream of wires) {
    test(`R-1 R-2 R-3 codex on a ${upstream} upstream: its own shell tool runs`, async () => {
      const scene = await play(stage, {
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
      const mode = upstream === 'responses' ? 'relay' : 'translate';
      for (const call of scene.calls) assert.equal(textAt(call, 'mode'), mode);
    });

    test(`R-10 codex on a ${upstream} upstream: two calls at once`, async () => {
      const [first, second] = [`${id[upstream]}a`, `${id[upstream]}b`];
      const scene = await play(stage, {
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

    test(`R-11 codex on a ${upstream} upstream: streams that break, in a text and in calls, are asked for again`, async () => {
      const call = shell(`${id[upstream]}a`, 'echo ran >> ran.txt; cat note.txt');
      const patch = patching(`${id[upstream]}p`);
      const scene = await play(stage, {
        agent,
        upstream,
        files: { 'note.txt': 'The word is quince-4711.\n' },
        model: patchingOn(upstream),
        steps: () => [
          { answer: brokenIn(upstream, { text: 'Half an answer' }) },
          { answer: brokenIn(upstream, { text: 'I shall look.', calls: [call] }) },
          { text: 'I shall look.', calls: [call] },
          { answer: brokenIn(upstream, { calls: [patch] }) },
          { calls: [patch] },
          { answer: brokenIn(upstream, { text: 'Half an answer' }) },
          { text: 'Whole at last.' },
        ],
      });
      assertSaid(scene, 'Whole at last.');
      assert.equal(scene.main.length, 7);
      assert.equal(scene.files['ran.txt'], 'ran\n', 'the call that broke did not run');
      assert.equal(scene.files['made.txt'], 'quince-4711\n');
      const results = resultsIn(upstream, scene.main[6]);
      assert.deepEqual(
        results.map((result) => result.id),
        [call.id, patch.id],
      );
      assert.match(results[0]?.text ?? '', /quince-4711/);
      assert.deepEqual(
        scene.calls.map((row) => row['outcome']),
        ['failed', 'failed', 'ok', 'failed', 'ok', 'failed', 'ok'],
      );
    });

    test(`R-26 codex on a ${upstream} upstream: streams that always break are a failure`, async () => {
      const scene = await play(stage, {
        agent: codex(command, 'stream_max_retries = 1'),
        upstream,
        steps: () => [{ answer: brokenIn(upstream, { text: 'Half an answer' }) }],
      });
      assert.notEqual(scene.ran.code, 0, scene.ran.out);
      assert.equal(scene.main.length, 2);
      for (const call of scene.calls) assert.equal(call['outcome'], 'failed');
    });

    test(`R-4 R-5 codex on a ${upstream} upstream: it applies the patch of a model`, async () => {
      const call = patching(`${id[upstream]}p`);
      const scene = await play(stage, {
        agent,
        upstream,
        model: patchingOn(upstream),
        steps: () => [{ calls: [call] }, { text: 'Patched.' }],
      });
      assertSaid(scene, 'Patched.');
      assert.equal(scene.files['made.txt'], 'quince-4711\n');
      const [result] = resultsIn(upstream, scene.main[1]);
      assert.equal(result?.id, call.id);
      assert.match(result.text, /made\.txt/);
    });
  }

  test('R-3 R-82 codex on a responses upstream: the body is its own but for what the gateway owns', async () => {
    const scene = await play(stage, {
      agent,
      upstream: 'responses',
      steps: () => [{ text: 'Done.' }],
    });
    assertSaid(scene, 'Done.');
    const [body = {}] = scene.main;
    assert.equal(body['store'], false);
    assert.ok(listAt(body, 'tools').some(({ type }) => type === 'namespace'));
    assert.deepEqual(body['include'], ['reasoning.encrypted_content']);
    assert.deepEqual(objectAt(body, 'reasoning')['summary'], 'auto');
    assert.equal(typeof body['prompt_cache_key'], 'string');
    assert.equal(body['client_metadata'], undefined);
  });
});
