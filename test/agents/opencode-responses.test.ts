/** opencode with its OpenAI package, which calls `/v1/responses` (wire/responses.md §9). */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { opencode } from './agents.ts';
import { brokenIn } from './answers.ts';
import { withAgent } from './installed.ts';
import { play } from './scene.ts';
import { startStage, type FullStage } from './stage.ts';
import { assertSaid, oneTool, severalTools } from './tool-turns.ts';
import { wires } from './turn.ts';

withAgent('opencode', (command) => {
  let stage: FullStage;
  before(async () => {
    stage = await startStage();
  });
  after(() => stage.stop());
  const agent = opencode(command, 'responses');

  for (const upstream of wires) {
    oneTool(() => stage, agent, upstream);
    if (upstream === 'messages') severalTools(() => stage, agent, upstream);

    test(`R-21 R-26 ${agent.name} on a ${upstream} upstream: an answer that is cut off is not taken as whole`, async () => {
      const scene = await play(stage, {
        agent,
        upstream,
        steps: () => [
          { answer: brokenIn(upstream, { text: 'Half an answer' }) },
          { text: 'Whole now.' },
        ],
      });
      assertSaid(scene, 'Whole now.');
      assert.ok(!scene.ran.out.includes('Half'));
      assert.equal(scene.main.length, 2);
      assert.deepEqual(
        scene.asked.filter((line) => !line.startsWith('POST /v1/responses')),
        [],
      );
    });
  }
});
