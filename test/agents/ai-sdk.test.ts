/** The AI SDK on `/v1/responses`, as installed (wire/responses.md §9). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { withLibraries } from './installed.ts';
import { libraryTurns, threeSteps } from './library-turns.ts';
import { Actor } from './library.ts';
import { resultsIn } from './scene.ts';
import { startStage } from './stage.ts';
import { wires, type AgentCall, type Wire } from './turn.ts';

const patch = { type: 'create_file', path: 'a.txt', diff: '+a' };

/** As a model calls them to which they were offered as functions. */
function typedCalls(upstream: Wire): readonly AgentCall[] {
  const prefix = upstream === 'messages' ? 'toolu_' : 'call_';
  return [
    { id: `${prefix}1`, name: 'shell', input: { commands: ['ls'] } },
    { id: `${prefix}2`, name: 'local_shell', input: { command: ['ls'] } },
    { id: `${prefix}3`, name: 'apply_patch', input: { operation: patch } },
    { id: `${prefix}4`, name: 'free', input: { input: 'abc' } },
  ];
}

withLibraries((packages) => {
  const library = {
    name: 'ai-sdk',
    runner: [process.execPath],
    packages,
    program: 'ai-sdk.mjs',
  };
  const act = libraryTurns(library);

  for (const upstream of ['chat', 'messages'] as const) {
    for (const name of ['typed', 'typedStream']) {
      test(`R-4 R-50 ai-sdk on a ${upstream} upstream: calls have the types of their tools, ${name}`, async () => {
        const steps = [{ calls: typedCalls(upstream) }, { text: 'All ran.' }];
        const { told, bodies } = await act({ name, upstream, steps });
        assert.equal(told['text'], 'All ran.', JSON.stringify(told));
        assert.deepEqual(told['ran'], {
          shell: ['ls'],
          local_shell: ['ls'],
          apply_patch: patch,
          free: 'abc',
        });
        const results = resultsIn(upstream, bodies[1]);
        assert.deepEqual(
          results.map(({ id }) => id),
          typedCalls(upstream).map(({ id }) => id),
        );
        for (const [index, { name: tool }] of typedCalls(upstream).entries()) {
          assert.ok(results[index]?.text.includes(`of ${tool}`), JSON.stringify(results));
        }
      });
    }
  }

  test('R-23 ai-sdk where no responses are kept: its second step is told so, and store: false helps', async () => {
    const stage = await startStage({ responses: { store: 'off' } });
    const actor = await Actor.start(stage, library);
    try {
      for (const upstream of wires) {
        const plot = { upstream, steps: threeSteps(upstream) };
        const { told, bodies } = await actor.act({ ...plot, name: 'steps' });
        assert.match(
          String(told['thrown']),
          /Items are not persisted when `store` is set to false/,
        );
        assert.equal(bodies.length, 1);
        const unkept = await actor.act({ ...plot, name: 'unkept' });
        assert.equal(unkept.told['text'], 'Sunny in both.', JSON.stringify(unkept.told));
        assert.equal(unkept.bodies.length, 3);
      }
    } finally {
      await actor.close();
      await stage.stop();
    }
  });
});
